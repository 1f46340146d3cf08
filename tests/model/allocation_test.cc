// A decode step allocates nothing once the first ones have sized the plan. Counts every operator
// new of the program.
#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/model/model_test_util.h"

namespace {
std::atomic<int64_t> allocations = 0;
}  // namespace

void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
// Inlined, GCC would take `free` for the wrong end of `new`.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace pawl {
namespace {

TEST(AllocationTest, NoneInAWarmStep) {
  std::vector<std::string> names = GoldenNames();
  for (const std::string& name : FamilyGoldenNames()) names.push_back(name);
  for (const std::string& name : names) {
    const std::unique_ptr<Model> model = LoadGolden(name, 2);
    ASSERT_NE(model, nullptr);
    const SequenceId a = MakeSequence(*model, 200), b = MakeSequence(*model, 200);
    std::vector<float> logits(static_cast<size_t>(model->info().vocabulary_size) * 4);
    std::vector<Row> rows(4);
    int64_t first = 0, later = 0;
    for (int step = 0; step < 60; ++step) {
      const int at = step * 2;
      // One plain row, and a tree whose second branch is kept.
      rows[0] = {5, step, a, 0, 0};
      rows[1] = {6, at, b, 0, 1};
      rows[2] = {7, at + 1, b, 1, 2};
      rows[3] = {8, at + 1, b, 1, 3};
      const int64_t before = allocations;
      const bool good = model->Forward(rows, logits).ok() && model->CommitTree(b, 2).ok();
      (step == 0 ? first : later) += allocations - before;
      ASSERT_TRUE(good);
    }
    EXPECT_GT(first, 0) << "the counter counts";
    EXPECT_EQ(later, 0) << name;
  }
}

}  // namespace
}  // namespace pawl
