// pawl generate --sampler and pawl score through the command.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/cli_test_util.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

using Json = nlohmann::json;

std::vector<std::string> With(std::vector<std::string> arguments,
                              const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}
std::vector<std::string> GenerateWith(const std::vector<std::string>& more) {
  return With({"generate", "--model", RandomModelFolder(), "--prompt", "Once ", "--max-tokens",
               "20", "--json-lines"},
              more);
}
std::vector<Json> JsonLines(const CommandResult& result) {
  std::vector<Json> lines;
  std::istringstream in(result.out);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(Json::parse(line, nullptr, false));
    EXPECT_TRUE(lines.back().is_object()) << line;
  }
  return lines;
}
double Score(const Json& tokens, const std::vector<std::string>& more = {}) {
  const CommandResult result = RunPawl(With(
      {"score", "--model", RandomModelFolder(), "--prompt", "Once ", "--tokens", tokens.dump()},
      more));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return std::stod(result.out);
}

// Weights are probabilities over proposals: their sums meet what `pawl score` says.
TEST(SamplerCommandTest, LinesKeysAndWeights) {
  // Three texts, one spelling each in a tokenizer of bytes.
  std::map<std::string, double> law;
  double mass = 0;
  for (const char* text : {"ab", "b", "ca"}) {
    Json tokens = Json::array();
    for (const char* c = text; *c != 0; ++c) tokens.push_back(static_cast<int>(*c));
    tokens.push_back(257);
    law[text] = std::exp(Score(tokens));
    mass += law[text];
  }
  for (const std::string sampler : {"awrs", "smc", "asap", "cars", "gcd", "fvo"}) {
    std::vector<std::string> options = {"--sampler", sampler, "--n", "600", "--seed", "3"};
    // A random model hardly ever writes one of them by itself.
    if (sampler == "cars") options[3] = "300";
    if (sampler == "cars") options = With(options, {"--attempts", "100000"});
    const CommandResult result =
        RunPawl(GenerateWith(With(options, {"--choice", "ab", "--choice", "b", "--choice", "ca"})));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const std::vector<Json> lines = JsonLines(result);
    ASSERT_EQ(lines.size(), sampler == "cars" ? 300u : 600u);
    std::map<std::string, double> weights;
    double total = 0;
    for (const Json& line : lines) {
      ASSERT_EQ(line.size(), 5u);
      const std::string text = line.at("text");
      ASSERT_TRUE(law.contains(text)) << text;
      EXPECT_EQ(line.at("tokens").size(), text.size() + 1);
      EXPECT_NEAR(line.at("log_probability").get<double>(), std::log(law[text]), 1e-6);
      EXPECT_TRUE(line.at("report").at("valid").get<bool>());
      if (sampler == "cars") {
        EXPECT_EQ(line.at("log_weight"), 0);
      }
      const double w = std::exp(line.at("log_weight").get<double>());
      weights[text] += w;
      total += w;
    }
    for (const auto& [text, p] : law) {
      EXPECT_NEAR(weights[text] / total, p / mass, 0.1) << sampler << " " << text;
    }
    if (sampler != "cars") {
      EXPECT_NEAR(total / 600 / mass, 1, 0.15) << sampler;
    }
  }
}

TEST(SamplerCommandTest, ChecksCutTheLanguageDown) {
  for (const std::string sampler : {"awrs", "smc", "asap"}) {
    const CommandResult result =
        RunPawl(GenerateWith({"--sampler", sampler, "--n", "12", "--regex", "[ab]{1,6}", "--check",
                              "regex:a*b+", "--check",
                              "program@complete:while read -r l; do i=${l#*:}; echo "
                              "\"{\\\"id\\\":${i%%,*},\\\"verdict\\\":\\\"accept\\\"}\"; done"}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    int asked = 0;
    for (const Json& line : JsonLines(result)) {
      asked += line.at("report").at("evaluations").get<int>();
      if (!line.at("report").at("valid").get<bool>()) continue;
      const std::string text = line.at("text");
      EXPECT_EQ(text.find("ba"), std::string::npos) << text;
      EXPECT_EQ(text.back(), 'b');
    }
    EXPECT_GT(asked, 0);
  }
}

// Control tokens have no text, so a check alone would let them pass.
TEST(SamplerCommandTest, ChecksAloneAllowNoControlTokens) {
  const CommandResult result =
      RunPawl(GenerateWith({"--sampler", "awrs", "--n", "40", "--check", "regex:[ab]{0,2}"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const Json& line : JsonLines(result)) {
    EXPECT_TRUE(line.at("report").at("valid").get<bool>());
    EXPECT_EQ(line.at("tokens").size(), line.at("text").get<std::string>().size() + 1);
  }
}

TEST(SamplerCommandTest, ThreadsAndBatchesChangeNothing) {
  for (const std::string sampler : {"awrs", "smc"}) {
    std::string first;
    for (const auto& [threads, batch] : {std::pair("1", "1"), {"2", "8"}, {"2", "50"}}) {
      const CommandResult result = RunPawl(
          GenerateWith({"--sampler", sampler, "--n", "10", "--regex", "[a-d]{3,9}", "--check",
                        "regex:[abc]*d?", "--threads", threads, "--batch", batch}));
      ASSERT_EQ(result.exit_code, 0) << result.err;
      if (first.empty()) first = result.out;
      EXPECT_EQ(result.out, first);
    }
  }
}

TEST(SamplerCommandTest, FidelityIsReported) {
  for (const std::string fidelity : {"fast", "aligned", "exact"}) {
    const CommandResult result =
        RunPawl(GenerateWith({"--fidelity", fidelity, "--n", "3", "--regex", "[a-d]{2}"}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    for (const Json& line : JsonLines(result)) {
      const Json& report = line.at("report");
      EXPECT_EQ(report.at("fidelity").at("asked"), fidelity);
      const std::string reached = report.at("fidelity").at("reached");
      EXPECT_TRUE(reached == fidelity || reached == "aligned") << reached;
      if (reached == "exact") {
        EXPECT_EQ(report.at("distance_at_most"), 0);
      }
      if (reached == "aligned") {
        EXPECT_GT(report.at("theta"), 0);
      }
    }
  }
}

TEST(SamplerCommandTest, TrieIsKept) {
  const std::string file = ScratchPath("kept.trie");
  std::remove(file.c_str());
  const auto arguments = GenerateWith({"--sampler", "asap", "--n", "40", "--regex", "[ab]{2}",
                                       "--trie", file, "--temperature", "1"});
  double theta = 1;
  for (int run = 0; run < 3; ++run) {
    const CommandResult result = RunPawl(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const double now = JsonLines(result).back().at("report").at("theta");
    EXPECT_LE(now, theta);
    theta = now;
  }
  const CommandResult other = RunPawl(GenerateWith(
      {"--sampler", "asap", "--regex", "[ab]{3}", "--trie", file, "--temperature", "1"}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("belongs to another model"), std::string::npos) << other.err;
}

TEST(SamplerCommandTest, SaysWhyNoOutputIsValid) {
  const auto note_of = [](const std::string& sampler) {
    const CommandResult result =
        RunPawl({"generate", "--model", RandomModelFolder(), "--prompt", "a", "--regex", "re[df]",
                 "--sampler", sampler, "--check", "style:re"});
    EXPECT_EQ(result.exit_code, 1) << result.err;
    return result.err;
  };
  EXPECT_EQ(note_of("awrs"),
            "pawl generate: note: 1 of 1 outputs did not become valid and have weight 0: --check "
            "style:re refused them; awrs does not go back behind a token, --sampler cars begins "
            "again\n");
  EXPECT_NE(note_of("cars").find("--check style:re refused them; an output ends after 16384 rows"),
            std::string::npos);
}

TEST(SamplerCommandTest, BadOptions) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--n", "3"}, "--n: needs --sampler, --fidelity or --search"},
      {{"--sampler", "smc", "--temperature", "0"},
       "--temperature: must be a finite number above 0"},
      {{"--sampler", "smc", "--top-k", "5"}, "--top-k: changes the model's distribution"},
      {{"--sampler", "smc", "--fidelity", "exact"}, "--fidelity: picks the sampler"},
      {{"--sampler", "smc", "--check", "a"}, "--check a: must be KIND:VALUE"},
      {{"--sampler", "smc", "--check", "styl:x"}, "style, program, tests, syntax, monitor"},
      {{"--sampler", "smc", "--check", "style:"}, "--check style:: needs a regex"},
      {{"--sampler", "smc", "--check", "style:a*"}, "matches the empty text"},
      {{"--sampler", "smc", "--check", "syntax@byte:python"}, "has a granularity: complete"},
      {{"--sampler", "smc", "--check", "regex:("}, "--check regex:(: "},
      {{"--sampler", "smc", "--check", "regex@word:a"}, "has another granularity"},
      {{"--sampler", "smc", "--trie", "x"}, "--trie: is for asap"},
      {{"--sampler", "smc", "--check", "program:exit 3"}, "exit 3: ended without an answer ("},
      {{"--sampler", "smc", "--check", "program: "}, "--check program: : names no program"},
      {{"--sampler", "asap", "--trie", "/no/such/folder/x"}, "/no/such/folder/x: cannot write"}};
  for (const auto& [arguments, message] : cases) {
    std::vector<std::string> all = {"generate", "--model", RandomModelFolder(), "--prompt", "a"};
    const CommandResult result = RunPawl(With(all, arguments));
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
  }
}

// examples/checks as docs/sampling.md has them: a real SQLite schema, and tests in a sandbox.
TEST(SamplerCommandTest, ExamplesOfChecks) {
  if (std::system("python3 -c 'import sqlite3, resource' 2>/dev/null") != 0) {
    GTEST_SKIP() << "no python3 with sqlite3";
  }
  const std::string folder = SourceDir() + "/examples/checks/";
  const auto outputs = [&](const std::string& check, const std::vector<std::string>& choices) {
    std::vector<std::string> arguments = {"generate", "--model",     RandomModelFolder(),
                                          "--prompt", "Once ",       "--max-tokens",
                                          "60",       "--sampler",   "cars",
                                          "--n",      "4",           "--check",
                                          check,      "--json-lines"};
    for (const std::string& choice : choices) {
      arguments.push_back("--choice");
      arguments.push_back(choice);
    }
    const CommandResult result = RunPawl(arguments);
    std::map<std::string, int> valid;
    for (const Json& line : JsonLines(result)) {
      if (line.at("report").at("valid")) ++valid[line.at("text")];
    }
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return valid;
  };
  const std::string sql = "program@token:python3 " + folder + "sql_check.py " + folder + "shop.sql";
  const std::string query = "SELECT name FROM users";
  EXPECT_EQ(outputs(sql, {query, "SELECT name FROM clients", "SELECT colour FROM users"}),
            (std::map<std::string, int>{{query, 4}}));
  const std::string tests =
      "program@line:python3 " + folder + "python_check.py " + folder + "add_test.py";
  const std::string right = "def add(a, b):\n    return a + b\n";
  const auto python = outputs(tests, {right, "def add(a, b):\n    return a - b\n",
                                      "def add(a, b):\n    return (\n    )))\n",
                                      "def add(a, b):\n    import os; os._exit(1)\n"});
  ASSERT_EQ(python.size(), 1u);
  EXPECT_EQ(python.begin()->first, right);
}

TEST(SamplerCommandTest, ScoreOfTextAndTokens) {
  const std::string folder = RandomModelFolder();
  const auto score = [&](const std::vector<std::string>& more) {
    return RunPawl(With({"score", "--model", folder, "--prompt", "Once "}, more));
  };
  const CommandResult text = score({"--text", "abc"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(text.out, score({"--tokens", "97 98,99"}).out);
  const Json json = Json::parse(score({"--text", "abc", "--end", "--json"}).out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json.at("tokens"), Json::parse("[97,98,99,257]"));
  double sum = 0;
  for (const double p : json.at("log_probabilities")) sum += p;
  EXPECT_NEAR(sum, json.at("log_probability").get<double>(), 1e-9);
  EXPECT_LT(json.at("log_probability").get<double>(), std::stod(text.out));
  EXPECT_NE(score({"--text", "abc", "--temperature", "2"}).out, text.out);
  EXPECT_EQ(score({"--text", ""}).out, "0\n");
  EXPECT_EQ(score({}).exit_code, 2);
  EXPECT_NE(score({"--tokens", "97 x"}).err.find("--tokens: byte 3: not a token id"),
            std::string::npos);
  EXPECT_NE(score({"--tokens", "[97, 98"}).err.find("--tokens: begins with '['"),
            std::string::npos);
  EXPECT_EQ(score({"--tokens", "99999"}).exit_code, 2);
  EXPECT_EQ(score({"--text", "a", "--temperature", "0"}).exit_code, 2);
  EXPECT_EQ(score({"--text", std::string(400, 'a')}).exit_code, 2);
}

}  // namespace
}  // namespace pawl
