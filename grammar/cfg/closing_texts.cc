// A text is one string with a list of the places where a token stands in it, so a place is a number
// and all questions are a look at the string or a binary search.
#include "grammar/cfg/closing_texts.h"

#include <algorithm>

namespace pawl {

uint32_t ClosingTexts::Add(const std::optional<std::vector<OutputPiece>>& pieces,
                           std::string note) {
  Text text{.bytes = {}, .tokens = {}, .ends = pieces.has_value(), .note = std::move(note)};
  for (const OutputPiece& piece : pieces.value_or(std::vector<OutputPiece>())) {
    if (piece.token == kNoToken) {
      text.bytes += piece.bytes;
    } else {
      text.tokens.emplace_back(static_cast<uint32_t>(text.bytes.size()), piece.token);
      text.bytes += '\0';
    }
  }
  bytes_ += sizeof(Text) + text.MemoryBytes();
  texts_.push_back(std::move(text));
  return static_cast<uint32_t>(texts_.size() - 1);
}

std::vector<std::pair<uint32_t, TokenId>>::const_iterator ClosingTexts::TokenFrom(Place at) const {
  const auto& tokens = texts_[at.text].tokens;
  return std::lower_bound(tokens.begin(), tokens.end(), std::pair(at.taken, INT32_MIN));
}

bool ClosingTexts::Takes(Place at, uint8_t byte) const {
  const std::string& bytes = texts_[at.text].bytes;
  return at.taken < bytes.size() && static_cast<uint8_t>(bytes[at.taken]) == byte &&
         TokenAt(at) == kNoToken;
}

TokenId ClosingTexts::TokenAt(Place at) const {
  const auto next = TokenFrom(at);
  return next != texts_[at.text].tokens.end() && next->first == at.taken ? next->second : kNoToken;
}

std::string_view ClosingTexts::BytesAt(Place at) const {
  const Text& text = texts_[at.text];
  const auto next = TokenFrom(at);
  const size_t end = next == text.tokens.end() ? text.bytes.size() : next->first;
  return std::string_view(text.bytes).substr(at.taken, end - at.taken);
}

bool ClosingTexts::Ends(Place at) const {
  return texts_[at.text].ends && at.taken == texts_[at.text].bytes.size();
}

std::optional<std::vector<OutputPiece>> ClosingTexts::Rest(Place at) const {
  if (!texts_[at.text].ends) return std::nullopt;
  std::vector<OutputPiece> pieces;
  while (!Ends(at)) {
    if (const TokenId token = TokenAt(at); token != kNoToken) {
      pieces.push_back({.token = token});
      ++at.taken;
    } else {
      const std::string_view bytes = BytesAt(at);
      pieces.push_back({.bytes = std::string(bytes)});
      at.taken += static_cast<uint32_t>(bytes.size());
    }
  }
  return pieces;
}

}  // namespace pawl
