#include "pawl/compiler.h"

#include "grammar/cfg/cfg_machine.h"
#include "grammar/languages/ebnf.h"
#include "grammar/languages/gbnf.h"
#include "grammar/languages/lark.h"
#include "grammar/languages/substring_regex.h"
#include "grammar/regex/ecma_parser.h"
#include "grammar/regex/regex_machine.h"
#include "schemas/grammar_cache.h"
#include "schemas/machine/schema_machine.h"
#include "schemas/masks/schema_masks.h"
#include "schemas/read/schema_reader.h"
#include "schemas/read/strict_profile.h"
#include "schemas/tag/structural_tag.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

constexpr size_t kMaxSeparator = 17;  // the mark and its white space

Status CheckSeparators(const JsonSchemaOptions& options) {
  const auto good = [](const std::string& text, char mark) {
    return !text.empty() && text[0] == mark && text.size() <= kMaxSeparator &&
           text.find_first_not_of(" \t\n\r", 1) == std::string::npos;
  };
  const auto wrong = [](const char* name, const char* mark) {
    return Error{ErrorCode::kInvalid,
                 std::string("must be ") + mark + " and up to 16 characters of white space", name};
  };
  if (!good(options.item_separator, ',')) return wrong("item_separator", "','");
  if (!good(options.key_separator, ':')) return wrong("key_separator", "':'");
  if (options.whitespace != JsonSchemaOptions::Whitespace::kCompact &&
      options.item_separator.size() + options.key_separator.size() > 2) {
    return Error{ErrorCode::kInvalid, "separators with white space need compact layout",
                 "item_separator, key_separator"};
  }
  return {};
}

Error Stopped() { return {ErrorCode::kLimit, "compiling was stopped", ""}; }

// The end of a compilation: what its flag says comes before all else.
Result<Grammar> Finished(Result<Grammar> grammar, const std::shared_ptr<StopFlag>& stop) {
  if (stop == nullptr) return grammar;
  const bool stopped = grammar.ok() ? !stop->Finish() : stop->stopped();
  if (stopped) return Stopped();
  return grammar;
}

}  // namespace

Compiler::Compiler(std::shared_ptr<const Vocabulary> vocabulary, const CompilerOptions& options)
    : vocabulary_(std::move(vocabulary)), witnesses_(std::make_shared<schema::Witnesses>()) {
  if (options.cached_grammars > 0) cache_ = std::make_shared<GrammarCache>(options.cached_grammars);
}

Result<std::shared_ptr<Machine>> Compiler::SchemaMachineOf(
    std::string_view text, const JsonSchemaOptions& options,
    const std::shared_ptr<StopFlag>& stop) const {
  if (stop != nullptr && stop->stopped()) return Stopped();
  if (Status status = CheckSeparators(options); !status.ok()) return status.error();
  json::ParseLimits limits;
  limits.max_bytes = static_cast<size_t>(options.max_schema_bytes);
  // A level of schema takes up to two levels of JSON (the keyword and what it holds).
  limits.max_depth = 2 * options.max_depth + 8;
  auto document = json::Parse(text, limits);
  if (!document.ok()) return document.error();
  if (options.profile == JsonSchemaOptions::Profile::kStrict) {
    if (Status status = schema::CheckStrictProfile(*document, options); !status.ok())
      return status.error();
  }
  auto read = schema::ReadJsonSchema(*document, options);
  if (!read.ok()) return read.error();
  read->table->witnesses = witnesses_;
  read->table->spending->stop = stop;
  JsonSchemaOptions kept = options;
  kept.resolve_document = nullptr;  // the caller's; nothing asks it from here on
  auto machine = std::make_shared<schema::SchemaMachine>(std::move(read->table), kept,
                                                         &schema::MakeSchemaMasks);
  if (Status status = machine->CheckSatisfiable(); !status.ok()) return status.error();
  for (std::string& note : read->notes) machine->AddNote(std::move(note));
  return std::shared_ptr<Machine>(std::move(machine));
}

Result<Grammar> Compiler::CompileJsonSchema(std::string_view text, const JsonSchemaOptions& options,
                                            const std::shared_ptr<StopFlag>& stop) const {
  const bool cached = cache_ != nullptr && !options.resolve_document;
  const std::string key = cached ? GrammarCache::KeyOf(text, options) : "";
  if (cached) {
    if (std::optional<Grammar> known = cache_->Find(key)) return *std::move(known);
  }
  auto machine = SchemaMachineOf(text, options, stop);
  Result<Grammar> grammar =
      machine.ok() ? Grammar(*std::move(machine), vocabulary_) : Result<Grammar>(machine.error());
  grammar = Finished(std::move(grammar), stop);
  if (cached && grammar.ok()) cache_->Keep(key, *grammar);
  return grammar;
}

Result<Grammar> Compiler::CompileGrammar(std::string_view text, GrammarLanguage language,
                                         const GrammarOptions& options,
                                         const std::shared_ptr<StopFlag>& stop) const {
  if (language != GrammarLanguage::kEbnf && language != GrammarLanguage::kGbnf &&
      options.root != GrammarOptions().root && options.root != "start") {
    return Error{ErrorCode::kInvalid,
                 "is for EBNF and GBNF; the root of a Lark grammar is \"start\"", "root"};
  }
  LanguageOptions reading;
  reading.max_bytes = options.max_bytes;
  reading.max_nesting = options.max_nesting;
  reading.root = options.root;
  reading.lark_as_xgrammar = options.lark_as_xgrammar || language == GrammarLanguage::kLarkXgrammar;
  reading.json_schema = [&](std::string_view schema) -> Result<GrammarIr::Automaton> {
    auto machine = SchemaMachineOf(schema, options.json_schema, stop);
    if (!machine.ok()) return machine.error();
    return GrammarIr::Automaton{*std::move(machine), "%json " + std::string(schema)};
  };
  auto ir = [&]() -> Result<GrammarIr> {
    switch (language) {
      case GrammarLanguage::kEbnf:
        return ReadEbnf(text, reading);
      case GrammarLanguage::kGbnf:
        return ReadGbnf(text, reading);
      case GrammarLanguage::kLlguidance:
        return ReadLlguidance(text, reading);
      case GrammarLanguage::kLark:
      case GrammarLanguage::kLarkXgrammar:
        break;
    }
    return ReadLark(text, reading);
  }();
  if (!ir.ok()) return ir.error();
  auto machine = CfgMachine::Create(*ir, *vocabulary_);
  if (!machine.ok()) return machine.error();
  if (stop != nullptr && stop->stopped()) return Stopped();
  (*machine)->PrepareMasks(*vocabulary_, options.prepare_steps);
  return Finished(Grammar(*std::move(machine), vocabulary_), stop);
}

Result<Grammar> Compiler::CompileStructuralTag(std::string_view json_text,
                                               const GrammarOptions& options,
                                               const std::shared_ptr<StopFlag>& stop) const {
  const StructuralTagContext context{
      *vocabulary_, options, [&](std::string_view schema, const JsonSchemaOptions& schema_options) {
        return SchemaMachineOf(schema, schema_options, stop);
      }};
  auto ir = ReadStructuralTag(json_text, context);
  if (!ir.ok()) return Finished(ir.error(), stop);
  auto machine = CfgMachine::Create(*ir, *vocabulary_);
  if (!machine.ok()) return Finished(machine.error(), stop);
  return Finished(Grammar(*std::move(machine), vocabulary_), stop);
}

Result<Grammar> Compiler::CompileRegex(std::string_view pattern) const {
  auto arena = std::make_shared<RegexArena>();
  RegexSyntaxOptions syntax;
  syntax.search = false;
  auto regex = ParseEcma(*arena, pattern, syntax);
  if (!regex.ok()) return regex.error();
  auto machine = std::make_shared<RegexMachine>(std::move(arena), *regex);
  if (machine->Start() == Machine::kDead) {
    return Error{ErrorCode::kUnsatisfiable, "no text matches this pattern", ""};
  }
  return Grammar(std::move(machine), vocabulary_);
}

Result<Grammar> Compiler::CompileChoice(std::span<const std::string> choices) const {
  auto arena = std::make_shared<RegexArena>();
  std::vector<ReId> alternatives;
  for (size_t i = 0; i < choices.size(); ++i) {
    const size_t bad = FindInvalidUtf8(choices[i]);
    if (bad != std::string::npos) {
      return Error{ErrorCode::kInvalid, "not UTF-8",
                   "choice " + std::to_string(i + 1) + ", byte " + std::to_string(bad)};
    }
    alternatives.push_back(arena->Literal(DecodeCodepoints(choices[i])));
  }
  if (choices.empty()) return Error{ErrorCode::kInvalid, "no choices given", ""};
  const ReId regex = arena->Or(alternatives);
  return Grammar(std::make_shared<RegexMachine>(std::move(arena), regex), vocabulary_);
}

Result<Grammar> Compiler::CompileSubstring(std::string_view text, bool whole_words) const {
  if (text.size() > GrammarOptions().max_bytes)
    return Error{ErrorCode::kLimit, "the text is too long", ""};
  if (const size_t bad = FindInvalidUtf8(text); bad != std::string::npos)
    return Error{ErrorCode::kInvalid, "not UTF-8", "byte " + std::to_string(bad)};
  const auto chunks = whole_words ? ChunkWords(text) : ChunkCharacters(text);
  if (chunks.size() > kMaxSubstringChunks) {
    return Error{ErrorCode::kLimit,
                 "has " + std::to_string(chunks.size()) +
                     (whole_words ? " words and gaps" : " characters") + ", more than " +
                     std::to_string(kMaxSubstringChunks),
                 ""};
  }
  auto arena = std::make_shared<RegexArena>();
  const ReId regex = SubstringRegex(*arena, chunks);
  if (arena->overflow()) return Error{ErrorCode::kLimit, "the text is too long", ""};
  return Grammar(std::make_shared<RegexMachine>(std::move(arena), regex), vocabulary_);
}

}  // namespace pawl
