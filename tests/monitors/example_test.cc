// The monitor that docs/monitors.md writes as an example is compiled here as it stands there
// (signals.cc), and asked.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "plugins/monitors/monitor.h"
#include "src/base/file.h"

namespace pawl::monitors {

std::unique_ptr<Monitor> MakeSignalsMonitor();

namespace {

TEST(ExampleMonitorTest, TheTextOfTheDocumentationIsWhatIsCompiled) {
  const auto docs = ReadRegularFile(PAWL_TEST_DOCS "/monitors.md", size_t{1} << 20);
  const auto code = ReadRegularFile(PAWL_TEST_PROGRAMS "/../signals.cc", size_t{1} << 20);
  ASSERT_TRUE(docs.ok());
  ASSERT_TRUE(code.ok());
  EXPECT_NE(docs->find("```cpp\n" + *code + "```"), std::string::npos);
}

TEST(ExampleMonitorTest, AnswersAtItsTrigger) {
  const auto monitor = MakeSignalsMonitor();
  auto set = MonitorSet::Make(Language::kPython, {});
  ASSERT_TRUE(set.ok());
  Cursor cursor{.text = "signal.signal(signal.", .suffix = "", .next = 'S'};
  ASSERT_TRUE(monitor->Triggered(cursor));
  const Verdict verdict = monitor->Ask(cursor, (*set)->analysis());
  ASSERT_NE(verdict.names, nullptr);
  EXPECT_TRUE(std::is_sorted(verdict.names->names.begin(), verdict.names->names.end()));
  cursor.text = "signal.signal(";
  EXPECT_FALSE(monitor->Triggered(cursor));
}

}  // namespace
}  // namespace pawl::monitors
