// The matcher against its slow twin: a list of the accepted steps, replayed from the start with
// State alone whenever something is asked, over random sequences of calls. Batches and trees of
// drafts against one matcher at a time.
#include "pawl/matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "pawl/compiler.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

constexpr size_t kStride = 12;  // more than the words of the vocabulary
constexpr TokenId kEnd = 256 + 8;
constexpr TokenId kEnd2 = kEnd + 1;
constexpr TokenId kControl = kEnd + 2;

std::shared_ptr<const Vocabulary> Words() {
  return VocabularyOf(
      AllBytes({"ab", "abc", "bc", "\"a", "\":", "{\"", "\"}", "12", "<end>", "<eot>"}),
      {"<control>"}, {"<end>", "<eot>"});
}

std::vector<Grammar> Grammars() {
  const Compiler compiler(Words());
  JsonSchemaOptions compact;
  compact.whitespace = JsonSchemaOptions::Whitespace::kCompact;
  return {*compiler.CompileRegex("(abc|ab|b)*c?"),
          *compiler.CompileChoice(std::vector<std::string>{"abc", "abcabc", "12"}),
          *compiler.CompileJsonSchema(
              R"({"type":"object","properties":{"a":{"type":"integer"},"abc":{"type":"string"}},
              "additionalProperties":false})",
              compact)};
}

// What a matcher should be, without any cleverness.
struct Twin {
  using Step = std::variant<TokenId, std::string>;
  const Grammar& grammar;
  std::vector<TokenId> ends;
  std::vector<Step> steps = {};

  bool IsEnd(TokenId t) const { return std::ranges::find(ends, t) != ends.end(); }
  bool ended() const {
    return !steps.empty() && std::holds_alternative<TokenId>(steps.back()) &&
           IsEnd(std::get<TokenId>(steps.back()));
  }
  State state() const {
    State at = grammar.Start();
    for (const Step& step : steps) {
      if (const auto* bytes = std::get_if<std::string>(&step)) at = *at.Advance(*bytes);
      if (const auto* token = std::get_if<TokenId>(&step); token != nullptr && !IsEnd(*token))
        at = *at.Advance(*token);
    }
    return at;
  }
  bool Takes(TokenId t) const {
    if (ended()) return false;
    return IsEnd(t) ? state().accepting() : state().Advance(t).has_value();
  }
};

bool BitOf(const std::vector<uint32_t>& row, TokenId t) {
  return (row[static_cast<size_t>(t) / 32] >> (t % 32)) & 1;
}

// Every bit of the mask is what the twin takes. Returns the allowed tokens.
std::vector<TokenId> ExpectSame(const Matcher& matcher, const Twin& twin) {
  const Vocabulary& v = matcher.grammar().vocabulary();
  std::vector<uint32_t> row(kStride, 0xABABABABu);
  const bool any = matcher.FillMask(row);
  std::vector<TokenId> allowed;
  for (TokenId t = 0; t < v.mask_words() * 32; ++t) {
    const bool expected = t < v.size() && twin.Takes(t);
    EXPECT_EQ(BitOf(row, t), expected) << t;
    if (expected) allowed.push_back(t);
  }
  for (size_t i = static_cast<size_t>(v.mask_words()); i < kStride; ++i)
    EXPECT_EQ(row[i], 0xABABABABu);
  EXPECT_EQ(any, !allowed.empty());
  EXPECT_EQ(matcher.steps(), twin.steps.size());
  EXPECT_EQ(matcher.accepting(), twin.state().accepting());
  return allowed;
}

TEST(MatcherTest, DoesWhatItsTwinDoesOverRandomCalls) {
  std::mt19937 random(5);
  const std::vector<Grammar> grammars = Grammars();
  for (int round = 0; round < 60; ++round) {
    const Grammar& grammar = grammars[random() % grammars.size()];
    MatcherOptions options;
    std::vector<TokenId> ends = {kEnd, kEnd2};
    switch (random() % 3) {
      case 0:
        options.end_tokens = ends = {kControl, kEnd};
        break;
      case 1:
        options.end_tokens = ends = {'c'};  // fits as text as well
        break;
      default:
        break;
    }
    Matcher matcher = *Matcher::Create(grammar, options);
    Twin twin{grammar, ends};
    for (int call = 0; call < 40; ++call) {
      const std::vector<TokenId> allowed = ExpectSame(matcher, twin);
      EXPECT_EQ(matcher.terminated(), twin.ended());
      switch (random() % 8) {
        case 0: {
          const size_t n = random() % 4;
          EXPECT_EQ(matcher.Rollback(n), n <= twin.steps.size());
          if (n <= twin.steps.size()) twin.steps.resize(twin.steps.size() - n);
          break;
        }
        case 1: {
          const std::string bytes = std::vector<std::string>{"a", "ab", "", "{\"a"}[random() % 4];
          const bool takes = !twin.ended() && twin.state().Advance(bytes).has_value();
          EXPECT_EQ(matcher.AcceptBytes(bytes), takes);
          if (takes) twin.steps.emplace_back(bytes);
          break;
        }
        case 2: {
          const auto t = static_cast<TokenId>(random() % 280) - 4;  // outside on both sides, too
          const bool takes = t >= 0 && t < grammar.vocabulary().size() && twin.Takes(t);
          EXPECT_EQ(matcher.Accept(t), takes) << t;
          if (takes) twin.steps.emplace_back(t);
          break;
        }
        case 3: {
          Matcher clone = matcher;  // goes its own way
          if (!allowed.empty()) {
            EXPECT_TRUE(clone.Accept(allowed.front()));
          }
          clone.Reset();
          EXPECT_EQ(clone.state(), grammar.Start());
          break;
        }
        case 4:
          if (random() % 4 == 0) {
            matcher.Reset();
            twin.steps.clear();
          }
          break;
        default:
          if (allowed.empty()) break;
          const TokenId t = allowed[random() % allowed.size()];
          EXPECT_TRUE(matcher.Accept(t));
          twin.steps.emplace_back(t);
      }
    }
  }
}

TEST(MatcherTest, ValidatesWithoutMoving) {
  std::mt19937 random(8);
  for (const Grammar& grammar : Grammars()) {
    for (int round = 0; round < 100; ++round) {
      Matcher matcher(grammar);
      std::vector<TokenId> tokens;
      std::vector<uint32_t> row(kStride);
      Matcher scout = matcher;
      for (int i = 0; i < 6; ++i) {
        scout.FillMask(row);
        const auto allowed = scout.state().mask()->Tokens();
        const bool wild = allowed.empty() || scout.terminated() || random() % 8 == 0;
        tokens.push_back(wild ? static_cast<TokenId>(random() % 270)
                              : allowed[random() % allowed.size()]);
        scout.Accept(tokens.back());
      }
      size_t expected = 0;
      Matcher walker = matcher;
      while (expected < tokens.size() && walker.Accept(tokens[expected])) ++expected;
      EXPECT_EQ(matcher.ValidateTokens(tokens), expected);
      EXPECT_EQ(matcher.steps(), 0u);
      EXPECT_EQ(matcher.state(), grammar.Start());
    }
  }
}

TEST(MatcherTest, EndsWithoutAnEndTokenWhenNothingCanFollow) {
  const std::vector<Grammar> grammars = Grammars();
  MatcherOptions options;
  options.terminate_without_end_token = true;
  Matcher matcher = *Matcher::Create(grammars[1], options);  // abc, abcabc, 12
  std::vector<uint32_t> row(kStride);
  ASSERT_TRUE(matcher.AcceptBytes("abc"));
  EXPECT_FALSE(matcher.terminated());  // another "abc" may follow
  EXPECT_TRUE(matcher.FillMask(row));
  EXPECT_FALSE(BitOf(row, kEnd));
  EXPECT_FALSE(matcher.Accept(kEnd));
  ASSERT_TRUE(matcher.AcceptBytes("abc"));
  EXPECT_TRUE(matcher.terminated());
  EXPECT_FALSE(matcher.FillMask(row));
  EXPECT_TRUE(matcher.Rollback(1));
  EXPECT_FALSE(matcher.terminated());
}

TEST(MatcherTest, RefusesEndTokensOutsideTheVocabulary) {
  const Grammar grammar = Grammars()[0];
  for (const TokenId token : {-1, kControl + 1}) {
    MatcherOptions options;
    options.end_tokens = {token};
    const auto matcher = Matcher::Create(grammar, options);
    ASSERT_FALSE(matcher.ok());
    EXPECT_EQ(matcher.error().message, "end token " + std::to_string(token) + " is outside 0..266");
    EXPECT_EQ(matcher.error().place, "end_tokens");
  }
}

TEST(MatcherTest, ForcedTokensSpellWhatIsForcedAndLeaveTheEndOpen) {
  const Compiler compiler(Words());
  Matcher matcher(*compiler.CompileRegex("xabcz(1|2)"));
  EXPECT_EQ(matcher.ForcedBytes(), "xabcz");
  EXPECT_EQ(matcher.ForcedBytes(2), "xa");
  EXPECT_EQ(matcher.ForcedTokens(), (std::vector<TokenId>{'x', 257, 'z'}));  // 257: "abc"
  // "xab": "abc" could swallow the "ab".
  EXPECT_EQ(matcher.ForcedTokens(3), (std::vector<TokenId>{'x'}));
  // A tokenizer that knows no longer tokens.
  const Encoder bytes = [](std::string_view text) {
    return std::vector<TokenId>(text.begin(), text.end());
  };
  EXPECT_EQ(matcher.ForcedTokens(256, bytes), (std::vector<TokenId>{'x', 'a', 'b', 'c', 'z'}));
  for (const TokenId t : matcher.ForcedTokens()) EXPECT_TRUE(matcher.Accept(t));
  EXPECT_TRUE(matcher.ForcedTokens().empty());
  EXPECT_TRUE(matcher.AcceptBytes("1"));
  EXPECT_TRUE(matcher.Accept(kEnd));
  EXPECT_TRUE(matcher.ForcedBytes().empty());
  EXPECT_TRUE(matcher.ForcedTokens().empty());
}

TEST(MatcherTest, KeepsItsGrammarAlive) {
  std::optional<Matcher> matcher;
  {
    const Compiler compiler(Words());
    matcher.emplace(*compiler.CompileRegex("ab*"));
  }
  EXPECT_TRUE(matcher->AcceptBytes("abbb"));
  EXPECT_TRUE(matcher->accepting());
}

TEST(BatchFillerTest, FillsEachRowAsItsMatcherWould) {
  std::mt19937 random(3);
  const std::vector<Grammar> grammars = Grammars();
  for (const int threads : {1, 2, 5}) {
    const BatchFiller filler(threads);
    EXPECT_LE(filler.threads(), threads);
    for (int round = 0; round < 20; ++round) {
      std::vector<Matcher> matchers;
      std::vector<const Matcher*> pointers;
      const size_t n = random() % 40;
      for (size_t i = 0; i < n; ++i) {
        matchers.emplace_back(grammars[random() % grammars.size()]);
        std::vector<uint32_t> row(kStride);
        for (size_t steps = random() % 6; steps > 0 && matchers.back().FillMask(row); --steps) {
          const auto allowed = matchers.back().state().mask()->Tokens();
          matchers.back().Accept(allowed[random() % allowed.size()]);
        }
      }
      for (const Matcher& matcher : matchers)
        pointers.push_back(random() % 5 == 0 ? nullptr : &matcher);
      std::vector<uint32_t> rows(n * kStride, 7);
      const size_t empty = filler.Fill(pointers, rows.data(), kStride);
      size_t expected_empty = 0;
      for (size_t i = 0; i < n; ++i) {
        std::vector<uint32_t> expected(kStride, 7);
        if (pointers[i] != nullptr) expected_empty += !pointers[i]->FillMask(expected);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), &rows[i * kStride]));
      }
      EXPECT_EQ(empty, expected_empty);
    }
  }
}

TEST(StateTest, CopiesTheMasksThatAreKnown) {
  const Grammar grammar = *Compiler(Words()).CompileRegex("(ab|abc)*[0-9]");
  const State state = grammar.Start();
  std::vector<uint32_t> row(kStride, 7);
  EXPECT_EQ(state.CopyKnownMask(row), -1);
  EXPECT_EQ(row, std::vector<uint32_t>(kStride, 7));
  const auto mask = state.mask();
  EXPECT_EQ(state.CopyKnownMask(row), mask->count());
  EXPECT_TRUE(std::equal(mask->words().begin(), mask->words().end(), row.begin()));
}

// So many tokens that threads share the new states of one grammar.
std::shared_ptr<const Vocabulary> ManyWords() {
  std::vector<std::string> tokens = AllBytes();
  for (int i = 0; i < 36'000; ++i) {
    std::string word;
    for (int rest = i; word.size() < 4; rest /= 14) word += "abc0123\"{}:, "[rest % 14];
    tokens.push_back(std::move(word));
  }
  return VocabularyOf(std::move(tokens));
}

TEST(BatchFillerTest, ThreadsShareTheNewStatesOfOneGrammar) {
  const Compiler compiler(ManyWords());
  const auto compile = [&](int round) {
    if (round % 2 == 0) return *compiler.CompileRegex("((ab|abc){0,40}[0-9]{1,30}|c{3,50})*");
    return *compiler.CompileJsonSchema(
        R"({"type":"object","properties":{"a":{"type":"integer"},"abc":{"type":"string"},
            "c":{"type":"array","items":{"enum":["b","bc",1,12]}}}})");
  };
  const auto stride = static_cast<size_t>(compiler.CompileRegex("a")->vocabulary().mask_words());
  ASSERT_GE(stride, 1024u);
  for (int round = 0; round < 6; ++round) {
    // Places and their rows, one matcher at a time.
    std::mt19937 random(static_cast<unsigned>(round));
    const Grammar reference = compile(round);
    std::vector<std::string> places;
    std::vector<uint32_t> expected(60 * stride);
    for (size_t i = 0; i < 60; ++i) {
      Matcher matcher(reference);
      std::string text;
      for (size_t steps = random() % 30; steps > 0; --steps) {
        const auto allowed = matcher.state().mask()->Tokens();
        const TokenId token = allowed[random() % allowed.size()];
        if (reference.vocabulary().is_end(token)) break;
        ASSERT_TRUE(matcher.Accept(token));
        text += reference.vocabulary().bytes(token);
      }
      places.push_back(text);
      matcher.FillMask({&expected[i * stride], stride});
    }
    // The same of grammars that know nothing yet; two batches at once may want the same states.
    for (const int threads : {1, 2, 4}) {
      const Grammar grammar = compile(round);
      std::vector<Matcher> matchers;
      std::vector<const Matcher*> pointers;
      for (const std::string& place : places) {
        matchers.emplace_back(grammar);
        ASSERT_TRUE(matchers.back().AcceptBytes(place));
      }
      for (const Matcher& matcher : matchers) pointers.push_back(&matcher);
      std::vector<uint32_t> rows[2];
      const auto fill = [&](int which) {
        rows[which].assign(expected.size(), 7);
        BatchFiller(threads).Fill(pointers, rows[which].data(), stride);
      };
      std::thread other([&] { fill(1); });
      fill(0);
      other.join();
      EXPECT_EQ(rows[0], expected) << threads;
      EXPECT_EQ(rows[1], expected) << threads;
    }
  }
}

TEST(BatchFillerTest, ManyThreadsMayAskOneGrammarAtOnce) {
  // New and known states of one grammar, from threads that each make their own way through it.
  const Compiler compiler(Words());
  const Grammar grammar = *compiler.CompileRegex("((ab|abc){0,40}[0-9]{1,30}|c{3,50})*");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      Matcher matcher(grammar);
      std::vector<uint32_t> row(kStride);
      for (int i = 0; i < 400; ++i) {
        if (!matcher.FillMask(row)) {
          matcher.Reset();
          continue;
        }
        const auto t = static_cast<TokenId>(random() % 265);
        if (matcher.Accept(t) != BitOf(row, t)) ++wrong;
        const auto allowed = matcher.state().mask()->Tokens();
        if (!matcher.terminated() && !allowed.empty())
          matcher.Accept(allowed[random() % allowed.size()]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(DraftTreeTest, EachNodeHasTheMaskOfItsPath) {
  std::mt19937 random(11);
  const std::vector<Grammar> grammars = Grammars();
  for (int round = 0; round < 300; ++round) {
    Matcher matcher(grammars[random() % grammars.size()]);
    if (random() % 2 == 0) matcher.AcceptBytes("ab");
    const size_t n = random() % 12;
    std::vector<TokenId> tokens;
    std::vector<int32_t> parents;
    // A random order of the nodes: node order[i] hangs below one of order[0 .. i-1].
    std::vector<int32_t> order(n);
    for (size_t i = 0; i < n; ++i) order[i] = static_cast<int32_t>(i);
    std::shuffle(order.begin(), order.end(), random);
    parents.assign(n, -1);
    const TokenId likely[] = {kNoToken, 'a', 'b', 'c', 256, 257, kEnd, '{', 261, kControl, 9999};
    for (size_t i = 0; i < n; ++i) {
      tokens.push_back(likely[random() % std::size(likely)]);
      if (i > 0 && random() % 4 != 0) parents[static_cast<size_t>(order[i])] = order[random() % i];
    }
    std::vector<uint32_t> rows(n * kStride, 3);
    std::vector<uint8_t> accepted(n, 9);
    const auto fit = FillTreeMasks(matcher, tokens, parents, rows.data(), kStride, accepted);
    ASSERT_TRUE(fit.ok()) << fit.error().message;
    size_t expected_fit = 0;
    for (size_t i = 0; i < n; ++i) {
      std::vector<TokenId> path;
      for (auto at = static_cast<int32_t>(i); at != -1; at = parents[static_cast<size_t>(at)])
        path.insert(path.begin(), tokens[static_cast<size_t>(at)]);
      Matcher walker = matcher;
      bool fits = true;
      for (const TokenId t : path) fits = fits && (t == kNoToken || walker.Accept(t));
      std::vector<uint32_t> expected(kStride, 3);
      std::fill_n(expected.begin(), matcher.grammar().vocabulary().mask_words(), 0);
      if (fits) walker.FillMask(expected);
      EXPECT_EQ(accepted[i], fits ? 1 : 0);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), &rows[i * kStride])) << i;
      expected_fit += fits ? 1 : 0;
    }
    EXPECT_EQ(*fit, expected_fit);
  }
}

TEST(DraftTreeTest, RefusesWhatIsNoTree) {
  const Matcher matcher(Grammars()[0]);
  std::vector<uint32_t> rows(3 * kStride, 5);
  const auto message = [&](std::vector<TokenId> tokens, std::vector<int32_t> parents) {
    const auto result = FillTreeMasks(matcher, tokens, parents, rows.data(), kStride);
    return result.ok() ? "" : result.error().ToString();
  };
  EXPECT_EQ(message({1, 2}, {-1}), "a draft tree needs as many parents as tokens");
  EXPECT_EQ(message({1, 2}, {-1, 2}), "node 1: parent 2 is outside -1..1");
  EXPECT_EQ(message({1, 2}, {-2, 0}), "node 0: parent -2 is outside -1..1");
  EXPECT_EQ(message({1, 2, 3}, {-1, 2, 1}), "a node of the draft tree is its own ancestor");
  EXPECT_EQ(message({1}, {0}), "a node of the draft tree is its own ancestor");
  EXPECT_TRUE(std::ranges::all_of(rows, [](uint32_t word) { return word == 5; }));
  EXPECT_EQ(message({}, {}), "");
}

TEST(DraftTreeTest, ParentsOfChildAndSiblingLists) {
  //  0 - 1 - 3     children of 0: 1, 2; of 1: 3, 4
  //   \   \ 4
  //    2
  const std::vector<int32_t> child = {1, 3, -1, -1, -1};
  const std::vector<int32_t> sibling = {-1, 2, -1, 4, -1};
  EXPECT_EQ(*DraftTreeParents(child, sibling), (std::vector<int32_t>{-1, 0, 0, 1, 1}));
  EXPECT_EQ(DraftTreeParents({}, std::vector<int32_t>{-1}).error().message,
            "next_token and next_sibling differ in length");
  EXPECT_EQ(DraftTreeParents(std::vector<int32_t>{5}, std::vector<int32_t>{-1}).error().ToString(),
            "node 0: no such node: 5");
  // Two parents, and a list of siblings that comes back to itself.
  EXPECT_EQ(DraftTreeParents(std::vector<int32_t>{2, 2, -1}, std::vector<int32_t>{-1, -1, -1})
                .error()
                .ToString(),
            "node 2: listed twice in the draft tree");
  // Circles of children and of siblings, and one that hangs on nothing.
  EXPECT_EQ(
      DraftTreeParents(std::vector<int32_t>{1, 0}, std::vector<int32_t>{-1, -1}).error().ToString(),
      "node 0: a child or sibling of itself in the draft tree");
  EXPECT_FALSE(DraftTreeParents(std::vector<int32_t>{0}, std::vector<int32_t>{-1}).ok());
  EXPECT_FALSE(
      DraftTreeParents(std::vector<int32_t>{-1, -1, -1}, std::vector<int32_t>{-1, 2, 1}).ok());
  EXPECT_EQ(DraftTreeParents(std::vector<int32_t>{1, -1, -1}, std::vector<int32_t>{-1, 2, 1})
                .error()
                .ToString(),
            "node 1: listed twice in the draft tree");
}

}  // namespace
}  // namespace pawl
