// Tools for chat templates that show none: what the prompt says of them, calls of earlier turns,
// lists that do not fit, forms that are not known, and strings that a bound ended.
#include "src/server/tool_instruction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "src/base/json_reader.h"
#include "src/base/random.h"
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

#define PAWL_TEST_TOOL(name, description)                                                   \
  R"({"type":"function","function":{"name":")" name R"(","description":")" description      \
  R"(","parameters":{"type":"object","properties":{"who":{"type":"string","maxLength":9},)" \
  R"("copies":{"type":"integer"}},"required":["who"],"additionalProperties":false}}})"
constexpr const char* kFourTools =
    R"("tools":[)" PAWL_TEST_TOOL("get_name", "Tells a name.") "," PAWL_TEST_TOOL(
        "get_city_of_person",
        "Tells a city.") "," PAWL_TEST_TOOL("set_email",
                                            "Writes a mail.") "," PAWL_TEST_TOOL("delete_all",
                                                                                 "Removes a "
                                                                                 "list.") "]";
constexpr const char* kOneCall = R"(,"tool_choice":"required")";

std::vector<TokenId> PromptTokens(const ServedModel& model, const ToolInstruction& told,
                                  const std::string& text) {
  PromptSpec spec;
  spec.kind = PromptSpec::Kind::kChat;
  spec.messages.type = json::Type::kArray;
  spec.messages.items.push_back(MakeChatMessage("user", text));
  spec.told_tools = told;
  const auto prompt = model.Prepare(spec);
  EXPECT_TRUE(prompt.ok());
  return prompt.ok() ? prompt->tokens : std::vector<TokenId>();
}

json::Value CallFor(const Server& server, const std::string& text, const std::string& more,
                    const std::string& temperature = "0") {
  Connection c(server.port());
  const Answer answer =
      c.Post("/v1/chat/completions", R"({"max_tokens":48,"messages":[{"role":"user","content":)" +
                                         json::Quote(text) + R"(}],"temperature":)" + temperature +
                                         "," + kFourTools + kOneCall + more + "}");
  EXPECT_EQ(answer.status, 200) << answer.body;
  return At(answer.Json(), "/choices/0/message/tool_calls/0/function");
}

struct ToolsOfModel {
  std::unique_ptr<ServedModel> model;
  ToolInstruction told;
};

ToolsOfModel LoadForTools() {
  ServedModelOptions options;
  options.model.threads = 1;
  options.chat_template = kNoTools;
  auto model = ServedModel::Load(PAWL_SOURCE_DIR "/models/tiny-extract", options);
  const auto asked =
      ReadConstraints(JsonReader(*json::Parse("{" + std::string(kFourTools) + kOneCall + "}")));
  EXPECT_TRUE(model.ok() && asked.ok());
  return {*std::move(model), Told(*asked)};
}

TEST(ToolInstructionTest, TheToolIsTheOneThatTheRequestMakesMostProbable) {
  const ToolsOfModel tools = LoadForTools();
  const auto server = StartFor(kNoTools);
  const auto score = [&](const ToolForm& form, const std::string& text) {
    const std::string begin = form.begin.substr(0, form.begin.find_last_not_of(' ') + 1);
    const auto more = tools.model->tokenizer().Encode(begin);
    std::vector<TokenId> tokens = PromptTokens(*tools.model, tools.told, text);
    tokens.insert(tokens.end(), more.begin(), more.end());
    return ScoreOf(*server, tokens, more.size());
  };
  int differs = 0, others = 0;
  for (const char* text : {"Where does Ann live?", "Remove the list.", "Write to bob@lee.org"}) {
    std::string best, best_behind;
    double most = -1e9, most_behind = -1e9;
    std::vector<double> by_tool;
    for (const ToolForm& form : tools.told.forms) {
      const double behind = score(form, text), raised = behind - score(form, "(none)");
      if (raised > most) best = form.name;
      if (behind > most_behind) best_behind = form.name;
      most = std::max(most, raised);
      most_behind = std::max(most_behind, behind);
      by_tool.push_back(raised);
    }
    EXPECT_EQ(At(CallFor(*server, text, ""), "/name").text, best) << text;
    // Several calls are chosen token by token.
    const json::Value several = CallFor(*server, text, R"(,"parallel_tool_calls":true)");
    if (At(several, "/name").text != best || best != best_behind) ++differs;
    // Above temperature 0 it is drawn: the same seed, the same tool.
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      std::vector<double> keys;
      for (size_t i = 0; i < by_tool.size(); ++i)
        keys.push_back(by_tool[i] / 2 + static_cast<double>(GumbelAt(seed, ~uint64_t{0}, i)));
      const auto first = std::ranges::max_element(keys) - keys.begin();
      const json::Value drawn = CallFor(*server, text, ",\"seed\":" + std::to_string(seed), "2");
      EXPECT_EQ(At(drawn, "/name").text, tools.told.forms[static_cast<size_t>(first)].name);
      others += At(drawn, "/name").text == best ? 0 : 1;
    }
  }
  EXPECT_GT(others, 0);
  EXPECT_GT(differs, 0);
}

// The call is the better of two beams, as a search over the same constraint finds it.
TEST(ToolInstructionTest, TheCallOfThePickedToolIsSearched) {
  const ToolsOfModel tools = LoadForTools();
  const auto server = StartFor(kNoTools);
  ServerOptions few;
  few.model.chat_template = kNoTools;
  few.search_rows = 4;
  const auto limited = ServerOf("tiny-extract", few);
  const auto list = json::Parse("{" + std::string(kFourTools) + "}");
  const std::string schema = json::Dump(At(*list, "/tools/0/function/parameters"));
  int differs = 0;
  for (const char* text : {"Ann Lee, 030 1234", "Write to bob@lee.org", "x", "Bob"}) {
    const json::Value call = CallFor(*server, text, R"(,"whitespace":"compact","prefer_text":0)");
    const std::string name = At(call, "/name").text, arguments = At(call, "/arguments").text;
    std::string ids;
    for (const TokenId token : PromptTokens(*tools.model, tools.told, text)) {
      ids += (ids.empty() ? "" : ",") + std::to_string(token);
    }
    const std::string begin = R"({"name": ")" + name + R"(", "parameters": )";
    const auto found = [&](const std::string& beams) {
      Connection c(server->port());
      const Answer answer = c.Post(
          "/v1/completions",
          R"({"max_tokens":48,"prompt":[)" + ids +
              R"(],"search":{"length_penalty":0.5,"num_beams":)" + beams +
              R"(},"response_format":{"type":"structural_tag","format":{"type":"tag","begin":)" +
              json::Quote(begin) + R"(,"content":{"type":"json_schema","json_schema":)" + schema +
              R"(},"end":"}"}}})");
      EXPECT_EQ(answer.status, 200) << answer.body;
      return At(answer.Json(), "/choices/0/text").text;
    };
    EXPECT_EQ(found("2"), begin + arguments + "}") << text;
    if (found("1") != begin + arguments + "}") ++differs;
    // Token by token: where the search comes to its limit, and for what a search cannot tell.
    const json::Value cut = CallFor(*limited, text, R"(,"whitespace":"compact","prefer_text":0)");
    EXPECT_EQ(begin + At(cut, "/arguments").text + "}", found("1")) << text;
    const json::Value plain =
        CallFor(*server, text, R"(,"whitespace":"compact","prefer_text":0,"logprobs":true)");
    EXPECT_EQ(begin + At(plain, "/arguments").text + "}", found("1")) << text;
  }
  EXPECT_GT(differs, 0);
}

TEST(ToolInstructionTest, PatternsAndBoundsNeedNoSchema) {
  const ToolInstruction told = Told(ToolsOf(""));
  EXPECT_NE(told.with_schemas.find("Schema: "), std::string::npos);  // of a description
  const auto body = json::Parse(
      R"({"tool_choice":"required","tools":[{"type":"function","function":{"name":"wake","parameters":
      {"type":"object","properties":{"time":{"type":"string","pattern":"^[0-9]{2}$","maxLength":2},
      "n":{"type":"integer","minimum":1}},"required":["time"]}}}]})");
  auto asked = ReadConstraints(JsonReader(*body));
  ASSERT_TRUE(asked.ok());
  EXPECT_EQ(Told(*asked).with_schemas.find("Schema: "), std::string::npos);
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

// The client would take it for a whole one.
TEST(ToolInstructionTest, ACallThatAStopStringCutsIsNone) {
  const auto server = StartFor(kNoTools);
  Connection c(server->port());
  const Answer cut = c.Post("/v1/chat/completions", BiasToLetters(R"("stop":"xxxx",)"));
  ASSERT_EQ(cut.status, 200) << cut.body;
  EXPECT_EQ(At(cut.Json(), "/choices/0/finish_reason").text, "stop") << cut.body;
  EXPECT_TRUE(At(cut.Json(), "/choices/0/message/tool_calls").items.empty()) << cut.body;
  const Answer stream =
      c.Post("/v1/chat/completions", BiasToLetters(R"("stream":true,"stop":"xxxx",)"));
  EXPECT_NE(stream.body.find(R"("finish_reason":"stop")"), std::string::npos) << stream.body;
  EXPECT_EQ(stream.body.find(R"("finish_reason":"tool_calls")"), std::string::npos);
  const Answer whole =
      c.Post("/v1/chat/completions", BiasToLetters(R"("max_string":40,"stop":"yyyy",)"));
  EXPECT_EQ(At(whole.Json(), "/choices/0/finish_reason").text, "tool_calls") << whole.body;
}

TEST(ToolInstructionTest, ALongListIsNotScoredAndSaysSo) {
  const auto server = StartFor(kNoTools);
  Connection c(server->port());
  const auto ask = [&](int tools) {
    std::string list;
    for (int i = 0; i < tools; ++i) {
      list += (i > 0 ? "," : "") + std::string(R"({"type":"function","function":{"name":"tool)") +
              std::to_string(i) +
              R"(","parameters":{"type":"object","properties":{"n":{"type":"integer"}},
              "required":["n"],"additionalProperties":false}}})";
    }
    const Answer answer =
        c.Post("/v1/chat/completions",
               BodyWith(R"("max_tokens":60,"tool_choice":"required","prefer_text":2,
                 "parallel_tool_calls":false,"tools":[)" +
                        list + "]"));
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(At(answer.Json(), "/choices/0/message/tool_calls").items.size(), 1u) << answer.body;
    return json::Dump(At(answer.Json(), "/pawl"));
  };
  const std::string few = ask(3), many = ask(40);
  EXPECT_EQ(few.find("first tokens of its name"), std::string::npos) << few;
  EXPECT_EQ(few.find("ignored"), std::string::npos) << few;
  EXPECT_EQ(few.find(R"("model_calls":0)"), std::string::npos) << few;  // of the beams
  EXPECT_EQ(few.find(R"("sampled_tokens":0)"), std::string::npos) << few;
  EXPECT_NE(many.find("first tokens of its name"), std::string::npos) << many;
  EXPECT_NE(many.find(R"("ignored":["/prefer_text"])"), std::string::npos) << many;
}

TEST(ToolInstructionTest, AToolWithoutArgumentsGetsNone) {
  const auto server = StartFor(kNoTools);
  Connection c(server->port());
  const auto arguments = [&](const std::string& parameters, const std::string& more) {
    const Answer answer =
        c.Post("/v1/chat/completions",
               BodyWith(R"("max_tokens":80,"tools":[{"type":"function","function":{"name":"ping")" +
                        parameters + R"(}}],"tool_choice":)" + more));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return At(answer.Json(), "/choices/0/message/tool_calls/0/function/arguments").text;
  };
  const std::string named = R"({"type":"function","function":{"name":"ping"}})";
  for (const char* none :
       {"", R"(,"parameters":{})", R"(,"parameters":{"type":"object"})",
        R"(,"parameters":{"type":"object","properties":{},"required":[]},"strict":true)",
        R"(,"parameters":{"$schema":"http://json-schema.org/draft-07/schema#","properties":{}})"}) {
    EXPECT_EQ(arguments(none, named), "{}") << none;
    EXPECT_EQ(arguments(none, R"("required")"), "{}") << none;
  }
  for (const char* open : {R"(,"parameters":{"type":"object","additionalProperties":true})",
                           R"(,"parameters":{"additionalProperties":{"type":"integer"}})",
                           R"(,"parameters":{"type":"object","minProperties":1})"}) {
    EXPECT_NE(arguments(open, named), "{}") << open;
  }
}

// One tool, or one that is named, is not chosen; its arguments are preferred from the request too.
TEST(ToolInstructionTest, TheArgumentsOfOneToolAreThoseOfTheRequest) {
  const auto server = StartFor(kNoTools);
  Connection c(server->port());
  const std::string named = R"(,"tool_choice":{"type":"function","function":{"name":"set_email"}})";
  const std::string alone = std::string(R"(,"tools":[)" PAWL_TEST_TOOL("set_email", "Writes.") "]");
  const auto who = [&](const std::string& more) {
    const Answer answer = c.Post("/v1/chat/completions", BodyWith(R"("max_tokens":48)" + more));
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(At(answer.Json(), "/pawl/ignored").items.size(), 0) << answer.body;
    const std::string call =
        At(answer.Json(), "/choices/0/message/tool_calls/0/function/arguments").text;
    const Result<json::Value> arguments = json::Parse(call);
    EXPECT_TRUE(arguments.ok()) << answer.body;
    return arguments.ok() ? At(*arguments, "/who").text : "";
  };
  const std::string text = "Weather in Bern?";  // the message of BodyWith
  int differs = 0;
  for (const std::string& tools :
       {"," + std::string(kFourTools) + named, alone + R"(,"tool_choice":"required")"}) {
    EXPECT_NE(text.find(who(tools + R"(,"prefer_text":1000)")), std::string::npos) << tools;
    if (text.find(who(tools + R"(,"prefer_text":0)")) == std::string::npos) ++differs;
  }
  EXPECT_GT(differs, 0);
}

TEST(ToolInstructionTest, APreferenceIsForCallsAndRecords) {
  const auto server = StartFor(kNoTools);
  Connection c(server->port());
  const auto city = [&](const std::string& more) {
    const Answer answer = c.Post(
        "/v1/chat/completions",
        R"({"messages":[{"role":"user","content":"Weather in Bern?"}],"temperature":9,"seed":1,)"
        R"("response_format":{"type":"json_schema","json_schema":{"name":"p","schema":{)"
        R"("type":"object","properties":{"city":{"type":"string","pattern":"^B[a-z]{3}$"}},)"
        R"("required":["city"],"additionalProperties":false}}})" +
            more + "}");
    EXPECT_EQ(At(answer.Json(), "/pawl/ignored").items.size(), 0) << answer.body;
    return At(*json::Parse(At(answer.Json(), "/choices/0/message/content").text), "/city").text;
  };
  EXPECT_EQ(city(R"(,"prefer_text":1000)"), "Bern");
  EXPECT_NE(city(""), "Bern");
  const Answer text = c.Post("/v1/chat/completions", BodyWith(R"("max_tokens":4,"prefer_text":2)"));
  EXPECT_EQ(At(text.Json(), "/pawl/ignored/0").text, "/prefer_text") << text.body;
  const Answer wrong =
      c.Post("/v1/chat/completions", BodyWith(R"("max_tokens":4,"prefer_text":-1)"));
  EXPECT_EQ(wrong.status, 400) << wrong.body;
  EXPECT_EQ(At(wrong.Json(), "/error/param").text, "/prefer_text") << wrong.body;
}

}  // namespace
}  // namespace pawl::server
