// The kernels of experts against double precision and obvious loops: who is chosen, which slots an
// expert has, its products, the weighted sum; each with the bits that a row has alone.
#include <algorithm>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/reference/kernels.h"
#include "tests/cuda/weights_util.h"

namespace pawl::PAWL_GPU {
namespace {

class ExpertsTest : public GpuTest {};

struct ChoiceCase {
  int experts, chosen;
  ScoreKind kind;
  bool normalized;
  int groups = 1, chosen_groups = 1;
  bool bias = false, factors = false;
  float scale = 1.0f;
};

TEST_F(ExpertsTest, ChoicesAreTheReferences) {
  Random random(1);
  for (const ChoiceCase& c : {ChoiceCase{8, 2, ScoreKind::kSoftmax, true},
                              {60, 4, ScoreKind::kSoftmax, false},
                              {128, 8, ScoreKind::kSoftmax, true, 1, 1, false, true, 2.5f},
                              {32, 4, ScoreKind::kSoftmaxOfChosen, false},
                              {64, 6, ScoreKind::kSigmoid, true, 8, 3, true, false, 1.8f},
                              {4, 1, ScoreKind::kSigmoid, false, 4, 1},
                              {300, 32, ScoreKind::kSoftmax, false, 1, 1, true},
                              {1024, 3, ScoreKind::kSoftmaxOfChosen, false},
                              {5, 5, ScoreKind::kSoftmax, true}}) {
    const size_t rows = 6, stride = static_cast<size_t>(c.experts) + 3;
    const auto chosen = static_cast<size_t>(c.chosen);
    std::vector<float> scores = Normal(random, rows * stride, 2.0f);
    // Equal scores: the lower numbers are taken.
    for (size_t e = 0; e < stride; ++e) scores[2 * stride + e] = 0.5f;
    const auto experts = static_cast<size_t>(c.experts);
    std::vector<float> bias = Normal(random, experts, 0.3f), factors = Normal(random, experts);
    std::vector<DeviceRow> host_rows(rows);
    for (DeviceRow& row : host_rows) row.position = 7;
    host_rows[4].position = -1;  // padding
    ChooseExperts args;
    args.scores_stride = static_cast<int64_t>(stride);
    args.count = static_cast<int>(rows);
    args.experts = c.experts;
    args.chosen = c.chosen;
    args.kind = c.kind;
    args.normalized = c.normalized;
    args.scale = c.scale;
    args.groups = c.groups;
    args.chosen_groups = c.chosen_groups;
    const OnDevice<float> device_scores(scores), device_bias(bias), device_factors(factors);
    const OnDevice<DeviceRow> device_rows(host_rows);
    args.scores = device_scores.data();
    args.rows = device_rows.data();
    args.choice_bias = c.bias ? device_bias.data() : nullptr;
    args.factors = c.factors ? device_factors.data() : nullptr;
    const std::vector<int32_t> got = InAnyOrder<int32_t>([&] {
      // The weights as bits behind the numbers.
      OnDevice<int32_t> numbers(2 * rows * chosen);
      args.slot_experts = numbers.data();
      args.slot_weights = reinterpret_cast<float*>(numbers.data() + rows * chosen);
      PAWL_EXPECT_OK(RunChooseExperts(args, nullptr));
      return numbers.values();
    });
    args.scores = scores.data();
    args.choice_bias = c.bias ? bias.data() : nullptr;
    args.factors = c.factors ? factors.data() : nullptr;
    for (size_t r = 0; r < rows; ++r) {
      if (host_rows[r].position < 0) {
        for (size_t i = 0; i < chosen; ++i) EXPECT_EQ(got[r * chosen + i], -1);
        continue;
      }
      const std::vector<reference::Chosen> expected =
          reference::ChosenOf(args, static_cast<int>(r));
      for (size_t i = 0; i < chosen; ++i) {
        float weight;
        std::memcpy(&weight, &got[(rows + r) * chosen + i], sizeof weight);
        EXPECT_EQ(got[r * chosen + i], expected[i].expert) << c.experts << " row " << r;
        EXPECT_NEAR(weight, expected[i].weight, 1e-5 * (1 + std::fabs(expected[i].weight)));
      }
    }
  }
}

// A row with a NaN among its scores, or only NaNs, gets experts that there are, and NaN as weights.
TEST_F(ExpertsTest, ScoresThatAreNoNumbersStayWithTheirRow) {
  const int experts = 40, chosen = 3;
  std::vector<float> scores(3 * experts, 1.0f);
  scores[5] = kNan;
  for (int e = 0; e < experts; ++e) scores[static_cast<size_t>(experts + e)] = kNan;
  std::vector<DeviceRow> rows(3);
  for (DeviceRow& row : rows) row.position = 0;
  const OnDevice<float> device_scores(scores);
  const OnDevice<DeviceRow> device_rows(rows);
  OnDevice<int32_t> slots(size_t{9});
  OnDevice<float> weights(size_t{9});
  ChooseExperts args;
  args.scores = device_scores.data();
  args.scores_stride = experts;
  args.rows = device_rows.data();
  args.count = 3;
  args.experts = experts;
  args.chosen = chosen;
  args.slot_experts = slots.data();
  args.slot_weights = weights.data();
  PAWL_EXPECT_OK(RunChooseExperts(args, nullptr));
  const std::vector<int32_t> got = slots.values();
  const std::vector<float> worth = weights.values();
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_TRUE(got[i] >= 0 && got[i] < experts);
    EXPECT_TRUE(i % 3 == 0 || got[i] > got[i - 1]);
    EXPECT_EQ(std::isnan(worth[i]), i < 6);
  }
  args.experts = kMostExperts + 1;
  const Status refused = RunChooseExperts(args, nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
}

// Slots by expert, as a loop over experts finds them.
struct Grouped {
  std::vector<ExpertRun> runs;
  std::vector<int32_t> slots, rows;
};
Grouped GroupByLoop(const std::vector<int32_t>& slot_experts, int experts, int chosen) {
  Grouped grouped;
  for (int e = 0; e < experts; ++e) {
    const auto begin = static_cast<int32_t>(grouped.slots.size());
    for (size_t s = 0; s < slot_experts.size(); ++s) {
      if (slot_experts[s] != e) continue;
      grouped.slots.push_back(static_cast<int32_t>(s));
      grouped.rows.push_back(static_cast<int32_t>(s) / chosen);
    }
    const auto end = static_cast<int32_t>(grouped.slots.size());
    if (end > begin) grouped.runs.push_back({e, begin, end - begin});
  }
  return grouped;
}

TEST_F(ExpertsTest, SlotsAreGroupedByExpert) {
  Random random(2);
  struct GroupCase {
    int rows, experts, chosen;
  };
  for (const GroupCase& c :
       {GroupCase{1, 8, 2}, {3, 60, 4}, {64, 33, 1}, {700, 4, 2}, {2, 1024, 8}}) {
    std::vector<int32_t> slot_experts;
    for (int r = 0; r < c.rows; ++r) {
      std::vector<int32_t> own;
      while (static_cast<int>(own.size()) < c.chosen) {
        // The first of many are never chosen.
        const auto e = static_cast<int32_t>(random() % static_cast<unsigned>(c.experts));
        if (c.experts > 8 && e < 3) continue;
        if (std::find(own.begin(), own.end(), e) == own.end()) own.push_back(e);
      }
      std::sort(own.begin(), own.end());
      if (r % 5 == 2) std::fill(own.begin(), own.end(), -1);
      slot_experts.insert(slot_experts.end(), own.begin(), own.end());
    }
    const Grouped expected = GroupByLoop(slot_experts, c.experts, c.chosen);
    const OnDevice<int32_t> device_experts(slot_experts);
    const size_t slots = slot_experts.size(), runs = static_cast<size_t>(c.experts);
    GroupSlots args;
    args.slot_experts = device_experts.data();
    args.count = static_cast<int>(slots);
    args.experts = c.experts;
    args.chosen = c.chosen;
    const std::vector<int32_t> got = InAnyOrder<int32_t>([&] {
      OnDevice<int32_t> all(2 * slots + 3 * runs + 1);
      args.slots = all.data();
      args.rows = args.slots + slots;
      args.runs = reinterpret_cast<ExpertRun*>(args.rows + slots);
      args.run_count = args.rows + slots + 3 * runs;
      PAWL_EXPECT_OK(RunGroupSlots(args, nullptr));
      return all.values();
    });
    ASSERT_EQ(got.back(), static_cast<int32_t>(expected.runs.size()));
    for (size_t i = 0; i < expected.slots.size(); ++i) {
      ASSERT_EQ(got[i], expected.slots[i]);
      ASSERT_EQ(got[slots + i], expected.rows[i]);
    }
    for (size_t i = 0; i < expected.runs.size(); ++i) {
      const ExpertRun& run = expected.runs[i];
      EXPECT_EQ(got[2 * slots + 3 * i], run.expert);
      EXPECT_EQ(got[2 * slots + 3 * i + 1], run.begin);
      EXPECT_EQ(got[2 * slots + 3 * i + 2], run.count);
    }
  }
}

// Matrices of experts in host memory, and the same in device memory.
struct ManyExperts {
  ManyExperts(Random& random, DeviceWeight type, int experts, int outputs, int columns, int shift,
              bool minimums) {
    for (int e = 0; e < experts; ++e) {
      const PackedMatrix packed =
          MakeWeights(random, type, outputs, columns, shift, minimums).packed;
      const auto append = [](auto& all, const auto& own) {
        all.insert(all.end(), own.begin(), own.end());
      };
      const size_t before = data.size();
      append(data, packed.data);
      data.resize((data.size() + 255) / 256 * 256);
      append(scales, packed.scales);
      append(minima, packed.minimums);
      append(row_scales, packed.row_scales);
      host.data_stride = static_cast<int64_t>(data.size() - before);
      host.scales_stride = static_cast<int64_t>(packed.scales.size());
      host.row_scales_stride = static_cast<int64_t>(packed.row_scales.size());
      host.first = packed.shape;
    }
    bias = Normal(random, static_cast<size_t>(experts * outputs));
    host.bias_stride = outputs;
    on_device = std::make_unique<Device>(*this);
    const auto point = [&](ExpertMatrices& to, const auto& from) {
      const auto at = [](const auto& values) { return values.data(); };
      to.first.data = at(from.data);
      if (!scales.empty()) to.first.scales = at(from.scales);
      if (minimums) to.first.minimums = at(from.minima);
      if (!row_scales.empty()) to.first.row_scales = at(from.row_scales);
      to.bias = at(from.bias);
    };
    device = host;
    point(device, *on_device);
    point(host, *this);
  }
  struct Device {
    explicit Device(const ManyExperts& from)
        : data(from.data),
          scales(from.scales),
          minima(from.minima),
          row_scales(from.row_scales),
          bias(from.bias) {}
    OnDevice<std::byte> data;
    OnDevice<uint16_t> scales, minima;
    OnDevice<float> row_scales, bias;
  };
  std::vector<std::byte> data;
  std::vector<uint16_t> scales, minima;
  std::vector<float> row_scales, bias;
  std::unique_ptr<Device> on_device;
  ExpertMatrices host, device;
};

struct ProductCase {
  DeviceWeight type;
  int outputs, columns, rows;
  Gate gate;
  bool bias, norm;
  float clamp = 0;
  int shift = 5;
  bool minimums = false;
};

TEST_F(ExpertsTest, ProductsEqualDoublePrecisionInAnyCompany) {
  Random random(3);
  const int experts = 5, chosen = 2;
  for (const ProductCase& c :
       {ProductCase{DeviceWeight::kBf16, 20, 64, 12, Gate::kSilu, false, true},
        {DeviceWeight::kBf16, 37, 40, 3, Gate::kNone, true, false},
        {DeviceWeight::kF16, 16, 64, 11, Gate::kSilu, true, true, 1.5f},
        {DeviceWeight::kF32, 18, 32, 2, Gate::kGeluTanh, false, true},
        {DeviceWeight::kF32, 16, 36, 30, Gate::kNone, true, false},
        {DeviceWeight::kFp8, 33, 64, 10, Gate::kSilu, true, true},
        {DeviceWeight::kFp8, 16, 96, 2, Gate::kNone, false, false},
        {DeviceWeight::kI8, 24, 96, 25, Gate::kSilu, true, true, 7.0f},
        {DeviceWeight::kI8, 20, 64, 5, Gate::kNone, false, false, 0, 4},
        {DeviceWeight::kI4, 17, 96, 9, Gate::kSilu, false, true},
        {DeviceWeight::kI4, 40, 64, 4, Gate::kNone, true, false, 0, 5, true}}) {
    ManyExperts w(random, c.type, experts, c.outputs, c.columns, c.shift, c.minimums);
    ManyExperts up(random, c.type, experts, c.outputs, c.columns, c.shift, c.minimums);
    const std::string label = std::to_string(static_cast<int>(c.type)) + " " +
                              std::to_string(c.outputs) + "x" + std::to_string(c.columns) + " " +
                              std::to_string(c.rows) + " rows";
    // No row has expert 1; the row in the middle is padding.
    std::vector<int32_t> slot_experts;
    for (int r = 0; r < c.rows; ++r) {
      const int32_t pairs[][2] = {{0, 2}, {0, 3}, {0, 4}, {2, 3}, {-1, -1}};
      const int32_t(&own)[2] = pairs[r == c.rows / 2 ? 4 : random() % 4];
      slot_experts.insert(slot_experts.end(), own, own + 2);
    }
    const int64_t x_stride = (c.columns + 3) / 4 * 4 + 4;
    const std::vector<float> x = Normal(random, static_cast<size_t>(c.rows * x_stride), 2.0f);
    std::vector<float> norm = Normal(random, static_cast<size_t>(c.columns));
    norm.resize(static_cast<size_t>(PaddedColumns(c.columns)));
    const OnDevice<float> device_x(x), device_norm(norm);
    ExpertProducts args;
    args.w = w.device;
    args.up = up.device;
    if (!c.bias) args.w.bias = args.up.bias = nullptr;
    args.x = device_x.data();
    args.x_stride = x_stride;
    args.norm = c.norm ? device_norm.data() : nullptr;
    args.epsilon = 1e-5f;
    args.gate = c.gate;
    args.clamp = c.clamp;
    args.y_stride = c.outputs;
    const size_t all_slots = slot_experts.size(), outputs = static_cast<size_t>(c.outputs);
    // Of the slots whose experts are given; -1: none.
    const auto run = [&](const std::vector<int32_t>& of_slots, int slots_a_run) {
      const Grouped grouped = GroupByLoop(of_slots, experts, chosen);
      const OnDevice<ExpertRun> runs(grouped.runs);
      const OnDevice<int32_t> slots(grouped.slots), rows(grouped.rows);
      const OnDevice<int32_t> run_count(
          std::vector<int32_t>{static_cast<int32_t>(grouped.runs.size())});
      OnDevice<float> y(all_slots * outputs);
      args.x_rows = rows.data();
      args.slots = slots.data();
      args.runs = runs.data();
      args.run_count = run_count.data();
      args.most_runs = experts;
      args.slots_a_run = slots_a_run;
      args.y = y.data();
      PAWL_EXPECT_OK(RunExpertProducts(args, nullptr));
      return y.values();
    };
    const std::vector<float> got = InAnyOrder<float>([&] { return run(slot_experts, 1); });
    ExpertProducts host = args;
    host.w = w.host;
    host.up = up.host;
    if (!c.bias) host.w.bias = host.up.bias = nullptr;
    host.x = x.data();
    host.norm = c.norm ? norm.data() : nullptr;
    double error = 0, magnitude = 0;
    for (size_t s = 0; s < all_slots; ++s) {
      for (size_t o = 0; o < outputs; ++o) {
        const float value = got[s * outputs + o];
        if (slot_experts[s] < 0) {
          EXPECT_TRUE(std::isnan(value));  // not written
          continue;
        }
        const double difference =
            value - reference::ExpertAt(host, slot_experts[s], static_cast<int>(s) / chosen,
                                        static_cast<int>(o), &magnitude);
        error += difference * difference;
      }
    }
    EXPECT_LT(std::sqrt(error / magnitude), 1e-5) << label;
    // By eight eights, and a slot alone.
    const std::vector<float> wide = run(slot_experts, 64);
    EXPECT_EQ(std::memcmp(wide.data(), got.data(), got.size() * sizeof(float)), 0) << label;
    const size_t slot = random() % 2;
    std::vector<int32_t> one(all_slots, -1);
    one[slot] = slot_experts[slot];
    const std::vector<float> alone = run(one, 1);
    EXPECT_EQ(std::memcmp(alone.data() + slot * outputs, got.data() + slot * outputs, outputs * 4),
              0)
        << label;
  }
}

TEST_F(ExpertsTest, AnswersAreAddedInTheOrderOfSlots) {
  Random random(4);
  const size_t rows = 4, chosen = 3, columns = 300, stride = 320;
  std::vector<int32_t> slot_experts(rows * chosen, 1);
  std::fill_n(slot_experts.begin() + 2 * chosen, chosen, -1);
  const std::vector<float> weights = Normal(random, rows * chosen);
  const std::vector<float> y = Normal(random, rows * chosen * stride);
  const std::vector<float> x = Normal(random, rows * stride),
                           shared = Normal(random, rows * stride);
  const std::vector<float> scores = Normal(random, rows * 5);
  const OnDevice<int32_t> device_experts(slot_experts);
  const OnDevice<float> device_weights(weights), device_y(y), device_scores(scores);
  const OnDevice<float> device_shared(shared);
  for (int which = 0; which < 4; ++which) {
    AddExperts args;
    args.slot_experts = device_experts.data();
    args.slot_weights = device_weights.data();
    args.count = rows;
    args.chosen = chosen;
    args.y = device_y.data();
    args.y_stride = stride;
    args.columns = columns;
    args.add = which != 3;
    args.shared_stride = args.to_stride = stride;
    if (which > 0) args.shared = device_shared.data();
    if (which > 1) args.shared_scores = device_scores.data() + 4;
    args.shared_scores_stride = 5;
    const std::vector<float> got = InAnyOrder<float>([&] {
      OnDevice<float> to(which == 3 ? shared : x);
      args.to = to.data();
      if (which == 3) args.shared = to.data();  // in place
      PAWL_EXPECT_OK(RunAddExperts(args, nullptr));
      return to.values();
    });
    for (size_t r = 0; r < rows; ++r) {
      const double of_shared = which == 0   ? 0
                               : which == 1 ? 1
                                            : 1 / (1 + std::exp(-double{scores[r * 5 + 4]}));
      for (size_t i = 0; i < stride; ++i) {
        const size_t at = r * stride + i;
        const float before = which == 3 ? shared[at] : x[at];
        if (r == 2 || i >= columns) {
          ASSERT_EQ(got[at], before);
          continue;
        }
        double expected = (which == 3 ? 0.0 : double{x[at]}) + of_shared * shared[at];
        for (size_t k = 0; k < chosen; ++k) {
          expected += double{weights[r * chosen + k]} * y[(r * chosen + k) * stride + i];
        }
        ASSERT_NEAR(got[at], expected, 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace pawl::PAWL_GPU
