/* pawl.h: Pawl for C, and for every language that can call C functions.
 *
 *   pawl_vocabulary* vocabulary = NULL;
 *   pawl_compiler* compiler = NULL;
 *   pawl_grammar* grammar = NULL;
 *   pawl_matcher* matcher = NULL;
 *   pawl_error* error = NULL;
 *   if (pawl_vocabulary_from_tokenizer_file(path, strlen(path), NULL, &vocabulary, &error) ||
 *       pawl_compiler_create(vocabulary, NULL, &compiler, &error) ||
 *       pawl_compile(compiler, "json_schema", schema, strlen(schema), NULL, &grammar, &error) ||
 *       pawl_matcher_create(grammar, NULL, &matcher, &error)) {
 *     fprintf(stderr, "%s: %s\n", pawl_error_place(error), pawl_error_message(error));
 *     ...
 *   }
 *   size_t words = pawl_vocabulary_mask_words(vocabulary);
 *   uint32_t* row = malloc(words * sizeof *row);
 *   while (pawl_matcher_fill_mask(matcher, row, words) == PAWL_OK) {
 *     int32_t token = sample(logits, row);     // bit i of word i / 32 is 1: token i may come next
 *     pawl_matcher_accept(matcher, token);
 *   }
 *
 * Link with -lpawl (pkg-config pawl, or pawl::c of find_package(pawl COMPONENTS c)).
 *
 * Conventions
 *  1. Handles are opaque. The caller frees a handle with the function named after its type.
 *     Freeing NULL does nothing. A handle keeps alive the handles that it was made from, so
 *     handles may be freed in any order.
 *  2. Functions that can fail return a pawl_status. PAWL_OK is 0, all others are not. If `error`
 *     is not NULL, a function that fails stores a new error there, which the caller frees. A
 *     function that succeeds leaves `error` unchanged. Output parameters are written on success
 *     only.
 *  3. Strings and bytes are a pointer and a length. They need not end with a zero. A pointer may
 *     be NULL if its length is 0.
 *  4. Structs begin with struct_size. Their *_init function sets the defaults; then change fields.
 *     So programs keep working with later versions of the library, whose structs are longer.
 *  5. Truth values are ints: 0 or 1.
 *  6. A NULL or a length that is not allowed is PAWL_BAD_ARGUMENT, and the function does nothing.
 *  7. The library prints nothing, reads no environment variables, throws no exceptions, and keeps
 *     no global state.
 * Thread safety. "Threads: any": several threads may call the function at the same time, also with
 * the same arguments. "Threads: alone": nothing else may use the handle at the same time. Freeing
 * a handle is always "alone". The *_init functions are "any", for different structs.
 */
#ifndef PAWL_PAWL_H_
#define PAWL_PAWL_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define PAWL_API __attribute__((visibility("default")))
#else
#define PAWL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Versions ------------------------------------------------------------------------------- */

/* Grows if a program that was built with an older header would not run with this library. */
#define PAWL_ABI_VERSION 1

/* PAWL_ABI_VERSION of the library. Compare it with that of the header. Threads: any. */
PAWL_API int pawl_abi_version(void);
/* Such as "0.1.0", ending with a zero. Threads: any. */
PAWL_API const char* pawl_version(void);

/* ---- Status and errors ---------------------------------------------------------------------- */

typedef int32_t pawl_status;
enum {
  PAWL_OK = 0,
  PAWL_INVALID = 1,       /* the input is malformed */
  PAWL_UNSUPPORTED = 2,   /* well formed, but this version does not enforce it */
  PAWL_UNSATISFIABLE = 3, /* well formed and supported, but no text fits */
  PAWL_LIMIT = 4,         /* a documented limit was reached, or memory ran out */
  PAWL_IO = 5,            /* a file could not be read */
  PAWL_INTERNAL = 6,      /* a bug in Pawl */
  PAWL_REFUSED = 7,       /* the token or the bytes are refused; nothing changed */
  PAWL_ENDED = 8,         /* no token may follow; the mask is 0 */
  PAWL_BAD_ARGUMENT = 9   /* a NULL, or a length or a number out of range */
};

/* The name of a status: "invalid", "limit", ..., ending with a zero. Threads: any. */
PAWL_API const char* pawl_status_name(pawl_status status);

typedef struct pawl_error pawl_error;
/* Status, message and place of an error; "" or PAWL_OK for NULL. The strings end with a zero and
 * live as long as the error. The place is a JSON Pointer, "line:column", "byte 17", a path or a
 * name, or empty. Threads: any. */
PAWL_API pawl_status pawl_error_status(const pawl_error* error);
PAWL_API const char* pawl_error_message(const pawl_error* error);
PAWL_API const char* pawl_error_place(const pawl_error* error);
PAWL_API void pawl_error_free(pawl_error* error);

/* ---- Vocabulary: the tokens of one tokenizer as bytes --------------------------------------- */

/* The tokens of one tokenizer. Immutable. */
typedef struct pawl_vocabulary pawl_vocabulary;

typedef struct pawl_vocabulary_tokens {
  size_t struct_size;
  const char* const* tokens; /* the bytes of token 0, 1, ..., which may be a part of a character */
  const size_t* lengths;
  size_t count;
  const int32_t* special; /* control tokens, which no text matches */
  size_t special_count;
  const int32_t* end_tokens; /* tokens that are allowed where the output may end */
  size_t end_token_count;
} pawl_vocabulary_tokens;
PAWL_API void pawl_vocabulary_tokens_init(pawl_vocabulary_tokens* tokens, size_t struct_size);

/* Makes a vocabulary from copies of the tokens. Threads: any. */
PAWL_API pawl_status pawl_vocabulary_create(const pawl_vocabulary_tokens* tokens,
                                            pawl_vocabulary** vocabulary, pawl_error** error);

typedef struct pawl_tokenizer_options {
  size_t struct_size;
  /* The number of token ids of the model, if larger than the tokenizer's. The additional ids are
   * never allowed. 0: the tokenizer's number. */
  int32_t padded_size;
  /* The tokens that end the output. With count 0: those that the files name. */
  const int32_t* end_tokens;
  size_t end_token_count;
} pawl_tokenizer_options;
PAWL_API void pawl_tokenizer_options_init(pawl_tokenizer_options* options, size_t struct_size);

/* Makes a vocabulary from the text of a tokenizer.json. This file does not name the tokens that end
 * the output, so `options` must. options: NULL for the defaults. Threads: any. */
PAWL_API pawl_status pawl_vocabulary_from_tokenizer_json(const char* json, size_t json_length,
                                                         const pawl_tokenizer_options* options,
                                                         pawl_vocabulary** vocabulary,
                                                         pawl_error** error);
/* Makes a vocabulary from a tokenizer.json or its folder. tokenizer_config.json and
 * generation_config.json of this folder name the tokens that end the output. Threads: any. */
PAWL_API pawl_status pawl_vocabulary_from_tokenizer_file(const char* path, size_t path_length,
                                                         const pawl_tokenizer_options* options,
                                                         pawl_vocabulary** vocabulary,
                                                         pawl_error** error);

/* The number of token ids V; 0 for NULL. Threads: any. */
PAWL_API size_t pawl_vocabulary_size(const pawl_vocabulary* vocabulary);
/* The number of words of a mask, ceil(V / 32); 0 for NULL. Threads: any. */
PAWL_API size_t pawl_vocabulary_mask_words(const pawl_vocabulary* vocabulary);
/* The bytes of a token, which live as long as the vocabulary. Threads: any. */
PAWL_API pawl_status pawl_vocabulary_token(const pawl_vocabulary* vocabulary, int32_t token,
                                           const char** bytes, size_t* length);
/* Writes at most `capacity` tokens that end the output. *count: the number of all. Threads: any. */
PAWL_API pawl_status pawl_vocabulary_end_tokens(const pawl_vocabulary* vocabulary, int32_t* tokens,
                                                size_t capacity, size_t* count);
/* A hash of the vocabulary in two words. Threads: any. */
PAWL_API pawl_status pawl_vocabulary_fingerprint(const pawl_vocabulary* vocabulary,
                                                 uint64_t words[2]);
PAWL_API void pawl_vocabulary_free(pawl_vocabulary* vocabulary);

/* ---- Compiler and grammars ------------------------------------------------------------------ */

typedef struct pawl_compiler pawl_compiler;
/* A compiled constraint. Immutable. */
typedef struct pawl_grammar pawl_grammar;

typedef struct pawl_compiler_options {
  size_t struct_size;
  /* The number of grammars to keep for the same text with the same options; 0: none. */
  size_t cached_grammars;
  /* The most steps, of about 5 ns, to prepare masks while a grammar of kind "ebnf", "gbnf", "lark"
   * or "lark_xgrammar" is compiled or deserialized (docs/grammars.md). The masks are the same with
   * any number. 0: no steps. */
  uint64_t prepare_steps;
  /* Memory in bytes for the states and masks of all grammars of the compiler. Above this limit data
   * that no matcher uses is freed, and recomputed on demand. */
  size_t memory_budget;
} pawl_compiler_options;
PAWL_API void pawl_compiler_options_init(pawl_compiler_options* options, size_t struct_size);

/* options: NULL for the defaults. Threads: any. */
PAWL_API pawl_status pawl_compiler_create(const pawl_vocabulary* vocabulary,
                                          const pawl_compiler_options* options,
                                          pawl_compiler** compiler, pawl_error** error);
/* Memory in bytes that the grammars use now; 0 if there is none to find out. The call visits all of
 * this memory, so use it for reports and not for every token. Threads: any. */
PAWL_API size_t pawl_compiler_memory_bytes(const pawl_compiler* compiler);
PAWL_API void pawl_compiler_free(pawl_compiler* compiler);

/* The answer of a resolver. */
typedef struct pawl_document pawl_document;
/* Sets the text of the document, which is copied. Threads: alone. */
PAWL_API pawl_status pawl_document_set_text(pawl_document* document, const char* text,
                                            size_t length);
/* Says that there is no document. The message is copied. Threads: alone. */
PAWL_API pawl_status pawl_document_set_error(pawl_document* document, const char* message,
                                             size_t length);
/* Finds the document of an absolute URI without fragment. The function calls one of the two above
 * before it returns. It must not keep `document`. */
typedef void (*pawl_resolve_document)(void* context, const char* uri, size_t uri_length,
                                      pawl_document* document);

enum { PAWL_ORDER_SCHEMA = 0, PAWL_ORDER_ANY = 1 };
enum { PAWL_WHITESPACE_COMPACT = 0, PAWL_WHITESPACE_BOUNDED = 1, PAWL_WHITESPACE_ANY = 2 };
enum { PAWL_PROFILE_FULL = 0, PAWL_PROFILE_STRICT = 1 };

/* pawl/compiler.h and docs/json_schema.md explain the fields. Strings: NULL for the default. */
typedef struct pawl_json_schema_options {
  size_t struct_size;
  int32_t order;
  int32_t whitespace;
  int32_t max_whitespace;
  int32_t assert_formats;
  int32_t canonical_spelling;
  int32_t ascii;
  int32_t additional_properties;
  int32_t allow_exponents;
  int32_t profile;
  int32_t list_annotations;
  const char* item_separator;
  size_t item_separator_length;
  const char* key_separator;
  size_t key_separator_length;
  const char* default_dialect;
  size_t default_dialect_length;
  const char* force_dialect;
  size_t force_dialect_length;
  /* Called only while compiling, on the thread that compiles. NULL: there are no documents. */
  pawl_resolve_document resolve_document;
  void* resolve_context;
  int32_t max_documents;
  int32_t max_depth;
  int64_t max_schema_bytes;
  int64_t step_fuel;
  int32_t max_digits;
  int32_t max_decimals;
  int64_t max_string;
  const char* excluded_texts; /* one a line */
  size_t excluded_texts_length;
  int32_t keys;  /* 0: required, 1: all */
  int32_t nulls; /* 0: keep, 1: drop */
  int32_t open_if_unsatisfiable;
  int32_t verbatim;   /* 0: none, 1: strings, 2: all */
  const char* source; /* what fields with "x-pawl-source" are copied from; NULL: there is none */
  size_t source_length;
  int32_t bind_source; /* the text comes later: pawl_grammar_bind */
} pawl_json_schema_options;
PAWL_API void pawl_json_schema_options_init(pawl_json_schema_options* options, size_t struct_size);

/* Compiles a text of a kind:
 *     "json_schema"  a JSON Schema; options, or NULL for the defaults
 *     "regex"        a pattern that the whole output matches (docs/regex.md)
 *     "choice"       a JSON array of strings; the output is one of them
 *     "ebnf", "gbnf" a grammar in XGrammar's or llama.cpp's dialect, with a rule "root"
 *     "lark", "lark_xgrammar"  a grammar in llguidance's or XGrammar's dialect of Lark
 *     "substring"    the output is a span of the text, which may be empty
 *     "structural_tag"  free text with constrained parts, as JSON (docs/structural_tags.md)
 * options must be NULL for "regex", "choice" and "substring"; else they are those of the schemas.
 * An unknown kind is PAWL_UNSUPPORTED. Threads: any. */
PAWL_API pawl_status pawl_compile(const pawl_compiler* compiler, const char* kind, const char* text,
                                  size_t text_length, const pawl_json_schema_options* options,
                                  pawl_grammar** grammar, pawl_error** error);
/* Compiles a list of strings; the output is one of them. Threads: any. */
PAWL_API pawl_status pawl_compile_choice(const pawl_compiler* compiler, const char* const* choices,
                                         const size_t* lengths, size_t count,
                                         pawl_grammar** grammar, pawl_error** error);
/* Grammars made from grammars; pawl/combine.h and docs/infilling.md explain them. A result keeps
 * alive the parts that it shares with `grammar`, and holds its lock while it is made. Threads: any.
 * The grammar of the outputs with which prefix, output, after[0], any text, after[1], ... is a text
 * of `grammar`. after_count 0: no text follows. */
PAWL_API pawl_status pawl_grammar_infill(const pawl_grammar* grammar, const char* prefix,
                                         size_t prefix_length, const char* const* after,
                                         const size_t* after_lengths, size_t after_count,
                                         pawl_grammar** out, pawl_error** error);
/* The texts of the grammar in which each word occurs. */
PAWL_API pawl_status pawl_grammar_require_words(const pawl_grammar* grammar,
                                                const char* const* words, const size_t* lengths,
                                                size_t count, pawl_grammar** out,
                                                pawl_error** error);
/* The texts of both grammars. One of them must be regular. */
PAWL_API pawl_status pawl_grammar_intersect(const pawl_grammar* a, const pawl_grammar* b,
                                            pawl_grammar** out, pawl_error** error);
/* All texts except those of the grammar, which must be of a regex, choices or a substring. */
PAWL_API pawl_status pawl_grammar_complement(const pawl_grammar* grammar, pawl_grammar** out,
                                             pawl_error** error);
/* The grammar for the text of x-pawl-source; `grammar` has bind_source (docs/extraction.md). */
PAWL_API pawl_status pawl_grammar_bind(const pawl_grammar* grammar, const char* text, size_t length,
                                       pawl_grammar** out, pawl_error** error);
PAWL_API void pawl_grammar_free(pawl_grammar* grammar);
/* Notes of the compiler, no errors. The text lives as long as the grammar. Threads: any. */
PAWL_API size_t pawl_grammar_note_count(const pawl_grammar* grammar);
PAWL_API pawl_status pawl_grammar_note(const pawl_grammar* grammar, size_t index, const char** text,
                                       size_t* length);

/* Writes a grammar as bytes, to store or to send. They have the source with its options, the
 * documents of its resolver, and the fingerprint of the vocabulary. *size: the number of bytes.
 * buffer NULL: only *size is written. PAWL_LIMIT: `capacity` is too small. Threads: any. */
PAWL_API pawl_status pawl_grammar_serialize(const pawl_grammar* grammar, char* buffer,
                                            size_t capacity, size_t* size, pawl_error** error);
/* Compiles the source of such bytes again. This takes as long as compiling. PAWL_INVALID if the
 * compiler has another vocabulary, or if the bytes are damaged. PAWL_UNSUPPORTED for another
 * version of the format. Threads: any. */
PAWL_API pawl_status pawl_grammar_deserialize(const pawl_compiler* compiler, const char* bytes,
                                              size_t length, pawl_grammar** grammar,
                                              pawl_error** error);

/* ---- Matcher: the position of one output in a grammar --------------------------------------- */

typedef struct pawl_matcher pawl_matcher;

typedef struct pawl_matcher_options {
  size_t struct_size;
  /* The tokens that end the output. With count 0: those of the vocabulary. Such a token is never
   * read as text, even if its bytes would be accepted. */
  const int32_t* end_tokens;
  size_t end_token_count;
  /* 1: no end token is ever allowed. The matcher is terminated as soon as the text is complete and
   * nothing can follow. */
  int32_t terminate_without_end_token;
} pawl_matcher_options;
PAWL_API void pawl_matcher_options_init(pawl_matcher_options* options, size_t struct_size);

/* options: NULL for the defaults. Threads: any. */
PAWL_API pawl_status pawl_matcher_create(const pawl_grammar* grammar,
                                         const pawl_matcher_options* options,
                                         pawl_matcher** matcher, pawl_error** error);
/* A copy with the same history. Threads: any, while no other thread changes the matcher. */
PAWL_API pawl_status pawl_matcher_clone(const pawl_matcher* matcher, pawl_matcher** clone);
PAWL_API void pawl_matcher_free(pawl_matcher* matcher);

/* Accepts a token as one step. PAWL_REFUSED: refused, or terminated before. Threads: alone. */
PAWL_API pawl_status pawl_matcher_accept(pawl_matcher* matcher, int32_t token);
/* Accepts all of the bytes as one step. PAWL_REFUSED if they are refused. Threads: alone. */
PAWL_API pawl_status pawl_matcher_accept_bytes(pawl_matcher* matcher, const char* bytes,
                                               size_t length);
/* Takes back `steps` steps. PAWL_BAD_ARGUMENT: there are fewer; nothing changes. Threads: alone. */
PAWL_API pawl_status pawl_matcher_rollback(pawl_matcher* matcher, size_t steps);
/* Returns to the start, with an empty history. Threads: alone. */
PAWL_API pawl_status pawl_matcher_reset(pawl_matcher* matcher);

/* The functions from here on do not change the matcher. Threads: any, while none changes it. */

/* The number of steps that can be taken back; 0 for NULL. */
PAWL_API size_t pawl_matcher_steps(const pawl_matcher* matcher);
/* 1 if the output has ended, so that no token may follow; 0 for NULL. */
PAWL_API int pawl_matcher_is_terminated(const pawl_matcher* matcher);
/* 1 if the text so far is complete; 0 for NULL. */
PAWL_API int pawl_matcher_is_accepting(const pawl_matcher* matcher);
/* Writes the mask of the allowed tokens to the first ceil(V / 32) words of the row. Bits beyond V
 * are 0. `words` is the size of the row. PAWL_ENDED if no token may follow. The row is then 0, and
 * must not be sampled from. */
PAWL_API pawl_status pawl_matcher_fill_mask(const pawl_matcher* matcher, uint32_t* row,
                                            size_t words);
/* *accepted is the number of tokens, from the first on, that the matcher would accept in turn. */
PAWL_API pawl_status pawl_matcher_validate_tokens(const pawl_matcher* matcher,
                                                  const int32_t* tokens, size_t count,
                                                  size_t* accepted);
/* Writes the bytes with which every continuation begins, at most `capacity`. *length is their
 * number; 0 if there is a choice. */
PAWL_API pawl_status pawl_matcher_forced_bytes(const pawl_matcher* matcher, char* bytes,
                                               size_t capacity, size_t* length);
/* Writes tokens that spell the forced bytes, at most `capacity`. *count is their number. Bytes at
 * the end are omitted if a longer token could contain both them and the text after them. If the
 * vocabulary came from a tokenizer.json, the tokens are those of the tokenizer. Otherwise each
 * token is the longest that fits. */
PAWL_API pawl_status pawl_matcher_forced_tokens(const pawl_matcher* matcher, int32_t* tokens,
                                                size_t capacity, size_t* count);

/* The captures so far (docs/lark.md): the texts of rules with a capture, in the order in which they
 * end. For an incomplete output: those that have ended. The call parses the output again, so masks
 * do no work for captures. PAWL_LIMIT if the grammar is too ambiguous. Threads: any, as long as no
 * other thread changes the matcher. */
typedef struct pawl_captures pawl_captures;
PAWL_API pawl_status pawl_matcher_captures(const pawl_matcher* matcher, pawl_captures** captures,
                                           pawl_error** error);
PAWL_API size_t pawl_captures_count(const pawl_captures* captures);
/* Begin and end of capture `index` in the output, in bytes; its text; its name, ending with a zero.
 * Any pointer may be NULL. Name and text live as long as the captures. PAWL_BAD_ARGUMENT if there
 * is no such capture. Threads: any. */
PAWL_API pawl_status pawl_captures_get(const pawl_captures* captures, size_t index,
                                       const char** name, size_t* begin, size_t* end,
                                       const char** text, size_t* text_length);
PAWL_API void pawl_captures_free(pawl_captures* captures);

/* The sampling temperature that the grammar asks for here; a negative number: none. Threads: any,
 * as long as no other thread changes the matcher. */
PAWL_API pawl_status pawl_matcher_temperature(const pawl_matcher* matcher, float* temperature);

/* Writes tokens of a short completion of the output, at most `capacity`. *count is the number of
 * all of them, perhaps 0. PAWL_LIMIT if no completion was found. */
PAWL_API pawl_status pawl_matcher_completion_tokens(const pawl_matcher* matcher, int32_t* tokens,
                                                    size_t capacity, size_t* count);

/* Writes a mask for each node of a tree of draft tokens, `stride` words from row to row. Row i has
 * the tokens that are allowed after the path from the root to node i. Node i is tokens[i] below
 * node parents[i]. The parent -1 is the matcher's position. A node with the token -1 has the
 * position of its parent, so {-1, -1} gives the matcher's own mask. `accepted` may be
 * NULL; otherwise accepted[i] is 1 if the whole path is accepted, and 0 if not. The row of a
 * refused node is 0. The number of accepted nodes is *fit (`fit` may be NULL). A node that is its
 * own ancestor, or has a parent out of range, is PAWL_INVALID; no row is written then. */
PAWL_API pawl_status pawl_matcher_fill_tree(const pawl_matcher* matcher, const int32_t* tokens,
                                            const int32_t* parents, size_t count, uint32_t* rows,
                                            size_t stride, uint8_t* accepted, size_t* fit,
                                            pawl_error** error);
/* The parents of a tree that is given by first child (next_token) and next sibling, -1 for none.
 * PAWL_INVALID for a node with two parents, a node that is its own child or sibling, and a number
 * out of range. Threads: any. */
PAWL_API pawl_status pawl_draft_tree_parents(const int32_t* next_token, const int32_t* next_sibling,
                                             size_t count, int32_t* parents, pawl_error** error);

/* ---- Batches -------------------------------------------------------------------------------- */

/* A pool of threads, which sleep between calls. */
typedef struct pawl_batch pawl_batch;
/* `threads` includes the caller's thread; 0: one for each processor. Threads: any. */
PAWL_API pawl_status pawl_batch_create(int32_t threads, pawl_batch** batch, pawl_error** error);
/* The number of threads that a fill can use; 0 for NULL. Threads: any. */
PAWL_API int32_t pawl_batch_threads(const pawl_batch* batch);
/* Fills row i (rows + i * stride, in words) with the mask of matchers[i]. The row of a NULL is
 * unchanged. *ended (or NULL) is the number of rows without an allowed token. PAWL_BAD_ARGUMENT if
 * `stride` is too small for a matcher's vocabulary; no row is written then. Threads: any. A call
 * that finds the pool busy computes its rows alone. No thread may change the matchers meanwhile. */
PAWL_API pawl_status pawl_batch_fill(const pawl_batch* batch, const pawl_matcher* const* matchers,
                                     size_t count, uint32_t* rows, size_t stride, size_t* ended);
PAWL_API void pawl_batch_free(pawl_batch* batch);

/* ---- Engine: a model, its outputs, and outputs that keep its distribution -------------------- */

/* A model. Without the engine (PAWL_BUILD_ENGINE=OFF) pawl_engine_load returns PAWL_UNSUPPORTED.
 *
 *     pawl_engine* engine = NULL;
 *     pawl_samples* samples = NULL;
 *     pawl_engine_load("models/tiny-extract", 19, NULL, &engine, &error);
 *     pawl_prompt prompt;
 *     pawl_prompt_init(&prompt, sizeof prompt);
 *     prompt.text = "Call us: ";
 *     prompt.text_length = 9;
 *     pawl_sampler_options options;
 *     pawl_sampler_options_init(&options, sizeof options);
 *     options.n = 20;
 *     pawl_engine_sample(engine, &prompt, grammar, &options, &samples, &error);
 *
 * pawl/sampling.h and docs/sampling.md explain the samplers and their options. */
typedef struct pawl_engine pawl_engine;

/* The type of weights in memory. */
enum { PAWL_DTYPE_STORED = 0, PAWL_DTYPE_FP32 = 1, PAWL_DTYPE_BF16 = 2, PAWL_DTYPE_FP16 = 3 };
enum { PAWL_DTYPE_INT8 = 4, PAWL_DTYPE_INT4 = 5, PAWL_DTYPE_FP8 = 6 /* CUDA devices only */ };
/* AUTO: a CUDA device if there is a suitable one, otherwise the CPU. */
enum { PAWL_DEVICE_CPU = 0, PAWL_DEVICE_CUDA = 1, PAWL_DEVICE_AUTO = 2 };
enum { PAWL_KV_BF16 = 0, PAWL_KV_FP8 = 1, PAWL_KV_FP32 = 2 }; /* keys and values on CUDA devices */

typedef struct pawl_engine_options {
  size_t struct_size;
  int32_t threads; /* 0: all cores */
  int32_t dtype;
  int64_t oracle_bytes; /* memory for the tries of samplers */
  int32_t device;
  int32_t kv_dtype;
  int64_t kv_bytes;      /* memory for keys and values; 0: chosen by the library */
  int64_t kept_kv_bytes; /* the part for prefixes that no output uses; -1: chosen by the library */
  int32_t max_batch;     /* outputs that run at a time, 1 to 1024; further ones wait */
  int32_t draft_nodes;   /* most drafted tokens of an output in a call, 1 to 63 */
  const char* chat_template; /* in the Jinja subset of docs/chat_templates.md; NULL: the model's */
  size_t chat_template_length;
  /* Drafts (docs/drafting.md): "auto" (NULL too, also of older callers), "off", or names: "a,b". */
  const char* drafts;
  size_t drafts_length;
  const char* draft_text_file;
  size_t draft_text_file_length;
  const char* draft_model;
  size_t draft_model_length;
  const char* draft_history_file;
  size_t draft_history_file_length;
  int64_t draft_history_bytes;
  /* Where models are looked for by name: the hub's caches, Ollama, LM Studio. NUL-terminated. */
  const char* const* hub_folders;
  size_t hub_count;
  const char* const* ollama_folders;
  size_t ollama_count;
  const char* const* lmstudio_folders;
  size_t lmstudio_count;
  const char* reasoning_open; /* the marks of thoughts, both or none; NULL: of the template */
  const char* reasoning_close;
  const char* settings_folder;    /* of measured choices (docs/evaluation.md), or NULL */
  int32_t draft_memory;           /* megabytes for what drafts keep between outputs, from 1 on */
  const char* draft_verify;       /* docs/drafting.md; NULL: "coupled" */
  const char* draft_shape;        /* NULL: "heap" */
  const char* second_draft_model; /* next to draft_model, NUL-terminated; NULL: none */
  const char* const* lora;        /* adapters, "NAME=DIR" (docs/models.md), NUL-terminated */
  size_t lora_count;
} pawl_engine_options;
PAWL_API void pawl_engine_options_init(pawl_engine_options* options, size_t struct_size);

/* Loads a model. path: a folder of Hugging Face's form, a GGUF file, or the name of a model in one
 * of the stores of `options` (docs/models.md). Threads: any. */
PAWL_API pawl_status pawl_engine_load(const char* path, size_t path_length,
                                      const pawl_engine_options* options, pawl_engine** engine,
                                      pawl_error** error);
PAWL_API void pawl_engine_free(pawl_engine* engine);
/* The options of schemas that `pawl extract` has for a text, with what the files of the model say:
 * options for pawl_compile. Strings are valid while the engine lives. Threads: any. */
PAWL_API pawl_status pawl_engine_extract_options(const pawl_engine* engine, const char* text,
                                                 size_t length, pawl_json_schema_options* options);
/* Writes the outputs that drafts have learnt to draft_history_file. Freeing the engine does so,
 * too, but cannot report an error. Without such a file: PAWL_OK. Threads: any. */
PAWL_API pawl_status pawl_engine_save_drafts(pawl_engine* engine, pawl_error** error);
/* The vocabulary for the grammars and checks of this model. Threads: any. */
PAWL_API pawl_status pawl_engine_vocabulary(const pawl_engine* engine,
                                            pawl_vocabulary** vocabulary);
/* Writes the tokens of a text, at most `capacity`. *count is the number of all of them. Nothing is
 * added before or after. Special tokens that the text spells stay text. Threads: any. */
PAWL_API pawl_status pawl_engine_encode(const pawl_engine* engine, const char* text, size_t length,
                                        int32_t* tokens, size_t capacity, size_t* count);

/* A prompt: one of text (UTF-8), chat_json and tokens; or text with schema. */
typedef struct pawl_prompt {
  size_t struct_size;
  const char* text;
  size_t text_length;
  const char* chat_json; /* a JSON list of messages, or an object with "messages" */
  size_t chat_json_length;
  const int32_t* tokens; /* used unchanged */
  size_t token_count;
  int32_t parse_special; /* 1: special tokens that the text spells become these tokens */
  /* A JSON Schema: the prompt is that of `pawl extract`. The caller compiles the grammar of it. */
  const char* schema;
  size_t schema_length;
  const char* instruction; /* with `schema`: what to extract, in words, or NULL */
  size_t instruction_length;
  const char* examples_json; /* with `schema`: a JSON list of {"text", "record"}, or NULL */
  size_t examples_json_length;
  int32_t schema_view; /* 0: as for the model; 1: template, 2: keys, 3: schema, 4: none, 5: auto */
  const char* lora;    /* the name of an adapter of the engine, NUL-terminated; NULL: none */
  double prefer_text;  /* with `schema`: as in pawl/engine.h; 0: as for the model; below 0: off */
} pawl_prompt;
PAWL_API void pawl_prompt_init(pawl_prompt* prompt, size_t struct_size);

/* ---- Outputs --------------------------------------------------------------------------------- */

/* One output of a model, which may still be running. Outputs of one engine share the calls of the
 * model; each has the tokens that it has alone.
 *
 *     pawl_generation* generation = NULL;
 *     pawl_generate_options wanted;
 *     pawl_generate_options_init(&wanted, sizeof wanted);
 *     wanted.on_text = show;                        // int show(void*, const char*, size_t)
 *     pawl_generation_start(engine, &prompt, grammar, &wanted, &generation, &error);
 *     pawl_generation_wait(generation, &error);      // calls show on this thread
 *     pawl_output output;
 *     pawl_output_init(&output, sizeof output);
 *     pawl_generation_get(generation, &output);
 *     fwrite(output.text, 1, output.text_length, stdout);
 *     pawl_generation_free(generation);              // an output that still runs ends */
typedef struct pawl_generation pawl_generation;

/* The end of an output under a grammar when its budget is nearly spent. CLOSE: the shortest form;
 * an error if even that is too long. CLOSE_OR_CUT: cut then. CUT: cut, complete or not. */
enum { PAWL_AT_BUDGET_CLOSE = 0, PAWL_AT_BUDGET_CLOSE_OR_CUT = 1, PAWL_AT_BUDGET_CUT = 2 };
/* What the model may think (docs/thinking.md). DEFAULT: AUTO for messages, otherwise OFF. */
enum { PAWL_THINKING_DEFAULT = 0, PAWL_THINKING_AUTO = -1, PAWL_THINKING_OFF = -2 };
/* Gets the next bytes of the output, which may end inside a character. 0 ends the output. */
typedef int (*pawl_on_text)(void* context, const char* text, size_t length);

typedef struct pawl_generate_options { /* docs/engine.md explains the options */
  size_t struct_size;
  double temperature; /* 0: greedy */
  int32_t top_k;      /* 0: off */
  int32_t max_tokens; /* budget of the output */
  double top_p;
  double min_p;
  double repetition_penalty, presence_penalty, frequency_penalty;
  uint64_t seed;
  uint64_t group; /* outputs of one number take turns with other groups; 0: a group of its own */
  int32_t at_budget;
  int32_t grammar_temperature; /* 1: a temperature of the grammar replaces `temperature` */
  int32_t skip_forced;         /* 1: tokens that the grammar dictates are taken without the model */
  int32_t drafts;              /* 0: no drafts for this output */
  const char* const* stops;    /* texts at which the output ends */
  const size_t* stop_lengths;
  size_t stop_count;
  pawl_on_text on_text; /* on the thread that waits for the output, while it waits; or NULL */
  void* on_text_context;
  int32_t include_stop;      /* 1: the output has the stop text, too */
  int32_t thinking;          /* PAWL_THINKING_..., or at most so many tokens */
  int32_t close_repetition;  /* 1: close what repeats itself; -1: if the prompt has a schema */
  pawl_on_text on_reasoning; /* as on_text, with what the model thinks, without its marks */
  void* on_reasoning_context;
  const char* stages; /* further stages of sampling: a JSON object (docs/sampling.md), or NULL */
  size_t stages_length;
  int32_t draft_lanes;   /* lanes of noise, 1 to 64; docs/drafting.md */
  uint64_t draft_owner;  /* drafts learn from outputs of the same owner only */
  int32_t free_first;    /* tokens of free text before the answer, at most; 0: none */
  int32_t details;       /* 1: pawl_output.details */
  const char* diffusion; /* a JSON object (docs/diffusion.md), or NULL */
  size_t diffusion_length;
  int32_t passes; /* 1 to 16: the text with `schema` is a document, read so often; 0: is not */
  int32_t chunk_tokens; /* tokens of a document that are read at a time; 0: half of the context */
} pawl_generate_options;
PAWL_API void pawl_generate_options_init(pawl_generate_options* options, size_t struct_size);

/* Why an output ended. CLOSED: the shortest completion was appended. LENGTH: cut by the budget.
 * REFUSED: the constraint refused every token (see pawl::StopReason; no grammar does so). */
enum {
  PAWL_STOP_END = 0,
  PAWL_STOP_CLOSED = 1,
  PAWL_STOP_LENGTH = 2,
  PAWL_STOP_CANCELLED = 3,
  PAWL_STOP_TEXT = 4, /* one of `stops` */
  PAWL_STOP_REFUSED = 5
};

/* An output. Its pointers are valid as long as the generation lives. */
typedef struct pawl_output {
  size_t struct_size;
  const char* text; /* bytes */
  size_t text_length;
  const int32_t* tokens; /* without the end token; with those of a stop text that was cut off */
  size_t token_count;
  int32_t stop;
  int32_t stop_index; /* with PAWL_STOP_TEXT: which of `stops`; otherwise -1 */
  int32_t prompt_tokens;
  int32_t reused_tokens; /* of the prompt: their keys and values were in memory */
  int32_t sampled_tokens;
  int32_t forced_tokens;
  int32_t closing_tokens;
  int32_t model_calls;
  int32_t drafted_tokens;
  int32_t accepted_tokens;  /* drafted tokens that were right */
  int32_t reasoning_tokens; /* of `tokens`, before the answer: thoughts with their marks */
  const char* reasoning;    /* what the model thought, without its marks; no part of `text` */
  size_t reasoning_length;
  int32_t closed_by; /* with PAWL_STOP_CLOSED; 1: the budget, 2: a limit of steps, 3: repetition */
  const char* details; /* JSON: pawl_generate_options.details, docs/extraction.md; or NULL */
  size_t details_length;
} pawl_output;
PAWL_API void pawl_output_init(pawl_output* output, size_t struct_size);

/* Begins an output, and returns at once. grammar: of the engine's vocabulary, or NULL for none.
 * options: NULL for the defaults. Threads: any. */
PAWL_API pawl_status pawl_generation_start(pawl_engine* engine, const pawl_prompt* prompt,
                                           const pawl_grammar* grammar,
                                           const pawl_generate_options* options,
                                           pawl_generation** generation, pawl_error** error);
/* Waits until the output has ended, and calls on_text and on_reasoning meanwhile. An output that
 * fails has the error here. Threads: one at a time, and pawl_generation_cancel from any. */
PAWL_API pawl_status pawl_generation_wait(pawl_generation* generation, pawl_error** error);
/* The output ends soon (PAWL_STOP_CANCELLED). Threads: any. */
PAWL_API void pawl_generation_cancel(pawl_generation* generation);
/* The output. PAWL_BAD_ARGUMENT before a wait that returned PAWL_OK. Threads: any. */
PAWL_API pawl_status pawl_generation_get(const pawl_generation* generation, pawl_output* output);
PAWL_API void pawl_generation_free(pawl_generation* generation);
/* pawl_generation_start and pawl_generation_wait in one call. Threads: any. */
PAWL_API pawl_status pawl_engine_generate(pawl_engine* engine, const pawl_prompt* prompt,
                                          const pawl_grammar* grammar,
                                          const pawl_generate_options* options,
                                          pawl_generation** generation, pawl_error** error);

/* ---- Checks: constraints that are too slow or too complex for a mask ------------------------- */

typedef struct pawl_check pawl_check; /* immutable */

enum { PAWL_DEAD = 0, PAWL_LIVE = 1, PAWL_ACCEPT = 2, PAWL_UNKNOWN = 3 };
enum { PAWL_CHECK_BYTE = 0, PAWL_CHECK_TOKEN = 1, PAWL_CHECK_LINE = 2, PAWL_CHECK_COMPLETE = 3 };

typedef struct pawl_check_question {
  size_t struct_size;
  const char* text; /* the output so far, in bytes */
  size_t text_length;
  const int32_t* tokens; /* the tokens of the text, without the end token */
  size_t token_count;
  int32_t ended; /* 1: the output ends here */
} pawl_check_question;

/* Returns PAWL_DEAD, PAWL_LIVE, PAWL_ACCEPT or PAWL_UNKNOWN. Another number ends the run with an
 * error. Several threads call the function at the same time. The same question must always have the
 * same answer. */
typedef int32_t (*pawl_judge)(void* context, const pawl_check_question* question);
/* A function as a check. granularity: PAWL_CHECK_BYTE and so on. Threads: any. */
PAWL_API pawl_status pawl_check_create(pawl_judge judge, void* context, int32_t granularity,
                                       pawl_check** check, pawl_error** error);
/* A grammar as a check. Threads: any. */
PAWL_API pawl_status pawl_check_from_grammar(const pawl_grammar* grammar, int32_t granularity,
                                             pawl_check** check, pawl_error** error);
/* A check as text, in the form of `pawl generate --check`: KIND:VALUE or KIND@GRANULARITY:VALUE.
 * Kinds are regex, schema, grammar and program. A program has `timeout` seconds for an answer, and
 * at most `processes` processes. Threads: any. */
PAWL_API pawl_status pawl_check_from_spec(const pawl_vocabulary* vocabulary, const char* spec,
                                          size_t length, double timeout, int32_t processes,
                                          pawl_check** check, pawl_error** error);
PAWL_API void pawl_check_free(pawl_check* check);

typedef struct pawl_critic pawl_critic; /* a weight for outputs and their prefixes; immutable */
/* Returns a natural logarithm; -INFINITY for outputs that must not occur. NaN ends the run with an
 * error. Several threads call the function at the same time. */
typedef double (*pawl_score)(void* context, const pawl_check_question* question);
PAWL_API pawl_status pawl_critic_create(pawl_score score, void* context, pawl_critic** critic,
                                        pawl_error** error); /* Threads: any. */
/* A command for the shell as a critic, in the form of `pawl generate --critic`. Threads: any. */
PAWL_API pawl_status pawl_critic_from_command(const char* command, size_t length, double timeout,
                                              int32_t processes, pawl_critic** critic,
                                              pawl_error** error);
PAWL_API void pawl_critic_free(pawl_critic* critic);

/* ---- Samplers -------------------------------------------------------------------------------- */

enum { PAWL_SAMPLER_GCD = 0, PAWL_SAMPLER_FVO = 1, PAWL_SAMPLER_AWRS = 2, PAWL_SAMPLER_SMC = 3 };
enum { PAWL_SAMPLER_ASAP = 4, PAWL_SAMPLER_RS = 5, PAWL_SAMPLER_ARS = 6, PAWL_SAMPLER_CARS = 7 };
enum { PAWL_FIDELITY_NONE = -1, PAWL_FIDELITY_FAST = 0, PAWL_FIDELITY_ALIGNED = 1 };
enum { PAWL_FIDELITY_EXACT = 2 };
enum { PAWL_ESTIMATOR_TWO_LOOP = 0, PAWL_ESTIMATOR_RECURSIVE = 1, PAWL_ESTIMATOR_GEOMETRIC = 2 };
enum { PAWL_RESAMPLING_STRATIFIED = 0, PAWL_RESAMPLING_SYSTEMATIC = 1 };
enum { PAWL_RESAMPLING_MULTINOMIAL = 2, PAWL_RESAMPLING_RESIDUAL = 3 };

/* One output. Its pointers are valid as long as the samples live. */
typedef struct pawl_sample {
  size_t struct_size;
  const char* text; /* bytes */
  size_t text_length;
  const int32_t* tokens; /* with the end token */
  size_t token_count;
  double log_weight; /* -1e300 for a weight of 0 */
  double log_probability;
  int32_t valid;
  const char* report; /* JSON: "report" of docs/sampling.md */
  size_t report_length;
} pawl_sample;
PAWL_API void pawl_sample_init(pawl_sample* sample, size_t struct_size);

/* Called with an output. Returning 0 ends the run. `sample` lives until the function returns. */
typedef int (*pawl_on_sample)(void* context, const pawl_sample* sample);

typedef struct pawl_sampler_options {
  size_t struct_size;
  int32_t sampler;
  int32_t fidelity; /* if not PAWL_FIDELITY_NONE, selects the sampler */
  int32_t n;
  int32_t particles;
  double temperature;
  uint64_t seed;
  int32_t max_tokens;
  const pawl_check* const* checks;
  size_t check_count;
  int32_t estimator;
  int32_t max_rejects;
  int32_t accepts;
  int32_t resampling;
  double ess_threshold;
  const pawl_critic* critic; /* NULL: none */
  int32_t attempts;
  int32_t lookahead;
  int32_t batch;
  pawl_engine* proposal;    /* NULL: none; one that runs outputs is an error, and new ones wait */
  pawl_on_sample on_sample; /* for each output, in order, on the thread of the call; NULL: none */
  void* on_sample_context;
  double seconds; /* after which the run ends with what it has; 0: no limit */
} pawl_sampler_options;
PAWL_API void pawl_sampler_options_init(pawl_sampler_options* options, size_t struct_size);

typedef struct pawl_samples pawl_samples;
/* Samples outputs. grammar: NULL for none, otherwise one for the engine's vocabulary. options: NULL
 * for the defaults. Threads: any; samplers share the calls of the model with outputs. */
PAWL_API pawl_status pawl_engine_sample(pawl_engine* engine, const pawl_prompt* prompt,
                                        const pawl_grammar* grammar,
                                        const pawl_sampler_options* options, pawl_samples** samples,
                                        pawl_error** error);
PAWL_API size_t pawl_samples_count(const pawl_samples* samples); /* 0 for NULL. Threads: any. */
/* By weight; 0 for NULL. *timed_out, unless NULL: 1 if `seconds` ended the run. Threads: any. */
PAWL_API double pawl_samples_effective_size(const pawl_samples* samples, int32_t* timed_out);
/* Output `i`. PAWL_BAD_ARGUMENT if there is no such output. Threads: any. */
PAWL_API pawl_status pawl_samples_get(const pawl_samples* samples, size_t i, pawl_sample* sample);
PAWL_API void pawl_samples_free(pawl_samples* samples);

/* Computes the model's log-probability (base e) of the tokens after the prompt, at this temperature
 * and without a mask. The result is *sum. If `each` is not NULL, each[i] is the log-probability of
 * token i after the tokens before it. Threads: any. */
PAWL_API pawl_status pawl_engine_score(pawl_engine* engine, const pawl_prompt* prompt,
                                       const int32_t* tokens, size_t count, double temperature,
                                       double* sum, double* each, pawl_error** error);

/* ---- Searches -------------------------------------------------------------------------------- */

/* An answer as JSON in UTF-8: docs/search.md. Its text lives as long as the answer. */
typedef struct pawl_answer pawl_answer;
PAWL_API const char* pawl_answer_json(const pawl_answer* answer, size_t* length);
PAWL_API void pawl_answer_free(pawl_answer* answer);
/* Looks for outputs of high probability. options: a JSON object with the names of docs/search.md;
 * NULL for the defaults. grammar, checks, critic: NULL for none. Threads: any. */
PAWL_API pawl_status pawl_engine_search(pawl_engine* engine, const pawl_prompt* prompt,
                                        const pawl_grammar* grammar, const char* options,
                                        size_t length, const pawl_check* const* checks,
                                        size_t check_count, const pawl_critic* critic,
                                        pawl_answer** answer, pawl_error** error);
/* The probabilities of "choices", a member of the options. Threads: any. */
PAWL_API pawl_status pawl_engine_classify(pawl_engine* engine, const pawl_prompt* prompt,
                                          const char* options, size_t length, pawl_answer** answer,
                                          pawl_error** error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PAWL_PAWL_H_ */
