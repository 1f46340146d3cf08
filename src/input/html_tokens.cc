// The states of the standard that end in no token are followed without being named: a comment ends
// at its end or at that of the document, and a tag that the document cuts off is no tag. Names of
// references are a table that scripts/make_html_references.py writes.
#include "src/input/html_tokens.h"

#include <algorithm>
#include <iterator>

#include "src/base/utf8.h"

namespace pawl {
namespace {

struct NamedReference {
  std::string_view name;  // without the ampersand; with the semicolon, where it needs one
  std::string_view text;
};
constexpr NamedReference kReferences[] = {
#include "src/input/html_references.inc"
};
constexpr size_t kLongestName = 32;

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool StartsLike(std::string_view text, size_t at, std::string_view lower) {
  if (text.size() - at < lower.size()) return false;
  for (size_t i = 0; i < lower.size(); ++i) {
    if (Lower(text[at + i]) != lower[i]) return false;
  }
  return true;
}

// References to numbers that stand for characters of windows-1252.
constexpr char32_t kWindows[32] = {0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                   0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D,   0x017D, 0x8F,
                                   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                   0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};

std::optional<std::pair<std::string, size_t>> NumberReference(std::string_view text) {
  size_t at = 2;
  const bool hexadecimal = at < text.size() && (text[at] == 'x' || text[at] == 'X');
  at += hexadecimal ? 1 : 0;
  const size_t first = at;
  char32_t value = 0;
  for (; at < text.size(); ++at) {
    const int digit = HexDigit(text[at]);
    if (digit < 0 || (!hexadecimal && digit > 9)) break;
    value = std::min<char32_t>(0x110000,
                               value * (hexadecimal ? 16 : 10) + static_cast<char32_t>(digit));
  }
  if (at == first) return std::nullopt;
  if (at < text.size() && text[at] == ';') ++at;
  if (value >= 0x80 && value < 0xA0) value = kWindows[value - 0x80];
  if (value == 0 || value > kMaxCodepoint || (value >= 0xD800 && value < 0xE000)) {
    value = kReplacement;
  }
  std::string out;
  AppendUtf8(value, out);
  return std::pair(out, at);
}

HtmlToken TokenOf(HtmlToken::Kind kind, size_t begin, size_t end, std::string name) {
  HtmlToken out;
  out.kind = kind;
  out.begin = begin;
  out.end = end;
  out.name = std::move(name);
  return out;
}

}  // namespace

std::optional<std::pair<std::string, size_t>> HtmlReference(std::string_view text) {
  if (text.size() < 2 || text[0] != '&') return std::nullopt;
  if (text[1] == '#') return NumberReference(text);
  size_t end = 1;
  while (end < text.size() && end <= kLongestName && (IsLetter(text[end]) || IsDigit(text[end]))) {
    ++end;
  }
  if (end < text.size() && text[end] == ';') ++end;
  // The longest name that is known.
  for (; end > 1; --end) {
    const std::string_view name = text.substr(1, end - 1);
    const auto found = std::ranges::lower_bound(kReferences, name, {}, &NamedReference::name);
    if (found != std::end(kReferences) && found->name == name) {
      return std::pair(std::string(found->text), end);
    }
  }
  return std::nullopt;
}

HtmlToken HtmlTokens::Characters(size_t end) {
  const size_t begin = std::exchange(at_, end);
  return TokenOf(HtmlToken::Kind::kText, begin, end, "");
}

// Comments, declarations and the like, and end tags without a name.
void HtmlTokens::SkipMarkup() {
  const std::string_view rest = bytes_.substr(at_);
  const auto behind = [&](std::string_view mark, size_t from) {
    const size_t found = bytes_.find(mark, from);
    return found == std::string_view::npos ? bytes_.size() : found + mark.size();
  };
  if (!rest.starts_with("<!--")) {
    at_ = rest.starts_with("<![CDATA[") ? behind("]]>", at_) : behind(">", at_);
    return;
  }
  if (rest.starts_with("<!-->") || rest.starts_with("<!--->")) {
    at_ = behind(">", at_);
  } else {
    at_ = std::min(behind("-->", at_ + 4), behind("--!>", at_ + 4));
  }
}

// nullopt: the document ends inside of it, or it is no tag; then at_ is behind what is left out.
std::optional<HtmlToken> HtmlTokens::Tag() {
  const size_t begin = at_;
  size_t at = begin + 1;
  const bool ends = at < bytes_.size() && bytes_[at] == '/';
  at += ends ? 1 : 0;
  HtmlToken out = TokenOf(ends ? HtmlToken::Kind::kEnd : HtmlToken::Kind::kBegin, begin, 0, "");
  while (at < bytes_.size() && !IsSpace(bytes_[at]) && bytes_[at] != '/' && bytes_[at] != '>') {
    out.name += Lower(bytes_[at++]);
  }
  for (;;) {
    while (at < bytes_.size() && (IsSpace(bytes_[at]) || bytes_[at] == '/')) {
      out.closes_itself = bytes_[at++] == '/';
    }
    if (at >= bytes_.size()) {
      at_ = bytes_.size();
      return std::nullopt;
    }
    if (bytes_[at] == '>') break;
    out.closes_itself = false;
    std::string name, value;
    do {
      name += Lower(bytes_[at++]);
    } while (at < bytes_.size() && !IsSpace(bytes_[at]) && bytes_[at] != '/' && bytes_[at] != '>' &&
             bytes_[at] != '=');
    size_t next = at;
    while (next < bytes_.size() && IsSpace(bytes_[next])) ++next;
    if (next < bytes_.size() && bytes_[next] == '=') {
      at = next + 1;
      while (at < bytes_.size() && IsSpace(bytes_[at])) ++at;
      if (at < bytes_.size() && (bytes_[at] == '"' || bytes_[at] == '\'')) {
        const size_t close = bytes_.find(bytes_[at], at + 1);
        if (close == std::string_view::npos) {
          at_ = bytes_.size();
          return std::nullopt;
        }
        value = bytes_.substr(at + 1, close - at - 1);
        at = close + 1;
      } else {
        while (at < bytes_.size() && !IsSpace(bytes_[at]) && bytes_[at] != '>') {
          value += bytes_[at++];
        }
      }
    }
    out.attributes.emplace_back(std::move(name), std::move(value));
  }
  at_ = out.end = at + 1;
  if (!ends) {
    const auto is = [&](std::initializer_list<std::string_view> names) {
      return std::ranges::find(names, out.name) != names.end();
    };
    if (out.name == "script") {
      content_ = Content::kScript;
    } else if (is({"style", "xmp", "iframe", "noembed", "noframes"})) {
      content_ = Content::kText;
    } else if (is({"title", "textarea"})) {
      content_ = Content::kTextWithReferences;
    }
    if (content_ != Content::kMarkup) {
      inside_ = out.name;
      raw_end_ = EndOfRawText();
    }
  }
  return out;
}

// Where the end tag of `inside_` begins. In a script one between "<!--<script" and "</script" does
// not count.
size_t HtmlTokens::EndOfRawText() const {
  bool escaped = false, doubly = false;
  for (size_t at = at_; at < bytes_.size(); ++at) {
    if (content_ == Content::kScript) {
      if (bytes_.substr(at, 4) == "<!--") escaped = true;
      if (bytes_.substr(at, 3) == "-->") escaped = doubly = false;
      if (escaped && !doubly && StartsLike(bytes_, at, "<script")) doubly = true;
    }
    if (bytes_[at] != '<' || !StartsLike(bytes_.substr(at), 0, "</")) continue;
    if (!StartsLike(bytes_, at + 2, inside_)) continue;
    const size_t behind = at + 2 + inside_.size();
    const bool whole = behind >= bytes_.size() || IsSpace(bytes_[behind]) ||
                       bytes_[behind] == '/' || bytes_[behind] == '>';
    if (!whole) continue;
    if (!doubly) return at;
    doubly = false;
  }
  return bytes_.size();
}

std::optional<HtmlToken> HtmlTokens::Next() {
  while (at_ < bytes_.size()) {
    const bool references =
        content_ == Content::kMarkup || content_ == Content::kTextWithReferences;
    const size_t raw_end = content_ == Content::kMarkup ? bytes_.size() : raw_end_;
    if (content_ != Content::kMarkup && raw_end == at_) {
      content_ = Content::kMarkup;
      if (raw_end < bytes_.size()) {
        if (auto tag = Tag()) return tag;
      }
      continue;
    }
    if (references && bytes_[at_] == '&') {
      if (const auto found = HtmlReference(bytes_.substr(at_, raw_end - at_))) {
        const size_t begin = at_;
        at_ += found->second;
        return TokenOf(HtmlToken::Kind::kReference, begin, at_, found->first);
      }
      return Characters(at_ + 1);
    }
    if (content_ == Content::kMarkup && bytes_[at_] == '<') {
      const char next = at_ + 1 < bytes_.size() ? bytes_[at_ + 1] : ' ';
      const char after = at_ + 2 < bytes_.size() ? bytes_[at_ + 2] : ' ';
      if (IsLetter(next) || (next == '/' && IsLetter(after))) {
        if (auto tag = Tag()) return tag;
        continue;
      }
      if (next == '!' || next == '?' || (next == '/' && at_ + 2 < bytes_.size())) {
        SkipMarkup();
        continue;
      }
      return Characters(at_ + 1);
    }
    size_t end = at_ + 1;
    while (end < raw_end && !(references && bytes_[end] == '&') &&
           !(content_ == Content::kMarkup && bytes_[end] == '<')) {
      ++end;
    }
    return Characters(end);
  }
  return std::nullopt;
}

}  // namespace pawl
