// Matcher: the position of one output in a grammar, for engines that accept tokens and take them
// back. A Matcher is a mutable wrapper with a history around State. State has the same as values.
//
//   pawl::Matcher matcher(grammar);
//   std::vector<uint32_t> row(grammar.vocabulary().mask_words());
//   while (matcher.FillMask(row)) {                // false: no token may come
//     pawl::TokenId token = Sample(logits, row);   // bit i of word i / 32 is 1: token i may come
//     matcher.Accept(token);                       // false: refused, nothing changed
//   }
//   matcher.Rollback(2);                           // takes the last two steps back
//
// Many sequences at once, on a pool of threads:
//
//   pawl::BatchFiller filler(threads);
//   filler.Fill(matchers, rows, words_per_row);
//
// Speculative decoding, a mask for each node of a tree of drafts:
//
//   //        0 "a" - 1 "b"          tokens  {a, b, c}
//   //              \ 2 "c"          parents {-1, 0, 0}
//   pawl::FillTreeMasks(matcher, tokens, parents, rows, words_per_row, accepted);
//
// The end of the output. The end tokens are those of the vocabulary, or MatcherOptions::end_tokens.
// An end token is allowed where the text so far is complete. The matcher is then terminated() and
// refuses every further token until Rollback or Reset. Elsewhere an end token is allowed only where
// the grammar names it, and the output goes on.
//
// Masks are whole rows of Vocabulary::mask_words() words. Bits at and beyond the vocabulary's size
// are 0. A bit is 1 exactly if Accept would accept the token.
//
// Thread safety: several threads may call const methods of one Matcher at the same time. Other
// methods need the Matcher alone. Different Matchers of one grammar are independent.
#ifndef PAWL_MATCHER_H_
#define PAWL_MATCHER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl {

// Encodes a piece of text to tokens, without special tokens.
using Encoder = std::function<std::vector<TokenId>(std::string_view)>;

struct MatcherOptions {
  // The tokens that end the output. Empty: those of the vocabulary. A token of this list is never
  // read as text, even if its bytes would be accepted.
  std::vector<TokenId> end_tokens;
  // true: no end token is ever allowed. The matcher is terminated as soon as the text is complete
  // and nothing can follow.
  bool terminate_without_end_token = false;
};

class PAWL_EXPORT Matcher {
 public:
  // A matcher at the start of the grammar, with the vocabulary's end tokens. A copy of a Matcher is
  // independent of the original and has the same history. That of a grammar which waits for its
  // text (Grammar::unbound) accepts nothing.
  explicit Matcher(Grammar grammar);
  // Errors: kInvalid for an end token outside the vocabulary, and, with the pointer of the field,
  // for a grammar that waits for its text.
  static Result<Matcher> Create(Grammar grammar, const MatcherOptions& options);

  // Accepts one token. false: the token is refused, or the matcher is terminated; the matcher is
  // unchanged.
  bool Accept(TokenId token);
  // Accepts all of the bytes as one step. false: they are refused; the matcher is unchanged.
  bool AcceptBytes(std::string_view bytes);
  // Takes back the last `steps` accepted calls. false: there are fewer steps; the matcher is
  // unchanged. O(1) for each step. All steps can be taken back.
  bool Rollback(size_t steps);
  // Returns to the start, with an empty history.
  void Reset();
  // The number of steps that Rollback can take back.
  size_t steps() const { return history_.size() - 1; }

  // The output has ended: an end token was accepted, or see terminate_without_end_token.
  bool terminated() const;
  // The text so far is a complete text of the grammar.
  bool accepting() const;

  // Writes the mask of the allowed tokens. false: no token is allowed. The row is then 0, and must
  // not be sampled from.
  // REQUIRES: row.size() >= Vocabulary::mask_words(). Further words are unchanged.
  bool FillMask(std::span<uint32_t> row) const;

  // How many of the tokens Accept would accept one after another, from the first on. The matcher is
  // unchanged.
  size_t ValidateTokens(std::span<const TokenId> tokens) const;

  // Bytes with which every continuation begins, at most `limit`. Empty if there is a choice.
  std::string ForcedBytes(size_t limit = 256) const;
  // Tokens that spell ForcedBytes(limit). Bytes at the end are omitted if a longer token could
  // contain both them and the text after them. With `encode` the tokens are those of this
  // tokenizer, which the model knows from training. Without `encode` each token is the longest that
  // fits. Such tokens are valid, but may differ from the tokenizer's. Empty if nothing is forced.
  // The matcher is unchanged.
  std::vector<TokenId> ForcedTokens(size_t limit = 256, const Encoder& encode = {}) const;

  // The captures so far: Grammar::FindCaptures of everything that was accepted.
  Result<std::vector<Capture>> Captures() const;
  // The sampling temperature that the grammar asks for here, see State::temperature().
  std::optional<float> temperature() const;
  // State::CompletionBytes(), CompletionTokens() and MatchedPrefix() at the matcher's position.
  std::optional<std::string> CompletionBytes() const;
  // Deprecated name of CompletionBytes.
  std::optional<std::string> ShortestCompletion() const { return CompletionBytes(); }
  std::optional<std::vector<TokenId>> CompletionTokens() const;
  size_t MatchedPrefix(std::string_view bytes) const;

  // The state at the matcher's position, for example for the interned mask. If the state is lost(),
  // the matcher's own methods still answer, because they replay the steps.
  const State& state() const { return history_.back().state; }
  const Grammar& grammar() const { return grammar_; }

 private:
  struct Position {
    State state;
    bool ended = false;        // by an end token
    TokenId token = kNoToken;  // the step that led here; kNoToken: bytes
    size_t bytes_end = 0;      // end of the bytes of all steps so far, in bytes_
  };
  friend PAWL_EXPORT Result<size_t> FillTreeMasks(const Matcher& matcher,
                                                  std::span<const TokenId> tokens,
                                                  std::span<const int32_t> parents, uint32_t* rows,
                                                  size_t stride, std::span<uint8_t> accepted);

  bool IsEnd(TokenId token) const;
  // All steps, replayed after a rebuild of the grammar, see State::stale().
  std::vector<Position> Retaken() const;
  void Rebuild();
  // The answer of `ask` at the last position, after a replay if the position is lost.
  template <typename Ask>
  auto Asked(const Ask& ask) const;
  std::optional<Position> After(const Position& position, TokenId token) const;
  friend class BatchFiller;
  // FillMask if the mask was computed before; otherwise nullopt.
  std::optional<bool> FillKnownMaskOf(const Position& position, std::span<uint32_t> row) const;
  bool FillMaskOf(const Position& position, std::span<uint32_t> row) const;
  bool CopyMask(const Position& position, const Mask& mask, std::span<uint32_t> row) const;
  bool WithOwnEndTokens(const Position& position, std::span<uint32_t> row, bool any) const;
  bool TerminatedAt(const Position& position) const;

  Grammar grammar_;
  std::vector<TokenId> end_tokens_;  // ascending; empty with terminate_without_end_token
  bool own_end_tokens_ = false;      // the end tokens differ from those of the grammar's masks
  bool terminate_without_end_token_ = false;
  std::string bytes_;              // of all steps of bytes
  std::vector<Position> history_;  // the start first, the current one last; never empty
};

// Fills the masks of many sequences on a pool of threads, which sleep between calls. Known masks
// are copied first, without waiting. Then the masks of new states are computed. A grammar answers
// one thread at a time. So the threads take different grammars, as long as there are some. For one
// grammar they share the work that does not need its lock.
// Thread safety: several threads may call the methods. A call that finds the pool busy computes its
// rows alone.
class PAWL_EXPORT BatchFiller {
 public:
  struct Row {
    const Matcher* matcher;  // nullptr: the row is unchanged
    std::span<uint32_t> words;
  };

  // `threads` includes the caller's thread. 0: one for each processor that the process may use.
  explicit BatchFiller(int threads = 0);
  ~BatchFiller();
  BatchFiller(BatchFiller&&) noexcept;
  BatchFiller& operator=(BatchFiller&&) noexcept;

  // FillMask for each row. Returns the number of rows without any allowed token.
  size_t Fill(std::span<const Row> rows) const;
  // The same for rows of `stride` words; row i belongs to matchers[i].
  // REQUIRES: stride >= mask_words() of each matcher's vocabulary.
  size_t Fill(std::span<const Matcher* const> matchers, uint32_t* rows, size_t stride) const;

  int threads() const;

 private:
  std::unique_ptr<class ThreadPool> pool_;
};

// Writes a mask for each node of a tree of draft tokens. Row i has `stride` words: the tokens that
// are allowed after the path from the root to node i. Node i is tokens[i] below node parents[i].
// The parent -1 is the matcher's current position. A node with the token kNoToken has the position
// of its parent. So {kNoToken, -1} gives the matcher's own mask, for trees whose node 0 is the last
// verified token. Nodes may have any order. The matcher is unchanged.
//
// If `accepted` is not empty, accepted[i] is 1 if the whole path to node i is accepted, otherwise
// 0. The row of a refused node is 0, and so is the row of an end token. Returns the number of
// accepted nodes.
// Errors: kInvalid for spans of different lengths, a parent out of range, or nodes that are their
// own ancestors. No row is written then.
// REQUIRES: stride >= mask_words().
PAWL_EXPORT Result<size_t> FillTreeMasks(const Matcher& matcher, std::span<const TokenId> tokens,
                                         std::span<const int32_t> parents, uint32_t* rows,
                                         size_t stride, std::span<uint8_t> accepted = {});

// The parents of a tree that is given by first child and next sibling (next_token and next_sibling,
// as EAGLE drafters write them; -1: none). Nodes without a parent get -1.
// Errors: kInvalid for different lengths, an index out of range, a node with two parents, or a node
// that is a child or sibling of itself.
PAWL_EXPORT Result<std::vector<int32_t>> DraftTreeParents(std::span<const int32_t> next_token,
                                                          std::span<const int32_t> next_sibling);

}  // namespace pawl

#endif  // PAWL_MATCHER_H_
