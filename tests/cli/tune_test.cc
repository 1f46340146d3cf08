// pawl tune through the command, and the configuration files that it writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
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
  for (const char* word :
       {"one", "two", "six", "ten", "red", "sea", "eye", "oak", "ink", "air", "ash", "fog"}) {
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
  EXPECT_NE(first.out.find("held out (4 examples)"), std::string::npos) << first.out;
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
  // A ledger of another task.
  const std::vector<std::vector<std::string>> kOthers = {
      {"--regex", "[a-d]{3,6}"},
      {"--check", "regex:[a-d]*"},
      {"--special"},
      {"--prompts",
       TuneFile("tune_other.jsonl", *ReadFile(TunePromptsFile(), 1 << 16) +
                                        "{\"prompt\":\"Say nine: \",\"expect\":\"add\"}\n")}};
  const char* const kNames[] = {"--regex", "--check", "--special", "\"examples\""};
  for (size_t i = 0; i < kOthers.size(); ++i) {
    std::vector<std::string> changed = options;
    const auto at = std::ranges::find(changed, kOthers[i][0]);
    if (at == changed.end()) {
      changed.push_back(kOthers[i][0]);
    } else {
      *(at + 1) = kOthers[i][1];
    }
    const CommandResult refused = TuneWith(changed);
    EXPECT_EQ(refused.exit_code, 2) << kNames[i];
    EXPECT_NE(refused.err.find(std::string("is of another run: its ") + kNames[i] + " differs"),
              std::string::npos)
        << refused.err;
  }
  EXPECT_EQ(*ReadFile(ledger, 1 << 20), *whole);
  std::vector<std::string> other = options;
  other.insert(other.end(), {"--seed", "7"});
  const CommandResult wrong = TuneWith(other);
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("line 1: is of another run: its \"seed\" differs"), std::string::npos)
      << wrong.err;
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
  const CommandResult gone = RunPawl(
      {"tune", "--schema", schema, "--data", SourceDir() + "/bench/extract/orders.jsonl", "--where",
       "split=kept", "--limit", "12", "--trials", "2", "--check", "tests:/no/such/x"});
  EXPECT_EQ(gone.exit_code, 2) << gone.out;
  EXPECT_NE(gone.err.find("tests:/no/such/x: the command was not found"), std::string::npos);
  const bool better = result.out.find("nothing is better") == std::string::npos;
  EXPECT_EQ(ReadFile(out, 1 << 16).ok(), better);
  if (!better) return;
  const CommandResult used =
      RunPawl({"extract", "--config", out, "--schema", schema, "--text", "Order 12 for Ann Lee"});
  EXPECT_EQ(used.exit_code, 0) << used.err;
}

// The ledger is the same after a part of it, and after another run.
TEST(TuneCommandTest, FitsTheThresholdOfEntropy) {
  std::string lines;
  for (const char* text : {"abba", "cab", "dad", "bad", "baad", "add", "cad", "dab", "abc", "bcd",
                           "aabb", "ccdd", "acdc", "deed"}) {
    lines += std::string("{\"prompt\":\"Say: \",\"expect\":\"") + text + "\"}\n";
  }
  const std::string file = TuneFile("entropy.jsonl", lines);
  const std::string out = ::testing::TempDir() + "/entropy.toml";
  const std::string ledger = ::testing::TempDir() + "/entropy.ledger";
  std::remove(out.c_str());
  std::remove(ledger.c_str());
  const std::vector<std::string> options = {"--entropy", file,   "--regex", "[a-e]{3,5}",
                                            "--ledger",  ledger, "--out",   out};
  const CommandResult first = TuneWith(options);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Result<std::string> whole = ReadFile(ledger, 1 << 20);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(std::ranges::count(*whole, '\n'), 15);
  ASSERT_TRUE(WriteFile(ledger, whole->substr(0, whole->size() / 2)).ok());
  EXPECT_EQ(TuneWith(options).out, first.out);
  EXPECT_EQ(*ReadFile(ledger, 1 << 20), *whole);
  if (first.out.find("does not tell") == std::string::npos) {
    EXPECT_NE(first.out.find("held out (4 texts, "), std::string::npos) << first.out;
    const CommandResult used =
        RunPawl({"generate", "--config", out, "--model", RandomModelFolder(), "--prompt",
                 "Say: ", "--regex", "[a-e]{3,5}", "--max-tokens", "6"});
    EXPECT_EQ(used.exit_code, 0) << used.err;
  }
  const std::pair<std::vector<std::string>, const char*> kWrong[] = {
      {{"--entropy", file, "--prompts", file}, "--entropy: cannot be used with --prompts"},
      {{"--entropy", file, "--regex", "[a-d]{3,5}"}, "text 14: text: its token "},
      {{"--entropy", TuneFile("few.jsonl", lines.substr(0, lines.find('\n') + 1))},
       "--entropy: needs 12 examples or more, not 1"},
      {{"--prompts", TunePromptsFile(), "--check", "tests:/no/such/x"},
       "tests:/no/such/x: the command was not found"},
      {{"--prompts", TuneFile("number.jsonl", "{\"prompt\":\"a\",\"expect\":7}\n")},
       "number.jsonl: line 1: \"expect\" must be a text"},
      {{"--prompts", TuneFile("null.jsonl", "{\"prompt\":\"a\",\"expect\":null}\n")},
       "null.jsonl: line 1: \"expect\" must be a text"},
      {{"--entropy", TunePromptsFile()}, "text 1: must have a text \"expect\""},
      {{"--entropy", file, "--ledger", TuneFile("y.ledger", "y\n")}, "y.ledger: line 1: is not"},
  };
  for (const auto& [more, message] : kWrong) {
    const CommandResult wrong = TuneWith(more);
    EXPECT_EQ(wrong.exit_code, 2) << message;
    EXPECT_NE(wrong.err.find(message), std::string::npos) << wrong.err;
  }
}

TEST(TuneCommandTest, SaysWhereNothingIsBetter) {
  const std::string out = ::testing::TempDir() + "/not_tuned.toml";
  std::remove(out.c_str());
  const CommandResult result =
      TuneWith({"--prompts", TunePromptsFile(), "--regex", "[a-d]{3,5}", "--check", "regex:[a-d]*",
                "--row-cost", "0", "--out", out});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("nothing is better than the default"), std::string::npos) << result.out;
  EXPECT_NE(result.err.find("nothing is written to " + out), std::string::npos) << result.err;
  EXPECT_FALSE(ReadFile(out, 1 << 16).ok());
  // No setting is tried twice, and a score of nothing has no sign.
  std::set<std::string> settings;
  std::istringstream lines(result.err);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(": trial ") == std::string::npos) continue;
    EXPECT_TRUE(settings.insert(line.substr(line.find("[generate]"))).second) << line;
  }
  EXPECT_GE(settings.size(), 2u);
  EXPECT_EQ((result.err + result.out).find("-0.0000"), std::string::npos) << result.err;
}

TEST(TuneCommandTest, WrongOptionsAreNamed) {
  const std::string prompts = TunePromptsFile();
  const std::pair<std::vector<std::string>, const char*> kCases[] = {
      {{}, "--data: must be given, or --prompts or --entropy"},
      {{"--data", prompts, "--prompts", prompts}, "--prompts: cannot be used with --data"},
      {{"--prompts", prompts}, "--prompts: needs \"expect\" in each line, or --check or --critic"},
      {{"--data", prompts, "--regex", "a"}, "--regex: needs --prompts"},
      {{"--prompts", TuneFile("bad.jsonl", "{\"text\":1}\n")}, "line 1: must have a text"},
      {{"--prompts", TuneFile("two.jsonl", "{\"prompt\":\"a\",\"expect\":\"b\"}\n")},
       "--prompts: needs 12 examples or more, not 1"},
      {{"--prompts", prompts, "--check", "regex:a", "--ledger", TuneFile("x.ledger", "x\n")},
       "x.ledger: line 1: is not the first line of a ledger"},
  };
  for (const auto& [options, message] : kCases) {
    const CommandResult result = TuneWith(options);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
  }
}

TEST(ConfigFileTest, WrongFilesAreNamedWithTheLine) {
  const std::pair<const char*, const char*> kCases[] = {
      {"[generate]\nbeams=3\n", "line 2: pawl generate has no option beams"},
      {"# a\n\n[extrct]\nkeys=\"all\"\n", "line 3: there is no command extrct"},
      {"[generate\nn=3\n", "line 1: the name of a section has no ] at its end"},
      {"hello\n", "line 1: pawl has no option hello; options stand under [COMMAND]"},
      {"[generate]\nstop=[\"a\",\n", "line 2: the list has no ] at its end"},
      {"[generate]\nstop=[\"a\" \"b\"]\n", "line 2: a list needs commas"},
      {"[generate]\nstop=\"a\n", "line 2: a text has no quote at its end"},
      {"[generate]\nstop=\"\\d\"\n", "line 2: \\ begins no escape"},
      {"[generate]\nstop=\"a\" b\n", "line 2: \"b\" stands behind the value of stop"},
      {"[generate]\nsearch=beam\n", "line 2: a text must stand in quotes: \"beam\""},
      {"[generate]\nmax-tokens=3x\n", "line 2: a text must stand in quotes: \"3x\""},
      {"[generate]\nn=2\n[extract]\n[generate]\nseed=1\n",
       "line 4: [generate] stands in line 1 too"},
      {"[generate]\nseed=1\nseed=2\n", "line 3: seed stands in line 2 too"},
      {"[generate]\nconfig=\"a\"\n", "line 2: pawl generate has no option config"},
      // What CLI11 refuses, also in the section of another command.
      {"[generate]\n\nn=0\n", "line 3: --n: must be a whole number from 1"},
      {"[extract]\nthreads=2\n[generate]\nthreads=\"x\"\n", "line 4: --threads: must be a whole"},
      {"[extract]\nkeys=\"some\"\n", "line 2: --keys: must be one of"},
  };
  for (const auto& [text, message] : kCases) {
    const std::string file = TuneFile("wrong.toml", text);
    const CommandResult result = RunPawl({"generate", "--config", file, "--prompt", "a"});
    EXPECT_EQ(result.exit_code, 2) << text;
    EXPECT_NE(result.err.find("pawl generate: --config: " + file + ": " + message),
              std::string::npos)
        << text << result.err;
  }
  const CommandResult missing = RunPawl({"generate", "--config", "/no/such.toml", "--prompt", "a"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(missing.err.find("--config: /no/such.toml: cannot read: No such file"),
            std::string::npos)
      << missing.err;
}

// Escapes, commas and # in quotes, lists over lines, names with dots.
TEST(ConfigFileTest, TextsAreReadAsTomlHasThem) {
  const std::string file =
      TuneFile("texts.toml",
               "[generate] # of it\nregex='[#,\\]]{2}' # two\n\n; old\nstop = [ # none of them\n"
               "  \"a,\\u0062#\", 'x\\y',\n]\ngenerate.max-tokens=2\nstats\n");
  const CommandResult result =
      RunPawl({"generate", "--config", file, "--model", RandomModelFolder(), "--prompt", "a"});
  EXPECT_EQ(result.exit_code, 2);
  // The dotted name is below the section.
  EXPECT_NE(result.err.find("line 8: there is no command generate generate"), std::string::npos)
      << result.err;
  const std::string good = TuneFile(
      "good.toml",
      "generate.max-tokens=4\n[generate] # of it\nregex='[#,\\]]{2}' # two\n\n; old\nstats\n"
      "choice = []\n");
  const CommandResult used =
      RunPawl({"generate", "--config", good, "--model", RandomModelFolder(), "--prompt", "a"});
  EXPECT_EQ(used.exit_code, 0) << used.err;
  EXPECT_EQ(used.out.find_first_not_of("#,]\n"), std::string::npos) << used.out;
  EXPECT_NE(used.err.find("tokens"), std::string::npos) << used.err;
}

}  // namespace
}  // namespace pawl
