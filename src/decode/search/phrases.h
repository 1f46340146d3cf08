// ForcedPhrases: which texts an output still has to have, and how far it has come with them.
//
//   ForcedPhrases phrases({"red", "blue"}, false, ForceIn::kText, spell, size_of);
//   int32_t state = phrases.After(ForcedPhrases::kStart, "a red ");   // 1 of 2 is met
//   phrases.progress(state), phrases.total()                          // in tokens
//
// A state is a number, so that hypotheses with the same state share it. Texts are looked for in
// bytes, so each spelling counts.
// Thread safety: one thread at a time.
#ifndef PAWL_SRC_DECODE_SEARCH_PHRASES_H_
#define PAWL_SRC_DECODE_SEARCH_PHRASES_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/sampling.h"
#include "pawl/vocabulary.h"

namespace pawl {

class ForcedPhrases {
 public:
  static constexpr int32_t kStart = 0;
  // The tokens of a text, empty where it has none, and how many bytes a token has.
  using Spell = std::function<std::vector<TokenId>(std::string_view text)>;
  using SizeOf = std::function<size_t(TokenId token)>;

  // REQUIRES: no phrase is empty.
  ForcedPhrases(std::vector<std::string> phrases, bool ordered, ForceIn where, Spell spell,
                const SizeOf& size_of);

  int32_t After(int32_t state, std::string_view bytes);
  bool all_met(int32_t state) const { return At(state).met_count == phrases_.size(); }
  size_t met_count(int32_t state) const { return At(state).met_count; }
  // Tokens of the phrases that are met, and of what is there of the one under way.
  int progress(int32_t state) const { return At(state).progress; }
  int total() const { return total_; }
  size_t count() const { return phrases_.size(); }
  // Tokens that may bring a phrase on: the next one of that under way, and first ones of others.
  const std::vector<TokenId>& Advancing(int32_t state);
  // So many of them, the first ones, go on with the phrase or the escape under way.
  // REQUIRES: Advancing.
  size_t going_on(int32_t state) const { return At(state).going_on; }
  // In the middle of an escape of JSON: a part of a character, which is no progress yet.
  bool in_escape(int32_t state) const {
    return At(state).key.json.escape > 0 || At(state).key.json.first > 0;
  }
  std::vector<std::string> Missing(std::string_view text);
  // Texts that write a phrase from here to its end: of each phrase the ways of writing it in JSON,
  // the shortest first. None in a key and before one. REQUIRES: ForceIn::kValue.
  std::vector<std::vector<std::string>> Endings(int32_t state) const;
  // In a string of JSON, keys too.
  bool in_string(int32_t state) const { return At(state).key.json.in_string; }
  bool in_values() const { return where_ == ForceIn::kValue; }
  // Of the tokenizer's spelling; kNoToken: there is none.
  TokenId FirstOf(const std::string& text);

 private:
  // Where a byte of JSON stands.
  struct JsonPlace {
    // Of the containers around: '{' before a key, ':' before its value, '['.
    std::string open;
    bool in_string = false, is_key = false;
    uint8_t escape = 0;  // 1: behind a backslash; 2 to 5: digits of \u that are left, plus 1
    uint32_t code = 0;   // of these digits
    uint32_t first = 0;  // the first half of a pair
    auto operator<=>(const JsonPlace&) const = default;
  };
  struct Key {
    std::vector<uint64_t> met;  // bits
    int32_t node = 0;
    JsonPlace json;
    auto operator<=>(const Key&) const = default;
  };
  struct State {
    Key key;
    size_t met_count = 0;
    int progress = 0;
    bool has_advancing = false;
    size_t going_on = 0;
    std::vector<TokenId> advancing;
  };
  struct Node {
    std::array<int32_t, 256> next;
    std::vector<int32_t> ends;  // phrases
    int32_t depth = 0;
    int32_t fail = 0;
    std::vector<int32_t> begins;  // phrases that begin with this node's text
  };

  const State& At(int32_t state) const { return states_[static_cast<size_t>(state)]; }
  void MakeAutomaton();
  int32_t Intern(Key key);
  void Feed(Key& key, uint8_t byte) const;
  void FeedJson(Key& key, uint8_t byte) const;
  void FeedCode(Key& key, uint32_t code) const;
  static bool IsMet(const Key& key, int32_t phrase) {
    return (key.met[static_cast<size_t>(phrase) / 64] >> (phrase % 64) & 1) != 0;
  }
  // The longest part of a phrase that is not met at the end of the text: phrase and bytes; -1:
  // none.
  std::pair<int32_t, int32_t> UnderWay(const Key& key) const;
  bool MayBeNext(const Key& key, int32_t phrase) const;
  // To write it brings the phrases on.
  bool MayBeWritten(const Key& key, int32_t phrase) const;
  void FindPhrasesWithin();
  // Nothing brings a phrase on: in a key, or where one comes.
  bool InKeys(const Key& key) const {
    const bool before =
        !key.json.in_string && !key.json.open.empty() && key.json.open.back() == '{';
    return where_ == ForceIn::kValue && (before || (key.json.in_string && key.json.is_key));
  }

  std::vector<std::string> phrases_;
  const bool ordered_;
  const ForceIn where_;
  const Spell spell_;
  std::map<std::string, TokenId> first_tokens_;  // by text
  std::vector<std::vector<int>> tokens_within_;  // by phrase and bytes: whole tokens
  int total_ = 0;
  // Of phrases in an order: the first one of those that it meets when all of them are there
  // within it, one behind the other.
  std::vector<int32_t> first_within_;
  std::vector<Node> nodes_;
  std::vector<State> states_;
  std::map<Key, int32_t> numbers_;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SEARCH_PHRASES_H_
