// Grammar and State: what may come next, as values.
//
//   pawl::Compiler compiler(vocabulary);
//   auto grammar = compiler.CompileJsonSchema(R"({"type":"integer","minimum":3})");
//   pawl::State state = grammar->Start();
//   const pawl::Mask& mask = *state.mask();        // tokens allowed first
//   std::optional<pawl::State> next = state.Advance(token);   // nullopt: the token is refused
//   if (next->accepting()) ...                      // the text so far is complete
//
// A State is a small immutable value: copying it forks, keeping an old one rolls back. Every State
// that Advance hands out is live: some continuation completes it (docs/json_schema.md has a table
// of the schemas for which that is not decided, "Where the look-ahead ends"; a byte that would
// break one of them is refused when it comes). Bytes, that is: under a strict limit of tokens
// (`max_tokens=N` at a terminal of a Lark grammar, docs/lark.md) what is left of the terminal may
// take more tokens than it may have. There CompletionTokens() gives nothing.
#ifndef PAWL_GRAMMAR_H_
#define PAWL_GRAMMAR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl {

// Captures: parts of an output to which a grammar gives names.
//
//   pawl::Matcher matcher(*compiler.CompileGrammar(
//       "start: \"a\" n \"b\"\nn[capture]: /[0-9]+/", pawl::GrammarLanguage::kLark));
//   matcher.AcceptBytes("a12b");
//   matcher.Captures()->front();   // {name "n", begin 1, end 3, text "12"}
//
// Which derivation counts, where a grammar is ambiguous. From left to right, every rule and every
// terminal takes the longest text with which the whole still fits; of alternatives the first that
// fits, and a loop goes round once more before it ends. A group that is counted, (...){2,5}, is
// like a rule; a text and the marker that ends it (suffix=, stop=) are cut so that the marker is as
// long as it can be. A rule that may stand for itself (a: a | "x") does so no more often than it
// must.

struct Capture {
  std::string name;
  // Bytes of the output. The output is the bytes of its tokens, special tokens by their names.
  size_t begin = 0, end = 0;
  // The output from begin to end, without the stops of XGrammar's Lark inside of it.
  std::string text;
  friend bool operator==(const Capture&, const Capture&) = default;
};

// Masks: which tokens may come next. Bit i of word i/32 is 1 when token i is allowed.
//
// A mask is an interned value: equal masks of one grammar have the same id (and, while somebody
// holds them, the same address), so a decode loop can pass ids around and a device can mirror the
// masks.

using MaskId = int64_t;

// One mask, immutable. Thread-safe.
class PAWL_EXPORT Mask {
 public:
  // Bits at and beyond the vocabulary size must be 0.
  Mask(MaskId id, std::vector<uint32_t> words);

  MaskId id() const { return id_; }
  std::span<const uint32_t> words() const { return words_; }
  // REQUIRES: 0 <= token < vocabulary size.
  bool Allows(TokenId token) const {
    return (words_[static_cast<size_t>(token) >> 5] >> (token & 31)) & 1;
  }
  // Number of allowed tokens; O(words) the first time.
  int count() const {
    if (count_.load(std::memory_order_acquire) < 0) Count();
    return count_.load(std::memory_order_relaxed);
  }
  // The only allowed token when count() is 1, else kNoToken.
  TokenId singleton() const {
    return count() == 1 ? first_.load(std::memory_order_relaxed) : kNoToken;
  }
  // Every allowed token in ascending order; O(words).
  std::vector<TokenId> Tokens() const;

 private:
  MaskId id_;
  std::vector<uint32_t> words_;
  void Count() const;
  mutable std::atomic<int> count_{-1};  // -1: not counted yet
  mutable std::atomic<TokenId> first_{kNoToken};
};

class Machine;
class GrammarImpl;
class GrammarKeeper;

// Counts the states that are in use of what a grammar has found so far. For State only.
class PAWL_EXPORT GrammarUse {
 public:
  GrammarUse(const GrammarUse&) = delete;
  GrammarUse& operator=(const GrammarUse&) = delete;
  void Take() const { users_.fetch_add(1, std::memory_order_relaxed); }
  void Leave() const {
    if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  bool outgrown() const { return outgrown_.load(std::memory_order_relaxed) || lost(); }
  bool lost() const { return lost_.load(std::memory_order_acquire); }

 protected:
  // `lost` lives as long as this does.
  explicit GrammarUse(const std::atomic<bool>& lost) : lost_(lost) {}
  virtual ~GrammarUse();
  mutable std::atomic<int64_t> users_{1};  // the grammar itself is one
  mutable std::atomic<bool> outgrown_{false};
  const std::atomic<bool>& lost_;
};

// Where a text stands in a grammar. Keeps what it needs of the grammar alive.
// Thread safety: a value; different threads may use states of one grammar at the same time.
class PAWL_EXPORT State {
 public:
  State(const State& other);
  State(State&& other) noexcept
      : grammar_(std::exchange(other.grammar_, nullptr)), key_(other.key_) {}
  State& operator=(const State& other) {
    State copy(other);
    return *this = std::move(copy);
  }
  // A state that was moved from may only be assigned to or destroyed.
  State& operator=(State&& other) noexcept {
    std::swap(grammar_, other.grammar_);
    std::swap(key_, other.key_);
    return *this;
  }
  ~State() {
    if (grammar_ != nullptr) grammar_->Leave();
  }

  // The state after `bytes` or after the token's bytes; nullopt when they do not fit.
  // A special token fits only where the grammar names it; ask accepting() for the end of output.
  std::optional<State> Advance(std::string_view bytes) const;
  std::optional<State> Advance(TokenId token) const;

  // Length of the longest prefix of `bytes` that fits.
  size_t MatchedPrefix(std::string_view bytes) const;

  // Tokens that Advance takes, plus every end-of-output token when accepting().
  std::shared_ptr<const Mask> mask() const;
  // Where that mask is known from before: copies its words to `row` and returns how many tokens it
  // allows. -1 otherwise, with `row` as it was. Never waits for a mask that somebody computes.
  // REQUIRES: row.size() >= mask_words() of the vocabulary.
  int64_t CopyKnownMask(std::span<uint32_t> row) const;

  // The text so far is a complete sentence of the grammar.
  bool accepting() const;

  // Bytes that must come next whatever is chosen; empty when there is a choice or the text may end
  // here. At most `limit` bytes.
  std::string forced(size_t limit = 256) const;

  // Bytes of a short completion: advancing by them gives an accepting state. Empty when
  // accepting(). nullopt when none was found within the limits, and where a token has to be taken
  // by its number or name.
  std::optional<std::string> ShortestCompletion() const;
  // The same with such tokens; none of the pieces is empty.
  std::optional<std::vector<OutputPiece>> Completion() const;
  // Completion() in the fewest tokens that spell it; nullopt when there is none, and where these
  // are more than a rule with a limit of tokens may have.
  std::optional<std::vector<TokenId>> CompletionTokens() const;
  // How many those are; -1 when there are none.
  int shortest_close() const;

  // The sampling temperature that the grammar asks for here (`rule[temperature=...]`): of each way
  // to go on that of the innermost rule that asks, of several ways the highest. nullopt: none asks.
  std::optional<float> temperature() const;
  const Vocabulary& vocabulary() const;

  // The grammar's memory budget is spent, so it has begun anew: this state is as good as ever, but
  // what was found with it and others of its time is kept for them alone. Who knows the text and
  // takes it again from Grammar::Start() lets that go. Matcher and the decode loop do.
  bool outgrown() const { return grammar_->outgrown(); }

  // An exception has left a question about this grammar in the middle: memory ran out, or the
  // decode loop stopped a look whose client has gone. What was found with the state and
  // others of its time is not trusted after that, so the state answers like one after which nothing
  // fits: no token, not accepting, no completion. An answer that was given while lost() was still
  // false is right. Who knows the text takes it again from Grammar::Start(), in a new machine;
  // Matcher and the decode loop do. lost() implies outgrown().
  bool lost() const { return grammar_->lost(); }

  // true: the same place of the same text, as far as what may follow is concerned. States from
  // before and after a grammar began anew differ.
  friend bool operator==(const State&, const State&) = default;

 private:
  friend class Grammar;
  friend struct GrammarAccess;
  // Takes over one use.
  State(const GrammarUse* grammar, uint64_t key) : grammar_(grammar), key_(key) {}
  const GrammarImpl& impl() const;
  const GrammarUse* grammar_;  // a GrammarImpl
  uint64_t key_;
};

inline State::State(const State& other) : grammar_(other.grammar_), key_(other.key_) {
  if (grammar_ != nullptr) grammar_->Take();
}

// A compiled grammar. Cheap to copy (copies share everything), immutable, thread-safe.
class PAWL_EXPORT Grammar {
 public:
  // For front ends: binds an automaton over bytes to a vocabulary.
  Grammar(std::shared_ptr<Machine> machine, std::shared_ptr<const Vocabulary> vocabulary);

  State Start() const;
  const Vocabulary& vocabulary() const;
  // Remarks of the compiler that are not errors, e.g. what was treated as an annotation.
  const std::vector<std::string>& notes() const;

  // Texts that go together through as much as they can of what the grammar names, about so many
  // bytes of them at most, the last one perhaps only begun: of a JSON Schema one that has each
  // property once, and others for properties that had no place there; of other grammars the
  // shortest text.
  std::vector<std::string> Specimens(size_t bytes) const;
  // Finds the masks along the tokens, as far as they fit, those before the first and behind the
  // last included; returns how many. For engines that compile away from the steps of their outputs:
  // with the tokens of Specimens() that is most of what an output will ask for. A mask is the same
  // whether it was found before or not.
  size_t PrepareMasks(std::span<const TokenId> tokens) const;

  // Rules of the grammar have captures.
  bool has_captures() const;
  // The captures of an output, in the order in which they end, the inner ones first; see
  // pawl/capture.h. Of an output that is not complete, those that would have ended already if its
  // shortest completion followed. The text is parsed again, so masks cost nothing for it.
  // Errors: kInvalid when the output does not fit, kUnsupported when it is not complete and
  // Completion() gives nothing, kLimit when the grammar is too ambiguous.
  Result<std::vector<Capture>> FindCaptures(std::span<const OutputPiece> output) const;

 private:
  friend struct GrammarAccess;
  explicit Grammar(std::shared_ptr<GrammarKeeper> keeper) : keeper_(std::move(keeper)) {}
  std::shared_ptr<GrammarKeeper> keeper_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_H_
