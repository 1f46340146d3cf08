// The kernels of pawl/cuda_kernels.h: masks against the CPU kernel, tokens against the sampler,
// log-probabilities and the largest few against double precision.
#include <algorithm>
#include <memory>

#include "kernels/bitmask.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/reference/kernels.h"
#include "pawl/grammar.h"
#include "src/decode/sampler.h"
#include "tests/cuda/cuda_test_util.h"

namespace pawl::PAWL_GPU {
namespace {

// Rows of logits of any type with masks, some of them named through lists.
struct Rows {
  Rows(Random& random, LogitType type_of_logits, int64_t tokens, int rows, bool listed,
       double allowed)
      : type(type_of_logits), vocabulary(tokens) {
    logits_stride = vocabulary + static_cast<int64_t>(random() % 7);
    masks_stride = (vocabulary + 31) / 32 + static_cast<int64_t>(random() % 3);
    count = listed ? (rows + 1) / 2 : rows;
    for (const float v : Normal(random, static_cast<size_t>(logits_stride * rows), 4.0f)) {
      // Values that all three types hold, and few of them: ties happen.
      logits.push_back(std::round(v * 16) / 16);
    }
    std::bernoulli_distribution bit(allowed);
    masks.resize(static_cast<size_t>(masks_stride * rows));
    for (uint32_t& word : masks) {
      for (int i = 0; i < 32; ++i) word |= static_cast<uint32_t>(bit(random)) << i;
    }
    for (int i = 0; i < rows && listed; ++i) logit_rows.push_back(i);
    std::shuffle(logit_rows.begin(), logit_rows.end(), random);
    for (int i = 0; i < count && listed; ++i) {
      mask_rows.push_back(
          i % 4 == 3 ? -1 : static_cast<int32_t>(random() % static_cast<unsigned>(rows)));
    }
  }
  std::vector<std::byte> Bytes() const {
    const size_t size = type == LogitType::kF32 ? 4 : 2;
    std::vector<std::byte> bytes(logits.size() * size);
    for (size_t i = 0; i < logits.size(); ++i) {
      if (type == LogitType::kF32) {
        std::memcpy(bytes.data() + i * 4, &logits[i], 4);
        continue;
      }
      uint16_t half = Bf16Bits(logits[i]);
      if (type == LogitType::kF16) {
        int exponent = 0;
        const float fraction = std::frexp(std::fabs(logits[i]), &exponent);
        half = logits[i] == 0
                   ? uint16_t{0}
                   : static_cast<uint16_t>((exponent + 14) << 10 |
                                           (static_cast<int>(std::ldexp(fraction, 11)) & 1023));
        if (std::isinf(logits[i])) half = 0x7c00;
        if (std::isnan(logits[i])) half = 0x7e00;
        if (std::signbit(logits[i])) half = static_cast<uint16_t>(half | 0x8000);
      }
      std::memcpy(bytes.data() + i * 2, &half, 2);
    }
    return bytes;
  }
  size_t LogitRow(int i) const {
    return static_cast<size_t>(logit_rows.empty() ? i : logit_rows[static_cast<size_t>(i)]);
  }
  // -1: no mask.
  int MaskRow(int i) const { return mask_rows.empty() ? i : mask_rows[static_cast<size_t>(i)]; }
  std::span<const float> Logits(int i) const {
    return std::span(logits).subspan(LogitRow(i) * static_cast<size_t>(logits_stride),
                                     static_cast<size_t>(vocabulary));
  }
  // What the kernels are given, in host memory; `bytes`: Bytes().
  MaskedRows OnHost(const std::vector<std::byte>& bytes) const {
    MaskedRows args;
    args.logits = bytes.data();
    args.type = type;
    args.logits_stride = logits_stride;
    args.vocabulary = vocabulary;
    args.masks = masks.data();
    args.masks_stride = masks_stride;
    args.logit_rows = logit_rows.empty() ? nullptr : logit_rows.data();
    args.mask_rows = mask_rows.empty() ? nullptr : mask_rows.data();
    args.count = count;
    return args;
  }
  std::unique_ptr<Mask> MaskOf(int i) const {
    if (MaskRow(i) < 0) return nullptr;
    const auto begin = masks.begin() + MaskRow(i) * masks_stride;
    std::vector<uint32_t> words(begin, begin + (vocabulary + 31) / 32);
    if (vocabulary % 32 != 0) words.back() &= (1u << vocabulary % 32) - 1;
    return std::make_unique<Mask>(0, std::move(words));
  }

  LogitType type;
  int64_t vocabulary, logits_stride = 0, masks_stride = 0;
  int count = 0;
  std::vector<float> logits;
  std::vector<uint32_t> masks;
  std::vector<int32_t> logit_rows, mask_rows;
};

// The same in device memory.
struct DeviceRows {
  explicit DeviceRows(const Rows& rows)
      : logits(rows.Bytes()),
        masks(rows.masks),
        logit_rows(rows.logit_rows),
        mask_rows(rows.mask_rows),
        workspace(static_cast<size_t>(WorkspaceBytes(rows.count, rows.vocabulary))) {
    args.logits = logits.data();
    args.type = rows.type;
    args.logits_stride = rows.logits_stride;
    args.vocabulary = rows.vocabulary;
    args.masks = masks.data();
    args.masks_stride = rows.masks_stride;
    args.logit_rows = rows.logit_rows.empty() ? nullptr : logit_rows.data();
    args.mask_rows = rows.mask_rows.empty() ? nullptr : mask_rows.data();
    args.count = rows.count;
  }
  OnDevice<std::byte> logits;
  OnDevice<uint32_t> masks;
  OnDevice<int32_t> logit_rows, mask_rows;
  OnDevice<std::byte> workspace;
  MaskedRows args;
};

struct RowsCase {
  LogitType type;
  int64_t vocabulary;
  int rows;
  bool listed;
  double allowed;
};
const RowsCase kRowsCases[] = {
    {LogitType::kF32, 1, 1, false, 0.5},     {LogitType::kF32, 32, 2, false, 0.0},
    {LogitType::kF32, 33, 5, true, 0.5},     {LogitType::kF16, 257, 8, true, 0.9},
    {LogitType::kBf16, 1023, 3, false, 1.0}, {LogitType::kBf16, 8192, 9, true, 0.001},
    {LogitType::kF16, 9000, 4, true, 0.999}, {LogitType::kF32, 32001, 3, true, 0.02},
};

class MaskedRowsTest : public GpuTest {};

TEST_F(MaskedRowsTest, BitmaskEqualsCpu) {
  Random random(1);
  for (const RowsCase& c : kRowsCases) {
    Rows rows(random, c.type, c.vocabulary, c.rows, c.listed, c.allowed);
    std::vector<std::byte> expected = rows.Bytes();
    BitmaskArgs args;
    args.logits = expected.data();
    args.type = rows.type;
    args.logits_stride = rows.logits_stride;
    args.vocabulary = rows.vocabulary;
    args.masks = rows.masks.data();
    args.masks_stride = rows.masks_stride;
    args.logit_rows = c.listed ? rows.logit_rows.data() : nullptr;
    args.mask_rows = c.listed ? rows.mask_rows.data() : nullptr;
    args.count = rows.count;
    pawl::ApplyBitmask(args);
    const std::vector<std::byte> got = InAnyOrder<std::byte>([&] {
      const DeviceRows device(rows);
      BitmaskArgs on_device = args;
      on_device.logits = device.logits.data();
      on_device.masks = device.masks.data();
      on_device.logit_rows = device.args.logit_rows;
      on_device.mask_rows = device.args.mask_rows;
      PAWL_EXPECT_OK(ApplyBitmask(on_device, nullptr));
      return device.logits.values();
    });
    EXPECT_TRUE(got == expected) << c.vocabulary;
  }
}

// With so many rows a block has more than one part of its row to go over. Most have no mask.
TEST_F(MaskedRowsTest, BitmaskOfManyRowsEqualsCpu) {
  Random random(5);
  for (const LogitType type : {LogitType::kF32, LogitType::kBf16}) {
    const Rows rows(random, type, 33001, 2, false, 0.6);
    std::vector<std::byte> expected = rows.Bytes();
    std::vector<int32_t> logit_rows(1000), mask_rows(1000, -1);
    for (const size_t i : {size_t{0}, size_t{999}}) {
      logit_rows[i] = i == 0;
      mask_rows[i] = i != 0;
    }
    BitmaskArgs args;
    args.logits = expected.data();
    args.type = type;
    args.logits_stride = rows.logits_stride;
    args.vocabulary = rows.vocabulary;
    args.masks = rows.masks.data();
    args.masks_stride = rows.masks_stride;
    args.logit_rows = logit_rows.data();
    args.mask_rows = mask_rows.data();
    args.count = 1000;
    pawl::ApplyBitmask(args);
    const DeviceRows device(rows);
    const OnDevice<int32_t> device_logit_rows(logit_rows), device_mask_rows(mask_rows);
    args.logits = device.logits.data();
    args.masks = device.masks.data();
    args.logit_rows = device_logit_rows.data();
    args.mask_rows = device_mask_rows.data();
    PAWL_EXPECT_OK(ApplyBitmask(args, nullptr));
    EXPECT_TRUE(device.logits.values() == expected);
  }
}

TEST_F(MaskedRowsTest, TokensAreTheSamplers) {
  Random random(2);
  for (const RowsCase& c : kRowsCases) {
    Rows rows(random, c.type, c.vocabulary, c.rows, c.listed, c.allowed);
    const auto count = static_cast<size_t>(rows.count);
    std::vector<float> temperatures;
    std::vector<uint64_t> seeds, positions;
    for (size_t i = 0; i < count; ++i) {
      temperatures.push_back(i % 3 == 0 ? 0.0f : i % 3 == 1 ? 0.8f : 5.0f);
      seeds.push_back(uint64_t{random()} << 32 | random());
      positions.push_back(random());
    }
    const DeviceRows device(rows);
    const OnDevice<float> device_temperatures(temperatures);
    const OnDevice<uint64_t> device_seeds(seeds), device_positions(positions);
    OnDevice<int32_t> tokens(count);
    SampleArgs args;
    args.rows = device.args;
    args.temperatures = device_temperatures.data();
    args.seeds = device_seeds.data();
    args.positions = device_positions.data();
    args.tokens = tokens.data();
    args.workspace = device.workspace.data();
    const std::vector<int32_t> got = InAnyOrder<int32_t>([&] {
      PAWL_EXPECT_OK(Sample(args, nullptr));
      return tokens.values();
    });
    const std::vector<std::byte> bytes = rows.Bytes();
    const MaskedRows host = rows.OnHost(bytes);
    for (int i = 0; i < rows.count; ++i) {
      const auto n = static_cast<size_t>(i);
      Sampler sampler({.temperature = temperatures[n], .seed = seeds[n]});
      const std::unique_ptr<Mask> mask = rows.MaskOf(i);
      const Result<TokenId> expected = sampler.Sample(rows.Logits(i), mask.get(), positions[n], {});
      EXPECT_EQ(got[n], expected.ok() ? *expected : kNothingAllowed) << c.vocabulary << " " << i;
      EXPECT_EQ(got[n], reference::Draw(host, i, temperatures[n], seeds[n], positions[n]));
    }
  }
}

TEST_F(MaskedRowsTest, BrokenAndEndlessLogits) {
  Random random(3);
  Rows rows(random, LogitType::kF32, 5000, 4, false, 1.0);
  const float infinity = std::numeric_limits<float>::infinity();
  const auto at = [&](int row, int token) -> float& {
    return rows.logits[static_cast<size_t>(row * rows.logits_stride + token)];
  };
  at(0, 4321) = kNan;
  at(1, 7) = infinity;
  for (int t = 0; t < 5000; ++t) at(2, t) = -infinity;
  at(3, 100) = -infinity;
  const DeviceRows device(rows);
  OnDevice<int32_t> tokens(size_t{4});
  SampleArgs args;
  args.rows = device.args;
  args.tokens = tokens.data();
  args.workspace = device.workspace.data();
  PAWL_EXPECT_OK(Sample(args, nullptr));
  const std::vector<int32_t> got = tokens.values();
  EXPECT_EQ(got[0], kBrokenLogits);
  EXPECT_EQ(got[1], kBrokenLogits);
  EXPECT_EQ(got[2], 0);
  Sampler sampler({});
  EXPECT_EQ(got[3], *sampler.Sample(rows.Logits(3), nullptr, 0, {}));
}

// So many rows that a block goes over more than one chunk; flat ones, where every token may win,
// and temperatures with which sizes overflow.
TEST_F(MaskedRowsTest, TokensOfManyRowsAreTheSamplers) {
  Random random(6);
  constexpr int64_t kVocabulary = 8200;
  Rows rows(random, LogitType::kF32, kVocabulary, 6, false, 0.5);
  const auto row = [&](int i) { return rows.logits.begin() + i * rows.logits_stride; };
  const float infinity = std::numeric_limits<float>::infinity();
  std::fill(row(1), row(2), 2.5f);
  std::fill(row(2), row(3), -infinity);
  std::fill(row(3), row(4), 1e30f);
  std::transform(row(4), row(5), row(4), [](float l) { return l * 1e36f; });
  for (auto at = row(5); at < row(6); at += 2) *at = -infinity;
  rows.count = 400;
  std::vector<float> temperatures;
  std::vector<uint64_t> seeds, positions;
  for (int i = 0; i < rows.count; ++i) {
    rows.logit_rows.push_back(i % 6);
    rows.mask_rows.push_back(i % 7 - 1);
    constexpr float kTemperatures[] = {1.0f, 0.3f, 4.0f, 1e-30f, 1e37f};
    temperatures.push_back(kTemperatures[random() % 5]);
    seeds.push_back(uint64_t{random()} << 32 | random());
    positions.push_back(random());
  }
  const DeviceRows device(rows);
  const OnDevice<float> device_temperatures(temperatures);
  const OnDevice<uint64_t> device_seeds(seeds), device_positions(positions);
  OnDevice<int32_t> tokens(static_cast<size_t>(rows.count));
  SampleArgs args;
  args.rows = device.args;
  args.temperatures = device_temperatures.data();
  args.seeds = device_seeds.data();
  args.positions = device_positions.data();
  args.tokens = tokens.data();
  args.workspace = device.workspace.data();
  PAWL_EXPECT_OK(Sample(args, nullptr));
  const std::vector<int32_t> got = tokens.values();
  for (int i = 0; i < rows.count; ++i) {
    const auto n = static_cast<size_t>(i);
    Sampler sampler({.temperature = temperatures[n], .seed = seeds[n]});
    const std::unique_ptr<Mask> mask = rows.MaskOf(i);
    const Result<TokenId> expected = sampler.Sample(rows.Logits(i), mask.get(), positions[n], {});
    EXPECT_EQ(got[n], expected.ok() ? *expected : kNothingAllowed)
        << "row " << i % 6 << ", T " << temperatures[n];
  }
}

// The largest tokens next to each other, where one warp has them all, and all equal.
TEST_F(MaskedRowsTest, TopKOfSortedAndEqualLogits) {
  Random random(7);
  Rows rows(random, LogitType::kBf16, 20000, 3, false, 0.9);
  const auto row = [&](int i) { return rows.logits.begin() + i * rows.logits_stride; };
  for (int t = 0; t < 20000; ++t) row(0)[t] = RoundToBf16(static_cast<float>(20000 - t));
  std::fill(row(1), row(2), -3.0f);
  const DeviceRows device(rows);
  OnDevice<int32_t> tokens(size_t{3 * kMostTopK});
  OnDevice<float> logprobs(size_t{3 * kMostTopK});
  TopKArgs args;
  args.rows = device.args;
  args.k = kMostTopK;
  args.tokens = tokens.data();
  args.logprobs = logprobs.data();
  args.workspace = device.workspace.data();
  PAWL_EXPECT_OK(TopK(args, nullptr));
  const std::vector<int32_t> got = tokens.values();
  const std::vector<std::byte> bytes = rows.Bytes();
  for (int i = 0; i < 3; ++i) {
    const auto begin = got.begin() + i * kMostTopK;
    EXPECT_EQ(std::vector<int32_t>(begin, begin + kMostTopK),
              reference::TopTokens(rows.OnHost(bytes), i, kMostTopK));
  }
}

TEST_F(MaskedRowsTest, LogSoftmaxAndTopK) {
  Random random(4);
  for (const RowsCase& c : kRowsCases) {
    Rows rows(random, c.type, c.vocabulary, c.rows, c.listed, c.allowed);
    const auto count = static_cast<size_t>(rows.count),
               vocabulary = static_cast<size_t>(c.vocabulary);
    const DeviceRows device(rows);
    LogSoftmaxArgs args;
    args.rows = device.args;
    args.out_stride = c.vocabulary;
    args.workspace = device.workspace.data();
    const std::vector<float> got = InAnyOrder<float>([&] {
      OnDevice<float> out(count * vocabulary);
      args.out = out.data();
      PAWL_EXPECT_OK(LogSoftmax(args, nullptr));
      return out.values();
    });
    const int k = c.vocabulary == 257 ? kMostTopK : 5;
    const auto k_size = static_cast<size_t>(k);
    OnDevice<int32_t> tokens(count * k_size);
    OnDevice<float> logprobs(count * k_size);
    TopKArgs top;
    top.rows = device.args;
    top.k = k;
    top.tokens = tokens.data();
    top.logprobs = logprobs.data();
    top.workspace = device.workspace.data();
    const std::vector<int32_t> top_tokens = InAnyOrder<int32_t>([&] {
      PAWL_EXPECT_OK(TopK(top, nullptr));
      return tokens.values();
    });
    const std::vector<float> top_logprobs = logprobs.values();
    const std::vector<std::byte> bytes = rows.Bytes();
    const MaskedRows host = rows.OnHost(bytes);
    for (int i = 0; i < rows.count; ++i) {
      const auto n = static_cast<size_t>(i);
      const std::vector<double> expected = reference::LogSoftmaxRow(host, i);
      for (size_t t = 0; t < vocabulary; ++t) {
        const float value = got[n * vocabulary + t];
        if (std::isinf(expected[t])) {
          ASSERT_EQ(value, -std::numeric_limits<float>::infinity());
        } else {
          ASSERT_NEAR(value, expected[t], 1e-5) << c.vocabulary;
        }
      }
      const std::vector<int32_t> expected_tokens = reference::TopTokens(host, i, k);
      for (size_t j = 0; j < k_size; ++j) {
        const int32_t token = expected_tokens[j];
        ASSERT_EQ(top_tokens[n * k_size + j], token) << c.vocabulary << " " << j;
        if (token < 0) continue;
        ASSERT_NEAR(top_logprobs[n * k_size + j], expected[static_cast<size_t>(token)], 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace pawl::PAWL_GPU
