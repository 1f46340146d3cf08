// Drafts that are on by default may not cost: no call only to measure, a rest where they do not
// pay, calls that are never much longer, memory within its limit, and nothing learnt from
// strangers.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "src/decode/batch.h"
#include "src/decode/draft/drafter.h"
#include "src/decode/draft/latency_model.h"
#include "tests/decode/sixteen_model.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

// Always proposes the same token, and counts how often it was asked. `interrupted`: at that time
// the host does something else for a while.
class OneTokenSource : public DraftSource {
 public:
  OneTokenSource(TokenId token, float chance, int64_t& asked, bool given = false,
                 int64_t interrupted = -1)
      : token_(token), chance_(chance), asked_(asked), given_(given), interrupted_(interrupted) {}
  std::unique_ptr<DraftSession> Follow(const DraftRequest&) override {
    class Session : public DraftSession {
     public:
      explicit Session(OneTokenSource& of) : of_(of) {}
      void Propose(const DraftPlace&, DraftCursor&, std::vector<DraftProposal>& out) override {
        if (++of_.asked_ == of_.interrupted_) {
          std::this_thread::sleep_for(std::chrono::milliseconds(400));
        }
        out.push_back({of_.token_, 0, of_.chance_, 0, of_.given_});
      }

     private:
      OneTokenSource& of_;
    };
    return std::make_unique<Session>(*this);
  }

 private:
  const TokenId token_;
  const float chance_;
  int64_t& asked_;
  const bool given_;
  const int64_t interrupted_;
};

DraftSetting LettersSetting(const std::string& sources) {
  DraftSetting setting;
  setting.vocabulary = SixteenLetters();
  setting.vocabulary_size = 16;
  setting.options.sources = sources;
  return setting;
}

std::unique_ptr<Drafter> DrafterOf(DraftSetting setting, std::vector<Drafter::Named> more = {}) {
  const auto indices = ParseDraftSources(setting.options);
  EXPECT_TRUE(indices.ok()) << indices.error().ToString();
  Result<std::unique_ptr<Drafter>> made =
      Drafter::Make(std::move(setting), *indices, std::move(more));
  EXPECT_TRUE(made.ok()) << made.error().ToString();
  return *std::move(made);
}

std::unique_ptr<Drafter> OneTokenDrafter(int64_t& asked, float chance = 0.9f) {
  std::vector<Drafter::Named> more;
  more.emplace_back("one", std::make_unique<OneTokenSource>(TokenId{3}, chance, asked));
  return DrafterOf(LettersSetting("off"), std::move(more));
}

ModelInfo ModelOfBytes(int64_t bytes) {
  ModelInfo info;
  info.step_bytes = bytes;
  return info;
}

TEST(LatencyModelTest, TheFirstCallGivesTheHeightAndTheSizeOfTheModelTheShape) {
  LatencyModel small(ModelOfBytes(1 << 20)), large(ModelOfBytes(int64_t{1} << 30));
  EXPECT_FALSE(small.known());
  small.Learn(1, 10, 2e-3);
  large.Learn(8, 10, 2e-3);
  EXPECT_TRUE(small.known());
  EXPECT_NEAR(small.Seconds(1, 0), 2e-3, 1e-9);
  EXPECT_NEAR(large.Seconds(8, 0), 2e-3, 1e-9);
  EXPECT_GT(small.Seconds(16, 0) / small.Seconds(1, 0), large.Seconds(16, 0) / large.Seconds(1, 0));
  for (int rows = 1; rows < 128; ++rows)
    EXPECT_LE(large.Seconds(rows, 0), large.Seconds(rows + 1, 0));
}

TEST(LatencyModelTest, CallsMoveThePointsNearThemAndThoseThatNoCallWasNear) {
  LatencyModel curve(ModelOfBytes(int64_t{1} << 30));
  for (int i = 0; i < 100; ++i) {
    curve.Learn(1, 10, 1e-3);
    curve.Learn(4, 10, 3e-3);
  }
  EXPECT_NEAR(curve.Seconds(1, 0), 1e-3, 1e-5);
  EXPECT_NEAR(curve.Seconds(4, 0), 3e-3, 1e-4);
  EXPECT_GT(curve.Seconds(32, 0), 3e-3);
  EXPECT_EQ(curve.Reach(1), 8);
  EXPECT_EQ(curve.Reach(20), 40);
}

// A model that reads keys and values of eight outputs, and then takes little for a row of forced
// text: the first `plain` seconds, `forced` for each such row, `draft` for each draft.
struct EightOutputs {
  double plain = 936, forced = 42, draft = 122;
  double Seconds(int rows, int drafts) const {
    return plain + forced * (rows - 8 - drafts) + draft * drafts;
  }
};

TEST(LatencyModelTest, ADraftHasAPriceOfItsOwn) {
  const EightOutputs truth;
  LatencyModel curve(ModelOfBytes(1 << 20));
  for (int i = 0; i < 60; ++i) {
    for (const int rows : {8, 16, 32}) curve.Learn(rows, 10, truth.Seconds(rows, 0));
  }
  EXPECT_NEAR(curve.Seconds(12, 0), truth.Seconds(12, 0), 20);
  EXPECT_EQ(curve.Seconds(12, 0, 4), curve.Seconds(12, 0));
  for (int i = 0; i < 40; ++i) {
    const int drafts = 1 + i % 7;
    curve.Learn(12 + drafts, 10, truth.Seconds(12 + drafts, drafts), drafts);
  }
  // Calls with drafts have not moved what other rows take.
  EXPECT_NEAR(curve.Seconds(12, 0), truth.Seconds(12, 0), 20);
  for (const int drafts : {1, 4, 8}) {
    const double off = curve.Seconds(12 + drafts, 0, drafts) - truth.Seconds(12 + drafts, drafts);
    EXPECT_LT(std::abs(off), 12 * drafts + 20) << drafts;
  }
}

// Where no call without drafts had that many rows, calls with drafts tell what rows take.
TEST(LatencyModelTest, DraftsAloneTellWhatRowsTake) {
  LatencyModel curve(ModelOfBytes(int64_t{1} << 30));
  for (int i = 0; i < 60; ++i) {
    curve.Learn(1, 10, 100);
    curve.Learn(4, 10, 250, 3);
  }
  EXPECT_NEAR(curve.Seconds(1, 0), 100, 1);
  EXPECT_NEAR(curve.Seconds(4, 0, 3), 250, 5);
}

// A busy machine does something else now and then, for many times as long as a call takes.
TEST(LatencyModelTest, ACallThatWasInterruptedTellsNothing) {
  LatencyModel curve(ModelOfBytes(int64_t{1} << 30));
  for (int i = 0; i < 100; ++i) {
    curve.Learn(1, 10, 100);
    curve.Learn(2, 10, i % 5 == 0 ? 10'000 : 120, 1);
  }
  EXPECT_NEAR(curve.Seconds(1, 0), 100, 1);
  EXPECT_NEAR(curve.Seconds(2, 0, 1), 120, 3);
  // All calls take longer now: that is no interruption.
  for (int i = 0; i < 100; ++i) curve.Learn(1, 10, 400);
  EXPECT_NEAR(curve.Seconds(1, 0), 400, 10);
}

DraftTask TaskOf(RequestDrafts& request, std::span<const TokenId> tokens, int nodes) {
  DraftTask task;
  task.request = &request;
  task.tokens = tokens;
  task.prompt = 1;
  task.most_nodes = task.most_depth = nodes;
  return task;
}

// Draws a tree for one output and tells what came; how many drafts there were.
int DraftAndMiss(Drafter& drafter, RequestDrafts& request, const LatencyModel& curve, int rows = 1,
                 TokenId came = 5, bool drawn = true) {
  const std::vector<TokenId> tokens = {1};
  const DraftTask task = TaskOf(request, tokens, 16);
  drafter.CountCall();
  drafter.Draft({&task, 1}, {.rows = rows, .curve = &curve});
  if (!request.tree.nodes.empty()) drafter.Verified(request, 0, came, drawn);
  return request.tree.drafts();
}

TEST(DraftAccountTest, WhereANodeCostsMoreThanItsShareOfAStepItIsTriedSixteenTimes) {
  LatencyModel curve(ModelOfBytes(int64_t{1} << 30));
  curve.Learn(1, 0, 1e-12);  // no host makes a node in that time
  int64_t asked = 0;
  const auto drafter = OneTokenDrafter(asked);
  int64_t calls = 0;
  // Outputs of ten calls each: the account is the engine's, not an output's.
  const auto run = [&](int64_t until) {
    while (calls < until) {
      const auto request = drafter->Begin({});
      for (int i = 0; i < 10; ++i, ++calls) DraftAndMiss(*drafter, *request, curve, 1, 3);
      drafter->Finish(*request, {});
    }
  };
  run(20);
  EXPECT_GT(asked, 0);
  EXPECT_LE(asked, 17);
  run(20'000);
  EXPECT_TRUE(drafter->rests());
  // Four more at each doubling.
  EXPECT_LE(asked, 17 + 11 * 5);
  EXPECT_GT(asked, 17 + 4);
}

// Text without a constraint: a draft that costs a sixth of a call and is wrong comes once in some
// 34 calls. Where drafts are right, each call has some.
TEST(DraftAccountTest, InFreeTextTrialsTakeLittleTime) {
  LatencyModel curve(ModelOfBytes(int64_t{1} << 30));
  for (int i = 0; i < 60; ++i) {
    for (const int rows : {1, 2, 4, 8, 16, 32})
      curve.Learn(rows, 0, 1000 + 167 * (rows - 1), rows - 1);
  }
  const std::vector<TokenId> tokens = {1};
  const auto calls_with_drafts = [&](TokenId came, bool free_text) {
    int64_t asked = 0, calls = 0;
    const auto drafter = OneTokenDrafter(asked, 0.5f);
    const auto request = drafter->Begin({});
    for (int i = 0; i < 51; ++i) {
      DraftTask task = TaskOf(*request, tokens, 1);
      task.free_text = free_text;
      drafter->CountCall();
      drafter->Draft({&task, 1}, {.curve = &curve});
      if (!request->tree.nodes.empty()) drafter->Verified(*request, 0, came);
      calls += request->tree.drafts() > 0 ? 1 : 0;
    }
    return calls;
  };
  EXPECT_GE(calls_with_drafts(5, true), 2);
  EXPECT_LE(calls_with_drafts(5, true), 4);
  EXPECT_GT(calls_with_drafts(5, false), 4);
  EXPECT_GT(calls_with_drafts(3, true), 45);
}

// One call for eight outputs, whose tokens are the drafts or are not; how many drafts it had.
int DraftForEight(Drafter& drafter, std::vector<std::unique_ptr<RequestDrafts>>& requests,
                  const LatencyModel& curve, TokenId came) {
  const std::vector<TokenId> tokens = {1};
  std::vector<DraftTask> tasks;
  for (const auto& request : requests) tasks.push_back(TaskOf(*request, tokens, 16));
  drafter.CountCall();
  drafter.Draft(tasks, {.rows = 8, .curve = &curve});
  int drafts = 0;
  for (const auto& request : requests) {
    drafts += request->tree.drafts();
    if (!request->tree.nodes.empty()) drafter.Verified(*request, 0, came);
  }
  return drafts;
}

std::vector<std::unique_ptr<RequestDrafts>> EightRequests(Drafter& drafter) {
  std::vector<std::unique_ptr<RequestDrafts>> requests(8);
  for (auto& request : requests) request = drafter.Begin({});
  return requests;
}

// Rows of forced text are cheap for eight outputs at a time. Drafts are not, so there are none.
TEST(DraftAccountTest, ForEightOutputsNothingIsDraftedWhereADraftCostsMoreThanItGives) {
  const EightOutputs truth;
  LatencyModel curve(ModelOfBytes(1 << 20));
  for (int i = 0; i < 60; ++i) {
    for (const int rows : {8, 16, 32}) curve.Learn(rows, 0, truth.Seconds(rows, 0));
  }
  int64_t asked = 0;
  const auto first = OneTokenDrafter(asked);
  auto requests = EightRequests(*first);
  EXPECT_GT(DraftForEight(*first, requests, curve, 3), 0);  // as if drafts were such rows
  for (int i = 0; i < 40; ++i) curve.Learn(16, 0, truth.Seconds(16, 4), 4);
  const auto drafter = OneTokenDrafter(asked);
  requests = EightRequests(*drafter);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(DraftForEight(*drafter, requests, curve, 3), 0) << i;
}

// As for one output at a time.
TEST(DraftAccountTest, ForEightOutputsThereAreNoMoreTrials) {
  LatencyModel curve(ModelOfBytes(int64_t{1} << 30));
  for (int i = 0; i < 60; ++i) curve.Learn(8, 0, 1000);
  int64_t asked = 0;
  const auto drafter = OneTokenDrafter(asked);
  auto requests = EightRequests(*drafter);
  int64_t drafts = 0;
  for (int i = 0; i < 16; ++i) drafts += DraftForEight(*drafter, requests, curve, 5);
  EXPECT_GT(drafts, 0);
  EXPECT_TRUE(drafter->rests());
  const int64_t before = asked;
  for (int i = 0; i < 1000; ++i) (void)DraftForEight(*drafter, requests, curve, 5);
  EXPECT_TRUE(drafter->rests());
  EXPECT_LE(asked - before, 7 * 16);  // at most four outputs at each of seven doublings, nodes
}

TEST(DraftAccountTest, WhereDraftsPayTheEngineNeverRests) {
  LatencyModel curve(ModelOfBytes(int64_t{1} << 30));
  curve.Learn(1, 0, 10.0);
  int64_t asked = 0;
  const auto drafter = OneTokenDrafter(asked);
  const auto request = drafter->Begin({});
  int drafts = 0;
  for (int i = 0; i < 200; ++i) {
    drafts += DraftAndMiss(*drafter, *request, curve, 1, 3);
    ASSERT_FALSE(drafter->rests());
  }
  EXPECT_GE(drafts, 190);
}

// What the host does for a node is not what it takes where it was interrupted.
TEST(DraftAccountTest, AnInterruptedHostDoesNotEndDrafts) {
  LatencyModel curve(ModelOfBytes(int64_t{1} << 30));
  for (int i = 0; i < 50; ++i) {
    for (const int rows : {1, 2, 4, 8}) curve.Learn(rows, 0, 1e-3 + 5e-5 * rows);
  }
  for (const int64_t where : {401, 402, 403}) {  // at a root, and while a tree grows
    int64_t asked = 0;
    std::vector<Drafter::Named> more;
    more.emplace_back("one",
                      std::make_unique<OneTokenSource>(TokenId{3}, 0.9f, asked, false, where));
    const auto drafter = DrafterOf(LettersSetting("off"), std::move(more));
    const auto request = drafter->Begin({});
    int drafted = 0;
    for (int i = 0; i < 300; ++i) {
      if (DraftAndMiss(*drafter, *request, curve, 1, 3) > 0) ++drafted;
      drafter->SpendOnCall(i == 150 ? 10 : 1e-6);
    }
    EXPECT_GT(asked, where);
    EXPECT_GT(drafted, 290) << where;
  }
}

// Without drafts a forced token is a row of the next call. A draft of it saves no call.
TEST(DraftAccountTest, ForcedTokensSaveNoCall) {
  LatencyModel curve(ModelOfBytes(int64_t{1} << 30));
  curve.Learn(1, 0, 10.0);
  int64_t asked = 0;
  const auto drafter = OneTokenDrafter(asked);
  const auto request = drafter->Begin({});
  for (int i = 0; i < 100; ++i) DraftAndMiss(*drafter, *request, curve, 1, 3, false);
  EXPECT_FALSE(drafter->learns_grammars());  // it has never paid
  EXPECT_GT(asked, 0);
  EXPECT_LE(asked, 17 + 3 * 5);
}

// A tree of such tokens alone is worth no more than their rows.
TEST(DraftAccountTest, ATreeOfTokensThatTheLoopTakesByItselfIsNotMade) {
  LatencyModel curve(ModelOfBytes(int64_t{1} << 30));
  for (int i = 0; i < 50; ++i) {
    for (int rows = 1; rows <= 32; ++rows) curve.Learn(rows, 0, 10.0 + 0.1 * rows);
  }
  for (const bool given : {false, true}) {
    int64_t asked = 0;
    std::vector<Drafter::Named> more;
    more.emplace_back("one", std::make_unique<OneTokenSource>(TokenId{3}, 0.9f, asked, given));
    const auto drafter = DrafterOf(LettersSetting("off"), std::move(more));
    const auto request = drafter->Begin({});
    const int drafts = DraftAndMiss(*drafter, *request, curve, 1, 3);
    if (given) {
      EXPECT_EQ(drafts, 0);
    } else {
      EXPECT_GT(drafts, 1);
    }
  }
}

// Oracle: the shares of each case, counted here.
TEST(ChanceTableTest, EachCaseTendsToItsShare) {
  ChanceTable table;
  const uint32_t alone = ChanceTable::CaseOf(1, 0, 1, 0.5f);
  EXPECT_EQ(table.Of(alone, 0.5f), 0.5f);
  uint64_t state = 7;
  for (int i = 0; i < 20'000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto draw = static_cast<uint32_t>(state >> 33) % 100;
    for (uint32_t sources = 1; sources <= 3; ++sources) {
      table.Count(ChanceTable::CaseOf(sources, 0, 2, 0.5f), draw < 30 * sources);
    }
  }
  for (uint32_t sources = 1; sources <= 3; ++sources) {
    const float share = table.Of(ChanceTable::CaseOf(sources, 0, 2, 0.5f), 0.5f);
    EXPECT_NEAR(share, 0.3f * static_cast<float>(sources), 0.03f) << sources;
  }
  // Other ranks, numbers and chances are other cases.
  EXPECT_NEAR(table.Of(ChanceTable::CaseOf(1, 1, 2, 0.5f), 0.25f), 0.25f, 1e-6f);
  EXPECT_NEAR(table.Of(ChanceTable::CaseOf(1, 0, 1, 0.5f), 0.25f), 0.25f, 1e-6f);
  EXPECT_NEAR(table.Of(ChanceTable::CaseOf(1, 0, 2, 0.9f), 0.25f), 0.25f, 1e-6f);
  // At the edges there are cases too.
  for (const float chance : {0.0f, 1.0f}) {
    table.Count(ChanceTable::CaseOf(~0u, 99, 99, chance), true);
    EXPECT_GT(table.Of(ChanceTable::CaseOf(~0u, 99, 99, chance), 0), 0.1f);
  }
}

// How a word ends is known from where the grammar allowed the same, behind tokens never seen.
TEST(NgramDraftsTest, WhatCameUnderTheSameMaskIsProposedBehindOtherTokens) {
  const Compiler compiler(SixteenLetters());
  const auto grammar = compiler.CompileRegex("([a-h]+p)*");
  ASSERT_TRUE(grammar.ok());
  const auto start = ForLoop(MakeConstraint(*grammar), *SixteenLetters());
  const auto drafter = DrafterOf(LettersSetting("ngram"));
  // Words of one letter, all different: what comes behind a letter is the end.
  std::vector<TokenId> tokens = {0};
  const auto request = drafter->Begin({.prompt = tokens, .constraint = start});
  std::shared_ptr<const LoopConstraint> at = start;
  bool guessed = false;
  for (TokenId letter = 0; letter < 8; ++letter) {
    for (const TokenId came : {letter, TokenId{15}}) {
      DraftTask task = TaskOf(*request, tokens, 4);
      task.at = at;
      task.mask = at->mask();
      drafter->CountCall();
      drafter->Draft({&task, 1}, {});
      if (letter == 7 && came == 15) guessed = request->tree.Child(0, 15) >= 0;
      drafter->Verified(*request, 0, came);
      at = at->Next(came);
      ASSERT_NE(at, nullptr);
      tokens.push_back(came);
    }
  }
  EXPECT_TRUE(guessed);
}

// Lists of literals are made when drafts have paid.
TEST(DraftAccountTest, ListsOfLiteralsWaitUntilDraftsHavePaid) {
  LatencyModel curve(ModelOfBytes(int64_t{1} << 30));
  curve.Learn(1, 0, 10.0);
  const Compiler compiler(SixteenLetters());
  const auto grammar = compiler.CompileRegex("[d-f][a-p]*");
  ASSERT_TRUE(grammar.ok());
  const auto at = ForLoop(MakeConstraint(*grammar), *SixteenLetters());
  int64_t asked = 0;
  std::vector<Drafter::Named> more;
  more.emplace_back("one", std::make_unique<OneTokenSource>(TokenId{3}, 0.9f, asked));
  const auto drafter = DrafterOf(LettersSetting("literals"), std::move(more));
  const std::vector<TokenId> tokens = {1};
  const auto run = [&](TokenId came) {
    const auto request = drafter->Begin({.prompt = tokens, .constraint = at});
    DraftTask task = TaskOf(*request, tokens, 16);
    task.at = at;
    task.mask = at->mask();
    drafter->CountCall();
    drafter->Draft({&task, 1}, {.rows = 1, .curve = &curve});
    if (!request->tree.nodes.empty()) drafter->Verified(*request, 0, came);
    return request->stats().sources[0].drafted;
  };
  for (int i = 0; i < 4; ++i) EXPECT_EQ(run(3), 0) << i;
  int64_t drafted = 0;
  for (int i = 0; i < 8; ++i) drafted += run(3);
  EXPECT_GT(drafted, 0);
}

TEST(DraftAccountTest, ACallIsAtMostHalfAsLongAgainByTheCurve) {
  for (const int rows : {1, 8, 40}) {
    LatencyModel curve(ModelOfBytes(int64_t{1} << 30));
    for (int i = 0; i < 60; ++i) {
      for (int n = 1; n <= 128; n *= 2) curve.Learn(n, 0, 1e6 * n);
    }
    int64_t asked = 0;
    const auto drafter = OneTokenDrafter(asked, 0.999f);
    const auto request = drafter->Begin({});
    for (int i = 0; i < 20; ++i) {
      const int drafts = DraftAndMiss(*drafter, *request, curve, rows, 3);
      EXPECT_LE(curve.Seconds(rows + drafts, 0), 1.5 * curve.Seconds(rows, 0)) << rows;
    }
  }
}

// ---- In an engine ----

struct Made {
  BatchStats stats;
  std::vector<std::string> texts;
};

Made RunLetters(Model& model, std::shared_ptr<Drafter> drafter, const std::string& regex,
                int outputs, int max_tokens, int batch, int prompt = 1, int lanes = 1,
                uint64_t first_seed = 1, int max_rows = BatchOptions().max_rows) {
  const auto vocabulary = SixteenLetters();
  const Compiler compiler(vocabulary);
  const auto grammar = compiler.CompileRegex(regex);
  BatchOptions options;
  options.max_batch = batch;
  options.max_rows = max_rows;
  options.drafter = std::move(drafter);
  BatchEngine engine(model, vocabulary, {}, options);
  Made made;
  made.texts.resize(static_cast<size_t>(outputs));
  for (int i = 0; i < outputs; ++i) {
    GenerateOptions generate;
    generate.sampling = {
        .temperature = 1, .seed = first_seed + static_cast<uint64_t>(i), .draft_lanes = lanes};
    generate.max_tokens = max_tokens;
    std::string& text = made.texts[static_cast<size_t>(i)];
    // Other prompts have other pages.
    engine.Add({.prompt = std::vector<TokenId>(static_cast<size_t>(prompt), i % 16),
                .constraint = MakeConstraint(*grammar),
                .options = generate,
                .done = [&text](Result<Generation> output) {
                  text = output.ok() ? output->text : output.error().ToString();
                }});
  }
  while (engine.Step()) {
  }
  made.stats = engine.stats();
  return made;
}

TEST(DraftAccountTest, AnOutputOfOneFreeChoiceMakesTheCallsOfOff) {
  SixteenModel model;
  const Made off = RunLetters(model, nullptr, "a[c-f]b", 1, 10, 1);
  const Made on = RunLetters(model, DrafterOf(LettersSetting("auto")), "a[c-f]b", 1, 10, 1);
  EXPECT_EQ(on.texts, off.texts);
  EXPECT_EQ(on.stats.steps, off.stats.steps);
  EXPECT_EQ(on.stats.rows, off.stats.rows);
  EXPECT_EQ(on.stats.drafts, 0);
}

TEST(DraftAccountTest, OnAFullPoolNothingIsPreemptedOrAdmittedLater) {
  const auto run = [](bool drafts, int64_t& drafted) {
    constexpr TokenId kNeverDrawn = 15;
    ToyModel model({.vocabulary_size = 16, .context_length = 400, .pages = 24},
                   [](const ToyModel::Place& place, std::span<float> out) {
                     HashedLogits(place, out);
                     out[kNeverDrawn] = -60;
                   });
    int64_t asked = 0;
    std::shared_ptr<Drafter> drafter;
    if (drafts) {
      DraftSetting setting = LettersSetting("off");
      setting.options.always = true;
      std::vector<Drafter::Named> more;
      more.emplace_back("one", std::make_unique<OneTokenSource>(kNeverDrawn, 0.9f, asked));
      drafter = DrafterOf(std::move(setting), std::move(more));
    }
    const Made made = RunLetters(model, drafter, "[a-p]*", 12, 200, 6, 9);
    drafted = made.stats.drafts;
    return made;
  };
  int64_t none = 0, some = 0;
  const Made off = run(false, none), on = run(true, some);
  EXPECT_EQ(on.texts, off.texts);
  EXPECT_GT(off.stats.preemptions, 0);
  EXPECT_GT(some, 0);
  EXPECT_EQ(on.stats.preemptions, off.stats.preemptions);
  EXPECT_EQ(on.stats.steps, off.stats.steps);
  EXPECT_EQ(on.stats.most_running, off.stats.most_running);
}

// Drafts that are always wrong take none of the rows that prompts wait for: there are as many
// steps.
TEST(DraftAccountTest, RowsOfWaitingPromptsComeFirst) {
  const auto run = [](bool drafts) {
    constexpr TokenId kNeverDrawn = 15;
    ToyModel model({.vocabulary_size = 16, .context_length = 400, .pages = 400},
                   [](const ToyModel::Place& place, std::span<float> out) {
                     HashedLogits(place, out);
                     out[kNeverDrawn] = -60;
                   });
    int64_t asked = 0;
    std::shared_ptr<Drafter> drafter;
    if (drafts) {
      DraftSetting setting = LettersSetting("off");
      setting.options.always = true;
      std::vector<Drafter::Named> more;
      more.emplace_back("one", std::make_unique<OneTokenSource>(kNeverDrawn, 0.9f, asked));
      drafter = DrafterOf(std::move(setting), std::move(more));
    }
    return RunLetters(model, drafter, "[a-p]*", 12, 20, 4, 90, 1, 1, 16);
  };
  const Made off = run(false), on = run(true);
  EXPECT_EQ(on.texts, off.texts);
  EXPECT_GT(on.stats.drafts, 0);
  EXPECT_EQ(on.stats.steps, off.stats.steps);
}

// ---- What sources learn ----

std::vector<TokenId> ProposalsOf(Drafter& drafter, uint64_t owner, std::span<const TokenId> prompt,
                                 std::span<const TokenId> path,
                                 const std::shared_ptr<const LoopConstraint>& at) {
  GenerateOptions options;
  options.draft_owner = owner;
  const auto request = drafter.Begin({.prompt = prompt, .constraint = at, .options = &options});
  std::vector<TokenId> tokens(prompt.begin(), prompt.end());
  tokens.insert(tokens.end(), path.begin(), path.end());
  const DraftTask task = TaskOf(*request, tokens, 8);
  drafter.Draft({&task, 1}, {});
  std::vector<TokenId> children;
  request->tree.ChildrenOf(0, children);
  return children;
}

TEST(DraftOwnerTest, WhatOneWroteIsNoDraftOfAnother) {
  const std::vector<TokenId> prompt = {0}, output = {7, 9, 11, 7, 9, 12};
  for (const std::string source : {"history", "ngram", "recycling"}) {
    const auto drafter = DrafterOf(LettersSetting(source));
    GenerateOptions options;
    options.draft_owner = 17;
    const auto request =
        drafter->Begin({.prompt = prompt, .constraint = nullptr, .options = &options});
    std::vector<TokenId> tokens = prompt;
    std::vector<float> logits(16);
    for (const TokenId token : output) {
      const DraftTask task = TaskOf(*request, tokens, 8);
      drafter->Draft({&task, 1}, {});
      logits.assign(16, 0.0f);
      logits[static_cast<size_t>(token)] = 9;
      drafter->SeeLogits(*request, 0, tokens.back(), logits);
      drafter->Verified(*request, 0, token);
      tokens.push_back(token);
    }
    const DraftTask last = TaskOf(*request, tokens, 8);
    drafter->Draft({&last, 1}, {});
    drafter->Finish(*request, output);
    const std::vector<TokenId> begun = {7};
    EXPECT_FALSE(ProposalsOf(*drafter, 17, prompt, begun, nullptr).empty()) << source;
    EXPECT_TRUE(ProposalsOf(*drafter, 18, prompt, begun, nullptr).empty()) << source;
    EXPECT_TRUE(ProposalsOf(*drafter, 0, prompt, begun, nullptr).empty()) << source;
  }
}

// The same for counts of literals: whose texts begin with "f", "f" is the first guess.
TEST(DraftOwnerTest, WhatOneChoseIsNoFirstGuessOfAnother) {
  const Compiler compiler(SixteenLetters());
  const auto grammar = compiler.CompileRegex("[d-f][a-p]*");
  ASSERT_TRUE(grammar.ok());
  const auto at = ForLoop(MakeConstraint(*grammar), *SixteenLetters());
  const auto drafter = DrafterOf(LettersSetting("literals"));
  const std::vector<TokenId> tokens = {0};
  const auto guess = [&](uint64_t owner, TokenId came) {
    GenerateOptions options;
    options.draft_owner = owner;
    const auto request = drafter->Begin({.prompt = tokens, .constraint = at, .options = &options});
    DraftTask task = TaskOf(*request, tokens, 1);
    task.at = at;
    task.mask = at->mask();
    drafter->Draft({&task, 1}, {});
    EXPECT_EQ(request->tree.drafts(), 1);
    const TokenId first = request->tree.nodes[1].token;
    drafter->Verified(*request, 0, came);
    return first;
  };
  for (int i = 0; i < 20; ++i) (void)guess(17, 5);
  EXPECT_EQ(guess(17, 5), 5);
  EXPECT_EQ(guess(18, 5), 3);
  EXPECT_EQ(guess(0, 5), 3);
}

TEST(DraftMemoryLimitTest, WhatSourcesKeepIsWithinTheMegabytesAsked) {
  DraftSetting setting = LettersSetting("auto");
  setting.options.memory = 1;
  setting.options.always = true;
  const auto drafter = DrafterOf(std::move(setting));
  const std::vector<TokenId> prompt = {0};
  uint64_t x = 1;
  for (int round = 0; round < 60; ++round) {
    std::vector<TokenId> output;
    for (int i = 0; i < 2000; ++i) {
      x = x * 6364136223846793005u + 1442695040888963407u;
      output.push_back(static_cast<TokenId>(x >> 60));
    }
    const auto request = drafter->Begin(
        {.prompt = prompt, .constraint = nullptr, .grammar = static_cast<uint64_t>(1 + round % 7)});
    drafter->Finish(*request, output);
    EXPECT_LE(drafter->bytes(), 1 << 20);
  }
  EXPECT_GT(drafter->bytes(), 1 << 17);
  DraftSetting wrong = LettersSetting("auto");
  wrong.options.memory = 0;
  const auto refused = Drafter::Make(std::move(wrong), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().ToString(), "draft_memory: must be from 1 to 1048576 MB, not 0");
}

}  // namespace
}  // namespace pawl
