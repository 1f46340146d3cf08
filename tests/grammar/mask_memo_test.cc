// The memo of masks while it grows and is emptied: readers find a key's own mask or none.
#include "grammar/masks/mask_memo.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace pawl {
namespace {

std::shared_ptr<const Mask> MaskWith(uint32_t word) {
  return std::make_shared<const Mask>(word, std::vector<uint32_t>{word, 0});
}

TEST(MaskMemoTest, KeepsMasksByKey) {
  MaskMemo memo;
  std::array<uint32_t, 2> row = {7, 7};
  for (uint32_t key = 1; key <= 3000; ++key) {  // grows several times
    EXPECT_EQ(memo.Find(key), nullptr);
    EXPECT_EQ(memo.Copy(key, row), -1);
    memo.Keep(key, MaskWith(key));
    memo.Keep(key, MaskWith(0));  // the first one stays
  }
  for (uint32_t key = 1; key <= 3000; ++key) {
    ASSERT_NE(memo.Find(key), nullptr);
    EXPECT_EQ(memo.Find(key)->id(), key);
    EXPECT_EQ(memo.Copy(key, row), memo.Find(key)->count());
    EXPECT_EQ(row[0], key);
  }
  EXPECT_EQ(memo.Find(3001), nullptr);
  memo.Clear();
  EXPECT_EQ(memo.Find(1), nullptr);
  memo.Keep(1, MaskWith(5));
  EXPECT_EQ(memo.Find(1)->id(), 5);
  memo.Keep(Machine::kDead, MaskWith(1));  // no state
  EXPECT_EQ(memo.Find(Machine::kDead), nullptr);
}

TEST(MaskMemoTest, ReadersSeeAMaskOrNone) {
  MaskMemo memo;
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (unsigned reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&, reader] {
      std::array<uint32_t, 2> row;
      for (uint32_t i = reader; !stop.load(); i += 7) {
        const uint32_t key = 1 + i % 500;
        const auto mask = memo.Find(key);
        if (mask != nullptr && mask->id() != key) ++wrong;
        if (memo.Copy(key, row) >= 0 && row[0] != key) ++wrong;
      }
    });
  }
  for (int round = 0; round < 60; ++round) {
    for (uint32_t key = 1; key <= 500; ++key) memo.Keep(key, MaskWith(key));
    memo.Clear();
  }
  stop.store(true);
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace pawl
