// Nothing that fails below the C functions crosses their border: memory that runs out, at each
// place where it can, and functions of the caller that throw. The caller gets a status, and what
// was made until then is freed (the leak check of the address sanitizer says so). Afterwards the
// same call succeeds.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

extern "C" {
#include "check.h"
}

namespace {

// Allocations of this thread: after `left` of them one fails, or with `lasting` each.
thread_local bool armed = false;
thread_local bool lasting = false;
thread_local long left = 0;
thread_local long refused = 0;

bool Refuse() {
  if (!armed || left-- > 0) return false;
  if (!lasting) armed = false;
  ++refused;
  return true;
}

void* Allocate(std::size_t size, std::size_t alignment) {
  if (Refuse()) return nullptr;
  if (size == 0) size = 1;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
void* AllocateOrThrow(std::size_t size, std::size_t alignment) {
  if (void* memory = Allocate(size, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// NOLINTBEGIN: the standard's own signatures
void* operator new(std::size_t size) { return AllocateOrThrow(size, 1); }
void* operator new[](std::size_t size) { return AllocateOrThrow(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return AllocateOrThrow(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return AllocateOrThrow(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return Allocate(size, 1); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return Allocate(size, 1); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
// NOLINTEND

namespace {

using Call = std::function<pawl_status(pawl_error**)>;

// Calls again and again, each time with one more allocation that works: all up to `dense`, then in
// growing steps. The last call, in which none fails, succeeds.
void RunsOutOfMemory(const char* name, long dense, const Call& call) {
  for (const bool all : {false, true}) {
    long calls = 0;
    for (long n = 0;; n += n < dense ? 1 : 1 + n / 3) {
      pawl_error* error = nullptr;
      left = n;
      refused = 0;
      lasting = all;
      armed = true;
      const pawl_status status = call(&error);
      armed = false;
      ++calls;
      if (refused == 0) {
        if (status != PAWL_OK) {
          std::fprintf(stderr, "%s: with all of the memory: %s: %s\n", name,
                       pawl_error_place(error), pawl_error_message(error));
          ++failures;
        }
        pawl_error_free(error);
        break;
      }
      // Work that memory only makes faster may do without.
      if (status != PAWL_LIMIT && status != PAWL_OK) {
        std::fprintf(stderr, "%s: allocation %ld: %s: %s: %s\n", name, n, pawl_status_name(status),
                     pawl_error_place(error), pawl_error_message(error));
        ++failures;
      }
      if (error != nullptr && pawl_error_status(error) != status) {
        std::fprintf(stderr, "%s: allocation %ld: the error has another status\n", name, n);
        ++failures;
      }
      pawl_error_free(error);
    }
    if (!all) std::printf("%-28s %ld calls\n", name, calls);
  }
}

// An object that the call made is freed when the call is over.
template <typename T>
struct Made {
  explicit Made(void (*free)(T*)) : free_(free) {}
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  ~Made() { free_(object); }
  T** operator&() { return &object; }     // NOLINT: as the C functions take it
  operator T*() const { return object; }  // NOLINT
  T* object = nullptr;
  void (*free_)(T*);
};

constexpr char kSchema[] =
    R"({"type":"object","properties":{"name":{"type":"string","maxLength":9},"n":{"type":"integer"}},)"
    R"("required":["name","n"],"additionalProperties":false})";

pawl_status Compile(const pawl_compiler* compiler, const char* kind, std::string_view text,
                    pawl_grammar** grammar, pawl_error** error) {
  return pawl_compile(compiler, kind, text.data(), text.size(), nullptr, grammar, error);
}

struct Fixture {
  explicit Fixture(const char* folder) {
    CHECK(pawl_engine_load(folder, std::strlen(folder), nullptr, &engine, nullptr) == PAWL_OK);
    CHECK(pawl_engine_vocabulary(engine, &vocabulary) == PAWL_OK);
    CHECK(pawl_compiler_create(vocabulary, nullptr, &compiler, nullptr) == PAWL_OK);
    CHECK(Compile(compiler, "regex", "[a-z]{3,5}", &regex, nullptr) == PAWL_OK);
    CHECK(Compile(compiler, "json_schema", kSchema, &schema, nullptr) == PAWL_OK);
    pawl_prompt_init(&prompt, sizeof prompt);
    prompt.text = "A word: ";
    prompt.text_length = 8;
  }
  ~Fixture() {
    pawl_grammar_free(regex);
    pawl_grammar_free(schema);
    pawl_compiler_free(compiler);
    pawl_vocabulary_free(vocabulary);
    pawl_engine_free(engine);
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  pawl_engine* engine = nullptr;
  pawl_vocabulary* vocabulary = nullptr;
  pawl_compiler* compiler = nullptr;
  pawl_grammar* regex = nullptr;
  pawl_grammar* schema = nullptr;
  pawl_prompt prompt;
};

void TestVocabularyMemory(const Fixture& f, const std::string& folder) {
  RunsOutOfMemory("vocabulary_create", 60, [](pawl_error** error) {
    const char* const tokens[] = {"a", "b", "ab", "<end>"};
    const size_t lengths[] = {1, 1, 2, 5};
    const int32_t end[] = {3};
    pawl_vocabulary_tokens given;
    pawl_vocabulary_tokens_init(&given, sizeof given);
    given.tokens = tokens;
    given.lengths = lengths;
    given.count = 4;
    given.special = given.end_tokens = end;
    given.special_count = given.end_token_count = 1;
    Made<pawl_vocabulary> made(pawl_vocabulary_free);
    return pawl_vocabulary_create(&given, &made, error);
  });
  RunsOutOfMemory("vocabulary_from_file", 20, [&](pawl_error** error) {
    Made<pawl_vocabulary> made(pawl_vocabulary_free);
    return pawl_vocabulary_from_tokenizer_file(folder.data(), folder.size(), nullptr, &made, error);
  });
  RunsOutOfMemory("compiler_create", 60, [&](pawl_error** error) {
    Made<pawl_compiler> made(pawl_compiler_free);
    return pawl_compiler_create(f.vocabulary, nullptr, &made, error);
  });
}

void Resolve(void* context, const char* uri, size_t length, pawl_document* document) {
  if (context != nullptr) throw std::runtime_error("thrown by resolve_document");
  CHECK(std::string_view(uri, length) == "https://example.com/a");
  if (pawl_document_set_text(document, R"({"type":"integer"})", 18) != PAWL_OK)
    throw std::bad_alloc();
}

pawl_status CompileWithResolver(const Fixture& f, void* context, pawl_error** error) {
  pawl_json_schema_options options;
  pawl_json_schema_options_init(&options, sizeof options);
  options.resolve_document = Resolve;
  options.resolve_context = context;
  constexpr std::string_view text = R"({"$ref":"https://example.com/a"})";
  Made<pawl_grammar> made(pawl_grammar_free);
  return pawl_compile(f.compiler, "json_schema", text.data(), text.size(), &options, &made, error);
}

void TestCompilerMemory(const Fixture& f) {
  const std::pair<const char*, std::string_view> kinds[] = {
      {"json_schema", kSchema},
      {"regex", "a(b|c)*d{2,4}"},
      {"choice", R"(["red","green"])"},
      {"ebnf", "root ::= \"a\" root \"b\" | \"c\""},
      {"gbnf", "root ::= [a-z]+ (\",\" [a-z]+)*"},
      {"lark", "start: A \"x\"\nA: /[a-z]+/"},
      {"substring", "one two three"},
      {"structural_tag", R"({"format":{"type":"json_schema","json_schema":{"type":"integer"}}})"}};
  for (const auto& [kind, text] : kinds) {
    RunsOutOfMemory(kind, 150, [&, kind = kind, &text = text](pawl_error** error) {
      Made<pawl_grammar> made(pawl_grammar_free);
      return Compile(f.compiler, kind, text, &made, error);
    });
  }
  RunsOutOfMemory("resolve_document", 60,
                  [&](pawl_error** error) { return CompileWithResolver(f, nullptr, error); });
  RunsOutOfMemory("compile_choice", 60, [&](pawl_error** error) {
    const char* const choices[] = {"red", "green and more"};
    const size_t lengths[] = {3, 14};
    Made<pawl_grammar> made(pawl_grammar_free);
    return pawl_compile_choice(f.compiler, choices, lengths, 2, &made, error);
  });
  RunsOutOfMemory("grammar_infill", 60, [&](pawl_error** error) {
    Made<pawl_grammar> made(pawl_grammar_free);
    return pawl_grammar_infill(f.regex, "a", 1, nullptr, nullptr, 0, &made, error);
  });
  RunsOutOfMemory("grammar_require_words", 60, [&](pawl_error** error) {
    const char* const words[] = {"ab"};
    const size_t lengths[] = {2};
    Made<pawl_grammar> made(pawl_grammar_free);
    return pawl_grammar_require_words(f.regex, words, lengths, 1, &made, error);
  });
  RunsOutOfMemory("grammar_intersect", 60, [&](pawl_error** error) {
    Made<pawl_grammar> made(pawl_grammar_free);
    return pawl_grammar_intersect(f.regex, f.regex, &made, error);
  });
  RunsOutOfMemory("grammar_complement", 60, [&](pawl_error** error) {
    Made<pawl_grammar> made(pawl_grammar_free);
    return pawl_grammar_complement(f.regex, &made, error);
  });
  std::vector<char> bytes(1 << 16);
  size_t size = 0;
  RunsOutOfMemory("grammar_serialize", 60, [&](pawl_error** error) {
    return pawl_grammar_serialize(f.schema, bytes.data(), bytes.size(), &size, error);
  });
  RunsOutOfMemory("grammar_deserialize", 100, [&](pawl_error** error) {
    Made<pawl_grammar> made(pawl_grammar_free);
    return pawl_grammar_deserialize(f.compiler, bytes.data(), size, &made, error);
  });
}

// A matcher on a grammar of its own each time: nothing is kept that an earlier call made.
void TestMatcherMemory(const Fixture& f) {
  const auto with = [&](const char* name, const std::function<pawl_status(pawl_matcher*)>& call) {
    RunsOutOfMemory(name, 80, [&](pawl_error** error) {
      const bool was = std::exchange(armed, false);
      Made<pawl_grammar> grammar(pawl_grammar_free);
      Made<pawl_matcher> matcher(pawl_matcher_free);
      CHECK(Compile(f.compiler, "json_schema", kSchema, &grammar, error) == PAWL_OK);
      CHECK(pawl_matcher_create(grammar, nullptr, &matcher, error) == PAWL_OK);
      armed = was;
      const pawl_status status = call(matcher);
      armed = false;
      return status;
    });
  };
  std::vector<uint32_t> rows(3 * pawl_vocabulary_mask_words(f.vocabulary));
  const size_t words = rows.size() / 3;
  int32_t tokens[64] = {1, 2};
  const int32_t parents[] = {-1, 0};
  size_t count = 0;
  char bytes[64];
  RunsOutOfMemory("matcher_create", 60, [&](pawl_error** error) {
    Made<pawl_matcher> made(pawl_matcher_free);
    return pawl_matcher_create(f.schema, nullptr, &made, error);
  });
  with("matcher_clone", [&](pawl_matcher* matcher) {
    Made<pawl_matcher> made(pawl_matcher_free);
    return pawl_matcher_clone(matcher, &made);
  });
  with("matcher_fill_mask",
       [&](pawl_matcher* matcher) { return pawl_matcher_fill_mask(matcher, rows.data(), words); });
  with("matcher_accept_bytes", [&](pawl_matcher* matcher) {
    return pawl_matcher_accept_bytes(matcher, "{\"name\":\"a", 10);
  });
  with("matcher_validate_tokens", [&](pawl_matcher* matcher) {
    return pawl_matcher_validate_tokens(matcher, tokens, 2, &count);
  });
  with("matcher_is_accepting", [&](pawl_matcher* matcher) {
    return pawl_matcher_is_accepting(matcher) + pawl_matcher_is_terminated(matcher);
  });
  with("compiler_memory_bytes", [&](pawl_matcher* matcher) {
    return pawl_compiler_memory_bytes(f.compiler) > 0 && pawl_matcher_steps(matcher) == 0
               ? PAWL_OK
               : PAWL_LIMIT;
  });
  with("matcher_temperature", [&](pawl_matcher* matcher) {
    float temperature = 0;
    return pawl_matcher_temperature(matcher, &temperature);
  });
  with("matcher_forced_bytes", [&](pawl_matcher* matcher) {
    return pawl_matcher_forced_bytes(matcher, bytes, sizeof bytes, &count);
  });
  with("matcher_forced_tokens", [&](pawl_matcher* matcher) {
    return pawl_matcher_forced_tokens(matcher, tokens, 64, &count);
  });
  with("matcher_completion_tokens", [&](pawl_matcher* matcher) {
    return pawl_matcher_completion_tokens(matcher, tokens, 64, &count);
  });
  with("matcher_captures", [&](pawl_matcher* matcher) {
    Made<pawl_captures> made(pawl_captures_free);
    return pawl_matcher_captures(matcher, &made, nullptr);
  });
  with("matcher_fill_tree", [&](pawl_matcher* matcher) {
    return pawl_matcher_fill_tree(matcher, tokens, parents, 2, rows.data(), words, nullptr, nullptr,
                                  nullptr);
  });
  with("batch_fill", [&](pawl_matcher* matcher) {
    Made<pawl_batch> batch(pawl_batch_free);
    if (const pawl_status bad = pawl_batch_create(1, &batch, nullptr)) return bad;
    const pawl_matcher* const both[] = {matcher, nullptr};
    return pawl_batch_fill(batch, both, 2, rows.data(), words, nullptr);
  });
  RunsOutOfMemory("draft_tree_parents", 10, [&](pawl_error** error) {
    const int32_t next_token[] = {1, -1}, next_sibling[] = {-1, -1};
    int32_t out[2];
    return pawl_draft_tree_parents(next_token, next_sibling, 2, out, error);
  });
}

int32_t Judge(void* context, const pawl_check_question* /*question*/) {
  if (context != nullptr) throw std::runtime_error("thrown by judge");
  return PAWL_ACCEPT;
}
double Score(void* context, const pawl_check_question* /*question*/) {
  if (context != nullptr) throw std::runtime_error("thrown by score");
  return 0;
}
int OnSample(void* context, const pawl_sample* /*sample*/) {
  if (context != nullptr) throw std::runtime_error("thrown by on_sample");
  return 1;
}
int OnText(void* context, const char* /*text*/, size_t /*length*/) {
  if (context != nullptr) throw std::runtime_error("thrown by on_text");
  return 1;
}
int OnTextOfNoKind(void* /*context*/, const char* /*text*/, size_t /*length*/) { throw 7; }

// The functions of one run; where a pointer is not null the function throws.
struct Throws {
  void* judge = nullptr;
  void* score = nullptr;
  void* on_sample = nullptr;
};

pawl_status Sample(const Fixture& f, const Throws& throws, pawl_error** error) {
  Made<pawl_check> check(pawl_check_free);
  Made<pawl_critic> critic(pawl_critic_free);
  if (const auto bad = pawl_check_create(Judge, throws.judge, PAWL_CHECK_COMPLETE, &check, error))
    return bad;
  if (const auto bad = pawl_critic_create(Score, throws.score, &critic, error)) return bad;
  pawl_sampler_options options;
  pawl_sampler_options_init(&options, sizeof options);
  options.sampler = PAWL_SAMPLER_SMC;
  options.n = options.particles = 2;
  options.max_tokens = 12;
  const pawl_check* const checks[] = {check};
  options.checks = checks;
  options.check_count = 1;
  options.critic = critic;
  options.on_sample = OnSample;
  options.on_sample_context = throws.on_sample;
  Made<pawl_samples> samples(pawl_samples_free);
  return pawl_engine_sample(f.engine, &f.prompt, f.regex, &options, &samples, error);
}

pawl_status Search(const Fixture& f, const Throws& throws, pawl_error** error) {
  Made<pawl_check> check(pawl_check_free);
  Made<pawl_critic> critic(pawl_critic_free);
  if (const auto bad = pawl_check_create(Judge, throws.judge, PAWL_CHECK_COMPLETE, &check, error))
    return bad;
  if (const auto bad = pawl_critic_create(Score, throws.score, &critic, error)) return bad;
  constexpr std::string_view options = R"({"strategy":"beam","num_beams":2,"max_tokens":12})";
  const pawl_check* const checks[] = {check};
  Made<pawl_answer> answer(pawl_answer_free);
  return pawl_engine_search(f.engine, &f.prompt, f.regex, options.data(), options.size(), checks, 1,
                            critic, &answer, error);
}

pawl_status Generate(const Fixture& f, pawl_on_text on_text, void* context, pawl_error** error) {
  pawl_generate_options options;
  pawl_generate_options_init(&options, sizeof options);
  options.max_tokens = 12;
  options.on_text = on_text;
  options.on_text_context = context;
  Made<pawl_generation> made(pawl_generation_free);
  return pawl_engine_generate(f.engine, &f.prompt, f.regex, &options, &made, error);
}

void TestEngineMemory(const Fixture& f, const std::string& folder) {
  RunsOutOfMemory("engine_load", 6, [&](pawl_error** error) {
    Made<pawl_engine> made(pawl_engine_free);
    return pawl_engine_load(folder.data(), folder.size(), nullptr, &made, error);
  });
  RunsOutOfMemory("engine_vocabulary", 10, [&](pawl_error**) {
    Made<pawl_vocabulary> made(pawl_vocabulary_free);
    return pawl_engine_vocabulary(f.engine, &made);
  });
  RunsOutOfMemory("engine_extract_options", 10, [&](pawl_error**) {
    pawl_json_schema_options options;
    pawl_json_schema_options_init(&options, sizeof options);
    return pawl_engine_extract_options(f.engine, "Ann", 3, &options);
  });
  RunsOutOfMemory("engine_encode", 60, [&](pawl_error**) {
    int32_t tokens[8];
    size_t count = 0;
    return pawl_engine_encode(f.engine, "Ann Lee lives", 13, tokens, 8, &count);
  });
  RunsOutOfMemory("engine_save_drafts", 10,
                  [&](pawl_error** error) { return pawl_engine_save_drafts(f.engine, error); });
  RunsOutOfMemory("engine_generate", 30,
                  [&](pawl_error** error) { return Generate(f, OnText, nullptr, error); });
  RunsOutOfMemory("engine_sample", 30, [&](pawl_error** error) { return Sample(f, {}, error); });
  RunsOutOfMemory("engine_search", 30, [&](pawl_error** error) { return Search(f, {}, error); });
  RunsOutOfMemory("engine_score", 30, [&](pawl_error** error) {
    const int32_t tokens[] = {5, 6};
    double sum = 0;
    return pawl_engine_score(f.engine, &f.prompt, tokens, 2, 1, &sum, nullptr, error);
  });
  RunsOutOfMemory("engine_classify", 30, [&](pawl_error** error) {
    constexpr std::string_view options = R"({"choices":["red","blue"]})";
    Made<pawl_answer> answer(pawl_answer_free);
    return pawl_engine_classify(f.engine, &f.prompt, options.data(), options.size(), &answer,
                                error);
  });
  RunsOutOfMemory("check_from_grammar", 20, [&](pawl_error** error) {
    Made<pawl_check> made(pawl_check_free);
    return pawl_check_from_grammar(f.regex, PAWL_CHECK_COMPLETE, &made, error);
  });
  RunsOutOfMemory("check_from_spec", 60, [&](pawl_error** error) {
    Made<pawl_check> made(pawl_check_free);
    return pawl_check_from_spec(f.vocabulary, "regex:[a-z]+", 12, 1, 1, &made, error);
  });
  RunsOutOfMemory("critic_from_command", 20, [&](pawl_error** error) {
    Made<pawl_critic> made(pawl_critic_free);
    return pawl_critic_from_command("true", 4, 1, 1, &made, error);
  });
}

// The status is that of a bug, which such a function is, and the message that of the exception.
void Thrown(const char* wanted, const Call& call) {
  pawl_error* error = nullptr;
  const pawl_status status = call(&error);
  if (status != PAWL_INTERNAL || std::strstr(pawl_error_message(error), wanted) == nullptr) {
    std::fprintf(stderr, "'%s': %s: %s: %s\n", wanted, pawl_status_name(status),
                 pawl_error_place(error), pawl_error_message(error));
    ++failures;
  }
  pawl_error_free(error);
}

void TestThrows(const Fixture& f) {
  int something = 0;
  void* const yes = &something;
  Thrown("thrown by resolve_document",
         [&](pawl_error** error) { return CompileWithResolver(f, yes, error); });
  Thrown("thrown by on_text", [&](pawl_error** error) { return Generate(f, OnText, yes, error); });
  Thrown("of no kind",
         [&](pawl_error** error) { return Generate(f, OnTextOfNoKind, nullptr, error); });
  Thrown("thrown by judge", [&](pawl_error** error) { return Sample(f, {.judge = yes}, error); });
  Thrown("thrown by score", [&](pawl_error** error) { return Sample(f, {.score = yes}, error); });
  Thrown("thrown by on_sample",
         [&](pawl_error** error) { return Sample(f, {.on_sample = yes}, error); });
  Thrown("thrown by judge", [&](pawl_error** error) { return Search(f, {.judge = yes}, error); });
  Thrown("thrown by score", [&](pawl_error** error) { return Search(f, {.score = yes}, error); });
  // All of it works as before.
  CHECK(CompileWithResolver(f, nullptr, nullptr) == PAWL_OK);
  CHECK(Generate(f, OnText, nullptr, nullptr) == PAWL_OK);
  CHECK(Sample(f, {}, nullptr) == PAWL_OK);
  CHECK(Search(f, {}, nullptr) == PAWL_OK);
}

// What the model thinks, and a function that throws when it hears of it.
void TestThrowsOfThoughts(const char* folder) {
  pawl_engine_options given;
  pawl_engine_options_init(&given, sizeof given);
  given.chat_template = "{% for m in messages %}{{ m.content }}\n{% endfor %}((";
  given.chat_template_length = std::strlen(given.chat_template);
  given.reasoning_open = "((";
  given.reasoning_close = "))";
  Made<pawl_engine> engine(pawl_engine_free);
  CHECK(pawl_engine_load(folder, std::strlen(folder), &given, &engine, nullptr) == PAWL_OK);
  pawl_prompt prompt;
  pawl_prompt_init(&prompt, sizeof prompt);
  prompt.chat_json = R"([{"role":"user","content":"Far?"}])";
  prompt.chat_json_length = std::strlen(prompt.chat_json);
  pawl_generate_options options;
  pawl_generate_options_init(&options, sizeof options);
  options.thinking = 7;
  options.temperature = 1;
  options.on_reasoning = OnText;
  int something = 0;
  options.on_reasoning_context = &something;
  Made<pawl_vocabulary> vocabulary(pawl_vocabulary_free);
  Made<pawl_compiler> compiler(pawl_compiler_free);
  Made<pawl_grammar> grammar(pawl_grammar_free);
  CHECK(pawl_engine_vocabulary(engine, &vocabulary) == PAWL_OK);
  CHECK(pawl_compiler_create(vocabulary, nullptr, &compiler, nullptr) == PAWL_OK);
  CHECK(Compile(compiler, "regex", "(yes|no)!", &grammar, nullptr) == PAWL_OK);
  Thrown("thrown by on_text", [&](pawl_error** error) {
    Made<pawl_generation> made(pawl_generation_free);
    return pawl_engine_generate(engine, &prompt, grammar, &options, &made, error);
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  {
    const Fixture fixture(argv[1]);
    if (failures > 0) return 1;
    TestThrows(fixture);
    TestThrowsOfThoughts(argv[1]);
    TestVocabularyMemory(fixture, argv[1]);
    TestCompilerMemory(fixture);
    TestMatcherMemory(fixture);
    TestEngineMemory(fixture, argv[1]);
    TestThrows(fixture);
  }
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
