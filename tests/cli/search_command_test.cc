// pawl generate --search, --force-phrase and --exact through the command.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "src/base/file.h"
#include "tests/cli/cli_test_util.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

using SearchJsonValue = nlohmann::json;

CommandResult SearchWith(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {
      "generate", "--model", RandomModelFolder(), "--prompt", "Once ", "--max-tokens", "20"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunPawl(arguments);
}

SearchJsonValue JsonOf(const CommandResult& result) {
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return SearchJsonValue::parse(result.out, nullptr, false);
}

TEST(SearchCommandTest, OneBeamIsGreedyAndMoreAreNotWorse) {
  const CommandResult greedy = SearchWith({"--regex", "[a-h]{3,9}"});
  const CommandResult one =
      SearchWith({"--regex", "[a-h]{3,9}", "--search", "beam", "--num-beams", "1"});
  EXPECT_EQ(one.out, greedy.out) << one.err;
  const SearchJsonValue best =
      JsonOf(SearchWith({"--regex", "[a-h]{3}", "--search", "best-first", "--n", "3", "--json"}));
  const SearchJsonValue narrow =
      JsonOf(SearchWith({"--regex", "[a-h]{3}", "--search", "beam", "--num-beams", "1", "--json"}));
  ASSERT_EQ(best["outputs"].size(), 3u);
  const double most = best["outputs"][0]["log_probability"];
  EXPECT_GE(most, narrow["outputs"][0]["log_probability"].get<double>() - 1e-9);
  EXPECT_GE(most, best["outputs"][1]["log_probability"].get<double>());
  EXPECT_TRUE(best["at_limit"].is_null());
}

TEST(SearchCommandTest, LimitsOfHypothesesAndBranches) {
  const std::vector<std::string> tree = {"--regex", "[a-h]{8}", "--search", "mcts", "--json"};
  std::vector<std::string> few = tree, one = tree, none = tree;
  few.insert(few.end(), {"--max-nodes", "30"});
  EXPECT_EQ(JsonOf(SearchWith(few))["at_limit"], "nodes");
  one.insert(one.end(), {"--max-branches", "1"});
  EXPECT_EQ(JsonOf(SearchWith(one))["outputs"], JsonOf(SearchWith(tree))["outputs"]);
  none.insert(none.end(), {"--max-nodes", "0"});
  const CommandResult refused = SearchWith(none);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--max-nodes"), std::string::npos) << refused.err;
}

TEST(SearchCommandTest, PhrasesAreForcedOrNamed) {
  const CommandResult met =
      SearchWith({"--regex", "[a-h]{3,20}", "--force-phrase", "bad", "--force-phrase", "cab"});
  EXPECT_EQ(met.exit_code, 0) << met.err;
  EXPECT_NE(met.out.find("bad"), std::string::npos) << met.out;
  EXPECT_NE(met.out.find("cab"), std::string::npos) << met.out;
  const CommandResult lacks = SearchWith({"--regex", "[a-h]{3,20}", "--force-phrase", "xyz"});
  EXPECT_EQ(lacks.exit_code, 1);
  EXPECT_NE(lacks.err.find("lacks the phrase \"xyz\""), std::string::npos) << lacks.err;
  std::vector<std::string> many = {"--regex", "[a-h]{3,9}"};
  for (int i = 0; i < 200; ++i) {
    many.insert(many.end(), {"--force-phrase", "x" + std::to_string(i)});
  }
  const std::string notes = SearchWith(many).err;
  EXPECT_LE(std::ranges::count(notes, '\n'), 3) << notes;
  EXPECT_NE(notes.find("1 of 1 outputs lack 200 phrases"), std::string::npos) << notes;
}

// In the strings of JSON, however they are written there.
TEST(SearchCommandTest, PhrasesInValuesMayBeEscaped) {
  const std::string schema = ::testing::TempDir() + "/note.json";
  ASSERT_TRUE(WriteFile(schema, R"({"type":"object","properties":{"note":{"type":"string"}},)"
                                R"("required":["note"],"additionalProperties":false})")
                  .ok());
  const std::string phrase = "say \"h\xc3\xa9\"\n\\";
  for (const bool ascii : {false, true}) {
    std::vector<std::string> options = {"--schema",   schema,  "--force-phrase", phrase,
                                        "--force-in", "value", "--max-tokens",   "120"};
    if (ascii) options.emplace_back("--ascii");
    options.insert(options.begin(), {"generate", "--model", RandomModelFolder(), "--prompt", "a"});
    const CommandResult result = RunPawl(options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const SearchJsonValue record = SearchJsonValue::parse(result.out, nullptr, false);
    ASSERT_TRUE(record.is_object()) << result.out;
    EXPECT_NE(record["note"].get<std::string>().find(phrase), std::string::npos) << result.out;
    EXPECT_EQ(result.out.find("\xc3") == std::string::npos, ascii) << result.out;
  }
}

// One text can end several phrases of an order at once, with the shipped model's tokens.
TEST(SearchCommandTest, OrderedPhrasesMayEndAtTheSamePlace) {
  const auto strings = [](int a, int b) {
    const auto text = [](int most) {
      return R"({"type":"string","maxLength":)" + std::to_string(most) + "}";
    };
    return R"({"type":"object","properties":{"a":)" + text(a) + R"(,"b":)" + text(b) +
           R"(},"required":["a","b"],"additionalProperties":false})";
  };
  const std::tuple<std::string, std::vector<std::string>, std::string> kCases[] = {
      {strings(2, 1),
       {"--ascii", "--force-phrase", "a", "--force-phrase",
        "\xc3\xa9"
        "a"},
       ""},
      {strings(2, 2),
       {"--spelling", "any", "--force-phrase", "a", "--force-phrase", "ba", "--force-phrase", "xy"},
       "{\"a\":\"ba\",\"b\":\"xy\"}\n"},
      // The first phrase ends within the second one.
      {strings(3, 1), {"--ascii", "--force-phrase", "b", "--force-phrase", "abc"}, ""}};
  for (const auto& [schema, more, expected] : kCases) {
    std::vector<std::string> options = {
        "generate",     "--prompt", "Say: ",       "--schema", WriteScratch("ends.json", schema),
        "--force-in",   "value",    "--num-beams", "4",        "--force-ordered",
        "--max-tokens", "100"};
    options.insert(options.end(), more.begin(), more.end());
    const CommandResult result = RunPawl(options);
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    if (!expected.empty()) {
      EXPECT_EQ(result.out, expected);
    }
  }
}

TEST(SearchCommandTest, LatticesAndChoicesSayWhatTheLimitIs) {
  const SearchJsonValue lattice = JsonOf(SearchWith(
      {"--regex", "[a-h]{12}", "--search", "lattice", "--search-arg", "nodes=3", "--json"}));
  ASSERT_EQ(lattice["outputs"].size(), 1u);
  EXPECT_EQ(lattice["outputs"][0]["text"].get<std::string>().size(), 12u);
  EXPECT_EQ(lattice["at_limit"], "nodes");
  const CommandResult none =
      SearchWith({"--choice", "abcdef", "--choice", "b", "--exact", "--json", "--exact-rows", "1"});
  const SearchJsonValue found = SearchJsonValue::parse(none.out, nullptr, false);
  EXPECT_EQ(none.exit_code, found["valid"] == 0 ? 1 : 0) << none.err;
  EXPECT_TRUE(found["choices"][0]["probability"].is_null()) << none.out;
  EXPECT_TRUE(found["choices"][0]["log_probability"].is_null()) << none.out;
}

// As in every interface.
TEST(SearchCommandTest, EmptyContrastPrompts) {
  const CommandResult empty = SearchWith({"--regex", "[a-h]{3}", "--contrast-prompt", ""});
  EXPECT_EQ(empty.exit_code, 2) << empty.out;
  EXPECT_NE(empty.err.find("--contrast-prompt: is empty"), std::string::npos) << empty.err;
}

// The likeliest tokens leave no room for the end, so each beam goes on with one that does.
TEST(SearchCommandTest, PhrasesLeaveRoomForTheEnd) {
  for (const char* beams : {"1", "4", "8"}) {
    const CommandResult met = SearchWith(
        {"--regex", "[a-z ]{0,200}-----", "--force-phrase", "cat", "--num-beams", beams});
    const bool has = met.out.find("cat") != std::string::npos;
    EXPECT_EQ(met.exit_code, has ? 0 : 1) << beams << met.err;
    EXPECT_EQ(met.err.find("lacks the phrase") == std::string::npos, has) << met.err;
    EXPECT_TRUE(met.out.ends_with("-----\n")) << met.out;
  }
}

TEST(SearchCommandTest, ErrorsNameWhatIsMissing) {
  const std::pair<std::vector<std::string>, const char*> kWrong[] = {
      {{"--force-ordered"}, "--force-ordered: needs --force-phrase"},
      {{"--search", "beam", "--force-in", "value"}, "--force-in: needs --force-phrase"},
      {{"--contrast-prompt", "x", "--n", "2"}, "--n: must be 1"},
  };
  for (const auto& [arguments, message] : kWrong) {
    const CommandResult result = SearchWith(arguments);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
  }
  const CommandResult fewer = SearchWith({"--search", "beam", "--n", "3", "--choice", "a"});
  EXPECT_EQ(fewer.out, "a\n");
  EXPECT_NE(fewer.err.find("of 3 outputs 1 were found"), std::string::npos) << fewer.err;
}

// An editor may put a mark of UTF-8 in front of a file.
TEST(SearchCommandTest, ConfigFilesMayBeginWithAMark) {
  const std::string file = ::testing::TempDir() + "search_marked.toml";
  ASSERT_TRUE(WriteFile(file, "\xEF\xBB\xBF[generate]\nmax-tokens = 3\n").ok());
  const CommandResult result = RunPawl({"--config", file, "generate", "--model",
                                        RandomModelFolder(), "--prompt", "Once ", "--regex", "a*"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LE(result.out.size(), 4u) << result.out;
}

TEST(SearchCommandTest, ChoicesSumToOne) {
  const SearchJsonValue found = JsonOf(
      SearchWith({"--choice", "ab", "--choice", "abc", "--choice", "b", "--exact", "--json"}));
  double sum = 0, valid = 0;
  for (const SearchJsonValue& one : found["choices"]) {
    sum += one["probability"].get<double>();
    valid += std::exp(one["log_probability"].get<double>());
  }
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_NEAR(valid, found["valid"].get<double>(), 1e-9);
  // In a tokenizer of bytes each has one spelling.
  EXPECT_EQ(found["missing"].get<double>(), 0);
}

TEST(SearchCommandTest, ContrastWithTheSamePromptIsPlain) {
  for (const char* temperature : {"0", "0.9"}) {
    const std::vector<std::string> plain = {"--regex", "[a-h]{3,9}", "--temperature", temperature};
    std::vector<std::string> same = plain;
    same.insert(same.end(), {"--contrast-prompt", "Once ", "--contrast", "2"});
    const CommandResult result = SearchWith(same);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, SearchWith(plain).out);
  }
  // In a chat it is the last message of the user.
  const std::string messages = WriteScratch(
      "chat.json", R"([{"role":"user","content":"hi"},{"role":"assistant","content":"a"},)"
                   R"({"role":"user","content":"Once "}])");
  const std::string form = WriteScratch(
      "chat.jinja", "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}");
  const auto chat = [&](const std::vector<std::string>& more) {
    std::vector<std::string> options = {
        "generate", "--model", RandomModelFolder(), "--messages",   messages, "--chat-template",
        form,       "--regex", "[a-h]{3,9}",        "--max-tokens", "20"};
    options.insert(options.end(), more.begin(), more.end());
    return RunPawl(options);
  };
  const CommandResult plain_chat = chat({});
  EXPECT_EQ(plain_chat.exit_code, 0) << plain_chat.err;
  EXPECT_EQ(chat({"--contrast-prompt", "Once ", "--contrast", "2"}).out, plain_chat.out);
  const CommandResult apart = chat({"--contrast-prompt", "Bob", "--contrast", "50"});
  EXPECT_EQ(apart.exit_code, 0) << apart.err;
  EXPECT_NE(apart.out, plain_chat.out);
  EXPECT_NE(chat({"--contrast-prompt", ""}).err.find("--contrast-prompt: is empty"),
            std::string::npos);
  const CommandResult other = SearchWith(
      {"--regex", "[a-h]{3,9}", "--contrast-prompt", "Twice ", "--contrast", "auto", "--stats"});
  EXPECT_EQ(other.exit_code, 0) << other.err;
}

TEST(SearchCommandTest, RecordsWithContrast) {
  const std::vector<std::string> plain = {"extract", "--schema",
                                          SourceDir() + "/schemas/examples/invoice.json", "--text",
                                          "Invoice 7 from Acme, 30 EUR"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = plain;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunPawl(arguments);
  };
  const CommandResult none = with({});
  EXPECT_EQ(none.exit_code, 0) << none.err;
  EXPECT_EQ(with({"--contrast", "0"}).out, none.out);
  const CommandResult some = with({"--contrast", "auto"});
  EXPECT_EQ(some.exit_code, 0) << some.err;
  EXPECT_TRUE(SearchJsonValue::accept(some.out)) << some.out;
  EXPECT_NE(
      with({"--contrast", "x"}).err.find("--contrast: must be a number from -100 to 100, or auto"),
      std::string::npos);
  EXPECT_NE(with({"--contrast", "1", "--sampler", "smc"}).err.find("--contrast: cannot be used"),
            std::string::npos);
}

TEST(SearchCommandTest, ClosedAndCutOutputsSayWhatIsNotKnown) {
  const SearchJsonValue closed =
      JsonOf(SearchWith({"--regex", "[a-h]{9}", "--search", "beam", "--max-nodes", "1", "--json"}));
  EXPECT_EQ(closed["outputs"][0]["closed"], true);
  EXPECT_TRUE(closed["outputs"][0]["log_probability"].is_null()) << closed;
  const CommandResult cut = SearchWith({"--search", "beam"});
  EXPECT_NE(cut.err.find("note: the output was cut at the budget of 20 tokens"), std::string::npos)
      << cut.err;
}

TEST(SearchCommandTest, PicturesAreWritten) {
  const std::string file = ::testing::TempDir() + "/search.svg";
  const CommandResult result =
      SearchWith({"--regex", "[a-h]{3}", "--search", "lattice", "--search-svg", file});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Result<std::string> svg = ReadFile(file, 1 << 20);
  ASSERT_TRUE(svg.ok());
  EXPECT_TRUE(svg->starts_with("<svg ") && svg->ends_with("</svg>\n"));
  EXPECT_NE(svg->find("<line"), std::string::npos);
}

TEST(SearchCommandTest, TestsAndStylesJudgeOutputs) {
  const CommandResult tested =
      SearchWith({"--regex", "[a-d]{3}", "--search", "mcts", "--search-arg", "rollouts=400",
                  "--search-arg", "width=4", "--check", "tests:grep -q da", "--check", "style:c"});
  EXPECT_EQ(tested.exit_code, 0) << tested.err;
  EXPECT_NE(tested.out.find("da"), std::string::npos) << tested.out;
  EXPECT_EQ(tested.out.find('c'), std::string::npos) << tested.out;
  const CommandResult none =
      SearchWith({"--regex", "[a-d]{3}", "--search", "beam", "--check", "tests:false"});
  EXPECT_EQ(none.exit_code, 1) << none.err;
  const CommandResult gone =
      SearchWith({"--regex", "[a-d]{3}", "--search", "beam", "--check", "tests:/no/such/command"});
  EXPECT_EQ(gone.exit_code, 2) << gone.err;
  EXPECT_NE(gone.err.find("tests:/no/such/command: the command was not found"), std::string::npos)
      << gone.err;
}

// A signal that ends the command ends what its checks have started.
TEST(SearchCommandTest, SignalsEndTests) {
  const std::string& model = RandomModelFolder();
  for (const int number : {SIGINT, SIGTERM}) {
    const std::string file = ScratchPath("begun");
    std::remove(file.c_str());
    const std::string check =
        "tests:sleep 4327 & echo $! > " + file + ".new; mv " + file + ".new " + file + "; wait";
    const pid_t pawl = ::fork();
    ASSERT_GE(pawl, 0);
    if (pawl == 0) {
      ::signal(number, SIG_DFL);  // a shell ignores SIGINT for what it runs in the background
      ::execl(PAWL_COMMAND, "pawl", "generate", "--model", model.c_str(), "--prompt", "a",
              "--regex", "[a-d]{3}", "--search", "beam", "--check-timeout", "600", "--check",
              check.c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    Result<std::string> begun = Error{};
    for (int i = 0; i < 1000 && !begun.ok(); ++i) {
      ::usleep(10000);
      begun = ReadFile(file, 100);
    }
    ::kill(pawl, number);
    int status = 0;
    ::waitpid(pawl, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << status;
    ASSERT_TRUE(begun.ok());
    const pid_t child = std::stoi(*begun);
    // A process that has ended may still be there until it is waited for.
    const auto runs = [&] {
      const Result<std::string> state = ReadFile("/proc/" + std::to_string(child) + "/stat", 4096);
      return state.ok() && state->find(") Z ") == std::string::npos;
    };
    for (int i = 0; i < 500 && runs(); ++i) ::usleep(10000);
    EXPECT_FALSE(runs());
    if (runs()) ::kill(child, SIGKILL);
  }
}

TEST(SearchCommandTest, SuperposedDraftsShareRows) {
  const std::vector<std::string> options = {"--regex", "[a-h]{8}", "--search", "superposed",
                                            "--json"};
  const SearchJsonValue one = JsonOf(SearchWith(options));
  std::vector<std::string> more = options;
  more.insert(more.end(), {"--n", "3"});
  const SearchJsonValue three = JsonOf(SearchWith(more));
  EXPECT_EQ(one["outputs"][0]["text"].get<std::string>() + "\n",
            SearchWith({"--regex", "[a-h]{8}"}).out);
  ASSERT_EQ(three["outputs"].size(), 3u);
  EXPECT_NE(three["outputs"][0]["text"], three["outputs"][1]["text"]);
  EXPECT_LE(three["rows"].get<double>(), 1.15 * one["rows"].get<double>());
  EXPECT_NE(SearchWith({"--search", "superposed", "--n", "9"}).err.find("--n: must be from 1 to 8"),
            std::string::npos);
}

// The command as a program that checks.
TEST(SearchCommandTest, AnswersQuestionsAboutCode) {
  const CommandResult good = RunPawl({"check", "syntax:python"},
                                     "{\"id\":7,\"text\":\"x = (\",\"tokens\":[],\"ended\":true}\n"
                                     "{\"id\":8,\"text\":\"x = 1\",\"ended\":true}\n"
                                     "{\"id\":9,\"text\":\"x = (\",\"ended\":false}\n");
  if (good.err.find("built without parsers") != std::string::npos) GTEST_SKIP();
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(good.out,
            "{\"id\":7,\"verdict\":\"dead\",\"error\":\"does not parse\"}\n"
            "{\"id\":8,\"verdict\":\"accept\"}\n{\"id\":9,\"verdict\":\"live\"}\n");
  const CommandResult line = RunPawl({"check", "syntax:python"}, "{\"id\":7}\n");
  EXPECT_EQ(line.exit_code, 2);
  EXPECT_NE(line.err.find("line 1: #: must have an \"id\" and a text"), std::string::npos)
      << line.err;
  EXPECT_NE(RunPawl({"check", "regex:a"}).err.find("pawl check: regex:a: "), std::string::npos);
}

TEST(SearchCommandTest, HelpListsStrategies) {
  const CommandResult help = RunPawl({"generate", "--search", "help"});
  EXPECT_EQ(help.exit_code, 0) << help.err;
  for (const char* name : {"beam", "best-first", "diverse-beam", "mcts", "rollouts=100"}) {
    EXPECT_NE(help.out.find(name), std::string::npos) << name;
  }
}

TEST(SearchCommandTest, WrongOptionsAreNamed) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--search", "worst"}, "--search: must be one of "},
      {{"--num-beams", "3"}, "--num-beams: needs --search"},
      {{"--json"}, "--json: needs --search or --exact"},
      {{"--exact"}, "--exact: needs --choice"},
      {{"--exact-rows", "3"}, "--exact-rows: needs --exact"},
      {{"--search", "beam", "--sampler", "smc"}, "--search: cannot be used with --sampler"},
      {{"--search", "beam", "--temperature", "1"}, "--temperature: is for drawing tokens"},
      {{"--search", "beam", "--typical-p", "0.5"}, "--typical-p: is for drawing tokens"},
      // Only what was given is named.
      {{"--choice", "a", "--exact", "--contrast-prompt", "b"},
       "--exact: cannot be used with --contrast-prompt"},
      {{"--force-phrase", "a", "--sampler", "smc"},
       "--force-phrase: cannot be used with --sampler"},
      {{"--force-phrase", "a", "--fidelity", "fast"},
       "--force-phrase: cannot be used with --fidelity"},
      {{"--force-phrase", "a", "--temperature", "1"}, "which --force-phrase does not"},
      {{"--force-phrase", "a", "--num-beam-groups", "2"},
       "the strategy beam, which --force-phrase takes"},
      {{"--choice", "a", "--exact", "--require", "a"}, "--exact: cannot be used with --require"},
      {{"--search", "beam", "--stats-json", "x"}, "--search: cannot be used with --stats-json"},
      {{"--search", "beam", "--stop", "x"}, "--search: cannot be used with --stop"},
      {{"--search", "beam", "--n", "9"}, "--n: must be at most num_beams"},
      {{"--search", "best-first", "--search-arg", "batch"}, "--search-arg: must be NAME=NUMBER"},
      {{"--search", "best-first", "--search-arg", "batch=0"},
       "--search-arg: batch must be from 1 to 256"},
      {{"--search", "beam", "--num-beam-groups", "2"},
       "--num-beam-groups: is not an option of the strategy beam"},
      {{"--search", "mcts", "--early-stopping", "true"}, "--early-stopping: is not an option"},
      {{"--search", "mcts", "--search-arg", "rollouts=1.5"}, "rollouts must be a whole number"},
      {{"--search", "cntp", "--search-arg", "min_trials=20"},
       "min_trials must be at most max_trials"},
      {{"--search", "beam", "--search-arg", "lookahead=2"}, "lookahead needs a critic"},
      {{"--contrast", "1"}, "--contrast: needs --contrast-prompt"},
      {{"--contrast", "x", "--contrast-prompt", "a"},
       "--contrast: must be a number from -100 to 100, or auto"},
      {{"--contrast", "1e9", "--contrast-prompt", "a"},
       "--contrast: must be a number from -100 to 100"},
      {{"--contrast-prompt", "a", "--top-k", "3"}, "--top-k: is for drawing tokens"},
      {{"--choice", "a", "--choice", "a", "--exact"}, "--choice: has \"a\" twice"},
      {{"--choice", "a", "--exact", "--temperature", "0"}, "--temperature: must be a finite"},
      {{"--search", "mcts", "--force-phrase", "a"}, "--force-phrase: needs the strategy beam"},
      {{"--samplers", "top_k,top_z"}, "--samplers: \"top_z\" is no stage"},
      {{"--mirostat", "2", "--mirostat-tau", "-1"}, "--mirostat-tau: must be"},
  };
  for (const auto& [arguments, message] : cases) {
    const CommandResult result = SearchWith(arguments);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_NE(result.err.find(message), std::string::npos) << message << "\n" << result.err;
  }
}

}  // namespace
}  // namespace pawl
