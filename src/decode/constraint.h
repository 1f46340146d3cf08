// LoopConstraint: a public Constraint (pawl/constraint.h) as the decode loop follows it.
//
//   std::shared_ptr<const LoopConstraint> at = ForLoop(constraint, *vocabulary);
//   std::shared_ptr<const Mask> mask = at->Look().mask;
//   at = at->Next(token);                                  // nullptr: the token is refused
//
// Grammars are LoopConstraints themselves. All other constraints are wrapped. The wrapper checks
// the answers, asks each question about a place once, and knows nothing without asking, so that the
// decoding thread leaves every question to the threads of looks.
//
// The loop asks grammars without the forced text, which it needs at few places. Figures, as
// callgrind counts the instructions of `pawl sample --schema schemas/examples/invoice.json --n 30
// --seed 1`: 848.9 M with a call for each answer, 899.0 M with Look(), 849.3 M with
// LookUnforced().
//
// Thread safety: all methods are const and may be called from several threads.
#ifndef PAWL_SRC_DECODE_CONSTRAINT_H_
#define PAWL_SRC_DECODE_CONSTRAINT_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "grammar/record_filter.h"
#include "pawl/constraint.h"
#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl {

// A key of two keys; 0 where one of them is 0.
inline uint64_t MixedKeys(uint64_t first, uint64_t second) {
  if (first == 0 || second == 0) return 0;
  uint64_t mixed = (first * 0x9e3779b97f4a7c15u) ^ (second + (first >> 32));
  mixed = (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9u;
  return std::max<uint64_t>(mixed ^ (mixed >> 32), 1);
}

class LoopConstraint : public Constraint {
 public:
  // Advance, whose answer is a LoopConstraint too.
  std::shared_ptr<const LoopConstraint> Next(TokenId token) const {
    return std::static_pointer_cast<const LoopConstraint>(Advance(token));
  }
  // The key of Next(token), where it is known without making it; 0: the token is refused. nullopt:
  // ask Next.
  virtual std::optional<uint64_t> KeyAfter(TokenId /*token*/) const { return std::nullopt; }
  // Grammars are rebuilt when they have grown large, and Next goes over to the grammar as it is
  // now. That takes the whole text again, which is too slow for each of many steps. Next without
  // it:
  virtual std::shared_ptr<const LoopConstraint> NextHere(TokenId token) const {
    return Next(token);
  }
  // Whether the grammar was rebuilt, and the same place in the grammar as it is now; nullptr: this
  // is one.
  virtual bool outdated() const { return false; }
  virtual std::shared_ptr<const LoopConstraint> Renewed() const { return nullptr; }
  // What the grammar holds now is needed: it is rebuilt again when it has doubled.
  virtual void NeedsAll() const {}
  // How many tokens Completion(most) has; -1: nullopt.
  virtual int CompletionLength(int most) const = 0;
  // Look(), perhaps without `forced`.
  virtual Place LookUnforced() const { return Look(); }
  // Parts of Look(). Drafts and samplers ask for masks alone, and pay for nothing else.
  virtual std::shared_ptr<const Mask> mask() const { return Look().mask; }
  virtual bool accepting() const { return Look().accepting; }
  virtual std::string forced(size_t limit) const { return Look().forced.substr(0, limit); }

  // A question may take seconds, and another thread may hold the lock of a grammar for as long. The
  // thread that all outputs share asks only these two, which answer without work and without a
  // wait. Which of the answers are known:
  struct Known {
    bool place = false;        // `at`, but for `at.forced`
    bool forced = false;       // `at.forced`
    std::optional<int> close;  // CompletionLength without a limit
    Place at;
  };
  static constexpr size_t kForcedLimit = 256;  // bytes
  // A forced run of bytes is looked for where so few tokens are allowed: its prefixes. Where more
  // are, tokens reach beyond its end, and the choice is the model's.
  static constexpr int kMostSpellings = 64;
  virtual Known known() const { return {}; }
  // Next where its answer is known; nullptr: it is not.
  virtual std::shared_ptr<const LoopConstraint> KnownNext(TokenId /*token*/) const {
    return nullptr;
  }
  // Questions to constraints of one lane wait for each other. nullptr: they have no lane.
  virtual const void* lane() const { return nullptr; }
  // Whose place this is; nullptr: of none, or of more than one.
  virtual const Grammar* grammar() const { return nullptr; }
  // Not of a grammar: what is wrong with its answers is told to its author.
  virtual bool foreign() const { return false; }
  // What makes records of the texts; nullptr: they are records. With thoughts: of the answers.
  virtual std::unique_ptr<RecordFilter> NewRecordFilter() const { return nullptr; }
  // Where the answer begins is not certain here, because there may be thoughts before it.
  virtual bool before_answer() const { return false; }
  // Allowed tokens that are not in `mask` lose `nats` of their logits. nullptr: none does.
  struct Preference {
    std::shared_ptr<const Mask> mask;
    float nats = 0;
  };
  virtual Preference preference() const { return {}; }
  // Here or behind some tokens there may be a preference.
  virtual bool prefers() const { return false; }
  // Another constraint with the same masks, which drafts are made for. nullptr: this one.
  virtual std::shared_ptr<const LoopConstraint> for_drafts() const { return nullptr; }
  // What the model's end token means where the output may not end yet: another token, and the place
  // behind it. nullopt: nothing, and the mask does not allow it.
  struct InsteadOfEnd {
    TokenId token;
    std::shared_ptr<const LoopConstraint> behind;
  };
  virtual std::optional<InsteadOfEnd> AtEnd() const { return std::nullopt; }
  // Of the tokens up to `token`, this one counted: how many are the answer's. REQUIRES:
  // before_answer() here, and no longer behind `token`, which may follow.
  virtual size_t AnswerTokens(TokenId) const { return 0; }
};

// The constraint itself, or a wrapper. nullptr for nullptr. The vocabulary outlives the result.
std::shared_ptr<const LoopConstraint> ForLoop(std::shared_ptr<const Constraint> constraint,
                                              const Vocabulary& vocabulary);

// What a wrapper throws where an answer is wrong.
class WrongConstraint : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};
// The error of an output whose constraint threw the exception that is being handled. `foreign`: the
// place is "constraint". REQUIRES: called from a handler.
Error ConstraintFailure(bool foreign) noexcept;

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_CONSTRAINT_H_
