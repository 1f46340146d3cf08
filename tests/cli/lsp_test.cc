// `pawl lsp` as a client sees it: lists of names, edits, cancellation, progress, watched files, and
// what a hostile client sends. Skipped where pawl was built without the monitors.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/cli/cli_test_util.h"
#include "tests/cli/lsp_messages.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class LspCommand : public testing::Test {
 protected:
  void SetUp() override {
    const std::string none = WriteScratch("none.ts", "const a = 1;\n");
    static const bool has = RunPawl({"monitor", none}).exit_code == 0;
    if (!has) GTEST_SKIP() << "built without the monitors";
    cache_ = ScratchPath("lsp-cache");
    fs::remove_all(cache_);
    ::setenv("XDG_CACHE_HOME", cache_.c_str(), 1);
  }
  void Say(const Json& message) { input_ += Framed(message); }
  void Notify(const char* method, const Json& params) {
    Say({{"jsonrpc", "2.0"}, {"method", method}, {"params", params}});
  }
  void Ask(const Json& id, const char* method, const Json& params = Json::object()) {
    Say({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}});
  }
  void Begin(const Json& capabilities = Json::object()) {
    Ask("first", "initialize", {{"capabilities", capabilities}});
    Notify("initialized", Json::object());
  }
  void Open(const std::string& uri, const std::string& language, const std::string& text) {
    Notify("textDocument/didOpen",
           {{"textDocument",
             {{"uri", uri}, {"languageId", language}, {"version", 1}, {"text", text}}}});
  }
  void List(const Json& id, const std::string& uri, int line, int column) {
    Ask(id, "textDocument/completion",
        {{"textDocument", {{"uri", uri}}},
         {"position", {{"line", line}, {"character", column}}},
         {"context", {{"triggerKind", 1}}}});
  }
  // Everything that came.
  std::vector<Json> Run(const std::vector<std::string>& more = {}) {
    Ask("last", "shutdown");
    Notify("exit", Json::object());
    std::vector<std::string> arguments = {"lsp", "--model", RandomModelFolder()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = RunPawl(arguments, input_);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Unframed(result.out);
  }
  static Json AnswerTo(const std::vector<Json>& messages, const Json& id) {
    Json found = nullptr;
    int count = 0;
    for (const Json& m : messages) {
      if (m.contains("method") || m.value("id", Json()) != id) continue;
      found = m;
      ++count;
    }
    EXPECT_EQ(count, 1) << id;
    return found;
  }
  static std::vector<std::string> Labels(const Json& answer) {
    std::vector<std::string> labels;
    for (const Json& item : answer["result"]["items"]) labels.push_back(item["label"]);
    return labels;
  }
  std::string input_, cache_;
};

constexpr const char* kShop =
    "interface Shop {\n  /** How many there are. */\n  size: number;\n"
    "  add(name: string): void;\n}\nfunction f(shop: Shop) {\n  shop.si\n  // shop.\n}\n";

TEST_F(LspCommand, ListsNamesWithTypesAndDocumentation) {
  const std::string uri = "file:///shop/a.ts";
  Begin({{"textDocument",
          {{"completion",
            {{"completionItem",
              {{"insertReplaceSupport", true},
               {"resolveSupport", {{"properties", {"documentation"}}}}}}}}}}});
  Open(uri, "typescript", kShop);
  List(1, uri, 6, 7);
  List(2, uri, 6, 8);
  List(3, uri, 7, 10);
  Ask(4, "completionItem/resolve", {{"label", "size"}, {"data", {{"list", 2}, {"item", 0}}}});
  Ask(5, "completionItem/resolve", {{"label", "size"}, {"data", {{"list", 2}, {"item", 9}}}});
  Ask(6, "completionItem/resolve", {{"label", "size"}});
  Ask(7, "completionItem/resolve", {{"label", "size"}, {"data", {{"list", 77}, {"item", 0}}}});
  const std::vector<Json> messages = Run();
  const Json provider = AnswerTo(messages, "first")["result"]["capabilities"]["completionProvider"];
  EXPECT_EQ(provider["triggerCharacters"], Json::array({"."}));
  EXPECT_EQ(provider["resolveProvider"], true);
  const Json all = AnswerTo(messages, 1)["result"];
  EXPECT_EQ(all["isIncomplete"], false);
  std::vector<std::string> labels = Labels(AnswerTo(messages, 1)), sorted;
  EXPECT_TRUE(std::ranges::count(labels, "size") == 1 && std::ranges::count(labels, "add") == 1);
  for (const Json& item : all["items"]) sorted.push_back(item["sortText"]);
  EXPECT_TRUE(std::ranges::is_sorted(sorted));
  double last = 1, sum = 0;
  for (const Json& item : all["items"]) {
    const double probability = item["data"]["probability"];
    EXPECT_LE(probability, last);
    last = probability;
    sum += probability;
    if (item["label"] != "add") continue;
    EXPECT_EQ(item["kind"], 2);  // method
    EXPECT_EQ(item["detail"], "(string) => void");
  }
  EXPECT_NEAR(sum, 1, 1e-6);
  const Json begun = AnswerTo(messages, 2)["result"]["items"];
  ASSERT_EQ(begun.size(), 1U);
  EXPECT_EQ(begun[0]["kind"], 10);  // property
  EXPECT_EQ(begun[0]["detail"], "number");
  EXPECT_FALSE(begun[0].contains("documentation"));
  const auto range = [](int from, int to) -> Json {
    return {{"start", {{"line", 6}, {"character", from}}},
            {"end", {{"line", 6}, {"character", to}}}};
  };
  EXPECT_EQ(begun[0]["textEdit"],
            (Json{{"newText", "size"}, {"insert", range(7, 8)}, {"replace", range(7, 9)}}));
  // An empty list says why, in the answer and in the log.
  const Json empty = AnswerTo(messages, 3)["result"];
  EXPECT_TRUE(empty["items"].empty());
  EXPECT_EQ(empty["pawl"]["why"], "the place is in a comment or a string");
  const auto logged = std::ranges::count_if(messages, [](const Json& m) {
    return m.value("method", "") == "window/logMessage" && m["params"]["type"] == 3 &&
           m["params"]["message"] ==
               "no completion at /shop/a.ts:8:11: the place is in a comment or a string";
  });
  EXPECT_EQ(logged, 1);
  EXPECT_EQ(AnswerTo(messages, 4)["result"]["documentation"], "How many there are.");
  EXPECT_EQ(AnswerTo(messages, 5)["error"]["code"], -32602);
  EXPECT_EQ(AnswerTo(messages, 6)["error"]["code"], -32602);
  EXPECT_FALSE(AnswerTo(messages, 7)["result"].contains("documentation"));
}

TEST_F(LspCommand, ListsAreIncompleteWhereTheyAreOpenOrCut) {
  const std::string uri = "file:///shop/b.py";
  Begin();
  Open(uri, "python", "def f(x):\n    x.one = x.two\n    x.\n'a'.\n");
  List(1, uri, 2, 6);
  List(2, uri, 3, 4);
  const std::vector<Json> messages = Run({"--max-items", "7"});
  const Json open = AnswerTo(messages, 1);
  EXPECT_EQ(open["result"]["isIncomplete"], true);
  EXPECT_EQ(open["result"]["pawl"]["why"], "other names may stand here than those that are known");
  std::vector<std::string> labels = Labels(open);
  std::ranges::sort(labels);
  EXPECT_EQ(labels, (std::vector<std::string>{"one", "two"}));
  const Json cut = AnswerTo(messages, 2);
  EXPECT_EQ(cut["result"]["isIncomplete"], true);
  EXPECT_EQ(cut["result"]["items"].size(), 7U);
}

// A random sequence of edits: the list, with the probabilities that the model gives to what it has
// read, is that of a document that was opened with the whole text.
TEST_F(LspCommand, EditsInARowEqualTheWholeText) {
  struct Unit {
    const char* name;
    Json offered;
  };
  for (const Unit& unit : {Unit{"utf-8", {"utf-8", "utf-16"}}, Unit{"utf-16", nullptr},
                           Unit{"utf-32", Json::array({"utf-32"})}}) {
    input_.clear();
    std::mt19937 random(11);
    Begin({{"general", {{"positionEncodings", unit.offered}}}});
    std::vector<std::string> characters = {"a", "b", "\n"};
    const auto text = [&] {
      std::string out;
      for (const std::string& c : characters) out += c;
      return out;
    };
    const auto position = [&](size_t index) -> Json {
      int line = 0, column = 0;
      for (size_t i = 0; i < index; ++i) {
        const std::string& c = characters[i];
        const size_t size = c.size();
        if (c == "\n" || c == "\r\n" || c == "\r") {
          ++line;
          column = 0;
        } else if (unit.name == std::string("utf-8")) {
          column += static_cast<int>(size);
        } else {
          column += unit.name == std::string("utf-16") && size == 4 ? 2 : 1;
        }
      }
      return {{"line", line}, {"character", column}};
    };
    Open("file:///edited.py", "python", text());
    const std::vector<std::string> kinds = {"a",
                                            "bc",
                                            "xyz",
                                            " ",
                                            "\n",
                                            "\r\n",
                                            "(",
                                            " = ",
                                            "\xC3\xA9",
                                            "\xE2\x82\xAC",
                                            "\xF0\x9D\x94\xB8"};
    for (int edit = 0; edit < 60; ++edit) {
      Json changes = Json::array();
      for (size_t n = random() % 3 + 1; n > 0; --n) {
        const size_t from = random() % (characters.size() + 1);
        const size_t to = std::min(characters.size(), from + random() % 5);
        std::vector<std::string> with;
        for (size_t k = random() % 4 + 1; k > 0; --k) {
          const std::string& kind = kinds[random() % kinds.size()];
          if (kind.size() > 1 && static_cast<unsigned char>(kind[0]) < 0x80 && kind != "\r\n") {
            for (const char c : kind) with.emplace_back(1, c);
          } else {
            with.push_back(kind);
          }
        }
        std::string joined;
        for (const std::string& c : with) joined += c;
        changes.push_back(
            {{"range", {{"start", position(from)}, {"end", position(to)}}}, {"text", joined}});
        const auto at = [&](size_t i) { return characters.begin() + static_cast<ptrdiff_t>(i); };
        characters.erase(at(from), at(to));
        characters.insert(at(from), with.begin(), with.end());
      }
      if (edit % 20 == 19) {  // no name is begun where the list is asked for
        const Json end = position(characters.size());
        changes.push_back({{"range", {{"start", end}, {"end", end}}}, {"text", "\n"}});
        characters.emplace_back("\n");
      }
      Notify("textDocument/didChange",
             {{"textDocument", {{"uri", "file:///edited.py"}}}, {"contentChanges", changes}});
      if (edit % 20 != 19) continue;
      const std::string whole = "file:///whole" + std::to_string(edit) + ".py";
      Open(whole, "python", text());
      for (const std::string& uri : {std::string("file:///edited.py"), whole}) {
        Ask(uri + std::to_string(edit), "textDocument/completion",
            {{"textDocument", {{"uri", uri}}}, {"position", position(characters.size())}});
      }
    }
    const std::vector<Json> messages = Run({"--no-monitors", "--max-items", "1000"});
    EXPECT_EQ(AnswerTo(messages, "first")["result"]["capabilities"]["positionEncoding"], unit.name);
    size_t names = 0;
    for (const int edit : {19, 39, 59}) {
      Json edited = AnswerTo(messages, "file:///edited.py" + std::to_string(edit));
      const std::string number = std::to_string(edit);
      Json whole = AnswerTo(messages, "file:///whole" + number + ".py" + number);
      for (Json* answer : {&edited, &whole}) {
        for (Json& item : (*answer)["result"]["items"]) item["data"].erase("list");
      }
      EXPECT_EQ(edited["result"], whole["result"]) << unit.name;
      names += edited["result"]["items"].size();
    }
    EXPECT_GT(names, 5U) << unit.name;
  }
}

// Requests wait while the first ones are answered: the last of them is cancelled, and each has one
// answer.
TEST_F(LspCommand, CancelledRequestsAreAnsweredSo) {
  const std::string uri = "file:///shop/c.ts";
  Begin();
  Open(uri, "typescript", kShop);
  for (int i = 1; i <= 40; ++i) {
    if (i % 2 == 0) {
      List(i, uri, 6, 7);
    } else {
      Say(Asked(i, uri, 6, 7));
    }
  }
  Notify("$/cancelRequest", {{"id", 40}});
  Notify("$/cancelRequest", {{"id", 39}});
  Notify("$/cancelRequest", {{"id", "no such request"}});
  Notify("$/cancelRequest", nullptr);
  const std::vector<Json> messages = Run();
  for (int i = 1; i <= 38; ++i) EXPECT_TRUE(AnswerTo(messages, i).contains("result")) << i;
  EXPECT_EQ(AnswerTo(messages, 39)["error"]["code"], -32800);
  EXPECT_EQ(AnswerTo(messages, 40)["error"]["code"], -32800);
}

TEST_F(LspCommand, RefusesWhatIsNoMessage) {
  const std::string long_id(1 << 20, 'x');
  const int64_t large = (int64_t{1} << 53) + 1;
  Begin();
  input_ += Framed(Json::array({1}));
  Say({{"jsonrpc", "2.0"}, {"id", 1}});
  Say({{"id", 2}, {"method", "textDocument/completion"}});
  Say({{"jsonrpc", "1.0"}, {"id", 3}, {"method", "textDocument/completion"}});
  Say({{"jsonrpc", "2.0"}, {"id", 4}, {"method", 7}});
  Ask(1.5, "textDocument/completion");
  Ask(1e30, "textDocument/completion");
  Ask(Json::array(), "textDocument/completion");
  Ask(nullptr, "textDocument/completion");
  Ask(large, "no/method");
  Ask(UINT64_MAX, "no/method");
  Ask(long_id, "no/method");
  const std::vector<Json> messages = Run();
  for (int id = 1; id <= 4; ++id) EXPECT_EQ(AnswerTo(messages, id)["error"]["code"], -32600) << id;
  EXPECT_EQ(std::ranges::count_if(messages,
                                  [](const Json& m) {
                                    return m.contains("error") && m["id"].is_null() &&
                                           m["error"]["code"] == -32600;
                                  }),
            5);
  for (const Json& id : {Json(large), Json(UINT64_MAX), Json(long_id)})
    EXPECT_EQ(AnswerTo(messages, id)["error"]["code"], -32601);
}

TEST_F(LspCommand, TellsProgressAndWatchesFiles) {
  const std::string folder = ScratchPath("lsp-repo");
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (int i = 0; i < 400; ++i) {
    std::ofstream file(folder + "/C" + std::to_string(i) + ".java");
    file << "class C" << i << " {\n";
    for (int k = 0; k < 40; ++k) file << "  int value" << k << "(int a) { return a; }\n";
    file << "}\n";
  }
  const auto begin = [&] {
    input_.clear();
    Begin({{"window", {{"workDoneProgress", true}}},
           {"workspace", {{"didChangeWatchedFiles", {{"dynamicRegistration", true}}}}}});
    Say({{"jsonrpc", "2.0"}, {"id", "pawl-index"}, {"result", nullptr}});
  };
  begin();
  Open("file://" + folder + "/D.java", "java", "class D { void f(C7 c) { c.\n } }\n");
  // The first list may come before the index, and says so.
  List(1, "file://" + folder + "/D.java", 0, 27);
  Notify("workspace/didChangeWatchedFiles",
         {{"changes", {{{"uri", "file://" + folder + "/C7.java"}, {"type", 2}}, 7, nullptr}}});
  Notify("textDocument/didSave", {{"textDocument", {{"uri", "file://" + folder + "/D.java"}}}});
  std::vector<Json> messages = Run({"--repo", folder});
  const auto sent = [&](const std::string& method) {
    std::vector<Json> out;
    for (const Json& m : messages) {
      if (m.value("method", "") == method) out.push_back(m["params"]);
    }
    return out;
  };
  ASSERT_EQ(sent("client/registerCapability").size(), 1U);
  const Json registration = sent("client/registerCapability")[0]["registrations"][0];
  EXPECT_EQ(registration["method"], "workspace/didChangeWatchedFiles");
  EXPECT_FALSE(registration["registerOptions"]["watchers"].empty());
  ASSERT_EQ(sent("window/workDoneProgress/create").size(), 1U);
  const Json token = sent("window/workDoneProgress/create")[0]["token"];
  std::vector<std::string> kinds;
  for (const Json& p : sent("$/progress")) {
    EXPECT_EQ(p["token"], token);
    kinds.push_back(p["value"]["kind"]);
  }
  // The server may be shut down before the index is there, but not before it has begun.
  ASSERT_FALSE(kinds.empty());
  EXPECT_EQ(kinds.front(), "begin");
  for (size_t i = 1; i + 1 < kinds.size(); ++i) EXPECT_EQ(kinds[i], "report");
  const Json first = AnswerTo(messages, 1)["result"];
  EXPECT_TRUE(first["isIncomplete"].get<bool>() || first["items"].size() > 40) << first;
  // A client that shows no progress and watches nothing hears of neither.
  input_.clear();
  Begin();
  messages = Run({"--repo", folder});
  EXPECT_TRUE(sent("$/progress").empty());
  EXPECT_TRUE(sent("window/workDoneProgress/create").empty());
  EXPECT_TRUE(sent("client/registerCapability").empty());
}

TEST_F(LspCommand, HostileMessagesAreAnswered) {
  const std::string uri = "file:///shop/d.py", huge = "file:///shop/huge.py";
  List(1, uri, 0, 0);  // before initialize
  Begin();
  input_ += "Content-Length: 9\r\n\r\n{\"id\": 1,";
  input_ += "Content-Length: 2\r\n\r\n[]";
  input_ += "Content-Length: 4\r\n\r\nnull";
  Ask(9, "initialize", {{"capabilities", Json::object()}});
  Ask(2, "textDocument/completion", Json::array({1}));
  Ask(3, "textDocument/completion", {{"textDocument", 5}});
  Ask(4, "no/such/method");
  Ask(5, "completionItem/resolve", 5);
  Notify("textDocument/didChange", {{"textDocument", {{"uri", uri}}}, {"contentChanges", 7}});
  Notify("textDocument/didOpen", {{"textDocument", {{"uri", uri}}}});
  Open(uri, "python", "'a'.\n");
  for (int i = 0; i < 1000; ++i) List(1000 + i, uri, 0, 4);
  Notify("textDocument/didClose", {{"textDocument", {{"uri", uri}}}});
  List(6, uri, 0, 4);
  Open(huge, "python", std::string(3 << 20, 'a') + "\n'a'.\n");
  List(7, huge, 1, 4);
  Open(uri, "python", "x = 1\n");
  Notify("textDocument/didChange",
         {{"textDocument", {{"uri", uri}}}, {"contentChanges", {{{"text", 5}}}}});
  List(8, uri, 0, 0);
  const std::vector<Json> messages = Run({"--max-items", "3"});
  EXPECT_EQ(AnswerTo(messages, 1)["error"]["code"], -32002);
  EXPECT_EQ(std::ranges::count_if(
                messages,
                [](const Json& m) { return m.contains("error") && m["error"]["code"] == -32700; }),
            1);
  EXPECT_EQ(std::ranges::count_if(
                messages,
                [](const Json& m) { return m.contains("error") && m["error"]["code"] == -32600; }),
            3);  // [], null, and initialize for the second time
  EXPECT_EQ(AnswerTo(messages, 9)["error"]["code"], -32600);
  for (const int id : {2, 3, 5, 6, 8})
    EXPECT_EQ(AnswerTo(messages, id)["error"]["code"], -32602) << id;
  EXPECT_EQ(AnswerTo(messages, 4)["error"]["code"], -32601);
  std::set<int> answered;
  for (const Json& m : messages) {
    if (!m.contains("result") || !m["id"].is_number() || m["id"] < 1000) continue;
    EXPECT_EQ(m["result"]["items"].size(), 3U);
    answered.insert(m["id"].get<int>());
  }
  EXPECT_EQ(answered.size(), 1000U);
  EXPECT_EQ(AnswerTo(messages, 7)["result"]["pawl"]["why"],
            "the text has more than 1 MiB, which counts as data");
  EXPECT_EQ(std::ranges::count_if(messages,
                                  [](const Json& m) {
                                    return m.value("method", "") == "window/logMessage" &&
                                           m["params"]["type"] == 1;
                                  }),
            3);
}

// What an editor shows is not known behind a change that is not valid: the document stays open, and
// its whole text brings it back.
TEST_F(LspCommand, ChangesThatAreNotValidKeepTheDocument) {
  const std::string uri = "file:///shop/e.py";
  const auto change = [&](const Json& version, const Json& changes) {
    Json document = {{"uri", uri}};
    if (!version.is_null()) document["version"] = version;
    Notify("textDocument/didChange", {{"textDocument", document}, {"contentChanges", changes}});
  };
  const auto range = [](const Json& line, int from, int to_line, int to) -> Json {
    return {{"start", {{"line", line}, {"character", from}}},
            {"end", {{"line", to_line}, {"character", to}}}};
  };
  Begin();
  Open(uri, "python", "'a'.\n");
  // Its end before its start, and behind the end of the document: they are put right.
  change(2, {{{"range", range(0, 3, 0, 1)}, {"text", "b'"}}});
  List(1, uri, 0, 4);
  change(3, {{{"range", range(700, 0, 900, 9)}, {"text", "# end\n"}}});
  List(2, uri, 0, 4);
  change(2, {{{"text", "lost = 1\n"}}});  // an older version
  List(3, uri, 0, 4);
  // None of the changes counts where one of them is not valid.
  change(4, {{{"range", range(0, 0, 0, 0)}, {"text", "x = "}},
             {{"range", range("0", 0, 0, 0)}, {"text", "y = "}}});
  List(4, uri, 0, 4);
  change(5, {{{"range", range(0, 0, 0, 0)}, {"text", "x = "}}});
  List(5, uri, 0, 4);
  change("6", {{{"text", "[1].\n"}}});
  change(7, 7);
  change(8, {7});
  change(9, {{{"range", 7}, {"text", "x"}}});
  List(6, uri, 0, 4);
  change(10, {{{"text", "[1].\n"}}});
  List(7, uri, 0, 4);
  change(nullptr, {{{"range", range(0, 1, 0, 2)}, {"text", "2"}}});
  List(8, uri, 0, 4);
  const std::vector<Json> messages = Run();
  const auto lists = [&](const Json& id, const std::string& name) {
    const std::vector<std::string> labels = Labels(AnswerTo(messages, id));
    return std::ranges::count(labels, name) == 1;
  };
  for (const int id : {1, 2, 3}) EXPECT_TRUE(lists(id, "upper")) << id;
  for (const int id : {4, 5, 6}) {
    const Json error = AnswerTo(messages, id)["error"];
    EXPECT_EQ(error["code"], -32602);
    EXPECT_NE(error["message"].get<std::string>().find("send the whole text"), std::string::npos);
  }
  for (const int id : {7, 8}) EXPECT_TRUE(lists(id, "append")) << id;
  std::string log;
  for (const Json& m : messages) {
    if (m.value("method", "") == "window/logMessage" && m["params"]["type"] == 1)
      log += m["params"]["message"].get<std::string>() + "\n";
  }
  for (const char* part :
       {"version 2 is older than 3", "contentChanges[1]: range.start: line must be a whole number",
        "contentChanges[0]: the whole text has to come first", "version must be a whole number",
        "contentChanges must be a list", "contentChanges[0]: text must be a string"}) {
    EXPECT_NE(log.find(part), std::string::npos) << part << "\n" << log;
  }
}

// Names that the stub of a module has for itself are in no list, and private ones come last.
TEST_F(LspCommand, ListsOfModulesHaveTheirOwnNames) {
  const std::string uri = "file:///shop/f.py";
  Begin();
  Open(uri, "python", "import os, datetime\nos.\nx = datetime.\ny = datetime.sys\n");
  List(1, uri, 1, 3);
  List(2, uri, 2, 13);
  List(3, uri, 3, 16);
  const std::vector<Json> messages = Run({"--max-items", "2000"});
  const Json start = AnswerTo(messages, 1);
  EXPECT_EQ(start["result"]["isIncomplete"], false);
  const std::vector<std::string> os = Labels(start), names = Labels(AnswerTo(messages, 2));
  EXPECT_EQ(std::ranges::count(os, "getcwd"), 1);
  EXPECT_EQ(std::ranges::count(names, "timedelta"), 1);
  for (const char* own : {"sys", "abstractmethod", "_D", "dbm"})
    EXPECT_EQ(std::ranges::count(names, own), 0) << own;
  const auto privacy = [](const std::string& name) {
    return !name.starts_with("_") ? 0 : name.starts_with("__") && name.ends_with("__") ? 2 : 1;
  };
  EXPECT_TRUE(std::ranges::is_sorted(os, {}, privacy));
  // Who begins such a name is shown it.
  EXPECT_EQ(Labels(AnswerTo(messages, 3)), std::vector<std::string>{"sys"});
}

// `pawl monitor --at`: the same names and reasons without an editor.
TEST_F(LspCommand, MonitorTellsTheNamesAtAPlace) {
  const std::string file = WriteScratch("at.ts", kShop);
  const CommandResult closed = RunPawl({"monitor", file, "--at", "7:8"});
  EXPECT_EQ(closed.exit_code, 0) << closed.err;
  EXPECT_NE(closed.out.find("at.ts:7:8: "), std::string::npos) << closed.out;
  EXPECT_NE(closed.out.find("add                      method       (string) => void"),
            std::string::npos)
      << closed.out;
  const CommandResult empty = RunPawl({"monitor", file, "--at", "8:11"});
  EXPECT_NE(empty.out.find("no name: the place is in a comment or a string"), std::string::npos)
      << empty.out;
  const std::string report = ScratchPath("at.json");
  const std::string python = WriteScratch("at.py", "def f(x):\n    x.one\n    x.\n");
  const CommandResult open = RunPawl({"monitor", python, "--at", "3:7", "--json", report});
  EXPECT_NE(open.out.find("any name (other names may stand here than those that are known); "
                          "known: 1 name"),
            std::string::npos)
      << open.out;
  std::ifstream stream(report);
  const Json entry = Json::parse(stream)["files"][0];
  EXPECT_EQ(entry["open"], true);
  EXPECT_EQ(entry["names"][0]["name"], "one");
  for (const char* at : {"0:1", "1", "x:1", "1:99", "99:1", "1:-1", "1:1x"}) {
    const CommandResult bad = RunPawl({"monitor", file, "--at", at});
    EXPECT_EQ(bad.exit_code, 2) << at;
    EXPECT_NE(bad.err.find("--at"), std::string::npos) << bad.err;
  }
}

}  // namespace
}  // namespace pawl
