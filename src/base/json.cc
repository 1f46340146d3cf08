// Bodies of requests are JSON nearly always, and a hundred kilobytes of tools must not keep the
// first token waiting. So there are two parsers: a fast one, which stops at the first thing that is
// wrong, and nlohmann's, which then runs over the text again and says what and where.
//
// In the fast one the children of all open containers stand on two stacks, members and items; a
// container that closes takes its own off the end into a vector of just their number. The handler
// of the other one keeps a stack of open containers instead of recursing.
#include "src/base/json.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "src/base/large_numbers.h"
#include "src/base/stop_scope.h"
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

namespace {

using Parser = nlohmann::json;

// "LINE:COLUMN (byte N)", the first two from 1, columns in characters as far as the text is UTF-8.
std::string PlaceOf(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, byte);
  const size_t line = before.rfind('\n') + 1;  // after npos: 0
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const auto columns = std::count_if(before.begin() + static_cast<ptrdiff_t>(line), before.end(),
                                     [](char c) { return (c & 0xC0) != 0x80; });
  return std::to_string(lines + 1) + ":" + std::to_string(columns + 1) + " (byte " +
         std::to_string(byte) + ")";
}

// Where the first array or object opens inside of so many others. REQUIRES: JSON up to there.
size_t OpensAt(std::string_view text, int depth) {
  bool string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') string = !string;
    if (string && c == '\\') ++i;
    if (string) continue;
    if ((c == '[' || c == '{') && depth-- == 0) return i;
    if (c == ']' || c == '}') ++depth;
  }
  return text.size();
}

// `text` with every byte that is not UTF-8 written as \xHH.
std::string Printable(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const DecodedCodepoint d = DecodeUtf8(text.substr(i));
    if (d.valid) {
      out += text.substr(i, static_cast<size_t>(d.length));
    } else {
      const unsigned char byte = static_cast<unsigned char>(text[i]);
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
    i += static_cast<size_t>(d.length);
  }
  return out;
}

// Builds the tree on an explicit stack of open containers. Pointers into `items` and `members` stay
// valid because only the innermost container grows.
class TreeBuilder {
 public:
  using number_integer_t = Parser::number_integer_t;
  using number_unsigned_t = Parser::number_unsigned_t;
  using number_float_t = Parser::number_float_t;
  using string_t = Parser::string_t;
  using binary_t = Parser::binary_t;

  TreeBuilder(std::string_view text, const ParseLimits& limits, LargeNumbers& numbers)
      : text_(text), limits_(limits), numbers_(numbers) {}

  bool null() { return Add({Type::kNull, {}, {}, {}}); }
  bool boolean(bool value) { return Add({value ? Type::kTrue : Type::kFalse, {}, {}, {}}); }
  // nlohmann hands over integers as values only; their text is canonical unless it was "-0".
  bool number_integer(number_integer_t value) {
    return Add({Type::kNumber, value == 0 ? "-0" : std::to_string(value), {}, {}});
  }
  bool number_unsigned(number_unsigned_t value) {
    return Add({Type::kNumber, std::to_string(value), {}, {}});
  }
  bool number_float(number_float_t, const string_t& raw) {
    return Add({Type::kNumber, numbers_.Next(raw), {}, {}});
  }
  bool string(string_t& value) { return Add({Type::kString, std::move(value), {}, {}}); }
  bool binary(binary_t&) { return false; }

  bool start_object(size_t) { return Open(Type::kObject); }
  bool start_array(size_t) { return Open(Type::kArray); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }

  bool key(string_t& name) {
    if (!limits_.allow_duplicate_keys && !keys_.back().insert(name).second) {
      error_ = Error{ErrorCode::kInvalid, "duplicate key " + Quote(name), pointer()};
      return false;
    }
    stack_.back()->members.emplace_back(std::move(name), Value{});
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& e) {
    const std::string place = PlaceOf(text_, position == 0 ? 0 : position - 1);
    constexpr int kNumberOverflow = 406;
    if (e.id == kNumberOverflow) {
      error_ = Error{ErrorCode::kLimit, "a number beyond 10^4932, which is not read", place};
      return false;
    }
    // nlohmann's text begins with "[json.exception...] parse error at line L, column C: "; keep the
    // reason, and of the text that it quotes only what can be printed.
    std::string what = e.what();
    const size_t colon = what.find(": ");
    if (colon != std::string::npos) what = what.substr(colon + 2);
    error_ = Error{ErrorCode::kInvalid, "not JSON: " + Printable(what), place};
    return false;
  }

  Value Take() { return std::move(root_); }
  Error error() const { return error_; }

 private:
  bool Count() {
    steps_.Step();
    if (++values_ <= limits_.max_values) return true;
    error_ = Error{ErrorCode::kLimit,
                   "holds more than " + std::to_string(limits_.max_values) + " values", ""};
    return false;
  }
  bool Add(Value value) {
    if (!Count()) return false;
    if (stack_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Place(std::move(value));
    return true;
  }
  Value* Place(Value value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Value* top = stack_.back();
    if (top->type == Type::kArray) {
      top->items.push_back(std::move(value));
      return &top->items.back();
    }
    top->members.back().second = std::move(value);
    return &top->members.back().second;
  }
  bool Open(Type type) {
    if (!Count()) return false;
    if (static_cast<int>(stack_.size()) >= limits_.max_depth) {
      error_ = Error{ErrorCode::kLimit,
                     "arrays and objects are nested deeper than the limit of " +
                         std::to_string(limits_.max_depth) + " levels of JSON",
                     PlaceOf(text_, OpensAt(text_, limits_.max_depth))};
      return false;
    }
    stack_.push_back(Place({type, {}, {}, {}}));
    keys_.emplace_back();
    return true;
  }
  bool Close() {
    stack_.pop_back();
    keys_.pop_back();
    return true;
  }
  std::string pointer() const {
    std::string out = "#";
    for (size_t i = 0; i + 1 < stack_.size(); ++i) {
      const Value& v = *stack_[i];
      out = v.type == Type::kArray ? PointerJoin(out, std::to_string(v.items.size() - 1))
                                   : PointerJoin(out, v.members.back().first);
    }
    return out;
  }

  std::string_view text_;
  const ParseLimits& limits_;
  LargeNumbers& numbers_;
  size_t values_ = 0;
  StopSteps steps_;
  Value root_;
  std::vector<Value*> stack_;
  std::vector<std::unordered_set<std::string>> keys_;
  Error error_{ErrorCode::kInvalid, "not JSON", ""};
};

}  // namespace

const Value* Value::Find(std::string_view key) const {
  for (const auto& [name, value] : members) {
    if (name == key) return &value;
  }
  return nullptr;
}

Result<Value> Parse(std::string_view text, const ParseLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return Error{ErrorCode::kLimit,
                 std::to_string(text.size()) + " bytes are more than the limit of " +
                     std::to_string(limits.max_bytes),
                 ""};
  }
  Value tree;
  if (ParseValid(text, limits, tree)) return tree;
  return ParseWithReasons(text, limits);
}

Result<Value> ParseWithReasons(std::string_view text, const ParseLimits& limits) {
  // The parser takes a NUL for the end of its input; in JSON it is never legal.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return Error{ErrorCode::kInvalid, "not JSON: a NUL byte", PlaceOf(text, nul)};
  }
  LargeNumbers numbers(text);
  TreeBuilder builder(text, limits, numbers);
  const std::string_view parsed = numbers.Replaced(text);
  if (!Parser::sax_parse(parsed.begin(), parsed.end(), &builder)) return builder.error();
  return builder.Take();
}

// Whether eight bytes stand in a JSON string as they are. May say no where they do.
static bool IsPlain(const char* bytes) {
  constexpr uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  const uint64_t quote = word ^ (kOnes * '"'), backslash = word ^ (kOnes * '\\');
  const uint64_t special = ((quote - kOnes) & ~quote) | ((backslash - kOnes) & ~backslash) |
                           ((word - kOnes * 0x20) & ~word);
  return (special & kHigh) == 0;
}

// Appends `text` as a JSON string.
static void QuoteTo(std::string_view text, std::string& out) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  size_t begin = 0;  // of what is not yet written
  for (size_t i = 0; i < text.size(); ++i) {
    while (i + 8 <= text.size() && IsPlain(text.data() + i)) i += 8;
    if (i == text.size()) break;
    const char c = text[i];
    if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text, begin, i - begin);
    begin = i + 1;
    static constexpr std::string_view kMeant = "\"\\\b\f\n\r\t", kNames = "\"\\bfnrt";
    if (const size_t found = kMeant.find(c); found != std::string_view::npos) {
      out += '\\';
      out += kNames[found];
    } else {
      out += "\\u00";
      out += kHex[(c >> 4) & 15];
      out += kHex[c & 15];
    }
  }
  out.append(text, begin);
  out += '"';
}

std::string Quote(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  QuoteTo(text, out);
  return out;
}

std::string Dump(const Value& value) {
  constexpr size_t kUsual = 1024;
  // Explicit stack: (container, next child).
  std::string out;
  if (value.size() > 0) out.reserve(kUsual);
  std::vector<std::pair<const Value*, size_t>> stack;
  const auto open = [&](const Value& v) {
    switch (v.type) {
      case Type::kNull:
        out += "null";
        return;
      case Type::kFalse:
        out += "false";
        return;
      case Type::kTrue:
        out += "true";
        return;
      case Type::kNumber:
        out += v.text;
        return;
      case Type::kString:
        QuoteTo(v.text, out);
        return;
      case Type::kArray:
        out += '[';
        break;
      case Type::kObject:
        out += '{';
        break;
    }
    stack.emplace_back(&v, 0);
  };
  open(value);
  while (!stack.empty()) {
    auto& [container, next] = stack.back();
    const bool object = container->type == Type::kObject;
    if (next == container->size()) {
      out += object ? '}' : ']';
      stack.pop_back();
      continue;
    }
    if (next > 0) out += ',';
    const size_t i = next++;
    if (object) {
      QuoteTo(container->members[i].first, out);
      out += ':';
      open(container->members[i].second);
    } else {
      open(container->items[i]);
    }
  }
  if (out.size() < kUsual / 2) out.shrink_to_fit();
  return out;
}

std::string PointerJoin(std::string_view pointer, std::string_view token) {
  std::string out(pointer);
  out += '/';
  for (const char c : token) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

std::vector<std::string> PointerTokens(std::string_view pointer) {
  std::vector<std::string> tokens;
  for (size_t i = 0; i < pointer.size(); ++i) {
    const bool escape = pointer[i] == '~' && i + 1 < pointer.size() &&
                        (pointer[i + 1] == '0' || pointer[i + 1] == '1');
    if (pointer[i] == '/') {
      tokens.emplace_back();
    } else if (escape) {
      tokens.back() += pointer[++i] == '0' ? '~' : '/';
    } else {
      tokens.back() += pointer[i];
    }
  }
  return tokens;
}

const Value* ItemAt(const Value& array, std::string_view token) {
  size_t index = 0;
  const char* const end = token.data() + token.size();
  const auto [read, error] = std::from_chars(token.data(), end, index);
  if (array.type != Type::kArray || error != std::errc() || read != end ||
      (token.size() > 1 && token[0] == '0') || index >= array.items.size())
    return nullptr;
  return &array.items[index];
}

const char* TypeName(Type type) {
  switch (type) {
    case Type::kNull:
      return "null";
    case Type::kFalse:
    case Type::kTrue:
      return "boolean";
    case Type::kNumber:
      return "number";
    case Type::kString:
      return "string";
    case Type::kArray:
      return "array";
    case Type::kObject:
      return "object";
  }
  return "unknown";
}

}  // namespace pawl::json
