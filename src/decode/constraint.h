// Constraint: what the decode loop sees of whatever decides which tokens may come next.
//
//   std::shared_ptr<const pawl::Constraint> at = pawl::MakeConstraint(grammar);
//   std::shared_ptr<const pawl::Mask> mask = at->mask();
//   at = at->Advance(token);                                  // nullptr: the token is refused
//
// An immutable value behind a pointer: keeping an old one rolls back, sharing one forks.
// Thread safety: all methods are const and may be called from several threads.
#ifndef PAWL_SRC_DECODE_CONSTRAINT_H_
#define PAWL_SRC_DECODE_CONSTRAINT_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pawl/grammar.h"
#include "pawl/vocabulary.h"

namespace pawl {

class Constraint {
 public:
  virtual ~Constraint() = default;

  // What may come next: tokens that Advance takes, and end-of-output tokens when accepting().
  // nullptr: everything may.
  virtual std::shared_ptr<const Mask> mask() const = 0;
  // nullptr when the token may not come next; an end-of-output token is only taken where a grammar
  // names it.
  virtual std::shared_ptr<const Constraint> Advance(TokenId token) const = 0;
  // Whether mask() is what Advance takes. false: mask() may also allow tokens that Advance refuses,
  // because to know it of every token would be too dear. A token is then drawn, asked about, and
  // where it is refused another one is drawn from the rest. mask() is then never nullptr.
  virtual bool exact() const { return true; }
  // The output may end here.
  virtual bool accepting() const = 0;
  // The bytes that must come next whatever the model says, at most `limit`; empty when there is a
  // choice.
  virtual std::string forced(size_t /*limit*/) const { return {}; }
  // What the constraint asks to sample the next token with; nullopt: as the caller likes.
  virtual std::optional<float> temperature() const { return std::nullopt; }
  // Why a limit of the constraint is reached, so that only the shortest completion may follow;
  // nullptr: no limit is reached.
  virtual std::shared_ptr<const std::string> limit_note() const { return nullptr; }
  // Tokens that lead to an accepting place, few of them; empty when accepting() already. nullopt
  // when none were found.
  virtual std::optional<std::vector<TokenId>> Closing() const = 0;
  // The same, at most `most` of them: looked for harder where those of Closing() are too many.
  virtual std::optional<std::vector<TokenId>> ClosingWithin(int most) const {
    auto tokens = Closing();
    if (tokens && static_cast<int>(tokens->size()) > most) tokens.reset();
    return tokens;
  }
  // How many tokens Closing() gives; -1 when none were found.
  virtual int shortest_close() const = 0;

  // A question may take seconds, and another thread may hold the lock of a grammar for as long. The
  // thread that all outputs share asks only these two, which answer without work and without a
  // wait. Which of the answers above are known:
  struct Known {
    bool place = false;  // the next four
    std::shared_ptr<const Mask> mask;
    bool accepting = false;
    std::optional<float> temperature;
    std::shared_ptr<const std::string> limit;   // limit_note()
    std::optional<int> close;                   // shortest_close()
    std::shared_ptr<const std::string> forced;  // forced(kForcedLimit)
  };
  static constexpr size_t kForcedLimit = 256;  // bytes
  virtual Known known() const { return {}; }
  // Advance where its answer is known; nullptr: it is not.
  virtual std::shared_ptr<const Constraint> KnownAdvance(TokenId /*token*/) const {
    return nullptr;
  }
  // Questions to constraints of one lane wait for each other. nullptr: they wait for nobody.
  virtual const void* lane() const { return nullptr; }
};

// Follows a grammar, which it keeps alive.
std::shared_ptr<const Constraint> MakeConstraint(const Grammar& grammar);
// Allows everything, may end anywhere.
std::shared_ptr<const Constraint> Unconstrained();

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_CONSTRAINT_H_
