// A text is taken apart into units as it is read: up to the next end of a paragraph, sentence or
// line, and in the middle at white space where that has many tokens. A chunk takes units while they
// fit, and gives those behind the best border of its second half back. The next chunk begins at a
// good border shortly in front of this end, so that a record across the border is whole in one of
// the two.
#include "src/engine/document_chunks.h"

#include <algorithm>
#include <utility>

#include "src/base/source_text.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

constexpr size_t kUnitShare = 8;     // a unit has at most this share of a chunk
constexpr size_t kOverlapShare = 8;  // two chunks have at least this share in common
constexpr size_t kFarBytes = 16;     // by token of a chunk: a border is not looked for beyond

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

bool BeginsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// Marks that end a sentence with nothing behind them, as in Chinese.
size_t WideEndAt(std::string_view text, size_t at) {
  if (static_cast<unsigned char>(text[at]) < 0xE0) return 0;
  for (const std::string_view mark : {"。", "！", "？", "．"}) {
    if (text.substr(at, mark.size()) == mark) return mark.size();
  }
  return 0;
}

}  // namespace

DocumentChunks::DocumentChunks(std::string_view text, const ChunkOptions& options,
                               TokenCount tokens)
    : text_(text), options_(options), tokens_(std::move(tokens)) {}

size_t DocumentChunks::SkipSpace(size_t at) const {
  while (at < text_.size() && IsBlank(text_[at])) ++at;
  return at;
}

size_t DocumentChunks::BorderBehind(size_t at, Rank& rank) const {
  // A text may be one line without an end.
  const size_t start = at, far = at + kFarBytes * options_.max_tokens;
  for (; at < text_.size(); ++at) {
    const char c = text_[at];
    if (at >= far && (c == ' ' || at >= far + (far - start)) && BeginsCharacter(c)) {
      rank = c == ' ' ? kSpace : kInside;
      return at;
    }
    if (c == '\n' || c == '\f') {
      // A blank line, a page's end, or a heading of Markdown behind it ends a paragraph.
      const size_t next = SkipSpace(at);
      const auto lines = std::count(text_.begin() + static_cast<ptrdiff_t>(at),
                                    text_.begin() + static_cast<ptrdiff_t>(next), '\n');
      const bool page = text_.substr(at, next - at).find('\f') != std::string_view::npos;
      const bool heading = next < text_.size() && text_[next] == '#';
      rank = lines > 1 || page || heading ? kParagraph : kLine;
      return at;
    }
    if (c == '.' || c == '!' || c == '?') {
      size_t end = at + 1;
      while (end < text_.size() &&
             std::string_view(".!?\"')]").find(text_[end]) != std::string_view::npos) {
        ++end;
      }
      const size_t next = SkipSpace(end);
      const bool small = next < text_.size() && text_[next] >= 'a' && text_[next] <= 'z';
      // At the end of a line the line says more.
      const bool line = text_.substr(end, next - end).find('\n') != std::string_view::npos;
      if (next > end && !small && !line) {
        rank = kSentence;
        return end;
      }
      at = end - 1;
    } else if (const size_t wide = WideEndAt(text_, at)) {
      rank = kSentence;
      return at + wide;
    }
  }
  rank = kParagraph;
  return text_.size();
}

// In front of white space near the middle, or else where a value may begin and end, or else, where
// `anywhere`, of a character. The part does not end with white space, and neither do the two parts
// of it. `end`: there is no such place.
size_t DocumentChunks::SplitPoint(size_t begin, size_t end, bool anywhere, Rank& rank) const {
  begin = SkipSpace(begin);
  const size_t half = (end - begin) / 2, middle = begin + half;
  size_t at = middle;
  for (size_t away = 0; away <= half; ++away) {
    if (IsBlank(text_[middle - away])) at = middle - away;
    if (middle + away < end && IsBlank(text_[middle + away])) at = middle + away;
    if (!IsBlank(text_[at])) continue;
    while (IsBlank(text_[at - 1])) --at;
    rank = kSpace;
    return at;
  }
  rank = kInside;
  while (at < end && !BeginsCharacter(text_[at])) ++at;
  const std::string_view part = text_.substr(begin, end - begin);
  const SourceText source(part, SourceText::Spaces::kAsGiven);
  const auto characters = [](std::string_view some) {
    return static_cast<size_t>(std::ranges::count_if(some, BeginsCharacter));
  };
  const size_t all = characters(part), before = characters(text_.substr(begin, at - begin));
  const auto is_border = [&](size_t place) {
    return place > 0 && place < all && source.BeginsAt(SpanKind::kSpan, place) &&
           source.EndsAt(SpanKind::kSpan, place);
  };
  for (size_t away = 0; away < all; ++away) {
    const bool behind = is_border(before + away);
    if (!behind && (away > before || !is_border(before - away))) continue;
    for (size_t moved = 0; moved < away; ++moved) {
      do {
        behind ? ++at : --at;
      } while (at < end && !BeginsCharacter(text_[at]));
    }
    return at;
  }
  return anywhere ? at : end;
}

void DocumentChunks::AddUnits(size_t begin, size_t end, Rank rank, std::vector<Unit>& units) const {
  const size_t most = std::max<size_t>(1, options_.max_tokens / kUnitShare);
  // A token has a byte or more, but for what is added in front.
  constexpr size_t kSurelyLong = 512;
  const bool surely_long = end - begin > kSurelyLong * most;
  const size_t tokens = surely_long ? 0 : tokens_(text_.substr(begin, end - begin));
  if (surely_long || tokens > most) {
    Rank middle = kInside;
    const size_t at = SplitPoint(begin, end, surely_long || tokens > options_.max_tokens, middle);
    // What has no white space may be one value: it stays whole where a chunk has twice the tokens.
    const bool whole = middle == kInside && !surely_long && tokens <= options_.max_tokens / 2;
    if (!whole && at > SkipSpace(begin) && at < end) {
      AddUnits(begin, at, middle, units);
      AddUnits(at, end, rank, units);
      return;
    }
  }
  units.push_back({end, tokens, rank});
}

int64_t DocumentChunks::CharacterOf(size_t byte) {
  if (byte < counted_) counted_ = 0, counted_character_ = 0;
  for (; counted_ < byte; ++counted_)
    counted_character_ += BeginsCharacter(text_[counted_]) ? 1 : 0;
  return counted_character_;
}

// The units from `begin` on that fit, and one behind them if there is one. The number of those that
// the chunk has.
size_t DocumentChunks::TakeUnits(size_t begin, size_t most, std::vector<Unit>& units) const {
  size_t tokens = 0, taken = 0;
  for (size_t at = begin; SkipSpace(at) < text_.size();) {
    Rank rank = kParagraph;
    size_t end = BorderBehind(SkipSpace(at), rank);
    while (IsBlank(text_[end - 1])) --end;
    AddUnits(at, end, rank, units);
    while (taken < units.size() && (taken == 0 || tokens + units[taken].tokens <= most)) {
      tokens += units[taken++].tokens;
    }
    if (taken < units.size()) break;
    at = end;
  }
  if (taken == units.size()) return taken;
  // Up to the best border of the second half.
  size_t before = tokens, best = taken;
  for (size_t i = taken; i-- > 1;) {
    before -= units[i].tokens;
    if (before * 2 < most) break;
    if (units[i - 1].rank > units[best - 1].rank) best = i;
  }
  return best;
}

// The best border that leaves one to two shares of overlap in front of the end of the units.
size_t DocumentChunks::NextBegin(std::span<const Unit> units) const {
  const size_t share = options_.max_tokens / kOverlapShare, end = units.back().end;
  size_t common = 0, next = end;
  Rank best = kInside;
  for (size_t i = units.size(); share > 0 && i-- > 1;) {
    common += units[i].tokens;
    if (common > 2 * share && next != end) break;
    const Unit& before = units[i - 1];
    if (next == end || common < share || before.rank > best) {
      next = before.end;
      best = before.rank;
    }
    if (common >= 2 * share) break;
  }
  return next;
}

bool DocumentChunks::IsSpanBorder(size_t byte, bool begins) const {
  constexpr size_t kAround = 64;  // bytes that tell what stands at a border
  if (begins ? byte == 0 || IsBlank(text_[byte - 1])
             : byte == text_.size() || IsBlank(text_[byte])) {
    return true;
  }
  size_t begin = byte - std::min(byte, kAround), end = std::min(byte + kAround, text_.size());
  while (!BeginsCharacter(text_[begin])) ++begin;
  while (end < text_.size() && !BeginsCharacter(text_[end])) ++end;
  const SourceText around(text_.substr(begin, end - begin), SourceText::Spaces::kAsGiven);
  const auto place = static_cast<size_t>(std::ranges::count_if(
      text_.substr(begin, byte - begin), [](char c) { return BeginsCharacter(c); }));
  return begins ? around.BeginsAt(SpanKind::kSpan, place) : around.EndsAt(SpanKind::kSpan, place);
}

std::optional<DocumentChunk> DocumentChunks::Next() {
  size_t begin = SkipSpace(from_);
  while (begin >= text_.size()) {
    if (++pass_ >= options_.passes) {
      pass_ = options_.passes;
      return std::nullopt;
    }
    first_ = true;
    from_ = last_end_ = 0;
    begin = SkipSpace(0);
    if (begin >= text_.size()) return std::nullopt;
  }
  // The first chunk of a later pass is shorter, which moves all borders.
  size_t most = options_.max_tokens;
  if (first_) {
    most = std::max<size_t>(1, most * static_cast<size_t>(options_.passes - pass_) /
                                   static_cast<size_t>(options_.passes));
  }
  std::vector<Unit> units;
  size_t taken = TakeUnits(begin, most, units);
  // What follows the chunk before has no room behind the overlap.
  if (units[taken - 1].end <= last_end_) {
    begin = SkipSpace(last_end_);
    units.clear();
    taken = TakeUnits(begin, most, units);
  }
  DocumentChunk chunk;
  chunk.number = number_++;
  chunk.pass = pass_;
  chunk.begin = begin;
  chunk.end = last_end_ = units[taken - 1].end;
  chunk.cut_begin = !IsSpanBorder(chunk.begin, true);
  chunk.cut_end = !IsSpanBorder(chunk.end, false);
  chunk.begin_character = CharacterOf(chunk.begin);
  chunk.end_character = CharacterOf(chunk.end);
  first_ = false;
  const bool all = taken == units.size();
  from_ = all ? text_.size() : NextBegin(std::span(units).first(taken));
  return chunk;
}

}  // namespace pawl
