// Where the settings of `pawl extract` come from, and records that have to pass checks.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/cli_test_util.h"

namespace pawl {
namespace {

using Object = nlohmann::ordered_json;

constexpr const char* kPair = R"({"title": "Pair", "type": "object", "properties": {
  "a": {"enum": ["x", "y", "z"]}, "b": {"type": "boolean"}}, "required": ["a"]})";

// A model without pawl.json, whose prompts are Pawl's own; the name is that of its folder.
std::string PlainModel() { return ModelFolderWith("plain_model", ""); }

CommandResult ExtractPair(const std::vector<std::string>& more,
                          const std::string& folder = PlainModel()) {
  std::vector<std::string> arguments = {"extract", "--schema", WriteScratch("pair.json", kPair),
                                        "--model", folder,     "--text",
                                        "Bo, 7"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunPawl(arguments);
}

// The settings of --stats-json by name, as "value from".
std::string SettingOf(const std::string& name, const std::vector<std::string>& more,
                      const std::string& folder = PlainModel()) {
  std::vector<std::string> arguments = more;
  arguments.insert(arguments.end(), {"--stats-json", ScratchPath("settings.json")});
  const CommandResult result = ExtractPair(arguments, folder);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::ifstream file(ScratchPath("settings.json"));
  const Object stats = Object::parse(file, nullptr, false);
  const Object setting = stats["settings"][name];
  return setting["value"].dump() + " " + setting["from"].get<std::string>();
}

std::string PairTexts(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines += R"({"text": "t)" + std::to_string(i) + R"(", "record": {"a": "x", "b": null}})" + "\n";
  }
  return WriteScratch("pairs.jsonl", lines);
}

TEST(ExtractChoicesCommand, OptionThenMeasuredThenPawlJsonThenDefault) {
  const std::string config = ScratchPath("config");
  ::setenv("XDG_CONFIG_HOME", config.c_str(), 1);
  EXPECT_EQ(SettingOf("schema_view", {}), "\"auto\" default");
  EXPECT_EQ(SettingOf("schema_view", {"--schema-view", "none"}), "\"none\" option");
  const std::string own = ModelFolderWith(
      "own_choice", R"({"extract": {"schema_view": "schema", "keys": "required"}})");
  EXPECT_EQ(SettingOf("schema_view", {}, own), "\"schema\" pawl.json");
  // The weights of both folders are the same, and so is their file.
  const CommandResult saved =
      RunPawl({"eval", "--schema", WriteScratch("pair.json", kPair), "--data", PairTexts(15),
               "--model", own, "--max-tokens", "100", "--variants", "--save"});
  ASSERT_EQ(saved.exit_code, 0) << saved.err;
  ASSERT_NE(saved.err.find("saved to " + config + "/pawl/models/"), std::string::npos) << saved.err;
  EXPECT_NE(saved.err.find("--instruction \"Extract the Pair as JSON.\""), std::string::npos)
      << saved.err;
  EXPECT_NE(saved.err.find("with 3 of the texts as examples"), std::string::npos) << saved.err;
  EXPECT_NE(SettingOf("schema_view", {}, own).find(" measured choice"), std::string::npos);
  EXPECT_NE(SettingOf("whitespace", {}).find(" measured choice"), std::string::npos);
  EXPECT_EQ(SettingOf("keys", {}, own), "\"required\" pawl.json");
  EXPECT_EQ(SettingOf("whitespace", {"--whitespace", "bounded"}, own), "\"bounded\" option");
  const CommandResult stats = ExtractPair({"--stats"}, own);
  EXPECT_NE(stats.err.find("settings: schema_view "), std::string::npos) << stats.err;
  // Nothing is written next to the weights.
  for (const auto& file : std::filesystem::directory_iterator(own)) {
    EXPECT_NE(file.path().extension(), ".partial");
  }
  const CommandResult alone = RunPawl({"eval", "--data", PairTexts(3), "--save", "--schema",
                                       WriteScratch("pair.json", kPair), "--model", own});
  EXPECT_EQ(alone.err, "pawl eval: --save: needs --variants\n");
  ::unsetenv("XDG_CONFIG_HOME");
}

Object TriesOf(const std::vector<std::string>& more, const std::string& folder = PlainModel()) {
  std::vector<std::string> arguments = more;
  arguments.insert(arguments.end(), {"--stats-json", ScratchPath("tries.json")});
  const CommandResult result = ExtractPair(arguments, folder);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::ifstream file(ScratchPath("tries.json"));
  Object stats = Object::parse(file, nullptr, false);
  stats["tries"]["record"] = Object::parse(result.out, nullptr, false);
  return stats["tries"];
}

TEST(ExtractChecksTest, ARefusedRecordIsTriedAgainWithWhatIsWrong) {
  const std::string first = ExtractPair({}).out;
  const std::string taken = Object::parse(first)["a"];
  for (const std::string letter : {"x", "y", "z"}) {
    if (letter == taken) continue;
    const Object tries =
        TriesOf({"--check", "regex:.*\"a\":\"" + letter + "\".*", "--retries", "60"});
    EXPECT_EQ(tries["record"]["a"], letter);
    EXPECT_EQ(tries["first"]["calls"], 1);
    ASSERT_GT(tries["retries"]["calls"], 0);
    EXPECT_GT(tries["retries"]["output_tokens"], 0);
    // The record and the problem are in the prompt.
    EXPECT_GT(tries["retries"]["prompt_tokens"].get<int>(),
              tries["retries"]["calls"].get<int>() * tries["first"]["prompt_tokens"].get<int>());
  }
  // A prompt of pawl.json has no place for them: it is asked again as it is.
  const Object same =
      TriesOf({"--check", "regex:.*\"a\":\"[xyz]\".*", "--retries", "3"}, RandomModelFolder());
  EXPECT_EQ(same["retries"]["calls"], 0);
}

TEST(ExtractChecksTest, TheLastErrorIsTold) {
  const CommandResult none = ExtractPair({"--check", "regex:no", "--retries", "2"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(none.out, "");
  EXPECT_EQ(none.err,
            "pawl extract: --check: no record passes: it does not pass regex:no (3 tries)\n");
  const CommandResult stats = ExtractPair({"--check", "regex:no", "--retries", "2", "--stats"});
  EXPECT_NE(stats.err.find("tries: first 1 calls, "), std::string::npos) << stats.err;
  EXPECT_NE(stats.err.find("; retries 2 calls, "), std::string::npos) << stats.err;
  const std::string program = WriteScratch("check.sh",
                                           "while read -r line; do\n"
                                           "  id=${line#*:}; id=${id%%,*}\n"
                                           "  printf '{\"id\":%s,\"verdict\":\"dead\",\"error\":"
                                           "\"the total is off\"}\\n' \"$id\"\n"
                                           "done\n");
  const CommandResult why = ExtractPair({"--check", "program@complete:sh " + program});
  EXPECT_EQ(why.err, "pawl extract: --check: no record passes: the total is off\n");
  const CommandResult lines =
      RunPawl({"extract", "--schema", WriteScratch("pair.json", kPair), "--model", PlainModel(),
               "--json-lines", "--check", "regex:no"},
              "\"a\"\n\"b\"\n");
  EXPECT_EQ(lines.exit_code, 1) << lines.out;
  EXPECT_NE(lines.out.find("\"line\":2,\"message\":\"--check: no record passes"), std::string::npos)
      << lines.out;
  EXPECT_EQ(ExtractPair({"--retries", "2"}).err, "pawl extract: --retries: needs --check\n");
  EXPECT_EQ(ExtractPair({"--check", "size:3"}).exit_code, 2);
  EXPECT_EQ(ExtractPair({"--check", "syntax:typescript"}).exit_code, 2);  // an object is a block
  EXPECT_EQ(ExtractPair({"--contrast", "nan"}).err,
            "pawl extract: --contrast: must be a number from -100 to 100, or auto, not \"nan\"\n");
}

TEST(ExtractChecksTest, DrawsOfASamplerAreRecords) {
  int left_out = 0;
  for (int seed = 0; seed < 12; ++seed) {
    const CommandResult result =
        ExtractPair({"--sampler", "gcd", "--seed", std::to_string(seed), "--max-tokens", "60"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Object record = Object::parse(result.out, nullptr, false);
    ASSERT_TRUE(record.is_object() && record.contains("a")) << result.out;
    // null says that the key is not there, and is no part of a record.
    EXPECT_TRUE(!record.contains("b") || record["b"].is_boolean()) << result.out;
    left_out += !record.contains("b");
  }
  EXPECT_GT(left_out, 0);
  // A draw that the check ends is no record; the next one may be.
  const CommandResult checked =
      ExtractPair({"--sampler", "awrs", "--check", "regex:.*\"a\":\"z\".*", "--max-tokens", "60",
                   "--retries", "80"});
  ASSERT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_EQ(Object::parse(checked.out)["a"], "z");
  EXPECT_EQ(ExtractPair({"--sampler", "gcd", "--thinking", "9"}).exit_code, 2);
}

TEST(ExtractExamplesTest, ABadExampleHasItsLineAndPlace) {
  const std::string file =
      WriteScratch("examples.jsonl",
                   "{\"text\": \"a\", \"record\": {\"a\": \"x\"}}\n\n"
                   "{\"text\": \"b\", \"record\": {\"a\": \"y\", \"b\": 3}}\n");
  const CommandResult result = ExtractPair({"--examples", file});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err,
            "pawl extract: " + file + ": line 3: #/record/b: does not fit the schema\n");
}

TEST(ExtractViewTest, AViewThatChangesNothingIsSaid) {
  const CommandResult result = ExtractPair({"--schema-view", "keys"}, RandomModelFolder());
  EXPECT_NE(result.err.find("note: --schema-view changes nothing"), std::string::npos)
      << result.err;
  EXPECT_EQ(ExtractPair({"--schema-view", "keys"}).err.find("changes nothing"), std::string::npos);
}

}  // namespace
}  // namespace pawl
