/* Pawl as an addon of Node: what pawl.js needs of the C library.
 *   cc -shared -fPIC pawl_addon.c -I/usr/include/node $(pkg-config --cflags --libs pawl) -o pawl_addon.node */
#include <node_api.h>
#include <pawl/pawl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A string argument as UTF-8, which the caller frees. */
static char* text_of(napi_env env, napi_value value, size_t* length) {
  char* text;
  if (napi_get_value_string_utf8(env, value, NULL, 0, length) != napi_ok) *length = 0;
  text = malloc(*length + 1);
  text[0] = 0;
  napi_get_value_string_utf8(env, value, text, *length + 1, length);
  return text;
}

/* Throws an exception with the text of the error, and frees the error. */
static napi_value throw_error(napi_env env, pawl_error* error) {
  char line[1024];
  snprintf(line, sizeof line, "%s at %s: %s", pawl_status_name(pawl_error_status(error)),
           pawl_error_place(error), pawl_error_message(error));
  pawl_error_free(error);
  napi_throw_error(env, NULL, line);
  return NULL;
}

static void free_matcher(napi_env env, void* data, void* hint) {
  (void)env, (void)hint;
  pawl_matcher_free(data);
}

/* matcher(tokens, end, kind, text): a matcher for a list of texts as the tokens. */
static napi_value matcher(napi_env env, napi_callback_info info) {
  napi_value arguments[4], item, result = NULL;
  size_t count = 4, length;
  uint32_t words = 0, i;
  int32_t end = 0;
  napi_get_cb_info(env, info, &count, arguments, NULL, NULL);
  napi_get_array_length(env, arguments[0], &words);
  napi_get_value_int32(env, arguments[1], &end);
  char* kind = text_of(env, arguments[2], &length);
  char* text = text_of(env, arguments[3], &length);
  char** tokens = calloc(words, sizeof *tokens);
  size_t* lengths = calloc(words, sizeof *lengths);
  for (i = 0; i < words; ++i) {
    napi_get_element(env, arguments[0], i, &item);
    tokens[i] = text_of(env, item, &lengths[i]);
  }
  pawl_vocabulary_tokens wanted;
  pawl_vocabulary_tokens_init(&wanted, sizeof wanted);
  wanted.tokens = (const char* const*)tokens;
  wanted.lengths = lengths;
  wanted.count = words;
  wanted.end_tokens = &end;
  wanted.end_token_count = 1;
  pawl_vocabulary* vocabulary = NULL;
  pawl_compiler* compiler = NULL;
  pawl_grammar* grammar = NULL;
  pawl_matcher* made = NULL;
  pawl_error* error = NULL;
  if (pawl_vocabulary_create(&wanted, &vocabulary, &error) ||
      pawl_compiler_create(vocabulary, NULL, &compiler, &error) ||
      pawl_compile(compiler, kind, text, length, NULL, &grammar, &error) ||
      pawl_matcher_create(grammar, NULL, &made, &error)) {
    throw_error(env, error);
  } else {
    napi_create_external(env, made, free_matcher, NULL, &result);
  }
  pawl_grammar_free(grammar);
  pawl_compiler_free(compiler);
  pawl_vocabulary_free(vocabulary);
  for (i = 0; i < words; ++i) free(tokens[i]);
  free(tokens);
  free(lengths);
  free(kind);
  free(text);
  return result;
}

/* fillMask(matcher, row): row is a Uint32Array; whether a token may follow. */
static napi_value fill_mask(napi_env env, napi_callback_info info) {
  napi_value arguments[2], result;
  size_t count = 2, words = 0;
  void *made = NULL, *row = NULL;
  napi_get_cb_info(env, info, &count, arguments, NULL, NULL);
  napi_get_value_external(env, arguments[0], &made);
  napi_get_typedarray_info(env, arguments[1], NULL, &words, &row, NULL, NULL);
  napi_get_boolean(env, pawl_matcher_fill_mask(made, row, words) == PAWL_OK, &result);
  return result;
}

/* accept(matcher, token): whether it is accepted. */
static napi_value accept(napi_env env, napi_callback_info info) {
  napi_value arguments[2], result;
  size_t count = 2;
  void* made = NULL;
  int32_t token = -1;
  napi_get_cb_info(env, info, &count, arguments, NULL, NULL);
  napi_get_value_external(env, arguments[0], &made);
  napi_get_value_int32(env, arguments[1], &token);
  napi_get_boolean(env, pawl_matcher_accept(made, token) == PAWL_OK, &result);
  return result;
}

static void free_engine(napi_env env, void* data, void* hint) {
  (void)env, (void)hint;
  pawl_engine_free(data);
}

static napi_value load(napi_env env, napi_callback_info info) {
  napi_value argument, result = NULL;
  size_t count = 1, length;
  pawl_engine* engine = NULL;
  pawl_error* error = NULL;
  napi_get_cb_info(env, info, &count, &argument, NULL, NULL);
  char* path = text_of(env, argument, &length);
  if (pawl_engine_load(path, length, NULL, &engine, &error)) {
    throw_error(env, error);
  } else {
    napi_create_external(env, engine, free_engine, NULL, &result);
  }
  free(path);
  return result;
}

/* The function that gets the parts of an output. */
struct listener {
  napi_env env;
  napi_value function;
};

/* False, and an exception, end the output. */
static int on_text(void* context, const char* text, size_t length) {
  const struct listener* to = context;
  napi_value part, global, answer;
  bool more = false;
  if (napi_create_buffer_copy(to->env, length, text, NULL, &part) != napi_ok ||
      napi_get_global(to->env, &global) != napi_ok ||
      napi_call_function(to->env, global, to->function, 1, &part, &answer) != napi_ok) {
    return 0;
  }
  napi_get_value_bool(to->env, answer, &more);
  return more;
}

/* extract(engine, schema, text, onPart): {text, cancelled}; onPart may be undefined. */
static napi_value extract(napi_env env, napi_callback_info info) {
  napi_value arguments[4], value, result = NULL;
  napi_valuetype kind = napi_undefined;
  size_t count = 4;
  void* engine = NULL;
  napi_get_cb_info(env, info, &count, arguments, NULL, NULL);
  napi_get_value_external(env, arguments[0], &engine);
  napi_typeof(env, arguments[3], &kind);
  pawl_prompt prompt;
  pawl_prompt_init(&prompt, sizeof prompt);
  char* schema = text_of(env, arguments[1], &prompt.schema_length);
  char* text = text_of(env, arguments[2], &prompt.text_length);
  prompt.schema = schema;
  prompt.text = text;
  pawl_json_schema_options schema_options;
  pawl_json_schema_options_init(&schema_options, sizeof schema_options);
  pawl_engine_extract_options(engine, text, prompt.text_length, &schema_options);
  struct listener listener = {env, arguments[3]};
  pawl_generate_options options;
  pawl_generate_options_init(&options, sizeof options);
  options.temperature = 0;
  if (kind == napi_function) {
    options.on_text = on_text;
    options.on_text_context = &listener;
  }
  pawl_vocabulary* vocabulary = NULL;
  pawl_compiler* compiler = NULL;
  pawl_grammar* grammar = NULL;
  pawl_generation* generation = NULL;
  pawl_error* error = NULL;
  if (pawl_engine_vocabulary(engine, &vocabulary) ||
      pawl_compiler_create(vocabulary, NULL, &compiler, &error) ||
      pawl_compile(compiler, "json_schema", schema, prompt.schema_length, &schema_options, &grammar,
                   &error) ||
      pawl_engine_generate(engine, &prompt, grammar, &options, &generation, &error)) {
    throw_error(env, error);
  } else {
    pawl_output output;
    pawl_output_init(&output, sizeof output);
    pawl_generation_get(generation, &output);
    napi_create_object(env, &result);
    napi_create_string_utf8(env, output.text, output.text_length, &value);
    napi_set_named_property(env, result, "text", value);
    napi_get_boolean(env, output.stop == PAWL_STOP_CANCELLED, &value);
    napi_set_named_property(env, result, "cancelled", value);
  }
  pawl_generation_free(generation);
  pawl_grammar_free(grammar);
  pawl_compiler_free(compiler);
  pawl_vocabulary_free(vocabulary);
  free(schema);
  free(text);
  return result;
}

NAPI_MODULE_INIT() {
  const struct {
    const char* name;
    napi_callback function;
  } functions[] = {{"matcher", matcher}, {"fillMask", fill_mask}, {"accept", accept},
                   {"load", load},       {"extract", extract}};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) {
    napi_value function;
    napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].function, NULL,
                         &function);
    napi_set_named_property(env, exports, functions[i].name, function);
  }
  return exports;
}
