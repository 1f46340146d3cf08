// main() of the test programs: GoogleTest's, and four things for CTest, which runs a program as a
// few shards (pawl_shards in tests/CMakeLists.txt). All four are asked for in the environment:
//
//   PAWL_TEST_ONLY=PATTERNS     only cases that match, e.g. "LspTest.*:RegexTest.Big"
//   PAWL_TEST_WITHOUT=PATTERNS  no cases that match
//   PAWL_TEST_SKIPPED=77        the exit code when nothing failed and a case was skipped
//   PAWL_TEST_SECONDS=120       how long a case may take before the program ends with its name
//
// --gtest_filter and GTEST_FILTER hold besides. A program that a signal ends names its case too,
// since GTEST_BRIEF=1 does not print the names of cases that begin.
#include <fnmatch.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

// The case that runs, for the handlers of signals: little more than write(2) is allowed there.
char current_case[512];
unsigned seconds_allowed = 0;
double seconds_at_begin = 0, seconds_at_alarm = 0;  // of processor time

int NumberFrom(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

double ProcessorSecondsSoFar() {
  double sum = 0;
  for (const int whose : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used;
    getrusage(whose, &used);
    for (const timeval& part : {used.ru_utime, used.ru_stime})
      sum += static_cast<double>(part.tv_sec) + static_cast<double>(part.tv_usec) * 1e-6;
  }
  return sum;
}

void TellCase(int signal) {
  const char* how = signal == SIGALRM ? "takes too long (PAWL_TEST_SECONDS)" : "ended the program";
  for (const char* part : {"\nThe case ", const_cast<const char*>(current_case), " ", how, "\n"}) {
    if (write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// On a busy machine a case may wait for a processor most of the time. It goes on while it gets some
// processor time, and has had less than half of what it is allowed.
void EndSlowCase(int signal) {
  const double now = ProcessorSecondsSoFar(), allowed = seconds_allowed;
  if (now - seconds_at_alarm < allowed / 100 || now - seconds_at_begin > allowed / 2)
    return TellCase(signal);
  seconds_at_alarm = now;
  alarm(seconds_allowed);
}

class CaseWatch : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo& info) override {
    const std::string name = std::string(info.test_suite_name()) + "." + info.name();
    current_case[name.copy(current_case, sizeof(current_case) - 1)] = '\0';
    seconds_at_begin = seconds_at_alarm = ProcessorSecondsSoFar();
    alarm(seconds_allowed);
  }
  void OnTestEnd(const testing::TestInfo&) override {
    alarm(0);
    std::strcpy(current_case, "(none)");
  }
};

// `patterns` as --gtest_filter has them, without the part after a "-".
bool Matches(std::string_view patterns, const std::string& name) {
  while (!patterns.empty()) {
    const size_t end = std::min(patterns.find(':'), patterns.size());
    if (fnmatch(std::string(patterns.substr(0, end)).c_str(), name.c_str(), 0) == 0) return true;
    patterns.remove_prefix(std::min(end + 1, patterns.size()));
  }
  return false;
}

bool PassesFilter(std::string_view filter, const std::string& name) {
  const size_t minus = std::min(filter.find('-'), filter.size());
  const std::string_view wanted = filter.substr(0, minus);
  return Matches(wanted.empty() ? "*" : wanted, name) &&
         (minus == filter.size() || !Matches(filter.substr(minus + 1), name));
}

// Makes the filter the list of those cases that pass it and that the environment asks for.
void NarrowFilter() {
  const char* only = std::getenv("PAWL_TEST_ONLY");
  const char* without = std::getenv("PAWL_TEST_WITHOUT");
  if (only == nullptr && without == nullptr) return;
  std::string& filter = testing::GTEST_FLAG(filter);
  std::string names;
  const testing::UnitTest& program = *testing::UnitTest::GetInstance();
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *program.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const std::string name = std::string(suite.name()) + "." + suite.GetTestInfo(j)->name();
      if (!PassesFilter(filter, name) || (only != nullptr && !Matches(only, name)) ||
          (without != nullptr && Matches(without, name)))
        continue;
      names += (names.empty() ? "" : ":") + name;
    }
  }
  filter = names.empty() ? "-*" : names;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  NarrowFilter();
  testing::UnitTest& program = *testing::UnitTest::GetInstance();
  program.listeners().Append(new CaseWatch);
  seconds_allowed = static_cast<unsigned>(NumberFrom("PAWL_TEST_SECONDS"));
  std::signal(SIGALRM, EndSlowCase);
  std::signal(SIGABRT, TellCase);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, TellCase);
#endif
  const int result = RUN_ALL_TESTS();
  const bool skipped = program.skipped_test_count() > 0;
  return result == 0 && skipped ? NumberFrom("PAWL_TEST_SKIPPED") : result;
}
