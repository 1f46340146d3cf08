/* pawl.h: Pawl for C, and for every language that can call C.
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
 *  1. Handles are opaque. Whoever gets one from a function frees it with the function named after
 *     its type; freeing NULL does nothing. A handle keeps alive what it was made from, so handles
 *     may be freed in any order.
 *  2. Functions that can fail return a pawl_status: PAWL_OK is 0, everything else is not. With a
 *     `pawl_error** error` that is not NULL they store a new error there when they fail and leave
 *     it alone otherwise; the caller frees it. Output parameters are written on success only.
 *  3. Strings and bytes are a pointer and a length, never expected to end with a zero. A pointer
 *     may be NULL where its length is 0.
 *  4. Structs begin with struct_size and are set up by their *_init function; then change what you
 *     like. That keeps programs working with later versions of the library, whose structs are
 *     longer.
 *  5. Truth values are ints: 0 or 1.
 *  6. A NULL or a length that makes no sense is PAWL_BAD_ARGUMENT; nothing is done.
 *  7. Nothing is printed, no environment variable is read, no exception leaves the library, and
 *     there is no global state.
 *
 * Thread safety. "Threads: any": may be called from several threads at once, with the same
 * arguments too. "Threads: alone": nothing else may use the handle at the same time. Freeing a
 * handle is always "alone".
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

/* Grows when a program that was built with an older header would not run with this library. */
#define PAWL_ABI_VERSION 1

/* PAWL_ABI_VERSION of the library; compare it with the header's. Threads: any. */
PAWL_API int pawl_abi_version(void);
/* "0.1.0", ends with a zero. Threads: any. */
PAWL_API const char* pawl_version(void);

/* ---- Status and errors ---------------------------------------------------------------------- */

typedef int32_t pawl_status;
enum {
  PAWL_OK = 0,
  PAWL_INVALID = 1,       /* the input is malformed */
  PAWL_UNSUPPORTED = 2,   /* well formed, but this version does not enforce it */
  PAWL_UNSATISFIABLE = 3, /* well formed and supported, but no text can ever fit */
  PAWL_LIMIT = 4,         /* a documented limit, or memory, is used up */
  PAWL_IO = 5,            /* a file could not be read */
  PAWL_INTERNAL = 6,      /* a bug in Pawl */
  PAWL_REFUSED = 7,       /* the token or the bytes do not fit here; nothing changed */
  PAWL_ENDED = 8,         /* no token may follow; the mask is all zero */
  PAWL_BAD_ARGUMENT = 9   /* a NULL, or a length or a number outside of what is allowed */
};

/* "invalid", "limit", ...; ends with a zero. Threads: any. */
PAWL_API const char* pawl_status_name(pawl_status status);

typedef struct pawl_error pawl_error;
/* All three give "" or PAWL_OK for NULL; the strings end with a zero and live as long as the error.
 * The place is a JSON Pointer, "line:column", "byte 17", a path or a name, or empty. Threads: any.
 */
PAWL_API pawl_status pawl_error_status(const pawl_error* error);
PAWL_API const char* pawl_error_message(const pawl_error* error);
PAWL_API const char* pawl_error_place(const pawl_error* error);
PAWL_API void pawl_error_free(pawl_error* error);

/* ---- Vocabulary: the tokens of one tokenizer as bytes --------------------------------------- */

/* Immutable. */
typedef struct pawl_vocabulary pawl_vocabulary;

typedef struct pawl_vocabulary_tokens {
  size_t struct_size;
  const char* const* tokens; /* bytes of token 0, 1, ...: bytes, not text */
  const size_t* lengths;
  size_t count;
  const int32_t* special; /* control tokens: text never matches them */
  size_t special_count;
  const int32_t* end_tokens; /* allowed where the output may end */
  size_t end_token_count;
} pawl_vocabulary_tokens;
/* Threads: any. */
PAWL_API void pawl_vocabulary_tokens_init(pawl_vocabulary_tokens* tokens, size_t struct_size);

/* Copies what it is given. Threads: any. */
PAWL_API pawl_status pawl_vocabulary_create(const pawl_vocabulary_tokens* tokens,
                                            pawl_vocabulary** vocabulary, pawl_error** error);

typedef struct pawl_tokenizer_options {
  size_t struct_size;
  /* Number of token ids of the model when that is larger than the tokenizer's; the rest is never
   * allowed. 0: the tokenizer's. */
  int32_t padded_size;
  /* Tokens that end the output, in place of those that the files name. count 0: those. */
  const int32_t* end_tokens;
  size_t end_token_count;
} pawl_tokenizer_options;
/* Threads: any. */
PAWL_API void pawl_tokenizer_options_init(pawl_tokenizer_options* options, size_t struct_size);

/* From the text of a tokenizer.json. It does not say which tokens end the output: name them.
 * options: NULL for the defaults. Threads: any. */
PAWL_API pawl_status pawl_vocabulary_from_tokenizer_json(const char* json, size_t json_length,
                                                         const pawl_tokenizer_options* options,
                                                         pawl_vocabulary** vocabulary,
                                                         pawl_error** error);
/* From a tokenizer.json or the folder of one, where tokenizer_config.json and
 * generation_config.json name the tokens that end the output. Threads: any. */
PAWL_API pawl_status pawl_vocabulary_from_tokenizer_file(const char* path, size_t path_length,
                                                         const pawl_tokenizer_options* options,
                                                         pawl_vocabulary** vocabulary,
                                                         pawl_error** error);

/* Number of token ids V; 0 for NULL. Threads: any. */
PAWL_API size_t pawl_vocabulary_size(const pawl_vocabulary* vocabulary);
/* Words of a mask, ceil(V / 32); 0 for NULL. Threads: any. */
PAWL_API size_t pawl_vocabulary_mask_words(const pawl_vocabulary* vocabulary);
/* The bytes of a token, which live as long as the vocabulary. Threads: any. */
PAWL_API pawl_status pawl_vocabulary_token(const pawl_vocabulary* vocabulary, int32_t token,
                                           const char** bytes, size_t* length);
/* Writes up to `capacity` of the tokens that end the output; *count is how many there are.
 * Threads: any. */
PAWL_API pawl_status pawl_vocabulary_end_tokens(const pawl_vocabulary* vocabulary, int32_t* tokens,
                                                size_t capacity, size_t* count);
/* Two words that are equal for vocabularies that are equal, and differ otherwise but for chance.
 * Threads: any. */
PAWL_API pawl_status pawl_vocabulary_fingerprint(const pawl_vocabulary* vocabulary,
                                                 uint64_t words[2]);
PAWL_API void pawl_vocabulary_free(pawl_vocabulary* vocabulary);

/* ---- Compiler and grammars ------------------------------------------------------------------ */

typedef struct pawl_compiler pawl_compiler;
/* A compiled constraint. Immutable. */
typedef struct pawl_grammar pawl_grammar;

typedef struct pawl_compiler_options {
  size_t struct_size;
  /* Grammars of JSON Schemas to keep for when the same schema comes again; 0: none. */
  size_t cached_grammars;
  /* For grammars of the kinds "ebnf", "gbnf", "lark" and "lark_xgrammar": the most steps, of about
   * 5 ns, in which parts of masks are found while they are compiled (docs/grammars.md). The masks
   * are the same with any number; 0: none is. Also where such a grammar is deserialized. */
  uint64_t prepare_steps;
  /* Bytes that all grammars of the compiler may keep of what was found of their states and masks;
   * beyond that they give back what no matcher needs, and find it again when it is wanted. */
  size_t memory_budget;
} pawl_compiler_options;
/* Threads: any. */
PAWL_API void pawl_compiler_options_init(pawl_compiler_options* options, size_t struct_size);

/* options: NULL for the defaults. Threads: any. */
PAWL_API pawl_status pawl_compiler_create(const pawl_vocabulary* vocabulary,
                                          const pawl_compiler_options* options,
                                          pawl_compiler** compiler, pawl_error** error);
/* Bytes that the grammars keep now. Walks over all of it: for reports, not for every token.
 * Threads: any. */
PAWL_API size_t pawl_compiler_memory_bytes(const pawl_compiler* compiler);
PAWL_API void pawl_compiler_free(pawl_compiler* compiler);

/* Where a resolver puts its answer. */
typedef struct pawl_document pawl_document;
/* The text of the document; copied. Threads: alone. */
PAWL_API pawl_status pawl_document_set_text(pawl_document* document, const char* text,
                                            size_t length);
/* Why there is none; copied. Threads: alone. */
PAWL_API pawl_status pawl_document_set_error(pawl_document* document, const char* message,
                                             size_t length);
/* Finds the document of an absolute URI without fragment. Calls one of the two above before it
 * returns; `document` must not be kept. */
typedef void (*pawl_resolve_document)(void* context, const char* uri, size_t uri_length,
                                      pawl_document* document);

enum { PAWL_ORDER_SCHEMA = 0, PAWL_ORDER_ANY = 1 };
enum { PAWL_WHITESPACE_COMPACT = 0, PAWL_WHITESPACE_BOUNDED = 1, PAWL_WHITESPACE_ANY = 2 };
enum { PAWL_PROFILE_FULL = 0, PAWL_PROFILE_STRICT = 1 };

/* What each means: pawl/json_schema_options.h and docs/json_schema.md. Strings: NULL for the
 * default. */
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
  /* Called while compiling only, on the thread that compiles. NULL: the schema stands alone. */
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
} pawl_json_schema_options;
/* Threads: any. */
PAWL_API void pawl_json_schema_options_init(pawl_json_schema_options* options, size_t struct_size);

/* Compiles a text of a kind:
 *   "json_schema"  a JSON Schema; options, or NULL for the defaults
 *   "regex"        a pattern that the whole output matches (docs/regex.md)
 *   "choice"       a JSON array of strings, of which the output is one
 *   "ebnf"         a grammar as XGrammar writes it, with a rule "root" (docs/grammars.md)
 *   "gbnf"         a grammar as llama.cpp writes it, with a rule "root"
 *   "lark"         a grammar in llguidance's dialect of Lark (docs/lark.md)
 *   "lark_xgrammar"  a grammar in XGrammar's dialect of Lark (docs/lark.md)
 *   "substring"    the output is a span of the text; it may be empty
 *   "structural_tag"  free text with constrained parts, as JSON (docs/structural_tags.md)
 * options must be NULL for "regex", "choice" and "substring"; in grammars and tags they concern the
 * schemas there. An unknown kind is PAWL_UNSUPPORTED. Threads: any. */
PAWL_API pawl_status pawl_compile(const pawl_compiler* compiler, const char* kind, const char* text,
                                  size_t text_length, const pawl_json_schema_options* options,
                                  pawl_grammar** grammar, pawl_error** error);
/* The output is one of the strings. Threads: any. */
PAWL_API pawl_status pawl_compile_choice(const pawl_compiler* compiler, const char* const* choices,
                                         const size_t* lengths, size_t count,
                                         pawl_grammar** grammar, pawl_error** error);
/* Grammars of grammars; what each means: pawl/combine.h and docs/infilling.md. They keep what they
 * share with `grammar` alive and take its lock while they are made. Threads: any.
 *
 * The outputs with which prefix, output, after[0], any text, after[1], ... is a text of the
 * grammar. after_count 0: nothing comes after. */
PAWL_API pawl_status pawl_grammar_infill(const pawl_grammar* grammar, const char* prefix,
                                         size_t prefix_length, const char* const* after,
                                         const size_t* after_lengths, size_t after_count,
                                         pawl_grammar** out, pawl_error** error);
/* The texts in which each of the words occurs. */
PAWL_API pawl_status pawl_grammar_require_words(const pawl_grammar* grammar,
                                                const char* const* words, const size_t* lengths,
                                                size_t count, pawl_grammar** out,
                                                pawl_error** error);
/* The texts of both; one of them must be regular. */
PAWL_API pawl_status pawl_grammar_intersect(const pawl_grammar* a, const pawl_grammar* b,
                                            pawl_grammar** out, pawl_error** error);
/* All texts but those of a regex, choices or a substring. */
PAWL_API pawl_status pawl_grammar_complement(const pawl_grammar* grammar, pawl_grammar** out,
                                             pawl_error** error);
PAWL_API void pawl_grammar_free(pawl_grammar* grammar);

/* Remarks of the compiler that are no errors. Text and length live as long as the grammar.
 * Threads: any. */
PAWL_API size_t pawl_grammar_note_count(const pawl_grammar* grammar);
PAWL_API pawl_status pawl_grammar_note(const pawl_grammar* grammar, size_t index, const char** text,
                                       size_t* length);

/* A grammar as bytes, to keep or to send: the source with its options and the documents that its
 * resolver gave, and the fingerprint of the vocabulary; no compiled state. *size is what it takes;
 * buffer NULL asks for that alone; a capacity that is too small is PAWL_LIMIT. Threads: any. */
PAWL_API pawl_status pawl_grammar_serialize(const pawl_grammar* grammar, char* buffer,
                                            size_t capacity, size_t* size, pawl_error** error);
/* Compiles it again, with a compiler of the same vocabulary; another one is PAWL_INVALID, as are
 * damaged bytes; another format version is PAWL_UNSUPPORTED. Takes as long as compiling, since most
 * of a grammar is made when it is used. Threads: any. */
PAWL_API pawl_status pawl_grammar_deserialize(const pawl_compiler* compiler, const char* bytes,
                                              size_t length, pawl_grammar** grammar,
                                              pawl_error** error);

/* ---- Matcher: where one output stands ------------------------------------------------------- */

typedef struct pawl_matcher pawl_matcher;

typedef struct pawl_matcher_options {
  size_t struct_size;
  /* The tokens that end the output, in place of the vocabulary's; count 0: the vocabulary's. Such a
   * token is never taken as text, also where its bytes would fit. */
  const int32_t* end_tokens;
  size_t end_token_count;
  /* No end token is wanted: none is ever allowed, and the matcher is terminated as soon as the text
   * is complete and nothing can follow. */
  int32_t terminate_without_end_token;
} pawl_matcher_options;
/* Threads: any. */
PAWL_API void pawl_matcher_options_init(pawl_matcher_options* options, size_t struct_size);

/* options: NULL for the defaults. Threads: any. */
PAWL_API pawl_status pawl_matcher_create(const pawl_grammar* grammar,
                                         const pawl_matcher_options* options,
                                         pawl_matcher** matcher, pawl_error** error);
/* A copy with its history, independent of the first. Threads: any, as long as nobody changes it. */
PAWL_API pawl_status pawl_matcher_clone(const pawl_matcher* matcher, pawl_matcher** clone);
PAWL_API void pawl_matcher_free(pawl_matcher* matcher);

/* Takes a token: one step. PAWL_REFUSED when it does not fit or the matcher is terminated.
 * Threads: alone. */
PAWL_API pawl_status pawl_matcher_accept(pawl_matcher* matcher, int32_t token);
/* Takes all the bytes or none: one step. Threads: alone. */
PAWL_API pawl_status pawl_matcher_accept_bytes(pawl_matcher* matcher, const char* bytes,
                                               size_t length);
/* Takes the last steps back, however many. PAWL_BAD_ARGUMENT when there were fewer; then nothing
 * changed. Threads: alone. */
PAWL_API pawl_status pawl_matcher_rollback(pawl_matcher* matcher, size_t steps);
/* Back to the start, without history. Threads: alone. */
PAWL_API pawl_status pawl_matcher_reset(pawl_matcher* matcher);

/* The functions from here on do not change the matcher. Threads: any, as long as nobody changes it.
 */

/* Steps that can be taken back; 0 for NULL. */
PAWL_API size_t pawl_matcher_steps(const pawl_matcher* matcher);
/* 1 when nothing may follow because the output has ended; 0 for NULL. */
PAWL_API int pawl_matcher_is_terminated(const pawl_matcher* matcher);
/* 1 when the text so far is complete; 0 for NULL. */
PAWL_API int pawl_matcher_is_accepting(const pawl_matcher* matcher);
/* Writes the mask of what may come next to the first ceil(V / 32) words of the row; bits beyond V
 * are 0. `words` is the room there is. PAWL_ENDED when no token may follow; the row is then all
 * zero, and a sampler must not be given it. */
PAWL_API pawl_status pawl_matcher_fill_mask(const pawl_matcher* matcher, uint32_t* row,
                                            size_t words);
/* *accepted is how many of the tokens, from the first, would be accepted one after another. */
PAWL_API pawl_status pawl_matcher_validate_tokens(const pawl_matcher* matcher,
                                                  const int32_t* tokens, size_t count,
                                                  size_t* accepted);
/* Writes the bytes that must come next whatever is chosen, at most `capacity`; *length is how
 * many; 0 when there is a choice. */
PAWL_API pawl_status pawl_matcher_forced_bytes(const pawl_matcher* matcher, char* bytes,
                                               size_t capacity, size_t* length);
/* Writes tokens that spell forced bytes, at most `capacity`; *count is how many. Bytes at the end
 * that a longer token could swallow are left out. In the tokenizer's own spelling when the
 * vocabulary came from a tokenizer.json, else by always taking the longest token that fits. */
PAWL_API pawl_status pawl_matcher_forced_tokens(const pawl_matcher* matcher, int32_t* tokens,
                                                size_t capacity, size_t* count);

/* What the captures of the grammar hold so far (docs/lark.md): parts of the output that a rule with
 * a capture stands for, in the order in which they end. Of an output that is not complete, those
 * that have ended. Computed when asked for; masks cost nothing for it. A grammar that is too
 * ambiguous: PAWL_LIMIT. Threads: any, as long as nobody changes the matcher. */
typedef struct pawl_captures pawl_captures;
PAWL_API pawl_status pawl_matcher_captures(const pawl_matcher* matcher, pawl_captures** captures,
                                           pawl_error** error);
PAWL_API size_t pawl_captures_count(const pawl_captures* captures);
/* Where capture `index` begins and ends in the output, in bytes, its text, and the name that the
 * grammar gives it, ending in a zero. Any pointer may be NULL. What is pointed to lives as long as
 * the captures. PAWL_BAD_ARGUMENT when there is no such capture. Threads: any. */
PAWL_API pawl_status pawl_captures_get(const pawl_captures* captures, size_t index,
                                       const char** name, size_t* begin, size_t* end,
                                       const char** text, size_t* text_length);
PAWL_API void pawl_captures_free(pawl_captures* captures);

/* The sampling temperature that the grammar asks for at this place (rule[temperature=...]), a
 * negative number where it asks for none. Threads: any, as long as nobody changes the matcher. */
PAWL_API pawl_status pawl_matcher_temperature(const pawl_matcher* matcher, float* temperature);

/* Writes tokens that complete the output, few of them and perhaps none; *count is how many there
 * are, more than `capacity` where that was too small. PAWL_LIMIT when none were found. */
PAWL_API pawl_status pawl_matcher_completion_tokens(const pawl_matcher* matcher, int32_t* tokens,
                                                    size_t capacity, size_t* count);

/* One mask for each node of a tree of draft tokens, `stride` words from row to row: row i holds
 * what may come after the path from the root to node i. Node i is tokens[i] below node parents[i];
 * -1 as a parent means the matcher's position; -1 as a token stands for the parent's position, so
 * that
 * {-1, -1} gives the matcher's own mask. accepted (or NULL): accepted[i] becomes 1 when the whole
 * path fits, else 0; the row of a refused node is all zero. *fit (or NULL): how many nodes fit. A
 * node that is its own ancestor or has no such parent: PAWL_INVALID, and no row is written. */
PAWL_API pawl_status pawl_matcher_fill_tree(const pawl_matcher* matcher, const int32_t* tokens,
                                            const int32_t* parents, size_t count, uint32_t* rows,
                                            size_t stride, uint8_t* accepted, size_t* fit,
                                            pawl_error** error);
/* The parents of a tree given as first child (next_token) and next sibling, -1 for none. A node
 * that has two parents or is its own, or a number that is no node: PAWL_INVALID. Threads: any. */
PAWL_API pawl_status pawl_draft_tree_parents(const int32_t* next_token, const int32_t* next_sibling,
                                             size_t count, int32_t* parents, pawl_error** error);

/* ---- Batches -------------------------------------------------------------------------------- */

/* A pool of threads that sleep between the calls. */
typedef struct pawl_batch pawl_batch;
/* threads counts the caller; 0: one for each processor. Threads: any. */
PAWL_API pawl_status pawl_batch_create(int32_t threads, pawl_batch** batch, pawl_error** error);
/* How many threads a fill can use; 0 for NULL. Threads: any. */
PAWL_API int32_t pawl_batch_threads(const pawl_batch* batch);
/* Fills row i (rows + i * stride) with the mask of matchers[i]; NULL leaves its row alone. *ended
 * (or NULL): how many rows have no allowed token. A stride that is too small for a matcher's
 * vocabulary: PAWL_BAD_ARGUMENT, and no row is written. Threads: any; a call that finds the pool
 * busy does its rows alone. Nobody may change the matchers meanwhile. */
PAWL_API pawl_status pawl_batch_fill(const pawl_batch* batch, const pawl_matcher* const* matchers,
                                     size_t count, uint32_t* rows, size_t stride, size_t* ended);
PAWL_API void pawl_batch_free(pawl_batch* batch);

/* ---- Engine: a model, and outputs that keep its distribution --------------------------------- */

/* Without the engine (PAWL_BUILD_ENGINE=OFF) pawl_engine_load is PAWL_UNSUPPORTED.
 *
 *   pawl_engine* engine = NULL;
 *   pawl_samples* samples = NULL;
 *   pawl_engine_load("models/tiny-extract", 19, NULL, &engine, &error);
 *   pawl_prompt prompt;
 *   pawl_prompt_init(&prompt, sizeof prompt);
 *   prompt.text = "Call us: ";
 *   prompt.text_length = 9;
 *   pawl_sampler_options options;
 *   pawl_sampler_options_init(&options, sizeof options);
 *   options.n = 20;
 *   pawl_engine_sample(engine, &prompt, grammar, &options, &samples, &error);
 *
 * What the samplers do and what their options mean: pawl/sampling.h and docs/sampling.md. */
typedef struct pawl_engine pawl_engine;

/* How weights are kept in memory. */
enum {
  PAWL_DTYPE_STORED = 0,
  PAWL_DTYPE_FP32 = 1,
  PAWL_DTYPE_BF16 = 2,
  PAWL_DTYPE_FP16 = 3,
  PAWL_DTYPE_INT8 = 4,
  PAWL_DTYPE_INT4 = 5
};

typedef struct pawl_engine_options {
  size_t struct_size;
  int32_t threads; /* 0: all cores */
  int32_t dtype;
  int64_t oracle_bytes; /* for what samplers learn about prompts */
} pawl_engine_options;
/* Threads: any. */
PAWL_API void pawl_engine_options_init(pawl_engine_options* options, size_t struct_size);

/* path: a model folder as on the Hugging Face hub, or a GGUF file. Threads: any. */
PAWL_API pawl_status pawl_engine_load(const char* path, size_t path_length,
                                      const pawl_engine_options* options, pawl_engine** engine,
                                      pawl_error** error);
PAWL_API void pawl_engine_free(pawl_engine* engine);
/* What grammars and checks for this model are made for. Threads: any. */
PAWL_API pawl_status pawl_engine_vocabulary(const pawl_engine* engine,
                                            pawl_vocabulary** vocabulary);
/* The text as the model's tokenizer spells it, without anything before or behind it; special tokens
 * that it spells stay text. Writes at most `capacity`; *count is how many there are. Threads: any.
 */
PAWL_API pawl_status pawl_engine_encode(const pawl_engine* engine, const char* text, size_t length,
                                        int32_t* tokens, size_t capacity, size_t* count);

/* One of text, chat_json and tokens. */
typedef struct pawl_prompt {
  size_t struct_size;
  const char* text; /* UTF-8 */
  size_t text_length;
  /* A JSON list of messages, or an object with "messages", for the model's chat template. */
  const char* chat_json;
  size_t chat_json_length;
  const int32_t* tokens; /* as they are */
  size_t token_count;
  int32_t parse_special; /* special tokens that the text spells become those tokens */
} pawl_prompt;
/* Threads: any. */
PAWL_API void pawl_prompt_init(pawl_prompt* prompt, size_t struct_size);

/* ---- Checks: constraints that are too slow or too rich to be a mask -------------------------- */

/* Immutable. */
typedef struct pawl_check pawl_check;

enum { PAWL_DEAD = 0, PAWL_LIVE = 1, PAWL_ACCEPT = 2, PAWL_UNKNOWN = 3 };
enum { PAWL_CHECK_BYTE = 0, PAWL_CHECK_TOKEN = 1, PAWL_CHECK_LINE = 2, PAWL_CHECK_COMPLETE = 3 };

typedef struct pawl_check_question {
  size_t struct_size;
  const char* text; /* the output so far: bytes */
  size_t text_length;
  const int32_t* tokens; /* those of the text, without the end token */
  size_t token_count;
  int32_t ended; /* the output ends here */
} pawl_check_question;

/* Gives one of PAWL_DEAD, PAWL_LIVE, PAWL_ACCEPT and PAWL_UNKNOWN; anything else ends the run with
 * an error. Called from several threads at a time; the same question has to get the same answer. */
typedef int32_t (*pawl_judge)(void* context, const pawl_check_question* question);
/* granularity: PAWL_CHECK_BYTE and so on. Threads: any. */
PAWL_API pawl_status pawl_check_create(pawl_judge judge, void* context, int32_t granularity,
                                       pawl_check** check, pawl_error** error);
/* Threads: any. */
PAWL_API pawl_status pawl_check_from_grammar(const pawl_grammar* grammar, int32_t granularity,
                                             pawl_check** check, pawl_error** error);
/* KIND:VALUE or KIND@GRANULARITY:VALUE as `pawl generate --check` takes it: regex, schema, grammar
 * or program. `timeout`: seconds for an answer of a program, of which at most `processes` run.
 * Threads: any. */
PAWL_API pawl_status pawl_check_from_spec(const pawl_vocabulary* vocabulary, const char* spec,
                                          size_t length, double timeout, int32_t processes,
                                          pawl_check** check, pawl_error** error);
PAWL_API void pawl_check_free(pawl_check* check);

/* A weight on outputs and on what they begin with. Immutable. */
typedef struct pawl_critic pawl_critic;
/* A logarithm; -INFINITY for what must not be; NaN ends the run with an error. Called from several
 * threads at a time. */
typedef double (*pawl_score)(void* context, const pawl_check_question* question);
/* Threads: any. */
PAWL_API pawl_status pawl_critic_create(pawl_score score, void* context, pawl_critic** critic,
                                        pawl_error** error);
/* A command for the shell, as `pawl generate --critic` takes it. Threads: any. */
PAWL_API pawl_status pawl_critic_from_command(const char* command, size_t length, double timeout,
                                              int32_t processes, pawl_critic** critic,
                                              pawl_error** error);
PAWL_API void pawl_critic_free(pawl_critic* critic);

/* ---- Samplers -------------------------------------------------------------------------------- */

enum {
  PAWL_SAMPLER_GCD = 0,
  PAWL_SAMPLER_FVO = 1,
  PAWL_SAMPLER_AWRS = 2,
  PAWL_SAMPLER_SMC = 3,
  PAWL_SAMPLER_ASAP = 4,
  PAWL_SAMPLER_RS = 5,
  PAWL_SAMPLER_ARS = 6,
  PAWL_SAMPLER_CARS = 7
};
enum {
  PAWL_FIDELITY_NONE = -1,
  PAWL_FIDELITY_FAST = 0,
  PAWL_FIDELITY_ALIGNED = 1,
  PAWL_FIDELITY_EXACT = 2
};
enum { PAWL_ESTIMATOR_TWO_LOOP = 0, PAWL_ESTIMATOR_RECURSIVE = 1, PAWL_ESTIMATOR_GEOMETRIC = 2 };
enum {
  PAWL_RESAMPLING_STRATIFIED = 0,
  PAWL_RESAMPLING_SYSTEMATIC = 1,
  PAWL_RESAMPLING_MULTINOMIAL = 2,
  PAWL_RESAMPLING_RESIDUAL = 3
};

/* One output. What is pointed to lives as long as the samples that it is of. */
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
/* Threads: any. */
PAWL_API void pawl_sample_init(pawl_sample* sample, size_t struct_size);

/* 0 ends the run. `sample` lives until it returns. */
typedef int (*pawl_on_sample)(void* context, const pawl_sample* sample);

typedef struct pawl_sampler_options {
  size_t struct_size;
  int32_t sampler;
  int32_t fidelity; /* not PAWL_FIDELITY_NONE: picks the sampler */
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
  pawl_engine* proposal; /* NULL: none; nothing else may use it meanwhile */
  /* Called in the order of the outputs, on the thread of the call. NULL: nobody is told. */
  pawl_on_sample on_sample;
  void* on_sample_context;
} pawl_sampler_options;
/* Threads: any. */
PAWL_API void pawl_sampler_options_init(pawl_sampler_options* options, size_t struct_size);

typedef struct pawl_samples pawl_samples;
/* grammar: NULL for none, else of the engine's vocabulary. options: NULL for the defaults.
 * Threads: alone. */
PAWL_API pawl_status pawl_engine_sample(pawl_engine* engine, const pawl_prompt* prompt,
                                        const pawl_grammar* grammar,
                                        const pawl_sampler_options* options, pawl_samples** samples,
                                        pawl_error** error);
/* 0 for NULL. Threads: any. */
PAWL_API size_t pawl_samples_count(const pawl_samples* samples);
/* PAWL_BAD_ARGUMENT when there is no such output. Threads: any. */
PAWL_API pawl_status pawl_samples_get(const pawl_samples* samples, size_t index,
                                      pawl_sample* sample);
PAWL_API void pawl_samples_free(pawl_samples* samples);

/* *sum becomes the model's log-probability of the tokens behind the prompt at this temperature,
 * without a mask; each[i] (or NULL) that of token i behind those before it. Threads: alone. */
PAWL_API pawl_status pawl_engine_score(pawl_engine* engine, const pawl_prompt* prompt,
                                       const int32_t* tokens, size_t count, double temperature,
                                       double* sum, double* each, pawl_error** error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PAWL_PAWL_H_ */
