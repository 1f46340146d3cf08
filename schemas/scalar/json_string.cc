// RFC 8259 section 7. A code point may be written as itself (UTF-8, except '"', '\' and controls),
// as a short escape, or as one or two \uXXXX. Lone surrogates are refused: the value would be no
// Unicode text.
//
// After part of a code point, the rest may still choose among a range of code points; the position
// is live when some code point of that range leads to a live state. The part read is packed into
// one word:
//   bits 0-2 what, 3-5 digits or bytes (read so far / missing), 6-8 length of a UTF-8 sequence,
//   16-31 high surrogate, 32-63 value.
#include "schemas/scalar/json_string.h"

#include <algorithm>
#include <iterator>

#include "src/base/json.h"
#include "src/base/utf8.h"

namespace pawl::schema {
namespace {

enum What : uint64_t { kNothing, kBackslash, kHex, kLowBackslash, kLowU, kLowHex, kUtf8 };

struct Part {
  uint64_t what = kNothing;
  uint32_t digits = 0;  // kHex, kLowHex: digits read; kUtf8: bytes missing
  uint32_t length = 0;  // kUtf8: bytes of the sequence
  uint32_t high = 0;    // kLow*: high surrogate minus 0xD800
  uint32_t value = 0;   // what has been read of the code point or unit

  uint64_t Pack() const {
    return what | uint64_t{digits} << 3 | uint64_t{length} << 6 | uint64_t{high} << 16 |
           uint64_t{value} << 32;
  }
  static Part Unpack(uint64_t word) {
    return {word & 7, static_cast<uint32_t>(word >> 3) & 7, static_cast<uint32_t>(word >> 6) & 7,
            static_cast<uint32_t>(word >> 16) & 0xFFFF, static_cast<uint32_t>(word >> 32)};
  }
};

// In canonical spelling only these code points are written as \u00XX; with lower-case digits.
constexpr struct { uint32_t lo, hi; } kLongEscapes[] = {{0, 7}, {0xB, 0xB}, {0xE, 0x1F}};

bool IsLongEscape(uint32_t value) {
  return std::any_of(std::begin(kLongEscapes), std::end(kLongEscapes),
                     [value](const auto& range) { return range.lo <= value && value <= range.hi; });
}

bool LiveLongEscape(StringSearch& search, StringSearch::StateId state, uint32_t lo, uint32_t hi) {
  return std::any_of(std::begin(kLongEscapes), std::end(kLongEscapes), [&](const auto& range) {
    const uint32_t first = std::max(lo, range.lo), last = std::min(hi, range.hi);
    return first <= last && search.LiveWithin(state, first, last);
  });
}

// The least code point that takes so many bytes.
char32_t LeastOf(uint32_t length) { return length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000; }

// The code point of a short escape, 0 for none.
char32_t ShortEscape(uint8_t byte) {
  constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
  const size_t at = kNames.find(static_cast<char>(byte));
  return at == std::string_view::npos ? 0 : static_cast<char32_t>(kMeant[at]);
}

bool LiveUnits(StringSearch& search, StringSearch::StateId state, uint32_t lo, uint32_t hi) {
  if (search.LiveWithin(state, lo, hi)) return true;  // leaves surrogates out
  const uint32_t first = std::max<uint32_t>(lo, 0xD800), last = std::min<uint32_t>(hi, 0xDBFF);
  return first <= last && search.LiveWithin(state, 0x10000 + ((first - 0xD800) << 10),
                                            0x10000 + ((last - 0xD800) << 10) + 0x3FF);
}

// Whether some way to finish the code point is live.
bool LivePart(StringSearch& search, StringSearch::StateId state, const Part& part,
              StringSpelling spelling) {
  switch (part.what) {
    case kBackslash:
      if (!spelling.canonical) return LiveUnits(search, state, 0, 0xFFFF);
      return search.LiveWithin(state, 0, 0x1F) || search.LiveWithin(state, '"', '"') ||
             search.LiveWithin(state, '\\', '\\') ||
             (spelling.ascii && search.LiveWithin(state, 0x80, kMaxCodepoint));
    case kHex: {
      const uint32_t shift = 4 * (4 - part.digits);
      const uint32_t lo = part.value << shift, hi = lo | ((1u << shift) - 1);
      if (!spelling.canonical) return LiveUnits(search, state, lo, hi);
      return LiveLongEscape(search, state, lo, hi) ||
             (spelling.ascii && hi >= 0x80 && LiveUnits(search, state, std::max(lo, 0x80u), hi));
    }
    case kLowBackslash:
    case kLowU:
    case kLowHex: {
      const uint32_t shift = 4 * (4 - part.digits);
      const uint32_t lo = std::max<uint32_t>(part.value << shift, 0xDC00);
      const uint32_t hi = std::min<uint32_t>((part.value << shift) | ((1u << shift) - 1), 0xDFFF);
      if (lo > hi) return false;
      const char32_t base = 0x10000 + (part.high << 10);
      return search.LiveWithin(state, base + (lo - 0xDC00), base + (hi - 0xDC00));
    }
    case kUtf8: {
      if (part.length == 0) return search.Live(search.NextBeyondAscii(state));
      const uint32_t shift = 6 * part.digits;
      char32_t lo = part.value << shift, hi = (part.value << shift) | ((1u << shift) - 1);
      lo = std::max<char32_t>(lo, LeastOf(part.length));
      hi = std::min<char32_t>(hi, kMaxCodepoint);
      return lo <= hi && search.LiveWithin(state, lo, hi);
    }
    default:
      return false;
  }
}

// Where what is left of a UTF-8 sequence does not matter, neither does what was read of it: one
// part stands for all that miss the same number of bytes. Its length is 0.
Part Canonical(StringSearch& search, StringSearch::StateId state, const Part& part) {
  if (part.what != kUtf8 || part.length == 0) return part;
  const uint32_t shift = 6 * part.digits;
  const char32_t lo = part.value << shift, hi = lo | ((1u << shift) - 1);
  const char32_t least = LeastOf(part.length);
  const bool whole = lo >= least && hi <= kMaxCodepoint && (hi < 0xD800 || lo > 0xDFFF);
  if (!whole || search.NextBeyondAscii(state) == StringSearch::kNoState) return part;
  return {kUtf8, part.digits, 0, 0, 0};
}

StringStep EnterPart(StringSearch& search, StringPosition& position, const Part& part,
                     StringSpelling spelling) {
  if (!LivePart(search, position.state, part, spelling)) return StringStep::kDead;
  position.part = Canonical(search, position.state, part).Pack();
  return StringStep::kInside;
}

StringStep Finish(StringSearch& search, StringPosition& position, char32_t c) {
  const auto next = search.Next(position.state, c);
  if (!next) return StringStep::kDead;
  position = {*next, 0};
  return StringStep::kInside;
}

}  // namespace

StringStep StepString(StringSearch& search, StringPosition& position, uint8_t byte,
                      StringSpelling spelling) {
  if (position.part == 0) {
    if (byte == '"') return search.Accepts(position.state) ? StringStep::kEnd : StringStep::kDead;
    if (byte < 0x20) return StringStep::kDead;
    if (byte == '\\') return EnterPart(search, position, {kBackslash, 0, 0, 0, 0}, spelling);
    if (byte < 0x80) return Finish(search, position, byte);
    if (spelling.ascii || byte < 0xC2 || byte > 0xF4) return StringStep::kDead;
    const uint32_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    const uint32_t value = byte & (0x7Fu >> length);
    return EnterPart(search, position, {kUtf8, length - 1, length, 0, value}, spelling);
  }
  Part part = Part::Unpack(position.part);
  switch (part.what) {
    case kBackslash:
      if (byte == 'u') return EnterPart(search, position, {kHex, 0, 0, 0, 0}, spelling);
      if (spelling.canonical && byte == '/') return StringStep::kDead;
      return ShortEscape(byte) != 0 ? Finish(search, position, ShortEscape(byte))
                                    : StringStep::kDead;
    case kHex:
    case kLowHex: {
      const int digit = HexDigit(static_cast<char>(byte));
      if (digit < 0 || (spelling.canonical && byte >= 'A' && byte <= 'F')) return StringStep::kDead;
      part.value = part.value << 4 | static_cast<uint32_t>(digit);
      ++part.digits;
      if (part.digits < 4) return EnterPart(search, position, part, spelling);
      if (part.what == kLowHex) {
        if (part.value < 0xDC00 || part.value > 0xDFFF) return StringStep::kDead;
        return Finish(search, position, 0x10000 + (part.high << 10) + (part.value - 0xDC00));
      }
      if (spelling.canonical && !IsLongEscape(part.value) &&
          !(spelling.ascii && part.value >= 0x80)) {
        return StringStep::kDead;
      }
      if (part.value >= 0xD800 && part.value <= 0xDBFF) {
        return EnterPart(search, position, {kLowBackslash, 0, 0, part.value - 0xD800, 0}, spelling);
      }
      if (part.value >= 0xDC00 && part.value <= 0xDFFF) return StringStep::kDead;
      return Finish(search, position, part.value);
    }
    case kLowBackslash:
      return byte == '\\' ? EnterPart(search, position, {kLowU, 0, 0, part.high, 0}, spelling)
                          : StringStep::kDead;
    case kLowU:
      return byte == 'u' ? EnterPart(search, position, {kLowHex, 0, 0, part.high, 0}, spelling)
                         : StringStep::kDead;
    case kUtf8:
      if ((byte & 0xC0) != 0x80) return StringStep::kDead;
      part.value = part.value << 6 | (byte & 0x3F);
      --part.digits;
      if (part.length == 0) part.value = 0;
      if (part.digits > 0) return EnterPart(search, position, part, spelling);
      if (part.length == 0) return Finish(search, position, 0x80);
      if (part.value < LeastOf(part.length) || part.value > kMaxCodepoint ||
          (part.value >= 0xD800 && part.value <= 0xDFFF)) {
        return StringStep::kDead;
      }
      return Finish(search, position, part.value);
    default:
      return StringStep::kDead;
  }
}

std::optional<std::string> CompleteString(StringSearch& search, StringPosition position,
                                          size_t max_length, StringSpelling spelling) {
  static constexpr char kFinishing[] = "\"\\/bfnrtu0123456789abcdef";
  std::string out;
  while (position.part != 0) {
    // Every step that is not dead is live, so the first one that works will do.
    const bool utf8 = Part::Unpack(position.part).what == kUtf8;
    bool moved = false;
    for (int i = 0; !moved && i < (utf8 ? 64 : static_cast<int>(sizeof kFinishing) - 1); ++i) {
      const uint8_t byte =
          utf8 ? static_cast<uint8_t>(0x80 + i) : static_cast<uint8_t>(kFinishing[i]);
      StringPosition next = position;
      if (StepString(search, next, byte, spelling) != StringStep::kInside) continue;
      out.push_back(static_cast<char>(byte));
      position = next;
      moved = true;
    }
    if (!moved) return std::nullopt;
  }
  const auto rest = search.Shortest(position.state, max_length);
  if (!rest) return std::nullopt;
  const std::string quoted = json::Quote(EncodeCodepoints(*rest)).substr(1);
  return out + (spelling.ascii ? EscapeBeyondAscii(quoted) : quoted);
}

std::string EscapeBeyondAscii(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  const auto unit = [&out](uint32_t value) {
    out += "\\u";
    for (const int shift : {12, 8, 4, 0}) out.push_back(kDigits[value >> shift & 15]);
  };
  for (const char32_t c : DecodeCodepoints(text)) {
    if (c < 0x80) {
      out.push_back(static_cast<char>(c));
    } else if (c < 0x10000) {
      unit(c);
    } else {
      unit(0xD800 + ((c - 0x10000) >> 10));
      unit(0xDC00 + ((c - 0x10000) & 0x3FF));
    }
  }
  return out;
}

}  // namespace pawl::schema
