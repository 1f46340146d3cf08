// Drafts are on where nothing is said, in each command, and off without a word where they cannot
// run. Oracle of the outputs: those of `--draft off`.
#include <gtest/gtest.h>

#include <cstdlib>
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

TEST(DraftDefaultTest, WrongOptionsAreNamedBeforeAnyOutput) {
  const Words words = {"generate", "--prompt", "x", "--max-tokens", "2"};
  const auto refused = [&](const Words& more, const std::string& said) {
    const CommandResult result = RunPawl(With(words, more));
    EXPECT_EQ(result.exit_code, 2) << said;
    EXPECT_EQ(result.out, "") << said;
    EXPECT_NE(result.err.find(said), std::string::npos) << result.err;
  };
  refused({"--draft", "auto,suffix"}, "--draft: \"auto\" stands alone");
  refused({"--draft", "suffix,wishes"}, "--draft: there is no source \"wishes\"");
  refused({"--draft-verify", "luck"}, "--draft-verify: there is no rule \"luck\"");
  refused({"--draft-shape", "delayed:9"}, "--draft-shape: must be heap, or delayed:D,K");
  refused({"--draft-history", "/no/such/folder/x"}, "/no/such/folder/x: cannot write");
  refused({"--draft-memory", "0"}, "--draft-memory: must be a whole number from 1 to 1048576");
  const std::string readme = SourceDir() + "/README.md";
  for (const Words& asked : {Words{"--draft-model", readme}, Words{"--draft-text", readme},
                             Words{"--draft-history", "x"}, Words{"--draft", "suffix"}}) {
    refused(With({"--regex", "(yes|no)", "--search", "beam"}, asked),
            "cannot be used with " + asked[0]);
  }
}

TEST(DraftDefaultTest, AVariableOfServeThatIsWrongIsNamed) {
  ::setenv("PAWL_SERVE_DRAFT", "wishes", 1);
  for (const Words& words : {Words{"serve", "--show-config"}, Words{"serve", "--port", "0"}}) {
    const CommandResult result = RunPawl(words);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find("PAWL_SERVE_DRAFT: --draft: there is no source \"wishes\""),
              std::string::npos)
        << result.err;
  }
  ::unsetenv("PAWL_SERVE_DRAFT");
}

TEST(DraftDefaultTest, AnOptionWithoutEffectIsNoted) {
  const Words words = {"generate", "--prompt", "A: ", "--regex", "(yes|no)", "--draft-nodes", "4"};
  const std::string note = "note: --draft-nodes has no effect: no drafts are made";
  for (const Words& more : {Words{"--draft", "off"}, Words{"--search", "beam"}}) {
    const CommandResult result = RunPawl(With(words, more));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find(note), std::string::npos) << result.err;
  }
  EXPECT_EQ(RunPawl(words).err.find(note), std::string::npos);
}

}  // namespace
}  // namespace pawl
