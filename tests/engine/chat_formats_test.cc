// Every format of chats: outputs are rendered by hand (chat_renderers.h), the grammar of the plan
// accepts them, and the parser reads what was rendered, whole and cut at every byte.
#include "grammar/tags/formats/chat_formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/compiler.h"
#include "src/engine/output_parser.h"
#include "tests/engine/chat_renderers.h"
#include "tests/support/output_parts.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

// Arguments as JSON in one spelling.
void Normalize(OutputParts& parts) {
  for (std::string& text : parts.arguments) {
    if (const auto value = json::Parse(text); value.ok()) text = json::Dump(*value);
  }
}

// In two pieces, the first of `cut` bytes; 0: one byte at a time.
OutputParts ParseCut(const OutputPlan& plan, std::string_view text, size_t cut) {
  OutputParser parser(plan);
  OutputParts parts;
  if (cut == 0) {
    for (size_t i = 0; i < text.size(); ++i) AddDeltas(parser.Feed(text.substr(i, 1)), parts);
  } else {
    AddDeltas(parser.Feed(text.substr(0, cut)), parts);
    AddDeltas(parser.Feed(text.substr(cut)), parts);
  }
  AddDeltas(parser.Finish(), parts);
  Normalize(parts);
  return parts;
}

void ExpectParts(const OutputPlan& plan, const std::string& text, const OutputParts& expected,
                 const char* format) {
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const OutputParts parts = ParseCut(plan, text, cut);
    ASSERT_EQ(parts.arguments, expected.arguments) << format << " cut at " << cut << ": " << text;
    ASSERT_EQ(parts.names, expected.names) << format << " cut at " << cut << ": " << text;
    ASSERT_EQ(parts.content, expected.content) << format << " cut at " << cut << ": " << text;
    ASSERT_EQ(parts.reasoning, expected.reasoning) << format << " cut at " << cut << ": " << text;
    ASSERT_EQ(parts.begun, expected.begun) << format;
    ASSERT_EQ(parts.ended, expected.ended) << format;
  }
}

json::Value JsonOf(const std::string& text) {
  auto value = json::Parse(text);
  EXPECT_TRUE(value.ok()) << text;
  return *std::move(value);
}

// The names of two tools begin alike, and one is that of a keyword of the formats.
constexpr const char* kSchemas[][2] = {
    {"now", R"({"type":"object","properties":{},"additionalProperties":false})"},
    {"put", R"({"type":"object","properties":{"flag":{"type":"boolean"},"n":{"type":"integer"},
      "s":{"type":"string"}},"required":["s"],"additionalProperties":false})"},
    {"put_all", R"({"type":"object","properties":{"l":{"type":"array","items":{"type":"array",
      "items":{"type":"string"}}},"o":{"type":"object","properties":{"e":{"enum":["a b","c"]},
      "k":{"type":"array","items":{"type":"integer"}},"t":{"type":"object","properties":{
      "u":{"type":"string"},"z":{"type":"null"}},"required":["u"],"additionalProperties":false}},
      "required":["k"],"additionalProperties":false}},"required":["o"],
      "additionalProperties":false})"}};

RequestConstraints AskedFor(ToolChoice::Mode mode, bool answer = false) {
  RequestConstraints asked;
  for (const auto& [name, schema] : kSchemas) {
    ToolSpec tool;
    tool.name = name;
    tool.input.kind = ConstraintSpec::Kind::kJsonSchema;
    tool.input.text = json::Dump(JsonOf(schema));
    asked.tools.push_back(std::move(tool));
    asked.choice.allowed.push_back(asked.choice.allowed.size());
  }
  asked.choice.mode = mode;
  if (answer) {
    asked.answer.kind = ConstraintSpec::Kind::kJsonSchema;
    asked.answer.text = R"({"type":"object","properties":{"k":{"type":"integer"}},
      "required":["k"],"additionalProperties":false})";
  }
  return asked;
}

ModelTraits TraitsBy(const ChatRenderer& renderer) {
  const ChatFormat* format = ChatFormatNamed(renderer.format);
  EXPECT_NE(format, nullptr) << renderer.format;
  ModelTraits traits;
  traits.format = format;
  if (!renderer.thoughts || format == nullptr) return traits;
  const bool own = !format->think_close.empty();
  const bool bracket = std::string_view(renderer.format) == "ministral";
  traits.think_open = own ? format->think_open : bracket ? "[THINK]" : "<think>";
  traits.think_close = own ? format->think_close : bracket ? "[/THINK]" : "</think>";
  return traits;
}

struct Compiled {
  OutputPlan plan;
  Grammar grammar;
  bool Accepts(std::string_view text) const {
    const auto state = grammar.Start().Advance(text);
    return state.has_value() && state->accepting();
  }
};

Result<Compiled> CompilePlan(const RequestConstraints& asked, const ModelTraits& traits,
                             ThinkingStart thinking) {
  static const Compiler* compiler = new Compiler(VocabularyOf(AllBytes()));
  auto plan = MakePlan(asked, traits, thinking);
  if (!plan.ok()) return plan.error();
  GrammarOptions options;
  options.json_schema.whitespace = JsonSchemaOptions::Whitespace::kCompact;
  auto grammar = compiler->CompileStructuralTag(plan->grammar.text, options);
  if (!grammar.ok()) {
    Error error = grammar.error();
    error.message += " in " + plan->grammar.text;
    return error;
  }
  return Compiled{*std::move(plan), *std::move(grammar)};
}

std::vector<std::vector<RenderedCall>> Cases(const std::string& excluded) {
  std::vector<std::vector<RenderedCall>> cases;
  const auto put = [](const std::string& s) {
    return RenderedCall{"put", JsonOf("{\"s\":" + json::Quote(s) + "}")};
  };
  cases.push_back({{"now", JsonOf("{}")}});
  for (const char* text : {"plain",
                           "",
                           "say \"hi\" it's",
                           "a\\b\\\\n",
                           "line\nfeeds\n\nand\ttabs",
                           "\nfirst",
                           " x ",
                           "é漢😀",
                           "7",
                           "true",
                           "null",
                           "[1]",
                           "{\"a\": 1}",
                           "<tool_call> </tool_call> <think>",
                           "[TOOL_CALLS][ARGS]{} ]</tool_calls>",
                           "<arg_key>k</arg_key> </function> <parameter=s>",
                           "<|end|><|start|>assistant<|channel|>final<|message|> <|call|>",
                           "), now() ]<|tool_call_end|> 'a', b=\"c\"",
                           "}<tool_call|> ,n:3 {s:",
                           ">>>all\n>>>now\n{}",
                           "<![CDATA[ < & </param>",
                           "</parameter </arg_value <|\"| ]<]minimax",
                           "$NAME $INDEX $"}) {
    if (!excluded.empty() && std::string_view(text).find(excluded) != std::string_view::npos)
      continue;
    cases.push_back({put(text)});
  }
  cases.push_back({{"put", JsonOf(R"({"flag":true,"n":-3,"s":"é \"q\""})")}});
  cases.push_back({{"put", JsonOf(R"({"n":0,"s":"x"})")}, {"now", JsonOf("{}")}});
  cases.push_back({{"put_all", JsonOf(R"({"l":[["x","y \"z\""],["é"]],"o":{"e":"a b","k":[1,2],
    "t":{"u":"v\nw","z":null}}})")}});
  cases.push_back({{"put_all", JsonOf(R"({"l":[],"o":{"k":[]}})")},
                   {"put", JsonOf(R"({"flag":false,"n":12,"s":"a"})")},
                   {"put_all", JsonOf(R"({"o":{"k":[7]}})")}});
  return cases;
}

OutputParts PartsOf(const std::vector<RenderedCall>& calls) {
  OutputParts parts;
  for (const RenderedCall& call : calls) {
    parts.names.push_back(call.name);
    parts.arguments.push_back(json::Dump(call.arguments));
    ++parts.begun;
    ++parts.ended;
  }
  return parts;
}

TEST(ChatFormatsTest, EveryFormatHasARenderer) {
  std::set<std::string_view> rendered;
  for (const ChatRenderer& renderer : ChatRenderers()) rendered.insert(renderer.format);
  for (const ChatFormat* format : ChatFormats()) {
    EXPECT_TRUE(format == &kPlainFormat || rendered.contains(format->name)) << format->name;
  }
  EXPECT_GE(rendered.size(), 24u);
}

TEST(ChatFormatsTest, NamesAndAliasesAreUnique) {
  std::set<std::string_view> names;
  for (const ChatFormat* format : ChatFormats()) {
    EXPECT_TRUE(names.insert(format->name).second) << format->name;
    for (const std::string_view alias : TextsOf(format->aliases)) {
      EXPECT_TRUE(names.insert(alias).second) << alias;
      EXPECT_EQ(ChatFormatNamed(alias), format);
    }
    EXPECT_EQ(ChatFormatNamed(format->name), format);
    EXPECT_TRUE(ToolCallFormatOf(format->name).has_value() || format == &kPlainFormat)
        << format->name;
  }
  EXPECT_EQ(ChatFormatNamed("none"), nullptr);
}

TEST(ChatFormatsTest, CallsAreAcceptedAndReadBack) {
  for (const ChatRenderer& renderer : ChatRenderers()) {
    SCOPED_TRACE(renderer.format);
    const auto required =
        CompilePlan(AskedFor(ToolChoice::Mode::kRequired), TraitsBy(renderer), ThinkingStart::kOff);
    ASSERT_TRUE(required.ok()) << required.error().ToString();
    for (const auto& calls : Cases(renderer.excluded)) {
      const std::string text = renderer.calls(calls);
      EXPECT_TRUE(required->Accepts(text)) << text;
      ExpectParts(required->plan, text, PartsOf(calls), renderer.format);
    }
    EXPECT_FALSE(required->Accepts(renderer.answer("text")));
    EXPECT_FALSE(required->Accepts(renderer.calls({{"put", JsonOf(R"({"n":1})")}})));
    EXPECT_FALSE(required->Accepts(renderer.calls({{"other", JsonOf("{}")}})));
  }
}

TEST(ChatFormatsTest, TextBeforeCallsAndThoughts) {
  const std::vector<RenderedCall> calls = {{"put", JsonOf(R"({"n":1,"s":"<x> \"y\"\n"})")},
                                           {"now", JsonOf("{}")}};
  for (const ChatRenderer& renderer : ChatRenderers()) {
    SCOPED_TRACE(renderer.format);
    for (const bool thinks : {false, true}) {
      if (thinks && !renderer.thoughts) continue;
      const auto plan = CompilePlan(AskedFor(ToolChoice::Mode::kAuto), TraitsBy(renderer),
                                    thinks ? ThinkingStart::kMay : ThinkingStart::kOff);
      ASSERT_TRUE(plan.ok()) << plan.error().ToString();
      const std::string before = thinks ? renderer.thoughts("hm ä <tool") : "";
      OutputParts expected = PartsOf(calls);
      if (thinks) expected.reasoning = ParseCut(plan->plan, before, before.size()).reasoning;
      EXPECT_EQ(expected.reasoning.find("hm ä <tool") != std::string::npos, thinks);
      EXPECT_TRUE(plan->Accepts(before + renderer.calls(calls))) << plan->plan.grammar.text;
      ExpectParts(plan->plan, before + renderer.calls(calls), expected, renderer.format);
      expected.content = "Let me < look: ";
      const std::string text = before + renderer.note(expected.content) + renderer.calls(calls);
      EXPECT_TRUE(plan->Accepts(text)) << text << plan->plan.grammar.text;
      ExpectParts(plan->plan, text, expected, renderer.format);
      OutputParts answer;
      answer.reasoning = expected.reasoning;
      answer.content = "No call é.";
      EXPECT_TRUE(plan->Accepts(before + renderer.answer(answer.content)));
      ExpectParts(plan->plan, before + renderer.answer(answer.content), answer, renderer.format);
    }
  }
}

TEST(ChatFormatsTest, AnAnswerOfASchemaOrCalls) {
  for (const ChatRenderer& renderer : ChatRenderers()) {
    SCOPED_TRACE(renderer.format);
    const auto plan = CompilePlan(AskedFor(ToolChoice::Mode::kAuto, true), TraitsBy(renderer),
                                  ThinkingStart::kOff);
    ASSERT_TRUE(plan.ok()) << plan.error().ToString();
    EXPECT_TRUE(plan->Accepts(renderer.answer(R"({"k":1})")));
    EXPECT_FALSE(plan->Accepts(renderer.answer("text")));
    EXPECT_TRUE(plan->Accepts(renderer.calls({{"now", JsonOf("{}")}})));
    OutputParts answer;
    answer.content = R"({"k":1})";
    ExpectParts(plan->plan, renderer.answer(answer.content), answer, renderer.format);
  }
}

// Where marks are tokens of the vocabulary, texts come token by token, and a mark is one token.
TEST(ChatFormatsTest, MarksThatAreTokens) {
  const std::vector<RenderedCall> calls = {{"put", JsonOf(R"({"n":1,"s":"a \"b\" é"})")},
                                           {"now", JsonOf("{}")}};
  for (const ChatRenderer& renderer : ChatRenderers()) {
    SCOPED_TRACE(renderer.format);
    const std::string before = renderer.thoughts ? renderer.thoughts("hm") : "";
    const std::string text = before + renderer.note("So: ") + renderer.calls(calls);
    // All that stands between < and > or [ and ] is a token, and pairs of letters.
    std::set<std::string> marks;
    for (size_t i = 0; i < text.size(); ++i) {
      const char close = text[i] == '<' ? '>' : text[i] == '[' ? ']' : 0;
      const size_t end = close == 0 ? std::string::npos : text.find(close, i);
      if (end == std::string::npos || end - i < 5 || end - i > 40) continue;
      const std::string mark = text.substr(i, end + 1 - i);
      if (mark.find_first_of(" \n\"=<[", 1) == std::string::npos) marks.insert(mark);
    }
    std::vector<std::string> tokens = AllBytes({"ca", "ll", "\": ", "ar", "{\"", "\"}", "an"});
    const std::vector<std::string> special(marks.begin(), marks.end());
    for (const std::string& mark : special) tokens.push_back(mark);
    const auto vocabulary = VocabularyOf(tokens, special);
    auto plan = MakePlan(AskedFor(ToolChoice::Mode::kAuto), TraitsBy(renderer),
                         renderer.thoughts ? ThinkingStart::kMay : ThinkingStart::kOff);
    ASSERT_TRUE(plan.ok());
    GrammarOptions options;
    options.json_schema.whitespace = JsonSchemaOptions::Whitespace::kCompact;
    const auto grammar = Compiler(vocabulary).CompileStructuralTag(plan->grammar.text, options);
    ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
    OutputParser parser(*plan);
    OutputParts parts;
    std::optional<State> state = grammar->Start();
    for (size_t at = 0; at < text.size();) {
      TokenId token = kNoToken;
      size_t length = 0;
      for (TokenId id = 0; id < vocabulary->size(); ++id) {
        const std::string_view bytes = vocabulary->bytes(id);
        if (bytes.size() > length && std::string_view(text).substr(at).starts_with(bytes)) {
          length = bytes.size();
          token = id;
        }
      }
      state = state->Advance(token);
      ASSERT_TRUE(state.has_value())
          << "token " << vocabulary->bytes(token) << " at " << at << " of " << text;
      AddDeltas(parser.Feed(std::string_view(text).substr(at, length)), parts);
      at += length;
    }
    EXPECT_TRUE(state->accepting()) << text;
    AddDeltas(parser.Finish(), parts);
    Normalize(parts);
    EXPECT_EQ(parts.arguments, PartsOf(calls).arguments);
    EXPECT_EQ(parts.content, "So: ");
  }
}

// Outputs as the families' documentation and model cards have them, with the white space there.
struct TypedOutput {
  const char* format;
  const char* text;
  const char* content;
  std::vector<std::pair<const char*, const char*>> calls;
};

const std::vector<TypedOutput>& TypedOutputs() {
  static const auto* outputs = new std::vector<TypedOutput>{
      {"hermes",
       "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"San Francisco, CA, "
       "USA\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n"
       "</tool_call>",
       "",
       {{"get_weather", R"({"city":"San Francisco, CA, USA"})"}, {"get_time", "{}"}}},
      {"llama3",
       R"({"name": "get_weather", "parameters": {"city": "San Francisco, CA", "days": 2}})",
       "",
       {{"get_weather", R"({"city":"San Francisco, CA","days":2})"}}},
      {"mistral",
       R"([TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Paris, France"}, "id": "VvvODy9mT"}])",
       "",
       {{"get_weather", R"({"city":"Paris, France"})"}}},
      {"mistral",
       R"([TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}}])",
       "",
       {{"get_weather", R"({"city":"Paris"})"}}},
      {"ministral",
       R"(I look.[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}[TOOL_CALLS]get_time[ARGS]{})",
       "I look.",
       {{"get_weather", R"({"city":"Paris"})"}, {"get_time", "{}"}}},
      {"mistral_small",
       R"([TOOL_CALLS]get_weather[CALL_ID]DriBhExw7[ARGS]{"city": "Paris"})",
       "",
       {{"get_weather", R"({"city":"Paris"})"}}},
      {"deepseek_r1",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
       "{\"city\": \"Paris\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "",
       {{"get_weather", R"({"city":"Paris"})"}}},
      {"deepseek_v3_1",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": "
       "\"Hangzhou\"}"
       "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "",
       {{"get_weather", R"({"city":"Hangzhou"})"}}},
      {"deepseek_v3_2",
       "Sure.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke "
       "name=\"get_weather\">\n<｜DSML｜parameter "
       "name=\"city\" string=\"true\">Beijing</｜DSML｜parameter>\n<｜DSML｜parameter "
       "name=\"days\" "
       "string=\"false\">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
       "Sure.\n\n",
       {{"get_weather", R"({"city":"Beijing","days":3})"}}},
      {"glm",
       "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Beijing</arg_value>\n"
       "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
       "",
       {{"get_weather", R"({"city":"Beijing","days":3})"}}},
      {"glm",
       "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Beijing</arg_value></tool_call>"
       "<tool_call>get_time</tool_call>",
       "",
       {{"get_weather", R"({"city":"Beijing"})"}, {"get_time", "{}"}}},
      {"gemma4",
       "<|tool_call>call:get_weather{city:<|\"|>London<|\"|>}<tool_call|>",
       "",
       {{"get_weather", R"({"city":"London"})"}}},
      {"gpt_oss",
       "<|channel|>analysis<|message|>Need to use function get_weather.<|end|><|start|>assistant"
       "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
       "{\"city\":\"San Francisco\"}<|call|>",
       "",
       {{"get_weather", R"({"city":"San Francisco"})"}}},
      {"kimi_k2",
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
       "<|tool_call_argument_begin|>{\"city\": \"Beijing\"}<|tool_call_end|>"
       "<|tool_calls_section_end|>",
       "",
       {{"get_weather", R"({"city":"Beijing"})"}}},
      {"lfm2",
       "<|tool_call_start|>[get_weather(city=\"12345\")]<|tool_call_end|>Checking the current "
       "status of candidate ID 12345.",
       "Checking the current status of candidate ID 12345.",
       {{"get_weather", R"({"city":"12345"})"}}},
      {"lfm2",
       "<|tool_call_start|>[get_weather(city='it\\'s', days=3), get_time()]<|tool_call_end|>",
       "",
       {{"get_weather", R"({"city":"it's","days":3})"}, {"get_time", "{}"}}},
      {"olmo3",
       "<function_calls>\nget_weather(city=\"Paris\", days=2)\nget_time()\n</function_calls>",
       "",
       {{"get_weather", R"({"city":"Paris","days":2})"}, {"get_time", "{}"}}},
      {"minicpm5",
       "<function name=\"get_weather\"><param name=\"city\"><![CDATA[a < b\nc]]></param><param "
       "name=\"days\">2</param></function>",
       "",
       {{"get_weather", R"({"city":"a < b\nc","days":2})"}}},
      {"granite3",
       R"(<|tool_call|>[{"name": "get_weather", "arguments": {"city": "New York"}}])",
       "",
       {{"get_weather", R"({"city":"New York"})"}}},
      {"nemotron",
       R"(<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Rome", "days": 18}}]</TOOLCALL>)",
       "",
       {{"get_weather", R"({"city":"Rome","days":18})"}}},
      {"functools",
       R"(functools[{"name": "get_weather", "arguments": {"city": "Tokyo"}}])",
       "",
       {{"get_weather", R"({"city":"Tokyo"})"}}},
      {"phi4_mini",
       R"(<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Tokyo"}}]<|/tool_call|>)",
       "",
       {{"get_weather", R"({"city":"Tokyo"})"}}},
      {"cohere",
       "<|START_THINKING|>I will look.<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": "
       "\"0\", \"tool_name\": \"get_weather\", \"parameters\": {\"city\": \"Toronto\"}}\n]"
       "<|END_ACTION|>",
       "",
       {{"get_weather", R"({"city":"Toronto"})"}}},
      {"minimax_m2",
       "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">\"OpenAI\" "
       "release</parameter>\n<parameter name=\"days\">2</parameter>\n</invoke>\n"
       "</minimax:tool_call>",
       "",
       {{"get_weather", R"({"city":"\"OpenAI\" release","days":2})"}}},
      {"seed",
       "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Barcelona</parameter>\n"
       "</function>\n</seed:tool_call>",
       "",
       {{"get_weather", R"({"city":"Barcelona"})"}}},
      {"hunyuan_a13b",
       R"(<tool_calls>[{"name": "get_weather", "arguments": {"city": "Beijing"}}]</tool_calls>)",
       "",
       {{"get_weather", R"({"city":"Beijing"})"}}},
      {"apertus",
       R"(<|tools_prefix|>[{"get_weather": {"city": "Bern"}}, {"get_time": {}}]<|tools_suffix|>)",
       "",
       {{"get_weather", R"({"city":"Bern"})"}, {"get_time", "{}"}}},
      {"qwen_xml",
       "<tool_call>\n<function=get_weather>\n<parameter=city>\nSan Francisco\n</parameter>\n"
       "<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>",
       "",
       {{"get_weather", R"({"city":"San Francisco","days":2})"}}},
      {"functionary_v3_2",
       "all\nI look.>>>get_weather\n{\"city\": \"Istanbul\"}",
       "I look.",
       {{"get_weather", R"({"city":"Istanbul"})"}}},
      {"functionary_v3_1",
       "<function=get_weather>{\"city\": \"Istanbul\"}</function>",
       "",
       {{"get_weather", R"({"city":"Istanbul"})"}}}};
  return *outputs;
}

TEST(ChatFormatsTest, OutputsFromTheDocumentation) {
  RequestConstraints asked;
  for (const auto& [name, schema] :
       {std::pair("get_weather", R"({"type":"object","properties":{"city":{"type":"string"},
          "days":{"type":"integer"}},"required":["city"],"additionalProperties":false})"),
        std::pair("get_time", R"({"type":"object","additionalProperties":false})")}) {
    ToolSpec tool;
    tool.name = name;
    tool.input.kind = ConstraintSpec::Kind::kJsonSchema;
    tool.input.text = json::Dump(JsonOf(schema));
    asked.tools.push_back(std::move(tool));
    asked.choice.allowed.push_back(asked.choice.allowed.size());
  }
  asked.choice.mode = ToolChoice::Mode::kAuto;
  const Compiler compiler(VocabularyOf(AllBytes()));
  for (const TypedOutput& output : TypedOutputs()) {
    SCOPED_TRACE(output.text);
    ModelTraits traits = TraitsOf("", ChatFormatNamed(output.format));
    ASSERT_NE(traits.format, nullptr) << output.format;
    const auto plan = MakePlan(
        asked, traits, traits.think_close.empty() ? ThinkingStart::kOff : ThinkingStart::kMay);
    ASSERT_TRUE(plan.ok());
    GrammarOptions options;
    options.json_schema.whitespace = JsonSchemaOptions::Whitespace::kBounded;
    const auto grammar = compiler.CompileStructuralTag(plan->grammar.text, options);
    ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
    const auto state = grammar->Start().Advance(output.text);
    EXPECT_TRUE(state.has_value() && state->accepting());
    for (size_t cut = 0; cut <= std::string_view(output.text).size(); ++cut) {
      const OutputParts parts = ParseCut(*plan, output.text, cut);
      ASSERT_EQ(parts.content, output.content) << cut;
      ASSERT_EQ(parts.names.size(), output.calls.size()) << cut;
      for (size_t i = 0; i < output.calls.size(); ++i) {
        ASSERT_EQ(parts.names[i], output.calls[i].first);
        ASSERT_EQ(parts.arguments[i], output.calls[i].second) << cut;
      }
    }
  }
}

// Marks as templates of the families write them; none of a format may be that of another.
TEST(ChatFormatsTest, TemplatesAreRecognised) {
  const std::pair<const char*, const char*> kFixtures[] = {
      {"hermes", "<tools>{{ tools }}</tools><tool_call>\n{\"name\": "},
      {"qwen_xml", "<tool_call>\n<function=' + name + '>\n<parameter=' + key + '>\n"},
      {"seed", "<seed:think></seed:think><seed:tool_call>\n<function=f><parameter=k>"},
      {"glm", "<tool_call>' + name<arg_key>' + k</arg_key>\n<arg_value>"},
      {"hunyuan", "<tool_calls' ':opensource' '<tool_call' '<arg_key' '<arg_value'"},
      {"gemma4", "<|channel>thought\n<channel|><|tool_call>call:' + name"},
      {"gpt_oss", "<|start|>assistant<|channel|>analysis<|message|><|end|>"},
      {"kimi_k2", "<|tool_calls_section_begin|><|tool_call_begin|>"},
      {"kimi_k3", "<|open|>think<|sep|><|close|>think<|sep|><|end_of_msg|>"},
      {"lfm2", "List of tools: <|tool_list_start|>["},
      {"lfm2", "List of tools: ["},
      {"ministral", "[TOOL_CALLS]' + name + '[ARGS]"},
      {"mistral_small", "[TOOL_CALLS]' + name + '[CALL_ID]' + id + '[ARGS]"},
      {"mistral", "[TOOL_CALLS][{\"name\": "},
      {"deepseek_r1",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n"},
      {"deepseek_v3_1", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>"},
      {"deepseek_v3_2", "｜DSML｜' 'function_calls>\n"},
      {"deepseek_v4", "｜DSML｜' 'tool_calls>\n"},
      {"minicpm5", "<function name=\"f\"><param name=\"k\">"},
      {"granite3",
       "<|start_of_role|>system respond only with <|tool_call|> followed by a JSON list"},
      {"nemotron", "<TOOLCALL>[{{\"name\": "},
      {"functools", "functools[{\"name\": "},
      {"phi4_mini", "<|tool|>' + tools + '<|/tool|>"},
      {"cohere", "<|START_ACTION|>[\n<|END_ACTION|><|START_TEXT|>"},
      {"command_r7b", "<|START_ACTION|>[\n<|END_ACTION|><|START_RESPONSE|>"},
      {"command_r", "\nAction:\n```json\n[\n    {\n        \"tool_name\": title"},
      {"minimax_m1", "<beginning_of_sentence>ai<tool_calls>\n{\"name\": "},
      {"minimax_m2", "<minimax:tool_call>\n<invoke name=\"f\">"},
      {"minimax_m3", "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\""},
      {"olmo3", "<functions></functions> within <function_calls></function_calls> XML tags"},
      {"apertus", "<|tools_prefix|>[<|tools_suffix|><|inner_prefix|><|inner_suffix|>"},
      {"apriel", "<tool_calls>[{\"name\": \"f\"}]</tool_calls>[BEGIN FINAL RESPONSE]"},
      {"gigachat3", "<|role_sep|>\n<|message_sep|>\n\nfunction call"},
      {"gigachat3_1", "<|role_sep|>\n<|message_sep|>\n\n<|function_call|>"},
      {"functionary_v3_1", "<|start_header_id|><function=f>{{parameters}}</function>"},
      {"functionary_v3_2", ">>>${recipient}\n>>>all\n"},
      {"solar", "<|tool_calls|><|tool_call:begin|>id<|tool_call:name|>"},
      {"glimmer", "<|start|>assistant to=<|message|><atem:function_calls>\n"},
      {"llama3",
       "{\"name\": function name, \"parameters\": dictionary of argument name and its value}"},
      {nullptr, "<|im_start|>assistant\n"},
      {nullptr, "<start_of_turn>model\n"},
      {nullptr, "\"parameters\": without any mark of a family"}};
  std::set<std::string_view> seen;
  for (const auto& [name, text] : kFixtures) {
    const ChatFormat* format = FormatOf(text);
    EXPECT_EQ(format == nullptr ? "" : format->name, name == nullptr ? "" : std::string_view(name))
        << text;
    if (name != nullptr) seen.insert(name);
  }
  for (const ChatFormat* format : ChatFormats()) {
    EXPECT_TRUE(format == &kPlainFormat || seen.contains(format->name)) << format->name;
  }
}

TEST(ChatFormatsTest, ThePromptsEndSaysWhetherThoughtsHaveBegun) {
  const auto start = [](const char* format, const char* prompt) {
    return ThinkingStartOf(prompt, TraitsOf("<think></think><|channel>thought\n<channel|>"
                                            "<seed:think></seed:think>",
                                            ChatFormatNamed(format)));
  };
  using Start = ThinkingStart;
  EXPECT_EQ(start("hermes", "assistant\n<think>\n"), Start::kOpen);
  EXPECT_EQ(start("hermes", "assistant\n<think>\n\n</think>\n\n"), Start::kOff);
  EXPECT_EQ(start("hermes", "assistant\n"), Start::kMay);
  EXPECT_EQ(start("gemma4", "<|turn>model\n<|channel>thought\n<channel|>"), Start::kOff);
  EXPECT_EQ(start("gemma4", "<|turn>model\n"), Start::kMay);
  EXPECT_EQ(start("seed", "<seed:bos>assistant\n<seed:think>"), Start::kOpen);
  EXPECT_EQ(start("gpt_oss", "user<|message|>Hi<|end|><|start|>assistant"), Start::kMay);
  EXPECT_EQ(start("solar", "user<|content|>Hi<|end|><|begin|>assistant"), Start::kMay);
  EXPECT_EQ(start("solar", "<|begin|>assistant<|think|><|end|><|begin|>assistant"), Start::kOff);
  EXPECT_EQ(start("cohere", "<|CHATBOT_TOKEN|><|START_THINKING|>"), Start::kOpen);
  EXPECT_EQ(start("cohere", "<|CHATBOT_TOKEN|><|START_THINKING|><|END_THINKING|>"), Start::kOff);
  EXPECT_EQ(start("kimi_k3", "<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|>"),
            Start::kOpen);
}

TEST(ChatFormatsTest, WithoutAFormThereIsAnErrorOrANote) {
  const auto required =
      MakePlan(AskedFor(ToolChoice::Mode::kRequired), TraitsOf("nothing"), ThinkingStart::kOff);
  ASSERT_FALSE(required.ok());
  EXPECT_EQ(required.error().place, "#/tool_choice");
  EXPECT_NE(required.error().message.find("--tool-syntax"), std::string::npos);
  const auto any =
      MakePlan(AskedFor(ToolChoice::Mode::kAuto), TraitsOf("nothing"), ThinkingStart::kOff);
  ASSERT_TRUE(any.ok());
  EXPECT_TRUE(any->no_form_of_calls);
  EXPECT_EQ(any->grammar.kind, ConstraintSpec::Kind::kNone);
  const auto with_answer =
      MakePlan(AskedFor(ToolChoice::Mode::kAuto, true), TraitsOf("nothing"), ThinkingStart::kOff);
  ASSERT_TRUE(with_answer.ok());
  EXPECT_TRUE(with_answer->no_form_of_calls);
  EXPECT_EQ(with_answer->grammar.kind, ConstraintSpec::Kind::kJsonSchema);
}

// What the public function makes of the same table.
TEST(ChatFormatsTest, ToolCallTagsOfEveryFormat) {
  std::vector<Tool> tools;
  for (const auto& [name, schema] : kSchemas) tools.push_back({name, schema});
  const Compiler compiler(VocabularyOf(AllBytes()));
  GrammarOptions options;
  options.json_schema.whitespace = JsonSchemaOptions::Whitespace::kCompact;
  const std::vector<RenderedCall> one = {{"put", JsonOf(R"({"n":1,"s":"é"})")}};
  const std::vector<RenderedCall> two = {one[0], {"now", JsonOf("{}")}};
  for (const ChatRenderer& renderer : ChatRenderers()) {
    SCOPED_TRACE(renderer.format);
    const auto format = ToolCallFormatOf(renderer.format);
    ASSERT_TRUE(format.has_value());
    using Choice = ToolCallOptions::Choice;
    const auto accepts = [&](const ToolCallOptions& asked, const std::string& text) {
      const auto tag = ToolCallTag(*format, tools, asked);
      EXPECT_TRUE(tag.ok());
      const auto grammar = compiler.CompileStructuralTag(*tag, options);
      EXPECT_TRUE(grammar.ok()) << grammar.error().ToString();
      const auto state = grammar->Start().Advance(text);
      return state.has_value() && state->accepting();
    };
    EXPECT_TRUE(accepts({}, renderer.note("So: ") + renderer.calls(two)));
    EXPECT_TRUE(accepts({}, renderer.answer("text")));
    EXPECT_TRUE(accepts({.choice = Choice::kRequired}, renderer.calls(two)));
    EXPECT_FALSE(accepts({.choice = Choice::kRequired}, renderer.answer("text")));
    EXPECT_FALSE(accepts({.choice = Choice::kRequired, .parallel = false}, renderer.calls(two)));
    EXPECT_TRUE(accepts({.choice = Choice::kNamed, .named = "put"}, renderer.calls(one)));
    EXPECT_FALSE(accepts({.choice = Choice::kNamed, .named = "now"}, renderer.calls(one)));
  }
}

// Lists as some templates print them: not JSON, and read all the same.
TEST(ChatFormatsTest, ListsAsPythonPrintsThem) {
  RequestConstraints asked = AskedFor(ToolChoice::Mode::kAuto);
  ModelTraits traits;
  traits.format = ChatFormatNamed("seed");
  const auto plan = MakePlan(asked, traits, ThinkingStart::kOff);
  ASSERT_TRUE(plan.ok());
  const std::string text =
      "<seed:tool_call>\n<function=put_all>\n<parameter=l>[['it\\'s', \"x\"], []]</parameter>\n"
      "<parameter=o>{'k': [1, 2], 't': {'u': 'v', 'z': None}}</parameter>\n</function>\n"
      "</seed:tool_call>";
  OutputParts expected;
  expected.names = {"put_all"};
  expected.arguments = {R"({"l":[["it's","x"],[]],"o":{"k":[1,2],"t":{"u":"v","z":null}}})"};
  expected.begun = expected.ended = 1;
  ExpectParts(*plan, text, expected, "seed");
}

// Hostile arguments: deep, long, cut anywhere, of no shape at all. The parser ends, and what it
// gives out does not depend on the cuts.
TEST(ChatFormatsTest, HostileArguments) {
  const std::string deep(2000, '['), braces(2000, '{'), quotes(2000, '\'');
  for (const ChatFormat* format : ChatFormats()) {
    SCOPED_TRACE(format->name);
    ModelTraits traits;
    traits.format = format;
    const auto plan = MakePlan(AskedFor(ToolChoice::Mode::kAuto), traits, ThinkingStart::kOff);
    ASSERT_TRUE(plan.ok());
    std::string open;
    for (const std::string_view list : TextsOf(format->list_open)) {
      open = list;
      break;
    }
    for (const FormatPiece& piece : PiecesOf(format->call_open[0], "put")) {
      open += piece.kind == FormatPiece::Kind::kText
                  ? piece.text
                  : std::string(std::max<size_t>(1, piece.length), '1');
    }
    for (const std::string& body : {deep, braces, quotes, std::string(")]}>"), std::string("\\"),
                                    std::string("<a><b></c>]<]minimax[>[<o>]<]minimax[>[<o>"),
                                    std::string("a=b,c:d,\"\\u12\",'\\x4'"), std::string()}) {
      const std::string text = open + body;
      const OutputParts whole = ParseCut(*plan, text, text.size());
      EXPECT_EQ(ParseCut(*plan, text, 0), whole) << text.substr(0, 200);
      EXPECT_EQ(whole.names, std::vector<std::string>{"put"});
      EXPECT_EQ(whole.begun, whole.ended);
    }
  }
}

// Tools whose input is a text: of a grammar, which no JSON can hold, or of a regex.
TEST(ChatFormatsTest, CustomToolsInEveryFormat) {
  for (const ChatFormat* format : ChatFormats()) {
    SCOPED_TRACE(format->name);
    for (const bool raw : {false, true}) {
      RequestConstraints asked;
      ToolSpec tool;
      tool.kind = ToolSpec::Kind::kCustom;
      tool.name = "sum";
      tool.input.kind = raw ? ConstraintSpec::Kind::kGrammar : ConstraintSpec::Kind::kRegex;
      tool.input.language = GrammarLanguage::kLark;
      tool.input.text = raw ? "start: \"x=\" /[0-9]/ \"\\n\" /[0-9]/" : "x=\"[0-9]\"";
      asked.tools = {tool};
      asked.choice.allowed = {0};
      asked.choice.mode = ToolChoice::Mode::kRequired;
      asked.asked_parallel = true;
      ModelTraits traits;
      traits.format = format;
      const auto plan = CompilePlan(asked, traits, ThinkingStart::kOff);
      ASSERT_TRUE(plan.ok()) << plan.error().ToString();
      const std::string text = *plan->grammar.Start().CompletionBytes();
      const std::string digit = text.substr(text.rfind("x=") + (raw ? 2 : 4), 1);
      OutputParts expected;
      expected.names = {"sum"};
      const size_t line = text.find('\n', text.rfind("x="));
      expected.arguments = {raw ? "x=" + digit + "\n" + text.substr(line + 1, 1)
                                : "x=\"" + digit + "\""};
      expected.begun = expected.ended = 1;
      ExpectParts(plan->plan, text, expected, "custom");
    }
  }
}

// What a budget has cut, and what a model writes without a grammar, is never lost silently and
// never read twice; the parts do not depend on the cuts.
TEST(ChatFormatsTest, OutputsThatEndInTheMiddle) {
  const std::vector<RenderedCall> calls = {{"put", JsonOf(R"({"n":1,"s":"a \"b\" é"})")},
                                           {"now", JsonOf("{}")}};
  for (const ChatRenderer& renderer : ChatRenderers()) {
    SCOPED_TRACE(renderer.format);
    const auto plan = MakePlan(AskedFor(ToolChoice::Mode::kAuto), TraitsBy(renderer),
                               renderer.thoughts ? ThinkingStart::kMay : ThinkingStart::kOff);
    ASSERT_TRUE(plan.ok());
    const std::string text = (renderer.thoughts ? renderer.thoughts("hm") : "") +
                             renderer.note("So: ") + renderer.calls(calls);
    for (size_t length = 0; length <= text.size(); length += 2) {
      const std::string cut = text.substr(0, length);
      const OutputParts whole = ParseCut(*plan, cut, cut.size());
      EXPECT_EQ(ParseCut(*plan, cut, 0), whole) << cut;
      EXPECT_EQ(ParseCut(*plan, cut, length / 2), whole) << cut;
      EXPECT_EQ(whole.begun, whole.ended) << cut;
    }
  }
}

}  // namespace
}  // namespace pawl
