// Constraint: a rule for an output that code decides, token by token.
//
// A class of your own says which tokens may follow. This one allows lines of one digit each:
//
//   class Digits : public pawl::Constraint {
//    public:
//     Digits(std::shared_ptr<const pawl::Vocabulary> vocabulary, bool digit)
//         : vocabulary_(std::move(vocabulary)), digit_(digit) {}
//     Place Look() const override {
//       const auto fits = [&](pawl::TokenId, std::string_view bytes) {
//         return digit_ ? bytes == "\n" : bytes.size() == 1 && bytes[0] >= '0' && bytes[0] <= '9';
//       };
//       return {.mask = pawl::MaskWhere(*vocabulary_, fits), .accepting = digit_};
//     }
//     std::shared_ptr<const Constraint> Advance(pawl::TokenId token) const override {
//       if (!Look().mask->Allows(token)) return nullptr;
//       return std::make_shared<Digits>(vocabulary_, !digit_);
//     }
//     std::optional<std::vector<pawl::TokenId>> Completion(int) const override {
//       return digit_ ? std::vector<pawl::TokenId>{} : vocabulary_->FewestTokens("0");
//     }
//
//    private:
//     const std::shared_ptr<const pawl::Vocabulary> vocabulary_;
//     const bool digit_;
//   };
//
//   request.constraint = std::make_shared<Digits>(engine->vocabulary(), false);
//   auto output = engine->Generate(request);                       // "4\n2\n7"
//
// A constraint is the position of one output. It is an immutable value behind a pointer: keeping an
// old one rolls back, and sharing one forks. docs/constraints.md says what is asked when.
//
// Errors. An exception that leaves a method ends this output with an error that has the text of the
// exception. Wrong answers do the same. A mask of another size than the vocabulary is wrong,
// and so is an exact mask that allows nothing where the output may not end. An Advance must not
// refuse a token of an exact mask. The place of these errors is "constraint". Other outputs go on.
//
// Thread safety: the engine asks the constraints of one output on one thread at a time. This is
// hardly ever the thread that calls Engine::Step: a slow answer delays its own output only. The
// constraints of several outputs are asked at the same time, so what they share must be
// thread-safe.
#ifndef PAWL_CONSTRAINT_H_
#define PAWL_CONSTRAINT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/grammar.h"
#include "pawl/vocabulary.h"

namespace pawl {

class PAWL_EXPORT Constraint {
 public:
  // What Look answers.
  struct Place {
    // The tokens that Advance takes. End tokens need not be set: they are allowed where the output
    // may end, and nowhere else unless Advance takes them. nullptr: all tokens that are text.
    std::shared_ptr<const Mask> mask = nullptr;
    bool accepting = false;  // the output may end here
    // Bytes with which every continuation begins. Empty if there is a choice, if the output may end
    // here, or if this is not known. Forced bytes need no call of the model.
    std::string forced = {};
    // The sampling temperature of the next token. nullopt: that of the request.
    std::optional<float> temperature = std::nullopt;
    // Not empty: a limit of the constraint is reached, and only the shortest completion may follow.
    // The text becomes a note of the output (Generation::notes).
    std::string limit = {};
  };

  virtual ~Constraint();

  // Which tokens may come next. Asked once for each token of an output.
  virtual Place Look() const = 0;
  // The constraint after the token. nullptr: the token is refused.
  virtual std::shared_ptr<const Constraint> Advance(TokenId token) const = 0;
  // At most `most` tokens after which the output may end, the fewer the better. Empty if the output
  // may end here. nullopt: none were found. An output stays complete within its budget of tokens by
  // this answer.
  virtual std::optional<std::vector<TokenId>> Completion(int most) const = 0;
  // Whether the mask is what Advance takes. false: the mask may also allow tokens that Advance
  // refuses, if it is too expensive to know this of every token. A drawn token that is refused is
  // drawn again from the rest. Where all are refused, the output ends (StopReason::kRefused).
  virtual bool exact() const { return true; }
  // Constraints with the same key, other than 0, have the same answers from here on. Searches make
  // one of two outputs with the same text and key. 0: unknown.
  virtual uint64_t key() const { return 0; }
};

// Masks for a vocabulary. Tokens of such a mask are text; end tokens are added where the output may
// end.

// These tokens. Ids that are not in the vocabulary are ignored.
PAWL_EXPORT std::shared_ptr<const Mask> MaskOfTokens(const Vocabulary& vocabulary,
                                                     std::span<const TokenId> tokens);
// The text tokens for which `fits` is true.
PAWL_EXPORT std::shared_ptr<const Mask> MaskWhere(
    const Vocabulary& vocabulary,
    const std::function<bool(TokenId token, std::string_view bytes)>& fits);
// The text tokens with which one of `texts` begins. O(bytes of `texts`), whatever the size of the
// vocabulary.
PAWL_EXPORT std::shared_ptr<const Mask> MaskOfTexts(const Vocabulary& vocabulary,
                                                    std::span<const std::string> texts);

// Follows a grammar, which it keeps alive. With a grammar that waits for its text
// (Grammar::unbound) the output is an error.
PAWL_EXPORT std::shared_ptr<const Constraint> MakeConstraint(const Grammar& grammar);
// Both hold. A completion is looked for in a bounded number of steps, so it may be missed.
// REQUIRES: none is nullptr, and both are of this vocabulary.
PAWL_EXPORT std::shared_ptr<const Constraint> Both(std::shared_ptr<const Constraint> first,
                                                   std::shared_ptr<const Constraint> second,
                                                   std::shared_ptr<const Vocabulary> vocabulary);

}  // namespace pawl

#endif  // PAWL_CONSTRAINT_H_
