// White space is what a browser would show: runs are one space, elements that are blocks begin new
// lines, cells of tables are apart by tabs. Inside `pre` and `textarea` all of it stays.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "src/base/utf8.h"
#include "src/input/html_tokens.h"
#include "src/input/input_text.h"

namespace pawl {
namespace {

// What stands between two characters of the text, the strongest counts.
enum Gap : uint8_t { kNone, kSpace, kTab, kLine, kBlank };
constexpr const char* kGapTexts[] = {"", " ", "\t", "\n", "\n\n"};

template <size_t N>
bool IsOneOf(const std::string& name, const std::array<std::string_view, N>& names) {
  return std::ranges::find(names, name) != names.end();
}

constexpr auto kParagraphs = std::to_array<std::string_view>(
    {"article", "aside", "blockquote", "body", "dl",      "fieldset", "figure", "footer", "form",
     "h1",      "h2",    "h3",         "h4",   "h5",      "h6",       "header", "hr",     "main",
     "nav",     "ol",    "p",          "pre",  "section", "table",    "title",  "ul"});
constexpr auto kLines = std::to_array<std::string_view>(
    {"address", "br",         "caption",  "center", "dd",       "details", "div",
     "dt",      "figcaption", "legend",   "li",     "optgroup", "option",  "select",
     "summary", "tbody",      "textarea", "tfoot",  "thead",    "tr"});
// Their characters are no text of the document.
constexpr auto kHidden = std::to_array<std::string_view>(
    {"script", "style", "template", "iframe", "noembed", "noframes"});

Gap GapOf(const std::string& name) {
  if (IsOneOf(name, kParagraphs)) return kBlank;
  if (IsOneOf(name, kLines)) return kLine;
  return name == "td" || name == "th" ? kTab : kNone;
}

bool IsHtmlSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

// The document in UTF-8, and where its characters stand in the file.
struct Utf8Document {
  std::string text;
  size_t cut = 0;            // bytes at the beginning that are left out
  std::vector<size_t> wide;  // bytes of `text` at which a character of one byte in the file begins
  std::vector<size_t> wide_end;  // behind it
  bool converted() const { return !wide.empty(); }
  // The byte of the file. REQUIRES: a character begins there, or the text ends.
  size_t InFile(size_t at) const {
    if (!converted()) return at + cut;
    const auto before = static_cast<size_t>(std::ranges::lower_bound(wide, at) - wide.begin());
    size_t more = 0;
    if (before > 0) more = saved[before - 1];
    return at + cut - more;
  }
  std::vector<size_t> saved;  // bytes that the characters of `wide` have more than in the file
};

Utf8Document FromWindows1252(std::string_view bytes) {
  Utf8Document out;
  size_t saved = 0;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      out.text += c;
      continue;
    }
    out.wide.push_back(out.text.size());
    // The reference to its number stands for the same character.
    out.text += HtmlReference("&#" + std::to_string(byte) + ";")->first;
    out.wide_end.push_back(out.text.size());
    saved += out.wide_end.back() - out.wide.back() - 1;
    out.saved.push_back(saved);
  }
  return out;
}

// What a `meta` element near the beginning says, in lower case.
std::string DeclaredCharset(std::string_view bytes) {
  constexpr size_t kNear = 4096;
  HtmlTokens tokens(bytes.substr(0, kNear));
  const auto lower = [](std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
    return text;
  };
  while (const std::optional<HtmlToken> token = tokens.Next()) {
    if (token->kind != HtmlToken::Kind::kBegin || token->name != "meta") continue;
    for (const auto& [name, value] : token->attributes) {
      const std::string text = lower(value);
      if (name == "charset") return text;
      const size_t at = text.find("charset=");
      if (name == "content" && at != std::string::npos) {
        const size_t begin = at + 8;
        return text.substr(begin, text.find_first_of("; \"'", begin) - begin);
      }
    }
  }
  return "";
}

Result<Utf8Document> ToUtf8(std::string_view bytes) {
  Utf8Document out;
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF")) {
    return Error{ErrorCode::kUnsupported, "is UTF-16; UTF-8 and windows-1252 are read", "byte 0"};
  }
  if (bytes.starts_with("\xEF\xBB\xBF")) out.cut = 3;
  const size_t wrong = FindInvalidUtf8(bytes);
  if (wrong == std::string_view::npos) {
    out.text = bytes.substr(out.cut);
    return out;
  }
  const std::string charset = DeclaredCharset(bytes);
  for (const char* const known :
       {"", "iso-8859-1", "latin1", "windows-1252", "us-ascii", "ascii"}) {
    if (charset == known) return FromWindows1252(bytes);
  }
  const bool utf8 = charset == "utf-8" || charset == "utf8";
  return Error{utf8 ? ErrorCode::kInvalid : ErrorCode::kUnsupported,
               utf8 ? "is not UTF-8" : "is in " + charset + "; UTF-8 and windows-1252 are read",
               "byte " + std::to_string(wrong)};
}

class HtmlText {
 public:
  explicit HtmlText(const Utf8Document& document) : document_(document) {}

  InputText Read() {
    HtmlTokens tokens(document_.text);
    while (const std::optional<HtmlToken> token = tokens.Next()) {
      if (token->kind == HtmlToken::Kind::kBegin || token->kind == HtmlToken::Kind::kEnd) {
        Element(*token);
      } else if (hidden_ == 0) {
        token->kind == HtmlToken::Kind::kText ? Characters(*token) : Reference(*token);
      }
    }
    return std::move(out_);
  }

 private:
  void Element(const HtmlToken& token) {
    const bool begins = token.kind == HtmlToken::Kind::kBegin;
    if (IsOneOf(token.name, kHidden)) {
      if (begins && (hidden_ == 0 || token.name == hidden_by_)) {
        ++hidden_;
        hidden_by_ = token.name;
      } else if (!begins && hidden_ > 0 && token.name == hidden_by_) {
        --hidden_;
      }
    }
    if (hidden_ > 0) return;
    Widen(GapOf(token.name));
    if (token.name == "pre" || token.name == "textarea") {
      kept_ = std::max(0, kept_ + (begins ? 1 : -1));
      first_line_ = begins;
      return;
    }
    first_line_ = false;
  }

  void Widen(Gap gap) { gap_ = std::max(gap_, gap); }

  void Characters(const HtmlToken& token) {
    const std::string_view text = document_.text;
    for (size_t at = token.begin; at < token.end;) {
      const char c = text[at];
      // The line feed behind <pre> is not a part of it.
      if (std::exchange(first_line_, false) && kept_ > 0 && (c == '\n' || c == '\r')) {
        at += text.substr(at, 2) == "\r\n" ? 2 : 1;
        continue;
      }
      if (c == '\0') {
        ++at;
        continue;
      }
      if (IsHtmlSpace(c)) {
        if (kept_ == 0) {
          Widen(kSpace);
        } else {
          kept_space_ += c == '\r' ? (text.substr(at, 2) == "\r\n" ? "" : "\n") : std::string(1, c);
        }
        ++at;
        continue;
      }
      size_t end = at + 1;
      while (end < token.end && !IsHtmlSpace(text[end]) && text[end] != '\0') ++end;
      WriteGap(at);
      Copy(at, end);
      at = end;
    }
  }

  void Reference(const HtmlToken& token) {
    first_line_ = false;
    if (token.name.size() == 1 && IsHtmlSpace(token.name[0])) {
      if (kept_ == 0) Widen(kSpace);
      if (kept_ > 0) kept_space_ += token.name;
      return;
    }
    WriteGap(token.begin);
    out_.AppendAs(token.name, document_.InFile(token.begin), document_.InFile(token.end));
    last_ = token.end;
  }

  // Nothing stands in front of the first character.
  void WriteGap(size_t at) {
    std::string gap = std::exchange(kept_space_, {});
    const Gap wanted = std::exchange(gap_, kNone);
    if (out_.text.empty()) gap.erase(0, gap.find_last_of('\n') + 1);
    if (out_.text.empty() && gap.empty()) return;
    if (!out_.text.empty() && gap.find('\n') == std::string::npos && wanted > kNone) {
      gap.insert(0, kGapTexts[wanted]);
    }
    if (gap.empty()) return;
    if (at - last_ == gap.size() && document_.text.compare(last_, gap.size(), gap) == 0) {
      Copy(last_, at);
    } else {
      out_.AppendAs(gap, document_.InFile(last_), document_.InFile(at));
    }
  }

  // A part of the document as it is.
  void Copy(size_t begin, size_t end) {
    const std::string_view text = document_.text;
    last_ = end;
    if (!document_.converted()) {
      out_.Append(text.substr(begin, end - begin), document_.InFile(begin));
      return;
    }
    for (size_t at = begin; at < end;) {
      const auto size = static_cast<size_t>(DecodeUtf8(text.substr(at)).length);
      const std::string_view one = text.substr(at, size);
      const size_t from = document_.InFile(at);
      size == 1 ? out_.Append(one, from) : out_.AppendAs(one, from, from + 1);
      at += size;
    }
  }

  const Utf8Document& document_;
  InputText out_;
  Gap gap_ = kNone;
  std::string kept_space_;  // inside of `pre`, not written yet
  size_t last_ = 0;         // behind what was written last
  int kept_ = 0;            // how deep inside of `pre`
  bool first_line_ = false;
  int hidden_ = 0;
  std::string hidden_by_;
};

}  // namespace

Result<InputText> ReadHtml(std::string_view bytes) {
  const Result<Utf8Document> document = ToUtf8(bytes);
  if (!document.ok()) return document.error();
  return HtmlText(*document).Read();
}

}  // namespace pawl
