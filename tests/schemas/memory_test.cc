// What grammars keep, counted in bytes: the program's own operator new and delete know what is on
// the heap. The oracle of "a budget changes nothing" is the same walk without one.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <random>
#include <thread>

#include "pawl/combine.h"
#include "pawl/compiler.h"
#include "pawl/matcher.h"
#include "tests/support/vocabularies.h"

namespace {
std::atomic<int64_t> live_bytes{0};

void* TakeOrNull(size_t size) {
  void* const taken = std::malloc(size);
  if (taken == nullptr) return nullptr;
  live_bytes += static_cast<int64_t>(malloc_usable_size(taken)) + 8;
  return taken;
}
void* Take(size_t size) {
  void* const taken = TakeOrNull(size);
  if (taken == nullptr) throw std::bad_alloc();
  return taken;
}
void GiveBack(void* taken) {
  if (taken == nullptr) return;
  live_bytes -= static_cast<int64_t>(malloc_usable_size(taken)) + 8;
  std::free(taken);
}
}  // namespace

void* operator new(size_t size) { return Take(size); }
void* operator new[](size_t size) { return Take(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return TakeOrNull(size); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return TakeOrNull(size); }
void operator delete(void* taken) noexcept { GiveBack(taken); }
void operator delete[](void* taken) noexcept { GiveBack(taken); }
void operator delete(void* taken, size_t) noexcept { GiveBack(taken); }
void operator delete[](void* taken, size_t) noexcept { GiveBack(taken); }

namespace pawl {
namespace {

constexpr const char* kCounts = R"({"type":"object","additionalProperties":{"type":"integer"}})";
constexpr const char* kNames =
    R"({"type":"array","uniqueItems":true,"items":{"type":"string","maxLength":12}})";
constexpr const char* kRecord =
    R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":3},
        "mail":{"type":"string","format":"email"},"when":{"type":"string","format":"date-time"}},
        "required":["name"],"patternProperties":{"^x-[a-z]+$":{"type":"number"}}})";
constexpr const char* kSum = R"g(root ::= term (("+" | "-") term)*
term ::= [0-9]+ | "(" root ")" | [a-z]+ "[" root "]")g";
constexpr const char* kTag = R"({"type":"structural_tag","format":{"type":"triggered_tags",
  "triggers":["<call"],"tags":[{"begin":"<call=f>","end":"</call>","content":
  {"type":"json_schema","json_schema":{"type":"object","additionalProperties":true}}}]}})";

std::shared_ptr<const Vocabulary> Tokens() {
  static const auto vocabulary = VocabularyOf(JsonTokens(700));
  return vocabulary;
}

Result<Grammar> Compile(const Compiler& compiler, std::string_view text) {
  if (text.starts_with("root")) return compiler.CompileGrammar(text, GrammarLanguage::kEbnf);
  if (text.find("structural_tag") != text.npos) return compiler.CompileStructuralTag(text);
  if (text.starts_with("{")) {
    JsonSchemaOptions options;
    options.whitespace = JsonSchemaOptions::Whitespace::kCompact;
    return compiler.CompileJsonSchema(text, options);
  }
  return compiler.CompileRegex(text);
}

// The next token of a walk that leans to the end; kNoToken: the text ends here.
TokenId Draw(const State& state, std::mt19937& random, unsigned ending) {
  const std::shared_ptr<const Mask> mask = state.mask();
  EXPECT_GT(mask->count(), 0);
  if (random() % ending == 0) {
    if (state.accepting()) return kNoToken;
    if (const auto tokens = state.CompletionTokens(); tokens && !tokens->empty())
      return (*tokens)[0];
  }
  const std::vector<TokenId> tokens = mask->Tokens();
  const TokenId token = tokens[random() % tokens.size()];
  return state.vocabulary().is_end(token) ? kNoToken : token;
}

// A random output, as a hash of its tokens and of how much each mask allowed.
uint64_t Walk(const Grammar& grammar, std::mt19937& random, unsigned ending = 8) {
  uint64_t hash = 1;
  Matcher matcher(grammar);
  for (int i = 0; i < 400; ++i) {
    const TokenId token = Draw(matcher.state(), random, ending);
    hash = (hash ^ static_cast<uint64_t>(token + 2) ^
            static_cast<uint64_t>(matcher.state().mask()->count()) << 32) *
           0x9E3779B97F4A7C15u;
    if (token == kNoToken) break;
    EXPECT_TRUE(matcher.Accept(token));
  }
  return hash;
}

TEST(MemoryTest, MeasuresWhatIsOnTheHeap) {
  Tokens();
  for (const char* text : {kCounts, kNames, kRecord, kSum, kTag, "[a-z]{3,40}(foo|bar)+[0-9]{9}"}) {
    {
      const Compiler first(Tokens());  // what belongs to the vocabulary
      std::mt19937 random(1);
      Walk(*Compile(first, text), random);
    }
    const int64_t before = live_bytes;
    const Compiler compiler(Tokens());
    const auto grammar = Compile(compiler, text);
    ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
    std::mt19937 random(1);
    for (int i = 0; i < 300; ++i) Walk(*grammar, random);
    const auto held = static_cast<double>(live_bytes - before);
    const auto told = static_cast<double>(compiler.memory_bytes());
    EXPECT_GT(told, 0.75 * held - 40'000) << text;
    EXPECT_LT(told, 1.35 * held + 40'000) << text;
  }
}

TEST(MemoryTest, StaysInItsBudgetAndChangesNothing) {
  constexpr size_t kBudget = size_t{3} << 20;
  for (const char* text : {kCounts, kNames, kRecord, kSum, kTag}) {
    const Compiler free(Tokens(), {.memory_budget = size_t{1} << 40});
    const Compiler bound(Tokens(), {.memory_budget = kBudget});
    const auto expected = Compile(free, text);
    const auto grammar = Compile(bound, text);
    ASSERT_TRUE(grammar.ok());
    std::mt19937 random(2), other(2);
    const int64_t before = live_bytes;
    int64_t most = 0, grown = 0;  // of the one with a budget alone: it runs first
    for (int i = 0; i < 1200; ++i) {
      const int64_t start = live_bytes;
      const uint64_t hash = Walk(*grammar, random);
      grown += live_bytes - start;
      most = std::max(most, grown);
      ASSERT_EQ(hash, Walk(*expected, other)) << text;
    }
    EXPECT_LT(most, static_cast<int64_t>(kBudget) * 5 / 2) << text;
    if (text == kCounts) {
      EXPECT_GT(live_bytes - before, 2 * most) << "the budget did nothing";
    }
  }
}

TEST(MemoryTest, WhatIsInUseStaysGood) {
  const Compiler free(Tokens(), {.memory_budget = size_t{1} << 40});
  const Compiler bound(Tokens(), {.memory_budget = size_t{200} << 10});
  for (const char* text : {kCounts, kNames, kSum, kRecord}) {
    const auto expected = Compile(free, text);
    const auto grammar = Compile(bound, text);
    std::mt19937 random(4);
    State state = grammar->Start(), twin = expected->Start();
    for (int i = 0; i < 30; ++i) {
      const TokenId token = Draw(twin, random, 1000);
      if (token == kNoToken) break;
      state = *state.Advance(token);
      twin = *twin.Advance(token);
    }
    const std::shared_ptr<const Mask> mask = state.mask();
    const std::vector<TokenId> allowed = mask->Tokens();
    for (int i = 0; i < 3000 && !state.stale(); ++i) Walk(*grammar, random);
    ASSERT_TRUE(state.stale()) << text;
    EXPECT_EQ(mask->Tokens(), allowed);
    EXPECT_EQ(state.mask()->Tokens(), allowed);
    EXPECT_EQ(state.CompletionBytes(), twin.CompletionBytes());
    for (const TokenId token : allowed) {
      const auto a = state.Advance(token), b = twin.Advance(token);
      ASSERT_EQ(a.has_value(), b.has_value());
      if (!a) continue;
      EXPECT_EQ(a->mask()->Tokens(), b->mask()->Tokens());
    }
  }
}

TEST(MemoryTest, MatchersTakeTheirStepsAgain) {
  const Compiler free(Tokens(), {.memory_budget = size_t{1} << 40});
  const Compiler bound(Tokens(), {.memory_budget = size_t{1} << 20});
  const auto expected = Compile(free, kCounts);
  const auto grammar = Compile(bound, kCounts);
  Matcher matcher(*grammar), twin(*expected);
  std::mt19937 random(5);
  int renewed = 0;
  for (int i = 0; i < 1500; ++i) {
    Walk(*grammar, random);
    const TokenId token = Draw(twin.state(), random, 100000);
    if (token == kNoToken || matcher.steps() > 150) {
      ASSERT_TRUE(matcher.Rollback(matcher.steps() / 2) && twin.Rollback(twin.steps() / 2));
      ASSERT_EQ(matcher.steps(), twin.steps());
      continue;
    }
    renewed += matcher.state().stale();
    if (i % 7 == 0 && static_cast<size_t>(token) < 256) {
      const std::string_view bytes = Tokens()->bytes(token);
      ASSERT_EQ(matcher.AcceptBytes(bytes), twin.AcceptBytes(bytes));
    } else {
      ASSERT_TRUE(matcher.Accept(token));
      ASSERT_TRUE(twin.Accept(token));
    }
    ASSERT_EQ(matcher.state().mask()->Tokens(), twin.state().mask()->Tokens());
  }
  EXPECT_GT(renewed, 3);
  matcher.Reset();
  EXPECT_EQ(matcher.state().mask()->Tokens(), expected->Start().mask()->Tokens());
}

// One output that grows on and on, in which nearly all that is found lies off the path.
TEST(MemoryTest, ALongOutputStaysInTheBudgetToo) {
  constexpr size_t kBudget = size_t{4} << 20;
  const Compiler compiler(Tokens(), {.memory_budget = kBudget});
  const auto grammar =
      Compile(compiler,
              R"({"type":"object","additionalProperties":{"type":"integer"},"minProperties":200})");
  ASSERT_TRUE(grammar.ok());
  std::mt19937 random(6);
  const int64_t before = live_bytes;
  int64_t most = 0;
  Matcher matcher(*grammar);
  std::vector<uint32_t> row(static_cast<size_t>(Tokens()->mask_words()));
  for (int i = 0; i < 3000; ++i) {
    matcher.FillMask(row);
    const TokenId token = Draw(matcher.state(), random, 4);
    if (token == kNoToken) break;
    ASSERT_TRUE(matcher.Accept(token));
    most = std::max(most, live_bytes - before);
  }
  EXPECT_TRUE(matcher.accepting());
  EXPECT_LT(most, static_cast<int64_t>(4 * kBudget));
}

TEST(MemoryTest, GrammarsThatNobodyUsesGiveAllBack) {
  constexpr size_t kBudget = size_t{1} << 20;
  const Compiler compiler(Tokens(), {.memory_budget = kBudget});
  std::vector<Grammar> grammars;
  std::mt19937 random(7);
  const int64_t before = live_bytes;
  for (int i = 0; i < 60; ++i) {
    const std::string schema = R"({"type":"object","properties":{"a)" + std::to_string(i) +
                               R"(":{"type":"string","format":"email"}},"minProperties":1})";
    grammars.push_back(*Compile(compiler, schema));
    for (int k = 0; k < 4; ++k) Walk(grammars.back(), random);
  }
  EXPECT_LT(live_bytes - before, static_cast<int64_t>(3 * kBudget));
  EXPECT_LT(compiler.memory_bytes(), 2 * kBudget);
  for (const Grammar& grammar : grammars) EXPECT_EQ(grammar.Start().forced(), "{\"");
}

// A grammar that is larger than the budget of all, in a process that then stays idle.
TEST(MemoryTest, UnusedGrammarsBeyondTheBudgetAreFreed) {
  const Compiler compiler(Tokens(), {.memory_budget = size_t{64} << 10});
  const auto grammar = Compile(compiler, kRecord);
  std::mt19937 random(7), other(7);
  const uint64_t walk = Walk(*grammar, random);
  ASSERT_GT(compiler.memory_bytes(), size_t{64} << 10);
  const int64_t before = live_bytes;
  compiler.FreeUnused();
  std::optional<State> state = grammar->Start();
  compiler.FreeUnused();
  compiler.FreeUnused();
  EXPECT_GT(live_bytes, before - (16 << 10)) << "the grammar is in use";
  state.reset();
  compiler.FreeUnused();
  EXPECT_LT(live_bytes, before - (32 << 10));
  EXPECT_LT(compiler.memory_bytes(), size_t{32} << 10);
  EXPECT_EQ(Walk(*grammar, other), walk);
}

TEST(MemoryTest, CombinedGrammarsBeginAnew) {
  const Compiler free(Tokens(), {.memory_budget = size_t{1} << 40});
  const Compiler bound(Tokens(), {.memory_budget = size_t{512} << 10});
  const auto make = [](const Compiler& compiler) {
    return *Intersect(*Compile(compiler, kSum),
                      *compiler.CompileRegex("[0-9+(]*[a-z\\[\\]0-9+-]*.*"));
  };
  const Grammar expected = make(free), grammar = make(bound);
  const State old = grammar.Start();
  std::mt19937 random(8), other(8);
  for (int i = 0; i < 1500 && !old.stale(); ++i)
    ASSERT_EQ(Walk(grammar, random, 20), Walk(expected, other, 20));
  EXPECT_TRUE(old.stale());
  EXPECT_EQ(old.mask()->Tokens(), expected.Start().mask()->Tokens());
}

// Documents that references lead to are not asked for again.
TEST(MemoryTest, DocumentsAreAskedForOnce) {
  const Compiler compiler(Tokens(), {.memory_budget = size_t{1} << 20});
  int asked = 0;
  JsonSchemaOptions options;
  options.whitespace = JsonSchemaOptions::Whitespace::kCompact;
  options.resolve_document = [&asked](std::string_view) -> Result<std::string> {
    ++asked;
    return std::string(R"({"type":"integer"})");
  };
  const auto grammar = compiler.CompileJsonSchema(
      R"({"type":"object","additionalProperties":{"$ref":"http://a.b/c"}})", options);
  ASSERT_TRUE(grammar.ok());
  const int once = asked;
  const State old = grammar->Start();
  std::mt19937 random(9);
  for (int i = 0; i < 3000 && !old.stale(); ++i) Walk(*grammar, random);
  EXPECT_TRUE(old.stale());
  EXPECT_TRUE(grammar->Start().Advance("{\"a\":1}").has_value());
  EXPECT_FALSE(grammar->Start().Advance("{\"a\":true").has_value());
  EXPECT_EQ(asked, once);
}

TEST(MemoryTest, ThreadsShareABudget) {
  const Compiler compiler(Tokens(), {.memory_budget = size_t{1} << 20});
  const Compiler free(Tokens(), {.memory_budget = size_t{1} << 40});
  const std::vector<const char*> texts = {kCounts, kNames, kSum};
  std::vector<Grammar> grammars, expected;
  for (const char* text : texts) {
    grammars.push_back(*Compile(compiler, text));
    expected.push_back(*Compile(free, text));
  }
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(10 + t), other(10 + t);
      for (unsigned i = 0; i < 250; ++i) {
        const size_t k = (i + t) % texts.size();
        ASSERT_EQ(Walk(grammars[k], random), Walk(expected[k], other));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace pawl
