// The index file. A file whose bytes have the hash that is stored is not parsed again; files that
// are gone are taken out. Files are read and parsed by several threads, one parser each; one thread
// writes, in one transaction, so that an index that is interrupted is the old one.
//
// A file that is opened as an index may have been written by a stranger: SQL in its schema would
// run when a table is used. So the schema is compared, text by text, with the one that this version
// makes, before any table is used, and SQLite is told to trust no schema. Update also lets SQLite
// check the pages of the file, which reads all of them; what is no whole index is made anew.
#include "plugins/monitors/index.h"

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>

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

constexpr int64_t kVersion = 3;
constexpr int64_t kApplication = 0x5061776c;  // "Pawl", in the header of the file

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

// The texts of all tables, indexes, triggers and views; nullopt: the file is no database.
std::optional<std::set<std::string>> SchemaOf(sqlite3* db) {
  Statement rows(db, "SELECT type, name, tbl_name, sql FROM sqlite_master");
  std::set<std::string> schema;
  while (rows.Step()) {
    schema.insert(rows.TextAt(0) + "\n" + rows.TextAt(1) + "\n" + rows.TextAt(2) + "\n" +
                  rows.TextAt(3));
    if (schema.size() > 1000) break;  // no index has as many
  }
  if (rows.failed()) return std::nullopt;
  return schema;
}

// The schema that kSchema makes.
std::optional<std::set<std::string>> OwnSchema() {
  sqlite3* db = nullptr;
  std::optional<std::set<std::string>> schema;
  if (sqlite3_open(":memory:", &db) == SQLITE_OK &&
      sqlite3_exec(db, kSchema, nullptr, nullptr, nullptr) == SQLITE_OK) {
    schema = SchemaOf(db);
  }
  sqlite3_close(db);
  return schema;
}

int64_t NumberOf(sqlite3* db, const char* sql) {
  Statement statement(db, sql);
  return statement.Step() ? statement.NumberAt(0) : -1;
}

void RemoveDatabase(const std::string& path) {
  std::error_code ignored;
  for (const char* ending : {"", "-wal", "-shm", "-journal"}) fs::remove(path + ending, ignored);
}

}  // namespace

struct RepositoryIndex::Parsed {
  std::string path;
  Language language = Language::kTypeScript;
  uint64_t hash = 0;
  size_t lines = 0;
  FileSymbols symbols;
  bool skipped = false;
  bool unchanged = false;
};

std::string IndexPath(const std::string& cache, const std::string& folder) {
  std::error_code failed;
  const fs::path real = fs::canonical(folder, failed);
  const std::string name = failed ? folder : real.string();
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(HashOf(name)));
  return (fs::path(cache) / "index" / (std::string(hash) + ".sqlite")).string();
}

Result<std::unique_ptr<RepositoryIndex>> RepositoryIndex::OpenFile(const std::string& path) {
  sqlite3* db = nullptr;
  if (sqlite3_open(path.c_str(), &db) != SQLITE_OK) {
    const Error error{ErrorCode::kIo, db == nullptr ? "out of memory" : sqlite3_errmsg(db), path};
    sqlite3_close(db);
    return error;
  }
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
#ifdef SQLITE_DBCONFIG_ENABLE_VIEW
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
#endif
  std::unique_ptr<RepositoryIndex> index(new RepositoryIndex(db, path));
  (void)index->Run("PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;");
  return index;
}

RepositoryIndex::Content RepositoryIndex::Look() {
  const auto schema = SchemaOf(db_);
  if (!schema) return Content::kForeign;
  if (schema->empty()) return Content::kEmpty;
  const bool named = NumberOf(db_, "PRAGMA application_id") == kApplication;
  if (named && NumberOf(db_, "PRAGMA user_version") == kVersion && schema == OwnSchema())
    return Content::kIndex;
  // Versions 1 and 2 had no name in their header.
  const bool tables =
      NumberOf(db_,
               "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name IN "
               "('files', 'symbols', 'imports')") == 3;
  return named || tables ? Content::kOtherIndex : Content::kForeign;
}

Status RepositoryIndex::MakeTables() {
  return Run(("PRAGMA application_id = " + std::to_string(kApplication) +
              "; PRAGMA user_version = " + std::to_string(kVersion) + ";" + kSchema)
                 .c_str());
}

Result<std::unique_ptr<RepositoryIndex>> RepositoryIndex::Open(const std::string& path,
                                                               ForeignFile foreign) {
  std::error_code ignored;
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty())
    fs::create_directories(folder, ignored);
  auto index = OpenFile(path);
  if (!index.ok()) return index.error();
  Content content = (*index)->Look();
  if (content == Content::kForeign && foreign == ForeignFile::kRefuse) {
    return Error{ErrorCode::kInvalid, "is no index", path};
  }
  if (content == Content::kForeign || content == Content::kOtherIndex) {
    *index = nullptr;  // closes the file
    RemoveDatabase(path);
    index = OpenFile(path);
    if (!index.ok()) return index.error();
    content = (*index)->Look();
  }
  Status status = (*index)->Run("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;");
  if (status.ok() && content == Content::kEmpty) status = (*index)->MakeTables();
  if (!status.ok()) return Error{ErrorCode::kIo, status.error().message, path};
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

bool RepositoryIndex::Whole() {
  Statement check(db_, "PRAGMA quick_check(1)");
  return check.Step() && check.TextAt(0) == "ok";
}

Status RepositoryIndex::Renew() {
  sqlite3_close(db_);
  db_ = nullptr;
  RemoveDatabase(path_);
  auto fresh = Open(path_);
  if (!fresh.ok()) return fresh.error();
  std::swap(db_, (*fresh)->db_);
  return {};
}

Status RepositoryIndex::CheckSize(size_t max_bytes) {
  const int64_t bytes =
      NumberOf(db_, "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()");
  if (bytes < 0 || static_cast<size_t>(bytes) <= max_bytes) return {};
  return Error{ErrorCode::kLimit,
               "the index would be larger than " + std::to_string(max_bytes) + " bytes", path_};
}

Status RepositoryIndex::Remove(const std::string& path) {
  for (const char* sql : {"DELETE FROM symbols WHERE file = (SELECT id FROM files WHERE path = ?)",
                          "DELETE FROM imports WHERE file = (SELECT id FROM files WHERE path = ?)",
                          "DELETE FROM files WHERE path = ?"}) {
    Statement clear(db_, sql);
    clear.Text(1, path).Step();
    if (clear.failed()) return clear.error();
  }
  return {};
}

namespace {

// Reads and parses the files of a list on threads of its own; Take gives them in any order.
template <typename Parsed>
class ParsingThreads {
 public:
  using Read = std::function<Parsed(size_t at)>;
  ParsingThreads(size_t files, int threads, Read read) : files_(files), read_(std::move(read)) {
    if (threads <= 0) threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    threads = std::min(threads, 64);
    workers_.reserve(static_cast<size_t>(threads));
    for (int i = 0; i < threads; ++i) workers_.emplace_back([this] { Work(); });
  }
  ~ParsingThreads() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    less_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  ParsingThreads(const ParsingThreads&) = delete;
  ParsingThreads& operator=(const ParsingThreads&) = delete;

  // REQUIRES: is called once for each file at most.
  Parsed Take() {
    std::unique_lock lock(mutex_);
    more_.wait(lock, [&] { return !done_.empty(); });
    Parsed parsed = std::move(done_.front());
    done_.pop_front();
    less_.notify_one();
    return parsed;
  }

 private:
  static constexpr size_t kMostWaiting = 256;

  void Work() {
    for (;;) {
      const size_t at = next_.fetch_add(1);
      if (at >= files_ || stop_) return;
      Parsed parsed = read_(at);
      std::unique_lock lock(mutex_);
      less_.wait(lock, [&] { return done_.size() < kMostWaiting || stop_; });
      done_.push_back(std::move(parsed));
      more_.notify_one();
    }
  }

  const size_t files_;
  const Read read_;
  std::mutex mutex_;
  std::condition_variable more_, less_;
  std::deque<Parsed> done_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace

Status RepositoryIndex::StoreParsed(const Parsed& parsed, IndexCounts& counts) {
  if (parsed.unchanged) {
    ++counts.unchanged;
    return {};
  }
  ++counts.parsed;
  counts.lines += parsed.lines;
  return Store(parsed.path, parsed.language, parsed.hash, parsed.lines, parsed.symbols);
}

Result<IndexCounts> RepositoryIndex::Update(const std::string& folder,
                                            const IndexOptions& options) {
  const SourceFolder source(folder);
  Result<SourceList> list = source.List(options.limits);
  if (!list.ok()) return list.error();
  if (!Whole()) {
    if (Status status = Renew(); !status.ok()) return status.error();
  }
  const auto& files = list->files;
  std::unordered_map<std::string, uint64_t> known;
  {
    Statement all(db_, "SELECT path, hash FROM files");
    while (all.Step()) known[all.TextAt(0)] = static_cast<uint64_t>(all.NumberAt(1));
    if (all.failed()) return all.error();
  }
  IndexCounts counts;
  counts.files = files.size();
  counts.outside = list->outside;
  counts.deep = list->deep;
  counts.limit = list->limit;
  const auto read = [&](size_t at) {
    Parsed parsed{.path = files[at].first, .language = files[at].second};
    const Result<std::string> text = source.Read(parsed.path, options.limits.file_bytes);
    if (!text.ok() || text->find('\0') != std::string::npos) {
      parsed.skipped = true;
      return parsed;
    }
    parsed.hash = HashOf(*text);
    const auto old = known.find(parsed.path);
    parsed.unchanged = old != known.end() && old->second == parsed.hash;
    if (parsed.unchanged) return parsed;
    parsed.lines = static_cast<size_t>(std::count(text->begin(), text->end(), '\n')) + 1;
    // A new parser for each file: there is no last tree to go on from.
    Parser parser(parsed.language);
    parsed.symbols = ExtractSymbols(*parser.Parse(*text));
    return parsed;
  };
  Status status = Run("BEGIN");
  std::unordered_set<std::string> present;
  {
    ParsingThreads<Parsed> threads(files.size(), options.threads, read);
    for (size_t i = 0; i < files.size() && status.ok(); ++i) {
      const Parsed parsed = threads.Take();
      if (options.progress) options.progress(i + 1, files.size());
      if (parsed.skipped) {
        ++counts.skipped;
        continue;
      }
      present.insert(parsed.path);
      status = StoreParsed(parsed, counts);
      if (status.ok() && i % 512 == 511) status = CheckSize(options.max_bytes);
    }
  }
  for (const auto& [path, hash] : known) {
    if (!status.ok() || present.contains(path)) continue;
    ++counts.removed;
    status = Remove(path);
  }
  const Status ended = Run(status.ok() ? "COMMIT" : "ROLLBACK");
  if (!status.ok()) return status.error();
  if (!ended.ok()) return ended.error();
  counts.symbols =
      static_cast<size_t>(std::max<int64_t>(0, NumberOf(db_, "SELECT COUNT(*) FROM symbols")));
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

Result<std::vector<std::pair<std::string, std::string>>> RepositoryIndex::Pairs(
    const char* sql, const std::string* argument) {
  Statement query(db_, sql);
  if (argument != nullptr) query.Text(1, *argument);
  std::vector<std::pair<std::string, std::string>> pairs;
  while (query.Step()) pairs.emplace_back(query.TextAt(0), query.TextAt(1));
  if (query.failed()) return query.error();
  return pairs;
}

Result<std::vector<std::pair<std::string, std::string>>> RepositoryIndex::Packages() {
  return Pairs(
      "SELECT f.path, s.name FROM symbols s JOIN files f ON f.id = s.file "
      "WHERE s.kind = 'package'",
      nullptr);
}

Result<std::vector<std::pair<std::string, std::string>>> RepositoryIndex::TypesIn(
    const std::string& package) {
  return Pairs(
      "SELECT t.name, f.path FROM symbols p JOIN symbols t ON t.file = p.file "
      "JOIN files f ON f.id = p.file WHERE p.name = ? AND p.kind = 'package' AND "
      "t.container = '' AND t.kind IN ('class', 'interface', 'enum', 'record')",
      &package);
}

// A Repository keeps the answers of the index, so that a name that is asked for again costs no
// query; when there are very many of them they are forgotten together.

namespace {

constexpr size_t kMaxAnswers = 100000;

}  // namespace

std::unique_ptr<Repository> Repository::Open(const std::string& folder, const std::string& cache,
                                             const IndexOptions& options) {
  std::vector<std::string> places = {":memory:"};
  if (!cache.empty()) places.insert(places.begin(), IndexPath(cache, folder));
  for (const std::string& path : places) {
    auto index = RepositoryIndex::Open(path, ForeignFile::kReplace);
    if (!index.ok()) continue;
    const auto counts = (*index)->Update(folder, options);
    if (!counts.ok()) continue;
    return std::unique_ptr<Repository>(new Repository(folder, std::move(*index), counts->limit));
  }
  return nullptr;
}

const std::vector<std::string>& Repository::FilesWithType(const std::string& name) {
  if (types_.size() > kMaxAnswers) types_.clear();
  const auto [at, is_new] = types_.try_emplace(name);
  if (!is_new) return at->second;
  const auto symbols = index_->Named(name);
  if (!symbols.ok()) return at->second;
  for (const IndexedSymbol& s : *symbols) {
    const bool type = s.kind == "class" || s.kind == "interface" || s.kind == "enum" ||
                      s.kind == "record" || s.kind == "alias";
    if (!type || !s.container.empty()) continue;
    if (std::find(at->second.begin(), at->second.end(), s.file) == at->second.end())
      at->second.push_back(s.file);
  }
  return at->second;
}

bool Repository::HasPackage(const std::string& name) {
  if (packages_.size() > kMaxAnswers) packages_.clear();
  const auto [at, is_new] = packages_.try_emplace(name, false);
  if (!is_new) return at->second;
  const auto symbols = index_->Named(name);
  at->second = symbols.ok() && std::any_of(symbols->begin(), symbols->end(),
                                           [](const auto& s) { return s.kind == "package"; });
  return at->second;
}

const std::vector<std::pair<std::string, std::string>>& Repository::PackagesByFile() {
  if (package_of_) return *package_of_;
  auto found = index_->Packages();
  package_of_.emplace();
  if (found.ok()) *package_of_ = std::move(*found);
  std::sort(package_of_->begin(), package_of_->end());
  return *package_of_;
}

const std::vector<std::pair<std::string, std::string>>& Repository::TypesIn(
    const std::string& package) {
  if (types_in_.size() > kMaxAnswers) types_in_.clear();
  const auto [at, is_new] = types_in_.try_emplace(package);
  if (!is_new) return at->second;
  auto found = index_->TypesIn(package);
  if (found.ok()) at->second = std::move(*found);
  return at->second;
}

bool Repository::FilesChanged(const std::vector<std::string>& files) {
  bool ours = false;
  for (const std::string& file : files) {
    const std::optional<Language> language = LanguageOfFile(file);
    const std::string path = folder_.PathOf(file);
    if (!language || !HasGrammar(*language) || path.empty()) continue;
    ours = true;
    // A file that has gone declares nothing.
    const std::optional<std::string> text = Read(path);
    (void)index_->UpdateFile(path, *language, text.value_or(""));
  }
  if (!ours) return false;
  types_.clear();
  packages_.clear();
  package_of_.reset();
  types_in_.clear();
  return true;
}

bool Repository::Has(const std::string& path) const { return folder_.HasFile(path); }

std::optional<std::string> Repository::Read(const std::string& path) const {
  auto text = folder_.Read(path, SourceLimits().file_bytes);
  if (!text.ok()) return std::nullopt;
  return std::move(*text);
}

}  // namespace pawl::monitors
