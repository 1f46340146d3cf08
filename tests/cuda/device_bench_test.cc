// What the benchmarks measure by: bytes in sectors, and inputs that are not constant.
#include "bench/device_bench.h"

#include <map>
#include <set>

#include "tests/cuda/cuda_test_util.h"

namespace pawl::PAWL_GPU {
namespace {

// Byte by byte: which sectors a mask touches, and which of them only in part.
int64_t SlowBytes(const std::vector<uint32_t>& mask, int64_t vocabulary, int element_bytes) {
  std::map<int64_t, int64_t> written;  // bytes of each sector
  for (int64_t t = 0; t < vocabulary; ++t) {
    if ((mask[static_cast<size_t>(t / 32)] >> t % 32 & 1) != 0) continue;
    for (int b = 0; b < element_bytes; ++b) ++written[(t * element_bytes + b) / 32];
  }
  int64_t bytes = ((vocabulary + 31) / 32 * 4 + 31) / 32 * 32;
  for (const auto& [sector, count] : written) bytes += count == 32 ? 32 : 64;
  return bytes;
}

TEST(DeviceBenchTest, MasksMoveSectors) {
  Random random(1);
  for (const int element_bytes : {2, 4}) {
    for (const int64_t vocabulary : {1, 16, 31, 100, 1000}) {
      for (const double share : {0.0, 0.05, 0.5, 0.97, 1.0}) {
        std::bernoulli_distribution bit(share);
        std::vector<uint32_t> mask(static_cast<size_t>(vocabulary + 31) / 32);
        for (uint32_t& word : mask) {
          for (int i = 0; i < 32; ++i) word |= static_cast<uint32_t>(bit(random)) << i;
        }
        EXPECT_EQ(MaskApplicationBytes(mask.data(), vocabulary, element_bytes),
                  SlowBytes(mask, vocabulary, element_bytes))
            << vocabulary << " tokens, " << share;
      }
    }
  }
  // Half of the tokens at random: nearly every sector of 16 is written in part, so it is four times
  // what counting the bytes of refused tokens says.
  std::vector<uint32_t> mask(4000);
  for (uint32_t& word : mask) word = static_cast<uint32_t>(random());
  int64_t refused = 0;
  for (const uint32_t word : mask) refused += 32 - __builtin_popcount(word);
  EXPECT_GT(MaskApplicationBytes(mask.data(), 128000, 2), 15 * refused * 2 / 4);
}

TEST(DeviceBenchTest, InputsOfTheProductRateAreNotConstant) {
  const std::vector<uint16_t> values = RandomBf16(100000, 1);
  std::set<uint16_t> different(values.begin(), values.end());
  EXPECT_GT(different.size(), 1400u);  // of 2 x 6 x 128
  double sum = 0;
  for (const uint16_t bits : values) {
    const uint32_t wide = uint32_t{bits} << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    ASSERT_LT(std::fabs(value), 1.0f);
    ASSERT_GE(std::fabs(value), 0x1p-6f);
    sum += value;
  }
  EXPECT_LT(std::fabs(sum / 100000), 0.01);
  EXPECT_NE(RandomBf16(100, 2), RandomBf16(100, 1));
}

}  // namespace
}  // namespace pawl::PAWL_GPU
