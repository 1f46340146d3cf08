// The source "self": which layers it takes (against slow twins), that all layers are always right,
// and what its calls leave behind. The source "lookahead": calls that it saves, rows that it gives
// up. Trained heads whose weights are chosen such that their guesses are right.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "src/decode/batch.h"
#include "src/decode/draft/drafter.h"
#include "src/decode/draft/model_source.h"
#include "src/decode/draft/self_layers.h"
#include "src/model/draft_head.h"
#include "src/text/tokenizer.h"
#include "tests/decode/sixteen_model.h"
#include "tests/model/model_test_util.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

std::string SelfError(const std::string& setting, int layers) {
  const Result<SelfDrafts> parsed = ParseSelfDrafts(setting, layers);
  return parsed.ok() ? "" : parsed.error().ToString();
}

TEST(SelfLayersTest, SettingsAreChecked) {
  for (const char* good :
       {"", "del", "skipdecode", "unified=0.5", "unified=1", "exit=4", "clasp=3"}) {
    EXPECT_EQ(SelfError(good, 4), "") << good;
  }
  for (const char* bad :
       {"unified=0", "unified=1.5", "unified", "unified=x", "unified=0.5x", "exit=0", "exit=5",
        "exit=", "exit=-1", "clasp=4", "clasp=0", "skip", "del=1"}) {
    EXPECT_NE(SelfError(bad, 4), "") << bad;
  }
  EXPECT_EQ(SelfError("exit=5", 4),
            "draft: the number of layers before the exit is from 1 on, to 4, not \"self:exit=5\"");
  EXPECT_EQ(SelfError("exit=5", 0), "");
}

TEST(SelfLayersTest, EvenAndFallingNumbers) {
  EXPECT_EQ(EvenLayers(9, 0.5), (std::vector<int>{0, 2, 4, 6, 8}));
  EXPECT_EQ(EvenLayers(9, 0.01), (std::vector<int>{0, 8}));
  EXPECT_EQ(EvenLayers(1, 0.5), (std::vector<int>{0}));
  for (int layers = 1; layers < 40; ++layers) {
    EXPECT_EQ(EvenLayers(layers, 1), FirstLayers(layers));
    for (int step = 1; step <= 20; ++step) {
      const std::vector<int> kept = EvenLayers(layers, step * 0.05);
      EXPECT_TRUE(std::ranges::adjacent_find(kept, std::greater_equal<>()) == kept.end());
      EXPECT_EQ(kept.front(), 0);
      EXPECT_EQ(kept.back(), layers - 1);
    }
    EXPECT_EQ(BudgetLayers(layers, 0, 100), FirstLayers(layers));
    size_t before = static_cast<size_t>(layers);
    for (int position = 0; position <= 120; ++position) {
      const std::vector<int> kept = BudgetLayers(layers, position, 100);
      EXPECT_LE(kept.size(), before);
      before = kept.size();
      EXPECT_EQ(kept.back(), layers - 1);
    }
    EXPECT_EQ(before, static_cast<size_t>(std::max(std::min(2, layers), layers / 4)));
  }
}

TEST(SelfLayersTest, DelChoosesTheBestOfAllExitsAndLengths) {
  std::mt19937_64 random(3);
  for (int n = 0; n < 2000; ++n) {
    const int layers = 2 + static_cast<int>(random() % 40);
    std::vector<ExitCount> exits;
    for (size_t i = 0; i < 1 + random() % 8; ++i) {
      const double asked = static_cast<double>(random() % 50);
      exits.push_back({1 + static_cast<double>(random() % static_cast<uint64_t>(layers)),
                       std::floor(asked * static_cast<double>(random() % 11) / 10), asked});
    }
    const auto value = [&](size_t exit, int drafts) {
      const ExitCount& count = exits[exit];
      double tokens = 0, reached = 1;
      for (int i = 0; i <= drafts; ++i) {
        tokens += reached;
        reached *= count.asked > 0 ? count.right / count.asked : 0;
      }
      return tokens / (drafts * count.layers + layers);
    };
    const ExitChoice choice = ChooseExit(exits, layers, 8);
    double best = 1.0 / layers;
    for (size_t exit = 0; exit < exits.size(); ++exit) {
      for (int drafts = 0; drafts <= 8; ++drafts) best = std::max(best, value(exit, drafts));
    }
    EXPECT_NEAR(value(choice.exit, choice.drafts), best, 1e-9 * best);
  }
}

// The recurrence of CLaSp, without a table.
struct SlowClasp {
  using State = std::vector<double>;
  std::vector<std::vector<State>> matrices;  // by layer: rows
  std::vector<State> whole;

  State Run(size_t layer, const State& in) const {
    State out = in;
    for (size_t i = 0; i < in.size(); ++i) {
      for (size_t j = 0; j < in.size(); ++j) out[i] += matrices[layer][i][j] * in[j];
    }
    return out;
  }
  static double Near(const State& a, const State& b) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      ab += a[i] * b[i];
      aa += a[i] * a[i];
      bb += b[i] * b[i];
    }
    return ab / std::sqrt(aa * bb);
  }
  // The state behind `behind` layers of which `out` were left out, and the layers that ran.
  std::pair<State, std::vector<int>> Best(size_t behind, size_t out) const {
    if (behind == 0) return {whole[0], {}};
    std::pair<State, std::vector<int>> ran, left;
    if (out < behind) {
      ran = Best(behind - 1, out);
      ran.first = Run(behind - 1, ran.first);
      ran.second.push_back(static_cast<int>(behind) - 1);
    }
    if (out > 0) left = Best(behind - 1, out - 1);
    if (out == 0) return ran;
    if (out == behind) return left;
    return Near(left.first, whole[behind]) > Near(ran.first, whole[behind]) ? left : ran;
  }
};

TEST(SelfLayersTest, ClaspIsItsRecurrence) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  for (int n = 0; n < 200; ++n) {
    const size_t layers = 1 + random() % 8, width = 5;
    SlowClasp slow;
    SlowClasp::State state(width);
    for (double& x : state) x = normal(random);
    slow.whole.push_back(state);
    for (size_t l = 0; l < layers; ++l) {
      slow.matrices.emplace_back(width, SlowClasp::State(width));
      for (auto& row : slow.matrices.back()) {
        for (double& x : row) x = 0.4 * normal(random);
      }
      slow.whole.push_back(slow.Run(l, slow.whole.back()));
    }
    std::vector<float> whole;
    for (const auto& one : slow.whole) whole.insert(whole.end(), one.begin(), one.end());
    size_t most_states = 0;
    const RunOneLayer run = [&](int layer, std::span<float> states) -> Status {
      most_states = std::max(most_states, states.size() / width);
      for (size_t at = 0; at < states.size(); at += width) {
        const SlowClasp::State in(states.begin() + static_cast<ptrdiff_t>(at),
                                  states.begin() + static_cast<ptrdiff_t>(at + width));
        const SlowClasp::State out = slow.Run(static_cast<size_t>(layer), in);
        std::copy(out.begin(), out.end(), states.begin() + static_cast<ptrdiff_t>(at));
      }
      return {};
    };
    for (size_t out = 0; out < layers; ++out) {
      const Result<std::vector<int>> kept = ClaspLayers(
          whole, static_cast<int>(layers), static_cast<int>(width), static_cast<int>(out), run);
      ASSERT_TRUE(kept.ok());
      EXPECT_EQ(kept->size(), layers - out);
      EXPECT_EQ(*kept, slow.Best(layers, out).second)
          << layers << " layers, " << out << " left out";
      EXPECT_LE(most_states, out + 1);
    }
  }
}

// ---- On real layers ----

std::shared_ptr<const Vocabulary> PrintableVocabulary() {
  return VocabularyOf(Joined({"<pad>", "<s>", "</s>"}, Letters(' ', '{', {"}"})), {"<pad>", "<s>"},
                      {"</s>"});
}

struct SelfRun {
  std::vector<TokenId> tokens;
  BatchStats stats;
};

SelfRun RunOutput(Model& model, std::shared_ptr<const Vocabulary> vocabulary,
                  const std::string& sources, float temperature, int nodes, int tokens,
                  bool always = true, std::vector<TokenId> prompt = {40, 41, 42, 43, 44},
                  const std::string& draft_model = "") {
  BatchOptions options;
  options.threads = 1;
  if (sources != "off") {
    DraftSetting setting;
    setting.vocabulary = vocabulary;
    setting.vocabulary_size = model.info().vocabulary_size;
    setting.layers = model.info().layers;
    setting.options.sources = sources;
    setting.options.always = always;
    setting.options.nodes = nodes;
    if (!draft_model.empty()) setting.options.model = draft_model;
    if (!draft_model.empty()) setting.options.shape = "delayed:8,1";  // the first guesses alone
    const auto indices = ParseDraftSources(setting.options);
    EXPECT_TRUE(indices.ok());
    auto drafter = Drafter::Make(std::move(setting), *indices);
    EXPECT_TRUE(drafter.ok()) << drafter.error().ToString();
    options.drafter = *std::move(drafter);
  }
  BatchEngine engine(model, vocabulary, {}, options);
  SelfRun run;
  GenerateOptions generate;
  generate.sampling = {.temperature = temperature, .seed = 3};
  generate.max_tokens = tokens;
  engine.Add({.prompt = std::move(prompt),
              .constraint = nullptr,
              .options = generate,
              .done = [&run](Result<Generation> output) {
                if (output.ok()) run.tokens = output->tokens;
              }});
  while (engine.Step()) {
  }
  run.stats = engine.stats();
  return run;
}

TEST(SelfDraftsTest, AllLayersAreAlwaysRight) {
  const auto vocabulary = PrintableVocabulary();
  for (const char* family : {"llama-fp32-tied", "gemma2-bf16"}) {
    const auto model = LoadGolden(family);
    ASSERT_NE(model, nullptr);
    const int layers = model->info().layers;
    for (const float temperature : {0.0f, 0.9f}) {
      const SelfRun plain = RunOutput(*model, vocabulary, "off", temperature, 16, 40);
      ASSERT_GT(plain.tokens.size(), 3u);
      for (const std::string& all :
           {std::string("self:unified=1"), "self:exit=" + std::to_string(layers)}) {
        const SelfRun run = RunOutput(*model, vocabulary, all, temperature, 16, 40);
        EXPECT_EQ(run.tokens, plain.tokens) << family << ", " << all;
        EXPECT_GT(run.stats.drafts, 0);
        EXPECT_EQ(run.stats.accepted, run.stats.drafts) << family << ", " << all;
      }
    }
  }
}

// A call that begins between layers goes on as the whole model: what CLaSp runs layer by layer.
TEST(SelfDraftsTest, LayersOneByOneAreTheModel) {
  const auto model = LoadGolden("llama-fp32-tied");
  ASSERT_NE(model, nullptr);
  const auto width = static_cast<size_t>(model->info().hidden);
  const int layers = model->info().layers;
  const SequenceId sequence = *model->NewSequence(16);
  const std::vector<Row> rows = {{.token = 40, .position = 0, .sequence = sequence},
                                 {.token = 41, .position = 1, .sequence = sequence},
                                 {.token = 42, .position = 2, .sequence = sequence}};
  std::vector<std::vector<float>> whole(static_cast<size_t>(layers) + 1);
  std::vector<ModelTap> taps;
  for (size_t i = 0; i < whole.size(); ++i) {
    whole[i].resize(rows.size() * width);
    taps.push_back({static_cast<int>(i), whole[i]});
  }
  ModelCall call;
  call.rows = rows;
  call.taps = taps;
  ASSERT_TRUE(model->Run(call).ok());
  for (int layer = 0; layer < layers; ++layer) {
    std::vector<float> out(rows.size() * width);
    const int some[] = {layer};
    const ModelTap tap[] = {{layer + 1, out}};
    ModelCall one;
    one.rows = rows;
    one.layers = some;
    one.inputs = whole[static_cast<size_t>(layer)];
    one.taps = tap;
    ASSERT_TRUE(model->Run(one).ok());
    EXPECT_EQ(out, whole[static_cast<size_t>(layer) + 1]) << layer;
    one.inputs = one.inputs.first(width);
    EXPECT_EQ(model->Run(one).error().place, "inputs");
    one.inputs = whole[0];
    one.layers = {};
    EXPECT_EQ(model->Run(one).error().place, "inputs");
  }
}

TEST(SelfDraftsTest, AnExitBehindTheLastLayerIsRefused) {
  DraftSetting setting;
  setting.vocabulary = SixteenLetters();
  setting.vocabulary_size = 16;
  setting.layers = 4;
  setting.options.sources = "self:exit=9";
  const auto made = Drafter::Make(setting, *ParseDraftSources(setting.options));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().place, "draft");
}

// ---- Lookahead ----

// The next token depends on the last two, and seldom comes back to the same pair.
ToyModel PairModel() {
  return ToyModel({.vocabulary_size = 64, .context_length = 4096},
                  [](const ToyModel::Place& place, std::span<float> out) {
                    const auto n = place.tokens.size();
                    const uint64_t before = n < 2 ? 0 : static_cast<uint64_t>(place.tokens[n - 2]);
                    const auto last = static_cast<uint64_t>(place.row.token);
                    const uint64_t next = UniformAt(before / 32, last, 0) * 64;
                    for (size_t v = 0; v < out.size(); ++v) {
                      out[v] = 6 * UniformAt(last, 1, v) + (v == next ? 4.0f : 0.0f);
                    }
                  });
}

std::shared_ptr<const Vocabulary> SixtyFour() { return VocabularyOf(Letters(' ', '_'), {}, {}); }

TEST(LookaheadTest, SavesCallsAndChangesNothing) {
  for (const int nodes : {2, 16, 30, 60}) {
    for (const float temperature : {0.0f, 0.5f}) {
      ToyModel model = PairModel();
      const SelfRun plain = RunOutput(model, SixtyFour(), "off", temperature, nodes, 300);
      ToyModel again = PairModel();
      const SelfRun run = RunOutput(again, SixtyFour(), "lookahead", temperature, nodes, 300);
      EXPECT_EQ(run.tokens, plain.tokens) << nodes << ", " << temperature;
      ASSERT_EQ(plain.tokens.size(), 300u);
      // A window alone is seldom right; what it has seen often is.
      const double share = nodes == 2 ? 1.0 : 0.8;
      EXPECT_LE(static_cast<double>(run.stats.steps),
                share * static_cast<double>(plain.stats.steps))
          << nodes << ", " << temperature;
    }
  }
}

// ---- A draft model that is sped up itself ----

// The target's choice is the draft model's, and both write words again that were there before. A
// call of the draft model gives what it says behind several of their letters.
TEST(StagedDraftsTest, TheTextSavesCallsOfTheDraftModel) {
  const auto write = [](const ToyModel::Place& place, std::span<float> out) {
    // Twelve letters in turn, in one of two orders that changes now and then.
    const auto n = static_cast<uint64_t>(place.row.position);
    const uint64_t step = UniformAt(n / 40, 5, 0) < 0.5 ? 5 : 7;
    const auto next = (static_cast<uint64_t>(place.row.token) + step) % 12;
    for (size_t v = 0; v < out.size(); ++v) out[v] = v == next ? 4.0f : UniformAt(n, 3, v);
  };
  const ToyOptions toy = {.vocabulary_size = 16, .context_length = 4096};
  std::vector<TokenId> plain;
  for (const bool drafts : {false, true}) {
    ToyModel model(toy, write);
    auto small = std::make_unique<ToyModel>(toy, write);
    const ToyModel& counted = *small;
    DraftSetting setting;
    setting.vocabulary = SixteenLetters();
    setting.vocabulary_size = 16;
    setting.options.sources = "off";
    setting.options.always = true;
    setting.options.nodes = 8;
    const DraftSetting kept = setting;
    BatchOptions options;
    options.threads = 1;
    if (drafts) {
      std::vector<Drafter::Named> more;
      more.emplace_back("model", MakeModelSourceFrom(kept, std::move(small)));
      auto drafter = Drafter::Make(setting, {}, std::move(more));
      ASSERT_TRUE(drafter.ok());
      options.drafter = *std::move(drafter);
    }
    BatchEngine engine(model, SixteenLetters(), {}, options);
    std::vector<TokenId> tokens;
    GenerateOptions generate;
    generate.max_tokens = 600;
    engine.Add({.prompt = {3, 4, 5},
                .constraint = nullptr,
                .options = generate,
                .done = [&](Result<Generation> output) {
                  if (output.ok()) tokens = output->tokens;
                }});
    while (engine.Step()) {
    }
    ASSERT_EQ(tokens.size(), 600u);
    if (!drafts) {
      plain = tokens;
      continue;
    }
    EXPECT_EQ(tokens, plain);
    const BatchStats stats = engine.stats();
    EXPECT_EQ(stats.accepted, stats.drafts);
    const double calls = static_cast<double>(counted.calls) / static_cast<double>(stats.drafts);
    RecordProperty("calls_per_draft", std::to_string(calls));
    EXPECT_LE(calls, 0.7);
    EXPECT_GE(calls, 0.15);
  }
}

// ---- Another vocabulary ----

// The target writes pairs of letters, the draft model single ones; both count through 32 letters.
TEST(BytesDraftsTest, ADraftModelWithAnotherVocabularyDraftsByBytes) {
  std::vector<std::string> pairs, letters;
  std::string json;
  for (int i = 0; i < 32; ++i) {
    letters.emplace_back(1, static_cast<char>('A' + i));
    if (i % 2 == 1) pairs.push_back(letters[static_cast<size_t>(i - 1)] + letters.back());
    std::string name = letters.back();
    if (name == "\\") name = "\\\\";
    json += (i > 0 ? ",\"" : "\"") + name + "\":" + std::to_string(i);
  }
  const auto tokenizer = Tokenizer::FromJson(
      R"({"version":"1.0","added_tokens":[],"normalizer":null,"post_processor":null,)"
      R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true},)"
      R"("decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{)" +
      json + R"(},"merges":[]}})");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().ToString();
  const auto small_vocabulary = (*tokenizer)->MakeVocabulary();
  ASSERT_TRUE(small_vocabulary.ok());
  const auto vocabulary = VocabularyOf(pairs, {}, {});
  const auto count = [](int size) {
    return [size](const ToyModel::Place& place, std::span<float> out) {
      // Now and then the model jumps, which the draft model does not know.
      const bool jumps = size == 16 && place.row.position % 29 == 28;
      const int next = (place.row.token + (jumps ? 3 : 1)) % size;
      for (size_t v = 0; v < out.size(); ++v) out[v] = v == static_cast<size_t>(next) ? 30 : 0;
    };
  };
  std::vector<TokenId> plain;
  for (const float temperature : {0.0f, 0.7f}) {
    for (const bool drafts : {false, true}) {
      ToyModel model({.vocabulary_size = 16}, count(16));
      DraftSetting setting;
      setting.vocabulary = vocabulary;
      setting.vocabulary_size = 16;
      setting.encode = [&](std::string_view text) {
        std::vector<TokenId> tokens;
        for (size_t at = 0; at + 2 <= text.size(); at += 2) {
          const auto found = std::ranges::find(pairs, std::string(text.substr(at, 2)));
          if (found == pairs.end()) break;
          tokens.push_back(static_cast<TokenId>(found - pairs.begin()));
        }
        return tokens;
      };
      setting.options.sources = "off";
      setting.options.always = true;
      setting.options.nodes = 3;
      const DraftSetting kept = setting;
      BatchOptions options;
      options.threads = 1;
      if (drafts) {
        std::vector<Drafter::Named> more;
        more.emplace_back(
            "model",
            MakeBytesSource(
                kept, std::make_unique<ToyModel>(ToyOptions{.vocabulary_size = 32}, count(32)),
                *tokenizer, *small_vocabulary));
        auto drafter = Drafter::Make(setting, {}, std::move(more));
        ASSERT_TRUE(drafter.ok());
        options.drafter = *std::move(drafter);
      }
      BatchEngine engine(model, vocabulary, {}, options);
      std::vector<TokenId> tokens;
      GenerateOptions generate;
      generate.max_tokens = 200;
      generate.sampling = {.temperature = temperature, .seed = 5};
      engine.Add({.prompt = {3, 4, 5},
                  .constraint = nullptr,
                  .options = generate,
                  .done = [&](Result<Generation> output) {
                    if (output.ok()) tokens = output->tokens;
                  }});
      while (engine.Step()) {
      }
      ASSERT_EQ(tokens.size(), 200u);
      if (!drafts) {
        plain = tokens;
        continue;
      }
      EXPECT_EQ(tokens, plain);
      // Eight letters are four tokens, of which three are taken: a step writes four.
      EXPECT_LE(engine.stats().steps, 200 / 4 + 2 * 200 / 29);
      EXPECT_GE(engine.stats().accepted, 200 / 2);
    }
  }
}

// ---- Trained heads ----

// The model writes the letters in turn, and so do the heads: a call gives all drafts and a token.
// Behind its own states the head knows the likeliest token alone; behind the model's, the law.
TEST(HeadDraftsTest, HeadsThatKnowTheModelAreAlwaysRight) {
  const struct {
    const char* head;
    int nodes;
    float temperature;
  } cases[] = {{"cycle-medusa", 3, 0}, {"cycle-eagle3", 6, 0}, {"cycle-eagle3", 1, 0.9f}};
  for (const auto& c : cases) {
    std::unique_ptr<Model> model = LoadGolden("heads/cycle");
    ASSERT_NE(model, nullptr);
    const std::string folder = GoldenFolder(std::string("heads/") + c.head);
    const SelfRun plain =
        RunOutput(*model, SixteenLetters(), "off", c.temperature, 1, 61, true, {3, 4, 5});
    ASSERT_EQ(plain.tokens.size(), 61u);
    ASSERT_TRUE(AttachDraftHead(model, folder).ok());
    const SelfRun run = RunOutput(*model, SixteenLetters(), "model", c.temperature, c.nodes, 61,
                                  true, {3, 4, 5}, folder);
    EXPECT_EQ(run.tokens, plain.tokens) << c.head;
    if (c.temperature == 0) {
      for (size_t i = 1; i < plain.tokens.size(); ++i) {
        ASSERT_EQ(plain.tokens[i], (plain.tokens[i - 1] + 1) % 16);
      }
    }
    EXPECT_EQ(run.stats.accepted, run.stats.drafts) << c.head;
    // The prompt gives a token, each call behind it one more than its drafts.
    EXPECT_EQ(run.stats.steps, 1 + (60 + c.nodes) / (c.nodes + 1)) << c.head;
  }
}

// Both propose into one tree. Calls of one end what the other has there, which costs no draft.
TEST(HeadDraftsTest, TwoHeadsShareATree) {
  std::unique_ptr<Model> model = LoadGolden("heads/cycle");
  ASSERT_NE(model, nullptr);
  DraftSetting setting;
  setting.vocabulary = SixteenLetters();
  setting.vocabulary_size = 16;
  setting.options.sources = "model";
  setting.options.always = true;
  setting.options.nodes = 6;
  for (const char* const head : {"cycle-medusa", "cycle-eagle3"}) {
    setting.options.more_models.push_back(GoldenFolder(std::string("heads/") + head));
    ASSERT_TRUE(AttachDraftHead(model, setting.options.more_models.back()).ok());
  }
  setting.heads = setting.options.more_models;
  auto drafter = Drafter::Make(setting, *ParseDraftSources(setting.options));
  ASSERT_TRUE(drafter.ok());
  BatchOptions options;
  options.threads = 1;
  options.drafter = *std::move(drafter);
  BatchEngine engine(*model, SixteenLetters(), {}, options);
  std::vector<TokenId> tokens;
  DraftStats drafts;
  GenerateOptions generate;
  generate.max_tokens = 61;
  engine.Add({.prompt = {3, 4, 5},
              .constraint = nullptr,
              .options = generate,
              .done = [&](Result<Generation> output) {
                ASSERT_TRUE(output.ok());
                tokens = output->tokens;
                drafts = output->stats.drafts;
              }});
  while (engine.Step()) {
  }
  ASSERT_EQ(tokens.size(), 61u);
  for (size_t i = 1; i < tokens.size(); ++i) ASSERT_EQ(tokens[i], (tokens[i - 1] + 1) % 16);
  // The last tree may be three deep and has six nodes.
  EXPECT_LE(engine.stats().drafts - engine.stats().accepted, 3);
  EXPECT_EQ(engine.stats().steps, 1 + (60 + 6) / 7);
  ASSERT_EQ(drafts.sources.size(), 2u);
  EXPECT_EQ(drafts.sources[0].name, "model:cycle-medusa");
  EXPECT_EQ(drafts.sources[1].name, "model:cycle-eagle3");
  EXPECT_GE(drafts.sources[0].accepted, 3 * 8);
  EXPECT_GE(drafts.sources[1].accepted, 6 * 8);
}

TEST(HeadDraftsTest, AtMostTwoDraftModels) {
  DraftOptions options = {.sources = "model", .more_models = {"a", "b", "c"}};
  EXPECT_EQ(ParseDraftSources(options).error().ToString(),
            "draft_model: must be given at most twice, not 3 times");
  options.model = "a/x";
  options.more_models = {"a/x"};
  EXPECT_EQ(ParseDraftSources(options).error().ToString(), "draft_model: is given twice: a/x");
  options.more_models = {"b/x/"};
  const size_t index = IndexOfDraftSource("model");
  EXPECT_EQ(NameOfDraftSource(index, options, 1), "model:b/x/");
  options.more_models[0] = "b/y/";
  EXPECT_EQ(NameOfDraftSource(index, options, 1), "model:y");
}

// At temperature 0 every rule gives the output without drafts.
TEST(HeadDraftsTest, RejectionRulesTakeTheHeadsLaw) {
  std::unique_ptr<Model> model = LoadGolden("heads/cycle");
  ASSERT_NE(model, nullptr);
  const std::string folder = GoldenFolder("heads/cycle-eagle3");
  ASSERT_TRUE(AttachDraftHead(model, folder).ok());
  for (const char* const rule : {"token", "block", "rsd", "spectr", "traversal"}) {
    DraftSetting setting;
    setting.vocabulary = SixteenLetters();
    setting.vocabulary_size = 16;
    setting.options.sources = "model";
    setting.options.model = folder;
    setting.options.verify = rule;
    setting.options.always = true;
    setting.options.nodes = 6;
    auto drafter = Drafter::Make(setting, *ParseDraftSources(setting.options));
    ASSERT_TRUE(drafter.ok());
    BatchOptions options;
    options.threads = 1;
    options.drafter = *std::move(drafter);
    BatchEngine engine(*model, SixteenLetters(), {}, options);
    std::vector<TokenId> tokens;
    GenerateOptions generate;
    generate.max_tokens = 40;
    engine.Add({.prompt = {3, 4, 5},
                .constraint = nullptr,
                .options = generate,
                .done = [&](Result<Generation> output) {
                  if (output.ok()) tokens = output->tokens;
                }});
    while (engine.Step()) {
    }
    ASSERT_EQ(tokens.size(), 40u) << rule;
    for (size_t i = 0; i < tokens.size(); ++i) {
      EXPECT_EQ(tokens[i], static_cast<TokenId>((6 + i) % 16)) << rule;
    }
    EXPECT_GT(engine.stats().accepted, 20) << rule;
  }
}

}  // namespace
}  // namespace pawl
