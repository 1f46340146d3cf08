// An automaton over bytes finds all phrases at once (Aho and Corasick, 1975): a phrase that breaks
// off may have begun another one, and phrases may overlap. The progress of a state counts whole
// tokens of the tokenizer's spelling, so that the banks of forced_beam.cc are steps of it.
//
// Values of JSON: only the bytes that strings stand for are read, with escapes resolved, and not
// those of keys. A phrase stands in one string. What brings a phrase on there is the next token of
// the forms in which JSON may write it: short escapes, and \u for what is not ASCII.
#include "src/decode/search/phrases.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "src/base/utf8.h"

namespace pawl {
namespace {

// The character at the beginning of a text, and its bytes; 0: the text begins within one.
std::pair<char32_t, size_t> FirstCharacter(std::string_view text) {
  if (text.empty() || (static_cast<uint8_t>(text[0]) & 0xC0) == 0x80) return {0, 0};
  size_t size = 1;
  while (size < text.size() && (static_cast<uint8_t>(text[size]) & 0xC0) == 0x80) ++size;
  const std::u32string one = DecodeCodepoints(text.substr(0, size));
  return one.size() == 1 ? std::pair(one[0], size) : std::pair(char32_t{0}, size_t{0});
}

constexpr std::string_view kShortEscapes = "\"\\bfnrt", kEscapedSo = "\"\\\b\f\n\r\t";

// The letter behind a backslash; 0: there is none for this character.
char ShortEscape(char32_t c) {
  const size_t at = c < 0x80 ? kEscapedSo.find(static_cast<char>(c)) : std::string_view::npos;
  return at == std::string_view::npos ? '\0' : kShortEscapes[at];
}

// The units of \u: one, or a pair.
std::vector<uint32_t> UnitsOf(char32_t c) {
  if (c < 0x10000) return {static_cast<uint32_t>(c)};
  const uint32_t rest = static_cast<uint32_t>(c) - 0x10000;
  return {0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF)};
}

std::string HexDigits(uint32_t unit, size_t digits, bool upper) {
  std::string text;
  while (digits-- > 0)
    text += (upper ? "0123456789ABCDEF" : "0123456789abcdef")[unit >> (4 * digits) & 15];
  return text;
}

// How a text may be written in a string of JSON.
enum class JsonForm { kShortest, kAscii, kAsciiUpper, kAllEscapes };
constexpr JsonForm kJsonForms[] = {JsonForm::kShortest, JsonForm::kAscii, JsonForm::kAsciiUpper,
                                   JsonForm::kAllEscapes};

std::string InJson(std::string_view text, JsonForm form) {
  std::string out;
  while (!text.empty()) {
    const auto [c, size] = FirstCharacter(text);
    const std::string_view bytes = text.substr(0, std::max<size_t>(1, size));
    text.remove_prefix(bytes.size());
    const bool wide = c >= 0x80 && form != JsonForm::kShortest;
    const char letter = size > 0 ? ShortEscape(c) : '\0';
    const bool escaped = letter != '\0' || (size > 0 && c < 0x20);
    if (letter != '\0' && form != JsonForm::kAllEscapes) {
      out += {'\\', letter};
    } else if (escaped || wide) {
      for (const uint32_t unit : UnitsOf(c)) {
        out += "\\u" + HexDigits(unit, 4, form == JsonForm::kAsciiUpper);
      }
    } else {
      out += bytes;
    }
  }
  return out;
}

struct StringPlace {
  bool in_string = false;
  uint8_t escape = 0;
  uint32_t code = 0, first = 0;
};

// All forms in which a text can be written at a place in a string of JSON, or where one begins.
std::vector<std::string> FormsOf(const StringPlace& at, std::string_view rest) {
  std::vector<std::string> forms;
  const auto add = [&](std::string form) {
    if (std::ranges::find(forms, form) == forms.end()) forms.push_back(std::move(form));
  };
  const auto [c, size] = FirstCharacter(rest);
  const std::string_view behind = rest.substr(size);
  if (at.escape == 0 && at.first == 0) {
    for (const JsonForm form : kJsonForms) add((at.in_string ? "" : "\"") + InJson(rest, form));
    return forms;
  }
  if (size == 0) return forms;
  const std::vector<uint32_t> units = UnitsOf(c);
  const bool second = at.first != 0;
  if (second && (units.size() < 2 || units[0] != at.first)) return forms;
  for (const JsonForm form : kJsonForms) {
    const bool upper = form == JsonForm::kAsciiUpper;
    const std::string follows = InJson(behind, form);
    const auto unit_behind = [&](std::string begin) {
      if (!second && units.size() == 2) begin += "\\u" + HexDigits(units[1], 4, upper);
      add(begin + follows);
    };
    const uint32_t unit = units[second ? 1 : 0];
    if (at.escape == 0) {
      unit_behind("\\u" + HexDigits(unit, 4, upper));
    } else if (at.escape == 1) {
      if (!second && ShortEscape(c) != '\0') add(ShortEscape(c) + follows);
      unit_behind("u" + HexDigits(unit, 4, upper));
    } else if (unit >> (4 * (at.escape - 1)) == at.code) {
      unit_behind(HexDigits(unit, at.escape - 1u, upper));
    }
  }
  return forms;
}

}  // namespace

ForcedPhrases::ForcedPhrases(std::vector<std::string> phrases, bool ordered, ForceIn where,
                             Spell spell, const SizeOf& size_of)
    : phrases_(std::move(phrases)), ordered_(ordered), where_(where), spell_(std::move(spell)) {
  if (!ordered_) {
    std::ranges::sort(phrases_);
    phrases_.erase(std::unique(phrases_.begin(), phrases_.end()), phrases_.end());
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
  if (ordered_) FindPhrasesWithin();
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

// In an order: a phrase that has those before it within itself, so that writing it meets them all.
bool ForcedPhrases::MayBeWritten(const Key& key, int32_t phrase) const {
  if (IsMet(key, phrase)) return false;
  const int32_t first = ordered_ ? first_within_[static_cast<size_t>(phrase)] : 0;
  return first == 0 || IsMet(key, first - 1);
}

void ForcedPhrases::FindPhrasesWithin() {
  first_within_.resize(phrases_.size());
  for (size_t p = 0; p < phrases_.size(); ++p) {
    first_within_[p] = static_cast<int32_t>(p);
    for (int32_t first = first_within_[p]; first >= 0; --first) {
      int32_t node = 0, next = first;
      for (const char c : phrases_[p]) {
        node = nodes_[static_cast<size_t>(node)].next[static_cast<uint8_t>(c)];
        const std::vector<int32_t>& ends = nodes_[static_cast<size_t>(node)].ends;
        while (std::ranges::find(ends, next) != ends.end()) ++next;
      }
      if (next <= static_cast<int32_t>(p)) break;
      first_within_[p] = first;
    }
  }
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
      if (MayBeWritten(key, phrase)) return {phrase, at.depth};
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

TokenId ForcedPhrases::FirstOf(const std::string& text) {
  constexpr size_t kMostTexts = size_t{1} << 16;
  if (first_tokens_.size() > kMostTexts) first_tokens_.clear();
  const auto [at, made] = first_tokens_.emplace(text, kNoToken);
  if (!made) return at->second;
  const std::vector<TokenId> tokens = spell_(text);
  if (!tokens.empty()) at->second = tokens[0];
  return at->second;
}

const std::vector<TokenId>& ForcedPhrases::Advancing(int32_t number) {
  State& state = states_[static_cast<size_t>(number)];
  if (state.has_advancing) return state.advancing;
  state.has_advancing = true;
  std::set<TokenId> added;
  const auto add = [&](const std::string& text) {
    const TokenId token = FirstOf(text);
    if (token != kNoToken && added.insert(token).second) state.advancing.push_back(token);
  };
  const JsonPlace& json = state.key.json;
  const auto add_rest = [&](std::string_view rest) {
    if (where_ == ForceIn::kText) return add(std::string(rest));
    for (const std::string& text :
         FormsOf({json.in_string, json.escape, json.code, json.first}, rest)) {
      add(text);
      if (!json.in_string) add(" " + text);
    }
  };
  if (InKeys(state.key)) return state.advancing;
  const auto [phrase, bytes] = UnderWay(state.key);
  if (phrase >= 0) {
    add_rest(
        std::string_view(phrases_[static_cast<size_t>(phrase)]).substr(static_cast<size_t>(bytes)));
    state.going_on = state.advancing.size();
  }
  for (size_t p = 0; p < phrases_.size(); ++p) {
    if (!MayBeWritten(state.key, static_cast<int32_t>(p))) continue;
    add_rest(phrases_[p]);
    if (where_ == ForceIn::kText) {
      add(" " + phrases_[p]);
    } else if (json.in_string && !in_escape(number)) {
      for (const std::string& text : FormsOf({.in_string = true}, phrases_[p])) add(" " + text);
    }
  }
  if (in_escape(number) && state.going_on == 0) state.going_on = state.advancing.size();
  return state.advancing;
}

std::vector<std::vector<std::string>> ForcedPhrases::Endings(int32_t state) const {
  std::vector<std::vector<std::string>> endings;
  const Key& key = At(state).key;
  if (InKeys(key)) return endings;
  const StringPlace place = {key.json.in_string, key.json.escape, key.json.code, key.json.first};
  const auto [under_way, bytes] = UnderWay(key);
  for (size_t p = 0; p < phrases_.size(); ++p) {
    if (!MayBeWritten(key, static_cast<int32_t>(p))) continue;
    if (static_cast<int32_t>(p) == under_way) {
      endings.push_back(
          FormsOf(place, std::string_view(phrases_[p]).substr(static_cast<size_t>(bytes))));
    }
    endings.push_back(FormsOf(place, phrases_[p]));
  }
  return endings;
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
