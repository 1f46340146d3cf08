// Fibers. A thread of the emulated block has a stack of its own and gives control back to the
// scheduler at each barrier. The scheduler goes round the warps; within a warp it runs lane after
// lane until none can go on, releases the lanes when all 32 wait at the same warp operation, and
// the block when all its threads wait at __syncthreads, the blocks of a cluster when all wait for
// each other. A round in which nothing moves is a deadlock: somebody waits for threads that have
// ended or wait elsewhere.
//
// Values that lanes exchange go to one of two arrays of the warp, turn by turn. A lane can be one
// operation ahead of another, never two, so what a slow lane has yet to read is still there.
//
// Switching is a dozen instructions on x86-64, where warp operations are frequent enough that the
// system call inside swapcontext would be most of the time; elsewhere it is swapcontext.
#include "tests/cuda/emulation/host_emulation.h"

#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define PAWL_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PAWL_FIBER_ASAN 1
#endif
#endif
#if defined(PAWL_FIBER_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)
// void PawlSwitchFiber(void** save, void* load): pushes what the callee has to keep, changes
// stacks, pops.
asm(R"(
.text
.p2align 4
.type PawlSwitchFiber,@function
PawlSwitchFiber:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size PawlSwitchFiber, .-PawlSwitchFiber
)");
extern "C" void PawlSwitchFiber(void** save, void* load);
#endif

namespace pawl::emulation {

using PAWL_GPU::kMostClusterBlocks;

thread_local Position position;

namespace {

constexpr size_t kStackBytes = size_t{256} << 10;
constexpr size_t kGuard = 64;
constexpr unsigned char kGuardByte = 0xA5;
constexpr int kLanes = 32;

enum class Wait { kNothing, kWarp, kBlock, kCluster, kEnded };

struct LateCopy {
  void* to;
  const void* from;
  size_t bytes;
  int group;
};

struct Fiber {
  unsigned char* stack = nullptr;
  void* asan_stack = nullptr;
#if defined(__x86_64__)
  void* at = nullptr;
#else
  ucontext_t at;
#endif
  Index index;
  unsigned rank = 0;  // of its block in the cluster
  Wait wait = Wait::kNothing;
  const char* what = "";
  int exchanges = 0;
  bool waited = false;  // for the kernel in front
  std::vector<LateCopy> copies;
  int groups = 0;  // of copies, closed
};

struct Warp {
  alignas(32) unsigned char values[2][kLanes * 32];
};

struct SharedPiece {
  const void* tag;
  size_t bytes;
  std::unique_ptr<unsigned char[]> memory;  // guard, bytes, guard
};

std::string Name(const char* kernel) { return std::string("emulated kernel ") + kernel + ": "; }

class Machine;
thread_local Machine* running = nullptr;

class Machine {
 public:
  ~Machine() {
    for (Fiber& fiber : fibers_) ::munmap(fiber.stack, kStackBytes);
  }

  std::string Run(const char* kernel, const Shape& shape, const std::function<void()>& body) {
    if (std::string refusal = Refusal(kernel, shape); !refusal.empty()) return refusal;
    body_ = &body;
    PrepareFibers(shape);
    position.grid_size = {shape.x, shape.y, shape.z};
    position.block_size = {shape.threads, 1, 1};
    position.cluster = shape.cluster;
    const unsigned clusters = shape.x / shape.cluster;
    std::vector<unsigned> order(clusters * shape.y * shape.z);
    std::iota(order.begin(), order.end(), 0u);
    Arrange(order);
    for (const unsigned n : order) {
      first_block_ = {n % clusters * shape.cluster, n / clusters % shape.y, n / clusters / shape.y};
      error_.clear();
      RunCluster(shape);
      if (error_.empty()) continue;
      const Index at = position.block;
      // The fibers stand somewhere in the kernel: they start afresh.
      for (Fiber& fiber : fibers_) ::munmap(fiber.stack, kStackBytes);
      fibers_.clear();
      shared_.clear();
      return Name(kernel) + error_ + " (block " + std::to_string(at.x) + ", " +
             std::to_string(at.y) + ", " + std::to_string(at.z) + ")";
    }
    return "";
  }

  void SetSchedule(Schedule schedule) { schedule_ = schedule; }

  void DependencyWaited() { current_->waited = true; }
  void Watch(std::vector<Load>* loads) { loads_ = loads; }
  void NoteLoad(const void* address, size_t bytes) {
    if (loads_ == nullptr) return;
    loads_->push_back({static_cast<const unsigned char*>(address), bytes});
  }

  void WaitFor(Wait wait, const char* what) {
    current_->wait = wait;
    current_->what = what;
    Leave();
  }

  void CopyLater(void* to, const void* from, size_t bytes) {
    current_->copies.push_back({to, from, bytes, current_->groups});
  }
  void CloseCopies() { ++current_->groups; }
  void WaitForCopies(int groups_open) {
    std::vector<LateCopy>& copies = current_->copies;
    const int group = current_->groups - groups_open;
    size_t done = 0;
    for (; done < copies.size() && copies[done].group < group; ++done) {
      const LateCopy& copy = copies[done];
      if (copy.from == nullptr) {
        std::memset(copy.to, 0, copy.bytes);
      } else {
        std::memcpy(copy.to, copy.from, copy.bytes);
      }
    }
    copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(done));
  }

  const unsigned char* Exchange(const char* what, const void* value, size_t bytes) {
    const int turn = current_->exchanges++ % 2;
    const unsigned lane = current_->index.x % kLanes;
    const auto number = static_cast<size_t>(current_ - fibers_.data());
    unsigned char* values = warps_[number / kLanes].values[turn];
    if (bytes > 0) std::memcpy(values + lane * 32, value, bytes);
    WaitFor(Wait::kWarp, what);
    return values;
  }

  void* Shared(const void* tag, size_t bytes) { return Shared(current_->rank, tag, bytes); }
  void* Shared(unsigned rank, const void* tag, size_t bytes) {
    std::vector<SharedPiece>& pieces = shared_[rank];
    for (SharedPiece& piece : pieces) {
      if (piece.tag == tag) return piece.memory.get() + kGuard;
    }
    size_t all = tag == this ? 0 : bytes;
    for (const SharedPiece& other : pieces) all += other.tag == this ? 0 : other.bytes;
    if (all > kStaticSharedBytes) {
      Fail("shared arrays of " + std::to_string(all) + " bytes; those of a fixed size have 48 KB");
    }
    SharedPiece piece{tag, bytes, std::make_unique<unsigned char[]>(bytes + 2 * kGuard)};
    std::memset(piece.memory.get(), kGuardByte, bytes + 2 * kGuard);
    std::memset(piece.memory.get() + kGuard, 0xff, bytes);
    pieces.push_back(std::move(piece));
    return pieces.back().memory.get() + kGuard;
  }
  const void* SharedOf(const void* shared, unsigned rank) {
    const auto* at = static_cast<const unsigned char*>(shared);
    for (const SharedPiece& piece : shared_[current_->rank]) {
      const unsigned char* begin = piece.memory.get() + kGuard;
      if (at < begin || at >= begin + piece.bytes) continue;
      const auto first = fibers_.begin() + rank * position.block_size.x;
      const auto runs = [](const Fiber& fiber) { return fiber.wait != Wait::kEnded; };
      if (rank >= position.cluster || std::none_of(first, first + position.block_size.x, runs)) {
        break;
      }
      for (const SharedPiece& there : shared_[rank]) {
        if (there.tag == piece.tag) return there.memory.get() + kGuard + (at - begin);
      }
    }
    Fail("shared memory that block " + std::to_string(rank) + " of the cluster does not have");
  }

  [[noreturn]] void Fail(const std::string& message) {
    if (error_.empty()) error_ = message;
    for (;;) WaitFor(Wait::kEnded, "");
  }

  // The life of a fiber: one turn for each block.
  void Live() {
    for (;;) {
      (*body_)();
      if (!current_->waited && error_.empty()) {
        error_ = "a thread has ended without DependencyWait";
      }
      current_->wait = Wait::kEnded;
      current_->what = "";
      Leave();
    }
  }

 private:
  static void Entry() {
    running->Entered();
    running->Live();
  }

  void PrepareFibers(const Shape& shape) {
    const unsigned threads = shape.threads * shape.cluster;
    fibers_.reserve(size_t{1024} * kMostClusterBlocks);  // contexts must not move
    shared_.resize(shape.cluster);
    while (fibers_.size() < threads) {
      Fiber fiber;
      void* stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      fiber.stack = static_cast<unsigned char*>(stack);
      fibers_.push_back(fiber);
      Fiber& made = fibers_.back();
#if defined(__x86_64__)
      // Six registers, the entry as the address to return to, and a place that keeps the stack
      // aligned as a call leaves it.
      void** top = reinterpret_cast<void**>(made.stack + kStackBytes) - 2;
      *top = reinterpret_cast<void*>(&Machine::Entry);
      top -= 6;
      made.at = top;
#else
      ::getcontext(&made.at);
      made.at.uc_stack.ss_sp = made.stack;
      made.at.uc_stack.ss_size = kStackBytes;
      made.at.uc_link = nullptr;
      ::makecontext(&made.at, &Machine::Entry, 0);
#endif
    }
    const size_t warps = (threads + kLanes - 1) / kLanes;
    if (warps_.size() < warps) warps_.resize(warps);
    for (unsigned t = 0; t < fibers_.size(); ++t) {
      fibers_[t].index.x = t % shape.threads;
      fibers_[t].rank = t / shape.threads;
      fibers_[t].wait = Wait::kEnded;
    }
  }

  void Enter(Fiber& fiber) {
    current_ = &fiber;
    fiber.wait = Wait::kNothing;
    position.thread = fiber.index;
    position.block = first_block_;
    position.block.x += fiber.rank;
#if defined(PAWL_FIBER_ASAN)
    __sanitizer_start_switch_fiber(&asan_main_, fiber.stack, kStackBytes);
#endif
#if defined(__x86_64__)
    PawlSwitchFiber(&main_, fiber.at);
#else
    ::swapcontext(&main_, &fiber.at);
#endif
#if defined(PAWL_FIBER_ASAN)
    __sanitizer_finish_switch_fiber(asan_main_, nullptr, nullptr);
#endif
  }
  void Entered() {
#if defined(PAWL_FIBER_ASAN)
    __sanitizer_finish_switch_fiber(current_->asan_stack, &main_stack_, &main_bytes_);
#endif
  }
  void Leave() {
    Fiber* self = current_;
#if defined(PAWL_FIBER_ASAN)
    __sanitizer_start_switch_fiber(&self->asan_stack, main_stack_, main_bytes_);
#endif
#if defined(__x86_64__)
    PawlSwitchFiber(&self->at, main_);
#else
    ::swapcontext(&self->at, &main_);
#endif
    Entered();
  }

  void RunCluster(const Shape& shape) {
    const unsigned threads = shape.threads * shape.cluster;
    for (unsigned rank = 0; rank < shape.cluster; ++rank) {
      shared_[rank].clear();
      if (shape.dynamic_shared > 0) Shared(rank, this, shape.dynamic_shared);
    }
    for (unsigned t = 0; t < threads; ++t) {
      fibers_[t].wait = Wait::kNothing;
      fibers_[t].exchanges = 0;
      fibers_[t].waited = false;
      fibers_[t].copies.clear();
      fibers_[t].groups = 0;
    }
    // A block goes on as long as it can, so that those that do not wait for others are far apart.
    std::vector<unsigned> ranks(shape.cluster);
    std::iota(ranks.begin(), ranks.end(), 0u);
    for (;;) {
      Arrange(ranks);
      bool moved = false;
      for (const unsigned rank : ranks) {
        while (StepBlock(rank * shape.threads, (rank + 1) * shape.threads)) moved = true;
        if (!error_.empty()) return;
      }
      moved = Release(Wait::kCluster, 0, threads) || moved;
      const auto has_ended = [](const Fiber& fiber) { return fiber.wait == Wait::kEnded; };
      if (std::all_of(fibers_.begin(), fibers_.begin() + threads, has_ended)) break;
      if (!moved) return Deadlock(threads);
    }
    for (const std::vector<SharedPiece>& pieces : shared_) {
      for (const SharedPiece& piece : pieces) CheckGuards(piece);
    }
  }

  // Runs the threads begin .. end-1, a block, until its next barrier. False when nothing moved.
  bool StepBlock(unsigned begin, unsigned end) {
    std::vector<unsigned> warps((end - begin + kLanes - 1) / kLanes);
    std::iota(warps.begin(), warps.end(), begin / kLanes);
    Arrange(warps);
    bool moved = false;
    for (const unsigned warp : warps) {
      while (StepWarp(warp, end)) moved = true;
      if (!error_.empty()) return false;
    }
    return Release(Wait::kBlock, begin, end) || moved;
  }

  // Lets those of the threads go on that wait so, once all do. As on devices, threads that have
  // ended count as having arrived.
  bool Release(Wait wait, unsigned begin, unsigned end) {
    bool some = false;
    for (unsigned t = begin; t < end; ++t) {
      if (fibers_[t].wait != wait && fibers_[t].wait != Wait::kEnded) return false;
      some = some || fibers_[t].wait == wait;
    }
    for (unsigned t = begin; t < end; ++t) {
      if (fibers_[t].wait == wait) fibers_[t].wait = Wait::kNothing;
    }
    return some;
  }

  void CheckGuards(const SharedPiece& piece) {
    for (size_t i = 0; i < kGuard; ++i) {
      if (piece.memory[i] != kGuardByte || piece.memory[kGuard + piece.bytes + i] != kGuardByte) {
        error_ = "a write beyond a shared array of " + std::to_string(piece.bytes) + " bytes";
      }
    }
  }

  // Runs the lanes that can run; releases those that all wait for each other. False when nothing
  // could be done.
  bool StepWarp(unsigned warp, unsigned threads) {
    const unsigned begin = warp * kLanes, end = std::min(threads, begin + kLanes);
    std::vector<unsigned>& lanes = lanes_;
    lanes.clear();
    unsigned together = 0;
    const char* what = nullptr;
    for (unsigned t = begin; t < end; ++t) {
      if (fibers_[t].wait == Wait::kNothing) lanes.push_back(t);
      if (fibers_[t].wait == Wait::kWarp) {
        ++together;
        if (what == nullptr) what = fibers_[t].what;
        if (std::strcmp(what, fibers_[t].what) != 0) {
          error_ = std::string("lanes of a warp are at ") + what + " and at " + fibers_[t].what;
          return false;
        }
      }
    }
    if (lanes.empty()) {
      if (together < kLanes) return false;
      for (unsigned t = begin; t < end; ++t) fibers_[t].wait = Wait::kNothing;
      return true;
    }
    Arrange(lanes);
    for (size_t i = 0; i < lanes.size() && error_.empty(); ++i) Enter(fibers_[lanes[i]]);
    return error_.empty();
  }

  void Arrange(std::vector<unsigned>& order) {
    if (schedule_ == Schedule::kForward) return;
    if (schedule_ == Schedule::kBackward) {
      std::sort(order.begin(), order.end(), std::greater<unsigned>());
    } else {
      std::shuffle(order.begin(), order.end(), random_);
    }
  }

  void Deadlock(unsigned threads) {
    unsigned block = 0, cluster = 0, warp = 0, ended = 0;
    const char* what = "";
    for (unsigned t = 0; t < threads; ++t) {
      const Fiber& fiber = fibers_[t];
      block += fiber.wait == Wait::kBlock;
      cluster += fiber.wait == Wait::kCluster;
      warp += fiber.wait == Wait::kWarp;
      ended += fiber.wait == Wait::kEnded;
      if (fiber.wait == Wait::kWarp) what = fiber.what;
    }
    error_ = "deadlock: " + std::to_string(block) + " threads wait at __syncthreads, " +
             std::to_string(cluster) + " at a barrier of the cluster, " + std::to_string(warp) +
             " at a warp operation (" + what + "), " + std::to_string(ended) + " have ended";
  }

  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  std::vector<std::vector<SharedPiece>> shared_;  // of each block of the cluster
  Index first_block_;                             // of the cluster
  std::vector<unsigned> lanes_;
  const std::function<void()>* body_ = nullptr;
  Fiber* current_ = nullptr;
#if defined(__x86_64__)
  void* main_ = nullptr;
#else
  ucontext_t main_;
#endif
#if defined(PAWL_FIBER_ASAN)
  void* asan_main_ = nullptr;
  const void* main_stack_ = nullptr;
  size_t main_bytes_ = 0;
#endif
  Schedule schedule_ = Schedule::kForward;
  std::mt19937 random_{1};
  std::string error_;
  std::vector<Load>* loads_ = nullptr;
};

Machine& Here() {
  thread_local Machine machine;
  running = &machine;
  return machine;
}

}  // namespace

std::string Refusal(const char* kernel, const Shape& shape) {
  if (shape.threads == 0 || shape.threads > 1024 || shape.x == 0 || shape.y == 0 || shape.z == 0 ||
      shape.x > 0x7fffffffu || shape.y > 65535 || shape.z > 65535) {
    return Name(kernel) + "a grid of " + std::to_string(shape.x) + " x " + std::to_string(shape.y) +
           " x " + std::to_string(shape.z) + " blocks of " + std::to_string(shape.threads) +
           " threads";
  }
  if (shape.cluster == 0 || shape.cluster > kMostClusterBlocks || shape.x % shape.cluster != 0) {
    return Name(kernel) + "clusters of " + std::to_string(shape.cluster) + " blocks of " +
           std::to_string(shape.x);
  }
  if (shape.cluster > 1 && shape.threads % kLanes != 0) {
    return Name(kernel) + "clusters of blocks that are not whole warps";
  }
  if (shape.dynamic_shared > kSharedBytes) return Name(kernel) + "too much shared memory";
  return "";
}

void SetSchedule(Schedule schedule) { Here().SetSchedule(schedule); }

std::string Run(const char* kernel, const Shape& shape, const std::function<void()>& body) {
  return Here().Run(kernel, shape, body);
}

void Watch(std::vector<Load>* loads) { Here().Watch(loads); }
void NoteLoad(const void* address, size_t bytes) { running->NoteLoad(address, bytes); }

void DependencyWaited() { running->DependencyWaited(); }
void CopyLater(void* to, const void* from, size_t bytes) { running->CopyLater(to, from, bytes); }
void CloseCopies() { running->CloseCopies(); }
void WaitForCopies(int groups_open) { running->WaitForCopies(groups_open); }
void SyncThreads() { running->WaitFor(Wait::kBlock, "__syncthreads"); }
void SyncCluster() { running->WaitFor(Wait::kCluster, "the cluster's barrier"); }
const unsigned char* Exchange(const char* what, const void* value, size_t bytes) {
  return running->Exchange(what, value, bytes);
}
void* SharedArray(const void* tag, size_t bytes) { return running->Shared(tag, bytes); }
void* DynamicShared() { return running->Shared(running, 0); }
const void* SharedOf(const void* shared, int rank) {
  return running->SharedOf(shared, static_cast<unsigned>(rank));
}
void Fail(const std::string& message) { running->Fail(message); }

}  // namespace pawl::emulation
