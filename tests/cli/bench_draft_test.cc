// pawl bench draft through the command: the prompts by category on the model that ships, tools and
// memory on small replays, and usage.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "src/base/file.h"
#include "tests/cli/cli_test_util.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

nlohmann::json ReadFigures(const std::string& path) {
  const Result<std::string> text = ReadFile(path);
  EXPECT_TRUE(text.ok());
  return nlohmann::json::parse(text.ok() ? *text : "null");
}

TEST(BenchDraftTest, ThePromptsOfAllCategories) {
  const std::string out = ScratchPath("speed.json");
  const CommandResult result = RunPawl(
      {"bench", "draft", "--speed-bench", SourceDir() + "/bench/texts/speed_bench", "--rounds", "1",
       "--batches", "8", "--max-tokens", "4", "--threads", "1", "--goodput", "--json", out});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("chosen against the best fixed number"), std::string::npos);
  const nlohmann::json json = ReadFigures(out);
  EXPECT_EQ(json["prompts"], 88);
  ASSERT_EQ(json["categories"].size(), 11u);
  for (const auto& [name, category] : json["categories"].items()) {
    EXPECT_EQ(category["outputs"], 8) << name;
    EXPECT_GE(category["tokens_per_call"].get<double>(), 0.5) << name;
  }
  std::set<std::string> nodes;
  for (const auto& run : json["batches"]) {
    nodes.insert(run["nodes"]);
    EXPECT_EQ(run["tokens"], json["batches"][0]["tokens"]) << "drafts change no output";
  }
  EXPECT_EQ(nodes, (std::set<std::string>{"off", "chosen", "1", "2", "4", "8", "16", "32"}));
}

TEST(BenchDraftTest, ToolsAndMemory) {
  std::string tests;
  for (const char* city : {"Rome", "Oslo", "Lima"}) {
    tests += std::string(tests.empty() ? "" : ",") + R"({"valid":true,"data":{"city":")" + city +
             R"(","unit":"celsius"}})";
  }
  const std::string file =
      R"({"schema":{"type":"object","properties":{"city":{"type":"string"},"unit":{"enum":
      ["celsius","kelvin"]}},"required":["city","unit"]},"tests":[)" +
      tests + "]}";
  const std::string path = WriteScratch("replays/Glaiveai2K---weather.json", file);
  const std::string folder = path.substr(0, path.rfind('/'));
  const std::vector<std::string> base = {"bench",       "draft",
                                         "--replay",    folder,
                                         "--tokenizer", SourceDir() + "/models/tiny-extract",
                                         "--json",      ScratchPath("replays.json")};
  std::vector<std::string> tools = base;
  tools.emplace_back("--tools");
  CommandResult result = RunPawl(tools);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  nlohmann::json json = ReadFigures(base.back());
  EXPECT_EQ(json["tools"], 1);
  EXPECT_EQ(json["tools_with_three"], 1);
  // The calls before taught it.
  EXPECT_GT(json["third"]["tokens_per_step"], json["first"]["tokens_per_step"]);
  std::vector<std::string> memory = base;
  memory.emplace_back("--memory-curve");
  result = RunPawl(memory);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  json = ReadFigures(base.back());
  ASSERT_EQ(json.size(), 5u);
  EXPECT_EQ(json[0]["memory"], 1);
  EXPECT_EQ(json[4]["memory"], 256);
  EXPECT_GT(json[4]["accepted"], 0);
}

TEST(BenchDraftTest, UsageIsChecked) {
  const auto refused = [](std::vector<std::string> more, const std::string& place,
                          const std::string& message) {
    more.insert(more.begin(), {"bench", "draft"});
    const CommandResult result = RunPawl(more);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_NE(result.err.find(place), std::string::npos) << result.err;
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
  };
  refused({}, "--replay", "or --equal, --speed-bench or --goodput is needed");
  refused({"--equal", "--schema", "x", "--draft-verify", "block"}, "--draft-verify",
          "must be coupled");
  const std::string folder = WriteScratch("prompts/a.jsonl", "{\"category\":\"x\"}\n");
  refused({"--speed-bench", folder.substr(0, folder.rfind('/'))}, "a.jsonl:1",
          "is no object with a category and a prompt");
  WriteScratch("no-prompts/a.txt", "");
  refused({"--speed-bench", ScratchPath("no-prompts")}, "no-prompts", "has no prompts");
  for (const char* batches : {"0", "x", "1,0"}) {
    refused({"--goodput", "--batches", batches}, "--batches", "");
  }
  refused({"--goodput", "--draft-shape", "delayed:1", "--speed-bench",
           SourceDir() + "/bench/texts/speed_bench"},
          "--draft-shape", "must be heap");
}

}  // namespace
}  // namespace pawl
