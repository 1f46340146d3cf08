// The index of a repository: symbols, types and their members, supertypes and imports of its Java,
// TypeScript and Python files, in an SQLite file.
//
//   auto index = RepositoryIndex::Open(IndexPath("/home/ann/.cache/pawl", "repo"));
//   auto counts = (*index)->Update("repo", {.threads = 2});   // parses the files that have changed
//   for (const IndexedSymbol& s : *(*index)->MembersOf("Stack")) ...
//
// A repository may come from a stranger. So the index file lies outside of the repository, in the
// user's cache folder. Update reads regular files in the repository alone (source_folder.h), up to
// the limits of IndexOptions.
//
// Thread safety: one call at a time; Update uses threads of its own.
#ifndef PAWL_PLUGINS_MONITORS_INDEX_H_
#define PAWL_PLUGINS_MONITORS_INDEX_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "plugins/monitors/source_folder.h"
#include "plugins/monitors/syntax.h"

struct sqlite3;

namespace pawl::monitors {

struct IndexedSymbol {
  std::string name;
  std::string kind;  // class, interface, enum, record, alias, function, method, constructor, field,
                     // constant, variable
  std::string container;   // of members: the type that has it
  std::string visibility;  // public, protected, private, package
  bool is_static = false;
  int arity = -1;          // parameters; -1: none of its own
  std::string signature;   // the parameters as written
  std::string type;        // what it returns or is, as written
  std::string supertypes;  // as written
  std::string file;
  int line = 0;  // from 1
};

// The symbols and imports of one text. Survives anything: what has errors gives what could be read.
struct FileSymbols {
  std::vector<IndexedSymbol> symbols;
  std::vector<std::string> imports;
};
FileSymbols ExtractSymbols(const Tree& tree);

struct IndexOptions {
  int threads = 0;  // 0: all cores
  SourceLimits
      limits;  // of the files that are read; IndexCounts::limit tells which one was reached
  // Of the index file: when it is larger, Update ends with kLimit.
  size_t max_bytes = size_t{1} << 30;
  std::function<void(size_t done, size_t all)> progress;
};

struct IndexCounts {
  // `skipped`: too large, binary or not readable. `outside`: links that lead out of the folder.
  size_t files = 0, parsed = 0, unchanged = 0, removed = 0, skipped = 0, outside = 0, deep = 0;
  size_t lines = 0;    // of the parsed files
  size_t symbols = 0;  // in the whole index
  std::string limit;   // the limit of SourceLimits that was reached, in words; empty: none
};

// Where the index of a folder is kept: a file in the cache folder, named for the folder's real
// path.
std::string IndexPath(const std::string& cache, const std::string& folder);

// What Open does with a file that holds something else than an index of Pawl.
enum class ForeignFile {
  kRefuse,   // an error; the file may be the user's data
  kReplace,  // an index is made in its place
};

class RepositoryIndex {
 public:
  // Makes the file and its folder when they are not there. A file is an index when its tables,
  // indexes, triggers and views are exactly those of this version; an index that was altered,
  // damaged or made by another version is made anew. ":memory:": an index in memory. Errors: kIo,
  // kInvalid (no index file).
  static Result<std::unique_ptr<RepositoryIndex>> Open(const std::string& path,
                                                       ForeignFile foreign = ForeignFile::kRefuse);
  ~RepositoryIndex();
  RepositoryIndex(const RepositoryIndex&) = delete;
  RepositoryIndex& operator=(const RepositoryIndex&) = delete;

  // Brings the index up to date with the folder. A damaged index is made anew. Errors: kIo, kLimit.
  Result<IndexCounts> Update(const std::string& folder, const IndexOptions& options = {});
  // One file alone, with the content that an editor has. Errors: kIo.
  Status UpdateFile(const std::string& path, Language language, const std::string& content);
  Result<std::vector<IndexedSymbol>> MembersOf(const std::string& type);
  Result<std::vector<IndexedSymbol>> Named(const std::string& name);
  // All files that belong to a package, and the package.
  Result<std::vector<std::pair<std::string, std::string>>> Packages();
  // The types at the top of a package's files, and the files.
  Result<std::vector<std::pair<std::string, std::string>>> TypesIn(const std::string& package);

 private:
  RepositoryIndex(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}
  static Result<std::unique_ptr<RepositoryIndex>> OpenFile(const std::string& path);
  enum class Content { kEmpty, kIndex, kOtherIndex, kForeign };
  Content Look();
  Status MakeTables();
  bool Whole();
  Status Renew();
  Status Run(const char* sql);
  Status Store(const std::string& path, Language language, uint64_t hash, size_t lines,
               const FileSymbols& symbols);
  Result<std::vector<IndexedSymbol>> Query(const char* sql, const std::string& argument);
  struct Parsed;
  Status StoreParsed(const Parsed& parsed, IndexCounts& counts);
  Status CheckSize(size_t max_bytes);
  Status Remove(const std::string& path);
  Result<std::vector<std::pair<std::string, std::string>>> Pairs(const char* sql,
                                                                 const std::string* argument);
  sqlite3* db_;
  std::string path_;
};

// A repository around the text that is being written: which of its files declares what. The index
// answers; files are read when their declarations are first needed.
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
  // The Java files that say to which package they belong, and the package; sorted.
  const std::vector<std::pair<std::string, std::string>>& PackagesByFile();
  // The types at the top of the package's files, each with its file.
  const std::vector<std::pair<std::string, std::string>>& TypesIn(const std::string& package);
  // As SourceFolder::PathOf.
  std::string PathOf(const std::string& path) const { return folder_.PathOf(path); }
  // Brings the index up to date with these files alone. false: none of them is a source file of the
  // folder.
  bool FilesChanged(const std::vector<std::string>& files);
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
  std::optional<std::vector<std::pair<std::string, std::string>>> package_of_;
  std::unordered_map<std::string, std::vector<std::pair<std::string, std::string>>> types_in_;
};

}  // namespace pawl::monitors

#endif  // PAWL_PLUGINS_MONITORS_INDEX_H_
