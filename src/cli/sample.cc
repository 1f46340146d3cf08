// `pawl sample`: texts that a grammar allows, drawn at random without a model (random_walk.h). For
// tests of what is downstream of a schema, and for looking at what a schema really says.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/base/json.h"
#include "src/base/random.h"
#include "src/cli/command.h"
#include "src/cli/engine.h"
#include "src/cli/gaps.h"
#include "src/cli/options.h"
#include "src/cli/random_walk.h"
#include "src/engine/engine_parts.h"

namespace pawl::cli {
namespace {

constexpr const char* kSample = "sample";

struct SampleFlags {
  GrammarFlags grammar{LayoutFlags::ForWriting()};
  std::string tokenizer;
  int n = 1;
  uint64_t seed = 0;
  int max_tokens = 4096;
  float ending = 0.1f;
};

// Each text has a seed of its own: the text with number i is the same for every --n.
uint64_t SeedOf(uint64_t seed, int number) {
  const PhiloxBlock block = Philox4x32(seed, 0, static_cast<uint64_t>(number));
  return uint64_t{block.word[0]} << 32 | block.word[1];
}

// One line. JSON stays as it is; a raw line feed in it can only be white space between its tokens,
// where a space means the same. Anything else becomes a JSON string.
std::string Line(const SampleFlags& flags, std::string text) {
  if (flags.grammar.schema_file.empty()) return json::Quote(text) + "\n";
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text + "\n";
}

// Draws texts of one grammar.
class RandomWalk {
 public:
  RandomWalk(const Grammar& grammar, const std::shared_ptr<const Vocabulary>& vocabulary,
             const SampleFlags& flags)
      : engine_(EngineAccess::Make(
            {LoadedModel::Of({nullptr, vocabulary},
                             std::make_unique<RandomWalkModel>(grammar, flags.ending)),
             nullptr},
            1)) {
    request_.tokens = {RandomWalkModel::kPrompt};
    request_.grammar = grammar;
    GenerateOptions& options = request_.options;
    options.sampling.temperature = 1;
    options.grammar_temperature = false;  // tokens are equally probable, also in a greedy rule
    options.max_tokens = flags.max_tokens;
  }

  // `written`: the text so far, also where it fails.
  Result<std::string> Draw(uint64_t seed, std::string& written) {
    written.clear();
    request_.options.sampling.seed = seed;
    request_.options.on_token = [&written](TokenId, std::string_view bytes) {
      written += bytes;
      return true;
    };
    Result<Generation> output = engine_.Generate(request_);
    if (!output.ok()) return output.error();
    for (const std::string& note : output->notes) Note(kSample, "note: " + note);
    return std::move(output->text);
  }

 private:
  Engine engine_;
  EngineRequest request_;
};

int Sample(const SampleFlags& flags) {
  if (Status status = flags.grammar.CheckGiven(); !status.ok())
    return Fail(kSample, status.error());
  Result<ModelText> text = LoadText(kSample, flags.tokenizer);
  if (!text.ok()) return Fail(kSample, text.error());
  const Result<Gaps> gaps = Gaps::Create(flags.grammar, text->vocabulary);
  if (!gaps.ok()) return Fail(kSample, gaps.error());
  NoteAnnotations(kSample, gaps->grammar().notes(), flags.grammar.annotations);

  int exit_code = kExitOk;
  RandomWalk walk(gaps->grammar(), text->vocabulary, flags);
  for (int i = 0; i < flags.n; ++i) {
    std::string written;
    Result<std::string> line = [&]() -> Result<std::string> {
      const uint64_t seed = SeedOf(flags.seed, i);
      auto output = walk.Draw(seed, written);
      if (!output.ok() || !gaps->several()) {
        return output.ok() ? Result(Line(flags, *std::move(output))) : output;
      }
      Gaps open = *gaps;
      std::vector<std::string> outputs = {*std::move(output)};
      for (;;) {
        const Result<bool> more = open.Fill(outputs.back());
        if (!more.ok()) return more.error();
        if (!*more) return OutputsLine(outputs);
        auto next =
            RandomWalk(open.grammar(), text->vocabulary, flags).Draw(open.SeedOf(seed), written);
        if (!next.ok()) return next;
        outputs.push_back(*std::move(next));
      }
    }();
    if (line.ok()) {
      Print(*line);
      if (!FlushOutput().ok()) break;  // reported when the command ends
    } else if (line.error().code == ErrorCode::kInvalid) {
      // See "Where the look-ahead ends" in docs/json_schema.md.
      constexpr size_t kShown = 60;
      const size_t begin = written.size() - std::min(written.size(), kShown);
      Note(kSample,
           fmt::format("{}: text {}: a dead end, no token is allowed after {} bytes: ...{}",
                       flags.grammar.source(), i, written.size(),
                       Readable(std::string_view(written).substr(begin))));
      exit_code = kExitSomeFailed;
    } else {
      return Fail(kSample, AtOption(line.error(), "the prompt", flags.grammar.source()));
    }
  }
  return exit_code;
}

}  // namespace

void AddSample(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand(kSample, "Draw random texts that a constraint allows, without a model");
  const auto flags = std::make_shared<SampleFlags>();
  flags->grammar.AddAllTo(command);
  flags->grammar.combine.AddGapsTo(command);
  TextOption(command, "--tokenizer", flags->tokenizer, "PATH", kTokenizerHelp);
  CountOption(command, "--n", flags->n, 1, kMostCount, "Number of texts");
  CountOption(command, "--seed", flags->seed, 0, std::numeric_limits<uint64_t>::max(),
              "The same seed gives the same texts");
  CountOption(command, "--max-tokens", flags->max_tokens, 1, kMostCount,
              "Budget of each text in tokens");
  RealOption(command, "--ending", flags->ending, 0, 0.999, "P",
             "Least probability, at each token, of the one that leads to the end: 0 to 0.999");
  command->footer(
      "One text on each line: JSON for --schema, else a JSON string; with --gap an array of them. "
      "Exit codes: 0 done; 1 some "
      "ended where nothing is allowed; 2 bad input or usage.\n"
      "Example:\n  pawl sample --schema schemas/examples/contact.json --n 5 --seed 7");
  command->callback([flags, &action] { action = [flags] { return Sample(*flags); }; });
}

}  // namespace pawl::cli
