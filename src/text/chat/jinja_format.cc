// The method `format` of strings: the language of Python's string.Formatter, which the sandbox of
// Jinja puts in place of str.format.
//
//   "{} is {0.name!r}, {age:>4}, {{}}"
//
// A field has a name (empty: the next argument), then attributes and items, a conversion (!s, !r)
// and a description of its layout, in which fields may stand again. Of a safe string what is filled
// in is escaped. What is not supported is an error: the conversion !a, the types n and c, the
// options z and # of floats.
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/text/chat/jinja_program.h"
#include "src/text/chat/marked_text.h"

namespace pawl::jinja {
namespace {

using FormatKind = Value::Kind;

constexpr int64_t kWidestField = 1 << 20;

struct FieldLayout {
  std::string fill = " ";
  char align = 0;  // of < > ^ =
  char sign = '-';
  bool alternate = false, zero = false;
  int64_t width = 0;
  char grouping = 0;
  int precision = -1;
  char type = 0;
};

class Formatter {
 public:
  Formatter(Heap& heap, const Value& format, const Arguments& arguments)
      : heap_(heap), format_(*format.string), safe_(format.safe), arguments_(arguments) {}

  MarkedText Run() {
    MarkedText out;
    const std::string_view all = format_.bytes();
    size_t at = 0;
    while (at < all.size() && !heap_.failed()) {
      const size_t brace = std::min(all.find_first_of("{}", at), all.size());
      out.Append(format_, at, brace);
      if (brace == all.size()) break;
      if (brace + 1 < all.size() && all[brace] == all[brace + 1]) {
        out.Append(format_, brace, brace + 1);
        at = brace + 2;
        continue;
      }
      if (all[brace] == '}') return Wrong("has a '}' that closes nothing");
      const size_t end = EndOfField(all, brace + 1);
      if (end == std::string_view::npos) return Wrong("has a '{' that is not closed");
      out.Append(Field(all.substr(brace + 1, end - brace - 1), true));
      at = end + 1;
    }
    return out;
  }

 private:
  MarkedText Wrong(const std::string& what, ErrorCode code = ErrorCode::kInvalid) {
    heap_.Fail(code, "format(): the text " + what);
    return {};
  }
  static size_t EndOfField(std::string_view all, size_t at) {
    for (int depth = 1; at < all.size(); ++at) {
      if (all[at] == '[' && depth == 1) {  // of an index: up to its bracket
        at = all.find(']', at);
        if (at == std::string_view::npos) return at;
      } else if (all[at] == '{') {
        ++depth;
      } else if (all[at] == '}' && --depth == 0) {
        return at;
      }
    }
    return std::string_view::npos;
  }

  // Of a field's text between its braces. `nests`: its layout may have fields.
  MarkedText Field(std::string_view field, bool nests) {
    size_t name_end = 0;
    while (name_end < field.size() && field[name_end] != '!' && field[name_end] != ':') {
      if (field[name_end] == '[') name_end = std::min(field.find(']', name_end), field.size() - 1);
      ++name_end;
    }
    Value value = ValueOf(field.substr(0, name_end));
    std::string_view rest = field.substr(name_end);
    if (rest.starts_with('!')) {
      if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':')) {
        return Wrong("has a conversion that is not closed");
      }
      if (rest[1] != 's' && rest[1] != 'r') {
        return Wrong("has the conversion !" + std::string(1, rest[1]) + "; there are !s and !r",
                     ErrorCode::kUnsupported);
      }
      value = rest[1] == 's' ? heap_.String(ToText(heap_, value)) : ReprOf(value);
      rest.remove_prefix(2);
    }
    if (rest.starts_with(':')) rest.remove_prefix(1);
    if (heap_.failed()) return {};
    std::string layout(rest);
    if (layout.find_first_of("{}") != std::string::npos) {
      if (!nests) return Wrong("has fields in the layout of a field in a layout");
      layout = Nested(layout);
    }
    if (heap_.failed()) return {};
    const MarkedText text = Laid(value, layout);
    // The layout of a safe string would cut entities apart: markupsafe refuses it.
    if (value.is_string() && value.safe && safe_ && !layout.empty()) {
      return Wrong("has a layout for a safe string");
    }
    const bool escapes = safe_ && !(value.is_string() && value.safe);
    if (!heap_.SpendBytes(text.size())) return {};
    return escapes ? EscapeHtml(text) : text;
  }

  std::string Nested(const std::string& layout) {
    std::string out;
    for (size_t at = 0; at < layout.size() && !heap_.failed(); ++at) {
      if (layout[at] != '{') {
        out += layout[at];
        continue;
      }
      const size_t end = EndOfField(layout, at + 1);
      if (end == std::string::npos) {
        Wrong("has a '{' that is not closed");
        break;
      }
      out += Field(std::string_view(layout).substr(at + 1, end - at - 1), false).bytes();
      at = end;
    }
    return out;
  }

  Value ReprOf(const Value& value) {
    const MarkedText list = ToText(heap_, heap_.NewList({value}));
    return heap_.failed() ? Value() : heap_.String(list.Slice(1, list.size() - 1));
  }

  Value ValueOf(std::string_view name) {
    const size_t first_end = std::min(name.find_first_of(".["), name.size());
    Value value = Argument(std::string(name.substr(0, first_end)));
    for (size_t at = first_end; at < name.size() && !heap_.failed();) {
      if (name[at] == '.') {
        const size_t end = std::min(name.find_first_of(".[", at + 1), name.size());
        if (end == at + 1) break;
        value = Attribute(heap_, value, name.substr(at + 1, end - at - 1));
        at = end;
        continue;
      }
      const size_t close = name[at] == '[' ? name.find(']', at) : std::string_view::npos;
      if (close == std::string_view::npos || close == at + 1) {
        Wrong("has the field " + json::Quote(name) + ", which is no name");
        return {};
      }
      const std::string key(name.substr(at + 1, close - at - 1));
      int64_t index = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
      const bool number = error == std::errc() && end == key.data() + key.size() && key[0] != '-';
      value = Item(heap_, value, number ? Value::Integer(index) : heap_.String(key));
      at = close + 1;
    }
    if (!name.empty() && name.back() == '.') Wrong("has an empty attribute");
    return value;
  }

  Value Argument(const std::string& name) {
    const bool number = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    if (name.empty() || number) {
      (name.empty() ? counted_ : numbered_) = true;
      if (counted_ && numbered_) {
        Wrong("has fields with and without numbers");
        return {};
      }
      const size_t index = name.empty()      ? next_++
                           : name.size() > 9 ? arguments_.count
                                             : static_cast<size_t>(std::stoul(name));
      if (index < arguments_.count) return arguments_.positional[index];
      Wrong("has a field for argument " + std::to_string(index) + ", and there are " +
            std::to_string(arguments_.count));
      return {};
    }
    for (size_t i = 0; i < arguments_.names->size(); ++i) {
      if ((*arguments_.names)[i] == name) return arguments_.named[i];
    }
    Wrong("has the field " + json::Quote(name) + ", which no argument is called");
    return {};
  }

  // ---- The layout ----

  std::optional<FieldLayout> ReadLayout(const std::string& text) {
    FieldLayout out;
    std::string_view rest = text;
    const auto aligns = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
    bool fill_given = false;
    const size_t first = rest.empty() ? 0 : static_cast<size_t>(DecodeUtf8(rest).length);
    if (rest.size() > first && aligns(rest[first])) {
      out.fill = rest.substr(0, first);
      fill_given = true;
      out.align = rest[first];
      rest.remove_prefix(first + 1);
    } else if (!rest.empty() && aligns(rest[0])) {
      out.align = rest[0];
      rest.remove_prefix(1);
    }
    const auto take = [&](std::string_view of) {
      if (rest.empty() || of.find(rest[0]) == std::string_view::npos) return char{0};
      const char c = rest[0];
      rest.remove_prefix(1);
      return c;
    };
    const auto digits = [&]() -> int64_t {
      int64_t value = -1;
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
      if (rest.empty() || rest[0] < '0' || rest[0] > '9') return -1;
      rest.remove_prefix(static_cast<size_t>(end - rest.data()));
      return error == std::errc() ? value : kWidestField + 1;
    };
    if (const char sign = take("+- ")) out.sign = sign;
    out.alternate = take("#") != 0;
    // A zero before the width fills numbers behind their sign.
    if (!fill_given && rest.starts_with('0')) {
      out.fill = "0";
      out.zero = true;
    }
    if (const int64_t width = digits(); width >= 0) out.width = width;
    out.grouping = take(",_");
    if (take(".") != 0) {
      const int64_t precision = digits();
      if (precision < 0) return Bad(text, ErrorCode::kInvalid);
      if (precision > kWidestField) return Bad(text, ErrorCode::kLimit);
      out.precision = static_cast<int>(precision);
    }
    out.type = take("sdboxXeEfFgG%nc");
    if (!rest.empty()) return Bad(text, ErrorCode::kInvalid);
    if (out.width > kWidestField) return Bad(text, ErrorCode::kLimit);
    if (out.type == 'n' || out.type == 'c') return Bad(text, ErrorCode::kUnsupported);
    return out;
  }
  std::optional<FieldLayout> Bad(const std::string& layout, ErrorCode code) {
    Wrong("has the layout " + json::Quote(layout.substr(0, 60)) + ", which is " +
              (code == ErrorCode::kInvalid ? "wrong here"
               : code == ErrorCode::kLimit ? "too wide"
                                           : "not supported"),
          code);
    return std::nullopt;
  }

  MarkedText Laid(const Value& value, const std::string& layout) {
    if (layout.empty()) return ToText(heap_, value);
    std::optional<FieldLayout> read = ReadLayout(layout);
    if (!read) return {};
    FieldLayout& how = *read;
    if (value.is_string()) {
      const bool good = (how.type == 0 || how.type == 's') && how.align != '=' && how.sign == '-' &&
                        layout.find('-') == std::string::npos && !how.alternate &&
                        how.grouping == 0;
      if (!good) return Bad(layout, ErrorCode::kInvalid), MarkedText();
      const std::string_view all = value.string->bytes();
      const size_t size =
          how.precision < 0 ? all.size() : ByteOfCodepoint(all, static_cast<size_t>(how.precision));
      if (how.align == 0) how.align = '<';
      return Padded(MarkedText(), value.string->Slice(0, size), how);
    }
    const std::string_view floats = "eEfFgG%";
    const bool as_float = value.is(FormatKind::kFloat) ||
                          (how.type != 0 && floats.find(how.type) != std::string_view::npos);
    if (value.is_integer() && !as_float) return Whole(value.as_integer(), layout, how);
    if (value.is_integer() || value.is(FormatKind::kFloat)) {
      return Real(value.as_real(), layout, how);
    }
    heap_.Fail("format(): " + KindName(value) + " takes no layout");
    return {};
  }

  // Digits in groups from the right.
  static std::string Grouped(const std::string& digits, char separator, size_t group) {
    if (separator == 0) return digits;
    std::string out;
    for (size_t i = 0; i < digits.size(); ++i) {
      if (i > 0 && (digits.size() - i) % group == 0) out += separator;
      out += digits[i];
    }
    return out;
  }

  MarkedText Number(bool negative, const std::string& prefix, const std::string& digits,
                    const std::string& layout, FieldLayout& how) {
    const std::string sign = negative ? "-" : how.sign == '-' ? "" : std::string(1, how.sign);
    if (how.zero && how.align == 0) how.align = '=';
    if (how.fill == "0" && how.align == '=' && how.grouping != 0 && how.width > 0) {
      return Bad(layout, ErrorCode::kUnsupported), MarkedText();
    }
    if (how.align == 0) how.align = '>';
    if (how.align != '=') return Padded(MarkedText(), MarkedText(sign + prefix + digits), how);
    return Padded(MarkedText(sign + prefix), MarkedText(digits), how);
  }

  MarkedText Whole(int64_t value, const std::string& layout, FieldLayout& how) {
    const char type = how.type == 0 ? 'd' : how.type;
    const bool decimal = type == 'd';
    if (type == 's' || how.precision >= 0 || (how.grouping == ',' && !decimal)) {
      return Bad(layout, ErrorCode::kInvalid), MarkedText();
    }
    const int base = type == 'b' ? 2 : type == 'o' ? 8 : decimal ? 10 : 16;
    const bool negative = value < 0;
    const uint64_t size =
        negative ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
    std::array<char, 72> buffer{};
    char* const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), size, base).ptr;
    std::string digits(buffer.data(), end);
    if (type == 'X') {
      for (char& c : digits) c = c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c;
    }
    digits = Grouped(digits, how.grouping, decimal ? 3 : 4);
    const std::string prefix = !how.alternate || decimal ? "" : "0" + std::string(1, type);
    return Number(negative, prefix, digits, layout, how);
  }

  MarkedText Real(double value, const std::string& layout, FieldLayout& how) {
    if (how.type == 's' || how.type == 'd' || how.type == 'b' || how.type == 'o' ||
        how.type == 'x' || how.type == 'X') {
      return Bad(layout, ErrorCode::kInvalid), MarkedText();
    }
    constexpr int kMostDigits = 400;
    const bool plain = how.type == 0;
    if (how.alternate || how.precision > kMostDigits || (plain && how.precision >= 0)) {
      return Bad(layout, ErrorCode::kUnsupported), MarkedText();
    }
    const bool negative = std::signbit(value) && !std::isnan(value);
    const double size = negative ? -value : value;
    std::string digits;
    if (plain) {
      digits = FloatRepr(size);
    } else if (!std::isfinite(size)) {
      const bool upper = how.type == 'E' || how.type == 'F' || how.type == 'G';
      digits = std::isnan(size) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf");
      if (how.type == '%') digits += '%';
    } else {
      const char type = how.type == '%' ? 'f' : how.type;
      const char form[] = {'%', '.', '*', type, 0};
      const double shown = how.type == '%' ? size * 100 : size;
      const int precision = how.precision < 0 ? 6 : how.precision;
      std::array<char, 1024> buffer{};
      const int length = std::snprintf(buffer.data(), buffer.size(), form, precision, shown);
      digits.assign(buffer.data(), static_cast<size_t>(length));
      if (how.type == '%') digits += '%';
    }
    if (how.grouping != 0) {
      const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
      digits = Grouped(digits.substr(0, whole), how.grouping, 3) + digits.substr(whole);
    }
    return Number(negative, "", digits, layout, how);
  }

  // `front` stands before the filling where the alignment is '='.
  MarkedText Padded(const MarkedText& front, const MarkedText& text, const FieldLayout& how) {
    const auto size =
        static_cast<int64_t>(CountCodepoints(front.bytes()) + CountCodepoints(text.bytes()));
    const int64_t missing = std::max<int64_t>(how.width - size, 0);
    if (!heap_.SpendBytes(static_cast<size_t>(missing))) return {};
    const int64_t left = how.align == '<' ? 0 : how.align == '^' ? missing / 2 : missing;
    MarkedText out;
    out.Append(front);
    for (int64_t i = 0; i < left; ++i) out.Append(how.fill);
    out.Append(text);
    for (int64_t i = left; i < missing; ++i) out.Append(how.fill);
    return out;
  }

  Heap& heap_;
  const MarkedText& format_;
  const bool safe_;
  const Arguments& arguments_;
  size_t next_ = 0;
  bool counted_ = false, numbered_ = false;
};

}  // namespace

Value FormatMethod(Heap& heap, const Value& format, const Arguments& arguments) {
  MarkedText text = Formatter(heap, format, arguments).Run();
  return heap.failed() ? Value() : heap.String(std::move(text));
}

}  // namespace pawl::jinja
