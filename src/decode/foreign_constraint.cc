// The wrapper around constraints that are not grammars: those of users, of monitors, and two at a
// time.
//
// Code that is not known answers here, and its answers index arrays later. So the wrapper checks
// them once, and what comes behind it relies on them. It also keeps what Look answered: drafts, the
// sampler and the loop may ask again, and the user's code is asked once.
#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/failure.h"
#include "src/base/sync.h"
#include "src/decode/constraint.h"

namespace pawl {
namespace {

using Words = std::vector<uint32_t>;

void SetBit(Words& words, TokenId token) {
  words[static_cast<size_t>(token) >> 5] |= uint32_t{1} << (token & 31);
}

// Text tokens, for a place without a mask.
Words TextTokens(const Vocabulary& vocabulary) {
  Words words(static_cast<size_t>(vocabulary.mask_words()), 0);
  for (TokenId t = 0; t < vocabulary.size(); ++t) {
    if (!vocabulary.is_special(t)) SetBit(words, t);
  }
  return words;
}

class ForeignConstraint final : public LoopConstraint {
 public:
  ForeignConstraint(std::shared_ptr<const Constraint> of, const Vocabulary& vocabulary)
      : of_(std::move(of)), vocabulary_(vocabulary) {}

  Place Look() const override {
    {
      const std::lock_guard lock(mutex_);
      if (looked_) return place_;
    }
    Place place = of_->Look();
    place.mask = Checked(std::move(place.mask), place.accepting);
    const std::lock_guard lock(mutex_);
    if (!looked_) place_ = std::move(place);
    looked_ = true;
    return place_;
  }

  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    if (token < 0 || token >= vocabulary_.size()) return nullptr;
    std::shared_ptr<const Constraint> next = of_->Advance(token);
    if (next == nullptr) return nullptr;
    return std::make_shared<ForeignConstraint>(std::move(next), vocabulary_);
  }

  std::optional<std::vector<TokenId>> Completion(int most) const override {
    std::optional<std::vector<TokenId>> tokens = of_->Completion(most);
    if (tokens && tokens->size() > static_cast<size_t>(std::max(most, 0))) {
      throw WrongConstraint("its completion has " + std::to_string(tokens->size()) +
                            " tokens, but at most " + std::to_string(most) + " were asked for");
    }
    return tokens;
  }
  int CompletionLength(int most) const override {
    const auto tokens = Completion(most);
    return tokens ? static_cast<int>(tokens->size()) : -1;
  }

  bool exact() const override { return of_->exact(); }
  uint64_t key() const override { return of_->key(); }
  bool foreign() const override { return true; }
  Known known() const override {
    const std::lock_guard lock(mutex_);
    Known known;
    known.place = known.forced = looked_;
    if (looked_) known.at = place_;
    return known;
  }

 private:
  // The mask with the end tokens of a place that may be the end.
  std::shared_ptr<const Mask> Checked(std::shared_ptr<const Mask> mask, bool accepting) const {
    const auto size = static_cast<size_t>(vocabulary_.mask_words());
    if (mask != nullptr && mask->words().size() != size) {
      throw WrongConstraint("its mask has " + std::to_string(mask->words().size()) +
                            " words, but the vocabulary has " + std::to_string(size));
    }
    const int tail = vocabulary_.size() % 32;
    if (mask != nullptr && tail != 0 && mask->words().back() >> tail != 0) {
      throw WrongConstraint("its mask allows tokens beyond the vocabulary of " +
                            std::to_string(vocabulary_.size()));
    }
    const std::span<const TokenId> ends = vocabulary_.end_tokens();
    const bool lacks_end = accepting && std::any_of(ends.begin(), ends.end(), [&](TokenId t) {
                             return mask == nullptr || !mask->Allows(t);
                           });
    if (mask != nullptr && !lacks_end) return mask;
    Words words = mask == nullptr ? TextTokens(vocabulary_)
                                  : Words(mask->words().begin(), mask->words().end());
    if (accepting) {
      for (const TokenId t : ends) SetBit(words, t);
    }
    return std::make_shared<Mask>(0, std::move(words));
  }

  const std::shared_ptr<const Constraint> of_;
  const Vocabulary& vocabulary_;
  mutable Mutex mutex_;
  mutable bool looked_ = false;  // with the mutex, here and below
  mutable Place place_;
};

}  // namespace

Constraint::~Constraint() = default;

std::shared_ptr<const LoopConstraint> ForLoop(std::shared_ptr<const Constraint> constraint,
                                              const Vocabulary& vocabulary) {
  if (constraint == nullptr) return nullptr;
  if (auto known = std::dynamic_pointer_cast<const LoopConstraint>(constraint)) return known;
  return std::make_shared<ForeignConstraint>(std::move(constraint), vocabulary);
}

Error ConstraintFailure(bool foreign) noexcept {
  Error error = CurrentFailure();
  if (!foreign) return error;
  try {
    throw;
  } catch (const WrongConstraint&) {
    error.code = ErrorCode::kInvalid;
  } catch (...) {  // the code is that of CurrentFailure
  }
  error.place = "constraint";  // short enough to need no memory
  return error;
}

}  // namespace pawl
