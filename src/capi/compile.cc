#include "src/base/json.h"
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

pawl_json_schema_options Defaults() {
  static const JsonSchemaOptions d;  // constant; its strings outlive the pointers to them
  pawl_json_schema_options out{};
  out.struct_size = sizeof out;
  out.order = static_cast<int32_t>(d.order);
  out.whitespace = static_cast<int32_t>(d.whitespace);
  out.max_whitespace = d.max_whitespace;
  out.assert_formats = d.assert_formats ? 1 : 0;
  out.canonical_spelling = d.canonical_spelling ? 1 : 0;
  out.ascii = d.ascii ? 1 : 0;
  out.additional_properties = d.additional_properties ? 1 : 0;
  out.allow_exponents = d.allow_exponents ? 1 : 0;
  out.profile = static_cast<int32_t>(d.profile);
  out.list_annotations = d.list_annotations ? 1 : 0;
  out.max_documents = d.max_documents;
  out.max_depth = d.max_depth;
  out.max_schema_bytes = d.max_schema_bytes;
  out.step_fuel = d.step_fuel;
  return out;
}

// The callback of C as a resolver that remembers its answers.
class Resolver {
 public:
  Resolver(pawl_resolve_document resolve, void* context, Source& source)
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
  Source& source_;
};

pawl_status ReadOptions(const pawl_json_schema_options* given, JsonSchemaOptions& out,
                        pawl_json_schema_options& read, pawl_error** error) {
  read = Defaults();
  if (const pawl_status bad = ReadStruct(given, read, error)) return bad;
  const auto enumerator = [&](int32_t value, int32_t last, const char* name) -> pawl_status {
    if (value >= 0 && value <= last) return PAWL_OK;
    return BadArgument(error, name, "must be 0.." + std::to_string(last));
  };
  const auto number = [&](int64_t value, const char* name) -> pawl_status {
    return value >= 0 ? static_cast<pawl_status>(PAWL_OK)
                      : BadArgument(error, name, "must not be negative");
  };
  const auto text = [&](const char* data, size_t length, std::string& field) {
    if (data != nullptr) field.assign(data, length);
  };
  if (pawl_status bad = enumerator(read.order, PAWL_ORDER_ANY, "order")) return bad;
  if (pawl_status bad = enumerator(read.whitespace, PAWL_WHITESPACE_ANY, "whitespace")) return bad;
  if (pawl_status bad = enumerator(read.profile, PAWL_PROFILE_STRICT, "profile")) return bad;
  if (pawl_status bad = number(read.max_whitespace, "max_whitespace")) return bad;
  if (pawl_status bad = number(read.max_documents, "max_documents")) return bad;
  if (pawl_status bad = number(read.max_depth, "max_depth")) return bad;
  if (pawl_status bad = number(read.max_schema_bytes, "max_schema_bytes")) return bad;
  if (pawl_status bad = number(read.step_fuel, "step_fuel")) return bad;
  if (read.max_depth > kMostDepth)
    return BadArgument(error, "max_depth", "must be at most " + std::to_string(kMostDepth));
  out.order = static_cast<JsonSchemaOptions::Order>(read.order);
  out.whitespace = static_cast<JsonSchemaOptions::Whitespace>(read.whitespace);
  out.profile = static_cast<JsonSchemaOptions::Profile>(read.profile);
  out.max_whitespace = read.max_whitespace;
  out.assert_formats = read.assert_formats != 0;
  out.canonical_spelling = read.canonical_spelling != 0;
  out.ascii = read.ascii != 0;
  out.additional_properties = read.additional_properties != 0;
  out.allow_exponents = read.allow_exponents != 0;
  out.list_annotations = read.list_annotations != 0;
  out.max_documents = read.max_documents;
  out.max_depth = read.max_depth;
  out.max_schema_bytes = read.max_schema_bytes;
  out.step_fuel = read.step_fuel;
  text(read.item_separator, read.item_separator_length, out.item_separator);
  text(read.key_separator, read.key_separator_length, out.key_separator);
  text(read.default_dialect, read.default_dialect_length, out.default_dialect);
  text(read.force_dialect, read.force_dialect_length, out.force_dialect);
  return PAWL_OK;
}

GrammarOptions Options(const pawl_compiler& compiler, const JsonSchemaOptions& json_schema) {
  GrammarOptions options;
  options.json_schema = json_schema;
  options.prepare_steps = compiler.prepare_steps;
  return options;
}

pawl_status Finish(const pawl_compiler& compiler, Source source, const JsonSchemaOptions& options,
                   pawl_grammar** out, pawl_error** error) {
  Result<Grammar> grammar = Compile(compiler.compiler, source, Options(compiler, options));
  if (!grammar.ok()) return Fail(error, grammar.error());
  *out = new pawl_grammar{*std::move(grammar), compiler.vocabulary, std::move(source)};
  return PAWL_OK;
}

// The strings of a JSON array.
Result<std::vector<std::string>> Strings(std::string_view text) {
  const Result<json::Value> list = json::Parse(text);
  if (!list.ok()) return list.error();
  std::vector<std::string> out;
  for (const json::Value& item : list->items) {
    if (item.type != json::Type::kString) {
      return Error{ErrorCode::kInvalid, "must be a string",
                   json::PointerJoin("#", std::to_string(out.size()))};
    }
    out.push_back(item.text);
  }
  if (list->type != json::Type::kArray)
    return Error{ErrorCode::kInvalid, "must be a JSON array of strings", "#"};
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
  return compiler == nullptr ? 0 : compiler->compiler.memory_bytes();
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
    Source source;
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
    Result<Grammar> made = Compile(compiler->compiler, source, Options(*compiler, now));
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
    Source source;
    source.kind = "choice";
    for (size_t i = 0; i < count; ++i) {
      if (!IsText(choices[i], lengths[i])) return Null(error, "choices[" + std::to_string(i) + "]");
      source.texts.emplace_back(Text(choices[i], lengths[i]));
    }
    return Finish(*compiler, std::move(source), {}, grammar, error);
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
    Result<Source> source = Deserialize(Text(bytes, length), compiler->vocabulary->fingerprint);
    if (!source.ok()) return Fail(error, source.error());
    Result<Grammar> made = CompileKept(compiler->compiler, *source,
                                       compiler->vocabulary->fingerprint, compiler->prepare_steps);
    if (!made.ok()) return Fail(error, made.error());
    *grammar = new pawl_grammar{*std::move(made), compiler->vocabulary, *std::move(source)};
    return PAWL_OK;
  });
}

}  // extern "C"
