// Formats of calls through the server: each is named by --tool-syntax, the model that ships writes
// a call in it, and the answer has the arguments as JSON. Where a template shows no form of calls
// the request is told so.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "src/server/server.h"
#include "tests/server/http_client.h"

namespace pawl::server {
namespace {

std::unique_ptr<Server> StartWithSyntax(const std::string& syntax) {
  ServerOptions options;
  options.model_path = PAWL_SOURCE_DIR "/models/tiny-extract";
  options.model.model.threads = 1;
  // Tools in a form that is not known.
  options.model.chat_template =
      "{% for t in tools or [] %}@{{ t.function.name }}\n{% endfor %}"
      "{% for m in messages %}{{ m.content }}\n{% endfor %}";
  options.model.tool_syntax = syntax;
  auto server = Server::Start(options);
  EXPECT_TRUE(server.ok()) << server.error().ToString();
  EXPECT_TRUE((*server)->WaitUntilReady().ok());
  return *std::move(server);
}

std::string ToolsBody(const std::string& more) {
  return R"({"messages":[{"role":"user","content":"Ann Lee, ann@example.org"}],"max_tokens":300,
      "tools":[{"type":"function","function":{"name":"save","parameters":{"type":"object",
      "properties":{"name":{"type":"string","maxLength":12},"age":{"type":"integer","minimum":1,
      "maximum":9}},"required":["name","age"],"additionalProperties":false}}}])" +
         more + "}";
}

TEST(ToolFormatsTest, CallsComeBackAsJson) {
  for (const char* syntax : {"hermes", "glm", "gemma4", "gpt_oss", "kimi_k2", "lfm2",
                             "deepseek_v3_2", "minimax_m3", "cohere", "mistral_small"}) {
    SCOPED_TRACE(syntax);
    const auto server = StartWithSyntax(syntax);
    Connection c(server->port());
    const Answer answer =
        c.Post("/v1/chat/completions",
               ToolsBody(R"(,"tool_choice":"required","parallel_tool_calls":false)"));
    ASSERT_EQ(answer.status, 200) << answer.body;
    const json::Value value = answer.Json();
    EXPECT_EQ(At(value, "/choices/0/message/tool_calls/0/function/name").text, "save");
    const auto arguments =
        json::Parse(At(value, "/choices/0/message/tool_calls/0/function/arguments").text);
    ASSERT_TRUE(arguments.ok()) << answer.body;
    ASSERT_NE(arguments->Find("name"), nullptr) << answer.body;
    EXPECT_EQ(arguments->Find("name")->type, json::Type::kString) << answer.body;
    ASSERT_NE(arguments->Find("age"), nullptr) << answer.body;
    EXPECT_EQ(arguments->Find("age")->type, json::Type::kNumber) << answer.body;
    EXPECT_EQ(At(value, "/choices/0/message/content").type, json::Type::kNull) << answer.body;
  }
}

// The channels are no part of the answer, and the answer is of the schema.
TEST(ToolFormatsTest, AnAnswerInItsChannel) {
  const auto server = StartWithSyntax("gpt_oss");
  Connection c(server->port());
  const Answer answer = c.Post("/v1/chat/completions",
                               R"({"messages":[{"role":"user","content":"Ann"}],"max_tokens":100,
      "thinking_budget":4,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":
      {"type":"object","properties":{"n":{"type":"integer","minimum":1,"maximum":9}},
      "required":["n"],"additionalProperties":false}}}})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto content = json::Parse(At(answer.Json(), "/choices/0/message/content").text);
  ASSERT_TRUE(content.ok()) << answer.body;
  EXPECT_NE(content->Find("n"), nullptr);
}

TEST(ToolFormatsTest, WithoutAFormTheRequestIsTold) {
  const auto server = StartWithSyntax("");
  Connection c(server->port());
  const Answer required = c.Post("/v1/chat/completions", ToolsBody(R"(,"tool_choice":"required")"));
  EXPECT_EQ(required.status, 400) << required.body;
  EXPECT_EQ(At(required.Json(), "/error/param").text, "/tool_choice") << required.body;
  EXPECT_NE(required.body.find("--tool-syntax"), std::string::npos) << required.body;
  const Answer any = c.Post("/v1/chat/completions", ToolsBody(""));
  EXPECT_EQ(any.status, 200) << any.body;
  EXPECT_NE(At(any.Json(), "/pawl/notes/0").text.find("--tool-syntax"), std::string::npos)
      << any.body;
}

}  // namespace
}  // namespace pawl::server
