// `pawl schematest`: the official JSON Schema test suite against what Pawl would let a model write.
//
// A case of the suite is a schema, an instance and a verdict. It is exact when the instance's text
// is accepted if and only if the verdict is "valid", where accepted means that a model could have
// written it: every byte is taken, and the text may end after the last. Any layout counts as
// written (properties in any order, any white space, any spelling of strings and numbers), since
// the suite asks about values.
//
// A schema that Pawl refuses makes all its cases inexact: nothing is written, which is safe but not
// what was asked. The one exception is a schema for which no value is valid: there a refusal says
// the same as the suite does for its invalid instances, so those are exact.
//
// What has a reason to be inexact stands in a ratchet file; see schematest_ratchet.h.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/cli/command.h"
#include "src/cli/describe.h"
#include "src/cli/documents.h"
#include "src/cli/engine.h"
#include "src/cli/measure/schematest_ratchet.h"
#include "src/cli/measure/schematest_suite.h"
#include "src/cli/options.h"
#include "src/cli/progress.h"
#include "src/cli/walk.h"

namespace pawl::cli {
namespace {

constexpr const char* kSchematest = "schematest";

struct SchematestFlags {
  LayoutFlags layout = LayoutFlags::ForReading();
  MemoryFlags memory;
  std::string suite;
  std::string draft;
  bool formats = false;
  std::string json_file;
  std::string ratchet_file;
  bool update_ratchet = false;
  std::string tokenizer;
};

// Asked for the documents that schemas of the suite refer to.
using Resolver = std::function<Result<std::string>(std::string_view uri)>;

struct Count {
  int64_t total = 0;
  int64_t exact = 0;
};
using SuiteCounts = std::array<Count, kSections>;

// What texts are spelled in: bytes without a tokenizer.
struct Spelling {
  std::shared_ptr<const Vocabulary> vocabulary;
  std::shared_ptr<const Tokenizer> tokenizer;  // may be nullptr
};

Result<Spelling> LoadSpelling(const std::string& path) {
  if (!path.empty()) {
    Result<ModelText> text = LoadText(kSchematest, path);
    if (!text.ok()) return text.error();
    return Spelling{std::move(text->vocabulary), std::move(text->tokenizer)};
  }
  VocabularyInit init;
  constexpr int kBytes = 256;
  for (int byte = 0; byte < kBytes; ++byte) init.tokens.emplace_back(1, static_cast<char>(byte));
  init.tokens.emplace_back();
  init.special = {kBytes};
  init.end_tokens = {kBytes};
  Result<std::shared_ptr<const Vocabulary>> vocabulary = Vocabulary::Create(std::move(init));
  if (!vocabulary.ok()) return vocabulary.error();
  return Spelling{*std::move(vocabulary), nullptr};
}

// SUITE/remotes stands for http://localhost:1234/.
Result<Resolver> Documents(const SchematestFlags& flags) {
  const std::string remotes = flags.suite + "/remotes";
  if (!std::filesystem::is_directory(remotes)) return Resolver();
  auto folder = DocumentFolder::Open(remotes, "http://localhost:1234/");
  if (!folder.ok()) return folder.error();
  return Resolver(
      [folder = *std::move(folder)](std::string_view uri) { return folder->Find(uri); });
}

JsonSchemaOptions OptionsFor(const SchematestFlags& flags, const SuiteDraft& draft,
                             const SuiteFile& file, const Resolver& resolver) {
  JsonSchemaOptions options = flags.layout.ToOptions();
  options.default_dialect = draft.dialect;
  // The suite's convention: "format" is an assertion in optional/format, and where a file is about
  // the vocabulary that makes it one.
  options.assert_formats =
      file.section == Section::kFormats || file.name.ends_with("/format-assertion.json");
  options.resolve_document = resolver;
  return options;
}

// One line of a ratchet file, without the tabs that separate its columns.
std::string OneLine(std::string_view text) {
  constexpr size_t kLongest = 200;
  std::string out(text.substr(0, kLongest));
  out.resize(CompleteUtf8Prefix(out));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return out.size() < text.size() ? out + "..." : out;
}

// nullopt when the text is accepted; the message is for a human.
std::optional<Error> Try(const Grammar& grammar, const Spelling& spelling,
                         const std::string& text) {
  std::vector<TokenId> tokens;
  if (spelling.tokenizer != nullptr) {
    Result<std::vector<TokenId>> spelled =
        SpellText(*spelling.tokenizer, *spelling.vocabulary, text);
    if (!spelled.ok()) return spelled.error();
    tokens = *std::move(spelled);
  } else {
    const std::optional<State> end = grammar.Start().Advance(text);
    if (end.has_value() && end->accepting()) return std::nullopt;
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));  // for the message
  }
  return WalkTokens(grammar, text, tokens);
}

// nullopt when the case is exact, else its kind and detail.
std::optional<std::pair<const char*, std::string>> Judge(const Result<Grammar>& grammar,
                                                         const Spelling& spelling,
                                                         const SuiteCase& one) {
  if (!grammar.ok()) {
    if (grammar.error().code != ErrorCode::kUnsatisfiable) {
      return std::pair{"refused", grammar.error().ToString()};
    }
    if (!one.valid) return std::nullopt;
    return std::pair{"valid_rejected", grammar.error().ToString()};
  }
  const std::optional<Error> problem = Try(*grammar, spelling, one.instance);
  if (problem.has_value() && problem->code == ErrorCode::kInternal) {
    return std::pair{"mask_differs", problem->ToString()};
  }
  if (problem.has_value() != one.valid) return std::nullopt;
  if (one.valid) return std::pair{"valid_rejected", problem->ToString()};
  return std::pair{"invalid_accepted", one.instance};
}

void RunFile(const SchematestFlags& flags, const SuiteDraft& draft, const SuiteFile& file,
             const Spelling& spelling, const Resolver& resolver, SuiteCounts& counts,
             std::vector<Inexact>& failures) {
  const Compiler compiler(spelling.vocabulary, flags.memory.ToOptions());
  const JsonSchemaOptions options = OptionsFor(flags, draft, file, resolver);
  Count& count = counts[static_cast<size_t>(file.section)];
  for (const SuiteGroup& group : file.groups) {
    const Result<Grammar> grammar = compiler.CompileJsonSchema(group.schema, options);
    for (const SuiteCase& one : group.cases) {
      ++count.total;
      if (auto failure = Judge(grammar, spelling, one); !failure.has_value()) {
        ++count.exact;
      } else {
        failures.push_back(
            {file.name, OneLine(one.description), failure->first, OneLine(failure->second)});
      }
    }
  }
}

std::string CountsJson(const SuiteCounts& counts) {
  std::string out;
  for (size_t i = 0; i < kSections; ++i) {
    out += fmt::format("{}\"{}\":{{\"total\":{},\"exact\":{}}}", i == 0 ? "" : ",",
                       SectionName(static_cast<Section>(i)), counts[i].total, counts[i].exact);
  }
  return out;
}

std::string ReportJson(const SuiteCounts& counts, const std::string& drafts,
                       const std::vector<Inexact>& failures) {
  std::string out =
      fmt::format("{{{},\"drafts\":{{{}}},\"failures\":[", CountsJson(counts), drafts);
  for (size_t i = 0; i < failures.size(); ++i) {
    const Inexact& f = failures[i];
    out += fmt::format("{}\n{{\"file\":{},\"description\":{},\"kind\":{},\"detail\":{}}}",
                       i == 0 ? "" : ",", json::Quote(f.file), json::Quote(f.description),
                       json::Quote(f.kind), json::Quote(f.detail));
  }
  return out + "]}\n";
}

std::string CountsLine(std::string_view name, const SuiteCounts& counts) {
  std::string out = fmt::format("{:<14}", name);
  for (size_t i = 0; i < kSections; ++i) {
    if (counts[i].total == 0) continue;
    out += fmt::format("{} {} of {} exact  ", SectionName(static_cast<Section>(i)), counts[i].exact,
                       counts[i].total);
  }
  out.resize(out.find_last_not_of(' ') + 1);
  return out + "\n";
}

std::string InexactLine(const Inexact& f) {
  return fmt::format("{}: {}: {}: {}\n", f.file, f.description, f.kind, f.detail);
}

// The ratchet file; with --update-ratchet it may be absent. Asked before the suite runs, as what is
// wrong with the files that come last would be known only after minutes.
Result<Ratchet> ReadRatchet(const SchematestFlags& flags) {
  if (flags.ratchet_file.empty()) return Ratchet();
  std::string text;
  if (Result<std::string> read = ReadFile(flags.ratchet_file); read.ok()) {
    text = *std::move(read);
  } else if (!flags.update_ratchet) {
    return read.error();
  }
  Result<Ratchet> ratchet = Ratchet::Parse(text);
  if (!ratchet.ok()) return InFile(flags.ratchet_file, ratchet.error());
  return ratchet;
}

Status CheckOutputs(const SchematestFlags& flags) {
  if (!flags.json_file.empty()) {
    if (Status status = CheckWritable(flags.json_file); !status.ok()) return status;
  }
  return flags.update_ratchet ? CheckWritable(flags.ratchet_file) : Status();
}

// Compares with the ratchet, or without one lists what is not exact. The exit code.
int Conclude(const SchematestFlags& flags, const Ratchet& ratchet,
             const std::vector<Inexact>& failures,
             const std::function<bool(const std::string&)>& ran) {
  if (flags.ratchet_file.empty()) {
    for (const Inexact& failure : failures) Print(InexactLine(failure));
    return failures.empty() ? kExitOk : kExitSomeFailed;
  }
  if (flags.update_ratchet) {
    const Status written = WriteFile(flags.ratchet_file, ratchet.Updated(failures, ran));
    return written.ok() ? kExitOk : Fail(kSchematest, written.error());
  }
  const Ratchet::Comparison found = ratchet.Compare(failures, ran);
  for (const Inexact& failure : found.unexpected) Print("not expected: " + InexactLine(failure));
  for (const Inexact& line : found.passing) {
    Print(fmt::format("exact now: {}: {} (take it out of {}, or --update-ratchet)\n", line.file,
                      line.description, flags.ratchet_file));
  }
  return found.unexpected.empty() ? kExitOk : kExitSomeFailed;
}

int SchemaTest(const SchematestFlags& flags) {
  if (flags.update_ratchet && flags.ratchet_file.empty()) {
    return Fail(kSchematest, Error{ErrorCode::kInvalid, "needs --ratchet", "--update-ratchet"});
  }
  if (Status status = CheckOutputs(flags); !status.ok()) return Fail(kSchematest, status.error());
  const Result<Ratchet> ratchet = ReadRatchet(flags);
  if (!ratchet.ok()) return Fail(kSchematest, ratchet.error());
  const Result<Spelling> spelling = LoadSpelling(flags.tokenizer);
  if (!spelling.ok()) return Fail(kSchematest, spelling.error());
  const Result<Resolver> resolver = Documents(flags);
  if (!resolver.ok()) return Fail(kSchematest, resolver.error());
  SuiteCounts counts{};
  std::string drafts;
  std::vector<Inexact> failures;
  std::vector<std::string> folders;
  Progress progress(kSchematest, "reading the suite");
  for (const SuiteDraft& draft : kSuiteDrafts) {
    if (flags.draft != "all" && flags.draft != draft.option) continue;
    const Result<std::vector<SuiteFile>> files = ReadSuite(flags.suite, draft, flags.formats);
    if (!files.ok()) return Fail(kSchematest, files.error());
    SuiteCounts own{};
    for (const SuiteFile& file : *files) {
      progress.Set(file.name);
      RunFile(flags, draft, file, *spelling, *resolver, own, failures);
    }
    for (size_t i = 0; i < kSections; ++i) {
      counts[i].total += own[i].total;
      counts[i].exact += own[i].exact;
    }
    Print(CountsLine(draft.folder, own));
    drafts +=
        fmt::format("{}\"{}\":{{{}}}", drafts.empty() ? "" : ",", draft.option, CountsJson(own));
    folders.push_back(std::string(draft.folder) + "/");
  }
  if (folders.size() > 1) Print(CountsLine("all", counts));
  if (!flags.json_file.empty()) {
    const Status written = WriteFile(flags.json_file, ReportJson(counts, drafts, failures));
    if (!written.ok()) return Fail(kSchematest, written.error());
  }
  return Conclude(flags, *ratchet, failures, [&](const std::string& file) {
    const auto in = [&file](const std::string& folder) { return file.starts_with(folder); };
    if (std::none_of(folders.begin(), folders.end(), in)) return false;
    return flags.formats || file.find("/optional/format/") == std::string::npos;
  });
}

}  // namespace

void AddSchemaTest(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand(kSchematest, "Run the official JSON Schema test suite against the masks");
  const auto flags = std::make_shared<SchematestFlags>();
  TextOption(command, "--suite", flags->suite, "DIR",
             "Folder of the suite (a clone of json-schema-org/JSON-Schema-Test-Suite)")
      ->required();
  std::vector<std::string> names = {"all"};
  for (const SuiteDraft& draft : kSuiteDrafts) names.emplace_back(draft.option);
  command->add_option("--draft", flags->draft, "Which draft's tests")
      ->required()
      ->check(CLI::IsMember(names))
      ->type_name("D");
  command->add_flag("--formats", flags->formats,
                    "Also run optional/format, with \"format\" as an assertion");
  TextOption(command, "--json", flags->json_file, "FILE", "Write counts and inexact cases as JSON");
  TextOption(command, "--ratchet", flags->ratchet_file, "FILE",
             "File that names the inexact cases; fail on others only");
  command->add_flag("--update-ratchet", flags->update_ratchet,
                    "Rewrite that file, reasons are kept");
  TextOption(command, "--tokenizer", flags->tokenizer, "PATH",
             "Token by token through the masks (default: byte by byte)");
  flags->layout.AddTo(command);
  flags->memory.AddTo(command);
  command->footer(
      "Exit codes: 0 all exact (or in the ratchet file); 1 some are not; 2 bad input or usage.\n"
      "Example:\n  pawl schematest --suite ~/JSON-Schema-Test-Suite --draft 2020-12 --formats "
      "--ratchet tests/data/schematest.ratchet");
  command->callback([flags, &action] { action = [flags] { return SchemaTest(*flags); }; });
}

}  // namespace pawl::cli
