// Sets as interned values against std::set: what is in them, and that equal ones are one.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "schemas/frames/frames.h"

namespace pawl::schema {
namespace {

TEST(IdSetTest, AgreesWithSetsOfTheLibrary) {
  std::mt19937 random(11);
  IdSets sets;
  std::vector<std::pair<IdSets::Id, std::set<uint32_t>>> made = {{IdSets::kEmpty, {}}};
  std::map<std::set<uint32_t>, IdSets::Id> known = {{{}, IdSets::kEmpty}};
  for (int i = 0; i < 4000; ++i) {
    // Members near each other and far apart, added to any set that there was, in any order.
    const uint32_t member = random() % (i % 3 == 0 ? 6 : i % 3 == 1 ? 300 : 1u << 20);
    auto [id, members] = made[made.size() - 1 - random() % std::min<size_t>(made.size(), 40)];
    const bool there = members.count(member) > 0;
    EXPECT_EQ(sets.Contains(id, member), there);
    const IdSets::Id next = sets.With(id, member);
    EXPECT_EQ(next == id, there);
    members.insert(member);
    const auto [it, fresh] = known.try_emplace(members, next);
    EXPECT_EQ(it->second, next) << "equal sets have one id, whatever order they were made in";
    if (fresh) {
      EXPECT_EQ(sets.With(sets.Before(next), sets.Last(next)), next);
    }
    made.emplace_back(next, members);
  }
  for (const auto& [id, members] : made) {
    EXPECT_EQ(sets.Size(id), members.size());
    std::vector<uint32_t> listed = sets.Members(id);
    std::sort(listed.begin(), listed.end());
    EXPECT_TRUE(std::equal(listed.begin(), listed.end(), members.begin(), members.end()));
    for (int probe = 0; probe < 8; ++probe) {
      const uint32_t member = random() % 300;
      EXPECT_EQ(sets.Contains(id, member), members.count(member) > 0);
    }
  }
}

// A sum over the members, kept for every set on the way, against adding them up.
TEST(IdSetTest, FoldsInTheOrderOfMakingAndOnce) {
  std::mt19937 random(12);
  IdSets sets;
  std::vector<IdSets::Id> made = {IdSets::kEmpty};
  std::map<std::pair<int, IdSets::Id>, std::vector<uint32_t>> known;
  int steps = 0;
  for (int i = 0; i < 2000; ++i) {
    made.push_back(sets.With(made[made.size() - 1 - random() % std::min<size_t>(made.size(), 9)],
                             random() % 50));
    const auto append = [&](std::vector<uint32_t> before, uint32_t member) {
      ++steps;
      before.push_back(member);
      return before;
    };
    const IdSets::Id set = made[random() % made.size()];
    EXPECT_EQ(sets.Fold(known, set, std::vector<uint32_t>(), append, 7), sets.Members(set));
  }
  EXPECT_EQ(steps, static_cast<int>(known.size())) << "each set is looked at once";
}

}  // namespace
}  // namespace pawl::schema
