// FreeText: the automaton of all UTF-8 texts in which none of some strings occurs.
//
//   FreeText text({.stops = {"<tool_call>", "</think>"}});
//
// It is what stands between tags: text up to where a tag's trigger would begin.
#ifndef PAWL_GRAMMAR_CFG_FREE_TEXT_H_
#define PAWL_GRAMMAR_CFG_FREE_TEXT_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grammar/hash_index.h"
#include "grammar/machine.h"

namespace pawl {

struct FreeTextRules {
  // None of these occurs in the text. REQUIRES: valid UTF-8, not empty.
  std::vector<std::string> stops = {};
  // When not empty: one of the stops, which follows the text and is the first of them to end there:
  // no stop ends earlier, not even one that begins in the text and ends inside of `before`.
  std::string before = {};
  std::optional<uint32_t> max_chars = {};  // code points; at most kMostChars
  static constexpr uint32_t kMostChars = 1u << 28;
};

class FreeTextMasks;

class FreeText : public Machine {
 public:
  explicit FreeText(const FreeTextRules& rules);
  ~FreeText() override;

  Key Start() override { return start_; }
  uint32_t StepLexeme(uint32_t, uint8_t) override { return kLeavesLexeme; }
  Key StepFrame(Key state, uint8_t byte) override;
  bool Accepting(Key state) override;
  std::optional<std::string> CompletionBytes(Key state) override;
  MachineMasks* Masks(const Vocabulary& vocabulary) override;

  size_t MemoryBytes() const override;
  size_t GrowthHint() const override;

 private:
  friend class FreeTextMasks;
  // Nodes of the trie of the stops (Aho and Corasick 1975).
  struct Node {
    uint32_t fail = 0;
    bool stop = false;
  };
  struct Place {
    uint32_t node, chars;
    uint8_t utf8;  // of a character that has begun
  };

  Place PlaceOf(Key key) const {
    const uint32_t low = LexemeOf(key) - 1;
    return {FrameOf(key) - 1, low >> 3, static_cast<uint8_t>(low & 7)};
  }
  static Key KeyOf(Place place) {
    return MakeKey(place.node + 1, (place.chars << 3 | place.utf8) + 1);
  }
  uint32_t Next(uint32_t node, uint8_t byte) const;

  std::vector<std::string> stops_;
  std::vector<Node> nodes_;
  std::array<uint32_t, 256> first_{};  // the node after a byte where nothing of a stop is read
  FlatMap<uint32_t> children_;         // by node << 8 | byte
  std::vector<bool> restricted_;       // by node: where `before` must not come; empty when nowhere
  std::optional<uint32_t> max_chars_;
  Key start_ = kDead;
  std::unique_ptr<FreeTextMasks> masks_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_FREE_TEXT_H_
