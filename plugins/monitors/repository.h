// A repository beside the text that is being written: which of its files declares what. The index
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

namespace pawl::monitors {

class Repository {
 public:
  // Brings the index in the folder up to date; where that folder can't be written to, the index is
  // made in memory. nullptr: the folder is none.
  static std::unique_ptr<Repository> Open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  // Files, relative to the folder, that declare a type of this name at their top.
  const std::vector<std::string>& FilesWithType(const std::string& name);
  // A file of the repository says that it belongs to this package.
  bool HasPackage(const std::string& name);
  // nullopt: there is none, or it is too large.
  std::optional<std::string> Read(const std::string& path) const;
  bool Has(const std::string& path) const;

 private:
  Repository(std::string folder, std::unique_ptr<RepositoryIndex> index)
      : folder_(std::move(folder)), index_(std::move(index)) {}
  std::string folder_;
  std::unique_ptr<RepositoryIndex> index_;
  std::unordered_map<std::string, std::vector<std::string>> types_;
  std::unordered_map<std::string, bool> packages_;
};

}  // namespace pawl::monitors

#endif  // PAWL_PLUGINS_MONITORS_REPOSITORY_H_
