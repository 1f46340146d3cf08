// --thinking, --reasoning-marks and --reasoning of `pawl generate` and `pawl extract`. The model
// has random weights and tokens of single bytes, so each mark is several tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/json.h"
#include "tests/cli/cli_test_util.h"

namespace pawl {
namespace {

constexpr const char* kDeafChat =
    "{% for m in messages %}{{ m.content }}\n{% endfor %}{% if false %}</think>{% endif "
    "%}<think>\n";

std::string FileText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

CommandResult Think(const std::vector<std::string>& more, const char* chat = kDeafChat) {
  std::vector<std::string> arguments = {
      "generate",     "--model",   RandomModelFolder(), "--prompt",
      "Hi",           "--chat",    "--chat-template",   WriteScratch("thinking.jinja", chat),
      "--regex",      "(yes|no)!", "--temperature",     "1",
      "--max-tokens", "150"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunPawl(arguments);
}

TEST(ThinkingCommandTest, TheAnswerIsOnStandardOutputAndTheThoughtsInAFile) {
  const std::string file = ScratchPath("thoughts.txt");
  for (const char* thinking : {"12", "auto"}) {
    const CommandResult result = Think({"--thinking", thinking, "--reasoning", file});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(result.out == "yes!\n" || result.out == "no!\n") << result.out;
    EXPECT_NE(FileText(file), "");
    EXPECT_EQ(FileText(file).find("</think>"), std::string::npos);
  }
  const CommandResult off = Think({"--thinking", "off", "--reasoning", file});
  EXPECT_TRUE(off.out == "yes!\n" || off.out == "no!\n") << off.out << off.err;
  EXPECT_EQ(FileText(file), "");
  const std::string stats = ScratchPath("thinking_stats.json");
  ASSERT_EQ(Think({"--thinking", "12", "--stats-json", stats}).exit_code, 0);
  const auto value = json::Parse(FileText(stats));
  ASSERT_TRUE(value.ok());
  EXPECT_GE(std::stoi(value->Find("reasoning_tokens")->text), 12);
}

TEST(ThinkingCommandTest, MarksAndWhatChangesNothing) {
  constexpr const char* kNoMarks = "{% for m in messages %}{{ m.content }}\n{% endfor %}((";
  const std::string file = ScratchPath("marked.txt");
  const CommandResult marked =
      Think({"--reasoning-marks", "((", "))", "--thinking", "10", "--reasoning", file}, kNoMarks);
  EXPECT_TRUE(marked.out == "yes!\n" || marked.out == "no!\n") << marked.out << marked.err;
  EXPECT_NE(FileText(file), "");
  const CommandResult nothing = Think({"--thinking", "10"}, kNoMarks);
  EXPECT_EQ(nothing.exit_code, 0);
  EXPECT_NE(nothing.err.find("--thinking changes nothing"), std::string::npos) << nothing.err;
}

TEST(ThinkingCommandTest, WrongOptionsAreNamed) {
  const CommandResult much = Think({"--thinking", "much"});
  EXPECT_EQ(much.exit_code, 2);
  EXPECT_NE(much.err.find("--thinking: must be off, auto or a number"), std::string::npos)
      << much.err;
  const CommandResult prompt =
      RunPawl({"generate", "--model", RandomModelFolder(), "--prompt", "x", "--thinking", "off"});
  EXPECT_EQ(prompt.exit_code, 2);
  EXPECT_NE(prompt.err.find("need --chat or --messages"), std::string::npos) << prompt.err;
}

TEST(ThinkingCommandTest, ExtractThinksWhereItIsAsked) {
  const std::string folder = ModelFolderWith("extract_thinks", "");
  std::ofstream(folder + "/chat_template.jinja") << kDeafChat;
  const std::string schema = WriteScratch(
      "thinks.json", R"({"type":"object","properties":{"a":{"type":"integer","maximum":9,
      "minimum":0}},"required":["a"],"additionalProperties":false})");
  const std::string file = ScratchPath("records_thoughts.txt");
  const auto extract = [&](const std::vector<std::string>& more, std::string_view input) {
    std::vector<std::string> arguments = {"extract", "--model",      folder, "--schema",
                                          schema,    "--reasoning",  file,   "--temperature",
                                          "1",       "--max-tokens", "110"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunPawl(arguments, input);
  };
  const CommandResult off = extract({}, "7");
  ASSERT_EQ(off.exit_code, 0) << off.err;
  EXPECT_TRUE(off.out.starts_with("{\"a\":")) << off.out;
  EXPECT_EQ(FileText(file), "\"\"\n");
  const CommandResult some = extract({"--thinking", "5"}, "7");
  EXPECT_TRUE(some.out.starts_with("{\"a\":")) << some.out << some.err;
  EXPECT_GT(FileText(file).size(), 3u);
  const CommandResult lines = extract({"--thinking", "5", "--json-lines"}, "\"7\"\n\"\"\n\"8\"\n");
  EXPECT_EQ(lines.exit_code, 1);  // the second text is empty
  const std::string thoughts = FileText(file);
  EXPECT_EQ(std::count(thoughts.begin(), thoughts.end(), '\n'), 3) << thoughts;
  EXPECT_NE(thoughts.find("\nnull\n"), std::string::npos) << thoughts;
}

TEST(ThinkingCommandTest, ARecordBehindThoughtsLeavesOutWhatIsNotThere) {
  const std::string folder = ModelFolderWith("records_think", "");
  std::ofstream(folder + "/chat_template.jinja") << kDeafChat;
  const std::string schema = WriteScratch(
      "leaves_out.json", R"({"type":"object","properties":{"a":{"type":"string","maxLength":1},
      "b":{"type":"string","maxLength":1}},"required":["a"]})");
  const std::string file = ScratchPath("records_left_out.txt");
  int with = 0, without = 0, thoughts = 0;
  for (int seed = 0; seed < 8; ++seed) {
    for (const char* thinking : {"off", "6"}) {
      const CommandResult result = RunPawl(
          {"extract", "--model", folder, "--schema", schema, "--thinking", thinking, "--reasoning",
           file, "--temperature", "2", "--seed", std::to_string(seed), "--max-tokens", "130"},
          "7");
      ASSERT_EQ(result.exit_code, 0) << result.err;
      const auto record = json::Parse(result.out);
      ASSERT_TRUE(record.ok() && record->Find("a") != nullptr) << result.out;
      const json::Value* const other = record->Find("b");
      EXPECT_TRUE(other == nullptr || other->type == json::Type::kString) << result.out;
      const bool thought = FileText(file) != "\"\"\n";
      EXPECT_FALSE(thought && thinking == std::string_view("off")) << FileText(file);
      thoughts += thought ? 1 : 0;
      (other == nullptr ? without : with)++;
    }
  }
  EXPECT_GT(with, 0);
  EXPECT_GT(without, 0);
  EXPECT_GT(thoughts, 0);
}

}  // namespace
}  // namespace pawl
