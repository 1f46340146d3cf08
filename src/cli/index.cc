// `pawl index`: reads a repository into its index, only what has changed since the last time.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "src/cli/command.h"
#include "src/cli/monitor_flags.h"
#include "src/cli/options.h"
#include "src/cli/progress.h"
#ifdef PAWL_HAVE_MONITORS
#include "plugins/monitors/index.h"
#endif

namespace pawl::cli {
namespace {

constexpr const char* kIndex = "index";

struct IndexFlags {
  std::string folder;
  std::string db;
  std::string members;
  std::string file;
  int threads = 0;
  int max_files = 200'000;
  int max_source_mb = 2048;
};

#ifndef PAWL_HAVE_MONITORS

int Run(const IndexFlags&) { return FailWithoutMonitors(kIndex); }

#else

// What an editor does when a file is saved: the others are not looked at.
int UpdateFile(const IndexFlags& flags, monitors::RepositoryIndex& index) {
  const std::string path = (std::filesystem::path(flags.folder) / flags.file).string();
  const auto language = monitors::LanguageOfFile(flags.file);
  if (!language || !monitors::HasGrammar(*language)) {
    return Fail(kIndex, Error{ErrorCode::kInvalid, "is no Java, TypeScript or Python file", path});
  }
  const Result<std::string> text =
      monitors::SourceFolder(flags.folder).Read(flags.file, monitors::SourceLimits().file_bytes);
  if (!text.ok()) return Fail(kIndex, text.error());
  const auto start = std::chrono::steady_clock::now();
  if (Status status = index.UpdateFile(flags.file, *language, *text); !status.ok())
    return Fail(kIndex, status.error());
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Print(fmt::format("{}: {:.1f} ms\n", flags.file, 1e3 * seconds));
  return kExitOk;
}

int Run(const IndexFlags& flags) {
  std::error_code error;
  if (!std::filesystem::is_directory(flags.folder, error)) {
    return Fail(kIndex, Error{ErrorCode::kIo, "is no folder", flags.folder});
  }
  const bool own = flags.db.empty();
  const std::string cache = MonitorFlags::CacheFolder();
  if (own && cache.empty()) {
    return Fail(kIndex, Error{ErrorCode::kIo,
                              "is needed: neither XDG_CACHE_HOME nor HOME names a folder", "--db"});
  }
  const std::string path = own ? monitors::IndexPath(cache, flags.folder) : flags.db;
  auto index = monitors::RepositoryIndex::Open(
      path, own ? monitors::ForeignFile::kReplace : monitors::ForeignFile::kRefuse);
  if (!index.ok()) return Fail(kIndex, index.error());
  if (!flags.file.empty()) return UpdateFile(flags, **index);
  const auto start = std::chrono::steady_clock::now();
  monitors::IndexCounts counts;
  {
    Progress progress(kIndex, "indexing");
    monitors::IndexOptions options;
    options.threads = flags.threads;
    options.limits.files = static_cast<size_t>(flags.max_files);
    options.limits.source_bytes = static_cast<size_t>(flags.max_source_mb) << 20;
    options.progress = [&](size_t done, size_t all) {
      if (done % 64 == 0) progress.Set(fmt::format("indexing {} of {} files", done, all));
    };
    auto updated = (*index)->Update(flags.folder, options);
    if (!updated.ok()) return Fail(kIndex, updated.error());
    counts = *updated;
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!counts.limit.empty()) {
    Note(kIndex,
         fmt::format("note: {} {}; the rest is not in the index", flags.folder, counts.limit));
  }
  if (counts.deep > 0) {
    Note(kIndex, fmt::format("note: {} folders of {} lie too deep to be opened", counts.deep,
                             flags.folder));
  }
  if (counts.outside > 0) {
    Note(kIndex, fmt::format("note: {} links that lead out of {} were passed over", counts.outside,
                             flags.folder));
  }
  if (!flags.members.empty()) {
    auto members = (*index)->MembersOf(flags.members);
    if (!members.ok()) return Fail(kIndex, members.error());
    if (members->empty()) {
      Note(kIndex,
           fmt::format("no type \"{}\" with members is in {}", flags.members, flags.folder));
      return kExitSomeFailed;
    }
    for (const auto& m : *members) {
      Print(fmt::format("{}{} {}{}{} {}:{}\n", m.is_static ? "static " : "", m.kind, m.name,
                        m.signature, m.type.empty() ? "" : ": " + m.type, m.file, m.line));
    }
    return kExitOk;
  }
  Print(
      fmt::format("{} files: {} parsed ({} lines), {} unchanged, {} removed, {} skipped; {} "
                  "symbols; {:.2f} s\n",
                  counts.files, counts.parsed, counts.lines, counts.unchanged, counts.removed,
                  counts.skipped, counts.symbols, seconds));
  return kExitOk;
}

#endif

}  // namespace

void AddIndex(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand(kIndex, "Index the Java, TypeScript and Python files of a folder");
  auto flags = std::make_shared<IndexFlags>();
  command->add_option("dir", flags->folder, "The folder")->required()->check(NotEmpty);
  TextOption(command, "--db", flags->db, "FILE",
             "The index file (default: a file of DIR in the user's cache folder)");
  TextOption(command, "--members", flags->members, "TYPE", "Print the members of this type");
  TextOption(command, "--file", flags->file, "FILE",
             "Bring this one file up to date, by its path in DIR, and look at no other");
  command->add_option("--threads", flags->threads, "0: all cores")
      ->transform(WholeNumber(0, 1024))
      ->type_name("N");
  CountOption(command, "--max-files", flags->max_files, 1, 100'000'000,
              "Source files that are read at most");
  CountOption(command, "--max-source-mb", flags->max_source_mb, 1, 1 << 20,
              "MiB of source files that are read at most");
  command->footer("Example:\n  pawl index . --members Stack");
  command->callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace pawl::cli
