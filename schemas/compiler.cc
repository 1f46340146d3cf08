// A compiler turns texts into machines, and machines with its vocabulary into grammars. All of them
// go through a keeper, which knows how to make the machine again from the text (and from the
// documents that references led to, which are written down), since the budget of memory may drop
// it. Grammars that were used last are found again by their texts and options.
#include "pawl/compiler.h"

#include <algorithm>
#include <functional>
#include <map>

#include "grammar/cfg/cfg_machine.h"
#include "grammar/grammar_access.h"
#include "grammar/grammar_impl.h"
#include "grammar/languages/ebnf.h"
#include "grammar/languages/lark.h"
#include "grammar/languages/span_machine.h"
#include "grammar/memory_budget.h"
#include "grammar/record_filter.h"
#include "grammar/regex/ecma_parser.h"
#include "grammar/regex/regex_machine.h"
#include "grammar/tags/structural_tag.h"
#include "grammar/vocabulary_tables.h"
#include "schemas/grammar_cache.h"
#include "schemas/limits.h"
#include "schemas/machine/schema_machine.h"
#include "schemas/masks/schema_masks.h"
#include "schemas/read/schema_reader.h"
#include "src/base/failure.h"
#include "src/base/stop_scope.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

Status CheckSeparators(const JsonSchemaOptions& options) {
  const auto good = [](const std::string& text, char mark) {
    return !text.empty() && text[0] == mark && text.size() <= limits::kSeparatorBytes &&
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

// The documents that references have led to, so that the machine can be made again without asking
// for them.
using Documents = std::map<std::string, Result<std::string>, std::less<>>;

JsonSchemaOptions& SchemaOptionsOf(JsonSchemaOptions& options) { return options; }
JsonSchemaOptions& SchemaOptionsOf(GrammarOptions& options) { return options.json_schema; }

// Asks as `options` says, and writes down the answers.
template <typename Options>
Options Recording(Options options, const std::shared_ptr<Documents>& answers) {
  auto& resolve = SchemaOptionsOf(options).resolve_document;
  if (!resolve) return options;
  resolve = [asked = resolve, answers](std::string_view uri) {
    return answers->emplace(std::string(uri), asked(uri)).first->second;
  };
  return options;
}

template <typename Options>
Options Replaying(Options options, const std::shared_ptr<const Documents>& answers) {
  auto& resolve = SchemaOptionsOf(options).resolve_document;
  if (!resolve) return options;
  resolve = [answers](std::string_view uri) -> Result<std::string> {
    const auto found = answers->find(uri);
    if (found == answers->end()) return Error{ErrorCode::kInternal, "was not asked for before", ""};
    return found->second;
  };
  return options;
}

size_t BytesOf(const Documents& documents) {
  size_t sum = 0;
  for (const auto& [uri, text] : documents) sum += uri.size() + (text.ok() ? text->size() : 0);
  return sum;
}

using MachineResult = Result<std::shared_ptr<Machine>>;

// The formats that schemas over a vocabulary have asked for live as long as it does.
struct Formats : FormatCache {
  explicit Formats(const Vocabulary&) {}
};

// What compilations have in addition to their texts and options.
struct Context {
  std::shared_ptr<const Vocabulary> vocabulary;
  std::shared_ptr<schema::Witnesses> witnesses;
  std::shared_ptr<MemoryBudget> budget;  // of what checking finds of a schema; see GrowthWatch
  std::shared_ptr<StopFlag> stop;        // nullptr: never stopped
  // Of schemas inside grammars: pointers of a field that is copied from JsonSchemaOptions::source,
  // and of one that waits for its text.
  struct Fields {
    std::string bound, waiting;
  };
  std::shared_ptr<Fields> copied = nullptr;
  // Schemas inside grammars for which the text has no spans are no error: they fit nothing.
  bool drops = false;
  bool stopped() const { return stop != nullptr && stop->stopped(); }
  // For making the machine again.
  Context Unstopped() const { return {vocabulary, witnesses, budget, nullptr, nullptr, drops}; }
};

// A record is made of a whole text.
Status CheckKeysInside(const JsonSchemaOptions& options) {
  if (options.keys == JsonSchemaOptions::Keys::kRequired) return {};
  return Error{ErrorCode::kUnsupported, "must be \"required\" for schemas inside a grammar",
               "keys"};
}

Error StoppedError() { return {ErrorCode::kLimit, "compiling was stopped", ""}; }

// What compiling a schema accepts as JSON.
Result<json::Value> ParseSchema(std::string_view text, const JsonSchemaOptions& options) {
  json::ParseLimits limits;
  limits.max_bytes = static_cast<size_t>(options.max_schema_bytes);
  // A level of schema takes up to two levels of JSON (the keyword and what it holds).
  limits.max_depth = 2 * options.max_depth + 8;
  return json::Parse(text, limits);
}

MachineResult SchemaMachineFrom(const json::Value& document, const JsonSchemaOptions& options,
                                const Context& context);

// Whether some text has what the schema copies.
bool FitsSomeText(const json::Value& document, JsonSchemaOptions options, Context context) {
  options.source.clear();
  options.bind_source = true;
  context.copied = nullptr;
  return SchemaMachineFrom(document, options, context).ok();
}

MachineResult SchemaMachineFrom(const json::Value& document, const JsonSchemaOptions& options,
                                const Context& context) {
  if (options.profile == JsonSchemaOptions::Profile::kStrict) {
    if (Status status = schema::CheckStrictProfile(document, options); !status.ok())
      return status.error();
  }
  auto read = schema::ReadJsonSchema(document, options, &TableOf<Formats>(*context.vocabulary));
  if (!read.ok()) return read.error();
  read->table->witnesses = context.witnesses;
  read->table->spending->stop = context.stop;
  JsonSchemaOptions kept = options;
  kept.resolve_document = nullptr;  // the caller's; nothing asks it from here on
  auto machine = std::make_shared<schema::SchemaMachine>(std::move(read->table), kept,
                                                         &schema::MakeSchemaMasks);
  const GrowthWatch watch(*machine, machine->GrowthHint(), *context.budget);
  if (Status status = machine->CheckSatisfiable(); !status.ok()) {
    const bool dropped = context.drops && status.error().code == ErrorCode::kUnsatisfiable &&
                         !machine->BoundField().empty() && FitsSomeText(document, options, context);
    if (!dropped) return status.error();
  }
  for (std::string& note : read->notes) machine->AddNote(std::move(note));
  machine->set_object_unions(read->has_object_unions);
  if (context.copied != nullptr) {
    Context::Fields& fields = *context.copied;
    if (fields.bound.empty()) fields.bound = machine->BoundField();
    if (fields.waiting.empty()) fields.waiting = machine->UnboundField();
  }
  return std::shared_ptr<Machine>(std::move(machine));
}

MachineResult SchemaMachineOf(std::string_view text, const JsonSchemaOptions& options,
                              const Context& context) {
  if (context.stopped()) return StoppedError();
  if (Status status = CheckSeparators(options); !status.ok()) return status.error();
  const Result<json::Value> document = ParseSchema(text, options);
  if (!document.ok()) return document.error();
  return SchemaMachineFrom(*document, options, context);
}

MachineResult GrammarMachineOf(std::string_view text, GrammarLanguage language,
                               const GrammarOptions& options, const Context& shared) {
  const Vocabulary& vocabulary = *shared.vocabulary;
  const JsonSchemaOptions& inside = options.json_schema;
  LanguageOptions reading;
  reading.max_bytes = options.max_bytes;
  reading.max_nesting = options.max_nesting;
  reading.root = options.root;
  reading.lark_as_xgrammar = options.lark_as_xgrammar || language == GrammarLanguage::kLarkXgrammar;
  reading.json_schema = [&](std::string_view schema) -> Result<GrammarIr::Automaton> {
    if (Status status = CheckKeysInside(inside); !status.ok()) return status.error();
    auto machine = SchemaMachineOf(schema, inside, shared);
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
  auto machine = CfgMachine::Create(*ir, vocabulary);
  if (!machine.ok()) return machine.error();
  if (shared.stopped()) return StoppedError();
  (*machine)->PrepareMasks(vocabulary, options.prepare_steps);
  return std::shared_ptr<Machine>(*std::move(machine));
}

MachineResult TagMachineOf(std::string_view json_text, const GrammarOptions& options,
                           const Context& shared) {
  const Vocabulary& vocabulary = *shared.vocabulary;
  const StructuralTagContext context{
      vocabulary, options,
      [&](std::string_view schema, const JsonSchemaOptions& schema_options) -> MachineResult {
        if (Status status = CheckKeysInside(schema_options); !status.ok()) return status.error();
        return SchemaMachineOf(schema, schema_options, shared);
      }};
  auto ir = ReadStructuralTag(json_text, context);
  if (!ir.ok()) return ir.error();
  auto machine = CfgMachine::Create(*ir, vocabulary);
  if (!machine.ok()) return machine.error();
  return std::shared_ptr<Machine>(*std::move(machine));
}

MachineResult RegexMachineOf(std::string_view pattern) {
  auto arena = std::make_shared<RegexArena>();
  auto regex = ParseEcma(*arena, pattern, {.search = false});
  if (!regex.ok()) return regex.error();
  auto machine = std::make_shared<RegexMachine>(std::move(arena), *regex);
  if (machine->Start() == Machine::kDead) {
    return Error{ErrorCode::kUnsatisfiable, "no text matches this pattern", ""};
  }
  return std::shared_ptr<Machine>(std::move(machine));
}

MachineResult ChoiceMachineOf(std::span<const std::string> choices) {
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
  return std::shared_ptr<Machine>(std::make_shared<RegexMachine>(std::move(arena), regex));
}

MachineResult SubstringMachineOf(std::string_view text, bool whole_words) {
  if (text.size() > GrammarOptions().max_bytes)
    return Error{ErrorCode::kLimit, "the text is too long", ""};
  if (const size_t bad = FindInvalidUtf8(text); bad != std::string::npos)
    return Error{ErrorCode::kInvalid, "not UTF-8", "byte " + std::to_string(bad)};
  return std::shared_ptr<Machine>(
      std::make_shared<SpanMachine>(text, whole_words ? SpanKind::kSpan : SpanKind::kChars));
}

// A grammar of the machine that `make` made, and makes again after the budget was spent. What
// `stop` says comes before all else.
template <typename Make>
Result<Grammar> Keep(MachineResult machine, const std::shared_ptr<const Vocabulary>& vocabulary,
                     const std::shared_ptr<MemoryBudget>& budget, size_t source_bytes, Make make,
                     const std::shared_ptr<StopFlag>& stop = nullptr) {
  if (stop != nullptr && !(machine.ok() ? stop->Finish() : !stop->stopped())) return StoppedError();
  if (!machine.ok()) return machine.error();
  MachineMaker again = [make = std::move(make)]() -> LockedMachine {
    MachineResult made = make();
    if (!made.ok()) return {};
    return {*std::move(made), std::make_shared<MachineLock>()};
  };
  return GrammarAccess::New(*std::move(machine), vocabulary, budget, std::move(again),
                            source_bytes);
}

// The same where `make` reads a text under options, whose references may lead to other documents.
template <typename Options, typename Make>
Result<Grammar> KeepRead(std::string_view text, const Options& options, const Context& context,
                         const std::shared_ptr<MemoryBudget>& budget, Make make) {
  const auto documents = std::make_shared<Documents>();
  auto machine = [&]() -> MachineResult {
    const StopScope scope(context.stop.get());
    try {
      return make(text, Recording(options, documents), context);
    } catch (const Stopped&) {
      if (!context.stopped()) throw;  // the scope around this one
      return StoppedError();
    }
  }();
  return Keep(
      std::move(machine), context.vocabulary, budget, text.size() + BytesOf(*documents),
      [source = std::string(text), kept = Replaying(options, documents),
       again = context.Unstopped(), make] { return make(source, kept, again); },
      context.stop);
}

// What is half made when memory runs out is dropped.
template <typename Compile>
Result<Grammar> WithinMemory(const Compile& compile) {
  try {
    return compile();
  } catch (const std::bad_alloc&) {
    return CurrentFailure();
  }
}

// The grammar of the key from the cache, where there is one, or what `compile` makes.
template <typename Compile>
Result<Grammar> Kept(GrammarCache* cache, std::string_view kind, std::span<const std::string> texts,
                     const GrammarOptions& options, const Compile& compile,
                     const std::shared_ptr<StopFlag>& stop = nullptr) {
  return WithinMemory([&]() -> Result<Grammar> {
    if (cache == nullptr || options.json_schema.resolve_document) return compile();
    return cache->Get(GrammarKeyOf(kind, texts, options), compile, stop);
  });
}
template <typename Compile>
Result<Grammar> Kept(GrammarCache* cache, std::string_view kind, std::string_view text,
                     const GrammarOptions& options, const Compile& compile,
                     const std::shared_ptr<StopFlag>& stop = nullptr) {
  const std::string one(cache == nullptr ? "" : text);
  return Kept(cache, kind, std::span(&one, 1), options, compile, stop);
}

// What `compile` makes under the options; where nothing fits because objects are closed, and the
// options say so, under open ones. `opened`, if not nullptr: that they are.
template <typename Compile>
Result<Grammar> OpenedIfUnsatisfiable(const GrammarOptions& options, const Compile& compile,
                                      bool* opened = nullptr) {
  Result<Grammar> closed = compile(options);
  const JsonSchemaOptions& json = options.json_schema;
  if (json.additional_properties || !json.open_if_unsatisfiable) return closed;
  const bool nothing_fits = closed.ok() ? closed->Start().completion_length() < 0
                                        : closed.error().code == ErrorCode::kUnsatisfiable;
  if (!nothing_fits) return closed;
  GrammarOptions open = options;
  open.json_schema.additional_properties = true;
  Result<Grammar> grammar = compile(open);
  if (!grammar.ok()) return closed;
  // A schema that is too large to tell is so in either form.
  if (closed.ok() && grammar->Start().completion_length() < 0) return closed;
  if (opened != nullptr) *opened = true;
  GrammarAccess::AddNotes(*grammar,
                          {"#: no value fits with closed objects, so additional keys are allowed"});
  return grammar;
}

// A grammar with schemas inside, whose fields may be copied from a text. Where that comes later,
// `again` makes the grammar of a text under the options.
template <typename Make, typename CompileAgain>
Result<Grammar> KeepCopying(std::string_view text, const GrammarOptions& options, Context context,
                            Make make, CompileAgain again) {
  context.copied = std::make_shared<Context::Fields>();
  bool opened = false;
  const auto compile = [&] {
    return OpenedIfUnsatisfiable(
        options,
        [&](const GrammarOptions& asked) {
          return KeepRead(text, asked, context, context.budget, make);
        },
        &opened);
  };
  context.drops = true;
  Result<Grammar> grammar = compile();
  if (!grammar.ok() && grammar.error().code == ErrorCode::kUnsatisfiable &&
      !context.copied->bound.empty()) {
    // Nothing is left. The first field without a span says why.
    context.drops = false;
    if (Result<Grammar> strict = compile(); !strict.ok()) return strict;
  }
  if (!grammar.ok()) return grammar;
  if (!context.copied->bound.empty()) GrammarAccess::SetBound(*grammar, context.copied->bound);
  if (context.copied->waiting.empty()) return grammar;
  GrammarOptions bound = options;
  bound.json_schema.bind_source = false;
  bound.json_schema.open_if_unsatisfiable = false;
  bound.json_schema.additional_properties = options.json_schema.additional_properties || opened;
  GrammarAccess::SetBinder(
      *grammar,
      [bound, again, grammar_text = std::string(text)](std::string_view source) {
        GrammarOptions with = bound;
        with.json_schema.source = source.empty() ? " " : source;
        return again(grammar_text, with);
      },
      context.copied->waiting);
  return grammar;
}

// A schema that is compiled again and again.
struct Parsed {
  std::string text;
  json::Value document;
};

Result<Grammar> ReadParsed(const std::shared_ptr<const Parsed>& schema,
                           const JsonSchemaOptions& options, const Context& context) {
  return WithinMemory([&] {
    return KeepRead(
        "", options, context, context.budget,
        [schema](std::string_view, const JsonSchemaOptions& reading, const Context& with) {
          return SchemaMachineFrom(schema->document, reading, with);
        });
  });
}

// Those of `all` that are not among `some`.
std::vector<std::string> Without(std::vector<std::string> all,
                                 const std::vector<std::string>& some) {
  std::erase_if(all,
                [&](const std::string& one) { return std::ranges::find(some, one) != some.end(); });
  return all;
}

}  // namespace

Compiler::Compiler(std::shared_ptr<const Vocabulary> vocabulary, const CompilerOptions& options)
    : vocabulary_(std::move(vocabulary)),
      budget_(std::make_shared<MemoryBudget>(options.memory_budget)),
      witnesses_(std::make_shared<schema::Witnesses>()) {
  if (options.cached_grammars > 0) cache_ = std::make_shared<GrammarCache>(options.cached_grammars);
}

size_t Compiler::memory_bytes() const { return budget_->Measure(); }
void Compiler::FreeUnused() const { budget_->FreeUnused(); }

Result<Grammar> Compiler::CompileJsonSchema(std::string_view text, const JsonSchemaOptions& options,
                                            const std::shared_ptr<StopFlag>& stop) const {
  GrammarOptions all;
  all.json_schema = options;
  const auto read = [&](const JsonSchemaOptions& reading) {
    return KeepRead(text, reading, {vocabulary_, witnesses_, budget_, stop}, budget_,
                    &SchemaMachineOf);
  };
  const auto compile_one = [&](const GrammarOptions& asked) -> Result<Grammar> {
    if (asked.json_schema.keys == JsonSchemaOptions::Keys::kRequired)
      return read(asked.json_schema);
    // The schema as it was given tells what is wrong with it, and which nulls a record has.
    JsonSchemaOptions as_given = asked.json_schema;
    as_given.keys = JsonSchemaOptions::Keys::kRequired;
    Result<Grammar> given = read(as_given);
    if (!given.ok()) return given;
    Result<Grammar> grammar = read(asked.json_schema);
    if (!grammar.ok()) {
      if (stop != nullptr && stop->stopped()) return grammar;
      GrammarAccess::AddNotes(*given, {"#: keys: stay optional: " + grammar.error().ToString()});
      return given;
    }
    const auto machine =
        std::static_pointer_cast<schema::SchemaMachine>(GrammarAccess::Of(*grammar).machine);
    GrammarAccess::SetRecordKeys(*grammar, std::make_shared<const RecordKeys>(RecordKeys{
                                               *std::move(given), machine->has_object_unions()}));
    return grammar;
  };
  const auto compile = [&]() -> Result<Grammar> {
    bool opened = false;
    Result<Grammar> grammar = OpenedIfUnsatisfiable(all, compile_one, &opened);
    if (!grammar.ok() || (!options.bind_source && options.source.empty())) return grammar;
    const auto machine =
        std::static_pointer_cast<schema::SchemaMachine>(GrammarAccess::Of(*grammar).machine);
    if (std::string field = machine->BoundField(); !field.empty())
      GrammarAccess::SetBound(*grammar, std::move(field));
    const bool prefers = options.bind_source &&
                         options.verbatim == JsonSchemaOptions::Verbatim::kNone &&
                         !options.resolve_document;
    if (machine->UnboundField().empty() && !prefers) return grammar;
    Compiler again = *this;
    again.cache_ = nullptr;  // which may hold this grammar
    JsonSchemaOptions bound = options;
    bound.bind_source = false;
    bound.open_if_unsatisfiable = false;
    bound.additional_properties = options.additional_properties || opened;
    Result<json::Value> document = ParseSchema(text, bound);
    if (!document.ok()) return document.error();
    const auto parsed =
        std::make_shared<const Parsed>(Parsed{std::string(text), *std::move(document)});
    if (prefers) {
      JsonSchemaOptions copied = bound;
      copied.verbatim = JsonSchemaOptions::Verbatim::kAll;
      if (GrammarAccess::RecordKeysOf(*grammar) == nullptr)
        copied.keys = JsonSchemaOptions::Keys::kRequired;
      GrammarAccess::SetCopier(
          *grammar, [copied, parsed, context = Context{vocabulary_, witnesses_, budget_, nullptr}](
                        std::string_view source) {
            JsonSchemaOptions with = copied;
            with.source = source.empty() ? " " : source;
            return ReadParsed(parsed, with, context);
          });
    }
    if (machine->UnboundField().empty()) return grammar;
    GrammarAccess::SetBinder(
        *grammar,
        [again, bound, parsed, keys = GrammarAccess::RecordKeysOf(*grammar),
         notes = grammar->notes(), field = machine->UnboundField(),
         context = Context{vocabulary_, witnesses_, budget_, nullptr}](std::string_view source) {
          JsonSchemaOptions with = bound;
          // A text of white space has no spans, as an empty one.
          with.source = source.empty() ? " " : source;
          if (keys == nullptr) with.keys = JsonSchemaOptions::Keys::kRequired;
          Result<Grammar> made = ReadParsed(parsed, with, context);
          if (!made.ok())
            return keys == nullptr ? made : again.CompileJsonSchema(parsed->text, with);
          // What a record leaves out is the same for all texts.
          GrammarAccess::SetRecordKeys(*made, keys);
          GrammarAccess::SetBound(*made, field);
          GrammarAccess::AddNotes(*made, Without(notes, made->notes()));
          return made;
        },
        machine->UnboundField());
    return grammar;
  };
  return Kept(cache_.get(), "json_schema", text, all, compile, stop);
}

Result<Grammar> Compiler::CompileGrammar(std::string_view text, GrammarLanguage language,
                                         const GrammarOptions& options,
                                         const std::shared_ptr<StopFlag>& stop) const {
  if (language != GrammarLanguage::kEbnf && language != GrammarLanguage::kGbnf &&
      options.root != GrammarOptions().root && options.root != "start") {
    return Error{ErrorCode::kInvalid,
                 "is for EBNF and GBNF; the root of a Lark grammar is \"start\"", "root"};
  }
  const auto read = [language](std::string_view source, const GrammarOptions& reading,
                               const Context& context) {
    return GrammarMachineOf(source, language, reading, context);
  };
  return Kept(
      cache_.get(), "grammar " + std::to_string(static_cast<int>(language)), text, options,
      [&] {
        Compiler again = *this;
        again.cache_ = nullptr;  // which may hold this grammar
        return KeepCopying(
            text, options, {vocabulary_, witnesses_, budget_, stop}, read,
            [again, language](const std::string& source, const GrammarOptions& with) {
              return again.CompileGrammar(source, language, with);
            });
      },
      stop);
}

Result<Grammar> Compiler::CompileStructuralTag(std::string_view json_text,
                                               const GrammarOptions& options,
                                               const std::shared_ptr<StopFlag>& stop) const {
  return Kept(
      cache_.get(), "structural_tag", json_text, options,
      [&] {
        Compiler again = *this;
        again.cache_ = nullptr;  // which may hold this grammar
        return KeepCopying(json_text, options, {vocabulary_, witnesses_, budget_, stop},
                           &TagMachineOf,
                           [again](const std::string& source, const GrammarOptions& with) {
                             return again.CompileStructuralTag(source, with);
                           });
      },
      stop);
}

Result<Grammar> Compiler::CompileRegex(std::string_view pattern) const {
  return Kept(cache_.get(), "regex", pattern, {}, [&] {
    return Keep(RegexMachineOf(pattern), vocabulary_, budget_, pattern.size(),
                [source = std::string(pattern)] { return RegexMachineOf(source); });
  });
}

Result<Grammar> Compiler::CompileChoice(std::span<const std::string> choices) const {
  return Kept(cache_.get(), "choice", choices, {}, [&] {
    size_t bytes = 0;
    for (const std::string& choice : choices) bytes += sizeof(choice) + choice.size();
    return Keep(ChoiceMachineOf(choices), vocabulary_, budget_, bytes,
                [source = std::vector<std::string>(choices.begin(), choices.end())] {
                  return ChoiceMachineOf(source);
                });
  });
}

Result<Grammar> Compiler::CompileSubstring(std::string_view text, bool whole_words) const {
  return Kept(cache_.get(), whole_words ? "substring of words" : "substring", text, {}, [&] {
    return Keep(SubstringMachineOf(text, whole_words), vocabulary_, budget_, text.size(),
                [source = std::string(text), whole_words] {
                  return SubstringMachineOf(source, whole_words);
                });
  });
}

}  // namespace pawl
