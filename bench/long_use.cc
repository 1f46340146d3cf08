// Long use: outputs by the hundred thousand over grammars of one compiler, with the memory of the
// process and the speed written down as they go.
//
//   build/bin/long_use --outputs 1000000 --json bench/results/long_use.json
//
// What is measured is the grammars alone: a random walk over the masks takes the place of a model.
// A walk leans to the end, or strings and objects would hardly have one. With --budget 0 nothing is
// ever freed: the speed to compare with, as long as the memory suffices.
#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/matcher.h"
#include "src/base/file.h"
#include "src/text/tokenizer.h"

namespace pawl {
namespace {

// In addition to the examples of the repository: schemas whose texts never meet the same states
// again.
constexpr const char* kOpenSchemas[] = {
    R"({"type":"object","additionalProperties":{"type":"integer"}})",
    R"({"type":"object","additionalProperties":{"type":"array","items":{"type":"number"}}})",
    R"({"type":"array","uniqueItems":true,"items":{"type":"string","maxLength":20}})",
    R"({"type":"object","patternProperties":{"^[a-z]+$":{"type":"string"}},
        "additionalProperties":false,"minProperties":2})",
    R"({"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"n":
        {"type":"number","multipleOf":0.01}},"required":["id"]},"contains":{"required":["n"]}})",
    R"({})",
};

double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Megabytes of the process that are in memory.
double Resident() {
  std::ifstream in("/proc/self/statm");
  double size = 0, resident = 0;
  in >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

TokenId NthToken(std::span<const uint32_t> words, uint32_t n) {
  for (size_t i = 0; i < words.size(); ++i) {
    const auto here = static_cast<uint32_t>(std::popcount(words[i]));
    if (n >= here) {
      n -= here;
      continue;
    }
    uint32_t word = words[i];
    for (; n > 0; --n) word &= word - 1;
    return static_cast<TokenId>(i * 32 + static_cast<size_t>(std::countr_zero(word)));
  }
  return kNoToken;
}

// One output; returns its tokens.
size_t Walk(Matcher& matcher, const Vocabulary& vocabulary, std::vector<uint32_t>& row,
            std::mt19937_64& random) {
  constexpr size_t kMostTokens = 300;
  matcher.Reset();
  while (matcher.steps() < kMostTokens && matcher.FillMask(row)) {
    TokenId token = kNoToken;
    if (random() % 6 == 0) {
      if (matcher.accepting()) break;
      const auto rest = matcher.state().CompletionBytes();
      if (rest && !rest->empty()) token = vocabulary.LongestPrefix(*rest);
    }
    if (token == kNoToken) {
      uint32_t allowed = 0;
      for (const uint32_t word : row) allowed += static_cast<uint32_t>(std::popcount(word));
      token = NthToken(row, static_cast<uint32_t>(random() % allowed));
    }
    if (vocabulary.is_end(token)) break;
    if (!matcher.Accept(token)) {
      std::fprintf(stderr, "long_use: a token of the mask was refused\n");
      std::exit(3);
    }
  }
  return matcher.steps();
}

int Fail(const std::string& why) {
  std::fprintf(stderr, "long_use: %s\n", why.c_str());
  return 2;
}

int Run(int argc, char** argv) {
  size_t outputs = 20'000, budget = 256;
  std::string json;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--outputs") == 0) outputs = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--budget") == 0) budget = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--json") == 0) json = argv[i + 1];
  }
  const std::string root = PAWL_SOURCE_DIR;
  const auto tokenizer = Tokenizer::FromFile(root + "/models/tiny-extract/tokenizer.json");
  if (!tokenizer.ok()) return Fail(tokenizer.error().ToString());
  const auto made = (*tokenizer)->MakeVocabulary();
  if (!made.ok()) return Fail(made.error().ToString());
  const std::shared_ptr<const Vocabulary> vocabulary = *made;
  const Compiler compiler(vocabulary,
                          {.memory_budget = budget == 0 ? size_t{1} << 50 : budget << 20});
  JsonSchemaOptions compact;
  compact.whitespace = JsonSchemaOptions::Whitespace::kCompact;
  std::vector<Grammar> grammars;
  const auto add = [&](const std::string& name, Result<Grammar> grammar) {
    if (!grammar.ok()) std::exit(Fail(name + ": " + grammar.error().ToString()));
    grammars.push_back(*std::move(grammar));
  };
  const auto text = [&](const std::string& name) { return *ReadFile(root + "/" + name); };
  for (const char* name :
       {"appointment", "booking", "contact", "event", "flight", "invoice", "job", "measurement",
        "order", "product", "recipe", "review", "shipment", "ticket"})
    add(name, compiler.CompileJsonSchema(text(std::string("schemas/examples/") + name + ".json"),
                                         compact));
  for (const char* schema : kOpenSchemas) add(schema, compiler.CompileJsonSchema(schema, compact));
  add("arithmetic",
      compiler.CompileGrammar(text("grammar/examples/arithmetic.ebnf"), GrammarLanguage::kEbnf));
  add("sql", compiler.CompileGrammar(text("grammar/examples/sql.ebnf"), GrammarLanguage::kEbnf));
  add("tool_calls",
      compiler.CompileStructuralTag(text("grammar/examples/tool_calls.structural_tag.json")));

  std::vector<Matcher> matchers(grammars.begin(), grammars.end());
  std::vector<uint32_t> row(static_cast<size_t>(vocabulary->mask_words()));
  std::mt19937_64 random(1);
  const size_t each = std::max<size_t>(1, outputs / 40);
  std::string points;
  size_t tokens = 0;
  double last = ProcessorSeconds();
  const double begin = last;
  for (size_t i = 0; i < outputs; ++i) {
    tokens += Walk(matchers[i % matchers.size()], *vocabulary, row, random);
    if ((i + 1) % each != 0) continue;
    const double now = ProcessorSeconds();
    char line[200];
    std::snprintf(line, sizeof line,
                  "{\"outputs\": %zu, \"seconds\": %.2f, \"per_second\": %.0f, \"kept_mb\": %.1f, "
                  "\"resident_mb\": %.1f}",
                  i + 1, now - begin, static_cast<double>(each) / (now - last),
                  static_cast<double>(compiler.memory_bytes()) / 1e6, Resident());
    std::printf("%s\n", line);
    std::fflush(stdout);
    points += (points.empty() ? "\n    " : ",\n    ") + std::string(line);
    last = ProcessorSeconds();
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  if (json.empty()) return 0;
  std::ofstream out(json);
  out << "{\n  \"outputs\": " << outputs << ",\n  \"tokens\": " << tokens
      << ",\n  \"grammars\": " << grammars.size() << ",\n  \"budget_mb\": " << budget
      << ",\n  \"most_resident_mb\": " << static_cast<double>(usage.ru_maxrss) / 1e3
      << ",\n  \"points\": [" << points << "\n  ]\n}\n";
  return out.good() ? 0 : Fail(json + ": cannot be written");
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) { return pawl::Run(argc, argv); }
