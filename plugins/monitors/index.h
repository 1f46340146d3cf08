// The index of a repository: symbols, types and their members, supertypes and imports of its Java,
// TypeScript and Python files, in an SQLite file.
//
//   auto index = RepositoryIndex::Open("repo/.pawl/index.sqlite");
//   auto counts = (*index)->Update("repo", {.threads = 2});       // only what has changed is read
//   again for (const IndexedSymbol& s : *(*index)->MembersOf("Stack")) ...
//
// Thread safety: one call at a time; Update uses threads of its own.
#ifndef PAWL_PLUGINS_MONITORS_INDEX_H_
#define PAWL_PLUGINS_MONITORS_INDEX_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pawl/result.h"
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
  int threads = 0;                          // 0: all cores
  size_t max_file_bytes = size_t{2} << 20;  // larger files are passed over
  size_t max_bytes =
      size_t{1} << 30;  // of the index file: when it is larger, Update ends with kLimit
  std::function<void(size_t done, size_t all)> progress;
};

struct IndexCounts {
  size_t files = 0, parsed = 0, unchanged = 0, removed = 0, skipped = 0;
  size_t lines = 0;    // of the parsed files
  size_t symbols = 0;  // in the whole index
};

class RepositoryIndex {
 public:
  // Makes the file and its folder when they are not there. Errors: kIo, kInvalid (no index file).
  static Result<std::unique_ptr<RepositoryIndex>> Open(const std::string& path);
  ~RepositoryIndex();
  RepositoryIndex(const RepositoryIndex&) = delete;
  RepositoryIndex& operator=(const RepositoryIndex&) = delete;

  // Brings the index up to date with the folder. Errors: kIo, kLimit.
  Result<IndexCounts> Update(const std::string& folder, const IndexOptions& options = {});
  // One file alone, with the content that an editor has. Errors: kIo.
  Status UpdateFile(const std::string& path, Language language, const std::string& content);
  Result<std::vector<IndexedSymbol>> MembersOf(const std::string& type);
  Result<std::vector<IndexedSymbol>> Named(const std::string& name);

 private:
  explicit RepositoryIndex(sqlite3* db) : db_(db) {}
  Status Run(const char* sql);
  Status Store(const std::string& path, Language language, uint64_t hash, size_t lines,
               const FileSymbols& symbols);
  Result<std::vector<IndexedSymbol>> Query(const char* sql, const std::string& argument);
  sqlite3* db_;
};

}  // namespace pawl::monitors

#endif  // PAWL_PLUGINS_MONITORS_INDEX_H_
