// Matcher: where one output stands in a grammar, for engines that want to push tokens in and take
// them back. A thin mutable wrapper with history around State; where values suit you better, use
// State itself.
//
//   pawl::Matcher matcher(grammar);
//   std::vector<uint32_t> row(grammar.vocabulary().mask_words());
//   while (!matcher.terminated()) {
//     matcher.FillMask(row);                       // bit i of word i / 32 is 1: token i may come
//     pawl::TokenId token = Sample(logits, row);
//     matcher.Accept(token);                       // false: refused, nothing changed
//   }
//   matcher.Rollback(2);                           // takes the last two steps back, however far
//
// Many sequences at once, over a pool of threads:
//
//   pawl::BatchFiller filler(threads);
//   filler.Fill(matchers, rows, words_per_row);
//
// Speculative decoding, one mask for each node of a tree of drafts:
//
//   //        0 "a" - 1 "b"          tokens  {a, b, c}
//   //              \ 2 "c"          parents {-1, 0, 0}
//   pawl::FillTreeMasks(matcher, tokens, parents, rows, words_per_row, accepted);
//
// The end. A token that ends the output (the vocabulary's, or MatcherOptions::end_tokens) may come
// where the text so far is complete. Then the matcher is terminated() and refuses every further one
// until Rollback or Reset. Elsewhere it may come only where the grammar names it, and goes on.
//
// Masks are whole rows of Vocabulary::mask_words() words; bits at and beyond the vocabulary's size
// are 0. A mask and Accept always agree: a bit is 1 exactly when Accept would take the token.
//
// Thread safety: const methods of one Matcher may be called from several threads at once; the
// others need the Matcher for themselves. Different Matchers of one grammar are independent.
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

// A tokenizer's encoding of a piece of text, without special tokens.
using Encoder = std::function<std::vector<TokenId>(std::string_view)>;

struct MatcherOptions {
  // The tokens that end the output, in place of the vocabulary's. Empty: the vocabulary's. A token
  // of this list is never taken as text, also where its bytes would fit.
  std::vector<TokenId> end_tokens;
  // No end token is wanted: none is ever allowed, and the matcher is terminated as soon as the text
  // is complete and nothing can follow.
  bool terminate_without_end_token = false;
};

class PAWL_EXPORT Matcher {
 public:
  // At the start of the grammar, with the vocabulary's end tokens. A copy of a Matcher is
  // independent of it and has its history.
  explicit Matcher(Grammar grammar);
  // Errors: an end token outside the vocabulary.
  static Result<Matcher> Create(Grammar grammar, const MatcherOptions& options);

  // Takes one token. false: it is refused, or the matcher is terminated; nothing changed.
  bool Accept(TokenId token);
  // Takes bytes, all or none, as one step.
  bool AcceptBytes(std::string_view bytes);
  // Takes the last `steps` calls that accepted something back. false when there were fewer; then
  // nothing changed. O(1) for each step; there is no limit on how far.
  bool Rollback(size_t steps);
  // Back to the start, without history.
  void Reset();
  // Steps that Rollback can take back.
  size_t steps() const { return history_.size() - 1; }

  // No token may follow: an end token was accepted (or see terminate_without_end_token).
  bool terminated() const;
  // The text so far is a complete sentence of the grammar.
  bool accepting() const;

  // Writes the mask of what may come next. false when no token may: the row is then all zero, and a
  // sampler must not be given it.
  // REQUIRES: row.size() >= Vocabulary::mask_words(); further words are left alone.
  bool FillMask(std::span<uint32_t> row) const;

  // How many of the tokens, from the first, Accept would take one after another. Changes nothing.
  size_t ValidateTokens(std::span<const TokenId> tokens) const;

  // Bytes that must come next whatever is chosen, at most `limit`; empty when there is a choice.
  std::string ForcedBytes(size_t limit = 256) const;
  // Tokens that spell ForcedBytes(limit), as far as the spelling is settled: bytes at the end that
  // a longer token could swallow together with what follows are left out. With `encode`, in the
  // spelling of that tokenizer, which is the one that models have seen in training. Without, by
  // always taking the longest token that fits: valid, but perhaps not how the tokenizer would write
  // it. Empty when nothing is forced. Changes nothing.
  std::vector<TokenId> ForcedTokens(size_t limit = 256, const Encoder& encode = {}) const;

  // What the grammar's captures hold so far: Grammar::FindCaptures of all that was accepted.
  Result<std::vector<Capture>> Captures() const;
  // The sampling temperature that the grammar asks for here; State::temperature().
  std::optional<float> temperature() const;
  // State::ShortestCompletion(), CompletionTokens() and MatchedPrefix() of where the matcher
  // stands.
  std::optional<std::string> ShortestCompletion() const;
  std::optional<std::vector<TokenId>> CompletionTokens() const;
  size_t MatchedPrefix(std::string_view bytes) const;

  // The state behind all this, e.g. for the interned mask. The matcher's own methods answer also
  // where it is lost(): they take the steps again.
  const State& state() const { return history_.back().state; }
  const Grammar& grammar() const { return grammar_; }

 private:
  struct Position {
    State state;
    bool ended = false;        // by an end token
    TokenId token = kNoToken;  // the step that led here; none: bytes
    size_t bytes_end = 0;      // in bytes_, behind what steps of bytes have brought so far
  };
  friend PAWL_EXPORT Result<size_t> FillTreeMasks(const Matcher& matcher,
                                                  std::span<const TokenId> tokens,
                                                  std::span<const int32_t> parents, uint32_t* rows,
                                                  size_t stride, std::span<uint8_t> accepted);

  bool IsEnd(TokenId token) const;
  // All steps, taken again where the grammar has begun anew, see State::outgrown().
  std::vector<Position> Retaken() const;
  void Renew();
  // What `ask` answers of the last position, of one that is not lost.
  template <typename Ask>
  auto Asked(const Ask& ask) const;
  std::optional<Position> After(const Position& position, TokenId token) const;
  friend class BatchFiller;
  // FillMask where the mask is known from before; nullopt where it has to be computed.
  std::optional<bool> FillKnownMaskOf(const Position& position, std::span<uint32_t> row) const;
  bool FillMaskOf(const Position& position, std::span<uint32_t> row) const;
  bool CopyMask(const Position& position, const Mask& mask, std::span<uint32_t> row) const;
  bool WithOwnEndTokens(const Position& position, std::span<uint32_t> row, bool any) const;
  bool TerminatedAt(const Position& position) const;

  Grammar grammar_;
  std::vector<TokenId> end_tokens_;  // ascending; none with terminate_without_end_token
  bool own_end_tokens_ = false;      // the mask's end tokens are not ours
  bool terminate_without_end_token_ = false;
  std::string bytes_;              // of all steps that were bytes
  std::vector<Position> history_;  // the start first, the current one last; never empty
};

// Fills the masks of many sequences over a pool of threads that sleep between the calls. States
// whose mask is known cost a look-up and a copy, without waiting for anybody; then the new states
// are computed. A grammar answers one thread at a time, so threads go to different grammars as long
// as there are some; of one grammar they share what its lock is not needed for.
// Thread safety: calls from several threads are allowed; one that finds the pool busy does its rows
// alone.
class PAWL_EXPORT BatchFiller {
 public:
  struct Row {
    const Matcher* matcher;  // nullptr: the row is left alone
    std::span<uint32_t> words;
  };

  // `threads` counts the caller; 0: one for each processor that the process may run on.
  explicit BatchFiller(int threads = 0);
  ~BatchFiller();
  BatchFiller(BatchFiller&&) noexcept;
  BatchFiller& operator=(BatchFiller&&) noexcept;

  // As FillMask on each row. Returns how many of them were left without any allowed token.
  size_t Fill(std::span<const Row> rows) const;
  // Row i, `stride` words each, is that of matchers[i].
  // REQUIRES: stride >= mask_words() of each matcher's vocabulary.
  size_t Fill(std::span<const Matcher* const> matchers, uint32_t* rows, size_t stride) const;

  int threads() const;

 private:
  std::unique_ptr<class ThreadPool> pool_;
};

// One mask for each node of a tree of draft tokens: row i, `stride` words each, holds what may come
// after the path from the root to node i. Node i is tokens[i] below node parents[i]; -1 as a parent
// means the matcher's current position. A node whose token is kNoToken stands for its parent's
// position, so that {kNoToken, -1} gives the matcher's own mask, which is what a tree whose node 0
// is the last verified token wants in row 0. Nodes may come in any order. The matcher does not
// change.
//
// accepted[i] (when the span is not empty) becomes 1 when the whole path to node i fits, else 0;
// the row of a refused node is all zero, as is that of an end token. Returns how many nodes fit.
// Errors: spans of different lengths, a parent out of range, nodes that are their own ancestors;
// then no row was written.
// REQUIRES: stride >= mask_words().
PAWL_EXPORT Result<size_t> FillTreeMasks(const Matcher& matcher, std::span<const TokenId> tokens,
                                         std::span<const int32_t> parents, uint32_t* rows,
                                         size_t stride, std::span<uint8_t> accepted = {});

// The parents of a tree given as "first child, next sibling" (next_token and next_sibling as EAGLE
// drafters write them; -1: none). Nodes without a parent get -1. Errors: lengths that differ, an
// index out of range, a node with two parents or that is a child or sibling of itself.
PAWL_EXPORT Result<std::vector<int32_t>> DraftTreeParents(std::span<const int32_t> next_token,
                                                          std::span<const int32_t> next_sibling);

}  // namespace pawl

#endif  // PAWL_MATCHER_H_
