// Device memory as host memory, for tests. Every piece starts as 0xff bytes, NaNs of all the
// formats in use, and ends exactly where the heap block ends, so that AddressSanitizer sees the
// first byte beyond; a guard in front keeps 256-byte alignment, and without the sanitizer there is
// one behind too. Freeing waits for all streams, as cudaFree does. Streams, copies and graphs:
// streams_emulated.cc.
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "kernels/cuda/device_language.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/runtime.h"

#if defined(__SANITIZE_ADDRESS__)
#define PAWL_TAIL_GUARD 0
#else
#define PAWL_TAIL_GUARD 256
#endif

namespace pawl::emulated {
namespace {

constexpr int64_t kGuard = 256;
constexpr unsigned char kGuardByte = 0xA5;

struct Piece {
  int64_t bytes = 0;
  bool pinned = false;
};
struct Heap {
  std::mutex mutex;
  std::map<const unsigned char*, Piece> pieces;
  int64_t used = 0, limit = -1;
};
Heap& TheHeap() {
  static Heap heap;
  return heap;
}

bool Intact(const unsigned char* memory, int64_t bytes) {
  for (int64_t i = 1; i <= kGuard; ++i) {
    if (memory[-i] != kGuardByte) return false;
  }
  for (int64_t i = 0; i < PAWL_TAIL_GUARD; ++i) {
    if (memory[bytes + i] != kGuardByte) return false;
  }
  return true;
}

// The piece that the bytes lie in, or the end. The heap is locked.
std::map<const unsigned char*, Piece>::const_iterator Find(const Heap& heap, const void* memory,
                                                           int64_t bytes) {
  const auto* at = static_cast<const unsigned char*>(memory);
  auto found = heap.pieces.upper_bound(at);
  if (found == heap.pieces.begin()) return heap.pieces.end();
  --found;
  return at + bytes <= found->first + found->second.bytes ? found : heap.pieces.end();
}

Result<void*> AllocatePiece(int64_t bytes, bool pinned) {
  if (bytes <= 0) bytes = 1;
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  if (!pinned && heap.limit >= 0 && heap.used + bytes > heap.limit) {
    const auto mib = [](int64_t b) { return std::to_string((b + (1 << 20) - 1) >> 20) + " MiB"; };
    return Error{ErrorCode::kLimit,
                 "not enough device memory: " + mib(bytes) + " asked for, " +
                     mib(heap.limit - heap.used) + " of " + mib(heap.limit) + " free",
                 "cuda"};
  }
  void* block = nullptr;
  const auto whole = static_cast<size_t>(kGuard + bytes + PAWL_TAIL_GUARD);
  if (::posix_memalign(&block, 256, whole) != 0) {
    return Error{ErrorCode::kLimit, "not enough memory", "emulated device"};
  }
  std::memset(block, kGuardByte, whole);
  auto* memory = static_cast<unsigned char*>(block) + kGuard;
  std::memset(memory, 0xff, static_cast<size_t>(bytes));
  heap.pieces[memory] = {bytes, pinned};
  if (!pinned) heap.used += bytes;
  return static_cast<void*>(memory);
}

}  // namespace

Result<DeviceFacts> CurrentDevice() {
  DeviceFacts facts;
  facts.name = "emulated device";
  facts.major = 9;
  facts.multiprocessors = 4;
  facts.shared_bytes = emulation::kSharedBytes;
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  facts.memory_bytes = heap.limit >= 0 ? heap.limit : int64_t{64} << 20;
  facts.free_bytes = heap.limit >= 0 ? heap.limit - heap.used : facts.memory_bytes;
  return facts;
}

Result<void*> Allocate(int64_t bytes) { return AllocatePiece(bytes, false); }
Result<void*> AllocatePinned(int64_t bytes) { return AllocatePiece(bytes, true); }

void Free(void* memory) {
  if (memory == nullptr) return;
  RunAll();
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  const auto found = heap.pieces.find(static_cast<unsigned char*>(memory));
  // A damaged piece stays in the list, so that GuardsIntact reports it.
  if (found == heap.pieces.end() || !Intact(found->first, found->second.bytes)) return;
  if (!found->second.pinned) heap.used -= found->second.bytes;
  heap.pieces.erase(found);
  std::free(static_cast<unsigned char*>(memory) - kGuard);
}
void FreePinned(void* memory) { Free(memory); }

bool IsPinned(const void* memory) {
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  const auto found = Find(heap, memory, 1);
  return found != heap.pieces.end() && found->second.pinned;
}

bool GuardsIntact() {
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  for (const auto& [memory, piece] : heap.pieces) {
    if (!Intact(memory, piece.bytes)) return false;
  }
  return true;
}

void LimitMemory(int64_t bytes) {
  Heap& heap = TheHeap();
  const std::lock_guard lock(heap.mutex);
  heap.limit = bytes < 0 ? -1 : heap.used + bytes;
}

}  // namespace pawl::emulated

namespace pawl::emulated {

// The library's product as three loops, for tests of what stands around it.

namespace {

int refused = 0;

class Loops final : public Library {
 public:
  // A workspace as the real one has, which no code looks at.
  explicit Loops(DeviceMemory workspace) : workspace_(std::move(workspace)) {}

  Status Run(const LibraryProduct& p, Stream stream) override {
    if (p.outputs == refused) return Error{ErrorCode::kUnsupported, "refused", "emulated library"};
    return Submit(stream, [p]() -> Status {
      for (int r = 0; r < p.rows; ++r) {
        for (int o = 0; o < p.outputs; ++o) {
          const uint16_t* w = p.w + o * p.w_stride;
          const uint16_t* x = p.x + r * p.x_stride;
          float sum = 0.0f;
          for (int k = 0; k < p.columns; ++k) sum += Bf16ToFloat(w[k]) * Bf16ToFloat(x[k]);
          const int64_t at = r * p.y_stride + o;
          if (p.rounded != nullptr) {
            p.rounded[at] = static_cast<uint16_t>(PackBf16(sum, 0.0f));
          } else {
            p.y[at] = p.add ? p.y[at] + sum : sum;
          }
        }
      }
      return {};
    });
  }

 private:
  DeviceMemory workspace_;
};

}  // namespace

void RefuseProducts(int outputs) { refused = outputs; }

Result<std::unique_ptr<Library>> OpenLibrary() {
  Result<DeviceMemory> workspace = DeviceMemory::Make(kLibraryWorkspace);
  if (!workspace.ok()) return workspace.error();
  return std::unique_ptr<Library>(std::make_unique<Loops>(*std::move(workspace)));
}

}  // namespace pawl::emulated
