// Models that think first, over real connections. The model that ships has learned no thinking: its
// template here opens the block, closes it, or leaves that to it, and what it then writes in the
// block is noise, up to the mark that ends it.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "src/server/server.h"
#include "tests/server/drafts_of_prompt.h"
#include "tests/server/http_client.h"

namespace pawl::server {
namespace {

constexpr const char* kThinkingSchema =
    R"({"type":"object","properties":{"name":{"type":"string","maxLength":30},"email":{"type":"string",
    "format":"email","maxLength":40}},"required":["name","email"],"additionalProperties":false})";

// As templates of models that think have it: the block is open unless thinking is switched off, and
// then it is closed.
constexpr const char* kOpens =
    "{% for m in messages %}{{ m.content }}\n{% endfor %}{% if enable_thinking is defined and not "
    "enable_thinking %}<think>\n\n</think>\n\n{% else %}<think>\n{% endif %}";
// The model opens it itself.
constexpr const char* kLeaves =
    "{% for m in messages %}{{ m.content }}\n{% endfor %}{% if enable_thinking is defined and not "
    "enable_thinking %}<think></think>{% endif %}";

std::unique_ptr<Server> StartThinking(const char* chat_template, bool drafts) {
  ServerOptions options;
  options.model_path = PAWL_SOURCE_DIR "/models/tiny-extract";
  options.model.model.threads = 1;
  options.model.chat_template = chat_template;
  options.model.tool_syntax = "plain";  // its template shows no form of calls
  if (drafts) options.make_drafter = DraftsOfPrompt;
  auto server = Server::Start(options);
  EXPECT_TRUE(server.ok()) << server.error().ToString();
  EXPECT_TRUE((*server)->WaitUntilReady().ok());
  return *std::move(server);
}

int OpensPort() {
  static const std::unique_ptr<Server> server = StartThinking(kOpens, false);
  return server->port();
}

int DraftsPort() {
  static const std::unique_ptr<Server> server = StartThinking(kOpens, true);
  return server->port();
}

std::string ThinkingBody(const std::string& more) {
  return R"({"messages":[{"role":"user","content":"Ann Lee, ann@example.org"}],"max_tokens":300,
      "response_format":{"type":"json_schema","json_schema":{"name":"x","schema":)" +
         std::string(kThinkingSchema) + "}}" + more + "}";
}

struct Said {
  int status = 0;
  std::string content, reasoning, finish;
  int reasoning_tokens = 0, accepted_tokens = 0;
  bool closed = false;
};

int IntOf(const json::Value& value) { return value.text.empty() ? 0 : std::stoi(value.text); }

Said Ask(int port, const std::string& more, bool stream) {
  Connection c(port);
  const Answer answer = c.Post(
      "/v1/chat/completions",
      ThinkingBody(more +
                   (stream ? R"(,"stream":true,"stream_options":{"include_usage":true})" : "")));
  Said said;
  said.status = answer.status;
  const auto totals = [&](const json::Value& value) {
    said.reasoning_tokens = IntOf(At(value, "/usage/completion_tokens_details/reasoning_tokens"));
    said.accepted_tokens = IntOf(At(value, "/pawl/accepted_tokens"));
    said.closed = At(value, "/pawl/closed").type == json::Type::kTrue;
  };
  if (!stream) {
    const json::Value value = answer.Json();
    said.content = At(value, "/choices/0/message/content").text;
    said.reasoning = At(value, "/choices/0/message/reasoning_content").text;
    said.finish = At(value, "/choices/0/finish_reason").text;
    totals(value);
    return said;
  }
  for (const std::string& event : answer.Events()) {
    const auto value = json::Parse(event);
    if (!value.ok()) continue;
    said.content += At(*value, "/choices/0/delta/content").text;
    // What is thought comes first.
    const std::string thought = At(*value, "/choices/0/delta/reasoning_content").text;
    EXPECT_TRUE(thought.empty() || said.content.empty()) << event;
    said.reasoning += thought;
    said.finish += At(*value, "/choices/0/finish_reason").text;
    if (At(*value, "/usage").type == json::Type::kObject) totals(*value);
  }
  return said;
}

// A record of the schema, and none of the marks.
void ExpectRecord(const Said& said) {
  ASSERT_EQ(said.status, 200);
  const auto record = json::Parse(said.content);
  ASSERT_TRUE(record.ok()) << said.content;
  EXPECT_EQ(At(*record, "/name").type, json::Type::kString) << said.content;
  EXPECT_EQ(At(*record, "/email").type, json::Type::kString) << said.content;
  EXPECT_EQ((said.content + said.reasoning).find("think>"), std::string::npos)
      << said.content << said.reasoning;
}

TEST(ThinkingTest, ABudgetEndsTheBlock) {
  for (const bool stream : {false, true}) {
    for (const char* budget :
         {R"(,"thinking_budget":12)", R"(,"thinking":{"type":"enabled","budget_tokens":12})"}) {
      const Said said =
          Ask(OpensPort(), std::string(budget) + R"(,"temperature":1,"seed":7)", stream);
      ExpectRecord(said);
      EXPECT_EQ(said.finish, "stop");
      EXPECT_FALSE(said.reasoning.empty());
      EXPECT_GE(said.reasoning_tokens, 12);
      EXPECT_LE(said.reasoning_tokens, 12 + 12);  // and the mark that ends it
    }
  }
}

TEST(ThinkingTest, NoBudgetForIt) {
  const Said said = Ask(OpensPort(), R"(,"thinking_budget":0,"temperature":0)", false);
  ExpectRecord(said);
  EXPECT_EQ(said.reasoning, "");
}

TEST(ThinkingTest, ATemplateThatClosesTheBlockSwitchesItOff) {
  for (const char* off :
       {R"(,"chat_template_kwargs":{"enable_thinking":false})", R"(,"reasoning_effort":"none")",
        R"(,"thinking":{"type":"disabled"})", R"(,"think":false)"}) {
    for (const bool stream : {false, true}) {
      const Said said = Ask(OpensPort(), std::string(off) + R"(,"temperature":0)", stream);
      ExpectRecord(said);
      EXPECT_EQ(said.reasoning, "") << off;
      EXPECT_EQ(said.reasoning_tokens, 0) << off;
    }
  }
}

TEST(ThinkingTest, AStreamAddsUpToTheAnswer) {
  for (int seed = 0; seed < 4; ++seed) {
    const std::string more =
        R"(,"thinking_budget":20,"temperature":1.1,"seed":)" + std::to_string(seed);
    const Said whole = Ask(OpensPort(), more, false), stream = Ask(OpensPort(), more, true);
    ExpectRecord(whole);
    EXPECT_EQ(stream.content, whole.content);
    EXPECT_EQ(stream.reasoning, whole.reasoning);
    EXPECT_EQ(stream.finish, whole.finish);
    EXPECT_EQ(stream.reasoning_tokens, whole.reasoning_tokens);
  }
}

// Whatever is guessed at the boundary, the output is the same: with a temperature as well, as what
// is drawn does not hang on the guesses.
TEST(ThinkingTest, DraftsDoNotMoveTheBoundary) {
  int accepted = 0;
  for (const char* temperature : {"0", "0.9"}) {
    for (int budget : {0, 1, 5, 16, 40}) {
      const std::string more = R"(,"seed":3,"thinking_budget":)" + std::to_string(budget) +
                               R"(,"temperature":)" + temperature;
      const Said with = Ask(DraftsPort(), more, false);
      const Said without = Ask(DraftsPort(), more + R"(,"drafts":false)", false);
      ExpectRecord(with);
      EXPECT_EQ(with.content, without.content) << budget;
      EXPECT_EQ(with.reasoning, without.reasoning) << budget;
      EXPECT_EQ(without.accepted_tokens, 0);
      accepted += with.accepted_tokens;
    }
  }
  EXPECT_GT(accepted, 0);
}

// The budget of the whole output keeps the shortest answer and 64 tokens.
TEST(ThinkingTest, TheBudgetKeepsTheAnswer) {
  const auto ask = [&](int budget, const std::string& more) {
    std::string body =
        ThinkingBody(more + R"(,"temperature":1,"seed":2,"max_tokens":)" + std::to_string(budget));
    body.erase(body.find(R"("max_tokens":300,)"), 17);
    Connection c(OpensPort());
    const Answer answer = c.Post("/v1/chat/completions", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.Json();
  };
  const auto reasoning_tokens = [](const json::Value& value) {
    return IntOf(At(value, "/usage/completion_tokens_details/reasoning_tokens"));
  };
  const json::Value wide = ask(150, "");
  EXPECT_TRUE(json::Parse(At(wide, "/choices/0/message/content").text).ok());
  EXPECT_FALSE(At(wide, "/choices/0/message/reasoning_content").text.empty());
  EXPECT_LE(reasoning_tokens(wide), 150 - 64);
  EXPECT_GE(reasoning_tokens(wide), 20);
  // Where nothing else fits there are no thoughts.
  const json::Value narrow = ask(70, "");
  EXPECT_TRUE(json::Parse(At(narrow, "/choices/0/message/content").text).ok());
  EXPECT_EQ(At(narrow, "/choices/0/message/reasoning_content").text, "");
  // Also where the output may be cut.
  EXPECT_FALSE(
      At(ask(150, R"(,"close_at_budget":false)"), "/choices/0/message/content").text.empty());
}

// A template that opens the block whatever it is told.
TEST(ThinkingTest, OffClosesWhatATemplateOpens) {
  const auto server = StartThinking(
      "{% for m in messages %}{{ m.content }}\n{% endfor %}{% if false %}</think>{% endif "
      "%}<think>\n",
      false);
  for (const char* off : {R"(,"thinking":"off")", R"(,"thinking":0)", R"(,"thinking":false)",
                          R"(,"thinking_budget":0)", R"(,"enable_thinking":false)",
                          R"(,"reasoning":{"effort":"minimal"})", R"(,"think":false)"}) {
    const Said said = Ask(server->port(), std::string(off) + R"(,"temperature":1)", false);
    ExpectRecord(said);
    EXPECT_EQ(said.reasoning, "") << off;
  }
  const Said some = Ask(server->port(), R"(,"thinking":9,"temperature":1)", false);
  ExpectRecord(some);
  EXPECT_NE(some.reasoning, "");
  // Extraction does not think unless it is asked.
  Connection c(server->port());
  const Answer record =
      c.Post("/v1/extract", R"({"text":"Ann Lee","schema":)" + std::string(kThinkingSchema) + "}");
  EXPECT_EQ(At(record.Json(), "/records/0/record").type, json::Type::kObject) << record.body;
  EXPECT_EQ(At(record.Json(), "/records/0/reasoning").text, "") << record.body;
  // Keys that are not there are left out of the record, whatever is thought before it.
  int all = 0, some_keys = 0;
  for (int seed = 0; seed < 10; ++seed) {
    for (const char* thinking : {"\"off\"", "7"}) {
      Connection one(server->port());
      const Answer answer =
          one.Post("/v1/extract",
                   R"({"text":"Ann Lee","temperature":8,"schema":{"type":"object","properties":{
            "a":{"type":"string","maxLength":2},"b":{"type":"string","maxLength":2}},
            "required":["a"]},"seed":)" +
                       std::to_string(seed) + R"(,"thinking":)" + thinking + "}");
      const json::Value body = answer.Json();
      const json::Value& made = At(body, "/records/0/record");
      ASSERT_EQ(made.type, json::Type::kObject) << answer.body;
      ASSERT_EQ(At(made, "/a").type, json::Type::kString) << answer.body;
      EXPECT_EQ(answer.body.find(R"("b":null)"), std::string::npos) << answer.body;
      (At(made, "/b").type == json::Type::kString ? all : some_keys)++;
    }
  }
  EXPECT_GT(all, 0);
  EXPECT_GT(some_keys, 0);
}

TEST(ThinkingTest, MarksOfTheServersOptions) {
  ServerOptions options;
  options.model_path = PAWL_SOURCE_DIR "/models/tiny-extract";
  options.model.model.threads = 1;
  options.model.chat_template = "{% for m in messages %}{{ m.content }}\n{% endfor %}[[";
  options.model.think_open = "[[";
  options.model.think_close = "]]";
  auto server = Server::Start(options);
  ASSERT_TRUE(server.ok()) << server.error().ToString();
  ASSERT_TRUE((*server)->WaitUntilReady().ok());
  const Said said = Ask((*server)->port(), R"(,"thinking":7,"temperature":1)", true);
  ExpectRecord(said);
  EXPECT_NE(said.reasoning, "");
}

TEST(ThinkingTest, WhatChangesNothingIsIgnored) {
  const auto server = StartThinking("{% for m in messages %}{{ m.content }}\n{% endfor %}", false);
  const auto ignored = [&](int port, const std::string& more) {
    Connection c(port);
    const Answer answer = c.Post("/v1/chat/completions", ThinkingBody(more));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::Dump(At(answer.Json(), "/pawl/ignored"));
  };
  EXPECT_EQ(ignored(server->port(), R"(,"thinking":100)"), R"(["/thinking"])");
  EXPECT_EQ(ignored(server->port(), R"(,"thinking_budget":9)"), R"(["/thinking_budget"])");
  EXPECT_EQ(ignored(server->port(), R"(,"reasoning_effort":"low")"), R"(["/reasoning_effort"])");
  EXPECT_EQ(ignored(server->port(), R"(,"think":true)"), R"(["/think"])");
  EXPECT_EQ(ignored(OpensPort(), R"(,"thinking":9)"), "null");
  EXPECT_EQ(ignored(OpensPort(), R"(,"thinking":"off")"), "null");
  EXPECT_EQ(ignored(OpensPort(), R"(,"think":true)"), "null");
  EXPECT_EQ(ignored(OpensPort(), R"(,"reasoning_effort":"low")"), R"(["/reasoning_effort"])");
  Connection c(OpensPort());
  const Answer wrong = c.Post("/v1/chat/completions", ThinkingBody(R"(,"thinking":"much")"));
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(At(wrong.Json(), "/error/param").text, "/thinking") << wrong.body;
}

TEST(ThinkingTest, CallsComeBehindIt) {
  Connection c(OpensPort());
  const std::string tools = R"({"messages":[{"role":"user","content":"Ann Lee"}],"max_tokens":200,
      "thinking_budget":6,"temperature":1,"seed":1,"tool_choice":"required","tools":[
      {"type":"function","function":{"name":"save","parameters":{"type":"object","properties":
      {"name":{"type":"string","maxLength":12}},"required":["name"],"additionalProperties":false}}}],
      "parallel_tool_calls":false})";
  const Answer answer = c.Post("/v1/chat/completions", tools);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json::Value value = answer.Json();
  EXPECT_EQ(At(value, "/choices/0/message/tool_calls/0/function/name").text, "save") << answer.body;
  EXPECT_TRUE(
      json::Parse(At(value, "/choices/0/message/tool_calls/0/function/arguments").text).ok());
  EXPECT_FALSE(At(value, "/choices/0/message/reasoning_content").text.empty()) << answer.body;
}

TEST(ThinkingTest, TheModelMayOpenTheBlockOrNot) {
  const auto server = StartThinking(kLeaves, false);
  for (int seed = 0; seed < 4; ++seed) {
    ExpectRecord(Ask(server->port(),
                     R"(,"thinking_budget":8,"temperature":1.2,"seed":)" + std::to_string(seed),
                     seed % 2 == 1));
  }
}

TEST(ThinkingTest, WrongValuesAreNamed) {
  Connection c(OpensPort());
  const auto param = [&](const std::string& more) {
    const Answer answer = c.Post("/v1/chat/completions", ThinkingBody("," + more));
    EXPECT_EQ(answer.status, 400) << more;
    return At(answer.Json(), "/error/param").text;
  };
  EXPECT_EQ(param(R"("think":3)"), "/think");
  EXPECT_EQ(param(R"("think":"much")"), "/think");
  EXPECT_EQ(param(R"("thinking":{"type":"on"})"), "/thinking/type");
  EXPECT_EQ(param(R"("chat_template_kwargs":{"thinking":"yes"})"),
            "/chat_template_kwargs/thinking");
  EXPECT_EQ(param(R"("chat_template_kwargs":{"enable_thinking":1})"),
            "/chat_template_kwargs/enable_thinking");
}

// The notes of an answer, each in brackets.
std::string NotesOf(int port, const std::string& more) {
  Connection c(port);
  std::string body = ThinkingBody(more);
  if (more.find("max_tokens") != std::string::npos) {
    body.erase(body.find(R"("max_tokens":300,)"), 17);
  }
  const json::Value value = c.Post("/v1/chat/completions", body).Json();
  std::string out;
  for (const json::Value& note : At(value, "/pawl/notes").items) out += "[" + note.text + "]";
  return out;
}

TEST(ThinkingTest, ABudgetWithoutRoomForThoughtsIsSaid) {
  const std::string small = NotesOf(OpensPort(), R"(,"max_tokens":70)");
  EXPECT_NE(small.find("leaves none for thoughts"), std::string::npos) << small;
  EXPECT_EQ(NotesOf(OpensPort(), "").find("leaves none"), std::string::npos);
  // Without a constraint nothing is kept for an answer.
  Connection c(OpensPort());
  const json::Value free =
      c.Post("/v1/chat/completions",
             R"({"messages":[{"role":"user","content":"Ann"}],"max_tokens":8,"temperature":0})")
          .Json();
  if (At(free, "/choices/0/message/content").text.empty()) {
    EXPECT_NE(At(free, "/pawl/notes/0").text.find("went to thoughts"), std::string::npos)
        << json::Dump(free);
  }
}

TEST(ThinkingTest, ThoughtsThatNothingClosesAreSaid) {
  const std::unique_ptr<Server> server =
      StartThinking("{% for m in messages %}{{ m.content }}\n{% endfor %}<think>\n", false);
  const std::string notes = NotesOf(server->port(), "");
  EXPECT_NE(notes.find("the prompt ends in <think>, and the chat template names no mark that ends"),
            std::string::npos)
      << notes;
}

TEST(ThinkingTest, FreeTextComesFirst) {
  Connection c(OpensPort());
  const std::string extract = std::string(R"({"text":"Ann Lee, ann@example.org","schema":)") +
                              kThinkingSchema + R"(,"temperature":1,"seed":7,"free_first":9)";
  const json::Value record = c.Post("/v1/extract", extract + "}").Json();
  EXPECT_EQ(At(record, "/records/0/record/name").type, json::Type::kString);
  EXPECT_NE(At(record, "/records/0/reasoning").text, "");
  const std::string completion =
      R"({"prompt":"Ann is 7. ","temperature":0,"max_tokens":200,"structured_outputs":{"regex":"\\n\\n[a-c]{3}"},"free_first":9)";
  const json::Value whole = c.Post("/v1/completions", completion + "}").Json();
  const std::string text = At(whole, "/choices/0/text").text;
  const std::string free = At(whole, "/choices/0/reasoning_content").text;
  ASSERT_EQ(text.size(), 5U) << text;
  EXPECT_TRUE(text.starts_with("\n\n"));
  EXPECT_NE(free, "");
  std::string streamed, streamed_free;
  for (const std::string& event :
       c.Post("/v1/completions", completion + R"(,"stream":true})").Events()) {
    const auto value = json::Parse(event);
    if (!value.ok()) continue;
    streamed += At(*value, "/choices/0/text").text;
    streamed_free += At(*value, "/choices/0/reasoning_content").text;
  }
  EXPECT_EQ(streamed, text);
  EXPECT_EQ(streamed_free, free);
  const auto refused = [&](const std::string& body) {
    return At(c.Post("/v1/completions",
                     R"({"prompt":"a","max_tokens":9,"free_first":)" + body + "}")
                  .Json(),
              "/error/param")
        .text;
  };
  EXPECT_EQ(refused("9"), "/free_first");
  EXPECT_EQ(refused("-1"), "/free_first");
  EXPECT_EQ(refused(R"(9,"structured_outputs":{"regex":"a"},"search":{"strategy":"beam"})"),
            "/free_first");
}

}  // namespace
}  // namespace pawl::server
