// `pawl schema`: proposes a JSON Schema from records, and says what one of them leaves to the model
// or does not enforce.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/cli/command.h"
#include "src/cli/engine.h"
#include "src/cli/options.h"
#include "src/engine/schema_infer.h"

namespace pawl::cli {
namespace {

constexpr const char* kSchemaInfer = "schema infer";
constexpr const char* kSchemaCheck = "schema check";

// A record by itself, or {"text": ..., "record": ...} as --examples has them.
Status AddExampleLine(const std::string& line, SchemaInference& seen) {
  const Result<json::Value> value = json::Parse(line);
  if (!value.ok()) return value.error();
  const json::Value* const record = value->Find("record");
  const json::Value* const text = value->Find("text");
  const bool pair = record != nullptr && text != nullptr && text->type == json::Type::kString;
  seen.Add(pair ? *record : *value, pair ? std::string_view(text->text) : std::string_view());
  return {};
}

int InferSchema(const std::string& file) {
  Result<LineReader> input = LineReader::Open(file);
  if (!input.ok()) return Fail(kSchemaInfer, input.error());
  SchemaInference seen;
  int number = 0, records = 0;
  for (;;) {
    Result<std::optional<std::string>> line = input->Next();
    if (!line.ok()) return Fail(kSchemaInfer, line.error());
    if (!line->has_value()) break;
    ++number;
    if ((*line)->find_first_not_of(" \t\r") == std::string::npos) continue;
    if (Status status = AddExampleLine(**line, seen); !status.ok()) {
      return Fail(kSchemaInfer,
                  InFile(fmt::format("{}: line {}", file == "-" ? "standard input" : file, number),
                         status.error()));
    }
    ++records;
  }
  if (records == 0) {
    return Fail(kSchemaInfer, Error{ErrorCode::kInvalid, "has no records",
                                    file == "-" ? "standard input" : file});
  }
  Print(seen.Schema() + "\n");
  return kExitOk;
}

// What the compiler says comes first: a schema that it refuses is checked no further.
int CheckSchema(GrammarFlags grammar, const std::string& tokenizer) {
  grammar.annotations = true;
  grammar.bind_source = true;
  Result<std::string> schema = grammar.ReadSchema();
  if (!schema.ok()) return Fail(kSchemaCheck, schema.error());
  grammar.schema_text = *schema;
  const Result<ModelText> text = LoadText(kSchemaCheck, tokenizer);
  if (!text.ok()) return Fail(kSchemaCheck, text.error());
  const Result<Grammar> compiled = grammar.Compile(text->vocabulary);
  if (!compiled.ok()) return Fail(kSchemaCheck, compiled.error());
  const int shortest = compiled->Start().completion_length();
  for (const std::string& note : compiled->notes()) Print(note + "\n");
  const Result<json::Value> tree = json::Parse(*schema);
  if (tree.ok()) {
    for (const std::string& remark : SchemaRemarks(*tree)) Print(remark + "\n");
  }
  if (shortest < 0) {
    return Fail(kSchemaCheck,
                Error{ErrorCode::kLimit,
                      "is too large to tell whether a value fits: none was found within the limits "
                      "(64 KiB of text), so extract refuses it",
                      grammar.schema_file + ": #"});
  }
  Print(fmt::format("the shortest value takes {} tokens of the model\n", shortest));
  return kExitOk;
}

}  // namespace

void AddSchema(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("schema", "Propose a JSON Schema, or look through one");
  command->require_subcommand(1);
  command->footer("Example:\n  pawl schema check schemas/examples/invoice.json");
  CLI::App* infer = command->add_subcommand(
      "infer", "Print a schema that fits the records of a file, to be read and changed");
  const auto file = std::make_shared<std::string>();
  infer
      ->add_option("file", *file,
                   "Lines of records, or of {\"text\": ..., \"record\": ...}; -: standard input")
      ->type_name("FILE")
      ->required();
  infer->footer("Example:\n  pawl schema infer records.jsonl > schema.json");
  infer->callback([file, &action] { action = [file] { return InferSchema(*file); }; });

  struct CheckFlags {
    GrammarFlags grammar{LayoutFlags::ForExtract()};
    std::string tokenizer, file;
  };
  CLI::App* check = command->add_subcommand(
      "check", "Say what of a schema is not enforced, is left to the model, or costs much");
  const auto flags = std::make_shared<CheckFlags>();
  check->add_option("file", flags->file, "The same as --schema")
      ->type_name("FILE")
      ->check(NotEmpty);
  flags->grammar.AddSchemaTo(check);
  check->get_option("file")->excludes("--schema");
  TextOption(check, "--tokenizer", flags->tokenizer, "PATH", kTokenizerHelp);
  check->footer("Example:\n  pawl schema check schema.json");
  check->callback([flags, &action] {
    if (!flags->file.empty()) flags->grammar.schema_file = flags->file;
    if (flags->grammar.schema_file.empty()) throw CLI::RequiredError("file");
    action = [flags] { return CheckSchema(flags->grammar, flags->tokenizer); };
  });
}

}  // namespace pawl::cli
