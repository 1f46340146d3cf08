// What kernels are written in: CUDA C++ with a few words for the things that nvcc and the host
// emulation say differently, launches, and small arithmetic that all kernels share. Included by the
// .cu files alone.
//
// Kernels must give the same bits however many rows are in a call, so nothing here lets a compiler
// choose: the files are compiled without contraction of a * b + c, and Fma says where it is meant.
#ifndef PAWL_KERNELS_CUDA_DEVICE_LANGUAGE_H_
#define PAWL_KERNELS_CUDA_DEVICE_LANGUAGE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cuda/matrix.h"
#include "kernels/cuda/runtime.h"

#if defined(PAWL_CUDA_EMULATED)
#include PAWL_CUDA_EMULATED
#else
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define PAWL_SHARED(T, name, n) __shared__ __align__(16) T name[n]
#define PAWL_DYNAMIC_SHARED(T, name)                                   \
  extern __shared__ __align__(16) unsigned char pawl_dynamic_shared[]; \
  T* const name = reinterpret_cast<T*>(pawl_dynamic_shared)
#endif

namespace pawl::PAWL_GPU {

constexpr int kWarpSize = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

// ---- Launches ----

#if !defined(PAWL_CUDA_EMULATED)
// Each kernel may start before the one in front of it on the stream has ended (programmatic
// dependent launch, compute capability 9.0 on, unless AllowDependentLaunch forbids it), so all of
// them call DependencyWait before they touch what others write. Graphs keep it as an edge.
template <typename... Parameters, typename... Arguments>
Status Launch(const char* name, const Shape& shape, Stream stream, void (*kernel)(Parameters...),
              Arguments... arguments) {
  cudaError_t error = cudaSuccess;
  // Beyond 48 KB, static arrays counted, which are not known here.
  if (shape.dynamic_shared > 0) {
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shape.dynamic_shared));
  }
  int device = 0, major = 0;
  if (error == cudaSuccess) error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  }
  if (error == cudaSuccess) {
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim = {shape.cluster, 1, 1};
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    const bool clusters = major >= 9 && shape.cluster > 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(clusters ? shape.x : shape.x / shape.cluster, shape.y, shape.z);
    config.blockDim = dim3(shape.threads);
    config.dynamicSmemBytes = shape.dynamic_shared;
    config.stream = static_cast<cudaStream_t>(stream);
    config.attrs = clusters ? attributes : attributes + 1;
    config.numAttrs = (clusters ? 1 : 0) + (major >= 9 && DependentLaunchAllowed() ? 1 : 0);
    error = cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
  }
  if (error == cudaSuccess) return {};
  (void)cudaGetLastError();
  return Error{
      ErrorCode::kInternal,
      "CUDA error " + std::to_string(static_cast<int>(error)) + ": " + cudaGetErrorString(error),
      name};
}
#endif

// Waits until the kernel in front has ended and its writes can be seen, and lets the next kernel be
// set up meanwhile.
__device__ __forceinline__ void DependencyWait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#elif defined(PAWL_CUDA_EMULATED)
  emulation::DependencyWaited();
#endif
}

// The blocks of a cluster (Shape), which block of it this one is, and a barrier of all their
// threads.
__device__ __forceinline__ int ClusterBlocks() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  int blocks;
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
  return blocks;
#elif defined(PAWL_CUDA_EMULATED)
  return static_cast<int>(emulation::position.cluster);
#else
  return 1;
#endif
}
__device__ __forceinline__ int ClusterRank() {
  return static_cast<int>(blockIdx.x) % ClusterBlocks();
}
__device__ __forceinline__ void ClusterSync() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#elif defined(PAWL_CUDA_EMULATED)
  emulation::SyncCluster();
#else
  __syncthreads();
#endif
}

// What a shared array of this block is in another block of the cluster. That block must have
// started (ClusterSync) and must not end before this one has read.
template <typename T>
__device__ __forceinline__ const T* SharedOf(const T* shared, int rank) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  const T* there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(shared), "r"(rank));
  return there;
#elif defined(PAWL_CUDA_EMULATED)
  return static_cast<const T*>(emulation::SharedOf(shared, rank));
#else
  (void)rank;
  return shared;
#endif
}

// ---- Numbers ----

__device__ __forceinline__ float Fma(float a, float b, float c) { return fmaf(a, b, c); }

// About 2^x; 0 for results that are subnormal.
__device__ __forceinline__ float PowerOfTwo(float x) {
#if defined(__CUDA_ARCH__)
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#else
  return exp2f(x);
#endif
}

__device__ __forceinline__ float Bf16ToFloat(uint16_t bits) {
  return __uint_as_float(static_cast<uint32_t>(bits) << 16);
}
__device__ __forceinline__ float LowBf16(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float HighBf16(uint32_t pair) {
  return __uint_as_float(pair & 0xffff0000u);
}

// Two floats to bf16, to nearest even; `low` in the lower half.
__device__ __forceinline__ uint32_t PackBf16(float low, float high) {
#if defined(__CUDA_ARCH__)
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  const auto round = [](float value) {
    const uint32_t bits = __float_as_uint(value);
    if (value != value) return (bits >> 16) | 64u;
    return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  };
  return round(low) | round(high) << 16;
#endif
}

__device__ __forceinline__ float HalfToFloat(uint16_t bits) {
#if defined(__CUDA_ARCH__)
  return __half2float(__ushort_as_half(bits));
#else
  const uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, low = bits & 1023u;
  if (exponent == 0) {
    const float size = static_cast<float>(low) * (1.0f / 16777216.0f);
    return sign != 0 ? -size : size;
  }
  return __uint_as_float(sign | (exponent == 31 ? 255u : exponent + 112u) << 23 | low << 13);
#endif
}

// Codes 0x7f and 0xff, NaN, are not expected here.
__device__ __forceinline__ float E4m3ToFloat(uint32_t code) {
  // The fields in place of float's, then the difference of the exponent biases; subnormal codes are
  // subnormal floats on the way.
  const float scaled = __uint_as_float((code & 0x80u) << 24 | (code & 0x7fu) << 20);
  return scaled * 1.329227995784916e36f;  // 2^120
}

__device__ __forceinline__ float WarpSum(float value) {
  for (int bits = kWarpSize / 2; bits > 0; bits /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, bits);
  }
  return value;
}
__device__ __forceinline__ float WarpMax(float value) {
  for (int bits = kWarpSize / 2; bits > 0; bits /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, bits));
  }
  return value;
}

__device__ __forceinline__ bool IsFinite(float value) { return value * 0.0f == 0.0f; }

// c += a b, a being 16 x 16 and b 16 x 8 elements of bf16, spread over a warp as PTX's
// mma.m16n8k16 has them: with g = lane / 4 and t = lane % 4, a[0] has row g, columns 2t and 2t + 1,
// a[1] row g + 8, a[2] and a[3] the same with columns 8 further; b[0] has rows 2t and 2t + 1 of
// column g, b[1] rows 8 further; c[0], c[1] have row g, columns 2t, 2t + 1, c[2], c[3] row g + 8.
__device__ __forceinline__ void MmaBf16(float* c, const uint32_t* a, const uint32_t* b) {
#if defined(__CUDA_ARCH__)
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#elif defined(PAWL_CUDA_EMULATED)
  uint32_t mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  const unsigned char* lanes = emulation::Exchange("mma", mine, sizeof mine);
  const int lane = static_cast<int>(threadIdx.x % 32), g = lane / 4, t = lane % 4;
  const auto word = [&](int from, int i) {
    uint32_t value;
    std::memcpy(&value, lanes + from * 32 + i * 4, sizeof value);
    return value;
  };
  for (int i = 0; i < 4; ++i) {
    double sum = c[i];
    const int column = 2 * t + i % 2;
    for (int q = 0; q < 8; ++q) {  // pairs of k
      const uint32_t left = word(g * 4 + q % 4, i / 2 + 2 * (q / 4));
      const uint32_t right = word(column * 4 + q % 4, 4 + q / 4);
      sum += double{LowBf16(left)} * LowBf16(right) + double{HighBf16(left)} * HighBf16(right);
    }
    c[i] = static_cast<float>(sum);
  }
#endif
}

// What a group is worth: kI8 q scale, kI4 q scale + minimum.
struct GroupScale {
  float scale, minimum;
};
__device__ __forceinline__ GroupScale ScaleOf(const DeviceMatrix& w, int row, int group) {
  const int64_t at = TableIndex(w.groups, row, group);
  const float scale = HalfToFloat(w.scales[at]);
  return {scale, w.minimums != nullptr ? HalfToFloat(w.minimums[at]) : -8.0f * scale};
}

// One weight, as the products see it.
__device__ inline float WeightAt(const DeviceMatrix& w, int row, int column) {
  const int64_t plain = static_cast<int64_t>(row) * PaddedColumns(w.columns) + column;
  if (w.type == DeviceWeight::kF32) return static_cast<const float*>(w.data)[plain];
  if (w.type == DeviceWeight::kBf16) {
    return Bf16ToFloat(static_cast<const uint16_t*>(w.data)[plain]);
  }
  if (w.type == DeviceWeight::kF16) {
    return HalfToFloat(static_cast<const uint16_t*>(w.data)[plain]);
  }
  const int within = column % kTileColumns;
  const int quarter = within % 16 / 4, e = within / 16 * 4 + within % 4;
  const uint8_t* at = static_cast<const uint8_t*>(w.data) +
                      PackedOffset(w.type, w.columns, row, column / kTileColumns, quarter);
  if (w.type == DeviceWeight::kFp8) return E4m3ToFloat(at[e]) * w.row_scales[row];
  const GroupScale group = ScaleOf(w, row, column >> w.group_shift);
  if (w.type == DeviceWeight::kI8) {
    return static_cast<float>(static_cast<int8_t>(at[e])) * group.scale;
  }
  const int nibble = PackedNibble(e);
  const int q = at[nibble / 2] >> 4 * (nibble % 2) & 15;
  return Fma(static_cast<float>(q), group.scale, group.minimum);
}

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_KERNELS_CUDA_DEVICE_LANGUAGE_H_
