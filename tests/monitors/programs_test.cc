// Whole programs in tests/monitors/programs that their compilers accept, with features that are
// rarer than those of most programs: no prefix of them is refused, and neither is their end.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "src/base/file.h"
#include "tests/monitors/monitors_test_util.h"

namespace pawl::monitors {
namespace {

namespace fs = std::filesystem;

TEST(ProgramsTest, NoPrefixOfAProgramThatCompilesIsRefused) {
  std::map<Language, std::unique_ptr<MonitorSet>> sets;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(PAWL_TEST_PROGRAMS)))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  size_t read = 0;
  size_t constrained = 0;
  for (const fs::path& file : files) {
    const auto language = LanguageOfFile(file.string());
    if (!language) continue;
    auto& set = sets[*language];
    if (set == nullptr) set = AllMonitors(*language);
    const auto text = ReadRegularFile(file.string(), size_t{1} << 20);
    ASSERT_TRUE(text.ok());
    set->counts() = {};
    const auto refusal = Judge(*set, *text);
    EXPECT_FALSE(refusal.has_value())
        << file.filename() << " byte " << refusal->byte << ": \"" << refusal->identifier
        << "\": " << refusal->message << " (" << refusal->monitor << ")";
    constrained += set->counts().constrained;
    ++read;
  }
  EXPECT_GE(read, 30U);
  // The programs are judged, not passed over.
  EXPECT_GE(constrained, 1000U);
}

}  // namespace
}  // namespace pawl::monitors
