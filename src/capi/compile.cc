// Compiling from C: the options are those of JsonSchemaOptions field by field, as the list in
// grammar/languages/option_fields.h has them; a field that the C struct lacks does not compile.
#include <type_traits>

#include "grammar/languages/option_fields.h"
#include "src/base/json_reader.h"
#include "src/capi/handles.h"

namespace pawl::capi {
namespace {

pawl_compiler_options CompilerDefaults() {
  pawl_compiler_options out{};
  out.struct_size = sizeof out;
  out.prepare_steps = GrammarOptions().prepare_steps;
  out.memory_budget = CompilerOptions().memory_budget;
  return out;
}

// Made when the library is loaded: the functions that hand it out cannot fail, and its strings
// outlive the pointers to them.
const JsonSchemaOptions kJsonSchemaDefaults;

pawl_json_schema_options Defaults() {
  const JsonSchemaOptions& d = kJsonSchemaDefaults;
  pawl_json_schema_options out{};
  out.struct_size = sizeof out;
#define PAWL_COPY(name) out.name = static_cast<decltype(out.name)>(d.name);
#define PAWL_NULL(name)  // stands for the default
  PAWL_JSON_SCHEMA_FIELDS(PAWL_COPY, PAWL_NULL)
#undef PAWL_COPY
#undef PAWL_NULL
  return out;
}

// The callback of C as a resolver that remembers its answers.
class Resolver {
 public:
  Resolver(pawl_resolve_document resolve, void* context, GrammarSource& source)
      : resolve_(resolve), context_(context), source_(source) {}

  Result<std::string> operator()(std::string_view uri) const {
    pawl_document document;
    resolve_(context_, uri.data(), uri.size(), &document);
    if (document.text) {
      source_.documents.emplace_back(uri, *document.text);
      return *std::move(document.text);
    }
    return Error{ErrorCode::kIo,
                 document.message.empty() ? "there is no such document" : document.message, ""};
  }

 private:
  pawl_resolve_document resolve_;
  void* context_;
  GrammarSource& source_;
};

pawl_status ReadOptions(const pawl_json_schema_options* given, JsonSchemaOptions& out,
                        pawl_json_schema_options& read, pawl_error** error) {
  read = Defaults();
  if (const pawl_status bad = ReadStruct(given, read, error)) return bad;
  // A choice is one of its names, a number is not negative, a flag is anything.
  const auto take = [&](const char* name, auto value, auto& field) -> pawl_status {
    using Field = std::remove_reference_t<decltype(field)>;
    if constexpr (std::is_enum_v<Field>) {
      const auto count = static_cast<int64_t>(OptionNames(field).size());
      if (value < 0 || value >= count)
        return BadArgument(error, name, "must be 0.." + std::to_string(count - 1));
      field = static_cast<Field>(value);
    } else if constexpr (std::is_same_v<Field, bool>) {
      field = value != 0;
    } else {
      if (value < 0) return BadArgument(error, name, "must not be negative");
      field = value;
    }
    return PAWL_OK;
  };
#define PAWL_TAKE(name) \
  if (const pawl_status bad = take(#name, read.name, out.name)) return bad;
#define PAWL_TAKE_TEXT(name) \
  if (read.name != nullptr) out.name.assign(read.name, read.name##_length);
  PAWL_JSON_SCHEMA_FIELDS(PAWL_TAKE, PAWL_TAKE_TEXT)
#undef PAWL_TAKE
#undef PAWL_TAKE_TEXT
  if (read.max_depth > kMostDepth)
    return BadArgument(error, "max_depth", "must be at most " + std::to_string(kMostDepth));
  return PAWL_OK;
}

GrammarOptions Options(const pawl_compiler& compiler, const JsonSchemaOptions& json_schema) {
  GrammarOptions options;
  options.json_schema = json_schema;
  options.prepare_steps = compiler.prepare_steps;
  return options;
}

pawl_status Finish(const pawl_compiler& compiler, GrammarSource source,
                   const JsonSchemaOptions& options, pawl_grammar** out, pawl_error** error) {
  Result<Grammar> grammar = CompileSource(compiler.compiler, source, Options(compiler, options));
  if (!grammar.ok()) return Fail(error, grammar.error());
  *out = new pawl_grammar{*std::move(grammar), compiler.vocabulary, std::move(source)};
  return PAWL_OK;
}

// The strings of a JSON array.
Result<std::vector<std::string>> Strings(std::string_view text) {
  const Result<json::Value> list = json::Parse(text);
  if (!list.ok()) return list.error();
  const JsonReader in(*list);
  std::vector<std::string> out;
  for (const JsonReader item : in.Array().items()) out.push_back(item.String());
  if (!in.ok()) return in.error();
  return out;
}

}  // namespace
}  // namespace pawl::capi

using namespace pawl;        // NOLINT: this file is the C face of that namespace
using namespace pawl::capi;  // NOLINT

extern "C" {

void pawl_compiler_options_init(pawl_compiler_options* options, size_t struct_size) {
  InitStruct(options, struct_size, CompilerDefaults());
}
void pawl_json_schema_options_init(pawl_json_schema_options* options, size_t struct_size) {
  InitStruct(options, struct_size, Defaults());
}

pawl_status pawl_compiler_create(const pawl_vocabulary* vocabulary,
                                 const pawl_compiler_options* options, pawl_compiler** compiler,
                                 pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (vocabulary == nullptr) return Null(error, "vocabulary");
    if (compiler == nullptr) return Null(error, "compiler");
    pawl_compiler_options read = CompilerDefaults();
    if (const pawl_status bad = ReadStruct(options, read, error)) return bad;
    CompilerOptions kept;
    kept.cached_grammars = read.cached_grammars;
    kept.memory_budget = read.memory_budget;
    *compiler = new pawl_compiler{Compiler(vocabulary->data->vocabulary, kept), vocabulary->data,
                                  read.prepare_steps};
    return PAWL_OK;
  });
}

size_t pawl_compiler_memory_bytes(const pawl_compiler* compiler) {
  size_t bytes = 0;
  (void)Guard(nullptr, [&]() -> pawl_status {
    if (compiler != nullptr) bytes = compiler->compiler.memory_bytes();
    return PAWL_OK;
  });
  return bytes;
}

void pawl_compiler_free(pawl_compiler* compiler) { delete compiler; }

pawl_status pawl_document_set_text(pawl_document* document, const char* text, size_t length) {
  return Guard(nullptr, [&]() -> pawl_status {
    if (document == nullptr || !IsText(text, length)) return PAWL_BAD_ARGUMENT;
    document->text.emplace(Text(text, length));
    return PAWL_OK;
  });
}

pawl_status pawl_document_set_error(pawl_document* document, const char* message, size_t length) {
  return Guard(nullptr, [&]() -> pawl_status {
    if (document == nullptr || !IsText(message, length)) return PAWL_BAD_ARGUMENT;
    document->text.reset();
    document->message = Text(message, length);
    return PAWL_OK;
  });
}

pawl_status pawl_compile(const pawl_compiler* compiler, const char* kind, const char* text,
                         size_t text_length, const pawl_json_schema_options* options,
                         pawl_grammar** grammar, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (compiler == nullptr) return Null(error, "compiler");
    if (kind == nullptr) return Null(error, "kind");
    if (!IsText(text, text_length)) return Null(error, "text");
    if (grammar == nullptr) return Null(error, "grammar");
    const Result<bool> takes_options = TakesOptions(kind);
    if (!takes_options.ok()) return Fail(error, takes_options.error());
    if (options != nullptr && !*takes_options)
      return BadArgument(error, "options", "must be NULL for the kind '" + std::string(kind) + "'");
    GrammarSource source;
    source.kind = kind;
    pawl_json_schema_options read{};
    if (pawl_status bad = ReadOptions(options, source.options, read, error)) return bad;
    source.texts = {std::string(Text(text, text_length))};
    if (source.kind == "choice") {
      Result<std::vector<std::string>> choices = Strings(source.texts[0]);
      if (!choices.ok()) return Fail(error, choices.error());
      source.texts = *std::move(choices);
    }
    JsonSchemaOptions now = source.options;
    source.resolves = read.resolve_document != nullptr;
    if (!source.resolves) return Finish(*compiler, std::move(source), now, grammar, error);
    // The documents arrive while the source is being compiled, so it stays where it is.
    now.resolve_document = Resolver(read.resolve_document, read.resolve_context, source);
    Result<Grammar> made = CompileSource(compiler->compiler, source, Options(*compiler, now));
    if (!made.ok()) return Fail(error, made.error());
    *grammar = new pawl_grammar{*std::move(made), compiler->vocabulary, std::move(source)};
    return PAWL_OK;
  });
}

pawl_status pawl_compile_choice(const pawl_compiler* compiler, const char* const* choices,
                                const size_t* lengths, size_t count, pawl_grammar** grammar,
                                pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (compiler == nullptr) return Null(error, "compiler");
    if (!IsText(choices, count)) return Null(error, "choices");
    if (!IsText(lengths, count)) return Null(error, "lengths");
    if (grammar == nullptr) return Null(error, "grammar");
    GrammarSource source;
    source.kind = "choice";
    for (size_t i = 0; i < count; ++i) {
      if (!IsText(choices[i], lengths[i])) return Null(error, "choices[" + std::to_string(i) + "]");
      source.texts.emplace_back(Text(choices[i], lengths[i]));
    }
    return Finish(*compiler, std::move(source), {}, grammar, error);
  });
}

pawl_status pawl_grammar_bind(const pawl_grammar* grammar, const char* text, size_t length,
                              pawl_grammar** out, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (grammar == nullptr || out == nullptr || !IsText(text, length))
      return BadArgument(error, "grammar, text, out", "must not be NULL");
    Result<Grammar> bound = grammar->grammar.Bind(Text(text, length));
    if (!bound.ok()) return Fail(error, bound.error());
    GrammarSource source = grammar->source;
    if (!grammar->grammar.unbound().empty()) {
      // Serialized bytes have the text.
      source.options.source = length == 0 ? " " : std::string(Text(text, length));
      source.options.bind_source = false;
    }
    *out = new pawl_grammar{*std::move(bound), grammar->vocabulary, std::move(source)};
    return PAWL_OK;
  });
}

void pawl_grammar_free(pawl_grammar* grammar) { delete grammar; }

size_t pawl_grammar_note_count(const pawl_grammar* grammar) {
  return grammar == nullptr ? 0 : grammar->grammar.notes().size();
}

pawl_status pawl_grammar_note(const pawl_grammar* grammar, size_t index, const char** text,
                              size_t* length) {
  if (grammar == nullptr || text == nullptr || length == nullptr) return PAWL_BAD_ARGUMENT;
  const std::vector<std::string>& notes = grammar->grammar.notes();
  if (index >= notes.size()) return PAWL_BAD_ARGUMENT;
  *text = notes[index].data();
  *length = notes[index].size();
  return PAWL_OK;
}

pawl_status pawl_grammar_serialize(const pawl_grammar* grammar, char* buffer, size_t capacity,
                                   size_t* size, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (grammar == nullptr) return Null(error, "grammar");
    if (size == nullptr) return Null(error, "size");
    const std::string bytes = Serialize(grammar->source, grammar->vocabulary->fingerprint);
    *size = bytes.size();
    if (buffer == nullptr) return PAWL_OK;
    if (capacity < bytes.size()) {
      return Fail(error, PAWL_LIMIT, "the grammar takes " + std::to_string(bytes.size()) + " bytes",
                  "capacity");
    }
    std::ranges::copy(bytes, buffer);
    return PAWL_OK;
  });
}

pawl_status pawl_grammar_deserialize(const pawl_compiler* compiler, const char* bytes,
                                     size_t length, pawl_grammar** grammar, pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (compiler == nullptr) return Null(error, "compiler");
    if (!IsText(bytes, length)) return Null(error, "bytes");
    if (grammar == nullptr) return Null(error, "grammar");
    Result<GrammarSource> source =
        Deserialize(Text(bytes, length), compiler->vocabulary->fingerprint);
    if (!source.ok()) return Fail(error, source.error());
    Result<Grammar> made = CompileKept(compiler->compiler, *source,
                                       compiler->vocabulary->fingerprint, compiler->prepare_steps);
    if (!made.ok()) return Fail(error, made.error());
    *grammar = new pawl_grammar{*std::move(made), compiler->vocabulary, *std::move(source)};
    return PAWL_OK;
  });
}

}  // extern "C"
