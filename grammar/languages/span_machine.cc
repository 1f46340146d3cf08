// A text goes on in few ways behind most beginnings, so a mask looks these up in the trie of tokens
// and narrows the occurrences on the way.
#include "grammar/languages/span_machine.h"

#include <algorithm>

#include "grammar/languages/substring_regex.h"
#include "grammar/masks/token_trie.h"
#include "grammar/vocabulary_tables.h"
#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

using Occurrences = SourceText::Occurrences;

class SpanMasks final : public MachineMasks {
 public:
  SpanMasks(SpanMachine& machine, const Vocabulary& vocabulary)
      : machine_(machine), trie_(TrieOf(vocabulary)) {}

  std::optional<MaskStrategy> Fill(Machine::Key state, uint32_t* words) override {
    words_ = words;
    const SpanMachine::Place place = machine_.place(state);
    if (place.missing == 0) {
      Below(TokenTrie::kRoot, place.at);
      return MaskStrategy::kNarrowString;
    }
    const auto [lo, hi] = place.Range();
    machine_.text().ForFollowing(machine_.kind(), place.at,
                                 [&, lo = lo, hi = hi](char32_t c, const Occurrences& at) {
                                   if (c >= lo && c <= hi)
                                     Follow(TokenTrie::kRoot, c, place.missing, at);
                                 });
    return MaskStrategy::kNarrowString;
  }

 private:
  // What may follow below a node.
  void Below(uint32_t node, const Occurrences& at) {
    StopScope::Step();
    machine_.text().ForFollowing(machine_.kind(), at, [&](char32_t c, const Occurrences& after) {
      Follow(node, c, 0, after);
    });
  }

  // The last `bytes` bytes of the character (0: all of them) below a node, and what follows it.
  void Follow(uint32_t node, char32_t c, size_t bytes, const Occurrences& after) {
    spelled_.clear();
    AppendUtf8(c, spelled_);
    for (size_t i = bytes == 0 ? 0 : spelled_.size() - bytes; i < spelled_.size(); ++i) {
      node = trie_.Child(node, static_cast<uint8_t>(spelled_[i]));
      if (node == TokenTrie::kNone) return;
      trie_.SetBits(trie_.nodes()[node], words_);
    }
    if (trie_.nodes()[node].end > node + 1) Below(node, after);
  }

  SpanMachine& machine_;
  const TokenTrie& trie_;
  uint32_t* words_ = nullptr;
  std::string spelled_;  // scratch
};

// Whole words do not end with the white space at the end of the text, nor behind it.
std::string TextOf(std::string_view utf8, SpanKind kind) {
  if (kind == SpanKind::kChars) return std::string(utf8);
  std::u32string text = DecodeCodepoints(utf8);
  while (!text.empty() && SourceText::IsSpace(text.back())) text.pop_back();
  return EncodeCodepoints(text);
}

}  // namespace

SpanMachine::SpanMachine(std::string_view utf8, SpanKind kind)
    : text_(TextOf(utf8, kind), SourceText::Spaces::kAsGiven), kind_(kind) {
  places_.push_back({{UINT32_MAX, UINT32_MAX, UINT32_MAX}});  // kDeadLexeme
  Intern({text_.All(kind)});
}

uint32_t SpanMachine::Intern(const Place& place) {
  const uint64_t at = HashMix(HashMix(place.at.lo, place.at.hi), place.at.length);
  return index_.Intern(HashMix(at, uint64_t{place.value} << 8 | place.missing), places_, place);
}

std::pair<char32_t, char32_t> SpanMachine::Place::Range() const {
  const uint32_t shift = 6u * missing;
  const char32_t least = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
  return {std::max<char32_t>(value << shift, least), (value << shift) | ((1u << shift) - 1)};
}

uint32_t SpanMachine::StepLexeme(uint32_t lexeme, uint8_t byte) {
  Place place = places_[lexeme];
  if (place.missing == 0 && byte < 0x80) {
    const Occurrences next = text_.Next(kind_, place.at, byte);
    return next.empty() ? kDeadLexeme : Intern({next});
  }
  if (place.missing == 0) {
    if (byte < 0xC2 || byte > 0xF4) return kDeadLexeme;
    place.length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    place.missing = static_cast<uint8_t>(place.length - 1);
    place.value = byte & (0x7Fu >> place.length);
  } else {
    if ((byte & 0xC0) != 0x80) return kDeadLexeme;
    place.value = place.value << 6 | (byte & 0x3F);
    --place.missing;
  }
  if (place.missing > 0) {
    const auto [lo, hi] = place.Range();
    return text_.GoesOn(kind_, place.at, lo, hi) ? Intern(place) : kDeadLexeme;
  }
  const Occurrences next = text_.Next(kind_, place.at, place.value);
  return next.empty() ? kDeadLexeme : Intern({next});
}

bool SpanMachine::Accepting(Key state) {
  const Place& place = places_[LexemeOf(state)];
  return place.missing == 0 && (place.at.length == 0 || text_.EndsSpan(kind_, place.at));
}

bool SpanMachine::Ends(Key state) {
  const Place& place = places_[LexemeOf(state)];
  return place.missing == 0 && !text_.GoesOn(kind_, place.at, 0, kMaxCodepoint);
}

std::optional<std::string> SpanMachine::CompletionBytes(Key state) {
  const Place& place = places_[LexemeOf(state)];
  std::string out;
  Occurrences at = place.at;
  SourceText::NearestEnd nearest{UINT32_MAX, 0};
  if (place.missing == 0) {
    if (at.length == 0) return out;
    nearest = text_.Nearest(kind_, at);
  } else {
    const auto [lo, hi] = place.Range();
    char32_t first = 0;
    text_.ForFollowing(kind_, at, [&, lo = lo, hi = hi](char32_t c, const Occurrences& after) {
      if (c < lo || c > hi) return;
      const SourceText::NearestEnd found = text_.Nearest(kind_, after);
      if (found.missing >= nearest.missing) return;
      nearest = found;
      first = c;
    });
    AppendUtf8(first, out);
    out.erase(0, out.size() - place.missing);
  }
  for (uint32_t i = 0; i < nearest.missing; ++i)
    AppendUtf8(text_.text()[size_t{nearest.from} + i], out);
  return out;
}

MachineMasks* SpanMachine::Masks(const Vocabulary& vocabulary) {
  if (masks_ == nullptr) masks_ = std::make_unique<SpanMasks>(*this, vocabulary);
  return masks_.get();
}

Result<RegexMachine*> SpanMachine::AsRegex() {
  if (regex_ != nullptr) return regex_.get();
  auto arena = std::make_shared<RegexArena>();
  ReId regex = RegexArena::kNothing;
  const std::u32string_view text = text_.text();
  std::vector<std::u32string> chunks;
  if (kind_ == SpanKind::kSpan) {
    chunks = text_.Chunks();
  } else {
    for (const char32_t c : text) chunks.emplace_back(1, c);
  }
  if (chunks.size() <= kMaxSubstringChunks) {
    const auto borders = [](const std::u32string& chunk) { return !SourceText::IsSpace(chunk[0]); };
    regex = kind_ == SpanKind::kSpan ? SubstringRegex(*arena, chunks, borders)
                                     : SubstringRegex(*arena, chunks);
  }
  if (chunks.size() > kMaxSubstringChunks || arena->overflow())
    return Error{ErrorCode::kLimit, "the text is too long", ""};
  regex_ = std::make_shared<RegexMachine>(std::move(arena), regex);
  return regex_.get();
}

}  // namespace pawl
