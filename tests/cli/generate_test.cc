// pawl generate through the command.
#include <gtest/gtest.h>
#include <re2/re2.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/cli/cli_test_util.h"
#include "tests/model/gguf_writer.h"

namespace pawl {
namespace {

std::vector<std::string> GenerateCommand(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"generate", "--model", RandomModelFolder(), "--prompt",
                                        "Once "};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(GenerateTest, ChoiceIsOneOfTheStrings) {
  std::set<std::string> seen;
  for (int seed = 0; seed < 12; ++seed) {
    const CommandResult result = RunPawl(
        GenerateCommand({"--choice", "red", "--choice", "green", "--choice", "gr\xC3\xBCn, a b",
                         "--temperature", "5", "--seed", std::to_string(seed)}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    seen.insert(result.out);
  }
  for (const std::string& out : seen) {
    EXPECT_TRUE(out == "red\n" || out == "green\n" || out == "gr\xC3\xBCn, a b\n") << out;
  }
  EXPECT_GT(seen.size(), 1u);
}

TEST(GenerateTest, RegexMatchesWhole) {
  for (int seed = 0; seed < 8; ++seed) {
    const CommandResult result =
        RunPawl(GenerateCommand({"--regex", "(yes|no), [a-z ]{3,40}", "--temperature", "2",
                                 "--seed", std::to_string(seed)}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(RE2::FullMatch(result.out, "(yes|no), [a-z ]{3,40}\n")) << result.out;
  }
}

TEST(GenerateTest, StopTextsAreCutOff) {
  const CommandResult cut = RunPawl(
      GenerateCommand({"--regex", "one two three four", "--stop", "never", "--stop", "hree"}));
  EXPECT_EQ(cut.exit_code, 0) << cut.err;
  EXPECT_EQ(cut.out, "one two t\n");
  const std::vector<std::vector<std::string>> refused = {
      {"--stop", ""},
      {"--regex", "a-b", "--gap", "a", "--gap", "b", "--stop", "x"},
      {"--sampler", "gcd", "--stop", "x"}};
  for (const auto& arguments : refused) {
    const CommandResult result = RunPawl(GenerateCommand(arguments));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find("--stop"), std::string::npos) << result.err;
  }
}

// Three gaps, each with an output; every one goes on from what was written before.
TEST(GenerateTest, SeveralGaps) {
  const char kRegex[] = "([a-c]x?)+-[0-9]{2,4};(yes|no)";
  std::set<std::string> seen;
  for (int seed = 0; seed < 8; ++seed) {
    const auto arguments = GenerateCommand({"--regex", kRegex, "--prefix", "a", "--gap", "x",
                                            "--gap", "7", "--suffix", "o", "--max-tokens", "12",
                                            "--temperature", "3", "--seed", std::to_string(seed)});
    const CommandResult result = RunPawl(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(RunPawl(arguments).out, result.out);
    const auto outputs = nlohmann::json::parse(result.out, nullptr, false);
    ASSERT_TRUE(outputs.is_array()) << result.out;
    ASSERT_EQ(outputs.size(), 3u) << result.out;
    const std::string text = "a" + outputs[0].get<std::string>() + "x" +
                             outputs[1].get<std::string>() + "7" + outputs[2].get<std::string>() +
                             "o";
    EXPECT_TRUE(RE2::FullMatch(text, kRegex)) << text;
    seen.insert(text);
  }
  EXPECT_GT(seen.size(), 3u);
  const CommandResult captures =
      RunPawl(GenerateCommand({"--regex", kRegex, "--gap", "x", "--captures"}));
  EXPECT_EQ(captures.exit_code, 2);
  EXPECT_NE(captures.err.find("--captures: "), std::string::npos) << captures.err;
  const CommandResult alone = RunPawl(GenerateCommand({"--gap", "x"}));
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_NE(alone.err.find("--gap, --suffix and --require want a constraint"), std::string::npos)
      << alone.err;
}

TEST(GenerateTest, SchemaGivesValidJson) {
  const std::string schema = WriteScratch(
      "pair.json", R"({"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":2})");
  const CommandResult result = RunPawl(GenerateCommand({"--schema", schema, "--temperature", "3"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto value = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_TRUE(value.is_array()) << result.out;
  EXPECT_EQ(value.size(), 2u);
}

TEST(GenerateTest, TheGrammarsTemperatureCountsInItsRules) {
  const auto outputs = [](const std::string& name, const std::string& text,
                          const std::string& temperature) {
    const std::string grammar = WriteScratch(name, text);
    std::set<std::string> seen;
    for (int seed = 0; seed < 6; ++seed) {
      const CommandResult result = RunPawl(GenerateCommand(
          {"--grammar", grammar, "--temperature", temperature, "--seed", std::to_string(seed)}));
      EXPECT_EQ(result.exit_code, 0) << result.err;
      seen.insert(result.out);
    }
    return seen;
  };
  const auto greedy = outputs("plain.lark", "start: x\nx: /[a-z]{12}/", "0");
  ASSERT_EQ(greedy.size(), 1u);
  EXPECT_EQ(outputs("cold.lark", "start: x\nx[temperature=0]: /[a-z]{12}/", "5"), greedy);
  EXPECT_EQ(outputs("cold.ebnf", "root ::= x\nx[temperature=0] ::= [a-z]{12}", "5"), greedy);
  EXPECT_GT(outputs("hot.lark", "start: x\nx[temperature=5]: /[a-z]{12}/", "0").size(), 3u);
  EXPECT_GT(outputs("plain.lark", "start: x\nx: /[a-z]{12}/", "5").size(), 3u);
}

TEST(GenerateTest, WithoutConstraintItEndsByItselfOrIsCutAtTheBudgetAndSaysSo) {
  int cut = 0;
  for (int seed = 0; seed < 5; ++seed) {
    const CommandResult result = RunPawl(GenerateCommand(
        {"--max-tokens", "20", "--temperature", "1", "--seed", std::to_string(seed)}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_LE(result.out.size(), 21u);
    const bool says_so = result.err.find("cut at the budget of 20 tokens") != std::string::npos;
    EXPECT_EQ(result.out.find("<s>"), std::string::npos) << result.out;
    cut += static_cast<int>(says_so);
  }
  EXPECT_GT(cut, 0);
}

TEST(GenerateTest, ForcedTokensDoNotChangeTheOutput) {
  for (int seed = 0; seed < 5; ++seed) {
    const std::vector<std::string> options = {"--regex",       "(one|only|other) way( back)?",
                                              "--temperature", "2",
                                              "--seed",        std::to_string(seed)};
    std::vector<std::string> slow = options;
    slow.emplace_back("--no-skip-forced");
    EXPECT_EQ(RunPawl(GenerateCommand(options)).out, RunPawl(GenerateCommand(slow)).out);
  }
}

TEST(GenerateTest, SpecialTokensOfThePromptAreTextUnlessAsked) {
  const auto tokens = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"generate", "--model", RandomModelFolder(), "--prompt",
                                          "a</s>",    "--stats", "--max-tokens",      "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunPawl(arguments).err;
  };
  EXPECT_NE(tokens({}).find("prompt 6 tokens"), std::string::npos) << tokens({});
  EXPECT_NE(tokens({"--special"}).find("prompt 3 tokens"), std::string::npos);
}

// One file holds the model and its tokenizer.
TEST(GenerateTest, APromptThatNoContextHoldsIsRefusedAtOnce) {
  const std::string file = WriteScratch("spaces.txt", std::string(1 << 20, ' '));
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"generate", "--prompt-file", file},
           {"score", "--prompt", "a", "--text", std::string(100000, ' ')}}) {
    const CommandResult result = RunPawl(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find(" bytes, but 4096 tokens hold no more than "), std::string::npos)
        << result.err;
  }
  const CommandResult extract =
      RunPawl({"extract", "--schema", WriteScratch("any.json", "{}"), "--file",
               WriteScratch("long.txt", "a" + std::string(1 << 20, ' '))});
  EXPECT_EQ(extract.exit_code, 2);
  EXPECT_NE(extract.err.find("long.txt: has 10"), std::string::npos) << extract.err;
}

TEST(GenerateTest, GgufFile) {
  const std::string golden = "llama-bf16-llama3";
  TransformerConfig config = *ReadTransformerConfig(GoldenFolder(golden));
  config.bos = 256;
  config.end_tokens = {257};
  GgufWriter writer = WriteGolden(golden, "llama", config);
  const auto json = nlohmann::json::parse(ByteTokenizerJson());
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  for (int i = 0; i < config.vocabulary; ++i) {
    tokens.push_back("[PAD" + std::to_string(i) + "]");
    types.push_back(5);
  }
  for (const auto& [token, id] : json["model"]["vocab"].items()) {
    tokens[id.get<size_t>()] = token;
    types[id.get<size_t>()] = 1;
  }
  for (const auto& added : json["added_tokens"]) {
    tokens[added["id"].get<size_t>()] = added["content"];
    types[added["id"].get<size_t>()] = 3;
  }
  writer.Add("tokenizer.ggml.model", std::string_view("gpt2"));
  writer.Add("tokenizer.ggml.pre", std::string_view("gpt-2"));
  writer.Add("tokenizer.ggml.tokens", tokens);
  writer.AddNumbers<int32_t>("tokenizer.ggml.token_type", 5, types);
  writer.Add("tokenizer.ggml.merges", std::vector<std::string>{});
  const std::string file = WriteScratch("model.gguf", writer.File());
  const std::vector<std::string> choices = {"--prompt", "Once ",    "--choice",
                                            "red",      "--choice", "green"};
  const auto run = [&](const std::string& model) {
    std::vector<std::string> arguments = {"generate", "--model", model, "--temperature", "2"};
    arguments.insert(arguments.end(), choices.begin(), choices.end());
    return RunPawl(arguments);
  };
  const CommandResult result = run(file);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, run(RandomModelFolder()).out);
  const CommandResult info = RunPawl({"info", "--model", file});
  ASSERT_EQ(info.exit_code, 0) << info.err;
  EXPECT_NE(info.out.find("LlamaForCausalLM"), std::string::npos) << info.out;
  WriteScratch("cut.gguf", writer.File().substr(0, 5000));
  const CommandResult cut = RunPawl({"info", "--model", ScratchPath("cut.gguf")});
  EXPECT_NE(cut.exit_code, 0);
  EXPECT_NE(cut.err.find("cut.gguf: byte "), std::string::npos) << cut.err;

  // Its chat templates are keys, one of them without a name; special tokens are the tokenizer's.
  const auto chat = [](const std::string& model, std::vector<std::string> more) {
    more.insert(more.begin(), {"tokenize", "--tokenizer", model, "--chat", "--text", "Hi</s>"});
    const CommandResult shown = RunPawl(more);
    return shown.exit_code == 0 ? shown.out : shown.err;
  };
  EXPECT_EQ(chat(file, {}),
            "pawl tokenize: " + file +
                ": tokenizer.chat_template: no chat template: the key is missing\n");
  writer.Add("tokenizer.chat_template",
             std::string_view("{{ bos_token }}[{{ messages[0].role }}]"
                              "{{ messages[0].content }}{{ eos_token }}"));
  writer.Add("tokenizer.chat_template.tool_use", std::string_view("T{{ messages[0].content }}"));
  writer.Add("tokenizer.chat_template.number", 7);
  const std::string with = WriteScratch("chat.gguf", writer.File());
  EXPECT_EQ(chat(with, {"--show-prompt"}), "<s>[user]Hi</s></s>\n");
  EXPECT_EQ(chat(with, {"--show-prompt", "--chat-template-name", "tool_use"}), "THi</s>\n");
  EXPECT_EQ(chat(with, {"--chat-template-name", "number"}),
            "pawl tokenize: " + with + ": tokenizer.chat_template.number: must be a string\n");
  EXPECT_NE(chat(with, {"--chat-template-name", "none"}).find("the key is missing"),
            std::string::npos);
  const auto ids = nlohmann::json::parse(chat(with, {"--json"}))["ids"].get<std::vector<TokenId>>();
  ASSERT_EQ(ids.size(), 1u + 6 + 2 + 4 + 1);  // the user's </s> is four characters
  EXPECT_EQ(ids.front(), 256);
  EXPECT_EQ(ids.back(), 257);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 257), 1);
}

TEST(GenerateTest, DtypeIsHowWeightsAreKept) {
  for (const char* dtype : {"fp32", "bf16", "fp16", "int8", "int4"}) {
    const CommandResult info =
        RunPawl({"info", "--model", RandomModelFolder(), "--dtype", dtype, "--json"});
    ASSERT_EQ(info.exit_code, 0) << info.err;
    const auto json = nlohmann::json::parse(info.out, nullptr, false);
    EXPECT_EQ(json["weights"].get<std::string>().substr(0, 4), dtype) << info.out;
    EXPECT_EQ(RunPawl(GenerateCommand({"--choice", "red", "--choice", "green", "--dtype", dtype}))
                  .exit_code,
              0);
  }
  const CommandResult bad = RunPawl(GenerateCommand({"--choice", "red", "--dtype", "int3"}));
  EXPECT_NE(bad.exit_code, 0);
  EXPECT_NE(bad.err.find("--dtype"), std::string::npos) << bad.err;
}

std::string ChatModelFolder() {
  const std::string folder = ModelFolderWith("chat_model", "");
  WriteScratch("chat_model/chat_template.jinja",
               "<s>{% for m in messages %}[{{ m.role }}]{{ m.content }}</s>{% endfor %}"
               "{% if tools %}{{ tools | tojson }}{% endif %}{% if think %}!{% endif %}"
               "{{ strftime_now('%Y') }}");
  return folder;
}

TEST(ChatTest, PromptsAreRendered) {
  const std::string folder = ChatModelFolder();
  const auto prompt = [&](std::vector<std::string> more, std::string_view input = "") {
    std::vector<std::string> arguments = {"tokenize",      "--tokenizer", folder,
                                          "--show-prompt", "--now",       "2031-02-03"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = RunPawl(arguments, input);
    return result.exit_code == 0 ? result.out : result.err;
  };
  EXPECT_EQ(prompt({"--chat", "--text", "Hi"}), "<s>[user]Hi</s>2031\n");
  EXPECT_EQ(prompt({"--chat", "--system", "S", "--text", "Hi", "--chat-arg", "think=true"}),
            "<s>[system]S</s>[user]Hi</s>!2031\n");
  EXPECT_EQ(prompt({"--messages", "-"},
                   R"({"messages": [{"role": "user", "content": "x"}], "tools": [{"a": 1.0}]})"),
            "<s>[user]x</s>[{\"a\": 1.0}]2031\n");
  EXPECT_EQ(
      prompt({"--messages", "-"}, R"([{"content": "x"}])"),
      "pawl tokenize: standard input: #/messages/0/role: must be a string, such as \"user\"\n");
  // Bug: "None" was written. What is null is absent, as in transformers.
  EXPECT_EQ(
      prompt({"--messages", "-"}, R"([{"role": "assistant", "content": null, "name": null}])"),
      "<s>[assistant]</s>2031\n");
  // Bug: a prompt without any message.
  const std::string empty = "an empty conversation; expected at least one message\n";
  EXPECT_EQ(prompt({"--messages", "-"}, "[]"), "pawl tokenize: standard input: #: " + empty);
  EXPECT_EQ(prompt({"--messages", "-"}, R"({"messages": []})"),
            "pawl tokenize: standard input: #/messages: " + empty);
  EXPECT_EQ(
      prompt({"--chat", "--text", "x", "--chat-template",
              WriteScratch("refuses.jinja", "{{ raise_exception('no') }}")}),
      "pawl tokenize: " + ScratchPath("refuses.jinja") + ": 1:19: the template refuses: no\n");
  EXPECT_EQ(prompt({"--text", "x"}),
            "pawl tokenize: options of chat templates need --chat or --messages\n");
}

TEST(ChatTest, WhatUsersWriteStaysText) {
  const std::string folder = ChatModelFolder();
  const auto count = [&](const std::string& text, bool trust) {
    std::vector<std::string> arguments = {"tokenize", "--tokenizer", folder,  "--chat",
                                          "--text",   text,          "--json"};
    if (trust) arguments.push_back("--trust-messages");
    const CommandResult result = RunPawl(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const nlohmann::json ids = nlohmann::json::parse(result.out)["ids"];
    return std::count(ids.begin(), ids.end(), 257);
  };
  EXPECT_EQ(count("Hi", false), 1);
  EXPECT_EQ(count("Hi</s><s>", false), 1);
  EXPECT_EQ(count("Hi</s>", true), 2);
}

TEST(ChatTest, GeneratesFromAConversation) {
  const std::string folder = ChatModelFolder();
  const std::string messages =
      WriteScratch("talk.json", R"([{"role": "user", "content": "Yes or no?"}])");
  const CommandResult file = RunPawl({"generate", "--model", folder, "--messages", messages,
                                      "--now", "2031-02-03", "--regex", "yes|no"});
  ASSERT_EQ(file.exit_code, 0) << file.err;
  EXPECT_TRUE(file.out == "yes\n" || file.out == "no\n") << file.out;
  const CommandResult flag = RunPawl({"generate", "--model", folder, "--chat", "--prompt",
                                      "Yes or no?", "--now", "2031-02-03", "--regex", "yes|no"});
  EXPECT_EQ(flag.out, file.out) << flag.err;
  const CommandResult none = RunPawl(
      {"generate", "--model", RandomModelFolder(), "--chat", "--prompt", "x", "--regex", "a"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("no chat template"), std::string::npos) << none.err;
}

}  // namespace
}  // namespace pawl
