// Lists of tools that came before are found by their bytes, and mean what they meant.
#include "src/server/known_tools.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "src/base/json.h"
#include "src/server/server.h"
#include "tests/server/http_client.h"
#include "tests/server/test_server.h"

namespace pawl::server {
namespace {

std::string List(int count, const std::string& salt = "") {
  std::string list = "[";
  for (int i = 0; i < count; ++i) {
    list += i > 0 ? ", " : "";
    list += R"({"type":"function","function":{"name":"tool_)" + std::to_string(i) +
            R"(","description":"]} \" \\",
      "parameters":{"type":"object","properties":{"a]":{"type":"string","maxLength":9},"b)" +
            salt + R"(":{"enum":["[","{"]}},"required":["a]"],"additionalProperties":false}}})";
  }
  return list + "]";
}

std::vector<ToolSpec> ToolsOf(const std::string& list) {
  const auto body = json::Parse("{\"tools\":" + list + "}");
  EXPECT_TRUE(body.ok());
  const auto asked = ReadConstraints(JsonReader(*body));
  EXPECT_TRUE(asked.ok());
  return asked->tools;
}

void Keep(KnownTools& known, const std::string& body, const std::string& list) {
  const KnownTools::Match match = known.Find(body);
  EXPECT_EQ(match.tools, nullptr);
  known.Keep(body, match, ToolsOf(list));
}

TEST(KnownToolsTest, FoundWhereverTheyStand) {
  KnownTools known(1 << 20);
  const std::string list = List(40);
  Keep(known, R"({"messages":[],"tools":)" + list + "}", list);
  const std::vector<std::string> before = {
      R"({"tools":)", R"({"tools" : )",
      R"({"messages":[{"tools":[1],"content":"\"tools\":[\\"}],"tools":)",
      R"({"x":"tools","y":{"tools":[]},"tools":)"};
  for (const std::string& head : before) {
    const std::string body = head + list + R"(,"seed":7})";
    const KnownTools::Match match = known.Find(body);
    ASSERT_NE(match.tools, nullptr) << head;
    EXPECT_EQ(match.Rest(body), head + R"(null,"seed":7})");
    EXPECT_EQ(body.substr(match.begin, match.size), list);
    const auto rest = json::Parse(match.Rest(body));
    ASSERT_TRUE(rest.ok());
    const auto asked = ReadConstraints(JsonReader(*rest), match.tools.get());
    ASSERT_TRUE(asked.ok());
    ASSERT_EQ(asked->tools.size(), 40u);
    EXPECT_EQ(asked->choice.mode, ToolChoice::Mode::kAuto);
    EXPECT_EQ(asked->choice.allowed.size(), 40u);
    EXPECT_EQ(asked->tools[39].input.text, ToolsOf(list)[39].input.text);
    EXPECT_EQ(asked->tools[39].pointer, "#/tools/39/function");
  }
}

TEST(KnownToolsTest, OthersAreNot) {
  KnownTools known(1 << 20);
  const std::string list = List(40);
  Keep(known, R"({"tools":)" + list + "}", list);
  for (const std::string& body :
       {R"({"tools":)" + List(40, "x") + "}", R"({"tool":)" + list + "}",
        R"({"a":{"tools":)" + list + "}}", R"({"a":"\"tools\":","b":)" + list + "}",
        R"({"tools":)" + list.substr(0, list.size() - 1) + ",1]}",
        R"({"tools":)" + list.substr(0, list.size() - 1), std::string("{\"tools\":["),
        "\"" + std::string(9000, 'x'), std::string(9000, '\\'), std::string(9000, ']')}) {
    EXPECT_EQ(known.Find(body).tools, nullptr) << body.substr(0, 60);
  }
}

TEST(KnownToolsTest, TheirBytesAreBounded) {
  constexpr size_t kBytes = 100 << 10;
  KnownTools known(kBytes);
  for (int i = 0; i < 40; ++i) {
    const std::string list = List(40, std::to_string(i));
    Keep(known, R"({"tools":)" + list + "}", list);
    EXPECT_LE(known.bytes(), kBytes);
    EXPECT_GT(known.bytes(), 2 * list.size());
    EXPECT_NE(known.Find(R"({"tools":)" + list + "}").tools, nullptr);
  }
  EXPECT_EQ(known.Find(R"({"tools":)" + List(40, "0") + "}").tools, nullptr);
  const std::string large = List(500);
  Keep(known, R"({"tools":)" + large + "}", large);
  EXPECT_EQ(known.Find(R"({"tools":)" + large + "}").tools, nullptr);
}

// Through a server: the answer to the second request, with errors, is that to the first.
TEST(KnownToolsTest, AnswersAndErrorsAreTheSame) {
  const std::unique_ptr<Server> server = ServerOf("tiny-extract");
  Connection c(server->port());
  const std::string list = List(40),
                    head = R"({"messages":[{"role":"user","content":"x"}],"tools":)";
  const std::string bad = list.substr(0, list.size() - 1) +
                          R"(,{"type":"function","function":{"name":"z","parameters":
                          {"type":"object","properties":{"a":{"type":"string","minLength":-1}}}}}])";
  const auto post = [&](const std::string& tools, const std::string& rest) {
    const Answer answer = c.Post("/v1/chat/completions", head + tools + rest);
    const json::Value tree = answer.Json();
    return std::to_string(answer.status) + " " + json::Dump(At(tree, "/error")) +
           json::Dump(At(tree, "/choices/0/message/tool_calls/0/function")) +
           json::Dump(At(tree, "/choices/0/finish_reason"));
  };
  const std::string good = R"(,"tool_choice":"required","parallel_tool_calls":false,"seed":1})";
  const std::string first = post(list, good);
  EXPECT_TRUE(first.starts_with("200 ")) << first;
  EXPECT_NE(first.find("tool_"), std::string::npos) << first;
  EXPECT_EQ(post(list, good), first);
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"(,"temperature":"hot"})", "/temperature"},
      {R"(,"tool_choice":{"type":"function","function":{"name":"none"}}})", "/tool_choice"},
      {R"(,"seed":})", "byte "},
      {R"(,"tools":[]})", "duplicate key"}};
  for (const auto& [rest, place] : wrong) {
    const std::string known = post(list, rest);
    EXPECT_TRUE(known.starts_with("400 ")) << known;
    EXPECT_NE(known.find(place), std::string::npos) << known;
    EXPECT_EQ(post(List(40) + "  ", rest).substr(0, 4), "400 ");
  }
  const std::string refused = post(bad, good);
  EXPECT_NE(refused.find("/tools/40/function/parameters/properties/a/minLength"), std::string::npos)
      << refused;
  EXPECT_EQ(post(bad, good), refused);
}

}  // namespace
}  // namespace pawl::server
