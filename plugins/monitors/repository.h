// A repository around the text that is being written: which of its files declares what. The index
// answers; files are read when their declarations are first needed.
#ifndef PAWL_PLUGINS_MONITORS_REPOSITORY_H_
#define PAWL_PLUGINS_MONITORS_REPOSITORY_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plugins/monitors/index.h"
#include "plugins/monitors/source_folder.h"

namespace pawl::monitors {

class Repository {
 public:
  // Brings the folder's index in the cache folder up to date. Without a cache folder, or where that
  // folder cannot be written to, the index is made in memory. nullptr: there is no such folder.
  static std::unique_ptr<Repository> Open(const std::string& folder, const std::string& cache,
                                          const IndexOptions& options = {});

  const std::string& folder() const { return folder_.path(); }
  // The limit that was reached when the folder was read, in words; empty: none.
  const std::string& limit() const { return limit_; }
  // Files, relative to the folder, that declare a type of this name at their top.
  const std::vector<std::string>& FilesWithType(const std::string& name);
  // A file of the repository says that it belongs to this package.
  bool HasPackage(const std::string& name);
  // nullopt: there is no such file in the folder, or the file is too large.
  std::optional<std::string> Read(const std::string& path) const;
  bool Has(const std::string& path) const;

 private:
  Repository(const std::string& folder, std::unique_ptr<RepositoryIndex> index, std::string limit)
      : folder_(folder), index_(std::move(index)), limit_(std::move(limit)) {}
  SourceFolder folder_;
  std::unique_ptr<RepositoryIndex> index_;
  std::string limit_;
  std::unordered_map<std::string, std::vector<std::string>> types_;
  std::unordered_map<std::string, bool> packages_;
};

}  // namespace pawl::monitors

#endif  // PAWL_PLUGINS_MONITORS_REPOSITORY_H_
