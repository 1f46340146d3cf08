// Each style is a small machine that keeps its state between pieces and looks at each byte once,
// but for the text of a parameter, which is given out when its end has come.
//
// The grammar guarantees the shapes, so they are not checked. What models write without a grammar
// is read as far as it means something.
#include "src/engine/call_arguments.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "grammar/tags/formats/argument_style.h"
#include "src/base/utf8.h"
#include "src/engine/argument_value.h"

namespace pawl {
namespace {

using StyleMarks = ArgumentStyle::Marks;

constexpr std::string_view kBlanks = " \n\r\t";

std::optional<uint32_t> HexDigits(std::string_view text, size_t count) {
  if (text.size() < count) return std::nullopt;
  uint32_t value = 0;
  for (const char c : text.substr(0, count)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    value = value * 16 + static_cast<uint32_t>(digit);
  }
  return value;
}

// A piece of a string, as it stands inside of JSON quotes.
std::string InsideQuotes(std::string_view text) {
  const std::string quoted = json::Quote(text);
  return quoted.substr(1, quoted.size() - 2);
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// A bare word of Python or of Gemma's notation.
std::string WordJson(std::string_view word) {
  if (word == "None" || word == "null") return "null";
  if (word == "True") return "true";
  if (word == "False") return "false";
  return json::Parse(word).ok() ? std::string(word) : json::Quote(word);
}

// JSON as it is: arguments end where their value ends.
class JsonArguments : public CallArguments {
 public:
  explicit JsonArguments(std::string_view behind) : behind_(behind) {}

  size_t Feed(std::string_view text, bool, std::string& out) override {
    size_t i = 0;
    for (; i < text.size() && !done_; ++i) {
      const char c = text[i];
      if (in_string_) {
        if (escaped_) {
          escaped_ = false;
        } else if (c == '\\') {
          escaped_ = true;
        } else if (c == '"') {
          in_string_ = false;
          done_ = depth_ == 0;
        }
      } else if (c == '"') {
        in_string_ = true;
      } else if (c == '{' || c == '[') {
        if (scalar_ && depth_ == 0) break;
        ++depth_;
      } else if (c == '}' || c == ']') {
        if (scalar_ && depth_ == 0) break;  // that of the call
        done_ = --depth_ <= 0;
      } else if (depth_ == 0) {
        if (scalar_ && behind_.find(c) != std::string::npos) break;
        scalar_ = true;
      }
    }
    done_ = done_ || i < text.size();
    out += text.substr(0, i);
    return i;
  }

 private:
  const std::string behind_;
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false, scalar_ = false;
};

// Parameters between marks, one at a time.
class ParameterArguments : public CallArguments {
 public:
  ParameterArguments(const ArgumentStyle& style, bool on_lines, const json::Value& parameters)
      : style_(style), on_lines_(on_lines), parameters_(parameters) {}

  size_t Feed(std::string_view text, bool at_end, std::string& out) override {
    size_t taken = 0;
    while (!done_) {
      const size_t spaces = text.find_first_not_of(kBlanks, taken);
      if (spaces == std::string_view::npos) return taken;
      const std::string_view rest = text.substr(spaces);
      if (!begun_ && (rest.size() >= style_.before.size() || at_end)) Begin(out);
      if (rest.starts_with(style_.before)) {
        const size_t length = Parameter(rest, out);
        if (length == 0) return taken;
        taken = spaces + length;
        scanned_ = 0;
        continue;
      }
      if (!at_end && style_.before.starts_with(rest)) return taken;
      Begin(out);
      taken = spaces;
      out += '}';
      done_ = true;
    }
    return taken;
  }

 private:
  void Begin(std::string& out) {
    if (!begun_) out += '{';
    begun_ = true;
  }

  // The parameter at the front: its length, 0 where its end has not come.
  size_t Parameter(std::string_view text, std::string& out) {
    const size_t key_begin = style_.before.size();
    const size_t key_end = text.find(style_.after_key, key_begin);
    if (key_end == std::string_view::npos) return 0;
    size_t at = key_end + style_.after_key.size();
    std::string_view type;
    const bool typed = style_.marks == StyleMarks::kIsString || style_.marks == StyleMarks::kKimi;
    if (typed) {
      const std::string_view close = style_.marks == StyleMarks::kKimi ? "\"<|sep|>" : "\">";
      const size_t end = text.find(close, at);
      if (end == std::string_view::npos) return 0;
      type = text.substr(at, end - at);
      at = end + close.size();
    }
    if (!style_.value_open.empty()) {
      const size_t open = text.find(style_.value_open, at);
      if (open == std::string_view::npos) return 0;
      at = open + style_.value_open.size();
    }
    std::string_view value;
    const size_t length = Value(text, at, value);
    if (length == 0) return 0;
    std::string key(text.substr(key_begin, key_end - key_begin));
    if (style_.marks == StyleMarks::kKimi) key = WithoutEntities(key);
    if (std::exchange(comma_, true)) out += ',';
    out += json::Quote(key);
    out += ':';
    out += cdata_ || type == "true" || type == "string" ? json::Quote(value)
           : typed                                      ? Typed(value)
                                                        : Untyped(key, value);
    return length;
  }

  // The value that begins at `at`, and how many bytes of the text it takes with its end.
  size_t Value(std::string_view text, size_t at, std::string_view& value) {
    const std::string_view rest = text.substr(at);
    cdata_ = style_.marks == StyleMarks::kCdata && rest.starts_with(kCdataOpen);
    if (style_.marks == StyleMarks::kCdata && !cdata_ && kCdataOpen.starts_with(rest)) return 0;
    const std::string end = (cdata_ ? std::string(kCdataClose) : "") + std::string(style_.end);
    if (cdata_) at += kCdataOpen.size();
    const size_t from = scanned_ > at + end.size() ? scanned_ - end.size() : at;
    const size_t found = text.find(end, from);
    if (found == std::string_view::npos) {
      scanned_ = text.size();
      return 0;
    }
    value = text.substr(at, found - at);
    return found + end.size();
  }

  static std::string Typed(std::string_view value) {
    const Result<json::Value> parsed = json::Parse(value);
    return parsed.ok() ? json::Dump(*parsed) : json::Quote(value);
  }

  std::string Untyped(const std::string& key, std::string_view value) const {
    if (on_lines_ && value.starts_with('\n')) value.remove_prefix(1);
    if (on_lines_ && value.ends_with('\n')) value.remove_suffix(1);
    const json::Value* schema = ParameterSchema(parameters_, &parameters_, key);
    if (!TypesOf(parameters_, schema).string && !json::Parse(value).ok()) {
      if (std::optional<std::string> literal = PythonLiteral(value)) return *std::move(literal);
    }
    return ParameterJson(parameters_, schema, value);
  }

  // Some templates write lists and objects as Python prints them: ['x', None].
  static std::optional<std::string> PythonLiteral(std::string_view value);

  static std::string WithoutEntities(std::string_view key) {
    std::string out;
    while (!key.empty()) {
      const bool amp = key.starts_with("&amp;"), quote = key.starts_with("&quot;");
      out += amp ? '&' : quote ? '"' : key[0];
      key.remove_prefix(amp ? 5 : quote ? 6 : 1);
    }
    return out;
  }

  const ArgumentStyle& style_;
  const bool on_lines_;
  const json::Value& parameters_;
  bool begun_ = false, comma_ = false, cdata_ = false;
  size_t scanned_ = 0;  // bytes of the parameter at the front in which no end begins
};

// Elements in elements, whose types only the schema tells: read when the call has ended.
class ElementArguments : public CallArguments {
 public:
  ElementArguments(std::string_view mark, std::string_view close, const json::Value& parameters)
      : mark_(mark), close_(close), parameters_(parameters) {}

  size_t Feed(std::string_view text, bool at_end, std::string& out) override {
    const size_t from = scanned_ > close_.size() ? scanned_ - close_.size() : 0;
    const size_t end = text.find(close_, from);
    if (end == std::string_view::npos && !at_end) {
      scanned_ = text.size();
      return 0;
    }
    rest_ = text.substr(0, end);
    const size_t taken = rest_.size();
    out += Members(&parameters_, false, 0);
    done_ = true;
    return taken;
  }

 private:
  static constexpr int kMostDepth = 64;

  bool AtElement() const {
    return rest_.starts_with(mark_) && rest_.substr(mark_.size()).starts_with('<') &&
           !rest_.substr(mark_.size()).starts_with("</");
  }
  void SkipBlanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size()));
  }

  // Elements one after another, as an object or a list.
  std::string Members(const json::Value* schema, bool list, int depth) {
    std::string out = list ? "[" : "{";
    for (SkipBlanks(); AtElement() && depth < kMostDepth; SkipBlanks()) {
      const size_t begin = mark_.size() + 1;
      const size_t name_end = rest_.find('>', begin);
      if (name_end == std::string_view::npos) break;
      const std::string name(rest_.substr(begin, name_end - begin));
      rest_.remove_prefix(name_end + 1);
      if (out.size() > 1) out += ',';
      if (!list) out += json::Quote(name) + ":";
      out += Element(
          list ? ItemSchema(parameters_, schema) : ParameterSchema(parameters_, schema, name),
          depth + 1);
      const std::string close = std::string(mark_) + "</" + name + ">";
      SkipTo(close);
    }
    return out += list ? ']' : '}';
  }

  void SkipTo(std::string_view close) {
    const size_t at = rest_.find(close);
    rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at + close.size());
  }

  std::string Element(const json::Value* schema, int depth) {
    const TypeSet types = TypesOf(parameters_, schema);
    const std::string_view before = rest_;
    SkipBlanks();
    if (AtElement()) {
      const bool item = rest_.substr(mark_.size()).starts_with("<item>");
      return Members(schema, types.array && (!types.object || item), depth);
    }
    rest_ = before;
    const std::string_view text = rest_.substr(0, rest_.find(mark_));
    if (text.empty() && !types.string) {
      return types.array ? "[]" : types.object ? "{}" : "null";
    }
    return ParameterJson(parameters_, schema, text);
  }

  const std::string_view mark_, close_;
  const json::Value& parameters_;
  size_t scanned_ = 0;
  std::string_view rest_;
};

// What Gemma's notation and Python's calls share: brackets, commas, bare words.
class NestedArguments : public CallArguments {
 public:
  size_t Feed(std::string_view text, bool at_end, std::string& out) override {
    size_t i = 0;
    while (i < text.size() && !done_) {
      const size_t taken = in_string_ ? String(text.substr(i), at_end, out)
                           : in_word_ ? Word(text.substr(i), at_end, out)
                                      : Between(text.substr(i), at_end, out);
      if (taken == 0) break;
      i += taken == kStay ? 0 : taken;
    }
    return i;
  }

 protected:
  static constexpr size_t kStay = SIZE_MAX;  // the state has changed, nothing is taken

  // Outside of strings and words.
  virtual size_t Between(std::string_view text, bool at_end, std::string& out) = 0;
  virtual size_t String(std::string_view text, bool at_end, std::string& out) = 0;
  virtual char KeyEnd() const = 0;

  // A key or a bare value, up to the character that ends it.
  size_t Word(std::string_view text, bool at_end, std::string& out) {
    const std::string ends = key_ ? std::string(1, KeyEnd()) : ",])}:" + std::string(kBlanks);
    const size_t end = text.find_first_of(ends);
    word_ += text.substr(0, end);
    if (end == std::string_view::npos && !at_end) return text.size();
    in_word_ = false;
    const bool key = std::exchange(key_, false);
    const size_t length = std::min(end, text.size());
    if (key) {
      out += json::Quote(Trimmed(word_)) + ":";
      return std::min(length + 1, text.size());
    }
    out += end < text.size() && text[end] == ':' ? json::Quote(word_) : WordJson(word_);
    return length == 0 ? kStay : length;
  }

  // Its first character is taken whatever it is, so every step takes something.
  size_t BeginWord(bool key, char first, std::string& out) {
    Comma(out);
    word_ = first;
    in_word_ = true;
    key_ = key;
    return 1;
  }
  // A comma goes out with what follows, so none stands before a bracket.
  void Comma(std::string& out) {
    if (std::exchange(comma_, false)) out += ',';
  }
  void Open(char close, std::string& out) {
    Comma(out);
    out += close == '}' ? '{' : '[';
    closes_ += close;
  }
  void Close(std::string& out) {
    comma_ = false;
    if (!closes_.empty()) {
      out += closes_.back();
      closes_.pop_back();
    }
    done_ = closes_.empty();
  }
  size_t BeginString(size_t length, std::string& out) {
    Comma(out);
    out += '"';
    in_string_ = true;
    return length;
  }
  size_t EndString(size_t length, std::string& out) {
    out += '"';
    in_string_ = false;
    return length;
  }

  std::string closes_;  // of the brackets that are open
  bool comma_ = false;

 private:
  bool in_string_ = false, in_word_ = false, key_ = false;
  std::string word_;
};

// {key:<|"|>text<|"|>,other:{...}}; quotes of JSON are understood as well.
class GemmaArguments : public NestedArguments {
 private:
  char KeyEnd() const override { return ':'; }

  size_t Between(std::string_view text, bool at_end, std::string& out) override {
    const char c = text[0];
    if (kBlanks.find(c) != std::string_view::npos) return 1;
    if (text.starts_with(kGemmaQuote)) {
      json_quotes_ = value_ = false;
      return BeginString(kGemmaQuote.size(), out);
    }
    if (kGemmaQuote.starts_with(text) && !at_end) return 0;
    const bool in_object = !closes_.empty() && closes_.back() == '}';
    switch (c) {
      case '{':
      case '[':
        Open(c == '{' ? '}' : ']', out);
        value_ = false;
        return 1;
      case '}':
      case ']':
        Close(out);
        return 1;
      case ',':
        comma_ = true;
        value_ = false;
        return 1;
      case ':':
        out += ':';
        value_ = true;
        return 1;
      case '"':
        json_quotes_ = true;
        return BeginString(1, out);
      default: {
        const bool key = in_object && !value_;
        value_ = true;
        return BeginWord(key, c, out);
      }
    }
  }

  size_t String(std::string_view text, bool at_end, std::string& out) override {
    if (json_quotes_) {
      if (text[0] == '"') return EndString(1, out);
      if (text[0] != '\\') {
        const size_t end = std::min(text.find_first_of("\"\\"), text.size());
        out += InsideQuotes(text.substr(0, end));
        return end;
      }
      if (text.size() < 2) return 0;
      out += text.substr(0, 2);
      return 2;
    }
    const size_t end = text.find(kGemmaQuote);
    const size_t held =
        end != std::string_view::npos || at_end ? 0 : PartialAtEnd(text, kGemmaQuote);
    const size_t length = std::min(end, text.size() - held);
    out += InsideQuotes(text.substr(0, length));
    if (end == std::string_view::npos) return length;
    return EndString(length + kGemmaQuote.size(), out);
  }

  bool json_quotes_ = false;
  bool value_ = false;  // behind a key
};

// Behind the parenthesis that begins a call: key="text", other=[1, None]
class PythonArguments : public NestedArguments {
 private:
  char KeyEnd() const override { return '='; }

  size_t Between(std::string_view text, bool at_end, std::string& out) override {
    if (closes_.empty()) Open('}', out);
    const char c = text[0];
    const bool outermost = closes_.size() == 1;
    if (kBlanks.find(c) != std::string_view::npos) return 1;
    switch (c) {
      case '"':
      case '\'': {
        if (text.size() < 3 && !at_end && text.find_first_not_of(c) == std::string_view::npos)
          return 0;
        const bool thrice = text.size() > 2 && text[1] == c && text[2] == c;
        quote_ = std::string(thrice ? 3 : 1, c);
        value_ = false;
        return BeginString(quote_.size(), out);
      }
      case '{':
      case '[':
      case '(':
        Open(c == '{' ? '}' : ']', out);
        value_ = false;
        return 1;
      case ')':
        if (outermost) {
          Close(out);
          return kStay;  // that of the call
        }
        [[fallthrough]];
      case '}':
      case ']':
        Close(out);
        return 1;
      case ',':
        comma_ = true;
        value_ = false;
        return 1;
      case ':':
        out += ':';
        return 1;
      default: {
        const bool key = outermost && !value_;
        value_ = key;
        return BeginWord(key, c, out);
      }
    }
  }

  size_t String(std::string_view text, bool at_end, std::string& out) override {
    if (text.starts_with(quote_)) return EndString(quote_.size(), out);
    if (text[0] == quote_[0]) {
      if (quote_.starts_with(text) && !at_end) return 0;
      out += InsideQuotes(text.substr(0, 1));
      return 1;
    }
    if (text[0] != '\\') {
      const size_t end = std::min(text.find_first_of(quote_.substr(0, 1) + "\\"), text.size());
      out += InsideQuotes(text.substr(0, end));
      return end;
    }
    std::string plain;
    const size_t length = Escape(text, at_end, plain);
    out += InsideQuotes(plain);
    return length;
  }

  // Those of Python, and the slash of JSON.
  static size_t Escape(std::string_view text, bool at_end, std::string& out) {
    if (text.size() < 2) return 0;
    const char c = text[1];
    if (c == '\'') {
      out += c;
      return 2;
    }
    if (c == '\n') return 2;
    const size_t digits = c == 'x' ? 2 : c == 'U' ? 8 : 0;
    if (digits > 0) {
      if (text.size() < 2 + digits && !at_end) return 0;
      const std::optional<uint32_t> code = HexDigits(text.substr(2), digits);
      if (code && *code <= 0x10FFFF && (*code < 0xD800 || *code > 0xDFFF)) {
        AppendUtf8(*code, out);
        return 2 + digits;
      }
    }
    if (std::string_view("nrtbfu\"\\/").find(c) != std::string_view::npos)
      return UnescapeJson(text, at_end, out);
    out += '\\';
    return 1;
  }

  std::string quote_;
  bool value_ = false;  // behind the key of an argument
};

std::optional<std::string> ParameterArguments::PythonLiteral(std::string_view value) {
  PythonArguments arguments;
  std::string out;
  arguments.Feed("v=" + std::string(value) + ")", true, out);
  const Result<json::Value> parsed = json::Parse(out);
  if (!arguments.done() || !parsed.ok() || parsed->members.size() != 1) return std::nullopt;
  return json::Dump(parsed->members[0].second);
}

}  // namespace

size_t UnescapeJson(std::string_view text, bool at_end, std::string& out) {
  if (text.size() < 2) return 0;
  const char c = text[1];
  static constexpr std::string_view kFrom = "nrtbf", kTo = "\n\r\t\b\f";
  if (const size_t i = kFrom.find(c); i != std::string_view::npos) {
    out += kTo[i];
    return 2;
  }
  if (c != 'u') {
    out += c;
    return 2;
  }
  if (text.size() < 6) return 0;
  const std::optional<uint32_t> high = HexDigits(text.substr(2), 4);
  if (!high) return 2;
  if (*high < 0xD800 || *high > 0xDFFF) {
    AppendUtf8(*high, out);
    return 6;
  }
  if (text.size() < 12 && !at_end) return 0;
  const std::optional<uint32_t> low =
      text.size() >= 12 && text.substr(6, 2) == "\\u" ? HexDigits(text.substr(8), 4) : std::nullopt;
  if (*high >= 0xDC00 || !low || *low < 0xDC00 || *low > 0xDFFF) {
    AppendUtf8(0xFFFD, out);
    return 6;
  }
  AppendUtf8(0x10000 + ((*high - 0xD800) << 10) + (*low - 0xDC00), out);
  return 12;
}

size_t PartialAtEnd(std::string_view text, std::string_view mark) {
  size_t most = std::min(text.size(), mark.empty() ? 0 : mark.size() - 1);
  for (; most > 0; --most) {
    if (text.ends_with(mark.substr(0, most))) return most;
  }
  return 0;
}

std::unique_ptr<CallArguments> CallArguments::Make(const ChatFormat& format,
                                                   const json::Value& parameters,
                                                   std::string_view behind) {
  const ArgumentStyle* style = ArgumentStyleOf(format.style);
  if (style == nullptr) return std::make_unique<JsonArguments>(behind);
  switch (style->marks) {
    case StyleMarks::kGemma:
      return std::make_unique<GemmaArguments>();
    case StyleMarks::kPython:
      return std::make_unique<PythonArguments>();
    case StyleMarks::kMinimaxM3:
      return std::make_unique<ElementArguments>(style->end, format.call_close[0], parameters);
    default:
      return std::make_unique<ParameterArguments>(*style, format.values_on_lines, parameters);
  }
}

}  // namespace pawl
