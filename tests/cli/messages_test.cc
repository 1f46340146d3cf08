// Every kind of bad input: its exit code, and one message that names the place.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cli/cli_test_util.h"

namespace pawl {
namespace {

// Exit code 2, nothing on stdout, one line on stderr that holds all of `parts`.
void ExpectRefused(const std::vector<std::string>& arguments, const std::vector<std::string>& parts,
                   std::string_view input = "") {
  const CommandResult result = RunPawl(arguments, input);
  std::string line;
  for (const std::string& a : arguments) line += a + " ";
  EXPECT_EQ(result.exit_code, 2) << line << "\n" << result.err;
  EXPECT_EQ(result.out, "") << line;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << line << "\n"
                                                                       << result.err;
  for (const std::string& part : parts) {
    EXPECT_NE(result.err.find(part), std::string::npos)
        << line << "\nwants: " << part << "\ngot: " << result.err;
  }
}

std::string GoodSchema() { return WriteScratch("good.json", R"({"type":"integer"})"); }

std::vector<std::string> Extract(const std::string& schema, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"extract", "--schema", schema, "--model",
                                        RandomModelFolder()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(MessagesTest, BadSchemasNameFileAndKeyword) {
  const std::string not_json = WriteScratch("not_json.json", "{\"type\": ");
  ExpectRefused(Extract(not_json, {"--text", "x"}), {"pawl extract: ", "not_json.json: byte 9"});
  const std::string wrong_value =
      WriteScratch("wrong.json", R"({"properties":{"age":{"type":"integer","minimum":"3"}}})");
  ExpectRefused(Extract(wrong_value, {"--text", "x"}), {"wrong.json: #/properties/age/minimum: "});
  const std::string wrong_type = WriteScratch("wrong_type.json", R"({"type":"integre"})");
  ExpectRefused(Extract(wrong_type, {"--text", "x"}), {"wrong_type.json: #/type"});
  const std::string impossible =
      WriteScratch("impossible.json", R"({"type":"integer","minimum":5,"maximum":4})");
  ExpectRefused(Extract(impossible, {"--text", "x"}), {"impossible.json"});
  const std::string latin1 = WriteScratch("latin1.json", "{\"const\":\"\xE9\"}");
  ExpectRefused(Extract(latin1, {"--text", "x"}), {"latin1.json"});
  ExpectRefused(Extract(ScratchPath("absent.json"), {"--text", "x"}),
                {"absent.json", "No such file"});
  ExpectRefused(Extract(testing::TempDir(), {"--text", "x"}), {"directory"});
}

TEST(MessagesTest, BadModelFoldersNameTheFile) {
  const std::string schema = GoodSchema();
  const auto with = [&](const std::string& folder) {
    return std::vector<std::string>{"extract", "--schema", schema, "--text",
                                    "x",       "--model",  folder};
  };
  ExpectRefused(with(ScratchPath("no-such-folder")), {"no-such-folder", "no such model folder"});
  ExpectRefused(with(schema), {"good.json", "not a model folder"});
  WriteScratch("empty-model/readme.txt", "nothing");
  ExpectRefused(with(ScratchPath("empty-model")), {"empty-model/tokenizer.json"});
  WriteScratch("no-weights/tokenizer.json", ByteTokenizerJson());
  ExpectRefused(with(ScratchPath("no-weights")), {"no-weights/config.json"});
  WriteScratch("bad-tokenizer/tokenizer.json", R"({"model":{"type":"Strange"}})");
  ExpectRefused(with(ScratchPath("bad-tokenizer")), {"bad-tokenizer/tokenizer.json", "/model"});
  WriteScratch("bad-config/tokenizer.json", ByteTokenizerJson());
  WriteScratch("bad-config/config.json", "{]");
  ExpectRefused(with(ScratchPath("bad-config")), {"bad-config/config.json"});
}

TEST(MessagesTest, BadPromptFilesNameTheKey) {
  const std::string schema = GoodSchema();
  const std::pair<std::string, std::string> cases[] = {
      {"{\"extract\":", "pawl.json: byte"},
      {R"([])", "pawl.json: #: must be an object"},
      {R"({"bos":1})", "pawl.json: #/bos: "},
      {R"({"extract":{"prompt":7}})", "pawl.json: #/extract/prompt: "},
      {R"({"extract":{"prompt":"no place for it"}})", "must contain {text}"},
      {R"({"extract":{"promt":"{text}"}})", "pawl.json: #/extract/promt: "},
      {R"({"extrakt":{}})", "pawl.json: #/extrakt: "},
  };
  int number = 0;
  for (const auto& [content, message] : cases) {
    const std::string folder = ModelFolderWith("prompt" + std::to_string(number++), content);
    ExpectRefused({"extract", "--schema", schema, "--text", "x", "--model", folder}, {message});
  }
}

TEST(MessagesTest, BadTexts) {
  const std::string schema = GoodSchema();
  ExpectRefused(Extract(schema, {"--text", "ab\xFF"}), {"--text: byte 2", "UTF-8"});
  ExpectRefused(Extract(schema), {"standard input: byte 0", "UTF-8"}, "\xC3");
  ExpectRefused(Extract(schema, {"--file", ScratchPath("absent.txt")}),
                {"absent.txt", "No such file"});
  // Longer than the context of 256 tokens: both numbers.
  ExpectRefused(Extract(schema, {"--text", std::string(300, 'x')}),
                {"--text: ", "302 tokens", "256"});
}

TEST(MessagesTest, ABudgetTooSmallForAnyOutput) {
  const std::string schema = WriteScratch("long.json", R"({"const":"0123456789"})");
  ExpectRefused(Extract(schema, {"--text", "x", "--max-tokens", "5"}),
                {"--max-tokens: ", "12 tokens", "budget is 5"});
}

TEST(MessagesTest, BadOptions) {
  const std::string schema = GoodSchema();
  ExpectRefused({"extract"}, {"pawl extract: ", "--schema"});
  ExpectRefused({"fly"}, {"pawl: "});
  ExpectRefused(Extract(schema, {"--text", "x", "--temperature", "-1"}), {"--temperature"});
  ExpectRefused(Extract(schema, {"--text", "x", "--temperature", "warm"}), {"--temperature"});
  ExpectRefused(Extract(schema, {"--text", "x", "--top-p", "1.5"}), {"--top-p"});
  ExpectRefused(Extract(schema, {"--text", "x", "--max-tokens", "0"}), {"--max-tokens"});
  ExpectRefused(Extract(schema, {"--text", "x", "--whitespace", "lots"}), {"--whitespace"});
  ExpectRefused(Extract(schema, {"--text", "x", "--file", "y"}), {"--text", "--file"});
  ExpectRefused(Extract("-"), {"standard input"});
  const std::string model = RandomModelFolder();
  ExpectRefused({"generate", "--model", model, "--prompt", "x", "--regex", "a", "--choice", "b"},
                {"at most one"});
  ExpectRefused({"generate", "--model", model, "--prompt", "x", "--grammar", "g.ebnf"},
                {"--grammar", "later version"});
  ExpectRefused({"generate", "--model", model, "--prompt", "x", "--regex", "a("},
                {"pawl generate: --regex: byte "});
  ExpectRefused({"mask", "--tokenizer", model}, {"--schema", "--regex"});
  ExpectRefused({"mask", "--tokenizer", model, "--choice", "abc", "--prefix", "abd"},
                {"--prefix: byte 2", "'c'"});
  ExpectRefused({"tokenize", "--tokenizer", model, "--decode", "1 9999"}, {"9999"});
  ExpectRefused({"tokenize", "--tokenizer", model, "--decode", "1 x"}, {"byte 2"});
  ExpectRefused({"validate", "--schema", schema, "--tokenizer", model, ScratchPath("absent.json")},
                {"absent.json"});
  ExpectRefused({"info", "--model", ScratchPath("no-such-folder")}, {"no-such-folder"});
}

TEST(MessagesTest, HelpAndVersion) {
  const CommandResult version = RunPawl({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out.substr(0, 5), "pawl ");
  for (const char* name : {"extract", "generate", "validate", "mask", "tokenize", "info", "sample",
                           "schematest", "maskbench"}) {
    const CommandResult help = RunPawl({name, "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_NE(help.out.find("Example:\n  pawl " + std::string(name)), std::string::npos) << name;
  }
  const CommandResult nothing = RunPawl({});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_NE(nothing.err.find("extract"), std::string::npos);
}

TEST(MessagesTest, AFullDiskIsNoticed) {
  const CommandResult result =
      RunPawl({"tokenize", "--tokenizer", RandomModelFolder(), "--text", "x"});
  EXPECT_EQ(result.exit_code, 0);
  // /dev/full answers every write with "no space left".
  const int status =
      std::system(("'" PAWL_COMMAND "' tokenize --tokenizer '" + RandomModelFolder() +
                   "' --text x > /dev/full 2> '" + ScratchPath("full") + "'")
                      .c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
}

}  // namespace
}  // namespace pawl
