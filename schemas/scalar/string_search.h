// StringSearch: from which states of a StringProgram an acceptable string can still be reached, and
// how.
#ifndef PAWL_SCHEMAS_SCALAR_STRING_SEARCH_H_
#define PAWL_SCHEMAS_SCALAR_STRING_SEARCH_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schemas/scalar/source_table.h"
#include "schemas/scalar/string_outline.h"
#include "schemas/scalar/string_program.h"
#include "src/base/memory_size.h"

namespace pawl::schema {

class SettlingTokens;

class StringSearch {
 public:
  using StateId = StringProgram::StateId;
  // `accept`: whether the string may end in this state, which may be a StringProgram::kPeeked;
  // asked at most once per state that is kept. `fuel`: see Limits. `one_atom`: `accept` asks for
  // nothing but the program's only regex or list, so that most states are known to be live without
  // a search.
  StringSearch(StringProgram& program, std::function<bool(StateId)> accept, int64_t fuel,
               bool one_atom = false)
      : program_(program), accept_(std::move(accept)), fuel_(fuel), one_atom_(one_atom) {}
  // `live` answers what would otherwise be searched for.
  StringSearch(StringProgram& program, std::function<bool(StateId)> accept,
               std::function<bool(StateId)> live, int64_t fuel)
      : program_(program), accept_(std::move(accept)), live_(std::move(live)), fuel_(fuel) {}

  // What makes searches shorter. `least`: code points that every accepted string has. `hopeless`:
  // in this state already it is settled that nothing will be accepted; "no" may be wrong.
  void SetHints(uint64_t least, std::function<bool(StateId)> hopeless) {
    least_ = least;
    hopeless_ = std::move(hopeless);
  }

  // A string is accepted when all atoms of the program are true of it, and then only.
  void SetConjunction() { conjunction_ = true; }

  // By source of the program: every accepted string is a span of it; a string that is accepted
  // though it is no span of it would be as a span. Behind SetHints.
  void SetSources(const std::vector<bool>& must, const std::vector<bool>& helps) {
    if (one_atom_ || live_) return;
    main_source_ = SourceTable::MainSource(program_, must);
    beside_spans_ = !main_source_ && helps == std::vector<bool>{true};
    if (beside_spans_) main_source_ = SourceTable::MainSource(program_, helps);
  }
  // What is known of spans under further conditions; nullptr where other strings are accepted too.
  SourceTable* source_table() { return beside_spans_ ? nullptr : Table(); }

  // What is accepted is the program's only regex, list or source, and nothing else.
  bool OfOneAtom() const { return one_atom_; }
  bool IsSource() const { return one_atom_ && program_.OnlySource(); }

  StringProgram& program() { return program_; }
  // The program aside.
  size_t MemoryBytes() const {
    return HeapBytes(info_, rows_, row_storage_, class_rows_, class_row_storage_, outline_,
                     words_) +
           kAnswerBytes + SettlingBytes() + TableBytes();
  }
  size_t GrowthHint() const {
    return kAnswerBytes + SettlingBytes() + TableBytes() + pieces_ * sizeof(Piece) +
           class_row_storage_.size() * sizeof(ClassRow) +
           (info_.size() + rows_.size() + class_rows_.size()) * sizeof(void*) +
           (outline_ != nullptr ? outline_->GrowthHint() : 0);
  }
  // The product has grown too large to look ahead in, or to keep all of its states. From now on
  // each condition is asked by itself: a state of which nothing was found before is live exactly
  // when it is not settled that nothing will be accepted.
  bool Apart();
  // REQUIRES: Apart(). Of the state with these words, which need not be kept: that it is not live,
  // where more than a counter looks at what follows.
  bool Hopeless(const uint32_t* words);
  // REQUIRES: Apart(). Hopeless may be true of states behind a step that settles nothing.
  bool FoundDead() const { return found_dead_; }
  // Some states are hopeless.
  bool LosesHope() const { return static_cast<bool>(hopeless_); }
  // What is known of tokens that settle something; made by string_walk.cc.
  std::shared_ptr<SettlingTokens>& settling_tokens() { return settling_tokens_; }
  bool Accepts(StateId state);
  // Some continuation (possibly none) is accepted.
  bool Live(StateId state) {
    const Info* const info = Known(state);
    if (info != nullptr && info->live != Verdict::kUnknown) return info->live == Verdict::kLive;
    return DecideLive(state);
  }
  // What follows is free: whatever comes, `max` code points may, and the string may end after
  // any number of them from `min` on. nullopt when it matters what comes, or nothing may.
  struct Freedom {
    uint64_t min = 0, max = kUnbounded;
  };
  std::optional<Freedom> FreedomOf(StateId state) {
    const Info* const info = Known(state);
    if (info != nullptr && info->free == Verdict::kDead) return std::nullopt;
    return FindFreedom(state);
  }
  // Some code point in lo..hi (surrogates do not count) leads to a live state.
  bool LiveWithin(StateId state, char32_t lo, char32_t hi);
  // The next state when it is live.
  std::optional<StateId> Next(StateId state, char32_t c);
  // The state after a text; nullopt when some state on the path is not live.
  std::optional<StateId> LiveAfter(std::u32string_view text) {
    std::optional<StateId> state = program_.start();
    for (size_t i = 0; i < text.size() && state; ++i) state = Next(*state, text[i]);
    return state;
  }
  // The same for an ASCII character, with kFreeFlag added when FreedomOf the state has a value;
  // kNoState when it is not live. Remembered: one load when warm.
  static constexpr StateId kNoState = StringProgram::kNoState;
  static constexpr StateId kFreeFlag = StateId{1} << 31;
  StateId NextAscii(StateId state, uint8_t c) {
    const StateId known = KnownAscii(state, c);
    return (known | 2) != kUnasked ? known : AskNextAscii(state, program_.AsciiClass(c));
  }
  // What NextAscii remembers: below kFreeFlag a state that is live and not free, and anything else
  // where nothing is remembered.
  StateId KnownAscii(StateId state, uint8_t c) const {
    if (state >= rows_.size() || rows_[state] == nullptr) return kUnasked;
    return rows_[state][program_.AsciiClass(c)];
  }
  // Whether NextAscii is a state: for characters behind which no call looks. Such states need not
  // be made where the string may end in them.
  bool LivesAfterAscii(StateId state, uint8_t c) {
    const StateId known = KnownAscii(state, c);
    return known != kUnasked ? known != kNoState : AskLivesAfter(state, program_.AsciiClass(c));
  }
  // The one state that every code point beyond ASCII leads to; kNoState when they differ.
  StateId NextBeyondAscii(StateId state) {
    Info& info = At(state);
    if (!info.knows_beyond) {
      info.knows_beyond = true;
      info.beyond = program_.NextBeyondAscii(state);
    }
    return info.beyond;
  }
  // Whatever comes, the string can still be completed. Found for searches, in the sense of
  // RegexArena::IsSearch, and for nothing else.
  bool AlwaysLive(StateId state) {
    if (At(state).always == Verdict::kUnknown) {
      const bool always = FindAlwaysLive(state);
      At(state).always = always ? Verdict::kLive : Verdict::kDead;
    }
    return At(state).always == Verdict::kLive;
  }
  // Where the characters of each class lead. Filled as far as it is asked: derivatives are slow.
  // Where Restarts(), a search that has not found what it looks for is at its start again behind
  // each step (StringProgram::Restart). Such states are fewer, and live only where those are that
  // they stand for; where the latter may be live all the same, the class counts as kMixed.
  struct ClassRow {
    StateId state;
    uint64_t asked = 0;
    uint64_t loops = 0;  // those of the asked that lead back to the state
    std::array<StateId, kCharClasses> next;
  };
  ClassRow& RowOf(StateId state) {
    if (state < class_rows_.size() && class_rows_[state] != nullptr) return *class_rows_[state];
    return MakeRow(state);
  }
  // As NextAscii has it; kMixed when the characters of the class differ.
  static constexpr StateId kMixed = UINT32_MAX - 2;
  bool Restarts() const { return conjunction_ && !live_ && program_.Restarts(); }
  StateId NextOfClass(ClassRow& row, CharClass like) {
    if ((row.asked >> like & 1) == 0) AskClass(row, like);
    return row.next[like];
  }
  // Whether all of these classes lead back to the state.
  bool Loops(ClassRow& row, uint64_t classes);
  // A shortest accepted continuation; nullopt when none is known or it is longer than `max_length`.
  std::optional<std::u32string> Shortest(StateId state, size_t max_length);

 private:
  size_t SettlingBytes() const;
  size_t TableBytes() const { return table_ == nullptr ? 0 : table_->MemoryBytes(); }
  SourceTable* Table() {
    if (main_source_ && table_ == nullptr) MakeSourceTable();
    return table_.get();
  }
  void MakeSourceTable();
  // REQUIRES: beside_spans_. The state in which the string is no span any more.
  StateId BesideSpans(StateId state);
  static constexpr size_t kAnswerBytes = 256;  // of what accept_ and the others keep, about
  enum class Verdict : uint8_t { kUnknown, kDead, kLive };
  struct Info {
    Verdict live = Verdict::kUnknown;
    Verdict accepts = Verdict::kUnknown;
    Verdict free = Verdict::kUnknown;
    int via = -1;       // class that leads towards acceptance; -1: none known (or accepted here)
    uint64_t skip = 0;  // quiet states: how many code points are missing
    Freedom freedom;
    Verdict always = Verdict::kUnknown;
    bool knows_beyond = false;
    bool sought = false;  // a path, in vain, or by what a text leaves
    StateId beyond = kNoState;
  };
  // In pieces: many searches share a program of which each sees a few states.
  static constexpr int kPiece = 3;
  using Piece = std::array<Info, 1 << kPiece>;
  Info& At(StateId state) {
    const size_t piece = state >> kPiece;
    if (piece >= info_.size()) info_.resize(piece + 1);
    if (info_[piece] == nullptr) {
      info_[piece] = std::make_unique<Piece>();
      ++pieces_;
    }
    return (*info_[piece])[state & ((1 << kPiece) - 1)];
  }
  const Info* Known(StateId state) const {
    const size_t piece = state >> kPiece;
    if (piece >= info_.size() || info_[piece] == nullptr) return nullptr;
    return &(*info_[piece])[state & ((1 << kPiece) - 1)];
  }
  // kSeen: live, but the state was not made.
  static constexpr StateId kUnasked = UINT32_MAX - 1, kSeen = UINT32_MAX - 3;
  // A row of NextAscii, by class of ASCII characters.
  StateId* AsciiRow(StateId state);
  StateId AskNextAscii(StateId state, uint8_t cls);
  bool AskLivesAfter(StateId state, uint8_t cls);
  // The next state of a class of the program, as NextAscii has it.
  StateId NextOf(StateId state, int cls);
  // NextOf where searches restart.
  StateId NextRestarted(StateId state, int cls);
  // What spans of a text leave is looked up in a table of the text, or walked where there is none
  // (string_source.cc). A state without an end is dead.
  void DecideBySource(StateId state);
  // Every accepted string is a span, or this one may become one.
  bool NeedsSource(StateId state) const {
    if (beside_spans_) return program_.SourceNode(state) != SourceTrie::kNone;
    return main_source_ || (program_.HasSources() && (one_atom_ || conjunction_));
  }
  bool FindAlwaysLive(StateId state);
  ClassRow& MakeRow(StateId state);
  void AskClass(ClassRow& row, CharClass like);
  bool DecideLive(StateId state);
  std::optional<Freedom> FindFreedom(StateId state);
  // Which states are live must not depend on the order in which they were asked about. So a state
  // is dead exactly when no end can be reached from it and
  // - the outline of the program has none, or
  // - what can be reached from it takes no more than small() steps, or
  // - what can be reached from the start of the program takes no more than whole() steps.
  // Everything else is live: found to be, or undecided. How hard is looked for a path to an end
  // makes no difference to that, so it may depend on what such searches have cost before.
  int64_t small() const { return fuel_ / 25; }
  int64_t whole() const { return fuel_ * 16; }
  enum class Outcome : uint8_t { kLive, kDead, kUndecided };
  // Looks for an accepted string, nearest first; `apart`: see StringProgram::Distance.
  // `wants_path`: a path that can be told is wanted.
  Outcome Explore(StateId start, bool apart, bool wants_path, int64_t fuel);
  void Decide(StateId state);
  // Decides every state that can be reached from the start of the program if they are not too many.
  void DecideAll();
  // nullptr where the program has none.
  StringOutline* Outline();
  // It is settled in the state that nothing will be accepted, or the outline shows no end.
  bool Lost(StateId state);
  // Goes from end to end of what the outline shows; false when that leads nowhere.
  bool FollowOutline(StateId start, bool wants_path);
  // Whether from `state` no more than small() steps reach everything that can be reached.
  bool Close(StateId state);
  bool OneStep(StateId start);
  // So much was spent on searches for all strings of the schema that no more is.
  bool SpentAll() const;
  void FindPath(StateId state);
  // An accepted continuation is known.
  bool HasPath(StateId state);
  void DecideByCount(StateId state);

  StringProgram& program_;
  std::function<bool(StateId)> accept_;
  std::function<bool(StateId)> live_;
  int64_t fuel_;
  bool one_atom_ = false;
  bool conjunction_ = false;
  uint64_t least_ = 0;
  std::function<bool(StateId)> hopeless_;
  int64_t spent_ = 0;       // on searches that took more than small() steps
  bool all_asked_ = false;  // DecideAll has run
  bool outlined_ = false;   // outline_ was made, if there is one
  std::unique_ptr<StringOutline> outline_;
  std::optional<size_t> main_source_;
  bool beside_spans_ = false;  // other strings are accepted too
  std::unique_ptr<SourceTable> table_;
  bool apart_ = false;       // see Apart
  bool found_dead_ = false;  // by looking ahead
  std::shared_ptr<SettlingTokens> settling_tokens_;
  int last_via_ = 0;                          // what led to acceptance the last time: a good guess
  std::vector<std::unique_ptr<Piece>> info_;  // by state
  size_t pieces_ = 0;                         // of info_ that are there
  std::vector<uint32_t> words_;               // of a state that is not made yet
  std::vector<StateId*> rows_;                // by state, a next state for each ASCII class
  std::deque<std::vector<StateId>> row_storage_;
  std::vector<ClassRow*> class_rows_;  // by state
  std::deque<ClassRow> class_row_storage_;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SCALAR_STRING_SEARCH_H_
