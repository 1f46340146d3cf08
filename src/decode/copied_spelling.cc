// A value may begin with a piece of the first token: SmolLM2 writes "F", "M" where the tokenizer
// has "FM", and of 480 fields 8 were lost where it was not to. What leads astray are tokens that
// join the ends of two, such as "Ko" for "K", "ofi", and pieces behind the beginning.
//
// Strings are looked up in the text: the rest behind each place of what is written is encoded, up
// to each border at which the value may end in the middle of the first token or behind it. Numbers
// and dates are few, and are asked of the grammar byte by byte.
#include "src/decode/copied_spelling.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/base/json.h"
#include "src/base/source_text.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

constexpr size_t kLongestRest = 32;  // bytes that decide about the first token
constexpr size_t kMostSpelledValue = 4096, kMostTextPlaces = 256, kMostSpelledPrefixes = 4;
constexpr size_t kMostDigits = 32;
constexpr int kMostDigitSteps = 4096;
constexpr std::string_view kDigitsOfDates = "0123456789-.:TZ+", kDigitsOfNumbers = "0123456789-.";
constexpr std::string_view kEndsOfNumbers = ",}]";

bool IsWordByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool ContinuesCharacter(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

// A value may begin or end in front of this byte. Where the text has letters beyond ASCII it may
// not; what grammars do not take does no harm.
bool IsBorder(std::string_view text, size_t at) {
  if (at == 0 || at >= text.size()) return true;
  if (text[at - 1] == '\\' || ContinuesCharacter(text[at])) return false;
  return !IsWordByte(text[at - 1]) || !IsWordByte(text[at]);
}

// Where a string ends in `text`, the end of which may lie behind it: the place of the quote.
size_t FindQuote(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i;
    }
  }
  return std::string_view::npos;
}

// The token is one of these, or, with `pieces`, the beginning of one.
bool IsSpelled(std::string_view token, const std::set<std::string_view>& first, bool pieces) {
  const auto found = first.lower_bound(token);
  return found != first.end() && (pieces ? found->starts_with(token) : *found == token);
}

bool OnlyNumber(std::string_view bytes) {
  return bytes.find_first_not_of("0123456789-+.eE") == std::string_view::npos;
}

// Of a token in front of a value: the part of it before the first byte of a string's content or of
// a number. nullopt: it has no such byte, or ends the value.
std::optional<std::string> PrefixOf(std::string_view token) {
  const size_t begin = token.find_first_not_of(' ');
  if (begin == std::string_view::npos) return std::nullopt;
  if (token[begin] == '"') {
    const std::string_view content = token.substr(begin + 1);
    if (content.empty() || FindQuote(content) != std::string_view::npos) return std::nullopt;
    return std::string(token.substr(0, begin + 1));
  }
  if (!OnlyNumber(token.substr(begin))) return std::nullopt;
  return std::string(token.substr(0, begin));
}

}  // namespace

CopiedSpelling::CopiedSpelling(Encoder encode, std::string_view text, const Vocabulary& vocabulary)
    : encode_(std::move(encode)), vocabulary_(vocabulary) {
  if (!encode_) return;
  TakeCuts(text);
  const SourceText source(text);
  std::u32string part;
  const auto add = [&] {
    const std::string quoted = json::Quote(EncodeCodepoints(part));
    text_ += quoted.substr(1, quoted.size() - 2);
    part.clear();
  };
  for (const char32_t c : source.text()) {
    if (c != kTextBorderCode) {
      part += c;
      continue;
    }
    add();
    text_ += kTextBorder;
  }
  add();
}

std::shared_ptr<const Mask> CopiedSpelling::Of(const State& at, std::shared_ptr<const Mask> copies,
                                               std::string_view value) const {
  if (!encode_ || value.size() > kMostSpelledValue) return copies;
  const bool string = value.starts_with('"');
  const bool number = !value.empty() && OnlyNumber(value);
  const bool begins = value.empty() || value == "\"";
  if (!value.empty() && !string && !number) return copies;
  std::map<std::string, Spelled> spelled;  // by prefix
  std::vector<uint32_t> words(copies->words().begin(), copies->words().end());
  for (const TokenId token : copies->Tokens()) {
    if (vocabulary_.is_special(token)) continue;
    const std::string_view bytes = vocabulary_.bytes(token);
    std::optional<std::string> prefix;
    if (value.empty()) {
      prefix = PrefixOf(bytes);
    } else if (string ? FindQuote(bytes) == std::string_view::npos : OnlyNumber(bytes)) {
      prefix = std::string();
    }
    if (!prefix) continue;
    auto found = spelled.find(*prefix);
    if (found == spelled.end()) {
      if (spelled.size() == kMostSpelledPrefixes) return copies;
      Spelled tokens = FirstTokens(at, value, *prefix);
      if (!tokens) return copies;
      found = spelled.emplace(*prefix, std::move(tokens)).first;
    }
    if (!IsSpelled(bytes, *found->second, begins)) {
      words[static_cast<size_t>(token) >> 5] &= ~(uint32_t{1} << (token & 31));
    }
  }
  return std::make_shared<const Mask>(0, std::move(words));
}

CopiedSpelling::Spelled CopiedSpelling::FirstTokens(const State& at, std::string_view value,
                                                    const std::string& prefix) const {
  const bool string = value.starts_with('"') || prefix.ends_with('"');
  Spelled out = Tokens();
  if (string) {
    const std::string_view content = value.substr(std::min<size_t>(value.size(), 1));
    if (content.empty()) {
      const std::lock_guard lock(mutex_);
      auto found = begins_.find(prefix);
      if (found == begins_.end()) found = begins_.emplace(prefix, OfText("", prefix)).first;
      out = found->second;
    } else {
      out = OfText(content, prefix);
    }
  }
  if (!out) return out;
  const std::optional<State> from = prefix.empty() ? at : at.Advance(prefix);
  if (from && !AddOfDigits(*from, string, prefix, *out)) return std::nullopt;
  return out;
}

CopiedSpelling::Spelled CopiedSpelling::OfText(std::string_view begun,
                                               const std::string& prefix) const {
  Tokens out;
  size_t places = 0;
  bool found = begun.empty();
  for (size_t i = text_.find(begun); i < text_.size(); i = text_.find(begun, i + 1)) {
    if (!IsBorder(text_, i) || text_[i] == kTextBorder) continue;
    if (begun.empty() && text_[i] == ' ') continue;
    const size_t rest = i + begun.size();
    found = true;
    if (rest == text_.size() || text_[rest] == kTextBorder) continue;
    const bool inside = ContinuesCharacter(text_[rest]) || text_[rest - (rest > 0)] == '\\';
    if (!begun.empty() && (inside || ++places > kMostTextPlaces)) return std::nullopt;
    if (!AddOfRest(rest, prefix, out)) return std::nullopt;
  }
  // What is spelled with other escapes than the text is not found in it.
  if (!found && begun.find_first_not_of(kDigitsOfDates) != std::string_view::npos)
    return std::nullopt;
  return out;
}

bool CopiedSpelling::AddOfRest(size_t at, const std::string& prefix, Tokens& out) const {
  std::string_view rest = std::string_view(text_).substr(at, kLongestRest + 1);
  rest = rest.substr(0, rest.find(kTextBorder));
  if (rest.size() > kLongestRest) {
    size_t end = kLongestRest;
    while (end > 1 && (ContinuesCharacter(rest[end]) || rest[end - 1] == '\\')) --end;
    rest = rest.substr(0, end);
  }
  const std::string_view whole = FirstOf(prefix + std::string(rest));
  if (whole.empty()) return false;
  out.insert(whole);
  for (size_t end = 1; end < rest.size(); ++end) {
    if (!IsBorder(rest, end)) continue;
    const std::string_view first = FirstOf(prefix + std::string(rest.substr(0, end)));
    if (first.empty()) return false;
    out.insert(first);
    if (prefix.size() + end >= whole.size()) break;
  }
  return true;
}

bool CopiedSpelling::AddOfDigits(const State& at, bool string, const std::string& prefix,
                                 Tokens& out) const {
  struct Place {
    State at;
    std::string text;
  };
  int steps = 0;
  std::vector<Place> open;
  open.push_back({at, ""});
  while (!open.empty()) {
    const Place place = std::move(open.back());
    open.pop_back();
    bool ends = false;
    if (!place.text.empty()) {
      const auto may_end = [&](const char& c) {
        return place.at.Advance(std::string_view(&c, 1)).has_value();
      };
      // A number may be the whole output.
      ends = string ? may_end('"')
                    : place.at.accepting() || std::ranges::any_of(kEndsOfNumbers, may_end);
      if (ends) {
        const std::string_view first = FirstOf(prefix + place.text);
        if (first.empty()) return false;
        out.insert(first);
      }
      if (place.text.size() == kMostDigits) continue;
    }
    const bool fraction = !string && place.text.find('.') != std::string::npos;
    for (const char& c : string ? kDigitsOfDates : kDigitsOfNumbers) {
      if (ends && fraction && c == '0') continue;  // 1.50 is 1.5
      if (++steps > kMostDigitSteps) return false;
      if (std::optional<State> next = place.at.Advance(std::string_view(&c, 1)))
        open.push_back({*std::move(next), place.text + c});
    }
  }
  return true;
}

// Empty: the encoding of the text does not begin as the text does.
std::string_view CopiedSpelling::FirstOf(const std::string& text) const {
  const std::vector<TokenId> tokens = encode_(text);
  if (!tokens.empty() && text.starts_with(vocabulary_.bytes(tokens.front())))
    return vocabulary_.bytes(tokens.front());
  // Some tokenizers put a space in front of a text. Then a quote stands there, too.
  size_t behind = 0;
  for (const TokenId token : encode_('"' + text)) {
    const std::string_view bytes = vocabulary_.bytes(token);
    if (behind == 2) return text.starts_with(bytes) ? bytes : std::string_view();
    behind += bytes.size();
  }
  return {};
}

}  // namespace pawl
