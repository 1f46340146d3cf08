// /v1/messages, /v1/messages/count_tokens, /apply-template and /openapi.json.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "src/server/server.h"
#include "tests/server/http_client.h"
#include "tests/server/test_server.h"

namespace pawl::server {
namespace {

constexpr const char* kToolSchema =
    R"({"type":"object","properties":{"name":{"type":"string","maxLength":12},"age":{"type":
    "integer","minimum":1,"maximum":9}},"required":["name","age"],"additionalProperties":false})";

int MessagesPort() {
  static const std::unique_ptr<Server> server = [] {
    ServerOptions options;
    options.version = "1.2.3";
    options.model.chat_template =
        "{% for t in tools or [] %}@{{ t.function.name }}\n{% endfor %}"
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
        "{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments | tojson "
        "}}]"
        "{% endfor %}\n{% endfor %}";
    options.model.tool_syntax = "hermes";
    return ServerOf("tiny-extract", options);
  }();
  return server->port();
}

std::string MessageBody(const std::string& more, const std::string& content = "\"Ann Lee, 7\"") {
  return R"({"model":"m","max_tokens":120,"temperature":0,"messages":[{"role":"user","content":)" +
         content + "}]" + more + "}";
}

std::string SaveTool(const std::string& choice) {
  return R"(,"tools":[{"name":"save","description":"Saves","input_schema":)" +
         std::string(kToolSchema) + R"(}],"tool_choice":)" + choice;
}

TEST(MessagesTest, TextOfASchema) {
  Connection c(MessagesPort());
  const std::string format = R"(,"output_config":{"format":{"type":"json_schema","schema":)" +
                             std::string(kToolSchema) + "}}";
  const Answer whole = c.Post("/v1/messages", MessageBody(format));
  ASSERT_EQ(whole.status, 200) << whole.body;
  const json::Value value = whole.Json();
  EXPECT_EQ(At(value, "/type").text, "message");
  EXPECT_EQ(At(value, "/role").text, "assistant");
  EXPECT_EQ(At(value, "/content/0/type").text, "text");
  const std::string text = At(value, "/content/0/text").text;
  EXPECT_TRUE(json::Parse(text).ok()) << text;
  EXPECT_EQ(At(value, "/stop_reason").text, "end_turn");
  EXPECT_EQ(At(value, "/stop_sequence").type, json::Type::kNull);
  const Answer stream = c.Post("/v1/messages", MessageBody(format + R"(,"stream":true)"));
  std::string said, order;
  for (const std::string& event : stream.Events()) {
    const auto one = json::Parse(event);
    ASSERT_TRUE(one.ok()) << event;
    const std::string type = At(*one, "/type").text;
    said += At(*one, "/delta/text").text;
    if (type != "content_block_delta") order += type + " ";
    if (type == "message_delta") {
      EXPECT_EQ(At(*one, "/delta/stop_reason").text, "end_turn");
      EXPECT_EQ(At(*one, "/usage/output_tokens").text, At(value, "/usage/output_tokens").text);
    }
  }
  EXPECT_EQ(said, text);
  EXPECT_EQ(order,
            "message_start content_block_start content_block_stop message_delta message_stop ");
}

TEST(MessagesTest, CallsOfTools) {
  Connection c(MessagesPort());
  for (const char* choice :
       {R"({"type":"any","disable_parallel_tool_use":true})", R"({"type":"tool","name":"save"})"}) {
    const Answer whole = c.Post("/v1/messages", MessageBody(SaveTool(choice)));
    ASSERT_EQ(whole.status, 200) << whole.body;
    const json::Value value = whole.Json();
    EXPECT_EQ(At(value, "/content").items.size(), 1u) << whole.body;
    EXPECT_EQ(At(value, "/content/0/type").text, "tool_use") << whole.body;
    EXPECT_EQ(At(value, "/content/0/name").text, "save");
    EXPECT_EQ(At(value, "/content/0/input/age").type, json::Type::kNumber) << whole.body;
    EXPECT_EQ(At(value, "/stop_reason").text, "tool_use");
    const Answer stream =
        c.Post("/v1/messages", MessageBody(SaveTool(choice) + R"(,"stream":true)"));
    std::string input, name;
    for (const std::string& event : stream.Events()) {
      const auto one = json::Parse(event);
      ASSERT_TRUE(one.ok()) << event;
      input += At(*one, "/delta/partial_json").text;
      name += At(*one, "/content_block/name").text;
    }
    EXPECT_EQ(name, "save");
    const auto parsed = json::Parse(input);
    ASSERT_TRUE(parsed.ok()) << input;
    EXPECT_EQ(json::Dump(*parsed), json::Dump(At(value, "/content/0/input")));
  }
  const Answer none = c.Post("/v1/messages", MessageBody(SaveTool(R"({"type":"none"})")));
  EXPECT_EQ(At(none.Json(), "/content/0/type").text, "text") << none.body;
}

TEST(MessagesTest, ConversationsBecomeThePrompt) {
  Connection c(MessagesPort());
  const std::string body = R"({"max_tokens":5,"system":[{"type":"text","text":"Be brief."}],
      "messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
      {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""},
      {"type":"text","text":"ok"},{"type":"tool_use","id":"t1","name":"save","input":{"age":7}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text",
      "text":"saved"}]},{"type":"text","text":"and?"}]}],"tools":[{"name":"save","input_schema":{}}]})";
  const std::string chat = R"({"messages":[{"role":"system","content":"Be brief."},
      {"role":"user","content":"a\nb"},{"role":"assistant","content":"ok","tool_calls":[{"id":"t1",
      "type":"function","function":{"name":"save","arguments":"{\"age\":7}"}}]},
      {"role":"tool","tool_call_id":"t1","content":"saved"},{"role":"user","content":"and?"}],
      "tools":[{"type":"function","function":{"name":"save","parameters":{}}}]})";
  const Answer counted = c.Post("/v1/messages/count_tokens", body);
  ASSERT_EQ(counted.status, 200) << counted.body;
  const Answer shown = c.Post("/apply-template", chat);
  ASSERT_EQ(shown.status, 200) << shown.body;
  const std::string prompt = At(shown.Json(), "/prompt").text;
  EXPECT_NE(prompt.find("@save\n<system>Be brief.<user>a\nb<assistant>ok[save "), std::string::npos)
      << prompt;
  EXPECT_NE(prompt.find("<tool>saved<user>and?"), std::string::npos) << prompt;
  const Answer tokens = c.Post(
      "/tokenize", R"({"prompt":)" + json::Quote(prompt) + R"(,"add_special_tokens":false})");
  EXPECT_EQ(At(counted.Json(), "/input_tokens").text,
            std::to_string(At(tokens.Json(), "/tokens").items.size()));
  const Answer answered = c.Post("/v1/messages", body);
  const json::Value value = answered.Json();
  EXPECT_EQ(std::stoi(At(value, "/usage/input_tokens").text) +
                std::stoi(At(value, "/usage/cache_read_input_tokens").text),
            std::stoi(At(counted.Json(), "/input_tokens").text))
      << answered.body;
  EXPECT_EQ(At(value, "/stop_reason").text, "max_tokens");
}

TEST(MessagesTest, StopSequences) {
  Connection c(MessagesPort());
  const std::string choice = R"(,"structured_outputs":{"choice":["one two three"]})";
  const Answer answer =
      c.Post("/v1/messages", MessageBody(choice + R"(,"stop_sequences":["two"])"));
  const json::Value value = answer.Json();
  EXPECT_EQ(At(value, "/content/0/text").text, "one ") << answer.body;
  EXPECT_EQ(At(value, "/stop_reason").text, "stop_sequence") << answer.body;
  EXPECT_EQ(At(value, "/stop_sequence").text, "two");
}

TEST(MessagesTest, ErrorsNameThePlace) {
  Connection c(MessagesPort());
  struct Case {
    std::string body, message;
  };
  const std::string image = R"([{"type":"image","source":{"type":"base64","data":""}}])";
  for (const Case& it : {
           Case{MessageBody("", image), "#/messages/0/content/0/type: is \"image\""},
           Case{MessageBody("", R"([{"type":"tool_use"}])"), "no block of user"},
           Case{MessageBody("", "7"), "#/messages/0/content: must be a text or a list of blocks"},
           Case{R"({"max_tokens":5})", "#/messages: must be a list"},
           Case{R"({"messages":[{"role":"system","content":"x"}]})", "#/messages/0/role: must be"},
           Case{MessageBody(R"(,"tools":[{"type":"web_search_20250305","name":"w"}])"),
                "#/tools/0/type: is \"web_search_20250305\""},
           Case{MessageBody(R"(,"tools":[{"name":"save","input_schema":{"type":7}}],"tool_choice":
               {"type":"any"})"),
                "#/tools/0/input_schema/type"},
           Case{MessageBody(R"(,"stop_sequences":[""])"), "#/stop_sequences: has a string"},
           Case{MessageBody(R"(,"tool_choice":{"type":"tool","name":"x"})"),
                "#/tool_choice/name: is"},
           Case{"{", "the body is not JSON"},
       }) {
    const Answer answer = c.Post("/v1/messages", it.body);
    EXPECT_EQ(answer.status, 400) << it.body << answer.body;
    EXPECT_EQ(At(answer.Json(), "/type").text, "error") << answer.body;
    EXPECT_EQ(At(answer.Json(), "/error/type").text, "invalid_request_error") << answer.body;
    EXPECT_NE(At(answer.Json(), "/error/message").text.find(it.message), std::string::npos)
        << answer.body;
  }
}

TEST(MessagesTest, RoutesAreDescribed) {
  Connection c(MessagesPort());
  const json::Value value = c.Get("/openapi.json").Json();
  EXPECT_EQ(At(value, "/openapi").text, "3.1.0");
  EXPECT_EQ(At(value, "/info/version").text, "1.2.3");
  ASSERT_NE(value.Find("paths"), nullptr);
  const json::Value* const messages = value.Find("paths")->Find("/v1/messages");
  ASSERT_NE(messages, nullptr);
  EXPECT_NE(messages->Find("post"), nullptr);
  ASSERT_NE(value.Find("paths")->Find("/health"), nullptr);
}

}  // namespace
}  // namespace pawl::server
