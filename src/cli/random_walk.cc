// Why the walk leans toward the end: uniform over allowed tokens, a string without limits ends once
// in a hundred bytes, and an object whose values are objects need not end at all. With a
// probability of `ending` per token for the way to the shortest completion, what is open closes
// after some 1/ending tokens on average at each place, and still nothing that is allowed is
// impossible.
//
// A model is a function from the tokens so far to logits. This one follows the tokens with a state
// of its own, counts what the mask allows, and lifts the logit of the closing token to where the
// softmax over the allowed ones gives it its probability. The randomness is the sampler's, so a
// seed means what it means elsewhere. Where completions are long, finding one for every token would
// be slow: one is followed as long as the output does, and a new one is looked for only after a
// 256th as many tokens as it had bytes.
#include "src/cli/random_walk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "grammar/grammar_access.h"
#include "pawl/grammar.h"

namespace pawl::cli {
namespace {
constexpr size_t kBytesPerToken = 256;  // of a completion, for one token without a new one
}  // namespace

RandomWalkModel::RandomWalkModel(const Grammar& grammar, float ending)
    : grammar_(grammar), ending_(ending) {
  info_.architecture = "random walk";
  info_.vocabulary_size = grammar.vocabulary().size();
  info_.context_length = std::numeric_limits<int>::max() / 2;
}

void RandomWalkModel::Truncate(SequenceId, int length) {
  const auto most = static_cast<size_t>(std::max(0, length));
  if (states_.size() <= most) return;
  states_.erase(states_.begin() + static_cast<ptrdiff_t>(most), states_.end());
  plans_.resize(most);
  tokens_.resize(std::min(tokens_.size(), most == 0 ? 0 : most - 1));
}

void RandomWalkModel::Rebuild() {
  std::vector<State> renewed = {grammar_.Start()};
  for (const TokenId token : tokens_) {
    std::optional<State> next = renewed.back().Advance(token);
    if (!next) return;  // never; the states there are good in any case
    renewed.push_back(*std::move(next));
  }
  states_ = std::move(renewed);
  GrammarAccess::Replayed(states_.back());
}

Status RandomWalkModel::Run(const ModelCall& call) {
  const std::span<const Row> rows = call.rows;
  const std::span<float> logits = call.logits;
  for (const Row& row : rows) {
    const auto position = static_cast<size_t>(row.position);
    Truncate(row.sequence, row.position);
    if (position == 0) {
      states_.push_back(grammar_.Start());  // the prompt
      plans_.emplace_back();
    } else {
      if (!states_.empty() && states_.back().stale()) Rebuild();
      std::optional<State> next =
          position == states_.size() ? states_.back().Advance(row.token) : std::optional<State>();
      if (!next.has_value()) {
        return Error{ErrorCode::kInternal, "the grammar does not take the token",
                     "position " + std::to_string(position)};
      }
      states_.push_back(*std::move(next));
      tokens_.push_back(row.token);
      plans_.push_back(plans_.back());
      Follow(row.token, plans_.back());
    }
    if (row.output < 0) continue;
    const auto width = static_cast<size_t>(info_.vocabulary_size);
    WriteLogits(states_.back(), position, plans_.back(),
                logits.subspan(static_cast<size_t>(row.output) * width, width));
  }
  return {};
}

void RandomWalkModel::Follow(TokenId token, Plan& plan) const {
  if (plan.parts == nullptr || plan.part == plan.parts->size()) {
    plan.parts = nullptr;
    return;
  }
  const OutputPiece& part = (*plan.parts)[plan.part];
  const std::string_view bytes = grammar_.vocabulary().bytes(token);
  if (part.token != kNoToken) {
    if (part.token != token) plan.parts = nullptr;
    ++plan.part;
  } else if (std::string_view(part.bytes).substr(plan.done).starts_with(bytes)) {
    plan.done += bytes.size();
    if (plan.done == part.bytes.size()) {
      plan.done = 0;
      ++plan.part;
    }
  } else {
    plan.parts = nullptr;
  }
}

void RandomWalkModel::WriteLogits(const State& state, size_t position, Plan& plan,
                                  std::span<float> logits) const {
  std::fill(logits.begin(), logits.end(), 0.0f);
  const int allowed = state.mask()->count();
  if (ending_ <= 0 || allowed < 2) return;
  const Vocabulary& vocabulary = grammar_.vocabulary();
  TokenId closing = kNoToken;
  if (state.accepting()) {
    if (!vocabulary.end_tokens().empty()) closing = vocabulary.end_tokens().front();
  } else {
    const bool over = plan.parts == nullptr || plan.part == plan.parts->size();
    if (over && (plan.length == 0 || position - plan.asked > plan.length / kBytesPerToken)) {
      plan = {};
      if (auto parts = state.Completion()) {
        for (const OutputPiece& part : *parts) plan.length += part.bytes.size() + 1;
        plan.parts = std::make_shared<const std::vector<OutputPiece>>(*std::move(parts));
      }
      plan.asked = position;
    }
    if (plan.parts != nullptr && plan.part < plan.parts->size()) {
      const OutputPiece& part = (*plan.parts)[plan.part];
      closing = part.token != kNoToken
                    ? part.token
                    : vocabulary.LongestPrefix(std::string_view(part.bytes).substr(plan.done));
    }
  }
  if (closing == kNoToken) return;
  // Never less than the others': where a `}` is one of two, it stays one of two.
  logits[static_cast<size_t>(closing)] =
      std::max(0.0f, std::log(ending_ / (1 - ending_) * static_cast<float>(allowed - 1)));
}

}  // namespace pawl::cli
