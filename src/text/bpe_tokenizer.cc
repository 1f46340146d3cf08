// The stages of a text: added tokens are cut out; what is between them is normalized, searched for
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
#include <limits>
#include <string>

#include "src/base/stop_scope.h"
#include "src/text/tokenizer_steps.h"

namespace pawl {

BpeTokenizer::BpeTokenizer(TokenizerParts parts) : parts_(std::move(parts)) {
  size_t size = static_cast<size_t>(parts_.model.size());
  if (!parts_.pre_tokenizer.removes()) longest_ = parts_.model.longest();
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

std::vector<BpeTokenizer::Stretch> BpeTokenizer::Cut(std::string_view text,
                                                     const EncodeOptions& options,
                                                     std::deque<std::string>& store) const {
  std::vector<Stretch> out;
  std::vector<AddedTokenMatcher::Part> raw_parts, parts;
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
  StopSteps steps;
  for (const auto& raw : raw_parts) {
    steps.Step();
    if (raw.token != kNoToken) {
      out.push_back({.text = {}, .token = raw.token});
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
      const bool at_start = raw.text.data() == text.data() && part.text.data() == normalized.data();
      out.push_back({part.text, part.token, at_start});
    }
  }
  return out;
}

std::vector<TokenId> BpeTokenizer::Merge(const std::vector<Stretch>& stretches,
                                         const EncodeOptions& options) const {
  std::vector<TokenId> out;
  BpeModel::Scratch scratch;
  StopSteps steps;
  for (const Stretch& stretch : stretches) {
    steps.Step();
    if (stretch.token != kNoToken) {
      out.push_back(stretch.token);
      continue;
    }
    parts_.pre_tokenizer.Apply({stretch.text, stretch.at_start}, [&](const Piece& word) {
      steps.Step(word.text.size());
      parts_.model.Encode(word.text, scratch, out);
    });
  }
  return options.add_special_tokens ? parts_.post_processor.Apply(std::move(out)) : out;
}

std::vector<TokenId> BpeTokenizer::Encode(std::string_view text,
                                          const EncodeOptions& options) const {
  std::deque<std::string> store;
  return Merge(Cut(text, options, store), options);
}

// Each added token is one; all other bytes need a token for every `longest_` of them, or more.
Result<std::vector<TokenId>> BpeTokenizer::EncodeWithin(std::string_view text, int max_tokens,
                                                        const EncodeOptions& options) const {
  std::deque<std::string> store;
  const std::vector<Stretch> stretches = Cut(text, options, store);
  size_t added = 0, bytes = 0;
  for (const Stretch& stretch : stretches) {
    if (stretch.token != kNoToken) {
      ++added;
    } else {
      bytes += stretch.text.size();
    }
  }
  const auto room = static_cast<size_t>(std::max(0, max_tokens));
  const size_t most = (room - std::min(room, added)) * longest_;
  if (longest_ > 0 && bytes > most) {
    std::string message = "has " + std::to_string(bytes) + " bytes, but " + std::to_string(room) +
                          " tokens hold no more than " + std::to_string(most);
    message += ", as none stands for more than " + std::to_string(longest_);
    return Error{ErrorCode::kLimit, std::move(message), ""};
  }
  return Merge(stretches, options);
}

std::string BpeTokenizer::Decode(std::span<const TokenId> ids, bool keep_special) const {
  std::vector<TokenDecoder::Token> tokens;
  tokens.reserve(ids.size());
  StopSteps steps;
  for (const TokenId id : ids) {
    steps.Step();
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
  constexpr int kMostLogits = 1 << 24;
  if (padded_size != 0 && padded_size < size()) {
    return Error{ErrorCode::kInvalid,
                 "the model has " + std::to_string(padded_size) + " logits, the tokenizer " +
                     std::to_string(size()) + " tokens",
                 "padded_size"};
  }
  if (padded_size > kMostLogits) {
    return Error{ErrorCode::kLimit, "more than 2^24 tokens: " + std::to_string(padded_size),
                 "padded_size"};
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

// A template of a post-processor is a list of ids with the place of the text's own tokens among
// them; sequences of processors are applied in their order.

PostProcessor PostProcessor::Load(const JsonReader& node) {
  PostProcessor out;
  if (!node.present()) return out;
  ForEachStep(node, "processors",
              [&](const JsonReader& step, const std::string& type) { out.Add(step, type); });
  return out;
}

TokenId PostProcessor::LoadId(const JsonReader& node) {
  return static_cast<TokenId>(node.Whole(0, std::numeric_limits<TokenId>::max()));
}

void PostProcessor::Add(const JsonReader& node, const std::string& type) {
  if (type == "ByteLevel") {
    node.OnlyMembers({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  } else if (type == "TemplateProcessing") {
    AddTemplate(node);
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    node.OnlyMembers({"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
    Template added;
    added.before.push_back(LoadId(node["cls"].Item(1)));
    added.after.push_back(LoadId(node["sep"].Item(1)));
    templates_.push_back(std::move(added));
  } else {
    node["type"].Unsupported("post-processor " + json::Quote(type));
  }
}

void PostProcessor::AddTemplate(const JsonReader& node) {
  node.OnlyMembers({"type", "single", "pair", "special_tokens"});
  const JsonReader single = node["single"], special = node["special_tokens"];
  Template added;
  bool seen = false;
  for (const JsonReader item : single.Array().items()) {
    item.OnlyMembers({"Sequence", "SpecialToken"});
    if (const JsonReader sequence = item["Sequence"]; sequence.present()) {
      if (sequence["id"].String() != "A") sequence.Unsupported("a second text");
      if (seen) sequence.Unsupported("the text twice");
      seen = true;
      continue;
    }
    const JsonReader token = special[item["SpecialToken"]["id"].String()];
    for (const JsonReader id : token["ids"].Array().items()) {
      (seen ? added.after : added.before).push_back(LoadId(id));
    }
  }
  if (!seen) single.Unsupported("a template without the text");
  templates_.push_back(std::move(added));
}

void PostProcessor::CollectIds(std::vector<TokenId>& out) const {
  for (const Template& added : templates_) {
    out.insert(out.end(), added.before.begin(), added.before.end());
    out.insert(out.end(), added.after.begin(), added.after.end());
  }
}

std::vector<TokenId> PostProcessor::Apply(std::vector<TokenId> ids) const {
  for (const Template& added : templates_) {
    ids.insert(ids.begin(), added.before.begin(), added.before.end());
    ids.insert(ids.end(), added.after.begin(), added.after.end());
  }
  return ids;
}

}  // namespace pawl
