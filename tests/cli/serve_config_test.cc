// Where the options of `pawl serve` come from: the command line, variables, the file of --config,
// in this order. `--show-config` says what is in force, as a file that gives the same.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/cli_test_util.h"

namespace pawl {
namespace {

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* const name_;
};

std::string ServeFile(const std::string& text) {
  const std::string path = ScratchPath("serve.toml");
  std::ofstream(path) << text;
  return path;
}

// The value that `pawl serve` has for an option, as it is written in the file.
std::string Shown(const std::vector<std::string>& options, const std::string& name) {
  std::vector<std::string> words = {"serve", "--show-config"};
  words.insert(words.end(), options.begin(), options.end());
  const CommandResult result = RunPawl(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.out.starts_with("[serve]\n")) << result.out;
  const std::string before = "\n" + name + " = ";
  const size_t at = result.out.find(before);
  if (at == std::string::npos) return "";
  const size_t begin = at + before.size();
  return result.out.substr(begin, result.out.find('\n', begin) - begin);
}

TEST(ServeConfigTest, TheCommandLineThenVariablesThenTheFile) {
  EXPECT_EQ(Shown({}, "port"), "8080");
  const std::string file = ServeFile("[serve]\nport = 1\nhost = \"::1\"\nno-playground = true\n");
  const std::vector<std::string> config = {"--config", file};
  EXPECT_EQ(Shown(config, "port"), "1");
  EXPECT_EQ(Shown(config, "host"), "\"::1\"");
  EXPECT_EQ(Shown(config, "no-playground"), "true");
  const Variable port("PAWL_SERVE_PORT", "2"), tokens("PAWL_SERVE_MAX_TOKENS", "77");
  EXPECT_EQ(Shown(config, "port"), "2");
  EXPECT_EQ(Shown(config, "max-tokens"), "77");
  EXPECT_EQ(Shown(config, "host"), "\"::1\"");
  EXPECT_EQ(Shown({"--config", file, "--port", "3"}, "port"), "3");
  EXPECT_EQ(Shown({"--port=3"}, "port"), "3");
  const Variable named("PAWL_SERVE_CONFIG", file.c_str());
  EXPECT_EQ(Shown({}, "host"), "\"::1\"");
}

// Each option: what the file, the variable and the command line give is the same.
TEST(ServeConfigTest, EveryOptionFromEverywhere) {
  const std::string all = RunPawl({"serve", "--show-config"}).out;
  const std::map<std::string, std::string> values = {
      {"model", "m"},         {"model-name", "n"},
      {"host", "127.0.0.2"},  {"api-key-file", "k"},
      {"cors-origin", "*"},   {"allowed-host", "a"},
      {"chat-template", "c"}, {"log-file", "l"},
      {"trace-file", "t"},    {"tool-syntax", "hermes"},
      {"dtype", "int8"},      {"log", "none"},
      {"device", "cpu"}};
  int options = 0;
  std::istringstream lines(all);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("[")) continue;
    const std::string name = line.substr(line.starts_with("# ") ? 2 : 0, std::string::npos);
    const std::string option = name.substr(0, name.find(' '));
    std::string value = "1";
    if (const auto it = values.find(option); it != values.end()) value = it->second;
    const bool flag = line.ends_with("= false");
    if (flag) value = "true";
    const std::string spelled = "--" + option;
    const CommandResult given = flag ? RunPawl({"serve", "--show-config", spelled})
                                     : RunPawl({"serve", "--show-config", spelled + "=" + value});
    if (given.exit_code != 0) continue;  // wants a value of another form
    ++options;
    std::string variable = "PAWL_SERVE_";
    for (const char c : option) {
      variable += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
    {
      const Variable set(variable.c_str(), value.c_str());
      EXPECT_EQ(RunPawl({"serve", "--show-config"}).out, given.out) << variable;
    }
    const std::string file =
        ServeFile("[serve]\n" + option + " = " + (flag ? value : "\"" + value + "\"") + "\n");
    EXPECT_EQ(RunPawl({"serve", "--show-config", "--config", file}).out, given.out) << option;
    EXPECT_EQ(RunPawl({"serve", "--show-config", "--config", ServeFile(given.out)}).out, given.out)
        << option;
  }
  EXPECT_GE(options, 25);
}

TEST(ServeConfigTest, WrongVariablesAreNamed) {
  {
    const Variable set("PAWL_SERVE_PROT", "1");
    const CommandResult result = RunPawl({"serve", "--show-config"});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find("PAWL_SERVE_PROT: is no option of pawl serve"), std::string::npos)
        << result.err;
    EXPECT_EQ(RunPawl({"info"}).exit_code, 0);
  }
  {
    const Variable set("PAWL_SERVE_PORT", "x");
    const CommandResult result = RunPawl({"serve", "--show-config"});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find("PAWL_SERVE_PORT: --port: must be"), std::string::npos) << result.err;
  }
  const Variable set("PAWL_SERVE_NO_PLAYGROUND", "maybe");
  const CommandResult result = RunPawl({"serve", "--show-config"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("PAWL_SERVE_NO_PLAYGROUND: must be true or false"), std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace pawl
