// pawl validate, mask, tokenize and info through the command.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/cli_test_util.h"

namespace pawl {
namespace {

using Json = nlohmann::json;

std::string Schema() {
  return WriteScratch("point.json", R"({
    "type": "object",
    "properties": {"x": {"type": "integer"}, "label": {"enum": ["near", "far"]}},
    "required": ["x"],
    "additionalProperties": false
  })");
}

CommandResult Validate(const std::string& text, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"validate", "--schema", Schema(), "--tokenizer",
                                        RandomModelFolder() + "/tokenizer.json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.emplace_back("-");
  return RunPawl(arguments, text);
}

TEST(ValidateTest, AcceptsWhatTheSchemaAllows) {
  for (const char* text : {"{\"x\":1}", "{ \"label\" : \"far\",\n  \"x\" : -20 }", "{\"x\":1}\n"}) {
    const CommandResult result = Validate(text);
    EXPECT_EQ(result.exit_code, 0) << text << result.out << result.err;
    EXPECT_EQ(result.out,
              "-: accepted (" + std::to_string(std::string(text).size()) + " tokens)\n");
  }
}

TEST(ValidateTest, FilesMayStandOnEitherSideOfTheSeparators) {
  const std::string one = WriteScratch("spaced.json", "{\"x\": 1}");
  const std::string two = WriteScratch("tight.json", "{\"x\":1}");
  const std::vector<std::string> separators = {"--separators", ", ", ": "};
  // What stands before the separators, and after them.
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> orders = {
      {{}, {one, two}}, {{one}, {two}}, {{one, two}, {}}};
  for (const auto& [before, after] : orders) {
    std::vector<std::string> arguments = {"validate",
                                          "--schema",
                                          Schema(),
                                          "--tokenizer",
                                          RandomModelFolder() + "/tokenizer.json",
                                          "--whitespace",
                                          "compact"};
    for (const auto& part : {before, separators, after})
      arguments.insert(arguments.end(), part.begin(), part.end());
    const CommandResult result = RunPawl(arguments);
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_NE(result.out.find(one + ": accepted (8 tokens)\n" + two + ": refused at byte 5"),
              std::string::npos)
        << result.out << result.err;
  }
}

TEST(ValidateTest, ReferencesLeadIntoTheFolder) {
  WriteScratch("leaf.json", R"({"$id": "http://leaf.test/l", "type": "integer"})");
  const std::string list = WriteScratch("list.json", R"({"items": {"$ref": "leaf.json"}})");
  const std::string folder = list.substr(0, list.rfind('/'));
  const auto validate = [&](const char* schema, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"validate", "--schema",
                                          WriteScratch("refers.json", schema), "--tokenizer",
                                          RandomModelFolder() + "/tokenizer.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.emplace_back("-");
    return RunPawl(arguments, "[1,2]");
  };
  const char* by_path = R"({"$ref": "http://localhost:1234/list.json"})";
  EXPECT_EQ(validate(by_path, {"--ref-dir", folder}).exit_code, 0);
  EXPECT_EQ(
      validate(R"({"items": {"$ref": "http://leaf.test/l"}})", {"--ref-dir", folder}).exit_code, 0);
  EXPECT_EQ(validate(R"({"$ref": "http://x.test/a/list.json"})",
                     {"--ref-dir", folder, "--ref-base", "http://x.test/a"})
                .exit_code,
            0);
  const CommandResult missing = validate(by_path, {});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(missing.err.find("#/$ref: reference to another document"), std::string::npos)
      << missing.err;
  const CommandResult no_folder = validate(by_path, {"--ref-dir", folder + "/absent"});
  EXPECT_EQ(no_folder.exit_code, 2);
  EXPECT_NE(no_folder.err.find("--ref-dir"), std::string::npos) << no_folder.err;
  for (const char* base : {"", "x y", "a/b", "1:", "http://a b"}) {
    const CommandResult no_uri = validate(by_path, {"--ref-dir", folder, "--ref-base", base});
    EXPECT_EQ(no_uri.exit_code, 2) << base;
    EXPECT_NE(no_uri.err.find("--ref-base"), std::string::npos) << no_uri.err;
  }
}

TEST(ValidateTest, PathsOfReferencesMayBeEscaped) {
  const std::string folder = ScratchPath("served");
  WriteScratch("served/a b.json", R"({"type": "array"})");
  WriteScratch("served/\xC3\xA4+100%.json", R"({"type": "array"})");
  WriteScratch("served/%41.json", R"({"type": "array"})");
  WriteScratch("served/sub/one.json", R"({"$ref": "two%20.json"})");
  WriteScratch("served/sub/two .json", R"({"type": "array"})");
  WriteScratch("secret.json", R"({"type": "array"})");
  const auto exit_code = [&](const std::string& reference, const std::string& base) {
    const std::string schema = WriteScratch("refers.json", R"({"$ref": ")" + reference + R"("})");
    const CommandResult result = RunPawl(
        {"validate", "--schema", schema, "--tokenizer", RandomModelFolder() + "/tokenizer.json",
         "--ref-dir", folder, "--ref-base", base + "/", "-"},
        "[1,2]");
    if (result.exit_code != 0) {
      EXPECT_NE(result.err.find("no file in " + folder), std::string::npos) << result.err;
    }
    return result.exit_code;
  };
  // The base is a part of the URI, as it is written.
  for (const std::string base : {"http://localhost:1234", "http://localhost:1234/a%20b"}) {
    for (const char* path :
         {"a%20b.json", "%61%20b%2ejson", "a b.json", "%C3%A4%2B100%25.json", "\xC3\xA4+100%.json",
          "%2541.json", "%41.json", "sub/one.json", "sub/two%20.json", "x/../a%20b.json"}) {
      EXPECT_EQ(exit_code(base + "/" + path, base), 0) << base << " " << path;
    }
    for (const char* path :
         {"sub%2Fone.json", "sub%2fone.json", "..%2Fsecret.json", "%2e%2e/secret.json",
          "%2E%2E%2Fsecret.json", "sub/%2e%2e/%2e%2e/secret.json", "../secret.json",
          "a%20b.json%00", "a%00b.json", "sub%5Cone.json", "%c3%a4+100%.json", "a%2.json", "a%2",
          "a%", "%zz.json", "a%2520b.json", "a+b.json", "a%20b.json?x"}) {
      EXPECT_EQ(exit_code(base + "/" + path, base), 2) << base << " " << path;
    }
  }
}

TEST(ValidateTest, TheStrictProfileRefusesTheSchemaNotTheText) {
  const std::string open = WriteScratch("open.json", R"({"type": "object"})");
  const auto validate = [&](const std::string& schema, const std::string& profile) {
    return RunPawl({"validate", "--schema", schema, "--tokenizer",
                    RandomModelFolder() + "/tokenizer.json", "--profile", profile, "-"},
                   "{}");
  };
  EXPECT_EQ(validate(open, "full").out, "-: accepted (2 tokens)\n");
  const CommandResult strict = validate(open, "strict");
  EXPECT_EQ(strict.exit_code, 2);
  EXPECT_EQ(strict.out, "");
  EXPECT_NE(strict.err.find("open.json: #: strict profile: an object must be closed; write "
                            "\"additionalProperties\": false\n"),
            std::string::npos)
      << strict.err;
  const std::string closed =
      WriteScratch("closed.json", R"({"type": "object", "additionalProperties": false})");
  EXPECT_EQ(validate(closed, "strict").out, "-: accepted (2 tokens)\n");
  EXPECT_EQ(validate(closed, "loose").exit_code, 2);
}

TEST(ValidateTest, NamesTheByteAndWhatWasAllowed) {
  const CommandResult type = Validate("{\"x\":\n \"1\"}");
  EXPECT_EQ(type.exit_code, 1);
  EXPECT_NE(type.out.find("refused at byte 7 (2:2): got \"\\\"1\\\"}\""), std::string::npos)
      << type.out;
  EXPECT_NE(type.out.find("'0'-'9'"), std::string::npos) << type.out;
  const CommandResult name = Validate("{\"y\":1}");
  EXPECT_EQ(name.exit_code, 1);
  EXPECT_NE(name.out.find("refused at byte 2 (1:3)"), std::string::npos) << name.out;
  EXPECT_NE(name.out.find("'x'"), std::string::npos) << name.out;
  const CommandResult early = Validate("{\"x\":1");
  EXPECT_EQ(early.exit_code, 1);
  EXPECT_NE(early.out.find("refused at byte 6 (1:7): got the end of the text"), std::string::npos)
      << early.out;
  const CommandResult more = Validate("{\"x\":1} 2");
  EXPECT_EQ(more.exit_code, 1);
  EXPECT_NE(more.out.find("refused at byte 8"), std::string::npos) << more.out;
  EXPECT_NE(more.out.find("the end"), std::string::npos) << more.out;
  const CommandResult empty = Validate("");
  EXPECT_EQ(empty.exit_code, 1);
  EXPECT_NE(empty.out.find("refused at byte 0"), std::string::npos) << empty.out;
}

TEST(ValidateTest, LayoutOptionsDecideWhatIsAccepted) {
  EXPECT_EQ(Validate("{\"label\":\"far\",\"x\":1}").exit_code, 0);
  EXPECT_EQ(Validate("{\"label\":\"far\",\"x\":1}", {"--order", "schema"}).exit_code, 1);
  EXPECT_EQ(Validate("{ \"x\":1}").exit_code, 0);
  EXPECT_EQ(Validate("{ \"x\":1}", {"--whitespace", "compact"}).exit_code, 1);
}

TEST(ValidateTest, SeveralFilesAndTheWorstExitCode) {
  const std::string good = WriteScratch("good-point.json", "{\"x\":1}");
  const std::string bad = WriteScratch("bad-point.json", "[]");
  std::vector<std::string> arguments = {"validate",          "--schema", Schema(), "--tokenizer",
                                        RandomModelFolder(), good,       bad,      good};
  CommandResult result = RunPawl(arguments);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("good-point.json: accepted (7 tokens)"), std::string::npos);
  EXPECT_NE(result.out.find("bad-point.json: refused at byte 0 (1:1)"), std::string::npos);
  arguments.push_back(ScratchPath("absent-point.json"));
  EXPECT_EQ(RunPawl(arguments).exit_code, 2);
}

TEST(MaskTest, ListsTheAllowedTokens) {
  const std::string& tokenizer = RandomModelFolder();
  const CommandResult table =
      RunPawl({"mask", "--regex", "[0-9]{2,4}", "--tokenizer", tokenizer, "--prefix", "19"});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_NE(table.out.find("11 of 258 tokens allowed"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("end allowed: yes"), std::string::npos);
  const CommandResult json = RunPawl(
      {"mask", "--choice", "left", "--choice", "lever", "--tokenizer", tokenizer, "--json"});
  const Json value = Json::parse(json.out, nullptr, false);
  ASSERT_TRUE(value.is_object()) << json.out << json.err;
  EXPECT_EQ(value["count"], 1);
  EXPECT_EQ(value["end"], false);
  EXPECT_EQ(value["forced"], "le");
  EXPECT_EQ(value["tokens"][0]["text"], "l");
  EXPECT_EQ(value["tokens"][0]["id"], 'l');
}

std::vector<std::vector<std::string>> CommandsWithSchema(const std::string& schema) {
  const std::string& model = RandomModelFolder();
  return {{"validate", "--schema", schema, "--tokenizer", model, "-"},
          {"mask", "--schema", schema, "--tokenizer", model},
          {"sample", "--schema", schema, "--tokenizer", model},
          {"extract", "--schema", schema, "--model", model, "--text", "x"},
          {"generate", "--schema", schema, "--model", model, "--prompt", "x"}};
}

// Each command with --schema lists them on stderr, and writes the same to stdout as without.
TEST(AnnotationsOptionTest, OneLineEach) {
  const std::string schema = WriteScratch(
      "annotated.json", R"({"title": "t", "const": 7, "titel": "x", "format": "float"})");
  for (std::vector<std::string> command : CommandsWithSchema(schema)) {
    const CommandResult plain = RunPawl(command, "7");
    EXPECT_EQ(plain.exit_code, 0) << plain.err;
    EXPECT_EQ(plain.err, "");
    command.insert(command.begin() + 1, "--annotations");
    const CommandResult listed = RunPawl(command, "7");
    EXPECT_EQ(listed.exit_code, 0) << listed.err;
    EXPECT_EQ(listed.out, plain.out);
    const std::string start = "pawl " + command[0] + ": note: ";
    EXPECT_EQ(listed.err,
              start + "#/title: title: an annotation by the specification\n" + start +
                  "#/format: format: \"float\" allows every number\n" + start +
                  "#/titel: titel: not a keyword of this dialect, taken as an annotation\n");
  }
}

// What is hardly meant is said without --annotations.
TEST(AnnotationsOptionTest, MisspeltKeywordsAreSaid) {
  const std::string schema =
      WriteScratch("misspelt.json", R"({"type":"integer","title":"n","maxmum":10})");
  for (std::vector<std::string> command : CommandsWithSchema(schema)) {
    const CommandResult result = RunPawl(command, "7");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err,
              "pawl " + command[0] +
                  ": note: #/maxmum: maxmum: not a keyword of this dialect, taken as an "
                  "annotation; is maximum meant?\n");
  }
}

TEST(TokenizeTest, RoundTrip) {
  const std::string& tokenizer = RandomModelFolder();
  const std::string text =
      "Zo\xC3\xAB pays \xE2\x82\xAC"
      "5 </s>\n";
  const CommandResult json =
      RunPawl({"tokenize", "--tokenizer", tokenizer, "--text", text, "--json"});
  const Json value = Json::parse(json.out, nullptr, false);
  ASSERT_TRUE(value.is_object()) << json.out << json.err;
  EXPECT_EQ(value["count"], text.size());
  EXPECT_EQ(value["ids"].size(), text.size());
  const CommandResult back =
      RunPawl({"tokenize", "--tokenizer", tokenizer, "--decode", value["ids"].dump()});
  EXPECT_EQ(back.out, text + "\n");
  const CommandResult special =
      RunPawl({"tokenize", "--tokenizer", tokenizer, "--text", "a</s>", "--special", "--json"});
  EXPECT_EQ(Json::parse(special.out, nullptr, false)["ids"], Json::parse("[97,257]"))
      << special.out;
  const CommandResult input = RunPawl({"tokenize", "--tokenizer", tokenizer}, "ab");
  EXPECT_NE(input.out.find("2 tokens, 2 bytes"), std::string::npos) << input.out;
}

TEST(InfoTest, DescribesBuildMachineAndModel) {
  const CommandResult result = RunPawl({"info", "--model", RandomModelFolder(), "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json value = Json::parse(result.out, nullptr, false);
  ASSERT_TRUE(value.is_object()) << result.out;
  for (const char* key : {"version", "build", "cpu", "gpu", "model", "architecture", "context"}) {
    EXPECT_TRUE(value.contains(key)) << key;
  }
  EXPECT_EQ(value["architecture"], "LlamaForCausalLM");
  EXPECT_EQ(value["context"], "256 tokens");
  EXPECT_EQ(value["end tokens"], "257 \"</s>\"");
}

TEST(GrammarTest, PrintsChecksAndConverts) {
  const std::string file =
      WriteScratch("list.ebnf", "root ::= item (\",\" item){2}\nitem ::= [0-9] [0-9]*\n");
  CommandResult result = RunPawl({"grammar", file, "--check"}, "");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, file + ": 2 rules, no errors\n");
  result = RunPawl({"grammar", file}, "");
  EXPECT_EQ(result.out, "root ::= item (\",\" item){2}\nitem ::= [0-9]+\n");
  result = RunPawl({"grammar", file, "--to", "lark"}, "");
  EXPECT_EQ(result.out, "start: item (/,/ item){2}\nitem: /[0-9]+/\n");
  result = RunPawl({"grammar", file, "--root", "item", "--to", "gbnf"}, "");
  EXPECT_EQ(result.out, "root ::= [0-9]+\n");
  result = RunPawl({"grammar", "-", "--language", "gbnf", "--to", "ebnf"}, "root ::= . <a>");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err,
            "pawl grammar: -: 1:1: rule \"root\": EBNF cannot say the token <a>, only its id\n");
  // Bug: a grammar that nothing can match had "1 rules, no errors".
  result = RunPawl({"grammar", "-", "--language", "ebnf", "--check"}, "root ::= root\n");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "pawl grammar: -: 1:1: no text fits: \"root\" can never end\n");
  result = RunPawl({"grammar", "-", "--language", "gbnf", "--check"}, "root ::= <a> !<[7]>\n");
  EXPECT_EQ(result.out, "-: 1 rule, no errors\n") << result.err;
  // Bug: a schema inside was refused, also in our own example.
  result = RunPawl({"grammar", "-", "--language", "lark", "--check"}, "start: %json {\"type\": 1}");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("#/type"), std::string::npos) << result.err;
  result = RunPawl({"grammar", "-", "--language", "lark"}, "start: %json {\"type\": \"null\"}");
  EXPECT_EQ(result.out, "start: %json {\"type\": \"null\"}\n") << result.err;
}

TEST(ValidateTest, CapturesAsJson) {
  const std::string grammar = WriteScratch(
      "pair.lark", "start: k \"=\" v\nk[capture=\"key\"]: /[a-z]+/\nv[capture]: /./+\n");
  const CommandResult result = RunPawl({"validate", "--grammar", grammar, "--tokenizer",
                                        RandomModelFolder() + "/tokenizer.json", "--captures", "-"},
                                       "ab=\"1");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out,
            "-: accepted (5 tokens)\n[{\"name\": \"key\", \"begin\": 0, \"end\": 2, \"text\": "
            "\"ab\"}, {\"name\": \"v\", \"begin\": 3, \"end\": 5, \"text\": \"\\\"1\"}]\n");
}

TEST(ValidateTest, OptionsThatSayNothingAboutTheGrammarAreRefused) {
  const std::string lark = WriteScratch("a.lark", "start: \"a\"");
  const std::string ebnf = WriteScratch("a.ebnf", "root ::= \"a\"");
  const auto error = [](const std::string& grammar, std::vector<std::string> options) {
    options.insert(options.begin(), {"validate", "--grammar", grammar, "--tokenizer",
                                     RandomModelFolder() + "/tokenizer.json", "-"});
    return RunPawl(options, "a").err;
  };
  EXPECT_EQ(
      error(lark, {"--root", "a"}),
      "pawl validate: --root: is for EBNF and GBNF; the root of a Lark grammar is \"start\"\n");
  EXPECT_EQ(error(lark, {"--order", "any"}),
            "pawl validate: --order: is for JSON Schemas; this grammar has none\n");
  EXPECT_EQ(error(ebnf, {"--whitespace", "any"}),
            "pawl validate: --whitespace: is for JSON Schemas; this grammar has none\n");
  EXPECT_EQ(error(ebnf, {}), "");
}

TEST(GrammarTest, NamesThePlaceOfAnError) {
  CommandResult result = RunPawl({"grammar", "-", "--language", "ebnf"}, "root ::= a\n");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "pawl grammar: -: 1:10: rule \"a\" is not defined\n");
  result = RunPawl({"grammar", "-"}, "root ::= a\n");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err,
            "pawl grammar: -: the file's name does not tell its language; give --language\n");
}

}  // namespace
}  // namespace pawl
