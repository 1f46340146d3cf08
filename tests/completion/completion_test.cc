// Completion under monitors, with a model whose logits are a hash of what it has read: it writes
// nonsense, so that what comes out is right because of the monitors alone.
#include "src/completion/completion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/engine/engine_parts.h"
#include "src/text/fim.h"
#include "tests/monitors/monitors_test_util.h"
#include "tests/source_dir.h"
#include "tests/support/toy_model.h"

namespace pawl::completion {
using namespace monitors;  // NOLINT(google-build-using-namespace)
namespace {

class HashModel : public ToyModel {
 public:
  HashModel(int vocabulary_size, uint64_t seed)
      : ToyModel({.vocabulary_size = vocabulary_size, .context_length = 2000},
                 [seed](const Place& place, std::span<float> out) {
                   uint64_t hash = seed;
                   for (const TokenId token : place.tokens)
                     hash = (hash ^ static_cast<uint64_t>(token)) * 1099511628211ULL;
                   for (size_t t = 0; t < out.size(); ++t) {
                     uint64_t x = (hash ^ t) * 0x9E3779B97F4A7C15ULL;
                     x ^= x >> 29;
                     x *= 0xBF58476D1CE4E5B9ULL;
                     out[t] = static_cast<float>(x >> 40) / static_cast<float>(1 << 22);
                   }
                 }) {}
};

class CompleteTest : public testing::Test {
 protected:
  void SetUp() override {
    auto tokenizer = Tokenizer::FromFile(SourceDir() + "/models/tiny-extract");
    ASSERT_TRUE(tokenizer.ok());
    tokenizer_ = *tokenizer;
    vocabulary_ = *tokenizer_->MakeVocabulary();
  }
  CodeCompleter Completer(uint64_t seed) {
    return CodeCompleter(
        EngineAccess::Make({LoadedModel::Of({tokenizer_, vocabulary_},
                                            std::make_unique<HashModel>(vocabulary_->size(), seed)),
                            nullptr},
                           1));
  }
  CompletionResult Complete(const CompletionRequest& request, uint64_t seed) {
    auto done = Completer(seed).Complete(request);
    EXPECT_TRUE(done.ok()) << done.error().ToString();
    return done.ok() ? *done : CompletionResult{};
  }
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const Vocabulary> vocabulary_;
};

constexpr const char* kPrefix =
    "interface Point { width: number; height: number; toText(): string }\nfunction f(p: Point) {\n "
    " return p.";

std::string FirstName(const std::string& text) {
  const size_t start = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  size_t end = start;
  while (end < text.size() && NameByte(text[end])) ++end;
  return text.substr(start, end - start);
}

TEST_F(CompleteTest, OnlyMembersThatExist) {
  const std::set<std::string> members = {"width",
                                         "height",
                                         "toText",
                                         "constructor",
                                         "hasOwnProperty",
                                         "isPrototypeOf",
                                         "propertyIsEnumerable",
                                         "toLocaleString",
                                         "toString",
                                         "valueOf"};
  int without = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    CompletionRequest request{
        .prefix = kPrefix, .suffix = "", .language = Language::kTypeScript, .max_tokens = 24};
    const CompletionResult with = Complete(request, seed);
    // A comment may stand before the name, and a private name is not one of the members: those are
    // let through.
    const size_t first = with.text.find_first_not_of(" \t\r\n");
    if (first == std::string::npos || with.text[first] == '/' || with.text[first] == '#') continue;
    EXPECT_TRUE(members.contains(FirstName(with.text))) << with.text;
    EXPECT_GE(with.constrained, 1U);
    request.use_monitors = false;
    without += members.contains(FirstName(Complete(request, seed).text)) ? 1 : 0;
  }
  EXPECT_LT(without, 4);  // the model alone knows nothing
}

TEST_F(CompleteTest, BeginsAsToldAndEndsWithTheStatement) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    CompletionRequest request{
        .prefix = kPrefix, .suffix = ";\n}\n", .language = Language::kTypeScript};
    request.must_begin = "hei";
    request.suffix_aware = true;
    request.max_tokens = 40;
    const CompletionResult done = Complete(request, seed);
    EXPECT_EQ(FirstName(done.text).substr(0, 3), "hei") << done.text;
    EXPECT_EQ(FirstName(done.text), "height") << done.text;
  }
}

// The cursor inside of a name: what is begun is spelled anew under the monitors.
// Whether or not the monitors know a name there, and with them off.
TEST_F(CompleteTest, BehindAPointComesAName) {
  struct Case {
    Language language;
    std::string prefix;
    std::string more;  // what else may begin
  };
  const std::vector<Case> cases = {
      {Language::kPython, "def f(cart):\n    cart.", ""},
      {Language::kPython, "f(x).", ""},
      {Language::kTypeScript, "function f(cart: any) {\n  cart.", "#"},
      {Language::kTypeScript, "function f(cart: any) {\n  cart?.", "#[(`"},
      {Language::kJava, "class A { void f(Unknown u) { u.", "<@*"},
  };
  for (const Case& c : cases) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
      CompletionRequest request{.prefix = c.prefix, .language = c.language, .max_tokens = 6};
      request.use_monitors = seed % 3 != 0;
      const std::string text = Complete(request, seed).text;
      ASSERT_FALSE(text.empty()) << c.prefix;
      EXPECT_TRUE(NameStart(text[0]) || c.more.find(text[0]) != std::string::npos)
          << c.prefix << " " << text;
    }
  }
  // The point of a number, of a spread and of a comment is none of a member.
  for (const char* prefix : {"x = 1.", "x = ...", "# see cart.", "from ."}) {
    bool other = false;
    std::string all;
    for (uint64_t seed = 0; seed < 40 && !other; ++seed) {
      const std::string text =
          Complete({.prefix = prefix, .language = Language::kPython, .max_tokens = 3}, seed).text;
      other = text.empty() || !NameStart(text[0]);
      all += text + "|";
    }
    EXPECT_TRUE(other) << prefix << ": " << all;
  }
}

TEST_F(CompleteTest, GoesOnWithANameThatIsBegun) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    CompletionRequest request{
        .prefix = std::string(kPrefix) + "he", .suffix = "", .language = Language::kTypeScript};
    const CompletionResult done = Complete(request, seed);
    EXPECT_TRUE(done.text.starts_with("ight")) << done.text;
    EXPECT_GE(done.constrained, 1U);
  }
  // A name that the monitors would not have let be written stays, and nothing is said about it.
  CompletionRequest request{
      .prefix = std::string(kPrefix) + "nosuch", .suffix = "", .language = Language::kTypeScript};
  EXPECT_FALSE(Complete(request, 1).text.empty());
  // An item of another server that they do not know comes all the same.
  request = {.prefix = kPrefix, .suffix = "", .language = Language::kTypeScript};
  request.must_begin = "fromElsewhere";
  EXPECT_TRUE(Complete(request, 1).text.starts_with("fromElsewhere"));
}

TEST_F(CompleteTest, ATailThatRepeatsTheSuffixIsCutOff) {
  const auto finished = [&](const std::string& prefix, const std::string& text,
                            const std::string& suffix) {
    CompletionRequest request{
        .prefix = prefix, .suffix = suffix, .language = Language::kTypeScript};
    request.suffix_aware = true;
    CompletionPlan same;
    same.prefix = prefix;
    CompletionOutput output(request, same);
    (void)output.Add(text);
    output.Finish();
    return output.text();
  };
  EXPECT_EQ(finished("const a = b.", "length;", ";\n"), "length");
  // The bracket belongs to the text.
  EXPECT_EQ(finished("f(", "g(a)", ")"), "g(a)");
  EXPECT_EQ(finished("const a = ", "b + cd", "d + e"), "b + cd");
}

TEST_F(CompleteTest, WhatBreaksTheFileIsCutToWhatDoesNot) {
  const auto cut = [](const std::string& text, const std::string& suffix) {
    CompletionRequest request{
        .prefix = "const a = b.", .suffix = suffix, .language = Language::kTypeScript};
    CompletionPlan plan;
    plan.prefix = request.prefix;
    CompletionOutput output(request, plan);
    (void)output.Add(text);
    const bool parses = output.CutToParse();
    return output.text() + (parses ? "" : " (broken)");
  };
  EXPECT_EQ(cut("length;", "\nc();"), "length;");
  EXPECT_EQ(cut("push([1, const 2", "\nc();"), "push");
  EXPECT_EQ(cut("at(0).size + + * 3", "\nc();"), "at(0).size");
  EXPECT_EQ(cut("* * *", "\nc();"), "* * * (broken)");
}

TEST_F(CompleteTest, TellsWhetherTheTextParses) {
  const auto parses = [](const std::string& prefix, const std::string& text,
                         const std::string& suffix) {
    CompletionRequest request{.prefix = prefix, .suffix = suffix, .language = Language::kPython};
    CompletionPlan plan;
    plan.prefix = prefix;
    CompletionOutput output(request, plan);
    (void)output.Add(text);
    return output.Parses();
  };
  EXPECT_TRUE(parses("cart = {}\nif cart.", "items()", ":\n    pass\n"));
  EXPECT_FALSE(parses("cart = {}\nif cart.", "items(", ":\n    pass\n"));
  EXPECT_FALSE(parses("cart = {}\nif cart.", "_a in", ":\n    pass\n"));
  // Where nothing follows, only what the prefix has opened may stay open.
  EXPECT_TRUE(parses("print(cart.", "items()", "\n"));
  EXPECT_FALSE(parses("print(cart.", "items(", ""));
  EXPECT_FALSE(parses("x = ", "'a", ""));
  // The file has an error elsewhere.
  EXPECT_FALSE(parses("x = = 1\ny = ", "2", "\n"));
}

TEST_F(CompleteTest, SameSeedSameOutput) {
  CompletionRequest request{.prefix = kPrefix, .suffix = "", .language = Language::kTypeScript};
  request.sampling.temperature = 1;
  request.sampling.seed = 5;
  EXPECT_EQ(Complete(request, 1).text, Complete(request, 1).text);
}

TEST_F(CompleteTest, RefusesWhatMakesNoSense) {
  CodeCompleter completer = Completer(1);
  CompletionRequest request{.prefix = "a", .suffix = "", .language = Language::kTypeScript};
  request.monitors = {"nonsense"};
  EXPECT_EQ(completer.Complete(request).error().place, "monitors");
  request.monitors = {};
  request.max_tokens = -1;
  EXPECT_EQ(completer.Complete(request).error().place, "max_tokens");
}

TEST(FimTest, PromptsAreReadBack) {
  const std::vector<std::string> prompts = {
      "<|fim_prefix|>a(<|fim_suffix|>)b<|fim_middle|>",
      "<fim_prefix>a(<fim_suffix>)b<fim_middle>",
      "[SUFFIX])b[PREFIX]a(",
      "<\xEF\xBD\x9C"
      "fim\xE2\x96\x81"
      "begin\xEF\xBD\x9C>a(<\xEF\xBD\x9C"
      "fim\xE2\x96\x81"
      "hole\xEF\xBD\x9C>)b<\xEF\xBD\x9C"
      "fim\xE2\x96\x81"
      "end\xEF\xBD\x9C>",
  };
  for (const std::string& prompt : prompts) {
    const auto parts = ParseFimPrompt(prompt);
    ASSERT_TRUE(parts.has_value()) << prompt;
    EXPECT_EQ(parts->prefix, "a(") << prompt;
    EXPECT_EQ(parts->suffix, ")b") << prompt;
    EXPECT_EQ(FimPrompt(*parts->form, parts->prefix, parts->suffix), prompt);
  }
  EXPECT_FALSE(ParseFimPrompt("a b c").has_value());
}

// With the model that has markers for a gap; the other one has none, and completes as ever.
TEST_F(CompleteTest, SelfInfilledCompletionsParseWhereOneDoes) {
  Result<Engine> engine = Engine::Load(SourceDir() + "/models/tiny-code");
  ASSERT_TRUE(engine.ok()) << engine.error().ToString();
  CodeCompleter completer(*std::move(engine));
  int others = 0;
  const std::pair<const char*, const char*> kPlaces[] = {
      {"function area(w: number, h: number) {\n  return w", "\n}\n"},
      {"const names = [1, 2];\nconst first = names", "\n}\n"},
      {"const xs = [", "];\n"},
  };
  for (const auto& [prefix, suffix] : kPlaces) {
    CompletionRequest request;
    request.prefix = prefix;
    request.suffix = suffix;
    request.language = Language::kTypeScript;
    request.use_monitors = false;
    request.max_tokens = 16;
    const Result<CompletionResult> plain = completer.Complete(request);
    request.infill_loops = 2;
    request.infill_threshold = 0.9;
    const Result<CompletionResult> infilled = completer.Complete(request);
    ASSERT_TRUE(plain.ok() && infilled.ok());
    EXPECT_TRUE(infilled->parses || !plain->parses) << infilled->text;
    others += infilled->text != plain->text ? 1 : 0;
  }
  EXPECT_GT(others, 0);
  CompletionRequest request;
  request.prefix = kPrefix;
  request.language = Language::kTypeScript;
  request.max_tokens = 8;
  const std::string plain = Complete(request, 3).text;
  request.infill_loops = 2;
  EXPECT_EQ(Complete(request, 3).text, plain);
}

}  // namespace
}  // namespace pawl::completion
