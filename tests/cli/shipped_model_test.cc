// The main job from end to end: the command, the schemas and the model as they ship, judged by an
// independent validator of JSON Schema.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "src/base/file.h"
#include "src/base/json.h"
#include "tests/cli/cli_test_util.h"
#include "tests/oracle/json_schema_validator.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> ExampleSchemas() {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(SourceDir() + "/schemas/examples")) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void ExpectValid(const std::string& schema_file, const std::string& output) {
  const auto schema = ReadFile(schema_file);
  ASSERT_TRUE(schema.ok()) << schema_file;
  auto validator = oracle::Validator::Create(*schema, {});
  ASSERT_TRUE(validator.ok()) << schema_file << validator.error().ToString();
  EXPECT_EQ((*validator)->Validate(output), oracle::Verdict::kValid)
      << schema_file << ": " << (*validator)->reason() << "\n"
      << output;
}

constexpr const char* kText =
    "Invoice INV-2041 from Northwind Traders, issued to Alder & Sons on 3 March 2025. Please pay "
    "1,240.50 EUR by 2 April 2025. Questions: ann.lee@example.org, 020 7946 0018.";

TEST(ShippedModelTest, EveryExampleSchemaGivesValidRecords) {
  const std::vector<std::string> schemas = ExampleSchemas();
  ASSERT_GE(schemas.size(), 10u);
  int seed = 0;
  for (const std::string& schema : schemas) {
    for (const char* temperature : {"0", "1.5"}) {
      const CommandResult result =
          RunPawl({"extract", "--schema", schema, "--text", kText, "--temperature", temperature,
                   "--seed", std::to_string(seed++)});
      ASSERT_EQ(result.exit_code, 0) << schema << result.err;
      ExpectValid(schema, result.out);
    }
  }
}

double ProcessorSecondsOfCommands() {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

TEST(ShippedModelTest, ARecordTakesLessThanTwoSecondsWithTheStart) {
  [[maybe_unused]] const double start = ProcessorSecondsOfCommands();
  const CommandResult result = RunPawl(
      {"extract", "--schema", SourceDir() + "/schemas/examples/invoice.json", "--text", kText});
  EXPECT_EQ(result.exit_code, 0) << result.err;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(ProcessorSecondsOfCommands() - start, 2.0);
#endif
}

TEST(ShippedModelTest, HandwrittenTextsGiveValidRecordsAsJsonLines) {
  const auto lines = ReadFile(SourceDir() + "/models/tiny-extract/eval/handwritten.jsonl");
  ASSERT_TRUE(lines.ok());
  // The first eight texts of each kind of record, each kind in one run with its schema.
  std::map<std::string, std::string> inputs;
  std::map<std::string, int> counts;
  std::istringstream stream(*lines);
  for (std::string line; std::getline(stream, line);) {
    const auto value = json::Parse(line);
    ASSERT_TRUE(value.ok()) << line;
    const std::string schema = json::Dump(*value->Find("schema"));
    if (counts[schema]++ >= 8) continue;
    inputs[schema] += json::Dump(*value) + "\n";
  }
  ASSERT_GE(inputs.size(), 3u);
  for (const auto& [schema, input] : inputs) {
    const std::string file = WriteScratch("handwritten.json", schema);
    const CommandResult result = RunPawl({"extract", "--schema", file, "--json-lines"}, input);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    std::istringstream outputs(result.out);
    int number = 0;
    for (std::string output; std::getline(outputs, output); ++number) ExpectValid(file, output);
    EXPECT_EQ(number, std::min(counts[schema], 8));
  }
}

TEST(ShippedModelTest, WhatExtractWritesValidateAccepts) {
  for (const std::string& schema : ExampleSchemas()) {
    const CommandResult written = RunPawl({"extract", "--schema", schema, "--text", kText,
                                           "--temperature", "1", "--max-tokens", "300"});
    ASSERT_EQ(written.exit_code, 0) << written.err;
    for (const char* spelling : {"canonical", "any"}) {
      const CommandResult read =
          RunPawl({"validate", "--schema", schema, "--tokenizer",
                   SourceDir() + "/models/tiny-extract", "--spelling", spelling, "-"},
                  written.out);
      EXPECT_EQ(read.exit_code, 0) << written.out << read.out << read.err;
    }
  }
}

TEST(ShippedModelTest, OptionsOfTheDiffusionLoop) {
  const std::string model = SourceDir() + "/models/tiny-extract-diffusion";
  const std::string schema = SourceDir() + "/schemas/examples/contact.json";
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> command = {"extract", "--schema", schema, "--text", kText};
    command.insert(command.end(), more.begin(), more.end());
    return RunPawl(command);
  };
  const auto calls = [&](std::vector<std::string> more) {
    const std::string file = ScratchPath("diffusion_stats.json");
    more.insert(more.end(), {"--model", model, "--stats-json", file});
    const CommandResult result = run(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    ExpectValid(schema, result.out);
    const std::string stats = *ReadFile(file);
    const std::string key = "\"forward_calls\":";
    return std::atoi(stats.c_str() + stats.find(key) + key.size());
  };
  const int few = calls({"--threshold", "0"});
  const int sure = calls({"--threshold", "0.9"}), steps = calls({});
  EXPECT_LT(few, sure);
  EXPECT_LT(sure, steps) << "a mask a call";
  EXPECT_EQ(calls({"--schedule", "stepwise", "--cache", "dkv", "--kv-refresh", "1"}), steps);
  EXPECT_LT(calls({"--schedule", "ssd"}), steps);
  EXPECT_EQ(calls({"--steps", "1"}), few) << "a call for each block";
  EXPECT_GT(calls({"--steps", "1", "--block-length", "4"}), few);
  const auto refused = [&](const std::vector<std::string>& more, const std::string& message) {
    const CommandResult result = run(more);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
  };
  const std::string causal = ": means nothing for a causal model";
  refused({"--threshold", "0.5"}, "--threshold" + causal);
  refused({"--block-length", "8"}, "--block-length" + causal);
  refused({"--alg", "entropy"}, "--alg" + causal);
  refused({"--model", model, "--threshold", "2"}, "--threshold");
  refused({"--model", model, "--steps", "0"}, "--steps");
  refused({"--model", model, "--steps", "2", "--threshold", "0.5"}, "--steps: cannot be used with");
  refused({"--model", model, "--steps", "2", "--contrast", "1"}, "--steps: cannot be used with");
  refused({"--model", model, "--kv-refresh", "4"}, "--kv-refresh: needs a cache");
  refused({"--schedule", "ssd"}, "--schedule" + causal);
  refused({"--model", model, "--remasking", "low_confidence"}, "--remasking: is for LLaDA");
  refused({"--model", model, "--draft", "lookahead"},
          "--draft: means nothing for a model that fills masks");
  EXPECT_EQ(calls({"--draft", "auto"}), steps) << "drafts are off";
  for (const std::vector<std::string>& own :
       std::vector<std::vector<std::string>>{{"--sampler", "smc"}, {"--contrast", "1"}}) {
    const CommandResult result = run({"--model", model, own[0], own[1]});
    EXPECT_NE(result.exit_code, 0);
    EXPECT_NE(result.err.find(own[0] + ": searches, samplers and scores need"), std::string::npos)
        << result.err;
  }
  const std::string details = run({"--model", model, "--details"}).out;
  EXPECT_NE(details.find(R"("spans":{"/name":[)"), std::string::npos) << details;
  EXPECT_NE(details.find(R"("probability":{"/name":null,)"), std::string::npos) << details;
}

TEST(ShippedModelTest, GapsInACanvasAndItsPicture) {
  const std::string picture = ScratchPath("canvas.svg");
  std::vector<std::string> command = {"generate",
                                      "--model",
                                      SourceDir() + "/models/tiny-extract-diffusion",
                                      "--prompt",
                                      "Ann Lee, ",
                                      "--regex",
                                      "[a-z]{2,6} & [a-z]{2,6}[.]",
                                      "--prefix",
                                      "an",
                                      "--gap",
                                      " & ",
                                      "--suffix",
                                      ".",
                                      "--gap-tokens",
                                      "6",
                                      "--diffusion-svg",
                                      picture};
  const CommandResult result = RunPawl(command);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.front(), '[') << result.out;
  EXPECT_NE(result.out.find("\",\""), std::string::npos) << "two outputs: " << result.out;
  const std::string svg = *ReadFile(picture);
  EXPECT_EQ(svg.substr(0, 4), "<svg");
  EXPECT_NE(svg.find("&amp;"), std::string::npos) << "the text between the gaps";
  EXPECT_NE(svg.find("class=\"n\""), std::string::npos) << "tokens of a call";
  const std::string diffusion = command[2];
  command[2] = SourceDir() + "/models/tiny-extract";
  const CommandResult causal = RunPawl(command);
  EXPECT_EQ(causal.exit_code, 2);
  EXPECT_NE(causal.err.find("means nothing for a causal model"), std::string::npos) << causal.err;
  // A record has a picture too, and several have none.
  const auto extract = [&](const std::string& model, const std::vector<std::string>& more) {
    std::vector<std::string> of_record = {"extract", "--model", model};
    of_record.insert(of_record.end(), {"--schema", SourceDir() + "/schemas/examples/contact.json"});
    of_record.insert(of_record.end(), {"--diffusion-svg", picture});
    of_record.insert(of_record.end(), more.begin(), more.end());
    return RunPawl(of_record);
  };
  std::filesystem::remove(picture);
  const CommandResult record = extract(diffusion, {"--text", kText});
  EXPECT_EQ(record.exit_code, 0) << record.err;
  const std::string of_record = *ReadFile(picture);
  EXPECT_NE(of_record.find("class=\"o\""), std::string::npos) << "tokens of calls before";
  EXPECT_NE(extract(command[2], {"--text", kText}).err.find("--diffusion-svg: means nothing"),
            std::string::npos);
  EXPECT_NE(extract(diffusion, {"--json-lines"}).err.find("--diffusion-svg: cannot be used with"),
            std::string::npos);
  EXPECT_NE(extract(diffusion, {"--text", kText, "--check", "true", "--retries", "1"})
                .err.find("--diffusion-svg: cannot be used with --retries"),
            std::string::npos);
}

}  // namespace
}  // namespace pawl
