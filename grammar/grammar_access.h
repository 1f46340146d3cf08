// GrammarAccess: the machine of a Grammar, for those who make grammars of grammars.
#ifndef PAWL_GRAMMAR_GRAMMAR_ACCESS_H_
#define PAWL_GRAMMAR_GRAMMAR_ACCESS_H_

#include <compare>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar_impl.h"
#include "grammar/known_answers.h"
#include "grammar/machine.h"
#include "grammar/machine_lock.h"
#include "grammar/masks/machine_masks.h"
#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl {

struct PAWL_EXPORT GrammarAccess {
  std::shared_ptr<Machine> machine;
  std::shared_ptr<MachineLock> lock;  // of all grammars that share parts of the machine
  std::shared_ptr<const Vocabulary> vocabulary;
  std::shared_ptr<MemoryBudget> budget;

  // A grammar of a compiler; the arguments are GrammarOwner's.
  static Grammar New(std::shared_ptr<Machine> made, std::shared_ptr<const Vocabulary> vocabulary,
                     std::shared_ptr<MemoryBudget> budget, MachineMaker again, size_t source_bytes);
  static GrammarAccess Of(const Grammar& grammar);
  // What the texts of a JSON Schema with Keys::kAll are made into records with (record_filter.h).
  static const std::shared_ptr<const RecordKeys>& RecordKeysOf(const Grammar& grammar);
  // Before the grammar is handed out.
  static void SetRecordKeys(const Grammar& grammar, std::shared_ptr<const RecordKeys> keys);
  static void SetBinder(const Grammar& grammar, GrammarOwner::Binder binder, std::string place);
  // Grammar::Bind is an error from here on: the field at `place` is copied from another text.
  static void SetBound(const Grammar& grammar, std::string place);
  // Grammar::Bind may answer with another grammar, or an error.
  static bool HasBinder(const Grammar& grammar);
  // With JsonSchemaOptions::bind_source and without `verbatim`: the grammar of the same schema for
  // one text, in which each field is copied as by Verbatim::kAll. nullopt: there is none, or the
  // text has no span for a field that needs one.
  static void SetCopier(const Grammar& grammar, GrammarOwner::Binder copier);
  static std::optional<Grammar> CopiedFrom(const Grammar& grammar, std::string_view text);
  // The error of what takes no grammar that waits for its text.
  static Error UnboundError(const Grammar& grammar);
  // A grammar over the same vocabulary that takes nothing.
  static Grammar Nothing(const Grammar& grammar);
  static void AddNotes(const Grammar& grammar, const std::vector<std::string>& notes);
  // What a state is: equal for equal states.
  struct Place {
    const void* lock;  // of all grammars that share parts of the machine
    const GrammarImpl* grammar;
    Machine::Key key;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  static Place PlaceOf(const State& state);
  // The state's grammar may take a token that ends the output in the middle of it.
  static bool NamesEndTokens(const State& state);
  // Why only the shortest completion may follow this state; empty where the grammar has reached no
  // limit.
  static std::string LimitNote(const State& state);
  // State::mask() of several states; the lock is taken once for all that are new. false: a second
  // thread would gain nothing.
  static bool MakeMasks(const GrammarImpl* grammar, std::span<const Machine::Key> keys,
                        std::span<std::shared_ptr<const Mask>> masks);
  // By the state's grammar, for profiles.
  static MasksMade MasksMadeBy(const State& state);
  // A text that is being written was taken again in the grammar of this state, which had begun
  // anew; see State::stale().
  static void Replayed(const State& state);
  // The state after the tokens of such a text in the grammar as it is now.
  static std::optional<State> Replay(const Grammar& grammar, std::span<const TokenId> tokens);
  // State::CompletionTokens(), found once for each state as long as the grammar keeps it.
  static std::shared_ptr<const std::optional<std::vector<TokenId>>> CompletionOf(
      const State& state);
  // What CloseWithin (src/decode/closing.h) has found for a state and a budget, kept with the
  // grammar within a bound on bytes; nullptr: nothing is known.
  static std::shared_ptr<const std::optional<std::vector<TokenId>>> KnownClosing(const State& state,
                                                                                 int most);
  static void KeepClosing(const State& state, int most,
                          const std::optional<std::vector<TokenId>>& closing);
  // What is kept of earlier answers about the state's grammar.
  static KnownAnswers& KnownOf(const State& state);
  // State::mask() where it is known; nullptr: it is not.
  static std::shared_ptr<const Mask> KnownMask(const State& state);
  // Another state of the same grammar, by its key.
  static State At(const State& state, Machine::Key key);
  // Asks for what KnownAnswers::Place::asked stands for.
  static KnownAnswers::Place AskPlace(const State& state);
  // Keeps that `token` leads from one state to the other.
  static void KeepStep(const State& from, TokenId token, const State& to);
  // A grammar that shares parts with the one this came from. `again`: see GrammarOwner.
  Grammar Make(std::shared_ptr<Machine> made, MachineMaker again) const;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_GRAMMAR_ACCESS_H_
