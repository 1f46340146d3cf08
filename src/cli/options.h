// Groups of options that several subcommands have, and what they mean.
#ifndef PAWL_SRC_CLI_OPTIONS_H_
#define PAWL_SRC_CLI_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/combine.h"
#include "pawl/compiler.h"
#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/decode/sampler.h"

namespace pawl::cli {

// For options that name a file or folder: an unset variable of a script must not read as "none".
// The message when the text is empty.
std::string NotEmpty(const std::string& text);

// For options with a number: decimal digits, from `least` to `most`.
CLI::Validator WholeNumber(uint64_t least, uint64_t most);
// A number that a float holds, neither infinite nor NaN.
CLI::Validator FiniteNumber();
CLI::Validator FiniteNumber(double least, double most);
// The most that an option of type int takes, where nothing else limits it.
inline constexpr uint64_t kMostCount = 1 << 30;

// The kinds of options that most are of. A text that must not be empty:
template <typename T>
CLI::Option* TextOption(CLI::App* command, const char* name, T& value, const char* type,
                        std::string help) {
  return command->add_option(name, value, std::move(help))->check(NotEmpty)->type_name(type);
}
// A whole number,
template <typename T>
CLI::Option* CountOption(CLI::App* command, const char* name, T& value, uint64_t least,
                         uint64_t most, std::string help) {
  return command->add_option(name, value, std::move(help))
      ->transform(WholeNumber(least, most))
      ->type_name("N")
      ->capture_default_str();
}
// a number,
template <typename T>
CLI::Option* RealOption(CLI::App* command, const char* name, T& value, double least, double most,
                        const char* type, std::string help) {
  return command->add_option(name, value, std::move(help))
      ->check(FiniteNumber(least, most))
      ->type_name(type)
      ->capture_default_str();
}
// and one of these names.
template <typename T>
CLI::Option* ChoiceOption(CLI::App* command, const char* name, T& value,
                          const std::vector<std::string>& names, const char* type,
                          std::string help) {
  return command->add_option(name, value, std::move(help))
      ->check(CLI::IsMember(names))
      ->type_name(type)
      ->capture_default_str();
}

// --whitespace, --separators, --order, --spelling, --max-digits, --max-decimals, --max-string,
// --ascii, --additional-properties, --keys, --nulls and --verbatim.
struct LayoutFlags {
  std::string whitespace;
  std::string order;
  std::string spelling;
  std::vector<std::string> separators = {",", ":"};
  int max_digits = JsonSchemaOptions().max_digits;
  int max_decimals = JsonSchemaOptions().max_decimals;
  std::optional<int64_t> max_string = std::nullopt;  // not given: what the command wants
  bool ascii = false;
  std::string additional_properties = "allow";
  std::set<std::string> asked;  // the options that the command line gives, without hyphens
  std::string keys = "required";
  std::string nulls = "keep";
  std::string verbatim = "none";

  // For texts that a model writes, and for texts that others wrote.
  static LayoutFlags ForWriting() { return Of("compact", "schema", "canonical"); }
  static LayoutFlags ForReading() { return Of("any", "any", "any"); }
  // For records: objects are closed, and all keys are asked for.
  static LayoutFlags ForExtract();
  static LayoutFlags Of(std::string whitespace, std::string order, std::string spelling);
  void AddTo(CLI::App* command);
  JsonSchemaOptions ToOptions() const;
  // What the command line does not give of white space, keys and nulls is as in `defaults`.
  void FillIn(const JsonSchemaOptions& defaults);
};

// --prefix, --gap, --suffix, --require: what is made of the constraint that the other options name.
struct CombineFlags {
  std::optional<std::string> prefix;
  std::vector<std::string> gaps;  // texts with a gap to be filled before and behind each
  std::vector<std::string> suffixes;
  std::string prefix_file, suffix_file;
  std::vector<std::string> gap_files;
  std::vector<std::string> words;

  // Without --prefix where the command has one of its own.
  void AddTo(CLI::App* command, bool with_prefix);
  // --gap, for commands that write outputs.
  void AddGapsTo(CLI::App* command);
  bool any() const;
  // Fails where a text is given twice.
  Status Check() const;
  // How many gaps are to be filled: one for each output.
  size_t gap_count() const { return gaps.size() + gap_files.size() + 1; }
  // What the options say of the text around the gaps, files read.
  Result<Infilling> ReadTexts() const;
  // The grammar of the first output. `texts`: of ReadTexts. Errors name the option.
  Result<Grammar> Apply(Grammar grammar, const Infilling& texts) const;

 private:
  // The option that a place of Infill's errors stands for, and what else the place says.
  std::string OptionOf(const std::string& place) const;
};

// --memory-budget: what the grammars of a command may keep.
struct MemoryFlags {
  uint64_t megabytes = CompilerOptions().memory_budget >> 20;
  void AddTo(CLI::App* command);
  CompilerOptions ToOptions() const { return {.memory_budget = size_t{megabytes} << 20}; }
};

// --schema, --regex, --choice, --grammar, --structural-tag, --substring: at most one of them.
// --ref-dir and --ref-base for schemas.
struct GrammarFlags {
  std::string schema_file;
  std::optional<std::string> regex;
  std::vector<std::string> choices;
  std::string grammar_file;
  std::string grammar_language;  // empty: as the file's name says
  std::string root = "root";
  uint64_t prepare_steps = GrammarOptions().prepare_steps;
  std::string structural_tag_file;
  std::string substring_file;
  CombineFlags combine;
  MemoryFlags memory;
  std::string ref_dir;
  std::string ref_base = "http://localhost:1234/";
  // For schemas. --profile is not with LayoutFlags because maskbench has one of its own.
  std::string profile = "full";
  // --source: the text that fields with "x-pawl-source" are copied from. With bind_source it comes
  // later, by Grammar::Bind.
  std::string source_text_file;
  bool bind_source = false;
  std::string chat_source;  // in place of a file that is not given; empty: none
  // The text of --source in the form in which a model sees it (src/engine/copied_text.h).
  std::function<std::string(const std::string& text)> as_seen;
  bool annotations = false;
  LayoutFlags layout;

  explicit GrammarFlags(LayoutFlags layout_flags) : layout(std::move(layout_flags)) {}
  // Adds --schema alone, or all of them; without --prefix where the command has one of its own, and
  // without the layout where it has that apart.
  void AddSchemaTo(CLI::App* command, bool with_layout = true);
  void AddAllTo(CLI::App* command, bool with_prefix = true);
  bool any() const;
  // Fails when there is more than one, or an option that only concerns schemas
  // without one.
  Status Check() const;
  // Check(), and there must be one.
  Status CheckGiven() const;
  // What errors call the constraint: the schema's file with its root, or the option.
  std::string source() const;
  // Fails when options were given that say nothing about this grammar: --root with Lark, options of
  // schemas where there is none.
  Status CheckOptionsOf(GrammarLanguage language, std::string_view text) const;
  // The language of --grammar.
  Result<GrammarLanguage> LanguageOfFile() const;
  // The text of the schema file, no more than a schema may have.
  Result<std::string> ReadSchema() const;
  // REQUIRES: any() and Check() is ok. Errors name the file or the option.
  Result<Grammar> Compile(const std::shared_ptr<const Vocabulary>& vocabulary) const;
  // The same of the constraint itself, before --prefix and the like are applied.
  Result<Grammar> CompileWhole(const std::shared_ptr<const Vocabulary>& vocabulary) const;

  void AddReferencesTo(CLI::App* command);
  void AddSourceTo(CLI::App* command);

  // The text of the schema file; Compile uses it when it is set.
  std::optional<std::string> schema_text;

 private:
  // Fails when options of schemas were given and the text has none of what schemas begin with.
  Status CheckSchemaOptions(std::initializer_list<std::string_view> marks, std::string_view text,
                            std::string_view what) const;

  const CLI::App* command_ = nullptr;  // after AddAllTo: knows which options were given
};

// Notes of a grammar on stderr, a line each. `all`: with --annotations. Otherwise only those that
// say what a user has hardly meant: a dialect that is not known, a misspelt keyword.
void NoteAnnotations(std::string_view command, std::span<const std::string> notes, bool all);

// --samplers, --typical-p, ...: what SamplerStages has.
void AddStageOptions(CLI::App* command, SamplerStages& stages);

// --seed, --temperature, ...
struct SamplingFlags {
  SamplingParams params;
  int max_tokens;

  explicit SamplingFlags(int default_max_tokens) : max_tokens(default_max_tokens) {}

  void AddTo(CLI::App* command);
  // Errors name the option.
  Status Check() const;
};

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_OPTIONS_H_
