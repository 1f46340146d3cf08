// Loops of the pool: every index once, also nested and from several threads at once, and no
// processor time when there is nothing to do.
#include "src/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

namespace pawl {
namespace {

TEST(ThreadPoolTest, CoversEveryIndexOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (const int64_t n : {0, 1, 2, 63, 64, 1000}) {
      for (const int64_t grain : {0, 1, 7, 64, 5000}) {
        std::vector<std::atomic<int>> visits(static_cast<size_t>(n));
        pool.ParallelFor(n, grain, [&](int64_t begin, int64_t end, int thread) {
          ASSERT_GE(thread, 0);
          ASSERT_LT(thread, threads);
          for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
        });
        for (const auto& count : visits) ASSERT_EQ(count, 1);
      }
    }
  }
}

TEST(ThreadPoolTest, ManyShortLoops) {
  ThreadPool pool(4);
  int64_t total = 0;
  for (int round = 0; round < 5000; ++round) {
    int64_t partial[4] = {};
    pool.ParallelFor(16, 1, [&](int64_t begin, int64_t, int thread) { partial[thread] += begin; });
    for (const int64_t p : partial) total += p;
  }
  EXPECT_EQ(total, 5000 * 120);
}

TEST(ThreadPoolTest, NestedAndConcurrentLoopsFinish) {
  ThreadPool pool(3);
  std::atomic<int> count = 0;
  const auto nested = [&] {
    for (int round = 0; round < 200; ++round) {
      pool.ParallelFor(4, 1, [&](int64_t, int64_t, int) {
        pool.ParallelFor(4, 1, [&](int64_t, int64_t, int) { ++count; });
      });
    }
  };
  std::thread other(nested);
  nested();
  other.join();
  EXPECT_EQ(count, 2 * 200 * 16);
}

TEST(ThreadPoolTest, WorkersSleepWhenThereIsNothingToDo) {
  ThreadPool pool(4);
  pool.ParallelFor(64, 1, [](int64_t, int64_t, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(used, 0.02) << "processor seconds of the whole process in 0.2 seconds of idleness";
}

}  // namespace
}  // namespace pawl
