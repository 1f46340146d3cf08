// BpeTokenizer: a tokenizer.json with a BPE model, put together from its parts. Internal to
// src/text: callers see Tokenizer.
#ifndef PAWL_SRC_TEXT_BPE_TOKENIZER_H_
#define PAWL_SRC_TEXT_BPE_TOKENIZER_H_

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "pawl/vocabulary.h"
#include "src/base/json_reader.h"
#include "src/text/added_tokens.h"
#include "src/text/bpe_model.h"
#include "src/text/normalizer.h"
#include "src/text/pre_tokenizer.h"
#include "src/text/token_decoder.h"
#include "src/text/tokenizer.h"

namespace pawl {

// The "post_processor" of a tokenizer.json, which puts tokens such as BOS around the text's.
// Immutable after Load; thread-safe.
class PostProcessor {
 public:
  // TemplateProcessing (its form for one text), ByteLevel (which only moves offsets),
  // RobertaProcessing, BertProcessing, Sequence; anything else is an error. `node` may be null or
  // absent.
  static PostProcessor Load(const JsonReader& node);

  // Appends every token it may add.
  void CollectIds(std::vector<TokenId>& out) const;
  std::vector<TokenId> Apply(std::vector<TokenId> ids) const;

 private:
  struct Template {
    std::vector<TokenId> before, after;
  };
  void Add(const JsonReader& node, const std::string& type);
  void AddTemplate(const JsonReader& node);
  static TokenId LoadId(const JsonReader& node);

  std::vector<Template> templates_;  // innermost first
};

struct TokenizerParts {
  BpeModel model;
  TextNormalizer normalizer;
  PreTokenizer pre_tokenizer;
  PostProcessor post_processor;
  TokenDecoder decoder;
  std::vector<AddedToken> added;
  TokenId bos = kNoToken;
  std::vector<TokenId> end_tokens;
};

class BpeTokenizer final : public Tokenizer {
 public:
  // REQUIRES: the ids of all parts are in range and agree with each other (the loader checks).
  explicit BpeTokenizer(TokenizerParts parts);

  std::vector<TokenId> Encode(std::string_view text, const EncodeOptions& options) const override;
  Result<std::vector<TokenId>> EncodeWithin(std::string_view text, int max_tokens,
                                            const EncodeOptions& options) const override;
  std::string Decode(std::span<const TokenId> ids, bool keep_special) const override;
  int size() const override { return static_cast<int>(tokens_.size()); }
  TokenId IdOf(std::string_view token) const override;
  std::string_view NameOf(TokenId id) const override;
  std::vector<TokenId> ControlTokensIn(std::string_view text) const override;
  TokenId bos() const override { return parts_.bos; }
  std::span<const TokenId> end_tokens() const override { return parts_.end_tokens; }
  Result<std::shared_ptr<const Vocabulary>> MakeVocabulary(int padded_size) const override;

 private:
  enum class Kind : uint8_t { kUnused, kText, kVerbatim, kSpecial };
  struct TokenInfo {
    std::string_view name;
    std::string_view text;  // what the decoder is given
    Kind kind = Kind::kUnused;
  };

  // A stretch of the text: an added token, or normalized text that becomes words.
  struct Stretch {
    std::string_view text;
    TokenId token = kNoToken;
    bool at_start = false;
  };
  // `store`: memory for the normalized texts.
  std::vector<Stretch> Cut(std::string_view text, const EncodeOptions& options,
                           std::deque<std::string>& store) const;
  std::vector<TokenId> Merge(const std::vector<Stretch>& stretches,
                             const EncodeOptions& options) const;

  TokenizerParts parts_;
  size_t longest_ = 0;  // bytes of normalized text that one token stands for; 0: no bound
  std::vector<TokenInfo> tokens_;
  TokenIndex added_index_;
  AddedTokenMatcher raw_matcher_;         // before normalizing
  AddedTokenMatcher normalized_matcher_;  // after
  AddedTokenMatcher control_matcher_;     // all that are not white space, before
};

// A tokenizer.json whose begin and end tokens are known from elsewhere. `file` stands before the
// JSON Pointers of errors.
Result<std::shared_ptr<const Tokenizer>> TokenizerFromJson(std::string_view json,
                                                           const std::string& file, TokenId bos,
                                                           std::span<const TokenId> end_tokens);

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_BPE_TOKENIZER_H_
