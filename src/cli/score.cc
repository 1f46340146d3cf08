// `pawl score`: how probable a model finds tokens, or a text as its tokenizer spells it.
#include <fmt/format.h>

#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "src/base/utf8.h"
#include "src/cli/command.h"
#include "src/cli/prompted_model.h"
#include "src/cli/sampler_flags.h"
#include "src/engine/engine_parts.h"

namespace pawl::cli {
namespace {

constexpr const char* kScore = "score";

struct ScoreFlags {
  PromptedModelFlags model;
  std::optional<std::string> text, tokens;
  double temperature = 1;
  bool end = false;
  bool json = false;
};

int Score(const ScoreFlags& flags) {
  if (Status status = flags.model.Check(); !status.ok()) return Fail(kScore, status.error());
  if (flags.text.has_value() == flags.tokens.has_value()) {
    return Fail(kScore, Error{ErrorCode::kInvalid, "one of --text and --tokens is wanted", ""});
  }
  Result<Prompted> prompted = flags.model.Load(kScore);
  if (!prompted.ok()) return Fail(kScore, prompted.error());
  if (Status status = flags.model.LoadWeightsOf(kScore, *prompted); !status.ok()) {
    return Fail(kScore, status.error());
  }
  const LoadedModel& model = *prompted->model;
  std::vector<TokenId> tokens;
  if (flags.text.has_value()) {
    if (Status status = CheckUtf8(*flags.text); !status.ok()) {
      return Fail(kScore, InFile("--text", status.error()));
    }
    Result<std::vector<TokenId>> made =
        model.tokenizer().EncodeWithin(*flags.text, model.context_length());
    if (!made.ok()) return Fail(kScore, InFile("--text", made.error()));
    tokens = *std::move(made);
  } else {
    const int width = model.info().vocabulary_size;
    Result<std::vector<TokenId>> ids = ParseTokenIds(*flags.tokens, width, "--tokens");
    if (!ids.ok()) return Fail(kScore, ids.error());
    tokens = *std::move(ids);
  }
  if (flags.end) {
    if (model.vocabulary()->end_tokens().empty()) {
      return Fail(kScore, Error{ErrorCode::kInvalid, "the model has no end token", "--end"});
    }
    tokens.push_back(model.vocabulary()->end_tokens()[0]);
  }
  Engine engine = EngineAccess::Make({std::move(prompted->model), nullptr}, 1);
  EngineRequest request;
  request.tokens = std::move(prompted->tokens);
  const Result<std::vector<double>> scores = engine.Score(request, tokens, flags.temperature);
  if (!scores.ok()) {
    Error error = scores.error();
    if (error.place == "prompt") error.place = "the prompt";
    if (error.place == "tokens") error.place = flags.text.has_value() ? "--text" : "--tokens";
    if (error.place == "temperature") error.place = "--temperature";
    return Fail(kScore, error);
  }
  const double sum = std::accumulate(scores->begin(), scores->end(), 0.0);
  if (!flags.json) {
    Print(fmt::format("{}\n", sum));
    return kExitOk;
  }
  std::string ids, each;
  for (size_t i = 0; i < tokens.size(); ++i) {
    ids += fmt::format("{}{}", i > 0 ? "," : "", tokens[i]);
    each += fmt::format("{}{}", i > 0 ? "," : "", (*scores)[i]);
  }
  Print(fmt::format("{{\"log_probability\":{},\"tokens\":[{}],\"log_probabilities\":[{}]}}\n", sum,
                    ids, each));
  return kExitOk;
}

}  // namespace

void AddScore(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand(kScore, "The log-probability of tokens, or of a text, after a prompt");
  const auto flags = std::make_shared<ScoreFlags>();
  flags->model.AddPromptTo(command);
  command->add_option("--text", flags->text, "The text, in the tokenizer's spelling")
      ->type_name("TEXT");
  command->add_option("--tokens", flags->tokens, "Token ids, as generate --json-lines has them")
      ->type_name("IDS");
  command->add_flag("--end", flags->end, "And the end token behind them");
  command->add_option("--temperature", flags->temperature, "Of the model's distribution")
      ->type_name("T")
      ->capture_default_str();
  flags->model.AddModelTo(command);
  command->add_flag("--json", flags->json, "Print JSON, token by token");
  command->footer("Example:\n  pawl score --prompt \"A colour: \" --text red");
  command->callback([flags, &action] { action = [flags] { return Score(*flags); }; });
}

}  // namespace pawl::cli
