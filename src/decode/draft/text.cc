// A text from outside that outputs may quote: a file with the documents of a domain, say. It is
// read once and shared by all requests.
#include <string>

#include "src/base/file.h"
#include "src/base/utf8.h"
#include "src/decode/draft/suffix_automaton.h"
#include "src/decode/draft/suffix_proposals.h"

namespace pawl {
namespace {

// A token takes up to a hundred bytes.
constexpr size_t kMostBytes = size_t{64} << 20;
constexpr size_t kPiece = 1 << 16;

class TextFollower : public DraftSession {
 public:
  explicit TextFollower(const SuffixAutomaton& text) : text_(text) {}
  void Append(std::span<const TokenId> tokens) override {
    // The end of the prompt is context enough.
    if (tokens.size() > kContext) tokens = tokens.last(kContext);
    for (const TokenId token : tokens) at_ = text_.Next(at_, token);
  }
  DraftCursor Root() override { return CursorOf(at_); }
  DraftCursor Next(DraftCursor at, TokenId token) override {
    return CursorOf(text_.Next(MatchOf(at), token));
  }
  void Propose(const DraftPlace& place, DraftCursor& cursor,
               std::vector<DraftProposal>& out) override {
    ProposeFrom(text_, cursor, place, out);
  }

 private:
  static constexpr size_t kContext = 64;
  const SuffixAutomaton& text_;
  SuffixAutomaton::Match at_;
};

class TextSource : public DraftSource {
 public:
  std::unique_ptr<DraftSession> Follow(const DraftRequest&) override {
    return std::make_unique<TextFollower>(text_);
  }
  int64_t bytes() const override { return text_.bytes(); }
  void Read(const DraftSetting& setting, std::string_view content) {
    // Piece by piece, cut at ends of lines where there are some: a tokenizer takes memory in
    // proportion to what it is given.
    while (!content.empty()) {
      size_t end = std::min(content.size(), kPiece);
      if (end < content.size()) {
        const size_t line = content.rfind('\n', end - 1);
        if (line != std::string_view::npos && line > 0) end = line;
        while (end < content.size() && (static_cast<uint8_t>(content[end]) & 0xc0) == 0x80) ++end;
      }
      for (const TokenId token : setting.encode(content.substr(0, end))) text_.Append(token);
      content.remove_prefix(end);
    }
  }

 private:
  SuffixAutomaton text_;
};

}  // namespace

Result<std::unique_ptr<DraftSource>> MakeTextSource(const DraftSetting& setting) {
  Result<std::string> content = ReadFile(setting.options.text_file, kMostBytes);
  if (!content.ok()) return content.error();
  if (const size_t bad = FindInvalidUtf8(*content); bad != std::string::npos) {
    return Error{ErrorCode::kInvalid, "not UTF-8 at byte " + std::to_string(bad),
                 setting.options.text_file};
  }
  if (!setting.encode) {
    return Error{ErrorCode::kInvalid, "the source \"text\" needs a tokenizer", "draft"};
  }
  auto source = std::make_unique<TextSource>();
  source->Read(setting, *content);
  return std::unique_ptr<DraftSource>(std::move(source));
}

}  // namespace pawl
