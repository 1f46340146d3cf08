// What a call may ask for beyond logits: the residual stream (taps), some of the layers, and trees
// that grow from call to call.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "src/model/transformer_config.h"
#include "src/model/transformer_cpu.h"
#include "src/model/transformer_weights.h"
#include "tests/model/model_test_util.h"

namespace pawl {
namespace {

struct Parts {
  TransformerConfig config;
  TransformerWeights weights;
};

// Of the golden model, with these of its layers, one behind the other.
Parts PartsOf(const std::string& name, const std::vector<int>& layers) {
  const std::string folder = GoldenFolder(name);
  Result<TransformerConfig> config = ReadTransformerConfig(folder);
  Result<Checkpoint> checkpoint = Checkpoint::Open(folder);
  EXPECT_TRUE(config.ok() && checkpoint.ok());
  auto source = std::make_unique<Checkpoint>(*std::move(checkpoint));
  const TensorNames& names = HuggingFaceNames(*config, source.get());
  Result<TransformerWeights> weights =
      LoadTransformerWeights(std::move(source), *config, names, nullptr);
  EXPECT_TRUE(weights.ok());
  Parts parts = {*std::move(config), *std::move(weights)};
  if (layers.empty()) return parts;
  std::vector<Layer> shapes;
  std::vector<TransformerLayer> chosen;
  for (const int layer : layers) {
    shapes.push_back(parts.config.layers[static_cast<size_t>(layer)]);
    chosen.push_back(parts.weights.layers[static_cast<size_t>(layer)]);
  }
  parts.config.layers = std::move(shapes);
  parts.weights.layers = std::move(chosen);
  return parts;
}

std::unique_ptr<TransformerCpu> ModelOf(const std::string& name, const std::vector<int>& layers) {
  Parts parts = PartsOf(name, layers);
  return std::make_unique<TransformerCpu>(std::move(parts.config), std::move(parts.weights),
                                          *FindKernels(KernelVariant::kAuto), 1, kWorthThreads,
                                          KvBytes{1 << 22, 0});
}

std::vector<Row> PlainRows(SequenceId sequence, int position, std::span<const TokenId> tokens) {
  std::vector<Row> rows;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto n = static_cast<int32_t>(i);
    rows.push_back({tokens[i], position + n, sequence, 0, n});
  }
  return rows;
}

std::vector<float> LogitsOf(Model& model, const std::vector<Row>& rows,
                            std::span<const int> layers = {}, bool keep_tree = false) {
  std::vector<float> logits(rows.size() * static_cast<size_t>(model.info().vocabulary_size), NAN);
  ModelCall call;
  call.rows = rows;
  call.logits = logits;
  call.layers = layers;
  call.keep_tree = keep_tree;
  const Status status = model.Run(call);
  if (!status.ok()) ADD_FAILURE() << status.error().ToString();
  return logits;
}

// ---- Taps ----

// The forward pass of one sequence in double precision, one position and one sum at a time. For
// float weights, without windows, caps and norms of queries.
class SlowTwin {
 public:
  explicit SlowTwin(Parts parts) : parts_(std::move(parts)) {}

  // By tap: [position][hidden]. 0 .. layers, then the final one.
  std::vector<std::vector<double>> States(std::span<const TokenId> tokens) {
    const TransformerConfig& c = parts_.config;
    const int width = c.layers[0].attention().head_dim;
    RopeRows ropes(c.ropes[0], width);
    rotations_.clear();
    for (size_t p = 0; p < tokens.size(); ++p) {
      rotations_.emplace_back(static_cast<size_t>(width));
      ropes.Next(rotations_.back().data());
    }
    std::vector<std::vector<double>> x;  // by position
    for (const TokenId token : tokens) x.push_back(RowOf(parts_.weights.embedding, token));
    std::vector<std::vector<double>> states = {Joined(x)};
    for (const TransformerLayer& layer : parts_.weights.layers) {
      Attend(layer, x);
      for (std::vector<double>& one : x) {
        const std::vector<double> normed = Normed(one, layer.mlp_norm);
        std::vector<double> gate = Times(layer.gate, normed);
        const std::vector<double> up = Times(layer.up, normed);
        for (size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
        Add(Times(layer.down, gate), one);
      }
      states.push_back(Joined(x));
    }
    for (std::vector<double>& one : x) one = Normed(one, parts_.weights.final_norm);
    states.push_back(Joined(x));
    return states;
  }

 private:
  using Vector = std::vector<double>;

  static Vector RowOf(const Matrix& matrix, int64_t row) {
    const auto* data = static_cast<const float*>(matrix.data) + row * matrix.cols;
    return {data, data + matrix.cols};
  }
  static Vector Times(const Linear& linear, const Vector& x) {
    Vector y;
    for (int64_t r = 0; r < linear.w.rows; ++r) {
      double sum = linear.bias.empty() ? 0 : double{linear.bias[static_cast<size_t>(r)]};
      const Vector row = RowOf(linear.w, r);
      for (size_t i = 0; i < x.size(); ++i) sum += row[i] * x[i];
      y.push_back(sum);
    }
    return y;
  }
  Vector Normed(const Vector& x, const std::vector<float>& weight) const {
    double squares = 0;
    for (const double v : x) squares += v * v;
    const double scale =
        1 / std::sqrt(squares / static_cast<double>(x.size()) + parts_.config.norm_epsilon);
    Vector y;
    for (size_t i = 0; i < x.size(); ++i) y.push_back(x[i] * scale * weight[i]);
    return y;
  }
  static void Add(const Vector& what, Vector& to) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += what[i];
  }
  static Vector Joined(const std::vector<Vector>& rows) {
    Vector all;
    for (const Vector& row : rows) all.insert(all.end(), row.begin(), row.end());
    return all;
  }
  void Rotate(Vector& heads, size_t position) const {
    const auto width = static_cast<size_t>(parts_.config.layers[0].attention().head_dim),
               half = width / 2;
    const std::vector<float>& angles = rotations_[position];
    for (size_t at = 0; at < heads.size(); at += width) {
      for (size_t i = 0; i < half; ++i) {
        const double a = heads[at + i], b = heads[at + half + i];
        const double cosine = angles[i], sine = angles[half + i];
        heads[at + i] = a * cosine - b * sine;
        heads[at + half + i] = b * cosine + a * sine;
      }
    }
  }
  void Attend(const TransformerLayer& layer, std::vector<Vector>& x) const {
    const Attention& c = parts_.config.layers[0].attention();
    const auto width = static_cast<size_t>(c.head_dim);
    const auto heads = static_cast<size_t>(c.heads);
    const size_t group = heads / static_cast<size_t>(c.kv_heads);
    std::vector<Vector> keys, values;
    for (size_t p = 0; p < x.size(); ++p) {
      const Vector normed = Normed(x[p], layer.attention_norm);
      keys.push_back(Times(layer.k, normed));
      values.push_back(Times(layer.v, normed));
      Rotate(keys.back(), p);
      Vector query = Times(layer.q, normed), out(heads * width);
      Rotate(query, p);
      for (size_t h = 0; h < heads; ++h) {
        const size_t at = h * width, of = h / group * width;
        Vector weights;
        double sum = 0;
        for (size_t s = 0; s <= p; ++s) {
          double score = 0;
          for (size_t i = 0; i < width; ++i) score += query[at + i] * keys[s][of + i];
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(width))));
          sum += weights.back();
        }
        for (size_t s = 0; s <= p; ++s) {
          for (size_t i = 0; i < width; ++i) out[at + i] += weights[s] / sum * values[s][of + i];
        }
      }
      Add(Times(layer.o, out), x[p]);
    }
  }

  Parts parts_;
  std::vector<std::vector<float>> rotations_;
};

// Buffers for all taps.
struct Taps {
  Taps(const ModelInfo& info, size_t rows) {
    for (int layer = ModelTap::kFinal; layer <= info.layers; ++layer) {
      states.emplace_back(rows * static_cast<size_t>(info.hidden), NAN);
      taps.push_back({layer, states.back()});
    }
    // The final one last, as the twin has it.
    std::rotate(states.begin(), states.begin() + 1, states.end());
    std::rotate(taps.begin(), taps.begin() + 1, taps.end());
  }
  std::vector<std::vector<float>> states;
  std::vector<ModelTap> taps;
};

TEST(TapsTest, EqualAPlainTwin) {
  std::mt19937 random(1);
  for (const char* name : {"llama-fp32-tied", "qwen2-fp32-untied"}) {
    const std::unique_ptr<TransformerCpu> model = ModelOf(name, {});
    SlowTwin twin(PartsOf(name, {}));
    const std::vector<TokenId> tokens = RandomTokens(random, model->info().vocabulary_size, 21);
    const std::vector<std::vector<double>> wanted = twin.States(tokens);
    const SequenceId sequence = MakeSequence(*model, 64);
    Taps taps(model->info(), tokens.size());
    std::vector<Row> rows = PlainRows(sequence, 0, tokens);
    for (Row& row : rows) row.output = -1;
    ModelCall call;
    call.rows = rows;
    call.taps = taps.taps;
    ASSERT_TRUE(model->Run(call).ok());
    ASSERT_EQ(wanted.size(), taps.states.size());
    for (size_t t = 0; t < wanted.size(); ++t) {
      const std::vector<float> expected(wanted[t].begin(), wanted[t].end());
      EXPECT_LT(RelativeError(taps.states[t], expected), 2e-6) << name << " tap " << t;
    }
  }
}

// Whatever rows are in a call and whichever of them have outputs, and the logits stay what they
// are.
TEST(TapsTest, AreTheSameBitsInAnyCall) {
  std::mt19937 random(2);
  for (const char* name : {"llama-bf16-llama3", "gemma3-fp16-pattern", "qwen3-bf16"}) {
    const std::unique_ptr<TransformerCpu> model = ModelOf(name, {});
    const int width = model->info().vocabulary_size;
    const auto hidden = static_cast<size_t>(model->info().hidden);
    const std::vector<TokenId> tokens = RandomTokens(random, width, 150);  // two blocks of rows
    const SequenceId one = MakeSequence(*model, 200), two = MakeSequence(*model, 200);
    const std::vector<float> logits = LogitsOf(*model, PlainRows(one, 0, tokens));
    model->Truncate(one, 0);
    Taps all(model->info(), tokens.size());
    std::vector<Row> rows = PlainRows(one, 0, tokens);
    for (Row& row : rows) row.output = row.output % 3 == 0 ? row.output : -1;
    std::vector<float> some(logits.size(), NAN);
    ModelCall call;
    call.rows = rows;
    call.logits = some;
    call.taps = all.taps;
    ASSERT_TRUE(model->Run(call).ok());
    for (const Row& row : rows) {
      if (row.output < 0) continue;
      const auto at = static_cast<size_t>(row.output) * static_cast<size_t>(width);
      EXPECT_TRUE(SameBits(std::span(some).subspan(at, static_cast<size_t>(width)),
                           std::span(logits).subspan(at, static_cast<size_t>(width))));
    }
    for (size_t begin = 0; begin < tokens.size();) {
      const size_t count = std::min<size_t>(1 + random() % 5, tokens.size() - begin);
      Taps few(model->info(), count);
      std::vector<Row> part =
          PlainRows(two, static_cast<int>(begin), std::span(tokens).subspan(begin, count));
      for (Row& row : part) row.output = -1;
      call.rows = part;
      call.taps = few.taps;
      ASSERT_TRUE(model->Run(call).ok());
      for (size_t t = 0; t < few.states.size(); ++t) {
        EXPECT_TRUE(SameBits(few.states[t],
                             std::span(all.states[t]).subspan(begin * hidden, count * hidden)))
            << name << " tap " << t << " row " << begin;
      }
      begin += count;
    }
  }
}

// ---- Layers ----

// A model of four layers, two of them twice, and models of some of these.
TEST(LayersTest, EqualAModelOfTheseLayers) {
  std::mt19937 random(3);
  const std::vector<std::vector<int>> subsets = {{0}, {3}, {0, 3}, {1, 2}, {0, 1, 3}, {0, 1, 2, 3}};
  for (const char* name : {"llama-fp32-tied", "gemma3-fp16-pattern"}) {
    const std::unique_ptr<TransformerCpu> whole = ModelOf(name, {0, 1, 0, 1});
    const std::vector<TokenId> tokens = RandomTokens(random, whole->info().vocabulary_size, 40);
    const SequenceId sequence = MakeSequence(*whole, 64);
    const std::vector<float> before = LogitsOf(*whole, PlainRows(sequence, 0, tokens));
    for (const std::vector<int>& subset : subsets) {
      std::vector<int> of_golden;
      for (const int layer : subset) of_golden.push_back(layer % 2);
      const std::unique_ptr<TransformerCpu> part = ModelOf(name, of_golden);
      const SequenceId twin = MakeSequence(*part, 64);
      const std::vector<Row> rows = PlainRows(sequence, 0, tokens);
      EXPECT_TRUE(
          SameBits(LogitsOf(*whole, rows, subset), LogitsOf(*part, PlainRows(twin, 0, tokens))))
          << name << " " << testing::PrintToString(subset);
      EXPECT_EQ(whole->sequences().length(sequence), 0) << "such rows are never committed";
      EXPECT_EQ(whole->sequences().Check(), "");
    }
    // And the whole model is what it was.
    EXPECT_TRUE(SameBits(LogitsOf(*whole, PlainRows(sequence, 0, tokens)), before)) << name;
  }
}

// Behind what a whole call has committed the first layers see what they always see.
TEST(LayersTest, FirstLayersGoOnBehindWholeRows) {
  std::mt19937 random(4);
  for (const char* name : {"llama-fp32-tied", "gemma3-fp16-pattern"}) {
    const std::unique_ptr<TransformerCpu> whole = ModelOf(name, {0, 1, 0, 1});
    const std::unique_ptr<TransformerCpu> part = ModelOf(name, {0, 1});
    const int width = whole->info().vocabulary_size;
    const SequenceId sequence = MakeSequence(*whole, 128), twin = MakeSequence(*part, 128);
    const int first_two[] = {0, 1};
    int length = 0;
    for (int round = 0; round < 6; ++round) {
      const std::vector<TokenId> tokens = RandomTokens(random, width, 1 + round * 4);
      (void)LogitsOf(*whole, PlainRows(sequence, length, tokens));
      (void)LogitsOf(*part, PlainRows(twin, length, tokens));
      length += static_cast<int>(tokens.size());
      const std::vector<TokenId> drafts = RandomTokens(random, width, 5);
      EXPECT_TRUE(SameBits(LogitsOf(*whole, PlainRows(sequence, length, drafts), first_two),
                           LogitsOf(*part, PlainRows(twin, length, drafts))));
      part->Truncate(twin, length);
      EXPECT_EQ(whole->sequences().length(sequence), length);
      EXPECT_EQ(whole->sequences().Check(), "");
    }
  }
}

// ---- Trees that grow ----

// A random tree behind `pending` plain rows, as rows of one call.
std::vector<Row> RandomTree(std::mt19937& random, SequenceId sequence, int position,
                            std::span<const TokenId> pending, int nodes, int vocabulary) {
  std::vector<Row> rows = PlainRows(sequence, position, pending);
  const size_t plain = rows.size();
  for (int i = 0; i < nodes; ++i) {
    // A parent among the last plain row and the nodes.
    const size_t parent = plain - 1 + random() % (rows.size() - plain + 1);
    const uint64_t path = parent < plain ? (uint64_t{1} << parent) - 1 : rows[parent].ancestors;
    const auto token = static_cast<TokenId>(random() % static_cast<unsigned>(vocabulary));
    rows.push_back({token, rows[parent].position + 1, sequence, path | uint64_t{1} << parent,
                    static_cast<int32_t>(rows.size())});
  }
  return rows;
}

// The rows from `begin` to `end` in a call of their own.
std::vector<Row> Piece(const std::vector<Row>& rows, size_t begin, size_t end) {
  std::vector<Row> piece(rows.begin() + static_cast<ptrdiff_t>(begin),
                         rows.begin() + static_cast<ptrdiff_t>(end));
  for (size_t i = 0; i < piece.size(); ++i) piece[i].output = static_cast<int32_t>(i);
  return piece;
}

TEST(KeepTreeTest, EqualsSendingTheRowsAgain) {
  std::mt19937 random(5);
  for (const char* name : {"llama-fp32-tied", "gemma3-fp16-pattern", "mistral-fp16-window"}) {
    const std::unique_ptr<TransformerCpu> model = ModelOf(name, {}), again = ModelOf(name, {});
    const int width = model->info().vocabulary_size;
    for (int text = 0; text < 12; ++text) {
      const SequenceId sequence = MakeSequence(*model, 200), twin = MakeSequence(*again, 200);
      int length = 0;
      const std::vector<TokenId> prompt =
          RandomTokens(random, width, 1 + static_cast<int>(random() % 40));
      (void)LogitsOf(*model, PlainRows(sequence, 0, prompt));
      (void)LogitsOf(*again, PlainRows(twin, 0, prompt));
      length = static_cast<int>(prompt.size());
      for (int round = 0; round < 5; ++round) {
        const std::vector<TokenId> pending =
            RandomTokens(random, width, 1 + static_cast<int>(random() % 3));
        const int nodes = 1 + static_cast<int>(random() % 20);
        const std::vector<Row> rows = RandomTree(random, sequence, length, pending, nodes, width);
        std::vector<Row> at_once = rows;
        for (Row& row : at_once) row.sequence = twin;
        const std::vector<float> wanted = LogitsOf(*again, at_once);
        std::vector<float> got;
        for (size_t begin = 0; begin < rows.size();) {
          const size_t least = begin == 0 ? pending.size() : begin + 1;
          const size_t end = least + random() % (rows.size() - least + 1);
          const std::vector<float> logits =
              LogitsOf(*model, Piece(rows, begin, end), {}, begin > 0 || round % 2 == 0);
          got.insert(got.end(), logits.begin(), logits.end());
          begin = end;
          ASSERT_EQ(model->sequences().Check(), "");
        }
        ASSERT_TRUE(SameBits(got, wanted)) << name << " " << text << " " << round;
        const auto row = pending.size() - 1 + random() % (rows.size() - pending.size() + 1);
        ASSERT_TRUE(model->CommitTree(sequence, static_cast<int>(row)).ok());
        ASSERT_TRUE(again->CommitTree(twin, static_cast<int>(row)).ok());
        length = rows[row].position + 1;
        ASSERT_EQ(model->sequences().length(sequence), length);
        ASSERT_EQ(model->sequences().Check(), "");
      }
      const TokenId last[] = {static_cast<TokenId>(text)};
      EXPECT_TRUE(SameBits(LogitsOf(*model, PlainRows(sequence, length, last)),
                           LogitsOf(*again, PlainRows(twin, length, last))));
      model->FreeSequence(sequence);
      again->FreeSequence(twin);
    }
  }
}

// Drafts of the first layer: as many calls as tokens, each with one row.
TEST(KeepTreeTest, WithSomeLayersNothingIsCommitted) {
  std::mt19937 random(6);
  const std::unique_ptr<TransformerCpu> model = ModelOf("llama-fp32-tied", {});
  const std::unique_ptr<TransformerCpu> part = ModelOf("llama-fp32-tied", {0});
  const int width = model->info().vocabulary_size;
  const SequenceId sequence = MakeSequence(*model, 200), twin = MakeSequence(*part, 200);
  const std::vector<TokenId> prompt = RandomTokens(random, width, 30);
  (void)LogitsOf(*model, PlainRows(sequence, 0, prompt));
  (void)LogitsOf(*part, PlainRows(twin, 0, prompt));
  const int first[] = {0}, second[] = {1};
  const std::vector<TokenId> pending = RandomTokens(random, width, 1);
  const std::vector<Row> rows = RandomTree(random, sequence, 30, pending, 12, width);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<Row> all(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(i) + 1);
    for (Row& row : all) row.sequence = twin;
    const std::vector<float> wanted = LogitsOf(*part, all);
    const std::vector<float> got = LogitsOf(*model, Piece(rows, i, i + 1), first, true);
    EXPECT_TRUE(SameBits(got, std::span(wanted).last(static_cast<size_t>(width)))) << i;
    EXPECT_EQ(model->sequences().length(sequence), 30);
  }
  EXPECT_FALSE(model->CommitTree(sequence, 0).ok()) << "ran some layers only";
  std::vector<float> logits(static_cast<size_t>(width));
  std::vector<Row> more = Piece(rows, 1, 2);
  ModelCall call;
  call.rows = more;
  call.logits = logits;
  call.keep_tree = true;
  call.layers = second;
  EXPECT_EQ(model->Run(call).error().ToString(),
            "row 0: the rows that are kept ran other layers than this call");
  // The whole model goes on as if nothing had been.
  const std::unique_ptr<TransformerCpu> fresh = ModelOf("llama-fp32-tied", {});
  const SequenceId other = MakeSequence(*fresh, 200);
  (void)LogitsOf(*fresh, PlainRows(other, 0, prompt));
  EXPECT_TRUE(SameBits(LogitsOf(*model, PlainRows(sequence, 30, pending)),
                       LogitsOf(*fresh, PlainRows(other, 30, pending))));
}

// ---- Refusals ----

// ---- Mixes ----

// A row reads the weighted sum of embeddings: as if that sum was its input.
TEST(MixTest, EqualsTheSumAsInput) {
  const auto model = ModelOf("llama-fp32-tied", {});
  const auto hidden = static_cast<size_t>(model->info().hidden);
  const std::vector<TokenId> tokens = {5, 9, 2, 31};
  const SequenceId plain = *model->NewSequence(64);
  std::vector<Row> rows = PlainRows(plain, 0, tokens);
  const std::vector<float> expected = LogitsOf(*model, rows);
  // A token by itself is itself, bit for bit.
  const TokenWeight one[] = {{2, 1.0f}};
  const SequenceId mixed = *model->NewSequence(64);
  rows = PlainRows(mixed, 0, tokens);
  rows[2].token = 7;
  rows[2].mix = one;
  EXPECT_EQ(LogitsOf(*model, rows), expected);
  // Embeddings are what a tap in front of the layers sees.
  std::vector<float> states(tokens.size() * hidden);
  ModelTap tap{.layer = 0, .states = states};
  std::vector<float> logits(expected.size());
  rows = PlainRows(plain, 0, tokens);
  ModelCall call;
  call.rows = rows;
  call.logits = logits;
  call.taps = {&tap, 1};
  ASSERT_TRUE(model->Run(call).ok());
  std::vector<float> inputs = states;
  for (size_t i = 0; i < hidden; ++i) {
    inputs[3 * hidden + i] = 0.75f * states[hidden + i] + 0.25f * states[3 * hidden + i];
  }
  std::vector<int> layers;
  for (int i = 0; i < model->info().layers; ++i) layers.push_back(i);
  call.taps = {};
  call.layers = layers;
  call.inputs = inputs;
  ASSERT_TRUE(model->Run(call).ok());
  const TokenWeight two[] = {{9, 0.75f}, {31, 0.25f}};
  rows = PlainRows(mixed, 0, tokens);
  rows[3].mix = two;
  const std::vector<float> got = LogitsOf(*model, rows);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], logits[i], 1e-5f);
  EXPECT_NE(std::vector<float>(got.end() - model->info().vocabulary_size, got.end()),
            std::vector<float>(expected.end() - model->info().vocabulary_size, expected.end()));
}

TEST(MixTest, NoOtherSequenceGetsItsPages) {
  const auto model = ModelOf("llama-fp32-tied", {});
  std::vector<TokenId> tokens;
  for (int i = 0; i < 40; ++i) tokens.push_back(3 + i % 20);
  const TokenWeight mix[] = {{tokens[20], 0.5f}, {8, 0.5f}};
  const SequenceId first = *model->NewSequence(64);
  std::vector<Row> rows = PlainRows(first, 0, tokens);
  rows[20].mix = mix;
  (void)LogitsOf(*model, rows);
  const SequenceId second = *model->NewSequence(64);
  EXPECT_EQ(model->ReusePrefix(second, tokens), 16);
  EXPECT_EQ(model->ReuseCopying(second, tokens), 20);
  // Without the mix they are there again.
  rows = PlainRows(first, 16, std::span(tokens).subspan(16));
  (void)LogitsOf(*model, rows);
  const SequenceId third = *model->NewSequence(64);
  EXPECT_EQ(model->ReusePrefix(third, tokens), 32);
  // What is wrong with one.
  const TokenWeight wrong[] = {{-1, 1.0f}};
  rows = PlainRows(second, 16, std::span(tokens).subspan(16, 1));
  rows[0].mix = wrong;
  EXPECT_EQ(model->Forward(rows, {}).error().place, "row 0");
}

// Behind whole pages a sequence gets the positions of one that began alike, and goes on to the same
// bits as one that computed them.
TEST(CallsTest, CopiedPositionsGiveTheSameBits) {
  const std::unique_ptr<TransformerCpu> model = ModelOf("llama-fp32-tied", {});
  std::vector<TokenId> tokens;
  for (int i = 0; i < 40; ++i) tokens.push_back(3 + i % 20);
  const SequenceId first = *model->NewSequence(64);
  (void)LogitsOf(*model, PlainRows(first, 0, tokens));
  std::vector<TokenId> other = tokens;
  other[27] = 9;
  const SequenceId second = *model->NewSequence(64), alone = *model->NewSequence(64);
  EXPECT_EQ(model->ReusePrefix(second, other), 16);
  EXPECT_EQ(model->ReuseCopying(second, other), 27);
  const std::span<const TokenId> rest = std::span(other).subspan(27);
  const std::vector<float> got = LogitsOf(*model, PlainRows(second, 27, rest));
  std::vector<float> wanted = LogitsOf(*model, PlainRows(alone, 0, other));
  wanted.erase(wanted.begin(), wanted.end() - static_cast<ptrdiff_t>(got.size()));
  EXPECT_EQ(got, wanted);
  // The one that was copied from is as it was.
  EXPECT_EQ(model->ReuseCopying(first, tokens), 40);
  // A page that has begun gives way to a whole one.
  model->Truncate(second, 20);
  EXPECT_EQ(model->ReuseCopying(second, tokens), 40);
}

TEST(CallsTest, RefusalsNameThePlace) {
  const std::unique_ptr<TransformerCpu> model = ModelOf("llama-fp32-tied", {});
  const SequenceId sequence = MakeSequence(*model, 64);
  const TokenId tokens[] = {1, 2, 3};
  const std::vector<float> wanted = LogitsOf(*model, PlainRows(sequence, 0, tokens));
  std::vector<float> logits(257 * 4), states(64 * 3);
  const auto refused = [&](const ModelCall& call) {
    const Status status = model->Run(call);
    return status.ok() ? "" : status.error().ToString();
  };
  std::vector<Row> rows = PlainRows(sequence, 3, tokens);
  ModelCall call;
  call.rows = rows;
  call.logits = logits;
  const int beyond[] = {0, 2}, falling[] = {1, 0}, first[] = {0};
  call.layers = beyond;
  EXPECT_EQ(refused(call), "layers: must be ascending numbers from 0 to 1, not 2 at place 1");
  call.layers = falling;
  EXPECT_EQ(refused(call), "layers: must be ascending numbers from 0 to 1, not 0 at place 1");
  call.layers = first;
  const ModelTap not_run[] = {{2, states}};
  call.taps = not_run;
  EXPECT_EQ(refused(call), "taps: has layer 2, which does not run");
  const ModelTap small[] = {{1, std::span(states).first(190)}};
  call.taps = small;
  EXPECT_EQ(refused(call), "taps: has 190 floats for layer 1, but the rows need 192");
  call.taps = {};
  call.layers = {};
  call.draws = true;
  EXPECT_EQ(refused(call), "this backend does not sample");
  call.draws = false;
  call.keep_tree = true;
  const std::vector<Row> mixed = {{1, 3, sequence, 4, 0}, {2, 4, sequence, 0, 1}};
  call.rows = mixed;
  EXPECT_EQ(refused(call),
            "row 0: ancestors must be its parent, row 2 of the sequence in this call, and all "
            "ancestors of that");
  (void)LogitsOf(*model, PlainRows(sequence, 0, tokens));
  const std::vector<Row> plain_behind = {{1, 3, sequence, 7, 0}, {2, 4, sequence, 0, 1}};
  call.rows = plain_behind;
  EXPECT_EQ(refused(call), "row 1: a sequence that keeps its tree gets tree rows alone");
  // A page that others may share is not written: 16 positions are one.
  const std::vector<TokenId> many(20, 5);
  (void)LogitsOf(*model, PlainRows(sequence, 0, many));
  const std::vector<Row> inside = {{1, 10, sequence, 0x3ff, 0}};
  call.rows = inside;
  EXPECT_EQ(refused(call),
            "row 0: position 10 lies in a page that is full: a tree can grow behind it alone");
  EXPECT_EQ(model->sequences().Check(), "");
  EXPECT_TRUE(SameBits(LogitsOf(*model, PlainRows(sequence, 0, tokens)), wanted));
}

}  // namespace
}  // namespace pawl
