// The archive of labelled TypeScript programs ($PAWL_DATA_DIR/typescript-programs): what a compiler
// accepted is never refused by the monitors; of what it refused for names, members, numbers of
// arguments and constants only, they refuse most.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/monitors/monitors_test_util.h"

namespace pawl::monitors {
namespace {

class ArchiveTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("PAWL_DATA_DIR");
    if (folder == nullptr)
      GTEST_SKIP() << "PAWL_DATA_DIR names no folder with typescript-programs/";
    std::ifstream file(std::string(folder) + "/typescript-programs/programs.jsonl");
    if (!file) GTEST_SKIP() << "no typescript-programs/programs.jsonl in " << folder;
    for (std::string line; std::getline(file, line);)
      programs_.push_back(nlohmann::json::parse(line));
  }
  std::vector<nlohmann::json> programs_;
  std::unique_ptr<MonitorSet> set_ = AllMonitors(Language::kTypeScript);
};

TEST_F(ArchiveTest, NeverInTheWayOfWhatCompiles) {
  size_t seen = 0;
  for (size_t i = 0; i < programs_.size(); ++i) {
    const auto& program = programs_[i];
    const bool model = program["label"] == "well_typed";
    if (!model && program["label"] != "accept") continue;
    if (model && i % 8 != 0) continue;  // all of them: pawl monitor
    ++seen;
    const std::string text = program["program"];
    const auto refusal = Judge(*set_, text);
    EXPECT_FALSE(refusal.has_value()) << "line " << i + 1 << ": " << refusal->identifier << " at "
                                      << refusal->byte << ": " << refusal->message << "\n"
                                      << text;
  }
  EXPECT_GT(seen, 1000U);
}

TEST_F(ArchiveTest, RefusesMostOfWhatDoesNotExist) {
  // The compiler's numbers for unknown names and members, numbers of arguments and assignments to
  // constants. Those for names that a host declares (2584, 2591) are not counted: here they are
  // names of open types.
  const std::set<int> about = {2304, 2339, 2540, 2551, 2552, 2554, 2555, 2588};
  size_t all = 0;
  size_t refused = 0;
  for (const auto& program : programs_) {
    if (program["label"] != "type_error") continue;
    const auto& codes = program["tsc_semantic"];
    if (!std::all_of(codes.begin(), codes.end(),
                     [&](const auto& code) { return about.contains(code.template get<int>()); })) {
      continue;
    }
    ++all;
    refused += Judge(*set_, program["program"].get<std::string>()).has_value() ? 1 : 0;
  }
  EXPECT_GT(all, 200U);
  EXPECT_GE(static_cast<double>(refused), 0.9 * static_cast<double>(all))
      << refused << " of " << all;
}

TEST_F(ArchiveTest, StrictAcceptsWhatCompilesAndHardlyAnythingElse) {
  size_t good = 0;
  size_t accepted = 0;
  size_t bad = 0;
  size_t refused = 0;
  for (size_t i = 0; i < programs_.size(); i += 8) {
    const bool well = programs_[i]["label"] == "well_typed";
    if (!well && programs_[i]["label"] != "type_error") continue;
    const bool refusal = set_->FinishStrict(programs_[i]["program"].get<std::string>()).has_value();
    (well ? good : bad) += 1;
    if (well) accepted += refusal ? 0 : 1;
    if (!well) refused += refusal ? 1 : 0;
  }
  EXPECT_GE(static_cast<double>(accepted), 0.9 * static_cast<double>(good))
      << accepted << " of " << good;
  EXPECT_GE(static_cast<double>(refused), 0.97 * static_cast<double>(bad))
      << refused << " of " << bad;
}

}  // namespace
}  // namespace pawl::monitors
