/* What the tests of outputs in C share. */
#ifndef PAWL_TESTS_CAPI_GENERATE_HELPERS_H_
#define PAWL_TESTS_CAPI_GENERATE_HELPERS_H_

#include <stdio.h>
#include <string.h>

#include "check.h"

/* Succeeds, and writes the error where it does not. */
static int ok(pawl_status status, pawl_error* error) {
  if (status != PAWL_OK) {
    fprintf(stderr, "%s: %s\n", pawl_error_place(error), pawl_error_message(error));
    pawl_error_free(error);
  }
  return status == PAWL_OK;
}

static pawl_engine* load(const char* folder, const pawl_engine_options* options) {
  pawl_engine* engine = NULL;
  pawl_error* error = NULL;
  CHECK(ok(pawl_engine_load(folder, strlen(folder), options, &engine, &error), error));
  return engine;
}

static pawl_grammar* regex(const pawl_engine* engine, const char* text) {
  pawl_vocabulary* v = NULL;
  pawl_compiler* compiler = NULL;
  pawl_grammar* grammar = NULL;
  CHECK(pawl_engine_vocabulary(engine, &v) == PAWL_OK);
  CHECK(pawl_compiler_create(v, NULL, &compiler, NULL) == PAWL_OK);
  CHECK(pawl_compile(compiler, "regex", text, strlen(text), NULL, &grammar, NULL) == PAWL_OK);
  pawl_compiler_free(compiler);
  pawl_vocabulary_free(v);
  return grammar;
}

static pawl_prompt prompt_of(const char* text) {
  pawl_prompt prompt;
  pawl_prompt_init(&prompt, sizeof prompt);
  prompt.text = text;
  prompt.text_length = strlen(text);
  return prompt;
}

typedef struct shown {
  char text[4096];
  size_t length;
  int calls;
  int most; /* calls after which it ends the output; 0: never */
} shown;
static int show(void* context, const char* text, size_t length) {
  shown* s = context;
  CHECK(length > 0 && s->length + length < sizeof s->text);
  memcpy(s->text + s->length, text, length);
  s->length += length;
  return ++s->calls != s->most;
}

static pawl_output output_of(const pawl_generation* generation) {
  pawl_output output;
  pawl_output_init(&output, sizeof output);
  CHECK(pawl_generation_get(generation, &output) == PAWL_OK);
  return output;
}

#endif
