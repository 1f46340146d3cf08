// Code through the server: /v1/fim/completions, /infill and prompts that a client has marked, under
// the monitors. The model has learned no code, so that members exist because of the monitors alone.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "src/server/server.h"
#include "tests/server/http_client.h"
#include "tests/server/test_server.h"

namespace pawl::server {
namespace {

constexpr const char* kPrefix =
    "interface P { width: number; height: number }\nfunction f(p: P) {\n  return p.";
constexpr const char* kSuffix = ";\n}\n";

class CodeCompletionTest : public testing::Test {
 protected:
  void SetUp() override {
#ifndef PAWL_HAVE_MONITORS
    GTEST_SKIP() << "built without the monitors";
#endif
  }
  static int Port() {
    static const std::unique_ptr<Server> server = ServerOf("tiny-extract");
    return server->port();
  }
  static std::string Text(std::string_view text) { return json::Quote(text); }
  static bool Member(std::string_view text) {
    const size_t first = text.find_first_not_of(" \n");
    text = text.substr(first == std::string_view::npos ? text.size() : first);
    for (const char* name : {"width", "height", "constructor", "hasOwnProperty", "isPrototypeOf",
                             "propertyIsEnumerable", "toLocaleString", "toString", "valueOf"}) {
      if (text.starts_with(name)) return true;
    }
    return text.empty() || text[0] == '/' || text[0] == '#' || text[0] == '[';
  }
};

TEST_F(CodeCompletionTest, FimNamesWhatExists) {
  Connection c(Port());
  for (int seed = 0; seed < 6; ++seed) {
    const std::string rest = R"(,"temperature":1,"max_tokens":24,"seed":)" + std::to_string(seed) +
                             R"(,"filename":"src/a.ts"})";
    const Answer answer = c.Post("/v1/fim/completions", R"({"prompt":)" + Text(kPrefix) +
                                                            R"(,"suffix":)" + Text(kSuffix) + rest);
    ASSERT_EQ(answer.status, 200) << answer.body;
    const json::Value body = answer.Json();
    const std::string content = At(body, "/choices/0/message/content").text;
    EXPECT_TRUE(Member(content)) << content;
    EXPECT_EQ(content.find(";\n"), std::string::npos) << content;
    // The same as a prompt in which the client has marked the gap.
    const std::string marked =
        std::string("<|fim_prefix|>") + kPrefix + "<|fim_suffix|>" + kSuffix + "<|fim_middle|>";
    const Answer same = c.Post("/v1/fim/completions", R"({"prompt":)" + Text(marked) + rest);
    EXPECT_EQ(At(same.Json(), "/choices/0/message/content").text, content);
  }
}

// Each of them made a walk over types endless, and with it the server.
TEST_F(CodeCompletionTest, EndlessDeclarationsEnd) {
  Connection c(Port());
  for (const char* prompt :
       {"interface I extends I{}\ndeclare let i:I; i.", "function f<T extends T>(t:T){ t.",
        "class A extends B{}\nclass B extends A{}\nlet a=new A(); a.",
        "interface A<T> extends A<A<T>>{}\ndeclare let a:A<number>; a.",
        "function f<T extends U, U extends T>(t:T){ t."}) {
    const Answer answer = c.Post("/v1/fim/completions",
                                 R"({"prompt":)" + Text(prompt) +
                                     R"(,"suffix":"\n","language":"typescript","max_tokens":5})");
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(At(answer.Json(), "/pawl/given_up").text, "0") << answer.body;
  }
  // What is too deep is not analysed, and holds up nothing.
  const Answer deep = c.Post("/v1/fim/completions",
                             R"({"prompt":)" + Text("x = " + std::string(1000, '(') + "Math.") +
                                 R"(,"suffix":"\n","language":"typescript","max_tokens":5})");
  EXPECT_EQ(deep.status, 200) << deep.body;
}

TEST_F(CodeCompletionTest, InfillStopsWithTheStatement) {
  Connection c(Port());
  for (int seed = 0; seed < 6; ++seed) {
    const Answer answer = c.Post(
        "/infill", R"({"input_prefix":)" + Text(kPrefix) + R"(,"input_suffix":)" + Text(kSuffix) +
                       R"(,"prompt":"hei","language":"typescript")" +
                       R"(,"n_predict":24,"temperature":1,"seed":)" + std::to_string(seed) + "}");
    ASSERT_EQ(answer.status, 200) << answer.body;
    const std::string content = At(answer.Json(), "/content").text;
    // "hei" is there already.
    EXPECT_TRUE(content.starts_with("ght")) << content;
    EXPECT_TRUE(At(answer.Json(), "/pawl/parses").is_bool()) << answer.body;
  }
}

TEST_F(CodeCompletionTest, AStreamHasTheSameBeginning) {
  Connection c(Port());
  const Answer answer = c.Post("/v1/fim/completions",
                               R"({"prompt":)" + Text(kPrefix) + R"(,"suffix":)" + Text(kSuffix) +
                                   R"(,"max_tokens":16,"language":"ts","stream":true})");
  ASSERT_TRUE(answer.complete);
  std::string content;
  for (const auto& event : answer.Events()) {
    if (event == "[DONE]") continue;
    const auto parsed = json::Parse(event);
    ASSERT_TRUE(parsed.ok());
    content += At(*parsed, "/choices/0/delta/content").text;
  }
  EXPECT_TRUE(Member(content)) << content;
}

TEST_F(CodeCompletionTest, AGrammarHoldsToo) {
  Connection c(Port());
  const Answer answer =
      c.Post("/infill",
             R"({"input_prefix":)" + Text(kPrefix) + R"(,"input_suffix":)" + Text(kSuffix) +
                 R"(,"language":"ts","n_predict":16,"structured_outputs":{"regex":"[a-z]{3,9}"}})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const std::string content = At(answer.Json(), "/content").text;
  EXPECT_TRUE(content == "width" || content == "height") << content;
}

TEST_F(CodeCompletionTest, SearchesObeyTheMonitors) {
  Connection c(Port());
  for (const char* member :
       {R"("search":{"num_beams":3})", R"("search":{"strategy":"adadec"})",
        R"("search":{"strategy":"cntp"},"seed":3)", R"("search":{"strategy":"mcts"},"n":2)"}) {
    const Answer answer = c.Post("/v1/fim/completions",
                                 R"({"prompt":)" + Text(kPrefix) + R"(,"suffix":)" + Text(kSuffix) +
                                     R"(,"max_tokens":20,"language":"ts",)" + member + "}");
    ASSERT_EQ(answer.status, 200) << member << answer.body;
    const std::string content = At(answer.Json(), "/choices/0/message/content").text;
    EXPECT_TRUE(Member(content)) << member << content;
    EXPECT_EQ(content.find(";\n"), std::string::npos) << content;
  }
  const std::string sampler =
      R"({"prompt":"a.","max_tokens":4,"temperature":1,"language":"ts","sampler":{"name":"smc"})";
  const Answer refused = c.Post("/v1/fim/completions", sampler + "}");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(At(refused.Json(), "/error/param").text, "/sampler") << refused.body;
  EXPECT_EQ(c.Post("/v1/fim/completions", sampler + R"(,"monitors":false})").status, 200);
}

TEST_F(CodeCompletionTest, BadInputNamesThePlace) {
  Connection c(Port());
  const auto post = [&](const std::string& more) {
    return c.Post("/v1/fim/completions", R"({"prompt":"a.","max_tokens":2)" + more + "}");
  };
  const Answer unknown = post(R"(,"language":"ts","monitors":["nonsense"])");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_NE(unknown.body.find("no monitor is called"), std::string::npos) << unknown.body;
  EXPECT_EQ(post(R"(,"language":5)").status, 400);
  EXPECT_EQ(post(R"(,"language":"ts","monitors":"x","n":0)").status, 400);
  // Languages without monitors, and none wanted.
  EXPECT_EQ(post(R"(,"language":"cobol")").status, 200);
  EXPECT_EQ(post(R"(,"language":"ts","monitors":false)").status, 200);
}

}  // namespace
}  // namespace pawl::server
