// What people complain about in servers of this kind, row by row (docs/server.md has the table):
// here are the rows that have no test of their own elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "pawl/result.h"
#include "src/engine/model_files.h"
#include "src/server/grammar_store.h"
#include "src/server/server.h"
#include "tests/server/http_client.h"

namespace pawl::server {
namespace {

std::unique_ptr<Server> StartWithTemplate(const char* chat_template) {
  ServerOptions options;
  options.model_path = PAWL_SOURCE_DIR "/models/tiny-extract";
  options.model.model.threads = 1;
  options.model.chat_template = chat_template;
  auto server = Server::Start(options);
  EXPECT_TRUE(server.ok()) << server.error().ToString();
  EXPECT_TRUE((*server)->WaitUntilReady().ok());
  return *std::move(server);
}

int PainsPort() {
  static const std::unique_ptr<Server> server = StartWithTemplate("");
  return server->port();
}

// With calls as Hermes writes them.
int ToolsPort() {
  static const std::unique_ptr<Server> server = StartWithTemplate(
      "{% for m in messages %}{{ m.content }}\n{% endfor %}{% if tools %}<tool_call>{% endif %}");
  return server->port();
}

std::string ChatWith(const std::string& schema, const std::string& more) {
  return R"({"messages":[{"role":"user","content":"Ann Lee, ann@example.org"}],
      "response_format":{"type":"json_schema","json_schema":{"name":"x","schema":)" +
         schema + "}}" + more + "}";
}

std::string ContentOf(const std::string& body) {
  Connection c(PainsPort());
  const Answer answer = c.Post("/v1/chat/completions", body);
  EXPECT_EQ(answer.status, 200) << answer.body;
  return At(answer.Json(), "/choices/0/message/content").text;
}

// Ids of the tokens that are white space and nothing else.
std::string BiasToWhiteSpace() {
  auto tokenizer = LoadTokenizer(PAWL_SOURCE_DIR "/models/tiny-extract");
  EXPECT_TRUE(tokenizer.ok());
  auto vocabulary = (*tokenizer)->MakeVocabulary();
  EXPECT_TRUE(vocabulary.ok());
  std::string out;
  for (TokenId token = 0; token < (*vocabulary)->size(); ++token) {
    const std::string_view bytes = (*vocabulary)->bytes(token);
    if (bytes.empty() || bytes.find_first_not_of(" \t\r\n") != std::string_view::npos) continue;
    out += (out.empty() ? "\"" : ",\"") + std::to_string(token) + "\":100";
  }
  return "{" + out + "}";
}

// Row 1. A model that wants nothing but white space gets eight characters of it, and by default
// none.
TEST(PainsTest, WhiteSpaceEnds) {
  const std::string schema = R"({"type":"object","properties":{"a":{"type":"integer","maximum":99},
      "b":{"type":"array","items":{"type":"boolean"},"maxItems":3}},"required":["a","b"]})";
  const std::string bias =
      R"(,"temperature":0,"max_tokens":400,"close_at_budget":false,"logit_bias":)" +
      BiasToWhiteSpace();
  const std::string compact = ContentOf(ChatWith(schema, bias));
  EXPECT_TRUE(json::Parse(compact).ok()) << compact;
  EXPECT_EQ(compact.find_first_of(" \t\r\n"), std::string::npos) << compact;
  const std::string bounded = ContentOf(ChatWith(schema, bias + R"(,"whitespace":"bounded")"));
  EXPECT_TRUE(json::Parse(bounded).ok()) << bounded;
  size_t run = 0, longest = 0;
  for (const char ch : bounded) {
    run = std::string_view(" \t\r\n").find(ch) == std::string_view::npos ? 0 : run + 1;
    longest = std::max(longest, run);
  }
  EXPECT_GE(longest, 1u) << bounded;
  EXPECT_LE(longest, 8u) << bounded;
}

// Row 2. Parts of a schema that others have dropped.
TEST(PainsTest, EveryPartOfASchemaHolds) {
  EXPECT_EQ(ContentOf(ChatWith(
                R"({"type":"object","allOf":[{"properties":{"a":{"const":1}},"required":["a"]},
      {"properties":{"b":{"const":2}},"required":["b"]}],"additionalProperties":true,
      "maxProperties":2})",
                R"(,"temperature":1,"seed":1)")),
            R"({"a":1,"b":2})");
  // What stands next to anyOf.
  EXPECT_EQ(
      ContentOf(ChatWith(R"({"anyOf":[{"type":"string"},{"type":"integer"}],"enum":[7]})", "")),
      "7");
}

// Row 6, and the index of each call in a stream (row 7).
TEST(PainsTest, CallsAreCountedAndNumbered) {
  const std::string tools = R"({"messages":[{"role":"user","content":"Ann"}],"temperature":1,
      "max_tokens":400,"stream":true,"tool_choice":"required","tools":[{"type":"function","function":
      {"name":"save","parameters":{"type":"object","properties":{"n":{"type":"integer","minimum":0,
      "maximum":9}},"required":["n"],"additionalProperties":false}}}])";
  size_t most = 0;
  for (const bool parallel : {true, false}) {
    for (int seed = 0; seed < 6; ++seed) {
      Connection c(ToolsPort());
      const Answer answer =
          c.Post("/v1/chat/completions", tools + R"(,"seed":)" + std::to_string(seed) +
                                             (parallel ? "}" : R"(,"parallel_tool_calls":false})"));
      ASSERT_EQ(answer.status, 200) << answer.body;
      std::map<size_t, std::string> arguments;
      for (const std::string& event : answer.Events()) {
        const auto value = json::Parse(event);
        if (!value.ok()) continue;
        const json::Value& call = At(*value, "/choices/0/delta/tool_calls/0");
        if (call.type != json::Type::kObject) continue;
        const size_t index = std::stoul(At(call, "/index").text);
        // The first of a call has its name, and the indices count up.
        EXPECT_EQ(call.Find("id") != nullptr, !arguments.contains(index)) << event;
        EXPECT_LE(index, arguments.size()) << event;
        arguments[index] += At(call, "/function/arguments").text;
      }
      ASSERT_GE(arguments.size(), 1u) << answer.body;
      EXPECT_TRUE(parallel || arguments.size() == 1) << answer.body;
      most = std::max(most, arguments.size());
      for (const auto& [index, text] : arguments) EXPECT_TRUE(json::Parse(text).ok()) << text;
    }
  }
  EXPECT_GT(most, 1u);  // several are possible where they may be
}

// Row 11. Counts are exact, however large.
TEST(PainsTest, CountsAreExact) {
  const std::string list = ContentOf(
      ChatWith(R"({"type":"array","items":{"const":1},"minItems":700,"maxItems":700})", ""));
  EXPECT_EQ(std::ranges::count(list, '1'), 700);
  const std::string text = ContentOf(ChatWith(
      R"({"type":"string","pattern":"^x{1200}$","minLength":1200,"maxLength":65536})", ""));
  EXPECT_EQ(text.size(), 1202u);
}

// Row 12. A bound counts characters of the text and not of its spelling; control characters never
// stand as they are.
TEST(PainsTest, BoundedStringsAreJson) {
  for (int seed = 0; seed < 12; ++seed) {
    const std::string content =
        ContentOf(ChatWith(R"({"type":"string","minLength":4,"maxLength":6})",
                           R"(,"temperature":8,"seed":)" + std::to_string(seed)));
    const auto value = json::Parse(content);
    ASSERT_TRUE(value.ok()) << content;
    const auto characters = std::ranges::count_if(
        value->text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    EXPECT_GE(characters, 4) << content;
    EXPECT_LE(characters, 6) << content;
  }
  EXPECT_EQ(ContentOf(ChatWith(R"({"const":"a\n\t\"\\b"})", "")), R"("a\n\t\"\\b")");
}

// Row 13.
TEST(PainsTest, LettersOfAnyScript) {
  for (const char* text : {"Grüße", "日本語", "Ελλάδα", "שלום", "हिन्दी", "😀"}) {
    EXPECT_EQ(ContentOf(ChatWith("{\"enum\":[" + json::Quote(text) + "]}", "")), json::Quote(text));
  }
  EXPECT_EQ(ContentOf(ChatWith(R"({"const":"\u00e4\ud83d\ude00"})", "")), "\"ä😀\"");
}

// Row 15. Keys are counted, and what is used least goes.
TEST(PainsTest, GrammarsStayWithinTheirBytes) {
  auto tokenizer = LoadTokenizer(PAWL_SOURCE_DIR "/models/tiny-extract");
  ASSERT_TRUE(tokenizer.ok());
  auto vocabulary = (*tokenizer)->MakeVocabulary();
  ASSERT_TRUE(vocabulary.ok());
  constexpr size_t kBytes = size_t{4} << 20;
  GrammarStore store(*vocabulary, {.max_bytes = kBytes});
  const auto get = [&](int number, bool& known) {
    ConstraintSpec spec;
    spec.kind = ConstraintSpec::Kind::kJsonSchema;
    spec.text =
        R"({"const":1,"$comment":")" + std::string(20'000, 'x') + std::to_string(number) + "\"}";
    EXPECT_TRUE(store.Get(spec, {}, known, std::make_shared<StopFlag>()).ok());
  };
  bool known = false;
  for (int i = 0; i < 60; ++i) {
    get(i, known);
    EXPECT_FALSE(known);
    EXPECT_LE(store.stats().key_bytes, kBytes / 8);
  }
  EXPECT_GT(store.stats().evicted, 0);
  EXPECT_LT(store.stats().grammars, 20u);
  get(59, known);
  EXPECT_TRUE(known);
  get(0, known);
  EXPECT_FALSE(known);
}

// Row 18. How much of the model's wish a constraint took is told.
TEST(PainsTest, TheMasksSurpriseIsReported) {
  Connection c(PainsPort());
  const std::string body =
      R"({"prompt":"Ann Lee","max_tokens":9,"temperature":0,"mask_surprise":true,
      "structured_outputs":{"choice":["zzzzzz","qqqqqq"]}})";
  const Answer answer = c.Post("/v1/completions", body);
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_GT(std::stod(At(answer.Json(), "/pawl/mask_surprise").text), 1) << answer.body;
}

}  // namespace
}  // namespace pawl::server
