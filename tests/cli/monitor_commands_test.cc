// pawl monitor, complete, index and lsp through the command: what they answer, and what they say to
// bad input. Skipped where pawl was built without the monitors.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/cli_test_util.h"
#include "tests/cli/lsp_messages.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

bool HasMonitors() {
  static const bool has =
      RunPawl({"monitor", WriteScratch("none.ts", "const a = 1;\n")}).exit_code == 0;
  return has;
}

class MonitorCommands : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasMonitors()) GTEST_SKIP() << "built without the monitors";
    folder_ = ScratchPath("monitored");
    fs::remove_all(folder_);
    fs::create_directories(folder_ + "/src");
    // The user's cache folder; a folder of the test's own.
    cache_ = ScratchPath("cache");
    fs::remove_all(cache_);
    ::setenv("XDG_CACHE_HOME", cache_.c_str(), 1);
    file_ = WriteScratch("monitored/src/a.ts",
                         "class Stack {\n  items: number[] = [];\n  push(x: number): void {}\n}\n"
                         "const s = new Stack();\ns.\nconst done = true;\n");
  }
  // What is wrong, in one line that names the place.
  static void Refuses(const std::vector<std::string>& arguments, const std::string& says) {
    const CommandResult result = RunPawl(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments[0] << ": " << result.out << result.err;
    EXPECT_NE(result.err.find(says), std::string::npos) << result.err;
    // A machine may have a Java that is newer than its class files; a note says so.
    std::istringstream lines(result.err);
    int errors = 0;
    for (std::string line; std::getline(lines, line);)
      errors += line.find(kOldJava) == std::string::npos;
    EXPECT_EQ(errors, 1) << result.err;
    EXPECT_TRUE(result.out.empty()) << result.out;
  }
  static constexpr const char* kOldJava = "has no .jmod files";
  std::string folder_, file_, cache_;
};

TEST_F(MonitorCommands, CompleteNamesWhatExists) {
  const std::vector<std::string> base = {"complete", "--model", RandomModelFolder(),
                                         "--repo",   folder_,   "--file",
                                         "src/a.ts", "--line",  "6",
                                         "--col",    "3",       "--max-tokens",
                                         "20",       "--json",  "--suffix-aware"};
  const CommandResult result = RunPawl(base);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json report = Json::parse(result.out);
  EXPECT_GE(report["constrained"].get<int>(), 1);
  const std::string text = report["text"];
  const auto in_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '$'; };
  const std::string name(text.begin(), std::find_if_not(text.begin(), text.end(), in_name));
  bool known = false;
  for (const char* member : {"items", "push", "constructor", "hasOwnProperty", "isPrototypeOf",
                             "propertyIsEnumerable", "toLocaleString", "toString", "valueOf"}) {
    known = known || std::string(member).starts_with(name);
  }
  EXPECT_TRUE(known) << text;
  // The same with drafts.
  std::vector<std::string> drafted = base;
  drafted.insert(drafted.end(), {"--draft", "all"});
  const CommandResult with = RunPawl(drafted);
  ASSERT_EQ(with.exit_code, 0) << with.err;
  EXPECT_EQ(Json::parse(with.out)["text"], report["text"]);
}

// Imports are looked for from the file's own folder, however the file is named.
TEST_F(MonitorCommands, ImportsOfTheRepository) {
  const std::string cart = "import { Cart } from './cart';\nconst cart = new Cart();\ncart.";
  (void)WriteScratch("monitored/src/shop/cart.ts", "export class Cart { itemCount = 1; }\n");
  const std::string wrong = WriteScratch("monitored/src/shop/wrong.ts", cart + "itemCout;\n");
  const std::string elsewhere = WriteScratch("monitored/src/wrong.ts", cart + "itemCout;\n");
  const CommandResult refused = RunPawl({"monitor", "--repo", folder_, wrong});
  EXPECT_EQ(refused.exit_code, 1) << refused.err;
  EXPECT_NE(refused.out.find("refused at 3:6: \"itemCout\""), std::string::npos) << refused.out;
  const CommandResult open = RunPawl({"monitor", "--repo", folder_, elsewhere});
  EXPECT_EQ(open.exit_code, 0) << open.out;
  (void)WriteScratch("monitored/src/shop/app.ts", cart + "\n");
  for (const std::string& file : {std::string("src/shop/app.ts"), folder_ + "/src/shop/app.ts"}) {
    const CommandResult done =
        RunPawl({"complete", "--model", RandomModelFolder(), "--repo", folder_, "--file", file,
                 "--line", "3", "--col", "6", "--max-tokens", "12", "--json"});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    EXPECT_GE(Json::parse(done.out)["constrained"].get<int>(), 1) << done.out;
  }
}

TEST_F(MonitorCommands, CompleteSaysWhatIsWrong) {
  const std::string model = RandomModelFolder();
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = {"complete", "--model", model};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  Refuses(with({}), "one of --line and --col, --prefix, --prompt is needed");
  Refuses(with({"--prefix", "a", "--line", "1"}), "one of --line and --col");
  Refuses(with({"--line", "1", "--col", "1"}), "--file");
  Refuses(with({"--file", file_, "--line", "0", "--col", "1"}), "--line");
  Refuses(with({"--file", file_, "--line", "6"}), "--col");
  Refuses(with({"--file", file_, "--line", "60", "--col", "1"}), "the file has only");
  Refuses(with({"--file", file_, "--line", "6", "--col", "80"}), "line 6 has only 3 columns");
  Refuses(with({"--file", folder_ + "/none.ts", "--line", "1", "--col", "1"}), "none.ts");
  Refuses(with({"--file", "src/none.ts", "--repo", folder_, "--line", "1", "--col", "1"}),
          "none.ts");
  Refuses(with({"--prefix", "a.", "--repo", folder_ + "/nowhere"}), "--repo");
  Refuses(with({"--prefix", "a.", "--language", "cobol"}), "--language");
  Refuses(with({"--prefix", "a.", "--language", "ts", "--monitors", "nonsense"}),
          "no monitor is called");
  Refuses(with({"--prompt", "no markers"}), "--prompt");
  Refuses(with({"--prefix", "\xFF"}), "the prefix");
  Refuses(with({"--prefix", "a", "--suffix", "\xFF"}), "the suffix");
  Refuses(with({"--prefix", "a", "--max-tokens", "-3"}), "--max-tokens");
  Refuses(with({"--prefix", "a", "--lsp-seconds", "0"}), "--lsp-seconds");
  Refuses(with({"--prefix", "a", "--temperature", "-1"}), "--temperature");
  Refuses({"complete", "--model", folder_ + "/none", "--prefix", "a"}, "none");
}

TEST_F(MonitorCommands, PromptsWithMarkers) {
  const CommandResult result =
      RunPawl({"complete", "--model", RandomModelFolder(), "--language", "ts", "--prompt",
               "<fim_prefix>const s = [1];\ns.<fim_suffix>;\n<fim_middle>", "--max-tokens", "8"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(MonitorCommands, MonitorSaysWhatIsWrong) {
  Refuses({"monitor", file_, "--language", "cobol"}, "--language");
  Refuses({"monitor", folder_ + "/none.ts"}, "none.ts");
  Refuses({"monitor", WriteScratch("text.txt", "a")}, "--language is needed");
  Refuses({"monitor", WriteScratch("view.tsx", "a")}, "the monitors do not read JSX");
  Refuses({"monitor", "--strict", WriteScratch("strict.py", "a = 1\n")}, "--strict");
  Refuses({"monitor", file_, "--monitors", "nonsense"}, "--monitors");
  Refuses({"monitor", file_, "--monitors", ","}, "--monitors");
  Refuses({"monitor", file_, "--repo", folder_ + "/none"}, "--repo");
  Refuses({"monitor", file_, "--json", folder_ + "/none/out.json"}, "out.json");
  Refuses({"monitor", WriteScratch("lines.jsonl", "{\"code\": 1}\n"), "--language", "ts"},
          "lines.jsonl:1");
  Refuses({"monitor", WriteScratch("broken.jsonl", "{\n"), "--language", "ts"}, "broken.jsonl:1");
  Refuses({"monitor", WriteScratch("a.cc", "int a;\n")}, "no monitors for cpp");
}

TEST_F(MonitorCommands, EditingKnowsWhatIsBehind) {
  const std::string head =
      "class A:\n    def __init__(self):\n        self.count = 0\n\n"
      "    def f(self):\n        return self.";
  const std::string tail = " + 1\n\n    def g(self):\n        self.size = 1\n";
  const auto right =
      RunPawl({"monitor", "--editing", WriteScratch("right.py", head + "size" + tail)});
  EXPECT_EQ(right.exit_code, 0) << right.out;
  const std::string file = WriteScratch("wrong.py", head + "sise" + tail);
  EXPECT_EQ(RunPawl({"monitor", file}).exit_code, 0);
  const auto wrong = RunPawl({"monitor", "--editing", file});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.out.find("refused at 6:21: \"sise\""), std::string::npos) << wrong.out;
}

TEST_F(MonitorCommands, AServerThatIsNotThereKnowsNothing) {
  const std::string file = WriteScratch("b.cc", "struct A { int x; } a;\nint b = a.x;\n");
  const CommandResult result = RunPawl({"monitor", file, "--lsp-server", "/nowhere/server"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("0 of 1 points constrained"), std::string::npos) << result.out;
}

TEST_F(MonitorCommands, Clangd) {
  if (std::system("command -v clangd > /dev/null") != 0) GTEST_SKIP() << "clangd is not there";
  const std::string good =
      WriteScratch("good.cc", "struct A { int width; };\nint f(A a) { return a.width; }\n");
  const CommandResult right =
      RunPawl({"monitor", good, "--lsp-server", "clangd", "--lsp-seconds", "20"});
  EXPECT_EQ(right.exit_code, 0) << right.out << right.err;
  EXPECT_NE(right.out.find("1 of 1 points constrained"), std::string::npos) << right.out;
  const std::string bad =
      WriteScratch("bad.cc", "struct A { int width; };\nint f(A a) { return a.height; }\n");
  const CommandResult wrong =
      RunPawl({"monitor", bad, "--lsp-server", "clangd", "--lsp-seconds", "20"});
  EXPECT_EQ(wrong.exit_code, 1) << wrong.err;
  EXPECT_NE(wrong.out.find("refused at 2:23: \"height\""), std::string::npos) << wrong.out;
}

TEST_F(MonitorCommands, IndexSaysWhatIsWrong) {
  const CommandResult good = RunPawl({"index", folder_});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_NE(good.out.find("1 files: 1 parsed"), std::string::npos) << good.out;
  const CommandResult members = RunPawl({"index", folder_, "--members", "Stack"});
  EXPECT_NE(members.out.find("items"), std::string::npos) << members.out;
  Refuses({"index", folder_ + "/none"}, "is no folder");
  Refuses({"index", file_}, "is no folder");
  Refuses({"index", ""}, "dir");
  Refuses({"index", folder_, "--threads", "x"}, "--threads");
  Refuses({"index", folder_, "--db", file_ + "/index.sqlite"}, "index.sqlite");
  Refuses({"index", folder_, "--db", WriteScratch("no.sqlite", "this is no database, certainly")},
          "no.sqlite");
}

// A repository with an index of its own, links out of the folder, and pipes where files should be.
class StrangerCommands : public MonitorCommands {
 protected:
  void SetUp() override {
    MonitorCommands::SetUp();
    if (IsSkipped()) return;
    const std::string outside = WriteScratch("outside/Secret.java", "class Secret { int key; }\n");
    fs::create_directories(folder_ + "/.pawl");
    theirs_ = folder_ + "/.pawl/index.sqlite";
    ASSERT_EQ(::mkfifo(theirs_.c_str(), 0600), 0);  // opening it would wait for ever
    ASSERT_EQ(::mkfifo((folder_ + "/Pipe.java").c_str(), 0600), 0);
    fs::create_symlink(outside, folder_ + "/Link.java");
    for (const char* name : {"A", "B", "C"}) {
      WriteScratch(std::string("monitored/") + name + ".java",
                   std::string("class ") + name + " { int width; }\n");
    }
  }
  std::string theirs_;
};

TEST_F(StrangerCommands, Index) {
  const CommandResult whole = RunPawl({"index", folder_});
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_NE(whole.out.find("4 files: 4 parsed"), std::string::npos) << whole.out;
  EXPECT_NE(whole.err.find("1 links that lead out of"), std::string::npos) << whole.err;
  const CommandResult secret = RunPawl({"index", folder_, "--members", "Secret"});
  EXPECT_EQ(secret.exit_code, 1) << secret.out;
  const CommandResult few = RunPawl({"index", folder_, "--max-files", "2"});
  EXPECT_EQ(few.exit_code, 0) << few.err;
  EXPECT_NE(few.err.find("has more than 2 source files"), std::string::npos) << few.err;
  Refuses({"index", folder_, "--file", "Link.java"}, "Link.java");
  Refuses({"index", folder_, "--file", "Pipe.java"}, "Pipe.java");
  Refuses({"index", folder_, "--file", "../outside/Secret.java"}, "Secret.java");
  // The index is in the cache folder; an altered one is made anew.
  std::vector<fs::path> kept;
  for (const auto& entry : fs::recursive_directory_iterator(cache_)) {
    if (entry.path().extension() == ".sqlite") kept.push_back(entry.path());
  }
  ASSERT_EQ(kept.size(), 1U);
  std::ofstream(kept[0], std::ios::binary) << "no database";
  EXPECT_NE(RunPawl({"index", folder_}).out.find("4 parsed"), std::string::npos);
  EXPECT_TRUE(fs::is_fifo(theirs_));
}

TEST_F(StrangerCommands, Complete) {
  const auto at = [&](const std::string& file) {
    return std::vector<std::string>{"complete", "--model", RandomModelFolder(),
                                    "--repo",   folder_,   "--file",
                                    file,       "--line",  "1",
                                    "--col",    "1",       "--max-tokens",
                                    "4"};
  };
  const CommandResult good = RunPawl(at("A.java"));
  EXPECT_EQ(good.exit_code, 0) << good.err;
  Refuses(at("Link.java"), "Link.java");
  Refuses(at("Pipe.java"), "Pipe.java");
  Refuses(at("../outside/Secret.java"), "Secret.java");
  const CommandResult monitored = RunPawl({"monitor", "--repo", folder_, folder_ + "/A.java"});
  EXPECT_EQ(monitored.exit_code, 0) << monitored.err;
  Refuses({"monitor", folder_ + "/Pipe.java"}, "Pipe.java");
  EXPECT_TRUE(fs::is_fifo(theirs_));
}

// ---- pawl lsp ----

TEST_F(MonitorCommands, LspCompletesAndKeepsDocuments) {
  const std::string uri = "file://" + folder_ + "/src/%61.ts";
  const std::string text =
      "interface P { width: number; height: number }\nfunction f(p: P) {\n  return p.\n}\n";
  std::string input;
  const auto say = [&](const Json& message) { input += Framed(message); };
  say({{"jsonrpc", "2.0"},
       {"id", 1},
       {"method", "initialize"},
       {"params", {{"capabilities", {}}}}});
  say({{"jsonrpc", "2.0"}, {"method", "initialized"}, {"params", Json::object()}});
  say({{"jsonrpc", "2.0"},
       {"method", "textDocument/didOpen"},
       {"params",
        {{"textDocument",
          {{"uri", uri}, {"languageId", "typescript"}, {"version", 1}, {"text", text}}}}}});
  say(Asked(2, uri, 2, 11));
  // An item of the editor's list begins the completion, and its range is replaced.
  const Json range = {{"start", {{"line", 2}, {"character", 11}}},
                      {"end", {{"line", 2}, {"character", 11}}}};
  say(Asked(
      3, uri, 2, 11,
      {{"triggerKind", 2}, {"selectedCompletionInfo", {{"range", range}, {"text", "heig"}}}}));
  say({{"jsonrpc", "2.0"},
       {"method", "textDocument/didChange"},
       {"params",
        {{"textDocument", {{"uri", uri}, {"version", 2}}},
         {"contentChanges",
          {{{"range",
             {{"start", {{"line", 0}, {"character", 14}}},
              {"end", {{"line", 0}, {"character", 44}}}}},
            {"text", "depth: number "}}}}}}});
  say(Asked(4, uri, 2, 11));
  say({{"jsonrpc", "2.0"}, {"id", 5}, {"method", "no/such"}});
  say(Asked(6, "file:///not/open.ts", 0, 0));
  input += "Content-Length: 4\r\n\r\n[1,]";
  say({{"jsonrpc", "2.0"}, {"id", 7}, {"method", "shutdown"}});
  say({{"jsonrpc", "2.0"}, {"method", "exit"}});
  const CommandResult result =
      RunPawl({"lsp", "--model", RandomModelFolder(), "--max-tokens", "16"}, input);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<Json> answers = AnswersIn(result.out);
  ASSERT_EQ(answers.size(), 8U) << result.out;
  EXPECT_TRUE(answers[0]["result"]["capabilities"]["inlineCompletionProvider"].get<bool>());
  const auto first = [&](size_t i) {
    const Json& items = answers[i]["result"]["items"];
    return items.empty() ? std::string() : items[0]["insertText"].get<std::string>();
  };
  const std::string selected = first(2);
  if (!selected.empty()) {
    EXPECT_TRUE(selected.starts_with("height")) << selected;
    EXPECT_EQ(answers[2]["result"]["items"][0]["range"], range);
  }
  EXPECT_FALSE(first(3).starts_with("w") || first(3).starts_with("height")) << first(3);
  EXPECT_EQ(answers[4]["error"]["code"], -32601);
  EXPECT_EQ(answers[5]["error"]["code"], -32602);
  EXPECT_EQ(answers[6]["error"]["code"], -32700);
}

// Programs whose declarations derive from themselves, at a place where a member is to be completed.
const std::vector<std::string>& EndlessPrograms() {
  static const std::vector<std::string> programs = {
      "interface I extends I{}\ndeclare let i:I;\ni.",
      "function f<T extends T>(t:T){\nt.",
      "class A extends B{}\nclass B extends A{}\nlet a=new A();\na.",
      "interface A<T> extends A<A<T>>{}\ndeclare let a:A<number>;\na.",
      "function f<T extends U, U extends T>(t:T){\nt.",
  };
  return programs;
}

TEST_F(MonitorCommands, EndlessDeclarationsEnd) {
  std::vector<std::string> arguments = {"monitor", "--json", folder_ + "/report.json"};
  for (size_t i = 0; i < EndlessPrograms().size(); ++i) {
    const std::string& text = EndlessPrograms()[i];
    arguments.push_back(
        WriteScratch("endless" + std::to_string(i) + ".ts",
                     text + "x;\n" + (text.find("{\n") != std::string::npos ? "}\n" : "")));
    const CommandResult result = RunPawl({"complete", "--model", RandomModelFolder(), "--language",
                                          "ts", "--prefix", text, "--max-tokens", "4", "--json"});
    ASSERT_EQ(result.exit_code, 0) << text << result.err;
    EXPECT_EQ(Json::parse(result.out)["given_up"], 0) << text;
  }
  EXPECT_EQ(RunPawl(arguments).exit_code, 0);
  std::ifstream file(folder_ + "/report.json");
  for (const Json& entry : Json::parse(file)["files"]) EXPECT_EQ(entry["given_up"], 0) << entry;
}

TEST_F(MonitorCommands, WhatIsTooDeepIsNotAccepted) {
  const std::string deep = "let x = " + std::string(200'000, '(') + "1" + std::string(200'000, ')');
  const std::string file = WriteScratch("deep.ts", deep + ";\n");
  const std::string json = folder_ + "/deep.json";
  const CommandResult result = RunPawl({"monitor", file, "--json", json});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.out.find("deep.ts: too deep to analyse at 1:265\n"), std::string::npos)
      << result.out.substr(0, 1000);
  std::ifstream report(json);
  const Json entry = Json::parse(report)["files"][0];
  EXPECT_EQ(entry["accepted"], false);
  EXPECT_EQ(entry["byte"], 264);
  EXPECT_EQ(entry["monitor"], "limits");
  // A completion there is not held up either.
  const CommandResult stats =
      RunPawl({"complete", "--model", RandomModelFolder(), "--language", "ts", "--prefix",
               deep.substr(0, 20'000) + "Math.", "--max-tokens", "4", "--stats"});
  EXPECT_EQ(stats.exit_code, 0) << stats.err;
  EXPECT_NE(stats.err.find(" given up"), std::string::npos) << stats.err;
}

TEST_F(MonitorCommands, LspSurvivesEndlessDeclarations) {
  std::string input;
  const auto say = [&](const Json& message) { input += Framed(message); };
  say({{"jsonrpc", "2.0"}, {"id", 1}, {"method", "initialize"}, {"params", Json::object()}});
  int id = 1;
  for (const std::string& text : EndlessPrograms()) {
    const std::string uri = "file://" + folder_ + "/src/e" + std::to_string(++id) + ".ts";
    say({{"jsonrpc", "2.0"},
         {"method", "textDocument/didOpen"},
         {"params",
          {{"textDocument",
            {{"uri", uri}, {"languageId", "typescript"}, {"version", 1}, {"text", text}}}}}});
    const auto lines = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    say(Asked(id, uri, lines, 2));
  }
  say({{"jsonrpc", "2.0"}, {"id", 99}, {"method", "shutdown"}});
  say({{"jsonrpc", "2.0"}, {"method", "exit"}});
  const CommandResult result =
      RunPawl({"lsp", "--model", RandomModelFolder(), "--max-tokens", "4"}, input);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<Json> answers = AnswersIn(result.out);
  ASSERT_EQ(answers.size(), EndlessPrograms().size() + 2) << result.out;
  for (const Json& answer : answers) EXPECT_TRUE(answer.contains("result")) << answer;
}

// Bug: a message that is too large ended the server without a word.
TEST_F(MonitorCommands, LspSaysWhatEndsIt) {
  std::string input =
      Framed({{"jsonrpc", "2.0"}, {"id", 0}, {"method", "initialize"}, {"params", Json::object()}});
  const std::string uri = "file:///kept/below.ts";
  input += Framed(Opened(uri, "const a = 1;\n"));
  input += Framed(Asked(1, uri, 1, 0));
  input += "Content-Length: 999999999\r\n\r\n{}";
  const CommandResult result =
      RunPawl({"lsp", "--model", RandomModelFolder(), "--max-tokens", "1"}, input);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("999999999 bytes"), std::string::npos) << result.err;
  const std::vector<Json> answers = AnswersIn(result.out);
  ASSERT_EQ(answers.size(), 2U) << result.out;
  EXPECT_TRUE(answers[1].contains("result")) << answers[1];
}

// 256 documents are kept. The first of them by name is the first that was opened, but it is asked
// about before one more comes, so the second has to go.
TEST_F(MonitorCommands, LspDropsTheDocumentUsedLongestAgo) {
  std::string input;
  const auto say = [&](const Json& message) { input += Framed(message); };
  const auto uri = [](int i) { return "file:///kept/" + std::to_string(1000 + i) + ".ts"; };
  const std::string text = "const a = 1;\n";
  say({{"jsonrpc", "2.0"}, {"id", 0}, {"method", "initialize"}, {"params", Json::object()}});
  for (int i = 0; i < 256; ++i) say(Opened(uri(i), text));
  say(Asked(1, uri(0), 0, 12));
  say(Opened(uri(255), text));  // again: no other has to go
  say(Opened(uri(256), text));
  for (const int i : {0, 1, 2, 256}) say(Asked(10 + i, uri(i), 0, 12));
  say({{"jsonrpc", "2.0"}, {"id", 2}, {"method", "shutdown"}});
  say({{"jsonrpc", "2.0"}, {"method", "exit"}});
  const CommandResult result =
      RunPawl({"lsp", "--model", RandomModelFolder(), "--max-tokens", "1"}, input);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<Json> answers = AnswersIn(result.out);
  ASSERT_EQ(answers.size(), 7U) << result.out;
  for (const size_t i : {1, 2, 4, 5}) EXPECT_TRUE(answers[i].contains("result")) << answers[i];
  EXPECT_EQ(answers[3]["error"]["message"], "no such document is open: " + uri(1));
}

TEST_F(MonitorCommands, LspRefusesWhatIsNoPosition) {
  const std::string uri = "file:///a.ts";
  std::string input;
  const auto say = [&](const Json& message) { input += Framed(message); };
  say({{"jsonrpc", "2.0"}, {"id", 0}, {"method", "initialize"}, {"params", Json::object()}});
  say(Opened(uri, "const a = 1;\n"));
  const std::vector<Json> bad = {
      -1,    nullptr, "3",           0.5,           2147483648, -9007199254740993,
      1e300, true,    Json::array(), Json::object()};
  int id = 0;
  const auto asked = [&](const Json& position) {
    Json request = Asked(++id, uri, 0, 0);
    request["params"]["position"] = position;
    return request;
  };
  for (const Json& value : bad) {
    say(asked({{"line", value}, {"character", 0}}));
    say(asked({{"line", 0}, {"character", value}}));
  }
  say(asked({{"line", 0}}));
  say(asked(nullptr));
  const Json range = {{"start", {{"line", 0}, {"character", 0}}},
                      {"end", {{"line", 0}, {"character", -1}}}};
  say(Asked(++id, uri, 0, 0,
            {{"triggerKind", 2}, {"selectedCompletionInfo", {{"range", range}, {"text", "a"}}}}));
  const int refused = id;
  // The largest that there are stand at the end of the text.
  say(asked({{"line", 2147483647}, {"character", 2147483647}}));
  say(asked({{"line", 0}, {"character", 12.0}}));
  // A change that makes no sense: what the editor shows is not known any more.
  say({{"jsonrpc", "2.0"},
       {"method", "textDocument/didChange"},
       {"params",
        {{"textDocument", {{"uri", uri}, {"version", 2}}},
         {"contentChanges", {{{"range", range}, {"text", "x"}}}}}}});
  say(Asked(++id, uri, 0, 0));
  say({{"jsonrpc", "2.0"}, {"id", 1000}, {"method", "shutdown"}});
  say({{"jsonrpc", "2.0"}, {"method", "exit"}});
  const CommandResult result =
      RunPawl({"lsp", "--model", RandomModelFolder(), "--max-tokens", "1"}, input);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<Json> answers = AnswersIn(result.out);
  ASSERT_EQ(answers.size(), static_cast<size_t>(id) + 3) << result.out;
  for (int i = 1; i <= refused; ++i) {
    const Json& answer = answers[static_cast<size_t>(i)];
    EXPECT_EQ(answer["error"]["code"], -32602) << answer;
    EXPECT_NE(answer["error"]["message"].get<std::string>().find("must be a whole number"),
              std::string::npos)
        << answer;
  }
  const auto at = [&](int i) { return answers[static_cast<size_t>(refused + i)]; };
  EXPECT_TRUE(at(1).contains("result")) << at(1);
  EXPECT_TRUE(at(2).contains("result")) << at(2);
  EXPECT_EQ(at(3)["method"], "window/logMessage");
  const std::string lost = at(4)["error"]["message"];
  EXPECT_NE(lost.find("send the whole text: " + uri), std::string::npos) << lost;
}

TEST_F(StrangerCommands, Lsp) {
  const std::string uri = "file://" + folder_ + "/D.java";
  std::string input;
  const auto say = [&](const Json& message) { input += Framed(message); };
  say({{"jsonrpc", "2.0"},
       {"id", 1},
       {"method", "initialize"},
       {"params", {{"capabilities", {}}}}});
  say({{"jsonrpc", "2.0"},
       {"method", "textDocument/didOpen"},
       {"params",
        {{"textDocument",
          {{"uri", uri},
           {"languageId", "java"},
           {"version", 1},
           {"text", "class D { void f(A a, Secret s) { a.\n s.\n } }\n"}}}}}});
  say(Asked(2, uri, 0, 36));
  say(Asked(3, uri, 1, 3));
  say({{"jsonrpc", "2.0"}, {"id", 4}, {"method", "shutdown"}});
  say({{"jsonrpc", "2.0"}, {"method", "exit"}});
  const CommandResult result = RunPawl(
      {"lsp", "--model", RandomModelFolder(), "--repo", folder_, "--max-tokens", "8"}, input);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<Json> answers = AnswersIn(result.out);
  ASSERT_EQ(answers.size(), 4U) << result.out;
  EXPECT_TRUE(answers[1].contains("result")) << result.out;
  EXPECT_TRUE(answers[2].contains("result")) << result.out;
  EXPECT_TRUE(fs::is_fifo(theirs_));
}

TEST_F(MonitorCommands, LspSaysWhatIsWrong) {
  Refuses({"lsp", "--model", folder_ + "/none"}, "none");
  Refuses({"lsp", "--model", RandomModelFolder(), "--max-tokens", "0"}, "--max-tokens");
  Refuses({"lsp", "--model", RandomModelFolder(), "--repo", folder_ + "/none"}, "--repo");
  const std::pair<std::string, std::string> streams[] = {
      {"", "the input ends without shutdown"},
      {Framed({{"jsonrpc", "2.0"}, {"method", "exit"}}), "exit came without shutdown"},
      {"Content-Length: x\r\n\r\n{}", "Content-Length must be a number of bytes"},
      {"Content-Length: -5\r\n\r\n{}", "Content-Length must be a number of bytes"},
      {"Content-Type: x\r\n\r\n{}", "a message has no Content-Length"}};
  for (const auto& [input, said] : streams) {
    const CommandResult result = RunPawl({"lsp", "--model", RandomModelFolder()}, input);
    EXPECT_EQ(result.exit_code, 2) << input;
    EXPECT_NE(result.err.find(said), std::string::npos) << result.err;
  }
}

// Bug: a message of nested lists ended the server by its stack.
TEST_F(MonitorCommands, LspTakesDeepMessages) {
  const std::string deep =
      "{\"params\":" + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  std::string input = "Content-Length: " + std::to_string(deep.size()) + "\r\n\r\n" + deep;
  input += Framed({{"jsonrpc", "2.0"}, {"id", 1}, {"method", "shutdown"}});
  input += Framed({{"jsonrpc", "2.0"}, {"method", "exit"}});
  const CommandResult result = RunPawl({"lsp", "--model", RandomModelFolder()}, input);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::vector<Json> answers = AnswersIn(result.out);
  ASSERT_EQ(answers.size(), 2U) << result.out;
  EXPECT_EQ(answers[0]["error"]["code"], -32700);
}

// A real editor: Neovim without a screen asks for an inline completion and writes what it gets.
TEST_F(MonitorCommands, Neovim) {
  if (std::system("command -v nvim > /dev/null") != 0) GTEST_SKIP() << "nvim is not there";
  const std::string out = ScratchPath("neovim.json");
  fs::remove(out);
  const std::string command = "PAWL=" PAWL_COMMAND " PAWL_MODEL='" + RandomModelFolder() +
                              "' PAWL_FILE='" + file_ + "' PAWL_LINE=6 PAWL_COLUMN=3 PAWL_OUT='" +
                              out + "' timeout 60 nvim --headless -u NONE -n -c 'luafile " +
                              SourceDir() + "/scripts/inline_completion.lua' > /dev/null 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::ifstream file(out);
  const Json report = Json::parse(file, nullptr, false);
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report.value("error", ""), "");
  ASSERT_TRUE(report.contains("items")) << report.dump();
  for (const Json& item : report["items"]) {
    const std::string text = item["insertText"];
    bool known = false;
    for (const char* member : {"items", "push", "constructor", "hasOwnProperty", "isPrototypeOf",
                               "propertyIsEnumerable", "toLocaleString", "toString", "valueOf"}) {
      known = known || text.starts_with(member) || std::string(member).starts_with(text);
    }
    EXPECT_TRUE(known) << text;
    EXPECT_EQ(report["line"], "s." + text.substr(0, text.find('\n')));
  }
}

}  // namespace
}  // namespace pawl
