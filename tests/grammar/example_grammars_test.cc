// The grammars of grammar/examples and the sample texts next to them: samples/NAME.accept.N.txt
// must be in the language of NAME, samples/NAME.refuse.N.txt must not; and so after printing.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "grammar/languages/ebnf.h"
#include "grammar/languages/print.h"
#include "src/base/file.h"
#include "tests/grammar/cfg_reference.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

std::string Content(const fs::path& path) {
  Result<std::string> text = ReadFile(path.string());
  EXPECT_TRUE(text.ok()) << path;
  return text.ok() ? *text : "";
}

TEST(ExampleGrammarsTest, TakeTheirSamples) {
  const fs::path folder = fs::path(SourceDir()) / "grammar/examples";
  std::map<std::string, std::map<std::string, int>> seen;  // grammar, verdict
  std::vector<fs::path> grammars;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) grammars.push_back(entry.path());
  }
  EXPECT_GE(grammars.size(), 6u);
  for (const fs::path& path : grammars) {
    const bool gbnf = path.extension() == ".gbnf";
    if (!gbnf && path.extension() != ".ebnf") continue;
    const std::string name = path.stem().string();
    Result<GrammarIr> ir = gbnf ? ReadGbnf(Content(path), {}) : ReadEbnf(Content(path), {});
    ASSERT_TRUE(ir.ok()) << path << ": " << ir.error().ToString();
    const Result<std::string> printed = PrintGrammar(*ir, GrammarLanguage::kGbnf);
    ASSERT_TRUE(printed.ok()) << path << ": " << printed.error().ToString();
    Result<GrammarIr> again = ReadGbnf(*printed, {});
    ASSERT_TRUE(again.ok()) << path << ": " << again.error().ToString();
    CfgReference reference(*ir), second(*again);
    for (const auto& sample : fs::directory_iterator(folder / "samples")) {
      const std::string file = sample.path().filename().string();
      if (!file.starts_with(name + ".")) continue;
      const bool accept = file.find(".accept.") != std::string::npos;
      ++seen[name][accept ? "accept" : "refuse"];
      const std::string text = Content(sample.path());
      EXPECT_EQ(reference.Accepts(text), accept) << file;
      EXPECT_EQ(second.Accepts(text), accept) << file << " after printing";
    }
    EXPECT_GE(seen[name]["accept"], 2) << name;
    EXPECT_GE(seen[name]["refuse"], 2) << name;
  }
}

}  // namespace
}  // namespace pawl
