// Every format of chats: outputs are rendered by hand (chat_renderers.h), the grammar of the plan
// accepts them, and the parser gives back what was rendered, whole and cut at every byte.
#include "schemas/tag/formats/chat_formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/compiler.h"
#include "src/engine/output_parser.h"
#include "tests/engine/chat_renderers.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

struct ChatParts {
  std::string reasoning, content;
  std::vector<std::string> names, arguments;
  int begun = 0, ended = 0;
  friend bool operator==(const ChatParts&, const ChatParts&) = default;
};

void AddDeltas(const std::vector<Delta>& deltas, ChatParts& parts) {
  for (const Delta& delta : deltas) {
    switch (delta.kind) {
      case Delta::Kind::kReasoning:
        parts.reasoning += delta.text;
        break;
      case Delta::Kind::kContent:
        parts.content += delta.text;
        break;
      case Delta::Kind::kCallBegin:
        ++parts.begun;
        parts.names.push_back(delta.text);
        parts.arguments.emplace_back();
        break;
      case Delta::Kind::kArguments:
        parts.arguments.back() += delta.text;
        break;
      case Delta::Kind::kCallEnd:
        ++parts.ended;
        break;
    }
  }
}

// Arguments as JSON in one spelling.
void Normalize(ChatParts& parts) {
  for (std::string& text : parts.arguments) {
    if (const auto value = json::Parse(text); value.ok()) text = json::Dump(*value);
  }
}

// In two pieces, the first of `cut` bytes; 0: one byte at a time.
ChatParts ParseCut(const OutputPlan& plan, std::string_view text, size_t cut) {
  OutputParser parser(plan);
  ChatParts parts;
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

void ExpectParts(const OutputPlan& plan, const std::string& text, const ChatParts& expected,
                 const char* format) {
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const ChatParts parts = ParseCut(plan, text, cut);
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

ChatParts PartsOf(const std::vector<RenderedCall>& calls) {
  ChatParts parts;
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
      ChatParts expected = PartsOf(calls);
      if (thinks) expected.reasoning = ParseCut(plan->plan, before, before.size()).reasoning;
      EXPECT_EQ(expected.reasoning.find("hm ä <tool") != std::string::npos, thinks);
      EXPECT_TRUE(plan->Accepts(before + renderer.calls(calls))) << plan->plan.grammar.text;
      ExpectParts(plan->plan, before + renderer.calls(calls), expected, renderer.format);
      expected.content = "Let me < look: ";
      const std::string text = before + renderer.note(expected.content) + renderer.calls(calls);
      EXPECT_TRUE(plan->Accepts(text)) << text << plan->plan.grammar.text;
      ExpectParts(plan->plan, text, expected, renderer.format);
      ChatParts answer;
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
    ChatParts answer;
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
      if (end == std::string::npos || end - i < 3 || end - i > 40) continue;
      const std::string mark = text.substr(i, end + 1 - i);
      if (mark.find_first_of(" \n\"=") == std::string::npos) marks.insert(mark);
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
    ChatParts parts;
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

}  // namespace
}  // namespace pawl
