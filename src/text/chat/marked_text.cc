// Marks are ranges in order. Texts are only ever appended to, so a new mark either extends the last
// one or stands behind it, and a piece of another text is found by binary search.
#include "src/text/chat/marked_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "src/base/utf8.h"

namespace pawl {
namespace {

// The first range that ends after `at`.
std::vector<TextRange>::const_iterator After(const std::vector<TextRange>& ranges, size_t at) {
  return std::upper_bound(ranges.begin(), ranges.end(), at,
                          [](size_t key, const TextRange& range) { return key < range.end; });
}

}  // namespace

MarkedText MarkedText::Data(std::string text) {
  MarkedText out(std::move(text));
  out.Mark(0, out.size());
  return out;
}

void MarkedText::Mark(size_t begin, size_t end) {
  if (begin >= end) return;
  if (!data_.empty() && data_.back().end == begin) {
    data_.back().end = end;
  } else {
    data_.push_back({begin, end});
  }
}

void MarkedText::AppendData(std::string_view text) {
  const size_t begin = size();
  bytes_ += text;
  Mark(begin, size());
}

void MarkedText::Append(const MarkedText& other, size_t begin, size_t end) {
  end = std::min(end, other.size());
  if (begin >= end) return;
  const size_t shift = size();
  bytes_.append(other.bytes_, begin, end - begin);
  for (auto at = After(other.data_, begin); at != other.data_.end() && at->begin < end; ++at) {
    Mark(std::max(at->begin, begin) - begin + shift, std::min(at->end, end) - begin + shift);
  }
}

void MarkedText::AppendInPlaceOf(const MarkedText& other, size_t begin, size_t end,
                                 std::string_view text) {
  if (other.HasData(begin, end)) {
    AppendData(text);
  } else {
    Append(text);
  }
}

MarkedText MarkedText::Slice(size_t begin, size_t end) const {
  MarkedText out;
  out.Append(*this, begin, end);
  return out;
}

bool MarkedText::HasData(size_t begin, size_t end) const {
  const auto at = After(data_, begin);
  return at != data_.end() && at->begin < end;
}

}  // namespace pawl

namespace pawl::jinja {

// Strings are UTF-8 and positions are bytes inside; where Python counts, code points are counted.
// Whatever a function answers is put together from pieces of its arguments, so marks follow by
// themselves; a letter that changes its case stays data if it was.
//
// Case is mapped exactly for ASCII, and by Unicode's simple mappings up to the end of Cyrillic
// (U+052F). Letters beyond, and those whose mapping depends on the context or gives several
// letters, are not mapped: the caller gets an error instead of a text that Python would not have
// written.

namespace {

constexpr char kHex[] = "0123456789abcdef";

bool Has(std::string_view property, char32_t c) {
  const auto ranges = UnicodeProperty(property);
  const auto at =
      std::upper_bound(ranges.begin(), ranges.end(), c,
                       [](char32_t key, const CodepointRange& r) { return key < r.lo; });
  return at != ranges.begin() && c <= (at - 1)->hi;
}

// The last code point of a text that is not empty: where it begins.
size_t LastCodepoint(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && text.size() - at < 4 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80)
    --at;
  return at;
}

constexpr char32_t kMappedEnd = 0x530;
constexpr char32_t kNoMapping = 0xFFFFFFFF;

char32_t Lower(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  if (!Has("Changes_When_Lowercased", c)) return c;
  // I with a dot becomes two characters, Sigma depends on what follows.
  if (c >= kMappedEnd || c == 0x130 || c == 0x3A3) return kNoMapping;
  return SimpleFold(c);
}

// One letter; sharp s is the caller's.
char32_t Upper(char32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  if (!Has("Changes_When_Uppercased", c)) return c;
  if (c >= kMappedEnd || c == 0x149 || c == 0x1F0 || c == 0x390 || c == 0x3B0) return kNoMapping;
  if (c == 0x131) return 'I';
  const char32_t folded = SimpleFold(c);
  if (folded < 0x80) return folded - 32;  // the long s
  for (const CaseFold& fold : SimpleCaseFolds()) {
    if (fold.to == folded && fold.from != c && Has("Changes_When_Lowercased", fold.from))
      return fold.from;
  }
  return kNoMapping;
}

// Whether the upper case of a letter is not its title case: the digraphs.
bool HasTitleForm(char32_t c) { return (c >= 0x1C4 && c <= 0x1CC) || (c >= 0x1F1 && c <= 0x1F3); }

}  // namespace

bool IsSpace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
  return Has("White_Space", c);
}

size_t SpacesAtStart(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const DecodedCodepoint d = DecodeUtf8(text.substr(at));
    if (!IsSpace(d.codepoint)) break;
    at += static_cast<size_t>(d.length);
  }
  return at;
}

size_t SpacesAtEnd(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t last = LastCodepoint(rest);
    if (!IsSpace(DecodeUtf8(rest.substr(last)).codepoint)) break;
    rest = rest.substr(0, last);
  }
  return text.size() - rest.size();
}

size_t CountCodepoints(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

size_t ByteOfCodepoint(std::string_view text, size_t index) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) continue;
    if (index-- == 0) return at;
  }
  return at;
}

MarkedText Strip(const MarkedText& text, const MarkedText* set, bool left, bool right) {
  std::string_view rest = text.bytes();
  size_t begin = 0;
  if (set == nullptr) {
    if (left) begin = SpacesAtStart(rest);
    rest.remove_prefix(begin);
    if (right) rest.remove_suffix(SpacesAtEnd(rest));
    return text.Slice(begin, begin + rest.size());
  }
  const std::u32string wanted = DecodeCodepoints(set->bytes());
  const auto in_set = [&](size_t at) {
    return wanted.find(DecodeUtf8(rest.substr(at)).codepoint) != std::u32string::npos;
  };
  while (left && !rest.empty() && in_set(0)) {
    const auto length = static_cast<size_t>(DecodeUtf8(rest).length);
    rest.remove_prefix(length);
    begin += length;
  }
  while (right && !rest.empty() && in_set(LastCodepoint(rest))) {
    rest = rest.substr(0, LastCodepoint(rest));
  }
  return text.Slice(begin, begin + rest.size());
}

std::vector<MarkedText> Split(const MarkedText& text, const MarkedText* separator, int64_t most,
                              bool from_right) {
  std::vector<MarkedText> parts;
  std::string_view rest = text.bytes();
  size_t begin = 0;  // of `rest`
  const auto more = [&] { return most < 0 || static_cast<int64_t>(parts.size()) < most; };
  const auto take = [&](size_t from, size_t to) {
    parts.push_back(text.Slice(begin + from, begin + to));
  };
  if (!from_right) {
    for (;;) {
      if (separator == nullptr) {
        const size_t spaces = SpacesAtStart(rest);
        rest.remove_prefix(spaces);
        begin += spaces;
        if (rest.empty()) break;
        size_t end = 0;
        while (end < rest.size() && !IsSpace(DecodeUtf8(rest.substr(end)).codepoint)) {
          end += static_cast<size_t>(DecodeUtf8(rest.substr(end)).length);
        }
        if (!more()) end = rest.size();
        take(0, end);
        rest.remove_prefix(end);
        begin += end;
        continue;
      }
      const size_t at = more() ? rest.find(separator->bytes()) : std::string_view::npos;
      take(0, std::min(at, rest.size()));
      if (at == std::string_view::npos) break;
      rest.remove_prefix(at + separator->size());
      begin += at + separator->size();
    }
    return parts;
  }
  for (;;) {
    if (separator == nullptr) {
      rest.remove_suffix(SpacesAtEnd(rest));
      if (rest.empty()) break;
      size_t word = rest.size();
      while (word > 0) {
        const size_t last = LastCodepoint(rest.substr(0, word));
        if (IsSpace(DecodeUtf8(rest.substr(last)).codepoint)) break;
        word = last;
      }
      if (!more()) word = 0;
      take(word, rest.size());
      rest = rest.substr(0, word);
      continue;
    }
    const size_t at = more() ? rest.rfind(separator->bytes()) : std::string_view::npos;
    take(at == std::string_view::npos ? 0 : at + separator->size(), rest.size());
    if (at == std::string_view::npos) break;
    rest = rest.substr(0, at);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<MarkedText> SplitLines(const MarkedText& text, bool keep_ends) {
  std::vector<MarkedText> lines;
  const std::string_view all = text.bytes();
  size_t begin = 0;
  for (size_t at = 0; at < all.size();) {
    const DecodedCodepoint d = DecodeUtf8(all.substr(at));
    const char32_t c = d.codepoint;
    size_t next = at + static_cast<size_t>(d.length);
    const bool ends =
        (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (ends) {
      if (c == '\r' && next < all.size() && all[next] == '\n') ++next;
      lines.push_back(text.Slice(begin, keep_ends ? next : at));
      begin = next;
    }
    at = next;
  }
  if (begin < all.size()) lines.push_back(text.Slice(begin, all.size()));
  return lines;
}

MarkedText Replace(const MarkedText& text, const MarkedText& from, const MarkedText& to,
                   int64_t most) {
  MarkedText out;
  const std::string_view all = text.bytes();
  size_t done = 0;
  if (from.empty()) {
    while (most != 0) {
      out.Append(to);
      if (most > 0) --most;
      if (done >= all.size()) return out;
      const size_t next = done + static_cast<size_t>(DecodeUtf8(all.substr(done)).length);
      out.Append(text, done, next);
      done = next;
    }
  }
  while (most != 0 && !from.empty()) {
    const size_t at = all.find(from.bytes(), done);
    if (at == std::string_view::npos) break;
    out.Append(text, done, at);
    out.Append(to);
    done = at + from.size();
    if (most > 0) --most;
  }
  out.Append(text, done, all.size());
  return out;
}

std::optional<MarkedText> WithCase(const MarkedText& text, Case how) {
  MarkedText out;
  const std::string_view all = text.bytes();
  bool first = true;  // of a word; of the text
  for (size_t at = 0; at < all.size();) {
    const DecodedCodepoint d = DecodeUtf8(all.substr(at));
    const char32_t c = d.codepoint;
    const bool up = how == Case::kUpper || (how != Case::kLower && first);
    if (how == Case::kCapitalize) first = false;
    if (how == Case::kTitle) first = !Has("Cased", c);
    if (how == Case::kJinjaTitle) {
      first = IsSpace(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    }
    std::string mapped;
    if (up && how != Case::kUpper && HasTitleForm(c)) return std::nullopt;
    if (up && c == 0xDF) {
      mapped += how == Case::kUpper || how == Case::kJinjaTitle ? "SS" : "Ss";
    } else {
      const char32_t to = up ? Upper(c) : Lower(c);
      if (to == kNoMapping) return std::nullopt;
      AppendUtf8(to, mapped);
    }
    const size_t end = at + static_cast<size_t>(d.length);
    out.AppendInPlaceOf(text, at, end, mapped);
    at = end;
  }
  return out;
}

MarkedText EscapeHtml(const MarkedText& text) {
  const std::string_view all = text.bytes();
  MarkedText out;
  size_t copied = 0;
  for (size_t at = 0; at < all.size(); ++at) {
    const char c = all[at];
    const char* entity = c == '&'    ? "&amp;"
                         : c == '<'  ? "&lt;"
                         : c == '>'  ? "&gt;"
                         : c == '"'  ? "&#34;"
                         : c == '\'' ? "&#39;"
                                     : nullptr;
    if (entity == nullptr) continue;
    out.Append(text, copied, at);
    out.AppendInPlaceOf(text, at, at + 1, entity);
    copied = at + 1;
  }
  out.Append(text, copied, all.size());
  return out;
}

MarkedText Repr(const MarkedText& text) {
  const std::string_view all = text.bytes();
  const bool double_quotes =
      all.find('\'') != std::string_view::npos && all.find('"') == std::string_view::npos;
  const char quote = double_quotes ? '"' : '\'';
  MarkedText out(std::string(1, quote));
  for (size_t at = 0; at < all.size();) {
    const DecodedCodepoint d = DecodeUtf8(all.substr(at));
    const char32_t c = d.codepoint;
    const size_t end = at + static_cast<size_t>(d.length);
    std::string escaped;
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      escaped = std::string("\\") + static_cast<char>(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      escaped += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (c < 0x20 || c == 0x7F || (c >= 0x80 && (Has("C", c) || Has("Z", c)))) {
      const int digits = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;
      escaped += digits == 2 ? "\\x" : digits == 4 ? "\\u" : "\\U";
      for (int i = digits - 1; i >= 0; --i) escaped += kHex[c >> (4 * i) & 15];
    }
    if (escaped.empty()) {
      out.Append(text, at, end);
    } else {
      out.AppendInPlaceOf(text, at, end, escaped);
    }
    at = end;
  }
  out.Append(std::string_view(&quote, 1));
  return out;
}

std::string FloatRepr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string_view written(buffer, static_cast<size_t>(end - buffer));
  std::string out;
  if (written[0] == '-') {
    out = "-";
    written.remove_prefix(1);
  }
  const size_t e = written.find('e');
  std::string digits(written.substr(0, e));
  std::erase(digits, '.');
  int exponent = 0;
  const std::string_view power = written.substr(e + (written[e + 1] == '+' ? 2 : 1));
  std::from_chars(power.data(), power.data() + power.size(), exponent);
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (digits.size() > 1) out += "." + digits.substr(1);
    const std::string size = std::to_string(std::abs(exponent));
    return out + (exponent < 0 ? "e-" : "e+") + (size.size() < 2 ? "0" : "") + size;
  }
  if (exponent < 0) {
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  }
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

MarkedText JsonQuote(const MarkedText& text, bool ensure_ascii) {
  MarkedText out("\"");
  const std::string_view all = text.bytes();
  const auto unit = [](char32_t c) {
    std::string escaped = "\\u";
    for (int i = 3; i >= 0; --i) escaped += kHex[c >> (4 * i) & 15];
    return escaped;
  };
  size_t plain = 0;  // copied up to here
  for (size_t at = 0; at < all.size();) {
    const DecodedCodepoint d = DecodeUtf8(all.substr(at));
    const char32_t c = d.codepoint;
    const size_t end = at + static_cast<size_t>(d.length);
    std::string escaped;
    static constexpr std::string_view kNamed = "\"\\\n\r\t\b\f", kNames = "\"\\nrtbf";
    if (const size_t i = c < 0x80 ? kNamed.find(static_cast<char>(c)) : std::string_view::npos;
        i != std::string_view::npos) {
      escaped = std::string("\\") + kNames[i];
    } else if (c < 0x20 || (ensure_ascii && c >= 0x7F && c < 0x10000)) {
      escaped = unit(c);
    } else if (ensure_ascii && c >= 0x10000) {
      escaped = unit(0xD800 + ((c - 0x10000) >> 10)) + unit(0xDC00 + (c & 0x3FF));
    }
    if (!escaped.empty()) {
      out.Append(text, plain, at);
      out.AppendInPlaceOf(text, at, end, escaped);
      plain = end;
    }
    at = end;
  }
  out.Append(text, plain, all.size());
  out.Append("\"");
  return out;
}

}  // namespace pawl::jinja
