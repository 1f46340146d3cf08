// /v1/extract with "details": places, probabilities and alternatives of the values of a record.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "src/server/server.h"
#include "tests/server/http_client.h"
#include "tests/server/test_server.h"

namespace pawl::server {
namespace {

constexpr const char* kDetailsText = "Ann Lee, ann@mail.example, wrote.";

int DetailsPort() {
  static const std::unique_ptr<Server> server = ServerOf("tiny-extract");
  return server->port();
}

TEST(ExtractDetailsTest, DetailsComeWhereTheyAreAskedFor) {
  Connection c(DetailsPort());
  const std::string start =
      R"({"schema":{"type":"object","properties":{"name":{"type":"string"},"kind":{"enum":["x","y"]}},)"
      R"("required":["name","kind"]},"text":)" +
      json::Quote(kDetailsText);
  const json::Value plain = c.Post("/v1/extract", start + "}").Json();
  const Answer answer = c.Post("/v1/extract", start + R"(,"details":true})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json::Value body = answer.Json();
  EXPECT_EQ(json::Dump(At(body, "/records/0/record")), json::Dump(At(plain, "/records/0/record")));
  EXPECT_EQ(json::Dump(At(body, "/records/0/spans")), json::Dump(At(plain, "/records/0/spans")));
  for (const char* member : {"byte_spans", "probability", "surprise", "alternatives"}) {
    EXPECT_EQ(At(plain, "/records/0").Find(member), nullptr);
    ASSERT_NE(At(body, "/records/0").Find(member), nullptr) << member;
  }
  EXPECT_EQ(At(body, "/records/0/probability").members.size(), 2u);
  EXPECT_EQ(At(body, "/records/0/alternatives").members.at(0).first, "/kind");
  EXPECT_EQ(At(body, "/records/0/alternatives").members.at(0).second.items.size(), 2u);
  const Answer wrong =
      c.Post("/v1/extract", start + R"(,"details":true,"search":{"num_beams":2}})");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(At(wrong.Json(), "/error/param").text, "/details") << wrong.body;
}

TEST(ExtractDetailsTest, TokensComeWhereTheyAreAskedFor) {
  Connection c(DetailsPort());
  const std::string start =
      R"({"schema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},)"
      R"("text":)" +
      json::Quote(kDetailsText);
  const Answer answer =
      c.Post("/v1/extract", start + R"(,"token_report":true,"logprobs":true,"top_logprobs":3})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json::Value record = At(answer.Json(), "/records/0");
  const json::Value& tokens = At(record, "/pawl_tokens");
  const json::Value& content = At(record, "/logprobs/content");
  ASSERT_EQ(tokens.items.size(), content.items.size());
  std::string text;
  for (size_t i = 0; i < tokens.items.size(); ++i) {
    text += At(tokens.items[i], "/text").text;
    EXPECT_EQ(At(tokens.items[i], "/text").text, At(content.items[i], "/token").text);
    if (At(tokens.items[i], "/source").text == "sampled") {
      EXPECT_EQ(At(content.items[i], "/top_logprobs").items.size(), 3u) << answer.body;
    }
  }
  EXPECT_EQ(text, json::Dump(At(record, "/record")));
  EXPECT_NE(At(record, "/spans").Find("/name"), nullptr);
  const json::Value plain = c.Post("/v1/extract", start + "}").Json();
  EXPECT_EQ(json::Dump(At(plain, "/records/0/record")), json::Dump(At(record, "/record")));
  EXPECT_EQ(At(plain, "/records/0").Find("pawl_tokens"), nullptr);
  EXPECT_EQ(At(plain, "/records/0").Find("logprobs"), nullptr);
  const Answer wrong = c.Post("/v1/extract", start + R"(,"logprobs":true,"top_logprobs":21})");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(At(wrong.Json(), "/error/param").text, "/top_logprobs") << wrong.body;
}

// Chats are their own source: what the user and tools have said, and nothing else.
TEST(ExtractDetailsTest, FieldsOfChatsAreCopiedFromTheMessages) {
  Connection c(DetailsPort());
  const std::string start =
      R"({"messages":[{"role":"system","content":"Beware."},{"role":"user","content":"Call Ann"},)"
      R"({"role":"user","content":[{"type":"text","text":"or Bo Lee"}]}],"temperature":1,"max_tokens":60,)"
      R"("response_format":{"type":"json_schema","json_schema":{"name":"r","schema":{"type":"object",)"
      R"("properties":{"who":{"type":"string","x-pawl-source":"span")";
  const std::string end = R"(}},"required":["who"],"additionalProperties":false}}})";
  for (int seed = 0; seed < 5; ++seed) {
    const Answer answer =
        c.Post("/v1/chat/completions", start + end + ",\"seed\":" + std::to_string(seed) + "}");
    ASSERT_EQ(answer.status, 200) << answer.body;
    const Result<json::Value> record =
        json::Parse(At(answer.Json(), "/choices/0/message/content").text);
    ASSERT_TRUE(record.ok()) << answer.body;
    EXPECT_NE(std::string("Call Ann or Bo Lee").find(record->Find("who")->text), std::string::npos)
        << answer.body;
  }
  const Answer none = c.Post("/v1/chat/completions", start + R"(,"pattern":"Beware")" + end + "}");
  EXPECT_EQ(none.status, 400) << none.body;
  EXPECT_NE(none.body.find("no span of the text fits"), std::string::npos) << none.body;
}

// Inside a structural tag too; and no value is made of two messages.
TEST(ExtractDetailsTest, ACopiedValueIsOfOneMessage) {
  Connection c(DetailsPort());
  const auto ask = [&](const std::string& value, bool tag) {
    const std::string schema =
        R"({"type":"string","x-pawl-source":"span","enum":[")" + value + "\"]}";
    const std::string format =
        tag ? R"({"type":"structural_tag","format":{"type":"json_schema","json_schema":)" + schema +
                  "}}"
            : R"({"type":"json_schema","json_schema":{"name":"x","schema":)" + schema + "}}";
    return c.Post(
        "/v1/chat/completions",
        R"({"messages":[{"role":"user","content":"Ann"},{"role":"user","content":"Lee"}],)"
        R"("max_tokens":40,"response_format":)" +
            format + "}");
  };
  for (const bool tag : {false, true}) {
    const Answer good = ask("Lee", tag);
    ASSERT_EQ(good.status, 200) << good.body;
    EXPECT_EQ(At(good.Json(), "/choices/0/message/content").text, "\"Lee\"");
    // The parts of a message are one text.
    const Answer parts = c.Post(
        "/v1/chat/completions",
        R"({"messages":[{"role":"user","content":[{"type":"text","text":"Ann "},{"type":"text","text":"Lee"}]}],)"
        R"("max_tokens":40,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":)"
        R"({"type":"string","x-pawl-source":"span","enum":["Ann Lee"]}}}})");
    EXPECT_EQ(parts.status, 200) << parts.body;
    const Answer across = ask("Ann Lee", tag);
    EXPECT_EQ(across.status, 400) << across.body;
    EXPECT_NE(across.body.find("x-pawl-source"), std::string::npos) << across.body;
  }
}

// The bug: a tool with a copied parameter made a chat fail whose messages have no value for it.
TEST(ExtractDetailsTest, AToolThatTheMessagesDoNotFitCannotBeCalled) {
  Connection c(DetailsPort());
  const auto ask = [&](const std::string& text, const std::string& choice, bool other) {
    const std::string more =
        other ? R"(,{"type":"function","function":{"name":"ping","parameters":{"type":"object"}}})"
              : "";
    return c.Post(
        "/v1/chat/completions",
        R"({"messages":[{"role":"user","content":")" + text + R"("}],"max_tokens":60,"tools":[)" +
            R"({"type":"function","function":{"name":"lookup","parameters":{"type":"object",)"
            R"("properties":{"id":{"type":"string","x-pawl-source":"span","pattern":"^ORD-[0-9]+$"}},)"
            R"("required":["id"]}}})" +
            more + R"(],"tool_choice":")" + choice + "\"}");
  };
  const auto called = [](const Answer& answer) {
    return At(answer.Json(), "/choices/0/message/tool_calls/0/function");
  };
  EXPECT_EQ(ask("Hello, how are you?", "auto", false).status, 200);
  const Answer none = ask("Hello, how are you?", "required", false);
  EXPECT_EQ(none.status, 400);
  EXPECT_EQ(At(none.Json(), "/error/param").text,
            "/tools/0/function/parameters/properties/id/x-pawl-source")
      << none.body;
  const Answer other = ask("Hello, how are you?", "required", true);
  ASSERT_EQ(other.status, 200) << other.body;
  EXPECT_EQ(At(called(other), "/name").text, "ping") << other.body;
  const Answer good = ask("Where is ORD-12?", "required", false);
  ASSERT_EQ(good.status, 200) << good.body;
  EXPECT_NE(At(called(good), "/arguments").text.find("ORD-12"), std::string::npos) << good.body;
}

TEST(ExtractDetailsTest, ATextThatIsTooLongNamesTheMember) {
  Connection c(DetailsPort());
  const Answer answer = c.Post(
      "/v1/extract", R"({"schema":{"type":"object"},"text":")" + std::string(200'000, 'x') + "\"}");
  EXPECT_NE(answer.body.find("\\\"document\\\": true"), std::string::npos) << answer.body;
}

TEST(ExtractDetailsTest, DocumentsAreReadInChunks) {
  Connection c(DetailsPort());
  std::string text;
  for (int i = 0; i < 12; ++i) text += "Zo\u00eb Lee pays " + std::to_string(10 + i) + " EUR.\n\n";
  const std::string start =
      R"({"schema":{"type":"object","properties":{"paid":{"type":"array","items":{"type":"number",)"
      R"("x-pawl-source":"span"},"minItems":1},"who":{"type":"string"}},"required":["paid","who"]},"text":)" +
      json::Quote(text);
  const std::string document = start + R"(,"document":true,"chunk_tokens":40)";
  const Answer answer = c.Post("/v1/extract", document + R"(,"details":true,"passes":2})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json::Value body = answer.Json();
  EXPECT_GT(std::stoi(At(body, "/records/0/chunks").text), 3);
  EXPECT_NE(At(body, "/records/0").Find("conflicts"), nullptr);
  const json::Value& paid = At(body, "/records/0/record/paid");
  const json::Value& spans = At(body, "/records/0/byte_spans");
  ASSERT_FALSE(paid.items.empty()) << answer.body;
  for (size_t i = 0; i < paid.items.size(); ++i) {
    const json::Value* span = spans.Find("/paid/" + std::to_string(i));
    ASSERT_NE(span, nullptr) << answer.body;
    const size_t begin = std::stoul(span->items[0].text), end = std::stoul(span->items[1].text);
    EXPECT_EQ(text.substr(begin, end - begin), paid.items[i].text);
  }
  EXPECT_GT(std::stoi(At(body, "/usage/prompt_tokens").text), 100);
  // Without details the spans are there, as for other texts.
  const json::Value plain = c.Post("/v1/extract", document + "}").Json();
  EXPECT_EQ(At(plain, "/records/0").Find("probability"), nullptr);
  EXPECT_NE(At(plain, "/records/0/spans").Find("/paid/0"), nullptr);
  const auto param = [&](const std::string& members) {
    const Answer wrong = c.Post("/v1/extract", members + "}");
    EXPECT_EQ(wrong.status, 400) << wrong.body;
    return At(wrong.Json(), "/error/param").text;
  };
  EXPECT_EQ(param(start + R"(,"chunk_tokens":40)"), "/chunk_tokens");
  EXPECT_EQ(param(start + R"(,"document":true,"passes":17)"), "/passes");
  EXPECT_EQ(param(start + R"(,"document":true,"chunk_tokens":5)"), "/chunk_tokens");
  EXPECT_EQ(param(document + R"(,"free_first":5)"), "/document");
  EXPECT_EQ(param(document + R"(,"stop":["x"])"), "/stop");
  EXPECT_EQ(param(document + R"(,"search":{"num_beams":2})"), "/document");
}

TEST(ExtractDetailsTest, ValuesOfTheTextArePreferred) {
  Connection c(DetailsPort());
  const auto answer = [&](const std::string& preference, int seed, bool drafts = true) {
    return c.Post("/v1/extract",
                  R"({"text":"Zu 7 of Ulm","temperature":6,"max_tokens":200,"schema":{"type":)"
                  R"("object","properties":{"a":{"type":"string"}},"required":["a"]},"seed":)" +
                      std::to_string(seed) + R"(,"prefer_text":)" + preference +
                      (drafts ? "}" : R"(,"drafts":false})"));
  };
  int absent = 0;
  for (int seed = 0; seed < 5; ++seed) {
    for (const char* preference : {"1000", "0"}) {
      const Answer got = answer(preference, seed);
      ASSERT_EQ(got.status, 200) << got.body;
      const std::string value = At(got.Json(), "/records/0/record/a").text;
      const Answer plain = answer(preference, seed, false);
      EXPECT_EQ(At(plain.Json(), "/records/0/record/a").text, value) << seed << plain.body;
      const bool stands = std::string("Zu 7 of Ulm").find(value) != std::string::npos;
      EXPECT_TRUE(stands || std::string(preference) == "0") << value;
      absent += stands ? 0 : 1;
    }
  }
  EXPECT_GT(absent, 0);
  for (const char* wrong : {"-1", "1001", "\"much\""}) {
    const Answer refused = answer(wrong, 0);
    EXPECT_EQ(refused.status, 400);
    EXPECT_NE(refused.body.find("#/prefer_text"), std::string::npos) << refused.body;
  }
}

TEST(ExtractDetailsTest, AnotherTryShowsTheRecordAndTheProblem) {
  Connection c(DetailsPort());
  // Pawl's own prompt has a place for both, that of pawl.json has none.
  static const std::unique_ptr<Server> own = [] {
    const std::filesystem::path folder =
        std::filesystem::path(testing::TempDir()) / ("own_prompt." + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    for (const auto& file :
         std::filesystem::directory_iterator(PAWL_SOURCE_DIR "/models/tiny-extract")) {
      if (file.is_regular_file() && file.path().filename() != "pawl.json") {
        std::filesystem::copy(file.path(), folder / file.path().filename());
      }
    }
    ServerOptions options;
    options.model_path = folder.string();
    options.model.model.threads = 1;
    auto started = Server::Start(options);
    EXPECT_TRUE(started.ok() && (*started)->WaitUntilReady().ok());
    std::filesystem::remove_all(folder);
    return *std::move(started);
  }();
  Connection shown(own->port());
  const std::string start =
      R"({"schema":{"type":"object","properties":{"a":{"enum":["x","y"]}},"required":["a"]},"text":"Bo")";
  const std::string again = start + R"(,"record":{"a":"x"},"problem":"x is no value")";
  const auto tokens = [](Connection& to, const std::string& body) {
    const Answer answer = to.Post("/v1/extract", body + "}");
    EXPECT_EQ(answer.status, 200) << answer.body;
    return std::stoi(At(answer.Json(), "/records/0/prompt_tokens").text);
  };
  EXPECT_GT(tokens(shown, again), tokens(shown, start) + 5);
  EXPECT_GT(tokens(shown, again + R"(,"instruction":"Read it")"),
            tokens(shown, start + R"(,"instruction":"Read it")") + 5);
  EXPECT_EQ(tokens(c, again), tokens(c, start));
  EXPECT_NE(c.Post("/v1/extract", again + "}").body.find("\"/problem\""), std::string::npos);
  const auto refused = [&](const std::string& members, const char* place, const char* words) {
    const Answer answer = c.Post("/v1/extract", members + "}");
    EXPECT_EQ(answer.status, 400) << members;
    EXPECT_EQ(At(answer.Json(), "/error/param").text, place) << answer.body;
    EXPECT_NE(answer.body.find(words), std::string::npos) << answer.body;
  };
  refused(start + R"(,"record":{})", "/problem", "is missing");
  refused(start + R"(,"problem":"no")", "/record", "is missing");
  refused(start + R"(,"record":{},"problem":"")", "/problem", "is empty");
  refused(start + R"(,"record":{},"problem":3)", "/problem", "string");
  refused(again + R"(,"document":true)", "/record", "documents");
  refused(R"({"schema":{},"texts":["a","b"],"record":{},"problem":"no")", "/record", "texts");
  for (const char* name : {"check", "retries"}) {
    refused(start + ",\"" + name + "\":1", (std::string("/") + name).c_str(), "is for the client");
  }
}

}  // namespace
}  // namespace pawl::server
