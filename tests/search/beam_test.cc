// Beams against all outputs of toy languages, against greedy decoding, and against a beam search
// that sorts all candidates.
#include <gtest/gtest.h>

#include <map>

#include "tests/search/toy_language.h"
#include "tests/support/session.h"

namespace pawl {
namespace {

// As wide as the language has prefixes of a length, a beam finds the best outputs.
TEST(BeamTest, ExactWhereTheBeamHoldsAllPrefixes) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    ToySearch search(seed);
    const int most = 3 + static_cast<int>(seed % 2);
    SearchOptions options{.n = 1 + static_cast<int>(seed % 6), .num_beams = 400};
    options.length_penalty = static_cast<double>(seed % 3);
    options.early_stopping = seed % 4 == 0 ? EarlyStopping::kNever : EarlyStopping::kFalse;
    options.merge_spellings = false;
    options.skip_forced = seed % 2 == 0;
    options.max_tokens = most;
    const auto all = search.All(most, options.length_penalty);
    const Result<SearchResult> result = search.Run(options);
    if (all.empty()) {
      EXPECT_FALSE(result.ok()) << search.regex;
      continue;
    }
    ASSERT_TRUE(result.ok()) << search.regex << ": " << result.error().ToString();
    SCOPED_TRACE(search.regex);
    ExpectBest(*result, all, static_cast<size_t>(options.n));
    search.toy.ExpectNoPages();
  }
}

// With one beam the output is that of the decode loop at temperature 0.
TEST(BeamTest, WidthOneIsGreedy) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    ToySearch search(seed);
    if (seed % 5 == 0) {
      search.grammar.reset();
      search.toy.constraint = nullptr;
    }
    GenerateOptions plain;
    plain.max_tokens = 40;
    plain.skip_forced = seed % 2 == 0;
    Session session(search.toy.model, search.toy.vocabulary);
    const Result<Generation> greedy =
        session.Generate(search.toy.prompt, search.toy.constraint, plain);
    SearchOptions options{.num_beams = 1, .max_tokens = 40};
    options.skip_forced = plain.skip_forced;
    options.length_penalty = static_cast<double>(seed % 3);
    const Result<SearchResult> result = search.Run(options);
    ASSERT_EQ(result.ok(), greedy.ok());
    // Near the end of the budget the decode loop closes, and a search goes on with what fits.
    if (!result.ok() || greedy->stop == StopReason::kClosed) continue;
    ++compared;
    std::vector<TokenId> tokens = result->outputs.at(0).tokens;
    if (result->outputs[0].ended) tokens.pop_back();
    EXPECT_EQ(tokens, greedy->tokens) << search.regex << " " << seed;
    EXPECT_EQ(result->outputs[0].text, greedy->text);
  }
  EXPECT_GE(compared, 400);
}

// ---- A beam search that sorts everything ----

struct SlowBeam {
  std::vector<TokenId> tokens;
  double score, log_probability;
};

struct SlowGroup {
  std::vector<SlowBeam> live = {{{}, 0, 0}}, pool;
  bool done = false;
};

class SlowBeams {
 public:
  SlowBeams(const ToySearch& search, const SearchOptions& options, int width, int groups,
            double penalty)
      : search_(search),
        o_(options),
        width_(static_cast<size_t>(width)),
        penalty_(penalty),
        groups_(static_cast<size_t>(groups)) {}

  std::vector<SlowBeam> Run() {
    while (std::ranges::any_of(groups_, [](const SlowGroup& g) { return !g.done; })) {
      std::map<TokenId, int> taken;
      for (SlowGroup& group : groups_) {
        if (group.done) continue;
        Step(group, taken);
        for (const SlowBeam& beam : group.live) ++taken[beam.tokens.back()];
      }
    }
    std::vector<SlowBeam> all;
    for (const SlowGroup& group : groups_)
      all.insert(all.end(), group.pool.begin(), group.pool.end());
    std::ranges::stable_sort(all, std::ranges::greater(), &SlowBeam::score);
    return all;
  }

 private:
  // Whether so many tokens more can complete an output.
  bool CanEnd(const State& state, int left) const {
    if (state.accepting()) return true;
    for (TokenId t = kZero; left > 0 && t <= kNewLine; ++t) {
      const auto next = state.Advance(t);
      if (next && CanEnd(*next, left - 1)) return true;
    }
    return false;
  }

  void Step(SlowGroup& group, const std::map<TokenId, int>& taken) {
    std::vector<SlowBeam> candidates;
    for (const SlowBeam& beam : group.live) {
      const std::vector<double> law = search_.law(beam.tokens);
      State state = search_.grammar->Start();
      for (const TokenId t : beam.tokens) state = *state.Advance(t);
      for (TokenId t = 0; t <= kTheEnd; ++t) {
        const int length = static_cast<int>(beam.tokens.size()) + 1;
        if (t == kTheEnd && !state.accepting()) continue;
        if (t != kTheEnd) {
          const auto next = state.Advance(t);
          if (!next || length > o_.max_tokens || !CanEnd(*next, o_.max_tokens - length)) continue;
        }
        const double p = std::log(law[static_cast<size_t>(t)]);
        const auto found = taken.find(t);
        SlowBeam next = beam;
        next.tokens.push_back(t);
        next.log_probability += p;
        next.score += p - (found == taken.end() ? 0 : penalty_ * found->second);
        candidates.push_back(std::move(next));
      }
    }
    std::ranges::stable_sort(candidates, std::ranges::greater(), &SlowBeam::score);
    if (candidates.size() > 2 * width_) candidates.resize(2 * width_);
    group.live.clear();
    const bool greedy = width_ == 1 && candidates[0].tokens.back() == kTheEnd;
    for (size_t i = 0; i < candidates.size(); ++i) {
      SlowBeam& one = candidates[i];
      if (one.tokens.back() != kTheEnd) {
        if (group.live.size() < width_) group.live.push_back(one);
      } else if (i < width_) {
        one.score = Ranked(one.score, one.tokens.size());
        group.pool.push_back(one);
      }
    }
    std::ranges::stable_sort(group.pool, std::ranges::greater(), &SlowBeam::score);
    if (group.pool.size() > width_) group.pool.resize(width_);
    group.done = greedy || group.live.empty();
    if (group.done || group.pool.size() < width_) return;
    const SlowBeam& best = group.live[0];
    const bool never = o_.early_stopping == EarlyStopping::kNever && o_.length_penalty > 0;
    const double hope =
        Ranked(best.score, never ? static_cast<size_t>(o_.max_tokens) + 1 : best.tokens.size());
    group.done = o_.early_stopping == EarlyStopping::kTrue || hope <= group.pool.back().score;
  }
  double Ranked(double score, size_t length) const {
    return score / std::pow(static_cast<double>(length), o_.length_penalty);
  }

  const ToySearch& search_;
  const SearchOptions& o_;
  const size_t width_;
  const double penalty_;
  std::vector<SlowGroup> groups_;
};

void ExpectAsSlow(const Result<SearchResult>& result, const std::vector<SlowBeam>& slow, size_t n) {
  ASSERT_TRUE(result.ok()) << result.error().ToString();
  ASSERT_EQ(result->outputs.size(), std::min(n, slow.size()));
  for (size_t i = 0; i < result->outputs.size(); ++i) {
    EXPECT_EQ(result->outputs[i].tokens, slow[i].tokens) << i;
    EXPECT_NEAR(result->outputs[i].score, slow[i].score, 1e-5) << i;
    EXPECT_NEAR(result->outputs[i].log_probability, slow[i].log_probability, 1e-5) << i;
  }
}

TEST(BeamTest, EqualsABeamSearchThatSortsEverything) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    ToySearch search(seed);
    SearchOptions options{.num_beams = 1 + static_cast<int>(seed % 5), .max_tokens = 6};
    options.n = 1 + static_cast<int>(seed % 2) * (options.num_beams - 1);
    options.length_penalty = static_cast<double>(seed % 3);
    options.early_stopping = static_cast<EarlyStopping>(seed / 3 % 3);
    options.merge_spellings = false;
    options.skip_forced = seed % 2 == 0;
    const Result<SearchResult> result = search.Run(options);
    if (!result.ok()) continue;
    SCOPED_TRACE(search.regex + " " + std::to_string(seed));
    ExpectAsSlow(result, SlowBeams(search, options, options.num_beams, 1, 0).Run(),
                 static_cast<size_t>(options.n));
  }
}

TEST(BeamTest, DiverseGroupsEqualABeamSearchThatSortsEverything) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    ToySearch search(seed);
    const int groups = 1 + static_cast<int>(seed % 3), width = 1 + static_cast<int>(seed % 4);
    SearchOptions options{.strategy = "diverse-beam", .num_beams = groups * width, .max_tokens = 6};
    options.num_beam_groups = groups;
    options.n = options.num_beams;
    options.diversity_penalty = 0.25 * static_cast<double>(seed % 5) + 0.01;
    options.merge_spellings = false;
    const Result<SearchResult> result = search.Run(options);
    if (!result.ok()) continue;
    SCOPED_TRACE(search.regex + " " + std::to_string(seed));
    ExpectAsSlow(result, SlowBeams(search, options, width, groups, options.diversity_penalty).Run(),
                 static_cast<size_t>(options.n));
  }
}

// Without a penalty all groups find what one beam of their width finds.
TEST(BeamTest, GroupsWithoutPenaltyAreEqual) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    ToySearch search(seed);
    SearchOptions one{.n = 2, .num_beams = 2, .max_tokens = 6};
    one.merge_spellings = false;
    SearchOptions all = one;
    all.strategy = "diverse-beam";
    all.n = all.num_beams = 6;
    all.num_beam_groups = 3;
    all.diversity_penalty = 0;
    const Result<SearchResult> plain = search.Run(one), grouped = search.Run(all);
    ASSERT_EQ(plain.ok(), grouped.ok());
    if (!plain.ok()) continue;
    ASSERT_EQ(grouped->outputs.size(), 3 * plain->outputs.size());
    for (size_t i = 0; i < grouped->outputs.size(); ++i) {
      EXPECT_EQ(grouped->outputs[i].tokens, plain->outputs[i / 3].tokens);
    }
  }
}

// Text that the grammar dictates takes no call of its own, and changes no output.
TEST(BeamTest, ForcedTextRunsInOneCall) {
  ToySearch search(3);
  search.grammar = search.toy.Compile("[01]1{20}[01]1{20}[01]");
  search.toy.constraint = MakeConstraint(*search.grammar);
  SearchOptions options{.n = 4, .num_beams = 4, .max_tokens = 60};
  const Result<SearchResult> skips = search.Run(options);
  options.skip_forced = false;
  const Result<SearchResult> asks = search.Run(options);
  ASSERT_TRUE(skips.ok() && asks.ok());
  ASSERT_EQ(skips->outputs.size(), asks->outputs.size());
  for (size_t i = 0; i < asks->outputs.size(); ++i) {
    EXPECT_EQ(skips->outputs[i].tokens, asks->outputs[i].tokens);
    EXPECT_NEAR(skips->outputs[i].log_probability, asks->outputs[i].log_probability, 1e-9);
  }
  EXPECT_LE(skips->model_calls, 6);
  EXPECT_GE(asks->model_calls, 43);
}

TEST(BeamTest, NoNGramOccursTwice) {
  ToySearch search(4);
  search.grammar.reset();
  search.toy.constraint = nullptr;
  SearchOptions options{.n = 3, .num_beams = 3, .no_repeat_ngram_size = 2, .max_tokens = 12};
  const Result<SearchResult> result = search.Run(options);
  ASSERT_TRUE(result.ok());
  for (const SearchOutput& output : result->outputs) {
    std::map<std::pair<TokenId, TokenId>, int> pairs;
    for (size_t i = 1; i < output.tokens.size(); ++i) {
      EXPECT_EQ(++pairs[std::pair(output.tokens[i - 1], output.tokens[i])], 1) << output.text;
    }
  }
}

class Fewer : public Critic {
 public:
  Result<double> Score(const CheckQuestion& question) const override {
    return -5.0 * static_cast<double>(std::ranges::count(question.text, '1'));
  }
};

// What checks refuse is no output, and critics change which outputs are the best.
TEST(BeamTest, ChecksAndCritics) {
  int changed = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    ToySearch search(seed);
    search.grammar = search.toy.Compile("[01]{4}");
    search.toy.constraint = MakeConstraint(*search.grammar);
    SearchOptions options{.num_beams = 32, .max_tokens = 4};
    const std::string free = search.Run(options)->outputs.at(0).text;
    options.critic = std::make_shared<Fewer>();
    const std::string criticised = search.Run(options)->outputs.at(0).text;
    EXPECT_LE(std::ranges::count(criticised, '1'), std::ranges::count(free, '1'));
    changed += criticised != free ? 1 : 0;
    options.critic = nullptr;
    options.checks = {
        MakeCheck(CheckGranularity::kByte, [](const CheckQuestion& q) -> Result<Verdict> {
          return q.text.find("00") != std::string_view::npos ? Verdict::kDead : Verdict::kAccept;
        })};
    const Result<SearchResult> checked = search.Run(options);
    ASSERT_TRUE(checked.ok());
    EXPECT_EQ(checked->outputs.at(0).text.find("00"), std::string::npos);
  }
  EXPECT_GE(changed, 5);
}

}  // namespace
}  // namespace pawl
