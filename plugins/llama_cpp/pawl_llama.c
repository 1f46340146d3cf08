/* The constraint as a llama_sampler_i.
 *
 * State. A sampler holds two matchers: `start`, where it began, and `now`. reset() goes from `now`
 * back to `start`; clone() copies both, so that a clone's reset leads to where the first one began;
 * copy_state() copies `now` (and `start`, of the same configuration) and leaves alone what belongs
 * to the graph that the destination is part of.
 *
 * apply() removes candidates rather than giving them a logit of minus infinity: their order stays,
 * so `sorted` stays true, and no sampler after this one divides by a sum of zeros. Where nothing is
 * left one token that fits takes the place of all.
 *
 * In the graph. ggml cannot run an automaton, but it can add. backend_apply() makes an input tensor
 * as wide as the logits and adds it; backend_set_input() fills it with 0 and minus infinity just
 * before the graph runs, when every token before this position was accepted. Where a sampler before
 * this one has cut the candidates (a top-k in the graph), the tensor is gathered by their ids
 * first. The graph may be reused for many steps: nothing but the contents of the tensor changes.
 *
 * Rows. With drafts a sequence has several outputs in one graph. backend_apply() is called for each
 * in order, and row i is filled with the mask after i draft tokens. Those are not accepted: a copy
 * of the matcher walks them.
 */
#include "pawl_llama.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-backend.h"
#include "ggml.h"

enum { kGraphNodes = 16, kPieceBytes = 256 };

struct row_list {
  struct ggml_tensor** tensors;
  size_t count, capacity;
};

struct constraint {
  pawl_matcher* start;
  pawl_matcher* now;
  llama_token* end_tokens;
  size_t end_token_count;
  size_t words;      /* of a mask */
  size_t vocab_size; /* bits that mean a token */
  uint32_t* row;     /* room for one mask */
  float* bias;       /* room for one row of the graph's tensor */
  size_t bias_width;
  llama_token refused;
  int64_t rescues;
  /* What belongs to the graph. */
  struct row_list rows;
  int takes_drafts;
  llama_token* draft;
  size_t draft_count;
};

static struct llama_sampler_i kInterface;

static struct constraint* Of(const struct llama_sampler* sampler) {
  return sampler && sampler->iface == &kInterface ? (struct constraint*)sampler->ctx : NULL;
}

static void FreeConstraint(struct constraint* c) {
  if (!c) return;
  pawl_matcher_free(c->start);
  pawl_matcher_free(c->now);
  free(c->end_tokens);
  free(c->row);
  free(c->bias);
  free(c->rows.tensors);
  free(c->draft);
  free(c);
}

/* ---- Masks ----------------------------------------------------------------------------------- */

static void AllowOnlyTheEnd(const struct constraint* c, uint32_t* row) {
  memset(row, 0, c->words * sizeof *row);
  for (size_t i = 0; i < c->end_token_count; ++i) {
    const size_t token = (size_t)c->end_tokens[i];
    if (token < c->vocab_size) row[token / 32] |= UINT32_C(1) << (token % 32);
  }
}

static void Mask(const struct constraint* c, const pawl_matcher* matcher, int refused,
                 uint32_t* row) {
  if (refused || pawl_matcher_fill_mask(matcher, row, c->words) != PAWL_OK) {
    AllowOnlyTheEnd(c, row);
  }
}

static int Allows(const struct constraint* c, const uint32_t* row, llama_token token) {
  return token >= 0 && (size_t)token < c->vocab_size && (row[token / 32] >> (token % 32) & 1) != 0;
}

/* A token that fits: one that leads to the end soon if that is known, else the first of the mask.
 */
static llama_token SomeToken(const struct constraint* c) {
  llama_token token = -1;
  size_t count = 0;
  if (c->refused < 0) pawl_matcher_completion_tokens(c->now, &token, 1, &count);
  if (count > 0 && Allows(c, c->row, token)) return token;
  for (size_t i = 0; i < c->vocab_size; ++i) {
    if (Allows(c, c->row, (llama_token)i)) return (llama_token)i;
  }
  return -1;
}

/* ---- The sampler on the CPU ------------------------------------------------------------------ */

static const char* Name(const struct llama_sampler* sampler) {
  (void)sampler;
  return "pawl";
}

static void Accept(struct llama_sampler* sampler, llama_token token) {
  struct constraint* c = Of(sampler);
  c->draft_count = 0;
  if (c->refused >= 0 || pawl_matcher_is_terminated(c->now)) return; /* what follows the end */
  if (pawl_matcher_accept(c->now, token) != PAWL_OK) c->refused = token;
}

static void Apply(struct llama_sampler* sampler, llama_token_data_array* candidates) {
  struct constraint* c = Of(sampler);
  if (candidates->size == 0) return;
  Mask(c, c->now, c->refused >= 0, c->row);
  const size_t before = candidates->size;
  size_t kept = 0;
  int64_t selected = -1;
  for (size_t i = 0; i < before; ++i) {
    if (!Allows(c, c->row, candidates->data[i].id)) continue;
    if (candidates->selected == (int64_t)i) selected = (int64_t)kept;
    candidates->data[kept++] = candidates->data[i];
  }
  if (kept == 0) {
    const llama_token token = SomeToken(c);
    if (token < 0) return; /* a vocabulary without an end: nothing that fits could be said */
    ++c->rescues;
    candidates->data[0].id = token;
    candidates->data[0].logit = 0;
    candidates->data[0].p = 1;
    kept = 1;
  }
  candidates->size = kept;
  candidates->selected = selected;
}

static void Reset(struct llama_sampler* sampler) {
  struct constraint* c = Of(sampler);
  pawl_matcher* now = NULL;
  c->refused = -1;
  c->draft_count = 0;
  if (pawl_matcher_clone(c->start, &now) == PAWL_OK) {
    pawl_matcher_free(c->now);
    c->now = now;
  } else {
    /* Without memory for a copy: the steps taken since the start are taken back, which needs none.
     */
    pawl_matcher_rollback(c->now, pawl_matcher_steps(c->now) - pawl_matcher_steps(c->start));
  }
}

static struct constraint* NewConstraint(const pawl_matcher* start, const pawl_matcher* now,
                                        const llama_token* end_tokens, size_t end_token_count,
                                        size_t vocab_size) {
  struct constraint* c = calloc(1, sizeof *c);
  if (!c) return NULL;
  c->refused = -1;
  c->vocab_size = vocab_size;
  c->words = (vocab_size + 31) / 32;
  c->end_token_count = end_token_count;
  c->end_tokens = malloc((end_token_count + 1) * sizeof *c->end_tokens);
  c->row = malloc((c->words + 1) * sizeof *c->row);
  if (!c->end_tokens || !c->row || pawl_matcher_clone(start, &c->start) != PAWL_OK ||
      pawl_matcher_clone(now, &c->now) != PAWL_OK) {
    FreeConstraint(c);
    return NULL;
  }
  if (end_token_count) memcpy(c->end_tokens, end_tokens, end_token_count * sizeof *end_tokens);
  return c;
}

static struct llama_sampler* Wrap(struct constraint* c) {
  struct llama_sampler* sampler = c ? llama_sampler_init(&kInterface, c) : NULL;
  if (!sampler) FreeConstraint(c);
  return sampler;
}

static struct llama_sampler* Clone(const struct llama_sampler* sampler) {
  const struct constraint* c = Of(sampler);
  struct constraint* clone =
      NewConstraint(c->start, c->now, c->end_tokens, c->end_token_count, c->vocab_size);
  if (!clone) return NULL;
  clone->refused = c->refused;
  clone->rescues = c->rescues;
  clone->takes_drafts = c->takes_drafts;
  return Wrap(clone);
}

static void CopyState(const struct llama_sampler* from, struct llama_sampler* to) {
  const struct constraint* src = Of(from);
  struct constraint* dst = Of(to);
  pawl_matcher *start = NULL, *now = NULL;
  if (!src || !dst || src == dst) return;
  if (pawl_matcher_clone(src->start, &start) != PAWL_OK ||
      pawl_matcher_clone(src->now, &now) != PAWL_OK) {
    pawl_matcher_free(start);
    dst->refused = 0; /* not known where it stands: it may only end */
    return;
  }
  pawl_matcher_free(dst->start);
  pawl_matcher_free(dst->now);
  dst->start = start;
  dst->now = now;
  dst->refused = src->refused;
  dst->rescues = src->rescues;
  dst->draft_count = 0;
}

static void Free(struct llama_sampler* sampler) { FreeConstraint(Of(sampler)); }

/* ---- The sampler in the graph ---------------------------------------------------------------- */

static void BackendReset(struct llama_sampler* sampler) { Of(sampler)->rows.count = 0; }

static void BackendApply(struct llama_sampler* sampler, struct ggml_context* ctx,
                         struct ggml_cgraph* graph, struct llama_sampler_data* data) {
  struct constraint* c = Of(sampler);
  struct row_list* rows = &c->rows;
  (void)graph;
  if (rows->count == rows->capacity) {
    const size_t capacity = rows->capacity ? 2 * rows->capacity : 4;
    struct ggml_tensor** grown = realloc(rows->tensors, capacity * sizeof *grown);
    if (!grown) abort(); /* the interface has no way to fail here; leaving the row open would lie */
    rows->tensors = grown;
    rows->capacity = capacity;
  }
  const int64_t width = ggml_nelements(data->logits);
  struct ggml_tensor* logits = ggml_reshape_1d(ctx, data->logits, width);
  struct ggml_tensor* mask;
  if (data->candidates) {
    struct ggml_tensor* all = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 1, (int64_t)c->vocab_size);
    ggml_set_input(all);
    rows->tensors[rows->count++] = all;
    struct ggml_tensor* ids = ggml_reshape_1d(ctx, data->candidates, width);
    mask = ggml_reshape_1d(ctx, ggml_get_rows(ctx, all, ids), width);
  } else {
    mask = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, width);
    ggml_set_input(mask);
    rows->tensors[rows->count++] = mask;
  }
  data->logits = ggml_add(ctx, logits, mask);
}

static int Supports(struct llama_sampler* sampler, ggml_backend_buffer_type_t buffers,
                    int with_candidates) {
  const int64_t width = (int64_t)Of(sampler)->vocab_size;
  ggml_backend_dev_t device = ggml_backend_buft_get_device(buffers);
  struct ggml_init_params params = {kGraphNodes * ggml_tensor_overhead(), NULL, true};
  struct ggml_context* ctx;
  int supported = 1;
  if (!device) return 1; /* memory of the host: the CPU knows all operations */
  ctx = ggml_init(params);
  if (!ctx) return 0;
  struct llama_sampler_data data = {ggml_new_tensor_1d(ctx, GGML_TYPE_F32, width), NULL, NULL,
                                    NULL};
  if (with_candidates) data.candidates = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, width);
  BackendApply(sampler, ctx, NULL, &data);
  for (struct ggml_tensor* t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
    if (!ggml_backend_dev_supports_op(device, t)) supported = 0;
  }
  BackendReset(sampler);
  ggml_free(ctx);
  return supported;
}

static bool BackendInit(struct llama_sampler* sampler, ggml_backend_buffer_type_t buffers,
                        uint32_t outputs) {
  struct constraint* c = Of(sampler);
  if (outputs > 1 && !c->takes_drafts) return false;
  return Supports(sampler, buffers, 0) && Supports(sampler, buffers, 1);
}

static void SetRow(struct constraint* c, struct ggml_tensor* tensor) {
  const size_t width = (size_t)ggml_nelements(tensor);
  if (width > c->bias_width) {
    float* grown = realloc(c->bias, width * sizeof *grown);
    if (!grown) abort(); /* as above */
    c->bias = grown;
    c->bias_width = width;
  }
  for (size_t i = 0; i < width; ++i) {
    c->bias[i] = Allows(c, c->row, (llama_token)i) ? 0.0f : -INFINITY;
  }
  ggml_backend_tensor_set(tensor, c->bias, 0, width * sizeof *c->bias);
}

static void BackendSetInput(struct llama_sampler* sampler) {
  struct constraint* c = Of(sampler);
  pawl_matcher* walk = NULL;
  int refused = c->refused >= 0;
  if (c->rows.count > 1 && pawl_matcher_clone(c->now, &walk) != PAWL_OK) refused = 1;
  for (size_t i = 0; i < c->rows.count; ++i) {
    if (i > 0 && !refused) {
      refused = i > c->draft_count || pawl_matcher_accept(walk, c->draft[i - 1]) != PAWL_OK;
    }
    Mask(c, walk ? walk : c->now, refused, c->row);
    SetRow(c, c->rows.tensors[i]);
  }
  pawl_matcher_free(walk);
}

static struct llama_sampler_i kInterface = {
    Name,        Accept, Apply,        Reset,           Clone,        Free,
    BackendInit, NULL,   BackendApply, BackendSetInput, BackendReset, CopyState,
};

/* ---- Making one ------------------------------------------------------------------------------ */

struct token_list {
  char** bytes;
  size_t* lengths;
  int32_t *special, *ends;
  size_t count, special_count, end_count;
};

static void FreeTokens(struct token_list* list) {
  for (size_t i = 0; list->bytes && i < list->count; ++i) free(list->bytes[i]);
  free(list->bytes);
  free(list->lengths);
  free(list->special);
  free(list->ends);
}

/* The bytes of a token, in memory of their own; NULL when there is none. */
static char* PieceOf(const struct llama_vocab* vocab, llama_token token, size_t* length) {
  char* bytes = malloc(kPieceBytes);
  int32_t size = bytes ? llama_token_to_piece(vocab, token, bytes, kPieceBytes, 0, true) : 0;
  if (bytes && size < 0) { /* too long for the buffer: minus its length */
    char* longer = realloc(bytes, (size_t)-size);
    if (!longer) free(bytes);
    bytes = longer;
    if (bytes) size = llama_token_to_piece(vocab, token, bytes, -size, 0, true);
  }
  *length = bytes && size > 0 ? (size_t)size : 0;
  return bytes;
}

static int ReadTokens(const struct llama_vocab* vocab, struct token_list* list) {
  const int hidden = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN | LLAMA_TOKEN_ATTR_UNUSED;
  const int32_t size = llama_vocab_n_tokens(vocab);
  const size_t room = size > 0 ? (size_t)size : 1;
  list->bytes = calloc(room, sizeof *list->bytes);
  list->lengths = calloc(room, sizeof *list->lengths);
  list->special = calloc(room, sizeof *list->special);
  list->ends = calloc(room, sizeof *list->ends);
  if (!list->bytes || !list->lengths || !list->special || !list->ends) return 0;
  for (int32_t token = 0; token < size; ++token) {
    list->bytes[token] = PieceOf(vocab, token, &list->lengths[token]);
    ++list->count;
    if (!list->bytes[token]) return 0;
    const int ends = llama_vocab_is_eog(vocab, token);
    if (ends) list->ends[list->end_count++] = token;
    if (ends || ((int)llama_vocab_get_attr(vocab, token) & hidden) || list->lengths[token] == 0) {
      list->special[list->special_count++] = token;
    }
  }
  return 1;
}

pawl_status pawl_llama_vocabulary(const struct llama_vocab* vocab, pawl_vocabulary** vocabulary,
                                  pawl_error** error) {
  struct token_list list = {0};
  pawl_vocabulary_tokens tokens;
  pawl_status status = PAWL_LIMIT;
  if (!vocab || !vocabulary) return PAWL_BAD_ARGUMENT;
  if (ReadTokens(vocab, &list)) {
    pawl_vocabulary_tokens_init(&tokens, sizeof tokens);
    tokens.tokens = (const char* const*)list.bytes;
    tokens.lengths = list.lengths;
    tokens.count = list.count;
    tokens.special = list.special;
    tokens.special_count = list.special_count;
    tokens.end_tokens = list.ends;
    tokens.end_token_count = list.end_count;
    status = pawl_vocabulary_create(&tokens, vocabulary, error);
  }
  FreeTokens(&list);
  return status;
}

struct llama_sampler* pawl_llama_sampler_init(const pawl_vocabulary* vocabulary,
                                              const pawl_matcher* matcher) {
  struct constraint* c = NULL;
  int32_t* ends;
  size_t end_count = 0;
  if (!vocabulary || !matcher) return NULL;
  if (pawl_vocabulary_end_tokens(vocabulary, NULL, 0, &end_count) != PAWL_OK) return NULL;
  ends = malloc((end_count + 1) * sizeof *ends);
  if (ends && pawl_vocabulary_end_tokens(vocabulary, ends, end_count, &end_count) == PAWL_OK) {
    c = NewConstraint(matcher, matcher, ends, end_count, pawl_vocabulary_size(vocabulary));
  }
  free(ends);
  return Wrap(c);
}

struct llama_sampler* pawl_llama_sampler_from_text(const struct llama_vocab* vocab,
                                                   const char* kind, const char* text,
                                                   size_t length, pawl_error** error) {
  pawl_vocabulary* vocabulary = NULL;
  pawl_compiler* compiler = NULL;
  pawl_grammar* grammar = NULL;
  pawl_matcher* matcher = NULL;
  struct llama_sampler* sampler = NULL;
  if (pawl_llama_vocabulary(vocab, &vocabulary, error) == PAWL_OK &&
      pawl_compiler_create(vocabulary, NULL, &compiler, error) == PAWL_OK &&
      pawl_compile(compiler, kind, text, length, NULL, &grammar, error) == PAWL_OK &&
      pawl_matcher_create(grammar, NULL, &matcher, error) == PAWL_OK) {
    sampler = pawl_llama_sampler_init(vocabulary, matcher);
  }
  pawl_matcher_free(matcher);
  pawl_grammar_free(grammar);
  pawl_compiler_free(compiler);
  pawl_vocabulary_free(vocabulary);
  return sampler;
}

/* ---- What may be asked of one ---------------------------------------------------------------- */

int pawl_llama_sampler_ended(const struct llama_sampler* sampler) {
  const struct constraint* c = Of(sampler);
  return c && pawl_matcher_is_terminated(c->now);
}

int32_t pawl_llama_sampler_refused(const struct llama_sampler* sampler) {
  const struct constraint* c = Of(sampler);
  return c ? c->refused : -1;
}

int64_t pawl_llama_sampler_rescues(const struct llama_sampler* sampler) {
  const struct constraint* c = Of(sampler);
  return c ? c->rescues : 0;
}

int pawl_llama_sampler_rollback(struct llama_sampler* sampler, size_t tokens) {
  struct constraint* c = Of(sampler);
  if (!c || c->refused >= 0) return 0;
  if (tokens > pawl_matcher_steps(c->now) - pawl_matcher_steps(c->start)) return 0;
  return pawl_matcher_rollback(c->now, tokens) == PAWL_OK;
}

size_t pawl_llama_sampler_validate(const struct llama_sampler* sampler, const llama_token* tokens,
                                   size_t count) {
  const struct constraint* c = Of(sampler);
  size_t accepted = 0;
  if (!c || c->refused >= 0) return 0;
  pawl_matcher_validate_tokens(c->now, tokens, count, &accepted);
  return accepted;
}

int pawl_llama_sampler_set_draft(struct llama_sampler* sampler, const llama_token* tokens,
                                 size_t count) {
  struct constraint* c = Of(sampler);
  llama_token* draft;
  if (!c) return 0;
  c->takes_drafts = 1;
  c->draft_count = 0;
  if (count == 0) return 1;
  draft = realloc(c->draft, count * sizeof *draft);
  if (!draft) return 0;
  memcpy(draft, tokens, count * sizeof *draft);
  c->draft = draft;
  c->draft_count = count;
  return 1;
}
