// Each function checks its handles, calls pawl::Matcher and turns a Result into a status and an
// error object. Masks go into the caller's memory, so nothing is copied twice.
#include "pawl/matcher.h"

#include "src/capi/handles.h"

using namespace pawl;        // NOLINT: this file is the C face of that namespace
using namespace pawl::capi;  // NOLINT

namespace {

size_t MaskWords(const pawl_matcher& matcher) {
  return static_cast<size_t>(matcher.vocabulary->vocabulary->mask_words());
}

}  // namespace

extern "C" {

void pawl_matcher_options_init(pawl_matcher_options* options, size_t struct_size) {
  InitStruct(options, struct_size, {});
}

pawl_status pawl_matcher_create(const pawl_grammar* grammar, const pawl_matcher_options* options,
                                pawl_matcher** matcher, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (grammar == nullptr) return Null(error, "grammar");
    if (matcher == nullptr) return Null(error, "matcher");
    pawl_matcher_options read{};
    if (const pawl_status bad = ReadStruct(options, read, error)) return bad;
    if (!IsText(read.end_tokens, read.end_token_count)) return Null(error, "end_tokens");
    MatcherOptions kept;
    if (read.end_token_count > 0)
      kept.end_tokens.assign(read.end_tokens, read.end_tokens + read.end_token_count);
    kept.terminate_without_end_token = read.terminate_without_end_token != 0;
    Result<Matcher> made = Matcher::Create(grammar->grammar, kept);
    if (!made.ok()) return Fail(error, made.error());
    *matcher = new pawl_matcher{*std::move(made), grammar->vocabulary};
    return PAWL_OK;
  });
}

pawl_status pawl_matcher_clone(const pawl_matcher* matcher, pawl_matcher** clone) {
  return Guard(nullptr, [&]() -> pawl_status {
    if (matcher == nullptr || clone == nullptr) return PAWL_BAD_ARGUMENT;
    *clone = new pawl_matcher(*matcher);
    return PAWL_OK;
  });
}

void pawl_matcher_free(pawl_matcher* matcher) { delete matcher; }

pawl_status pawl_matcher_accept(pawl_matcher* matcher, int32_t token) {
  return Guard(nullptr, [&]() -> pawl_status {
    if (matcher == nullptr) return PAWL_BAD_ARGUMENT;
    return matcher->matcher.Accept(token) ? PAWL_OK : PAWL_REFUSED;
  });
}

pawl_status pawl_matcher_accept_bytes(pawl_matcher* matcher, const char* bytes, size_t length) {
  return Guard(nullptr, [&]() -> pawl_status {
    if (matcher == nullptr || !IsText(bytes, length)) return PAWL_BAD_ARGUMENT;
    return matcher->matcher.AcceptBytes(Text(bytes, length)) ? PAWL_OK : PAWL_REFUSED;
  });
}

pawl_status pawl_matcher_rollback(pawl_matcher* matcher, size_t steps) {
  if (matcher == nullptr || !matcher->matcher.Rollback(steps)) return PAWL_BAD_ARGUMENT;
  return PAWL_OK;
}

pawl_status pawl_matcher_reset(pawl_matcher* matcher) {
  if (matcher == nullptr) return PAWL_BAD_ARGUMENT;
  matcher->matcher.Reset();
  return PAWL_OK;
}

size_t pawl_matcher_steps(const pawl_matcher* matcher) {
  return matcher == nullptr ? 0 : matcher->matcher.steps();
}

int pawl_matcher_is_terminated(const pawl_matcher* matcher) {
  int terminated = 0;
  Guard(nullptr, [&]() -> pawl_status {
    terminated = matcher != nullptr && matcher->matcher.terminated() ? 1 : 0;
    return PAWL_OK;
  });
  return terminated;
}

int pawl_matcher_is_accepting(const pawl_matcher* matcher) {
  int accepting = 0;
  Guard(nullptr, [&]() -> pawl_status {
    accepting = matcher != nullptr && matcher->matcher.accepting() ? 1 : 0;
    return PAWL_OK;
  });
  return accepting;
}

pawl_status pawl_matcher_fill_mask(const pawl_matcher* matcher, uint32_t* row, size_t words) {
  return Guard(nullptr, [&]() -> pawl_status {
    if (matcher == nullptr || row == nullptr || words < MaskWords(*matcher))
      return PAWL_BAD_ARGUMENT;
    return matcher->matcher.FillMask({row, words}) ? PAWL_OK : PAWL_ENDED;
  });
}

pawl_status pawl_matcher_validate_tokens(const pawl_matcher* matcher, const int32_t* tokens,
                                         size_t count, size_t* accepted) {
  return Guard(nullptr, [&]() -> pawl_status {
    if (matcher == nullptr || !IsText(tokens, count) || accepted == nullptr)
      return PAWL_BAD_ARGUMENT;
    *accepted = matcher->matcher.ValidateTokens({tokens, count});
    return PAWL_OK;
  });
}

pawl_status pawl_matcher_forced_bytes(const pawl_matcher* matcher, char* bytes, size_t capacity,
                                      size_t* length) {
  return Guard(nullptr, [&]() -> pawl_status {
    if (matcher == nullptr || !IsText(bytes, capacity) || length == nullptr)
      return PAWL_BAD_ARGUMENT;
    const std::string forced = matcher->matcher.ForcedBytes(capacity);
    std::ranges::copy(forced, bytes);
    *length = forced.size();
    return PAWL_OK;
  });
}

pawl_status pawl_matcher_forced_tokens(const pawl_matcher* matcher, int32_t* tokens,
                                       size_t capacity, size_t* count) {
  return Guard(nullptr, [&]() -> pawl_status {
    if (matcher == nullptr || !IsText(tokens, capacity) || count == nullptr)
      return PAWL_BAD_ARGUMENT;
    constexpr size_t kMostBytes = 256;
    Encoder encode;
    if (const Tokenizer* tokenizer = matcher->vocabulary->tokenizer.get())
      encode = [tokenizer](std::string_view text) { return tokenizer->Encode(text); };
    const std::vector<TokenId> forced = matcher->matcher.ForcedTokens(kMostBytes, encode);
    *count = std::min(capacity, forced.size());
    std::copy_n(forced.begin(), *count, tokens);
    return PAWL_OK;
  });
}

pawl_status pawl_matcher_captures(const pawl_matcher* matcher, pawl_captures** captures,
                                  pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (matcher == nullptr) return Null(error, "matcher");
    if (captures == nullptr) return Null(error, "captures");
    Result<std::vector<Capture>> found = matcher->matcher.Captures();
    if (!found.ok()) return Fail(error, found.error());
    *captures = new pawl_captures{*std::move(found)};
    return PAWL_OK;
  });
}

size_t pawl_captures_count(const pawl_captures* captures) {
  return captures == nullptr ? 0 : captures->list.size();
}

pawl_status pawl_captures_get(const pawl_captures* captures, size_t index, const char** name,
                              size_t* begin, size_t* end, const char** text, size_t* text_length) {
  if (index >= pawl_captures_count(captures)) return PAWL_BAD_ARGUMENT;
  const Capture& capture = captures->list[index];
  if (name != nullptr) *name = capture.name.c_str();
  if (begin != nullptr) *begin = capture.begin;
  if (end != nullptr) *end = capture.end;
  if (text != nullptr) *text = capture.text.c_str();
  if (text_length != nullptr) *text_length = capture.text.size();
  return PAWL_OK;
}

void pawl_captures_free(pawl_captures* captures) { delete captures; }

pawl_status pawl_matcher_temperature(const pawl_matcher* matcher, float* temperature) {
  return Guard(nullptr, [&]() -> pawl_status {
    if (matcher == nullptr || temperature == nullptr) return PAWL_BAD_ARGUMENT;
    *temperature = matcher->matcher.temperature().value_or(-1.0f);
    return PAWL_OK;
  });
}

pawl_status pawl_matcher_completion_tokens(const pawl_matcher* matcher, int32_t* tokens,
                                           size_t capacity, size_t* count) {
  return Guard(nullptr, [&]() -> pawl_status {
    if (matcher == nullptr || !IsText(tokens, capacity) || count == nullptr)
      return PAWL_BAD_ARGUMENT;
    const auto completion = matcher->matcher.CompletionTokens();
    if (!completion) return PAWL_LIMIT;
    *count = completion->size();
    std::copy_n(completion->begin(), std::min(capacity, completion->size()), tokens);
    return PAWL_OK;
  });
}

pawl_status pawl_matcher_fill_tree(const pawl_matcher* matcher, const int32_t* tokens,
                                   const int32_t* parents, size_t count, uint32_t* rows,
                                   size_t stride, uint8_t* accepted, size_t* fit,
                                   pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (matcher == nullptr) return Null(error, "matcher");
    if (!IsText(tokens, count)) return Null(error, "tokens");
    if (!IsText(parents, count)) return Null(error, "parents");
    if (!IsText(rows, count)) return Null(error, "rows");
    if (stride < MaskWords(*matcher)) {
      return BadArgument(error, "stride",
                         "must be at least " + std::to_string(MaskWords(*matcher)));
    }
    const Result<size_t> filled =
        FillTreeMasks(matcher->matcher, {tokens, count}, {parents, count}, rows, stride,
                      {accepted, accepted == nullptr ? 0 : count});
    if (!filled.ok()) return Fail(error, filled.error());
    if (fit != nullptr) *fit = *filled;
    return PAWL_OK;
  });
}

pawl_status pawl_draft_tree_parents(const int32_t* next_token, const int32_t* next_sibling,
                                    size_t count, int32_t* parents, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (!IsText(next_token, count)) return Null(error, "next_token");
    if (!IsText(next_sibling, count)) return Null(error, "next_sibling");
    if (!IsText(parents, count)) return Null(error, "parents");
    const auto found = DraftTreeParents({next_token, count}, {next_sibling, count});
    if (!found.ok()) return Fail(error, found.error());
    std::ranges::copy(*found, parents);
    return PAWL_OK;
  });
}

pawl_status pawl_batch_create(int32_t threads, pawl_batch** batch, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    constexpr int32_t kMostThreads = 4096;
    if (batch == nullptr) return Null(error, "batch");
    if (threads < 0 || threads > kMostThreads)
      return BadArgument(error, "threads", "must be 0.." + std::to_string(kMostThreads));
    *batch = new pawl_batch{BatchFiller(threads)};
    return PAWL_OK;
  });
}

int32_t pawl_batch_threads(const pawl_batch* batch) {
  return batch == nullptr ? 0 : batch->filler.threads();
}

pawl_status pawl_batch_fill(const pawl_batch* batch, const pawl_matcher* const* matchers,
                            size_t count, uint32_t* rows, size_t stride, size_t* ended) {
  return Guard(nullptr, [&]() -> pawl_status {
    if (batch == nullptr || !IsText(matchers, count) || !IsText(rows, count))
      return PAWL_BAD_ARGUMENT;
    std::vector<const Matcher*> list(count);
    for (size_t i = 0; i < count; ++i) {
      if (matchers[i] == nullptr) continue;
      if (stride < MaskWords(*matchers[i])) return PAWL_BAD_ARGUMENT;
      list[i] = &matchers[i]->matcher;
    }
    const size_t none = batch->filler.Fill(list, rows, stride);
    if (ended != nullptr) *ended = none;
    return PAWL_OK;
  });
}

void pawl_batch_free(pawl_batch* batch) { delete batch; }

}  // extern "C"
