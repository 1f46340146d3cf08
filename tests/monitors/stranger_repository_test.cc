// Repositories that a stranger has made: an index of their own, links out of the folder, pipes,
// more files than anyone reads, damaged databases. Nothing outside the folder is read, nothing in
// the folder is written, and each limit has a name.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "plugins/monitors/index.h"
#include "plugins/monitors/java/class_path.h"
#include "plugins/monitors/monitor.h"
#include "src/base/file.h"

namespace pawl::monitors {
namespace {

namespace fs = std::filesystem;

class StrangerRepositoryTest : public testing::Test {
 protected:
  void SetUp() override {
    base_ =
        fs::temp_directory_path() / ("pawl_stranger_" + std::to_string(getpid()) + "_" +
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(base_);
    fs::create_directories(base_ / "repo");
    fs::create_directories(base_ / "outside");
    cache_ = (base_ / "cache").string();
    repo_ = (base_ / "repo").string();
  }
  void TearDown() override { fs::remove_all(base_); }

  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((base_ / name).parent_path());
    std::ofstream(base_ / name, std::ios::binary) << text;
  }
  std::string Read(const std::string& name) { return *ReadFile((base_ / name).string()); }
  // Runs SQL on a database of its own.
  void Sql(const std::string& path, const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK)
        << (message == nullptr ? "" : message);
    sqlite3_free(message);
    sqlite3_close(db);
  }
  size_t Named(const std::string& name) {
    const auto repository = Repository::Open(repo_, cache_);
    EXPECT_NE(repository, nullptr);
    return repository == nullptr ? 0 : repository->FilesWithType(name).size();
  }
  // All files below, so that a test sees what was written.
  std::vector<std::string> Files(const std::string& folder) {
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(base_ / folder))
      files.push_back(entry.path().string());
    std::sort(files.begin(), files.end());
    return files;
  }

  fs::path base_;
  std::string repo_, cache_;
};

TEST_F(StrangerRepositoryTest, TheIndexLiesInTheCacheFolder) {
  Write("repo/A.java", "class A {}\n");
  const auto before = Files("repo");
  EXPECT_EQ(Named("A"), 1U);
  EXPECT_EQ(Files("repo"), before);
  EXPECT_TRUE(fs::exists(IndexPath(cache_, repo_)));
  // The same folder by another path has the same index; another folder has another.
  EXPECT_EQ(IndexPath(cache_, repo_ + "/../repo/."), IndexPath(cache_, repo_));
  EXPECT_NE(IndexPath(cache_, base_.string()), IndexPath(cache_, repo_));
  // Without a cache folder, and with one that cannot be made, the index is in memory.
  fs::remove_all(cache_);
  EXPECT_NE(Repository::Open(repo_, ""), nullptr);
  Write("file", "x");
  EXPECT_NE(Repository::Open(repo_, (base_ / "file").string()), nullptr);
  EXPECT_EQ(Files("repo"), before);
}

TEST_F(StrangerRepositoryTest, AnIndexInTheRepositoryIsNotOpened) {
  Write("repo/A.java", "class A {}\n");
  fs::create_directories(base_ / "repo/.pawl");
  const std::string theirs = repo_ + "/.pawl/index.sqlite";
  Sql(theirs,
      "CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT UNIQUE, language TEXT, hash INTEGER, "
      "lines INTEGER); INSERT INTO files VALUES (1, '../outside/Secret.java', 'java', 1, 1);");
  const std::string bytes = Read("repo/.pawl/index.sqlite");
  EXPECT_EQ(Named("A"), 1U);
  EXPECT_EQ(Read("repo/.pawl/index.sqlite"), bytes);
}

TEST_F(StrangerRepositoryTest, AnAlteredIndexIsMadeAnew) {
  Write("repo/A.java", "class A { int a; }\n");
  const std::string path = IndexPath(cache_, repo_);
  const std::vector<std::string> alterations = {
      "CREATE TRIGGER t AFTER INSERT ON symbols BEGIN INSERT INTO imports VALUES (1, 'x'); END;",
      "CREATE VIEW v AS SELECT * FROM files;",
      "CREATE TABLE more (x);",
      "DROP TABLE imports; CREATE VIEW imports AS SELECT id AS file, path AS text FROM files;",
      "ALTER TABLE files ADD COLUMN extra DEFAULT 7;",
      "DROP INDEX symbols_by_name; CREATE INDEX symbols_by_name ON symbols (upper(name));",
      "PRAGMA user_version = 2;",
      "PRAGMA application_id = 7;",
      "DROP TABLE files; DROP TABLE symbols; DROP TABLE imports; CREATE TABLE users (name);",
  };
  for (const std::string& sql : alterations) {
    EXPECT_EQ(Named("A"), 1U);
    Sql(path, sql);
    EXPECT_EQ(Named("A"), 1U) << sql;
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
    sqlite3_stmt* rows = nullptr;
    ASSERT_EQ(sqlite3_prepare_v2(db,
                                 "SELECT COUNT(*) FROM sqlite_master WHERE type IN ('trigger', "
                                 "'view') OR name IN ('more', 'users') OR sql LIKE '%upper%' OR "
                                 "sql LIKE '%extra%'",
                                 -1, &rows, nullptr),
              SQLITE_OK);
    ASSERT_EQ(sqlite3_step(rows), SQLITE_ROW);
    EXPECT_EQ(sqlite3_column_int(rows, 0), 0) << sql;
    sqlite3_finalize(rows);
    sqlite3_close(db);
  }
}

// A file that the user names may be the user's data.
TEST_F(StrangerRepositoryTest, OtherDatabasesAreLeftAlone) {
  const std::string path = (base_ / "users.sqlite").string();
  Sql(path, "CREATE TABLE users (name); INSERT INTO users VALUES ('Ann');");
  const std::string bytes = Read("users.sqlite");
  EXPECT_FALSE(RepositoryIndex::Open(path).ok());
  EXPECT_EQ(Read("users.sqlite"), bytes);
  Write("text", "this is no database at all, and has some length");
  EXPECT_FALSE(RepositoryIndex::Open((base_ / "text").string()).ok());
  EXPECT_TRUE(RepositoryIndex::Open((base_ / "text").string(), ForeignFile::kReplace).ok());
}

TEST_F(StrangerRepositoryTest, ADamagedIndexIsMadeAnew) {
  for (int i = 0; i < 60; ++i) {
    const std::string n = std::to_string(i);
    Write("repo/F" + n + ".java", "class F" + n + " { int a" + n + "; void b() {} }\n");
  }
  const std::string path = IndexPath(cache_, repo_);
  EXPECT_EQ(Named("F7"), 1U);
  const std::string whole = *ReadFile(path);
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    std::string bytes = whole;
    if (round % 5 == 0) {
      bytes.resize(random() % bytes.size());
    } else {
      for (int k = 0; k < 40; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    for (const char* ending : {"-wal", "-shm"}) fs::remove(path + ending);
    ASSERT_TRUE(WriteFile(path, bytes).ok());
    const auto repository = Repository::Open(repo_, cache_);
    ASSERT_NE(repository, nullptr) << round;
    // Bytes of texts may differ without the database being damaged; a file is found or it is not.
    EXPECT_LE(repository->FilesWithType("F7").size(), 1U) << round;
  }
}

TEST_F(StrangerRepositoryTest, NothingOutsideTheFolderIsRead) {
  Write("outside/Secret.java", "class Secret { int key; }\n");
  Write("outside/secret.py", "class Secret:\n    key: int\n");
  Write("repo/Own.java", "class Own {}\n");
  fs::create_symlink(base_ / "outside/Secret.java", base_ / "repo/Link.java");
  fs::create_symlink("../outside/Secret.java", base_ / "repo/Relative.java");
  fs::create_symlink(base_ / "outside", base_ / "repo/folder");
  fs::create_symlink("Link.java", base_ / "repo/Second.java");
  fs::create_symlink("Own.java", base_ / "repo/Same.java");
  fs::create_symlink("Loop.java", base_ / "repo/Loop.java");
  EXPECT_EQ(Named("Secret"), 0U);
  EXPECT_EQ(Named("Own"), 2U);
  const SourceFolder folder(repo_);
  for (const char* path : {"Link.java", "Relative.java", "Second.java", "Loop.java",
                           "folder/Secret.java", "../outside/Secret.java", "", "."}) {
    EXPECT_FALSE(folder.Read(path, 1000).ok()) << path;
  }
  EXPECT_FALSE(folder.Read((base_ / "outside/Secret.java").string(), 1000).ok());
  EXPECT_TRUE(folder.Read("Same.java", 1000).ok());
  EXPECT_TRUE(folder.Read(repo_ + "/Own.java", 1000).ok());
  EXPECT_EQ(folder.Read("Own.java", 3).error().code, ErrorCode::kLimit);
  const auto list = folder.List({});
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->files.size(), 2U);
  EXPECT_EQ(list->outside, 4U);
  // A folder whose name begins like the repository's is outside.
  Write("repository/C.java", "class C {}\n");
  EXPECT_FALSE(folder.Read("../repository/C.java", 1000).ok());
}

TEST_F(StrangerRepositoryTest, PythonImportsNothingFromOutside) {
  Write("outside/keys.py", "class Vault:\n    opened: int\n");
  Write("outside/package/__init__.py", "class Inner:\n    known: int\n");
  Write("repo/own.py", "class Own:\n    mine: int\n");
  fs::create_symlink(base_ / "outside/keys.py", base_ / "repo/keys.py");
  fs::create_symlink(base_ / "outside/package", base_ / "repo/package");
  const auto refused = [&](const std::string& program) {
    auto set = MonitorSet::Make(Language::kPython, {.repo = repo_});
    EXPECT_TRUE(set.ok());
    TextState state = (*set)->Start("");
    Refusal refusal;
    return !state.Add(program, &refusal);
  };
  EXPECT_TRUE(refused("from own import Own\ndef f(o: Own):\n    return o.minf\n"));
  // What is not read is not known, so nothing about its names is refused.
  EXPECT_FALSE(refused("from keys import Vault\ndef f(v: Vault):\n    return v.opent\n"));
  EXPECT_FALSE(refused("from package import Inner\ndef f(v: Inner):\n    return v.knowm\n"));
}

TEST_F(StrangerRepositoryTest, PipesDoNotStopTheWalk) {
  Write("repo/A.java", "class A {}\n");
  ASSERT_EQ(::mkfifo((repo_ + "/Pipe.java").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((repo_ + "/pipe.py").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((repo_ + "/pipe.jar").c_str(), 0600), 0);
  EXPECT_EQ(Named("A"), 1U);
  EXPECT_FALSE(SourceFolder(repo_).Read("Pipe.java", 1000).ok());
  java::ClassPath classes({repo_, repo_ + "/pipe.jar"});
  EXPECT_EQ(classes.Find("a.B"), nullptr);
}

TEST_F(StrangerRepositoryTest, LimitsHaveNames) {
  for (int i = 0; i < 30; ++i) {
    const std::string n = std::to_string(100 + i);
    Write("repo/a" + n + "/F" + n + ".java", "class F" + n + " {}\n");
  }
  Write("repo/huge.java", "class Huge { /* " + std::string(3 << 20, 'x') + " */ }");
  auto index = RepositoryIndex::Open(":memory:");
  ASSERT_TRUE(index.ok());
  const auto update = [&](const SourceLimits& limits) {
    const auto counts = (*index)->Update(repo_, {.threads = 2, .limits = limits});
    EXPECT_TRUE(counts.ok());
    return counts.ok() ? *counts : IndexCounts();
  };
  IndexCounts counts = update({});
  EXPECT_EQ(counts.parsed, 30U);
  EXPECT_EQ(counts.skipped, 1U);
  EXPECT_EQ(counts.limit, "");
  counts = update({.files = 10});
  EXPECT_EQ(counts.limit, "has more than 10 source files");
  EXPECT_EQ(counts.unchanged, 9U);
  EXPECT_EQ(counts.removed, 21U);
  EXPECT_EQ((*index)->Named("F108")->size(), 1U);
  EXPECT_TRUE((*index)->Named("F109")->empty());
  counts = update({.entries = 40});
  EXPECT_EQ(counts.limit, "has more than 40 files and folders");
  EXPECT_EQ(counts.parsed + counts.unchanged, 9U);
  counts = update({.source_bytes = 14 * 5});
  EXPECT_EQ(counts.limit, "has more than 70 bytes of source");
  EXPECT_EQ(counts.parsed + counts.unchanged, 5U);
  const auto repository = Repository::Open(repo_, "", {.limits = {.files = 10}});
  ASSERT_NE(repository, nullptr);
  EXPECT_EQ(repository->limit(), "has more than 10 source files");
}

}  // namespace
}  // namespace pawl::monitors
