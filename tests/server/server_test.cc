// A server with the model that ships, over real connections.
#include "src/server/server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/server/call.h"
#include "tests/server/http_client.h"

namespace pawl::server {
namespace {

constexpr const char* kSchema =
    R"({"type":"object","properties":{"name":{"type":"string"},"email":{"type":"string",
    "format":"email"}},"required":["name","email"],"additionalProperties":false})";
constexpr const char* kText = "Ann Lee, ann@example.org";
constexpr const char* kRecord = R"({"name":"Ann Lee","email":"ann@example.org"})";

// Hermes' way to write calls, and thoughts, for a model that has learned neither.
constexpr const char* kTemplate =
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}"
    "{% if tools %}<tool_call>{% endif %}{% if enable_thinking is defined and not enable_thinking "
    "%}<think></think>{% endif %}";

ServerOptions Options() {
  ServerOptions options;
  options.model_path = PAWL_SOURCE_DIR "/models/tiny-extract";
  options.model.model.threads = 1;
  return options;
}

std::unique_ptr<Server> StartServer(const ServerOptions& options) {
  auto server = Server::Start(options);
  EXPECT_TRUE(server.ok()) << server.error().ToString();
  const Status status = (*server)->WaitUntilReady();
  EXPECT_TRUE(status.ok());
  return *std::move(server);
}

int Port() {
  static const std::unique_ptr<Server> server = StartServer(Options());
  return server->port();
}

int ChatPort() {
  static const std::unique_ptr<Server> server = [] {
    ServerOptions options = Options();
    options.model.chat_template = kTemplate;
    return StartServer(options);
  }();
  return server->port();
}

// A copy of the model that ships with a chat template that cannot be read.
std::string BrokenTemplateFolder() {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "broken_template";
  fs::create_directories(folder);
  for (const auto& file : fs::directory_iterator(PAWL_SOURCE_DIR "/models/tiny-extract")) {
    if (file.is_regular_file())
      fs::copy_file(file, folder / file.path().filename(), fs::copy_options::overwrite_existing);
  }
  std::ofstream(folder / "chat_template.jinja") << "{% for m in %}";
  return folder.string();
}

std::string Chat(const std::string& more, const std::string& text = kText) {
  return R"({"messages":[{"role":"user","content":)" + json::Quote(text) + "}]" + more + "}";
}

std::string Format(const std::string& schema = kSchema) {
  return R"(,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":)" +
         schema + "}}";
}

TEST(ServerTest, ABrokenChatTemplateIsToldToThoseWhoNeedOne) {
  ServerOptions options = Options();
  options.model_path = BrokenTemplateFolder();
  std::vector<std::string> notes;
  options.model.note = [&](const std::string& note) { notes.push_back(note); };
  const std::unique_ptr<Server> server = StartServer(options);
  ASSERT_FALSE(notes.empty());
  EXPECT_NE(notes[0].find("chat template cannot be used"), std::string::npos) << notes[0];
  Connection c(server->port());
  EXPECT_EQ(c.Post("/v1/completions", R"({"prompt":"a","max_tokens":2})").status, 200);
  const Answer chat = c.Post("/v1/chat/completions", Chat(R"(,"max_tokens":2)"));
  EXPECT_GE(chat.status, 400) << chat.body;
  EXPECT_NE(chat.body.find("chat template cannot be used"), std::string::npos) << chat.body;
}

TEST(ServerTest, PlainRoutes) {
  Connection c(Port());
  EXPECT_EQ(c.Get("/health").Json().Find("status")->text, "ok");
  const Answer models = c.Get("/v1/models");
  EXPECT_EQ(At(models.Json(), "/data/0/id").text, "tiny-extract");
  EXPECT_EQ(At(models.Json(), "/data/0/max_model_len").text, "4096");
  const Answer tokens = c.Post("/tokenize", R"({"prompt":"Ann Lee","add_special_tokens":false})");
  EXPECT_GT(At(tokens.Json(), "/tokens").items.size(), 1u);
  const Answer text =
      c.Post("/detokenize", R"({"tokens":)" + json::Dump(At(tokens.Json(), "/tokens")) + "}");
  EXPECT_EQ(At(text.Json(), "/prompt").text, "Ann Lee");
  EXPECT_NE(c.Get("/metrics").body.find("pawl_output_tokens_total"), std::string::npos);
  EXPECT_EQ(c.Get("/tokenizer_info").status, 200);
  EXPECT_NE(c.Get("/").body.find("<html"), std::string::npos);
  EXPECT_EQ(c.Get("/nothing").status, 404);
  EXPECT_EQ(c.Post("/nothing", "{}").status, 404);
}

// The model is loaded behind the open port; who asks before it is there is told so.
TEST(ServerTest, WhileTheModelIsLoaded) {
  std::promise<void> go;
  ServerOptions options = Options();
  options.wrap_model = [wait = go.get_future().share()](std::unique_ptr<Model> model) {
    wait.wait();
    return model;
  };
  auto server = Server::Start(options);
  ASSERT_TRUE(server.ok()) << server.error().ToString();
  Connection c((*server)->port());
  for (const Answer& answer :
       {c.Get("/health"), c.Get("/v1/models"), c.Post("/v1/chat/completions", Chat(""))}) {
    EXPECT_EQ(answer.status, 503) << answer.body;
    EXPECT_NE(answer.head.find("retry-after: 1"), std::string::npos) << answer.head;
    EXPECT_EQ(At(answer.Json(), "/error/type").text, "unavailable_error");
  }
  // The body was not read, so that connection has ended.
  Connection d((*server)->port());
  EXPECT_EQ(d.Get("/metrics").status, 200);
  EXPECT_EQ(d.Get("/").status, 200);
  go.set_value();
  ASSERT_TRUE((*server)->WaitUntilReady().ok());
  EXPECT_EQ(d.Get("/health").status, 200);
  EXPECT_EQ(d.Post("/v1/chat/completions", Chat(R"(,"max_tokens":1)")).status, 200);
}

TEST(ServerTest, ChatWithASchema) {
  Connection c(Port());
  const Answer answer = c.Post("/v1/chat/completions", Chat(Format()));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json::Value body = answer.Json();
  EXPECT_EQ(At(body, "/choices/0/message/content").text, kRecord);
  EXPECT_EQ(At(body, "/choices/0/finish_reason").text, "stop");
  EXPECT_GT(std::stoi(At(body, "/usage/completion_tokens").text), 5);
  EXPECT_NE(answer.head.find("x-request-id: req_"), std::string::npos);
}

TEST(ServerTest, AStreamAddsUpToTheAnswer) {
  Connection c(Port());
  const Answer answer =
      c.Post("/v1/chat/completions",
             Chat(Format() + R"(,"stream":true,"n":2,"stream_options":{"include_usage":true})"));
  ASSERT_TRUE(answer.complete);
  const auto events = answer.Events();
  ASSERT_GE(events.size(), 7u);
  EXPECT_EQ(events.back(), "[DONE]");
  std::string content[2], finish[2];
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    const auto event = json::Parse(events[i]);
    ASSERT_TRUE(event.ok());
    const size_t index = std::stoul(At(*event, "/choices/0/index").text);
    content[index] += At(*event, "/choices/0/delta/content").text;
    finish[index] += At(*event, "/choices/0/finish_reason").text;
    EXPECT_EQ(At(*event, "/usage").type, json::Type::kNull);
  }
  const auto last = json::Parse(events[events.size() - 2]);
  EXPECT_TRUE(At(*last, "/choices").items.empty());
  EXPECT_GT(std::stoi(At(*last, "/usage/total_tokens").text), 10);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(content[i], kRecord);
    EXPECT_EQ(finish[i], "stop");
  }
}

TEST(ServerTest, KeysKeepTheSchemasOrder) {
  Connection c(Port());
  const Answer answer =
      c.Post("/v1/chat/completions",
             Chat(Format(R"({"type":"object","properties":{"zeta":{"const":1},"alpha":{"const":2},
      "mid":{"const":3}},"required":["alpha","mid","zeta"],"additionalProperties":false})")));
  EXPECT_EQ(At(answer.Json(), "/choices/0/message/content").text,
            R"({"zeta":1,"alpha":2,"mid":3})");
}

// Bug: what a client wrote was repeated in the answer and in the log, at any length.
TEST(ServerTest, RepeatedTextOfClientsIsCut) {
  std::mutex mutex;
  size_t logged = 0;
  ServerOptions options = Options();
  options.log = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    logged += line.size();
  };
  const std::unique_ptr<Server> server = StartServer(options);
  Connection c(server->port());
  const std::string text(200'000, 'r');
  const std::string tools = R"(,"tools":[{"type":"function","function":{"name":"f"}}])";
  for (const std::string& more :
       {tools + R"(,"tool_choice":")" + text + "\"", R"(,"tools":[{"type":")" + text + R"("}])",
        R"(,"response_format":{"type":")" + text + R"("})",
        R"(,"logit_bias":{")" + text + R"(":1})", R"(,"max_tokens":1,")" + text + R"(":1)"}) {
    const size_t before = logged;
    const Answer answer = c.Post("/v1/chat/completions", Chat(more));
    EXPECT_LT(answer.body.size(), 4'000U) << more.substr(0, 60);
    const std::lock_guard lock(mutex);
    EXPECT_LT(logged - before, 4'000U) << more.substr(0, 60);
  }
}

TEST(ServerTest, ErrorsNameThePlace) {
  Connection c(Port());
  const std::pair<std::string, std::string> kCases[] = {
      {Chat(Format(R"({"type":"object","properties":{"a":{"minimum":"x"}}})")),
       "/response_format/json_schema/schema/properties/a/minimum"},
      {Chat(R"(,"tools":[{"type":"function","function":{"name":"f","parameters":
        {"type":"object","properties":{"a":{"pattern":"("}}}}}])"),
       "/tools/0/function/parameters/properties/a/pattern"},
      {Chat(R"(,"n":0)"), "/n"},
      {Chat(R"(,"temperature":"hot")"), "/temperature"},
      {Chat(R"(,"logit_bias":{"x":1})"), "/logit_bias/x"},
      {Chat(R"(,"logit_bias":{"99999":1})"), "/logit_bias/99999"},
      {Chat(R"(,"stop":[1])"), "/stop/0"},
      {R"({"messages":[]})", "/messages"},
      {R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})",
       "/messages/0/content/0"},
      {R"({"messages":[{"role":"user","content":[{"type":"text","text":1}]}]})",
       "/messages/0/content/0/text"},
      {R"({"model":"x"})", "/messages"},
  };
  for (const auto& [body, place] : kCases) {
    const Answer answer = c.Post("/v1/chat/completions", body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_EQ(At(answer.Json(), "/error/param").text, place) << answer.body;
    EXPECT_EQ(At(answer.Json(), "/error/type").text, "invalid_request_error");
    EXPECT_NE(answer.head.find("x-should-retry: false"), std::string::npos);
  }
  const Answer regex = c.Post("/v1/constraints/compile", R"({"guided_regex":"a("})");
  EXPECT_EQ(At(regex.Json(), "/error/param").text, "/guided_regex") << regex.body;
  const Answer narrow = c.Post(
      "/v1/extract", R"({"text":"x","max_tokens":3,"schema":{"type":"string","minLength":99}})");
  EXPECT_EQ(narrow.status, 400);
  EXPECT_EQ(At(narrow.Json(), "/error/param").text, "/max_tokens") << narrow.body;
  EXPECT_EQ(c.Post("/v1/chat/completions", "{").status, 400);
  EXPECT_EQ(c.Post("/v1/chat/completions", "[]").status, 400);
  EXPECT_EQ(c.Post("/api/chat", R"({"messages":[{"role":"user","content":"x"}],"format":"xml"})")
                .Json()
                .Find("error")
                ->type,
            json::Type::kString);
}

TEST(ServerTest, LengthIsHonest) {
  Connection c(Port());
  for (const bool stream : {false, true}) {
    const Answer cut = c.Post("/v1/chat/completions",
                              Chat(Format() + R"(,"max_tokens":12,"close_at_budget":false)" +
                                   (stream ? R"(,"stream":true)" : "")));
    ASSERT_EQ(cut.status, 200);
    EXPECT_NE(cut.body.find("\"finish_reason\":\"length\""), std::string::npos) << cut.body;
  }
  const Answer closed = c.Post("/v1/chat/completions", Chat(Format() + R"(,"max_tokens":24)"));
  EXPECT_EQ(At(closed.Json(), "/choices/0/finish_reason").text, "length") << closed.body;
  EXPECT_EQ(At(closed.Json(), "/pawl/closed").type, json::Type::kTrue);
  EXPECT_TRUE(json::Parse(At(closed.Json(), "/choices/0/message/content").text).ok());
  // Not even the shortest output fits: it is cut.
  const Answer tiny = c.Post("/v1/chat/completions", Chat(Format() + R"(,"max_tokens":2)"));
  EXPECT_EQ(tiny.status, 200);
  EXPECT_EQ(At(tiny.Json(), "/choices/0/finish_reason").text, "length");
}

TEST(ServerTest, StopStringsEndTheText) {
  Connection c(Port());
  const std::string body = Chat(Format() + R"(,"stop":["Lee\",\"em"])");
  EXPECT_EQ(At(c.Post("/v1/chat/completions", body).Json(), "/choices/0/message/content").text,
            R"({"name":"Ann )");
  const Answer stream =
      c.Post("/v1/chat/completions", Chat(Format() + R"(,"stop":["Lee\",\"em"],"stream":true)"));
  std::string content;
  for (const std::string& event : stream.Events()) {
    const auto value = json::Parse(event);
    if (value.ok()) content += At(*value, "/choices/0/delta/content").text;
  }
  EXPECT_EQ(content, R"({"name":"Ann )");
}

TEST(ServerTest, Logprobs) {
  Connection c(Port());
  const Answer answer = c.Post(
      "/v1/chat/completions",
      Chat(R"(,"structured_outputs":{"choice":["yes","no"]},"logprobs":true,"top_logprobs":2)"));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json::Value body = answer.Json();
  const json::Value& content = At(body, "/choices/0/logprobs/content");
  ASSERT_GE(content.items.size(), 1u);
  std::string text;
  for (const json::Value& token : content.items) text += At(token, "/token").text;
  EXPECT_EQ(text, At(body, "/choices/0/message/content").text);
  EXPECT_EQ(At(content.items[0], "/top_logprobs").items.size(), 2u);
  EXPECT_LE(std::stod(At(content.items[0], "/logprob").text), 0);
}

TEST(ServerTest, CompletionsEchoLogprobsOfPrompts) {
  Connection c(Port());
  const Answer tokens = c.Post("/tokenize", R"({"content":"Ann Lee writes to Bob"})");
  const std::string ids = json::Dump(At(tokens.Json(), "/tokens"));
  const Answer answer = c.Post("/v1/completions", R"({"prompt":[)" + ids + "," + ids +
                                                      R"(],"max_tokens":1,"logprobs":1,"echo":true,
      "temperature":0,"seed":1})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json::Value body = answer.Json();
  const size_t size = At(tokens.Json(), "/tokens").items.size();
  ASSERT_EQ(At(body, "/choices").items.size(), 2u);
  const json::Value& logprobs = At(body, "/choices/1/logprobs/token_logprobs");
  ASSERT_EQ(logprobs.items.size(), size + 1);
  EXPECT_EQ(logprobs.items[0].type, json::Type::kNull);
  for (size_t i = 1; i <= size; ++i) EXPECT_LE(std::stod(logprobs.items[i].text), 0);
  EXPECT_EQ(json::Dump(At(body, "/choices/0/logprobs")),
            json::Dump(At(body, "/choices/1/logprobs")));
  EXPECT_TRUE(At(body, "/choices/0/text").text.starts_with("Ann Lee writes to Bob"));
}

TEST(ServerTest, CompletionsReportTheirTokens) {
  Connection c(Port());
  const std::string body = R"({"prompt":"x","max_tokens":20,"seed":1,"token_report":true,
      "structured_outputs":{"regex":"[a-z]{3} is fixed"})";
  const Answer whole = c.Post("/v1/completions", body + "}");
  ASSERT_EQ(whole.status, 200) << whole.body;
  const json::Value value = whole.Json();
  std::string text, streamed, sources;
  for (const json::Value& token : At(value, "/choices/0/pawl_tokens").items) {
    text += At(token, "/text").text;
    sources += At(token, "/source").text + " ";
  }
  EXPECT_EQ(text, At(value, "/choices/0/text").text);
  EXPECT_NE(sources.find("sampled "), std::string::npos) << sources;
  EXPECT_NE(sources.find("forced "), std::string::npos) << sources;
  const Answer stream = c.Post("/v1/completions", body + R"(,"stream":true})");
  for (const std::string& event : stream.Events()) {
    const auto chunk = json::Parse(event);
    if (!chunk.ok()) continue;
    for (const json::Value& token : At(*chunk, "/pawl/tokens").items) {
      streamed += At(token, "/text").text;
    }
  }
  EXPECT_EQ(streamed, text);
}

// Notes of outputs are told once each, and only where there are some.
TEST(ServerTest, ReportsHaveTheNotesOfTheirOutputs) {
  CallOut out;
  out.choices.resize(3);
  const auto parsed = [&] {
    const auto report = json::Parse(ReportOf(out));
    EXPECT_TRUE(report.ok());
    return json::Dump(At(*report, "/notes"));
  };
  EXPECT_EQ(parsed(), "null");
  out.choices[0].notes = {"rule \"s\" is long"};
  out.choices[2].notes = {"rule \"s\" is long", "another"};
  EXPECT_EQ(parsed(), R"(["rule \"s\" is long","another"])");
}

// Nothing is taken silently: what changes nothing is told, and what cannot be is an error.
TEST(ServerTest, WhatIsIgnoredIsSaid) {
  Connection c(Port());
  const auto ignored = [&](const std::string& path, const std::string& body) {
    const Answer answer = c.Post(path, body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::Dump(At(answer.Json(), "/pawl/ignored"));
  };
  EXPECT_EQ(ignored("/v1/chat/completions",
                    Chat(Format() + R"(,"model":"m","user":"u","min_tokens":3,"logit_bias":null,
                             "temperature":0,"made/up":{},"n":1,"prompt_logprobs":null)")),
            R"(["/min_tokens","/made~1up"])");
  EXPECT_EQ(ignored("/v1/chat/completions", Chat(Format() + R"(,"model":"m")")), "null");
  EXPECT_EQ(ignored("/v1/completions", R"({"prompt":"x","max_tokens":1,"best_of":1,"top_a":1})"),
            R"(["/top_a"])");
  EXPECT_EQ(
      ignored("/v1/extract", std::string(R"({"text":"Ann","beams":4,"schema":)") + kSchema + "}"),
      R"(["/beams"])");
  EXPECT_EQ(ignored("/api/chat", R"({"messages":[{"role":"user","content":"Ann"}],"stream":false,
                      "format":"json","options":{"num_predict":9,"num_ctx":64}})"),
            R"(["/options/num_ctx"])");
  const std::pair<const char*, std::string> kRefused[] = {
      {"/v1/chat/completions", Chat(R"(,"functions":[{"name":"f"}])")},
      {"/v1/chat/completions", Chat(R"(,"function_call":"auto")")},
      {"/v1/responses", R"({"input":"x","n":2})"},
      {"/v1/extract", R"({"text":"x","schema":{},"n":2})"},
      {"/v1/extract", R"({"text":"x","schema":{},"tools":[{"type":"custom","name":"f"}]})"},
      {"/completion", R"({"prompt":"x","image_data":[{"id":1,"data":"aGk="}]})"},
      {"/api/generate", R"({"prompt":"x","images":["aGk="]})"},
      {"/api/chat", R"({"messages":[{"role":"user","content":"x","images":["aGk="]}]})"},
  };
  for (const auto& [path, body] : kRefused) {
    const Answer answer = c.Post(path, body);
    EXPECT_EQ(answer.status, 400) << body << answer.body;
  }
}

TEST(ServerTest, ExtractIsWhatTheCommandWrites) {
  Connection c(Port());
  std::string texts;
  for (int i = 0; i < 40; ++i) {
    texts += (i > 0 ? "," : "") + json::Quote("Person " + std::to_string(i) + " Smith, p" +
                                              std::to_string(i) + "@mail.example");
  }
  const Answer answer =
      c.Post("/v1/extract", std::string(R"({"schema":)") + kSchema + ",\"texts\":[" + texts + "]}");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json::Value body = answer.Json();
  ASSERT_EQ(At(body, "/records").items.size(), 40u);
  for (int i = 0; i < 40; ++i) {
    const std::string at = "/records/" + std::to_string(i);
    EXPECT_EQ(At(body, at + "/index").text, std::to_string(i));
    const Answer alone =
        c.Post("/v1/extract", std::string(R"({"schema":)") + kSchema + ",\"text\":" +
                                  json::Quote("Person " + std::to_string(i) + " Smith, p" +
                                              std::to_string(i) + "@mail.example") +
                                  "}");
    EXPECT_EQ(json::Dump(At(alone.Json(), "/records/0/record")),
              json::Dump(At(body, at + "/record")));
  }
  const Answer one = c.Post("/v1/extract", std::string(R"({"schema":)") + kSchema + R"(,"text":)" +
                                               json::Quote(kText) + "}");
  EXPECT_EQ(json::Dump(At(one.Json(), "/records/0/record")), kRecord);
  EXPECT_EQ(json::Dump(At(one.Json(), "/records/0/spans")), R"({"/name":[0,7],"/email":[9,24]})");
  EXPECT_EQ(c.Post("/v1/extract", R"({"schema":{},"texts":["a"," "]})").status, 400);
}

TEST(ServerTest, ExtractTakesATemplateInPlaceOfASchema) {
  Connection c(Port());
  const std::string text = R"(,"text":)" + json::Quote(kText) + "}";
  const Answer answer =
      c.Post("/v1/extract", R"({"template":{"name":"string","kind":["a","b"]})" + text);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json::Value record = At(answer.Json(), "/records/0/record");
  EXPECT_EQ(At(record, "/name").type, json::Type::kString) << answer.body;
  const auto param = [&](const std::string& body) {
    const Answer refused = c.Post("/v1/extract", body + text);
    EXPECT_EQ(refused.status, 400) << refused.body;
    return At(refused.Json(), "/error/param").text;
  };
  EXPECT_EQ(param(R"({"template":{"a":{"b":"text"}})"), "/template/a/b");
  EXPECT_EQ(param(R"({"template":{"a":"string"},"schema":{})"), "/template");
  EXPECT_EQ(param(R"({"template":{"a":"string"},"regex":"x")"), "/regex");
}

TEST(ServerTest, WhatExtractDoesOtherwiseIsSaid) {
  Connection c(Port());
  const auto notes = [&](const std::string& more) {
    const Answer answer = c.Post("/v1/extract", R"({"text":"Ann Lee")" + more + "}");
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.Json();
  };
  // A schema that nothing fits when it is closed is read as it stands.
  const json::Value open = notes(
      R"(,"max_tokens":200,"schema":{"type":"object","properties":{"a":{"type":"integer"}},
         "required":["a","b"],"maxProperties":2})");
  EXPECT_NE(json::Dump(At(open, "/pawl/notes"))
                .find("#: no value fits with closed objects, so additional keys are allowed"),
            std::string::npos)
      << json::Dump(open);
  // The prompt of this model shows no view of the schema.
  const json::Value view = notes(
      R"(,"schema_view":"keys","schema":{"type":"object","properties":{"a":{"type":"null"}}})");
  EXPECT_EQ(json::Dump(At(view, "/pawl/ignored")), R"(["/schema_view"])");
  // A string that the schema ends is not ended by max_string, however long it is.
  const json::Value texts = notes(
      R"(,"max_string":4,"schema":{"type":"object","properties":{"a":{"enum":["abcd"]},
         "b":{"type":"string","minLength":4},"c":{"type":"string","minLength":6}},
         "required":["a","b","c"]})");
  std::string all;
  for (const json::Value& note : At(texts, "/pawl/notes").items) all += note.text + "\n";
  EXPECT_EQ(all, "content#/b: the string ended at the bound of 4 characters (max_string)\n");
}

constexpr const char* kTools =
    R"(,"tools":[{"type":"function","function":{"name":"save","parameters":{"type":"object",
    "properties":{"name":{"type":"string","maxLength":20}},"required":["name"],
    "additionalProperties":false}}},{"type":"function","function":{"name":"drop","parameters":
    {"type":"object","properties":{"n":{"type":"integer","minimum":0,"maximum":99}},
    "required":["n"],"additionalProperties":false}}}])";

TEST(ServerTest, ANamedToolIsForcedJson) {
  Connection c(Port());
  const std::string choice = R"(,"tool_choice":{"type":"function","function":{"name":"save"}})";
  const Answer whole = c.Post("/v1/chat/completions", Chat(kTools + choice));
  ASSERT_EQ(whole.status, 200) << whole.body;
  const json::Value body = whole.Json();
  EXPECT_EQ(At(body, "/choices/0/message/content").type, json::Type::kNull);
  EXPECT_EQ(At(body, "/choices/0/message/tool_calls/0/function/name").text, "save");
  const std::string arguments = At(body, "/choices/0/message/tool_calls/0/function/arguments").text;
  EXPECT_TRUE(json::Parse(arguments).ok()) << arguments;
  const Answer stream = c.Post("/v1/chat/completions", Chat(kTools + choice + R"(,"stream":true)"));
  std::string joined;
  bool first = true;
  for (const std::string& event : stream.Events()) {
    const auto value = json::Parse(event);
    if (!value.ok()) continue;
    const json::Value& call = At(*value, "/choices/0/delta/tool_calls/0");
    if (call.type != json::Type::kObject) continue;
    EXPECT_EQ(call.Find("id") != nullptr, first) << event;
    if (first) {
      EXPECT_EQ(At(call, "/function/name").text, "save");
      EXPECT_EQ(At(call, "/function/arguments").text, "");
    }
    first = false;
    joined += At(call, "/function/arguments").text;
  }
  EXPECT_EQ(joined, arguments);
}

TEST(ServerTest, ToolsOfAChatModel) {
  Connection c(ChatPort());
  for (const char* more : {R"(,"tool_choice":"required")",
                           R"(,"tool_choice":"required","parallel_tool_calls":false)"}) {
    for (int seed = 0; seed < 4; ++seed) {
      const std::string body =
          Chat(std::string(kTools) + more +
               R"(,"reasoning_effort":"none","temperature":1,"max_tokens":300,"seed":)" +
               std::to_string(seed));
      const Answer answer = c.Post("/v1/chat/completions", body);
      ASSERT_EQ(answer.status, 200) << answer.body;
      const json::Value value = answer.Json();
      const json::Value& calls = At(value, "/choices/0/message/tool_calls");
      ASSERT_GE(calls.items.size(), 1u) << answer.body;
      if (std::string_view(more).find("parallel") != std::string_view::npos) {
        EXPECT_EQ(calls.items.size(), 1u);
      }
      for (const json::Value& call : calls.items) {
        const std::string name = At(call, "/function/name").text;
        EXPECT_TRUE(name == "save" || name == "drop");
        EXPECT_TRUE(json::Parse(At(call, "/function/arguments").text).ok()) << answer.body;
      }
    }
  }
}

TEST(ServerTest, ThoughtsAreApartAndTheirBudgetEndsThem) {
  Connection c(ChatPort());
  // The model has learned no thinking; the grammar makes room for it, and nothing else.
  const std::string limits = R"(,"temperature":1.2,"seed":3,"max_tokens":400,"thinking_budget":10)";
  for (const bool stream : {false, true}) {
    const Answer answer = c.Post("/v1/chat/completions",
                                 Chat(Format() + limits + (stream ? R"(,"stream":true)" : "")));
    ASSERT_EQ(answer.status, 200) << answer.body;
    std::string content;
    if (stream) {
      for (const std::string& event : answer.Events()) {
        const auto value = json::Parse(event);
        if (value.ok()) content += At(*value, "/choices/0/delta/content").text;
      }
    } else {
      content = At(answer.Json(), "/choices/0/message/content").text;
    }
    EXPECT_TRUE(json::Parse(content).ok()) << content;
    EXPECT_EQ(content.find("<think>"), std::string::npos);
  }
}

TEST(ServerTest, Responses) {
  Connection c(Port());
  const std::string format =
      std::string(R"(,"text":{"format":{"type":"json_schema","name":"x","schema":)") + kSchema +
      "}}";
  const std::string input = R"({"input":)" + json::Quote(kText);
  const Answer whole = c.Post("/v1/responses", input + format + "}");
  ASSERT_EQ(whole.status, 200) << whole.body;
  EXPECT_EQ(At(whole.Json(), "/output/0/content/0/text").text, kRecord);
  EXPECT_EQ(At(whole.Json(), "/status").text, "completed");
  const Answer stream = c.Post("/v1/responses", input + format + R"(,"stream":true})");
  std::string text, order;
  int number = 0;
  for (const std::string& event : stream.Events()) {
    const auto value = json::Parse(event);
    ASSERT_TRUE(value.ok()) << event;
    EXPECT_EQ(At(*value, "/sequence_number").text, std::to_string(number++));
    const std::string type = At(*value, "/type").text;
    if (type == "response.output_text.delta") text += At(*value, "/delta").text;
    if (type != "response.output_text.delta") order += type + " ";
  }
  EXPECT_EQ(text, kRecord);
  EXPECT_EQ(order,
            "response.created response.in_progress response.output_item.added "
            "response.content_part.added response.output_text.done response.content_part.done "
            "response.output_item.done response.completed ");
  EXPECT_EQ(c.Post("/v1/responses", R"({"input":"x","previous_response_id":"r"})").status, 400);
}

TEST(ServerTest, Ollama) {
  Connection c(Port());
  const std::string body = R"({"model":"m","messages":[{"role":"user","content":)" +
                           json::Quote(kText) + R"(}],"format":)" + kSchema +
                           R"(,"options":{"temperature":0})";
  const Answer whole = c.Post("/api/chat", body + R"(,"stream":false})");
  EXPECT_EQ(At(whole.Json(), "/message/content").text, kRecord);
  EXPECT_EQ(At(whole.Json(), "/done_reason").text, "stop");
  const Answer stream = c.Post("/api/chat", body + "}");
  std::string content;
  size_t at = 0;
  while (at < stream.body.size()) {
    const size_t end = stream.body.find('\n', at);
    const auto line = json::Parse(std::string_view(stream.body).substr(at, end - at));
    ASSERT_TRUE(line.ok());
    content += At(*line, "/message/content").text;
    at = end + 1;
  }
  EXPECT_EQ(content, kRecord);
  const Answer generate =
      c.Post("/api/generate",
             R"({"prompt":)" + json::Quote(kText) + R"(,"stream":false,"format":)" + kSchema + "}");
  EXPECT_EQ(At(generate.Json(), "/response").text, kRecord);
}

TEST(ServerTest, Infilling) {
  Connection c(Port());
  const Answer fim = c.Post("/v1/fim/completions",
                            R"({"prompt":"a[","suffix":"]","max_tokens":4,"temperature":0})");
  EXPECT_EQ(At(fim.Json(), "/choices/0/message/content").type, json::Type::kString) << fim.body;
  const Answer infill =
      c.Post("/infill", R"({"input_prefix":"a[","input_suffix":"]","n_predict":4,"prompt":"b"})");
  EXPECT_EQ(At(infill.Json(), "/stop").type, json::Type::kTrue) << infill.body;
  EXPECT_EQ(c.Post("/infill", R"({"input_prefix":"a","n_predict":0})").status, 200);
}

TEST(ServerTest, WrongHttpIsRefusedAndHarmless) {
  const std::string kCases[] = {
      "\r\n\r\n",
      "GET\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      std::string("\0\0\0", 3) + "\r\n\r\n",
      "POST /v1/extract HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
      "POST /v1/extract HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: "
      "6\r\n\r\n",
      "POST /v1/extract HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
  };
  for (const std::string& bytes : kCases) {
    Connection c(Port());
    c.Send(bytes);
    ::shutdown(c.fd(), SHUT_WR);
    const Answer answer = c.ReadAnswer();
    EXPECT_TRUE(answer.status == 400 || answer.status == 505) << answer.status << bytes;
  }
  Connection large(Port());
  large.Send("POST /v1/extract HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n");
  EXPECT_EQ(large.ReadAnswer().status, 413);
  Connection headers(Port());
  headers.Send("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n");
  EXPECT_EQ(headers.ReadAnswer().status, 431);
  Connection old(Port());
  old.Send("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.ReadAnswer().status, 200);
  Connection two(Port());  // one after the other, sent at once
  two.Send(
      "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /v1/models HTTP/1.1\r\nHost: "
      "localhost\r\n\r\n");
  EXPECT_EQ(two.ReadAnswer().status, 200);
  EXPECT_NE(two.ReadAnswer().body.find("tiny-extract"), std::string::npos);
}

TEST(ServerTest, KeysAndSlowRequests) {
  ServerOptions options = Options();
  options.api_keys = {"first", "second"};
  options.http.read_seconds = 0.3;
  const auto server = StartServer(options);
  Connection c(server->port());
  EXPECT_EQ(c.Get("/health").status, 200);
  EXPECT_EQ(c.Get("/v1/models").status, 401);
  EXPECT_EQ(c.Get("/v1/models", "Authorization: Bearer secon\r\n").status, 401);
  EXPECT_EQ(c.Get("/v1/models", "Authorization: Bearer second\r\n").status, 200);
  Connection slow(server->port());
  slow.Send(
      "POST /v1/extract HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: first\r\nContent-Length: "
      "10\r\n\r\n{");
  EXPECT_EQ(slow.ReadAnswer().status, 408);
}

// A streamed request whose output needs thousands of tokens, sent as far as the answer's head.
std::unique_ptr<Connection> SendLongStream(int port) {
  const std::string body = R"({"prompt":"x","max_tokens":3000,"temperature":1,"stream":true,
      "structured_outputs":{"regex":"([a-z]{3} )*[0-9]{4000}"},"close_at_budget":false})";
  auto stream = std::make_unique<Connection>(port);
  stream->Send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
               std::to_string(body.size()) + "\r\n\r\n" + body);
  while (stream->read().find("\r\n\r\n") == std::string::npos) {
    if (!stream->Read()) return nullptr;
  }
  return stream;
}

TEST(ServerTest, AFullQueueIsToldAtOnce) {
  ServerOptions options = Options();
  options.max_batch = 1;
  options.max_queue = 1;
  const auto server = StartServer(options);
  const auto first = SendLongStream(server->port());
  const auto second = SendLongStream(server->port());
  ASSERT_TRUE(first && second);
  Connection third(server->port());
  const Answer full = third.Post("/v1/completions", R"({"prompt":"x"})");
  EXPECT_EQ(full.status, 429) << full.body;
  EXPECT_NE(full.head.find("retry-after: 1"), std::string::npos);
}

TEST(ServerTest, ARequestEndsWithItsTime) {
  ServerOptions options = Options();
  options.request_seconds = 0.05;  // no machine writes 3,000 tokens in it
  const auto server = StartServer(options);
  const auto stream = SendLongStream(server->port());
  ASSERT_TRUE(stream);
  const Answer answer = stream->ReadAnswer();
  EXPECT_TRUE(answer.complete);
  EXPECT_NE(answer.body.find("\"error\""), std::string::npos);
}

TEST(ServerTest, AClientThatLeavesStopsItsOutput) {
  ServerOptions options = Options();
  options.max_batch = 2;
  const auto server = StartServer(options);
  for (int i = 0; i < 6; ++i) {
    Connection c(server->port());
    const std::string body = R"({"prompt":"x","max_tokens":3500,"temperature":1,"stream":true,
      "structured_outputs":{"regex":"([a-z]{3} )*[0-9]{4000}"},"close_at_budget":false})";
    c.Send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body);
    while (c.read().find("data: ") == std::string::npos) {
      if (!c.Read()) break;
    }
  }
  // Six of them would take minutes; the places are free again at once.
  Connection c(server->port());
  EXPECT_EQ(c.Post("/v1/chat/completions", Chat(Format())).status, 200);
  for (int i = 0; i < 6000; ++i) {
    if (c.Get("/metrics").body.find("pawl_requests_live 0\n") != std::string::npos) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const std::string metrics = c.Get("/metrics").body;
  EXPECT_NE(metrics.find("pawl_requests_live 0\n"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("pawl_clients_gone_total 6\n"), std::string::npos) << metrics;
}

TEST(ServerTest, StoppingAnswersWhatWasTaken) {
  auto server = StartServer(Options());
  const int port = server->port();
  std::atomic<int> good{0}, bad{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&] {
      Connection c(port);
      for (int k = 0; k < 100; ++k) {
        const Answer answer = c.Post("/v1/chat/completions", Chat(Format()));
        if (answer.status == 0) return;
        if (answer.status == 200 && answer.complete &&
            At(answer.Json(), "/choices/0/message/content").text == kRecord) {
          ++good;
        } else if (answer.status != 503) {
          ++bad;
        }
      }
    });
  }
  while (good < 16) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_TRUE(server->Stop().ok());
  server.reset();
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(bad, 0);
}

}  // namespace
}  // namespace pawl::server
