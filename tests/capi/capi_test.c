/* The C library as a C11 program sees it: every function once with good arguments and once with bad
 * ones. What masks and grammars mean is tested on the C++ side. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum {
  kTokens = 260,
  kWords = (kTokens + 31) / 32,
  kAbc = 256,
  kEnd = 257,
  kEnd2 = 258,
  kControl = 259
};

static int bit(const uint32_t* row, int32_t token) { return (row[token / 32] >> (token % 32)) & 1; }

static pawl_vocabulary* vocabulary_of(int end_tokens) {
  static char bytes[256];
  const char* tokens[kTokens];
  size_t lengths[kTokens];
  for (int i = 0; i < 256; ++i) {
    bytes[i] = (char)i;
    tokens[i] = &bytes[i];
    lengths[i] = 1;
  }
  const char* const names[] = {"abc", "<end>", "<eot>", "<control>"};
  for (int i = 0; i < 4; ++i) {
    tokens[256 + i] = names[i];
    lengths[256 + i] = strlen(names[i]);
  }
  const int32_t special[] = {kEnd, kEnd2, kControl};
  const int32_t ends[] = {kEnd, kEnd2};
  pawl_vocabulary_tokens init;
  pawl_vocabulary_tokens_init(&init, sizeof init);
  init.tokens = tokens;
  init.lengths = lengths;
  init.count = kTokens;
  init.special = special;
  init.special_count = 3;
  init.end_tokens = ends;
  init.end_token_count = (size_t)end_tokens;
  pawl_vocabulary* vocabulary = NULL;
  CHECK(pawl_vocabulary_create(&init, &vocabulary, NULL) == PAWL_OK);
  return vocabulary;
}

static pawl_grammar* compile(const pawl_compiler* compiler, const char* kind, const char* text) {
  pawl_grammar* grammar = NULL;
  pawl_error* error = NULL;
  if (pawl_compile(compiler, kind, text, strlen(text), NULL, &grammar, &error) != PAWL_OK)
    fprintf(stderr, "%s: %s\n", pawl_error_place(error), pawl_error_message(error));
  CHECK(grammar != NULL);
  return grammar;
}

static void test_versions_and_errors(void) {
  CHECK(pawl_abi_version() == PAWL_ABI_VERSION);
  CHECK(pawl_version()[0] != 0);
  CHECK(strcmp(pawl_status_name(PAWL_OK), "ok") == 0);
  CHECK(strcmp(pawl_status_name(PAWL_INVALID), "invalid") == 0);
  CHECK(strcmp(pawl_status_name(PAWL_INTERNAL), "internal") == 0);
  CHECK(strcmp(pawl_status_name(PAWL_REFUSED), "refused") == 0);
  CHECK(strcmp(pawl_status_name(PAWL_ENDED), "ended") == 0);
  CHECK(strcmp(pawl_status_name(PAWL_BAD_ARGUMENT), "bad argument") == 0);
  CHECK(strcmp(pawl_status_name(77), "unknown") == 0);
  CHECK(pawl_error_status(NULL) == PAWL_OK);
  CHECK(pawl_error_message(NULL)[0] == 0 && pawl_error_place(NULL)[0] == 0);
  pawl_error_free(NULL);
}

static void test_vocabulary(void) {
  pawl_vocabulary* v = vocabulary_of(2);
  CHECK(pawl_vocabulary_size(v) == kTokens && pawl_vocabulary_size(NULL) == 0);
  CHECK(pawl_vocabulary_mask_words(v) == kWords && pawl_vocabulary_mask_words(NULL) == 0);
  const char* bytes = NULL;
  size_t length = 0;
  CHECK(pawl_vocabulary_token(v, kAbc, &bytes, &length) == PAWL_OK);
  CHECK(length == 3 && memcmp(bytes, "abc", 3) == 0);
  CHECK(pawl_vocabulary_token(v, -1, &bytes, &length) == PAWL_BAD_ARGUMENT);
  CHECK(pawl_vocabulary_token(v, kTokens, &bytes, &length) == PAWL_BAD_ARGUMENT);
  CHECK(pawl_vocabulary_token(NULL, 0, &bytes, &length) == PAWL_BAD_ARGUMENT);
  int32_t ends[1] = {-1};
  size_t count = 0;
  CHECK(pawl_vocabulary_end_tokens(v, ends, 1, &count) == PAWL_OK && count == 2 && ends[0] == kEnd);
  CHECK(pawl_vocabulary_end_tokens(v, NULL, 0, &count) == PAWL_OK && count == 2);
  CHECK(pawl_vocabulary_end_tokens(v, NULL, 1, &count) == PAWL_BAD_ARGUMENT);
  pawl_vocabulary* same = vocabulary_of(2);
  pawl_vocabulary* other = vocabulary_of(1);
  uint64_t a[2], b[2], c[2];
  CHECK(pawl_vocabulary_fingerprint(v, a) == PAWL_OK);
  CHECK(pawl_vocabulary_fingerprint(same, b) == PAWL_OK);
  CHECK(pawl_vocabulary_fingerprint(other, c) == PAWL_OK);
  CHECK(memcmp(a, b, sizeof a) == 0 && memcmp(a, c, sizeof a) != 0);
  CHECK(pawl_vocabulary_fingerprint(NULL, a) == PAWL_BAD_ARGUMENT);
  pawl_vocabulary_free(same);
  pawl_vocabulary_free(other);
  pawl_vocabulary_free(v);
  pawl_vocabulary_free(NULL);

  pawl_vocabulary_tokens init;
  pawl_vocabulary_tokens_init(&init, sizeof init);
  CHECK_FAILS(pawl_vocabulary_create(NULL, &v, &error), PAWL_BAD_ARGUMENT, "tokens");
  CHECK_FAILS(pawl_vocabulary_create(&init, NULL, &error), PAWL_BAD_ARGUMENT, "vocabulary");
  CHECK_FAILS(pawl_vocabulary_create(&init, &v, &error), PAWL_INVALID, ""); /* no tokens */
  init.count = 1;
  CHECK_FAILS(pawl_vocabulary_create(&init, &v, &error), PAWL_BAD_ARGUMENT, "tokens.tokens");
  init.struct_size = 0;
  CHECK_FAILS(pawl_vocabulary_create(&init, &v, &error), PAWL_BAD_ARGUMENT, "struct_size");
  pawl_tokenizer_options options;
  pawl_tokenizer_options_init(&options, sizeof options);
  CHECK_FAILS(pawl_vocabulary_from_tokenizer_json("{", 1, &options, &v, &error), PAWL_INVALID,
              "1:2 (byte 1)");
  CHECK_FAILS(pawl_vocabulary_from_tokenizer_json(NULL, 1, NULL, &v, &error), PAWL_BAD_ARGUMENT,
              "json");
  CHECK_FAILS(pawl_vocabulary_from_tokenizer_file(NULL, 1, NULL, &v, &error), PAWL_BAD_ARGUMENT,
              "path");
}

static void test_tokenizer(const char* path) {
  pawl_vocabulary* v = NULL;
  pawl_tokenizer_options options;
  pawl_tokenizer_options_init(&options, sizeof options);
  const int32_t end[] = {5};
  options.end_tokens = end;
  options.end_token_count = 1;
  options.padded_size = 3000;
  CHECK(pawl_vocabulary_from_tokenizer_file(path, strlen(path), &options, &v, NULL) == PAWL_OK);
  CHECK(pawl_vocabulary_size(v) == 3000);
  size_t count = 0;
  int32_t ends[4];
  CHECK(pawl_vocabulary_end_tokens(v, ends, 4, &count) == PAWL_OK && count == 1 && ends[0] == 5);
  pawl_compiler* compiler = NULL;
  CHECK(pawl_compiler_create(v, NULL, &compiler, NULL) == PAWL_OK);
  pawl_grammar* grammar = compile(compiler, "regex", "\\{\"total\":[0-9]");
  pawl_matcher* matcher = NULL;
  CHECK(pawl_matcher_create(grammar, NULL, &matcher, NULL) == PAWL_OK);
  int32_t tokens[64];
  CHECK(pawl_matcher_forced_tokens(matcher, tokens, 64, &count) == PAWL_OK && count > 0);
  size_t accepted = 0;
  CHECK(pawl_matcher_validate_tokens(matcher, tokens, count, &accepted) == PAWL_OK);
  CHECK(accepted == count);
  pawl_matcher_free(matcher);
  pawl_grammar_free(grammar);
  pawl_compiler_free(compiler);
  pawl_vocabulary_free(v);
}

static void resolve(void* context, const char* uri, size_t length, pawl_document* document) {
  ++*(int*)context;
  const char* text = "{\"const\": 7}";
  if (length == strlen("http://a.b/seven") && memcmp(uri, "http://a.b/seven", length) == 0)
    CHECK(pawl_document_set_text(document, text, strlen(text)) == PAWL_OK);
  else
    CHECK(pawl_document_set_error(document, "not here", 8) == PAWL_OK);
}

static void test_compiler_and_bytes(void) {
  pawl_vocabulary* v = vocabulary_of(2);
  pawl_compiler* compiler = NULL;
  pawl_compiler_options compiler_options;
  pawl_compiler_options_init(&compiler_options, sizeof compiler_options);
  CHECK(compiler_options.cached_grammars == 0 && compiler_options.prepare_steps == 0);
  compiler_options.cached_grammars = 4;
  CHECK_FAILS(pawl_compiler_create(NULL, NULL, &compiler, &error), PAWL_BAD_ARGUMENT, "vocabulary");
  CHECK_FAILS(pawl_compiler_create(v, NULL, NULL, &error), PAWL_BAD_ARGUMENT, "compiler");
  CHECK(pawl_compiler_create(v, &compiler_options, &compiler, NULL) == PAWL_OK);

  pawl_grammar* grammar = NULL;
  CHECK_FAILS(pawl_compile(NULL, "regex", "a", 1, NULL, &grammar, &error), PAWL_BAD_ARGUMENT,
              "compiler");
  CHECK_FAILS(pawl_compile(compiler, NULL, "a", 1, NULL, &grammar, &error), PAWL_BAD_ARGUMENT,
              "kind");
  CHECK_FAILS(pawl_compile(compiler, "regex", NULL, 1, NULL, &grammar, &error), PAWL_BAD_ARGUMENT,
              "text");
  CHECK_FAILS(pawl_compile(compiler, "regex", "a", 1, NULL, NULL, &error), PAWL_BAD_ARGUMENT,
              "grammar");
  CHECK_FAILS(pawl_compile(compiler, "telepathy", "a", 1, NULL, &grammar, &error), PAWL_UNSUPPORTED,
              "kind");
  CHECK_FAILS(pawl_compile(compiler, "regex", "a(", 2, NULL, &grammar, &error), PAWL_INVALID,
              "byte 2");
  CHECK_FAILS(pawl_compile(compiler, "choice", "[1]", 3, NULL, &grammar, &error), PAWL_INVALID,
              "#/0");
  static const char* const kinds[][4] = {
      {"ebnf", "root ::= \"a\" root | \"b\"", "root ::= item", "1:10"},
      {"gbnf", "root ::= \"a\" root | \"b\"", "root ::= item", "1:10"},
      {"lark", "start: \"a\" start | \"b\"", "start: item", "1:8"},
      {"structural_tag",
       "{\"type\":\"structural_tag\",\"format\":{\"type\":\"const_string\",\"value\":\"ab\"}}",
       "{\"type\":\"structural_tag\"}", "#/format"},
  };
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
    pawl_grammar_free(compile(compiler, kinds[i][0], kinds[i][1]));
    CHECK_FAILS(pawl_compile(compiler, kinds[i][0], kinds[i][2], strlen(kinds[i][2]), NULL,
                             &grammar, &error),
                PAWL_INVALID, kinds[i][3]);
  }
  CHECK_FAILS(pawl_compile(compiler, "json_schema", "false", 5, NULL, &grammar, &error),
              PAWL_UNSATISFIABLE, "#");
  CHECK(grammar == NULL);

  pawl_json_schema_options options;
  pawl_json_schema_options_init(&options, sizeof options);
  CHECK(options.struct_size == sizeof options && options.whitespace == PAWL_WHITESPACE_BOUNDED);
  CHECK_FAILS(pawl_compile(compiler, "regex", "a", 1, &options, &grammar, &error),
              PAWL_BAD_ARGUMENT, "options");
  options.order = 9;
  CHECK_FAILS(pawl_compile(compiler, "json_schema", "{}", 2, &options, &grammar, &error),
              PAWL_BAD_ARGUMENT, "order");
  options.order = PAWL_ORDER_ANY;
  options.whitespace = PAWL_WHITESPACE_COMPACT;
  options.key_separator = ": ";
  options.key_separator_length = 2;
  options.list_annotations = 1;
  int asked = 0;
  options.resolve_document = resolve;
  options.resolve_context = &asked;
  const char* bad = "{\"$ref\":\"http://a.b/eight\"}";
  CHECK_FAILS(pawl_compile(compiler, "json_schema", bad, strlen(bad), &options, &grammar, &error),
              PAWL_UNSUPPORTED, "#/$ref");
  const char* schema =
      "{\"title\":\"t\",\"properties\":{\"a\":{\"$ref\":\"http://a.b/"
      "seven\"}},\"required\":[\"a\"],"
      "\"type\":\"object\",\"additionalProperties\":false}";
  CHECK(pawl_compile(compiler, "json_schema", schema, strlen(schema), &options, &grammar, NULL) ==
        PAWL_OK);
  CHECK(asked == 2);
  CHECK(pawl_grammar_note_count(grammar) == 1 && pawl_grammar_note_count(NULL) == 0);
  const char* note = NULL;
  size_t length = 0;
  CHECK(pawl_grammar_note(grammar, 0, &note, &length) == PAWL_OK && length > 0);
  CHECK(pawl_grammar_note(grammar, 1, &note, &length) == PAWL_BAD_ARGUMENT);
  CHECK(pawl_document_set_text(NULL, "", 0) == PAWL_BAD_ARGUMENT);
  CHECK(pawl_document_set_error(NULL, "", 0) == PAWL_BAD_ARGUMENT);

  /* There and back, options and documents with it. */
  size_t size = 0;
  CHECK(pawl_grammar_serialize(grammar, NULL, 0, &size, NULL) == PAWL_OK && size > 0);
  char* bytes = malloc(size);
  CHECK_FAILS(pawl_grammar_serialize(grammar, bytes, size - 1, &length, &error), PAWL_LIMIT,
              "capacity");
  CHECK_FAILS(pawl_grammar_serialize(NULL, bytes, size, &length, &error), PAWL_BAD_ARGUMENT,
              "grammar");
  CHECK(pawl_grammar_serialize(grammar, bytes, size, &length, NULL) == PAWL_OK && length == size);
  pawl_grammar* back = NULL;
  CHECK(pawl_grammar_deserialize(compiler, bytes, size, &back, NULL) == PAWL_OK);
  CHECK(asked == 2);
  pawl_matcher* matcher = NULL;
  CHECK(pawl_matcher_create(back, NULL, &matcher, NULL) == PAWL_OK);
  CHECK(pawl_matcher_accept_bytes(matcher, "{\"a\": 7}", 8) == PAWL_OK);
  CHECK(pawl_matcher_is_accepting(matcher));
  pawl_matcher_free(matcher);
  pawl_grammar_free(back);
  back = NULL;
  for (size_t i = 0; i < size; ++i) { /* any byte that changed, any cut */
    bytes[i] ^= 0x20;
    CHECK(pawl_grammar_deserialize(compiler, bytes, size, &back, NULL) != PAWL_OK);
    bytes[i] ^= 0x20;
    CHECK(pawl_grammar_deserialize(compiler, bytes, i, &back, NULL) == PAWL_INVALID);
  }
  CHECK_FAILS(pawl_grammar_deserialize(NULL, bytes, size, &back, &error), PAWL_BAD_ARGUMENT,
              "compiler");
  const char version = bytes[8];
  bytes[8] = 99; /* another version */
  CHECK_FAILS(pawl_grammar_deserialize(compiler, bytes, size, &back, &error), PAWL_UNSUPPORTED, "");
  bytes[8] = version;
  pawl_vocabulary* other = vocabulary_of(1);
  pawl_compiler* wrong = NULL;
  CHECK(pawl_compiler_create(other, NULL, &wrong, NULL) == PAWL_OK);
  CHECK_FAILS(pawl_grammar_deserialize(wrong, bytes, size, &back, &error), PAWL_INVALID, "");
  CHECK(back == NULL);
  free(bytes);
  pawl_compiler_free(wrong);
  pawl_vocabulary_free(other);
  pawl_grammar_free(grammar);

  /* A struct of an older header, and one of a later one. */
  struct {
    pawl_json_schema_options known;
    int64_t later;
  } future;
  pawl_json_schema_options_init(&future.known, sizeof future);
  CHECK(future.later == 0);
  CHECK(pawl_compile(compiler, "json_schema", "{}", 2, &future.known, &grammar, NULL) == PAWL_OK);
  pawl_grammar_free(grammar);
  future.later = 1;
  CHECK_FAILS(pawl_compile(compiler, "json_schema", "{}", 2, &future.known, &grammar, &error),
              PAWL_UNSUPPORTED, "struct_size");
  pawl_json_schema_options_init(&options, offsetof(pawl_json_schema_options, max_whitespace));
  CHECK(pawl_compile(compiler, "json_schema", "{}", 2, &options, &grammar, NULL) == PAWL_OK);
  pawl_grammar_free(grammar);
  pawl_grammar_free(NULL);
  pawl_compiler_free(compiler);
  pawl_compiler_free(NULL);
  pawl_vocabulary_free(v);
}

/* Bytes that a compiler keeps of one grammar that it has just compiled. */
static size_t bytes_of_compiling(const pawl_vocabulary* v, const pawl_compiler_options* options,
                                 const char* text) {
  pawl_compiler* compiler = NULL;
  CHECK(pawl_compiler_create(v, options, &compiler, NULL) == PAWL_OK);
  pawl_grammar* grammar = compile(compiler, "lark", text);
  const size_t bytes = pawl_compiler_memory_bytes(compiler);
  pawl_grammar_free(grammar);
  pawl_compiler_free(compiler);
  return bytes;
}

static void test_prepare_steps(const char* path) {
  pawl_vocabulary* v = NULL;
  CHECK(pawl_vocabulary_from_tokenizer_file(path, strlen(path), NULL, &v, NULL) == PAWL_OK);
  const char* text =
      "start: (A | B | C | D)+\nA: /[a-m]+[n-z]{3,9}/\nB: /[a-z]{2,40}[0-9]+/\n"
      "C: /(the|an|of|in)( [a-z]+){1,9}/\nD: /[^a]{5,70}b/";
  pawl_compiler_options options;
  pawl_compiler_options_init(&options, sizeof options);
  const size_t usual = bytes_of_compiling(v, &options, text);
  options.prepare_steps = 3000000;
  const size_t many = bytes_of_compiling(v, &options, text);
  options.prepare_steps = 0;
  const size_t none = bytes_of_compiling(v, &options, text);
  /* A program that was built with a shorter struct gets the default. */
  pawl_compiler_options_init(&options, offsetof(pawl_compiler_options, prepare_steps));
  const size_t older = bytes_of_compiling(v, &options, text);
  if (none != usual || usual >= many || older != usual)
    printf("%zu bytes with no steps, %zu as usual, %zu with many, %zu by an older program\n", none,
           usual, many, older);
  CHECK(none == usual && usual < many && older == usual);
  pawl_vocabulary_free(v);
}

static void test_matcher(void) {
  pawl_vocabulary* v = vocabulary_of(2);
  pawl_compiler* compiler = NULL;
  CHECK(pawl_compiler_create(v, NULL, &compiler, NULL) == PAWL_OK);
  const char* const choices[] = {"abcabcx", "abcabcy", "q"};
  const size_t lengths[] = {7, 7, 1};
  pawl_grammar* grammar = NULL;
  CHECK_FAILS(pawl_compile_choice(compiler, NULL, lengths, 3, &grammar, &error), PAWL_BAD_ARGUMENT,
              "choices");
  CHECK_FAILS(pawl_compile_choice(compiler, NULL, NULL, 0, &grammar, &error), PAWL_INVALID, "");
  CHECK(pawl_compile_choice(compiler, choices, lengths, 3, &grammar, NULL) == PAWL_OK);
  pawl_matcher* m = NULL;
  CHECK_FAILS(pawl_matcher_create(NULL, NULL, &m, &error), PAWL_BAD_ARGUMENT, "grammar");
  CHECK(pawl_matcher_create(grammar, NULL, &m, NULL) == PAWL_OK);
  /* Handles keep what they need. */
  pawl_vocabulary_free(v);
  pawl_compiler_free(compiler);

  uint32_t row[kWords];
  CHECK(pawl_matcher_fill_mask(m, row, kWords) == PAWL_OK);
  CHECK(bit(row, 'a') && bit(row, 'q') && bit(row, kAbc) && !bit(row, 'b') && !bit(row, kEnd));
  CHECK(pawl_matcher_fill_mask(m, row, kWords - 1) == PAWL_BAD_ARGUMENT);
  CHECK(pawl_matcher_fill_mask(NULL, row, kWords) == PAWL_BAD_ARGUMENT);
  CHECK(pawl_matcher_accept(m, 'b') == PAWL_REFUSED);
  CHECK(pawl_matcher_accept(m, -5) == PAWL_REFUSED &&
        pawl_matcher_accept(m, 99999) == PAWL_REFUSED);
  CHECK(pawl_matcher_accept(NULL, 0) == PAWL_BAD_ARGUMENT);
  CHECK(pawl_matcher_steps(m) == 0 && pawl_matcher_steps(NULL) == 0);
  CHECK(pawl_matcher_accept(m, 'a') == PAWL_OK && pawl_matcher_steps(m) == 1);
  char forced[16];
  size_t n = 0;
  CHECK(pawl_matcher_forced_bytes(m, forced, sizeof forced, &n) == PAWL_OK);
  CHECK(n == 5 && memcmp(forced, "bcabc", 5) == 0);
  CHECK(pawl_matcher_forced_bytes(m, forced, 2, &n) == PAWL_OK && n == 2);
  CHECK(pawl_matcher_forced_bytes(m, NULL, 2, &n) == PAWL_BAD_ARGUMENT);
  int32_t tokens[8];
  CHECK(pawl_matcher_forced_tokens(m, tokens, 8, &n) == PAWL_OK);
  CHECK(n == 3 && tokens[0] == 'b' && tokens[1] == 'c' && tokens[2] == kAbc);
  CHECK(pawl_matcher_forced_tokens(m, tokens, 1, &n) == PAWL_OK && n == 1);
  CHECK(pawl_matcher_forced_tokens(m, tokens, 8, NULL) == PAWL_BAD_ARGUMENT);
  const int32_t plan[] = {'b', 'c', kAbc, 'x', kEnd, 'x'};
  CHECK(pawl_matcher_validate_tokens(m, plan, 6, &n) == PAWL_OK && n == 5);
  CHECK(pawl_matcher_validate_tokens(m, NULL, 6, &n) == PAWL_BAD_ARGUMENT);

  pawl_matcher* clone = NULL;
  CHECK(pawl_matcher_clone(m, &clone) == PAWL_OK);
  CHECK(pawl_matcher_clone(NULL, &clone) == PAWL_BAD_ARGUMENT);
  CHECK(pawl_matcher_accept_bytes(clone, "bcabcx", 6) == PAWL_OK);
  CHECK(pawl_matcher_accept_bytes(clone, "z", 1) == PAWL_REFUSED);
  CHECK(pawl_matcher_accept_bytes(clone, NULL, 1) == PAWL_BAD_ARGUMENT);
  CHECK(pawl_matcher_is_accepting(clone) && !pawl_matcher_is_accepting(m) &&
        !pawl_matcher_is_accepting(NULL));
  CHECK(!pawl_matcher_is_terminated(clone));
  CHECK(pawl_matcher_accept(clone, kEnd2) == PAWL_OK && pawl_matcher_is_terminated(clone));
  CHECK(pawl_matcher_is_terminated(NULL) == 0);
  CHECK(pawl_matcher_fill_mask(clone, row, kWords) == PAWL_ENDED && row[0] == 0 &&
        row[kWords - 1] == 0);
  CHECK(pawl_matcher_accept(clone, kEnd) == PAWL_REFUSED);
  CHECK(pawl_matcher_rollback(clone, 9) == PAWL_BAD_ARGUMENT &&
        pawl_matcher_rollback(NULL, 0) == PAWL_BAD_ARGUMENT);
  CHECK(pawl_matcher_rollback(clone, 2) == PAWL_OK && pawl_matcher_steps(clone) == 1);

  /* Other end tokens, and none. */
  pawl_matcher_options options;
  pawl_matcher_options_init(&options, sizeof options);
  const int32_t control[] = {kControl, kEnd};
  options.end_tokens = control;
  options.end_token_count = 2;
  pawl_matcher* other = NULL;
  CHECK(pawl_matcher_create(grammar, &options, &other, NULL) == PAWL_OK);
  CHECK(pawl_matcher_accept(other, 'q') == PAWL_OK);
  CHECK(pawl_matcher_fill_mask(other, row, kWords) == PAWL_OK);
  CHECK(bit(row, kControl) && bit(row, kEnd) && !bit(row, kEnd2));
  pawl_matcher_free(other);
  const int32_t outside[] = {kTokens};
  options.end_tokens = outside;
  options.end_token_count = 1;
  CHECK_FAILS(pawl_matcher_create(grammar, &options, &other, &error), PAWL_INVALID, "end_tokens");
  options.end_token_count = 0;
  options.terminate_without_end_token = 1;
  CHECK(pawl_matcher_create(grammar, &options, &other, NULL) == PAWL_OK);
  CHECK(pawl_matcher_accept(other, 'q') == PAWL_OK && pawl_matcher_is_terminated(other));
  pawl_matcher_free(other);

  /* A tree of drafts: "b" - "c" - {abc, x}. */
  const int32_t draft[] = {-1, 'b', 'c', kAbc, 'x'};
  const int32_t child[] = {1, 2, 3, -1, -1};
  const int32_t sibling[] = {-1, -1, -1, 4, -1};
  int32_t parents[5];
  CHECK(pawl_draft_tree_parents(child, sibling, 5, parents, NULL) == PAWL_OK);
  CHECK(parents[0] == -1 && parents[1] == 0 && parents[3] == 2 && parents[4] == 2);
  CHECK_FAILS(pawl_draft_tree_parents(child, NULL, 5, parents, &error), PAWL_BAD_ARGUMENT,
              "next_sibling");
  uint32_t rows[5 * kWords];
  uint8_t accepted[5];
  CHECK(pawl_matcher_fill_tree(m, draft, parents, 5, rows, kWords, accepted, &n, NULL) == PAWL_OK);
  CHECK(n == 4 && accepted[3] == 1 && accepted[4] == 0);
  CHECK(bit(rows, 'b') && bit(rows + 3 * kWords, 'y') && !bit(rows + 3 * kWords, 'a'));
  CHECK(pawl_matcher_fill_tree(m, draft, parents, 5, rows, kWords, NULL, NULL, NULL) == PAWL_OK);
  CHECK_FAILS(pawl_matcher_fill_tree(m, draft, parents, 5, rows, 1, NULL, NULL, &error),
              PAWL_BAD_ARGUMENT, "stride");
  parents[0] = 4;
  CHECK_FAILS(pawl_matcher_fill_tree(m, draft, parents, 5, rows, kWords, NULL, NULL, &error),
              PAWL_INVALID, "");

  /* A batch. */
  pawl_batch* batch = NULL;
  CHECK_FAILS(pawl_batch_create(-1, &batch, &error), PAWL_BAD_ARGUMENT, "threads");
  CHECK(pawl_batch_create(2, &batch, NULL) == PAWL_OK);
  CHECK(pawl_batch_threads(batch) >= 1 && pawl_batch_threads(NULL) == 0);
  const pawl_matcher* list[] = {m, NULL, clone};
  memset(rows, 0xFF, sizeof rows);
  CHECK(pawl_batch_fill(batch, list, 3, rows, kWords, &n) == PAWL_OK && n == 0);
  CHECK(bit(rows, 'b') && !bit(rows, 'a') && bit(rows + kWords, 'a') &&
        bit(rows + 2 * kWords, 'b'));
  CHECK(pawl_batch_fill(batch, list, 3, rows, 1, &n) == PAWL_BAD_ARGUMENT);
  CHECK(pawl_batch_fill(NULL, list, 3, rows, kWords, &n) == PAWL_BAD_ARGUMENT);
  pawl_batch_free(batch);
  pawl_batch_free(NULL);

  CHECK(pawl_matcher_reset(m) == PAWL_OK && pawl_matcher_steps(m) == 0);
  CHECK(pawl_matcher_reset(NULL) == PAWL_BAD_ARGUMENT);
  pawl_grammar_free(grammar);
  pawl_matcher_free(clone);
  pawl_matcher_free(m);
  pawl_matcher_free(NULL);
}

static void test_captures(void) {
  pawl_vocabulary* v = vocabulary_of(1);
  pawl_compiler* compiler = NULL;
  CHECK(pawl_compiler_create(v, NULL, &compiler, NULL) == PAWL_OK);
  pawl_grammar* grammar =
      compile(compiler, "lark",
              "start: \"a\" n (\",\" n)*\nn[capture=\"item\", temperature=0.5]: /[0-9]+/");
  pawl_matcher* m = NULL;
  CHECK(pawl_matcher_create(grammar, NULL, &m, NULL) == PAWL_OK);
  float temperature = 0;
  CHECK(pawl_matcher_temperature(m, &temperature) == PAWL_OK && temperature < 0);
  CHECK(pawl_matcher_accept_bytes(m, "a1,23", 5) == PAWL_OK);
  CHECK(pawl_matcher_temperature(m, &temperature) == PAWL_OK && temperature == 0.5f);
  CHECK(pawl_matcher_temperature(m, NULL) == PAWL_BAD_ARGUMENT);
  pawl_captures* captures = NULL;
  CHECK(pawl_matcher_captures(m, &captures, NULL) == PAWL_OK);
  CHECK(pawl_captures_count(captures) == 2);
  const char *name = NULL, *text = NULL;
  size_t begin = 0, end = 0, length = 0;
  CHECK(pawl_captures_get(captures, 1, &name, &begin, &end, &text, &length) == PAWL_OK);
  CHECK(strcmp(name, "item") == 0 && begin == 3 && end == 5);
  CHECK(length == 2 && memcmp(text, "23", 2) == 0);
  CHECK(pawl_captures_get(captures, 0, NULL, NULL, &end, NULL, NULL) == PAWL_OK && end == 2);
  CHECK(pawl_captures_get(captures, 2, &name, &begin, &end, &text, &length) == PAWL_BAD_ARGUMENT);
  pawl_captures_free(captures);
  pawl_captures_free(NULL);
  CHECK(pawl_captures_count(NULL) == 0);
  CHECK(pawl_matcher_captures(NULL, &captures, NULL) == PAWL_BAD_ARGUMENT);
  CHECK(pawl_matcher_captures(m, NULL, NULL) == PAWL_BAD_ARGUMENT);
  pawl_matcher_free(m);
  pawl_grammar_free(grammar);
  pawl_compiler_free(compiler);
  pawl_vocabulary_free(v);
}

/* Grammars of grammars, alone and after a path through bytes. */
static int fits(const pawl_grammar* grammar, const char* text) {
  pawl_matcher* m = NULL;
  if (pawl_matcher_create(grammar, NULL, &m, NULL) != PAWL_OK) return -1;
  uint32_t row[kWords];
  int ok = 1;
  for (; *text != 0 && ok; ++text) ok = pawl_matcher_accept(m, (unsigned char)*text) == PAWL_OK;
  ok = ok && pawl_matcher_fill_mask(m, row, kWords) == PAWL_OK && bit(row, kEnd);
  pawl_matcher_free(m);
  return ok;
}

static pawl_grammar* again(const pawl_compiler* compiler, const pawl_grammar* grammar) {
  size_t size = 0;
  CHECK(pawl_grammar_serialize(grammar, NULL, 0, &size, NULL) == PAWL_OK);
  char* bytes = malloc(size);
  CHECK(pawl_grammar_serialize(grammar, bytes, size, &size, NULL) == PAWL_OK);
  pawl_grammar* back = NULL;
  CHECK(pawl_grammar_deserialize(compiler, bytes, size, &back, NULL) == PAWL_OK);
  free(bytes);
  return back;
}

/* A grammar that waits for its text: no matcher takes it, and what is made of it waits as well. */
static void test_bind(void) {
  pawl_vocabulary* v = vocabulary_of(2);
  pawl_compiler* compiler = NULL;
  CHECK(pawl_compiler_create(v, NULL, &compiler, NULL) == PAWL_OK);
  pawl_json_schema_options options;
  pawl_json_schema_options_init(&options, sizeof options);
  options.bind_source = 1;
  const char* const place = "#/x-pawl-source";
  const char* const schema = "{\"type\":\"string\",\"x-pawl-source\":\"span\"}";
  pawl_grammar *waits = NULL, *gap = NULL, *bound = NULL, *other = NULL;
  CHECK(pawl_compile(compiler, "json_schema", schema, strlen(schema), &options, &waits, NULL) ==
        PAWL_OK);
  CHECK(pawl_grammar_infill(waits, "\"", 1, NULL, NULL, 0, &gap, NULL) == PAWL_OK);
  const pawl_grammar* const all[] = {waits, gap};
  const char* const good[] = {"\"Ann\"", "Ann\""};
  const char* const bad[] = {"\"Bob\"", "Bob\""};
  for (size_t i = 0; i < 2; ++i) {
    pawl_matcher* matcher = NULL;
    CHECK_FAILS(pawl_matcher_create(all[i], NULL, &matcher, &error), PAWL_INVALID, place);
    CHECK(pawl_grammar_bind(all[i], "Ann Lee", 7, &bound, NULL) == PAWL_OK);
    CHECK_FAILS(pawl_grammar_bind(bound, "Bob", 3, &other, &error), PAWL_INVALID, place);
    CHECK(fits(bound, good[i]) == 1 && fits(bound, bad[i]) == 0);
    pawl_grammar* back = again(compiler, bound);
    CHECK(fits(back, good[i]) == 1 && fits(back, bad[i]) == 0);
    pawl_grammar_free(back);
    pawl_grammar_free(bound);
  }
  pawl_grammar_free(gap);
  pawl_grammar_free(waits);
  pawl_compiler_free(compiler);
  pawl_vocabulary_free(v);
}

static void test_combined(void) {
  pawl_vocabulary* v = vocabulary_of(2);
  pawl_compiler* compiler = NULL;
  CHECK(pawl_compiler_create(v, NULL, &compiler, NULL) == PAWL_OK);
  pawl_grammar* nested = compile(compiler, "ebnf", "root ::= \"(\" root* \")\" | [a-c]+\n");
  const char* const after[] = {"c", "))"};
  const size_t lengths[] = {1, 2};
  pawl_grammar* gap = NULL;
  CHECK(pawl_grammar_infill(nested, "((a", 3, after, lengths, 2, &gap, NULL) == PAWL_OK);
  CHECK(fits(gap, "") == 1 && fits(gap, ")(b") == 1 && fits(gap, "))") == 0);
  const char* const words[] = {"b", "aa"};
  const size_t word_lengths[] = {1, 2};
  pawl_grammar* both = NULL;
  CHECK(pawl_grammar_require_words(gap, words, word_lengths, 2, &both, NULL) == PAWL_OK);
  CHECK(fits(both, "aab") == 1 && fits(both, "ab") == 0 && fits(both, "aa") == 0);
  pawl_grammar* back = again(compiler, both);
  CHECK(fits(back, "aab") == 1 && fits(back, "ab") == 0);
  pawl_grammar_free(back);

  pawl_grammar* no_b = NULL;
  pawl_grammar* has_b = compile(compiler, "regex", "[^]*b[^]*");
  CHECK(pawl_grammar_complement(has_b, &no_b, NULL) == PAWL_OK);
  CHECK(fits(no_b, "aca") == 1 && fits(no_b, "abc") == 0);
  pawl_grammar* without = NULL;
  CHECK(pawl_grammar_intersect(nested, no_b, &without, NULL) == PAWL_OK);
  CHECK(fits(without, "(a(c))") == 1 && fits(without, "(b)") == 0);
  back = again(compiler, without);
  CHECK(fits(back, "(a(c))") == 1 && fits(back, "(b)") == 0);
  pawl_grammar_free(back);
  pawl_grammar* span = compile(compiler, "substring", "the cat");
  CHECK(fits(span, "e c") == 1 && fits(span, "ec") == 0);

  pawl_matcher* m = NULL;
  CHECK(pawl_matcher_create(without, NULL, &m, NULL) == PAWL_OK);
  CHECK(pawl_matcher_accept(m, '(') == PAWL_OK);
  int32_t tokens[4];
  size_t count = 0;
  CHECK(pawl_matcher_completion_tokens(m, tokens, 4, &count) == PAWL_OK);
  CHECK(count == 1 && tokens[0] == ')');
  CHECK(pawl_matcher_completion_tokens(NULL, tokens, 4, &count) == PAWL_BAD_ARGUMENT);
  pawl_matcher_free(m);

  pawl_grammar* none = NULL;
  CHECK_FAILS(pawl_grammar_infill(nested, "x", 1, NULL, NULL, 0, &none, &error), PAWL_UNSATISFIABLE,
              "prefix, byte 0");
  CHECK_FAILS(pawl_grammar_infill(NULL, "x", 1, NULL, NULL, 0, &none, &error), PAWL_BAD_ARGUMENT,
              "grammar");
  CHECK_FAILS(pawl_grammar_infill(nested, "", 0, NULL, NULL, 1, &none, &error), PAWL_BAD_ARGUMENT,
              "after");
  CHECK_FAILS(pawl_grammar_require_words(nested, NULL, NULL, 1, &none, &error), PAWL_BAD_ARGUMENT,
              "words");
  CHECK_FAILS(pawl_grammar_intersect(nested, NULL, &none, &error), PAWL_BAD_ARGUMENT, "b");
  CHECK_FAILS(pawl_grammar_intersect(nested, nested, &none, &error), PAWL_UNSUPPORTED, "");
  CHECK_FAILS(pawl_grammar_complement(nested, &none, &error), PAWL_UNSUPPORTED, "");
  pawl_grammar* const all[] = {nested, gap, both, no_b, has_b, without, span};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) pawl_grammar_free(all[i]);
  pawl_compiler_free(compiler);
  pawl_vocabulary_free(v);
}

/* ---- Engine ---- */

static int asked = 0;
static int32_t no_e(void* context, const pawl_check_question* question) {
  ++*(int*)context;
  for (size_t i = 0; i < question->text_length; ++i) {
    if (question->text[i] == 'e') return PAWL_DEAD;
  }
  CHECK(question->struct_size >= sizeof *question);
  return question->ended || question->text_length > 0 ? PAWL_ACCEPT : PAWL_LIVE;
}
static int32_t strange(void* context, const pawl_check_question* question) {
  (void)context;
  (void)question;
  return 17;
}
static double by_length(void* context, const pawl_check_question* question) {
  (void)context;
  return -0.5 * (double)question->text_length;
}
static int two(void* context, const pawl_sample* sample) {
  CHECK(sample->report_length > 0);
  return ++*(int*)context < 2;
}

static void test_checks(pawl_engine* engine, const pawl_grammar* grammar) {
  pawl_vocabulary* v = NULL;
  CHECK(pawl_engine_vocabulary(engine, &v) == PAWL_OK);
  pawl_check* check = NULL;
  CHECK_FAILS(pawl_check_create(NULL, NULL, PAWL_CHECK_BYTE, &check, &error), PAWL_BAD_ARGUMENT,
              "judge");
  CHECK_FAILS(pawl_check_create(no_e, &asked, 4, &check, &error), PAWL_BAD_ARGUMENT, "granularity");
  CHECK_FAILS(pawl_check_from_grammar(NULL, PAWL_CHECK_LINE, &check, &error), PAWL_BAD_ARGUMENT,
              "grammar");
  CHECK_FAILS(pawl_check_from_spec(v, "word:a", 6, 5, 1, &check, &error), PAWL_INVALID, "word:a");
  CHECK_FAILS(pawl_check_from_spec(v, "regex:a", 7, 0, 1, &check, &error), PAWL_BAD_ARGUMENT,
              "timeout");
  CHECK(pawl_check_from_grammar(grammar, PAWL_CHECK_LINE, &check, NULL) == PAWL_OK);
  pawl_check_free(check);
  CHECK(pawl_check_from_spec(v, "regex:a", 7, 5, 1, &check, NULL) == PAWL_OK);
  pawl_check_free(check);
  pawl_check_free(NULL);
  pawl_critic* critic = NULL;
  CHECK_FAILS(pawl_critic_create(NULL, NULL, &critic, &error), PAWL_BAD_ARGUMENT, "score");
  CHECK_FAILS(pawl_critic_from_command("", 0, 5, 1, &critic, &error), PAWL_BAD_ARGUMENT, "command");
  CHECK(pawl_critic_from_command("cat", 3, 5, 1, &critic, NULL) == PAWL_OK);
  pawl_critic_free(critic);
  pawl_vocabulary_free(v);
  CHECK(pawl_engine_vocabulary(NULL, &v) == PAWL_BAD_ARGUMENT);
}

static void test_samples(pawl_engine* engine, const pawl_grammar* grammar,
                         const pawl_prompt* prompt) {
  pawl_error* error = NULL;
  pawl_sampler_options options;
  pawl_sampler_options_init(&options, sizeof options);
  CHECK(options.sampler == PAWL_SAMPLER_SMC && options.particles == 5 && options.temperature == 1);
  pawl_check* check = NULL;
  pawl_critic* critic = NULL;
  CHECK(pawl_check_create(no_e, &asked, PAWL_CHECK_BYTE, &check, NULL) == PAWL_OK);
  CHECK(pawl_critic_create(by_length, NULL, &critic, NULL) == PAWL_OK);
  const pawl_check* const checks[] = {check};
  options.n = 6;
  options.max_tokens = 12;
  options.checks = checks;
  options.check_count = 1;
  options.critic = critic;
  pawl_samples* samples = NULL;
  CHECK(pawl_engine_sample(engine, prompt, grammar, &options, &samples, &error) == PAWL_OK);
  CHECK(pawl_samples_count(samples) == 6 && asked > 0);
  pawl_sample sample;
  pawl_sample_init(&sample, sizeof sample);
  for (size_t i = 0; i < pawl_samples_count(samples); ++i) {
    CHECK(pawl_samples_get(samples, i, &sample) == PAWL_OK);
    CHECK(memchr(sample.text, 'e', sample.text_length) == NULL);
    CHECK(sample.valid == (sample.log_weight > -1e300));
    CHECK(sample.report_length > 2 && sample.report[0] == '{');
    double sum = 1, each[64];
    CHECK(sample.token_count <= 13);
    CHECK(pawl_engine_score(engine, prompt, sample.tokens, sample.token_count, 1, &sum, each,
                            NULL) == PAWL_OK);
    CHECK(sum - sample.log_probability < 1e-4 && sample.log_probability - sum < 1e-4);
  }
  CHECK(pawl_samples_get(samples, 6, &sample) == PAWL_BAD_ARGUMENT);
  pawl_samples_free(samples);
  pawl_samples_free(NULL);

  int told = 0;
  options.critic = NULL;
  options.sampler = PAWL_SAMPLER_AWRS;
  options.on_sample = two;
  options.on_sample_context = &told;
  CHECK(pawl_engine_sample(engine, prompt, grammar, &options, &samples, &error) == PAWL_OK);
  CHECK(pawl_samples_count(samples) == 2 && told == 2);
  pawl_samples_free(samples);

  options.n = 0;
  CHECK_FAILS(pawl_engine_sample(engine, prompt, grammar, &options, &samples, &error), PAWL_INVALID,
              "n");
  options.n = 1;
  options.sampler = 8;
  CHECK_FAILS(pawl_engine_sample(engine, prompt, grammar, &options, &samples, &error),
              PAWL_BAD_ARGUMENT, "sampler");
  options.sampler = PAWL_SAMPLER_SMC;
  options.proposal = engine;
  CHECK_FAILS(pawl_engine_sample(engine, prompt, grammar, &options, &samples, &error), PAWL_INVALID,
              "proposal");
  CHECK_FAILS(pawl_engine_sample(engine, NULL, grammar, NULL, &samples, &error), PAWL_BAD_ARGUMENT,
              "prompt");
  pawl_check* odd = NULL;
  CHECK(pawl_check_create(strange, NULL, PAWL_CHECK_TOKEN, &odd, NULL) == PAWL_OK);
  const pawl_check* const odds[] = {odd};
  pawl_sampler_options_init(&options, sizeof options);
  options.checks = odds;
  options.check_count = 1;
  CHECK_FAILS(pawl_engine_sample(engine, prompt, grammar, &options, &samples, &error), PAWL_INVALID,
              "check");
  pawl_check_free(odd);
  pawl_check_free(check);
  pawl_critic_free(critic);
}

static void test_engine(const char* folder) {
  pawl_error* error = NULL;
  pawl_engine* engine = NULL;
  CHECK_FAILS(pawl_engine_load("/no/such", 8, NULL, &engine, &error), PAWL_IO, "/no/such");
  pawl_engine_options options;
  pawl_engine_options_init(&options, sizeof options);
  options.dtype = 99;
  CHECK_FAILS(pawl_engine_load(folder, strlen(folder), &options, &engine, &error),
              PAWL_BAD_ARGUMENT, "dtype");
  pawl_engine_options_init(&options, sizeof options);
  options.threads = 1;
  if (pawl_engine_load(folder, strlen(folder), &options, &engine, &error) != PAWL_OK) {
    fprintf(stderr, "%s\n", pawl_error_message(error));
    ++failures;
    return;
  }
  pawl_vocabulary* v = NULL;
  pawl_compiler* compiler = NULL;
  CHECK(pawl_engine_vocabulary(engine, &v) == PAWL_OK);
  CHECK(pawl_compiler_create(v, NULL, &compiler, NULL) == PAWL_OK);
  pawl_grammar* grammar = compile(compiler, "regex", "(yes|no), [a-z ]{1,8}");
  pawl_prompt prompt;
  pawl_prompt_init(&prompt, sizeof prompt);
  prompt.text = "The answer is ";
  prompt.text_length = strlen(prompt.text);
  test_checks(engine, grammar);
  test_samples(engine, grammar, &prompt);

  int32_t tokens[8];
  size_t count = 0;
  double sum = 0, each[8];
  CHECK(pawl_engine_encode(engine, "yes, it", 7, tokens, 8, &count) == PAWL_OK && count <= 8);
  CHECK(pawl_engine_score(engine, &prompt, tokens, count, 1, &sum, each, &error) == PAWL_OK);
  double total = 0;
  for (size_t i = 0; i < count; ++i) total += each[i];
  CHECK(sum < 0 && total - sum < 1e-9 && sum - total < 1e-9);
  CHECK(pawl_engine_encode(engine, "yes, it", 7, NULL, 0, &count) == PAWL_OK && count > 1);
  tokens[0] = -1;
  CHECK_FAILS(pawl_engine_score(engine, &prompt, tokens, 1, 1, &sum, NULL, &error), PAWL_INVALID,
              "tokens");
  CHECK_FAILS(pawl_engine_score(NULL, &prompt, tokens, 1, 1, &sum, NULL, &error), PAWL_BAD_ARGUMENT,
              "engine");
  pawl_engine_free(NULL);
  pawl_engine_free(engine);
  pawl_grammar_free(grammar);
  pawl_compiler_free(compiler);
  pawl_vocabulary_free(v);
}

int main(int argc, char** argv) {
  test_versions_and_errors();
  test_vocabulary();
  if (argc > 1) test_tokenizer(argv[1]);
  if (argc > 1) test_prepare_steps(argv[1]);
  if (argc > 1) test_engine(argv[1]);
  test_compiler_and_bytes();
  test_matcher();
  test_captures();
  test_bind();
  test_combined();
  if (failures == 0) printf("all well\n");
  return failures == 0 ? 0 : 1;
}
