// The way of a text: added tokens are cut out; what is between them is normalized, searched for
// added tokens that are defined on normalized text, cut into words, and each word is merged on its
// own; last, the post-processor adds its tokens. This order is that of Hugging Face's library,
// which the files are written for.
//
// Where parts of a text are data, its control tokens are cut out first, outside of the data and as
// they are written; then the rest goes the same way with no special token recognized. (Hugging
// Face's library looks for special tokens that are "normalized" after normalizing. The templates of
// chat models have none.)
#include "src/text/bpe_tokenizer.h"

#include <algorithm>

namespace pawl {

BpeTokenizer::BpeTokenizer(TokenizerParts parts) : parts_(std::move(parts)) {
  size_t size = static_cast<size_t>(parts_.model.size());
  for (const AddedToken& token : parts_.added) {
    size = std::max(size, static_cast<size_t>(token.id) + 1);
  }
  tokens_.resize(size);
  for (TokenId id = 0; id < parts_.model.size(); ++id) {
    const std::string_view name = parts_.model.name(id);
    // The view of a used id points somewhere even where the name is empty.
    if (name.data() != nullptr) tokens_[static_cast<size_t>(id)] = {name, name, Kind::kText};
  }
  added_index_.Reserve(parts_.added.size());
  for (AddedToken& token : parts_.added) {
    TokenInfo& info = tokens_[static_cast<size_t>(token.id)];
    const bool in_model = info.kind != Kind::kUnused;
    token.form = token.normalized ? parts_.normalizer.Apply(token.content) : token.content;
    info = {token.content, token.form,
            token.special ? Kind::kSpecial
            : in_model    ? Kind::kText
                          : Kind::kVerbatim};
    added_index_.Insert(token.content, token.id);
    (token.normalized ? normalized_matcher_ : raw_matcher_).Add(token);
    const bool blank = token.content.find_first_not_of(" \t\r\n\xE2\x96\x81") == std::string::npos;
    if (token.special || !blank) control_matcher_.Add(token, token.content);
  }
}

std::vector<TokenId> BpeTokenizer::Encode(std::string_view text,
                                          const EncodeOptions& options) const {
  std::vector<TokenId> out;
  PieceStore store;
  BpeModel::Scratch scratch;
  std::vector<AddedTokenMatcher::Part> raw_parts, parts;
  std::vector<Piece> pieces;
  AddedTokenMatcher::Filter filter{.special = options.parse_special};
  if (options.parse_special && !options.data.empty()) {
    std::vector<AddedTokenMatcher::Part> marked;
    control_matcher_.Split(
        text, {.ordinary = false, .control = options.control, .data = options.data}, marked);
    filter = {.special = false, .control = options.control};
    for (const auto& part : marked) {
      if (part.token != kNoToken) {
        raw_parts.push_back(part);
      } else {
        raw_matcher_.Split(part.text, filter, raw_parts);
      }
    }
  } else {
    raw_matcher_.Split(text, filter, raw_parts);
  }
  for (const auto& raw : raw_parts) {
    if (raw.token != kNoToken) {
      out.push_back(raw.token);
      continue;
    }
    std::string_view normalized = raw.text;
    if (!parts_.normalizer.empty()) {
      store.push_back(parts_.normalizer.Apply(raw.text));
      normalized = store.back();
    }
    parts.clear();
    normalized_matcher_.Split(normalized, filter, parts);
    for (const auto& part : parts) {
      if (part.token != kNoToken) {
        out.push_back(part.token);
        continue;
      }
      const bool at_start = raw.text.data() == text.data() && part.text.data() == normalized.data();
      pieces.assign(1, {part.text, at_start});
      parts_.pre_tokenizer.Apply(pieces, store);
      for (const Piece& piece : pieces) parts_.model.Encode(piece.text, scratch, out);
    }
  }
  return options.add_special_tokens ? parts_.post_processor.Apply(std::move(out)) : out;
}

std::string BpeTokenizer::Decode(std::span<const TokenId> ids, bool keep_special) const {
  std::vector<TokenDecoder::Token> tokens;
  tokens.reserve(ids.size());
  for (const TokenId id : ids) {
    if (id < 0 || id >= size()) continue;
    const TokenInfo& info = tokens_[static_cast<size_t>(id)];
    if (info.kind == Kind::kUnused || (info.kind == Kind::kSpecial && !keep_special)) continue;
    tokens.push_back({std::string(info.text), info.kind != Kind::kText});
  }
  return parts_.decoder.DecodeAll(tokens);
}

std::vector<TokenId> BpeTokenizer::ControlTokensIn(std::string_view text) const {
  std::vector<AddedTokenMatcher::Part> parts;
  control_matcher_.Split(text, AddedTokenMatcher::Filter{}, parts);
  std::vector<TokenId> ids;
  for (const auto& part : parts) {
    if (part.token != kNoToken) ids.push_back(part.token);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

TokenId BpeTokenizer::IdOf(std::string_view token) const {
  const TokenId added = added_index_.Find(token);
  return added != kNoToken ? added : parts_.model.Find(token);
}

std::string_view BpeTokenizer::NameOf(TokenId id) const {
  if (id < 0 || id >= size()) return {};
  return tokens_[static_cast<size_t>(id)].name;
}

Result<std::shared_ptr<const Vocabulary>> BpeTokenizer::MakeVocabulary(int padded_size) const {
  if (padded_size != 0 && padded_size < size()) {
    return Error{ErrorCode::kInvalid,
                 "the model has " + std::to_string(padded_size) + " logits, the tokenizer " +
                     std::to_string(size()) + " tokens",
                 ""};
  }
  VocabularyInit init;
  init.tokens.resize(static_cast<size_t>(std::max(size(), padded_size)));
  init.end_tokens = parts_.end_tokens;
  for (size_t i = 0; i < init.tokens.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const TokenInfo info = i < tokens_.size() ? tokens_[i] : TokenInfo{};
    bool special =
        info.kind == Kind::kUnused || info.kind == Kind::kSpecial || id == parts_.model.unknown() ||
        id == parts_.bos ||
        std::find(init.end_tokens.begin(), init.end_tokens.end(), id) != init.end_tokens.end();
    if (!special) {
      init.tokens[i] =
          parts_.decoder.DecodeInside({std::string(info.text), info.kind != Kind::kText});
      special = init.tokens[i].empty();  // adds nothing to a text: a mask could allow it for ever
    }
    if (!special) continue;
    init.tokens[i] = info.name;
    init.special.push_back(id);
  }
  return Vocabulary::Create(std::move(init));
}

}  // namespace pawl
