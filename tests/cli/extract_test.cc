// pawl extract through the command, on a model with random weights: what it writes is nonsense, and
// must be valid.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "src/base/file.h"
#include "tests/cli/cli_test_util.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

using Json = nlohmann::json;

constexpr const char* kSchema = R"({
  "type": "object",
  "properties": {
    "name": {"type": "string", "maxLength": 12},
    "age": {"type": ["integer", "null"], "minimum": 0, "maximum": 150},
    "kind": {"enum": ["person", "company"]},
    "tags": {"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": 3}
  },
  "required": ["name", "age", "kind", "tags"],
  "additionalProperties": false
})";

std::string SchemaFile() { return WriteScratch("record.json", kSchema); }

// What kSchema says, by hand.
void ExpectValidRecord(const std::string& text) {
  const Json value = Json::parse(text, nullptr, false);
  ASSERT_TRUE(value.is_object()) << text;
  EXPECT_EQ(value.size(), 4u) << text;
  ASSERT_TRUE(value.contains("name") && value["name"].is_string()) << text;
  ASSERT_TRUE(value.contains("age")) << text;
  EXPECT_TRUE(value["age"].is_null() ||
              (value["age"].is_number_integer() && value["age"] >= 0 && value["age"] <= 150))
      << text;
  ASSERT_TRUE(value.contains("kind")) << text;
  EXPECT_TRUE(value["kind"] == "person" || value["kind"] == "company") << text;
  ASSERT_TRUE(value.contains("tags") && value["tags"].is_array()) << text;
  EXPECT_LE(value["tags"].size(), 3u) << text;
}

std::vector<std::string> ExtractCommand(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"extract", "--schema", SchemaFile(), "--model",
                                        RandomModelFolder()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(ExtractTest, TheEndOfTheLastLineIsNoPartOfTheText) {
  const auto of = [](const std::string& text) {
    return RunPawl(ExtractCommand({"--stats", "--file", WriteScratch("line.txt", text)})).err;
  };
  const std::string plain = of("Ann Lee, 41");
  const auto prompt = [](const std::string& stats) {
    const size_t at = stats.find("prompt ");
    return stats.substr(at, stats.find(" tokens", at) - at);
  };
  EXPECT_EQ(prompt(of("Ann Lee, 41\n")), prompt(plain));
  EXPECT_EQ(prompt(of("Ann Lee, 41\r\n")), prompt(plain));
  EXPECT_NE(prompt(of("Ann Lee, 41\n\n")), prompt(plain));
}

// What is written is not what is read, and a run that cannot begin leaves files as they were.
TEST(ExtractTest, OutputsAreNotInputs) {
  const std::string schema = SchemaFile();
  const std::string texts = R"({"text":"Ann Lee"})"
                            "\n";
  const std::string input = WriteScratch("same.jsonl", texts);
  const std::string other = WriteScratch("other.jsonl", "old\n");
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"extract", "--schema", schema, "--max-tokens", "60"};
    words.insert(words.end(), more.begin(), more.end());
    return RunPawl(words);
  };
  const std::string link = ScratchPath("link.jsonl");
  std::filesystem::remove(link);
  std::filesystem::create_symlink(input, link);
  for (const std::string& output : {input, link}) {
    const CommandResult same = run({"--file", input, "--output", output});
    EXPECT_EQ(same.exit_code, 2);
    EXPECT_NE(same.err.find("--output: is the file of --file"), std::string::npos) << same.err;
  }
  EXPECT_EQ(run({"--file", input, "--report", input}).exit_code, 2);
  EXPECT_EQ(run({"--file", input, "--output", other, "--report", other}).exit_code, 2);
  EXPECT_EQ(
      run({"--file", ScratchPath("texts_that_are_not_there.jsonl"), "--output", other}).exit_code,
      2);
  EXPECT_EQ(
      run({"--file", input, "--report", ScratchPath("no/r.html"), "--output", other}).exit_code, 2);
  EXPECT_EQ(*ReadFile(input), texts);
  EXPECT_EQ(*ReadFile(other), "old\n");
}

// Of a canvas the places of the keys to leave out are not known behind free text.
TEST(ExtractTest, FreeTextFirstOnACanvas) {
  const std::vector<std::string> words = {
      "extract",
      "--model",
      SourceDir() + "/models/tiny-extract-diffusion",
      "--schema",
      WriteScratch("two.json", R"({"type":"object","properties":{"a":{"type":["integer","null"]},)"
                               R"("b":{"type":["integer","null"]}},"required":["b"]})"),
      "--text",
      "nothing here",
      "--max-tokens",
      "60",
      "--free-first",
      "3"};
  const CommandResult refused = RunPawl(words);
  EXPECT_EQ(refused.exit_code, 2) << refused.out;
  EXPECT_NE(refused.err.find("--free-first"), std::string::npos) << refused.err;
  // A draft source that is named is refused there, too.
  const CommandResult drafts =
      RunPawl({"generate", "--model", SourceDir() + "/models/tiny-extract-diffusion", "--prompt",
               "x", "--max-tokens", "8", "--draft", "auto", "--draft-model",
               SourceDir() + "/models/tiny-extract"});
  EXPECT_EQ(drafts.exit_code, 2) << drafts.out;
  EXPECT_NE(drafts.err.find("--draft"), std::string::npos) << drafts.err;
  std::vector<std::string> required = words;
  required.insert(required.end(), {"--keys", "required"});
  const CommandResult good = RunPawl(required);
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_TRUE(nlohmann::json::accept(good.out)) << good.out;
}

TEST(ExtractTest, TheSizeOfTheBatchChangesNothing) {
  std::string input;
  for (int i = 0; i < 40; ++i) {
    const std::string text(static_cast<size_t>(1 + i * 7 % 60), static_cast<char>('a' + i % 3));
    input += i % 9 == 4 ? "{\"no\": 1}\n" : i % 9 == 7 ? "\" \"\n" : "\"" + text + "\"\n";
  }
  input += "\"" + std::string(300, 'x') + "\"\n\"the end\"";  // beyond the context; no newline
  const std::vector<std::string> options = {"--json-lines", "--temperature", "1", "--max-tokens",
                                            "90"};
  std::vector<CommandResult> results;
  for (const char* batch : {"1", "3", "64"}) {
    std::vector<std::string> all = options;
    all.insert(all.end(), {"--batch", batch});
    results.push_back(RunPawl(ExtractCommand(all), input));
    EXPECT_EQ(results.back().exit_code, 1);
    EXPECT_EQ(std::count(results.back().out.begin(), results.back().out.end(), '\n'), 42);
    EXPECT_EQ(results.back().out, results[0].out) << batch;
    EXPECT_EQ(results.back().err, results[0].err) << batch;
  }
  EXPECT_EQ(RunPawl(ExtractCommand({"--json-lines", "--batch", "0"}), input).exit_code, 2);
}

TEST(ExtractTest, OutputIsValidAtEveryTemperatureAndSeed) {
  for (const char* temperature : {"0", "0.7", "1.5", "50"}) {
    for (int seed = 0; seed < 4; ++seed) {
      const CommandResult result =
          RunPawl(ExtractCommand({"--text", "Ann Lee, 41", "--temperature", temperature, "--seed",
                                  std::to_string(seed), "--max-tokens", "150"}));
      ASSERT_EQ(result.exit_code, 0) << result.err;
      ExpectValidRecord(result.out);
    }
  }
}

TEST(ExtractTest, TextComesFromOptionFileOrStandardInput) {
  const std::string text = "Ann Lee, 41\nand more";
  const CommandResult option = RunPawl(ExtractCommand({"--text", text}));
  const CommandResult file = RunPawl(ExtractCommand({"--file", WriteScratch("text.txt", text)}));
  const CommandResult input = RunPawl(ExtractCommand({}), text);
  EXPECT_EQ(option.exit_code, 0);
  EXPECT_EQ(option.out, file.out);
  EXPECT_EQ(option.out, input.out);
}

// Bug: from an empty text a record was made up, as long as the budget.
TEST(ExtractTest, AnEmptyTextIsAMistake) {
  const auto refusal = [](const std::vector<std::string>& more, std::string_view input = "") {
    const CommandResult result = RunPawl(ExtractCommand(more), input);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  EXPECT_EQ(refusal({"--text", ""}), "pawl extract: --text: is empty\n");
  EXPECT_EQ(refusal({"--text", " \n\t"}), "pawl extract: --text: holds only white space\n");
  EXPECT_EQ(refusal({}), "pawl extract: standard input: is empty\n");
  const std::string file = WriteScratch("nothing.txt", "");
  EXPECT_EQ(refusal({"--file", file}), "pawl extract: " + file + ": is empty\n");
  // One of many does not stop the others.
  const CommandResult lines = RunPawl(ExtractCommand({"--json-lines"}), "\"\"\n\n\"Bo, 7\"\n");
  EXPECT_EQ(lines.exit_code, 1);
  const std::string errors = R"({"error":{"line":1,"message":"text: is empty"}})"
                             "\n"
                             R"({"error":{"line":2,"message":"is empty"}})"
                             "\n";
  ASSERT_TRUE(lines.out.starts_with(errors)) << lines.out;
  ExpectValidRecord(lines.out.substr(errors.size()));
}

TEST(ExtractTest, JsonLinesAreAnsweredInWholeWhateverTheirEnds) {
  const std::string input = "\"a\"\r\n\"" + std::string(200'000, 'x') + "\"\n\"b\"";
  const CommandResult result = RunPawl(ExtractCommand({"--json-lines"}), input);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 3);
  EXPECT_NE(result.err.find("line 2: text: has 200001 bytes, but 255 tokens hold no more than"),
            std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("--document reads it in chunks"), std::string::npos) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST(ExtractTest, SameSeedSameOutputForEveryNumberOfThreads) {
  const std::vector<std::string> base = {"--text", "Bo, 7", "--temperature", "1.2", "--seed", "11"};
  std::vector<std::string> outputs;
  for (const char* threads : {"1", "2", "2", "3"}) {
    std::vector<std::string> arguments = base;
    arguments.insert(arguments.end(), {"--threads", threads});
    outputs.push_back(RunPawl(ExtractCommand(arguments)).out);
  }
  EXPECT_NE(outputs[0], "");
  for (const std::string& output : outputs) EXPECT_EQ(output, outputs[0]);
  std::vector<std::string> other = base;
  other.back() = "12";
  EXPECT_NE(RunPawl(ExtractCommand(other)).out, outputs[0]);
}

TEST(ExtractTest, ATinyBudgetClosesTheOutputAndSaysSo) {
  // The shortest record: {"name":"","age":0,"kind":"person","tags":[]} in single bytes.
  const int shortest = 45;
  int closed = 0;
  for (int budget = shortest; budget < shortest + 12; ++budget) {
    const CommandResult result = RunPawl(ExtractCommand(
        {"--text", "x", "--temperature", "1.5", "--max-tokens", std::to_string(budget)}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    ExpectValidRecord(result.out);
    EXPECT_LE(static_cast<int>(result.out.size()), budget + 1);
    if (result.err.find("closed in the shortest valid way") != std::string::npos) ++closed;
  }
  EXPECT_GT(closed, 6);
  const CommandResult impossible =
      RunPawl(ExtractCommand({"--text", "x", "--max-tokens", std::to_string(shortest - 1)}));
  EXPECT_EQ(impossible.exit_code, 2);
  EXPECT_NE(impossible.err.find("takes 45 tokens"), std::string::npos) << impossible.err;
}

TEST(ExtractTest, JsonLinesKeepTheirOrderAndLoseNoLine) {
  const std::string input =
      "{\"text\": \"Ann, 41\", \"id\": 1}\n"
      "\"Bo\"\n"
      "not json\n"
      "{\"txt\": \"no text\"}\n"
      "\n"
      "\"" +
      std::string(300, 'x') +
      "\"\n"
      "\"last, without a new line\"";
  const CommandResult result =
      RunPawl(ExtractCommand({"--json-lines", "--temperature", "1"}), input);
  EXPECT_EQ(result.exit_code, 1);
  std::vector<std::string> lines;
  std::istringstream stream(result.out);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 7u) << result.out;
  for (const int good : {0, 1, 6}) ExpectValidRecord(lines[static_cast<size_t>(good)]);
  for (const int bad : {2, 3, 4, 5}) {
    const Json value = Json::parse(lines[static_cast<size_t>(bad)], nullptr, false);
    ASSERT_TRUE(value.contains("error")) << lines[static_cast<size_t>(bad)];
    EXPECT_EQ(value["error"]["line"], bad + 1);
    EXPECT_NE(result.err.find("line " + std::to_string(bad + 1) + ": "), std::string::npos);
  }
  // Each line is what the command gives for that text alone.
  EXPECT_EQ(lines[1] + "\n", RunPawl(ExtractCommand({"--text", "Bo", "--temperature", "1"})).out);
}

TEST(ExtractTest, JsonLinesStayOnOneLineWithWhiteSpace) {
  std::string input;
  for (int i = 0; i < 5; ++i) input += "\"" + std::to_string(i) + "\"\n";
  const CommandResult result = RunPawl(ExtractCommand({"--json-lines", "--whitespace", "any",
                                                       "--temperature", "2", "--order", "any"}),
                                       input);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::istringstream stream(result.out);
  int lines = 0;
  for (std::string line; std::getline(stream, line); ++lines) ExpectValidRecord(line);
  EXPECT_EQ(lines, 5);
}

TEST(ExtractTest, ThePromptTemplateMayHoldSpecialTokensTheTextMayNot) {
  const auto prompt_tokens = [](const std::string& folder, const std::string& text) {
    const std::string schema = WriteScratch("true.json", R"({ "const": true })");
    const CommandResult result =
        RunPawl({"extract", "--schema", schema, "--model", folder, "--text", text, "--stats"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const size_t at = result.err.find("prompt ");
    return at == std::string::npos ? -1 : std::atoi(result.err.c_str() + at + 7);
  };
  EXPECT_EQ(prompt_tokens(RandomModelFolder(), "abc"), 1 + 3 + 1);   // <s>abc\n
  EXPECT_EQ(prompt_tokens(RandomModelFolder(), "</s>"), 1 + 4 + 1);  // four characters, no token
  const std::string special =
      ModelFolderWith("special", R"({"extract":{"prompt":"</s>{schema}</s>{text}{text}"}})");
  EXPECT_EQ(prompt_tokens(special, "</s>"), 1 + 14 + 1 + 4 + 4);  // {"const":true} is compact
  // Without pawl.json there is an instruction, and the begin token only if the tokenizer adds it.
  const std::string general = ModelFolderWith("general", "");
  EXPECT_GT(prompt_tokens(general, "abc"), 60);
}

// A model that has a chat template and no prompt of its own is asked as a user would ask it.
TEST(ExtractTest, WithoutAPromptTheChatTemplateIsUsed) {
  const std::string folder = ModelFolderWith("chat_extract", "");
  const std::string chat_template =
      "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}</s>{% endfor %}"
      "{{ enable_thinking }}{% if add_generation_prompt %}<s>answer: {% endif %}";
  WriteScratch("chat_extract/chat_template.jinja", chat_template);
  const std::string text = "Ann </s>";
  // The model's context is short, and its numbers tell one prompt from another.
  const std::string number = WriteScratch(
      "number_of.json", R"({ "type": "integer", "minimum": 100000, "maximum": 999999 })");
  const std::vector<std::string> settings = {"--schema", number, "--temperature", "1",
                                             "--seed",   "5",    "--max-tokens",  "9"};
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), settings.begin(), settings.end());
    const CommandResult result = RunPawl(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  const std::string record = run({"extract", "--model", folder, "--text", text});
  EXPECT_EQ(record.size(), 7u) << record;
  const std::string asked =
      "Extract the data from the text as JSON.\n\nSchema: "
      R"({"type":"integer","minimum":100000,"maximum":999999})"
      "\n\nText: " +
      text;
  EXPECT_EQ(run({"generate", "--model", folder, "--chat", "--chat-arg", "enable_thinking=false",
                 "--prompt", asked}),
            record);
  // A prompt in pawl.json comes first.
  const std::string own =
      ModelFolderWith("chat_extract_own", R"({"extract":{"prompt":"{text}\n","bos":true}})");
  WriteScratch("chat_extract_own/chat_template.jinja", chat_template);
  const std::string other = run({"extract", "--model", own, "--text", text});
  EXPECT_NE(other, record);
  EXPECT_EQ(other, run({"extract", "--model", RandomModelFolder(), "--text", text}));
  // A pawl.json without one does not.
  const std::string bos = ModelFolderWith("chat_extract_bos", R"({"bos":true})");
  WriteScratch("chat_extract_bos/chat_template.jinja", chat_template);
  EXPECT_EQ(run({"extract", "--model", bos, "--text", text}), record);

  const auto refusal = [&](const std::string& broken) {
    WriteScratch("chat_extract/chat_template.jinja", broken);
    const CommandResult result =
        RunPawl({"extract", "--model", folder, "--text", text, "--schema", number});
    EXPECT_EQ(result.exit_code, 2);
    return result.err;
  };
  EXPECT_EQ(refusal("{{ raise_exception('no') }}"),
            "pawl extract: " + folder + "/chat_template.jinja: 1:19: the template refuses: no\n");
  EXPECT_NE(refusal("{% for %}").find("chat_template.jinja: 1:"), std::string::npos);
}

TEST(ExtractTest, ProgressAndStatisticsGoToStandardError) {
  const CommandResult result =
      RunPawl(ExtractCommand({"--json-lines", "--stats", "--progress"}), "\"a\"\n\"ab\"\n");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.err.find("output"), std::string::npos);
  EXPECT_EQ(result.out.find("pawl"), std::string::npos);
}

std::string FileText(const std::string& path) {
  const Result<std::string> text = ReadFile(path);
  EXPECT_TRUE(text.ok()) << path;
  return text.ok() ? *text : "";
}

TEST(ExtractTest, AKilledRunGoesOnWhereItEnded) {
  std::string input;
  for (int i = 0; i < 9; ++i) {
    input += i == 4 ? "{\"no\": 1}\n"
                    : R"({"id": "a,)" + std::to_string(i) + R"(", "text": "text )" +
                          std::to_string(i) + "\"}\n";
  }
  const auto extract = [&](const std::string& file, std::vector<std::string> more) {
    more.insert(more.end(), {"--json-lines", "--temperature", "1", "--output", file});
    return RunPawl(ExtractCommand(more), input);
  };
  for (const std::string ending : {".jsonl", ".csv"}) {
    const std::vector<std::string> keep = {"--keep", "id,no"};
    const std::string whole = WriteScratch("whole" + ending, ""),
                      cut = WriteScratch("cut" + ending, "");
    const CommandResult first = extract(whole, keep);
    EXPECT_EQ(first.exit_code, 1) << first.err;
    EXPECT_EQ(first.out, "");
    const std::string all = FileText(whole);
    EXPECT_NE(all.find("a,8"), std::string::npos) << all;
    for (const size_t bytes :
         {size_t{0}, all.size() / 3, all.size() / 2, all.size() - 3, all.size()}) {
      (void)WriteScratch("cut" + ending, all.substr(0, bytes));
      std::vector<std::string> more = keep;
      more.emplace_back("--resume");
      const CommandResult again = extract(cut, more);
      EXPECT_LE(again.exit_code, 1) << again.err;
      EXPECT_EQ(FileText(cut), all) << bytes;
    }
  }
  const std::string rows = FileText(ScratchPath("whole.csv"));
  EXPECT_EQ(rows.substr(0, rows.find('\n')), "id,no,name,age,kind,tags,error");
  EXPECT_NE(rows.find(",1,,,,,"), std::string::npos) << rows;  // the line that has no text
  for (const auto& [options, message] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--output", "records.txt"}, "--output: must be the name of a .jsonl or .csv file"},
           {{"--resume"}, "--resume: needs --output"},
           {{"--json-lines", "--keep", "name"}, "--keep: is a key of the schema: name"},
           {{"--keep", "id"}, "--keep: needs many texts"},
           {{"--details", "--output", "a.csv"}, "--details: are for .jsonl files"},
           {{"--details", "--contrast", "1"},
            "--details: come with records that are drawn alone"}}) {
    const CommandResult result = RunPawl(ExtractCommand(options), "\"x\"\n");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
  }
}

// The bug: every complete line of the file counted as an answer of this run.
TEST(ExtractTest, ARunGoesOnBehindItsOwnAnswersOnly) {
  const std::string input = "\"Bo, 7\"\n\"Ann, 8\"\n";
  const auto run = [&](const std::string& file, std::vector<std::string> more) {
    more.insert(more.end(), {"--json-lines", "--output", file, "--resume"});
    return RunPawl(ExtractCommand(more), input);
  };
  const std::string lines = WriteScratch("own.jsonl", ""), rows = WriteScratch("own.csv", "");
  ASSERT_EQ(run(lines, {}).exit_code, 0);
  ASSERT_EQ(run(rows, {}).exit_code, 0);
  const std::string all = FileText(lines), table = FileText(rows);
  const std::string first = all.substr(0, all.find('\n') + 1);
  struct Case {
    std::string name, content, line;
    std::vector<std::string> more = {};
  };
  const std::vector<Case> cases = {
      {"a.jsonl", first + "not json\n", ": line 2: is no answer of this run: it is not JSON"},
      {"a.jsonl", first + "{\"name\":5}\n", ": line 2: is no answer of this run"},
      {"a.jsonl", first + "[]\n", ": line 2: "},
      {"a.jsonl", first + "\n", ": line 2: "},
      {"a.jsonl", "{\"error\":{\"line\":2,\"message\":\"x\"}}\n", ": line 1: "},
      {"a.jsonl", "garbage", ": line 1: is no part of an answer"},
      {"a.jsonl", all + first, ": has answers for 3 texts, but there are 2"},
      {"a.jsonl",
       all,
       ": line 1: is no answer of this run: it is no line of --details",
       {"--details"}},
      {"a.csv", "x,y\n1,2\n", ": line 1: is no answer of this run: its columns are x,y"},
      {"a.csv", "nam", ": line 1: is no part of an answer", {"--keep", "id"}},
      {"a.csv", table.substr(0, table.find('\n') + 1) + "\"a\n\",1\n", ": line 2: "},
      {"a.csv", table + table.substr(table.find('\n') + 1), ": has answers for 4 texts"},
  };
  for (const Case& one : cases) {
    const std::string file = WriteScratch(one.name, one.content);
    const CommandResult result = run(file, one.more);
    EXPECT_EQ(result.exit_code, 2) << one.content;
    EXPECT_NE(result.err.find(file + one.line), std::string::npos) << one.line << "\n"
                                                                   << result.err;
    EXPECT_EQ(FileText(file), one.content);
  }
}

// The bug: answers of other texts, or with kept members of other values, counted as those of a run.
TEST(ExtractTest, AnswersOfARunAreThoseOfItsTexts) {
  const std::string schema = WriteScratch(
      "copied.json",
      R"({"type":"object","properties":{"who":{"type":"string","x-pawl-source":"span"},)"
      R"("n":{"type":["number","null"],"x-pawl-source":"span"}},"required":["who","n"]})");
  const std::string input =
      "{\"text\":\"Bo, 7\",\"id\":1,\"by\":\"x\"}\n{\"text\":\"Ann, "
      "1,240\",\"id\":2,\"by\":\"y\"}\n";
  const auto run = [&](const std::string& file, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "extract",      "--schema", schema, "--model", RandomModelFolder(),
        "--json-lines", "--output", file,   "--resume"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunPawl(arguments, input);
  };
  struct Case {
    std::string file, content, problem;
    std::vector<std::string> more = {};
  };
  const std::string head = "id,who,n,error\n";
  const std::vector<Case> cases = {
      {"t.jsonl", "{\"who\":\"Bo\",\"n\":7}\n{\"who\":\"Ann\",\"n\":1.24}\n", ""},
      {"t.jsonl", "{\"who\":\"Ann\",\"n\":null}\n{\"who\":\"Bo\",\"n\":7}\n", ": line 1: "},
      {"t.jsonl", "{\"who\":\"Bo\",\"n\":7}\n{\"who\":\"Ann\",\"n\":7}\n", ": line 2: "},
      {"t.jsonl",
       "{\"id\":1,\"who\":\"Bo\",\"n\":7}\n{\"id\":7,\"who\":\"Ann\",\"n\":null}\n",
       ": line 2: is no answer of this run: id is 7, in its text 2",
       {"--keep", "id"}},
      {"t.jsonl",
       "{\"index\":0,\"record\":{\"who\":\"Bo\",\"n\":7},\"id\":1,\"by\":\"y\"}\n",
       ": line 1: is no answer of this run: by is \"y\", in its text \"x\"",
       {"--details"}},
      {"t.jsonl",
       "{\"error\":{\"line\":1,\"message\":\"m\"},\"id\":3,\"by\":\"x\"}\n",
       ": line 1: is no answer of this run: id is 3, in its text 1",
       {"--keep", "id"}},
      {"t.csv", head + "1,Bo,7,\n2,Ann,1240,\n", "", {"--keep", "id"}},
      {"t.csv",
       head + "99,Bo,7,\n",
       ": line 2: is no answer of this run: id is \"99\"",
       {"--keep", "id"}},
      {"t.csv",
       head + "1,Foo,,\n",
       ": line 2: is no answer of this run: who: \"Foo\" is not",
       {"--keep", "id"}},
      {"t.csv", head + "1,Bo,30,\n", ": line 2: is no answer of this run: n: ", {"--keep", "id"}},
  };
  for (const Case& one : cases) {
    const std::string file = WriteScratch(one.file, one.content);
    const CommandResult result = run(file, one.more);
    EXPECT_EQ(result.exit_code, one.problem.empty() ? 0 : 2) << one.content << result.err;
    EXPECT_NE(result.err.find(one.problem.empty() ? "" : file + one.problem), std::string::npos)
        << one.problem << "\n"
        << result.err;
    EXPECT_EQ(FileText(file), one.content);
  }
  const CommandResult error = run(ScratchPath("u.csv"), {"--keep", "error"});
  EXPECT_NE(error.err.find("--keep: a table has a column of that name: error"), std::string::npos)
      << error.err;
  const CommandResult text = run(WriteScratch("u.jsonl", ""), {"--keep", "text"});
  EXPECT_EQ(text.err.find("no line has"), std::string::npos) << text.err;
  EXPECT_TRUE(FileText(ScratchPath("u.jsonl")).starts_with("{\"text\":\"Bo, 7\",\"who\":"))
      << FileText(ScratchPath("u.jsonl"));
}

TEST(ExtractTest, DetailsAreLinesWithTheMembersOfTheText) {
  const std::string input = R"({"text": "Bo, 7", "id": 5, "record": "own", "who": "me"})"
                            "\n";
  const std::vector<std::string> options = {"--json-lines", "--temperature", "1", "--keep", "id"};
  std::vector<std::string> with = options;
  with.emplace_back("--details");
  const Json plain = Json::parse(RunPawl(ExtractCommand(options), input).out, nullptr, false);
  const CommandResult result = RunPawl(ExtractCommand(with), input);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json line = Json::parse(result.out, nullptr, false);
  ASSERT_TRUE(line.is_object()) << result.out;
  EXPECT_EQ(line["record"], plain);
  EXPECT_EQ(plain["id"], 5);
  EXPECT_EQ(line["id"], 5);
  EXPECT_EQ(line["who"], "me");
  EXPECT_EQ(line["index"], 0);
  EXPECT_EQ(line["alternatives"]["/kind"].size(), 2u) << result.out;
  double sum = 0;
  for (const Json& one : line["alternatives"]["/kind"]) sum += one["probability"].get<double>();
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_TRUE(line["probability"].contains("/name") && line["surprise"].contains("/name"));
}

}  // namespace
}  // namespace pawl
