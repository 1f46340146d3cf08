// `pawl bench masks`: how long masks take under one constraint while given texts are read, token by
// token. What maskbench measures for JSON Schemas, for anything else.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/file.h"
#include "src/cli/command.h"
#include "src/cli/describe.h"
#include "src/cli/engine.h"
#include "src/cli/measure/times.h"
#include "src/cli/options.h"

namespace pawl::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kBench = "bench masks";

struct BenchFlags {
  GrammarFlags grammar{LayoutFlags::ForReading()};
  std::string tokenizer;
  std::vector<std::string> texts;
  std::string json;
  bool warm = false;
  int slowest = 0;
};

uint64_t NanosecondsSince(Clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

struct Slow {
  uint64_t ns;
  std::string place, token;
};

struct Times {
  std::vector<Slow> slow;
  std::vector<uint64_t> token_ns, first_ns;
};

// Reads a text's tokens; the time of each mask and step.
Status Read(const State& first, const ModelText& text, const std::string& content, Times& times) {
  State state = first;
  size_t number = 0;
  for (const TokenId token : text.tokenizer->Encode(content)) {
    const auto start = Clock::now();
    const bool allowed = state.mask()->Allows(token);
    std::optional<State> next;
    if (allowed) next = state.Advance(token);
    times.token_ns.push_back(NanosecondsSince(start));
    times.slow.push_back({times.token_ns.back(), fmt::format("token {}", number),
                          Readable(text.vocabulary->bytes(token))});
    if (!next) {
      return Error{ErrorCode::kInvalid,
                   fmt::format("token {} is refused; pawl validate shows where", number), ""};
    }
    state = *next;
    ++number;
  }
  if (!state.accepting()) return Error{ErrorCode::kInvalid, "the text ends too early", ""};
  return {};
}

std::string Json(const Times& times) {
  return fmt::format("{{\"tokens\":{},\"tbm_us\":{},\"ttfm_us\":{}}}\n", times.token_ns.size(),
                     SummaryJson(times.token_ns), SummaryJson(times.first_ns));
}

// What is made once for a vocabulary, with the first grammar and the first schema, is no part of a
// constraint's own time.
Status WarmVocabulary(const std::shared_ptr<const Vocabulary>& vocabulary) {
  const Compiler compiler(vocabulary);
  const Result<Grammar> schema = compiler.CompileJsonSchema(R"({"type":"string"})");
  if (!schema.ok()) return schema.error();
  const Result<Grammar> grammar = compiler.CompileGrammar("root ::= [a-z]", GrammarLanguage::kEbnf);
  if (!grammar.ok()) return grammar.error();
  schema->Start().mask();
  grammar->Start().mask();
  return {};
}

int BenchMasks(const BenchFlags& flags) {
  if (Status status = flags.grammar.CheckGiven(); !status.ok()) return Fail(kBench, status.error());
  if (!flags.json.empty()) {
    if (Status status = CheckWritable(flags.json); !status.ok())
      return Fail(kBench, status.error());
  }
  Result<ModelText> text = LoadText(kBench, flags.tokenizer);
  if (!text.ok()) return Fail(kBench, text.error());
  if (Status status = WarmVocabulary(text->vocabulary); !status.ok())
    return Fail(kBench, status.error());
  Times times;
  const auto start = Clock::now();
  Result<Grammar> grammar = flags.grammar.Compile(text->vocabulary);
  if (!grammar.ok()) return Fail(kBench, grammar.error());
  grammar->Start().mask();
  times.first_ns.push_back(NanosecondsSince(start));
  for (const std::string& file : flags.texts) {
    const Result<std::string> content = ReadInput(file);
    if (!content.ok()) return Fail(kBench, content.error());
    Times before;
    if (flags.warm) {
      if (Status status = Read(grammar->Start(), *text, *content, before); !status.ok())
        return Fail(kBench, InFile(file, status.error()));
    }
    if (Status status = Read(grammar->Start(), *text, *content, times); !status.ok())
      return Fail(kBench, InFile(file, status.error()));
  }
  const auto masks = SummaryOfTimes(times.token_ns);
  std::string table = fmt::format("{:>8}", "us");
  for (const auto& [key, value] : masks) table += fmt::format("{:>10}", key);
  table += fmt::format("\n{:>8}", "TBM");
  for (const auto& [key, value] : masks) table += fmt::format("{:>10.2f}", value);
  Print(table + fmt::format("\n{} masks; first mask after {:.0f} us\n", times.token_ns.size(),
                            static_cast<double>(times.first_ns[0]) / 1000));
  std::ranges::stable_sort(times.slow, std::ranges::greater(), &Slow::ns);
  for (size_t i = 0; i < std::min(times.slow.size(), static_cast<size_t>(flags.slowest)); ++i) {
    const Slow& slow = times.slow[i];
    Print(fmt::format("{:>10.1f} us  {}  {}\n", static_cast<double>(slow.ns) / 1000, slow.place,
                      slow.token));
  }
  if (!flags.json.empty()) {
    if (Status status = WriteFile(flags.json, Json(times)); !status.ok())
      return Fail(kBench, status.error());
  }
  return kExitOk;
}

}  // namespace

void AddBench(CLI::App& app, Action& action) {
  CLI::App* bench = app.add_subcommand("bench", "Measure");
  bench->require_subcommand(1);
  bench->footer("Example:\n  pawl bench masks --help");
  AddBenchDecode(*bench, action);
  AddBenchDraft(*bench, action);
  CLI::App* command =
      bench->add_subcommand("masks", "Time the masks of a constraint while texts are read");
  const auto flags = std::make_shared<BenchFlags>();
  flags->grammar.AddAllTo(command);
  TextOption(command, "--tokenizer", flags->tokenizer, "PATH",
             "tokenizer.json, or a folder with one")
      ->required();
  command->add_option("texts", flags->texts, "Texts that fit")->required()->type_name("FILE...");
  command->add_flag("--warm", flags->warm, "Read each text once before it counts");
  CountOption(command, "--slowest", flags->slowest, 0, kMostCount, "Also list the N slowest masks");
  command->add_option("--json", flags->json, "Write the times to this file")->type_name("FILE");
  command->footer(
      "Example:\n  pawl bench masks --grammar grammar/examples/c.ebnf --tokenizer "
      "models/tiny-extract program.c");
  command->callback([flags, &action] { action = [flags] { return BenchMasks(*flags); }; });
}

}  // namespace pawl::cli
