// What is wrong with --models is told before anything is served.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/cli_test_util.h"

namespace pawl {
namespace {

CommandResult Served(const std::string& models, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"serve", "--port", "0", "--models", models});
  return RunPawl(more);
}

TEST(ServeModelsTest, WhatIsWrongInTheFileIsNamed) {
  const std::string path = R"("path": ")" + RandomModelFolder() + "\"";
  struct Case {
    std::string text, message;
  };
  const Case cases[] = {
      {"{", "not JSON"},
      {"[]", "#: must be an object"},
      {"{}", "#/models: "},
      {R"({"models": []})", "#/models: must name at least one model"},
      {R"({"models": [], "more": 1})", "#/more"},
      {R"({"models": [{"name": "a"}]})", "#/models/0/path"},
      {R"({"models": [{"name": "a", "path": "nowhere"}]})", "#/models/0/path: "},
      {R"({"models": [{"name": "", )" + path + "}]}", "#/models/0/name: must not be empty"},
      {R"({"models": [{"name": "a", )" + path + R"(}, {"name": "a", )" + path + "}]}",
       R"(#/models/1/name: the name "a" is that of )"},
      {R"({"models": [{)" + path + "}, {" + path + "}]}", "#/models/1: the name "},
      {R"({"models": [{"name": "a", "batches": 2, )" + path + "}]}", "#/models/0/batches"},
      {R"({"models": [{"batch": 0, )" + path + "}]}", "#/models/0/batch: "},
      {R"({"models": [{"dtype": "int3", )" + path + "}]}", "#/models/0/dtype: is not known"},
      {R"({"models": [{"kv_mb": -1, )" + path + "}]}", "#/models/0/kv_mb: "},
      {R"({"models": [{"keep_alive": "soon", )" + path + "}]}", "#/models/0/keep_alive: must be"},
      {R"({"models": [{"pooling": "max", )" + path + "}]}", "#/models/0/pooling: "},
      {R"({"models": [{"tool_syntax": "x", )" + path + "}]}", "#/models/0/tool_syntax: "},
      {R"({"models": [{"chat_template": "none.jinja", )" + path + "}]}",
       "#/models/0/chat_template: "},
      {R"({"models": [{"reasoning_marks": ["a"], )" + path + "}]}", "#/models/0/reasoning_marks: "},
  };
  for (const Case& one : cases) {
    const CommandResult result = Served(WriteScratch("models.json", one.text));
    EXPECT_EQ(result.exit_code, 2) << one.text;
    EXPECT_NE(result.err.find(one.message), std::string::npos) << one.text << "\n" << result.err;
    EXPECT_NE(result.err.find("models.json"), std::string::npos) << result.err;
  }
}

TEST(ServeModelsTest, FoldersAndOptions) {
  const std::string empty = ScratchPath("no_models");
  std::filesystem::create_directories(empty);
  EXPECT_NE(Served(empty).err.find("has no model folder and no GGUF file"), std::string::npos);
  EXPECT_NE(Served(ScratchPath("nowhere")).err.find("nowhere"), std::string::npos);
  const std::string file =
      WriteScratch("good.json", R"({"models": [{"path": ")" + RandomModelFolder() + R"("}]})");
  const std::pair<std::vector<std::string>, const char*> wrong[] = {
      {{"--model", "m"}, "--model: is for one model"},
      {{"--model-name", "m"}, "--model-name: is for one model"},
      {{"--chat-template", file}, "--chat-template: is for one model"},
      {{"--keep-alive", "soon"}, "--keep-alive: must be"},
      {{"--models-mb", "0"}, "--models-mb"},
      {{"--device", "cuda"}, "--device: with --models must be cpu"}};
  for (const auto& [options, message] : wrong) {
    const CommandResult result = Served(file, options);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
  }
  const CommandResult alone = RunPawl({"serve", "--models-mb", "100", "--port", "0"});
  EXPECT_NE(alone.err.find("--models-mb: needs --models"), std::string::npos) << alone.err;
}

}  // namespace
}  // namespace pawl
