// The index of a repository: what it finds in three languages, what it reads again, and that broken
// files stop nothing.
#include "plugins/monitors/index.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace pawl::monitors {
namespace {

namespace fs = std::filesystem;

class IndexTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::temp_directory_path() / ("pawl_index_" + std::to_string(getpid()) + "_" +
                                     testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::string Db() const { return (folder_ / ".pawl" / "index.sqlite").string(); }
  fs::path folder_;
};

const IndexedSymbol* Find(const std::vector<IndexedSymbol>& symbols, const std::string& name) {
  const auto at =
      std::find_if(symbols.begin(), symbols.end(), [&](const auto& s) { return s.name == name; });
  return at == symbols.end() ? nullptr : &*at;
}

TEST_F(IndexTest, FindsMembersInThreeLanguages) {
  Write("a.ts",
        "import { X } from './x';\nexport class Stack<T> extends Base implements Y {\n  private "
        "items: T[] = [];\n"
        "  static of(a: number, b: number): Stack<number> { return null!; }\n}\nenum Color { Red, "
        "Green = 2 }\n"
        "const LIMIT = 3;\nfunction free(a: string) {}\n");
  Write("b/B.java",
        "package b;\nimport java.util.List;\npublic class B extends A implements C {\n  private "
        "static int n, m = 2;\n"
        "  protected List<String> names(int a, String... b) { return null; }\n  B(int x) {}\n  "
        "enum E { ONE, TWO }\n}\n");
  Write("c.py",
        "import os\nclass P(Base):\n    limit: int = 3\n    def __init__(self, a):\n        "
        "self.size = a\n        self._hidden: int = 1\n"
        "    @staticmethod\n    def make(x, y=1) -> 'P':\n        return P(x)\n\ndef free(a, "
        "*b):\n    pass\n");
  auto index = RepositoryIndex::Open(Db());
  ASSERT_TRUE(index.ok()) << index.error().ToString();
  const auto counts = (*index)->Update(folder_.string(), {.threads = 2});
  ASSERT_TRUE(counts.ok()) << counts.error().ToString();
  EXPECT_EQ(counts->parsed, 3U);

  const auto stack = *(*index)->MembersOf("Stack");
  const IndexedSymbol* items = Find(stack, "items");
  ASSERT_NE(items, nullptr);
  EXPECT_EQ(items->visibility, "private");
  EXPECT_EQ(items->type, "T[]");
  const IndexedSymbol* of = Find(stack, "of");
  ASSERT_NE(of, nullptr);
  EXPECT_TRUE(of->is_static);
  EXPECT_EQ(of->arity, 2);
  EXPECT_EQ(of->type, "Stack<number>");
  EXPECT_EQ(of->line, 4);
  EXPECT_NE(Find(*(*index)->MembersOf("Color"), "Green"), nullptr);
  EXPECT_NE(Find(*(*index)->Named("Stack"), "Stack")->supertypes.find("Base"), std::string::npos);
  EXPECT_EQ((*index)->Named("LIMIT")->size(), 1U);
  EXPECT_EQ((*index)->Named("free")->size(), 2U);

  const auto b = *(*index)->MembersOf("B");
  ASSERT_NE(Find(b, "m"), nullptr);
  EXPECT_TRUE(Find(b, "n")->is_static);
  EXPECT_EQ(Find(b, "names")->visibility, "protected");
  EXPECT_EQ(Find(b, "names")->arity, 2);
  EXPECT_EQ(Find(b, "B")->kind, "constructor");
  EXPECT_NE(Find(*(*index)->MembersOf("E"), "TWO"), nullptr);

  const auto p = *(*index)->MembersOf("P");
  ASSERT_NE(Find(p, "size"), nullptr);
  EXPECT_EQ(Find(p, "_hidden")->visibility, "private");
  EXPECT_EQ(Find(p, "make")->kind, "method");
}

TEST_F(IndexTest, ReadsOnlyWhatHasChanged) {
  for (int i = 0; i < 20; ++i) {
    Write("f" + std::to_string(i) + ".ts", "class C" + std::to_string(i) + " { a = 1; b() {} }\n");
  }
  auto index = RepositoryIndex::Open(Db());
  ASSERT_TRUE(index.ok());
  const auto first = (*index)->Update(folder_.string(), {.threads = 2});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->parsed, 20U);
  const auto second = (*index)->Update(folder_.string(), {.threads = 2});
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->parsed, 0U);
  EXPECT_EQ(second->symbols, first->symbols);
  Write("f3.ts", "class C3 { only = 1; }\n");
  fs::remove(folder_ / "f4.ts");
  const auto third = (*index)->Update(folder_.string(), {.threads = 2});
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(third->parsed, 1U);
  EXPECT_EQ(third->removed, 1U);
  EXPECT_EQ((*index)->MembersOf("C3")->size(), 1U);
  EXPECT_TRUE((*index)->MembersOf("C4")->empty());
  ASSERT_TRUE(
      (*index)->UpdateFile("f3.ts", Language::kTypeScript, "class C3 { x = 1; y = 2; }").ok());
  EXPECT_EQ((*index)->MembersOf("C3")->size(), 2U);
}

// An edit keeps the rows of what has not changed: what is stored is what a new index would have.
TEST_F(IndexTest, AnEditLeavesWhatANewIndexWouldHave) {
  std::mt19937 random(3);
  std::vector<std::string> lines;
  for (int i = 0; i < 30; ++i) {
    lines.push_back("def f" + std::to_string(i % 7) + "(a, b=" + std::to_string(i % 3) +
                    "): pass\n");
    lines.push_back("class C" + std::to_string(i % 5) +
                    ":\n    x: int = 1\n    def m(self): pass\n");
  }
  auto edited = RepositoryIndex::Open(Db());
  ASSERT_TRUE(edited.ok());
  for (int round = 0; round < 30; ++round) {
    for (int k = 0; k < 3; ++k) {
      const size_t at = random() % lines.size();
      if (random() % 2 == 0) {
        lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at),
                     lines[random() % lines.size()]);
      }
    }
    std::string text;
    for (const std::string& line : lines) text += line;
    ASSERT_TRUE((*edited)->UpdateFile("a.py", Language::kPython, text).ok());
    auto fresh = RepositoryIndex::Open((folder_ / ("new" + std::to_string(round))).string());
    ASSERT_TRUE(fresh.ok());
    ASSERT_TRUE((*fresh)->UpdateFile("a.py", Language::kPython, text).ok());
    const auto all = [](RepositoryIndex& index) {
      std::vector<std::string> rows;
      for (const char* name :
           {"f0", "f1", "f2", "f3", "f4", "f5", "f6", "C0", "C1", "C2", "C3", "C4", "x", "m"}) {
        const auto named = index.Named(name);
        for (const auto& s : *named) {
          rows.push_back(s.name + " " + s.kind + " " + s.container + s.signature + " " + s.type +
                         " " + std::to_string(s.line) + " " + std::to_string(s.arity));
        }
      }
      std::sort(rows.begin(), rows.end());
      return rows;
    };
    ASSERT_EQ(all(**edited), all(**fresh)) << round;
  }
}

TEST_F(IndexTest, SurvivesBrokenHugeAndBinaryFiles) {
  Write("broken.ts", "class A { f( { x y z ]]] \n class B { ok() {} }\n");
  Write("binary.py", std::string("class A:\0\0\0", 11));
  Write("huge.java", "class H { /* " + std::string(3 << 20, 'x') + " */ }");
  Write("deep.ts", "const a = " + std::string(20000, '(') + ";");
  Write("node_modules/skipped.ts", "class Skipped {}");
  Write("empty.py", "");
  auto index = RepositoryIndex::Open(Db());
  ASSERT_TRUE(index.ok());
  const auto counts = (*index)->Update(folder_.string(), {.threads = 2});
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(counts->skipped, 2U);
  EXPECT_EQ(counts->parsed, 3U);
  EXPECT_TRUE((*index)->Named("Skipped")->empty());
}

TEST_F(IndexTest, RefusesWhatIsNoIndex) {
  Write("other.txt", std::string(5000, 'x'));
  EXPECT_FALSE(RepositoryIndex::Open((folder_ / "other.txt").string()).ok());
  auto index = RepositoryIndex::Open(Db());
  ASSERT_TRUE(index.ok());
  EXPECT_FALSE((*index)->Update((folder_ / "nowhere").string()).ok());
}

}  // namespace
}  // namespace pawl::monitors
