// Bodies of requests are JSON nearly always, and a hundred kilobytes of tools must not keep the
// first token waiting. So there are two parsers: this one, which stops at the first thing that is
// wrong, and nlohmann's, which then runs over the text again and says what and where.
//
// The children of all open containers stand on two stacks, members and items; a container that
// closes takes its own off the end into a vector of just their number.
#include "src/base/json_valid.h"

#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "src/base/ascii.h"
#include "src/base/stop_steps.h"
#include "src/base/utf8.h"

namespace pawl::json {
namespace {

constexpr size_t kFewMembers = 12;       // are compared pair by pair
constexpr ptrdiff_t kLongNumber = 1000;  // bytes
constexpr ptrdiff_t kPiece = 64 << 10;   // of a string, between two looks at the stop flag

// Whether one of eight bytes is a quote, a backslash, a control character or not ASCII.
bool EndsRun(const char* bytes) {
  constexpr uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  const uint64_t quote = word ^ (kOnes * '"'), backslash = word ^ (kOnes * '\\');
  const uint64_t special = ((quote - kOnes) & ~quote) | ((backslash - kOnes) & ~backslash) |
                           ((word - kOnes * 0x20) & ~word) | word;
  return (special & kHigh) != 0;
}

class ValidParser {
 public:
  ValidParser(std::string_view text, const ParseLimits& limits)
      : at_(text.data()), end_(text.data() + text.size()), limits_(limits) {}

  bool Run(Value& tree) {
    for (;;) {
      if (++values_ > limits_.max_values) return false;  // the other says so
      steps_.Step();
      Value value;
      bool opened = false;
      if (!Begin(value, opened)) return false;
      if (opened) continue;
      for (;;) {
        if (open_.empty()) {
          SkipSpace();
          if (at_ != end_) return false;
          tree = std::move(value);
          return true;
        }
        bool closed = false;
        if (!Follow(value, closed)) return false;
        if (!closed) break;
      }
    }
  }

 private:
  struct Container {
    bool object;
    size_t begin;  // of its children on their stack
  };

  void SkipSpace() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }
  bool Skip(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  // A value, or (`opened`) the beginning of a container up to its first child.
  bool Begin(Value& value, bool& opened) {
    SkipSpace();
    if (at_ == end_) return false;
    switch (*at_) {
      case '{':
        ++at_;
        SkipSpace();
        if (static_cast<int>(open_.size()) >= limits_.max_depth) return false;
        if (Skip('}')) {
          value.type = Type::kObject;
          return true;
        }
        open_.push_back({true, members_.size()});
        opened = true;
        return Key();
      case '[':
        ++at_;
        SkipSpace();
        if (static_cast<int>(open_.size()) >= limits_.max_depth) return false;
        if (Skip(']')) {
          value.type = Type::kArray;
          return true;
        }
        open_.push_back({false, items_.size()});
        opened = true;
        return true;
      case '"':
        value.type = Type::kString;
        return String(value.text);
      case 't':
        value.type = Type::kTrue;
        return Word("true");
      case 'f':
        value.type = Type::kFalse;
        return Word("false");
      case 'n':
        return Word("null");
      default:
        value.type = Type::kNumber;
        return Number(value.text);
    }
  }

  // What stands behind a child. `closed`: the container ended, and is now the value itself.
  bool Follow(Value& value, bool& closed) {
    const Container top = open_.back();
    if (top.object) {
      members_.back().second = std::move(value);
    } else {
      items_.push_back(std::move(value));
    }
    SkipSpace();
    if (Skip(',')) {
      if (!top.object) return true;
      SkipSpace();
      return Key();
    }
    if (!Skip(top.object ? '}' : ']')) return false;
    closed = true;
    open_.pop_back();
    value = Value();
    if (top.object) {
      value.type = Type::kObject;
      const auto begin = members_.begin() + static_cast<ptrdiff_t>(top.begin);
      value.members.assign(std::make_move_iterator(begin), std::make_move_iterator(members_.end()));
      members_.erase(begin, members_.end());
      return limits_.allow_duplicate_keys || !HasDuplicates(value.members);
    }
    value.type = Type::kArray;
    const auto begin = items_.begin() + static_cast<ptrdiff_t>(top.begin);
    value.items.assign(std::make_move_iterator(begin), std::make_move_iterator(items_.end()));
    items_.erase(begin, items_.end());
    return true;
  }

  static bool HasDuplicates(const std::vector<Member>& members) {
    if (members.size() <= kFewMembers) {
      for (size_t i = 1; i < members.size(); ++i) {
        for (size_t k = 0; k < i; ++k) {
          if (members[i].first == members[k].first) return true;
        }
      }
      return false;
    }
    std::unordered_set<std::string_view> seen;
    StopSteps steps;
    for (const Member& member : members) {
      steps.Step();
      if (!seen.insert(member.first).second) return true;
    }
    return false;
  }

  bool Key() {
    std::string name;
    if (at_ == end_ || *at_ != '"' || !String(name)) return false;
    members_.emplace_back(std::move(name), Value{});
    SkipSpace();
    return Skip(':');
  }

  bool Word(std::string_view word) {
    if (static_cast<size_t>(end_ - at_) < word.size()) return false;
    if (std::string_view(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  bool Number(std::string& text) {
    const char* const begin = at_;
    const auto digits = [this] {
      const char* const first = at_;
      while (at_ != end_ && IsDigit(*at_)) ++at_;
      return at_ - first;
    };
    Skip('-');
    if (!Skip('0') && digits() == 0) return false;
    if (Skip('.') && digits() == 0) return false;
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (!Skip('+')) Skip('-');
      const ptrdiff_t count = digits();
      if (count == 0 || count > 3) return false;  // whether it can be read is the other's affair
    }
    if (at_ - begin > kLongNumber) return false;
    text.assign(begin, at_);
    return true;
  }

  bool String(std::string& text) {
    ++at_;
    for (;;) {
      const char* const begin = at_;
      const char* const stop = end_ - at_ > kPiece ? at_ + kPiece : end_;
      StopScope::Check();
      while (stop - at_ >= 8 && !EndsRun(at_)) at_ += 8;
      while (at_ != stop && *at_ != '"' && *at_ != '\\' && static_cast<unsigned char>(*at_) >= 32 &&
             static_cast<unsigned char>(*at_) < 128) {
        ++at_;
      }
      text.append(begin, at_);
      if (at_ == end_) return false;
      if (*at_ == '"') {
        ++at_;
        return true;
      }
      if (*at_ == '\\') {
        if (!Escape(text)) return false;
        continue;
      }
      if (static_cast<unsigned char>(*at_) < 32) return false;
      const DecodedCodepoint next = DecodeUtf8({at_, static_cast<size_t>(end_ - at_)});
      if (!next.valid) return false;
      text.append(at_, static_cast<size_t>(next.length));
      at_ += next.length;
    }
  }

  bool Escape(std::string& text) {
    ++at_;
    if (at_ == end_) return false;
    const char c = *at_++;
    static constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    if (const size_t found = kNames.find(c); found != std::string_view::npos) {
      text += kMeant[found];
      return true;
    }
    if (c != 'u') return false;
    const std::optional<uint32_t> first = Hex();
    if (!first || (*first >= 0xDC00 && *first < 0xE000)) return false;
    if (*first < 0xD800 || *first >= 0xE000) {
      AppendUtf8(static_cast<char32_t>(*first), text);
      return true;
    }
    if (!Skip('\\') || !Skip('u')) return false;
    const std::optional<uint32_t> second = Hex();
    if (!second || *second < 0xDC00 || *second >= 0xE000) return false;
    AppendUtf8(static_cast<char32_t>(0x10000 + ((*first - 0xD800) << 10) + (*second - 0xDC00)),
               text);
    return true;
  }

  std::optional<uint32_t> Hex() {
    if (end_ - at_ < 4) return std::nullopt;
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = *at_++;
      const char lower = static_cast<char>(c | 0x20);
      if (IsDigit(c)) {
        value = value * 16 + static_cast<uint32_t>(c - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        value = value * 16 + static_cast<uint32_t>(lower - 'a' + 10);
      } else {
        return std::nullopt;
      }
    }
    return value;
  }

  const char* at_;
  const char* const end_;
  const ParseLimits& limits_;
  size_t values_ = 0;
  StopSteps steps_;
  std::vector<Container> open_;
  std::vector<Member> members_;
  std::vector<Value> items_;
};

}  // namespace

bool ParseValid(std::string_view text, const ParseLimits& limits, Value& tree) {
  return ValidParser(text, limits).Run(tree);
}

}  // namespace pawl::json
