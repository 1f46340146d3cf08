// Every kind of bad input: its exit code, and one message that names the place.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/cli_test_util.h"
#include "tests/source_dir.h"

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

// What stands in a file does not reach the terminal as it is.
TEST(MessagesTest, ControlCharactersAreShown) {
  const std::string schema =
      WriteScratch("controls.json", R"({"properties":{"a\nb\u001b[31m\u0000":{"type":"zz"}}})");
  ExpectRefused({"sample", "--schema", schema}, {R"(a\x0Ab\x1B[31m\x00)"});
}

TEST(MessagesTest, SeparatorsAreNamedAsTheyAreGiven) {
  const std::string schema = GoodSchema();
  ExpectRefused({"sample", "--schema", schema, "--separators", ";", ":"},
                {"--separators: must be ','"});
  ExpectRefused({"sample", "--schema", schema, "--whitespace", "any", "--separators", ", ", ": "},
                {"--separators: ", "--whitespace compact"});
}

TEST(MessagesTest, SeparatorsAreTwo) {
  const std::string schema = GoodSchema();
  ExpectRefused({"sample", "--schema", schema, "--separators", ","},
                {"--separators: needs 2 values, not 1"});
}

// Bug: these options were taken and did nothing.
TEST(MessagesTest, OptionsOfSchemasNeedASchema) {
  const std::string& model = RandomModelFolder();
  const std::vector<std::vector<std::string>> options = {{"--whitespace", "any"},
                                                         {"--order", "any"},
                                                         {"--spelling", "any"},
                                                         {"--separators", ", ", ": "},
                                                         {"--ascii"},
                                                         {"--additional-properties", "forbid"},
                                                         {"--ref-dir", "."},
                                                         {"--ref-base", "http://a/"},
                                                         {"--profile", "strict"},
                                                         {"--annotations"}};
  for (const auto& option : options) {
    for (std::vector<std::string> command : {std::vector<std::string>{"sample", "--regex", "a"},
                                             {"sample", "--choice", "a"},
                                             {"mask", "--tokenizer", model, "--regex", "a"},
                                             {"generate", "--model", model, "--prompt", "x"}}) {
      command.insert(command.end(), option.begin(), option.end());
      ExpectRefused(command, {option[0] + ": has a meaning with --schema only"});
    }
  }
}

TEST(MessagesTest, ChoicesAreCountedFromOne) {
  ExpectRefused({"sample", "--choice", "a", "--choice", "b\xFF"}, {"--choice: choice 2, byte 1"});
}

TEST(MessagesTest, BadSchemasNameFileAndKeyword) {
  const std::string not_json = WriteScratch("not_json.json", "{\"type\": ");
  ExpectRefused(Extract(not_json, {"--text", "x"}),
                {"pawl extract: ", "not_json.json: 1:10 (byte 9)"});
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
  ExpectRefused(with(schema), {"good.json", "neither a model folder nor a GGUF file"});
  WriteScratch("none.gguf", "");
  ExpectRefused(with(ScratchPath("none.gguf")), {"none.gguf", "is an empty file"});
  WriteScratch("broken-head/config.json", "{\"architectures\": [\"LlamaForCausalLMEagle3\",");
  ExpectRefused({"generate", "--prompt", "x", "--draft", "model", "--draft-model",
                 ScratchPath("broken-head")},
                {"broken-head/config.json", "byte"});
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

// The weights' shape needs no tokenizer.
TEST(MessagesTest, InfoOfAFolderWithoutATokenizer) {
  const std::string folder = ScratchPath("no-tokenizer");
  std::filesystem::remove_all(folder);
  std::filesystem::copy(RandomModelFolder(), folder, std::filesystem::copy_options::recursive);
  std::filesystem::remove(folder + "/tokenizer.json");
  const CommandResult info = RunPawl({"info", folder});
  EXPECT_EQ(info.exit_code, 2);
  EXPECT_NE(info.out.find("\ndescription"), std::string::npos) << info.out;
  EXPECT_NE(info.out.find("\nmemory"), std::string::npos) << info.out;
  EXPECT_NE(info.err.find("no-tokenizer/tokenizer.json"), std::string::npos) << info.err;
}

TEST(MessagesTest, NamesOfModels) {
  const std::string model = "no-such-org/no-such-name";
  ExpectRefused({"info", "--model", model},
                {"pawl info: " + model + ": no such model folder or file, and no ",
                 "`pawl pull " + model + "` fetches it"});
  ExpectRefused({"generate", "--prompt", "x", "--draft", "model", "--draft-model", "ollama:../x"},
                {"ollama:../x: is no name of a model; expected ollama:NAME"});
  ExpectRefused({"tokenize", "--tokenizer", "lmstudio:x", "--text", "x"},
                {"lmstudio:x: is no name of a model; expected lmstudio:ORG/NAME"});
  ExpectRefused({"pull"}, {"pawl pull: name: must be given"});
  ExpectRefused({"pull", "../x"}, {"pawl pull: ../x: is no name of a model; expected ORG/NAME"});
}

TEST(MessagesTest, Quantize) {
  const std::string model = SourceDir() + "/models/tiny-extract";
  ExpectRefused({"quantize", "x", "y"}, {"pawl quantize: --type: must be given"});
  ExpectRefused({"quantize", "no-such.gguf", "y", "--type", "Q8_0"},
                {"pawl quantize: no-such.gguf: no such model folder or file"});
  ExpectRefused({"quantize", model, "y", "--type", "Q8_0"},
                {"pawl quantize: " + model + "/tokenizer.json: cuts words in a way that GGUF has"});
  const std::string gguf =
      WriteScratch("q.gguf", std::string("GGUF\3\0\0\0", 8) + std::string(16, '\0'));
  ExpectRefused({"quantize", gguf, ScratchPath("y.gguf"), "--type", "Q9_K"},
                {"pawl quantize: --type: is \"Q9_K\"; expected one of F32, F16, BF16, Q8_0"});
  ExpectRefused({"quantize", gguf, gguf + "/y", "--type", "Q8_0"},
                {"q.gguf/y: cannot be written: Not a directory"});
  // One tensor of two rows.
  std::string file("GGUF\3\0\0\0", 8);
  const auto number = [&file](uint64_t value, size_t bytes) {
    file.append(reinterpret_cast<const char*>(&value), bytes);
  };
  for (const uint64_t count : {1, 0}) number(count, 8);  // tensors, keys
  const std::string name = "a.weight";
  number(name.size(), 8);
  file += name;
  number(2, 4);
  for (const uint64_t size : {32, 2}) number(size, 8);
  number(0, 4);  // F32
  number(0, 8);
  file.resize((file.size() + 31) / 32 * 32 + 256);
  const std::string one = WriteScratch("one.gguf", file), two = ScratchPath("two.gguf");
  CommandResult done = RunPawl({"quantize", one, two, "--type", "Q8_0", "--threads", "1"});
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_EQ(done.err, "");
  EXPECT_NE(done.out.find("two.gguf: 0.00 MiB, "), std::string::npos) << done.out;
  EXPECT_NE(done.out.find(" bits a weight: 100 % Q8_0 (before: 0.00 MiB)\n"), std::string::npos)
      << done.out;
  done = RunPawl({"quantize", two, ScratchPath("three.gguf"), "--type", "Q4_0"});
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_NE(done.err.find("note: 1 tensor was quantized before"), std::string::npos) << done.err;
  WriteScratch("cut.gguf", "GGUF");
  ExpectRefused({"quantize", ScratchPath("cut.gguf"), ScratchPath("y.gguf"), "--type", "Q8_0"},
                {"cut.gguf: byte 4"});
}

// Bug: a pipe in the place of a model's file was waited for, for ever.
TEST(MessagesTest, PipesAreNoModelFiles) {
  namespace fs = std::filesystem;
  for (const char* file : {"config.json", "generation_config.json", "tokenizer.json",
                           "tokenizer_config.json", "model.safetensors", "pawl.json"}) {
    const std::string folder = ScratchPath(std::string("piped-") + file);
    fs::remove_all(folder);
    fs::copy(RandomModelFolder(), folder, fs::copy_options::recursive);
    const std::string pipe = folder + "/" + file;
    fs::remove(pipe);
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    ExpectRefused({"generate", "--model", folder, "--prompt", "x", "--max-tokens", "1"},
                  {pipe + ": cannot ", "not a regular file"});
  }
  const std::string folder = ScratchPath("piped-shard");
  fs::remove_all(folder);
  fs::copy(RandomModelFolder(), folder, fs::copy_options::recursive);
  fs::remove(folder + "/model.safetensors");
  WriteScratch("piped-shard/model.safetensors.index.json", R"({"weight_map":{"a":"one.st"}})");
  const std::string pipe = folder + "/one.st";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ExpectRefused({"generate", "--model", folder, "--prompt", "x"}, {pipe, "not a regular file"});
  ExpectRefused({"generate", "--model", pipe, "--prompt", "x"},
                {pipe, "neither a model folder nor a GGUF file"});
  ExpectRefused({"tokenize", "--tokenizer", pipe, "--text", "x"}, {pipe, "not a regular file"});
}

// Bug: the histories of drafts and the tries of samplers were waited for.
TEST(MessagesTest, PipesAreNoKeptFiles) {
  const std::string pipe = ScratchPath("piped-kept");
  std::filesystem::remove(pipe);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ExpectRefused({"generate", "--model", RandomModelFolder(), "--prompt", "x", "--choice", "a",
                 "--sampler", "cars", "--trie", pipe},
                {pipe, "not a regular file"});
  ExpectRefused({"extract", "--model", RandomModelFolder(), "--schema", GoodSchema(), "--text", "x",
                 "--draft", "history", "--draft-history", pipe},
                {pipe, "not a regular file"});
}

// Bug: the first row of the first prompt was called out of range.
TEST(MessagesTest, ABeginTokenBeyondTheVocabularyIsRefusedAtLoad) {
  const std::string folder = ModelFolderWith("far-bos", R"({"bos":true})");
  std::string tokenizer = ByteTokenizerJson();
  tokenizer.replace(tokenizer.find("\"id\":256"), 8, "\"id\":999");
  WriteScratch("far-bos/tokenizer.json", tokenizer);
  WriteScratch("far-bos/tokenizer_config.json", R"({"bos_token":"<s>"})");
  const std::string message =
      "far-bos: the tokenizer's begin-of-sequence token 999 is beyond the model's vocabulary of ";
  ExpectRefused({"generate", "--model", folder, "--prompt", "x"}, {message});
  ExpectRefused({"extract", "--schema", GoodSchema(), "--model", folder, "--text", "x"}, {message});
#ifdef PAWL_HAVE_MONITORS
  ExpectRefused({"complete", "--model", folder, "--language", "typescript", "--prefix", "let a"},
                {message});
#endif
}

TEST(MessagesTest, BadPromptFilesNameTheKey) {
  const std::string schema = GoodSchema();
  const std::pair<std::string, std::string> cases[] = {
      {"{\"extract\":", "pawl.json: 1:12 (byte"},
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
  ExpectRefused(Extract(schema, {"--text", "x", "--profile", ""}),
                {"--profile: must be one of full, strict, not an empty text"});
  ExpectRefused(Extract(schema, {"--text", "x", "--file", "y"}), {"--text", "--file"});
  ExpectRefused(Extract("-"), {"standard input"});
  const std::string& model = RandomModelFolder();
  ExpectRefused({"generate", "--model", model, "--prompt", "x", "--regex", "a", "--choice", "b"},
                {"at most one"});
  ExpectRefused({"generate", "--model", model, "--prompt", "x", "--grammar", "g.bnf"},
                {"g.bnf", "--grammar-language"});
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
  const CommandResult nothing = RunPawl({});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_NE(nothing.err.find("extract"), std::string::npos);
}

// The example of `pawl NAME --help`.
std::string ExampleOf(const std::string& name) {
  const CommandResult help = RunPawl({name, "--help"});
  EXPECT_EQ(help.exit_code, 0) << name;
  const std::string start = "Example:\n  ";
  const size_t at = help.out.find(start);
  EXPECT_NE(at, std::string::npos) << name;
  return at == std::string::npos
             ? ""
             : help.out.substr(at + start.size(),
                               help.out.find('\n', at + start.size()) - at - start.size());
}

// The example of each command is one of that command, and runs. Bug: `lsp` and `bench` had that of
// `extract`.
TEST(MessagesTest, ExamplesOfHelpRun) {
  namespace fs = std::filesystem;
  const fs::path folder = ScratchPath("examples");
  fs::create_directories(folder / "src");
  for (const char* name : {"schemas", "models", "grammar", "bench"})
    fs::create_directory_symlink(fs::path(SourceDir()) / name, folder / name);
  std::ofstream(folder / "record.json") << R"({"name":"Ann","email":null,"phone":null})";
  std::ofstream(folder / "src/a.ts") << "const list = [1, 2];\n\n\n\n\n\nconst n = list.\n";
  // What needs files or a hub that are not here, runs for minutes or does not end is read alone.
  const std::map<std::string, std::string> instead = {
      {"eval", " --help"}, {"tune", " --help"},        {"maskbench", " --help"},
      {"pull", " --help"}, {"schematest", " --help"},  {"quantize", " --help"},
      {"lsp", " --help"},  {"serve", " --show-config"}};
  const std::string all = RunPawl({"--help"}).out;
  size_t commands = 0;
  std::istringstream lines(all.substr(all.find("ommands:")));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Exit codes:")) break;
    if (!line.starts_with("  ") || line.size() < 3 || line[2] == ' ') continue;
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    ++commands;
    std::string example = ExampleOf(name);
    const size_t own = example.find("pawl " + name + (name == "models" ? "" : " "));
    ASSERT_NE(own, std::string::npos) << name << ": " << example;
    example.replace(own, 4, "'" PAWL_COMMAND "'");
    if (example.ends_with(" &")) example.resize(example.size() - 2);
    if (const auto more = instead.find(name); more != instead.end()) example += more->second;
    const std::string err = ScratchPath("example-err");
    const int status = std::system(
        ("cd '" + folder.string() + "' && (" + example + ") > /dev/null 2> '" + err + "'").c_str());
    std::ifstream file(err);
    // 1: of the validated record, or of the text that is not finished, something is refused.
    EXPECT_LE(WEXITSTATUS(status), 1) << example << "\n"
                                      << std::string(std::istreambuf_iterator<char>(file), {});
  }
  EXPECT_GE(commands, 20U);
}

// The exit code, and what is on stderr, with standard output on a full disk.
std::pair<int, std::string> OnFullDisk(const std::string& arguments) {
  const std::string err = ScratchPath("full");
  // /dev/full answers every write with "no space left".
  const std::string command = "'" PAWL_COMMAND "' " + arguments + " > /dev/full 2> '" + err + "'";
  const int status = std::system(command.c_str());
  std::ifstream file(err);
  return {WEXITSTATUS(status), std::string(std::istreambuf_iterator<char>(file), {})};
}

// Masks that are not asked for are not found beforehand.
TEST(MessagesTest, NothingIsPreparedUnlessAsked) {
  for (const char* command : {"validate", "mask", "sample"}) {
    EXPECT_NE(RunPawl({command, "--help"}).out.find("--prepare-steps N=0 "), std::string::npos);
  }
}

// Bugs: `sample` said it twice, --help and --version not at all.
TEST(MessagesTest, AFullDiskIsNoticed) {
  const std::string why = "standard output: cannot write: No space left on device\n";
  const std::string model = " '" + RandomModelFolder() + "'";
  const std::pair<std::string, std::string> cases[] = {
      {"tokenize --text x --tokenizer" + model, "pawl tokenize: "},
      {"sample --regex a --n 5 --tokenizer" + model, "pawl sample: "},
      {"generate --prompt x --max-tokens 3 --model" + model, "pawl generate: "},
      {"--help", "pawl: "},
      {"--version", "pawl: "},
      {"extract --help", "pawl: "},
  };
  for (const auto& [arguments, name] : cases) {
    const auto [exit_code, err] = OnFullDisk(arguments);
    EXPECT_EQ(exit_code, 2) << arguments;
    EXPECT_EQ(err, name + why) << arguments;
  }
}

// Bug: what has no end was read until the memory was full.
TEST(MessagesTest, InputWithoutEnd) {
  const std::string schema = GoodSchema();
  const std::string& model = RandomModelFolder();
  const std::string limit = "/dev/zero: is larger than the limit of ";
  ExpectRefused(Extract("/dev/zero", {"--text", "x"}), {"pawl extract: " + limit + "16 MiB"});
  ExpectRefused({"validate", "--schema", "/dev/zero", "--tokenizer", model, "x"},
                {limit + "16 MiB"});
  ExpectRefused(Extract(schema, {"--file", "/dev/zero"}), {limit + "64 MiB"});
  ExpectRefused({"tokenize", "--tokenizer", model, "--file", "/dev/zero"}, {limit + "64 MiB"});
  ExpectRefused({"generate", "--model", model, "--prompt-file", "/dev/zero"}, {limit + "64 MiB"});
  ExpectRefused({"tokenize", "--tokenizer", "/dev/zero", "--text", "x"},
                {"/dev/zero: cannot read: not a regular file"});
  ExpectRefused(Extract(schema, {"--json-lines", "--file", "/dev/zero"}),
                {"/dev/zero: a line is longer than the limit of 64 MiB"});
}

// Bugs: not a number, infinities and numbers that do not fit were taken, or clamped without a word;
// messages wrote the largest double out, with 309 digits.
TEST(MessagesTest, NumbersHaveARangeThatIsSaid) {
  const std::string schema = GoodSchema();
  const std::string whole = "must be a whole number from ", finite = "must be a finite number";
  const auto sample = [&](const std::string& option, const std::string& value) {
    return std::vector<std::string>{"sample", "--schema", schema, option, value};
  };
  for (const char* seed :
       {"18446744073709551616", "99999999999999999999999", "-1", "1.5", "0x10", "1e3", "", "x"}) {
    const std::string message = "--seed: " + whole + "0 to 18446744073709551615, not \"" + seed;
    ExpectRefused(sample("--seed", seed), {"pawl sample: " + message});
    ExpectRefused(Extract(schema, {"--text", "x", "--seed", seed}), {message});
  }
  for (const char* ending : {"nan", "inf", "-0.1", "1", "1e400", "x"}) {
    ExpectRefused(sample("--ending", ending), {"--ending: must be a number from 0 to 0.999, not"});
  }
  ExpectRefused(sample("--n", "0"), {"--n: " + whole + "1 to 1073741824, not \"0\""});
  for (const char* name : {"--temperature", "--top-p", "--min-p", "--repetition-penalty",
                           "--presence-penalty", "--frequency-penalty"}) {
    for (const char* value : {"inf", "-inf", "nan", "1e400", "1e39", "warm", ""}) {
      ExpectRefused(Extract(schema, {"--text", "x", name, value}),
                    {std::string(name) + ": " + finite + ", not \"" + value + "\""});
    }
  }
  for (const auto& [name, value, part] :
       {std::array{"--temperature", "-1", "must be a finite number of at least 0, not -1"},
        std::array{"--top-p", "2", "must be above 0 and at most 1, not 2"},
        std::array{"--min-p", "1.5", "must be between 0 and 1, not 1.5"},
        std::array{"--repetition-penalty", "0", "must be a finite number above 0, not 0"}}) {
    ExpectRefused(Extract(schema, {"--text", "x", name, value}), {name, part});
  }
  ExpectRefused(Extract(schema, {"--text", "x", "--max-tokens", "99999999999999999999"}),
                {"--max-tokens: " + whole + "1 to"});
  ExpectRefused(Extract(schema, {"--text", "x", "--threads", "-1"}),
                {"--threads: " + whole + "0 to 1024, not \"-1\""});
  for (const char* seconds : {"nan", "inf", "0", "-1"}) {
    ExpectRefused({"maskbench", "--tokenizer", "t", "--data", "d", "--timeout", seconds},
                  {"--timeout: must be a number from 0.001 to 1000000, not"});
  }
  ExpectRefused({"maskbench", "--tokenizer", "t", "--data", "d", "--limit", "-1"},
                {"--limit: " + whole + "0 to"});
  // Digits are decimal, also after a zero.
  const auto drawn = [&](const char* seed) {
    return RunPawl({"sample", "--regex", "[a-z]{40}", "--seed", seed}).out;
  };
  EXPECT_EQ(drawn("010"), drawn("10"));
  EXPECT_NE(drawn("010"), drawn("8"));
}

// Bug: the wording of the library that reads the command line.
TEST(MessagesTest, UsageErrorsBeginWithTheOption) {
  const std::string schema = GoodSchema();
  const auto refused = [&](const std::vector<std::string>& more, const std::string& message) {
    ExpectRefused(Extract(schema, more),
                  {"pawl extract: " + message + " (see pawl extract --help)"});
  };
  ExpectRefused({"extract"}, {"pawl extract: --schema: must be given (see"});
  ExpectRefused({"extract", "--schema"}, {"pawl extract: --schema: needs a value (see"});
  ExpectRefused({"fly"}, {"pawl: fly: was not expected (see pawl --help)"});
  refused({"--fly"}, "--fly: there is no such option");
  refused({"--fly", "7"}, "--fly: there is no such option");
  refused({"--text", "x", "--file", "y"}, "--text: cannot be given together with --file");
  refused({"--text", "x", "--text", "y"}, "--text: can be given only once");
  refused({"--text", "x", "--whitespace", "lots"},
          "--whitespace: must be one of compact, bounded, any, not lots");
  refused({"--text", "x", "--stats=maybe"}, "--stats: cannot be \"maybe\"");
  refused({"--file", ""}, "--file: is empty");
}

// Bug: a wrong file was called by its first unknown member or byte, not by what was expected.
TEST(MessagesTest, WrongTokenizersSayWhatIsExpected) {
  const auto with = [](const std::string& tokenizer) {
    return std::vector<std::string>{"tokenize", "--text", "x", "--tokenizer", tokenizer};
  };
  const std::string expected = "expected a tokenizer.json";
  ExpectRefused(with(SourceDir() + "/schemas/examples/contact.json"),
                {"contact.json#/model: is missing", expected});
  ExpectRefused(with(SourceDir() + "/models/tiny-extract/model.safetensors"),
                {"model.safetensors: 1:", "not JSON", expected});
  ExpectRefused(with(WriteScratch("empty_tokenizer.json", "")),
                {"empty_tokenizer.json: is empty; ", expected});
  ExpectRefused(with(WriteScratch("list.json", "[]")), {"list.json#: must be an object", expected});
  ExpectRefused(with(SourceDir() + "/src"), {"/src/tokenizer.json: no such file", "needs one"});
  ExpectRefused(with(ScratchPath("absent")), {"absent: cannot read: No such file"});
}

// Bug: whether a result can be written was known only after the work.
TEST(MessagesTest, OutputFilesAreTriedFirst) {
  const std::string absent = ScratchPath("no-such-folder") + "/out.json";
  const std::string maskbench = ScratchPath("maskbench-out.json");
  const std::vector<std::string> bench = {"maskbench", "--tokenizer", "no-tokenizer",
                                          "--data",    "no-data",     "--json"};
  const auto with = [](std::vector<std::string> arguments, const std::string& last) {
    arguments.push_back(last);
    return arguments;
  };
  ExpectRefused(with(bench, absent), {absent + ": cannot write: No such file"});
  ExpectRefused(with(bench, testing::TempDir()), {"cannot write: Is a directory"});
  ExpectRefused(with(bench, ""), {"--json: is empty"});
  // Trying leaves nothing behind, and what was there.
  ExpectRefused(with(bench, maskbench), {"no-data"});
  EXPECT_FALSE(std::filesystem::exists(maskbench));
  const std::string old = WriteScratch("old.json", "old");
  ExpectRefused(with(bench, old), {"no-data"});
  EXPECT_EQ(std::filesystem::file_size(old), 3u);
  const std::vector<std::string> suite = {"schematest", "--suite", "no-suite", "--draft", "7"};
  ExpectRefused(with(with(suite, "--json"), absent), {absent + ": cannot write"});
  ExpectRefused(with(with(suite, "--ratchet"), absent), {absent + ": cannot read"});
  ExpectRefused(with(with(with(suite, "--update-ratchet"), "--ratchet"), absent),
                {absent + ": cannot write"});
  ExpectRefused(with(with(suite, "--ratchet"), WriteScratch("bad.ratchet", "no tabs\n")),
                {"bad.ratchet: line 1"});
}

}  // namespace
}  // namespace pawl
