// The loop of LLaDA (Nie et al., arXiv 2502.09992): blocks from left to right; in each call some
// masks of a block become tokens, as its schedule says. What may be committed, and how sure it is,
// comes from the lattice of the constraint. One known output, the witness, is carried along, so
// that there is always a token to commit: the output is valid whatever the model says.
#include "src/decode/diffusion/mask_filler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "src/base/random.h"
#include "src/decode/check_input.h"

namespace pawl {

MaskFiller::MaskFiller(FillTask task, const FillOptions& options)
    : task_(std::move(task)),
      constrained_(task_.constraint != nullptr),
      options_(options),
      canvas_(static_cast<size_t>(task_.length), kNoToken),
      place_{std::move(task_.constraint), false},
      schedule_(options),
      states_(std::make_shared<CanvasStates>(task_.rules)) {}

Status MaskFiller::Start() {
  if (has_gaps()) {
    canvas_ = task_.canvas;
    gap_of_ = task_.gap_of;
    witness_ = task_.witness;
    fills_.resize(static_cast<size_t>(*std::ranges::max_element(gap_of_)) + 1);
    return Settle();
  }
  if (Status status = CheckCompletion(place_.at.get(), task_.length); !status.ok()) {
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
      const TokenId token = canvas_[static_cast<size_t>(first_)];
      const int gap = has_gaps() ? gap_of_[static_cast<size_t>(first_)] : -1;
      ++first_;
      if (gap >= 0 && !task_.rules.IsEnd(token)) {
        fills_[static_cast<size_t>(gap)].push_back(token);
      }
      if (!constrained_) {
        place_.ended = task_.rules.IsEnd(token);
      } else {
        place_ = PlaceAfter(token);
        if (!place_.ended && place_.at == nullptr) {
          return Error{ErrorCode::kInternal, "a committed token does not fit the constraint", ""};
        }
      }
      if (place_.ended) break;
    }
    done_ = place_.ended || only_end_ || first_ == task_.length;
    if (done_) return {};
    const int begin = first_ / options_.block_length * options_.block_length;
    if (has_gaps() && block_end_ > 0) {
      block_end_ = task_.length;
    } else if (begin != block_begin_ || block_end_ == 0) {
      if (!has_gaps()) witness_.clear();
      block_begin_ = begin;
      block_end_ = std::min(task_.length, begin + options_.block_length);
      const int blocks = (task_.length + options_.block_length - 1) / options_.block_length;
      schedule_.Begin(options_.steps > 0 ? options_.steps / blocks : block_end_ - block_begin_);
    }
    if (!constrained_) return {};
    if (HasIslands()) return {};  // the witness is that of the call before
    if (!Force() && !only_end_) return FindWitness();
  }
}

// The steps of the lattice have led there before.
CanvasPlace MaskFiller::PlaceAfter(TokenId token) {
  const CanvasStates::Id next = states_->After(states_->Of(place_), token);
  if (next == CanvasStates::kRefused) return {};
  return states_->PlaceOf(next);
}

// Only where masks alone are behind: what a forced text pushes out of its place is nowhere fixed.
bool MaskFiller::Force() {
  const int64_t before = states_->looks();
  const std::shared_ptr<const Mask> mask = states_->MaskOf(states_->Of(place_)).mask;
  looks_ += states_->looks() - before;
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
  if (written > 0) witness_.clear();
  return written > 0;
}

// The shortest one that is found. Where it has to be searched for among tokens, it may be found at
// one place and not behind its first tokens: then what was known before still stands.
Status MaskFiller::FindWitness() {
  const auto left = static_cast<size_t>(task_.length - first_);
  const auto size = static_cast<size_t>(block_end_ - first_);
  std::optional<std::vector<TokenId>> rest = place_.at->Completion(static_cast<int>(left));
  if (rest && rest->size() <= left) {
    known_ = *std::move(rest);
    known_.resize(left, task_.rules.ends[0]);
    known_from_ = first_;
  } else if (witness_.size() == size) {
    return {};
  } else {
    const auto begin = canvas_.begin() + known_from_;
    const auto read = static_cast<ptrdiff_t>(first_ - known_from_);
    const bool same_canvas = known_.size() == left + static_cast<size_t>(read);
    if (!same_canvas || !std::equal(begin, begin + read, known_.begin())) {
      return Error{ErrorCode::kInternal, "the output that was known to fit is gone", ""};
    }
    known_.erase(known_.begin(), known_.begin() + read);
    known_from_ = first_;
  }
  witness_.assign(known_.begin(), known_.begin() + static_cast<ptrdiff_t>(size));
  return {};
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

std::vector<CanvasLattice::Share> MaskFiller::SharesOf(size_t place,
                                                       std::span<const std::vector<float>> scores,
                                                       const CanvasLattice* lattice) const {
  if (lattice != nullptr) return lattice->Shares(place);
  std::vector<CanvasLattice::Share> shares;
  for (TokenId t = 0; t < task_.rules.width; ++t) {
    shares.push_back({t, std::exp(static_cast<double>(scores[place][static_cast<size_t>(t)]))});
  }
  // Two are looked at in order; the rest has a part in draws and in the entropy.
  const auto two = shares.begin() + std::min<ptrdiff_t>(2, std::ssize(shares));
  std::ranges::partial_sort(shares, two, [](const auto& a, const auto& b) {
    return a.share != b.share ? a.share > b.share : a.token < b.token;
  });
  return shares;
}

Status MaskFiller::Take(std::vector<std::vector<float>> scores) {
  const std::vector<int> wanted = Wanted();
  const auto size = static_cast<size_t>(block_end_ - first_);
  std::vector<std::vector<float>> by_place(size);
  for (size_t n = 0; n < wanted.size(); ++n) {
    by_place[static_cast<size_t>(wanted[n] - first_)] = std::move(scores[n]);
  }
  if (!constrained_) {
    Commit(by_place, nullptr);
  } else {
    const auto window = std::span(canvas_).subspan(static_cast<size_t>(first_), size);
    const std::vector<TokenId> before(window.begin(), window.end());
    place_ = states_->BeginCall(place_);
    CanvasLattice lattice(task_.rules, std::move(place_), before, by_place, witness_,
                          task_.length - block_end_, states_.get(),
                          has_gaps() ? std::span(gap_of_).subspan(static_cast<size_t>(first_), size)
                                     : std::span<const int>());
    place_ = lattice.root();
    looks_ += lattice.looks();
    if (!lattice.alive()) {
      return Error{ErrorCode::kInternal, "the lattice has lost its witness", ""};
    }
    lattice.Weigh();
    Commit(by_place, &lattice);
    // The witness stands from the first mask on.
    witness_ = lattice.Best();
    if (has_gaps()) RemoveBlanks();
    size_t known = 0;
    const auto first = static_cast<size_t>(first_);
    while (known < witness_.size() && canvas_[first + known] != kNoToken) ++known;
    witness_.erase(witness_.begin(), witness_.begin() + static_cast<ptrdiff_t>(known));
  }
  ++calls_;
  return Settle();
}

void MaskFiller::RemoveBlanks() {
  for (auto i = static_cast<size_t>(first_); i < canvas_.size(); ++i) {
    if (canvas_[i] != kBlank) continue;
    size_t end = i;
    while (end < canvas_.size() && gap_of_[end] == gap_of_[i]) ++end;
    const auto erase = [&](auto& items, size_t from) {
      items.erase(items.begin() + static_cast<ptrdiff_t>(i - from),
                  items.begin() + static_cast<ptrdiff_t>(end - from));
    };
    task_.length -= static_cast<int>(end - i);
    erase(canvas_, 0);
    erase(gap_of_, 0);
    erase(witness_, static_cast<size_t>(first_));
    --i;
  }
}

void MaskFiller::Commit(std::span<const std::vector<float>> scores, CanvasLattice* lattice) {
  const std::vector<int> wanted = Wanted();
  const auto place_of = [&](int position) { return static_cast<size_t>(position - first_); };
  std::vector<FillSchedule::Mask> masks;
  for (const int position : wanted) {
    const auto shares = SharesOf(place_of(position), scores, lattice);
    masks.push_back({position, ConfidenceOf(shares, position), std::nullopt});
    if (shares.size() > 1 && shares[1].share > 0) {
      masks.back().lead = std::log(shares[0].share) - std::log(shares[1].share);
    }
  }
  const FillSchedule::Choice choice = schedule_.Choose(masks, calls_);
  const std::vector<TokenId> best =
      choice.all && lattice != nullptr ? lattice->Best() : std::vector<TokenId>();
  for (size_t n = 0; choice.all && n < wanted.size(); ++n) {
    const size_t place = place_of(wanted[n]);
    canvas_[static_cast<size_t>(wanted[n])] =
        lattice != nullptr ? best[place] : SharesOf(place, scores, nullptr)[0].token;
  }
  for (const auto& [n, least] : choice.commits) {
    const int position = wanted[n];
    // Tokens that were committed before may have taken the best one away.
    const auto shares = SharesOf(place_of(position), scores, lattice);
    if (ConfidenceOf(shares, position) < least) continue;
    const TokenId token = Choose(shares, position);
    canvas_[static_cast<size_t>(position)] = token;
    if (lattice != nullptr) lattice->Commit(place_of(position), token);
  }
  // What has no alternative in the lattice is committed with them.
  for (const int position : wanted) {
    if (lattice == nullptr || canvas_[static_cast<size_t>(position)] != kNoToken) continue;
    if (const auto only = lattice->Only(place_of(position))) {
      canvas_[static_cast<size_t>(position)] = *only;
    }
  }
}

}  // namespace pawl
