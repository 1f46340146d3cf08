/* Prints a model's output under a regex, as it comes.
 *   cc -std=c11 stream.c $(pkg-config --cflags --libs pawl) -o stream
 *   ./stream models/tiny-extract
 * print_mask.c says what to do where the loader does not find the library. */
#include <pawl/pawl.h>
#include <stdio.h>
#include <string.h>

static int show(void* context, const char* text, size_t length) {
  fwrite(text, 1, length, context);
  fflush(context);
  return 1; /* 0 would end the output */
}

int main(int argc, char** argv) {
  const char* const model = argc > 1 ? argv[1] : "models/tiny-extract";
  const char* const regex = "(yes|no), [a-z ]{3,40}";
  pawl_engine* engine = NULL;
  pawl_vocabulary* vocabulary = NULL;
  pawl_compiler* compiler = NULL;
  pawl_grammar* grammar = NULL;
  pawl_generation* generation = NULL;
  pawl_error* error = NULL;

  pawl_prompt prompt;
  pawl_prompt_init(&prompt, sizeof prompt);
  prompt.text = "The answer is ";
  prompt.text_length = strlen(prompt.text);
  pawl_generate_options options;
  pawl_generate_options_init(&options, sizeof options);
  options.temperature = 1;
  options.seed = 7;
  options.on_text = show;
  options.on_text_context = stdout;

  int result = 0;
  if (pawl_engine_load(model, strlen(model), NULL, &engine, &error) ||
      pawl_engine_vocabulary(engine, &vocabulary) ||
      pawl_compiler_create(vocabulary, NULL, &compiler, &error) ||
      pawl_compile(compiler, "regex", regex, strlen(regex), NULL, &grammar, &error) ||
      pawl_generation_start(engine, &prompt, grammar, &options, &generation, &error) ||
      pawl_generation_wait(generation, &error)) {
    fprintf(stderr, "%s: %s\n", pawl_error_place(error), pawl_error_message(error));
    result = 1;
  } else {
    putchar('\n');
  }
  pawl_generation_free(generation);
  pawl_grammar_free(grammar);
  pawl_compiler_free(compiler);
  pawl_vocabulary_free(vocabulary);
  pawl_engine_free(engine);
  pawl_error_free(error);
  return result;
}
