// Loops of the pool: every index once, also nested and from several threads at once, and no
// processor time when there is nothing to do.
#include "src/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "src/base/threads.h"

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

// What the loop throws, "" for nothing.
template <typename Body>
std::string ThrownBy(ThreadPool& pool, int64_t n, const Body& body) {
  try {
    pool.ParallelFor(n, 1, body);
  } catch (const std::exception& cause) {
    return cause.what();
  }
  return "";
}

TEST(ThreadPoolTest, TheFirstExceptionReachesTheCallerWhenNoBodyRunsAnyMore) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 500; ++round) {
      const int64_t bad = round % 64;
      std::atomic<int> inside = 0, begun = 0, thrown = 0;
      const std::string what = ThrownBy(pool, 64, [&](int64_t begin, int64_t, int) {
        ++inside;
        ++begun;
        for (int i = 0; i < 50; ++i) Pause();
        const bool fails = begin >= bad;
        if (fails) ++thrown;
        --inside;
        if (fails) throw std::runtime_error("range " + std::to_string(begin));
      });
      EXPECT_EQ(inside, 0);
      EXPECT_GE(thrown, 1);
      EXPECT_LE(thrown, threads) << "ranges begin after a failure";
      EXPECT_TRUE(what.starts_with("range ")) << what;
      EXPECT_GE(std::stoi(what.substr(6)), bad);
      if (threads == 1) {
        EXPECT_EQ(begun, bad + 1);
      }
      // The pool is free: loops run on several threads again, and each index comes once.
      std::atomic<int> count = 0;
      pool.ParallelFor(
          64, 1, [&](int64_t begin, int64_t end, int) { count += static_cast<int>(end - begin); });
      EXPECT_EQ(count, 64);
    }
  }
}

// `busy_` that stayed set would show as loops that never leave the caller's thread.
TEST(ThreadPoolTest, AFailedLoopDoesNotLeaveThePoolBusy) {
  ThreadPool pool(2);
  EXPECT_EQ(ThrownBy(pool, 8, [](int64_t, int64_t, int) { throw std::runtime_error("x"); }), "x");
  const std::thread::id mine = std::this_thread::get_id();
  std::atomic<bool> other = false;
  for (int round = 0; round < 2000 && !other; ++round) {
    pool.ParallelFor(16, 1, [&](int64_t, int64_t, int) {
      if (std::this_thread::get_id() != mine) other = true;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    });
  }
  EXPECT_TRUE(other);
}

TEST(ThreadPoolTest, ExceptionsOfNestedLoopsAndOfSeveralCallers) {
  ThreadPool pool(3);
  std::atomic<int> caught = 0, wrong = 0;
  const auto callers = [&] {
    for (int round = 0; round < 200; ++round) {
      const std::string what = ThrownBy(pool, 4, [&](int64_t outer, int64_t, int) {
        pool.ParallelFor(4, 1, [&](int64_t inner, int64_t, int) {
          if (outer == 2 && inner == 1) throw std::runtime_error("inner");
        });
      });
      ++(what == "inner" ? caught : wrong);
      // Caught inside a body: the outer loop is a good one.
      const std::string none = ThrownBy(pool, 4, [&](int64_t, int64_t, int) {
        EXPECT_EQ(ThrownBy(pool, 4, [](int64_t, int64_t, int) { throw std::bad_alloc(); }),
                  std::bad_alloc().what());
      });
      if (!none.empty()) ++wrong;
    }
  };
  std::thread other(callers);
  callers();
  other.join();
  EXPECT_EQ(caught, 400);
  EXPECT_EQ(wrong, 0);
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
