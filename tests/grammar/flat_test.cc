// The tables behind hash-consing against the standard library's, on random input with hashes that
// collide.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "grammar/hash_index.h"

namespace pawl {
namespace {

TEST(HashIndexTest, EqualThingsAreOne) {
  for (const uint64_t hashes : {uint64_t{1}, uint64_t{7}, uint64_t{1000}, UINT64_MAX}) {
    std::mt19937_64 random(hashes);
    HashIndex index;
    std::vector<std::string> things;
    std::unordered_map<std::string, uint32_t> known;
    for (int i = 0; i < 3000; ++i) {
      const std::string thing = std::to_string(random() % 1000);
      const uint64_t hash = std::hash<std::string>{}(thing) % hashes;
      const auto [it, fresh] = known.try_emplace(thing, static_cast<uint32_t>(things.size()));
      const auto same = [&](uint32_t number) { return things[number] == thing; };
      ASSERT_EQ(index.Find(hash, same), fresh ? HashIndex::kNone : it->second) << hashes;
      ASSERT_EQ(index.Intern(hash, things, thing), it->second) << hashes;
    }
    EXPECT_EQ(things.size(), known.size());
    // At most half full, in powers of two: 16 to 32 bytes a thing.
    EXPECT_LE(index.MemoryBytes(), things.size() * 32 + 16);
  }
}

TEST(FlatMapTest, HoldsWhatWasPutIn) {
  std::mt19937_64 random(5);
  FlatMap<uint32_t> map;
  std::unordered_map<uint64_t, uint32_t> known;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t key = random() % 3000 << (random() % 2 == 0 ? 0 : 32);
    const auto it = known.find(key);
    const uint32_t* found = map.Find(key);
    ASSERT_EQ(found != nullptr, it != known.end()) << key;
    if (found != nullptr) {
      ASSERT_EQ(*found, it->second);
    } else {
      map.Insert(key, static_cast<uint32_t>(i));
      known.emplace(key, static_cast<uint32_t>(i));
    }
    if (known.size() == 2000) {
      const size_t bytes = map.MemoryBytes();
      map.Clear();
      known.clear();
      ASSERT_EQ(map.MemoryBytes(), bytes);
    }
    ASSERT_EQ(map.size(), known.size());
  }
}

}  // namespace
}  // namespace pawl
