// Thoughts before an answer, through the public engine. The model that ships has learned none: its
// template here opens them, leaves that to it, or closes them, and what it thinks is noise up to
// the mark that ends it. The marks are several tokens of its vocabulary.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/engine.h"
#include "pawl/sampling.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

const std::string kThinker = SourceDir() + "/models/tiny-extract";
constexpr const char* kSays = "{% for m in messages %}{{ m.content }}\n{% endfor %}";
constexpr const char* kHears =
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% else %}"
    "<think>\n{% endif %}";
// `literal`: what the template also writes, so that its marks are known.
const std::string kOpensThoughts = std::string(kSays) + kHears;
const std::string kDeafTemplate = std::string(kSays) + "{% if false %}</think>{% endif %}<think>\n";
const std::string kMayThink = std::string(kSays) + "{% if false %}<think></think>{% endif %}";
constexpr const char* kAnswer = R"({"a":[0-9]{1,3},"b":"[a-z]{2,12}"})";
constexpr int kShortestAnswer = 24;  // tokens, at most

EngineOptions Thinks(const std::string& chat_template, const std::string& drafts = "off") {
  EngineOptions options;
  options.chat_template = chat_template;
  options.model.threads = 1;
  options.drafts.sources = drafts;
  options.drafts.always = true;
  return options;
}

Engine LoadThinker(const EngineOptions& options) {
  Result<Engine> engine = Engine::Load(kThinker, options);
  EXPECT_TRUE(engine.ok()) << engine.error().ToString();
  return *std::move(engine);
}

struct Asked {
  Thinking thinking = {};
  uint64_t seed = 0;
  int max_tokens = 300;
  bool grammar = true;
};

EngineRequest Chat(const Engine& engine, const Asked& asked) {
  EngineRequest request;
  request.messages = {{"user", "Ann Lee, ann@example.org"}};
  if (asked.grammar) {
    const Result<Grammar> grammar = Compiler(engine.vocabulary()).CompileRegex(kAnswer);
    EXPECT_TRUE(grammar.ok()) << grammar.error().ToString();
    request.grammar = *grammar;
  }
  request.thinking = asked.thinking;
  request.options.max_tokens = asked.max_tokens;
  request.options.sampling = {.temperature = 1.2f, .seed = asked.seed};
  return request;
}

constexpr Thinking::Mode kOff = Thinking::Mode::kOff, kAuto = Thinking::Mode::kAuto;
Thinking Tokens(int tokens) { return {.mode = Thinking::Mode::kTokens, .tokens = tokens}; }

// Whether the grammar takes exactly this text.
bool IsAnswer(const Engine& engine, const std::string& text) {
  const Result<Grammar> grammar = Compiler(engine.vocabulary()).CompileRegex(kAnswer);
  State at = grammar->Start();
  for (const TokenId token : engine.Encode(text)) {
    const std::optional<State> next = at.Advance(token);
    if (!next) return false;
    at = *next;
  }
  return at.accepting();
}

Generation OutputOf(Engine& engine, const EngineRequest& request) {
  Result<Generation> output = engine.Generate(request);
  EXPECT_TRUE(output.ok()) << output.error().ToString();
  return output.ok() ? *std::move(output) : Generation{};
}

void ExpectNoMarks(const Generation& output) {
  for (const char* mark : {"<think>", "</think>"}) {
    EXPECT_EQ(output.text.find(mark), std::string::npos) << output.text;
    EXPECT_EQ(output.reasoning.find(mark), std::string::npos) << output.reasoning;
  }
}

TEST(EngineThinkingTest, ABudgetEndsTheThoughtsAndTheAnswerFollowsItsGrammar) {
  Engine engine = LoadThinker(Thinks(kOpensThoughts));
  const int mark = static_cast<int>(engine.vocabulary()->FewestTokens("</think>").size());
  ASSERT_GT(mark, 1);  // of several tokens
  bool thought = false;
  for (const int budget : {1, 5, 17}) {
    for (uint64_t seed = 0; seed < 6; ++seed) {
      const Generation output = OutputOf(engine, Chat(engine, {Tokens(budget), seed}));
      EXPECT_TRUE(IsAnswer(engine, output.text)) << output.text;
      // A mark that has begun is finished, and a gap may follow it.
      EXPECT_LE(output.stats.reasoning_tokens, budget + mark + 2);
      thought = thought || !output.reasoning.empty();
      ExpectNoMarks(output);
    }
  }
  EXPECT_TRUE(thought);
}

TEST(EngineThinkingTest, OffClosesWhatATemplateOpensThatDoesNotListen) {
  Engine engine = LoadThinker(Thinks(kDeafTemplate));
  const Generation output = OutputOf(engine, Chat(engine, {{.mode = kOff}}));
  EXPECT_TRUE(IsAnswer(engine, output.text)) << output.text;
  EXPECT_EQ(output.reasoning, "");
  EXPECT_TRUE(engine.Decode(output.tokens).starts_with("</think>")) << engine.Decode(output.tokens);
  // Without a grammar the mark is forced as well.
  const Generation text = OutputOf(engine, Chat(engine, {{.mode = kOff}, 1, 40, false}));
  EXPECT_EQ(text.reasoning, "");
  ExpectNoMarks(text);
  EXPECT_TRUE(engine.Decode(text.tokens).starts_with("</think>"));
}

TEST(EngineThinkingTest, OffTellsTheTemplate) {
  Engine engine = LoadThinker(Thinks(kOpensThoughts));
  const auto prompt = [&](const Thinking& thinking) {
    return engine.Decode(*engine.PromptTokens(Chat(engine, {thinking})));
  };
  EXPECT_TRUE(prompt({.mode = kOff}).ends_with("<think>\n\n</think>\n\n"));
  EXPECT_TRUE(prompt({}).ends_with("<think>\n"));
  EXPECT_TRUE(prompt(Tokens(5)).ends_with("<think>\n"));
  EXPECT_TRUE(prompt(Tokens(0)).ends_with("</think>\n\n"));
  const Generation output = OutputOf(engine, Chat(engine, {{.mode = kOff}}));
  EXPECT_EQ(output.reasoning, "");
  EXPECT_EQ(output.stats.reasoning_tokens, 0);
  EXPECT_TRUE(IsAnswer(engine, output.text)) << output.text;
}

TEST(EngineThinkingTest, AModelMayOpenItsThoughtsOrSkipThem) {
  Engine engine = LoadThinker(Thinks(kMayThink));
  int thought = 0, skipped = 0;
  EngineRequest request = Chat(engine, {Tokens(8)});
  for (uint64_t seed = 0; seed < 12; ++seed) {
    request.options.sampling.seed = seed;
    // An opening mark is no likely beginning: half of the outputs are pushed to it.
    request.options.logit_bias.clear();
    if (seed % 2 == 0) {
      const TokenId first = engine.vocabulary()->FewestTokens("<think>").front();
      request.options.logit_bias = {{first, 30.0f}};
    }
    const Generation output = OutputOf(engine, request);
    EXPECT_TRUE(IsAnswer(engine, output.text)) << output.text;
    ExpectNoMarks(output);
    (output.stats.reasoning_tokens > 0 ? thought : skipped)++;
  }
  EXPECT_GT(thought, 0);
  EXPECT_GT(skipped, 0);
}

TEST(EngineThinkingTest, OffKeepsAModelFromOpeningThoughts) {
  Engine engine = LoadThinker(Thinks(kMayThink));
  for (const bool grammar : {true, false}) {
    EngineRequest request = Chat(engine, {{.mode = kOff}, 3, 60, grammar});
    const TokenId first = engine.vocabulary()->FewestTokens("<think>").front();
    request.options.logit_bias = {{first, 8.0f}};
    const Generation output = OutputOf(engine, request);
    EXPECT_EQ(output.reasoning, "");
    EXPECT_EQ(engine.Decode(output.tokens).find("<think>"), std::string::npos);
  }
}

TEST(EngineThinkingTest, TheBudgetKeepsTheAnswer) {
  Engine engine = LoadThinker(Thinks(kDeafTemplate));
  for (const int budget : {40, 100, 200}) {
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const Generation output = OutputOf(engine, Chat(engine, {{.mode = kAuto}, seed, budget}));
      EXPECT_TRUE(IsAnswer(engine, output.text)) << output.text;
      EXPECT_LE(output.stats.reasoning_tokens, std::max(budget - 64, kShortestAnswer));
      EXPECT_LE(output.stats.output_tokens, budget);
    }
  }
}

TEST(EngineThinkingTest, DraftsDoNotMoveTheBoundary) {
  int accepted = 0;
  for (const std::string& chat : {kOpensThoughts, kMayThink}) {
    Engine plain = LoadThinker(Thinks(chat));
    Engine drafts = LoadThinker(Thinks(chat, "forced,suffix,random"));
    for (uint64_t seed = 0; seed < 10; ++seed) {
      const Thinking thinking = seed % 2 == 0 ? Tokens(static_cast<int>(seed) + 1) : Thinking{};
      const auto asked = [&](const Engine& engine) {
        EngineRequest request = Chat(engine, {thinking, seed, 120});
        // Noise is hard to guess; what the grammar dictates is not.
        request.options.skip_forced = false;
        return request;
      };
      const Generation one = OutputOf(plain, asked(plain));
      const Generation other = OutputOf(drafts, asked(drafts));
      EXPECT_EQ(one.tokens, other.tokens);
      EXPECT_EQ(one.text, other.text);
      EXPECT_EQ(one.reasoning, other.reasoning);
      EXPECT_EQ(one.stats.reasoning_tokens, other.stats.reasoning_tokens);
      accepted += other.stats.drafts.accepted > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(EngineThinkingTest, AStreamAddsUpToTheTexts) {
  Engine engine = LoadThinker(Thinks(kOpensThoughts));
  for (const bool grammar : {true, false}) {
    for (const bool reports : {true, false}) {
      EngineRequest request = Chat(engine, {Tokens(20), 4, 80, grammar});
      std::string text, reported, reasoning;
      size_t tokens = 0;
      request.options.on_reasoning = [&](std::string_view piece) {
        EXPECT_EQ(text, "");  // what is thought comes first
        reasoning += piece;
      };
      request.options.on_token = [&](TokenId token, std::string_view bytes) {
        tokens += token == kNoToken ? 0 : 1;
        text += bytes;
        return true;
      };
      if (reports) {
        request.options.on_report = [&](const TokenReport& report) {
          reported += report.bytes;
          return true;
        };
      }
      const Generation output = OutputOf(engine, request);
      EXPECT_EQ(text, output.text);
      EXPECT_EQ(reasoning, output.reasoning);
      EXPECT_EQ(tokens, output.tokens.size());
      if (reports) {
        EXPECT_EQ(reported, output.text);
      }
    }
  }
}

TEST(EngineThinkingTest, MarksOfTheCaller) {
  for (const char* close : {"]]", "<pad>"}) {  // text, and a special token
    EngineOptions options = Thinks(std::string(kSays) + "[[");
    options.reasoning_open = "[[";
    options.reasoning_close = close;
    Engine engine = LoadThinker(options);
    const Generation output = OutputOf(engine, Chat(engine, {Tokens(9), 2}));
    EXPECT_TRUE(IsAnswer(engine, output.text)) << output.text;
    EXPECT_NE(output.reasoning, "");
    EXPECT_EQ(output.reasoning.find("]]"), std::string::npos);
  }
  EngineOptions half = Thinks(kSays);
  half.reasoning_open = "[[";
  const Result<Engine> refused = Engine::Load(kThinker, half);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().place, "reasoning_close");
}

TEST(EngineThinkingTest, AMarkThatOverlapsItselfEndsWhereTheAnswerBegins) {
  EngineOptions options = Thinks(std::string(kSays) + "((");
  options.reasoning_open = "((";
  options.reasoning_close = "))";
  Engine engine = LoadThinker(options);
  const TokenId bracket = engine.vocabulary()->FewestTokens(")").front();
  int longer = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    EngineRequest request = Chat(engine, {Tokens(12), seed});
    request.options.logit_bias = {{bracket, 6.0f}};
    const Generation output = OutputOf(engine, request);
    EXPECT_TRUE(IsAnswer(engine, output.text)) << output.text;
    longer += engine.Decode(output.tokens).find(")))") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(longer, 0);
}

TEST(EngineThinkingTest, ExtractThinksWhereItIsAsked) {
  Engine engine = LoadThinker(Thinks(kDeafTemplate));
  EngineRequest request = Chat(engine, {});
  request.messages.clear();
  request.extract = ExtractInput{"{}", "Ann Lee, ann@example.org"};
  const Generation output = OutputOf(engine, request);
  EXPECT_TRUE(IsAnswer(engine, output.text)) << output.text;
  EXPECT_EQ(output.reasoning, "");
}

// A record of which each key is asked for, behind what the model of this template thinks.
struct Recorder {
  explicit Recorder(const std::string& chat_template)
      : engine(LoadThinker(Thinks(chat_template))),
        grammar(*Compiler(engine.vocabulary())
                     .CompileJsonSchema(R"({"type": "object", "properties": {
                         "id": {"type": "string", "maxLength": 2},
                         "city": {"type": "string", "maxLength": 2},
                         "n": {"type": "integer", "minimum": 0, "maximum": 9}},
                       "required": ["id"]})",
                                        ExtractSchemaOptions())) {}
  EngineRequest Request(const Thinking& thinking, uint64_t seed) const {
    EngineRequest request = Chat(engine, {thinking, seed, 300, false});
    request.grammar = grammar;
    request.options.sampling.temperature = 2;
    return request;
  }
  // The answer as the model wrote it.
  std::string Written(const Generation& output) const {
    std::string text = engine.Decode(output.tokens);
    const size_t mark = text.find("</think>");
    if (mark != std::string::npos) text.erase(0, mark + 8);
    if (text.starts_with("\n\n")) text.erase(0, 2);
    return text;
  }

  Engine engine;
  Grammar grammar;
};

TEST(EngineThinkingTest, KeysThatAreNotThereAreLeftOutBehindThoughts) {
  const std::pair<std::string, Thinking> ways[] = {{kDeafTemplate, {.mode = kOff}},
                                                   {kOpensThoughts, Tokens(9)},
                                                   {kMayThink, Tokens(6)},
                                                   {kMayThink, {.mode = kOff}}};
  for (const auto& [chat, thinking] : ways) {
    Recorder recorder(chat);
    int left_out = 0, thought = 0;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      EngineRequest request = recorder.Request(thinking, seed);
      if (chat == kMayThink && thinking.mode != kOff && seed % 2 == 0) {
        const TokenId first = recorder.engine.vocabulary()->FewestTokens("<think>").front();
        request.options.logit_bias = {{first, 30.0f}};
      }
      std::string shown, reasoning;
      request.options.on_token = [&](TokenId, std::string_view bytes) {
        shown += bytes;
        return true;
      };
      request.options.on_reasoning = [&](std::string_view bytes) { reasoning += bytes; };
      const Generation output = OutputOf(recorder.engine, request);
      const std::string written = recorder.Written(output);
      EXPECT_NE(written.find(R"("city":)"), std::string::npos) << written;
      EXPECT_EQ(output.text, recorder.grammar.Record(written));
      EXPECT_EQ(output.text.find("null"), std::string::npos) << output.text;
      EXPECT_EQ(shown, output.text);
      EXPECT_EQ(reasoning, output.reasoning);
      EXPECT_NE(recorder.engine.Decode(output.tokens).find(output.reasoning), std::string::npos);
      ExpectNoMarks(output);
      left_out += output.text != written ? 1 : 0;
      thought += output.reasoning.empty() ? 0 : 1;
    }
    EXPECT_GT(left_out, 0);
    EXPECT_EQ(thought > 0, thinking.mode != kOff);
  }
}

TEST(EngineThinkingTest, StopStringsAreLookedForInTheRecord) {
  Recorder recorder(kOpensThoughts);
  int missing = 0, stopped = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    EngineRequest request = recorder.Request(Tokens(9), seed);
    const Generation whole = OutputOf(recorder.engine, request);
    // What the record leaves out stops nothing.
    request.stops = {"null"};
    const Generation output = OutputOf(recorder.engine, request);
    EXPECT_EQ(output.text, whole.text);
    EXPECT_EQ(output.stop, whole.stop);
    missing += recorder.Written(whole).find("null") != std::string::npos ? 1 : 0;
    request.stops = {R"(,")"};
    std::string shown;
    request.options.on_token = [&](TokenId, std::string_view bytes) {
      shown += bytes;
      return true;
    };
    const Generation cut = OutputOf(recorder.engine, request);
    const size_t found = whole.text.find(R"(,")");
    EXPECT_EQ(cut.text, whole.text.substr(0, found));
    EXPECT_EQ(cut.stop_text, found == std::string::npos ? "" : R"(,")");
    EXPECT_EQ(cut.reasoning, whole.reasoning);
    EXPECT_EQ(shown, cut.text);
    stopped += found == std::string::npos ? 0 : 1;
  }
  EXPECT_GT(missing, 0);
  EXPECT_GT(stopped, 0);
}

TEST(EngineThinkingTest, WhatChangesNothingIsNoted) {
  Engine engine = LoadThinker(Thinks(kSays));
  const auto notes = [&](const Thinking& thinking) {
    return OutputOf(engine, Chat(engine, {thinking})).notes;
  };
  EXPECT_TRUE(notes({}).empty());
  EXPECT_TRUE(notes({.mode = kAuto}).empty());
  ASSERT_EQ(notes(Tokens(100)).size(), 1u);
  EXPECT_TRUE(notes(Tokens(100))[0].starts_with("thinking changes nothing"));
}

TEST(EngineThinkingTest, APromptHasNoThoughts) {
  Engine engine = LoadThinker(Thinks(kOpensThoughts));
  EngineRequest request = Chat(engine, {});
  request.messages.clear();
  request.prompt = "x <think>\n";
  EXPECT_EQ(OutputOf(engine, request).reasoning, "");
  request.thinking = Tokens(5);
  const Result<Generation> refused = engine.Generate(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().place, "thinking");
}

TEST(EngineThinkingTest, SamplersDrawAnswersOnly) {
  Engine engine = LoadThinker(Thinks(kOpensThoughts));
  const Result<SamplerResult> refused = engine.Sample(Chat(engine, {Tokens(5)}), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().place, "thinking");
}

TEST(EngineThinkingTest, AConstraintOfYourOwnIsAskedAboutTheAnswer) {
  // One digit, then the end.
  class Digit : public Constraint {
   public:
    Digit(std::shared_ptr<const Vocabulary> vocabulary, bool written)
        : vocabulary_(std::move(vocabulary)), written_(written) {}
    Place Look() const override {
      const auto fits = [&](TokenId, std::string_view bytes) {
        return !written_ && bytes.size() == 1 && bytes[0] >= '0' && bytes[0] <= '9';
      };
      return {.mask = MaskWhere(*vocabulary_, fits), .accepting = written_};
    }
    std::shared_ptr<const Constraint> Advance(TokenId token) const override {
      if (!Look().mask->Allows(token)) return nullptr;
      return std::make_shared<Digit>(vocabulary_, true);
    }
    std::optional<std::vector<TokenId>> Completion(int) const override {
      return written_ ? std::vector<TokenId>{} : vocabulary_->FewestTokens("0");
    }

   private:
    const std::shared_ptr<const Vocabulary> vocabulary_;
    const bool written_;
  };
  Engine engine = LoadThinker(Thinks(kOpensThoughts));
  for (uint64_t seed = 0; seed < 4; ++seed) {
    EngineRequest request = Chat(engine, {Tokens(6), seed, 100, false});
    request.constraint = std::make_shared<Digit>(engine.vocabulary(), false);
    const Generation output = OutputOf(engine, request);
    EXPECT_EQ(output.text.size(), 1u) << output.text;
    EXPECT_NE(output.reasoning + "x", "x");
  }
}

// ---- Free text in place of thoughts ----

constexpr std::string_view kBehindFreeText = "\n\nFinal answer:\n";

EngineRequest WithFreeTextOf(const Engine& engine, int tokens, uint64_t seed) {
  EngineRequest request = Chat(engine, {.seed = seed});
  request.messages.clear();
  request.prompt = "Ann Lee, ann@example.org";
  request.free_first = tokens;
  return request;
}

TEST(EngineThinkingTest, FreeTextComesBeforeTheAnswer) {
  Engine engine = LoadThinker(Thinks(""));
  Engine drafts = LoadThinker(Thinks("", "auto"));
  const int mark = static_cast<int>(engine.vocabulary()->FewestTokens(kBehindFreeText).size());
  bool written = false;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const EngineRequest request = WithFreeTextOf(engine, 12, seed);
    const Generation output = OutputOf(engine, request);
    EXPECT_TRUE(IsAnswer(engine, output.text)) << output.text;
    EXPECT_EQ(engine.Decode(output.tokens),
              output.reasoning + std::string(kBehindFreeText) + output.text);
    EXPECT_LE(output.stats.reasoning_tokens, 12 + mark);
    written = written || !output.reasoning.empty();
    EXPECT_EQ(OutputOf(drafts, WithFreeTextOf(drafts, 12, seed)).tokens, output.tokens);
  }
  EXPECT_TRUE(written);
  // None is the plain output, bit for bit.
  EngineRequest plain = WithFreeTextOf(engine, 0, 1);
  EXPECT_EQ(OutputOf(engine, plain).reasoning, "");
}

TEST(EngineThinkingTest, AnEndTokenEndsTheFreeTextAndIsNotWritten) {
  for (const char* sources : {"off", "auto"}) {
    Engine engine = LoadThinker(Thinks("", sources));
    EngineRequest request = WithFreeTextOf(engine, 100, 1);
    const TokenId end = engine.vocabulary()->end_tokens()[0];
    request.options.logit_bias = {{end, 60.0F}};
    for (const bool skips : {false, true}) {
      request.options.skip_forced = skips;
      const Generation output = OutputOf(engine, request);
      EXPECT_TRUE(IsAnswer(engine, output.text)) << output.text;
      EXPECT_EQ(output.reasoning, "");
      EXPECT_EQ(engine.Decode(output.tokens), std::string(kBehindFreeText) + output.text);
      EXPECT_EQ(std::ranges::count(output.tokens, end), 0);
    }
  }
}

TEST(EngineThinkingTest, FreeTextLeavesRoomForTheAnswer) {
  Engine engine = LoadThinker(Thinks(""));
  EngineRequest request = WithFreeTextOf(engine, 1000, 3);
  request.options.max_tokens = 120;
  const Generation output = OutputOf(engine, request);
  EXPECT_TRUE(IsAnswer(engine, output.text)) << output.text;
  EXPECT_LE(output.stats.output_tokens, 120);
  request.options.max_tokens = 5;
  const Result<Generation> less = engine.Generate(request);
  ASSERT_FALSE(less.ok());
  EXPECT_EQ(less.error().place, "max_tokens");
}

TEST(EngineThinkingTest, FreeTextIsRefusedWhereItCannotBe) {
  Engine engine = LoadThinker(Thinks(kOpensThoughts));
  const auto place = [&](const EngineRequest& request) {
    const Result<Generation> output = engine.Generate(request);
    EXPECT_FALSE(output.ok());
    return output.ok() ? "" : output.error().ToString();
  };
  EngineRequest request = WithFreeTextOf(engine, 12, 1);
  request.grammar.reset();
  EXPECT_EQ(place(request),
            "free_first: needs a constraint, which is for the answer behind the text");
  EXPECT_EQ(place(WithFreeTextOf(engine, -1, 1)), "free_first: must be from 0 to 16777216, not -1");
  EngineRequest chat = Chat(engine, {.seed = 1});
  chat.free_first = 12;
  EXPECT_EQ(place(chat), "free_first: the model thinks before it answers: switch thinking off");
  chat.thinking.mode = kOff;
  EXPECT_TRUE(IsAnswer(engine, OutputOf(engine, chat).text));
  const Result<SearchResult> search = engine.Search(WithFreeTextOf(engine, 12, 1), {});
  ASSERT_FALSE(search.ok());
  EXPECT_EQ(search.error().place, "free_first");
}

}  // namespace
}  // namespace pawl
