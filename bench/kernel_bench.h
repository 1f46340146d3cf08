// What the parts of kernel_bench share: the shapes, a case, and what cases are made of.
//
// A kernel is a family of four files: what it is (kernels/cuda/NAME.cu, .cuh), what it means
// (kernels/cuda/reference/), its test (tests/cuda/NAME_test.cc) and its cases here
// (bench/kernel_NAME.cc). The benchmark compares with the same reference as the test, at the shapes
// that count, before it measures.
#ifndef PAWL_BENCH_KERNEL_BENCH_H_
#define PAWL_BENCH_KERNEL_BENCH_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "bench/device_bench.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/matrix.h"

namespace pawl::PAWL_GPU {

struct BenchShape {
  const char* name;
  int hidden, inner, heads, kv_heads, head_dim, vocabulary;
};

struct BenchSizes {
  std::vector<BenchShape> shapes;
  std::vector<int> rows, contexts;
  int prompt;          // rows of what prompts alone use, once more
  int64_t pool_bytes;  // so much of weights or of a cache takes turns, beyond what caches hold
  int64_t copy_bytes;
  int product, product_rows;
  int most_calls, rounds;
};

// A launch, or a few, of one kernel at one shape.
struct Case {
  double bytes = 0, flops = 0;  // that it cannot do without
  double bound = 0;             // of the error
  int turns = 1;
  // With the inputs of a turn, which have other memory in each. What the kernel in front leaves in
  // the L2 cache in a model (activations) is the same in all turns.
  std::function<Status(int turn, Stream stream)> run;
  // How far, relatively, what run(0) leaves is from the reference. Infinite where something was not
  // written.
  std::function<double()> error;
};

class KernelBench {
 public:
  explicit KernelBench(const BenchSizes& sizes) : sizes_(sizes) {}
  virtual ~KernelBench() = default;
  const BenchSizes& sizes() const { return sizes_; }
  // Makes the case and checks and measures it, unless others are asked for.
  virtual void Add(const std::string& kernel, const std::string& what,
                   const std::function<Case()>& make) = 0;

 private:
  const BenchSizes& sizes_;
};

// The families.
void BenchMatMul(KernelBench& bench);
void BenchExperts(KernelBench& bench);
void BenchHead(KernelBench& bench);
void BenchLayer(KernelBench& bench);
void BenchAttention(KernelBench& bench);
void BenchMasks(KernelBench& bench);

// ---- What cases are made of ----

// A vector in device memory; one that is made by its size is poisoned: all bytes are 0xff.
template <typename T>
class Device {
 public:
  explicit Device(const std::vector<T>& values) : Device(values.size()) {
    Check(CopyIn(data(), values.data(), memory_.bytes(), nullptr));
    Check(Synchronize(nullptr));
  }
  explicit Device(size_t size)
      : size_(size), memory_(Must(DeviceMemory::Make(static_cast<int64_t>(size * sizeof(T))))) {
    Poison();
  }
  T* data() const { return memory_.as<T>(); }
  void Poison() const {
    Check(Fill(memory_.data(), 0xff, memory_.bytes(), nullptr));
    Check(Synchronize(nullptr));
  }
  void Set(const std::vector<T>& values) const {
    Check(CopyIn(data(), values.data(), memory_.bytes(), nullptr));
    Check(Synchronize(nullptr));
  }
  std::vector<T> Values(size_t first, size_t count) const {
    std::vector<T> values(count);
    const auto bytes = static_cast<int64_t>(count * sizeof(T));
    Check(CopyOut(values.data(), data() + first, bytes, nullptr));
    Check(Synchronize(nullptr));
    return values;
  }
  std::vector<T> Values() const { return Values(0, size_); }

 private:
  size_t size_;
  DeviceMemory memory_;
};

// Fills device memory with the bytes, again and again.
inline void FillRepeated(const DeviceMemory& memory, const std::byte* bytes, int64_t count) {
  int64_t done = std::min(count, memory.bytes());
  Check(CopyIn(memory.data(), bytes, done, nullptr));
  while (done < memory.bytes()) {
    const int64_t more = std::min(done, memory.bytes() - done);
    Check(CopyWithin(memory.as<char>() + done, memory.data(), more, nullptr));
    done += more;
  }
  Check(Synchronize(nullptr));
}

inline std::vector<float> RandomFloats(size_t count, uint64_t seed, float size = 1.0f) {
  Bits random(seed);
  std::vector<float> values(count);
  for (float& v : values) v = random.Number() * size;
  return values;
}

// Bytes that are weights of a type, or elements of a cache, none of them NaN.
inline std::vector<std::byte> RandomWeights(DeviceWeight type, int64_t bytes, uint64_t seed) {
  std::vector<std::byte> all(static_cast<size_t>(bytes));
  // What repeats itself after so many bytes is random enough for a device.
  const size_t period = std::min(all.size(), size_t{12800016});
  Bits random(seed);
  for (size_t i = 0; i + 4 <= period; i += 4) {
    uint32_t word = static_cast<uint32_t>(random() >> 16);
    if (type == DeviceWeight::kF32) {
      word = (word & 0x807fffffu) | (121 + (word >> 24 & 3)) << 23;
    } else if (type == DeviceWeight::kBf16) {
      word = (word & 0x807f807fu) | (121 + (word >> 8 & 3)) << 23 | (121 + (word >> 24 & 3)) << 7;
    } else if (type == DeviceWeight::kF16) {
      word = (word & 0x83ff83ffu) | (9 + (word >> 12 & 3)) << 26 | (9 + (word >> 28 & 3)) << 10;
    } else if (type == DeviceWeight::kFp8) {
      word &= 0xbfbfbfbfu;  // sizes below 2
    }
    std::memcpy(all.data() + i, &word, 4);
  }
  for (size_t done = period; done < all.size(); done += period) {
    std::memcpy(all.data() + done, all.data(), std::min(period, all.size() - done));
  }
  return all;
}

// Matrices of one type, in host and device memory.
class WeightPool {
 public:
  // `most_bytes`: of the largest matrix; `most_rows`: of any.
  WeightPool(DeviceWeight type, int64_t most_bytes, int most_rows, int64_t pool_bytes)
      : type_(type), host_(RandomWeights(type, (most_bytes + 255) / 256 * 256, 11)) {
    device_ = Must(DeviceMemory::Make(std::max(pool_bytes, static_cast<int64_t>(host_.size()))));
    FillRepeated(device_, host_.data(), static_cast<int64_t>(host_.size()));
    Bits random(12);
    if (type == DeviceWeight::kFp8) {
      for (int r = 0; r < most_rows + kTileRows; ++r) {
        row_scales_.push_back(0.02f + 0.01f * random.Number());
      }
      device_row_scales_ = Must(DeviceMemory::Make(static_cast<int64_t>(row_scales_.size()) * 4));
      FillRepeated(device_row_scales_, reinterpret_cast<const std::byte*>(row_scales_.data()),
                   device_row_scales_.bytes());
    }
    if (type == DeviceWeight::kI8 || type == DeviceWeight::kI4) {
      // fp16 of about 2^-9, one for 32 weights.
      scales_.resize(host_.size() / (type == DeviceWeight::kI8 ? 32 : 16) + 64);
      for (uint16_t& scale : scales_) {
        scale = static_cast<uint16_t>(0x1800u | (random() & 0x3ffu));
      }
      const auto bytes = static_cast<int64_t>(scales_.size() * 2);
      const int64_t copies = device_.bytes() / static_cast<int64_t>(host_.size()) + 1;
      device_scales_ = Must(DeviceMemory::Make(bytes * copies));
      FillRepeated(device_scales_, reinterpret_cast<const std::byte*>(scales_.data()), bytes);
    }
  }

  // Of a matrix and its tables.
  int64_t Bytes(int rows, int columns) const {
    const int64_t scales = Groups(columns) * RowTiles(rows) * kTileRows * 2;
    return MatrixBytes(type_, rows, columns) +
           (type_ == DeviceWeight::kFp8 ? int64_t{rows} * 4 : scales);
  }
  int Turns(int rows, int columns) const {
    return static_cast<int>(std::clamp<int64_t>(device_.bytes() / Stride(rows, columns), 1, 256));
  }
  // The matrix of a turn; that of turn 0 is OnHost's. `second` (for gates): one further.
  DeviceMatrix OnDevice(int rows, int columns, int turn, bool second = false) const {
    const int turns = Turns(rows, columns);
    const int64_t at = (turn + (second ? 1 : 0)) % turns;
    DeviceMatrix matrix = Shape(rows, columns);
    matrix.data = device_.as<char>() + at * Stride(rows, columns);
    if (device_scales_.data() != nullptr) {
      matrix.scales = device_scales_.as<uint16_t>() + at * ScaleStride(rows, columns);
    }
    matrix.row_scales = device_row_scales_.as<float>();
    return matrix;
  }
  DeviceMatrix OnHost(int rows, int columns, bool second = false) const {
    const int64_t at = second ? 1 % Turns(rows, columns) : 0;
    DeviceMatrix matrix = Shape(rows, columns);
    matrix.data = host_.data() + at * Stride(rows, columns);
    if (!scales_.empty()) matrix.scales = scales_.data() + at * ScaleStride(rows, columns);
    matrix.row_scales = row_scales_.data();
    return matrix;
  }
  // Whether OnHost has the second matrix.
  static int64_t BytesForTwo(DeviceWeight type, int rows, int columns) {
    return 2 * ((MatrixBytes(type, rows, columns) + 255) / 256 * 256);
  }
  DeviceWeight type() const { return type_; }

 private:
  int64_t Groups(int columns) const {
    const bool grouped = type_ == DeviceWeight::kI8 || type_ == DeviceWeight::kI4;
    return grouped ? PaddedColumns(columns) / 32 : 0;
  }
  DeviceMatrix Shape(int rows, int columns) const {
    DeviceMatrix matrix;
    matrix.type = type_;
    matrix.rows = rows;
    matrix.columns = columns;
    matrix.groups = static_cast<int32_t>(Groups(columns));
    matrix.group_shift = 5;
    return matrix;
  }
  int64_t Stride(int rows, int columns) const {
    return (MatrixBytes(type_, rows, columns) + 255) / 256 * 256;
  }
  int64_t ScaleStride(int rows, int columns) const {
    return Groups(columns) * RowTiles(rows) * kTileRows;
  }

  DeviceWeight type_;
  std::vector<std::byte> host_;
  std::vector<uint16_t> scales_;
  std::vector<float> row_scales_;
  DeviceMemory device_, device_scales_, device_row_scales_;
};

inline const char* TypeName(DeviceWeight type) {
  constexpr const char* kNames[] = {"fp32", "bf16", "fp16", "fp8", "int8", "int4"};
  return kNames[static_cast<int>(type)];
}
inline const char* TypeName(CacheType type) {
  constexpr const char* kNames[] = {"fp32", "bf16", "fp8"};
  return kNames[static_cast<int>(type)];
}

// The distance of numbers from those that they should be, relative to those.
class Deviation {
 public:
  void Add(double got, double expected) {
    if (!std::isfinite(got)) bad_ = true;
    error_ += (got - expected) * (got - expected);
    size_ += expected * expected;
  }
  // Every one of them is a number: what was poisoned has been written.
  void Written(const std::vector<float>& values) {
    for (const float v : values) bad_ = bad_ || std::isnan(v);
  }
  // Should be the same.
  void Same(bool same) { bad_ = bad_ || !same; }
  double Relative() const {
    if (bad_) return std::numeric_limits<double>::infinity();
    return size_ > 0 ? std::sqrt(error_ / size_) : std::sqrt(error_);
  }

 private:
  double error_ = 0, size_ = 0;
  bool bad_ = false;
};

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_BENCH_KERNEL_BENCH_H_
