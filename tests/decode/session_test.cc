// The decode loop over a model whose logits are a hash of all tokens before, so that any slip in
// what it was fed changes the output, and over a constraint whose closing cost can jump.
#include "tests/support/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "src/decode/sampler.h"
#include "tests/support/toy_model.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

// A toy that sees to it that no token is fed twice, and may fail at a position.
class HashModel : public ToyModel {
 public:
  explicit HashModel(int vocabulary_size, int context_length = 1000)
      : ToyModel({.vocabulary_size = vocabulary_size, .context_length = context_length},
                 HashedLogits) {
    before = [this](std::span<const Row> rows) -> Status {
      std::map<SequenceId, int> lengths;
      for (const Row& row : rows) {
        const auto [at, first] = lengths.try_emplace(row.sequence, sequences.length(row.sequence));
        EXPECT_EQ(row.position, at->second++) << "a gap or an overlap";
        if (row.position == fail_at_position) return Error{ErrorCode::kInternal, "boom", ""};
      }
      return {};
    };
  }
  int fail_at_position = -1;
};

// Tokens: "a" opens one, "A" opens ten, "b" closes one, ";" ends when all are closed; after ten or
// more open, only "b" may follow until five are left (a forced run).
enum : TokenId { kOpen, kOpenTen, kShut, kDone, kEndToken, kPad, kTokens };

std::shared_ptr<const Vocabulary> TestVocabulary() {
  return VocabularyOf({"a", "A", "b", ";", "<end>"}, {"<pad>"});
}

class OpenClose : public Constraint {
 public:
  explicit OpenClose(int open, bool draining = false, bool done = false)
      : open_(open), draining_(draining), done_(done) {}

  Place Look() const override {
    uint32_t bits = 0;
    for (TokenId t = 0; t < kEndToken; ++t) {
      if (Next(t).has_value()) bits |= 1u << t;
    }
    if (done_) bits |= 1u << kEndToken;
    return {.mask = std::make_shared<Mask>(0, std::vector<uint32_t>{bits}), .accepting = done_};
  }
  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    const std::optional<OpenClose> next = Next(token);
    return next.has_value() ? std::make_shared<OpenClose>(*next) : nullptr;
  }
  std::optional<std::vector<TokenId>> Completion(int most) const override {
    if (done_) return std::vector<TokenId>{};
    if (open_ + 1 > most) return std::nullopt;
    std::vector<TokenId> tokens(static_cast<size_t>(open_), kShut);
    tokens.push_back(kDone);
    return tokens;
  }

 private:
  std::optional<OpenClose> Next(TokenId token) const {
    if (done_) return std::nullopt;
    if (draining_ && token != kShut) return std::nullopt;
    if (token == kOpen) return OpenClose(open_ + 1, open_ + 1 >= 10);
    if (token == kOpenTen) return OpenClose(open_ + 10, true);
    if (token == kShut && open_ > 0) return OpenClose(open_ - 1, draining_ && open_ - 1 > 5);
    if (token == kDone && open_ == 0) return OpenClose(0, false, true);
    return std::nullopt;
  }
  int open_;
  bool draining_;
  bool done_;
};

bool Complete(const std::string& text) {
  int open = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == 'a') open += 1;
    if (text[i] == 'A') open += 10;
    if (text[i] == 'b' && --open < 0) return false;
    if (text[i] == ';') return open == 0 && i + 1 == text.size();
  }
  return false;
}

const std::vector<TokenId> kPrompt = {0, 1, 2, 3};

TEST(SessionTest, OutputIsCompleteForEveryBudgetAndSeed) {
  HashModel model(kTokens);
  const auto vocabulary = TestVocabulary();
  Session session(model, vocabulary);
  int closed = 0, ended = 0;
  for (int budget = 1; budget <= 40; ++budget) {
    for (uint64_t seed = 0; seed < 40; ++seed) {
      GenerateOptions options;
      options.max_tokens = budget;
      options.sampling = {.temperature = 1, .seed = seed};
      const auto out = session.Generate(kPrompt, std::make_shared<OpenClose>(0), options);
      ASSERT_TRUE(out.ok()) << out.error().ToString();
      EXPECT_TRUE(Complete(out->text)) << out->text;
      EXPECT_LE(static_cast<int>(out->tokens.size()), budget);
      EXPECT_EQ(out->stats.output_tokens,
                out->stats.sampled_tokens + out->stats.forced_tokens + out->stats.closing_tokens);
      if (out->stop == StopReason::kClosed) {
        ++closed;
      } else {
        ++ended;
        EXPECT_EQ(out->stop, StopReason::kEnd);
        EXPECT_EQ(out->stats.closing_tokens, 0);
      }
    }
  }
  EXPECT_GT(closed, 100);
  EXPECT_GT(ended, 100);
}

// Where completions are long they are not looked for after every token.
TEST(SessionTest, TokensGoOnTrialWhereCompletionsAreLong) {
  class Counting : public OpenClose {
   public:
    Counting(OpenClose at, int* asked) : OpenClose(std::move(at)), asked_(asked) {}
    std::shared_ptr<const Constraint> Advance(TokenId token) const override {
      const auto next = OpenClose::Advance(token);
      if (next == nullptr) return nullptr;
      return std::make_shared<Counting>(static_cast<const OpenClose&>(*next), asked_);
    }
    std::optional<std::vector<TokenId>> Completion(int most) const override {
      ++*asked_;
      return OpenClose::Completion(most);
    }

   private:
    int* asked_;
  };
  constexpr int kOpened = 1000;
  HashModel model(kTokens, 5000);
  Session session(model, TestVocabulary());
  int taken_back = 0;
  for (int budget = kOpened + 1; budget <= kOpened + 200; budget += 9) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      int asked = 0;
      std::vector<TokenId> told;
      GenerateOptions options;
      options.max_tokens = budget;
      options.sampling = {.temperature = 1, .seed = seed};
      options.on_token = [&](TokenId token, std::string_view) {
        told.push_back(token);
        return true;
      };
      const auto start = std::make_shared<Counting>(OpenClose(kOpened), &asked);
      const auto out = session.Generate(kPrompt, start, options);
      ASSERT_TRUE(out.ok()) << out.error().ToString();
      EXPECT_TRUE(Complete(std::string(kOpened, 'a') + out->text)) << out->text;
      EXPECT_LE(static_cast<int>(out->tokens.size()), budget);
      EXPECT_EQ(told, out->tokens);
      EXPECT_EQ(out->stats.output_tokens,
                out->stats.sampled_tokens + out->stats.forced_tokens + out->stats.closing_tokens);
      EXPECT_EQ(out->text.size(), out->tokens.size());
      EXPECT_LE(asked, 10 + out->stats.output_tokens / 3);
      taken_back += out->stop == StopReason::kClosed;
    }
  }
  EXPECT_GT(taken_back, 20);
}

TEST(SessionTest, TheCallbackMayStopTokensOnTrial) {
  HashModel model(kTokens, 5000);
  Session session(model, TestVocabulary());
  GenerateOptions options;
  options.max_tokens = 3000;
  options.sampling = {.temperature = 1, .seed = 3};
  int calls = 0;
  options.on_token = [&](TokenId, std::string_view) { return ++calls < 20; };
  const auto out = session.Generate(kPrompt, std::make_shared<OpenClose>(1000), options);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->stop, StopReason::kCancelled);
  EXPECT_EQ(calls, 20);
  EXPECT_EQ(out->tokens.size(), 20u);
  EXPECT_EQ(out->text.size(), 20u);
}

TEST(SessionTest, ForcedTokensChangeNothingButTheNumberOfCalls) {
  const auto vocabulary = TestVocabulary();
  int saved = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    GenerateOptions options;
    options.max_tokens = 60;
    options.sampling = {.temperature = 1.5f, .top_p = 0.95f, .seed = seed};
    HashModel model_on(kTokens), model_off(kTokens);
    Session on(model_on, vocabulary), off(model_off, vocabulary);
    const auto with = on.Generate(kPrompt, std::make_shared<OpenClose>(3), options);
    options.skip_forced = false;
    const auto without = off.Generate(kPrompt, std::make_shared<OpenClose>(3), options);
    ASSERT_TRUE(with.ok() && without.ok());
    EXPECT_EQ(with->text, without->text);
    EXPECT_EQ(with->stop, without->stop);
    EXPECT_EQ(without->stats.forced_tokens, 0);
    EXPECT_LE(model_on.calls, model_off.calls);
    saved += model_off.calls - model_on.calls;
  }
  EXPECT_GT(saved, 100);
}

// Bug: an end token that the grammar names in the middle of its texts cut the output there.
TEST(SessionTest, AnEndTokenThatTheGrammarNamesGoesOn) {
  const auto vocabulary = TestVocabulary();
  const TokenId end = vocabulary->end_tokens()[0];
  const auto grammar = Compiler(vocabulary)
                           .CompileGrammar("start: \"a\" <[" + std::to_string(end) + "]> \"b\"",
                                           GrammarLanguage::kLark);
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  const TokenId a = vocabulary->LongestPrefix("a"), b = vocabulary->LongestPrefix("b");
  for (const bool skip_forced : {true, false}) {
    HashModel model(kTokens);
    Session session(model, vocabulary);
    GenerateOptions options;
    options.max_tokens = 10;
    options.skip_forced = skip_forced;
    const auto out = session.Generate(kPrompt, MakeConstraint(*grammar), options);
    ASSERT_TRUE(out.ok()) << out.error().ToString();
    EXPECT_EQ(out->tokens, (std::vector<TokenId>{a, end, b}));
    EXPECT_EQ(out->stop, StopReason::kEnd);
  }
}

TEST(SessionTest, TheLastCallLeavesNothingBehind) {
  HashModel model(kTokens);
  const auto vocabulary = TestVocabulary();
  Session session(model, vocabulary);
  const std::vector<std::vector<TokenId>> prompts = {
      {0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 3, 3, 3}, {2}, {0, 1, 3, 3}, {0, 1, 3, 3, 3, 0, 0, 0}};
  for (const auto& prompt : prompts) {
    GenerateOptions options;
    options.max_tokens = 30;
    options.sampling = {.temperature = 1, .seed = 5};
    Session fresh(model, vocabulary);
    const auto want = fresh.Generate(prompt, std::make_shared<OpenClose>(0), options);
    const auto got = session.Generate(prompt, std::make_shared<OpenClose>(0), options);
    ASSERT_TRUE(want.ok() && got.ok());
    EXPECT_EQ(got->text, want->text);
  }
  EXPECT_EQ(model.alive, 0);
}

TEST(SessionTest, ABudgetThatCannotHoldTheShortestOutputIsAnError) {
  HashModel model(kTokens, 20);
  const auto vocabulary = TestVocabulary();
  Session session(model, vocabulary);
  GenerateOptions options;
  options.max_tokens = 7;
  const auto small = session.Generate(kPrompt, std::make_shared<OpenClose>(7), options);
  ASSERT_FALSE(small.ok());
  EXPECT_EQ(small.error().code, ErrorCode::kLimit);
  EXPECT_NE(small.error().message.find("takes 8 tokens"), std::string::npos);
  EXPECT_NE(small.error().message.find("budget is 7"), std::string::npos);
  options.max_tokens = 8;
  const auto exact = session.Generate(kPrompt, std::make_shared<OpenClose>(7), options);
  ASSERT_TRUE(exact.ok());
  EXPECT_EQ(exact->text, "bbbbbbb;");
  // The context is what limits here: 20 - 4 = 16.
  options.max_tokens = 100;
  const auto context = session.Generate(kPrompt, std::make_shared<OpenClose>(16), options);
  ASSERT_FALSE(context.ok());
  EXPECT_NE(context.error().message.find("context of 20"), std::string::npos);
  const std::vector<TokenId> full(20, 0);
  const auto too_long = session.Generate(full, std::make_shared<OpenClose>(0), options);
  ASSERT_FALSE(too_long.ok());
  EXPECT_EQ(too_long.error().code, ErrorCode::kLimit);
  EXPECT_NE(too_long.error().message.find("has 20 tokens"), std::string::npos);
}

TEST(SessionTest, WithoutConstraintItEndsAtTheEndTokenOrTheBudget) {
  HashModel model(kTokens);
  const auto vocabulary = TestVocabulary();
  Session session(model, vocabulary);
  int ended = 0, cut = 0, padded = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    GenerateOptions options;
    options.max_tokens = 5;
    options.sampling = {.temperature = 1, .seed = seed};
    const auto out = session.Generate(kPrompt, nullptr, options);
    ASSERT_TRUE(out.ok());
    EXPECT_EQ(std::count(out->tokens.begin(), out->tokens.end(), kEndToken), 0);
    // Special tokens are no text.
    const auto pads = std::count(out->tokens.begin(), out->tokens.end(), kPad);
    EXPECT_EQ(out->text.size() + static_cast<size_t>(pads), out->tokens.size());
    padded += static_cast<int>(pads);
    if (out->stop == StopReason::kEnd) {
      ++ended;
    } else {
      ++cut;
      EXPECT_EQ(out->stop, StopReason::kLength);
      EXPECT_EQ(out->tokens.size(), 5u);
    }
  }
  EXPECT_GT(ended, 0);
  EXPECT_GT(cut, 0);
  EXPECT_GT(padded, 0);
  // The model's own list of end tokens counts as well.
  model.model_info.end_tokens = {kOpen, kOpenTen, kShut, kDone};
  const auto out = session.Generate(kPrompt, nullptr, {});
  ASSERT_TRUE(out.ok());
  EXPECT_TRUE(out->tokens.empty());
  // Under a constraint it does not: the output would be cut.
  const auto whole = session.Generate(kPrompt, std::make_shared<OpenClose>(0), {});
  ASSERT_TRUE(whole.ok());
  EXPECT_TRUE(Complete(whole->text));
}

TEST(SessionTest, TheCallbackSeesEveryTokenAndCanStop) {
  HashModel model(kTokens);
  const auto vocabulary = TestVocabulary();
  Session session(model, vocabulary);
  GenerateOptions options;
  options.max_tokens = 30;
  std::string streamed;
  options.on_token = [&](TokenId, std::string_view bytes) {
    streamed += bytes;
    return true;
  };
  const auto all = session.Generate(kPrompt, std::make_shared<OpenClose>(4), options);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(streamed, all->text);
  streamed.clear();
  options.on_token = [&](TokenId, std::string_view bytes) {
    streamed += bytes;
    return streamed.size() < 3;
  };
  const auto some = session.Generate(kPrompt, std::make_shared<OpenClose>(4), options);
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some->stop, StopReason::kCancelled);
  EXPECT_EQ(some->tokens.size(), 3u);
}

TEST(SessionTest, ErrorsOfTheModelAndBadArgumentsComeBack) {
  HashModel model(kTokens);
  const auto vocabulary = TestVocabulary();
  Session session(model, vocabulary);
  EXPECT_FALSE(session.Generate({}, nullptr, {}).ok());
  const std::vector<TokenId> unknown = {0, 99};
  EXPECT_FALSE(session.Generate(unknown, nullptr, {}).ok());
  GenerateOptions options;
  options.max_tokens = -1;
  EXPECT_FALSE(session.Generate(kPrompt, nullptr, options).ok());
  options = {};
  options.sampling.top_p = 2;
  const auto bad = session.Generate(kPrompt, nullptr, options);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().place, "top_p");
  // After a failed call the session goes on as if it had not been.
  options = {};
  options.max_tokens = 20;
  const auto want = session.Generate(kPrompt, std::make_shared<OpenClose>(0), options);
  model.fail_at_position = 3;
  Session other(model, vocabulary);
  const auto failed = other.Generate(kPrompt, std::make_shared<OpenClose>(0), options);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "boom");
  model.fail_at_position = -1;
  const auto after = other.Generate(kPrompt, std::make_shared<OpenClose>(0), options);
  ASSERT_TRUE(after.ok() && want.ok());
  EXPECT_EQ(after->text, want->text);
}

// Each token against the sampler, given by itself the logits and the temperature of that place.
TEST(SessionTest, TheGrammarsTemperatureCountsWhereItAsks) {
  const auto vocabulary = VocabularyOf(Letters('a', 'z'));
  const auto grammar = Compiler(vocabulary)
                           .CompileGrammar(
                               "start: cold warm free\ncold[temperature=0]: /[a-m]{6}/\n"
                               "warm[temperature=3]: /[n-z]{6}/\nfree: /[a-z]{6}/",
                               GrammarLanguage::kLark);
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  HashModel model(vocabulary->size());
  Session session(model, vocabulary);
  std::set<std::string> cold, warm;
  for (const float given : {0.0f, 1.5f}) {
    for (const bool obey : {true, false}) {
      for (uint64_t seed = 0; seed < 12; ++seed) {
        GenerateOptions options;
        options.sampling = {.temperature = given, .seed = seed};
        options.grammar_temperature = obey;
        const auto out = session.Generate(kPrompt, MakeConstraint(*grammar), options);
        ASSERT_TRUE(out.ok()) << out.error().ToString();
        ASSERT_EQ(out->tokens.size(), 18u);
        if (obey) cold.insert(out->text.substr(0, 6));
        if (obey) warm.insert(out->text.substr(6, 6));
        std::vector<TokenId> before = kPrompt;
        State state = grammar->Start();
        for (size_t i = 0; i < 18; ++i) {
          const float temperature = !obey || i >= 12 ? given : i < 6 ? 0.0f : 3.0f;
          HashModel alone(vocabulary->size());
          const SequenceId sequence = *alone.NewSequence(100);
          std::vector<Row> rows;
          for (const TokenId token : before) {
            rows.push_back({.token = token,
                            .position = static_cast<int32_t>(rows.size()),
                            .sequence = sequence,
                            .ancestors = 0,
                            .output = -1});
          }
          rows.back().output = 0;
          std::vector<float> logits(static_cast<size_t>(vocabulary->size()));
          ASSERT_TRUE(alone.Forward(rows, logits).ok());
          Sampler sampler({.temperature = temperature, .seed = seed});
          const auto want = sampler.Sample(logits, state.mask().get(), i, {});
          ASSERT_EQ(out->tokens[i], *want) << given << ' ' << obey << ' ' << seed << ' ' << i;
          before.push_back(*want);
          state = *state.Advance(*want);
        }
      }
    }
  }
  EXPECT_EQ(cold.size(), 1u);
  EXPECT_GT(warm.size(), 6u);
}

TEST(SessionTest, LogitsBeyondTheVocabularyAreNeverChosen) {
  HashModel model(kTokens + 30);
  Session session(model, TestVocabulary());
  for (uint64_t seed = 0; seed < 20; ++seed) {
    GenerateOptions options;
    options.max_tokens = 20;
    options.sampling = {.temperature = 2, .seed = seed};
    const auto out = session.Generate(kPrompt, nullptr, options);
    ASSERT_TRUE(out.ok());
    for (TokenId token : out->tokens) EXPECT_LT(token, kTokens);
  }
}

}  // namespace
}  // namespace pawl
