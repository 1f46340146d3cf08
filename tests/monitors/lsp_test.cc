// The LSP tier: against a server made for it that is slow, early, partial, broken or crashes, and
// against clangd and a real Python server over a corpus of our own, where every member that is
// named exists. Real servers that are not there are skipped.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/monitors/lsp/server.h"
#include "plugins/monitors/monitor.h"
#include "tests/source_dir.h"

namespace pawl::monitors {
namespace {

namespace fs = std::filesystem;

std::string Found(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::stringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::error_code error;
    if (!folder.empty() && fs::exists(folder + "/" + program, error)) {
      return folder + "/" + program;
    }
  }
  return "";
}

std::string PythonServer() {
  if (const char* given = std::getenv("PAWL_PYTHON_SERVER")) return given;
  for (const std::string& program :
       {SourceDir() + "/build/lsp/bin/basedpyright-langserver", Found("basedpyright-langserver"),
        Found("pyright-langserver")}) {
    std::error_code error;
    if (!program.empty() && fs::exists(program, error)) return program + " --stdio";
  }
  return "";
}

std::shared_ptr<LspServer> Fake(const std::string& mode, double seconds = 5) {
  LspSetting setting;
  setting.command = "python3 '" + SourceDir() + "/tests/monitors/fake_lsp_server.py' " + mode;
  setting.limit_seconds = seconds;
  setting.start_seconds = 10;
  setting.read_seconds = 0.2;
  return std::make_shared<LspServer>(setting);
}

const std::string kText = "int main() { a.";

class LspFakeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (Found("python3").empty()) GTEST_SKIP() << "python3 is not there";
  }
  static std::shared_ptr<const Completions> Ask(LspServer& server,
                                                const std::string& text = kText) {
    return server.Ask({.language = Language::kCpp, .file = "", .text = text, .suffix = ""});
  }
};

TEST_F(LspFakeTest, MembersWithoutKeywords) {
  const auto server = Fake("ok");
  const auto names = Ask(*server);
  ASSERT_NE(names, nullptr);
  EXPECT_EQ(names->names,
            (std::vector<std::string>{"depth", "height", "operator", "template", "width"}));
  // The same place is not asked about twice.
  EXPECT_EQ(Ask(*server), names);
  EXPECT_EQ(server->counts().cached, 1U);
  EXPECT_EQ(server->counts().starts, 1U);
}

TEST_F(LspFakeTest, GuessesPartsAndNothingAreUnknown) {
  const auto guess = Fake("guess"), partial = Fake("partial"), empty = Fake("empty");
  EXPECT_EQ(Ask(*guess), nullptr);
  EXPECT_EQ(guess->counts().guessed, 1U);
  EXPECT_EQ(Ask(*partial), nullptr);
  EXPECT_EQ(partial->counts().partial, 1U);
  EXPECT_EQ(Ask(*empty), nullptr);
  EXPECT_EQ(empty->counts().empty, 1U);
}

TEST_F(LspFakeTest, LateAnswersAreUnknownAndBelongToNothing) {
  const auto server = Fake("slow", 0.3);
  EXPECT_EQ(Ask(*server), nullptr);
  EXPECT_EQ(server->counts().late, 1U);
  EXPECT_EQ(Ask(*server, kText + "width; a."), nullptr);
  EXPECT_EQ(server->counts().failures, 0U);
}

TEST_F(LspFakeTest, EarlyIsUnknown) {
  LspSetting setting;
  setting.command = "python3 '" + SourceDir() + "/tests/monitors/fake_lsp_server.py' silent";
  setting.start_seconds = 30;
  setting.read_seconds = setting.limit_seconds = 0.1;
  LspServer server(setting);
  server.Show(Language::kCpp, "", "int a;\n");  // it is there, and has said nothing of the file
  EXPECT_EQ(Ask(server), nullptr);
  EXPECT_EQ(server.counts().early, 1U);
}

TEST_F(LspFakeTest, NonsenseAndCrashesAreUnknownAndTheServerComesBack) {
  // Bug: "deep", an answer of nested lists, ended the process that asked.
  for (const char* mode : {"broken", "crash", "deep"}) {
    const auto server = Fake(mode);
    EXPECT_EQ(Ask(*server), nullptr) << mode;
    EXPECT_EQ(server->counts().failures, 1U) << mode;
    // Not at once: the pause.
    EXPECT_EQ(Ask(*server), nullptr) << mode;
    EXPECT_EQ(server->counts().starts, 1U) << mode;
  }
  const std::string mark = testing::TempDir() + "/pawl_fake_lsp_crashed";
  fs::remove(mark);
  const auto server = Fake("crash-once " + mark);
  EXPECT_EQ(Ask(*server), nullptr);
  std::shared_ptr<const Completions> names;
  for (int i = 0; i < 100 && names == nullptr; ++i) {
    names = Ask(*server);
    if (names == nullptr) ::usleep(20000);
  }
  EXPECT_NE(names, nullptr);
  EXPECT_EQ(server->counts().starts, 2U);
}

TEST_F(LspFakeTest, NoSuchProgram) {
  LspSetting setting;
  setting.command = "/nowhere/no-such-server --stdio";
  LspServer server(setting);
  EXPECT_EQ(Ask(server), nullptr);
  EXPECT_EQ(server.counts().known, 0U);
}

TEST_F(LspFakeTest, AsAMonitor) {
  MonitorOptions options;
  options.server = Fake("ok");
  auto set = MonitorSet::Make(Language::kCpp, options);
  ASSERT_TRUE(set.ok());
  TextState state = (*set)->Start(kText);
  TextState other = state;
  Refusal refusal;
  EXPECT_TRUE(state.Add("width", &refusal));
  EXPECT_FALSE(state.Add("s", &refusal));
  EXPECT_EQ(refusal.monitor, "lsp");
  EXPECT_TRUE(other.Add("template", &refusal));
}

TEST(LspContextTest, PlacesThatAreCertain) {
  const auto cpp = [](const std::string& text, bool whole = false) {
    return CertainPlace(Language::kCpp, text, whole);
  };
  EXPECT_TRUE(cpp("struct A { int x; };\nint f(A a) { return a."));
  EXPECT_TRUE(cpp("namespace n { class B; struct A f(A a) { if (a) { a."));
  EXPECT_FALSE(cpp("struct A { int f() { return this->"));
  EXPECT_TRUE(cpp("struct A { int f() { return this->", true));
  EXPECT_FALSE(cpp("template <class T> int f(T t) { return t.", true));
  EXPECT_FALSE(cpp("int f() { auto g = [](auto a) { return a.", true));
  EXPECT_TRUE(cpp("int f() { auto g = 1; g."));
  EXPECT_FALSE(cpp("// a."));
  EXPECT_FALSE(cpp("#define F(a) a."));
  const auto python = [](const std::string& text) {
    return CertainPlace(Language::kPython, text, true);
  };
  EXPECT_TRUE(python("x."));
  EXPECT_FALSE(python("class A:\n  def f(self):\n    self."));
  EXPECT_TRUE(python("class A:\n  def f(self):\n    self.x."));
  EXPECT_FALSE(python("import os."));
  EXPECT_FALSE(python("from ."));
  EXPECT_EQ(EnclosingClasses("class A:\n    class B:\n        def f(self):\n            x."),
            (std::vector<std::string>{"B", "A"}));
  EXPECT_TRUE(EnclosingClasses("class A:\n    x = 1\n\nx.").empty());
}

TEST(LspContextTest, BehindAMember) {
  for (const char* text : {"a.", "f(x).", "a[1].", "'x'.", "a->b."}) {
    EXPECT_TRUE(BehindMember(Language::kCpp, text)) << text;
  }
  for (const char* text : {"1.", "..", ".", "a", "a-"}) {
    EXPECT_FALSE(BehindMember(Language::kCpp, text)) << text;
  }
  EXPECT_TRUE(BehindMember(Language::kCpp, "a->"));
  EXPECT_FALSE(BehindMember(Language::kPython, "def f() ->"));
}

// Every member of the file that is named: known or not, it must not be missed.
struct Replayed {
  int places = 0, known = 0, misses = 0, useless = 0;
};

// PAWL_LSP_CORPUS_WHOLE in the environment: each place with both. Else every third place: a server
// takes a moment for each text.
bool WholeCorpus() { return std::getenv("PAWL_LSP_CORPUS_WHOLE") != nullptr; }

Replayed Replay(LspServer& server, Language language, const std::string& path, bool odd) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_FALSE(text.empty()) << path;
  Replayed found;
  Scan scan(language);
  int seen = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string_view before = std::string_view(text).substr(0, at);
    const bool place = scan.in_code() && NameStart(text[at]) && BehindMember(language, before);
    if (place && (seen++ % 3 == 0 || WholeCorpus())) {
      size_t end = at;
      while (end < text.size() && NameByte(text[end])) ++end;
      const std::string name = text.substr(at, end - at);
      // Every other place with what stands behind it.
      const bool whole = (found.places % 2 == 1) == odd;
      const auto names =
          server.Ask({.language = language,
                      .file = path,
                      .text = before,
                      .suffix = whole ? std::string_view(text).substr(end) : std::string_view()});
      ++found.places;
      if (names != nullptr) {
        ++found.known;
        if (!std::binary_search(names->names.begin(), names->names.end(), name)) {
          ++found.misses;
          ADD_FAILURE() << path << ": byte " << at << ": " << name << " is missed";
        }
        found.useless += std::binary_search(names->names.begin(), names->names.end(), name + "Q");
      }
    }
    scan.Add(text[at]);
  }
  return found;
}

void ReplayCorpus(LspServer& server, Language language, const std::string& ending) {
  Replayed sum;
  const std::string folder = SourceDir() + "/tests/monitors/lsp_corpus";
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ending) continue;
    for (const bool odd : {false, true}) {
      if (odd && !WholeCorpus()) continue;
      const Replayed found = Replay(server, language, entry.path().string(), odd);
      sum.places += found.places;
      sum.known += found.known;
      sum.misses += found.misses;
      sum.useless += found.useless;
    }
  }
  const LspCounts counts = server.counts();
  std::cout << sum.places << " members, " << sum.known << " known, " << sum.misses
            << " missed; late " << counts.late << ", early " << counts.early << ", guessed "
            << counts.guessed << ", partial " << counts.partial << ", empty " << counts.empty
            << "\n";
  EXPECT_EQ(sum.misses, 0);
  EXPECT_EQ(sum.useless, 0);
  EXPECT_GE(10 * sum.known, 3 * sum.places);
}

TEST(LspRealTest, ClangdOverTheCorpus) {
  const std::string clangd = Found("clangd");
  if (clangd.empty()) GTEST_SKIP() << "clangd is not there";
  LspSetting setting;
  setting.command = clangd;
  setting.root = SourceDir() + "/tests/monitors/lsp_corpus";
  setting.limit_seconds = 10;
  LspServer server(setting);
  ReplayCorpus(server, Language::kCpp, ".cc");
}

TEST(LspRealTest, PythonServerOverTheCorpus) {
  const std::string command = PythonServer();
  if (command.empty()) {
    GTEST_SKIP() << "no Python server: scripts/install_deps.sh --lsp, or PAWL_PYTHON_SERVER";
  }
  LspSetting setting;
  setting.command = command;
  setting.root = SourceDir() + "/tests/monitors/lsp_corpus";
  setting.limit_seconds = 20;
  setting.start_seconds = 60;
  LspServer server(setting);
  ReplayCorpus(server, Language::kPython, ".py");
}

}  // namespace
}  // namespace pawl::monitors
