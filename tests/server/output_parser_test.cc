// Outputs taken apart: random outputs of each syntax are sampled from the very grammar that a plan
// asks for, built from known parts, and cut at random places. However they are cut, the deltas add
// up to the same parts.
#include "src/engine/output_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/random.h"
#include "src/server/constraint_spec.h"
#include "tests/support/output_parts.h"
#include "tests/support/vocabularies.h"

namespace pawl::server {
namespace {

OutputParts Parse(const OutputPlan& plan, const std::string& text, uint64_t seed) {
  OutputParser parser(plan);
  OutputParts parts;
  size_t at = 0;
  uint64_t draw = 0;
  while (at < text.size()) {
    const size_t most = seed == 0 ? text.size() : seed == 1 ? 1 : 7;
    const size_t n =
        seed <= 1 ? most
                  : 1 + static_cast<size_t>(UniformAt(seed, draw++, 0) * static_cast<float>(most));
    AddDeltas(parser.Feed(std::string_view(text).substr(at, n)), parts);
    at += n;
  }
  AddDeltas(parser.Finish(), parts);
  return parts;
}

// All bytes are tokens, so the grammar can be asked about any text.
bool Fits(const OutputPlan& plan, const std::string& text) {
  const auto vocabulary = VocabularyOf(AllBytes());
  const Compiler compiler(vocabulary);
  GrammarOptions options;
  options.json_schema.whitespace = JsonSchemaOptions::Whitespace::kCompact;
  Result<Grammar> grammar =
      plan.grammar.kind == ConstraintSpec::Kind::kStructuralTag
          ? compiler.CompileStructuralTag(plan.grammar.text, options)
          : compiler.CompileJsonSchema(plan.grammar.text, options.json_schema);
  EXPECT_TRUE(grammar.ok()) << grammar.error().ToString() << plan.grammar.text;
  if (!grammar.ok()) return false;
  const auto state = grammar->Start().Advance(text);
  return state.has_value() && state->accepting();
}

RequestConstraints Asked(const std::string& body) {
  const auto value = json::Parse(body);
  EXPECT_TRUE(value.ok()) << value.error().ToString();
  const auto asked = ReadConstraints(JsonReader(*value));
  EXPECT_TRUE(asked.ok()) << asked.error().ToString();
  return *asked;
}

constexpr const char* kTools =
    R"("tools":[{"type":"function","function":{"name":"get","parameters":{"type":"object",
    "properties":{"s":{"type":"string"},"n":{"type":"integer"}},"required":["s","n"],
    "additionalProperties":false}}},
    {"type":"function","function":{"name":"get_all","parameters":{"type":"object",
    "properties":{"x":{"type":"array","items":{"type":"string"}}},"required":["x"],
    "additionalProperties":false}}}])";

std::string Body(const std::string& more) { return "{" + std::string(kTools) + more + "}"; }

struct Rendered {
  const char* syntax;
  // Two calls: get and get_all.
  std::string calls;
};

const std::string kGet = R"({"s":"é \"}]</tool_call> 😀","n":-3})";
const std::string kAll = R"({"x":["{","\\"]})";

// What asks for several calls: a model without a chat template makes one unless it is asked for.
std::string Several(std::string_view syntax) {
  return syntax == "plain" ? R"(,"parallel_tool_calls":true)" : "";
}

std::vector<Rendered> AllSyntaxes() {
  const auto hermes = [](const std::string& name, const std::string& arguments) {
    return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + arguments +
           "}\n</tool_call>";
  };
  const auto mistral = [](const std::string& name, const std::string& arguments) {
    return "{\"name\": \"" + name + "\", \"arguments\": " + arguments + "}";
  };
  const auto llama = [](const std::string& name, const std::string& arguments) {
    return "{\"name\": \"" + name + "\", \"parameters\": " + arguments + "}";
  };
  const auto r1 = [](const std::string& name, const std::string& arguments) {
    return "<｜tool▁call▁begin｜>function<｜tool▁sep｜>" + name + "\n```json\n" + arguments +
           "\n```<｜tool▁call▁end｜>";
  };
  const auto v31 = [](const std::string& name, const std::string& arguments) {
    return "<｜tool▁call▁begin｜>" + name + "<｜tool▁sep｜>" + arguments + "<｜tool▁call▁end｜>";
  };
  const std::string open = "<｜tool▁calls▁begin｜>", close = "<｜tool▁calls▁end｜>";
  return {
      {"plain", llama("get", kGet) + "; " + llama("get_all", kAll)},
      {"hermes", hermes("get", kGet) + "\n" + hermes("get_all", kAll)},
      {"mistral", "[TOOL_CALLS] [" + mistral("get", kGet) + ", " + mistral("get_all", kAll) + "]"},
      {"deepseek_r1", open + r1("get", kGet) + "\n" + r1("get_all", kAll) + close},
      {"deepseek_v3_1", open + v31("get", kGet) + v31("get_all", kAll) + close},
  };
}

TEST(OutputParserTest, CallsOfEverySyntaxHoweverTheyAreCut) {
  for (const Rendered& rendered : AllSyntaxes()) {
    ModelTraits traits;
    traits.format = ChatFormatNamed(rendered.syntax);
    traits.think_open = "<think>";
    traits.think_close = "</think>";
    for (const bool required : {false, true}) {
      for (const bool thinks : {false, true}) {
        const auto plan = MakePlan(Asked(Body((required ? R"(,"tool_choice":"required")" : "") +
                                              Several(rendered.syntax))),
                                   traits, thinks ? ThinkingStart::kMay : ThinkingStart::kOff);
        ASSERT_TRUE(plan.ok());
        OutputParts expected;
        expected.names = {"get", "get_all"};
        expected.arguments = {kGet, kAll};
        expected.begun = expected.ended = 2;
        std::string text = rendered.calls;
        if (!required) {
          expected.content = "Let me <tool look: ";
          text = expected.content + text;
        }
        if (thinks) {
          expected.reasoning = "hm </thin> ä";
          text = "<think>" + expected.reasoning + "</think>\n\n" + text;
        }
        const bool list = text.find("calls▁begin") != std::string::npos ||
                          text.find("[TOOL_CALLS]") != std::string::npos;
        // Between calls of an `auto` text stands text: the separator of lists is not in it.
        EXPECT_TRUE(Fits(*plan, text)) << list << text << "\n" << plan->grammar.text;
        for (uint64_t seed = 0; seed < 20; ++seed) {
          EXPECT_EQ(Parse(*plan, text, seed), expected) << text << " seed " << seed;
        }
      }
    }
  }
}

TEST(OutputParserTest, ParallelCallsAreCountedByTheGrammar) {
  for (const Rendered& rendered : AllSyntaxes()) {
    ModelTraits traits;
    traits.format = ChatFormatNamed(rendered.syntax);
    for (const char* choice : {"auto", "required"}) {
      const std::string more = std::string(R"(,"tool_choice":")") + choice + "\"";
      const auto many =
          MakePlan(Asked(Body(more + Several(rendered.syntax))), traits, ThinkingStart::kOff);
      const auto unsaid = MakePlan(Asked(Body(more)), traits, ThinkingStart::kOff);
      const auto one = MakePlan(Asked(Body(more + R"(,"parallel_tool_calls":false)")), traits,
                                ThinkingStart::kOff);
      EXPECT_TRUE(Fits(*many, rendered.calls)) << rendered.calls;
      EXPECT_FALSE(Fits(*one, rendered.calls)) << rendered.calls;
      EXPECT_EQ(Fits(*unsaid, rendered.calls), std::string_view(rendered.syntax) != "plain");
      EXPECT_EQ(Fits(*many, ""), std::string_view(choice) == "auto");
      EXPECT_EQ(Fits(*one, ""), std::string_view(choice) == "auto");
      EXPECT_EQ(Fits(*one, "text"), std::string_view(choice) == "auto");
    }
  }
}

TEST(OutputParserTest, ToolsAndAFormatAreAUnion) {
  for (const Rendered& rendered : AllSyntaxes()) {
    ModelTraits traits;
    traits.format = ChatFormatNamed(rendered.syntax);
    const auto plan =
        MakePlan(Asked(Body(R"(,"response_format":{"type":"json_schema","json_schema":{"name":"x",
          "schema":{"type":"object","properties":{"k":{"type":"integer"}},"required":["k"],
          "additionalProperties":false}}})" +
                            Several(rendered.syntax))),
                 traits, ThinkingStart::kOff);
    ASSERT_TRUE(plan.ok());
    EXPECT_TRUE(Fits(*plan, R"({"k":1})"));
    EXPECT_TRUE(Fits(*plan, rendered.calls));
    EXPECT_FALSE(Fits(*plan, "text"));
    EXPECT_FALSE(Fits(*plan, R"({"k":1})" + rendered.calls));
    OutputParts answer;
    answer.content = R"({"k":1})";
    for (uint64_t seed = 0; seed < 10; ++seed) {
      EXPECT_EQ(Parse(*plan, answer.content, seed), answer);
    }
  }
}

TEST(OutputParserTest, ParametersBecomeJson) {
  ModelTraits traits;
  traits.format = ChatFormatNamed("qwen_xml");
  const auto plan =
      MakePlan(Asked(Body(R"(,"tool_choice":"required")")), traits, ThinkingStart::kOff);
  const std::string text =
      "<tool_call>\n<function=get><parameter=s>a \"b\" é</parameter>"
      "<parameter=n> 7 </parameter></function>\n</tool_call>";
  EXPECT_TRUE(Fits(*plan, text)) << plan->grammar.text;
  OutputParts expected;
  expected.names = {"get"};
  expected.arguments = {R"({"s":"a \"b\" é","n":7})"};
  expected.begun = expected.ended = 1;
  for (uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(Parse(*plan, text, seed), expected);
}

TEST(OutputParserTest, CustomToolsGiveTheirText) {
  const std::string tools =
      R"({"tools":[{"type":"custom","custom":{"name":"re","format":{"type":"grammar","grammar":
      {"syntax":"regex","definition":"[a-z\"\\n]+"}}}},
      {"type":"custom","custom":{"name":"lark","format":{"type":"grammar","grammar":
      {"syntax":"lark","definition":"start: \"x=\" /[0-9]+/"}}}}],"tool_choice":"required"})";
  ModelTraits traits;
  traits.format = ChatFormatNamed("hermes");
  const auto plan = MakePlan(Asked(tools), traits, ThinkingStart::kOff);
  ASSERT_TRUE(plan.ok());
  const std::string text =
      "<tool_call>\n{\"name\": \"re\", \"arguments\": {\"input\":\"a\\\"b\\nc\"}}\n</tool_call>\n"
      "<tool_call>\n{\"name\": \"lark\"}\nx=12\n</tool_call>";
  EXPECT_TRUE(Fits(*plan, text)) << plan->grammar.text;
  OutputParts expected;
  expected.names = {"re", "lark"};
  expected.arguments = {"a\"b\nc", "x=12"};
  expected.begun = expected.ended = 2;
  for (uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(Parse(*plan, text, seed), expected);
}

TEST(OutputParserTest, ThinkingThatThePromptOpened) {
  ModelTraits traits;
  traits.think_open = "<think>";
  traits.think_close = "</think>";
  const auto asked = Asked(R"({"response_format":{"type":"json_object"}})");
  const auto plan = MakePlan(asked, traits, ThinkingStart::kOpen);
  EXPECT_TRUE(Fits(*plan, "so {\n</think>\n\n{\"a\":1}"));
  EXPECT_TRUE(Fits(*plan, "</think>{}"));
  EXPECT_FALSE(Fits(*plan, "{}"));
  OutputParts expected;
  expected.reasoning = "so {\n";
  expected.content = R"({"a":1})";
  for (uint64_t seed = 0; seed < 10; ++seed) {
    EXPECT_EQ(Parse(*plan, "so {\n</think>\n\n{\"a\":1}", seed), expected);
  }
  // Cut within the thoughts: they are thoughts, and no content.
  OutputParts cut;
  cut.reasoning = "so </thi";
  for (uint64_t seed = 0; seed < 10; ++seed) EXPECT_EQ(Parse(*plan, "so </thi", seed), cut);
}

}  // namespace
}  // namespace pawl::server
