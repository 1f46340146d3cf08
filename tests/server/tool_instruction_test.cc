// Tools for chat templates that show none: what the prompt says of them, calls of earlier turns,
// lists that do not fit, forms that are not known, and strings that a bound ended.
#include "src/server/tool_instruction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "src/base/json_reader.h"
#include "src/engine/model_files.h"
#include "src/server/constraint_spec.h"
#include "src/server/served_model.h"
#include "src/server/server.h"
#include "tests/server/http_client.h"
#include "tests/server/test_server.h"

namespace pawl::server {
namespace {

constexpr const char* kNoTools =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}<assistant>";
constexpr const char* kNoSystem =
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"
    "<{{ m.role }}>{{ m.content }}\n{% endfor %}<assistant>";
constexpr const char* kForeignForm =
    "{% if tools %}{% for t in tools %}@{{ t.function.name }}{% endfor %}{% endif %}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}<assistant>";

constexpr const char* kToolList = R"("tools":[
    {"type":"function","function":{"name":"get_weather","description":"The weather of a city.\nMore.",
     "parameters":{"type":"object","properties":{"city":{"type":"string"},
     "unit":{"enum":["C","F"]},"days":{"type":"integer"}},"required":["city","unit"]}}},
    {"type":"function","function":{"name":"save","parameters":{"type":"object","properties":{
     "path":{"type":"string","description":"A path."},"lines":{"type":"array","items":{"type":"string"}}},
     "required":["path","lines"]}}}])";

RequestConstraints ToolsOf(const std::string& more) {
  const auto body = json::Parse("{" + std::string(kToolList) + more + "}");
  EXPECT_TRUE(body.ok());
  auto asked = ReadConstraints(JsonReader(*body));
  EXPECT_TRUE(asked.ok()) << asked.error().ToString();
  return *std::move(asked);
}

ToolInstruction Told(const RequestConstraints& asked) {
  const auto plan = MakePlan(asked, PlainTraits(), ThinkingStart::kOff);
  EXPECT_TRUE(plan.ok());
  return InstructionOf(asked, *plan);
}

TEST(ToolInstructionTest, EachToolIsALineOfItsCall) {
  const ToolInstruction told = Told(ToolsOf(R"(,"tool_choice":"required")"));
  EXPECT_EQ(told.text,
            "Tools:\n\n"
            "The weather of a city.\n"
            "{\"name\": \"get_weather\", \"parameters\": {\"city\": <string>, \"unit\": <\"C\" | "
            "\"F\">, \"days\": <integer, optional>}}\n\n"
            "{\"name\": \"save\", \"parameters\": {\"path\": <string>, \"lines\": [<string>, "
            "...]}}\n\n"
            "A call of a tool is one of these lines with values in place of <...>.");
  // A schema stands there where its signature leaves something out.
  EXPECT_EQ(told.with_schemas.find("Schema: {\"type\":\"object\",\"properties\":{\"city\""),
            std::string::npos);
  EXPECT_NE(told.with_schemas.find("Schema: {\"type\":\"object\",\"properties\":{\"path\""),
            std::string::npos);
  EXPECT_NE(Told(ToolsOf("")).text.find("answer in words"), std::string::npos);
}

TEST(ToolInstructionTest, CallsAndResultsBecomeText) {
  const ToolInstruction told = Told(ToolsOf(""));
  auto messages = json::Parse(R"([{"role":"user","content":"Weather?"},
      {"role":"assistant","content":"Let me see.","tool_calls":[{"id":"1","type":"function",
       "function":{"name":"get_weather","arguments":{"city":"Bern","unit":"C"}}},
       {"id":"2","function":{"name":"other","arguments":"{}"}}]},
      {"role":"tool","tool_call_id":"1","content":"3"},{"role":"tool","tool_call_id":"2","content":"x"},
      {"role":"user","content":"Thanks"}])");
  ASSERT_TRUE(messages.ok());
  WriteCallsAsText(told, *messages);
  EXPECT_EQ(
      json::Dump(*messages),
      R"([{"role":"user","content":"Weather?"},{"role":"assistant","content":"Let me see.\n\n)"
      R"({\"name\": \"get_weather\", \"parameters\": {\"city\":\"Bern\",\"unit\":\"C\"}}; )"
      R"({\"name\": \"other\", \"parameters\": {}}"},{"role":"user","content":)"
      R"("Result of get_weather:\n3\n\nResult of other:\nx"},{"role":"user","content":"Thanks"}])");
}

std::unique_ptr<Server> StartFor(const char* chat_template, int max_string = -1) {
  ServerOptions options;
  options.model.chat_template = chat_template;
  options.max_string = max_string;
  return ServerOf("tiny-extract", options);
}

std::string PromptOf(const char* chat_template) {
  ServedModelOptions options;
  options.model.threads = 1;
  options.chat_template = chat_template;
  auto model = ServedModel::Load(PAWL_SOURCE_DIR "/models/tiny-extract", options);
  EXPECT_TRUE(model.ok()) << model.error().ToString();
  EXPECT_FALSE((*model)->shows_tools());
  PromptSpec spec;
  spec.kind = PromptSpec::Kind::kChat;
  spec.pointer = "#/messages";
  spec.messages = *json::Parse(R"([{"role":"user","content":"Weather?"}])");
  spec.told_tools = Told(ToolsOf(R"(,"tool_choice":"required")"));
  const auto prompt = (*model)->Prepare(spec);
  EXPECT_TRUE(prompt.ok()) << prompt.error().ToString();
  return prompt.ok() ? (*model)->tokenizer().Decode(prompt->tokens, true) : "";
}

TEST(ToolInstructionTest, TheListIsInTheSystemMessageOrTheUsers) {
  const std::string system = PromptOf(kNoTools), user = PromptOf(kNoSystem);
  EXPECT_NE(system.find("<system>Tools:\n\nThe weather of a city.\n"), std::string::npos) << system;
  EXPECT_NE(system.find("place of <...>.\n<user>Weather?"), std::string::npos) << system;
  EXPECT_NE(user.find("<user>Tools:\n\nThe weather of a city.\n"), std::string::npos) << user;
  EXPECT_NE(user.find("place of <...>.\n\nWeather?"), std::string::npos) << user;
}

// The sum of the log-probabilities of the last `count` tokens, as /v1/completions tells them.
double ScoreOf(const Server& server, const std::vector<TokenId>& tokens, size_t count) {
  std::string ids;
  for (const TokenId token : tokens) ids += (ids.empty() ? "" : ",") + std::to_string(token);
  Connection c(server.port());
  const Answer answer = c.Post(
      "/v1/completions", R"({"echo":true,"logprobs":0,"max_tokens":0,"prompt":[)" + ids + "]}");
  EXPECT_EQ(answer.status, 200) << answer.body;
  const json::Value all = At(answer.Json(), "/choices/0/logprobs/token_logprobs");
  double sum = 0;
  for (size_t i = all.items.size() - count; i < all.items.size(); ++i) {
    sum += std::stod(json::Dump(all.items[i]));
  }
  return sum;
}

TEST(ToolInstructionTest, TheToolIsTheMostProbableAsAWhole) {
  constexpr const char* kFourTools =
      R"("tools":[{"type":"function","function":{"name":"get_name","description":"Tells a name."}},
      {"type":"function","function":{"name":"get_city_of_person","description":"Tells a city."}},
      {"type":"function","function":{"name":"set_email","description":"Writes to a person."}},
      {"type":"function","function":{"name":"delete_all","description":"Removes a list."}}])";
  constexpr const char* kOneCall = R"(,"tool_choice":"required")";
  ServedModelOptions options;
  options.model.threads = 1;
  options.chat_template = kNoTools;
  const auto model = ServedModel::Load(PAWL_SOURCE_DIR "/models/tiny-extract", options);
  ASSERT_TRUE(model.ok());
  const auto asked =
      ReadConstraints(JsonReader(*json::Parse("{" + std::string(kFourTools) + kOneCall + "}")));
  ASSERT_TRUE(asked.ok());
  const ToolInstruction told = Told(*asked);
  const auto server = StartFor(kNoTools);
  int differs = 0;
  for (const char* text : {"Where does Ann live?", "Ann Lee, 030 1234", "Remove the list.", "x",
                           "Write to bob@lee.org", "Who is it?"}) {
    PromptSpec spec;
    spec.kind = PromptSpec::Kind::kChat;
    spec.messages.type = json::Type::kArray;
    spec.messages.items.push_back(MakeChatMessage("user", text));
    spec.told_tools = told;
    const auto prompt = (*model)->Prepare(spec);
    ASSERT_TRUE(prompt.ok());
    std::string best;
    double most = -1e9;
    for (const ToolForm& form : told.forms) {
      const std::string begin = form.begin.substr(0, form.begin.find_last_not_of(' ') + 1);
      const auto more = (*model)->tokenizer().Encode(begin);
      std::vector<TokenId> tokens = prompt->tokens;
      tokens.insert(tokens.end(), more.begin(), more.end());
      const double score = ScoreOf(*server, tokens, more.size());
      if (score > most) best = form.name;
      most = std::max(most, score);
    }
    const auto called = [&](const std::string& more) {
      Connection c(server->port());
      const Answer answer =
          c.Post("/v1/chat/completions",
                 R"({"temperature":0,"max_tokens":24,"messages":[{"role":"user",)"
                 R"("content":)" +
                     json::Quote(text) + "}]," + kFourTools + kOneCall + more + "}");
      EXPECT_EQ(answer.status, 200) << answer.body;
      return At(answer.Json(), "/choices/0/message/tool_calls/0/function/name").text;
    };
    EXPECT_EQ(called(""), best) << text;
    // Several calls are chosen token by token.
    if (called(R"(,"parallel_tool_calls":true)") != best) ++differs;
  }
  EXPECT_GT(differs, 0);
}

std::string BodyWith(const std::string& more) {
  return R"({"messages":[{"role":"user","content":"Weather in Bern?"}],"temperature":0,)" + more +
         "}";
}

TEST(ToolInstructionTest, AListThatDoesNotFitIsRefusedWithBothNumbers) {
  const auto server = StartFor(kNoTools);
  std::string tools;
  for (int i = 0; i < 300; ++i) {
    tools +=
        (i == 0 ? "" : ",") + std::string(R"({"type":"function","function":{"name":"tool_)") +
        std::to_string(i) + R"(","description":"Number )" + std::to_string(i) +
        R"( of many tools","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}})";
  }
  Connection c(server->port());
  const Answer answer = c.Post("/v1/chat/completions",
                               BodyWith(R"("tool_choice":"required","tools":[)" + tools + "]"));
  EXPECT_EQ(answer.status, 400) << answer.body;
  EXPECT_NE(answer.body.find("300 tools has "), std::string::npos) << answer.body;
  EXPECT_NE(answer.body.find("context holds "), std::string::npos) << answer.body;
  EXPECT_EQ(At(answer.Json(), "/error/param").text, "/tools") << answer.body;
}

TEST(ToolInstructionTest, AFormThatIsNotKnownIsTold) {
  const auto server = StartFor(kForeignForm);
  Connection c(server->port());
  const Answer required = c.Post("/v1/chat/completions",
                                 BodyWith(R"("tool_choice":"required",)" + std::string(kToolList)));
  EXPECT_EQ(required.status, 400) << required.body;
  EXPECT_NE(required.body.find("--tool-syntax"), std::string::npos) << required.body;
  EXPECT_EQ(At(required.Json(), "/error/param").text, "/tool_choice");
  Connection d(server->port());
  const Answer text =
      d.Post("/v1/chat/completions", BodyWith(R"("max_tokens":8,)" + std::string(kToolList)));
  EXPECT_EQ(text.status, 200) << text.body;
  EXPECT_NE(At(text.Json(), "/pawl/notes/0").text.find("--tool-syntax"), std::string::npos)
      << text.body;
}

// A model that never ends its string.
std::string LongBody(const std::string& more) {
  return BodyWith(R"("max_tokens":700,"tool_choice":"required","parallel_tool_calls":false,
      "logit_bias":{)" +
                  more + R"(},"tools":[{"type":"function","function":{"name":"save","parameters":
      {"type":"object","properties":{"text":{"type":"string"}},"required":["text"],
      "additionalProperties":false}}}])");
}

std::string BiasToLetters(const std::string& more) {
  auto tokenizer = LoadTokenizer(PAWL_SOURCE_DIR "/models/tiny-extract");
  auto vocabulary = (*tokenizer)->MakeVocabulary();
  for (TokenId token = 0; token < (*vocabulary)->size(); ++token) {
    if ((*vocabulary)->bytes(token) == "x") {
      return LongBody("\"" + std::to_string(token) + "\":100").insert(1, more);
    }
  }
  return "";
}

TEST(ToolInstructionTest, StringsOfCallsHaveNoBoundUnlessOneIsAsked) {
  const auto server = StartFor(kNoTools);
  const auto arguments = [&](const std::string& more, std::string& notes) {
    Connection c(server->port());
    const Answer answer = c.Post("/v1/chat/completions", BiasToLetters(more));
    EXPECT_EQ(answer.status, 200) << answer.body;
    notes = json::Dump(At(answer.Json(), "/pawl/notes"));
    const auto value =
        json::Parse(At(answer.Json(), "/choices/0/message/tool_calls/0/function/arguments").text);
    EXPECT_TRUE(value.ok()) << answer.body;
    return value.ok() ? At(*value, "/text").text : "";
  };
  std::string notes;
  EXPECT_GT(arguments("", notes).size(), 500u);
  EXPECT_EQ(arguments(R"("max_string":40,)", notes).size(), 40u);
  EXPECT_NE(
      notes.find("tool_calls/0/function/arguments#/text: the string ended at the bound of 40"),
      std::string::npos)
      << notes;
  const auto bounded = StartFor(kNoTools, 30);
  Connection c(bounded->port());
  const Answer answer = c.Post("/v1/chat/completions", BiasToLetters(""));
  EXPECT_NE(answer.body.find("bound of 30 characters"), std::string::npos) << answer.body;
}

}  // namespace
}  // namespace pawl::server
