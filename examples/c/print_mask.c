/* Prints which tokens a choice allows, step by step.
 *   cc -std=c11 print_mask.c $(pkg-config --cflags --libs pawl) -o print_mask
 * Where Pawl is installed in a folder that the loader does not search, add
 *   -Wl,-rpath,$(pkg-config --variable=libdir pawl)
 * or set LD_LIBRARY_PATH to that folder when the program runs. */
#include <pawl/pawl.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  const char* const tokens[] = {"r", "re", "d", "g", "reen", "green", "blue", "<end>"};
  const size_t lengths[] = {1, 2, 1, 1, 4, 5, 4, 5};
  const int32_t end[] = {7};
  pawl_vocabulary_tokens init;
  pawl_vocabulary_tokens_init(&init, sizeof init);
  init.tokens = tokens;
  init.lengths = lengths;
  init.count = 8;
  init.end_tokens = end;
  init.end_token_count = 1;

  pawl_vocabulary* vocabulary = NULL;
  pawl_compiler* compiler = NULL;
  pawl_grammar* grammar = NULL;
  pawl_matcher* matcher = NULL;
  pawl_error* error = NULL;
  const char* choice = "[\"red\", \"green\"]";
  int result = 0;
  if (pawl_vocabulary_create(&init, &vocabulary, &error) ||
      pawl_compiler_create(vocabulary, NULL, &compiler, &error) ||
      pawl_compile(compiler, "choice", choice, strlen(choice), NULL, &grammar, &error) ||
      pawl_matcher_create(grammar, NULL, &matcher, &error)) {
    fprintf(stderr, "%s: %s\n", pawl_error_place(error), pawl_error_message(error));
    result = 1;
  } else {
    const int32_t taken[] = {1, 2, 7};
    for (int i = 0; i < 3; ++i) {
      uint32_t row[1];
      pawl_matcher_fill_mask(matcher, row, 1);
      printf("allowed: %02x, taken: %s\n", (unsigned)row[0], tokens[taken[i]]);
      if (pawl_matcher_accept(matcher, taken[i]) != PAWL_OK) result = 1;
    }
    if (!pawl_matcher_is_terminated(matcher)) result = 1;
  }
  pawl_error_free(error);
  pawl_matcher_free(matcher);
  pawl_grammar_free(grammar);
  pawl_compiler_free(compiler);
  pawl_vocabulary_free(vocabulary);
  return result;
}
