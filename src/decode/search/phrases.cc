// An automaton over bytes finds all phrases at once (Aho and Corasick, 1975): a phrase that breaks
// off may have begun another one, and phrases may overlap. The progress of a state counts whole
// tokens of the tokenizer's spelling, so that the banks of forced_beam.cc are steps of it.
//
// Values of JSON: only the bytes that strings stand for are read, with escapes resolved, and not
// those of keys. A phrase stands in one string.
#include "src/decode/search/phrases.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "src/base/utf8.h"

namespace pawl {

ForcedPhrases::ForcedPhrases(std::vector<std::string> phrases, bool ordered, ForceIn where,
                             Spell spell, const SizeOf& size_of)
    : phrases_(std::move(phrases)), ordered_(ordered), where_(where), spell_(std::move(spell)) {
  if (!ordered_) {
    std::ranges::sort(phrases_);
    const auto twice = std::ranges::unique(phrases_);
    phrases_.erase(twice.begin(), twice.end());
  }
  for (const std::string& phrase : phrases_) {
    std::vector<int>& within = tokens_within_.emplace_back(phrase.size() + 1, 0);
    size_t end = 0;
    int count = 0;
    for (const TokenId token : spell_(phrase)) {
      end += size_of(token);
      ++count;
      for (size_t bytes = end; bytes <= phrase.size(); ++bytes) within[bytes] = count;
    }
    within.back() = std::max(count, 1);
    total_ += within.back();
  }
  MakeAutomaton();
  Key start;
  start.met.assign((phrases_.size() + 63) / 64, 0);
  Intern(std::move(start));
}

void ForcedPhrases::MakeAutomaton() {
  const auto add = [&](int32_t depth) {
    Node& node = nodes_.emplace_back();
    node.next.fill(-1);
    node.depth = depth;
    return static_cast<int32_t>(nodes_.size()) - 1;
  };
  add(0);
  for (size_t p = 0; p < phrases_.size(); ++p) {
    int32_t at = 0;
    for (const char c : phrases_[p]) {
      const auto byte = static_cast<uint8_t>(c);
      int32_t next = nodes_[static_cast<size_t>(at)].next[byte];
      if (next < 0) {
        next = add(nodes_[static_cast<size_t>(at)].depth + 1);
        nodes_[static_cast<size_t>(at)].next[byte] = next;
      }
      at = next;
      nodes_[static_cast<size_t>(at)].begins.push_back(static_cast<int32_t>(p));
    }
    nodes_[static_cast<size_t>(at)].ends.push_back(static_cast<int32_t>(p));
  }
  std::deque<int32_t> queue;
  for (int32_t& next : nodes_[0].next) {
    if (next < 0) {
      next = 0;
    } else {
      queue.push_back(next);
    }
  }
  for (; !queue.empty(); queue.pop_front()) {
    Node& node = nodes_[static_cast<size_t>(queue.front())];
    const Node& fail = nodes_[static_cast<size_t>(node.fail)];
    node.ends.insert(node.ends.end(), fail.ends.begin(), fail.ends.end());
    for (size_t byte = 0; byte < 256; ++byte) {
      if (node.next[byte] < 0) {
        node.next[byte] = fail.next[byte];
      } else {
        nodes_[static_cast<size_t>(node.next[byte])].fail = fail.next[byte];
        queue.push_back(node.next[byte]);
      }
    }
  }
}

// Of phrases in an order the next one alone counts.
bool ForcedPhrases::MayBeNext(const Key& key, int32_t phrase) const {
  if (IsMet(key, phrase)) return false;
  return !ordered_ || phrase == 0 || IsMet(key, phrase - 1);
}

void ForcedPhrases::Feed(Key& key, uint8_t byte) const {
  key.node = nodes_[static_cast<size_t>(key.node)].next[byte];
  const std::vector<int32_t>& ends = nodes_[static_cast<size_t>(key.node)].ends;
  for (bool more = true; more;) {
    more = false;
    for (const int32_t phrase : ends) {
      if (!MayBeNext(key, phrase)) continue;
      key.met[static_cast<size_t>(phrase) / 64] |= uint64_t{1} << (phrase % 64);
      more = ordered_;
    }
  }
}

void ForcedPhrases::FeedCode(Key& key, uint32_t code) const {
  if (key.json.is_key) return;
  const char32_t one = code;
  for (const char c : EncodeCodepoints({&one, 1})) Feed(key, static_cast<uint8_t>(c));
}

void ForcedPhrases::FeedJson(Key& key, uint8_t byte) const {
  JsonPlace& json = key.json;
  if (!json.in_string) {
    switch (byte) {
      case '{':
      case '[':
        json.open.push_back(static_cast<char>(byte));
        break;
      case '}':
      case ']':
        if (!json.open.empty()) json.open.pop_back();
        break;
      case ':':
        if (!json.open.empty() && json.open.back() == '{') json.open.back() = ':';
        break;
      case ',':
        if (!json.open.empty() && json.open.back() == ':') json.open.back() = '{';
        break;
      case '"':
        json.in_string = true;
        json.is_key = !json.open.empty() && json.open.back() == '{';
        key.node = 0;
        break;
      default:
        break;
    }
    return;
  }
  if (json.escape > 1) {
    const bool digit = byte >= '0' && byte <= '9';
    const uint32_t value = digit ? byte - '0' : (byte | 0x20u) - 'a' + 10u;
    json.code = json.code << 4 | (value & 15u);
    if (--json.escape > 1) return;
    json.escape = 0;
    const uint32_t code = std::exchange(json.code, 0);
    if (code >= 0xD800 && code < 0xDC00) {
      json.first = code;
    } else if (code >= 0xDC00 && code < 0xE000 && json.first != 0) {
      FeedCode(key, 0x10000 + ((std::exchange(json.first, 0) - 0xD800) << 10) + (code - 0xDC00));
    } else {
      json.first = 0;
      FeedCode(key, code);
    }
    return;
  }
  if (json.escape == 1) {
    json.escape = byte == 'u' ? 5 : 0;
    static constexpr std::string_view kNames = "bfnrt", kMeant = "\b\f\n\r\t";
    const size_t at = kNames.find(static_cast<char>(byte));
    if (byte != 'u' && !json.is_key) {
      Feed(key, at == std::string_view::npos ? byte : static_cast<uint8_t>(kMeant[at]));
    }
    return;
  }
  if (byte == '\\') {
    json.escape = 1;
  } else if (byte == '"') {
    json.in_string = false;
    key.node = 0;
  } else if (!json.is_key) {
    Feed(key, byte);
  }
}

std::pair<int32_t, int32_t> ForcedPhrases::UnderWay(const Key& key) const {
  for (int32_t node = key.node; node != 0; node = nodes_[static_cast<size_t>(node)].fail) {
    const Node& at = nodes_[static_cast<size_t>(node)];
    for (const int32_t phrase : at.begins) {
      if (MayBeNext(key, phrase)) return {phrase, at.depth};
    }
  }
  return {-1, 0};
}

int32_t ForcedPhrases::Intern(Key key) {
  const auto [at, made] = numbers_.emplace(std::move(key), static_cast<int32_t>(states_.size()));
  if (!made) return at->second;
  State state;
  state.key = at->first;
  for (size_t p = 0; p < phrases_.size(); ++p) {
    if (!IsMet(state.key, static_cast<int32_t>(p))) continue;
    ++state.met_count;
    state.progress += tokens_within_[p].back();
  }
  const auto [phrase, bytes] = UnderWay(state.key);
  if (phrase >= 0) {
    const std::vector<int>& within = tokens_within_[static_cast<size_t>(phrase)];
    // The last token of a phrase counts when the phrase is there.
    state.progress += std::min(within[static_cast<size_t>(bytes)], within.back() - 1);
  }
  states_.push_back(std::move(state));
  return at->second;
}

int32_t ForcedPhrases::After(int32_t state, std::string_view bytes) {
  if (bytes.empty()) return state;
  Key key = At(state).key;
  for (const char c : bytes) {
    if (where_ == ForceIn::kValue) {
      FeedJson(key, static_cast<uint8_t>(c));
    } else {
      Feed(key, static_cast<uint8_t>(c));
    }
  }
  return Intern(std::move(key));
}

const std::vector<TokenId>& ForcedPhrases::Advancing(int32_t number) {
  State& state = states_[static_cast<size_t>(number)];
  if (state.has_advancing) return state.advancing;
  state.has_advancing = true;
  const auto add = [&](const std::string& text) {
    const std::vector<TokenId> tokens = spell_(text);
    if (tokens.empty()) return;
    if (std::ranges::find(state.advancing, tokens[0]) == state.advancing.end()) {
      state.advancing.push_back(tokens[0]);
    }
  };
  const auto [phrase, bytes] = UnderWay(state.key);
  if (phrase >= 0) {
    add(phrases_[static_cast<size_t>(phrase)].substr(static_cast<size_t>(bytes)));
    if (!state.advancing.empty()) state.going_on = state.advancing[0];
  }
  for (size_t p = 0; p < phrases_.size(); ++p) {
    if (!MayBeNext(state.key, static_cast<int32_t>(p))) continue;
    add(phrases_[p]);
    add(" " + phrases_[p]);
  }
  return state.advancing;
}

std::vector<std::string> ForcedPhrases::Missing(std::string_view text) {
  const Key key = At(After(kStart, text)).key;
  std::vector<std::string> missing;
  for (size_t p = 0; p < phrases_.size(); ++p) {
    if (!IsMet(key, static_cast<int32_t>(p))) missing.push_back(phrases_[p]);
  }
  return missing;
}

}  // namespace pawl
