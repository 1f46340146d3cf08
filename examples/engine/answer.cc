// Two outputs of a model at a time, each under its own grammar:  answer MODEL
#include <cstdio>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/engine.h"

namespace {

int Fail(const pawl::Error& error) {
  std::fprintf(stderr, "answer: %s\n", error.ToString().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: answer MODEL\n");
    return 2;
  }
  auto engine = pawl::Engine::Load(argv[1]);
  if (!engine.ok()) return Fail(engine.error());

  const pawl::Compiler compiler(engine->vocabulary());
  const auto colour = compiler.CompileChoice(std::vector<std::string>{"red", "green"});
  if (!colour.ok()) return Fail(colour.error());
  pawl::JsonSchemaOptions compact;
  compact.whitespace = pawl::JsonSchemaOptions::Whitespace::kCompact;
  const auto pair = compiler.CompileJsonSchema(
      R"({"type": "object", "required": ["far", "hours"], "additionalProperties": false,
          "properties": {"far": {"type": "boolean"},
                         "hours": {"type": "integer", "minimum": 1, "maximum": 9}}})",
      compact);
  if (!pair.ok()) return Fail(pair.error());

  std::vector<pawl::EngineRequest> requests(2);
  requests[0].prompt = "The colour is ";
  requests[0].grammar = *colour;
  requests[1].prompt = "Is it far? ";
  requests[1].grammar = *pair;
  for (pawl::EngineRequest& request : requests) request.options.max_tokens = 60;
  for (const auto& output : engine->GenerateAll(requests)) {
    if (!output.ok()) return Fail(output.error());
    std::printf("%s\n", output->text.c_str());
  }
  return 0;
}
