// Tiles of bf16 in shared memory: asynchronous copies into them (cp.async) and the operands of
// MmaBf16 out of them (ldmatrix). Rows of a tile lie kTilePad elements further apart than they are
// long, so that eight rows at the same column fall into different banks.
#ifndef PAWL_KERNELS_CUDA_TILES_CUH_
#define PAWL_KERNELS_CUDA_TILES_CUH_

#include "kernels/cuda/device_language.h"

namespace pawl::PAWL_GPU {

constexpr int kTilePad = 8;

// Starts a copy of 16 bytes from global to shared memory, both aligned; zeros where not `there`.
__device__ __forceinline__ void CopyToTile(void* to, const void* from, bool there) {
#if defined(__CUDA_ARCH__)
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  const int bytes = there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes)
               : "memory");
#elif defined(PAWL_CUDA_EMULATED)
  if (reinterpret_cast<uintptr_t>(to) % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0) {
    emulation::Fail("a copy that is not aligned");
  }
  emulation::CopyLater(to, there ? from : nullptr, 16);
#endif
}

// Copies started since the last call become a group.
__device__ __forceinline__ void CloseCopies() {
#if defined(__CUDA_ARCH__)
  asm volatile("cp.async.commit_group;" ::: "memory");
#elif defined(PAWL_CUDA_EMULATED)
  emulation::CloseCopies();
#endif
}

// Waits for this thread's groups, all but the last kOpen. What other threads have copied can be
// read after a barrier.
template <int kOpen>
__device__ __forceinline__ void WaitForCopies() {
#if defined(__CUDA_ARCH__)
  asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
#elif defined(PAWL_CUDA_EMULATED)
  emulation::WaitForCopies(kOpen);
#endif
}

// Four pieces of 8 x 8 elements; row r of piece i is at `row` of lane 8 i + r, 16-byte aligned.
// With g = lane / 4 and t = lane % 4, to[i] has of piece i the elements 2t, 2t + 1 of row g, or,
// with kTransposed, of column g.
template <bool kTransposed>
__device__ __forceinline__ void LoadPieces(const uint16_t* row, uint32_t* to) {
#if defined(__CUDA_ARCH__)
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  }
#elif defined(PAWL_CUDA_EMULATED)
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) emulation::Fail("a row that is not aligned");
  const unsigned char* lanes = emulation::Exchange("ldmatrix", &row, sizeof row);
  const int g = static_cast<int>(threadIdx.x % 32) / 4, t = static_cast<int>(threadIdx.x % 4);
  for (int i = 0; i < 4; ++i) {
    const auto at = [&](int r, int column) {
      return uint32_t{emulation::FromLane<const uint16_t*>(lanes, i * 8 + r)[column]};
    };
    to[i] =
        kTransposed ? at(2 * t, g) | at(2 * t + 1, g) << 16 : at(g, 2 * t) | at(g, 2 * t + 1) << 16;
  }
#endif
}

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_KERNELS_CUDA_TILES_CUH_
