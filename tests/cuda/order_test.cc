// The order of work on streams, as the emulation has it (emulation/streams_emulated.cc):
// programs that say all that has to be said about it are right in every timing, and those that
// leave something out are wrong in one.
#include <algorithm>
#include <functional>
#include <memory>

#include "kernels/cuda/device_language.h"
#include "tests/cuda/cuda_test_util.h"

namespace pawl::PAWL_GPU {
namespace {

constexpr size_t kNumbers = 32;

// In how many timings `right` is.
int TimingsRight(const std::function<bool()>& right, int* timings) {
  int count = 0;
  *timings = 0;
  const auto in = [&](Timing timing, int seed) {
    SetTiming(timing, seed);
    ++*timings;
    count += right();
    PAWL_EXPECT_OK(SynchronizeAll());
  };
  in(Timing::kLate, 0);
  in(Timing::kAtOnce, 0);
  for (int seed = 0; seed < kTimingSeeds; ++seed) in(Timing::kMixed, seed);
  SetTiming(Timing::kLate);
  return count;
}
void ExpectRightInEveryTiming(const std::function<bool()>& right) {
  int timings = 0;
  EXPECT_EQ(TimingsRight(right, &timings), timings);
}
void ExpectWrongInSomeTiming(const std::function<bool()>& right) {
  int timings = 0;
  EXPECT_LT(TimingsRight(right, &timings), timings);
}

struct Pinned {
  Pinned() : memory(static_cast<int*>(*AllocatePinned(kNumbers * 4))) {}
  ~Pinned() { FreePinned(memory); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  void Set(int value) const { std::fill_n(memory, kNumbers, value); }
  bool Is(int value) const {
    return std::all_of(memory, memory + kNumbers, [&](int n) { return n == value; });
  }
  int* memory;
};
struct OnStream {
  OnStream() : stream(*NewStream()) {}
  ~OnStream() { FreeStream(stream); }
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;
  Stream stream;
};
struct AFence {
  AFence() : fence(*NewFence()) {}
  ~AFence() { FreeFence(fence); }
  AFence(const AFence&) = delete;
  AFence& operator=(const AFence&) = delete;
  Fence fence;
};

__global__ void AddOne(const int* in, int* out) {
  DependencyWait();
  out[threadIdx.x] = in[threadIdx.x] + 1;
}
Status LaunchAddOne(const int* in, int* out, Stream stream) {
  Shape shape;
  shape.threads = kNumbers;
  return Launch("add_one", shape, stream, AddOne, in, out);
}

// A step of the model in small: what the host knows goes up on one stream, the kernel that needs it
// is on another, and the answer comes back.
struct Pipeline {
  enum Fault {
    kNone,
    kNoFence,           // the kernel does not wait for the upload
    kFenceTooEarly,     // it waits for what was there before the upload
    kNoFenceBack,       // the next upload does not wait for the kernel
    kStagingReused,     // the host writes the next numbers before the upload has read these
    kAnswersNotAwaited  // the host reads answers that may not be there
  };
  bool Right(Fault fault) {
    bool right = true;
    for (int step = 0; step < 4; ++step) {
      if (step > 0 && fault != kStagingReused) PAWL_EXPECT_OK(Synchronize(uploads.stream));
      given.Set(10 * step);
      if (step > 0 && fault != kNoFenceBack) {
        PAWL_EXPECT_OK(WaitFor(computed.fence, uploads.stream));
      }
      if (fault == kFenceTooEarly) PAWL_EXPECT_OK(Raise(uploaded.fence, uploads.stream));
      PAWL_EXPECT_OK(CopyIn(in.data(), given.memory, kNumbers * 4, uploads.stream));
      if (fault != kFenceTooEarly) PAWL_EXPECT_OK(Raise(uploaded.fence, uploads.stream));
      if (fault != kNoFence) PAWL_EXPECT_OK(WaitFor(uploaded.fence, compute.stream));
      PAWL_EXPECT_OK(LaunchAddOne(in.data(), out.data(), compute.stream));
      PAWL_EXPECT_OK(Raise(computed.fence, compute.stream));
      PAWL_EXPECT_OK(CopyOut(answers[step].memory, out.data(), kNumbers * 4, compute.stream));
    }
    if (fault != kAnswersNotAwaited) PAWL_EXPECT_OK(Synchronize(compute.stream));
    for (int step = 0; step < 4; ++step) right = right && answers[step].Is(10 * step + 1);
    return right;
  }
  Pinned given, answers[4];
  OnDevice<int> in{kNumbers}, out{kNumbers};
  OnStream uploads, compute;
  AFence uploaded, computed;
};

TEST(OrderTest, WhatIsLeftOutOfAPipelineShows) {
  ExpectRightInEveryTiming([] { return Pipeline().Right(Pipeline::kNone); });
  for (const auto fault : {Pipeline::kNoFence, Pipeline::kFenceTooEarly, Pipeline::kNoFenceBack,
                           Pipeline::kStagingReused, Pipeline::kAnswersNotAwaited}) {
    SCOPED_TRACE(fault);
    ExpectWrongInSomeTiming([fault] { return Pipeline().Right(fault); });
  }
}

TEST(OrderTest, LeavingOutFencesOrASynchronizeIsSeen) {
  ExpectWrongInSomeTiming([] {
    LeaveOutFences(true);
    const bool right = Pipeline().Right(Pipeline::kNone);
    LeaveOutFences(false);
    return right;
  });
  for (int nth = 1; nth <= 4; ++nth) {
    ExpectWrongInSomeTiming([nth] {
      LeaveOutSynchronize(nth);
      const bool right = Pipeline().Right(Pipeline::kNone);
      EXPECT_EQ(SynchronizeCalls(), 4);
      LeaveOutSynchronize(0);
      return right;
    });
  }
}

TEST(OrderTest, PinnedMemoryIsReadLateAndOtherMemoryAtOnce) {
  const OnStream stream;
  const Pinned pinned;
  std::vector<int> plain(kNumbers, 1);
  const OnDevice<int> from_pinned(kNumbers), from_plain(kNumbers);
  PAWL_EXPECT_OK(SynchronizeAll());
  pinned.Set(1);
  PAWL_EXPECT_OK(CopyIn(from_pinned.data(), pinned.memory, kNumbers * 4, stream.stream));
  PAWL_EXPECT_OK(CopyIn(from_plain.data(), plain.data(), kNumbers * 4, stream.stream));
  pinned.Set(2);
  plain.assign(kNumbers, 2);
  PAWL_EXPECT_OK(Synchronize(stream.stream));
  EXPECT_EQ(from_pinned.values()[3], 2);
  EXPECT_EQ(from_plain.values()[3], 1);
  // A copy to memory that is not pinned waits for its stream.
  PAWL_EXPECT_OK(LaunchAddOne(from_plain.data(), from_pinned.data(), stream.stream));
  PAWL_EXPECT_OK(CopyOut(plain.data(), from_pinned.data(), kNumbers * 4, stream.stream));
  EXPECT_EQ(plain[0], 2);
}

TEST(OrderTest, AFirstLaunchInsideACaptureIsRefused) {
  const OnStream stream;
  const OnDevice<int> a(std::vector<int>(kNumbers, 1)), b(kNumbers);
  ForgetKernels();
  for (const bool loaded : {false, true}) {
    PAWL_EXPECT_OK(BeginCapture(stream.stream));
    const Status status = LaunchAddOne(a.data(), b.data(), stream.stream);
    const Result<Graph> graph = EndCapture(stream.stream);
    ASSERT_TRUE(graph.ok());
    EXPECT_EQ(status.ok(), loaded);
    if (loaded) {
      PAWL_EXPECT_OK(Replay(*graph, stream.stream));
      FreeGraph(*graph);  // while it is on the stream
      PAWL_EXPECT_OK(Synchronize(stream.stream));
      EXPECT_EQ(b.values()[0], 2);
    } else {
      FreeGraph(*graph);
      EXPECT_EQ(status.error().message, "its first launch is inside a capture");
      PAWL_EXPECT_OK(LaunchAddOne(a.data(), b.data(), stream.stream));
      PAWL_EXPECT_OK(Synchronize(stream.stream));
      PAWL_EXPECT_OK(Fill(b.data(), 0, kNumbers * 4, nullptr));
      PAWL_EXPECT_OK(Synchronize(nullptr));
    }
  }
}

__global__ void Faulty() { emulation::Fail("as asked"); }
TEST(OrderTest, WhatWentWrongIsToldToThoseWhoWait) {
  const OnStream stream, other;
  const OnDevice<int> out(std::vector<int>(kNumbers, 1));
  Shape shape;
  shape.threads = kNumbers;
  PAWL_EXPECT_OK(SynchronizeAll());
  PAWL_EXPECT_OK(Launch("faulty", shape, stream.stream, Faulty));
  PAWL_EXPECT_OK(Fill(out.data(), 0, kNumbers * 4, stream.stream));  // is dropped
  PAWL_EXPECT_OK(Synchronize(other.stream));
  const Status status = Synchronize(stream.stream);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("as asked"), std::string::npos);
  PAWL_EXPECT_OK(Synchronize(stream.stream));
  EXPECT_EQ(out.values()[0], 1);
}

// Random programs of three streams with a fence wherever two streams touch the same cell: all
// timings give what one step after the other gives. Without one of the fences that matter, not.
TEST(OrderTest, RandomProgramsWithTheirFencesAreSequential) {
  Random random(1);
  int broken = 0;
  for (int program = 0; program < 12; ++program) {
    struct Op {
      int stream, from, to;
    };
    std::vector<Op> ops;
    for (int i = 0; i < 25; ++i) {
      ops.push_back({static_cast<int>(random() % 3), static_cast<int>(random() % 5),
                     static_cast<int>(random() % 5)});
    }
    std::vector<int> expected(5);
    for (size_t i = 0; i < 5; ++i) expected[i] = static_cast<int>(i) * 100;
    for (const Op& op : ops) {
      expected[static_cast<size_t>(op.to)] = expected[static_cast<size_t>(op.from)] + 1;
    }
    const auto right = [&](bool fences) {
      const OnStream streams[3];
      std::vector<std::unique_ptr<AFence>> raised;
      std::vector<std::unique_ptr<OnDevice<int>>> cells;
      for (int i = 0; i < 5; ++i) {
        cells.push_back(std::make_unique<OnDevice<int>>(std::vector<int>(kNumbers, i * 100)));
      }
      PAWL_EXPECT_OK(SynchronizeAll());
      for (size_t i = 0; i < ops.size(); ++i) {
        for (size_t before = 0; fences && before < i; ++before) {
          const Op &a = ops[before], &b = ops[i];
          const bool conflict = a.to == b.to || a.to == b.from || a.from == b.to;
          if (!conflict || a.stream == b.stream) continue;
          PAWL_EXPECT_OK(WaitFor(raised[before]->fence, streams[b.stream].stream));
        }
        PAWL_EXPECT_OK(LaunchAddOne(cells[static_cast<size_t>(ops[i].from)]->data(),
                                    cells[static_cast<size_t>(ops[i].to)]->data(),
                                    streams[ops[i].stream].stream));
        raised.push_back(std::make_unique<AFence>());
        PAWL_EXPECT_OK(Raise(raised.back()->fence, streams[ops[i].stream].stream));
      }
      for (const OnStream& stream : streams) PAWL_EXPECT_OK(Synchronize(stream.stream));
      bool same = true;
      for (size_t i = 0; i < 5; ++i) same = same && cells[i]->values()[7] == expected[i];
      return same;
    };
    ExpectRightInEveryTiming([&] { return right(true); });
    int timings = 0;
    broken += TimingsRight([&] { return right(false); }, &timings) < timings;
  }
  EXPECT_GT(broken, 8);
}

}  // namespace
}  // namespace pawl::PAWL_GPU
