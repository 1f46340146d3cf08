// Constraints of one's own: an automaton over tokens against the same language as a grammar, two
// constraints at once against the product automaton, wrong answers and exceptions, and the masks
// that users make.
#include "pawl/constraint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "src/decode/batch.h"
#include "src/decode/draft/drafter.h"
#include "src/decode/draft/source.h"
#include "tests/support/session.h"
#include "tests/support/toy_model.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

constexpr int kAutomatonTokens = 6;  // "a" to "f"; the end token comes behind them

std::shared_ptr<const Vocabulary> AutomatonVocabulary() {
  return VocabularyOf(Letters('a', 'f', {"<pad>"}), {"<pad>"});
}

// Token t leads from state s to next[s][t]; -1: it is refused.
struct Automaton {
  std::vector<std::vector<int>> next;
  std::vector<bool> accepting;

  int Step(int state, TokenId token) const {
    return token < kAutomatonTokens ? next[static_cast<size_t>(state)][static_cast<size_t>(token)]
                                    : -1;
  }
  bool Accepts(int state) const { return accepting[static_cast<size_t>(state)]; }

  // A shortest way to an accepting state, the first in the order of the tokens.
  std::optional<std::vector<TokenId>> Shortest(int from) const {
    std::deque<std::pair<int, std::vector<TokenId>>> open = {{from, {}}};
    for (std::set<int> seen = {from}; !open.empty(); open.pop_front()) {
      const auto& [state, path] = open.front();
      if (Accepts(state)) return path;
      for (TokenId t = 0; t < kAutomatonTokens; ++t) {
        const int after = Step(state, t);
        if (after < 0 || !seen.insert(after).second) continue;
        std::vector<TokenId> longer = path;
        longer.push_back(t);
        open.emplace_back(after, std::move(longer));
      }
    }
    return std::nullopt;
  }

  // Without steps into states from which nothing is accepted.
  void Trim() {
    for (size_t s = 0; s < next.size(); ++s) {
      for (int& after : next[s]) {
        if (after >= 0 && !Shortest(after)) after = -1;
      }
    }
  }

  std::string AsGrammar() const {
    std::string text = "root ::= s0\n";
    for (size_t s = 0; s < next.size(); ++s) {
      std::string rule;
      for (int t = 0; t < kAutomatonTokens; ++t) {
        const int after = next[s][static_cast<size_t>(t)];
        if (after < 0) continue;
        rule += (rule.empty() ? "" : " | ") + std::string("\"") + static_cast<char>('a' + t) +
                "\" s" + std::to_string(after);
      }
      if (accepting[s]) rule += rule.empty() ? "\"\"" : " | \"\"";
      if (!rule.empty()) text += "s" + std::to_string(s) + " ::= " + rule + "\n";
    }
    return text;
  }
};

Automaton RandomAutomaton(std::mt19937& random) {
  const auto below = [&](size_t n) { return static_cast<int>(random() % n); };
  for (;;) {
    Automaton made;
    const auto states = static_cast<size_t>(3 + below(7));
    made.next.assign(states, std::vector<int>(kAutomatonTokens, -1));
    made.accepting.assign(states, false);
    for (size_t s = 0; s < states; ++s) {
      for (int n = 1 + below(3); n > 0; --n) {
        made.next[s][static_cast<size_t>(below(kAutomatonTokens))] = below(states);
      }
      made.accepting[s] = below(5) == 0;
    }
    if (!made.Shortest(0)) continue;
    made.Trim();
    return made;
  }
}

// The automaton as a user would write it.
class AutomatonConstraint : public Constraint {
 public:
  AutomatonConstraint(std::shared_ptr<const Automaton> automaton,
                      std::shared_ptr<const Vocabulary> vocabulary, int state = 0)
      : automaton_(std::move(automaton)), vocabulary_(std::move(vocabulary)), state_(state) {}

  Place Look() const override {
    const auto fits = [&](TokenId t, std::string_view) { return automaton_->Step(state_, t) >= 0; };
    return {.mask = MaskWhere(*vocabulary_, fits), .accepting = automaton_->Accepts(state_)};
  }
  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    const int after = automaton_->Step(state_, token);
    if (after < 0) return nullptr;
    return std::make_shared<AutomatonConstraint>(automaton_, vocabulary_, after);
  }
  std::optional<std::vector<TokenId>> Completion(int most) const override {
    auto tokens = automaton_->Shortest(state_);
    if (tokens && static_cast<int>(tokens->size()) > most) tokens.reset();
    return tokens;
  }

 private:
  const std::shared_ptr<const Automaton> automaton_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  const int state_;
};

std::shared_ptr<Drafter> SuffixDrafts(const std::shared_ptr<const Vocabulary>& vocabulary) {
  DraftOptions options;
  options.sources = "forced,suffix,random";
  options.always = true;
  DraftSetting setting;
  setting.options = options;
  setting.vocabulary = vocabulary;
  setting.vocabulary_size = vocabulary->size();
  auto made = Drafter::Make(setting, *ParseDraftSources(options));
  EXPECT_TRUE(made.ok()) << made.error().ToString();
  return *std::move(made);
}

struct Wanted {
  std::shared_ptr<const Constraint> constraint;
  GenerateOptions options;
};

std::vector<Result<Generation>> RunTogether(const std::shared_ptr<const Vocabulary>& vocabulary,
                                            const std::vector<Wanted>& wanted,
                                            BatchOptions options) {
  ToyModel model({.vocabulary_size = vocabulary->size(), .pages = 400}, HashedLogits);
  BatchEngine engine(model, vocabulary, {}, std::move(options));
  std::vector<std::optional<Result<Generation>>> outputs(wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    engine.Add(
        {.prompt = {0, 1, static_cast<TokenId>(i % 5), 0, 1},
         .constraint = wanted[i].constraint,
         .options = wanted[i].options,
         .done = [&outputs, i](Result<Generation> output) { outputs[i] = std::move(output); }});
  }
  while (engine.Step()) {
  }
  std::vector<Result<Generation>> answers;
  for (auto& output : outputs) {
    EXPECT_TRUE(output.has_value());
    answers.push_back(*std::move(output));
  }
  EXPECT_EQ(model.sequences.pool().in_use(), 0);
  return answers;
}

// 200 automata, each as a class and as a grammar: tokens, reasons to stop and errors are equal,
// alone and four at a time, with drafts and without, on looks' threads and without them.
TEST(ConstraintTest, AnAutomatonIsItsGrammar) {
  const auto vocabulary = AutomatonVocabulary();
  Compiler compiler(vocabulary);
  int closed = 0, ended = 0, failed = 0, drafted = 0;
  std::vector<Wanted> own, grammars;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto automaton = std::make_shared<Automaton>(RandomAutomaton(random));
    const auto grammar = compiler.CompileGrammar(automaton->AsGrammar(), GrammarLanguage::kGbnf);
    ASSERT_TRUE(grammar.ok()) << grammar.error().ToString() << automaton->AsGrammar();
    GenerateOptions options;
    options.max_tokens = static_cast<int>(1 + seed % 13);
    options.sampling = {.temperature = seed % 4 == 0 ? 0.0f : 1.0f, .seed = seed};
    if (seed % 7 == 0) options.skip_forced = false;
    own.push_back({std::make_shared<AutomatonConstraint>(automaton, vocabulary), options});
    grammars.push_back({MakeConstraint(*grammar), options});
  }
  const auto expected = RunTogether(vocabulary, grammars, {.max_batch = 1});
  for (int kind = 0; kind < 5; ++kind) {
    BatchOptions options;
    options.max_batch = kind == 0 ? 1 : 4;
    options.threads = 1 + kind % 2;
    options.look_threads = kind >= 3 ? 2 : 0;
    if (kind == 2 || kind == 4) options.drafter = SuffixDrafts(vocabulary);
    const auto got = RunTogether(vocabulary, own, options);
    for (size_t i = 0; i < expected.size(); ++i) {
      SCOPED_TRACE(std::to_string(kind) + " " + std::to_string(i));
      ASSERT_EQ(got[i].ok(), expected[i].ok());
      if (!got[i].ok()) {
        EXPECT_EQ(got[i].error().ToString(), expected[i].error().ToString());
        ++failed;
        continue;
      }
      EXPECT_EQ(got[i]->stop, expected[i]->stop);
      drafted += got[i]->stats.drafts.rows;
      // Of several completions of one length each side has its own.
      const size_t same = got[i]->tokens.size() - static_cast<size_t>(got[i]->stats.closing_tokens);
      EXPECT_EQ(got[i]->stats.closing_tokens, expected[i]->stats.closing_tokens);
      ASSERT_EQ(got[i]->tokens.size(), expected[i]->tokens.size());
      EXPECT_TRUE(std::equal(got[i]->tokens.begin(),
                             got[i]->tokens.begin() + static_cast<ptrdiff_t>(same),
                             expected[i]->tokens.begin()));
      (got[i]->stop == StopReason::kClosed ? closed : ended) += 1;
    }
  }
  EXPECT_GT(closed, 100);
  EXPECT_GT(ended, 100);
  EXPECT_GT(failed, 5);
  EXPECT_GT(drafted, 50);
}

// The thread that all outputs share asks nothing of a constraint that is not a grammar.
TEST(ConstraintTest, IsAskedOnTheThreadsOfLooks) {
  struct Asked {
    std::mutex mutex;
    std::set<std::thread::id> threads;
  };
  class Watched : public AutomatonConstraint {
   public:
    Watched(const AutomatonConstraint& at, std::shared_ptr<Asked> asked)
        : AutomatonConstraint(at), asked_(std::move(asked)) {}
    Place Look() const override {
      See();
      return AutomatonConstraint::Look();
    }
    std::shared_ptr<const Constraint> Advance(TokenId token) const override {
      See();
      const auto next = AutomatonConstraint::Advance(token);
      if (next == nullptr) return nullptr;
      return std::make_shared<Watched>(static_cast<const AutomatonConstraint&>(*next), asked_);
    }
    std::optional<std::vector<TokenId>> Completion(int most) const override {
      See();
      return AutomatonConstraint::Completion(most);
    }

   private:
    void See() const {
      const std::lock_guard lock(asked_->mutex);
      asked_->threads.insert(std::this_thread::get_id());
    }
    const std::shared_ptr<Asked> asked_;
  };
  const auto vocabulary = AutomatonVocabulary();
  const auto asked = std::make_shared<Asked>();
  std::vector<Wanted> wanted;
  for (unsigned seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    const AutomatonConstraint start(std::make_shared<Automaton>(RandomAutomaton(random)),
                                    vocabulary);
    GenerateOptions options;
    options.max_tokens = 20;
    options.sampling = {.temperature = 1, .seed = seed};
    wanted.push_back({std::make_shared<Watched>(start, asked), options});
  }
  (void)RunTogether(
      vocabulary, wanted,
      {.max_batch = 4, .threads = 2, .look_threads = 2, .drafter = SuffixDrafts(vocabulary)});
  EXPECT_FALSE(asked->threads.empty());
  EXPECT_FALSE(asked->threads.contains(std::this_thread::get_id()));
}

// ---- Wrong answers ----

// "abab...", with something wrong at the place behind so many tokens.
class WrongAt : public Constraint {
 public:
  using Wrong = std::function<void(Place& place, const char* question)>;
  WrongAt(std::shared_ptr<const Vocabulary> vocabulary, int left,
          std::shared_ptr<const Wrong> wrong)
      : vocabulary_(std::move(vocabulary)), left_(left), wrong_(std::move(wrong)) {}

  Place Look() const override {
    const std::vector<TokenId> both = {0, 1};
    Place place{.mask = MaskOfTokens(*vocabulary_, both)};
    if (left_ == 0) (*wrong_)(place, "look");
    return place;
  }
  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    Place place;
    if (left_ == 0) (*wrong_)(place, "advance");
    if (!place.limit.empty() || token > 1) return nullptr;
    return std::make_shared<WrongAt>(vocabulary_, left_ - 1, wrong_);
  }
  std::optional<std::vector<TokenId>> Completion(int most) const override {
    Place place;
    if (left_ == 0) (*wrong_)(place, "completion");
    if (!place.limit.empty()) return std::vector<TokenId>(static_cast<size_t>(most) + 1, 0);
    if (most < 1) return std::nullopt;
    return std::vector<TokenId>{0};  // which is not true: the place behind is not accepting
  }

 private:
  const std::shared_ptr<const Vocabulary> vocabulary_;
  const int left_;
  const std::shared_ptr<const Wrong> wrong_;
};

TEST(ConstraintTest, WhatIsWrongFailsItsOwnOutput) {
  using Place = Constraint::Place;
  struct Kind {
    WrongAt::Wrong wrong;
    ErrorCode code;
    std::string message;
  };
  const auto throws = [](const char* where, auto thrown) {
    return [where, thrown](Place&, const char* question) {
      if (std::string_view(question) == where) throw thrown;
    };
  };
  const auto marks = [](const char* where) {
    return [where](Place& place, const char* question) {
      if (std::string_view(question) == where) place.limit = "wrong";
    };
  };
  const auto masks = [](std::vector<uint32_t> words) {
    return [words](Place& place, const char* question) {
      if (std::string_view(question) == "look") place.mask = std::make_shared<Mask>(0, words);
    };
  };
  const std::vector<Kind> kinds = {
      {throws("look", std::runtime_error("no look")), ErrorCode::kInternal, "no look"},
      {throws("advance", std::runtime_error("no step")), ErrorCode::kInternal, "no step"},
      {throws("completion", std::runtime_error("no end")), ErrorCode::kInternal, "no end"},
      {throws("look", 7), ErrorCode::kInternal, "an exception without a text"},
      {throws("advance", std::bad_alloc()), ErrorCode::kLimit, "memory ran out"},
      {masks({1, 0}), ErrorCode::kInvalid, "its mask has 2 words, but the vocabulary has 1"},
      {masks({}), ErrorCode::kInvalid, "its mask has 0 words, but the vocabulary has 1"},
      {masks({~0u}), ErrorCode::kInvalid, "its mask allows tokens beyond the vocabulary of 8"},
      {masks({0}), ErrorCode::kInvalid, "the mask allows no token"},
      {marks("advance"), ErrorCode::kInvalid, "but Advance refuses it"},
      {marks("completion"), ErrorCode::kInvalid, "tokens, but at most"},
      {[](Place&, const char*) {}, ErrorCode::kInvalid, "the completion does not complete"},
  };
  const auto vocabulary = AutomatonVocabulary();
  std::mt19937 random(3);
  const auto automaton = std::make_shared<Automaton>(RandomAutomaton(random));
  for (const int look_threads : {0, 2}) {
    for (const bool drafts : {false, true}) {
      std::vector<Wanted> wanted;
      for (size_t i = 0; i < 2 * kinds.size(); ++i) {
        GenerateOptions options;
        options.max_tokens = 12;
        options.sampling = {.temperature = 1, .seed = i};
        std::shared_ptr<const Constraint> constraint =
            std::make_shared<AutomatonConstraint>(automaton, vocabulary);
        if (i % 2 == 0) {
          const auto& wrong = kinds[i / 2].wrong;
          constraint = std::make_shared<WrongAt>(vocabulary, static_cast<int>(i % 5),
                                                 std::make_shared<WrongAt::Wrong>(wrong));
        }
        wanted.push_back({std::move(constraint), options});
      }
      BatchOptions options{.max_batch = 4, .threads = 2, .look_threads = look_threads};
      if (drafts) options.drafter = SuffixDrafts(vocabulary);
      const auto outputs = RunTogether(vocabulary, wanted, options);
      for (size_t i = 0; i < outputs.size(); ++i) {
        SCOPED_TRACE(i);
        if (i % 2 == 1) {
          EXPECT_TRUE(outputs[i].ok()) << outputs[i].error().ToString();
          continue;
        }
        ASSERT_FALSE(outputs[i].ok());
        const Error& error = outputs[i].error();
        EXPECT_EQ(error.code, kinds[i / 2].code) << error.ToString();
        EXPECT_EQ(error.place, "constraint") << error.ToString();
        EXPECT_NE(error.message.find(kinds[i / 2].message), std::string::npos) << error.ToString();
      }
    }
  }
}

// An inexact mask that Advance refuses token by token ends the output with what it has.
TEST(ConstraintTest, AnInexactMaskOfRefusedTokensEndsTheOutput) {
  class Refuses : public Constraint {
   public:
    explicit Refuses(int left, bool masks) : left_(left), masks_(masks) {}
    Place Look() const override {
      if (masks_ && left_ == 0)
        return {.mask = std::make_shared<Mask>(0, std::vector<uint32_t>{0})};
      return {};
    }
    std::shared_ptr<const Constraint> Advance(TokenId) const override {
      return left_ == 0 ? nullptr : std::make_shared<Refuses>(left_ - 1, masks_);
    }
    std::optional<std::vector<TokenId>> Completion(int) const override { return std::nullopt; }
    bool exact() const override { return false; }

   private:
    const int left_;
    const bool masks_;
  };
  GenerateOptions options;
  options.at_budget = AtBudget::kCut;
  for (const bool masks : {false, true}) {
    const auto outputs =
        RunTogether(AutomatonVocabulary(), {{std::make_shared<Refuses>(3, masks), options}}, {});
    ASSERT_TRUE(outputs[0].ok()) << outputs[0].error().ToString();
    EXPECT_EQ(outputs[0]->stop, StopReason::kRefused);
    EXPECT_EQ(outputs[0]->tokens.size(), 3u);
    EXPECT_EQ(outputs[0]->stats.sampled_tokens, 3);
  }
}

// ---- What a place may ask for ----

TEST(ConstraintTest, LimitForcedTextAndTemperatureCount) {
  class Steps : public Constraint {
   public:
    Steps(std::shared_ptr<const Vocabulary> vocabulary, int at)
        : vocabulary_(std::move(vocabulary)), at_(at) {}
    Place Look() const override {
      Place place;  // no mask: any text
      if (at_ == 3) place.limit = "three are enough";
      place.temperature = 0.0f;
      return place;
    }
    std::shared_ptr<const Constraint> Advance(TokenId) const override {
      return std::make_shared<Steps>(vocabulary_, at_ + 1);
    }
    std::optional<std::vector<TokenId>> Completion(int most) const override {
      const std::vector<TokenId> rest(static_cast<size_t>(std::max(0, 5 - at_)), 2);
      if (static_cast<int>(rest.size()) > most) return std::nullopt;
      return rest;
    }

   private:
    const std::shared_ptr<const Vocabulary> vocabulary_;
    const int at_;
  };
  const auto vocabulary = AutomatonVocabulary();
  GenerateOptions hot, cold;
  hot.sampling = {.temperature = 2, .seed = 1};
  cold.sampling = {.temperature = 2, .seed = 2};
  const auto start = std::make_shared<Steps>(vocabulary, 0);
  const auto outputs = RunTogether(vocabulary, {{start, hot}, {start, cold}}, {.max_batch = 1});
  for (const auto& output : outputs) {
    // Completion says that five tokens are complete, Look never does.
    ASSERT_FALSE(output.ok());
    EXPECT_EQ(output.error().place, "constraint");
  }
  class Ends : public Steps {
   public:
    using Steps::Steps;
    Ends(const Steps& at, int n) : Steps(at), n_(n) {}
    Place Look() const override {
      Place place = Steps::Look();
      place.accepting = n_ == 5;
      return place;
    }
    std::shared_ptr<const Constraint> Advance(TokenId token) const override {
      const auto next = Steps::Advance(token);
      return std::make_shared<Ends>(static_cast<const Steps&>(*next), n_ + 1);
    }

   private:
    int n_ = 0;
  };
  const auto ends = std::make_shared<Ends>(vocabulary, 0);
  GenerateOptions same = cold;
  same.sampling.seed = 9;
  const auto closed = RunTogether(vocabulary, {{ends, cold}, {nullptr, cold}}, {.max_batch = 1});
  ASSERT_TRUE(closed[0].ok()) << closed[0].error().ToString();
  EXPECT_EQ(closed[0]->notes, std::vector<std::string>{"three are enough"});
  EXPECT_EQ(closed[0]->stop, StopReason::kClosed);
  EXPECT_EQ(closed[0]->tokens.size(), 5u);
  // At temperature 0 the seed does not count.
  const auto again = RunTogether(vocabulary, {{ends, same}}, {.max_batch = 1});
  EXPECT_EQ(again[0]->tokens, closed[0]->tokens);
}

// ---- Two at once ----

TEST(ConstraintTest, BothAreTheProduct) {
  const auto vocabulary = AutomatonVocabulary();
  Compiler compiler(vocabulary);
  int found = 0, possible = 0, places = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto a = std::make_shared<Automaton>(RandomAutomaton(random));
    const auto b = std::make_shared<Automaton>(RandomAutomaton(random));
    // The product, with states (p, q) as p * n + q.
    const size_t n = b->next.size();
    Automaton product;
    product.next.assign(a->next.size() * n, std::vector<int>(kAutomatonTokens, -1));
    product.accepting.assign(product.next.size(), false);
    for (size_t p = 0; p < a->next.size(); ++p) {
      for (size_t q = 0; q < n; ++q) {
        product.accepting[p * n + q] = a->accepting[p] && b->accepting[q];
        for (size_t t = 0; t < kAutomatonTokens; ++t) {
          if (a->next[p][t] < 0 || b->next[q][t] < 0) continue;
          product.next[p * n + q][t] = a->next[p][t] * static_cast<int>(n) + b->next[q][t];
        }
      }
    }
    const auto grammar = compiler.CompileGrammar(a->AsGrammar(), GrammarLanguage::kGbnf);
    ASSERT_TRUE(grammar.ok());
    std::shared_ptr<const Constraint> at = Both(
        MakeConstraint(*grammar), std::make_shared<AutomatonConstraint>(b, vocabulary), vocabulary);
    EXPECT_TRUE(at->exact());
    int state = 0;
    for (int step = 0; step < 8; ++step) {
      const Constraint::Place place = at->Look();
      EXPECT_EQ(place.accepting, product.Accepts(state));
      std::vector<TokenId> allowed;
      for (TokenId t = 0; t < vocabulary->size(); ++t) {
        const bool right = vocabulary->is_end(t) ? place.accepting : product.Step(state, t) >= 0;
        EXPECT_EQ(place.mask->Allows(t), right);
        EXPECT_EQ(at->Advance(t) != nullptr, product.Step(state, t) >= 0);
        if (product.Step(state, t) >= 0) allowed.push_back(t);
      }
      const int most = static_cast<int>(random() % 12);
      const auto shortest = product.Shortest(state);
      const auto completion = at->Completion(most);
      ++places;
      if (shortest && static_cast<int>(shortest->size()) <= most) {
        ++possible;
        found += completion.has_value();
      }
      if (completion) {
        EXPECT_LE(static_cast<int>(completion->size()), most);
        int end = state;
        for (const TokenId t : *completion) end = end < 0 ? end : product.Step(end, t);
        ASSERT_GE(end, 0);
        EXPECT_TRUE(product.Accepts(end));
      }
      if (allowed.empty()) break;
      const TokenId token = allowed[random() % allowed.size()];
      at = at->Advance(token);
      state = product.Step(state, token);
    }
  }
  EXPECT_GT(places, 500);
  EXPECT_GT(possible, 50);
  EXPECT_GE(found * 100, possible * 98) << found << " of " << possible;
}

TEST(ConstraintTest, BothAgreeOnForcedTextTemperatureAndLimit) {
  class Says : public Constraint {
   public:
    explicit Says(Place place) : place_(std::move(place)) {}
    Place Look() const override { return place_; }
    std::shared_ptr<const Constraint> Advance(TokenId) const override { return nullptr; }
    std::optional<std::vector<TokenId>> Completion(int) const override { return std::nullopt; }

   private:
    const Place place_;
  };
  const auto vocabulary = AutomatonVocabulary();
  const auto both = [&](Constraint::Place a, Constraint::Place b) {
    return Both(std::make_shared<Says>(std::move(a)), std::make_shared<Says>(std::move(b)),
                vocabulary)
        ->Look();
  };
  const std::vector<TokenId> tokens = {2, 4};
  const auto mask = MaskOfTokens(*vocabulary, tokens);
  EXPECT_EQ(both({.forced = "abc"}, {.forced = "ab"}).forced, "abc");
  EXPECT_EQ(both({.forced = ""}, {.forced = "ab"}).forced, "ab");
  EXPECT_EQ(both({.forced = "abc"}, {.forced = "abd"}).forced, "ab");
  EXPECT_EQ(both({.temperature = 0.5f}, {.temperature = 1.0f}).temperature, 0.5f);
  EXPECT_EQ(both({}, {.temperature = 1.0f}).temperature, 1.0f);
  EXPECT_EQ(both({.limit = ""}, {.limit = "full"}).limit, "full");
  EXPECT_EQ(both({}, {}).mask, nullptr);
  EXPECT_EQ(both({}, {.mask = mask}).mask->Tokens(), tokens);
}

// ---- Masks ----

TEST(TokenMasksTest, AreThoseOfTryingEachToken) {
  const auto vocabulary =
      VocabularyOf(AllBytes({"ab", "abc", "b", "bc", "cab", "a b", "ab"}), {"<tool>"});
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> texts(random() % 4);
    for (std::string& text : texts) {
      for (size_t n = random() % 6; n > 0; --n) text += "abc "[random() % 4];
    }
    const auto mask = MaskOfTexts(*vocabulary, texts);
    const auto slow = MaskWhere(*vocabulary, [&](TokenId, std::string_view bytes) {
      return std::any_of(texts.begin(), texts.end(),
                         [&](const std::string& text) { return text.starts_with(bytes); });
    });
    EXPECT_EQ(mask->Tokens(), slow->Tokens());
    for (const TokenId t : slow->Tokens()) EXPECT_FALSE(vocabulary->is_special(t));
  }
  const std::vector<TokenId> given = {300, 3, -1, 3, 255};
  EXPECT_EQ(MaskOfTokens(*vocabulary, given)->Tokens(), (std::vector<TokenId>{3, 255}));
}

}  // namespace
}  // namespace pawl
