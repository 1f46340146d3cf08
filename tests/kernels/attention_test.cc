// Attention of every kernel variant against double precision; rows see what they should and no
// more.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "tests/kernels/kernels_test_util.h"

namespace pawl {
namespace {

struct AttentionCase {
  int64_t prefix;
  int extra;
  int group, head_dim;
  float spread;  // of the queries: large ones make one position win
  int64_t first = 0;
  float soft_cap = 0;
};

const AttentionCase kAttentionCases[] = {{1, 0, 1, 16, 1},
                                         {0, 1, 1, 16, 1},
                                         {0, 3, 2, 24, 1},
                                         {5, 0, 3, 32, 1},
                                         {15, 2, 4, 64, 1},
                                         {16, 0, 5, 64, 1},
                                         {17, 9, 6, 48, 1},
                                         {64, 0, 7, 128, 1},
                                         {100, 5, 8, 80, 30},
                                         {333, 63, 9, 2, 1},
                                         {1000, 0, 1, 64, 1},
                                         {1000, 17, 2, 100, 100},
                                         {2000, 1, 4, 6, 5},
                                         {31, 31, 12, 160, 1},
                                         // With a first position, and with a soft cap.
                                         {40, 0, 3, 32, 1, 39},
                                         {40, 5, 2, 32, 1, 40},
                                         {100, 7, 5, 48, 1, 33},
                                         {500, 0, 4, 64, 3, 250, 2.0f},
                                         {17, 9, 6, 48, 10, 0, 50.0f},
                                         {31, 2, 1, 16, 100, 3, 1.0f}};

TEST(KernelsTest, Attention) {
  Random random(6);
  for (const AttentionCase& c : kAttentionCases) {
    const auto dim = static_cast<size_t>(c.head_dim), group = static_cast<size_t>(c.group);
    const int64_t positions = c.prefix - c.first + c.extra;
    // Pages in any order, with a gap between them; slots that are neither seen nor listed hold NaN.
    const auto pages_of = [](int64_t n) {
      return static_cast<size_t>((n + kKvPage - 1) / kKvPage);
    };
    const size_t page_count = pages_of(c.prefix) + pages_of(c.extra) + 3;
    const size_t stride = static_cast<size_t>(kKvPage) * dim + 5;
    std::vector<int32_t> pages(page_count);
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), random);
    const std::vector<float> q = Normal(random, group * dim, c.spread);
    const std::vector<float> all_keys = Normal(random, page_count * stride),
                             all_values = Normal(random, page_count * stride);
    std::vector<float> keys(all_keys.size(), kNan), values(all_values.size(), kNan);
    const auto offset_of = [&](int32_t slot) {
      return static_cast<size_t>(slot / kKvPage) * stride +
             static_cast<size_t>(slot % kKvPage) * dim;
    };
    const auto slot_of = [&](int64_t position) {
      return static_cast<int32_t>(pages[static_cast<size_t>(position / kKvPage)] * kKvPage +
                                  position % kKvPage);
    };
    std::vector<int32_t> extra;
    for (size_t i = pages_of(c.prefix); i < page_count; ++i) {
      for (int64_t o = 0; o < kKvPage; ++o) {
        extra.push_back(static_cast<int32_t>(pages[i] * kKvPage + o));
      }
    }
    std::shuffle(extra.begin(), extra.end(), random);
    std::vector<int32_t> order;  // slots, as they are seen
    for (int64_t j = c.first; j < c.prefix; ++j) order.push_back(slot_of(j));
    order.insert(order.end(), extra.begin(), extra.begin() + c.extra);
    for (const int32_t slot : order) {
      const auto at = static_cast<ptrdiff_t>(offset_of(slot));
      std::copy_n(all_keys.begin() + at, dim, keys.begin() + at);
      std::copy_n(all_values.begin() + at, dim, values.begin() + at);
    }
    const float scale = 1.0f / std::sqrt(static_cast<float>(dim));

    std::vector<double> expected(group * dim, 0.0);
    for (size_t h = 0; h < group; ++h) {
      std::vector<double> scores;
      for (const int32_t slot : order) {
        double score = 0;
        const size_t at = offset_of(slot);
        for (size_t i = 0; i < dim; ++i) score += double{q[h * dim + i]} * keys[at + i];
        score *= scale;
        scores.push_back(c.soft_cap > 0 ? c.soft_cap * std::tanh(score / c.soft_cap) : score);
      }
      const double top = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (double& score : scores) sum += score = std::exp(score - top);
      for (size_t j = 0; j < order.size(); ++j) {
        for (size_t i = 0; i < dim; ++i) {
          expected[h * dim + i] += scores[j] / sum * values[offset_of(order[j]) + i];
        }
      }
    }

    std::vector<float> first;
    for (const KernelSet* kernels : Variants()) {
      Output out(group * dim);
      std::vector<float> scratch(
          static_cast<size_t>(AttentionScratch(positions, 1, c.group, c.head_dim)) + kGuard, kNan);
      AttentionRow row;
      row.q = q.data();
      row.out = out.data();
      row.first = c.first;
      row.prefix = c.prefix;
      row.extra = extra.data();
      row.extra_count = c.extra;
      AttentionArgs args;
      args.rows = &row;
      args.row_count = 1;
      args.keys = keys.data();
      args.values = values.data();
      args.page_stride = static_cast<int64_t>(stride);
      args.pages = pages.data();
      args.group = c.group;
      args.head_dim = c.head_dim;
      args.scale = scale;
      args.soft_cap = c.soft_cap;
      args.scratch = scratch.data();
      kernels->attention(args);
      const std::string label = std::string(kernels->name) + " " + std::to_string(c.prefix) + "+" +
                                std::to_string(c.extra) + " group " + std::to_string(c.group) +
                                " dim " + std::to_string(c.head_dim);
      // Scores of some size lose their own size in units of the last place before they are
      // exponents.
      EXPECT_LT(RelativeError(out.values(), expected),
                (Rounds(*kernels) ? 5e-3 : 2e-6) * std::max(1.0f, c.spread))
          << label;
      EXPECT_TRUE(out.GuardsIntact()) << label;
      for (size_t i = scratch.size() - kGuard; i < scratch.size(); ++i) {
        EXPECT_TRUE(std::isnan(scratch[i])) << label;
      }
      if (first.empty() || Rounds(*kernels)) first = out.values();
      EXPECT_EQ(out.values(), first) << label;

      // The same positions, all listed: the same bits.
      std::vector<int32_t> listed(static_cast<size_t>(c.first), -1);
      listed.insert(listed.end(), order.begin(), order.end());
      row.prefix = 0;
      row.extra = listed.data();
      row.extra_count = static_cast<int>(listed.size());
      Output again(group * dim);
      row.out = again.data();
      kernels->attention(args);
      EXPECT_EQ(again.values(), first) << label << " listed";
    }
  }
}

// Rows of one sequence that see different positions: each gets the bits that it gets alone.
TEST(KernelsTest, AttentionRowsAreIndependent) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    const int group = round % 40 == 0 ? 24 + static_cast<int>(random() % 30)
                                      : 1 + static_cast<int>(random() % 13);
    const int head_dim = 2 * (1 + static_cast<int>(random() % (round % 4 == 0 ? 80 : 33)));
    const auto width = static_cast<size_t>(group) * static_cast<size_t>(head_dim);
    const int row_count =
        1 + static_cast<int>(random() % static_cast<unsigned>(AttentionRows(group)));
    const int64_t most = 1 + static_cast<int64_t>(random() % 150);
    const auto page_count = static_cast<size_t>((most + kKvPage - 1) / kKvPage) + 4;
    const size_t stride = static_cast<size_t>(kKvPage * head_dim) + random() % 7;
    std::vector<int32_t> pages(page_count);
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), random);
    const std::vector<float> keys = Normal(random, page_count * stride),
                             values = Normal(random, page_count * stride),
                             q = Normal(random, static_cast<size_t>(row_count) * width, 3.0f);
    std::vector<int32_t> extra(64);
    for (int32_t& slot : extra) {
      slot = static_cast<int32_t>(random() % (page_count * static_cast<size_t>(kKvPage)));
    }
    std::vector<AttentionRow> rows(static_cast<size_t>(row_count));
    for (size_t r = 0; r < rows.size(); ++r) {
      AttentionRow& row = rows[r];
      row.q = q.data() + r * width;
      // Neighbours in a prompt, mostly; with a window half of the time.
      const auto n = static_cast<int64_t>(r);
      row.prefix = round % 3 == 0 ? static_cast<int64_t>(random()) % (most + 1)
                                  : std::max<int64_t>(0, most - row_count + 1 + n);
      const auto window = static_cast<int64_t>(random() % 40);
      row.extra = extra.data() + random() % 10;
      row.extra_count = round % 5 == 0 ? static_cast<int>(random() % 50) : 0;
      if (row.prefix == 0) row.extra_count += 1;
      const int64_t end = row.prefix + row.extra_count;
      if (round % 2 == 0) row.first = std::max<int64_t>(0, end - 1 - window);
    }
    AttentionArgs args;
    args.keys = keys.data();
    args.values = values.data();
    args.page_stride = static_cast<int64_t>(stride);
    args.pages = pages.data();
    args.group = group;
    args.head_dim = head_dim;
    args.scale = 0.2f;
    args.soft_cap = round % 7 == 0 ? 5.0f : 0.0f;
    std::vector<float> first;
    for (const KernelSet* kernels : Variants()) {
      std::vector<float> scratch(
          static_cast<size_t>(AttentionScratch(most + 64, row_count, group, head_dim)) + kGuard,
          kNan);
      args.scratch = scratch.data();
      Output together(rows.size() * width), alone(rows.size() * width);
      for (size_t r = 0; r < rows.size(); ++r) rows[r].out = together.data() + r * width;
      args.rows = rows.data();
      args.row_count = row_count;
      kernels->attention(args);
      args.row_count = 1;
      for (size_t r = 0; r < rows.size(); ++r) {
        rows[r].out = alone.data() + r * width;
        args.rows = &rows[r];
        kernels->attention(args);
      }
      const std::string label = std::string(kernels->name) + " round " + std::to_string(round);
      EXPECT_EQ(together.values(), alone.values()) << label;
      EXPECT_TRUE(together.GuardsIntact()) << label;
      for (size_t i = scratch.size() - kGuard; i < scratch.size(); ++i) {
        EXPECT_TRUE(std::isnan(scratch[i])) << label;
      }
      if (first.empty() || Rounds(*kernels)) first = together.values();
      EXPECT_EQ(together.values(), first) << label;
    }
  }
}

// Neither values that are not numbers nor memory that was never written reach rows that do not see
// them.
TEST(KernelsTest, AttentionSeesNothingElse) {
  Random random(8);
  constexpr int kDim = 40, kRows = 8;
  for (const float bad : {kNan, std::numeric_limits<float>::infinity()}) {
    const std::vector<int32_t> pages = {2, 0, 1, 3};
    const size_t stride = static_cast<size_t>(kKvPage) * kDim;
    std::vector<float> keys = Normal(random, 4 * stride), values = Normal(random, 4 * stride);
    const std::vector<float> q = Normal(random, kRows * kDim);
    const auto run = [&](const KernelSet& kernels, int count) {
      std::vector<float> scratch(static_cast<size_t>(AttentionScratch(64, count, 1, kDim)), kNan);
      std::vector<float> out(kRows * kDim, kNan);
      std::vector<AttentionRow> rows(static_cast<size_t>(count));
      for (size_t r = 0; r < rows.size(); ++r) {
        rows[r].q = q.data() + r * kDim;
        rows[r].out = out.data() + r * kDim;
        rows[r].prefix = 35 + static_cast<int64_t>(r);
        rows[r].first = 3 + static_cast<int64_t>(r);
      }
      AttentionArgs args;
      args.rows = rows.data();
      args.row_count = count;
      args.keys = keys.data();
      args.values = values.data();
      args.page_stride = static_cast<int64_t>(stride);
      args.pages = pages.data();
      args.group = 1;
      args.head_dim = kDim;
      args.scratch = scratch.data();
      kernels.attention(args);
      return out;
    };
    const auto at = [&](int64_t position) {
      return static_cast<size_t>(pages[static_cast<size_t>(position / kKvPage)] * kKvPage +
                                 position % kKvPage) *
             kDim;
    };
    for (const KernelSet* kernels : Variants()) {
      const std::vector<float> whole = run(*kernels, kRows);
      // Position 40 is seen by the last two rows, 2 and 42 by none.
      const std::vector<float> saved_keys = keys, saved_values = values;
      for (const int64_t position : {2, 40, 42}) {
        std::fill_n(keys.begin() + static_cast<long>(at(position)), kDim, bad);
        std::fill_n(values.begin() + static_cast<long>(at(position)), kDim, bad);
      }
      const std::vector<float> damaged = run(*kernels, kRows);
      keys = saved_keys;
      values = saved_values;
      EXPECT_EQ(std::memcmp(whole.data(), damaged.data(), 6 * kDim * sizeof(float)), 0)
          << kernels->name;
      EXPECT_FALSE(std::isfinite(damaged[6 * kDim])) << kernels->name;
      EXPECT_FALSE(std::isfinite(damaged[7 * kDim])) << kernels->name;
    }
  }
}

}  // namespace
}  // namespace pawl
