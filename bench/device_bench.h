// What gpu_bench and kernel_bench share: errors that end a part, times on the device, and the two
// rates that everything is measured by.
#ifndef PAWL_BENCH_DEVICE_BENCH_H_
#define PAWL_BENCH_DEVICE_BENCH_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/runtime.h"

namespace pawl::PAWL_GPU {

// Ends a part.
struct Failure {
  Error error;
};
inline void Check(const Status& status) {
  if (!status.ok()) throw Failure{status.error()};
}
template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) throw Failure{result.error()};
  return *std::move(result);
}

inline double Median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Seconds on the device that one call takes, the median of the rounds.
inline double DeviceSeconds(int calls, int rounds, const std::function<Status()>& call) {
  const Mark begin = Must(NewMark()), end = Must(NewMark());
  std::vector<double> times;
  for (int round = 0; round <= rounds; ++round) {
    Check(Record(begin, nullptr));
    for (int i = 0; i < calls; ++i) Check(call());
    Check(Record(end, nullptr));
    Check(Synchronize(nullptr));
    // The first round warms up.
    if (round > 0) times.push_back(Must(Milliseconds(begin, end)) / 1e3 / calls);
  }
  FreeMark(begin);
  FreeMark(end);
  return Median(times);
}

// Random numbers that are cheap to make.
class Bits {
 public:
  explicit Bits(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  uint64_t operator()() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>((*this)() >> 32) % n; }
  // Between -1 and 1.
  float Number() { return static_cast<float>(static_cast<int32_t>((*this)() >> 32)) * 0x1p-31f; }

 private:
  uint64_t state_;
};

// bf16 numbers of either sign between 2^-6 and 1 in size. Constant bytes would flatter a product:
// its units switch less and may be clocked higher.
inline std::vector<uint16_t> RandomBf16(size_t count, uint64_t seed) {
  Bits random(seed);
  std::vector<uint16_t> values(count);
  for (uint16_t& value : values) {
    const uint64_t r = random();
    value = static_cast<uint16_t>((r & 0x807fu) | (121 + (r >> 32) % 6) << 7);
  }
  return values;
}

// Bytes of a large copy, read and written, a second.
inline double CopyRate(int64_t bytes, int rounds) {
  const DeviceMemory from = Must(DeviceMemory::Make(bytes)), to = Must(DeviceMemory::Make(bytes));
  Check(Fill(from.data(), 0x5a, bytes, nullptr));
  return 2.0 * static_cast<double>(bytes) / DeviceSeconds(10, rounds, [&] {
           return CopyWithin(to.data(), from.data(), bytes, nullptr);
         });
}

// FLOP/s of a large bf16 product of random numbers.
inline double ProductRate(Library& library, int size, int rows, int rounds) {
  const auto width = static_cast<size_t>(size);
  const DeviceMemory w = Must(DeviceMemory::Make(int64_t{size} * size * 2));
  const DeviceMemory x = Must(DeviceMemory::Make(int64_t{rows} * size * 2));
  const DeviceMemory y = Must(DeviceMemory::Make(int64_t{rows} * size * 4));
  Check(CopyIn(w.data(), RandomBf16(width * width, 1).data(), w.bytes(), nullptr));
  Check(CopyIn(x.data(), RandomBf16(width * static_cast<size_t>(rows), 2).data(), x.bytes(),
               nullptr));
  Check(Synchronize(nullptr));
  LibraryProduct product;
  product.w = w.as<uint16_t>();
  product.x = x.as<uint16_t>();
  product.y = y.as<float>();
  product.w_stride = product.x_stride = product.y_stride = size;
  product.outputs = product.columns = size;
  product.rows = rows;
  return 2.0 * size * size * rows /
         DeviceSeconds(5, rounds, [&] { return library.Run(product, nullptr); });
}

// Device memory moves in sectors.
constexpr int64_t kSectorBytes = 32;
inline int64_t Sectors(int64_t bytes) { return (bytes + kSectorBytes - 1) / kSectorBytes; }

// Bytes that have to move to write to the elements of a row whose bits are clear, and the mask's
// own: a sector that is written in whole is written, one that is written in part is read before,
// one that is not touched stays where it is. Rows begin at sectors.
inline int64_t MaskApplicationBytes(const uint32_t* mask, int64_t vocabulary, int element_bytes) {
  const int64_t of_sector = kSectorBytes / element_bytes;
  int64_t sectors = Sectors((vocabulary + 31) / 32 * 4);
  for (int64_t first = 0; first < vocabulary; first += of_sector) {
    const int64_t end = std::min(first + of_sector, vocabulary);
    int64_t refused = 0;
    for (int64_t t = first; t < end; ++t) refused += (mask[t / 32] >> t % 32 & 1) == 0;
    if (refused > 0) sectors += refused == of_sector ? 1 : 2;
  }
  return sectors * kSectorBytes;
}

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_BENCH_DEVICE_BENCH_H_
