// pawl eval through the command. tests/eval/eval_twin.py compares its scores with a second
// implementation.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/cli_test_util.h"

namespace pawl {
namespace {

using Report = nlohmann::json;

std::string EvalSchema() {
  return WriteScratch("eval_schema.json", R"({"type": "object", "properties": {
    "name": {"type": "string", "maxLength": 3}, "n": {"type": "integer"}}, "required": ["name"]})");
}

std::string EvalData() {
  return WriteScratch(
      "eval.jsonl",
      "{\"text\": \"Al 1\", \"record\": {\"name\": \"Al\", \"n\": 1}, \"part\": \"a\"}\n"
      "{\"text\": \"Bo\", \"record\": {\"name\": \"Bo\", \"n\": null}, \"part\": \"b\"}\n"
      "{\"text\": \"Cy 3\", \"record\": {\"name\": \"Cy\", \"n\": 3}, \"part\": \"a\"}\n");
}

CommandResult RunEval(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"eval",     "--schema", EvalSchema(),        "--data",
                                        EvalData(), "--model",  RandomModelFolder(), "--max-tokens",
                                        "120"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunPawl(arguments);
}

TEST(EvalTest, RecordsAreThoseOfExtract) {
  const std::string file = ScratchPath("records.jsonl");
  const CommandResult result = RunEval({"--records", file, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Report report = Report::parse(result.out);
  EXPECT_EQ(report["settings"].size(), 1u);
  EXPECT_EQ(report["settings"][0]["texts"], 3);
  EXPECT_EQ(report["settings"][0]["all"]["values"], 5);
  EXPECT_EQ(report["settings"][0]["all"]["nulls"], 1);
  EXPECT_GT(report["settings"][0]["mask_surprise_per_record"], 0);
  EXPECT_GT(report["settings"][0]["tokens_per_record"], 0);
  const CommandResult one = RunPawl({"extract", "--schema", EvalSchema(), "--model",
                                     RandomModelFolder(), "--text", "Bo", "--max-tokens", "120"});
  const CommandResult again = RunEval({"--written", file, "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const Report scored = Report::parse(again.out);
  EXPECT_EQ(scored["settings"][0]["all"], report["settings"][0]["all"]);
  std::string records;
  const CommandResult cat = RunPawl({"eval", "--data", file, "--written", file});
  EXPECT_EQ(cat.exit_code, 2);  // no texts there
  EXPECT_NE(one.out, "");
}

TEST(EvalTest, SettingsAreCompared) {
  const CommandResult result =
      RunEval({"--against", "--keys required --temperature 1 --seed 3", "--against", "", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Report report = Report::parse(result.out);
  ASSERT_EQ(report["settings"].size(), 3u);
  ASSERT_EQ(report["comparisons"].size(), 2u);
  EXPECT_EQ(report["settings"][2]["all"], report["settings"][0]["all"]);
  EXPECT_EQ(report["comparisons"][1]["p"], 1);
  EXPECT_EQ(report["comparisons"][1]["same"], 3);
  const CommandResult open = RunEval({"--against", "--schema-view 'keys"});
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_NE(open.err.find("--against: has a quote that is not closed"), std::string::npos)
      << open.err;
}

TEST(EvalTest, ThinkingIsASetting) {
  const std::string folder = ModelFolderWith("eval_thinks", "");
  std::ofstream(folder + "/chat_template.jinja")
      << "{% for m in messages %}{{ m.content }}\n{% endfor %}{% if false %}</think>{% endif "
         "%}<think>\n";
  const CommandResult result =
      RunPawl({"eval", "--schema", EvalSchema(), "--data", EvalData(), "--model", folder,
               "--max-tokens", "200", "--thinking", "40", "--against", "--thinking off", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Report report = Report::parse(result.out);
  const double thinks = report["settings"][0]["tokens_per_record"];
  const double answers = report["settings"][1]["tokens_per_record"];
  EXPECT_NE(thinks, answers) << result.out;
  // The model that thinks nowhere is told of it once, not for each schema and setting.
  const std::string note = "--thinking changes nothing";
  const CommandResult nothing = RunEval({"--thinking", "9", "--against", "--thinking 20"});
  EXPECT_EQ(nothing.exit_code, 0) << nothing.err;
  const size_t first = nothing.err.find(note);
  ASSERT_NE(first, std::string::npos) << nothing.err;
  EXPECT_EQ(nothing.err.find(note, first + 1), std::string::npos) << nothing.err;
}

TEST(EvalTest, LinesAreChosen) {
  const Report report = Report::parse(RunEval({"--where", "part=a", "--json"}).out);
  EXPECT_EQ(report["settings"][0]["texts"], 2);
  EXPECT_EQ(Report::parse(RunEval({"--limit", "1", "--json"}).out)["settings"][0]["texts"], 1);
}

TEST(EvalTest, TheTableHasEachField) {
  const CommandResult result = RunEval({});
  for (const char* text : {"field ", "\nname ", "\nn ", "\nall ", "fields right: ", "F1 of values",
                           "records a second", "mask_surprise"}) {
    EXPECT_NE(result.out.find(text), std::string::npos) << text << "\n" << result.out;
  }
}

TEST(EvalTest, WhatTheDataHasWrongIsTold) {
  const std::string data =
      WriteScratch("off.jsonl",
                   "{\"text\": \"Al\", \"record\": {\"name\": \"Al\", \"n\": 1}}\n"
                   "{\"text\": \"Bo\", \"record\": {\"name\": \"Bo\", \"n\": \"two\"}}\n"
                   "{\"text\": \"\", \"record\": {\"name\": \"Cy\", \"n\": null}}\n");
  const CommandResult result = RunPawl({"eval", "--schema", EvalSchema(), "--data", data, "--model",
                                        RandomModelFolder(), "--max-tokens", "120", "--json"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("note: " + data + ": line 2: #/n: the right record does not fit"),
            std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("pawl eval: " + data + ": line 3: is empty\n"), std::string::npos)
      << result.err;
  EXPECT_EQ(Report::parse(result.out)["settings"][0]["misfits"], 1);
}

TEST(EvalTest, AShareOfNothingIsNull) {
  const std::string data =
      WriteScratch("nulls.jsonl", "{\"text\": \"a\", \"record\": {\"n\": null}}\n");
  const std::string records = WriteScratch("none.jsonl", "{\"record\": {}}\n");
  const CommandResult result = RunPawl({"eval", "--data", data, "--written", records, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Report setting = Report::parse(result.out)["settings"][0];
  EXPECT_TRUE(setting["values"]["f1"].is_null()) << setting;
  EXPECT_TRUE(setting["values"]["precision"].is_null()) << setting;
  const CommandResult table = RunPawl({"eval", "--data", data, "--written", records});
  EXPECT_NE(table.out.find("F1 of values: - (precision -, recall -)"), std::string::npos)
      << table.out;
}

TEST(EvalTest, VariantsAreJudgedOnTextsTheyHaveNotSeen) {
  const CommandResult result = RunEval({"--variants", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Report report = Report::parse(result.out);
  ASSERT_EQ(report["settings"].size(), 2u);
  EXPECT_EQ(report["settings"][0]["texts"], 1);
  EXPECT_NE(result.err.find("\npawl eval: --whitespace bounded: "), std::string::npos);
}

TEST(EvalTest, WhatIsWrongIsTold) {
  const auto refusal = [](const std::vector<std::string>& more) {
    const CommandResult result = RunEval(more);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  EXPECT_EQ(refusal({"--where", "part"}), "pawl eval: --where: must be KEY=VALUE, not \"part\"\n");
  EXPECT_NE(refusal({"--where", "part=c"}).find("has no texts that fit --where"),
            std::string::npos);
  EXPECT_NE(refusal({"--against", "--no-such"}).find("pawl eval: --against: \"--no-such\": "),
            std::string::npos);
  EXPECT_NE(refusal({"--against", "--thinking much"}).find("--thinking: must be off, auto or"),
            std::string::npos);
  const std::string bad = WriteScratch("bad_eval.jsonl", "{\"text\": \"a\"}\n");
  EXPECT_EQ(refusal({"--written", bad}),
            "pawl eval: " + bad + ": line 1: must have a \"record\"\n");
  const std::string file = WriteScratch("no_schema.jsonl", "{\"text\": \"a\", \"record\": 1}\n");
  const CommandResult none =
      RunPawl({"eval", "--data", file, "--model", RandomModelFolder(), "--max-tokens", "9"});
  EXPECT_EQ(none.err,
            "pawl eval: " + file + ": line 1: has no \"schema\", and --schema is not given\n");
}

}  // namespace
}  // namespace pawl
