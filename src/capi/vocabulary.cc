// A vocabulary of the C library is either a list of tokens or a tokenizer's; the tokenizer is kept
// with it for those that want texts encoded.
#include "pawl/vocabulary.h"

#include "src/capi/handles.h"

namespace pawl::capi {
namespace {

pawl_status Finish(Result<std::shared_ptr<const Vocabulary>> made,
                   std::shared_ptr<const Tokenizer> tokenizer, pawl_vocabulary** out,
                   pawl_error** error) {
  if (!made.ok()) return Fail(error, made.error());
  auto data = std::make_shared<VocabularyData>();
  data->vocabulary = *std::move(made);
  data->tokenizer = std::move(tokenizer);
  data->fingerprint = FingerprintOf(*data->vocabulary);
  *out = new pawl_vocabulary{std::move(data)};
  return PAWL_OK;
}

// The vocabulary with other end tokens: those it had stay special.
Result<std::shared_ptr<const Vocabulary>> WithEndTokens(const Vocabulary& vocabulary,
                                                        std::vector<TokenId> end_tokens) {
  VocabularyInit init;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    init.tokens.emplace_back(vocabulary.bytes(id));
    if (vocabulary.is_special(id)) init.special.push_back(id);
  }
  init.end_tokens = std::move(end_tokens);
  return Vocabulary::Create(std::move(init));
}

pawl_status FromTokenizer(const Result<std::shared_ptr<const Tokenizer>>& tokenizer,
                          const pawl_tokenizer_options* given, pawl_vocabulary** out,
                          pawl_error** error) {
  pawl_tokenizer_options options{};
  if (const pawl_status bad = ReadStruct(given, options, error)) return bad;
  if (options.padded_size < 0) return BadArgument(error, "padded_size", "must not be negative");
  if (!IsText(options.end_tokens, options.end_token_count)) return Null(error, "end_tokens");
  if (!tokenizer.ok()) return Fail(error, tokenizer.error());
  auto vocabulary = (*tokenizer)->MakeVocabulary(options.padded_size);
  if (vocabulary.ok() && options.end_token_count > 0) {
    vocabulary = WithEndTokens(**vocabulary,
                               {options.end_tokens, options.end_tokens + options.end_token_count});
  }
  return Finish(std::move(vocabulary), *tokenizer, out, error);
}

}  // namespace
}  // namespace pawl::capi

using namespace pawl;        // NOLINT: this file is the C face of that namespace
using namespace pawl::capi;  // NOLINT

extern "C" {

void pawl_vocabulary_tokens_init(pawl_vocabulary_tokens* tokens, size_t struct_size) {
  InitStruct(tokens, struct_size, {});
}
void pawl_tokenizer_options_init(pawl_tokenizer_options* options, size_t struct_size) {
  InitStruct(options, struct_size, {});
}

pawl_status pawl_vocabulary_create(const pawl_vocabulary_tokens* tokens,
                                   pawl_vocabulary** vocabulary, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (tokens == nullptr) return Null(error, "tokens");
    if (vocabulary == nullptr) return Null(error, "vocabulary");
    pawl_vocabulary_tokens given{};
    if (const pawl_status bad = ReadStruct(tokens, given, error)) return bad;
    if (!IsText(given.tokens, given.count)) return Null(error, "tokens.tokens");
    if (!IsText(given.lengths, given.count)) return Null(error, "tokens.lengths");
    if (!IsText(given.special, given.special_count)) return Null(error, "tokens.special");
    if (!IsText(given.end_tokens, given.end_token_count)) return Null(error, "tokens.end_tokens");
    VocabularyInit init;
    init.tokens.reserve(given.count);
    for (size_t i = 0; i < given.count; ++i) {
      if (!IsText(given.tokens[i], given.lengths[i])) {
        return Null(error, "tokens.tokens[" + std::to_string(i) + "]");
      }
      init.tokens.emplace_back(Text(given.tokens[i], given.lengths[i]));
    }
    if (given.special_count > 0)
      init.special.assign(given.special, given.special + given.special_count);
    if (given.end_token_count > 0)
      init.end_tokens.assign(given.end_tokens, given.end_tokens + given.end_token_count);
    return Finish(Vocabulary::Create(std::move(init)), nullptr, vocabulary, error);
  });
}

pawl_status pawl_vocabulary_from_tokenizer_json(const char* json, size_t json_length,
                                                const pawl_tokenizer_options* options,
                                                pawl_vocabulary** vocabulary, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (!IsText(json, json_length)) return Null(error, "json");
    if (vocabulary == nullptr) return Null(error, "vocabulary");
    return FromTokenizer(Tokenizer::FromJson(Text(json, json_length)), options, vocabulary, error);
  });
}

pawl_status pawl_vocabulary_from_tokenizer_file(const char* path, size_t path_length,
                                                const pawl_tokenizer_options* options,
                                                pawl_vocabulary** vocabulary, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (!IsText(path, path_length)) return Null(error, "path");
    if (vocabulary == nullptr) return Null(error, "vocabulary");
    return FromTokenizer(Tokenizer::FromFile(std::string(Text(path, path_length))), options,
                         vocabulary, error);
  });
}

size_t pawl_vocabulary_size(const pawl_vocabulary* vocabulary) {
  return vocabulary == nullptr ? 0 : static_cast<size_t>(vocabulary->data->vocabulary->size());
}

size_t pawl_vocabulary_mask_words(const pawl_vocabulary* vocabulary) {
  return vocabulary == nullptr ? 0
                               : static_cast<size_t>(vocabulary->data->vocabulary->mask_words());
}

pawl_status pawl_vocabulary_token(const pawl_vocabulary* vocabulary, int32_t token,
                                  const char** bytes, size_t* length) {
  if (vocabulary == nullptr || bytes == nullptr || length == nullptr) return PAWL_BAD_ARGUMENT;
  const Vocabulary& v = *vocabulary->data->vocabulary;
  if (token < 0 || token >= v.size()) return PAWL_BAD_ARGUMENT;
  *bytes = v.bytes(token).data();
  *length = v.bytes(token).size();
  return PAWL_OK;
}

pawl_status pawl_vocabulary_end_tokens(const pawl_vocabulary* vocabulary, int32_t* tokens,
                                       size_t capacity, size_t* count) {
  if (vocabulary == nullptr || count == nullptr || !IsText(tokens, capacity))
    return PAWL_BAD_ARGUMENT;
  const auto ends = vocabulary->data->vocabulary->end_tokens();
  std::copy_n(ends.begin(), std::min(capacity, ends.size()), tokens);
  *count = ends.size();
  return PAWL_OK;
}

pawl_status pawl_vocabulary_fingerprint(const pawl_vocabulary* vocabulary, uint64_t words[2]) {
  if (vocabulary == nullptr || words == nullptr) return PAWL_BAD_ARGUMENT;
  std::ranges::copy(vocabulary->data->fingerprint, words);
  return PAWL_OK;
}

void pawl_vocabulary_free(pawl_vocabulary* vocabulary) { delete vocabulary; }

}  // extern "C"
