// pawl tune through the command, and the configuration files that it writes.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/base/file.h"
#include "tests/cli/cli_test_util.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

std::string TuneFile(const std::string& name, const std::string& content) {
  const std::string path = ::testing::TempDir() + "/" + name;
  EXPECT_TRUE(WriteFile(path, content).ok());
  return path;
}

std::string TunePromptsFile() {
  std::string lines;
  for (const char* word : {"one", "two", "six", "ten", "red", "sea"}) {
    lines += std::string("{\"prompt\":\"Say ") + word + ": \"}\n";
  }
  return TuneFile("tune_prompts.jsonl", lines);
}

CommandResult TuneWith(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {
      "tune", "--model", RandomModelFolder(), "--max-tokens", "6", "--trials", "12"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunPawl(arguments);
}

// Greedy outputs are mostly refused. With the check in the search none is.
TEST(TuneCommandTest, FindsThatAGuidedSearchIsBetter) {
  const std::string out = ::testing::TempDir() + "/tuned.toml";
  const std::string ledger = TuneFile("tune.ledger", "");
  std::remove(ledger.c_str());
  const std::vector<std::string> options = {
      "--prompts",           TunePromptsFile(), "--regex", "[a-d]{3,5}", "--check",
      "regex:[abd]*d[abd]*", "--ledger",        ledger,    "--out",      out};
  const CommandResult first = TuneWith(options);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.out.find("held out (2 examples)"), std::string::npos) << first.out;
  const Result<std::string> config = ReadFile(out, 1 << 16);
  ASSERT_TRUE(config.ok()) << first.out;
  EXPECT_TRUE(config->starts_with("[generate]\nsearch=\"")) << *config;
  EXPECT_NE(config->find("check=[\"regex:[abd]*d[abd]*\"]"), std::string::npos) << *config;
  // The command takes the file, in front of the subcommand or behind it.
  for (const bool before : {true, false}) {
    std::vector<std::string> use = {"--config", out};
    std::vector<std::string> rest = {"generate",   "--model",      RandomModelFolder(),
                                     "--prompt",   "Say one: ",    "--regex",
                                     "[a-d]{3,5}", "--max-tokens", "6"};
    rest.insert(before ? rest.begin() : rest.end(), use.begin(), use.end());
    const CommandResult used = RunPawl(rest);
    EXPECT_EQ(used.exit_code, 0) << used.err;
    EXPECT_EQ(used.out.find('c'), std::string::npos) << used.out;
    EXPECT_NE(used.out.find('d'), std::string::npos) << used.out;
  }
  // All is in the ledger: the same trials, and after a part of it, too.
  const Result<std::string> whole = ReadFile(ledger, 1 << 20);
  ASSERT_TRUE(whole.ok());
  const CommandResult again = TuneWith(options);
  EXPECT_EQ(again.out, first.out) << again.err;
  EXPECT_EQ(*ReadFile(ledger, 1 << 20), *whole);
  ASSERT_TRUE(WriteFile(ledger, whole->substr(0, whole->size() / 2)).ok());
  EXPECT_EQ(TuneWith(options).out, first.out);
  EXPECT_EQ(*ReadFile(ledger, 1 << 20), *whole);
  std::vector<std::string> other = options;
  other.insert(other.end(), {"--seed", "7"});
  const CommandResult wrong = TuneWith(other);
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("line 1: is of another run"), std::string::npos) << wrong.err;
}

TEST(TuneCommandTest, TunesExtraction) {
  const std::string out = ::testing::TempDir() + "/tuned_extract.toml";
  std::remove(out.c_str());
  const std::string schema = SourceDir() + "/bench/extract/order.schema.json";
  const CommandResult result =
      RunPawl({"tune", "--schema", schema, "--data", SourceDir() + "/bench/extract/orders.jsonl",
               "--where", "split=kept", "--limit", "30", "--trials", "6", "--out", out});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("held out (10 examples)"), std::string::npos) << result.out;
  const bool better = result.out.find("nothing is better") == std::string::npos;
  EXPECT_EQ(ReadFile(out, 1 << 16).ok(), better);
  if (!better) return;
  const CommandResult used =
      RunPawl({"extract", "--config", out, "--schema", schema, "--text", "Order 12 for Ann Lee"});
  EXPECT_EQ(used.exit_code, 0) << used.err;
}

TEST(TuneCommandTest, SaysWhereNothingIsBetter) {
  const CommandResult result = TuneWith(
      {"--prompts", TunePromptsFile(), "--regex", "[a-d]{3,5}", "--check", "regex:[a-d]*"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("nothing is better than the default"), std::string::npos) << result.out;
}

TEST(TuneCommandTest, WrongOptionsAreNamed) {
  const std::string prompts = TunePromptsFile();
  const std::pair<std::vector<std::string>, const char*> kCases[] = {
      {{}, "one of --data and --prompts is wanted"},
      {{"--prompts", prompts}, "--prompts: needs \"expect\" in each line, or --check or --critic"},
      {{"--data", prompts, "--regex", "a"}, "--regex: needs --prompts"},
      {{"--prompts", TuneFile("bad.jsonl", "{\"text\":1}\n")}, "line 1: must have a text"},
      {{"--prompts", TuneFile("two.jsonl", "{\"prompt\":\"a\",\"expect\":\"b\"}\n")},
       "--prompts: needs three examples or more"},
  };
  for (const auto& [options, message] : kCases) {
    const CommandResult result = TuneWith(options);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
  }
  const CommandResult unknown = RunPawl(
      {"--config", TuneFile("unknown.toml", "[generate]\nbeams=3\n"), "generate", "--prompt", "a"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("--config: there is no option generate.beams"), std::string::npos)
      << unknown.err;
  const CommandResult missing = RunPawl({"generate", "--config", "/no/such.toml", "--prompt", "a"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(missing.err.find("--config: /no/such.toml: cannot be read"), std::string::npos)
      << missing.err;
}

}  // namespace
}  // namespace pawl
