// States of recurrent layers under random operations: a row's answers have the bits that they have
// token by token in a sequence of its own, whatever calls, trees, cuts, forks and evictions came
// before. And a slow plain recurrence says that these bits are right.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "src/base/pages.h"
#include "src/model/recurrent/recurrent_mixer.h"
#include "tests/model/model_test_util.h"

namespace pawl {
namespace {

constexpr int kTokens = 20;
constexpr int kStateContext = 1400;
constexpr PlanLimits kStateLimits = {.vocabulary = kTokens, .logits = 0};

// A delta rule with shared keys, a layer without a state, a convolution alone, and Mamba-2.
std::vector<RecurrentShape> TestShapes() {
  std::vector<RecurrentShape> shapes(4);
  shapes[0] = {.channels = 2 * 2 * 4 + 4 * 3,
               .taps = 4,
               .heads = 4,
               .keys = 4,
               .values = 3,
               .groups = 2,
               .delta = true,
               .q_at = 0,
               .k_at = 8,
               .v_at = 16};
  shapes[2] = {.channels = 5, .taps = 3, .silu = false};
  shapes[3] = {.channels = 2 * 7 + 2 * 4,
               .taps = 4,
               .heads = 2,
               .keys = 4,
               .values = 7,
               .groups = 1,
               .q_at = 18,
               .k_at = 14,
               .v_at = 0};
  return shapes;
}

int64_t AnswerFloats(const RecurrentShape& shape) {
  return shape.heads == 0 ? shape.channels : int64_t{shape.heads} * shape.values;
}

// Layers whose inputs depend on the token alone, next to each other.
class Layers {
 public:
  explicit Layers(int32_t pages, int32_t kept, int block = 128, int threads = 1)
      : shapes_(TestShapes()),
        pool_(threads),
        mixer_(shapes_, 64, *FindKernels(KernelVariant::kAuto), pool_, 1),
        sequences({.pages = pages, .kept_pages = kept, .states = mixer_.layout().pages()},
                  kStateContext),
        memory_(static_cast<size_t>(pages * mixer_.layout().page_floats()) * sizeof(float)),
        block_(static_cast<size_t>(block)) {
    mixer_.SetPages(static_cast<float*>(memory_.data()));
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    const auto draw = [&](int64_t n) {
      std::vector<float> values(static_cast<size_t>(n));
      for (float& value : values) value = normal(random);
      return values;
    };
    for (const RecurrentShape& shape : shapes_) {
      inputs_.push_back(draw(kTokens * shape.row_floats()));
      RecurrentWeights weights;
      weights.convolution = draw(int64_t{shape.taps} * shape.channels);
      if (shape.heads > 0) weights.convolution_bias = draw(shape.channels);
      weights.biases = draw(shape.heads);
      weights.rates = draw(shape.heads);
      for (float& rate : weights.rates) rate = -std::exp(0.3f * rate);
      weights_.push_back(std::move(weights));
    }
  }

  // By row, all layers one behind the other. Empty where the call failed.
  std::vector<std::vector<float>> Run(std::span<const Row> rows, bool keep_tree = false,
                                      std::span<const int32_t> bad = {}) {
    PlanLimits limits = kStateLimits;
    limits.keep_tree = keep_tree;
    const Status status = sequences.Plan(rows, limits, plan_);
    if (!status.ok()) {
      // A tree cannot grow into a full page.
      EXPECT_TRUE(keep_tree || status.error().code == ErrorCode::kLimit)
          << status.error().ToString();
      return {};
    }
    mixer_.Restore(sequences, plan_, weights_);
    for (size_t i = 0; i < plan_.changes.size(); ++i) {
      std::vector<Row> more;
      sequences.PlanAgain(plan_, i, more, again_);
      again += static_cast<int>(more.size());
      if (more.empty()) continue;
      mixer_.BeginRows(sequences, again_);
      Blocks(more);
    }
    mixer_.BeginRows(sequences, plan_);
    std::vector<std::vector<float>> answers = Blocks(rows);
    for (const int32_t row : bad) {
      const auto sequence = static_cast<size_t>(rows[static_cast<size_t>(row)].sequence);
      plan_.changes[static_cast<size_t>(plan_.change_of[sequence])].failed = true;
    }
    sequences.Finish(rows, plan_);
    return answers;
  }

  // In double precision, the recurrence as papers have it: what the last token of a text answers.
  std::vector<double> Plain(std::span<const TokenId> text) const;

  int64_t steps() const { return mixer_.steps(); }
  const StateLayout& layout() const { return mixer_.layout(); }

 private:
  std::vector<std::vector<float>> Blocks(std::span<const Row> rows) {
    std::vector<std::vector<float>> answers(rows.size());
    for (size_t first = 0; first < rows.size(); first += block_) {
      const std::span<const Row> block = rows.subspan(first, std::min(block_, rows.size() - first));
      mixer_.BeginBlock(block);
      for (size_t layer = 0; layer < shapes_.size(); ++layer) {
        const RecurrentShape& shape = shapes_[layer];
        if (shape.channels == 0) continue;
        std::vector<float> in, out(block.size() * static_cast<size_t>(AnswerFloats(shape)));
        for (const Row& row : block) {
          const float* of_token = inputs_[layer].data() + row.token * shape.row_floats();
          in.insert(in.end(), of_token, of_token + shape.row_floats());
        }
        mixer_.Mix(static_cast<int>(layer), weights_[layer], in.data(), out.data());
        for (size_t r = 0; r < block.size(); ++r) {
          const auto width = static_cast<size_t>(AnswerFloats(shape));
          answers[first + r].insert(answers[first + r].end(),
                                    out.begin() + static_cast<long>(r * width),
                                    out.begin() + static_cast<long>((r + 1) * width));
        }
      }
    }
    return answers;
  }

  std::vector<RecurrentShape> shapes_;
  ThreadPool pool_;
  RecurrentMixer mixer_;

 public:
  KvSequences sequences;
  int again = 0;  // rows that were computed again

 private:
  LazyMemory memory_;
  size_t block_;
  std::vector<std::vector<float>> inputs_;
  std::vector<RecurrentWeights> weights_;
  RowPlan plan_, again_;
};

std::vector<double> Layers::Plain(std::span<const TokenId> text) const {
  std::vector<double> all;
  for (size_t layer = 0; layer < shapes_.size(); ++layer) {
    const RecurrentShape& shape = shapes_[layer];
    if (shape.channels == 0) continue;
    const RecurrentWeights& weights = weights_[layer];
    const auto channels = static_cast<size_t>(shape.channels);
    const auto input = [&](size_t t) {
      return inputs_[layer].data() + text[t] * shape.row_floats();
    };
    std::vector<double> states(static_cast<size_t>(shape.heads * shape.head_floats()));
    std::vector<double> answer;
    for (size_t t = 0; t < text.size(); ++t) {
      std::vector<double> mixed(channels);
      for (size_t c = 0; c < channels; ++c) {
        double sum = weights.convolution_bias.empty() ? 0.0 : weights.convolution_bias[c];
        for (size_t tap = 0; tap < static_cast<size_t>(shape.taps); ++tap) {
          const size_t back = static_cast<size_t>(shape.taps) - 1 - tap;
          if (back <= t)
            sum += double{weights.convolution[tap * channels + c]} * input(t - back)[c];
        }
        mixed[c] = shape.silu ? sum / (1 + std::exp(-sum)) : sum;
      }
      answer = shape.heads == 0 ? mixed : std::vector<double>();
      for (int h = 0; h < shape.heads; ++h) {
        const int group = h / (shape.heads / shape.groups);
        std::vector<double> q(mixed.begin() + shape.q_at + group * shape.keys,
                              mixed.begin() + shape.q_at + (group + 1) * shape.keys);
        std::vector<double> k(mixed.begin() + shape.k_at + group * shape.keys,
                              mixed.begin() + shape.k_at + (group + 1) * shape.keys);
        const float* gates = input(t) + channels;
        const double x = double{gates[h]} + weights.biases[static_cast<size_t>(h)];
        const double time = std::log1p(std::exp(x));
        const double decay = std::exp(weights.rates[static_cast<size_t>(h)] * time);
        double beta = time;
        if (shape.delta) {
          for (std::vector<double>* vector : {&q, &k}) {
            double squares = 1e-6;
            for (const double value : *vector) squares += value * value;
            for (double& value : *vector) value /= std::sqrt(squares);
          }
          for (double& value : q) value /= std::sqrt(static_cast<double>(shape.keys));
          beta = 1 / (1 + std::exp(-double{gates[shape.heads + h]}));
        }
        double* state = states.data() + h * shape.head_floats();
        for (int c = 0; c < shape.values; ++c) {
          double known = 0, sum = 0;
          for (int i = 0; i < shape.keys; ++i) {
            state[i * shape.values + c] *= decay;
            known += state[i * shape.values + c] * k[static_cast<size_t>(i)];
          }
          const double v = mixed[static_cast<size_t>(shape.v_at + h * shape.values + c)];
          const double d = beta * (shape.delta ? v - known : v);
          for (int i = 0; i < shape.keys; ++i) {
            state[i * shape.values + c] += k[static_cast<size_t>(i)] * d;
            sum += state[i * shape.values + c] * q[static_cast<size_t>(i)];
          }
          answer.push_back(sum);
        }
      }
    }
    all.insert(all.end(), answer.begin(), answer.end());
  }
  return all;
}

// What each token of a text answers, one row a call in a sequence of its own.
class AloneAnswers {
 public:
  const std::vector<float>& Of(const std::vector<TokenId>& text) {
    const auto known = answers_.find(text);
    if (known != answers_.end()) return known->second;
    const SequenceId sequence = *layers_.sequences.New(kStateContext);
    for (size_t i = 0; i < text.size(); ++i) {
      const std::vector<Row> rows = {
          {.token = text[i], .position = static_cast<int32_t>(i), .sequence = sequence}};
      answers_[{text.begin(), text.begin() + static_cast<long>(i) + 1}] = layers_.Run(rows)[0];
    }
    layers_.sequences.Free(sequence);
    return answers_[text];
  }

 private:
  Layers layers_{300, 0};
  std::map<std::vector<TokenId>, std::vector<float>> answers_;
};

std::vector<Row> PlainRows(SequenceId sequence, int base, std::span<const TokenId> tokens) {
  std::vector<Row> rows;
  for (size_t i = 0; i < tokens.size(); ++i) {
    rows.push_back(
        {.token = tokens[i], .position = base + static_cast<int32_t>(i), .sequence = sequence});
  }
  return rows;
}

std::vector<float> Floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

TEST(RecurrentTest, TokenByTokenIsTheRecurrence) {
  std::mt19937 random(3);
  Layers layers(100, 0);
  AloneAnswers alone;
  const std::vector<TokenId> text = RandomTokens(random, kTokens, 30);
  for (size_t n = 1; n <= text.size(); ++n) {
    const std::vector<TokenId> part(text.begin(), text.begin() + static_cast<long>(n));
    EXPECT_LT(RelativeError(alone.Of(part), Floats(layers.Plain(part))), 1e-5) << n;
  }
}

TEST(RecurrentTest, RandomOperationsKeepEveryBit) {
  std::mt19937 random(78);
  const auto below = [&](size_t n) { return static_cast<int>(random() % n); };
  int reused = 0, again = 0, committed = 0, full = 0, grown = 0, bad = 0;
  AloneAnswers alone;
  for (const auto& [pages, kept, block] :
       {std::tuple{400, 200, 128}, std::tuple{400, 0, 9}, std::tuple{150, 60, 30}}) {
    Layers layers(pages, kept, block, 2);
    KvSequences& sequences = layers.sequences;
    std::map<SequenceId, std::vector<TokenId>> alive;
    std::vector<TokenId> ended;  // the last text
    const auto any = [&] { return std::next(alive.begin(), below(alive.size())); };
    const auto random_tokens = [&](int n) {
      std::vector<TokenId> tokens(static_cast<size_t>(n), static_cast<TokenId>(below(2)));
      if (n > 0 && below(2) == 0) tokens[static_cast<size_t>(below(tokens.size()))] = 2;
      return tokens;
    };
    for (int step = 0; step < 1500; ++step) {
      const int what = below(12);
      if (alive.size() < 2 || (what == 0 && alive.size() < 5)) {
        const auto id = sequences.New(150);
        if (id.ok()) {
          sequences.ReusePrefix(*id, ended);
          reused += sequences.length(*id);
          alive[*id] = {ended.begin(), ended.begin() + sequences.length(*id)};
        }
        if (!id.ok()) ++full;
        if (alive.size() < 2) continue;
      } else if (what == 1) {
        const auto it = any();
        sequences.Free(it->first);
        ended = it->second;
        alive.erase(it);
      } else if (what == 2) {
        const auto it = any();
        const int length = below(it->second.size() + 1);
        sequences.Truncate(it->first, length);
        it->second.resize(static_cast<size_t>(length));
      } else if (what == 3) {
        const auto it = any();
        std::vector<TokenId> more = it->second;
        if (std::equal(
                more.begin(), more.end(), ended.begin(),
                ended.begin() + static_cast<ptrdiff_t>(std::min(more.size(), ended.size())))) {
          more = ended;
        }
        for (const TokenId t : random_tokens(below(90))) more.push_back(t);
        const int length = sequences.ReusePrefix(it->first, more);
        ASSERT_GE(length, static_cast<int>(it->second.size()));
        reused += length - static_cast<int>(it->second.size());
        more.resize(static_cast<size_t>(length));
        it->second = std::move(more);
      } else {
        // Up to three sequences: plain rows, and trees that may grow in a second call.
        std::vector<Row> rows;
        std::vector<std::vector<TokenId>> paths;
        std::map<SequenceId, std::vector<size_t>> rows_of;
        std::map<SequenceId, int> plain_of;
        std::map<SequenceId, std::vector<uint64_t>> ancestors_of;
        const auto branch = [&](SequenceId id, int count) {
          std::vector<uint64_t>& ancestors = ancestors_of[id];
          for (; count > 0; --count) {
            const auto parent = static_cast<size_t>(below(rows_of[id].size()));
            const Row from = rows[rows_of[id][parent]];
            ancestors.push_back(ancestors[parent] | uint64_t{1} << parent);
            std::vector<TokenId> path = paths[rows_of[id][parent]];
            path.push_back(static_cast<TokenId>(below(3)));
            rows_of[id].push_back(rows.size());
            rows.push_back({path.back(), from.position + 1, id, ancestors.back(), -1});
            paths.push_back(std::move(path));
          }
        };
        for (int n = 1 + below(3); n > 0; --n) {
          const auto it = any();
          const SequenceId id = it->first;
          if (rows_of.contains(id) || it->second.size() > 60) continue;
          const auto length = it->second.size();
          const size_t base = below(4) == 0 ? static_cast<size_t>(below(length + 1)) : length;
          std::vector<TokenId> path(it->second.begin(),
                                    it->second.begin() + static_cast<ptrdiff_t>(base));
          const int shape = below(6);
          for (const TokenId t : random_tokens(1 + below(shape == 0 ? 80 : shape == 1 ? 30 : 4))) {
            ancestors_of[id].push_back((uint64_t{1} << (rows_of[id].size() % 64)) - 1);
            rows_of[id].push_back(rows.size());
            rows.push_back({t, static_cast<int32_t>(path.size()), id, 0, -1});
            path.push_back(t);
            paths.push_back(path);
          }
          plain_of[id] = static_cast<int>(rows_of[id].size());
          if (rows_of[id].size() <= 30 && below(2) == 0) branch(id, 1 + below(20));
        }
        if (rows.empty()) continue;
        const std::vector<int32_t> wrong =
            below(10) == 0 ? std::vector<int32_t>{below(rows.size())} : std::vector<int32_t>();
        std::vector<std::vector<float>> answers = layers.Run(rows, false, wrong);
        if (answers.empty()) {
          ++full;
          ASSERT_EQ(sequences.Check(), "");
          continue;
        }
        const auto check = [&](size_t from) {
          for (size_t i = 0; i < answers.size(); ++i) {
            ASSERT_EQ(answers[i], alone.Of(paths[from + i])) << "row " << i;
          }
        };
        check(0);
        for (auto& [id, of] : rows_of) {
          const std::vector<TokenId>& last = paths[of[static_cast<size_t>(plain_of[id]) - 1]];
          const bool failed = std::ranges::any_of(wrong, [&, sequence = id](int32_t row) {
            return rows[static_cast<size_t>(row)].sequence == sequence;
          });
          if (failed) {
            ++bad;
            alive[id].resize(static_cast<size_t>(rows[of[0]].position));
            const std::vector<TokenId>& first = paths[of[0]];
            alive[id].assign(first.begin(), first.end() - 1);
            continue;
          }
          alive[id] = last;
          if (of.size() <= 40 && below(4) == 0) {
            const size_t before = rows.size();
            branch(id, 1 + below(9));
            answers = layers.Run(std::span(rows).subspan(before), true);
            if (answers.empty()) {
              ++full;
              continue;
            }
            ++grown;
            check(before);
          }
          if (below(2) == 0) continue;
          const int row = below(std::min<size_t>(of.size(), kMaxTreeRows));
          std::vector<SlotCopy> copies;
          ASSERT_TRUE(sequences.CommitTree(id, row, copies).ok());
          alive[id] = paths[of[static_cast<size_t>(row)]];
          ++committed;
        }
      }
      for (const auto& [id, tokens] : alive) {
        ASSERT_EQ(sequences.length(id), static_cast<int>(tokens.size()));
      }
      ASSERT_EQ(sequences.Check(), "") << step;
    }
    again += layers.again;
  }
  EXPECT_GT(reused, 200);
  EXPECT_GT(again, 1000);
  EXPECT_GT(committed, 300);
  EXPECT_GT(full, 10);
  EXPECT_GT(grown, 100);
  EXPECT_GT(bad, 50);
}

// A conversation: each turn begins with all of the last one.
TEST(RecurrentTest, TurnsReuseTheirPrefix) {
  std::mt19937 random(4);
  Layers layers(4000, 3000);
  std::vector<TokenId> text;
  int most_more = 0;
  for (int turn = 0; turn < 20; ++turn) {
    const std::vector<TokenId> asked = RandomTokens(random, kTokens, 25);
    text.insert(text.end(), asked.begin(), asked.end());
    const SequenceId sequence = *layers.sequences.New(kStateContext);
    const int reused =
        layers.sequences.ReusePrefix(sequence, std::span(text).first(text.size() - 1));
    const int whole = turn == 0 ? 0 : (static_cast<int>(text.size()) - 25) / 16 * 16;
    most_more = std::max(most_more, whole - reused);
    ASSERT_FALSE(
        layers
            .Run(PlainRows(sequence, reused, std::span(text).subspan(static_cast<size_t>(reused))))
            .empty());
    for (int i = 0; i < 40; ++i) {
      const TokenId token = static_cast<TokenId>(random() % kTokens);
      ASSERT_FALSE(
          layers
              .Run(PlainRows(sequence, static_cast<int>(text.size()), std::vector<TokenId>{token}))
              .empty());
      text.push_back(token);
    }
    layers.sequences.Free(sequence);
    ASSERT_EQ(layers.sequences.Check(), "");
  }
  EXPECT_GT(text.size(), 1290u);
  EXPECT_EQ(layers.again, 0);
  EXPECT_LE(most_more, 64);  // the bound is 512
}

// A long answer has a checkpoint every 512 tokens.
TEST(RecurrentTest, LongAnswersAreReused) {
  std::mt19937 random(5);
  Layers layers(4000, 3000);
  const std::vector<TokenId> text = RandomTokens(random, kTokens, 1300);
  const SequenceId a = *layers.sequences.New(kStateContext);
  for (size_t i = 0; i < text.size(); ++i) {
    layers.Run(PlainRows(a, static_cast<int>(i), std::span(text).subspan(i, 1)));
  }
  EXPECT_EQ(layers.sequences.ReusePrefix(*layers.sequences.New(kStateContext), text), 1024);
  // A cut goes back to the last of them.
  layers.sequences.Truncate(a, 700);
  const auto answer = layers.Run(PlainRows(a, 700, std::span(text).subspan(700, 1)));
  EXPECT_EQ(layers.again, 700 - 512);
  const SequenceId b = *layers.sequences.New(kStateContext);
  Layers fresh(4000, 0);
  const SequenceId c = *fresh.sequences.New(kStateContext);
  const auto all = fresh.Run(PlainRows(c, 0, std::span(text).first(701)));
  EXPECT_EQ(answer[0], all.back());
  layers.sequences.Free(b);
}

TEST(RecurrentTest, ATreeCostsTheStepsOfARun) {
  Layers layers(400, 100);
  const SequenceId sequence = *layers.sequences.New(kStateContext);
  std::vector<Row> run = PlainRows(sequence, 0, std::vector<TokenId>(16, 1));
  layers.Run(run);
  const int64_t chain = layers.steps();
  layers.sequences.Truncate(sequence, 0);
  // Two children each.
  std::vector<Row> tree = {{1, 0, sequence, 0, -1}};
  for (size_t i = 1; i < 16; ++i) {
    const size_t parent = (i - 1) / 2;
    tree.push_back({2, tree[parent].position + 1, sequence,
                    tree[parent].ancestors | uint64_t{1} << parent, -1});
  }
  layers.Run(tree);
  EXPECT_EQ(layers.steps() - chain, chain);
  // What was taken is replayed in the next call, and only that.
  std::vector<SlotCopy> copies;
  ASSERT_TRUE(layers.sequences.CommitTree(sequence, 15, copies).ok());
  const int64_t before = layers.steps();
  layers.Run(PlainRows(sequence, 5, std::vector<TokenId>{1}));
  EXPECT_EQ(layers.steps() - before, 5 + 1);
  EXPECT_EQ(layers.again, 0);
}

// Bytes of 64 sequences of the shape of Qwen 3.5 0.8B, next to keys and values.
TEST(RecurrentTest, AStateOfTheSmallestQwenIsSmall) {
  std::vector<RecurrentShape> shapes(24);
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (i % 4 == 3) continue;
    shapes[i] = {.channels = 3 * 16 * 128,
                 .taps = 4,
                 .heads = 16,
                 .keys = 128,
                 .values = 128,
                 .groups = 16,
                 .delta = true};
  }
  const StateLayout layout(shapes, int64_t{6} * 2 * 2 * 256 * 16);
  const int64_t page = layout.page_floats() * 4;
  EXPECT_EQ(page, int64_t{6} * 2 * 2 * 256 * 16 * 4) << "no piece is larger than a page";
  EXPECT_LE(layout.pages().state * page, int64_t{21} << 20);
  EXPECT_LE(64 * layout.pages().least() * page, int64_t{2} << 30);
}

TEST(RecurrentTest, StatesCountInTheMemory) {
  Layers layers(200, 20);
  const int each = layers.layout().pages().least();
  EXPECT_GT(each, 0);
  std::vector<SequenceId> all;
  for (;;) {
    const auto id = layers.sequences.New(16);
    if (!id.ok()) {
      EXPECT_EQ(id.error().code, ErrorCode::kLimit);
      EXPECT_NE(id.error().message.find("state of a sequence"), std::string::npos);
      break;
    }
    all.push_back(*id);
    EXPECT_EQ(layers.sequences.pool().in_use(), each * static_cast<int>(all.size()));
  }
  EXPECT_EQ(static_cast<int>(all.size()), 200 / each);
  layers.sequences.Free(all[0]);
  EXPECT_TRUE(layers.sequences.New(16).ok());
}

}  // namespace
}  // namespace pawl
