// SourceFolder: the source files of a repository, which may come from a stranger.
//
//   SourceFolder folder("checkout");
//   const SourceList list = *folder.List({});           // "src/a.py", "src/b.ts", ...
//   Result<std::string> text = folder.Read("src/a.py", size_t{2} << 20);
//
// Only regular files that lie in the folder are read: a link that leads out of the folder, a path
// with "..", a pipe and a device are errors.
//
// Thread safety: all functions may be called from several threads.
#ifndef PAWL_PLUGINS_MONITORS_SOURCE_FOLDER_H_
#define PAWL_PLUGINS_MONITORS_SOURCE_FOLDER_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "plugins/monitors/syntax.h"

namespace pawl::monitors {

// How much of a folder is looked at.
struct SourceLimits {
  size_t entries = 2'000'000;             // files and folders of any kind
  size_t files = 200'000;                 // source files
  size_t file_bytes = size_t{1} << 20;    // of one file; larger files are passed over
  size_t source_bytes = size_t{2} << 30;  // of all source files together
};

struct SourceList {
  std::vector<std::pair<std::string, Language>> files;  // relative to the folder, sorted
  size_t bytes = 0;                                     // of the files that may be read
  size_t outside = 0;                                   // links that lead out of the folder
  size_t deep = 0;    // folders whose path is longer than the system opens
  std::string limit;  // the limit that ended the walk, in words; empty: none was reached
};

class SourceFolder {
 public:
  explicit SourceFolder(std::string folder);

  const std::string& path() const { return path_; }
  // The files in a language that has a parser, in folders that are not hidden, not built and not
  // installed. Errors: kIo.
  Result<SourceList> List(const SourceLimits& limits) const;
  // `path`: relative to the folder, or absolute and in it. Errors: kIo, also for files that are
  // not in the folder; kLimit for files of more than `max_bytes`.
  Result<std::string> Read(const std::string& path, size_t max_bytes) const;
  // The path in the folder of a file that may not be there yet: `path` is absolute, relative to the
  // current folder, or relative to the folder. Empty: it does not lie in the folder.
  std::string PathOf(const std::string& path) const;
  bool HasFile(const std::string& path) const;
  bool HasFolder(const std::string& path) const;
  // The names in a folder of the folder, at most `most`; none where there is no such folder.
  std::vector<std::string> NamesIn(const std::string& path, size_t most) const;

 private:
  // The path without links, when it is in the folder; empty otherwise.
  std::string Inside(const std::string& path) const;

  std::string path_;
  std::string real_;  // without links; empty: there is no such folder
};

}  // namespace pawl::monitors

#endif  // PAWL_PLUGINS_MONITORS_SOURCE_FOLDER_H_
