// Checks: grammars, memories of answers, programs that answer, are late, lie or die.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "pawl/sampling.h"
#include "src/base/file.h"
#include "src/decode/sampling/asking.h"
#include "src/decode/sampling/check_spec.h"
#include "tests/sampling/toy_model.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

TEST(CheckTest, AGrammarAsACheck) {
  const Toy toy(FairBits);
  const auto check = MakeGrammarCheck(toy.Compile("01?1"));
  const auto judge = [&](std::string_view text) {
    return *check->Judge({.text = text, .tokens = {}});
  };
  EXPECT_EQ(judge(""), Verdict::kLive);
  EXPECT_EQ(judge("0"), Verdict::kLive);
  EXPECT_EQ(judge("01"), Verdict::kAccept);
  EXPECT_EQ(judge("011"), Verdict::kAccept);
  EXPECT_EQ(judge("0111"), Verdict::kDead);
  EXPECT_EQ(judge("1"), Verdict::kDead);
}

// KIND:VALUE and KIND@GRANULARITY:VALUE.
TEST(CheckTest, ChecksAsTexts) {
  const auto vocabulary = ToyVocabulary();
  const auto make = [&](const std::string& spec) { return MakeCheckOf(spec, vocabulary); };
  const auto regex = make("regex:[01]+:1");
  ASSERT_TRUE(regex.ok());
  EXPECT_EQ((*regex)->granularity(), CheckGranularity::kByte);
  EXPECT_EQ(*(*regex)->Judge({.text = "01:1", .tokens = {}}), Verdict::kAccept);
  EXPECT_EQ((*make("regex@line:0"))->granularity(), CheckGranularity::kLine);
  EXPECT_EQ((*make("program:true"))->granularity(), CheckGranularity::kToken);
  EXPECT_EQ((*make("program@complete:true"))->granularity(), CheckGranularity::kComplete);
  const std::string examples = SourceDir() + "/schemas/examples/";
  const auto schema = make("schema:" + examples + "contact.json");
  ASSERT_TRUE(schema.ok()) << schema.error().ToString();
  EXPECT_EQ(*(*schema)->Judge({.text = "{ \"name\" : \"\\u0041", .tokens = {}}), Verdict::kLive);
  const auto grammar = make("grammar:" + SourceDir() + "/grammar/examples/sql.ebnf");
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  EXPECT_EQ(*(*grammar)->Judge({.text = "SELECT name FROM users", .tokens = {}}), Verdict::kAccept);
  const auto error = [&](const std::string& spec) {
    const auto made = make(spec);
    return made.ok() ? "none" : made.error().ToString();
  };
  EXPECT_EQ(error("regex"),
            "regex: is not KIND:VALUE or KIND@GRANULARITY:VALUE, with the kinds regex, schema, "
            "grammar, style, syntax, monitor, program, tests");
  EXPECT_EQ(
      error("word:a"),
      "word:a: has another kind than regex, schema, grammar, style, syntax, monitor, program, "
      "tests");
  EXPECT_EQ(error("regex@word:a"),
            "regex@word:a: has another granularity than byte, token, line, complete");
  EXPECT_EQ(error("program: "), "program: : names no program");
  EXPECT_EQ(error("regex:(").substr(0, 9), "regex:(: ");
  EXPECT_EQ(error("schema:/no/such").substr(0, 33), "schema:/no/such: /no/such: cannot");
  EXPECT_EQ(error("grammar:" + examples + "contact.json"),
            "grammar:" + examples + "contact.json: " + examples +
                "contact.json: its name does not end in .ebnf, .gbnf or .lark");
}

// When each granularity is asked, and about what.
TEST(CheckTest, Granularities) {
  std::vector<std::string> asked;
  const auto of = [&](CheckGranularity granularity) {
    return MakeCheck(granularity, [&](const CheckQuestion& q) -> Result<Verdict> {
      asked.push_back(std::string(q.text) + (q.ended ? "$" : "") + std::to_string(q.tokens.size()));
      return Verdict::kUnknown;
    });
  };
  int64_t count = 0;
  const std::string text = "ab";
  const std::vector<TokenId> tokens = {1, 2};
  for (const CheckGranularity g : {CheckGranularity::kByte, CheckGranularity::kToken,
                                   CheckGranularity::kLine, CheckGranularity::kComplete}) {
    const Checks checks = {of(g)};
    // What is unknown may go on, and may not end.
    EXPECT_TRUE(*MayGoOn(checks, text, tokens, 3, "c", count));
    EXPECT_TRUE(*MayGoOn(checks, text, tokens, 3, "c\nd\ne", count));
    EXPECT_FALSE(*MayEnd(checks, text, tokens, count));
  }
  EXPECT_EQ(asked, (std::vector<std::string>{"abc3", "abc\nd\ne3", "ab$2", "abc3", "abc\nd\ne3",
                                             "ab$2", "abc\nd\n3", "ab$2", "ab$2"}));
  EXPECT_EQ(count, 9);
}

TEST(CheckTest, AnswersAreRememberedWithinABudget) {
  std::atomic<int> asked = 0;
  const auto check =
      MakeCachedCheck(MakeCheck(CheckGranularity::kByte,
                                [&](const CheckQuestion& q) -> Result<Verdict> {
                                  ++asked;
                                  return q.text == "?" ? Verdict::kUnknown : Verdict::kLive;
                                }),
                      {.max_bytes = 1000});
  const auto judge = [&](std::string_view text, bool ended = false) {
    return *check->Judge({.text = text, .tokens = {}, .ended = ended});
  };
  for (int i = 0; i < 3; ++i) judge("a");
  EXPECT_EQ(asked, 1);
  judge("a", true);
  EXPECT_EQ(asked, 2);
  judge("?");
  judge("?");
  EXPECT_EQ(asked, 4);
  for (char c = 'b'; c <= 'z'; ++c) judge(std::string(1, c));
  const int before = asked;
  judge("z");
  EXPECT_EQ(asked, before);
  judge("a");
  EXPECT_EQ(asked, before + 1);
}

// A program for the shell that answers each question with what `answer` prints; $id, $line and $n,
// the number of the question, are there.
ProgramCheckOptions Shell(const std::string& answer) {
  ProgramCheckOptions options;
  options.command = {
      "/bin/sh", "-c",
      "n=0; while read -r line; do n=$((n+1)); id=${line#*:}; id=${id%%,*}; " + answer + "; done"};
  return options;
}
Result<Verdict> Ask(const Check& check, std::string_view text, bool ended = false) {
  const TokenId tokens[] = {4, 5};
  return check.Judge({.text = text, .tokens = tokens, .ended = ended});
}
std::shared_ptr<const Check> Program(const ProgramCheckOptions& options) {
  Result<std::shared_ptr<const Check>> check = MakeProgramCheck(options);
  EXPECT_TRUE(check.ok());
  return *check;
}

TEST(ProgramCheckTest, AnswersAndTheirMemory) {
  const auto check = Program(Shell(
      R"(case $line in *dead*) v=dead;; *'"ended":true'*) v=accept;; *'\u00e9'*|*)"
      "\xC3\xA9"
      R"(*) v=unknown;; *'"tokens":[4,5]'*) v=live;; esac; echo "{\"id\":$id,\"verdict\":\"$v\"}")"));
  EXPECT_EQ(*Ask(*check, "some"), Verdict::kLive);
  EXPECT_EQ(*Ask(*check, "some"), Verdict::kLive);
  EXPECT_EQ(*Ask(*check, "some", true), Verdict::kAccept);
  EXPECT_EQ(*Ask(*check, "dead", true), Verdict::kDead);
  EXPECT_EQ(*Ask(*check, "\xC3\xA9"), Verdict::kUnknown);
  // A character that is cut is left out, a broken one replaced.
  EXPECT_EQ(*Ask(*check, "a\xC3"), Verdict::kLive);
  EXPECT_EQ(*Ask(*check, "a\xFF b"), Verdict::kLive);
}

TEST(ProgramCheckTest, LongTextsAndManyThreads) {
  ProgramCheckOptions options = Shell(R"(echo "{\"id\":$id,\"verdict\":\"live\"}")");
  options.processes = 3;
  const auto check = Program(options);
  EXPECT_EQ(*Ask(*check, std::string(300000, 'x')), Verdict::kLive);
  std::vector<std::thread> threads;
  std::atomic<int> live = 0;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const auto verdict = Ask(*check, std::to_string(t) + " " + std::to_string(i));
        live += verdict.ok() && *verdict == Verdict::kLive ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(live, 120);
}

TEST(ProgramCheckTest, LateProgramsAreStoppedAndStartedAgain) {
  ProgramCheckOptions options = Shell(
      R"(case $line in *slow*) sleep 30;; esac; echo "{\"id\":$id,\"verdict\":\"live\",\"n\":$n}")");
  options.time_limit = std::chrono::milliseconds(700);
  options.max_failures = 3;
  const auto check = Program(options);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(*Ask(*check, "a"), Verdict::kLive);
  EXPECT_EQ(*Ask(*check, "slow"), Verdict::kUnknown);
  EXPECT_EQ(*Ask(*check, "b"), Verdict::kLive);  // another process
  EXPECT_EQ(*Ask(*check, "slow"), Verdict::kUnknown);
  EXPECT_EQ(*Ask(*check, "slow"), Verdict::kUnknown);
  const Result<Verdict> third = Ask(*check, "slow");
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().ToString(), "/bin/sh: did not answer in time (3 times in a row)");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(25));
}

TEST(ProgramCheckTest, ProgramsThatEndOrLie) {
  for (const char* answer :
       {"exit 0", "echo nonsense", R"(echo '{"id":0,"verdict":"live"}')", R"(echo "{\"id\":$id}")",
        R"(echo "{\"id\":$id,\"verdict\":\"live\"}"; echo more; sleep 1)"}) {
    ProgramCheckOptions options = Shell(std::string("case $n in 1) ") + answer +
                                        R"(;; *) echo "{\"id\":$id,\"verdict\":\"live\"}";; esac)");
    options.max_failures = 2;
    const auto check = Program(options);
    const Result<Verdict> first = Ask(*check, "a");
    // The last one may be read before its second line.
    if (std::string(answer).find("more") == std::string::npos) {
      ASSERT_TRUE(first.ok());
      EXPECT_EQ(*first, Verdict::kUnknown) << answer;
      EXPECT_FALSE(Ask(*check, "b").ok()) << answer;
    }
  }
  const auto strange = Program(Shell(R"(echo "{\"id\":$id,\"verdict\":\"yes\"}")"));
  const Result<Verdict> verdict = Ask(*strange, "a");
  ASSERT_FALSE(verdict.ok());
  EXPECT_NE(verdict.error().message.find("not \"yes\""), std::string::npos);
}

TEST(ProgramCheckTest, BadOptions) {
  EXPECT_FALSE(MakeProgramCheck({}).ok());
  ProgramCheckOptions options;
  options.command = {"/no/such/program"};
  const auto missing = Program(options);
  const Result<Verdict> verdict = Ask(*missing, "a");
  ASSERT_FALSE(verdict.ok());
  EXPECT_EQ(verdict.error().place, "/no/such/program");
  options.time_limit = std::chrono::milliseconds(0);
  EXPECT_FALSE(MakeProgramCheck(options).ok());
}

TEST(ProgramCheckTest, Critics) {
  const auto critic = MakeProgramCritic(Shell(
      R"(case $line in *none*) s=null;; *) s=-1.5e0;; esac; echo "{\"id\":$id,\"score\":$s}")"));
  ASSERT_TRUE(critic.ok());
  EXPECT_EQ(*(*critic)->Score({.text = "a", .tokens = {}}), -1.5);
  EXPECT_EQ(*(*critic)->Score({.text = "none", .tokens = {}}), kNoMass);
}

TEST(CheckTest, AStyleIsNowhereInTheText) {
  const auto check = MakeCheckOf("style:\\t|TODO[0-9]", ToyVocabulary());
  ASSERT_TRUE(check.ok()) << check.error().ToString();
  EXPECT_EQ((*check)->granularity(), CheckGranularity::kByte);
  const auto judge = [&](std::string_view text, bool ended) {
    return *(*check)->Judge({.text = text, .tokens = {}, .ended = ended});
  };
  EXPECT_EQ(judge("", false), Verdict::kLive);
  EXPECT_EQ(judge("a TODO b", false), Verdict::kLive);
  EXPECT_EQ(judge("a TODO b", true), Verdict::kAccept);
  EXPECT_EQ(judge("a\tb", false), Verdict::kDead);
  EXPECT_EQ(judge("a TODO7 and more", true), Verdict::kDead);
  EXPECT_EQ(judge("\xff\xfeTODO7", false), Verdict::kDead);
  EXPECT_EQ(judge("\xff\xfe", true), Verdict::kAccept);
  EXPECT_EQ(MakeCheckOf("style:a(", ToyVocabulary()).error().place, "style:a(: byte 2");
  EXPECT_EQ(MakeCheckOf("style:", ToyVocabulary()).error().ToString(), "style:: needs a regex");
  EXPECT_EQ(MakeCheckOf("style:a*", ToyVocabulary()).error().message,
            "matches the empty text, so it would refuse every output");
}

// Where no layer above makes them, the command is asked: here another program of that name.
TEST(ProgramCheckTest, ChecksOfCodeAskTheCommand) {
  const std::string folder = ::testing::TempDir();
  const std::string program = folder + "/pawl";
  ASSERT_TRUE(WriteFile(program,
                        "#!/bin/sh\nwhile read -r line; do id=${line#*:}; id=${id%%,*}\n"
                        "case $line in *good*) v=accept;; *) v=dead;; esac\n"
                        "echo \"{\\\"id\\\":$id,\\\"verdict\\\":\\\"$v\\\",\\\"error\\\":\\\"$1 "
                        "$2\\\"}\"; done\n")
                  .ok());
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  const auto error = [](const std::string& spec) {
    const auto made = MakeCheckOf(spec, ToyVocabulary());
    return made.ok() ? "none" : made.error().ToString();
  };
  ASSERT_EQ(setenv("PATH", "/no/such:/nor/this", 1), 0);
  EXPECT_EQ(error("syntax:python"), "syntax:python: needs the command pawl, which is not in PATH");
  ASSERT_EQ(setenv("PATH", (folder + ":" + path).c_str(), 1), 0);
  EXPECT_EQ(error("syntax:cobol"),
            "syntax:cobol: names none of the languages typescript, java, python, cpp");
  EXPECT_EQ(error("monitor@line:java"), "monitor@line:java: takes no granularity");
  const auto specs_of = [](std::vector<std::string> texts, std::string score) {
    CheckSpecs made;
    made.checks = std::move(texts);
    made.critic = std::move(score);
    return made;
  };
  CheckSpecs specs = specs_of({"regex:[a-z]*", "syntax:python"}, "");
  std::vector<std::shared_ptr<const Check>> checks;
  std::shared_ptr<const Critic> critic;
  ASSERT_TRUE(AddChecks(specs, ToyVocabulary(), 1, checks, critic).ok());
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[1]->granularity(), CheckGranularity::kComplete);
  std::string why;
  EXPECT_EQ(*checks[1]->Judge({.text = "good", .tokens = {}, .ended = true}), Verdict::kAccept);
  EXPECT_EQ(*checks[1]->Judge({.text = "bad", .tokens = {}, .ended = true, .why = &why}),
            Verdict::kDead);
  EXPECT_EQ(why, "check syntax:python");
  setenv("PATH", path.c_str(), 1);
  specs.checks = {"regex:a", "style:a("};
  EXPECT_EQ(AddChecks(specs, ToyVocabulary(), 1, checks, critic).error().ToString(),
            "checks/1: style:a(: byte 2: expected ')'");
  specs = specs_of({}, "tests: ");
  EXPECT_EQ(AddChecks(specs, ToyVocabulary(), 1, checks, critic).error().place, "critic");
  specs = CheckSpecs();
  specs.timeout = 0;
  EXPECT_EQ(AddChecks(specs, ToyVocabulary(), 1, checks, critic).error().place, "check_timeout");
  EXPECT_EQ(PlaceOfCommand(specs_of({"style:a", "monitor:java", "tests@complete:true"}, "")),
            "checks/2");
  EXPECT_EQ(PlaceOfCommand(specs_of({"regex:tests:"}, "cat")), "critic");
  EXPECT_EQ(PlaceOfCommand(specs_of({"regex:schema:a"}, "")), "");
}

TEST(ProgramCheckTest, TestsAreACommandForEachOutput) {
  CheckSpecOptions options;
  options.time_limit = std::chrono::milliseconds(20000);
  const auto judge = [&](const std::string& spec, std::string_view text, std::string* why) {
    const auto check = MakeCheckOf(spec, ToyVocabulary(), options);
    EXPECT_TRUE(check.ok());
    EXPECT_EQ((*check)->granularity(), CheckGranularity::kComplete);
    return (*check)->Judge({.text = text, .tokens = {}, .ended = true, .why = why});
  };
  std::string why;
  EXPECT_EQ(*judge("tests:grep -q 11", "0110", &why), Verdict::kAccept);
  EXPECT_EQ(*judge("tests:grep 11 || { echo no; exit 3; }", "000", &why), Verdict::kDead);
  EXPECT_EQ(why, "no\n");
  // It need not read, may write much, and may close what it writes to.
  EXPECT_EQ(*judge("tests:yes | head -c 300000", std::string(1 << 20, 'a'), &why),
            Verdict::kAccept);
  EXPECT_EQ(*judge("tests:exec >&-; exit 1", "a", &why), Verdict::kDead);
  EXPECT_EQ(*judge("tests:kill -9 $$", "a", &why), Verdict::kDead);
  options.time_limit = std::chrono::milliseconds(50);
  EXPECT_EQ(*judge("tests:sleep 100", "a", &why), Verdict::kDead);
  EXPECT_EQ(why, "did not end within 50 ms");
  EXPECT_EQ(*judge("tests:exec >&-; sleep 100", "a", &why), Verdict::kDead);
  // One that is never in time, and one that is not there, are errors.
  const CheckQuestion question = {.text = "a", .tokens = {}, .ended = true};
  const auto late = *MakeCheckOf("tests:sleep 100", ToyVocabulary(), options);
  EXPECT_TRUE(late->Judge(question).ok());
  EXPECT_TRUE(late->Judge({.text = "b", .tokens = {}, .ended = true}).ok());
  const Result<Verdict> third = late->Judge({.text = "c", .tokens = {}, .ended = true});
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().ToString(),
            "tests:sleep 100: the command did not end within 50 ms, 3 times");
  options.time_limit = std::chrono::milliseconds(20000);
  const Result<Verdict> gone =
      (*MakeCheckOf("tests:/no/such/x", ToyVocabulary(), options))->Judge(question);
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().ToString(), "tests:/no/such/x: the command was not found (exit code 127)");
  const auto some = *MakeCheckOf("tests:grep -q a && exit 1; exit 127", ToyVocabulary(), options);
  EXPECT_EQ(*some->Judge(question), Verdict::kDead);
  EXPECT_EQ(*some->Judge({.text = "b", .tokens = {}, .ended = true}), Verdict::kDead);
  const auto error = [&](const std::string& spec) {
    return MakeCheckOf(spec, ToyVocabulary(), options).error().message;
  };
  EXPECT_EQ(error("tests: "), "names no program");
  EXPECT_EQ(error("tests@line:true"), "has another granularity than complete");
}

TEST(ProgramCheckTest, TestsScoreOutputs) {
  const auto score = [](const std::string& command, bool ended) {
    CheckSpecOptions options;
    options.time_limit = std::chrono::milliseconds(20000);
    const auto critic = MakeCriticOf("tests:" + command, options);
    EXPECT_TRUE(critic.ok());
    return *(*critic)->Score({.text = "01", .tokens = {}, .ended = ended});
  };
  EXPECT_EQ(score("exit 1", false), 0);
  EXPECT_EQ(score("exit 1", true), kNoMass);
  EXPECT_EQ(score("exit 0", true), 0);
  EXPECT_EQ(score("echo some; echo 3/4", true), std::log(0.75));
  EXPECT_EQ(score("echo 0.5; exit 1", true), std::log(0.5));
  EXPECT_EQ(score("echo 0/4", true), kNoMass);
  EXPECT_EQ(score("echo 5/4; exit 1", true), kNoMass);
}

}  // namespace
}  // namespace pawl
