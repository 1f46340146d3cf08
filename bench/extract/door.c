/* Records of texts through the C functions, with no option: doors.py compares them with those of
 * the other interfaces.
 *   door MODEL SCHEMA < texts    each text ends with a zero byte; each record is a line */
#include <pawl/pawl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char schema[1 << 16], text[1 << 16];

static int fail(const pawl_error* error) {
  fprintf(stderr, "%s: %s\n", pawl_error_place(error), pawl_error_message(error));
  return 1;
}

/* A text up to its zero byte; 0: there is none left. */
static size_t next_text(void) {
  size_t size = 0;
  for (int c = getchar(); c != EOF && c != 0 && size < sizeof text; c = getchar())
    text[size++] = (char)c;
  return size;
}

int main(int argc, char** argv) {
  pawl_engine* engine = NULL;
  pawl_vocabulary* vocabulary = NULL;
  pawl_compiler* compiler = NULL;
  pawl_error* error = NULL;
  FILE* const file = argc == 3 ? fopen(argv[2], "rb") : NULL;
  if (file == NULL) return fprintf(stderr, "door MODEL SCHEMA < texts\n"), 2;
  const size_t schema_size = fread(schema, 1, sizeof schema, file);
  fclose(file);
  if (pawl_engine_load(argv[1], strlen(argv[1]), NULL, &engine, &error) ||
      pawl_engine_vocabulary(engine, &vocabulary) ||
      pawl_compiler_create(vocabulary, NULL, &compiler, &error))
    return fail(error);
  for (size_t size = next_text(); size > 0; size = next_text()) {
    pawl_grammar* grammar = NULL;
    pawl_generation* generation = NULL;
    pawl_json_schema_options options;
    pawl_json_schema_options_init(&options, sizeof options);
    pawl_prompt prompt;
    pawl_prompt_init(&prompt, sizeof prompt);
    prompt.text = text;
    prompt.text_length = size;
    prompt.schema = schema;
    prompt.schema_length = schema_size;
    pawl_output output;
    pawl_output_init(&output, sizeof output);
    if (pawl_engine_extract_options(engine, text, size, &options) ||
        pawl_compile(compiler, "json_schema", schema, schema_size, &options, &grammar, &error) ||
        pawl_engine_generate(engine, &prompt, grammar, NULL, &generation, &error) ||
        pawl_generation_get(generation, &output))
      return fail(error);
    fwrite(output.text, 1, output.text_length, stdout);
    putchar('\n');
    pawl_generation_free(generation);
    pawl_grammar_free(grammar);
  }
  pawl_compiler_free(compiler);
  pawl_vocabulary_free(vocabulary);
  pawl_engine_free(engine);
  return 0;
}
