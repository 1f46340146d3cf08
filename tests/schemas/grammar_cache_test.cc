// The cache of grammars: what is kept, who waits, who compiles.
#include "schemas/grammar_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "pawl/compiler.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

class GrammarCacheTest : public testing::Test {
 protected:
  Result<Grammar> Get(GrammarCache& cache, const std::string& pattern, bool* known = nullptr,
                      const std::shared_ptr<StopFlag>& stop = nullptr) {
    return cache.Get(
        pattern,
        [&] {
          ++compiled_;
          return compiler_.CompileRegex(pattern);
        },
        stop, known);
  }

  Compiler compiler_{Bytes()};
  std::atomic<int> compiled_{0};
};

TEST_F(GrammarCacheTest, WhatWasUsedLastIsKept) {
  GrammarCache cache(2);
  bool known = true;
  for (const char* pattern : {"a", "b", "a", "c", "a", "b"}) {
    ASSERT_TRUE(Get(cache, pattern, &known).ok());
  }
  EXPECT_FALSE(known);      // "b" went when "c" came
  EXPECT_EQ(compiled_, 4);  // a, b, c, b
  const GrammarCache::Stats stats = cache.stats();
  EXPECT_EQ(stats.hits, 2);
  EXPECT_EQ(stats.misses, 4);
  EXPECT_EQ(stats.evicted, 2);
  EXPECT_EQ(stats.grammars, 2u);
}

TEST_F(GrammarCacheTest, KeysHaveABudgetOfBytes) {
  GrammarCache cache(1000, 64 << 10);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(Get(cache, std::string(2000, 'a') + std::to_string(i)).ok());
    EXPECT_LE(cache.stats().key_bytes, size_t{64} << 10);
  }
  EXPECT_GT(cache.stats().grammars, 4u);
  const size_t before = cache.stats().grammars;
  ASSERT_TRUE(Get(cache, std::string(40000, 'a')).ok());
  EXPECT_EQ(cache.stats().grammars, before) << "a key over the budget is not kept";
}

TEST_F(GrammarCacheTest, WhatFailsIsNotKept) {
  GrammarCache cache(8);
  EXPECT_FALSE(Get(cache, "(").ok());
  EXPECT_FALSE(Get(cache, "(").ok());
  EXPECT_EQ(compiled_, 2);
  EXPECT_EQ(cache.stats().grammars, 0u);
}

TEST_F(GrammarCacheTest, ThreadsThatMissOneKeyCompileOnce) {
  GrammarCache cache(8);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) good += Get(cache, "[a-z]{1,9}" + std::to_string(k)).ok();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 400);
  EXPECT_EQ(cache.stats().misses, compiled_);
  EXPECT_GE(compiled_, 50);  // 8 are kept: a thread that is behind compiles again
}

// The compilation of another caller is stopped: those who waited for it go on by themselves.
TEST_F(GrammarCacheTest, ACompilationThatIsStoppedIsMadeByTheNext) {
  GrammarCache cache(8);
  std::atomic<bool> inside{false}, leave{false};
  std::thread first([&] {
    const auto result = cache.Get("k", [&]() -> Result<Grammar> {
      inside = true;
      while (!leave) std::this_thread::yield();
      return Error{ErrorCode::kLimit, "compiling was stopped", ""};
    });
    EXPECT_FALSE(result.ok());
  });
  while (!inside) std::this_thread::yield();
  std::thread second([&] {
    bool known = true;
    EXPECT_TRUE(cache
                    .Get(
                        "k", [&] { return compiler_.CompileRegex("k"); }, nullptr, &known)
                    .ok());
    EXPECT_FALSE(known);
  });
  leave = true;
  first.join();
  second.join();
}

TEST_F(GrammarCacheTest, EveryOptionIsInTheKey) {
  const std::string text = "x";
  const std::span<const std::string> texts(&text, 1);
  const std::string plain = GrammarKeyOf("lark", texts);
  std::vector<GrammarOptions> others(7);
  others[0].root = "start";
  others[1].lark_as_xgrammar = true;
  others[2].max_bytes = 1;
  others[3].max_nesting = 1;
  others[4].prepare_steps = 1;
  others[5].json_schema.max_string = 3;
  others[6].json_schema.key_separator = ": ";
  for (size_t i = 0; i < others.size(); ++i) {
    EXPECT_NE(GrammarKeyOf("lark", texts, others[i]), plain) << i;
  }
  EXPECT_NE(GrammarKeyOf("ebnf", texts), plain);
  const std::vector<std::string> cut = {"ab", "c"}, other = {"a", "bc"};
  EXPECT_NE(GrammarKeyOf("choice", cut), GrammarKeyOf("choice", other));
}

// Every kind of text, from a compiler that keeps grammars.
TEST_F(GrammarCacheTest, TheCompilerKeepsGrammarsOfEveryKind) {
  const Compiler keeping(Bytes(), {.cached_grammars = 8});
  const std::vector<std::string> choices = {"a", "b"};
  const auto all = [&] {
    std::vector<Grammar> grammars;
    grammars.push_back(*keeping.CompileRegex("a"));
    grammars.push_back(*keeping.CompileChoice(choices));
    grammars.push_back(*keeping.CompileSubstring("a"));
    grammars.push_back(*keeping.CompileSubstring("a", true));
    grammars.push_back(*keeping.CompileJsonSchema("{}"));
    grammars.push_back(*keeping.CompileGrammar("root ::= \"a\"", GrammarLanguage::kEbnf));
    grammars.push_back(*keeping.CompileGrammar("root ::= \"a\"", GrammarLanguage::kGbnf));
    return grammars;
  };
  const std::vector<Grammar> once = all(), twice = all();
  for (size_t i = 0; i < once.size(); ++i) {
    EXPECT_TRUE(once[i].Start() == twice[i].Start()) << i;
    for (size_t k = 0; k < i; ++k) EXPECT_FALSE(once[i].Start() == once[k].Start()) << i << k;
  }
}

}  // namespace
}  // namespace pawl
