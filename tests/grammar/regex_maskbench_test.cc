// The patterns of real schemas: every "pattern" and every key of "patternProperties" in the
// MaskBench schemas must be accepted, and its automaton must be cheap to walk.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "src/base/file.h"
#include "src/base/json.h"
#include "tests/grammar/regex_test_util.h"

namespace pawl {
namespace {

void Collect(const json::Value& root, std::set<std::string>& patterns) {
  std::vector<const json::Value*> pending{&root};
  while (!pending.empty()) {
    const json::Value* value = pending.back();
    pending.pop_back();
    for (const json::Value& item : value->items) pending.push_back(&item);
    for (const auto& [key, member] : value->members) {
      pending.push_back(&member);
      if (key == "pattern" && member.type == json::Type::kString) patterns.insert(member.text);
      if (key == "patternProperties") {
        for (const auto& [pattern, schema] : member.members) patterns.insert(pattern);
      }
    }
  }
}

TEST(RegexMaskBench, RealPatternsAreAccepted) {
#ifdef PAWL_DATA_DIR
  std::string folder = PAWL_DATA_DIR;
#else
  std::string folder;
#endif
  if (const char* named = std::getenv("PAWL_DATA_DIR")) folder = named;
  folder += "/maskbench-dev";
  if (!std::filesystem::is_directory(folder)) {
    GTEST_SKIP() << "PAWL_DATA_DIR does not name a folder with maskbench-dev";
  }
  std::set<std::string> patterns;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const Result<std::string> text = ReadFile(entry.path().string());
    ASSERT_TRUE(text.ok());
    json::ParseLimits limits;
    limits.allow_duplicate_keys = true;
    const Result<json::Value> file = json::Parse(*text, limits);
    if (!file.ok()) continue;
    // The answers' own texts are no schemas.
    const json::Value* schema = file->Find("schema");
    if (schema != nullptr) Collect(*schema, patterns);
  }
  ASSERT_GT(patterns.size(), 1000u);
  int refused = 0, overflown = 0;
  uint64_t most_work = 0;
  std::string slowest;
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& pattern : patterns) {
    auto arena = std::make_shared<RegexArena>();
    const Result<ReId> id = ParseEcma(*arena, pattern);
    if (!id.ok()) {
      ++refused;
      std::printf("refused: %s: %s\n", pattern.c_str(), id.error().ToString().c_str());
      continue;
    }
    // All states up to a number: what a mask compiler would see.
    RegexDfa dfa(arena, *id);
    std::vector<uint32_t> pending{dfa.Start()};
    std::set<uint32_t> seen{dfa.Start(), RegexDfa::kDead};
    while (!pending.empty() && seen.size() < 1000) {
      const uint32_t state = pending.back();
      pending.pop_back();
      for (int cls = 0; cls < dfa.classes(); ++cls) {
        const uint32_t next = dfa.Next(state, cls);
        if (seen.insert(next).second) pending.push_back(next);
      }
    }
    overflown += dfa.overflow();
    if (arena->work() > most_work) {
      most_work = arena->work();
      slowest = pattern;
    }
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%zu patterns, %d refused, %.2f s in all; most steps: %llu for %s\n", patterns.size(),
              refused, seconds, static_cast<unsigned long long>(most_work), slowest.c_str());
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(overflown, 0);
  EXPECT_LT(most_work, 2'000'000u) << slowest;
}

}  // namespace
}  // namespace pawl
