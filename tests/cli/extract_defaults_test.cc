// The defaults of `pawl extract`, each with the option that gives the old behaviour, on a model
// with random weights: it invents keys, leaves keys out and repeats itself wherever it may.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/cli/cli_test_util.h"

namespace pawl {
namespace {

using Record = nlohmann::ordered_json;

constexpr const char* kOpenOrder = R"({"type": "object", "properties": {
  "id": {"type": "string", "maxLength": 4}, "city": {"type": "string", "maxLength": 4},
  "total": {"type": ["integer", "null"]}, "open": {"type": "object"}}, "required": ["id"]})";

CommandResult ExtractOpen(const std::vector<std::string>& more, const std::string& text = "Bo, 7",
                          const std::string& folder = RandomModelFolder()) {
  std::vector<std::string> arguments = {
      "extract", "--schema", WriteScratch("open.json", kOpenOrder), "--model", folder,
      "--text",  text};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunPawl(arguments);
}

// The keys of records of many seeds.
std::set<std::string> KeysOfRecords(const std::vector<std::string>& more, int& with_all) {
  std::set<std::string> keys;
  for (int seed = 0; seed < 12; ++seed) {
    std::vector<std::string> arguments = {"--temperature",      "1.5",          "--seed",
                                          std::to_string(seed), "--max-tokens", "180"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = ExtractOpen(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const Record record = Record::parse(result.out, nullptr, false);
    EXPECT_TRUE(record.is_object() && record.contains("id")) << result.out;
    for (const auto& [key, value] : record.items()) keys.insert(key);
    // A key whose schema takes null is there in any case.
    with_all += record.contains("total");
  }
  return keys;
}

TEST(ExtractDefaultsTest, NoKeyIsInventedAndEachIsAskedFor) {
  const std::set<std::string> named = {"id", "city", "total", "open"};
  int all = 0;
  for (const std::string& key : KeysOfRecords({}, all)) EXPECT_TRUE(named.contains(key)) << key;
  EXPECT_EQ(all, 12);
  int open = 0;
  const std::set<std::string> invented =
      KeysOfRecords({"--additional-properties", "allow", "--keys", "required"}, open);
  EXPECT_GT(invented.size(), named.size());
  EXPECT_LT(open, 12);
}

TEST(ExtractDefaultsTest, NullsOfOptionalKeysMayBeDropped) {
  const std::string schema = WriteScratch("nulls.json", R"({"type": "object", "properties": {
    "a": {"type": ["boolean", "null"]}, "b": {"type": ["boolean", "null"]},
    "c": {"type": ["boolean", "null"]}}, "required": ["a"]})");
  int nulls = 0, required_nulls = 0;
  for (int seed = 0; seed < 12; ++seed) {
    std::vector<std::string> arguments = {
        "extract", "--schema",      schema, "--model", RandomModelFolder(), "--text",
        "x",       "--temperature", "50",   "--seed",  std::to_string(seed)};
    const Record kept = Record::parse(RunPawl(arguments).out, nullptr, false);
    ASSERT_EQ(kept.size(), 3u) << kept;
    nulls += kept["b"].is_null() + kept["c"].is_null();
    arguments.insert(arguments.end(), {"--nulls", "drop"});
    const Record record = Record::parse(RunPawl(arguments).out, nullptr, false);
    ASSERT_TRUE(record.is_object() && record.contains("a")) << record;
    required_nulls += record["a"].is_null();
    EXPECT_TRUE(!record.contains("b") || !record["b"].is_null()) << record;
    EXPECT_TRUE(!record.contains("c") || !record["c"].is_null()) << record;
  }
  EXPECT_GT(nulls, 0);
  EXPECT_GT(required_nulls, 0);
}

TEST(ExtractDefaultsTest, WhatNothingFitsClosedIsReadAsItStands) {
  const std::string schema = WriteScratch("needs.json", R"({"type": "object",
    "properties": {"a": {"type": "integer"}}, "required": ["a", "b"], "maxProperties": 2})");
  const std::vector<std::string> base = {"extract", "--schema",          schema,
                                         "--model", RandomModelFolder(), "--text",
                                         "x",       "--max-tokens",      "120"};
  std::vector<std::string> arguments = base;
  arguments.push_back("--stats");
  const CommandResult result = RunPawl(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(Record::parse(result.out, nullptr, false).contains("b")) << result.out;
  EXPECT_NE(result.err.find("no value fits with closed objects"), std::string::npos) << result.err;
  arguments = base;
  arguments.insert(arguments.end(), {"--additional-properties", "forbid"});
  EXPECT_EQ(RunPawl(arguments).exit_code, 2);
}

// The bug: a schema whose shortest value is longer than what is looked for had "no value".
TEST(ExtractDefaultsTest, ALargeSchemaIsTooLargeToTell) {
  std::string properties, required;
  for (int i = 0; i < 10'000; ++i) {
    const std::string key = "\"k" + std::to_string(i) + "\"";
    properties += (i > 0 ? "," : "") + key + ":{\"type\":\"null\"}";
    required += (i > 0 ? "," : "") + key;
  }
  const std::string open = "{\"type\":\"object\",\"properties\":{" + properties + "}";
  const CommandResult large = RunPawl(
      {"schema", "check", WriteScratch("large.json", open + ",\"required\":[" + required + "]}")});
  EXPECT_EQ(large.exit_code, 2);
  EXPECT_NE(large.err.find("large.json: #: is too large to tell whether a value fits"),
            std::string::npos)
      << large.err;
  EXPECT_EQ(large.out.find("no value fits"), std::string::npos) << large.out;
  const CommandResult small = RunPawl({"schema", "check", WriteScratch("small.json", open + "}")});
  EXPECT_EQ(small.exit_code, 0) << small.err;
  EXPECT_NE(small.out.find("the shortest value takes 2 tokens"), std::string::npos);
}

TEST(ExtractDefaultsTest, InstructionAndExamplesNeedAPlaceInThePrompt) {
  const std::string examples =
      WriteScratch("examples.jsonl", "{\"text\": \"Al, 3\", \"record\": {\"id\": \"3\"}}\n");
  // The model of these tests has the prompt {text}.
  EXPECT_NE(
      ExtractOpen({"--instruction", "Find it."})
          .err.find("--instruction: the prompt of the model's pawl.json has no {instruction}"),
      std::string::npos);
  EXPECT_NE(ExtractOpen({"--examples", examples})
                .err.find("--examples: the prompt of the model's pawl.json has no {examples}"),
            std::string::npos);
  const std::string folder =
      ModelFolderWith("asking", R"({"extract": {"prompt": "{instruction}|{examples}|{text}"}})");
  const auto prompt_tokens = [](const std::vector<std::string>& more, const std::string& model) {
    std::vector<std::string> arguments = {"--max-tokens", "90", "--stats"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = ExtractOpen(arguments, "Bo", model);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const size_t at = result.err.find("prompt ");
    return at == std::string::npos ? -1 : std::atoi(result.err.c_str() + at + 7);
  };
  const int plain = prompt_tokens({}, folder);
  EXPECT_EQ(prompt_tokens({"--instruction", "Find it."}, folder), plain + 8);
  // The record is written as the model writes it: compact, with each key that may be left out.
  const std::string shown =
      "Text: Al, 3\nJSON: {\"id\":\"3\",\"city\":null,\"total\":null,\"open\":null}\n\n";
  EXPECT_EQ(prompt_tokens({"--examples", examples}, folder),
            plain + static_cast<int>(shown.size()));
  const std::string as_given = "Text: Al, 3\nJSON: {\"id\":\"3\"}\n\n";
  EXPECT_EQ(prompt_tokens({"--examples", examples, "--keys", "required"}, folder),
            plain + static_cast<int>(as_given.size()));
  const std::string fields = "id;city;total:integer;open{}";
  const std::string in_short =
      ModelFolderWith("fields", R"({"extract": {"prompt": "{fields}||{text}"}})");
  EXPECT_EQ(prompt_tokens({}, in_short), plain + static_cast<int>(fields.size()));
}

TEST(ExtractDefaultsTest, ExamplesThatAreWrongHaveTheirPlace) {
  const std::string folder =
      ModelFolderWith("wrong_examples", R"({"extract": {"prompt": "{examples}{text}"}})");
  const auto error = [&](const std::string& lines) {
    const std::string file = WriteScratch("wrong.jsonl", lines);
    const CommandResult result = ExtractOpen({"--examples", file}, "Bo", folder);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_TRUE(result.err.starts_with("pawl extract: " + file + ": ")) << result.err;
    return result.err.substr(std::string("pawl extract: " + file + ": ").size());
  };
  EXPECT_EQ(error("{\"text\": \"a\", \"record\": {\"id\": \"1\"}}\n"
                  "{\"text\": \"a\", \"record\": {\"id\": 1}}\n"),
            "line 2: #/record/id: does not fit the schema\n");
  EXPECT_EQ(error("\n{\"text\": 1, \"record\": {}}\n"),
            "line 2: must be an object with a string \"text\" and a \"record\"\n");
  EXPECT_EQ(error(""), "has no examples\n");
  EXPECT_EQ(error("{").substr(0, 7), "line 1:");
}

TEST(ExtractDefaultsTest, ATemplateIsASchema) {
  const std::string file = WriteScratch(
      "template.json",
      R"({"name": "verbatim-string", "kind": ["person", "company"], "tags": ["string"], "n": "integer"})");
  const std::vector<std::string> base = {"extract", "--model",       RandomModelFolder(),
                                         "--text",  "Bo, 7",         "--max-tokens",
                                         "180",     "--temperature", "1.5"};
  std::vector<std::string> arguments = base;
  arguments.insert(arguments.end(), {"--template", file});
  const CommandResult result = RunPawl(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Record record = Record::parse(result.out, nullptr, false);
  ASSERT_TRUE(record.is_object()) << result.out;
  if (record.contains("kind")) {
    EXPECT_TRUE(record["kind"] == "person" || record["kind"] == "company");
  }
  if (record.contains("n")) {
    EXPECT_TRUE(record["n"].is_number_integer());
  }
  const std::string wrong = WriteScratch("wrong_template.json", R"({"a": {"b": "text"}})");
  arguments = base;
  arguments.insert(arguments.end(), {"--template", wrong});
  const CommandResult refused = RunPawl(arguments);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(refused.err.starts_with("pawl extract: " + wrong + ": #/a/b: unknown type \"text\""))
      << refused.err;
  arguments.insert(arguments.end(), {"--schema", file});
  EXPECT_NE(RunPawl(arguments).err.find("--template: cannot be used with --schema"),
            std::string::npos);
}

TEST(ExtractDefaultsTest, MaskSurpriseIsInTheStatistics) {
  EXPECT_NE(ExtractOpen({"--max-tokens", "90", "--stats"}).err.find("mask_surprise "),
            std::string::npos);
}

// The ids and cities of records of many seeds that the text does not have.
int ValuesNotInTheText(const std::vector<std::string>& more,
                       const std::string& folder = RandomModelFolder()) {
  const std::string text = "Bo, 7 in Ulm";
  int absent = 0;
  for (int seed = 0; seed < 12; ++seed) {
    std::vector<std::string> arguments = {"--temperature",      "1.5",          "--seed",
                                          std::to_string(seed), "--max-tokens", "180"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = ExtractOpen(arguments, text, folder);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const Record record = Record::parse(result.out, nullptr, false);
    for (const char* key : {"id", "city"}) {
      if (record.contains(key) && record[key].is_string())
        absent += text.find(record[key].get<std::string>()) == std::string::npos ? 1 : 0;
    }
  }
  return absent;
}

TEST(ExtractDefaultsTest, ValuesOfTheTextArePreferred) {
  const int without = ValuesNotInTheText({"--prefer-text", "0"});
  const int usual = ValuesNotInTheText({});
  EXPECT_GT(without, 0);
  EXPECT_LE(usual, without);
  EXPECT_EQ(ValuesNotInTheText({"--prefer-text", "1000"}), 0);
  // Drafts and the size of a batch change nothing.
  EXPECT_EQ(ExtractOpen({"--draft", "off"}).out, ExtractOpen({"--draft", "suffix"}).out);
  // In the examples no id stands in its text.
  const std::vector<std::string> examples = {
      "--examples", WriteScratch("free.jsonl", R"({"text": "x", "record": {"id": "q1"}})")};
  std::vector<std::string> strong = examples;
  strong.insert(strong.end(), {"--prefer-text", "1000"});
  const std::string shows =
      ModelFolderWith("shows", R"({"extract": {"prompt": "{examples}|{text}"}})");
  EXPECT_GT(ValuesNotInTheText(strong, shows), 0);
  for (const char* wrong : {"-1", "1001", "much"}) {
    const CommandResult refused = ExtractOpen({"--prefer-text", wrong});
    EXPECT_NE(refused.exit_code, 0) << refused.out;
    EXPECT_NE(refused.err.find("--prefer-text"), std::string::npos) << refused.err;
  }
}

}  // namespace
}  // namespace pawl
