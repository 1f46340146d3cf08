// Small programs that compilers accept (tsc 4.8, those at the end a later one; javac 17), dense
// with what is hard about the language: none of their names is refused, neither while they are
// typed nor with the text behind the name, and neither are their ends. `//// name` begins a
// program,
// `//// file: path` a file of one that has several, which is a repository of its own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "src/base/file.h"
#include "tests/monitors/monitors_test_util.h"

namespace pawl::monitors {
namespace {

namespace fs = std::filesystem;

struct SmallProgram {
  std::string name;
  std::vector<std::pair<std::string, std::string>> files;
};

std::vector<SmallProgram> SmallPrograms(const std::string& file, const std::string& main) {
  std::vector<SmallProgram> programs;
  const auto text = ReadRegularFile(std::string(PAWL_TEST_SMALL_PROGRAMS) + "/" + file, 1 << 20);
  EXPECT_TRUE(text.ok());
  for (size_t at = 0; text.ok() && at < text->size();) {
    const size_t end = std::min(text->find('\n', at), text->size());
    const std::string line = text->substr(at, end - at);
    at = end + 1;
    if (line.starts_with("//// file: ")) {
      programs.back().files.emplace_back(line.substr(11), "");
    } else if (line.starts_with("//// ")) {
      programs.push_back({.name = line.substr(5), .files = {}});
    } else {
      if (programs.back().files.empty()) programs.back().files.emplace_back(main, "");
      programs.back().files.back().second += line + "\n";
    }
  }
  return programs;
}

// Each name of a member is written where it stands.
std::optional<Refusal> JudgeEditing(MonitorSet& set, const std::string& text) {
  Scan scan(set.language());
  for (size_t at = 0; at < text.size(); scan.Add(text[at++])) {
    if (at == 0 || text[at - 1] != '.' || !NameStart(text[at]) || !scan.in_code()) continue;
    size_t end = at;
    while (end < text.size() && NameByte(text[end])) ++end;
    TextState state = set.Start(text.substr(0, at), text.substr(end));
    Refusal refusal;
    for (size_t i = at; i <= end && i < text.size(); ++i) {
      if (state.Add(text[i], &refusal)) continue;
      refusal.byte = at;
      refusal.identifier = text.substr(at, end - at);
      return refusal;
    }
  }
  return std::nullopt;
}

void ExpectNothing(MonitorSet& set, const SmallProgram& program, const std::string& text) {
  for (const bool editing : {false, true}) {
    const auto refusal = editing ? JudgeEditing(set, text) : Judge(set, text);
    EXPECT_FALSE(refusal.has_value())
        << program.name << (editing ? ", edited" : ", typed") << ", byte " << refusal->byte
        << ": \"" << refusal->identifier << "\": " << refusal->message << " (" << refusal->monitor
        << ")";
  }
}

void ExpectAllAccepted(Language language, const std::string& file, const std::string& main,
                       size_t least, size_t constrained) {
  const fs::path base =
      fs::temp_directory_path() / ("pawl_small_programs_" + std::to_string(getpid()));
  const auto alone = AllMonitors(language);
  size_t count = 0;
  for (const SmallProgram& program : SmallPrograms(file, main)) {
    ++count;
    if (program.files.size() == 1) {
      ExpectNothing(*alone, program, program.files[0].second);
      continue;
    }
    fs::remove_all(base);
    for (const auto& [path, text] : program.files) {
      fs::create_directories((base / path).parent_path());
      std::ofstream(base / path, std::ios::binary) << text;
    }
    for (const auto& [path, text] : program.files) {
      auto set =
          MonitorSet::Make(language, {.repo = base.string(), .file = (base / path).string()});
      ASSERT_TRUE(set.ok());
      ExpectNothing(**set, program, text);
    }
  }
  fs::remove_all(base);
  EXPECT_GE(count, least);
  // The programs are judged, not passed over.
  EXPECT_GE(alone->counts().constrained, constrained);
}

TEST(SmallProgramsTest, TypeScript) {
  ExpectAllAccepted(Language::kTypeScript, "typescript.txt", "main.ts", 100, 2000);
}

TEST(SmallProgramsTest, Java) {
  ExpectAllAccepted(Language::kJava, "java.txt", "Main.java", 60, 0);
}

}  // namespace
}  // namespace pawl::monitors
