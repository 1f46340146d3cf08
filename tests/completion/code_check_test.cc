// Checks of code: what parses, what monitors refuse, at the end and before it.
#include "src/completion/code_check.h"

#include <gtest/gtest.h>

#include "src/decode/sampling/check_spec.h"

namespace pawl::completion {
namespace {

Verdict JudgeCode(const std::string& spec, std::string_view text, bool ended = true) {
  const auto check = MakeCodeCheck(spec);
  EXPECT_TRUE(check.ok()) << check.error().ToString();
  const Result<Verdict> verdict = (*check)->Judge({.text = text, .tokens = {}, .ended = ended});
  EXPECT_TRUE(verdict.ok());
  return *verdict;
}

TEST(CodeCheckTest, CompleteOutputsParse) {
  EXPECT_EQ(JudgeCode("syntax:python", "def f(x):\n    return x\n"), Verdict::kAccept);
  EXPECT_EQ(JudgeCode("syntax:python", "def f(x:\n"), Verdict::kDead);
  EXPECT_EQ(JudgeCode("syntax:python", "def f(x:\n", false), Verdict::kLive);
  EXPECT_EQ(JudgeCode("syntax:java", "class A { int x = 1; }"), Verdict::kAccept);
  EXPECT_EQ(JudgeCode("syntax:java", "class A { int x = ; }"), Verdict::kDead);
  EXPECT_EQ(JudgeCode("syntax:typescript", "const a: number = 1;"), Verdict::kAccept);
  EXPECT_EQ(JudgeCode("syntax:typescript", "const = 1;"), Verdict::kDead);
}

TEST(CodeCheckTest, MonitorsRefuseNamesThatAreNot) {
  const auto check = MakeCodeCheck("monitor:typescript");
  ASSERT_TRUE(check.ok()) << check.error().ToString();
  const auto judge = [&](std::string_view text, bool ended, std::string* why = nullptr) {
    return *(*check)->Judge({.text = text, .tokens = {}, .ended = ended, .why = why});
  };
  std::string why;
  EXPECT_EQ(judge("const xs = [1];\nxs.len", false), Verdict::kLive);
  EXPECT_EQ(judge("const xs = [1];\nxs.lengh", false, &why), Verdict::kDead);
  EXPECT_EQ(why, "dereference: no name that may stand here begins so");
  // Another text, then one that goes on with an earlier one.
  EXPECT_EQ(judge("const y = 2;", true), Verdict::kAccept);
  EXPECT_EQ(judge("const xs = [1];\nxs.length;", true), Verdict::kAccept);
  EXPECT_EQ(judge("const xs = [1];\nxs.lengh;", true), Verdict::kDead);
}

TEST(CodeCheckTest, WrongSpecsAreNamed) {
  const auto error = [](const std::string& spec) { return MakeCodeCheck(spec).error().message; };
  EXPECT_TRUE(IsCodeCheck("syntax:python"));
  EXPECT_FALSE(IsCodeCheck("regex:syntax:"));
  EXPECT_EQ(error("syntax:cobol"), "names none of the languages typescript, java, python, cpp");
  EXPECT_EQ(error("syntax"), "is not syntax:LANGUAGE or monitor:LANGUAGE");
  EXPECT_EQ(error("syntax@line:python"), "has a granularity: complete outputs alone are parsed");
}

}  // namespace
}  // namespace pawl::completion
