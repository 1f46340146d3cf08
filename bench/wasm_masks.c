/* The native half of scripts/wasm_masks.mjs: fills the masks that a work file names, through the
 * functions of pawl.h, and says how long that took and what the masks were.
 *
 *   wasm_masks TOKENIZER END_TOKEN WORK HASHES
 *
 * WORK, in 32-bit little-endian words: the number of schemas; of each the length of its text, the
 * text padded to words, the number of outputs; of each output the number of tokens, and these.
 * HASHES gets 64 bits for each mask, in turn; a schema that does not compile has one hash of 0.
 * Prints the number of masks, their nanoseconds, and the nanoseconds of compiling. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pawl/pawl.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void fail(const char* what, const pawl_error* error) {
  fprintf(stderr, "%s: %s: %s\n", what, pawl_error_place(error), pawl_error_message(error));
  exit(2);
}

/* Two hashes of 32 bits, as JavaScript computes them. */
static void write_hash(FILE* out, const uint32_t* row, size_t words) {
  uint32_t hash[2] = {2166136261u, 40503u};
  for (size_t i = 0; i < words; ++i) {
    hash[0] = (hash[0] ^ row[i]) * 16777619u;
    hash[0] ^= hash[0] >> 15;
    hash[1] = (hash[1] ^ row[i]) * 2246822519u;
    hash[1] ^= hash[1] >> 13;
  }
  fwrite(hash, sizeof hash, 1, out);
}

static void* read_all(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
    fprintf(stderr, "cannot read %s\n", path);
    exit(2);
  }
  const long size = ftell(file);
  rewind(file);
  void* data = malloc((size_t)size + 1);
  if (data == NULL || fread(data, 1, (size_t)size, file) != (size_t)size) exit(2);
  fclose(file);
  return data;
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "wasm_masks TOKENIZER END_TOKEN WORK HASHES\n");
    return 2;
  }
  pawl_error* error = NULL;
  pawl_vocabulary* vocabulary = NULL;
  pawl_compiler* compiler = NULL;
  const int32_t end = atoi(argv[2]);
  pawl_tokenizer_options tokenizer;
  pawl_tokenizer_options_init(&tokenizer, sizeof tokenizer);
  tokenizer.end_tokens = &end;
  tokenizer.end_token_count = 1;
  if (pawl_vocabulary_from_tokenizer_file(argv[1], strlen(argv[1]), &tokenizer, &vocabulary,
                                          &error))
    fail(argv[1], error);
  if (pawl_compiler_create(vocabulary, NULL, &compiler, &error)) fail("compiler", error);
  pawl_json_schema_options options;
  pawl_json_schema_options_init(&options, sizeof options);
  options.order = PAWL_ORDER_ANY;
  options.whitespace = PAWL_WHITESPACE_ANY;

  uint32_t* work = read_all(argv[3]);
  FILE* hashes = fopen(argv[4], "wb");
  const size_t words = pawl_vocabulary_mask_words(vocabulary);
  uint32_t* row = malloc(words * sizeof *row);
  if (hashes == NULL || row == NULL) return 2;
  const uint32_t* at = work;
  long masks = 0;
  double filling = 0, compiling = 0;
  for (uint32_t left = *at++; left > 0; --left) {
    const uint32_t length = *at++;
    const char* text = (const char*)at;
    at += (length + 3) / 4;
    pawl_grammar* grammar = NULL;
    double begin = now();
    const pawl_status bad =
        pawl_compile(compiler, "json_schema", text, length, &options, &grammar, NULL);
    compiling += now() - begin;
    if (bad) {
      const uint32_t none[2] = {0, 0};
      fwrite(none, sizeof none, 1, hashes);
    }
    for (uint32_t outputs = *at++; outputs > 0; --outputs) {
      const uint32_t tokens = *at++;
      pawl_matcher* matcher = NULL;
      if (!bad && pawl_matcher_create(grammar, NULL, &matcher, &error)) fail("matcher", error);
      for (uint32_t i = 0; !bad && i <= tokens; ++i) {
        begin = now();
        pawl_matcher_fill_mask(matcher, row, words);
        filling += now() - begin;
        ++masks;
        write_hash(hashes, row, words);
        if (i == tokens || pawl_matcher_accept(matcher, (int32_t)at[i])) break;
      }
      pawl_matcher_free(matcher);
      at += tokens;
    }
    pawl_grammar_free(grammar);
  }
  fclose(hashes);
  printf("%ld %.0f %.0f\n", masks, filling, compiling);
  free(row);
  free(work);
  pawl_compiler_free(compiler);
  pawl_vocabulary_free(vocabulary);
  return 0;
}
