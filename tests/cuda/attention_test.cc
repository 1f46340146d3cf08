// Rotation, the cache and attention against double precision; rows in any company and paths of
// draft trees by their bits.
#include <algorithm>
#include <numeric>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/reference/kernels.h"
#include "tests/cuda/cuda_test_util.h"

namespace pawl::PAWL_GPU {
namespace {

// What comes back from a cache of that type.
double Kept(CacheType type, float value) {
  if (type == CacheType::kF32) return value;
  if (type == CacheType::kBf16) return RoundToBf16(value);
  double best = 0;
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7f) == 0x7f) continue;
    const double candidate = reference::E4m3Value(static_cast<uint8_t>(code));
    if (std::fabs(candidate - value) < std::fabs(best - value)) best = candidate;
  }
  return best;
}

struct AttentionCase {
  CacheType type;
  int heads, kv_heads, head_dim, length, window;
  float soft_cap;
  bool norm;
  bool sinks = false;
};
const AttentionCase kAttentionCases[] = {
    {CacheType::kF32, 4, 2, 16, 37, 0, 0, false},
    {CacheType::kBf16, 3, 1, 24, 300, 0, 0, true},
    {CacheType::kFp8, 8, 1, 64, 70, 0, 20, false},
    {CacheType::kBf16, 2, 2, 128, 530, 270, 0, false},
    {CacheType::kF32, 10, 1, 8, 20, 5, 0, true},
    {CacheType::kBf16, 8, 2, 256, 40, 0, 30, true},
    {CacheType::kBf16, 6, 3, 80, 290, 300, 0, false},
    {CacheType::kBf16, 4, 4, 12, 40, 0, 0, true},
    {CacheType::kFp8, 2, 1, 20, 30, 7, 0, false},
    {CacheType::kF32, 2, 1, 6, 30, 0, 0, false},
    // Short and long splits, and a window that begins in a long one.
    {CacheType::kBf16, 2, 1, 16, 4300, 0, 0, false},
    {CacheType::kFp8, 2, 2, 8, 4400, 200, 0, false},
    {CacheType::kBf16, 8, 2, 16, 90, 0, 0, false, true},
    {CacheType::kF32, 3, 1, 24, 40, 20, 5, false, true},
};

class AttentionTest : public GpuTest {};

// A sequence of `length` positions written by RotateAndStore in two calls and looked at by
// Attention; pages are handed out in a random order.
struct Sequence {
  Sequence(Random& random, const AttentionCase& test_case) : c(test_case) {
    const auto pages = static_cast<size_t>((c.length + 64 + kPageSize - 1) / kPageSize + 3);
    table.resize(pages);
    std::iota(table.begin(), table.end(), 0);
    std::shuffle(table.begin(), table.end(), random);
    width = (c.heads + 2 * c.kv_heads) * c.head_dim;
    qkv = Normal(random, static_cast<size_t>(c.length * width));
    q_norm = Normal(random, static_cast<size_t>(c.head_dim));
    k_norm = Normal(random, static_cast<size_t>(c.head_dim));
    // From far below all scores to far above them.
    sinks = Normal(random, static_cast<size_t>(c.heads), 3.0f);
    sinks[0] = -200.0f;
    sinks.back() += 10.0f;
    for (int p = 0; p < c.length; ++p) {
      for (int part = 0; part < 2; ++part) {
        for (int i = 0; i < c.head_dim / 2; ++i) {
          const double angle = p / std::pow(100.0, 2.0 * i / c.head_dim);
          rope.push_back(static_cast<float>(part == 0 ? std::cos(angle) : std::sin(angle)));
        }
      }
    }
    const size_t bytes = pages * static_cast<size_t>(c.kv_heads * kPageSize *
                                                     HeadStride(c.head_dim) * CacheBytes(c.type));
    keys = std::make_unique<OnDevice<std::byte>>(bytes);
    values = std::make_unique<OnDevice<std::byte>>(bytes);
    PAWL_EXPECT_OK(Fill(keys->data(), 0, static_cast<int64_t>(bytes), nullptr));
    PAWL_EXPECT_OK(Fill(values->data(), 0, static_cast<int64_t>(bytes), nullptr));
    device_table = std::make_unique<OnDevice<int32_t>>(table);
    cache.keys = keys->data();
    cache.values = values->data();
    cache.type = c.type;
    cache.kv_heads = c.kv_heads;
    cache.head_dim = c.head_dim;
  }

  int Slot(int position) const {
    return table[static_cast<size_t>(position / kPageSize)] * kPageSize + position % kPageSize;
  }
  DeviceRow Plain(int position) const {
    DeviceRow row;
    row.position = position;
    row.slot = Slot(position);
    row.prefix = position + 1;
    return row;
  }

  // Runs rows through both kernels, or through the first alone; `from[i]` is the position whose
  // activations row i has.
  std::vector<float> Run(const std::vector<DeviceRow>& rows, const std::vector<int>& from,
                         const std::vector<int32_t>& extra = {}, bool attend = true) {
    const auto count = static_cast<int>(rows.size());
    std::vector<float> input;
    for (const int p : from) {
      const auto begin = qkv.begin() + p * width;
      input.insert(input.end(), begin, begin + width);
    }
    const OnDevice<float> device_q_norm(q_norm), device_k_norm(k_norm), device_rope(rope);
    const OnDevice<DeviceRow> device_rows(rows);
    const OnDevice<int32_t> device_extra(extra);
    OnDevice<float> device_qkv(input);
    RotateAndStore rotate;
    rotate.qkv = device_qkv.data();
    rotate.stride = width;
    rotate.rows = device_rows.data();
    rotate.count = count;
    rotate.heads = c.heads;
    rotate.q_norm = c.norm ? device_q_norm.data() : nullptr;
    rotate.k_norm = c.norm ? device_k_norm.data() : nullptr;
    rotate.epsilon = 1e-6f;
    rotate.rope = device_rope.data();
    rotate.cache = cache;
    PAWL_EXPECT_OK(RunRotateAndStore(rotate, nullptr));
    if (!attend) return {};
    Attention attention;
    attention.q = device_qkv.data();
    attention.q_stride = width;
    attention.rows = device_rows.data();
    attention.count = count;
    attention.heads = c.heads;
    attention.tables = device_table->data();
    attention.extra = device_extra.data();
    attention.cache = cache;
    attention.scale = 0.3f;
    attention.soft_cap = c.soft_cap;
    attention.window = c.window;
    const OnDevice<float> device_sinks(sinks);
    if (c.sinks) attention.sinks = device_sinks.data();
    attention.most_positions = c.length;
    OnDevice<std::byte> partial(
        static_cast<size_t>(AttentionWorkspace(count, c.heads, c.head_dim, c.length)));
    attention.partial = reinterpret_cast<float*>(partial.data());
    attention.out_stride = c.heads * c.head_dim;
    return InAnyOrder<float>([&] {
      OnDevice<float> out(static_cast<size_t>(count * c.heads * c.head_dim));
      attention.out = out.data();
      PAWL_EXPECT_OK(RunAttention(attention, nullptr));
      return out.values();
    });
  }

  // PrefillAttention on the positions first .. first + count - 1, cut into the runs, as floats.
  // Their keys and values are in the cache.
  std::vector<float> Prefill(int first, int count, const std::vector<RowRun>& runs) {
    std::vector<DeviceRow> rows;
    for (int p = first; p < first + count; ++p) rows.push_back(Plain(p));
    return PrefillRows(rows, runs, false);
  }
  std::vector<float> PrefillRows(const std::vector<DeviceRow>& rows,
                                 const std::vector<RowRun>& runs, bool both_sides) {
    const auto count = static_cast<int>(rows.size());
    const OnDevice<DeviceRow> device_rows(rows);
    const OnDevice<float> device_rope(rope);
    std::vector<float> input;
    for (const DeviceRow& row : rows) {
      const auto begin = qkv.begin() + row.position * width;
      input.insert(input.end(), begin, begin + width);
    }
    OnDevice<float> device_qkv(input);
    RotateAndStore rotate;
    rotate.qkv = device_qkv.data();
    rotate.stride = width;
    rotate.rows = device_rows.data();
    rotate.count = count;
    rotate.heads = c.heads;
    rotate.rope = device_rope.data();
    rotate.cache = cache;
    const int width_of_queries = c.heads * c.head_dim;
    OnDevice<uint16_t> queries(static_cast<size_t>(count * width_of_queries));
    rotate.rounded = queries.data();
    rotate.rounded_stride = width_of_queries;
    PAWL_EXPECT_OK(RunRotateAndStore(rotate, nullptr));
    const OnDevice<RowRun> device_runs(runs);
    PrefillAttention attention;
    attention.q = queries.data();
    attention.q_stride = width_of_queries;
    attention.rows = device_rows.data();
    attention.runs = device_runs.data();
    attention.run_count = static_cast<int>(runs.size());
    attention.heads = c.heads;
    attention.tables = device_table->data();
    attention.cache = cache;
    attention.scale = 0.3f;
    attention.soft_cap = c.soft_cap;
    attention.window = c.window;
    attention.both_sides = both_sides;
    const OnDevice<float> device_sinks(sinks);
    if (c.sinks) attention.sinks = device_sinks.data();
    attention.out_stride = c.heads * c.head_dim;
    const std::vector<uint16_t> halves = InAnyOrder<uint16_t>([&] {
      OnDevice<uint16_t> out(static_cast<size_t>(count * c.heads * c.head_dim));
      attention.out = out.data();
      PAWL_EXPECT_OK(RunPrefillAttention(attention, nullptr));
      return out.values();
    });
    std::vector<float> floats;
    for (const uint16_t half : halves) {
      const uint32_t bits = uint32_t{half} << 16;
      float value;
      std::memcpy(&value, &bits, sizeof value);
      floats.push_back(value);
    }
    return floats;
  }

  // The vector of a head after norm and rotation.
  std::vector<double> Rotated(int position, int head) const {
    DeviceRow row;
    row.position = position;
    RotateAndStore args;
    args.qkv = const_cast<float*>(qkv.data()) + position * width;
    args.rows = &row;
    args.heads = c.heads;
    args.q_norm = c.norm ? q_norm.data() : nullptr;
    args.k_norm = c.norm ? k_norm.data() : nullptr;
    args.epsilon = 1e-6f;
    args.rope = rope.data();
    args.cache = cache;
    return reference::RotatedAt(args, 0, head);
  }

  // The cache in host memory.
  struct HostCache {
    explicit HostCache(const Sequence& sequence)
        : keys(sequence.keys->values()), values(sequence.values->values()), cache(sequence.cache) {
      cache.keys = keys.data();
      cache.values = values.data();
    }
    std::vector<std::byte> keys, values;
    Cache cache;
  };
  // How far, at most, what the cache holds of the positions below `length` is from the vectors
  // that went into it, rounded to its type. Says that keys and values are where they belong, which
  // Expected takes for granted.
  double CacheError(const HostCache& host, int length) const {
    double worst = 0;
    for (int kv = 0; kv < c.kv_heads; ++kv) {
      for (int j = 0; j < length; ++j) {
        const std::vector<double> key = Rotated(j, c.heads + kv);
        const float* value = qkv.data() + j * width + (c.heads + c.kv_heads + kv) * c.head_dim;
        for (int d = 0; d < c.head_dim; ++d) {
          const double kept[] = {Kept(c.type, static_cast<float>(key[static_cast<size_t>(d)])),
                                 Kept(c.type, value[d])};
          const double got[] = {reference::CacheAt(host.cache, host.cache.keys, Slot(j), kv, d),
                                reference::CacheAt(host.cache, host.cache.values, Slot(j), kv, d)};
          for (int i = 0; i < 2; ++i) {
            worst = std::max(worst, std::fabs(kept[i] - got[i]) / (1e-2 + std::fabs(kept[i])));
          }
        }
      }
    }
    return worst;
  }
  // Of a row that sees the first `seen` positions; 0: those up to its own.
  std::vector<double> Expected(const HostCache& host, int position, int seen = 0) const {
    DeviceRow row = Plain(position);
    if (seen > 0) row.prefix = seen;
    std::vector<float> queries;
    std::vector<double> all;
    for (int h = 0; h < c.heads; ++h) {
      for (const double v : Rotated(position, h)) queries.push_back(static_cast<float>(v));
    }
    Attention args;
    args.q = queries.data();
    args.rows = &row;
    args.heads = c.heads;
    args.tables = table.data();
    args.cache = host.cache;
    args.scale = 0.3f;
    args.soft_cap = c.soft_cap;
    args.window = c.window;
    if (c.sinks) args.sinks = sinks.data();
    for (int h = 0; h < c.heads; ++h) {
      for (const double v : reference::AttentionAt(args, 0, h)) all.push_back(v);
    }
    return all;
  }

  AttentionCase c;
  int width = 0;
  std::vector<int32_t> table;
  std::vector<float> qkv, q_norm, k_norm, rope, sinks;
  std::unique_ptr<OnDevice<std::byte>> keys, values;
  std::unique_ptr<OnDevice<int32_t>> device_table;
  Cache cache;
};

TEST_F(AttentionTest, EqualsDoublePrecisionInAnyCompany) {
  Random random(1);
  for (const AttentionCase& c : kAttentionCases) {
    Sequence sequence(random, c);
    const std::string label = std::to_string(c.heads) + "/" + std::to_string(c.kv_heads) + " x " +
                              std::to_string(c.head_dim) + ", " + std::to_string(c.length);
    // All but the last few positions, in one call; then those, in another.
    std::vector<DeviceRow> rows;
    std::vector<int> from;
    const int last = 5;
    for (int p = 0; p < c.length - last; ++p) {
      rows.push_back(sequence.Plain(p));
      from.push_back(p);
    }
    std::vector<DeviceRow> checked;
    std::vector<int> checked_from;
    (void)sequence.Run(rows, from, {}, false);
    for (int p = c.length - last; p < c.length; ++p) {
      checked.push_back(sequence.Plain(p));
      checked_from.push_back(p);
    }
    checked.push_back(sequence.Plain(0));
    checked_from.push_back(0);
    checked.push_back(DeviceRow());  // padding
    checked_from.push_back(0);
    const std::vector<float> got = sequence.Run(checked, checked_from);
    const Sequence::HostCache host(sequence);
    // A number between two that the type has can fall the other way.
    EXPECT_LT(sequence.CacheError(host, c.length), c.type == CacheType::kF32    ? 1e-4
                                                   : c.type == CacheType::kBf16 ? 1e-2
                                                                                : 0.15)
        << label;
    const auto size = static_cast<size_t>(c.heads * c.head_dim);
    for (size_t r = 0; r + 1 < checked.size(); ++r) {
      const std::vector<double> expected = sequence.Expected(host, checked_from[r]);
      double error = 0, norm = 0;
      for (size_t i = 0; i < size; ++i) {
        const double difference = got[r * size + i] - expected[i];
        error += difference * difference;
        norm += expected[i] * expected[i];
      }
      EXPECT_LT(std::sqrt(error / norm), 1e-5) << label << " row " << r;
      const std::vector<float> alone = sequence.Run({checked[r]}, {checked_from[r]});
      EXPECT_EQ(std::memcmp(alone.data(), got.data() + r * size, size * 4), 0) << label;
    }
    for (size_t i = 0; i < size; ++i) EXPECT_EQ(got[(checked.size() - 1) * size + i], 0.0f);
  }
}

// The same tokens as a plain run and as a path of a tree whose rows lie elsewhere.
TEST_F(AttentionTest, PathOfATreeHasTheBitsOfThePlainRun) {
  Random random(2);
  for (const AttentionCase& c : kAttentionCases) {
    Sequence sequence(random, c);
    std::vector<DeviceRow> rows;
    std::vector<int> from;
    for (int p = 0; p < c.length; ++p) {
      rows.push_back(sequence.Plain(p));
      from.push_back(p);
    }
    // The last eight positions again, as tree rows in the slots behind, every second slot unused.
    const int depth = std::min(8, c.length - 1), base = c.length - depth;
    (void)sequence.Run({rows.begin(), rows.begin() + base}, {from.begin(), from.begin() + base}, {},
                       false);
    const std::vector<float> plain =
        sequence.Run({rows.begin() + base, rows.end()}, {from.begin() + base, from.end()});
    std::vector<DeviceRow> tree;
    std::vector<int> tree_from;
    std::vector<int32_t> extra;
    for (int i = 0; i < depth; ++i) {
      DeviceRow row;
      row.position = base + i;
      row.slot = sequence.Slot(c.length + 2 * i + 1);
      row.prefix = base;
      row.extra_begin = static_cast<int32_t>(extra.size());
      for (int k = 0; k <= i; ++k) extra.push_back(sequence.Slot(c.length + 2 * k + 1));
      row.extra_count = i + 1;
      tree.push_back(row);
      tree_from.push_back(base + i);
    }
    const std::vector<float> got = sequence.Run(tree, tree_from, extra);
    ASSERT_EQ(got.size(), plain.size());
    EXPECT_EQ(std::memcmp(got.data(), plain.data(), got.size() * sizeof(float)), 0) << c.head_dim;
  }
}

// Plain rows and rows of trees of one sequence, padding among them.
TEST_F(AttentionTest, RowsOfATreeHaveTheBitsThatTheyHaveAlone) {
  Random random(3);
  for (const AttentionCase& c : kAttentionCases) {
    if (c.length > 1000) continue;  // EqualsDoublePrecisionInAnyCompany has them
    Sequence sequence(random, c);
    const int base = c.length - 6;
    std::vector<DeviceRow> rows;
    std::vector<int> from;
    for (int p = 0; p < base; ++p) {
      rows.push_back(sequence.Plain(p));
      from.push_back(p);
    }
    (void)sequence.Run(rows, from, {}, false);
    rows.clear();
    from.clear();
    std::vector<int32_t> extra;
    for (int p = base; p < base + 3; ++p) {
      rows.push_back(sequence.Plain(p));
      from.push_back(p);
    }
    // Rows of a tree, each of which sees some of those before it.
    std::vector<int32_t> slots;
    for (int i = 0; i < 12; ++i) {
      DeviceRow row;
      row.slot = sequence.Slot(c.length + i);
      row.prefix = base;
      row.extra_begin = static_cast<int32_t>(extra.size());
      for (const int32_t slot : slots) {
        if (row.extra_count < 5 && random() % 2 == 0) {
          extra.push_back(slot);
          ++row.extra_count;
        }
      }
      extra.push_back(row.slot);
      ++row.extra_count;
      row.position = base + row.extra_count - 1;
      slots.push_back(row.slot);
      rows.push_back(row);
      from.push_back(row.position);
    }
    rows.push_back(DeviceRow());
    from.push_back(0);
    const std::vector<float> together = sequence.Run(rows, from, extra);
    const auto size = static_cast<size_t>(c.heads * c.head_dim);
    for (size_t r = 0; r < rows.size(); ++r) {
      const std::vector<float> alone = sequence.Run({rows[r]}, {from[r]}, extra);
      EXPECT_EQ(std::memcmp(alone.data(), together.data() + r * size, size * sizeof(float)), 0)
          << c.heads << "/" << c.kv_heads << " x " << c.head_dim << ", " << c.length << ", row "
          << r;
    }
  }
}

// Tiles of queries on tensor cores, large ones where there are many heads; behind a window, where a
// query sees nothing of the first tiles of keys, and where all scores are far below zero: a weight
// is relative to the largest score that the query sees.
TEST_F(AttentionTest, PromptsInTilesEqualDoublePrecision) {
  Random random(4);
  for (const AttentionCase& c : {AttentionCase{CacheType::kBf16, 4, 2, 16, 150, 20, 0, false},
                                 AttentionCase{CacheType::kF32, 2, 1, 80, 150, 33, 0, false},
                                 AttentionCase{CacheType::kFp8, 2, 2, 136, 70, 0, 50, false},
                                 AttentionCase{CacheType::kBf16, 96, 3, 24, 135, 40, 0, false},
                                 AttentionCase{CacheType::kBf16, 2, 1, 64, 100, 0, 0, false},
                                 AttentionCase{CacheType::kBf16, 4, 1, 32, 90, 25, 0, false, true},
                                 AttentionCase{CacheType::kF32, 3, 3, 16, 70, 0, 9, false, true}}) {
    Sequence sequence(random, c);
    const bool far_below = c.head_dim == 16;
    for (size_t i = 0; i < sequence.rope.size() && far_below; ++i) {
      sequence.rope[i] = i % 16 < 8 ? 1.0f : 0.0f;  // nothing is turned
    }
    for (size_t i = 0; i < sequence.qkv.size(); ++i) {
      float& v = sequence.qkv[i];
      const auto element = static_cast<int>(i) % sequence.width;
      if (far_below && element < (c.heads + c.kv_heads) * c.head_dim) {
        v = element < c.heads * c.head_dim ? 5.0f : -5.0f + static_cast<float>(random() % 4) / 32;
      }
      v = RoundToBf16(element < c.heads * c.head_dim && !far_below ? v / 4 : v);
    }
    const int count = std::min(c.length, 130), first = c.length - count;
    if (first > 0) {
      std::vector<DeviceRow> rows;
      std::vector<int> from;
      for (int p = 0; p < first; ++p) {
        rows.push_back(sequence.Plain(p));
        from.push_back(p);
      }
      (void)sequence.Run(rows, from, {}, false);
    }
    std::vector<RowRun> whole, pieces;
    for (int i = 0; i < count; i += kPrefillTile) {
      whole.push_back({i, std::min(kPrefillTile, count - i)});
    }
    for (int i = 0; i < count; i += pieces.back().count) {
      pieces.push_back({i, std::min(1 + static_cast<int>(random() % 40), count - i)});
    }
    const std::vector<float> got = sequence.Prefill(first, count, whole);
    const Sequence::HostCache host(sequence);
    const auto size = static_cast<size_t>(c.heads * c.head_dim);
    double error = 0, norm = 0;
    for (size_t r = 0; r < static_cast<size_t>(count); ++r) {
      const std::vector<double> expected = sequence.Expected(host, first + static_cast<int>(r));
      for (size_t i = 0; i < size; ++i) {
        const double difference = got[r * size + i] - expected[i];
        error += difference * difference;
        norm += expected[i] * expected[i];
      }
    }
    EXPECT_LT(std::sqrt(error / norm), c.type == CacheType::kFp8 ? 4e-2 : 1e-2) << c.head_dim;
    const std::vector<float> again = sequence.Prefill(first, count, pieces);
    EXPECT_EQ(std::memcmp(again.data(), got.data(), got.size() * sizeof(float)), 0) << c.head_dim;
    // So few rows that small tiles are taken.
    const std::vector<float> few = sequence.Prefill(first + 40, 20, {{0, 20}});
    EXPECT_EQ(std::memcmp(few.data(), got.data() + 40 * size, 20 * size * sizeof(float)), 0)
        << c.head_dim;
  }
}

// Rows that see what stands behind them, with what some of them saw before kept. Positions need not
// follow each other.
TEST_F(AttentionTest, TilesOfBothSidesEqualDoublePrecision) {
  Random random(14);
  for (const AttentionCase& c :
       {AttentionCase{CacheType::kBf16, 4, 2, 64, 200, 0, 0, false},
        AttentionCase{CacheType::kF32, 3, 1, 24, 131, 0, 12, false},
        AttentionCase{CacheType::kBf16, 2, 1, 128, 64, 0, 0, false},
        AttentionCase{CacheType::kFp8, 2, 2, 256, 70, 0, 0, false, true}}) {
    Sequence sequence(random, c);
    for (size_t i = 0; i < sequence.qkv.size(); ++i) {
      const bool query = static_cast<int>(i) % sequence.width < c.heads * c.head_dim;
      sequence.qkv[i] = RoundToBf16(query ? sequence.qkv[i] / 4 : sequence.qkv[i]);
    }
    std::vector<DeviceRow> all, some;
    for (int p = 0; p < c.length; ++p) {
      all.push_back(sequence.Plain(p));
      all.back().prefix = c.length;
      if (p % 3 == 1 || p > c.length - 20) some.push_back(all.back());
    }
    const auto runs = [](size_t count, int most) {
      std::vector<RowRun> cut;
      for (int i = 0; i < static_cast<int>(count); i += cut.back().count) {
        cut.push_back({i, std::min(most, static_cast<int>(count) - i)});
      }
      return cut;
    };
    const auto size = static_cast<size_t>(c.heads * c.head_dim);
    const std::vector<float> got = sequence.PrefillRows(all, runs(all.size(), kPrefillTile), true);
    const Sequence::HostCache host(sequence);
    double error = 0, norm = 0;
    for (int p = 0; p < c.length; ++p) {
      const std::vector<double> expected = sequence.Expected(host, p, c.length);
      for (size_t i = 0; i < size; ++i) {
        const double difference = got[static_cast<size_t>(p) * size + i] - expected[i];
        error += difference * difference;
        norm += expected[i] * expected[i];
      }
    }
    EXPECT_LT(std::sqrt(error / norm), c.type == CacheType::kFp8 ? 4e-2 : 1e-2) << c.head_dim;
    const std::vector<float> again = sequence.PrefillRows(some, runs(some.size(), 21), true);
    for (size_t r = 0; r < some.size(); ++r) {
      EXPECT_EQ(std::memcmp(again.data() + r * size,
                            got.data() + static_cast<size_t>(some[r].position) * size,
                            size * sizeof(float)),
                0)
          << c.head_dim << ", " << some[r].position;
    }
  }
}

}  // namespace
}  // namespace pawl::PAWL_GPU
