// What files say of extraction: which of them counts, and what is wrong with one.
#include "src/engine/extract_settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "src/base/json.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

class SettingsFolder : public testing::Test {
 protected:
  SettingsFolder() : path_(testing::TempDir() + "/pawl_settings_" + std::to_string(::getpid())) {
    fs::create_directories(path_);
  }
  ~SettingsFolder() override {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string Write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << content;
    return path_ + "/" + name;
  }
  std::string path_;
};

ExtractSettings Read(const std::string& text) {
  const Result<json::Value> tree = json::Parse(text);
  const JsonReader in(*tree);
  ExtractSettings settings = ReadExtractSettings(in);
  EXPECT_TRUE(in.ok()) << in.error().ToString();
  return settings;
}

constexpr const char* kAll =
    R"({"schema_view":"template","whitespace":"bounded","separators":[", ",": "],"keys":"required",)"
    R"("nulls":"drop","instruction":"Find it.","examples":[{"text":"a","record":{"b":1}}],)"
    R"("prefer_text":2.5})";

TEST_F(SettingsFolder, WhatIsWrittenIsReadAgain) {
  EXPECT_EQ(JsonOf(Read(kAll)), kAll);
  EXPECT_EQ(JsonOf(Read("{}")), "{}");
  const std::string weights = Write("model.gguf", std::string(3'000'000, 'w'));
  const Result<std::string> file = MeasuredFile(path_ + "/new", weights);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(SaveMeasured(*file, Read(kAll), "{}", "{}").ok());
  ExtractChoices choices;
  ASSERT_TRUE(LoadMeasured(path_ + "/new", weights, choices).ok());
  EXPECT_EQ(choices.measured_file, *file);
  EXPECT_EQ(JsonOf(choices.measured), kAll);
  ExtractInput input{.schema = "{}", .text = "t"};
  choices.Apply(input);
  EXPECT_EQ(input.instruction, "Find it.");
  EXPECT_EQ(input.prefer_text, 2.5);
}

TEST_F(SettingsFolder, TheFileIsOfTheWeightsNotOfTheirPlace) {
  std::string bytes(2'000'000, 'w');
  const std::string one = Write("one.gguf", bytes), same = Write("two.gguf", bytes);
  bytes.back() = 'v';
  const std::string other = Write("other.gguf", bytes);
  bytes.back() = 'w';
  const std::string longer = Write("longer.gguf", bytes + "w");
  EXPECT_EQ(*WeightsDigest(one), *WeightsDigest(same));
  EXPECT_EQ(WeightsDigest(one)->size(), 40u);
  EXPECT_NE(*WeightsDigest(one), *WeightsDigest(longer));
  EXPECT_EQ(WeightsDigest(path_ + "/none.gguf").error().code, ErrorCode::kIo);
  // A folder is its safetensors files.
  const std::string folder = path_ + "/folder";
  fs::create_directories(folder);
  std::ofstream(folder + "/a.safetensors") << "a";
  const std::string before = *WeightsDigest(folder);
  std::ofstream(folder + "/tokenizer.json") << "{}";
  EXPECT_EQ(*WeightsDigest(folder), before);
  std::ofstream(folder + "/b.safetensors") << "b";
  EXPECT_NE(*WeightsDigest(folder), before);
  (void)other;
}

TEST(ExtractChoicesTest, TheMeasuredChoiceComesBeforePawlJson) {
  ExtractChoices choices;
  choices.measured = Read(R"({"schema_view":"keys","keys":"required"})");
  choices.own = Read(R"({"schema_view":"schema","instruction":"Own.","nulls":"drop",)"
                     R"("separators":[", ",": "]})");
  ExtractInput open{.schema = "{}", .text = "t"};
  choices.Apply(open);
  EXPECT_EQ(open.view, SchemaView::kKeys);
  EXPECT_EQ(open.instruction, "Own.");
  ExtractInput asked{.schema = "{}", .text = "t", .instruction = "Mine."};
  asked.view = SchemaView::kAuto;
  choices.Apply(asked);
  EXPECT_EQ(asked.view, SchemaView::kAuto);
  EXPECT_EQ(asked.instruction, "Mine.");
  JsonSchemaOptions options = ExtractSchemaOptions();
  choices.Apply(options);
  EXPECT_EQ(options.keys, JsonSchemaOptions::Keys::kRequired);
  EXPECT_EQ(options.nulls, JsonSchemaOptions::Nulls::kDrop);
  EXPECT_EQ(options.item_separator, ", ");
  std::string sources;
  for (const ExtractDefault& one : choices.List()) {
    sources += one.name + "=" + one.value + " " + one.source + "; ";
  }
  EXPECT_EQ(sources,
            "schema_view=\"keys\" measured choice; whitespace=\"compact\" default; "
            "separators=[\", \",\": \"] pawl.json; keys=\"required\" measured choice; "
            "nulls=\"drop\" pawl.json; instruction=\"Own.\" pawl.json; examples=[] default; "
            "prefer_text=\"auto\" default; ");
}

TEST(ExtractChoicesTest, WordsAndExamplesAreForTheirSchema) {
  ExtractChoices choices;
  choices.measured = Read(kAll);
  choices.measured_schema = SchemaDigest("{}");
  ExtractInput same{.schema = "{}", .text = "t"}, other{.schema = "true", .text = "t"};
  choices.Apply(same);
  choices.Apply(other);
  EXPECT_EQ(same.instruction, "Find it.");
  EXPECT_EQ(same.examples.size(), 1u);
  EXPECT_EQ(other.instruction, "");
  EXPECT_TRUE(other.examples.empty());
  EXPECT_EQ(other.view, SchemaView::kTemplate);
  EXPECT_EQ(choices.List("{}")[5].source, "measured choice");
  EXPECT_EQ(choices.List("true")[5].source, "default");
}

TEST_F(SettingsFolder, WhatIsWrongWithAFileIsTold) {
  const std::string weights = Write("model.gguf", "weights");
  const std::string file = *MeasuredFile(path_, weights);
  const auto refusal = [&](const std::string& content) {
    std::ofstream(file, std::ios::binary) << content;
    ExtractChoices choices;
    const Status status = LoadMeasured(path_, weights, choices);
    return status.ok() ? std::string() : status.error().ToString().substr(file.size());
  };
  EXPECT_EQ(refusal(R"({"extract":{"keys":"all"},"measured":{"p":0.1}})"), "");
  EXPECT_EQ(refusal(R"({"extract":{"keys":"some"}})"),
            ": #/extract/keys: must be one of required, all");
  EXPECT_EQ(refusal(R"({"extract":{"separators":[","]}})"),
            ": #/extract/separators: must be two texts, of items and of keys");
  EXPECT_EQ(refusal(R"({"extract":{"examples":[{"text":"a"}]}})"),
            ": #/extract/examples/0/record: is missing");
  EXPECT_NE(refusal(R"({"extract":{"view":"keys"}})").find("#/extract"), std::string::npos);
  EXPECT_NE(refusal("{"), "");
}

}  // namespace
}  // namespace pawl
