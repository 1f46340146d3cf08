// Options that several subcommands share.
#include "src/cli/options.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "grammar/languages/option_fields.h"
#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/cli/command.h"
#include "src/cli/documents.h"

namespace pawl::cli {

std::string NotEmpty(const std::string& text) { return text.empty() ? "is empty" : ""; }

CLI::Validator WholeNumber(uint64_t least, uint64_t most) {
  // Rewrites the text: CLI11 would read 010 as eight, and put the largest number that there is in
  // place of a larger one.
  return CLI::Validator(
      [least, most](std::string& text) {
        uint64_t value = 0;
        const char* end = text.data() + text.size();
        const auto [read, error] = std::from_chars(text.data(), end, value);
        if (read == end && error == std::errc() && value >= least && value <= most) {
          text = std::to_string(value);
          return std::string();
        }
        return fmt::format("must be a whole number from {} to {}, not {}", least, most,
                           json::Quote(text));
      },
      "");
}

namespace {

// What says something about JSON Schemas only.
constexpr const char* kSchemaOptions[] = {
    "--whitespace", "--order", "--spelling", "--separators", "--ascii",   "--additional-properties",
    "--keys",       "--nulls", "--ref-dir",  "--ref-base",   "--profile", "--annotations",
    "--verbatim",   "--source"};

// nullopt for what is no number, and for numbers beyond those of a float.
std::optional<double> ParseFinite(const std::string& text) {
  // strtod would read 0x10, too.
  if (text.find_first_not_of("+-.0123456789eE") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const bool whole = !text.empty() && end == text.c_str() + text.size();
  // Written so that NaN fails the comparison.
  const bool finite = std::abs(value) <= std::numeric_limits<float>::max();
  return whole && finite ? std::optional(value) : std::nullopt;
}

}  // namespace

CLI::Validator FiniteNumber() {
  return CLI::Validator(
      [](std::string& text) {
        if (ParseFinite(text).has_value()) return std::string();
        return fmt::format("must be a finite number, not {}", json::Quote(text));
      },
      "");
}

CLI::Validator FiniteNumber(double least, double most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        const std::optional<double> value = ParseFinite(text);
        if (value.has_value() && *value >= least && *value <= most) return std::string();
        return fmt::format("must be a number from {} to {}, not {}", least, most,
                           json::Quote(text));
      },
      "");
}

LayoutFlags LayoutFlags::Of(std::string whitespace, std::string order, std::string spelling) {
  LayoutFlags flags;
  flags.whitespace = std::move(whitespace);
  flags.order = std::move(order);
  flags.spelling = std::move(spelling);
  return flags;
}

// A name of a choice of JsonSchemaOptions.
template <typename Choice>
static CLI::IsMember OneOf() {
  const auto names = OptionNames(Choice());
  return CLI::IsMember(std::vector<std::string>(names.begin(), names.end()));
}

LayoutFlags LayoutFlags::ForExtract() {
  LayoutFlags flags = ForWriting();
  flags.additional_properties = "forbid";
  flags.keys = "all";
  return flags;
}

void LayoutFlags::AddTo(CLI::App* command) {
  // Copies of these flags are parsed, so what was asked for is kept with them.
  const auto asking = [this](const char* name) {
    return [this, name](const std::string&) { asked.insert(name); };
  };
  command
      ->add_option("--whitespace", whitespace,
                   "White space between the tokens of JSON: compact (none), bounded, any")
      ->check(OneOf<JsonSchemaOptions::Whitespace>())
      ->each(asking("whitespace"))
      ->capture_default_str();
  command
      ->add_option("--order", order,
                   "Order of properties: schema (as they stand in the schema), any")
      ->check(OneOf<JsonSchemaOptions::Order>())
      ->capture_default_str();
  command
      ->add_option("--spelling", spelling,
                   "Spelling of strings and numbers: canonical (escapes only where needed, no "
                   "exponents, integers without fraction), any")
      ->check(CLI::IsMember({"canonical", "any"}))
      ->capture_default_str();
  command
      ->add_option("--separators", separators,
                   "What stands between items and between key and value when --whitespace is "
                   "compact, for example ', ' ': '")
      ->expected(2)
      ->allow_extra_args(false)  // the files of validate may follow
      ->type_name("ITEM KEY")
      ->each(asking("separators"))
      ->delimiter('\0');
  command
      ->add_option("--max-digits", max_digits,
                   "Significant digits of a number in canonical spelling, more where the schema "
                   "asks for them; 0: any")
      ->check(WholeNumber(0, kMostCount))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--max-decimals", max_decimals,
                   "The same of the decimals of seconds, in times and date-times")
      ->check(WholeNumber(0, kMostCount))
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--max-string", max_string,
                   "Characters of a string to which the schema sets no end, more where it asks for "
                   "them; 0: any (default: extract: 256, or as many as the text has; else: any)")
      ->check(WholeNumber(0, kMostCount))
      ->type_name("N");
  command->add_flag("--ascii", ascii, "Write what is not ASCII as \\uXXXX");
  command
      ->add_option("--additional-properties", additional_properties,
                   "Keys that the schema does not speak of, where it does not say: allow, forbid")
      ->check(CLI::IsMember({"allow", "forbid"}))
      ->each(asking("additional_properties"))
      ->capture_default_str();
  command
      ->add_option("--keys", keys,
                   "Keys that may be left out: all (each is written, as null where there is "
                   "nothing; such keys are not part of the record), required (as the schema has "
                   "them)")
      ->check(OneOf<JsonSchemaOptions::Keys>())
      ->each(asking("keys"))
      ->capture_default_str();
  command
      ->add_option("--nulls", nulls,
                   "null for a key that may be left out, where the schema takes it: keep, drop")
      ->check(OneOf<JsonSchemaOptions::Nulls>())
      ->each(asking("nulls"))
      ->capture_default_str();
  command
      ->add_option("--verbatim", verbatim,
                   "Strings without enum, const and format are spans of the text; all: numbers, "
                   "dates and formats such as email as well (docs/extraction.md)")
      ->expected(0, 1)
      ->check(CLI::IsMember({"strings", "all"}))
      ->default_str("strings");  // where nothing follows
}

void LayoutFlags::FillIn(const JsonSchemaOptions& defaults) {
  if (!asked.contains("whitespace") && !asked.contains("separators")) {
    whitespace = NameOf(defaults.whitespace);
    separators = {defaults.item_separator, defaults.key_separator};
  }
  if (!asked.contains("keys")) keys = NameOf(defaults.keys);
  if (!asked.contains("nulls")) nulls = NameOf(defaults.nulls);
}

JsonSchemaOptions LayoutFlags::ToOptions() const {
  JsonSchemaOptions options;
  // The names were checked when the flags were read.
  options.whitespace = *OptionOf<JsonSchemaOptions::Whitespace>(whitespace);
  options.order = *OptionOf<JsonSchemaOptions::Order>(order);
  options.item_separator = separators[0];
  options.key_separator = separators[1];
  options.ascii = ascii;
  options.additional_properties = additional_properties == "allow";
  options.open_if_unsatisfiable =
      !options.additional_properties && !asked.contains("additional_properties");
  options.keys = *OptionOf<JsonSchemaOptions::Keys>(keys);
  options.nulls = *OptionOf<JsonSchemaOptions::Nulls>(nulls);
  options.verbatim = *OptionOf<JsonSchemaOptions::Verbatim>(verbatim);
  options.canonical_spelling = spelling == "canonical";
  options.max_digits = max_digits;
  options.max_decimals = max_decimals;
  options.max_string = max_string.value_or(0);
  options.allow_exponents = spelling == "any";
  return options;
}

void MemoryFlags::AddTo(CLI::App* command) {
  command
      ->add_option("--memory-budget", megabytes,
                   "Megabytes that grammars may keep of what was found; beyond that it is "
                   "freed, and found again when it is wanted")
      ->type_name("MB")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 24))
      ->capture_default_str();
}

void GrammarFlags::AddReferencesTo(CLI::App* command) {
  TextOption(command, "--ref-dir", ref_dir, "DIR",
             "Folder with the documents that references of the schema lead to, found by their "
             "$id or by --ref-base and their path");
  command->add_option("--ref-base", ref_base, "The URI that --ref-dir stands for")
      ->type_name("URI")
      ->capture_default_str();
  command
      ->add_option("--profile", profile,
                   "Keywords of the schema: full, strict (only those of OpenAI's strict structured "
                   "outputs; anything else is an error)")
      ->check(OneOf<JsonSchemaOptions::Profile>())
      ->capture_default_str();
  command->add_flag("--annotations", annotations,
                    "List on stderr what of the schema demands nothing, and why");
}

void GrammarFlags::AddSchemaTo(CLI::App* command, bool with_layout) {
  TextOption(command, "--schema", schema_file, "FILE", "File with a JSON Schema");
  AddReferencesTo(command);
  if (with_layout) {
    layout.AddTo(command);
    AddSourceTo(command);
  }
  memory.AddTo(command);
}

void GrammarFlags::AddSourceTo(CLI::App* command) {
  TextOption(command, "--source", source_text_file, "FILE",
             "The text that fields with x-pawl-source, and those of --verbatim, are copied from");
}

void GrammarFlags::AddAllTo(CLI::App* command, bool with_prefix) {
  TextOption(command, "--schema", schema_file, "FILE",
             "The output is JSON valid for this JSON Schema");
  command
      ->add_option("--regex", regex, "The output matches this regular expression (ECMA-262) whole")
      ->type_name("PATTERN");
  command
      ->add_option("--choice", choices,
                   "The output is one of these strings (give it several times)")
      ->type_name("TEXT")
      ->take_all()
      ->allow_extra_args(false);
  TextOption(command, "--grammar", grammar_file, "FILE", "The output is a text of this grammar");
  command
      ->add_option("--grammar-language", grammar_language,
                   "ebnf, gbnf, lark or lark_xgrammar; where the file's name does not end so")
      ->check(CLI::IsMember({"ebnf", "gbnf", "lark", "lark_xgrammar"}))
      ->type_name("LANGUAGE");
  TextOption(command, "--root", root, "RULE",
             "The rule of an EBNF or GBNF grammar that the output is")
      ->capture_default_str();
  CountOption(command, "--prepare-steps", prepare_steps, 0, kMostCount,
              "Find parts of a grammar's masks beforehand, in up to N steps; 0: none");
  TextOption(command, "--structural-tag", structural_tag_file, "FILE",
             "The output is free text with tags, as this structural tag (JSON) says");
  TextOption(command, "--substring", substring_file, "FILE",
             "The output is a span of this file's text; it may be empty");
  combine.AddTo(command, with_prefix);
  AddReferencesTo(command);
  layout.AddTo(command);
  AddSourceTo(command);
  memory.AddTo(command);
  command_ = command;
}

void CombineFlags::AddTo(CLI::App* command, bool with_prefix) {
  if (with_prefix) {
    command
        ->add_option("--prefix", prefix,
                     "The output goes on after this text: both together fit the constraint")
        ->type_name("TEXT");
    TextOption(command, "--prefix-file", prefix_file, "FILE", "The same, from a file");
  }
  command
      ->add_option("--suffix", suffixes,
                   "This text follows the output, which is such that the whole fits; given several "
                   "times, any text may stand between one and the next")
      ->type_name("TEXT")
      ->take_all()
      ->allow_extra_args(false);
  TextOption(command, "--suffix-file", suffix_file, "FILE", "The same, from a file");
  command->add_option("--require", words, "This occurs in the output (give it several times)")
      ->type_name("TEXT")
      ->take_all()
      ->allow_extra_args(false);
}

void CombineFlags::AddGapsTo(CLI::App* command) {
  auto* gap = TextOption(command, "--gap", gaps, "TEXT",
                         "Several gaps are filled: this text stands between two outputs, the "
                         "first --gap between the first two; the outputs are printed as a "
                         "JSON array of strings, on one line")
                  ->take_all()
                  ->allow_extra_args(false);
  TextOption(command, "--gap-file", gap_files, "FILE", "The same, from a file")
      ->take_all()
      ->allow_extra_args(false)
      ->excludes(gap);
}

bool CombineFlags::any() const {
  return prefix.has_value() || !prefix_file.empty() || gap_count() > 1 || !suffixes.empty() ||
         !suffix_file.empty() || !words.empty();
}

Status CombineFlags::Check() const {
  if (prefix.has_value() && !prefix_file.empty())
    return Error{ErrorCode::kInvalid, "only one of --prefix and --prefix-file may be given", ""};
  if (!suffixes.empty() && !suffix_file.empty())
    return Error{ErrorCode::kInvalid, "only one of --suffix and --suffix-file may be given", ""};
  if (gap_count() > 1 && !words.empty()) {
    return Error{ErrorCode::kInvalid,
                 "speaks of one output, but --gap makes several: fill the gaps one by one",
                 "--require"};
  }
  return {};
}

Result<Infilling> CombineFlags::ReadTexts() const {
  Infilling texts;
  if (prefix.has_value()) texts.prefix = *prefix;
  texts.after = gaps;
  texts.after.resize(gaps.size() + gap_files.size());
  texts.after.insert(texts.after.end(), suffixes.begin(), suffixes.end());
  if (suffixes.empty()) texts.after.emplace_back();
  std::vector<std::pair<const std::string*, std::string*>> files = {
      {&prefix_file, &texts.prefix}, {&suffix_file, &texts.after.back()}};
  for (size_t i = 0; i < gap_files.size(); ++i) files.emplace_back(&gap_files[i], &texts.after[i]);
  for (const auto& [file, text] : files) {
    if (file->empty()) continue;
    Result<std::string> read = ReadInput(*file);
    if (!read.ok()) return read.error();
    *text = *std::move(read);
  }
  return texts;
}

Result<Grammar> CombineFlags::Apply(Grammar grammar, const Infilling& texts) const {
  if (!texts.prefix.empty() || texts.after != std::vector<std::string>{""}) {
    Result<Grammar> gap = Infill(grammar, texts);
    if (!gap.ok()) {
      Error error = gap.error();
      error.place = OptionOf(error.place);
      return error;
    }
    grammar = *std::move(gap);
  }
  if (words.empty()) return grammar;
  Result<Grammar> all = RequireWords(grammar, words);
  if (!all.ok()) {
    const Error& error = all.error();
    return Error{error.code, error.message,
                 error.place.empty() ? "--require" : "--require, " + error.place};
  }
  return all;
}

std::string CombineFlags::OptionOf(const std::string& place) const {
  constexpr std::string_view kAfter = "after ";
  size_t number = 0;
  const char* end = place.data() + place.size();
  const char* rest = place.starts_with(kAfter)
                         ? std::from_chars(place.data() + kAfter.size(), end, number).ptr
                         : end;
  if (number == 0) return place == "after" ? "--suffix" : "--" + place;
  const size_t fixed = gap_count() - 1;  // texts between two gaps
  std::string option;
  if (number <= fixed) {
    option = fmt::format("{} {}", gaps.empty() ? "--gap-file" : "--gap", number);
  } else {
    option = suffixes.size() > 1 ? fmt::format("--suffix {}", number - fixed) : "--suffix";
  }
  return option + std::string(rest, end);
}

bool GrammarFlags::any() const {
  return !schema_file.empty() || regex.has_value() || !choices.empty() || !grammar_file.empty() ||
         !structural_tag_file.empty() || !substring_file.empty();
}

Status GrammarFlags::Check() const {
  const int given = static_cast<int>(!schema_file.empty()) + static_cast<int>(regex.has_value()) +
                    static_cast<int>(!choices.empty()) + static_cast<int>(!grammar_file.empty()) +
                    static_cast<int>(!structural_tag_file.empty()) +
                    static_cast<int>(!substring_file.empty());
  if (given > 1) {
    return Error{ErrorCode::kInvalid,
                 "at most one of --schema, --regex, --choice, --grammar, --structural-tag and "
                 "--substring may be given",
                 ""};
  }
  if (given == 0 && combine.any()) {
    return Error{ErrorCode::kInvalid,
                 "--prefix, --gap, --suffix and --require want a constraint, such as --grammar",
                 ""};
  }
  if (Status status = combine.Check(); !status.ok()) return status;
  if (command_ != nullptr && grammar_file.empty()) {
    for (const char* option : {"--grammar-language", "--root", "--prepare-steps"}) {
      if (command_->get_option(option)->count() > 0)
        return Error{ErrorCode::kInvalid, "has a meaning with --grammar only", option};
    }
  }
  // The schemas inside of a grammar or a structural tag have options too.
  if (!grammar_file.empty() || !structural_tag_file.empty()) return {};
  if (!schema_file.empty() || command_ == nullptr) return {};
  for (const char* option : kSchemaOptions) {
    if (command_->get_option(option)->count() > 0)
      return Error{ErrorCode::kInvalid, "has a meaning with --schema only", option};
  }
  return {};
}

Status GrammarFlags::CheckGiven() const {
  if (any()) return Check();
  return Error{ErrorCode::kInvalid,
               "one of --schema, --regex, --choice, --grammar, --structural-tag and --substring is "
               "needed",
               ""};
}

std::string GrammarFlags::source() const {
  if (regex.has_value()) return "--regex";
  if (!grammar_file.empty()) return grammar_file;
  if (!structural_tag_file.empty()) return structural_tag_file + ": #";
  if (!substring_file.empty()) return substring_file;
  return choices.empty() ? schema_file + ": #" : "--choice";
}

Status GrammarFlags::CheckOptionsOf(GrammarLanguage language, std::string_view text) const {
  if (command_ == nullptr) return {};
  const bool bnf = language == GrammarLanguage::kEbnf || language == GrammarLanguage::kGbnf;
  if (!bnf && command_->get_option("--root")->count() > 0) {
    return Error{ErrorCode::kInvalid,
                 "is for EBNF and GBNF; the root of a Lark grammar is \"start\"", "--root"};
  }
  if (bnf) return CheckSchemaOptions({}, text, "grammar");
  return CheckSchemaOptions({"%json", "json_schema"}, text, "grammar");
}

Status GrammarFlags::CheckSchemaOptions(std::initializer_list<std::string_view> marks,
                                        std::string_view text, std::string_view what) const {
  if (command_ == nullptr) return {};
  for (const std::string_view mark : marks) {
    if (text.find(mark) != std::string_view::npos) return {};
  }
  for (const char* option : kSchemaOptions) {
    if (command_->get_option(option)->count() > 0) {
      return Error{ErrorCode::kInvalid, fmt::format("is for JSON Schemas; this {} has none", what),
                   option};
    }
  }
  return {};
}

Result<GrammarLanguage> GrammarFlags::LanguageOfFile() const {
  const size_t dot = grammar_file.rfind('.');
  const std::string extension = dot == std::string::npos ? "" : grammar_file.substr(dot + 1);
  const auto language = GrammarLanguageOf(grammar_language.empty() ? extension : grammar_language);
  if (language) return *language;
  return Error{ErrorCode::kInvalid,
               "its name does not end in .ebnf, .gbnf or .lark; give --grammar-language",
               grammar_file};
}

Result<std::string> GrammarFlags::ReadSchema() const {
  return ReadInput(schema_file, static_cast<size_t>(JsonSchemaOptions().max_schema_bytes));
}

Result<Grammar> GrammarFlags::Compile(const std::shared_ptr<const Vocabulary>& vocabulary) const {
  Result<Grammar> grammar = CompileWhole(vocabulary);
  if (!grammar.ok() || !combine.any()) return grammar;
  const Result<Infilling> texts = combine.ReadTexts();
  if (!texts.ok()) return texts.error();
  return combine.Apply(*std::move(grammar), *texts);
}

Result<Grammar> GrammarFlags::CompileWhole(
    const std::shared_ptr<const Vocabulary>& vocabulary) const {
  const Compiler compiler(vocabulary, memory.ToOptions());
  if (!substring_file.empty()) {
    const Result<std::string> text = ReadInput(substring_file, GrammarOptions().max_bytes);
    if (!text.ok()) return text.error();
    Result<Grammar> grammar = compiler.CompileSubstring(*text);
    if (!grammar.ok()) return InFile(substring_file, grammar.error());
    return grammar;
  }
  if (regex.has_value()) {
    Result<Grammar> grammar = compiler.CompileRegex(*regex);
    if (!grammar.ok()) return InFile(source(), grammar.error());
    return grammar;
  }
  if (!choices.empty()) {
    Result<Grammar> grammar = compiler.CompileChoice(choices);
    if (!grammar.ok()) return InFile(source(), grammar.error());
    return grammar;
  }
  JsonSchemaOptions options = layout.ToOptions();
  options.profile = *OptionOf<JsonSchemaOptions::Profile>(profile);
  options.list_annotations = annotations;
  options.bind_source = bind_source;
  options.source = chat_source;
  if (!source_text_file.empty()) {
    Result<std::string> text = ReadInput(source_text_file, GrammarOptions().max_bytes);
    if (!text.ok()) return text.error();
    if (Status status = CheckUtf8(*text); !status.ok())
      return InFile(source_text_file, status.error());
    options.source = text->empty() ? " " : as_seen ? as_seen(*text) : *std::move(text);
  }
  if (!ref_dir.empty()) {
    auto folder = DocumentFolder::Open(ref_dir, ref_base);
    if (!folder.ok()) return folder.error();
    options.resolve_document = [folder = *folder](std::string_view uri) {
      return folder->Find(uri);
    };
  }
  if (!grammar_file.empty()) {
    const Result<GrammarLanguage> language = LanguageOfFile();
    if (!language.ok()) return language.error();
    GrammarOptions grammar_options;
    grammar_options.root = root;
    grammar_options.prepare_steps = prepare_steps;
    grammar_options.json_schema = options;
    const Result<std::string> text = ReadInput(grammar_file, grammar_options.max_bytes);
    if (!text.ok()) return text.error();
    if (Status status = CheckOptionsOf(*language, *text); !status.ok()) return status.error();
    Result<Grammar> grammar = compiler.CompileGrammar(*text, *language, grammar_options);
    if (!grammar.ok()) return InFile(grammar_file, grammar.error());
    return grammar;
  }
  if (!structural_tag_file.empty()) {
    GrammarOptions tag_options;
    tag_options.json_schema = options;
    const Result<std::string> text = ReadInput(structural_tag_file, tag_options.max_bytes);
    if (!text.ok()) return text.error();
    // "schema" is what structures of the older form say.
    if (Status status =
            CheckSchemaOptions({"schema", "qwen_xml_parameter", "%json"}, *text, "structural tag");
        !status.ok()) {
      return status.error();
    }
    Result<Grammar> grammar = compiler.CompileStructuralTag(*text, tag_options);
    if (!grammar.ok()) return InFile(structural_tag_file, grammar.error());
    return grammar;
  }
  std::string text;
  if (schema_text.has_value()) {
    text = *schema_text;
  } else {
    Result<std::string> read = ReadSchema();
    if (!read.ok()) return read.error();
    text = *std::move(read);
  }
  Result<Grammar> grammar = compiler.CompileJsonSchema(text, options);
  if (!grammar.ok() && grammar.error().place.find("_separator") != std::string::npos) {
    return Error{grammar.error().code,
                 grammar.error().message + (layout.whitespace == "compact"
                                                ? " (first ITEM, then KEY: ', ' ': ')"
                                                : ": give --whitespace compact as well"),
                 "--separators"};
  }
  if (!grammar.ok()) return InFile(schema_file, grammar.error());
  return grammar;
}

void NoteAnnotations(std::string_view command, std::span<const std::string> notes, bool all) {
  for (const std::string& note : notes) {
    // A dialect that is not known may change what every keyword means, and a misspelt keyword
    // demands nothing.
    const bool always = note.starts_with("#/$schema: ") || note.ends_with(" meant?");
    if (all || always) Note(command, "note: " + note);
  }
}

void SamplingFlags::AddTo(CLI::App* command) {
  CountOption(command, "--seed", params.seed, 0, std::numeric_limits<uint64_t>::max(),
              "Seed of the draws; the same seed gives the same output");
  command->add_option("--temperature", params.temperature, "0 takes the most probable token")
      ->transform(FiniteNumber())
      ->type_name("T")
      ->capture_default_str();
  CountOption(command, "--max-tokens", max_tokens, 1, kMostCount, "Budget of the output in tokens");
  CountOption(command, "--top-k", params.top_k, 0, kMostCount,
              "Keep the N most probable tokens; 0: all");
  command
      ->add_option("--top-p", params.top_p, "Keep the most probable tokens that reach P together")
      ->transform(FiniteNumber())
      ->type_name("P")
      ->capture_default_str();
  command
      ->add_option("--min-p", params.min_p,
                   "Keep tokens with at least P times the best probability")
      ->transform(FiniteNumber())
      ->type_name("P")
      ->capture_default_str();
  CountOption(command, "--draft-lanes", params.draft_lanes, 1, kMostDraftLanes,
              "Lanes of noise: a draft model has one guess for each. Another number draws other\n"
              "tokens, with drafts and without")
      ->type_name("K");
  command
      ->add_option("--repetition-penalty", params.repetition_penalty,
                   "Makes tokens of prompt and output less likely when above 1")
      ->transform(FiniteNumber())
      ->type_name("R");
  command
      ->add_option("--presence-penalty", params.presence_penalty,
                   "Subtracted from the logit of every token of the output")
      ->transform(FiniteNumber())
      ->type_name("R");
  command
      ->add_option("--frequency-penalty", params.frequency_penalty,
                   "Subtracted for each time a token is in the output")
      ->transform(FiniteNumber())
      ->type_name("R");
  AddStageOptions(command, params.stages);
}

Status SamplingFlags::Check() const {
  Status status = CheckSamplingParams(params);
  if (!status.ok()) {
    Error error = status.error();
    for (char& c : error.place) {
      if (c == '_') c = '-';
    }
    error.place = "--" + error.place;
    return error;
  }
  if (max_tokens < 1) return Error{ErrorCode::kInvalid, "must be at least 1", "--max-tokens"};
  return {};
}

}  // namespace pawl::cli
