// BpeModel: byte-pair encoding of one word (Sennrich et al., 2016), as the "BPE" model of a
// tokenizer.json defines it: a vocabulary and an ordered list of merges.
//
// Immutable after Create; all const methods are thread-safe.
#ifndef PAWL_SRC_TEXT_BPE_MODEL_H_
#define PAWL_SRC_TEXT_BPE_MODEL_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl {

// Strings -> token ids, open addressing over names that live elsewhere.
class TokenIndex {
 public:
  // REQUIRES: names outlive the index and do not move.
  void Reserve(size_t count);
  // False when the name is there already.
  bool Insert(std::string_view name, TokenId id);
  TokenId Find(std::string_view name) const;

 private:
  struct Slot {
    std::string_view name;
    TokenId id = kNoToken;
  };
  static uint64_t Hash(std::string_view name);
  std::vector<Slot> slots_;
  size_t count_ = 0;
};

struct BpeInit {
  std::vector<std::pair<std::string, TokenId>> vocab = {};
  std::vector<std::pair<std::string, std::string>> merges = {};  // first has the highest priority
  std::string unk_token = {};                                    // empty: none
  bool fuse_unk = false;       // neighbouring unknown characters become one unknown token
  bool byte_fallback = false;  // unknown characters become their bytes' <0xNN> tokens
  bool ignore_merges =
      false;  // a word that is in the vocabulary is that token, whatever the merges say
  bool byte_level = false;  // the vocabulary is written in the byte-level alphabet, words are bytes
  // Tokens that no text may become, even where the vocabulary spells them: the special tokens.
  std::vector<std::string> forbidden = {};
};

class BpeModel {
 public:
  BpeModel(BpeModel&&) = default;
  BpeModel& operator=(BpeModel&&) = default;

  // Errors have a place relative to the model's object: "/vocab/x", "/merges/7", "/unk_token".
  static Result<BpeModel> Create(BpeInit init);

  // Reused between calls of Encode so that words cost no allocation.
  struct Scratch {
    struct Symbol {
      TokenId id;
      int32_t previous, next;  // -1: none
    };
    struct Candidate {
      uint32_t rank;
      int32_t position;
      TokenId merged;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
    std::vector<uint32_t> ranks;
  };

  // Appends the tokens of one word. A character that is not in the vocabulary becomes the unknown
  // token, or nothing when the model has none, as in Hugging Face's library. O(n log n).
  void Encode(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const;

  TokenId Find(std::string_view name) const { return index_.Find(name); }
  // Name of a token; empty for ids that the vocabulary does not use.
  std::string_view name(TokenId id) const { return names_[static_cast<size_t>(id)]; }
  int size() const { return static_cast<int>(names_.size()); }  // largest id + 1
  TokenId unknown() const { return unknown_; }
  // The most bytes of a word that one token stands for; 0: no bound is known, as the model drops
  // characters or makes one token of a row of unknown ones.
  size_t longest() const { return longest_; }

 private:
  struct MergeSlot {
    uint64_t pair = UINT64_MAX;
    uint32_t rank = 0;
    TokenId merged = kNoToken;
  };
  BpeModel() = default;
  const MergeSlot* FindMerge(TokenId left, TokenId right) const;
  void InsertMerge(TokenId left, TokenId right, uint32_t rank, TokenId merged);
  void Split(std::string_view word, std::vector<Scratch::Symbol>& symbols) const;
  void MergeShort(Scratch& scratch) const;
  void MergeLong(Scratch& scratch) const;

  std::vector<std::string> storage_;  // names as they are written, in the order of the file
  std::vector<std::string> bytes_;    // byte level: what they stand for
  std::vector<std::string_view> names_;
  TokenIndex index_;  // by name
  TokenIndex words_;  // by what a word spells; without the forbidden tokens
  std::vector<MergeSlot> merges_;
  std::array<TokenId, 256> byte_tokens_{};  // byte level: of each byte; byte fallback: <0xNN>
  TokenId unknown_ = kNoToken;
  size_t longest_ = 0;
  bool fuse_unk_ = false, byte_fallback_ = false, ignore_merges_ = false, byte_level_ = false;
};

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_BPE_MODEL_H_
