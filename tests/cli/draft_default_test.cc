// Drafts are on where nothing is said, in each command, and off without a word where they cannot
// run. Oracle of the outputs: those of `--draft off`.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/cli_test_util.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

using Words = std::vector<std::string>;

Words With(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The output, and the names of the sources that stand in the statistics.
std::pair<std::string, Words> Said(const Words& words) {
  const std::string file = ScratchPath("stats.json");
  const CommandResult result = RunPawl(With(words, {"--stats-json", file}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  Words names;
  const auto stats = nlohmann::json::parse(std::ifstream(file));
  for (const auto& [name, source] : stats["drafts"]["sources"].items()) names.push_back(name);
  return {result.out, names};
}

TEST(DraftDefaultTest, OutputsHaveDraftsAndStayTheSame) {
  const std::string schema = SourceDir() + "/schemas/examples/contact.json";
  for (const Words& words :
       {Words{"extract", "--schema", schema, "--text", "Ann Lee works at Harrow Ltd."},
        Words{"generate", "--prompt", "A colour: ", "--schema", schema, "--temperature", "0.8",
              "--max-tokens", "80"}}) {
    const auto [text, sources] = Said(words);
    EXPECT_EQ(sources, (Words{"forced", "history", "literals", "ngram", "recycling", "suffix"}));
    EXPECT_EQ(Said(With(words, {"--draft", "off"})), std::pair(text, Words()));
    EXPECT_EQ(Said(With(words, {"--draft", "auto"})), std::pair(text, sources));
  }
}

// "auto" takes the text that is given, so it is read; with "off" it is refused.
TEST(DraftDefaultTest, EveryCommandHasThem) {
  const std::string schema = SourceDir() + "/schemas/examples/contact.json";
  std::vector<Words> commands = {{"extract", "--schema", schema, "--text", "Ann"},
                                 {"generate", "--prompt", "x"},
                                 {"serve", "--port", "0"}};
#ifdef PAWL_HAVE_MONITORS
  commands.push_back({"complete", "--language", "typescript", "--prefix", "const a ="});
  commands.push_back({"lsp"});
#endif
  for (const Words& words : commands) {
    const CommandResult on = RunPawl(With(words, {"--draft-text", "/no/such/text"}));
    EXPECT_NE(on.exit_code, 0) << words[0];
    EXPECT_NE(on.err.find("/no/such/text: "), std::string::npos) << words[0] << ": " << on.err;
    const CommandResult off =
        RunPawl(With(words, {"--draft-text", "/no/such/text", "--draft", "off"}));
    EXPECT_EQ(off.exit_code, 2) << words[0];
    EXPECT_NE(off.err.find("--draft-text: needs --draft auto"), std::string::npos) << off.err;
  }
  EXPECT_NE(RunPawl({"serve", "--show-config"}).out.find("\ndraft = \"auto\"\n"),
            std::string::npos);
}

TEST(DraftDefaultTest, WhereDraftsCannotRunOnlyANamedSourceIsAnError) {
  const Words search = {"generate", "--prompt", "A: ",  "--regex",
                        "(yes|no)", "--search", "beam", "--draft"};
  const CommandResult off = RunPawl(With(search, {"off"}));
  EXPECT_EQ(off.exit_code, 0) << off.err;
  EXPECT_EQ(RunPawl(With(search, {"auto"})).out, off.out);
  EXPECT_EQ(RunPawl(Words(search.begin(), search.end() - 1)).out, off.out);
  for (const Words& named :
       {Words{"suffix"}, Words{"auto", "--draft-text", SourceDir() + "/README.md"}}) {
    const CommandResult refused = RunPawl(With(search, named));
    EXPECT_EQ(refused.exit_code, 2) << refused.out;
    EXPECT_NE(refused.err.find("cannot be used with --draft"), std::string::npos) << refused.err;
  }
}

}  // namespace
}  // namespace pawl
