// `pawl complete`: one code completion under the type monitors.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/utf8.h"
#include "src/cli/command.h"
#include "src/cli/monitor_flags.h"
#include "src/cli/options.h"
#include "src/cli/search_flags.h"
#include "src/text/fim.h"
#ifdef PAWL_HAVE_MONITORS
#include "plugins/monitors/source_folder.h"
#endif

namespace pawl::cli {
namespace {

constexpr const char* kComplete = "complete";

struct CompleteFlags {
  MonitorFlags monitored;
  CompleterFlags completer;
  std::string file;
  int line = -1;  // not given
  int column = -1;
  std::optional<std::string> prefix;
  std::string suffix;
  std::optional<std::string> prompt;
  std::string language;
  bool no_monitors = false;
  bool suffix_aware = false;
  SelfInfillFlags infill;
  SamplingFlags sampling{64};
  bool json = false;
  bool stats = false;
};

#ifndef PAWL_HAVE_MONITORS

int Run(const CompleteFlags&) { return FailWithoutMonitors(kComplete); }

#else

// The byte of a line and a column, both from 1; a column counts bytes.
Result<size_t> ByteAt(std::string_view text, int line, int column) {
  size_t at = 0;
  for (int i = 1; i < line; ++i) {
    const size_t newline = text.find('\n', at);
    if (newline == std::string_view::npos) {
      return Error{ErrorCode::kInvalid, fmt::format("the file has only {} lines", i), "--line"};
    }
    at = newline + 1;
  }
  size_t end = text.find('\n', at);
  if (end == std::string_view::npos) end = text.size();
  if (static_cast<size_t>(column - 1) > end - at) {
    return Error{ErrorCode::kInvalid,
                 fmt::format("line {} has only {} columns", line, end - at + 1), "--col"};
  }
  return at + static_cast<size_t>(column - 1);
}

Status Fill(const CompleteFlags& flags, completion::CompletionRequest& request) {
  const int given = static_cast<int>(flags.prefix.has_value()) +
                    static_cast<int>(flags.prompt.has_value()) +
                    static_cast<int>(flags.line != -1 || flags.column != -1);
  if (given != 1) {
    return Error{ErrorCode::kInvalid, "one of --line and --col, --prefix, --prompt is needed", ""};
  }
  if (flags.prefix) {
    request.prefix = *flags.prefix;
    request.suffix = flags.suffix;
  } else if (flags.prompt) {
    const auto parts = ParseFimPrompt(*flags.prompt);
    if (!parts) return Error{ErrorCode::kInvalid, "has none of the known markers", "--prompt"};
    request.prefix = parts->prefix;
    request.suffix = parts->suffix;
  } else {
    if (flags.file.empty())
      return Error{ErrorCode::kInvalid, "is needed with --line and --col", "--file"};
    if (flags.line < 1 || flags.column < 1) {
      return Error{ErrorCode::kInvalid, "lines and columns count from 1",
                   flags.line < 1 ? "--line" : "--col"};
    }
    const std::string& repo = flags.monitored.repo;
    const bool in_repo = !repo.empty() && !flags.file.starts_with("/");
    Result<std::string> text = in_repo
                                   ? monitors::SourceFolder(repo).Read(flags.file, kMaxFileBytes)
                                   : ReadInput(flags.file);
    if (!text.ok()) return text.error();
    const Result<size_t> at = ByteAt(*text, flags.line, flags.column);
    if (!at.ok()) return at.error();
    request.prefix = text->substr(0, *at);
    request.suffix = text->substr(*at);
  }
  const Result<std::optional<monitors::Language> > language = LanguageFlag(flags.language);
  if (!language.ok()) return language.error();
  request.language = *language ? *language : monitors::LanguageOfFile(flags.file);
  request.file = flags.file;
  return {};
}

int Run(const CompleteFlags& flags) {
  if (Status status = flags.sampling.Check(); !status.ok()) return Fail(kComplete, status.error());
  if (Status status = flags.infill.Check(); !status.ok()) return Fail(kComplete, status.error());
  if (Status status = flags.monitored.Check(); !status.ok()) return Fail(kComplete, status.error());
  completion::CompletionRequest request;
  if (Status status = Fill(flags, request); !status.ok()) return Fail(kComplete, status.error());
  for (const auto& [text, what] :
       {std::pair(&request.prefix, "the prefix"), std::pair(&request.suffix, "the suffix")}) {
    if (Status status = CheckUtf8(*text); !status.ok()) {
      return Fail(kComplete, InFile(what, status.error()));
    }
  }
  Result<LoadedCompleter> loaded = flags.completer.Load(kComplete, flags.monitored);
  if (!loaded.ok()) return Fail(kComplete, loaded.error());
  if (!request.language && !flags.no_monitors && !flags.file.empty()) {
    Note(kComplete,
         monitors::HasJsx(flags.file)
             ? "note: the monitors do not read JSX: " + flags.file + " is completed without"
             : "note: no monitor reads " + flags.file +
                   ": its name ends as no language they know; --language names one");
  }
  request.repo = flags.monitored.repo;
  request.cache = MonitorFlags::CacheFolder();
  request.java_home = MonitorFlags::JavaHome();
  request.monitors = flags.monitored.monitors;
  request.use_monitors = !flags.no_monitors;
  request.suffix_aware = flags.suffix_aware;
  if (flags.infill.on) request.infill_loops = flags.infill.loops;
  request.infill_threshold = flags.infill.threshold;
  request.max_tokens = flags.sampling.max_tokens;
  request.sampling = flags.sampling.params;
  const Result<completion::CompletionResult> done = loaded->completer->Complete(request);
  if (!done.ok()) {
    Error error = done.error();
    if (error.place == "monitors" || error.place == "max_tokens" || error.place == "prefix") {
      error.place = error.place == "max_tokens" ? "--max-tokens" : "--" + error.place;
    }
    return Fail(kComplete, error);
  }
  if (flags.json) {
    const nlohmann::ordered_json report = {{"text", done->text},
                                           {"ended", done->ended},
                                           {"parses", done->parses},
                                           {"tokens", done->tokens},
                                           {"refused", done->refused},
                                           {"points", done->points},
                                           {"constrained", done->constrained},
                                           {"given_up", done->given_up},
                                           {"model_seconds", done->model_seconds},
                                           {"monitor_seconds", done->monitor_seconds}};
    Print(report.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else {
    Print(done->text + "\n");
  }
  for (const std::string& limit : done->limits)
    Note(kComplete, "note: " + limit + "; the rest is not known");
  if (!done->parses) Note(kComplete, "note: with this completion the file has a syntax error");
  if (flags.stats) {
    Note(kComplete,
         fmt::format(
             "{} tokens, {} refused, {} of {} points constrained, {} given up; model {:.3f} s, "
             "monitors {:.3f} s",
             done->tokens, done->refused, done->constrained, done->points, done->given_up,
             done->model_seconds, done->monitor_seconds));
  }
  return kExitOk;
}

#endif

}  // namespace

void AddComplete(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand(kComplete, "Complete code at a place, naming only what exists");
  auto flags = std::make_shared<CompleteFlags>();
  flags->monitored.AddTo(command);
  command->add_option("--file", flags->file, "The source file; in --repo where that is given");
  command->add_option("--line", flags->line, "Where to complete: line, from 1");
  command->add_option("--col", flags->column, "Column in bytes, from 1");
  command->add_option("--prefix", flags->prefix,
                      "The text before the cursor, in place of --line and --col");
  command->add_option("--suffix", flags->suffix, "The text behind it");
  command->add_option("--prompt", flags->prompt,
                      "Both, with the fill-in-the-middle markers of a known model");
  command->add_option("--language", flags->language,
                      "typescript, java, python or cpp (default: by the name of --file)");
  command->add_flag("--no-monitors", flags->no_monitors, "None");
  command->add_flag("--suffix-aware", flags->suffix_aware,
                    "What the suffix declares is known, and it is not repeated");
  flags->infill.AddTo(command, "Self-infilling, in place of the monitors");
  flags->completer.AddTo(command);
  flags->sampling.AddTo(command);
  command->add_flag("--json", flags->json, "The completion and figures as JSON");
  command->add_flag("--stats", flags->stats, "Figures on stderr");
  command->footer("Example:\n  pawl complete --repo . --file src/a.ts --line 7 --col 12");
  command->callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace pawl::cli
