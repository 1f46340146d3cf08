// Strategies that go along one output: against greedy decoding and plain sampling, a look-ahead
// that computes everything anew, and all outputs of toy languages.
#include <gtest/gtest.h>

#include <regex>

#include "src/decode/search/tree_walk.h"
#include "tests/search/toy_language.h"
#include "tests/support/session.h"

namespace pawl {
namespace {

Result<Generation> Plain(ToySearch& search, float temperature, uint64_t seed, int max_tokens) {
  GenerateOptions options;
  options.sampling = {.temperature = temperature, .seed = seed};
  options.max_tokens = max_tokens;
  options.skip_forced = false;
  Session session(search.toy.model, search.toy.vocabulary);
  return session.Generate(search.toy.prompt, search.toy.constraint, options);
}

// The tokens of the first output, without the end.
std::vector<TokenId> TokensOf(const SearchResult& result) {
  std::vector<TokenId> tokens = result.outputs.at(0).tokens;
  if (result.outputs[0].ended) tokens.pop_back();
  return tokens;
}

void ExpectPlain(const SearchOptions& given, float temperature) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    ToySearch search(seed);
    if (seed % 5 == 0) {
      search.grammar.reset();
      search.toy.constraint = nullptr;
    }
    SearchOptions options = given;
    options.max_tokens = 40;
    options.seed = seed;
    options.skip_forced = false;
    const Result<Generation> plain = Plain(search, temperature, seed, 40);
    const Result<SearchResult> result = search.Run(options);
    ASSERT_EQ(result.ok(), plain.ok());
    if (!result.ok() || plain->stop == StopReason::kClosed) continue;
    ++compared;
    EXPECT_EQ(TokensOf(*result), plain->tokens) << search.regex << " " << seed;
  }
  EXPECT_GE(compared, 400);
}

TEST(StrategiesTest, AdaDecWithoutPausesIsGreedy) {
  ExpectPlain({.strategy = "adadec", .arguments = {{"threshold", 1e300}}}, 0);
}

TEST(StrategiesTest, OneTrialIsPlainSampling) {
  ExpectPlain({.strategy = "cntp", .arguments = {{"max_trials", 1}}}, 1);
  ExpectPlain({.strategy = "cntp", .arguments = {{"max_trials", 1}, {"temperature", 0.5}}}, 0.5f);
}

// Also with a large vocabulary and budget, where a search could leave out unlikely tokens.
TEST(StrategiesTest, OneTrialDrawsFromTheWholeVocabulary) {
  std::vector<std::string> texts;
  for (int i = 0; i < 900; ++i) texts.push_back("t" + std::to_string(i));
  const auto vocabulary = VocabularyOf(texts);
  ToyModel model({.vocabulary_size = 901, .context_length = 400, .pages = 200, .kept = 50},
                 HashedLogits);
  const std::vector<TokenId> prompt(5, 7);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SearchOptions options{.strategy = "cntp", .max_tokens = 300, .seed = seed};
    options.arguments = {{"max_trials", 1}};
    const Result<SearchResult> result =
        RunSearch({model, *vocabulary, {}, prompt, nullptr}, options);
    ASSERT_TRUE(result.ok()) << result.error().ToString();
    GenerateOptions plain;
    plain.sampling = {.temperature = 1, .seed = seed};
    plain.max_tokens = 300;
    Session session(model, vocabulary);
    const Result<Generation> drawn = session.Generate(prompt, nullptr, plain);
    ASSERT_TRUE(drawn.ok());
    EXPECT_EQ(TokensOf(*result), drawn->tokens) << seed;
  }
}

// Laws that have gone are asked for again, and are the same.
TEST(StrategiesTest, OldLawsLeaveMemory) {
  ToySearch search(8);
  const SearchInput input = search.Input();
  const SearchOptions options{.max_tokens = 12, .max_rows = 1000};
  SamplingTask task;
  task.model = &search.toy.model.info();
  task.vocabulary = search.toy.vocabulary.get();
  task.max_tokens = 12;
  task.ExcludeControlTokens();
  SearchRun run({search.toy.model, input.encode, search.toy.prompt, task, options, 40});
  ASSERT_TRUE(run.Start().ok());
  TreeWalk walk(run, TreeWalk::kWholeLaws, 12);
  std::vector<Hypo> path = {SearchRun::kRoot};
  std::vector<double> entropies;
  while (!run.Complete(path.back())) {
    const Hypo open[] = {path.back()};
    ASSERT_TRUE(walk.Ask(open).ok());
    EXPECT_LE(walk.law_items(), 12u);
    entropies.push_back(walk.EntropyOf(path.back()));
    path.push_back(*walk.ChildAt(path.back(), entropies.size() % 2));
  }
  ASSERT_GE(entropies.size(), 5u);
  const int64_t rows = run.rows();
  for (size_t i = 0; i < entropies.size(); ++i) {
    const Hypo open[] = {path[i]};
    ASSERT_TRUE(walk.Ask(open).ok());
    EXPECT_EQ(walk.EntropyOf(path[i]), entropies[i]);
    EXPECT_EQ(*walk.ChildAt(path[i], (i + 1) % 2), path[i + 1]);
  }
  EXPECT_GT(run.rows(), rows);
  // All that were asked for together stay.
  ASSERT_TRUE(walk.Ask(path).ok());
  EXPECT_GT(walk.law_items(), 12u);
  walk.Close(SearchRun::kRoot, path[1]);
  EXPECT_EQ(*walk.Greedy(SearchRun::kRoot), path[1]);
}

// ---- A look-ahead that computes everything anew ----

using Path = std::vector<TokenId>;

bool Completes(const State& state, int left) {
  if (state.accepting()) return true;
  for (TokenId t = kZero; left > 0 && t <= kNewLine; ++t) {
    const auto next = state.Advance(t);
    if (next && Completes(*next, left - 1)) return true;
  }
  return false;
}

// What may follow, the most probable token first.
std::vector<std::pair<double, TokenId>> Following(const ToySearch& search, const Path& path,
                                                  int most) {
  State state = search.grammar->Start();
  for (const TokenId t : path) state = *state.Advance(t);
  const std::vector<double> law = search.law(path);
  std::vector<std::pair<double, TokenId>> out;
  for (TokenId t = 0; t <= kTheEnd; ++t) {
    const auto next = t == kTheEnd ? std::optional<State>() : state.Advance(t);
    const int left = most - static_cast<int>(path.size()) - 1;
    const bool fits =
        t == kTheEnd ? state.accepting() : next && left >= 0 && Completes(*next, left);
    if (fits) out.emplace_back(std::log(law[static_cast<size_t>(t)]), t);
  }
  std::ranges::stable_sort(out, [](const auto& a, const auto& b) { return a.first > b.first; });
  return out;
}

Path SlowAdaDec(const ToySearch& search, int most, int lookahead, size_t beams) {
  Path path;
  while (path.empty() || path.back() != kTheEnd) {
    const auto following = Following(search, path, most);
    double best = -1e300;
    TokenId chosen = following.front().second;
    for (size_t i = 0; i < std::min(beams, following.size()); ++i) {
      Path ahead = path;
      ahead.push_back(following[i].second);
      double sum = following[i].first;
      for (int step = 0; step < lookahead && ahead.back() != kTheEnd; ++step) {
        const auto next = Following(search, ahead, most).front();
        ahead.push_back(next.second);
        sum += next.first;
      }
      const double mean = sum / static_cast<double>(ahead.size() - path.size());
      if (mean > best) best = mean, chosen = following[i].second;
    }
    path.push_back(chosen);
  }
  return path;
}

TEST(StrategiesTest, AdaDecLooksAheadAtEachStep) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    ToySearch search(seed);
    const int lookahead = static_cast<int>(seed % 4), beams = 1 + static_cast<int>(seed % 3);
    SearchOptions options{.strategy = "adadec", .max_tokens = 7};
    options.arguments = {{"threshold", 0},
                         {"lookahead", static_cast<double>(lookahead)},
                         {"beams", static_cast<double>(beams)}};
    const Result<SearchResult> result = search.Run(options);
    if (!result.ok()) continue;
    EXPECT_EQ(result->outputs.at(0).tokens,
              SlowAdaDec(search, 7, lookahead, static_cast<size_t>(beams)))
        << search.regex << " " << seed;
    search.toy.ExpectNoPages();
  }
}

// The reward of a text: a hash of it, from 0 to 1.
double RewardOf(std::string_view text) {
  uint64_t hash = 7;
  for (const char c : text) hash = (hash ^ static_cast<uint64_t>(c)) * 0x9e3779b97f4a7c15u;
  return 0.001 + static_cast<double>(UniformAt(hash, 2, 3));
}

class Table : public Critic {
 public:
  Result<double> Score(const CheckQuestion& question) const override {
    return question.ended ? std::log(RewardOf(question.text)) : 0;
  }
};

TEST(StrategiesTest, TreeSearchFindsTheBestLeaf) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    ToySearch search(seed);
    const int most = 3;
    const auto all = search.All(most, 0);
    if (all.empty()) continue;
    const auto vocabulary = ToyVocabulary();
    double best = 0;
    for (const ToySearch::Output& output : all) {
      std::string text;
      for (const TokenId t : output.tokens) {
        if (t != kTheEnd) text += vocabulary->bytes(t);
      }
      best = std::max(best, RewardOf(text));
    }
    SearchOptions options{.strategy = "mcts", .max_tokens = most};
    options.critic = std::make_shared<Table>();
    options.arguments = {{"rollouts", 2000}, {"width", 8}};
    const Result<SearchResult> result = search.Run(options);
    ASSERT_TRUE(result.ok()) << result.error().ToString();
    EXPECT_NEAR(RewardOf(result->outputs.at(0).text), best, 1e-12) << search.regex;
    ++compared;
  }
  EXPECT_GE(compared, 300);
}

// What a check of whole outputs refuses gets no reward, and the others are found.
TEST(StrategiesTest, TreeSearchPassesTests) {
  ToySearch search(3);
  search.grammar = search.toy.Compile("[01]{6}");
  search.toy.constraint = MakeConstraint(*search.grammar);
  SearchOptions options{.strategy = "mcts", .max_tokens = 6};
  options.checks = {
      MakeCheck(CheckGranularity::kComplete, [](const CheckQuestion& question) -> Result<Verdict> {
        return question.text == "110100" ? Verdict::kAccept : Verdict::kDead;
      })};
  options.arguments = {{"rollouts", 2000}, {"width", 4}};
  const Result<SearchResult> result = search.Run(options);
  ASSERT_TRUE(result.ok()) << result.error().ToString();
  ASSERT_EQ(result->outputs.size(), 1u);
  EXPECT_EQ(result->outputs[0].text, "110100");
}

// ---- Searches that see several outputs ----

TEST(StrategiesTest, LatticesWithoutMergesFindTheBestOutputs) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    ToySearch search(seed);
    const double penalty = static_cast<double>(seed % 3);
    SearchOptions options{.strategy = "lattice", .n = 3, .length_penalty = penalty};
    options.max_tokens = 5;
    options.merge_spellings = false;
    options.arguments = {{"ngram", 9}, {"nodes", 1e6}};
    const auto all = search.All(5, penalty);
    const Result<SearchResult> result = search.Run(options);
    ASSERT_EQ(result.ok(), !all.empty());
    if (!result.ok()) continue;
    ExpectBest(*result, all, 3);
    EXPECT_EQ(result->paths, static_cast<double>(all.size())) << search.regex;
    search.toy.ExpectNoPages();
    ++compared;
  }
  EXPECT_GE(compared, 300);
}

// The texts of all paths behind a node.
void PathsBehind(const SearchGraph& graph, int node, const std::string& text,
                 std::vector<std::string>& texts) {
  if (graph.nodes[static_cast<size_t>(node)].complete) texts.push_back(text);
  for (const SearchGraph::Edge& edge : graph.edges) {
    if (edge.from == node) PathsBehind(graph, edge.to, text + edge.text, texts);
  }
}

TEST(StrategiesTest, EveryPathOfALatticeIsAccepted) {
  int merged = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    ToySearch search(seed);
    SearchOptions options{.strategy = "lattice", .n = 4, .max_tokens = 7};
    options.keep_graph = true;
    options.arguments = {{"ngram", static_cast<double>(1 + seed % 2)}, {"nodes", 25}};
    const Result<SearchResult> result = search.Run(options);
    if (!result.ok()) continue;
    std::vector<std::string> texts;
    PathsBehind(result->graph, 0, "", texts);
    EXPECT_EQ(static_cast<double>(texts.size()), result->paths) << search.regex;
    const std::regex regex(search.regex);
    for (const std::string& text : texts) EXPECT_TRUE(std::regex_match(text, regex)) << text;
    merged += result->graph.edges.size() >= result->graph.nodes.size() ? 1 : 0;
    // What is handed out has its own probability.
    const auto all = search.All(7, 1);
    for (const SearchOutput& output : result->outputs) {
      const auto same = std::ranges::find(all, output.tokens, &ToySearch::Output::tokens);
      ASSERT_NE(same, all.end());
      EXPECT_NEAR(output.log_probability, same->log_probability, 1e-5);
      EXPECT_NEAR(output.score, same->score, 1e-5);
    }
    const std::string svg = SearchSvg(result->graph);
    EXPECT_NE(svg.find("<circle"), std::string::npos);
  }
  EXPECT_GE(merged, 50);
}

TEST(StrategiesTest, ForesightThatSeesAllFindsTheBestOutput) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    ToySearch search(seed);
    SearchOptions options{.strategy = "foresight", .n = 2, .max_tokens = 5, .seed = seed};
    options.merge_spellings = false;
    options.arguments = {{"num_rollouts", 16}, {"beams", 4096},  {"step", 1},
                         {"horizon", 9},       {"sigma", 1e300}, {"agreement", 2}};
    const auto all = search.All(5, 1);
    const Result<SearchResult> result = search.Run(options);
    ASSERT_EQ(result.ok(), !all.empty());
    if (!result.ok()) continue;
    ExpectBest(*result, all, 2);
    search.toy.ExpectNoPages();
    ++compared;
  }
  EXPECT_GE(compared, 300);
}

// With narrow beams each output is one of the language, and the same seed gives the same one.
TEST(StrategiesTest, ForesightObeysTheConstraint) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    ToySearch search(seed);
    SearchOptions options{.strategy = "foresight", .max_tokens = 12, .seed = seed};
    options.arguments = {{"num_rollouts", 3}, {"beams", 2}, {"step", 2}, {"horizon", 2}};
    const Result<SearchResult> result = search.Run(options);
    if (!result.ok()) continue;
    ASSERT_EQ(result->outputs.size(), 1u) << search.regex;
    EXPECT_TRUE(std::regex_match(result->outputs[0].text, std::regex(search.regex)));
    EXPECT_EQ(search.Run(options)->outputs[0].tokens, result->outputs[0].tokens);
  }
}

// One beam whose candidates are judged by the texts that greedy decoding makes of them.
Path SlowDeal(const ToySearch& search, int most, int lookahead) {
  const auto vocabulary = ToyVocabulary();
  Path path;
  double log_p = 0;
  while (path.empty() || path.back() != kTheEnd) {
    const auto following = Following(search, path, most);
    double best = -1e300, best_log_p = 0;
    TokenId chosen = kNoToken;
    for (size_t i = 0; i < std::min<size_t>(2, following.size()); ++i) {
      Path ahead = path;
      ahead.push_back(following[i].second);
      for (int step = 0; step < lookahead && ahead.back() != kTheEnd; ++step) {
        ahead.push_back(Following(search, ahead, most).front().second);
      }
      std::string text;
      for (const TokenId t : ahead) text += t == kTheEnd ? "" : std::string(vocabulary->bytes(t));
      const double reward = ahead.back() == kTheEnd ? std::log(RewardOf(text)) : 0;
      const double score = log_p + following[i].first + reward;
      if (score > best) {
        best = score;
        best_log_p = log_p + following[i].first;
        chosen = following[i].second;
      }
    }
    path.push_back(chosen);
    log_p = best_log_p;
  }
  return path;
}

TEST(StrategiesTest, BeamsAskCriticsAboutWhatFollows) {
  int compared = 0, changed = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    ToySearch search(seed);
    const int lookahead = static_cast<int>(1 + seed % 8);
    SearchOptions options{.strategy = "beam", .num_beams = 1, .max_tokens = 7};
    options.critic = std::make_shared<Table>();
    options.merge_spellings = false;
    const Result<SearchResult> plain = search.Run(options);
    options.arguments = {{"lookahead", static_cast<double>(lookahead)}};
    const Result<SearchResult> result = search.Run(options);
    if (!result.ok()) continue;
    EXPECT_EQ(result->outputs.at(0).tokens, SlowDeal(search, 7, lookahead))
        << search.regex << " " << seed;
    changed += result->outputs[0].tokens != plain->outputs.at(0).tokens ? 1 : 0;
    ++compared;
  }
  EXPECT_GE(compared, 300);
  EXPECT_GE(changed, 50);
}

// ---- Contrast ----

TEST(StrategiesTest, ContrastWithTheSamePromptChangesNoBit) {
  int compared = 0, changed = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    ToySearch search(seed);
    SearchOptions options{.strategy = seed % 2 == 0 ? "beam" : "cntp", .max_tokens = 12};
    options.seed = seed;
    const Result<SearchResult> plain = search.Run(options);
    if (!plain.ok()) continue;
    SearchInput input = search.Input();
    input.contrast = search.toy.prompt;
    options.contrast = 0.7;
    options.contrast_auto = seed % 3 == 0;
    const Result<SearchResult> same = RunSearch(input, options);
    ASSERT_TRUE(same.ok()) << same.error().ToString();
    EXPECT_EQ(same->outputs.at(0).tokens, plain->outputs.at(0).tokens);
    EXPECT_EQ(same->outputs[0].log_probability, plain->outputs[0].log_probability);
    EXPECT_LE(same->model_rows, 2 * plain->model_rows);
    // Another prompt, but no weight.
    input.contrast = std::vector<TokenId>(search.toy.prompt.size() + 3, search.toy.prompt[0]);
    options.contrast = 0;
    options.contrast_auto = false;
    EXPECT_EQ(RunSearch(input, options)->outputs.at(0).tokens, plain->outputs[0].tokens);
    // Its law is another one, so the weight counts.
    options.contrast = 3;
    const Result<SearchResult> other = RunSearch(input, options);
    ASSERT_TRUE(other.ok());
    changed += other->outputs.at(0).log_probability != plain->outputs[0].log_probability ? 1 : 0;
    EXPECT_TRUE(std::regex_match(other->outputs[0].text, std::regex(search.regex)));
    ++compared;
  }
  EXPECT_GE(compared, 200);
  EXPECT_GE(changed, 1);
}

TEST(StrategiesTest, NothingFollowsWithoutABudget) {
  for (const char* strategy : {"beam", "best-first", "lattice", "foresight", "adadec", "mcts"}) {
    ToySearch search(2);
    search.grammar.reset();
    search.toy.constraint = nullptr;
    const Result<SearchResult> result = search.Run({.strategy = strategy, .max_tokens = 0});
    ASSERT_TRUE(result.ok()) << result.error().ToString();
    ASSERT_EQ(result->outputs.size(), 1u) << strategy;
    EXPECT_TRUE(result->outputs[0].tokens.empty()) << strategy;
  }
}

TEST(StrategiesTest, ChecksJudgeWhatIsCut) {
  for (const char* strategy : {"beam", "best-first", "lattice", "foresight", "adadec", "mcts"}) {
    ToySearch search(2);
    search.grammar.reset();
    search.toy.constraint = nullptr;
    SearchOptions options{.strategy = strategy, .max_tokens = 3};
    options.checks = {MakeCheck(
        CheckGranularity::kComplete, [](const CheckQuestion& question) -> Result<Verdict> {
          return question.text.starts_with('1') ? Verdict::kAccept : Verdict::kDead;
        })};
    const Result<SearchResult> result = search.Run(options);
    ASSERT_TRUE(result.ok()) << result.error().ToString();
    for (const SearchOutput& output : result->outputs) {
      EXPECT_TRUE(output.text.starts_with('1')) << strategy << " " << output.text;
    }
  }
}

// At any limit there is an answer, and the limit holds.
TEST(StrategiesTest, NoSearchTakesMoreRowsThanItMay) {
  for (const char* strategy :
       {"beam", "diverse-beam", "best-first", "lattice", "foresight", "adadec", "cntp", "mcts"}) {
    for (const int64_t rows : {1, 3, 7, 40}) {
      ToySearch search(5, 40);
      search.grammar = search.toy.Compile("1111[01]{3,20}");
      search.toy.constraint = MakeConstraint(*search.grammar);
      const Result<SearchResult> free = search.Run({.strategy = strategy, .max_tokens = 30});
      const Result<SearchResult> result =
          search.Run({.strategy = strategy, .max_tokens = 30, .max_rows = rows});
      ASSERT_TRUE(result.ok()) << result.error().ToString();
      ASSERT_TRUE(free.ok());
      ASSERT_EQ(result->outputs.size(), 1u) << strategy << " " << rows;
      if (result->at_limit.empty()) {
        EXPECT_EQ(result->outputs[0].text, free->outputs.at(0).text);
      } else {
        EXPECT_EQ(result->at_limit, "rows");
      }
      EXPECT_TRUE(std::regex_match(result->outputs[0].text, std::regex("1111[01]{3,20}")));
      // Rows of pages that branches share run again.
      EXPECT_LE(result->nodes, 1 + 8 * (rows + 8)) << strategy;
    }
  }
}

TEST(StrategiesTest, WrongArgumentsAreNamed) {
  const auto place = [](const SearchOptions& options) {
    ToySearch search(3);
    return search.Run(options).error().ToString();
  };
  const auto with = [](const char* strategy, std::vector<std::pair<std::string, double>> given) {
    SearchOptions options{.strategy = strategy};
    options.arguments = std::move(given);
    return options;
  };
  EXPECT_EQ(place(with("superposed", {{"drafts", 3}})),
            "arguments: superposed has no argument drafts");
  EXPECT_EQ(place(with("mcts", {{"rollouts", 1.5}})), "arguments: rollouts must be a whole number");
  EXPECT_EQ(place(with("cntp", {{"min_trials", 20}})),
            "arguments: min_trials must be at most max_trials");
  EXPECT_EQ(place(with("cntp", {{"entropy_threshold_low", 3}})),
            "arguments: entropy_threshold_low must be at most entropy_threshold_high");
  EXPECT_EQ(place(with("beam", {{"lookahead", 3}})),
            "arguments: lookahead needs a critic, which judges what it sees");
}

// ---- Self-infilling ----

SearchInput WithMarks(ToySearch& search) {
  SearchInput input = search.Input();
  input.infill = InfillMarks{.prefix = kPrompt, .suffix = kNewLine, .middle = kPrompt};
  input.grammar = search.grammar;
  return input;
}

TEST(StrategiesTest, SelfInfillWithoutLoopsIsPlain) {
  for (const double temperature : {0.0, 1.0}) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      ToySearch search(seed);
      SearchOptions options = {.strategy = "self-infill", .skip_forced = false, .max_tokens = 40};
      options.seed = seed;
      options.arguments = {{"loops", 0}, {"threshold", 1}, {"temperature", temperature}};
      const Result<Generation> plain = Plain(search, static_cast<float>(temperature), seed, 40);
      const Result<SearchResult> result = RunSearch(WithMarks(search), options);
      ASSERT_EQ(result.ok(), plain.ok());
      if (result.ok() && plain->stop != StopReason::kClosed) {
        EXPECT_EQ(TokensOf(*result), plain->tokens) << search.regex << " " << seed;
      }
    }
  }
}

// Behind the marks the toy has other laws, so ends and middles differ from what comes from left to
// right. Whatever they are, the output is a text of the grammar and fits the budget.
TEST(StrategiesTest, SelfInfilledOutputsAreComplete) {
  int filled = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    ToySearch search(seed);
    const std::regex language(search.regex);
    SearchOptions options = {.strategy = "self-infill", .max_tokens = 12};
    options.seed = seed;
    options.arguments = {{"loops", 3}, {"threshold", 0.7}, {"temperature", double(seed % 2)}};
    const Result<SearchResult> result = RunSearch(WithMarks(search), options);
    if (!result.ok()) continue;
    ASSERT_EQ(result->outputs.size(), 1U);
    const SearchOutput& output = result->outputs[0];
    EXPECT_TRUE(std::regex_match(output.text, language)) << search.regex << " " << output.text;
    EXPECT_TRUE(output.ended);
    EXPECT_LE(TokensOf(*result).size(), 12U);
    // Of a candidate that was filled in, log P is that behind the prompt.
    double log_probability = 0;
    for (size_t i = 0; i < output.tokens.size(); ++i) {
      const std::vector<double> law = search.law(std::span(output.tokens).first(i));
      log_probability += std::log(law[static_cast<size_t>(output.tokens[i])]);
    }
    EXPECT_NEAR(output.log_probability, log_probability, 1e-4);
    EXPECT_NEAR(output.score, log_probability / static_cast<double>(output.tokens.size()), 1e-4);
    const Result<SearchResult> again = RunSearch(WithMarks(search), options);
    EXPECT_EQ(again->outputs[0].tokens, output.tokens);
    options.arguments[0].second = 0;
    const Result<SearchResult> plain = RunSearch(WithMarks(search), options);
    filled += plain.ok() && plain->outputs[0].text != output.text ? 1 : 0;
    search.toy.ExpectNoPages();
  }
  EXPECT_GE(filled, 10);
}

// The rows of the prompts of gaps and those of scoring count, and at any limit there is an output.
TEST(StrategiesTest, SelfInfillKeepsTheLimitOfRows) {
  int limited = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    ToySearch search(seed);
    search.grammar = search.toy.Compile("11[01]{4,9}");
    search.toy.constraint = MakeConstraint(*search.grammar);
    SearchOptions options = {.strategy = "self-infill", .max_tokens = 12};
    options.seed = seed;
    options.max_rows = 1 + static_cast<int64_t>(seed * 7 % 90);
    options.arguments = {{"loops", 3}, {"threshold", 0.7}};
    const Result<SearchResult> result = RunSearch(WithMarks(search), options);
    ASSERT_TRUE(result.ok()) << result.error().ToString();
    ASSERT_EQ(result->outputs.size(), 1U) << options.max_rows;
    EXPECT_TRUE(std::regex_match(result->outputs[0].text, std::regex("11[01]{4,9}")));
    EXPECT_LE(result->model_rows, 5 + options.max_rows);
    limited += result->at_limit == "rows" ? 1 : 0;
  }
  EXPECT_GE(limited, 30);
}

TEST(StrategiesTest, SelfInfillNeedsMarksAndAGrammar) {
  ToySearch search(3);
  const SearchOptions options = {.strategy = "self-infill"};
  const auto refused = [&](const SearchInput& input) {
    const Result<SearchResult> result = RunSearch(input, options);
    return result.ok() ? "" : result.error().ToString();
  };
  EXPECT_EQ(refused(search.Input()),
            "strategy: self-infill needs a model with markers for a gap, the prefix first");
  SearchInput input = WithMarks(search);
  input.grammar.reset();
  EXPECT_EQ(refused(input), "constraint: self-infill needs a grammar, not a constraint of code");
}

// ---- Contrastive search, with states that are a hash of what stands before ----

constexpr int kToyStates = 3;

std::vector<float> StateBehind(std::span<const TokenId> tokens) {
  std::vector<float> state;
  for (uint64_t i = 0; i < kToyStates; ++i) {
    state.push_back(UniformAt(HashOf(tokens, 7), 2, i) - 0.3F);
  }
  return state;
}

class StateModel : public ToyModel {
 public:
  StateModel(const ToyLaw& law, size_t prompt)
      : ToyModel({.vocabulary_size = kToyTokens, .context_length = 200, .pages = 2000, .kept = 500},
                 [this, law, prompt](const Place& place, std::span<float> out) {
                   states_[place.row.output] = StateBehind(place.tokens);
                   std::ranges::fill(out, 0.0F);
                   if (place.tokens.size() < prompt) return;
                   const std::vector<double> p = law(place.tokens.subspan(prompt));
                   for (size_t t = 0; t < p.size(); ++t)
                     out[t] = static_cast<float>(std::log(p[t]));
                 }) {
    model_info.hidden = kToyStates;
  }
  Status Run(const ModelCall& call) override {
    states_.clear();
    ModelCall plain = call;
    plain.taps = {};
    if (Status status = ToyModel::Run(plain); !status.ok()) return status;
    for (size_t i = 0; i < call.rows.size() && !call.taps.empty(); ++i) {
      EXPECT_EQ(call.taps[0].layer, ModelTap::kFinal);
      const auto state = states_.find(call.rows[i].output);
      if (state == states_.end()) continue;
      std::ranges::copy(state->second,
                        call.taps[0].states.begin() + static_cast<ptrdiff_t>(i * kToyStates));
    }
    return {};
  }

 private:
  std::map<int32_t, std::vector<float>> states_;
};

double CosineOf(std::span<const float> a, std::span<const float> b) {
  double product = 0, x = 0, y = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    product += double{a[i]} * double{b[i]};
    x += double{a[i]} * double{a[i]};
    y += double{b[i]} * double{b[i]};
  }
  return product / std::sqrt(x * y);
}

// Everything anew at each token. The search takes what may follow from Following.
Path ContrastiveAnew(const ToySearch& search, double alpha, size_t top_k, int most) {
  Path path;
  for (;;) {
    const auto following = Following(search, path, most);
    // Of all tokens that the grammar allows, whether the budget has room for them or not.
    State state = search.grammar->Start();
    for (const TokenId t : path) state = *state.Advance(t);
    const std::vector<double> law = search.law(path);
    double mass = state.accepting() ? law[kTheEnd] : 0;
    for (TokenId t = 0; t <= kNewLine && static_cast<int>(path.size()) < most; ++t) {
      if (state.Advance(t)) mass += law[static_cast<size_t>(t)];
    }
    std::optional<std::pair<double, TokenId>> best;
    for (size_t i = 0; i < std::min(top_k, following.size()); ++i) {
      Path next = search.toy.prompt;
      next.insert(next.end(), path.begin(), path.end());
      double likeness = following.size() < 2 || following[i].second == kTheEnd ? 0 : -1;
      Path with = next;
      with.push_back(following[i].second);
      for (size_t end = 1; end <= next.size() && likeness != 0; ++end) {
        likeness = std::max(likeness,
                            CosineOf(StateBehind(with), StateBehind(std::span(next).first(end))));
      }
      const double score = (1 - alpha) * std::exp(following[i].first) / mass - alpha * likeness;
      if (!best || score > best->first) best = {score, following[i].second};
    }
    if (!best) return path;
    path.push_back(best->second);
    if (best->second == kTheEnd) return path;
  }
}

TEST(StrategiesTest, ContrastiveSearchTakesTheBestByStates) {
  int compared = 0, other = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    ToySearch search(seed);
    StateModel model(search.law, search.toy.prompt.size());
    SearchInput input = {
        model, *search.toy.vocabulary, {}, search.toy.prompt, search.toy.constraint};
    SearchOptions options = {.strategy = "contrastive", .max_tokens = 12};
    options.arguments = {{"top_k", 3}, {"penalty_alpha", 0.4}};
    const Result<SearchResult> result = RunSearch(input, options);
    if (!result.ok()) continue;
    ++compared;
    EXPECT_EQ(result->outputs[0].tokens, ContrastiveAnew(search, 0.4, 3, 12)) << search.regex;
    options.arguments[1].second = 0;
    const Result<SearchResult> greedy = RunSearch(input, options);
    const Result<Generation> plain = Plain(search, 0, 0, 12);
    if (plain->stop == StopReason::kClosed) continue;
    EXPECT_EQ(TokensOf(*greedy), plain->tokens);
    other += result->outputs[0].tokens != greedy->outputs[0].tokens ? 1 : 0;
  }
  EXPECT_GE(compared, 150);
  EXPECT_GE(other, 20);
}

}  // namespace
}  // namespace pawl
