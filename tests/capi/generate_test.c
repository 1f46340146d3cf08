/* Outputs of models for C: generating, streams, stop texts, cancelling from another thread, and
 * structs of the sizes that they had before. Oracle of the outputs: other outputs of one seed. */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generate_helpers.h"

static void test_generate(pawl_engine* engine, const pawl_grammar* grammar) {
  pawl_error* error = NULL;
  const pawl_prompt prompt = prompt_of("The answer is ");
  pawl_generate_options options;
  pawl_generate_options_init(&options, sizeof options);
  CHECK(options.max_tokens == 512 && options.top_p == 1 && options.skip_forced == 1);
  options.temperature = 1;
  options.seed = 7;
  pawl_generation* whole = NULL;
  CHECK(ok(pawl_engine_generate(engine, &prompt, grammar, &options, &whole, &error), error));
  const pawl_output output = output_of(whole);
  CHECK(output.stop == PAWL_STOP_END && output.stop_index == -1 && output.text_length > 5);
  CHECK(output.token_count > 0 && output.prompt_tokens > 0 && output.model_calls > 0);
  CHECK(output.sampled_tokens + output.forced_tokens + output.closing_tokens ==
        (int32_t)output.token_count);

  /* The same as a stream, to the byte, next to another output. */
  shown text = {"", 0, 0, 0};
  pawl_generation *stream = NULL, *other = NULL;
  CHECK(pawl_generation_start(engine, &prompt, NULL, NULL, &other, NULL) == PAWL_OK);
  options.on_text = show;
  options.on_text_context = &text;
  CHECK(ok(pawl_generation_start(engine, &prompt, grammar, &options, &stream, &error), error));
  CHECK(pawl_generation_get(stream, &(pawl_output){.struct_size = sizeof(pawl_output)}) ==
        PAWL_BAD_ARGUMENT);
  CHECK(ok(pawl_generation_wait(stream, &error), error));
  CHECK(text.length == output.text_length && memcmp(text.text, output.text, text.length) == 0);
  CHECK(text.calls >= 1); /* what is there when this thread gets to run is one piece */
  CHECK(ok(pawl_generation_wait(stream, &error), error)); /* again: nothing more is told */
  CHECK(text.length == output.text_length);
  CHECK(output_of(stream).token_count == output.token_count);
  pawl_generation_free(other); /* it may run still */
  pawl_generation_free(stream);

  /* Details are told where they are asked for. */
  CHECK(output.details == NULL);
  options.on_text = NULL;
  options.details = 1;
  CHECK(ok(pawl_engine_generate(engine, &prompt, grammar, &options, &stream, &error), error));
  CHECK(output_of(stream).details_length > 2 && output_of(stream).details[0] == '{');
  CHECK(strstr(output_of(stream).details, "\"probability\":{") != NULL);
  pawl_generation_free(stream);
  options.on_text = show;
  options.details = 0;

  /* The function may end the output. */
  text = (shown){"", 0, 0, 1};
  CHECK(ok(pawl_engine_generate(engine, &prompt, grammar, &options, &stream, &error), error));
  CHECK(text.calls == 1);
  pawl_generation_free(stream);
  pawl_generation_free(whole);
}

static void test_stops(pawl_engine* engine) {
  pawl_error* error = NULL;
  pawl_grammar* grammar = regex(engine, "one two three four");
  const pawl_prompt prompt = prompt_of("a");
  const char* const stops[] = {"never", "hree"};
  const size_t lengths[] = {5, 4};
  pawl_generate_options options;
  pawl_generate_options_init(&options, sizeof options);
  options.stops = stops;
  options.stop_lengths = lengths;
  options.stop_count = 2;
  for (int include = 0; include < 2; ++include) {
    shown text = {"", 0, 0, 0};
    options.include_stop = include;
    options.on_text = include ? show : NULL;
    options.on_text_context = &text;
    pawl_generation* generation = NULL;
    CHECK(ok(pawl_engine_generate(engine, &prompt, grammar, &options, &generation, &error), error));
    const pawl_output output = output_of(generation);
    const char* const wanted = include ? "one two three" : "one two t";
    CHECK(output.text_length == strlen(wanted) && memcmp(output.text, wanted, strlen(wanted)) == 0);
    CHECK(output.stop == PAWL_STOP_TEXT && output.stop_index == 1);
    if (include) CHECK(text.length == strlen(wanted));
    pawl_generation_free(generation);
  }
  options.stop_lengths = NULL;
  pawl_generation* none = NULL;
  CHECK_FAILS(pawl_generation_start(engine, &prompt, grammar, &options, &none, &error),
              PAWL_BAD_ARGUMENT, "stop_lengths");
  const size_t empty[] = {5, 0};
  options.stop_lengths = empty;
  CHECK_FAILS(pawl_generation_start(engine, &prompt, grammar, &options, &none, &error),
              PAWL_BAD_ARGUMENT, "stops[1]");
  CHECK(none == NULL);
  pawl_grammar_free(grammar);
}

typedef struct both {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int told;
  pawl_generation* generation;
} both;
static int tell(void* context, const char* text, size_t length) {
  (void)text;
  (void)length;
  both* b = context;
  pthread_mutex_lock(&b->mutex);
  ++b->told;
  pthread_cond_signal(&b->changed);
  pthread_mutex_unlock(&b->mutex);
  return 1;
}
static void* cancel_it(void* context) {
  both* b = context;
  pthread_mutex_lock(&b->mutex);
  while (b->told < 2) pthread_cond_wait(&b->changed, &b->mutex);
  pthread_mutex_unlock(&b->mutex);
  pawl_generation_cancel(b->generation);
  return NULL;
}

static void test_cancel(pawl_engine* engine) {
  pawl_error* error = NULL;
  pawl_grammar* grammar = regex(engine, "[a-z ]*[.]");
  const pawl_prompt prompt = prompt_of("Once ");
  both b = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, NULL};
  pawl_generate_options options;
  pawl_generate_options_init(&options, sizeof options);
  options.max_tokens = 1500;
  options.at_budget = PAWL_AT_BUDGET_CUT;
  options.on_text = tell;
  options.on_text_context = &b;
  CHECK(
      ok(pawl_generation_start(engine, &prompt, grammar, &options, &b.generation, &error), error));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, cancel_it, &b) == 0);
  CHECK(ok(pawl_generation_wait(b.generation, &error), error));
  pthread_join(thread, NULL);
  const pawl_output output = output_of(b.generation);
  CHECK(output.stop == PAWL_STOP_CANCELLED && output.token_count > 0 && output.token_count < 1500);
  pawl_generation_cancel(b.generation); /* it has ended */
  pawl_generation_cancel(NULL);
  pawl_generation_free(b.generation);
  /* Not waited for. */
  pawl_generation* left = NULL;
  CHECK(pawl_generation_start(engine, &prompt, grammar, NULL, &left, NULL) == PAWL_OK);
  pawl_generation_free(left);
  pawl_generation_free(NULL);
  pawl_grammar_free(grammar);
}

static void test_errors(pawl_engine* engine, const pawl_grammar* grammar) {
  pawl_generation* none = NULL;
  pawl_prompt prompt = prompt_of("a");
  pawl_generate_options options;
  pawl_generate_options_init(&options, sizeof options);
  CHECK_FAILS(pawl_engine_generate(NULL, &prompt, grammar, NULL, &none, &error), PAWL_BAD_ARGUMENT,
              "engine");
  CHECK_FAILS(pawl_engine_generate(engine, NULL, grammar, NULL, &none, &error), PAWL_BAD_ARGUMENT,
              "prompt");
  CHECK_FAILS(pawl_generation_start(engine, &prompt, grammar, NULL, NULL, &error),
              PAWL_BAD_ARGUMENT, "generation");
  CHECK_FAILS(pawl_generation_wait(NULL, &error), PAWL_BAD_ARGUMENT, "generation");
  CHECK(pawl_generation_get(NULL, NULL) == PAWL_BAD_ARGUMENT);
  options.at_budget = 3;
  CHECK_FAILS(pawl_engine_generate(engine, &prompt, grammar, &options, &none, &error),
              PAWL_BAD_ARGUMENT, "at_budget");
  options.at_budget = PAWL_AT_BUDGET_CLOSE;
  options.max_tokens = 1;
  CHECK_FAILS(pawl_engine_generate(engine, &prompt, grammar, &options, &none, &error), PAWL_LIMIT,
              "max_tokens");
  options.max_tokens = 30;
  options.temperature = -1;
  CHECK_FAILS(pawl_engine_generate(engine, &prompt, grammar, &options, &none, &error), PAWL_INVALID,
              "temperature");
  prompt.text = "\xff";
  CHECK_FAILS(pawl_engine_generate(engine, &prompt, grammar, NULL, &none, &error), PAWL_INVALID,
              "prompt: byte 0");
  CHECK(none == NULL);
}

/* A record, by the prompt of `pawl extract`. */
static void test_extract(pawl_engine* engine) {
  pawl_error* error = NULL;
  const char* const schema =
      "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":20}},"
      "\"required\":[\"name\"],\"additionalProperties\":false}";
  pawl_vocabulary* v = NULL;
  pawl_compiler* compiler = NULL;
  pawl_grammar* grammar = NULL;
  CHECK(pawl_engine_vocabulary(engine, &v) == PAWL_OK);
  CHECK(pawl_compiler_create(v, NULL, &compiler, NULL) == PAWL_OK);
  pawl_json_schema_options compact;
  pawl_json_schema_options_init(&compact, sizeof compact);
  CHECK(pawl_engine_extract_options(engine, "Ann", 3, &compact) == PAWL_OK);
  CHECK(compact.whitespace == PAWL_WHITESPACE_COMPACT && compact.keys == 1);
  CHECK(compact.additional_properties == 0 && compact.max_string == 256);
  /* What nothing fits with closed objects is read as it stands, and a note says so. */
  const char* const open = "{\"properties\":{\"a\":{}},\"required\":[\"b\"],\"type\":\"object\"}";
  CHECK(pawl_compile(compiler, "json_schema", open, strlen(open), &compact, &grammar, NULL) ==
        PAWL_OK);
  CHECK(pawl_grammar_note_count(grammar) == 1);
  pawl_grammar_free(grammar);
  compact.open_if_unsatisfiable = 0;
  CHECK(pawl_compile(compiler, "json_schema", open, strlen(open), &compact, &grammar, NULL) ==
        PAWL_UNSATISFIABLE);
  CHECK(pawl_compile(compiler, "json_schema", schema, strlen(schema), &compact, &grammar, NULL) ==
        PAWL_OK);
  pawl_prompt prompt = prompt_of("Ann Lee, 020 7946 0018");
  prompt.schema = schema;
  prompt.schema_length = strlen(schema);
  pawl_generation* generation = NULL;
  CHECK(ok(pawl_engine_generate(engine, &prompt, grammar, NULL, &generation, &error), error));
  const pawl_output output = output_of(generation);
  CHECK(output.text_length == 18 && memcmp(output.text, "{\"name\":\"Ann Lee\"}", 18) == 0);
  pawl_generation_free(generation);
  /* The same text as a document, in chunks of a few tokens. */
  pawl_generate_options options;
  pawl_generate_options_init(&options, sizeof options);
  CHECK(options.passes == 0 && options.chunk_tokens == 0);
  options.chunk_tokens = 16;
  CHECK_FAILS(pawl_engine_generate(engine, &prompt, grammar, &options, &generation, &error),
              PAWL_BAD_ARGUMENT, "chunk_tokens");
  options.passes = 2;
  options.details = 1;
  CHECK(ok(pawl_engine_generate(engine, &prompt, grammar, &options, &generation, &error), error));
  CHECK(strstr(output_of(generation).details, "\"conflicts\":{") != NULL);
  CHECK(strncmp(output_of(generation).text, "{\"name\":\"", 9) == 0);
  pawl_generation_free(generation);
  options.passes = 17;
  CHECK_FAILS(pawl_engine_generate(engine, &prompt, grammar, &options, &generation, &error),
              PAWL_INVALID, "passes");
  prompt.text_length = 0;
  CHECK_FAILS(pawl_engine_generate(engine, &prompt, grammar, NULL, &generation, &error),
              PAWL_INVALID, "text");
  pawl_grammar_free(grammar);
  pawl_compiler_free(compiler);
  pawl_vocabulary_free(v);
}

/* Programs that were built with an older header give shorter structs; what these lack has its
 * default, and no byte behind them is read or written. */
static void test_old_sizes(const char* folder) {
  enum { kOldEngine = 24, kOldPrompt = 64, kOldOutput = 24 };
  unsigned char bytes[sizeof(pawl_engine_options)];
  memset(bytes, 0xAB, sizeof bytes);
  pawl_engine_options* const old = (pawl_engine_options*)(void*)bytes;
  pawl_engine_options_init(old, kOldEngine);
  for (size_t i = kOldEngine; i < sizeof bytes; ++i) CHECK(bytes[i] == 0xAB);
  old->threads = 1;
  pawl_engine* engine = load(folder, old);
  pawl_prompt full = prompt_of("The answer is ");
  unsigned char given[sizeof full];
  memset(given, 0xAB, sizeof given);
  full.struct_size = kOldPrompt;
  memcpy(given, &full, kOldPrompt);
  pawl_grammar* grammar = regex(engine, "(yes|no), [a-z ]{1,8}");
  pawl_generation* generation = NULL;
  pawl_error* error = NULL;
  CHECK(ok(pawl_engine_generate(engine, (const pawl_prompt*)(const void*)given, grammar, NULL,
                                &generation, &error),
           error));
  unsigned char got[sizeof(pawl_output)];
  memset(got, 0xAB, sizeof got);
  pawl_output* const output = (pawl_output*)(void*)got;
  pawl_output_init(output, kOldOutput);
  CHECK(pawl_generation_get(generation, output) == PAWL_OK);
  CHECK(output->struct_size == kOldOutput && output->text_length > 3);
  for (size_t i = kOldOutput; i < sizeof got; ++i) CHECK(got[i] == 0xAB);
  pawl_generation_free(generation);
  /* A struct of a later version, with and without a field that this one does not know. */
  struct {
    pawl_generate_options known;
    uint64_t unknown;
  } later;
  pawl_generate_options_init(&later.known, sizeof later);
  CHECK(later.unknown == 0 && later.known.struct_size == sizeof later);
  CHECK(ok(pawl_engine_generate(engine, &full, grammar, &later.known, &generation, &error), error));
  pawl_generation_free(generation);
  later.unknown = 1;
  CHECK_FAILS(pawl_engine_generate(engine, &full, grammar, &later.known, &generation, &error),
              PAWL_UNSUPPORTED, "struct_size");
  pawl_grammar_free(grammar);
  pawl_engine_free(engine);
}

/* A caller that knows no drafts has them too. How many there are depends on the time that calls
 * take, so there are several outputs. */
static void test_default_drafts(const char* folder, int off) {
  pawl_engine_options options;
  pawl_engine_options_init(&options, sizeof options);
  options.drafts = "off";
  options.drafts_length = strlen(options.drafts);
  options.struct_size = off ? sizeof options : offsetof(pawl_engine_options, drafts);
  pawl_engine* engine = load(folder, &options);
  pawl_grammar* grammar = regex(engine, "(one two three four five six ){12}");
  pawl_generate_options asked;
  pawl_generate_options_init(&asked, sizeof asked);
  asked.skip_forced = 0;
  const pawl_prompt prompt = prompt_of("one two three four five six ");
  int drafted = 0;
  for (int i = 0; i < 20 && drafted == 0; ++i) {
    pawl_generation* generation = NULL;
    pawl_error* error = NULL;
    CHECK(ok(pawl_engine_generate(engine, &prompt, grammar, &asked, &generation, &error), error));
    drafted += output_of(generation).drafted_tokens;
    pawl_generation_free(generation);
  }
  CHECK(off ? drafted == 0 : drafted > 0);
  pawl_grammar_free(grammar);
  pawl_engine_free(engine);
}

static void test_engine_options(const char* folder) {
  pawl_engine* engine = NULL;
  pawl_engine_options options;
  pawl_engine_options_init(&options, sizeof options);
  CHECK(options.max_batch == 8 && options.kept_kv_bytes == -1 && options.device == PAWL_DEVICE_CPU);
  const size_t length = strlen(folder);
  options.device = 3;
  CHECK_FAILS(pawl_engine_load(folder, length, &options, &engine, &error), PAWL_BAD_ARGUMENT,
              "device");
  options.device = PAWL_DEVICE_CPU;
  options.kv_dtype = -1;
  CHECK_FAILS(pawl_engine_load(folder, length, &options, &engine, &error), PAWL_BAD_ARGUMENT,
              "kv_dtype");
  options.kv_dtype = PAWL_KV_BF16;
  options.max_batch = 0;
  CHECK_FAILS(pawl_engine_load(folder, length, &options, &engine, &error), PAWL_INVALID,
              "max_batch");
  options.max_batch = 2;
  options.kv_bytes = -1;
  CHECK_FAILS(pawl_engine_load(folder, length, &options, &engine, &error), PAWL_BAD_ARGUMENT,
              "kv_bytes");
  options.kv_bytes = 16 << 20;
  options.drafts = "none of these";
  options.drafts_length = strlen(options.drafts);
  CHECK_FAILS(pawl_engine_load(folder, length, &options, &engine, &error), PAWL_INVALID, "drafts");
  options.drafts = "auto";
  options.drafts_length = strlen(options.drafts);
  options.draft_verify = "luck";
  CHECK_FAILS(pawl_engine_load(folder, length, &options, &engine, &error), PAWL_INVALID,
              "draft_verify");
  options.draft_verify = "traversal";
  options.draft_shape = "delayed:1";
  CHECK_FAILS(pawl_engine_load(folder, length, &options, &engine, &error), PAWL_INVALID,
              "draft_shape");
  options.draft_verify = options.draft_shape = NULL;
  options.second_draft_model = folder;
  CHECK_FAILS(pawl_engine_load(folder, length, &options, &engine, &error), PAWL_BAD_ARGUMENT,
              "second_draft_model");
  options.draft_model = folder;
  options.draft_model_length = length;
  CHECK_FAILS(pawl_engine_load(folder, length, &options, &engine, &error), PAWL_INVALID,
              "draft_model");
  options.draft_model = options.second_draft_model = NULL;
  options.draft_model_length = 0;

  /* Without a word drafts are "auto", which takes the text that is given. */
  options.drafts = NULL;
  options.drafts_length = 0;
  options.draft_text_file = "/no/such/text";
  options.draft_text_file_length = strlen(options.draft_text_file);
  CHECK_FAILS(pawl_engine_load(folder, length, &options, &engine, &error), PAWL_IO,
              "/no/such/text");
  options.drafts = "off";
  options.drafts_length = strlen(options.drafts);
  pawl_engine_free(load(folder, &options));
  options.draft_text_file = NULL;
  options.draft_text_file_length = 0;
  for (int off = 0; off < 2; ++off) test_default_drafts(folder, off);

  /* Drafts with a file of past outputs, and a chat template. */
  char file[] = "/tmp/pawl_capi_generate_XXXXXX";
  const int made = mkstemp(file);
  CHECK(made >= 0);
  remove(file);
  options.drafts = "forced,history";
  options.drafts_length = strlen(options.drafts);
  options.draft_history_file = file;
  options.draft_history_file_length = strlen(file);
  options.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}";
  options.chat_template_length = strlen(options.chat_template);
  engine = load(folder, &options);
  pawl_error* error = NULL;
  pawl_prompt chat;
  pawl_prompt_init(&chat, sizeof chat);
  chat.chat_json = "[{\"role\":\"user\",\"content\":\"The answer is \"}]";
  chat.chat_json_length = strlen(chat.chat_json);
  pawl_grammar* grammar = regex(engine, "(yes|no), [a-z ]{1,8}");
  pawl_generation* generations[2] = {NULL, NULL};
  for (int i = 0; i < 2; ++i) {
    CHECK(ok(pawl_engine_generate(engine, &chat, grammar, NULL, &generations[i], &error), error));
  }
  const pawl_output first = output_of(generations[0]), second = output_of(generations[1]);
  CHECK(first.text_length == second.text_length &&
        memcmp(first.text, second.text, first.text_length) == 0);
  CHECK(ok(pawl_engine_save_drafts(engine, &error), error));
  FILE* saved = fopen(file, "rb");
  CHECK(saved != NULL);
  if (saved != NULL) fclose(saved);
  remove(file);
  /* Handles may be freed in any order. */
  pawl_engine_free(engine);
  CHECK(output_of(generations[1]).text_length == second.text_length);
  for (int i = 0; i < 2; ++i) pawl_generation_free(generations[i]);
  remove(file);
  pawl_grammar_free(grammar);
  CHECK_FAILS(pawl_engine_save_drafts(NULL, &error), PAWL_BAD_ARGUMENT, "engine");
}

static int append(void* context, const char* text, size_t length) {
  strncat(context, text, length);
  return 1;
}

/* What is thought comes apart, and its marks nowhere. */
static void test_thinking(const char* folder) {
  pawl_engine_options options;
  pawl_engine_options_init(&options, sizeof options);
  options.chat_template = "{% for m in messages %}{{ m.content }}\n{% endfor %}((";
  options.chat_template_length = strlen(options.chat_template);
  options.reasoning_open = "((";
  options.reasoning_close = "))";
  pawl_engine* engine = load(folder, &options);
  pawl_grammar* grammar = regex(engine, "(yes|no)!");
  pawl_error* error = NULL;
  pawl_prompt chat;
  pawl_prompt_init(&chat, sizeof chat);
  chat.chat_json = "[{\"role\":\"user\",\"content\":\"Far?\"}]";
  chat.chat_json_length = strlen(chat.chat_json);
  pawl_generate_options wanted;
  pawl_generate_options_init(&wanted, sizeof wanted);
  wanted.temperature = 1;
  for (int i = 0; i < 2; ++i) {
    wanted.thinking = i == 0 ? 7 : PAWL_THINKING_OFF;
    char text[256] = "", thoughts[1024] = "";
    wanted.on_text = append;
    wanted.on_text_context = text;
    wanted.on_reasoning = append;
    wanted.on_reasoning_context = thoughts;
    pawl_generation* generation = NULL;
    CHECK(ok(pawl_engine_generate(engine, &chat, grammar, &wanted, &generation, &error), error));
    const pawl_output output = output_of(generation);
    CHECK(output.text_length == 3 || output.text_length == 4);
    CHECK(output.text[output.text_length - 1] == '!');
    CHECK((output.reasoning_length > 0) == (i == 0));
    CHECK(output.reasoning_tokens > 0);
    CHECK(strlen(text) == output.text_length && strcmp(text, output.text) == 0);
    CHECK(strlen(thoughts) == output.reasoning_length &&
          memcmp(thoughts, output.reasoning, output.reasoning_length) == 0);
    pawl_generation_free(generation);
  }
  wanted.thinking = -3;
  pawl_generation* none = NULL;
  CHECK_FAILS(pawl_engine_generate(engine, &chat, grammar, &wanted, &none, &error),
              PAWL_BAD_ARGUMENT, "thinking");
  pawl_grammar_free(grammar);
  pawl_engine_free(engine);
}

/* A sampler runs next to an output, each with what it has alone. */
typedef struct sampling {
  pawl_engine* engine;
  const pawl_grammar* grammar;
  char text[256];
} sampling;
static void* sample(void* context) {
  sampling* s = context;
  const pawl_prompt prompt = prompt_of("The answer is ");
  pawl_sampler_options options;
  pawl_sampler_options_init(&options, sizeof options);
  options.seed = 3;
  options.max_tokens = 12;
  pawl_samples* samples = NULL;
  CHECK(pawl_engine_sample(s->engine, &prompt, s->grammar, &options, &samples, NULL) == PAWL_OK);
  int32_t timed_out = 7;
  CHECK(pawl_samples_effective_size(samples, &timed_out) >= 1 && timed_out == 0);
  CHECK(pawl_samples_effective_size(NULL, NULL) == 0);
  pawl_sample one;
  pawl_sample_init(&one, sizeof one);
  CHECK(pawl_samples_get(samples, 0, &one) == PAWL_OK && one.text_length < sizeof s->text);
  memcpy(s->text, one.text, one.text_length);
  s->text[one.text_length] = 0;
  pawl_samples_free(samples);
  return NULL;
}

static void test_samplers_next_to_outputs(pawl_engine* engine, const pawl_grammar* grammar) {
  sampling alone = {engine, grammar, ""}, together = {engine, grammar, ""};
  sample(&alone);
  const pawl_prompt prompt = prompt_of("Once ");
  pawl_generation* generation = NULL;
  CHECK(pawl_generation_start(engine, &prompt, NULL, NULL, &generation, NULL) == PAWL_OK);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, sample, &together) == 0);
  CHECK(pawl_generation_wait(generation, NULL) == PAWL_OK);
  pthread_join(thread, NULL);
  CHECK(strlen(alone.text) > 3 && strcmp(alone.text, together.text) == 0);
  pawl_generation_free(generation);
}

/* The folder two above the model's is a store of LM Studio's form. */
static void test_stores(const char* folder) {
  pawl_engine_options options;
  pawl_engine_options_init(&options, sizeof options);
  options.threads = 1;
  char* root = malloc(strlen(folder) + 1);
  strcpy(root, folder);
  char* name = strrchr(root, '/');
  *name = 0;
  char* org = strrchr(root, '/');
  *org = 0;
  char model[256];
  snprintf(model, sizeof model, "lmstudio:%s/%s", org + 1, name + 1);
  pawl_error* error = NULL;
  pawl_engine* engine = NULL;
  CHECK_FAILS(pawl_engine_load(model, strlen(model), &options, &engine, &error), PAWL_IO, model);
  const char* const folders[] = {root, NULL};
  options.lmstudio_folders = folders;
  options.lmstudio_count = 1;
  CHECK(pawl_engine_load(model, strlen(model), &options, &engine, &error) == PAWL_OK);
  pawl_engine_free(engine);
  options.lmstudio_count = 2;
  CHECK_FAILS(pawl_engine_load(model, strlen(model), &options, &engine, &error), PAWL_BAD_ARGUMENT,
              "lmstudio_folders[1]");
  options.lmstudio_count = 0;
  options.hub_count = 1;
  CHECK_FAILS(pawl_engine_load(model, strlen(model), &options, &engine, &error), PAWL_BAD_ARGUMENT,
              "hub_folders");
  free(root);
}

static void test_searches(pawl_engine* engine, const pawl_grammar* grammar) {
  pawl_error* error = NULL;
  pawl_answer* answer = NULL;
  pawl_prompt prompt;
  pawl_prompt_init(&prompt, sizeof prompt);
  prompt.text = "The answer is ";
  prompt.text_length = 14;
  const char* options = "{\"strategy\":\"beam\",\"num_beams\":2,\"n\":2,\"max_tokens\":20}";
  size_t length = 0;
  CHECK(pawl_engine_search(engine, &prompt, grammar, options, strlen(options), NULL, 0, NULL,
                           &answer, &error) == PAWL_OK);
  CHECK(strstr(pawl_answer_json(answer, &length), "\"outputs\":[{\"text\":\"") != NULL);
  CHECK(length == strlen(pawl_answer_json(answer, NULL)));
  pawl_answer_free(answer);
  options = "{\"beams\":2}";
  CHECK(pawl_engine_search(engine, &prompt, NULL, options, strlen(options), NULL, 0, NULL, &answer,
                           &error) == PAWL_INVALID);
  CHECK(strstr(pawl_error_place(error), "#/beams") != NULL);
  pawl_error_free(error);
  options = "{\"num_beams\":0}";
  CHECK(pawl_engine_search(engine, &prompt, NULL, options, strlen(options), NULL, 0, NULL, &answer,
                           &error) == PAWL_INVALID);
  CHECK(strcmp(pawl_error_place(error), "options: #/num_beams") == 0);
  pawl_error_free(error);
  options =
      "{\"num_beams\":27,\"max_tokens\":6,\"checks\":[\"style:a\",\"tests:grep -q cb\"],"
      "\"critic\":\"tests:grep -c ^b\"}";
  pawl_grammar* letters = regex(engine, "[a-c]{3}");
  CHECK(ok(pawl_engine_search(engine, &prompt, letters, options, strlen(options), NULL, 0, NULL,
                              &answer, &error),
           error));
  CHECK(strstr(pawl_answer_json(answer, NULL), "\"text\":\"bcb\"") != NULL);
  pawl_answer_free(answer);
  pawl_grammar_free(letters);
  const char* const wrong[][2] = {
      {"{\"checks\":[\"regex:a\",\"style:a(\"]}", "options: #/checks/1"},
      {"{\"checks\":[\"syntax:cobol\"]}", "options: #/checks/0"},
      {"{\"checks\":[\"word:a\"]}", "options: #/checks/0"},
      {"{\"checks\":[\"tests: \"]}", "options: #/checks/0"},
      {"{\"check_timeout\":0}", "options: #/check_timeout"},
      {"{\"strategy\":\"contrastive\",\"search_arg\":{\"penalty_alpha\":2}}",
       "options: #/search_arg"},
      {"{\"strategy\":\"superposed\",\"n\":9}", "options: #/n"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    CHECK(pawl_engine_search(engine, &prompt, NULL, wrong[i][0], strlen(wrong[i][0]), NULL, 0, NULL,
                             &answer, &error) == PAWL_INVALID);
    CHECK(strcmp(pawl_error_place(error), wrong[i][1]) == 0);
    pawl_error_free(error);
  }
  options = "{\"choices\":[\"yes\",\"no\"]}";
  CHECK(pawl_engine_classify(engine, &prompt, options, strlen(options), &answer, &error) ==
        PAWL_OK);
  CHECK(strstr(pawl_answer_json(answer, NULL), "\"valid\":") != NULL);
  pawl_answer_free(answer);
}

/* The text of the first output of a search, up to its quote; "" where it failed. */
static void search_text(pawl_engine* engine, const char* text, const pawl_grammar* grammar,
                        const char* options, char out[512]) {
  pawl_error* error = NULL;
  pawl_answer* answer = NULL;
  const pawl_prompt prompt = prompt_of(text);
  out[0] = 0;
  CHECK(ok(pawl_engine_search(engine, &prompt, grammar, options, strlen(options), NULL, 0, NULL,
                              &answer, &error),
           error));
  const char* begin = strstr(pawl_answer_json(answer, NULL), "\"text\":\"");
  CHECK(begin != NULL);
  if (begin != NULL) {
    begin += 8;
    snprintf(out, 512, "%.*s", (int)strcspn(begin, "\""), begin);
  }
  pawl_answer_free(answer);
}

/* Free text first, contrastive search, superposed drafts, self-infilling. */
static void test_ways_to_write(const char* folder, pawl_engine* engine) {
  pawl_error* error = NULL;
  pawl_generation* whole = NULL;
  pawl_grammar* grammar = regex(engine, "[a-c]{3}");
  pawl_generate_options options;
  pawl_generate_options_init(&options, sizeof options);
  options.max_tokens = 80;
  options.free_first = 9;
  const pawl_prompt prompt = prompt_of("Ann is 7. ");
  CHECK(ok(pawl_engine_generate(engine, &prompt, grammar, &options, &whole, &error), error));
  const pawl_output output = output_of(whole);
  CHECK(output.text_length == 3 && output.reasoning_length > 0);
  pawl_generation_free(whole);
  options.free_first = -1;
  CHECK_FAILS(pawl_engine_generate(engine, &prompt, grammar, &options, &whole, &error),
              PAWL_INVALID, "free_first");
  pawl_grammar_free(grammar);
  char greedy[512], same[512], other[512];
  const char* text = "The red sea and the red sea and ";
  search_text(engine, text, NULL, "{\"num_beams\":1,\"max_tokens\":16}", greedy);
  search_text(
      engine, text, NULL,
      "{\"strategy\":\"contrastive\",\"search_arg\":{\"penalty_alpha\":0},\"max_tokens\":16}",
      same);
  search_text(
      engine, text, NULL,
      "{\"strategy\":\"contrastive\",\"search_arg\":{\"penalty_alpha\":0.9},\"max_tokens\":16}",
      other);
  CHECK(strcmp(greedy, same) == 0 && strcmp(greedy, other) != 0);
  search_text(engine, text, NULL, "{\"strategy\":\"superposed\",\"max_tokens\":16}", same);
  CHECK(strcmp(greedy, same) == 0);
  search_text(engine, text, NULL,
              "{\"strategy\":\"lattice\",\"search_arg\":{\"nodes\":2},\"max_tokens\":16}", same);
  CHECK(strcmp(greedy, same) == 0);
  search_text(engine, text, NULL,
              "{\"force_phrases\":[\"zx7\",\"qj4\"],\"num_beams\":1,\"max_tokens\":16}", other);
  CHECK(strstr(other, "zx7") != NULL && strstr(other, "qj4") != NULL);
  /* The model that has markers for a gap stands next to the other one. */
  char path[4096];
  snprintf(path, sizeof path, "%s", folder);
  char* const name = strrchr(path, '/');
  CHECK(name != NULL);
  snprintf(name, sizeof path - (size_t)(name - path), "/tiny-code");
  pawl_engine* code = load(path, NULL);
  const char* program = "function area(w: number, h: number) {";
  search_text(code, program, NULL, "{\"num_beams\":1,\"max_tokens\":24}", greedy);
  search_text(code, program, NULL,
              "{\"strategy\":\"self-infill\",\"search_arg\":{\"loops\":0},\"max_tokens\":24}",
              same);
  CHECK(strcmp(greedy, same) == 0);
  search_text(code, program, NULL, "{\"strategy\":\"self-infill\",\"max_tokens\":24}", other);
  CHECK(other[0] != 0);
  pawl_engine_free(code);
  pawl_answer* answer = NULL;
  const char* infill = "{\"strategy\":\"self-infill\"}";
  CHECK(pawl_engine_search(engine, &prompt, NULL, infill, strlen(infill), NULL, 0, NULL, &answer,
                           &error) == PAWL_UNSUPPORTED);
  pawl_error_free(error);
}

/* Options of a model that fills masks; a causal model refuses them. */
static void test_diffusion(const char* folder, pawl_engine* causal) {
  char path[4096];
  snprintf(path, sizeof path, "%s-diffusion", folder);
  pawl_engine* engine = load(path, NULL);
  pawl_grammar* grammar = regex(engine, "[a-z]{4,8}, [a-z]{2,6}");
  const pawl_prompt prompt = prompt_of("Ann Lee, ");
  pawl_generate_options options;
  pawl_generate_options_init(&options, sizeof options);
  options.max_tokens = 24;
  int32_t calls[2] = {0, 0};
  const char* const given[2] = {"{\"threshold\":1}", "{\"threshold\":0,\"cache\":\"dual\"}"};
  pawl_error* error = NULL;
  for (int i = 0; i < 2; ++i) {
    pawl_generation* whole = NULL;
    options.diffusion = given[i];
    options.diffusion_length = strlen(given[i]);
    CHECK(ok(pawl_engine_generate(engine, &prompt, grammar, &options, &whole, &error), error));
    calls[i] = output_of(whole).model_calls;
    pawl_generation_free(whole);
  }
  CHECK(calls[0] > calls[1] && calls[1] > 0);
  pawl_generation* record = NULL;
  pawl_grammar* object = regex(engine, "\\{\"a\":\"[a-z]{2,4}\"\\}");
  options.details = 1;
  CHECK(ok(pawl_engine_generate(engine, &prompt, object, &options, &record, &error), error));
  CHECK(strstr(output_of(record).details, "\"probability\":{\"/a\":null}") != NULL);
  CHECK(strstr(output_of(record).details, "\"surprise\":{\"/a\":null}") != NULL);
  pawl_generation_free(record);
  pawl_grammar_free(object);
  options.details = 0;
  /* What needs a causal model is named. */
  pawl_answer* answer = NULL;
  const char* beam = "{\"num_beams\":2}";
  CHECK(pawl_engine_search(engine, &prompt, grammar, beam, strlen(beam), NULL, 0, NULL, &answer,
                           &error) == PAWL_UNSUPPORTED);
  CHECK(strcmp(pawl_error_place(error), "options: #/strategy") == 0);
  pawl_error_free(error);
  const int32_t tokens[1] = {5};
  double score = 0;
  CHECK(pawl_engine_score(engine, &prompt, tokens, 1, 1, &score, NULL, &error) == PAWL_UNSUPPORTED);
  CHECK(strcmp(pawl_error_place(error), "score") == 0);
  pawl_error_free(error);
  pawl_generation* none = NULL;
  options.diffusion = "{\"steps\":0}";
  options.diffusion_length = strlen(options.diffusion);
  CHECK(pawl_engine_generate(engine, &prompt, grammar, &options, &none, &error) == PAWL_INVALID);
  CHECK(strcmp(pawl_error_place(error), "diffusion: #/steps") == 0);
  pawl_error_free(error);
  options.diffusion = "{\"steps\":4}";
  CHECK(pawl_engine_generate(causal, &prompt, NULL, &options, &none, &error) == PAWL_UNSUPPORTED);
  CHECK(strcmp(pawl_error_place(error), "diffusion.steps") == 0);
  pawl_error_free(error);
  pawl_engine_options how;
  pawl_engine_options_init(&how, sizeof how);
  how.drafts = "lookahead";
  how.drafts_length = strlen(how.drafts);
  pawl_engine* drafting = NULL;
  CHECK(pawl_engine_load(path, strlen(path), &how, &drafting, &error) == PAWL_UNSUPPORTED);
  CHECK(strcmp(pawl_error_place(error), "drafts") == 0);
  pawl_error_free(error);
  pawl_grammar_free(grammar);
  pawl_engine_free(engine);
}

/* Adapters by name, and outputs with and without one at a time. */
static void test_adapters(const char* folder, const char* adapter) {
  char named[4096];
  snprintf(named, sizeof named, "mine=%s", adapter);
  const char* adapters[] = {named, "other=/nothing/here"};
  pawl_engine_options options;
  pawl_engine_options_init(&options, sizeof options);
  options.lora = adapters;
  options.lora_count = 2;
  pawl_engine* engine = NULL;
  CHECK_FAILS(pawl_engine_load(folder, strlen(folder), &options, &engine, &error), PAWL_IO,
              "/nothing/here/adapter_config.json");
  options.lora_count = 1;
  engine = load(folder, &options);
  const char* names[] = {NULL, "mine", NULL};
  double scores[3] = {0, 0, 0}, sum = 0;
  const int32_t tokens[] = {310, 320, 330};
  pawl_prompt prompt = prompt_of("Ann Lee");
  for (int i = 0; i < 3; ++i) {
    prompt.lora = names[i];
    CHECK(pawl_engine_score(engine, &prompt, tokens, 3, 1, &scores[i], NULL, NULL) == PAWL_OK);
  }
  CHECK(scores[0] == scores[2] && scores[0] != scores[1]);
  prompt.lora = "yours";
  CHECK_FAILS(pawl_engine_score(engine, &prompt, tokens, 3, 1, &sum, NULL, &error), PAWL_INVALID,
              "lora");
  pawl_engine_free(engine);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: capi_generate_test MODEL ADAPTER\n");
    return 2;
  }
  pawl_engine* engine = load(argv[1], NULL);
  pawl_grammar* grammar = regex(engine, "(yes|no), [a-z ]{3,40}");
  test_generate(engine, grammar);
  test_stops(engine);
  test_cancel(engine);
  test_errors(engine, grammar);
  test_extract(engine);
  test_samplers_next_to_outputs(engine, grammar);
  test_searches(engine, grammar);
  test_ways_to_write(argv[1], engine);
  test_diffusion(argv[1], engine);
  pawl_grammar_free(grammar);
  pawl_engine_free(engine);
  test_old_sizes(argv[1]);
  test_engine_options(argv[1]);
  test_adapters(argv[1], argv[2]);
  test_stores(argv[1]);
  test_thinking(argv[1]);
  if (failures == 0) printf("all well\n");
  return failures == 0 ? 0 : 1;
}
