// `pawl monitor`: reads finished source files as if a model wrote them, token by token, under the
// monitors. A file is accepted when no monitor would have stopped the model and its end leaves
// nothing undeclared.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/cli/command.h"
#include "src/cli/describe.h"
#include "src/cli/engine.h"
#include "src/cli/monitor_at.h"
#include "src/cli/monitor_flags.h"
#include "src/cli/progress.h"

namespace pawl::cli {
namespace {

constexpr const char* kMonitor = "monitor";

struct MonitorCommandFlags {
  std::vector<std::string> files;
  std::string language;
  MonitorFlags monitored;
  bool strict = false;
  bool unfinished = false;
  bool places = false;
  std::string at;
  bool editing = false;
  std::vector<std::string> class_path;
  std::string field = "program";
  std::string json;
  std::string tokenizer;
};

#ifndef PAWL_HAVE_MONITORS

int Run(const MonitorCommandFlags&) { return FailWithoutMonitors(kMonitor); }

#else

using monitors::Language;
using monitors::MonitorSet;
using monitors::Refusal;

struct Input {
  std::string name;
  std::string text;
};

struct Outcome {
  std::optional<Refusal> refusal;
  monitors::MonitorCounts counts;
  size_t tokens = 0;
  double seconds = 0;  // all of it
};

bool JsonLines(const std::string& file) {
  return file.ends_with(".jsonl") || file.ends_with(".ndjson");
}

std::string Place(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, byte);
  const size_t line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const size_t newline = before.rfind('\n');
  return fmt::format("{}:{}", line, newline == std::string_view::npos ? byte + 1 : byte - newline);
}

// Each name of a member is written where it stands, with the rest of the text behind it.
std::optional<Refusal> ReadNames(MonitorSet& set, std::string_view text) {
  monitors::Scan scan(set.language(), set.limits().brackets);
  for (size_t at = 0; at < text.size(); scan.Add(text[at++])) {
    if (scan.too_deep() != SIZE_MAX) return monitors::TooDeepAt(text, scan.too_deep());
    if (at == 0 || text[at - 1] != '.' || !monitors::NameStart(text[at]) || !scan.in_code())
      continue;
    size_t end = at;
    while (end < text.size() && monitors::NameByte(text[end])) ++end;
    auto state = set.Start(std::string(text.substr(0, at)), std::string(text.substr(end)));
    for (size_t i = at; i < std::min(end + 1, text.size()); ++i) {
      Refusal refusal;
      if (state.Add(text[i], &refusal)) continue;
      refusal.byte = at;
      refusal.identifier = text.substr(at, end - at);
      return refusal;
    }
  }
  return std::nullopt;
}

Result<Outcome> Read(const MonitorCommandFlags& flags, MonitorSet& set, const ModelText& vocabulary,
                     const Input& input) {
  Result<std::vector<TokenId> > tokens =
      SpellText(*vocabulary.tokenizer, *vocabulary.vocabulary, input.text);
  if (!tokens.ok()) return tokens.error();
  Outcome outcome;
  outcome.tokens = tokens->size();
  set.counts() = {};
  set.counts().keep_places = flags.places;
  const auto start = std::chrono::steady_clock::now();
  if (flags.editing) {
    outcome.refusal = ReadNames(set, input.text);
    outcome.counts = set.counts();
    outcome.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return outcome;
  }
  auto state = set.Start("");
  size_t at = 0;
  for (const TokenId token : *tokens) {
    if (state.too_deep() != SIZE_MAX) break;
    const size_t size = vocabulary.vocabulary->bytes(token).size();
    Refusal refusal;
    if (!state.Add(std::string_view(input.text).substr(at, size), &refusal)) {
      // The text has the whole name.
      size_t end = refusal.byte;
      while (end < input.text.size() && monitors::NameByte(input.text[end])) ++end;
      if (end > refusal.byte)
        refusal.identifier = input.text.substr(refusal.byte, end - refusal.byte);
      outcome.refusal = std::move(refusal);
      break;
    }
    at += size;
  }
  if (!outcome.refusal && state.too_deep() != SIZE_MAX)
    outcome.refusal = monitors::TooDeepAt(input.text, state.too_deep());
  outcome.counts = set.counts();
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!outcome.refusal && !flags.unfinished) outcome.refusal = set.Finish(input.text);
  if (!outcome.refusal && flags.strict) outcome.refusal = set.FinishStrict(input.text);
  outcome.counts.given_up = set.counts().given_up;
  return outcome;
}

nlohmann::ordered_json Entry(const Input& input, const Outcome& outcome) {
  nlohmann::ordered_json entry;
  entry["name"] = input.name;
  entry["accepted"] = !outcome.refusal.has_value();
  entry["byte"] = outcome.refusal ? nlohmann::ordered_json(outcome.refusal->byte) : nullptr;
  entry["identifier"] =
      outcome.refusal ? nlohmann::ordered_json(outcome.refusal->identifier) : nullptr;
  entry["constrained"] = outcome.counts.constrained;
  entry["points"] = outcome.counts.points;
  entry["given_up"] = outcome.counts.given_up;
  const double trigger = outcome.counts.trigger_seconds;
  const double away = std::max(0.0, outcome.seconds - trigger);
  entry["us_per_token"] =
      outcome.tokens == 0 ? 0.0 : away * 1e6 / static_cast<double>(outcome.tokens);
  entry["us_per_trigger"] =
      outcome.counts.points == 0 ? 0.0 : trigger * 1e6 / static_cast<double>(outcome.counts.points);
  if (outcome.refusal) {
    entry["monitor"] = outcome.refusal->monitor;
    entry["message"] = outcome.refusal->message;
    entry["at_end"] = outcome.refusal->at_end;
  }
  if (outcome.counts.keep_places) {
    entry["places"] = nlohmann::ordered_json::array();
    for (const auto& place : outcome.counts.places)
      entry["places"].push_back({place.byte, place.monitor, place.constrained});
  }
  return entry;
}

// For the language server, which works in a folder of its own.
std::string Absolute(const std::string& file) {
  std::error_code error;
  return file == "-" ? "" : std::filesystem::absolute(file, error).lexically_normal().string();
}

Result<std::vector<Input> > Inputs(const MonitorCommandFlags& flags, const std::string& file) {
  // A pipe that a shell made is read to its end; one that lies in a folder may have no writer.
  const bool pipe =
      file == "-" || file.starts_with("/dev/fd/") || file.starts_with("/proc/self/fd/");
  const size_t most = JsonLines(file) ? size_t{1} << 30 : kMaxFileBytes;
  Result<std::string> content = pipe ? ReadInput(file, most) : ReadRegularFile(file, most);
  if (!content.ok()) return content.error();
  std::vector<Input> inputs;
  if (!JsonLines(file)) {
    inputs.push_back({file, std::move(*content)});
    return inputs;
  }
  size_t line = 0;
  for (size_t at = 0; at < content->size();) {
    size_t end = content->find('\n', at);
    if (end == std::string::npos) end = content->size();
    const std::string text = content->substr(at, end - at);
    at = end + 1;
    ++line;
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Result<json::Value> value = json::Parse(text);
    const std::string place = fmt::format("{}:{}", file, line);
    if (!value.ok()) return InFile(place, value.error());
    const json::Value* program = value->Find(flags.field);
    if (program == nullptr || program->type != json::Type::kString) {
      return Error{ErrorCode::kInvalid, fmt::format("has no string \"{}\" (--field)", flags.field),
                   place};
    }
    inputs.push_back({place, program->text});
  }
  return inputs;
}

// `alone`: the only text of its file; of others only refusals are printed, where there is no
// report.
void PrintOutcome(const Input& input, const Outcome& outcome, bool alone, bool refusals) {
  if (!alone && (!outcome.refusal || !refusals)) return;
  if (!outcome.refusal) {
    const uint64_t given_up = outcome.counts.given_up;
    Print(fmt::format("{}: accepted ({} tokens, {} of {} points constrained{})\n", input.name,
                      outcome.tokens, outcome.counts.constrained, outcome.counts.points,
                      given_up == 0 ? "" : fmt::format(", {} given up", given_up)));
  } else if (const Refusal& r = *outcome.refusal; r.monitor == monitors::kLimits) {
    Print(fmt::format("{}: {}\n", input.name, r.message));
  } else {
    Print(fmt::format("{}: refused at {}: {}: {} ({}{})\n", input.name, Place(input.text, r.byte),
                      Readable(r.identifier), r.message, r.monitor.empty() ? "strict" : r.monitor,
                      r.at_end ? ", at the end of the text" : ""));
  }
}

Result<std::unique_ptr<MonitorSet> > MakeSet(const MonitorCommandFlags& flags, Language language,
                                             const std::shared_ptr<monitors::LspServer>& server,
                                             const std::string& file) {
  auto made = MonitorSet::Make(language, {.monitors = flags.monitored.monitors,
                                          .repo = flags.monitored.repo,
                                          .cache = MonitorFlags::CacheFolder(),
                                          .class_path = flags.class_path,
                                          .java_home = MonitorFlags::JavaHome(),
                                          .server = server,
                                          .file = Absolute(file)});
  if (made.ok()) return made;
  return Error{made.error().code, made.error().message, "--" + made.error().place};
}

int Run(const MonitorCommandFlags& flags) {
  if (!flags.json.empty()) {
    if (Status status = CheckWritable(flags.json); !status.ok())
      return Fail(kMonitor, status.error());
  }
  if (Status status = flags.monitored.Check(); !status.ok()) return Fail(kMonitor, status.error());
  for (const std::string& place : flags.class_path) {
    std::error_code error;
    if (std::filesystem::exists(place, error)) continue;
    return Fail(kMonitor,
                Error{ErrorCode::kIo, fmt::format("\"{}\" is not there", place), "--class-path"});
  }
  const Result<std::optional<Language> > given = LanguageFlag(flags.language);
  if (!given.ok()) return Fail(kMonitor, given.error());
  const std::shared_ptr<monitors::LspServer> server = flags.monitored.Server();
  Result<ModelText> text = LoadText(kMonitor, flags.tokenizer);
  if (!text.ok()) return Fail(kMonitor, text.error());
  std::map<Language, std::unique_ptr<MonitorSet> > sets;
  nlohmann::ordered_json report;
  report["files"] = nlohmann::ordered_json::array();
  int exit_code = kExitOk;
  Progress progress(kMonitor, "reading");
  for (const std::string& file : flags.files) {
    progress.Set("reading " + file);
    const std::optional<Language> language = *given ? *given : monitors::LanguageOfFile(file);
    if (!language) {
      const std::string why =
          monitors::HasJsx(file) ? "the monitors do not read JSX; without it, --language typescript"
                                 : "--language is needed: its name tells none";
      exit_code = std::max(exit_code, Fail(kMonitor, Error{ErrorCode::kInvalid, why, file}));
      continue;
    }
    if (flags.strict && *language != Language::kTypeScript) {
      exit_code = std::max(exit_code,
                           Fail(kMonitor, Error{ErrorCode::kUnsupported,
                                                fmt::format("is of TypeScript, and {} is {}", file,
                                                            monitors::LanguageName(*language)),
                                                "--strict"}));
      continue;
    }
    std::unique_ptr<MonitorSet>& set = sets[*language];
    if (server != nullptr) set = nullptr;  // it knows a text by its file
    if (set == nullptr) {
      auto made = MakeSet(flags, *language, server, file);
      if (!made.ok()) return Fail(kMonitor, made.error());
      set = std::move(*made);
    }
    set->analysis().SetFile(file);
    Result<std::vector<Input> > inputs = Inputs(flags, file);
    if (!inputs.ok()) {
      exit_code = std::max(exit_code, Fail(kMonitor, inputs.error()));
      continue;
    }
    size_t accepted = 0;
    for (const Input& input : *inputs) {
      if (!flags.at.empty()) {
        const auto names = PrintNamesAt(input.name, input.text, *language, flags.at,
                                        flags.monitored, text->vocabulary, server);
        if (!names.ok()) return Fail(kMonitor, names.error());
        report["files"].push_back(*names);
        continue;
      }
      Result<Outcome> outcome = Read(flags, *set, *text, input);
      if (!outcome.ok()) {
        exit_code = std::max(exit_code, Fail(kMonitor, InFile(input.name, outcome.error())));
        continue;
      }
      if (outcome->refusal) {
        exit_code = std::max(exit_code, static_cast<int>(kExitSomeFailed));
      } else {
        ++accepted;
      }
      PrintOutcome(input, *outcome, inputs->size() == 1, flags.json.empty());
      report["files"].push_back(Entry(input, *outcome));
    }
    if (inputs->size() > 1 && flags.at.empty())
      Print(fmt::format("{}: {} of {} accepted\n", file, accepted, inputs->size()));
  }
  for (const auto& [language, set] : sets) {
    if (set == nullptr) continue;
    for (const std::string& limit : set->analysis().Limits())
      Note(kMonitor, "note: " + limit + "; the rest is not known");
  }
  if (server != nullptr && server->counts().failures > 0 && server->counts().known == 0) {
    Note(kMonitor, fmt::format("the language server ({}) did not start, or ended: nothing is known "
                               "from it",
                               flags.monitored.lsp_server));
  }
  if (!flags.json.empty()) {
    const std::string dump =
        report.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (Status status = WriteFile(flags.json, dump); !status.ok())
      return Fail(kMonitor, status.error());
  }
  return exit_code;
}

#endif

}  // namespace

void AddMonitor(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      kMonitor, "Read finished source files as if a model wrote them, under the type monitors");
  auto flags = std::make_shared<MonitorCommandFlags>();
  command
      ->add_option("files", flags->files,
                   "Source files, or .jsonl with a program on each line; -: standard input")
      ->required();
  command->add_option("--language", flags->language,
                      "typescript, java or python (default: by the file's name)");
  flags->monitored.AddTo(command);
  command
      ->add_option("--class-path", flags->class_path,
                   "Java: .jar and .jmod files and folders of them, separated by commas; the "
                   "development kit of this machine is known")
      ->delimiter(',');
  command->add_flag("--strict", flags->strict,
                    "Also refuse what does not type-check in the strict subset (TypeScript)");
  command->add_flag("--unfinished", flags->unfinished,
                    "The texts may go on: their ends are not judged");
  command->add_option("--field", flags->field, "Where a line of JSON has its program")
      ->capture_default_str();
  command->add_option("--json", flags->json, "Write a report");
  command->add_flag("--places", flags->places,
                    "The report says for each place whether it was constrained");
  command
      ->add_option("--at", flags->at,
                   "The names that may stand at this line and column, both from 1, in place of "
                   "reading the files")
      ->type_name("LINE:COL");
  command->add_flag("--editing", flags->editing,
                    "The text behind each name of a member is known, as in an editor; only these "
                    "names are judged");
  command->add_option("--tokenizer", flags->tokenizer, kTokenizerHelp);
  command->footer("Example:\n  pawl monitor src/*.ts --json report.json");
  command->callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace pawl::cli
