// A question that an exception leaves in the middle: the k-th allocation fails, or a StopScope ends
// it. Whatever was half written then, the same question, asked again, and all that come later are
// answered as by a grammar to which nothing has happened; so are those of others that stand in the
// same grammar. The oracle is that other grammar.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "grammar/grammar_access.h"
#include "grammar/regex/regex_machine.h"
#include "pawl/combine.h"
#include "pawl/compiler.h"
#include "pawl/matcher.h"
#include "src/base/stop_scope.h"
#include "tests/support/vocabularies.h"

namespace {
// Of this thread: the allocation that fails, counted from now on; 0: none.
thread_local int64_t failing = 0;

void* TakeOrNull(size_t size) {
  if (failing > 0 && --failing == 0) return nullptr;
  return std::malloc(size);
}
void* Take(size_t size) {
  void* const taken = TakeOrNull(size);
  if (taken == nullptr) throw std::bad_alloc();
  return taken;
}
}  // namespace

void* operator new(size_t size) { return Take(size); }
void* operator new[](size_t size) { return Take(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return TakeOrNull(size); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return TakeOrNull(size); }
void operator delete(void* taken) noexcept { std::free(taken); }
void operator delete[](void* taken) noexcept { std::free(taken); }
void operator delete(void* taken, size_t) noexcept { std::free(taken); }
void operator delete[](void* taken, size_t) noexcept { std::free(taken); }

namespace pawl {
namespace {

std::shared_ptr<const Vocabulary> Tokens() {
  static const auto vocabulary = VocabularyOf(JsonTokens(300));
  return vocabulary;
}

struct Maker {
  const char* name;
  Grammar (*make)();
};

Compiler Fresh() { return Compiler(Tokens()); }

constexpr const char* kSum = R"g(root ::= term (("+" | "-") term)*
term ::= [0-9]+ | "(" root ")" | [a-z]+ "[" root "]")g";

const Maker kMakers[] = {
    {"record",
     [] {
       return *Fresh().CompileJsonSchema(
           R"({"type":"object","properties":{"name":{"type":"string"},
               "age":{"type":"integer","minimum":3,"multipleOf":7},
               "when":{"type":"string","format":"date"}},"required":["name","age"],
               "patternProperties":{"^x-[a-z]+$":{"type":"number"},"a.*1":{"minimum":3}},
               "minProperties":4})");
     }},
    {"items",
     [] {
       return *Fresh().CompileJsonSchema(
           R"({"type":"array","uniqueItems":true,"minItems":3,"contains":{"type":"null"},
               "items":{"anyOf":[{"type":"string","maxLength":3,"pattern":"a|b"},{"type":"null"},
               {"type":"boolean"},{"type":"integer","maximum":20}]}})");
     }},
    {"sum", [] { return *Fresh().CompileGrammar(kSum, GrammarLanguage::kEbnf); }},
    {"tag",
     [] {
       return *Fresh().CompileStructuralTag(
           R"({"type":"structural_tag","format":{"type":"triggered_tags",
               "triggers":["<call"],"tags":[{"begin":"<call=f>","end":"</call>","content":
               {"type":"json_schema","json_schema":{"type":"object"}}}]}})");
     }},
    {"regex", [] { return *Fresh().CompileRegex("(?=.*[0-9])(?!.*ab)(a|b|c)*[a-z0-9]{30}"); }},
    {"both",
     [] {
       const Compiler compiler = Fresh();
       return *Intersect(*compiler.CompileRegex("(ab|c)*[0-9]{20}"), *compiler.CompileRegex("a.*"));
     }},
    {"words",
     [] {
       const std::vector<std::string> words = {"[7"};
       return *RequireWords(*Fresh().CompileGrammar(kSum, GrammarLanguage::kEbnf), words);
     }},
};

struct Answer {
  std::vector<uint32_t> mask;
  std::optional<std::vector<TokenId>> completion;
  std::string forced;
  size_t fits = 0;
  bool accepting = false;
  bool operator==(const Answer&) const = default;
};

// The allocation that is to fail, counted over the questions alone; 0: none.
int64_t pending = 0;

// Asks again after each exception; counts those.
template <typename Ask>
auto Insist(int& failures, const Ask& ask) {
  struct Armed {
    Armed() { failing = pending; }
    ~Armed() { pending = std::exchange(failing, 0); }
  };
  for (;;) {
    try {
      const Armed armed;
      return ask();
    } catch (const std::bad_alloc&) {
      ++failures;
    } catch (const Stopped&) {
      ++failures;
    }
  }
}

Answer Look(const Matcher& matcher, int& failures) {
  Answer answer;
  answer.mask.resize(static_cast<size_t>(matcher.grammar().vocabulary().mask_words()));
  Insist(failures, [&] { return matcher.FillMask(answer.mask); });
  answer.completion = Insist(failures, [&] { return matcher.CompletionTokens(); });
  answer.forced = Insist(failures, [&] { return matcher.ForcedBytes(8); });
  answer.fits = Insist(failures, [&] { return matcher.MatchedPrefix("a1\": "); });
  answer.accepting = Insist(failures, [&] { return matcher.accepting(); });
  return answer;
}

// A walk that the answers themselves lead, and what was answered at each step.
struct Story {
  std::vector<TokenId> tokens;
  std::vector<Answer> answers;
};

Story Tell(const Grammar& grammar) {
  Story story;
  Matcher matcher(grammar);
  std::mt19937 random(7);
  int failures = 0;
  for (int step = 0; step < 12; ++step) {
    story.answers.push_back(Look(matcher, failures));
    std::vector<TokenId> may;
    for (TokenId t = 0; t + 1 < matcher.grammar().vocabulary().size(); ++t) {
      if (story.answers.back().mask[static_cast<size_t>(t) / 32] >> (t % 32) & 1) may.push_back(t);
    }
    if (may.empty()) break;
    story.tokens.push_back(may[random() % may.size()]);
    EXPECT_TRUE(matcher.Accept(story.tokens.back()));
  }
  return story;
}

class LostTest : public testing::TestWithParam<Maker> {};

TEST_P(LostTest, AllocationsThatFailChangeNoAnswer) {
  const Story story = Tell(GetParam().make());
  ASSERT_GE(story.tokens.size(), 5u);
  const size_t half = story.tokens.size() / 2;
  int runs = 0;
  for (int64_t k = 1;; k += 1 + k / 24, ++runs) {
    const Grammar grammar = GetParam().make();
    Matcher other(grammar);  // stands somewhere else meanwhile
    for (size_t i = 0; i < half; ++i) ASSERT_TRUE(other.Accept(story.tokens[i]));
    Matcher matcher(grammar);
    int failures = 0;
    pending = k;
    for (size_t i = 0; i < story.answers.size(); ++i) {
      const Answer answer = Look(matcher, failures);
      if (i < story.tokens.size()) {
        ASSERT_TRUE(Insist(failures, [&] { return matcher.Accept(story.tokens[i]); })) << k;
      }
      ASSERT_EQ(answer, story.answers[i]) << GetParam().name << ", allocation " << k << ", " << i;
    }
    const bool through = std::exchange(pending, 0) > 0;
    ASSERT_EQ(Look(other, failures), story.answers[half]) << GetParam().name << ", " << k;
    ASSERT_EQ(failures, through ? 0 : 1);
    if (through) break;
  }
  EXPECT_GT(runs, 40);
}

// The other thread may set the flag at any time.
TEST_P(LostTest, StopsChangeNoAnswer) {
  const Story story = Tell(GetParam().make());
  const Grammar grammar = GetParam().make();
  std::mt19937 random(5);
  int failures = 0;
  for (int round = 0; round < 40; ++round) {
    Matcher matcher(grammar);
    for (size_t i = 0; i < story.answers.size(); ++i) {
      std::atomic<bool> stop{round % 2 == 0};
      std::optional<std::thread> stopping;
      if (!stop) {
        stopping.emplace([&, spins = random() % 20'000] {
          for (std::atomic<unsigned> n{0}; n < spins;) ++n;
          stop = true;
        });
      }
      {
        const StopScope scope(&stop);
        try {
          std::vector<uint32_t> row(story.answers[i].mask.size());
          matcher.FillMask(row);
          (void)matcher.CompletionTokens();
          ASSERT_EQ(row, story.answers[i].mask) << GetParam().name;
        } catch (const Stopped&) {
          ++failures;
        }
      }
      if (stopping) stopping->join();
      int none = 0;
      ASSERT_EQ(Look(matcher, none), story.answers[i]) << GetParam().name << ", step " << i;
      ASSERT_EQ(none, 0);
      if (i < story.tokens.size()) {
        ASSERT_TRUE(matcher.Accept(story.tokens[i]));
      }
    }
  }
  EXPECT_GT(failures, 0);
}

TEST_P(LostTest, AStateSaysSo) {
  const Grammar grammar = GetParam().make();
  const State state = grammar.Start();
  const auto mask = state.mask();
  std::optional<State> later;
  for (const TokenId token : mask->Tokens()) {
    if ((later = state.Advance(token))) break;
  }
  ASSERT_TRUE(later);
  EXPECT_FALSE(state.lost());
  for (int64_t k = 1; !state.lost(); ++k) {
    failing = k;
    try {
      (void)later->mask();
      (void)later->CompletionTokens();
      (void)later->Advance("a1b2");
    } catch (const std::bad_alloc&) {
    }
    if (std::exchange(failing, 0) > 0) break;  // all was known: nothing to fail in
  }
  if (!state.lost()) GTEST_SKIP() << "nothing was asked of the machine that allocates";
  EXPECT_TRUE(later->lost());
  EXPECT_TRUE(state.stale());
  EXPECT_EQ(state.mask()->count(), 0);
  EXPECT_FALSE(state.accepting());
  EXPECT_FALSE(later->CompletionBytes());
  EXPECT_FALSE(later->Advance("a"));
  EXPECT_EQ(state.MatchedPrefix("a"), 0u);
  EXPECT_EQ(state.forced(), "");
  std::vector<uint32_t> row(mask->words().size());
  EXPECT_EQ(state.CopyKnownMask(row), -1);
  EXPECT_FALSE(grammar.Start().lost());
  EXPECT_TRUE(std::ranges::equal(grammar.Start().mask()->words(), mask->words()));
}

INSTANTIATE_TEST_SUITE_P(Grammars, LostTest, testing::ValuesIn(kMakers),
                         [](const auto& grammar) { return std::string(grammar.param.name); });

// Many matchers of one grammar over a pool of threads, while questions of another thread break it.
TEST(LostBatchTest, RowsAreRightWhileOthersAreStopped) {
  const Story story = Tell(kMakers[0].make());
  const Grammar grammar = kMakers[0].make();
  std::vector<Matcher> matchers;
  std::vector<const Matcher*> pointers;
  for (size_t i = 0; i < 8; ++i) matchers.emplace_back(grammar);
  for (const Matcher& matcher : matchers) pointers.push_back(&matcher);
  std::atomic<bool> done{false};
  std::thread breaker([&] {
    const std::atomic<bool> stop{true};
    while (!done) {
      const StopScope scope(&stop);
      try {
        (void)grammar.Start().CompletionTokens();
        (void)grammar.Start().mask();
      } catch (const Stopped&) {
      }
    }
  });
  const BatchFiller filler(2);
  const size_t words = story.answers[0].mask.size();
  std::vector<uint32_t> rows(words * matchers.size());
  for (int round = 0; round < 10; ++round) {
    for (Matcher& matcher : matchers) matcher.Reset();
    for (size_t i = 0; i < story.answers.size(); ++i) {
      filler.Fill(pointers, rows.data(), words);
      for (size_t m = 0; m < matchers.size(); ++m) {
        EXPECT_TRUE(
            std::ranges::equal(std::span(rows).subspan(m * words, words), story.answers[i].mask));
      }
      if (i == story.tokens.size()) break;
      for (Matcher& matcher : matchers) EXPECT_TRUE(matcher.Accept(story.tokens[i]));
    }
  }
  done = true;
  breaker.join();
}

// A machine that throws and cannot be made again is the end of its grammar, and says so.
TEST(LostMachineTest, WithoutASourceTheGrammarTakesNothingMore) {
  class Throwing : public Machine {
   public:
    Key Start() override { return MakeKey(1, 1); }
    uint32_t StepLexeme(uint32_t lexeme, uint8_t byte) override {
      if (byte == 'x') throw std::runtime_error("x");
      return lexeme;
    }
    Key StepFrame(Key, uint8_t) override { return kDead; }
    bool Accepting(Key) override { return true; }
    std::optional<std::string> CompletionBytes(Key) override { return ""; }
  };
  const Grammar grammar(std::make_shared<Throwing>(), Tokens());
  Matcher matcher(grammar);
  ASSERT_TRUE(matcher.AcceptBytes("abc"));
  EXPECT_THROW(matcher.AcceptBytes("x"), std::runtime_error);
  EXPECT_FALSE(matcher.AcceptBytes("a"));
  EXPECT_FALSE(matcher.accepting());
  std::vector<uint32_t> row(static_cast<size_t>(grammar.vocabulary().mask_words()));
  EXPECT_FALSE(matcher.FillMask(row));
  EXPECT_FALSE(grammar.Start().accepting());
}

// Counted where the machine counts: the steps of its regexes.
TEST(LostStepsTest, AStopEndsARegexWithinAThousandSteps) {
  const auto arena = std::make_shared<RegexArena>();
  // The set of places behind an "a" doubles with each character.
  const CodepointSet ab = CodepointSet::FromRanges(std::vector<CodepointRange>{{U'a', U'b'}});
  const ReId any = arena->Set(ab);
  const ReId regex = arena->Concat(
      {arena->Repeat(any, 0, std::nullopt), arena->Literal(U"a"), arena->Repeat(any, 500, 500)});
  RegexMachine machine(arena, regex);
  const Machine::Key start = machine.Start();
  const uint64_t before = arena->work();
  const std::atomic<bool> stop{true};
  const StopScope scope(&stop);
  std::mt19937 random(1);
  const auto walk = [&] {
    Machine::Key at = start;
    for (int i = 0; i < 10'000; ++i) at = machine.Step(at, random() % 2 == 0 ? 'a' : 'b');
  };
  EXPECT_THROW(walk(), Stopped);
  EXPECT_LE(arena->work() - before, 1000u);
}

}  // namespace
}  // namespace pawl
