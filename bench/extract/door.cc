// Records of texts through the C++ library, with no option: doors.py compares them with those of
// the other interfaces.
//   door MODEL SCHEMA < texts    each text ends with a zero byte; each record is a line
#include <pawl/compiler.h>
#include <pawl/engine.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

int main(int argc, char** argv) {
  if (argc != 3) return std::cerr << "door MODEL SCHEMA < texts\n", 2;
  std::ifstream file(argv[2], std::ios::binary);
  const std::string schema{std::istreambuf_iterator<char>(file), {}};
  auto engine = pawl::Engine::Load(argv[1]);
  if (!engine.ok()) return std::cerr << engine.error().ToString() << '\n', 1;
  const pawl::Compiler compiler(engine->vocabulary());
  for (std::string text; std::getline(std::cin, text, '\0');) {
    auto grammar = compiler.CompileJsonSchema(schema, engine->extract_options(text));
    if (!grammar.ok()) return std::cerr << grammar.error().ToString() << '\n', 1;
    pawl::EngineRequest request;
    request.extract = pawl::ExtractInput{.schema = schema, .text = text};
    request.grammar = *grammar;
    const auto output = engine->Generate(request);
    if (!output.ok()) return std::cerr << output.error().ToString() << '\n', 1;
    std::cout << output->text << '\n';
  }
  return 0;
}
