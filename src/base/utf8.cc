// UTF-8: the lead byte gives the length, the rest is checked against the shortest form, surrogates
// and the end of Unicode. What is malformed counts as one byte, so every text can be walked
// through.
//
// Properties: all of them share one array of ranges; a property is an offset and a count into it,
// found by binary search on its loose name (UAX #44, LM3). The tables are made by
// scripts/gen_unicode_tables.py.
#include "src/base/utf8.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

namespace pawl {

DecodedCodepoint DecodeUtf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  int length;
  char32_t value;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
    value = lead & 0x1F;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    value = lead & 0x0F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    value = lead & 0x07;
  } else {
    return {kReplacement, 1, false};
  }
  if (text.size() < static_cast<size_t>(length)) return {kReplacement, 1, false};
  for (int i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {kReplacement, 1, false};
    value = (value << 6) | (byte(i) & 0x3F);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (overlong || surrogate || value > kMaxCodepoint) return {kReplacement, 1, false};
  return {value, length, true};
}

void AppendUtf8(char32_t c, std::string& out) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (c >> 6)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (c >> 12)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out.push_back(static_cast<char>(0xF0 | (c >> 18)));
    out.push_back(static_cast<char>(0x80 | ((c >> 12) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

std::string EncodeCodepoints(std::u32string_view codepoints) {
  std::string out;
  for (const char32_t c : codepoints) AppendUtf8(c, out);
  return out;
}

std::u32string DecodeCodepoints(std::string_view utf8) {
  std::u32string out;
  for (size_t i = 0; i < utf8.size();) {
    const DecodedCodepoint d = DecodeUtf8(utf8.substr(i));
    out.push_back(d.codepoint);
    i += static_cast<size_t>(d.length);
  }
  return out;
}

size_t FindInvalidUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const DecodedCodepoint d = DecodeUtf8(text.substr(i));
    if (!d.valid) return i;
    i += static_cast<size_t>(d.length);
  }
  return std::string_view::npos;
}

Status CheckUtf8(std::string_view text) {
  const size_t bad = FindInvalidUtf8(text);
  if (bad == std::string_view::npos) return {};
  return Error{ErrorCode::kInvalid, "the text is not valid UTF-8", "byte " + std::to_string(bad)};
}

size_t CompleteUtf8Prefix(std::string_view text) {
  // Only the last three bytes can belong to a sequence that has not ended.
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const unsigned char c = static_cast<unsigned char>(text[text.size() - back]);
    if (c < 0x80) break;
    if (c >= 0xC2 && c <= 0xF4) {
      const size_t need = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
      return need > back ? text.size() - back : text.size();
    }
  }
  return text.size();
}

namespace {

struct PropertyName {
  std::string_view name;
  uint16_t offset;
  uint16_t count;
};

#include "src/base/unicode_tables.inc"

// Longer than every name in the tables; a longer query cannot match and is not worth copying.
constexpr size_t kMaxName = 80;

}  // namespace

std::span<const CodepointRange> UnicodeProperty(std::string_view name) {
  if (name.size() > kMaxName) return {};
  std::string loose;
  for (const char c : name) {
    if (c == ' ' || c == '-' || c == '_') continue;
    loose.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  const auto* found = std::lower_bound(
      std::begin(kPropertyNames), std::end(kPropertyNames), std::string_view(loose),
      [](const PropertyName& entry, std::string_view key) { return entry.name < key; });
  if (found == std::end(kPropertyNames) || found->name != loose) return {};
  return std::span<const CodepointRange>(kPropertyRanges).subspan(found->offset, found->count);
}

std::span<const CaseFold> SimpleCaseFolds() { return kCaseFolds; }

char32_t SimpleFold(char32_t codepoint) {
  const auto* found =
      std::lower_bound(std::begin(kCaseFolds), std::end(kCaseFolds), codepoint,
                       [](const CaseFold& entry, char32_t key) { return entry.from < key; });
  return found != std::end(kCaseFolds) && found->from == codepoint ? found->to : codepoint;
}

}  // namespace pawl
