// Bytes that may come next are told in groups, since a string allows nearly all of them: letters
// and digits by range, everything else by name, forced text as it is.
#include "src/cli/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/cli/command.h"

namespace pawl::cli {
namespace {

constexpr size_t kLongestForced = 60;

std::string Printable(std::string_view text) { return EncodeCodepoints(DecodeCodepoints(text)); }

std::string ByteName(int byte) {
  switch (byte) {
    case '\n':
      return "'\\n'";
    case '\r':
      return "'\\r'";
    case '\t':
      return "'\\t'";
    case ' ':
      return "space";
    case '\'':
      return "\"'\"";
    default:
      break;
  }
  if (byte < 0x20 || byte == 0x7F) return fmt::format("byte 0x{:02X}", byte);
  return fmt::format("'{}'", static_cast<char>(byte));
}

// Characters that a reader expects to be joined as a range.
bool SameKind(int a, int b) {
  const auto kind = [](int c) {
    if (c >= '0' && c <= '9') return 1;
    if (c >= 'a' && c <= 'z') return 2;
    if (c >= 'A' && c <= 'Z') return 3;
    return c < 0x20 ? 4 : 0;
  };
  return kind(a) != 0 && kind(a) == kind(b);
}

}  // namespace

std::string DescribeAllowed(const State& state) {
  const std::string forced = state.forced(kLongestForced);
  if (forced.size() > 1) return Readable(forced.substr(0, CompleteUtf8Prefix(forced)));
  std::vector<bool> allowed(256);
  bool other = false;
  int printable = 0;
  for (int b = 0; b < 256; ++b) {
    const char byte = static_cast<char>(b);
    allowed[static_cast<size_t>(b)] = state.Advance(std::string_view(&byte, 1)).has_value();
    if (!allowed[static_cast<size_t>(b)]) continue;
    other |= b >= 0x80;
    printable += static_cast<int>(b >= 0x20 && b < 0x7F);
  }
  // The four characters of white space are one item, at the end.
  constexpr std::string_view kSpace = " \t\n\r";
  const bool space = std::all_of(kSpace.begin(), kSpace.end(), [&allowed](char c) {
    return allowed[static_cast<unsigned char>(c)];
  });
  std::string out;
  const auto add = [&out](const std::string& item) { out += (out.empty() ? "" : ", ") + item; };
  constexpr int kPrintable = 95;
  if (printable > kPrintable - 8) {
    // Shorter to say what is not.
    std::string without;
    for (int b = 0x20; b < 0x7F; ++b) {
      if (!allowed[static_cast<size_t>(b)]) without += (without.empty() ? "" : ", ") + ByteName(b);
    }
    add("any printable character" + (without.empty() ? "" : " (but not " + without + ")"));
  }
  for (int b = 0; b < 0x80; ++b) {
    if (!allowed[static_cast<size_t>(b)]) continue;
    if (printable > kPrintable - 8 && b >= 0x20 && b < 0x7F) continue;
    if (space && kSpace.find(static_cast<char>(b)) != std::string_view::npos) continue;
    int last = b;
    while (last + 1 < 0x80 && allowed[static_cast<size_t>(last) + 1] && SameKind(b, last + 1))
      ++last;
    if (last - b >= 2) {
      add(ByteName(b) + "-" + ByteName(last));
      b = last;
    } else {
      add(ByteName(b));
    }
  }
  if (other) add("characters beyond ASCII");
  if (space) add("white space");
  if (state.accepting()) add("the end");
  if (out.empty())
    add(state.mask()->count() > 0 ? "no text, only tokens as a whole" : "nothing: a dead end");
  return out;
}

std::string CapturesJson(const std::vector<Capture>& captures) {
  std::string out = "[";
  for (const Capture& capture : captures) {
    out += fmt::format("{}{{\"name\": {}, \"begin\": {}, \"end\": {}, \"text\": {}}}",
                       out.size() > 1 ? ", " : "", json::Quote(Printable(capture.name)),
                       capture.begin, capture.end, json::Quote(Printable(capture.text)));
  }
  return out + "]";
}

std::string LineColumn(std::string_view text, size_t byte) {
  size_t line = 1;
  size_t column = 1;
  for (size_t i = 0; i < byte && i < text.size(); ++i) {
    if (text[i] == '\n') {
      ++line;
      column = 1;
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      ++column;
    }
  }
  return fmt::format("{}:{}", line, column);
}

Result<std::vector<TokenId>> SpellText(const Tokenizer& tokenizer, const Vocabulary& vocabulary,
                                       std::string_view text) {
  std::vector<TokenId> tokens = tokenizer.Encode(text);
  std::string spelled;
  bool plain = true;
  for (TokenId token : tokens) {
    plain &= token >= 0 && token < vocabulary.size() && !vocabulary.is_special(token);
    if (plain) spelled += vocabulary.bytes(token);
  }
  if (plain && spelled == text) return tokens;
  if (plain && !tokens.empty() && spelled == " " + std::string(text)) {
    // The tokenizer begins every text with a space, which in the middle of an output is none.
    const std::string first(vocabulary.bytes(tokens[0]).substr(1));
    std::vector<TokenId> begin = vocabulary.FewestTokens(first);
    if (first.empty() || !begin.empty()) {
      begin.insert(begin.end(), tokens.begin() + 1, tokens.end());
      return begin;
    }
  }
  tokens = vocabulary.FewestTokens(text);
  if (!tokens.empty() || text.empty()) return tokens;
  for (size_t i = 0; i < text.size(); ++i) {
    const DecodedCodepoint c = DecodeUtf8(text.substr(i));
    const std::string_view piece = text.substr(i, static_cast<size_t>(c.length));
    if (vocabulary.FewestTokens(piece).empty()) {
      return Error{ErrorCode::kInvalid, "no token of the vocabulary spells " + Readable(piece),
                   fmt::format("byte {}", i)};
    }
  }
  return Error{ErrorCode::kInvalid, "the tokens of the vocabulary cannot spell the text", ""};
}

}  // namespace pawl::cli
