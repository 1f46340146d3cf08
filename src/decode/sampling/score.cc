// Scores are made by a ScoreWork, alone or in a batch. There are two readings of the logits: the
// law of the model, as samplers have it (step_law.h), and what outputs report (logprob_tracker.h),
// so that a prompt's log-probabilities are those of an output of the same tokens.
#include "src/decode/sampling/score.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "src/base/failure.h"
#include "src/decode/check_input.h"
#include "src/decode/logprob_tracker.h"
#include "src/decode/sampling/step_law.h"
#include "src/decode/score_work.h"

namespace pawl {
namespace {

Error WrongScore(const char* place, std::string message) {
  return Error{ErrorCode::kInvalid, std::move(message), place};
}

Status SeeLaw(std::span<const float> logits, TokenId token, double temperature,
              TokenScores& scores) {
  const Result<StepLaw> law = MakeStepLaw(logits, temperature, nullptr, 0);
  if (!law.ok()) return law.error();
  scores.logprobs.push_back(law->LogProbability(logits, token));
  return {};
}

void SeeReport(std::span<const float> logits, TokenId token, const GenerateOptions& options,
               TokenScores& scores) {
  LogprobTracker watch(options);
  watch.See(logits, nullptr);
  watch.Append(token, TokenReport::Source::kSampled, -1);
  const TokenReport report = watch.report(0);
  scores.logprobs.push_back(report.logprob);
  scores.top.emplace_back(report.top.begin(), report.top.end());
}

}  // namespace

Status CheckScore(const Model& model, std::span<const TokenId> tokens,
                  const ScoreOptions& options) {
  const int width = model.info().vocabulary_size;
  if (!(options.temperature > 0) || !std::isfinite(options.temperature)) {
    return WrongScore("temperature", "must be a finite number above 0");
  }
  if (options.first < 1 || tokens.empty()) return WrongScore("prompt", "has no tokens");
  const size_t first = std::min(options.first, tokens.size());
  if (Status status = CheckTokens(tokens.first(first), width, "prompt"); !status.ok()) {
    return status;
  }
  if (Status status = CheckTokens(tokens.subspan(first), width, "tokens"); !status.ok()) {
    return status;
  }
  const int positions = PositionsOf(model.info(), model.kv_memory());
  if (first < tokens.size() && tokens.size() - 1 > static_cast<size_t>(positions)) {
    return Error{ErrorCode::kLimit,
                 "prompt and tokens are " + std::to_string(tokens.size()) +
                     " tokens, but the model holds " + std::to_string(positions),
                 "tokens"};
  }
  return {};
}

std::unique_ptr<Work> MakeScoreWork(Model& model, int vocabulary_size, std::vector<TokenId> tokens,
                                    const ScoreOptions& options,
                                    std::function<void(Result<TokenScores>)> done) {
  const auto scores = std::make_shared<TokenScores>();
  GenerateOptions reported;
  reported.logprobs = options.top;
  reported.on_report = [](const TokenReport&) { return true; };
  // The work and this function read the same tokens.
  const auto text = std::make_shared<const std::vector<TokenId>>(tokens);
  const auto see = [=, reported = std::move(reported)](size_t i,
                                                       std::span<const float> logits) -> Status {
    if (options.top < 0) return SeeLaw(logits, (*text)[i], options.temperature, *scores);
    const size_t known = std::min(logits.size(), static_cast<size_t>(vocabulary_size));
    SeeReport(logits.first(known), (*text)[i], reported, *scores);
    return {};
  };
  return std::make_unique<ScoreWork>(model, std::move(tokens), options.first, see,
                                     [scores, done = std::move(done)](const Status& ended) {
                                       if (!ended.ok()) return done(CopyOf(ended.error()));
                                       done(std::move(*scores));
                                     });
}

Result<std::vector<double>> ScoreTokens(Model& model, std::span<const TokenId> prompt,
                                        std::span<const TokenId> tokens, double temperature) {
  std::vector<TokenId> all(prompt.begin(), prompt.end());
  all.insert(all.end(), tokens.begin(), tokens.end());
  const ScoreOptions options{.first = prompt.size(), .temperature = temperature};
  if (Status status = CheckScore(model, all, options); !status.ok()) return status.error();
  TokenScores scores;
  ScoreWork work(model, all, prompt.size(), [&](size_t i, std::span<const float> logits) {
    return SeeLaw(logits, all[i], temperature, scores);
  });
  if (Status status = RunAlone(model, work, ScoreWork::kMostRows); !status.ok()) {
    return status.error();
  }
  return std::move(scores.logprobs);
}

}  // namespace pawl
