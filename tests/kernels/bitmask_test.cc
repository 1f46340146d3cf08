// Masks applied to logits: the CPU kernel against one bit at a time. (tests/cuda compares the CUDA
// kernel with the CPU's.)
#include "kernels/bitmask.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/device.h"

namespace pawl {
namespace {

struct Case {
  LogitType type;
  int64_t vocabulary;
  int rows;        // of logits and masks each; half of them take part
  bool listed;     // through logit_rows and mask_rows, shuffled
  double allowed;  // share of set bits
};

const Case kCases[] = {
    {LogitType::kF32, 1, 1, false, 0.5},      {LogitType::kF32, 32, 2, false, 0.0},
    {LogitType::kF32, 33, 5, true, 0.5},      {LogitType::kF16, 257, 8, true, 0.9},
    {LogitType::kBf16, 1023, 3, false, 1.0},  {LogitType::kBf16, 8192, 16, true, 0.001},
    {LogitType::kF16, 32000, 4, true, 0.999}, {LogitType::kF32, 128256, 6, true, 0.02},
    {LogitType::kBf16, 300001, 4, true, 0.5},
};

// The buffers of a case, filled at random; bytes rather than numbers, as no kernel may look at
// them.
struct Buffers {
  explicit Buffers(const Case& c, std::mt19937& random) {
    element = c.type == LogitType::kF32 ? 4 : 2;
    args.type = c.type;
    args.vocabulary = c.vocabulary;
    args.logits_stride = c.vocabulary + static_cast<int64_t>(random() % 7);
    args.masks_stride = (c.vocabulary + 31) / 32 + static_cast<int64_t>(random() % 3);
    args.count = (c.rows + 1) / 2;
    logits.resize(static_cast<size_t>(args.logits_stride * c.rows) * element);
    for (unsigned char& byte : logits) byte = static_cast<unsigned char>(random());
    std::bernoulli_distribution bit(c.allowed);
    masks.resize(static_cast<size_t>(args.masks_stride * c.rows));
    for (uint32_t& word : masks) {
      for (int i = 0; i < 32; ++i) word |= static_cast<uint32_t>(bit(random)) << i;
    }
    if (!c.listed) return;
    for (int i = 0; i < c.rows; ++i) logit_rows.push_back(i);
    std::shuffle(logit_rows.begin(), logit_rows.end(), random);
    for (int i = 0; i < args.count; ++i) {
      mask_rows.push_back(static_cast<int32_t>(random() % static_cast<unsigned>(c.rows)));
    }
  }
  // Points the arguments at the vectors.
  BitmaskArgs Host() {
    BitmaskArgs host = args;
    host.logits = logits.data();
    host.masks = masks.data();
    host.logit_rows = logit_rows.empty() ? nullptr : logit_rows.data();
    host.mask_rows = mask_rows.empty() ? nullptr : mask_rows.data();
    return host;
  }

  size_t element = 0;
  BitmaskArgs args;
  std::vector<unsigned char> logits;
  std::vector<uint32_t> masks;
  std::vector<int32_t> logit_rows, mask_rows;
};

// One bit at a time.
std::vector<unsigned char> Expected(Buffers& b) {
  std::vector<unsigned char> out = b.logits;
  const BitmaskArgs args = b.Host();
  for (int i = 0; i < args.count; ++i) {
    const int64_t row = args.logit_rows ? args.logit_rows[i] : i;
    const int64_t mask = args.mask_rows ? args.mask_rows[i] : i;
    for (int64_t t = 0; t < args.vocabulary; ++t) {
      if ((args.masks[mask * args.masks_stride + t / 32] >> t % 32 & 1) != 0) continue;
      unsigned char* p = out.data() + static_cast<size_t>(row * args.logits_stride + t) * b.element;
      const float minus_infinity = -__builtin_huge_valf();
      uint16_t half = args.type == LogitType::kF16 ? 0xfc00 : 0xff80;
      if (b.element == 4) {
        std::memcpy(p, &minus_infinity, 4);
      } else {
        std::memcpy(p, &half, 2);
      }
    }
  }
  return out;
}

TEST(BitmaskTest, Cpu) {
  std::mt19937 random(11);
  for (const Case& c : kCases) {
    Buffers buffers(c, random);
    const std::vector<unsigned char> expected = Expected(buffers);
    ApplyBitmask(buffers.Host());
    EXPECT_TRUE(buffers.logits == expected) << c.vocabulary;
  }
}

TEST(CudaTest, DevicesOrTheReasonWhyThereAreNone) {
  const CudaDevices found = FindCudaDevices();
  EXPECT_EQ(found.devices.empty(), !found.problem.empty());
#if defined(PAWL_HAVE_CUDA)
  EXPECT_TRUE(found.built);
#else
  EXPECT_FALSE(found.built);
  EXPECT_EQ(CudaDeviceSummary(), "not built with CUDA");
#endif
  for (const CudaDevice& device : found.devices) {
    EXPECT_FALSE(device.name.empty());
    EXPECT_GT(device.memory_bytes, 0);
  }
  EXPECT_FALSE(CudaDeviceSummary().empty());
}

}  // namespace
}  // namespace pawl
