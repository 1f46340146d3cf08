// The arena's promises: pieces of memory that start on cache lines and do not overlap.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "src/base/pages.h"

namespace pawl {
namespace {

TEST(HugeArenaTest, PiecesStartOnLinesAndDoNotOverlap) {
  std::mt19937 random(1);
  HugeArena arena;
  std::vector<std::pair<std::byte*, size_t>> pieces;
  for (int i = 0; i < 300; ++i) {
    // Some larger than a chunk, some empty.
    const size_t size = i == 100 ? size_t{40} << 20 : i == 200 ? 0 : random() % (1 << 20);
    std::byte* piece = arena.Allocate(static_cast<int64_t>(size));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(piece) % 64, 0u);
    std::memset(piece, i & 255, size);
    pieces.emplace_back(piece, size);
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto [piece, size] = pieces[i];
    for (size_t at = 0; at < size; at += 997) {
      ASSERT_EQ(piece[at], static_cast<std::byte>(i & 255));
    }
  }
  arena.Clear();
  EXPECT_NE(arena.Allocate(1), nullptr);
}

}  // namespace
}  // namespace pawl
