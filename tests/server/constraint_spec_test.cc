// Every spelling of a constraint, and every way to get one wrong, as a table.
#include "src/server/constraint_spec.h"

#include <gtest/gtest.h>

#include <string>

#include "src/engine/output_plan.h"

namespace pawl::server {
namespace {

using Kind = ConstraintSpec::Kind;

Result<RequestConstraints> Read(const std::string& body) {
  const auto value = json::Parse(body);
  EXPECT_TRUE(value.ok()) << body;
  return ReadConstraints(JsonReader(*value));
}

struct Good {
  const char* body;
  Kind kind;
  const char* text;
  const char* pointer;
  bool deprecated = false;
};

TEST(ConstraintSpecTest, EverySpellingIsRead) {
  const std::string s = R"({"b":1.50,"a":2})";  // keys and numbers stay as they are
  const Good kCases[] = {
      {R"({})", Kind::kNone, "", ""},
      {R"({"response_format":null,"tools":[],"tool_choice":"none"})", Kind::kNone, "", ""},
      {R"({"response_format":{"type":"text"}})", Kind::kNone, "", ""},
      {R"({"response_format":{"type":"json_object"}})", Kind::kJsonSchema, R"({"type":"object"})",
       "#/response_format"},
      {R"({"response_format":{"type":"json_object","schema":{"b":1.50,"a":2}}})", Kind::kJsonSchema,
       s.c_str(), "#/response_format/schema"},
      {R"({"response_format":{"type":"json_schema","schema":{"b":1.50,"a":2}}})", Kind::kJsonSchema,
       s.c_str(), "#/response_format/schema"},
      {R"({"response_format":{"type":"json_schema","json_schema":
        {"name":"x","strict":true,"schema":{"b":1.50,"a":2}}}})",
       Kind::kJsonSchema, s.c_str(), "#/response_format/json_schema/schema"},
      {R"({"response_format":{"type":"json_schema","json_schema":{"name":"x","strict":false}}})",
       Kind::kJsonSchema, R"({"type":"object"})", "#/response_format/json_schema"},
      {R"({"response_format":{"type":"json_schema","json_schema":{"type":"integer"}}})",
       Kind::kJsonSchema, R"({"type":"integer"})", "#/response_format/json_schema"},
      {R"({"response_format":{"type":"grammar","grammar":"root ::= \"a\""}})", Kind::kGrammar,
       "root ::= \"a\"", "#/response_format/grammar"},
      {R"({"response_format":{"type":"regex","pattern":"a+"}})", Kind::kRegex, "a+",
       "#/response_format/pattern"},
      {R"({"response_format":{"type":"structural_tag","format":{"type":"any_text"}}})",
       Kind::kStructuralTag, R"({"type":"structural_tag","format":{"type":"any_text"}})",
       "#/response_format"},
      {R"({"text":{"format":{"type":"json_schema","name":"x","schema":{"b":1.50,"a":2}}}})",
       Kind::kJsonSchema, s.c_str(), "#/text/format/schema"},
      {R"({"structured_outputs":{"json":{"b":1.50,"a":2}}})", Kind::kJsonSchema, s.c_str(),
       "#/structured_outputs/json"},
      {R"({"structured_outputs":{"json":"{\"b\":1.50,\"a\":2}"}})", Kind::kJsonSchema, s.c_str(),
       "#/structured_outputs/json"},
      {R"({"structured_outputs":{"regex":"a|b","json":null}})", Kind::kRegex, "a|b",
       "#/structured_outputs/regex"},
      {R"({"structured_outputs":{"json_object":true}})", Kind::kJsonSchema, R"({"type":"object"})",
       "#/structured_outputs/json_object"},
      {R"({"structured_outputs":{"grammar":"start: \"a\""}})", Kind::kGrammar, "start: \"a\"",
       "#/structured_outputs/grammar"},
      {R"({"guided_json":{"b":1.50,"a":2}})", Kind::kJsonSchema, s.c_str(), "#/guided_json", true},
      {R"({"guided_regex":"x"})", Kind::kRegex, "x", "#/guided_regex", true},
      {R"({"guided_grammar":"root ::= \"a\""})", Kind::kGrammar, "root ::= \"a\"",
       "#/guided_grammar", true},
      {R"({"regex":"x"})", Kind::kRegex, "x", "#/regex"},
      {R"({"ebnf":"root ::= \"a\""})", Kind::kGrammar, "root ::= \"a\"", "#/ebnf"},
      {R"({"grammar":"root ::= \"a\""})", Kind::kGrammar, "root ::= \"a\"", "#/grammar"},
      {R"({"grammar":""})", Kind::kNone, "", ""},
      {R"({"json_schema":{"b":1.50,"a":2}})", Kind::kJsonSchema, s.c_str(), "#/json_schema"},
      {R"({"format":"json"})", Kind::kJsonSchema, R"({"type":"object"})", "#/format"},
      {R"({"format":{"b":1.50,"a":2}})", Kind::kJsonSchema, s.c_str(), "#/format"},
  };
  for (const Good& one : kCases) {
    const auto read = Read(one.body);
    ASSERT_TRUE(read.ok()) << one.body << ": " << read.error().ToString();
    EXPECT_EQ(read->answer.kind, one.kind) << one.body;
    EXPECT_EQ(read->answer.text, one.text) << one.body;
    EXPECT_EQ(read->answer.pointer, one.pointer) << one.body;
    EXPECT_EQ(read->answer.deprecated, one.deprecated) << one.body;
  }
  const auto choice = Read(R"({"structured_outputs":{"choice":["a","b"]}})");
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->answer.choices, (std::vector<std::string>{"a", "b"}));
}

TEST(ConstraintSpecTest, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"response_format":"json"})", "#/response_format"},
      {R"({"response_format":{}})", "#/response_format/type"},
      {R"({"response_format":{"type":"xml"}})", "#/response_format/type"},
      {R"({"response_format":{"type":"json_schema"}})", "#/response_format/json_schema"},
      {R"({"response_format":{"type":"json_schema","json_schema":{"schema":"{}"}}})",
       "#/response_format/json_schema/schema"},
      {R"({"response_format":{"type":"json_schema","json_schema":{"schema":{},"strict":1}}})",
       "#/response_format/json_schema/strict"},
      {R"({"response_format":{"type":"json_object"},"guided_regex":"a"})", "#/guided_regex"},
      {R"({"structured_outputs":{"json":{},"regex":"a"}})", "#/structured_outputs/regex"},
      {R"({"structured_outputs":{}})", "#/structured_outputs"},
      {R"({"structured_outputs":{"json_object":false}})", "#/structured_outputs"},
      {R"({"structured_outputs":{"json":""}})", "#/structured_outputs/json"},
      {R"({"structured_outputs":{"json":"{"}})", "#/structured_outputs/json"},
      {R"({"structured_outputs":{"regex":""}})", "#/structured_outputs/regex"},
      {R"({"structured_outputs":{"choice":[]}})", "#/structured_outputs/choice"},
      {R"({"structured_outputs":{"choice":["a",1]}})", "#/structured_outputs/choice/1"},
      {R"({"structured_outputs":{"choices":["a"]}})", "#/structured_outputs/choices"},
      {R"({"guided_whitespace_pattern":" "})", "#/guided_whitespace_pattern"},
      {R"({"whitespace":"any"})", "#/whitespace"},
      {R"({"format":"xml"})", "#/format"},
      {R"({"tools":{}})", "#/tools"},
      {R"({"tools":[{"type":"web_search"}]})", "#/tools/0/type"},
      {R"({"tools":[{"type":"function","function":{}}]})", "#/tools/0/function/name"},
      {R"({"tools":[{"type":"function","function":{"name":"a b"}}]})", "#/tools/0/function/name"},
      {R"({"tools":[{"function":{"name":"a"}},{"function":{"name":"a"}}]})",
       "#/tools/1/function/name"},
      {R"({"tools":[{"function":{"name":"a","parameters":[]}}]})", "#/tools/0/function/parameters"},
      {R"({"tools":[{"type":"custom","custom":{"name":"a","format":{"type":"grammar","grammar":
        {"syntax":"bnf","definition":"x"}}}}]})",
       "#/tools/0/custom/format/grammar/syntax"},
      {R"({"tool_choice":"required"})", "#/tool_choice"},
      {R"({"tool_choice":"always","tools":[{"function":{"name":"a"}}]})", "#/tool_choice"},
      {R"({"tool_choice":{"type":"function","function":{"name":"b"}},
        "tools":[{"function":{"name":"a"}}]})",
       "#/tool_choice/function/name"},
      {R"({"tool_choice":{"type":"huh","name":"a"},"tools":[{"function":{"name":"a"}}]})",
       "#/tool_choice/type"},
      {R"({"tool_choice":{},"tools":[{"function":{"name":"a"}}]})", "#/tool_choice/type"},
      {R"({"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":
        [{"type":"function","function":{"name":"b"}}]}},"tools":[{"function":{"name":"a"}}]})",
       "#/tool_choice/allowed_tools/tools/0/function/name"},
      {R"({"parallel_tool_calls":"yes"})", "#/parallel_tool_calls"},
  };
  for (const auto& [body, place] : kCases) {
    const auto read = Read(body);
    ASSERT_FALSE(read.ok()) << body;
    EXPECT_EQ(read.error().place, place) << body << ": " << read.error().ToString();
  }
}

// What nothing stops is bounded by its bytes.
TEST(ConstraintSpecTest, RegexesAndChoicesHaveABound) {
  const std::string some(size_t{512} << 10, 'a'), most(size_t{1} << 20, 'a');
  const std::pair<std::string, std::string> kCases[] = {
      {R"({"structured_outputs":{"regex":")" + most + "\"}}", ""},
      {R"({"structured_outputs":{"regex":")" + most + "a\"}}", "#/structured_outputs/regex"},
      {R"({"guided_choice":[")" + some + R"(",")" + some + "\"]}", ""},
      {R"({"guided_choice":[")" + some + R"(",")" + some + R"(","b"]})", "#/guided_choice"},
  };
  for (const auto& [body, place] : kCases) {
    const auto asked = Read(body);
    EXPECT_EQ(asked.ok(), place.empty());
    if (asked.ok() || place.empty()) continue;
    EXPECT_EQ(asked.error().place, place);
    EXPECT_EQ(asked.error().code, ErrorCode::kLimit);
  }
}

TEST(ConstraintSpecTest, ToolChoices) {
  const std::string tools =
      R"("tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object"}}},
      {"type":"function","name":"b","strict":true},
      {"type":"custom","custom":{"name":"c","format":{"type":"grammar","grammar":
        {"syntax":"lark","definition":"start: \"x\""}}}}])";
  using Mode = ToolChoice::Mode;
  struct Case {
    const char* choice;
    Mode mode;
    bool named;
    std::vector<size_t> allowed;
  };
  const Case kCases[] = {
      {"", Mode::kAuto, false, {0, 1, 2}},
      {R"(,"tool_choice":"auto")", Mode::kAuto, false, {0, 1, 2}},
      {R"(,"tool_choice":"none")", Mode::kNone, false, {0, 1, 2}},
      {R"(,"tool_choice":"required")", Mode::kRequired, false, {0, 1, 2}},
      {R"(,"tool_choice":{"type":"function","function":{"name":"b"}})", Mode::kRequired, true, {1}},
      {R"(,"tool_choice":{"type":"function","name":"a"})", Mode::kRequired, true, {0}},
      {R"(,"tool_choice":{"type":"custom","custom":{"name":"c"}})", Mode::kRequired, true, {2}},
      {R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":
        [{"type":"function","function":{"name":"b"}},{"type":"custom","custom":{"name":"c"}}]}})",
       Mode::kRequired,
       false,
       {1, 2}},
      {R"(,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":
        [{"type":"function","name":"a"}]})",
       Mode::kAuto,
       false,
       {0}},
  };
  for (const Case& one : kCases) {
    const auto read = Read("{" + tools + one.choice + "}");
    ASSERT_TRUE(read.ok()) << one.choice << read.error().ToString();
    EXPECT_EQ(read->choice.mode, one.mode) << one.choice;
    EXPECT_EQ(read->choice.named, one.named) << one.choice;
    EXPECT_EQ(read->choice.allowed, one.allowed) << one.choice;
    EXPECT_EQ(read->tools[2].kind, ToolSpec::Kind::kCustom);
    EXPECT_EQ(read->tools[2].input.kind, Kind::kGrammar);
  }
}

TEST(OutputPlanTest, TemplatesGiveTheirTraitsAway) {
  EXPECT_EQ(TraitsOf("a <tool_call> b").format, ChatFormatNamed("hermes"));
  EXPECT_EQ(TraitsOf("<tool_call><function=f><parameter=a>").format, ChatFormatNamed("qwen_xml"));
  EXPECT_EQ(TraitsOf("[TOOL_CALLS]").format, ChatFormatNamed("mistral"));
  EXPECT_EQ(TraitsOf("nothing").format, nullptr);
  EXPECT_EQ(PlainTraits().format, ChatFormatNamed("plain"));
  const ModelTraits traits = TraitsOf("<think> </think>");
  EXPECT_EQ(traits.think_close, "</think>");
  EXPECT_EQ(ThinkingStartOf("user\nassistant\n", traits), ThinkingStart::kMay);
  EXPECT_EQ(ThinkingStartOf("assistant\n<think>\n", traits), ThinkingStart::kOpen);
  EXPECT_EQ(ThinkingStartOf("assistant\n<think>\n\n</think>\n\n", traits), ThinkingStart::kOff);
  EXPECT_EQ(ThinkingStartOf("<think>", TraitsOf("")), ThinkingStart::kOff);
}

TEST(OutputPlanTest, AConstraintAloneStaysWhatItIs) {
  const auto read = Read(R"({"response_format":{"type":"json_object"}})");
  const auto plan = MakePlan(*read, TraitsOf("<think></think><tool_call>"), ThinkingStart::kOff);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->grammar.kind, Kind::kJsonSchema);
  const auto thinking =
      MakePlan(*read, TraitsOf("<think></think><tool_call>"), ThinkingStart::kMay);
  EXPECT_EQ(thinking->grammar.kind, Kind::kStructuralTag);
}

}  // namespace
}  // namespace pawl::server
