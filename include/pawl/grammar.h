// Grammar and State: a compiled grammar, and the positions of texts in it.
//
//   pawl::Compiler compiler(vocabulary);
//   auto grammar = compiler.CompileJsonSchema(R"({"type":"integer","minimum":3})");
//   pawl::State state = grammar->Start();
//   const pawl::Mask& mask = *state.mask();        // tokens allowed first
//   std::optional<pawl::State> next = state.Advance(token);   // nullopt: the token is refused
//   if (next->accepting()) ...                      // the text so far is complete
//
// A State is a small immutable value. A copy forks the text. An old state rolls back.
//
// Every State that Advance returns is live: some bytes complete its text. For some schemas this is
// not decided (docs/json_schema.md, "Where the look-ahead ends"). A byte that would break such a
// schema is still refused. One limit counts tokens, not bytes: `max_tokens=N` at a terminal of a
// Lark grammar (docs/lark.md). The rest of such a terminal may take more tokens than are left.
// CompletionTokens() is then nullopt.
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
// If a grammar is ambiguous, one derivation counts. From left to right every rule and every
// terminal takes the longest text with which the whole still fits. Of alternatives the first that
// fits counts. A loop makes one round more before it ends. A counted group, (...){2,5}, takes the
// longest text as a rule does. A text and the marker that ends it (suffix=, stop=) are split so
// that the marker is as long as possible. A rule that may stand for itself (a: a | "x") does so as
// rarely as possible.

struct Capture {
  std::string name;
  // Offsets in bytes of the output. The output is the bytes of its tokens; a special token counts
  // by its name.
  size_t begin = 0, end = 0;
  // The output from begin to end, without the stops of XGrammar's Lark inside it.
  std::string text;
  friend bool operator==(const Capture&, const Capture&) = default;
};

// Masks: which tokens are allowed. Bit i of word i / 32 is 1 if token i is allowed.
//
// A mask is an interned value: equal masks of one grammar have the same id. While a mask is in use,
// they also have the same address. So a decode loop can pass ids, and a device can mirror the
// masks.

using MaskId = int64_t;

// One mask.
// Thread safety: immutable; all methods may be called from any thread.
class PAWL_EXPORT Mask {
 public:
  // REQUIRES: bits at and beyond the vocabulary size are 0.
  Mask(MaskId id, std::vector<uint32_t> words);

  MaskId id() const { return id_; }
  std::span<const uint32_t> words() const { return words_; }
  // REQUIRES: 0 <= token < vocabulary size.
  bool Allows(TokenId token) const {
    return (words_[static_cast<size_t>(token) >> 5] >> (token & 31)) & 1;
  }
  // The number of allowed tokens. O(words) at the first call.
  int count() const {
    if (count_.load(std::memory_order_acquire) < 0) Count();
    return count_.load(std::memory_order_relaxed);
  }
  // The only allowed token if count() is 1, otherwise kNoToken.
  TokenId singleton() const {
    return count() == 1 ? first_.load(std::memory_order_relaxed) : kNoToken;
  }
  // All allowed tokens in ascending order. O(words).
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
class GrammarOwner;

// Counts the states in use of one generation of a grammar's data. For State only.
class PAWL_EXPORT GrammarUse {
 public:
  GrammarUse(const GrammarUse&) = delete;
  GrammarUse& operator=(const GrammarUse&) = delete;
  void Take() const { users_.fetch_add(1, std::memory_order_relaxed); }
  void Leave() const {
    if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  bool stale() const { return stale_.load(std::memory_order_relaxed) || lost(); }
  bool outgrown() const { return stale(); }  // deprecated name
  bool lost() const { return lost_.load(std::memory_order_acquire); }

 protected:
  // REQUIRES: `lost` lives as long as this object.
  explicit GrammarUse(const std::atomic<bool>& lost) : lost_(lost) {}
  virtual ~GrammarUse();
  mutable std::atomic<int64_t> users_{1};  // the grammar itself is one
  mutable std::atomic<bool> stale_{false};
  const std::atomic<bool>& lost_;
};

// The position of a text in a grammar. A State keeps the parts of the grammar alive that it needs.
// Thread safety: a State is a value. Several threads may use states of one grammar at the same
// time.
class PAWL_EXPORT State {
 public:
  State(const State& other);
  State(State&& other) noexcept
      : grammar_(std::exchange(other.grammar_, nullptr)), key_(other.key_) {}
  State& operator=(const State& other) {
    State copy(other);
    return *this = std::move(copy);
  }
  // A moved-from state may only be assigned to or destroyed.
  State& operator=(State&& other) noexcept {
    std::swap(grammar_, other.grammar_);
    std::swap(key_, other.key_);
    return *this;
  }
  ~State() {
    if (grammar_ != nullptr) grammar_->Leave();
  }

  // The state after `bytes`, or after the token's bytes. nullopt: they are refused. A special
  // token is accepted only where the grammar names it. For the end of the output see accepting().
  std::optional<State> Advance(std::string_view bytes) const;
  std::optional<State> Advance(TokenId token) const;

  // Length of the longest prefix of `bytes` that is accepted, in bytes.
  size_t MatchedPrefix(std::string_view bytes) const;

  // The tokens that Advance accepts, and all end-of-output tokens if accepting().
  std::shared_ptr<const Mask> mask() const;
  // If this mask was computed before: copies its words to `row`, and returns the number of allowed
  // tokens. Otherwise -1, and `row` is unchanged. Never waits for a mask that another thread
  // computes.
  // REQUIRES: row.size() >= mask_words() of the vocabulary.
  int64_t CopyKnownMask(std::span<uint32_t> row) const;

  // The text so far is a complete text of the grammar.
  bool accepting() const;

  // Bytes with which every continuation begins, at most `limit`. Empty if there is a choice, or if
  // the text may end here.
  std::string forced(size_t limit = 256) const;

  // The bytes of a short completion: after them the state is accepting. Empty if accepting().
  // nullopt if none was found within the limits, or if every completion needs a token that the
  // grammar names by number or name.
  std::optional<std::string> CompletionBytes() const;
  // A short completion that may contain such tokens. No piece is empty.
  std::optional<std::vector<OutputPiece>> Completion() const;
  // Completion() in the fewest tokens that spell it. nullopt if there is none, or if these are more
  // tokens than a rule with a limit of tokens has left.
  std::optional<std::vector<TokenId>> CompletionTokens() const;
  // The number of tokens of CompletionTokens(); -1 if it is nullopt.
  int completion_length() const;

  // The sampling temperature that the grammar asks for here (`rule[temperature=...]`). The
  // innermost rule that asks counts. Of several possible rules the highest temperature counts.
  // nullopt: no rule asks.
  std::optional<float> temperature() const;
  const Vocabulary& vocabulary() const;

  // The grammar was rebuilt to free memory. This state stays valid, but it keeps the old data
  // alive. To release the old data, replay the text from Grammar::Start(). Matcher and the decode
  // loop do.
  bool stale() const { return grammar_->stale(); }

  // Deprecated names of the methods above.
  std::optional<std::string> ShortestCompletion() const { return CompletionBytes(); }
  int shortest_close() const { return completion_length(); }
  bool outgrown() const { return stale(); }

  // An exception ended a question about this grammar in the middle: memory ran out, or the decode
  // loop stopped a question whose client has left. The grammar's data may then be half written, so
  // the state answers as if nothing could follow: no token, not accepting, no completion. Answers
  // given while lost() was false are right. To go on, replay the text from Grammar::Start(), which
  // uses new data. Matcher and the decode loop do. lost() implies stale().
  bool lost() const { return grammar_->lost(); }

  // true: the same texts may follow both states. States from before and after a rebuild of the
  // grammar are not equal.
  friend bool operator==(const State&, const State&) = default;

 private:
  friend class Grammar;
  friend struct GrammarAccess;
  // Takes over one use of `grammar`.
  State(const GrammarUse* grammar, uint64_t key) : grammar_(grammar), key_(key) {}
  const GrammarImpl& impl() const;
  const GrammarUse* grammar_;  // a GrammarImpl
  uint64_t key_;
};

inline State::State(const State& other) : grammar_(other.grammar_), key_(other.key_) {
  if (grammar_ != nullptr) grammar_->Take();
}

// A compiled grammar. Copies are cheap and share everything.
// Thread safety: immutable for its users; all methods may be called from any thread.
class PAWL_EXPORT Grammar {
 public:
  // For the compiler's front ends: binds an automaton over bytes to a vocabulary.
  Grammar(std::shared_ptr<Machine> machine, std::shared_ptr<const Vocabulary> vocabulary);

  State Start() const;
  const Vocabulary& vocabulary() const;
  // The grammar for one text, from which fields with "x-pawl-source" are copied
  // (JsonSchemaOptions::bind_source). What the text needs is freed with the last copy of the
  // result. The grammar itself where no field asks for a text. A byte FF in `text`, which UTF-8
  // does not have, stands between two texts: no span crosses it. A byte FE at its beginning or end
  // says that a word of a longer text is cut there: no whole span touches what is left of it.
  // Errors have the pointer of the field. kUnsatisfiable where the text has no span that fits.
  // kInvalid where a text is bound already, or the text is not UTF-8.
  Result<Grammar> Bind(std::string_view text) const;
  // The pointer of a field that asks for a text which is not there yet. Empty: none does. Grammars
  // made of one that waits wait as well (pawl/combine.h). No Matcher and no output takes them
  // unbound. Their states take any value in such fields.
  const std::string& unbound() const;
  // Notes of the compiler that are not errors, for example keywords that are annotations.
  const std::vector<std::string>& notes() const;

  // Sample texts that together visit as many names of the grammar as fit into about `bytes` bytes.
  // The last text may be incomplete. For a JSON Schema the first text has each property once, and
  // further texts have the properties that did not fit into it. For other grammars: the shortest
  // text.
  std::vector<std::string> SampleTexts(size_t bytes) const;
  // Deprecated name of SampleTexts.
  std::vector<std::string> Specimens(size_t bytes) const { return SampleTexts(bytes); }
  // Computes the masks along the tokens as far as they are accepted, including those before the
  // first and after the last. Returns the number of masks. With the tokens of SampleTexts() these
  // are most of the masks that an output needs. For engines that compile on another thread than
  // they decode. The masks are the same as without this call.
  size_t PrepareMasks(std::span<const TokenId> tokens) const;

  // The record of a text, for a JSON Schema compiled with JsonSchemaOptions::Keys::kAll: the text
  // without the keys whose null means that the key is not there. For other grammars: the text.
  std::string Record(std::string_view text) const;

  // Whether rules of the grammar have captures.
  bool has_captures() const;
  // The captures of an output (pawl/capture.h), in the order in which they end, inner ones first.
  // For an incomplete output: those that would have ended if its shortest completion followed. The
  // text is parsed again, so masks do no work for captures.
  // Errors: kInvalid if the output is not accepted; kUnsupported if the output is incomplete and
  // Completion() is nullopt; kLimit if the grammar is too ambiguous.
  Result<std::vector<Capture>> FindCaptures(std::span<const OutputPiece> output) const;

 private:
  friend struct GrammarAccess;
  explicit Grammar(std::shared_ptr<GrammarOwner> keeper) : keeper_(std::move(keeper)) {}
  std::shared_ptr<GrammarOwner> keeper_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_H_
