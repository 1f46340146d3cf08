// The loop of LLaDA (Nie et al., arXiv 2502.09992): blocks from left to right; in each call the
// surest masks of a block become tokens. With a threshold all that are sure do, as in Fast-dLLM (Wu
// et al., arXiv 2505.22618). What may be committed, and how sure it is, comes from the lattice of
// the constraint. One known output, the witness, is carried along, so that there is always a token
// to commit: the output is valid whatever the model says.
#include "src/decode/diffusion/mask_filler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "src/base/random.h"
#include "src/decode/check_input.h"

namespace pawl {

MaskFiller::MaskFiller(FillTask task, const FillOptions& options)
    : task_(std::move(task)),
      options_(options),
      canvas_(static_cast<size_t>(task_.length), kNoToken),
      place_{task_.constraint, false} {}

Status MaskFiller::Start() {
  if (Status status = CheckCompletion(task_.constraint.get(), task_.length); !status.ok()) {
    return status;
  }
  return Settle();
}

std::vector<int> MaskFiller::Wanted() const {
  std::vector<int> positions;
  for (int i = first_; i < block_end_; ++i) {
    if (canvas_[static_cast<size_t>(i)] == kNoToken) positions.push_back(i);
  }
  return positions;
}

std::span<const TokenId> MaskFiller::output() const {
  return std::span(canvas_).first(static_cast<size_t>(first_ - (place_.ended ? 1 : 0)));
}

bool MaskFiller::HasIslands() const {
  return std::any_of(canvas_.begin() + first_, canvas_.begin() + block_end_,
                     [](TokenId token) { return token != kNoToken; });
}

Status MaskFiller::Settle() {
  for (;;) {
    while (first_ < task_.length && canvas_[static_cast<size_t>(first_)] != kNoToken) {
      const TokenId token = canvas_[static_cast<size_t>(first_++)];
      if (task_.constraint == nullptr) {
        place_.ended = task_.rules.IsEnd(token);
      } else {
        place_ = task_.rules.Next(place_, token);
        if (!place_.ended && place_.at == nullptr) {
          return Error{ErrorCode::kInternal, "a committed token does not fit the constraint", ""};
        }
      }
      if (place_.ended) break;
    }
    done_ = place_.ended || only_end_ || first_ == task_.length;
    if (done_) return {};
    const int begin = first_ / options_.block_length * options_.block_length;
    if (begin != block_begin_ || block_end_ == 0) {
      block_begin_ = begin;
      block_end_ = std::min(task_.length, begin + options_.block_length);
      const int blocks = (task_.length + options_.block_length - 1) / options_.block_length;
      steps_left_ = std::max(1, options_.steps / blocks);
    }
    if (task_.constraint == nullptr) return {};
    if (HasIslands()) return {};  // the witness is that of the call before
    if (!Force() && !only_end_) return FindWitness();
  }
}

// Only where masks alone are behind: what a forced text pushes out of its place is nowhere fixed.
bool MaskFiller::Force() {
  const std::shared_ptr<const Mask> mask = place_.at->mask();
  ++looks_;
  const std::vector<TokenId> allowed =
      mask->count() <= LoopConstraint::kMostSpellings ? mask->Tokens() : std::vector<TokenId>();
  only_end_ = !allowed.empty() &&
              std::ranges::all_of(allowed, [&](TokenId t) { return task_.rules.IsEnd(t); });
  if (only_end_ || allowed.empty()) return false;
  std::vector<TokenId> tokens;
  if (task_.encode != nullptr && *task_.encode) {
    const std::string text = place_.at->forced(LoopConstraint::kForcedLimit);
    if (!text.empty()) tokens = SpellForced(*task_.vocabulary, *task_.encode, text);
  }
  if (tokens.empty() && mask->count() == 1) tokens = allowed;
  CanvasPlace at = place_;
  int written = 0;
  for (const TokenId token : tokens) {
    const int left = task_.length - first_ - written - 1;
    at = task_.rules.Next(at, token);
    if (left < 0 || at.at == nullptr || at.at->CompletionLength(left) < 0) break;
    canvas_[static_cast<size_t>(first_ + written++)] = token;
  }
  forced_ += written;
  return written > 0;
}

Status MaskFiller::FindWitness() {
  const auto left = static_cast<size_t>(task_.length - first_);
  std::optional<std::vector<TokenId>> rest = place_.at->Completion(static_cast<int>(left));
  if (!rest || rest->size() > left) {
    return Error{ErrorCode::kInternal, "the output that was known to fit is gone", ""};
  }
  witness_ = *std::move(rest);
  witness_.resize(static_cast<size_t>(block_end_ - first_), task_.rules.ends[0]);
  return {};
}

int MaskFiller::Quota(int masks) {
  if (options_.steps == 0) return 0;
  const int quota = (masks + steps_left_ - 1) / steps_left_;
  steps_left_ = std::max(1, steps_left_ - 1);
  return std::max(1, quota);
}

double MaskFiller::ConfidenceOf(std::span<const CanvasLattice::Share> shares, int position) const {
  switch (options_.confidence) {
    case MaskConfidence::kShare:
      break;
    case MaskConfidence::kMargin:
      return shares.size() < 2 ? 1 : shares[0].share - shares[1].share;
    case MaskConfidence::kEntropy: {
      double sum = 0;
      for (const auto& [token, share] : shares) sum += share > 0 ? share * std::log(share) : 0;
      return std::exp(sum);
    }
    case MaskConfidence::kRandom:
      return static_cast<double>(
          UniformAt(options_.seed, static_cast<uint64_t>(calls_), static_cast<uint64_t>(position)));
  }
  return shares[0].share;
}

// The largest share, or a draw where there is a temperature.
TokenId MaskFiller::Choose(std::span<const CanvasLattice::Share> shares, int position) const {
  TokenId chosen = shares[0].token;
  if (options_.temperature <= 0) return chosen;
  double best = -std::numeric_limits<double>::infinity();
  for (const auto& [token, share] : shares) {
    const auto place = static_cast<uint64_t>(position) << 32 | static_cast<uint64_t>(calls_);
    const double uniform =
        static_cast<double>(UniformAt(options_.seed, place, static_cast<uint64_t>(token)));
    const double value =
        std::log(std::max(share, 1e-300)) - options_.temperature * std::log(-std::log(uniform));
    if (value <= best) continue;
    best = value;
    chosen = token;
  }
  return chosen;
}

namespace {

// Which masks a call commits, in order. `quota`: the surest ones, so many. 0: all that are as sure
// as the threshold wants; where none is, the first one, which knows all that stands in front of it.
std::vector<size_t> MasksToCommit(std::span<const double> confidence, int quota, double threshold) {
  std::vector<size_t> order(confidence.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order,
                           [&](size_t a, size_t b) { return confidence[a] > confidence[b]; });
  if (quota > 0) {
    order.resize(std::min(order.size(), static_cast<size_t>(quota)));
    return order;
  }
  const size_t surest = order.front();
  std::erase_if(order, [&](size_t n) { return confidence[n] < threshold; });
  if (order.empty()) order.push_back(surest);
  return order;
}

}  // namespace

Status MaskFiller::Take(std::vector<std::vector<float>> scores) {
  if (task_.constraint == nullptr) {
    CommitFree(std::move(scores));
  } else if (Status status = CommitInLattice(std::move(scores)); !status.ok()) {
    return status;
  }
  ++calls_;
  return Settle();
}

void MaskFiller::CommitFree(std::vector<std::vector<float>> scores) {
  const std::vector<int> wanted = Wanted();
  std::vector<double> confidence;
  std::vector<TokenId> tokens;
  for (size_t n = 0; n < wanted.size(); ++n) {
    std::vector<CanvasLattice::Share> shares;
    for (TokenId t = 0; t < task_.rules.width; ++t) {
      shares.push_back({t, std::exp(static_cast<double>(scores[n][static_cast<size_t>(t)]))});
    }
    std::ranges::sort(shares, [](const auto& a, const auto& b) {
      return a.share != b.share ? a.share > b.share : a.token < b.token;
    });
    tokens.push_back(Choose(shares, wanted[n]));
    confidence.push_back(ConfidenceOf(shares, wanted[n]));
  }
  const int quota = Quota(static_cast<int>(wanted.size()));
  for (const size_t n : MasksToCommit(confidence, quota, options_.threshold)) {
    canvas_[static_cast<size_t>(wanted[n])] = tokens[n];
  }
}

Status MaskFiller::CommitInLattice(std::vector<std::vector<float>> scores) {
  const std::vector<int> wanted = Wanted();
  const auto size = static_cast<size_t>(block_end_ - first_);
  std::vector<std::vector<float>> by_place(size);
  for (size_t n = 0; n < wanted.size(); ++n) {
    by_place[static_cast<size_t>(wanted[n] - first_)] = std::move(scores[n]);
  }
  const auto window = std::span(canvas_).subspan(static_cast<size_t>(first_), size);
  const std::vector<TokenId> before(window.begin(), window.end());
  CanvasLattice lattice(task_.rules, place_, before, by_place, witness_, task_.length - block_end_);
  looks_ += lattice.looks();
  if (!lattice.alive()) {
    return Error{ErrorCode::kInternal, "the lattice has lost its witness", ""};
  }
  lattice.Weigh();
  const auto place_of = [&](int position) { return static_cast<size_t>(position - first_); };
  std::vector<double> confidence;
  for (const int position : wanted) {
    confidence.push_back(ConfidenceOf(lattice.Shares(place_of(position)), position));
  }
  const int quota = Quota(static_cast<int>(wanted.size()));
  const std::vector<size_t> surest = MasksToCommit(confidence, quota, options_.threshold);
  for (const size_t n : surest) {
    const size_t place = place_of(wanted[n]);
    // Tokens that were committed before may have taken the best one away.
    const std::vector<CanvasLattice::Share> shares = lattice.Shares(place);
    if (quota == 0 && n != surest[0] && ConfidenceOf(shares, wanted[n]) < options_.threshold) {
      continue;
    }
    const TokenId token = Choose(shares, wanted[n]);
    window[place] = token;
    lattice.Commit(place, token);
  }
  // What has no alternative in the lattice is committed with them.
  for (size_t place = 0; place < size; ++place) {
    if (window[place] != kNoToken) continue;
    if (const auto shares = lattice.Shares(place); shares.size() == 1) {
      window[place] = shares[0].token;
    }
  }
  witness_ = lattice.Best();
  // The witness stands from the first mask on.
  size_t known = 0;
  while (known < size && window[known] != kNoToken) ++known;
  witness_.erase(witness_.begin(), witness_.begin() + static_cast<ptrdiff_t>(known));
  return {};
}

}  // namespace pawl
