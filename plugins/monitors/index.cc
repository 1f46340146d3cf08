// The index file. A file whose bytes have the hash that is stored is not parsed again; files that
// are gone are taken out. Files are read and parsed by several threads, one parser each; one thread
// writes, in one transaction, so that an index that is interrupted is the old one.
#include "plugins/monitors/index.h"

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "src/base/file.h"

namespace pawl::monitors {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = R"(
CREATE TABLE IF NOT EXISTS files (id INTEGER PRIMARY KEY, path TEXT UNIQUE, language TEXT, hash INTEGER, lines INTEGER);
CREATE TABLE IF NOT EXISTS symbols (
  file INTEGER REFERENCES files(id), name TEXT, kind TEXT, container TEXT, visibility TEXT, static INTEGER,
  arity INTEGER, signature TEXT, type TEXT, supertypes TEXT, line INTEGER);
CREATE TABLE IF NOT EXISTS imports (file INTEGER REFERENCES files(id), text TEXT);
CREATE INDEX IF NOT EXISTS symbols_by_file ON symbols (file);
CREATE INDEX IF NOT EXISTS symbols_by_name ON symbols (name);
CREATE INDEX IF NOT EXISTS symbols_by_container ON symbols (container);
CREATE INDEX IF NOT EXISTS imports_by_file ON imports (file);
)";

constexpr int64_t kVersion = 2;

uint64_t HashOf(std::string_view bytes) {
  uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

class Statement {
 public:
  Statement(sqlite3* db, const char* sql) : db_(db) {
    ok_ = sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr) == SQLITE_OK;
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  Statement& Text(int at, const std::string& text) {
    sqlite3_bind_text(statement_, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Statement& Number(int at, int64_t value) {
    sqlite3_bind_int64(statement_, at, value);
    return *this;
  }
  // True: there is a row.
  bool Step() { return ok_ && (last_ = sqlite3_step(statement_)) == SQLITE_ROW; }
  bool failed() const { return !ok_ || (last_ != SQLITE_ROW && last_ != SQLITE_DONE); }
  void Reset() { sqlite3_reset(statement_); }
  std::string TextAt(int at) const {
    const unsigned char* text = sqlite3_column_text(statement_, at);
    return text == nullptr ? "" : reinterpret_cast<const char*>(text);
  }
  int64_t NumberAt(int at) const { return sqlite3_column_int64(statement_, at); }
  Error error() const { return {ErrorCode::kIo, sqlite3_errmsg(db_), "index"}; }

 private:
  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
  bool ok_ = false;
  int last_ = SQLITE_DONE;
};

struct Parsed {
  std::string path;
  Language language = Language::kTypeScript;
  uint64_t hash = 0;
  size_t lines = 0;
  FileSymbols symbols;
  bool skipped = false;
  bool unchanged = false;
};

// The columns from `first` on: name, kind, container, visibility, static, arity, signature, type,
// supertypes.
IndexedSymbol SymbolAt(const Statement& row, int first) {
  IndexedSymbol s;
  s.name = row.TextAt(first);
  s.kind = row.TextAt(first + 1);
  s.container = row.TextAt(first + 2);
  s.visibility = row.TextAt(first + 3);
  s.is_static = row.NumberAt(first + 4) != 0;
  s.arity = static_cast<int>(row.NumberAt(first + 5));
  s.signature = row.TextAt(first + 6);
  s.type = row.TextAt(first + 7);
  s.supertypes = row.TextAt(first + 8);
  return s;
}

// A symbol that is stored, and what it is but for its line: after an edit most of a file's symbols
// have only moved, and moving one touches no index of the database.
struct Stored {
  int64_t row = 0;
  int64_t line = 0;
};

std::string KeyOf(const IndexedSymbol& s) {
  std::string key;
  for (const std::string* part :
       {&s.name, &s.kind, &s.container, &s.visibility, &s.signature, &s.type, &s.supertypes}) {
    key += *part;
    key += '\0';
  }
  return key + std::to_string(s.arity) + (s.is_static ? "s" : "");
}

bool SkippedFolder(const std::string& name) {
  return name.starts_with(".") || name == "node_modules" || name == "__pycache__" ||
         name == "build" || name == "target" || name == "dist" || name == "venv";
}

}  // namespace

Result<std::unique_ptr<RepositoryIndex>> RepositoryIndex::Open(const std::string& path) {
  std::error_code ignored;
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty())
    fs::create_directories(folder, ignored);
  sqlite3* db = nullptr;
  if (sqlite3_open(path.c_str(), &db) != SQLITE_OK) {
    const Error error{ErrorCode::kIo, db == nullptr ? "out of memory" : sqlite3_errmsg(db), path};
    sqlite3_close(db);
    return error;
  }
  std::unique_ptr<RepositoryIndex> index(new RepositoryIndex(db));
  if (Status status = index->Run("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;");
      !status.ok()) {
    return Error{ErrorCode::kInvalid, "is no index: " + status.error().message, path};
  }
  // An index that an older Pawl made lacks what this one stores.
  Statement version(db, "PRAGMA user_version");
  if (version.Step() && version.NumberAt(0) != kVersion) {
    version.Reset();
    (void)index->Run(
        "DROP TABLE IF EXISTS symbols; DROP TABLE IF EXISTS imports; DROP TABLE IF EXISTS files;");
    (void)index->Run(("PRAGMA user_version = " + std::to_string(kVersion)).c_str());
  }
  version.Reset();
  if (Status status = index->Run(kSchema); !status.ok()) {
    return Error{ErrorCode::kInvalid, "is no index: " + status.error().message, path};
  }
  return index;
}

RepositoryIndex::~RepositoryIndex() { sqlite3_close(db_); }

Status RepositoryIndex::Run(const char* sql) {
  char* message = nullptr;
  if (sqlite3_exec(db_, sql, nullptr, nullptr, &message) == SQLITE_OK) return {};
  Error error{ErrorCode::kIo, message == nullptr ? "failed" : message, "index"};
  sqlite3_free(message);
  return error;
}

Status RepositoryIndex::Store(const std::string& path, Language language, uint64_t hash,
                              size_t lines, const FileSymbols& symbols) {
  Statement old(db_, "SELECT id FROM files WHERE path = ?");
  int64_t id = old.Text(1, path).Step() ? old.NumberAt(0) : -1;
  std::unordered_multimap<std::string, Stored> stored;
  if (id >= 0) {
    Statement rows(db_,
                   "SELECT rowid, line, name, kind, container, visibility, static, arity, "
                   "signature, type, supertypes FROM symbols WHERE file = ?");
    rows.Number(1, id);
    while (rows.Step()) {
      const IndexedSymbol s = SymbolAt(rows, 2);
      stored.emplace(KeyOf(s), Stored{.row = rows.NumberAt(0), .line = rows.NumberAt(1)});
    }
    if (rows.failed()) return rows.error();
    Statement clear(db_, "DELETE FROM imports WHERE file = ?");
    clear.Number(1, id).Step();
    if (clear.failed()) return clear.error();
    Statement update(db_, "UPDATE files SET language = ?, hash = ?, lines = ? WHERE id = ?");
    update.Text(1, LanguageName(language))
        .Number(2, static_cast<int64_t>(hash))
        .Number(3, static_cast<int64_t>(lines));
    update.Number(4, id).Step();
    if (update.failed()) return update.error();
  } else {
    Statement insert(db_, "INSERT INTO files (path, language, hash, lines) VALUES (?, ?, ?, ?)");
    insert.Text(1, path).Text(2, LanguageName(language)).Number(3, static_cast<int64_t>(hash));
    insert.Number(4, static_cast<int64_t>(lines)).Step();
    if (insert.failed()) return insert.error();
    id = sqlite3_last_insert_rowid(db_);
  }
  Statement insert(db_, "INSERT INTO symbols VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  Statement move(db_, "UPDATE symbols SET line = ? WHERE rowid = ?");
  for (const IndexedSymbol& s : symbols.symbols) {
    const auto same = stored.empty() ? stored.end() : stored.find(KeyOf(s));
    if (same != stored.end()) {
      if (same->second.line != s.line) {
        move.Number(1, s.line).Number(2, same->second.row).Step();
        if (move.failed()) return move.error();
        move.Reset();
      }
      stored.erase(same);
      continue;
    }
    insert.Number(1, id).Text(2, s.name).Text(3, s.kind).Text(4, s.container).Text(5, s.visibility);
    insert.Number(6, s.is_static ? 1 : 0).Number(7, s.arity).Text(8, s.signature).Text(9, s.type);
    insert.Text(10, s.supertypes).Number(11, s.line).Step();
    if (insert.failed()) return insert.error();
    insert.Reset();
  }
  Statement gone(db_, "DELETE FROM symbols WHERE rowid = ?");
  for (const auto& [key, old_symbol] : stored) {
    gone.Number(1, old_symbol.row).Step();
    if (gone.failed()) return gone.error();
    gone.Reset();
  }
  Statement import(db_, "INSERT INTO imports VALUES (?, ?)");
  for (const std::string& text : symbols.imports) {
    import.Number(1, id).Text(2, text).Step();
    if (import.failed()) return import.error();
    import.Reset();
  }
  return {};
}

Status RepositoryIndex::UpdateFile(const std::string& path, Language language,
                                   const std::string& content) {
  Parser parser(language);
  const auto tree = parser.Parse(content);
  const auto lines = static_cast<size_t>(std::count(content.begin(), content.end(), '\n')) + 1;
  if (Status status = Run("BEGIN"); !status.ok()) return status;
  Status status = Store(path, language, HashOf(content), lines, ExtractSymbols(*tree));
  const Status ended = Run(status.ok() ? "COMMIT" : "ROLLBACK");
  return status.ok() ? ended : status;
}

Result<IndexCounts> RepositoryIndex::Update(const std::string& folder,
                                            const IndexOptions& options) {
  std::error_code failed;
  if (!fs::is_directory(folder, failed)) return Error{ErrorCode::kIo, "is no folder", folder};
  std::vector<std::pair<std::string, Language>> paths;  // relative to the folder
  fs::recursive_directory_iterator walk(folder, fs::directory_options::skip_permission_denied,
                                        failed);
  for (; !failed && walk != fs::recursive_directory_iterator(); walk.increment(failed)) {
    const std::string name = walk->path().filename().string();
    std::error_code ignored;
    if (walk->is_directory(ignored)) {
      if (SkippedFolder(name) || walk->is_symlink(ignored)) walk.disable_recursion_pending();
      continue;
    }
    const auto language = LanguageOfFile(name);
    if (!language || !HasGrammar(*language) || !walk->is_regular_file(ignored)) continue;
    paths.emplace_back(fs::relative(walk->path(), folder, ignored).string(), *language);
  }
  std::sort(paths.begin(), paths.end());

  std::unordered_map<std::string, uint64_t> known;
  {
    Statement all(db_, "SELECT path, hash FROM files");
    while (all.Step()) known[all.TextAt(0)] = static_cast<uint64_t>(all.NumberAt(1));
    if (all.failed()) return all.error();
  }
  IndexCounts counts;
  counts.files = paths.size();
  std::mutex mutex;
  std::condition_variable more;
  std::condition_variable less;
  std::deque<Parsed> done;
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};
  int threads = options.threads > 0
                    ? options.threads
                    : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  threads = std::min<int>(threads, 64);
  const auto work = [&] {
    std::unordered_map<int, std::unique_ptr<Parser>> parsers;
    for (;;) {
      const size_t at = next.fetch_add(1);
      if (at >= paths.size() || stop) return;
      Parsed parsed{.path = paths[at].first, .language = paths[at].second};
      const Result<std::string> text =
          ReadRegularFile((fs::path(folder) / parsed.path).string(), options.max_file_bytes);
      if (!text.ok() || text->find('\0') != std::string::npos) {
        parsed.skipped = true;
      } else {
        parsed.hash = HashOf(*text);
        const auto old = known.find(parsed.path);
        if (old != known.end() && old->second == parsed.hash) {
          parsed.unchanged = true;
        } else {
          parsed.lines = static_cast<size_t>(std::count(text->begin(), text->end(), '\n')) + 1;
          // A new parser for each file: there is no last tree to go on from.
          Parser parser(parsed.language);
          parsed.symbols = ExtractSymbols(*parser.Parse(*text));
        }
      }
      std::unique_lock lock(mutex);
      less.wait(lock, [&] { return done.size() < 256 || stop; });
      done.push_back(std::move(parsed));
      more.notify_one();
    }
  };
  std::vector<std::thread> workers;
  workers.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) workers.emplace_back(work);
  Status status = Run("BEGIN");
  std::unordered_set<std::string> present;
  for (size_t i = 0; i < paths.size() && status.ok(); ++i) {
    Parsed parsed;
    {
      std::unique_lock lock(mutex);
      more.wait(lock, [&] { return !done.empty(); });
      parsed = std::move(done.front());
      done.pop_front();
      less.notify_one();
    }
    if (options.progress) options.progress(i + 1, paths.size());
    if (parsed.skipped) {
      ++counts.skipped;
      continue;
    }
    present.insert(parsed.path);
    if (parsed.unchanged) {
      ++counts.unchanged;
      continue;
    }
    ++counts.parsed;
    counts.lines += parsed.lines;
    status = Store(parsed.path, parsed.language, parsed.hash, parsed.lines, parsed.symbols);
    if (status.ok() && i % 512 == 511) {
      Statement pages(db_,
                      "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()");
      if (pages.Step() && static_cast<size_t>(pages.NumberAt(0)) > options.max_bytes) {
        status =
            Error{ErrorCode::kLimit,
                  "the index would be larger than " + std::to_string(options.max_bytes) + " bytes",
                  folder};
      }
    }
  }
  stop = true;
  less.notify_all();
  for (std::thread& worker : workers) worker.join();
  for (const auto& [path, hash] : known) {
    if (!status.ok() || present.contains(path)) continue;
    ++counts.removed;
    for (const char* sql :
         {"DELETE FROM symbols WHERE file = (SELECT id FROM files WHERE path = ?)",
          "DELETE FROM imports WHERE file = (SELECT id FROM files WHERE path = ?)",
          "DELETE FROM files WHERE path = ?"}) {
      Statement clear(db_, sql);
      clear.Text(1, path).Step();
      if (clear.failed()) status = clear.error();
    }
  }
  const Status ended = Run(status.ok() ? "COMMIT" : "ROLLBACK");
  if (!status.ok()) return status.error();
  if (!ended.ok()) return ended.error();
  Statement count(db_, "SELECT COUNT(*) FROM symbols");
  if (count.Step()) counts.symbols = static_cast<size_t>(count.NumberAt(0));
  return counts;
}

Result<std::vector<IndexedSymbol>> RepositoryIndex::Query(const char* sql,
                                                          const std::string& argument) {
  Statement query(db_, sql);
  query.Text(1, argument);
  std::vector<IndexedSymbol> symbols;
  while (query.Step()) {
    IndexedSymbol s = SymbolAt(query, 0);
    s.file = query.TextAt(9);
    s.line = static_cast<int>(query.NumberAt(10));
    symbols.push_back(std::move(s));
  }
  if (query.failed()) return query.error();
  return symbols;
}

Result<std::vector<IndexedSymbol>> RepositoryIndex::MembersOf(const std::string& type) {
  return Query(
      "SELECT s.name, s.kind, s.container, s.visibility, s.static, s.arity, s.signature, s.type, "
      "s.supertypes, f.path, s.line "
      "FROM symbols s JOIN files f ON f.id = s.file WHERE s.container = ? ORDER BY f.path, s.line",
      type);
}

Result<std::vector<IndexedSymbol>> RepositoryIndex::Named(const std::string& name) {
  return Query(
      "SELECT s.name, s.kind, s.container, s.visibility, s.static, s.arity, s.signature, s.type, "
      "s.supertypes, f.path, s.line "
      "FROM symbols s JOIN files f ON f.id = s.file WHERE s.name = ? ORDER BY f.path, s.line",
      name);
}

}  // namespace pawl::monitors
