// The public engine (pawl/engine.h), as a program outside of the tree sees it. The oracle of its
// outputs is the command `pawl generate`.
#include "pawl/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

const std::string kModel = SourceDir() + "/models/tiny-extract";
const char* const kTemplate =
    "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant] ";

static_assert(!std::is_copy_constructible_v<Engine>);
static_assert(std::is_nothrow_move_constructible_v<Engine>);

Engine Load(const EngineOptions& options = {}) {
  Result<Engine> engine = Engine::Load(kModel, options);
  EXPECT_TRUE(engine.ok()) << engine.error().ToString();
  return *std::move(engine);
}

EngineOptions Batch(int size) {
  EngineOptions options;
  options.max_batch = size;
  return options;
}

EngineOptions Template(const std::string& text) {
  EngineOptions options;
  options.chat_template = text;
  return options;
}

// What `pawl generate` prints, without the line feed at its end.
std::string Command(const std::string& arguments) {
  const std::string line =
      std::string(PAWL_COMMAND) + " generate --model " + kModel + " " + arguments + " 2>&1";
  std::FILE* pipe = ::popen(line.c_str(), "r");
  std::string out;
  char buffer[4096];
  while (const size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, got);
  EXPECT_EQ(::pclose(pipe), 0) << out;
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

EngineRequest Under(const Engine& engine, const std::string& regex, uint64_t seed) {
  const Compiler compiler(engine.vocabulary());
  const Result<Grammar> grammar = compiler.CompileRegex(regex);
  EXPECT_TRUE(grammar.ok()) << grammar.error().ToString();
  EngineRequest request;
  request.prompt = "The answer is ";
  request.grammar = *grammar;
  request.options.max_tokens = 40;
  request.options.sampling.temperature = 1.5f;
  request.options.sampling.seed = seed;
  return request;
}

constexpr const char* kRegex = "(yes|no), [a-z ]{3,40}";

TEST(EngineTest, SameOutputAsTheCommandForTheSameSeed) {
  Engine engine = Load();
  std::vector<std::string> outputs;
  for (const uint64_t seed : {1, 7}) {
    const Result<Generation> output = engine.Generate(Under(engine, kRegex, seed));
    ASSERT_TRUE(output.ok()) << output.error().ToString();
    EXPECT_EQ(output->text,
              Command("--prompt 'The answer is ' --regex '" + std::string(kRegex) +
                      "' --max-tokens 40 --temperature 1.5 --seed " + std::to_string(seed)));
    outputs.push_back(output->text);
  }
  EXPECT_NE(outputs[0], outputs[1]);
}

TEST(EngineTest, TheGrammarsTemperatureCountsInItsRules) {
  Engine engine = Load(Batch(4));
  std::vector<EngineRequest> requests;
  for (const char* asks : {"", "[temperature=0]", "[temperature=8]"}) {
    const auto grammar = Compiler(engine.vocabulary())
                             .CompileGrammar("start: x\nx" + std::string(asks) + ": /[a-z]{12}/",
                                             GrammarLanguage::kLark);
    ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
    for (const uint64_t seed : {1, 2, 3}) {
      requests.push_back(Under(engine, kRegex, seed));
      requests.back().grammar = *grammar;
      requests.back().options.sampling.temperature = *asks == '\0' ? 0 : 4;
    }
  }
  const auto outputs = engine.GenerateAll(requests);
  for (const auto& output : outputs) ASSERT_TRUE(output.ok()) << output.error().ToString();
  for (size_t i = 1; i < 6; ++i) EXPECT_EQ(outputs[i]->text, outputs[0]->text);
  EXPECT_NE(outputs[6]->text, outputs[7]->text);
  EXPECT_NE(outputs[7]->text, outputs[8]->text);
}

TEST(EngineTest, MessagesAreLaidOutAsTheCommandDoes) {
  const std::string path = testing::TempDir() + "/engine_test_template.jinja";
  std::ofstream(path) << kTemplate;
  Engine engine = Load(Template(kTemplate));
  EXPECT_TRUE(engine.info().has_chat_template);
  EngineRequest request = Under(engine, kRegex, 3);
  request.prompt.clear();
  request.messages = {{"system", "Be brief."}, {"user", "Is it far?"}};
  const Result<std::vector<TokenId>> tokens = engine.PromptTokens(request);
  ASSERT_TRUE(tokens.ok()) << tokens.error().ToString();
  EXPECT_EQ(engine.Decode(*tokens), "[system] Be brief.\n[user] Is it far?\n[assistant] ");
  const Result<Generation> output = engine.Generate(request);
  ASSERT_TRUE(output.ok()) << output.error().ToString();
  EXPECT_EQ(output->text,
            Command("--chat --system 'Be brief.' --prompt 'Is it far?' --chat-template " + path +
                    " --regex '" + kRegex + "' --max-tokens 40 --temperature 1.5 --seed 3"));

  EngineRequest json = request;
  json.messages.clear();
  json.chat_json =
      R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Is it far?"}])";
  EXPECT_EQ(*engine.PromptTokens(json), *tokens);
}

TEST(EngineTest, ManyAtOnceGetWhatEachGetsAlone) {
  Engine one = Load(Batch(1));
  Engine many = Load(Batch(3));
  std::vector<EngineRequest> requests;
  std::vector<std::string> alone;
  for (int i = 0; i < 7; ++i) {
    requests.push_back(Under(many, "[a-z]{" + std::to_string(i + 1) + ",20}", i));
    const Result<Generation> output =
        one.Generate(Under(one, "[a-z]{" + std::to_string(i + 1) + ",20}", i));
    ASSERT_TRUE(output.ok()) << output.error().ToString();
    alone.push_back(output->text);
  }
  requests[4].prompt = "\xFF";  // fails, and no other does
  const auto outputs = many.GenerateAll(requests);
  ASSERT_EQ(outputs.size(), 7u);
  for (size_t i = 0; i < 7; ++i) {
    if (i == 4) {
      ASSERT_FALSE(outputs[i].ok());
      EXPECT_EQ(outputs[i].error().ToString(), "prompt: byte 0: the text is not valid UTF-8");
    } else {
      ASSERT_TRUE(outputs[i].ok()) << outputs[i].error().ToString();
      EXPECT_EQ(outputs[i]->text, alone[i]);
    }
  }
}

TEST(EngineTest, TokensStreamInOrderAndFalseStops) {
  Engine engine = Load();
  EngineRequest request = Under(engine, "[a-z ]{30,60}", 5);
  std::string streamed;
  request.options.on_token = [&](TokenId, std::string_view bytes) {
    streamed += bytes;
    return true;
  };
  Result<Generation> output = engine.Generate(request);
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(streamed, output->text);
  EXPECT_EQ(output->stats.output_tokens, static_cast<int>(output->tokens.size()));
  EXPECT_EQ(output->stats.prompt_tokens, static_cast<int>(engine.PromptTokens(request)->size()));

  request.options.on_token = [](TokenId, std::string_view) { return false; };
  output = engine.Generate(request);
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->stop, StopReason::kCancelled);
  EXPECT_LT(output->text.size(), streamed.size());
}

// Against the output without stop texts, which the same seed gives.
TEST(EngineTest, StopTextsEndTheOutput) {
  Engine engine = Load(Batch(4));
  EngineRequest request = Under(engine, "[a-f ]{60,80}", 5);
  request.options.max_tokens = 100;
  const Result<Generation> whole = engine.Generate(request);
  ASSERT_TRUE(whole.ok()) << whole.error().ToString();
  std::vector<EngineRequest> requests;
  std::vector<std::string> streamed(whole->text.size() - 4);
  for (size_t i = 0; i < streamed.size(); ++i) {
    requests.push_back(request);
    requests[i].stops = {"never", whole->text.substr(i, 1 + i % 4), ""};
    requests[i].include_stop = i % 3 == 0;
    requests[i].options.on_token = [&streamed, i](TokenId, std::string_view bytes) {
      streamed[i] += bytes;
      return true;
    };
  }
  const auto outputs = engine.GenerateAll(requests);
  for (size_t i = 0; i < outputs.size(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_TRUE(outputs[i].ok()) << outputs[i].error().ToString();
    const std::string& stop = requests[i].stops[1];
    const size_t end = whole->text.find(stop) + (requests[i].include_stop ? stop.size() : 0);
    EXPECT_EQ(outputs[i]->text, whole->text.substr(0, end));
    EXPECT_EQ(outputs[i]->stop, StopReason::kStopText);
    EXPECT_EQ(outputs[i]->stop_text, stop);
    EXPECT_EQ(streamed[i], outputs[i]->text);
  }
  // None comes: the output, and every token that was told, is that without.
  request.stops = {"never"};
  std::vector<TokenId> told;
  request.options.on_token = [&](TokenId token, std::string_view) {
    told.push_back(token);
    return true;
  };
  const Result<Generation> same = engine.Generate(request);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->text, whole->text);
  EXPECT_EQ(same->stop, whole->stop);
  EXPECT_EQ(same->stop_text, "");
  EXPECT_EQ(told, whole->tokens);
}

TEST(EngineTest, ACallbackThatRefusesATokenBeforeAStopTextCancels) {
  Engine engine = Load();
  EngineRequest request = Under(engine, "one two three four", 1);
  request.stops = {"four"};
  std::string streamed;
  request.options.on_token = [&](TokenId, std::string_view bytes) {
    streamed += bytes;
    return streamed.size() < 5;
  };
  const Result<Generation> output = engine.Generate(request);
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->stop, StopReason::kCancelled);
  EXPECT_LT(streamed.size(), 10u);
}

TEST(EngineTest, RequestsComeAndGoBetweenSteps) {
  Engine engine = Load(Batch(2));
  std::vector<std::string> order;
  RequestId cancelled = -1;
  const auto add = [&](const std::string& name, Engine::Done then = {}) {
    const Result<RequestId> id =
        engine.Add(Under(engine, "[a-z]{8,20}", 1), [&order, name, then](Result<Generation> out) {
          order.push_back(name + (out->stop == StopReason::kCancelled ? " cancelled" : ""));
          if (then) then(std::move(out));
        });
    EXPECT_TRUE(id.ok());
    return *id;
  };
  add("first", [&](Result<Generation>) { add("added by first"); });
  cancelled = add("second");
  EXPECT_TRUE(engine.Step());
  engine.Cancel(cancelled);
  engine.Cancel(12345);  // unknown: ignored
  while (engine.Step()) {
  }
  EXPECT_FALSE(engine.Step());
  EXPECT_EQ(order, (std::vector<std::string>{"second cancelled", "first", "added by first"}));
}

TEST(EngineTest, AMovedEngineGoesOn) {
  Engine first = Load();
  const EngineRequest request = Under(first, kRegex, 2);
  const std::string text = first.Generate(request)->text;
  Engine second = std::move(first);
  EXPECT_EQ(second.Generate(request)->text, text);
}

TEST(EngineTest, SpecialTokensInAPromptStayTextUnlessAskedFor) {
  const Engine engine = Load();
  const TokenId end = engine.vocabulary()->end_tokens()[0];
  EngineRequest request;
  request.prompt = std::string(engine.vocabulary()->bytes(end));
  const auto has_end = [&](const std::vector<TokenId>& tokens) {
    return std::find(tokens.begin(), tokens.end(), end) != tokens.end();
  };
  EXPECT_FALSE(has_end(*engine.PromptTokens(request)));
  request.parse_special = true;
  EXPECT_TRUE(has_end(*engine.PromptTokens(request)));
}

std::string LoadError(const std::string& path, const EngineOptions& options = {}) {
  const Result<Engine> engine = Engine::Load(path, options);
  return engine.ok() ? "" : engine.error().ToString();
}

// The sources are a store of LM Studio's form: models/tiny-extract is ORG/NAME.
TEST(EngineTest, LoadsByNameFromTheStoresThatItIsGiven) {
  EngineOptions options;
  EXPECT_EQ(LoadError("lmstudio:models/tiny-extract", options),
            "lmstudio:models/tiny-extract: no such model folder or file; `lms get "
            "models/tiny-extract` fetches it");
  options.paths.lmstudio = {SourceDir()};
  const Result<Engine> engine = Engine::Load("lmstudio:models/tiny-extract", options);
  ASSERT_TRUE(engine.ok()) << engine.error().ToString();
  EXPECT_EQ(engine->info().parameters, Load().info().parameters);
  options.drafts.sources = "model";
  options.drafts.model = "lmstudio:models/none";
  EXPECT_NE(
      LoadError("lmstudio:models/tiny-extract", options).find("lmstudio:models/none: no such"),
      std::string::npos);
}

TEST(EngineTest, LoadingSaysWhatIsWrongAndWhere) {
  EXPECT_EQ(LoadError("/no/such/model"), "/no/such/model: no such model folder or file");
  EXPECT_EQ(
      LoadError(SourceDir() + "/tests/engine/engine_test.cc"),
      SourceDir() + "/tests/engine/engine_test.cc" + ": neither a model folder nor a GGUF file");
  EXPECT_EQ(LoadError(kModel, Batch(0)), "max_batch: must be from 1 to 1024, not 0");
  EngineOptions options;
  options.model.threads = -1;
  EXPECT_EQ(LoadError(kModel, options), "threads: must be at least 0, not -1");
  EXPECT_NE(LoadError(kModel, Template("{% for %}")).find("chat_template: 1:"), std::string::npos);
}

TEST(EngineTest, ADraftModelMayBeATrainedHead) {
  EngineOptions options;
  options.drafts.sources = "auto";
  const std::string heads = SourceDir() + "/tests/data/models/heads/";
  options.drafts.model = heads + "eagle3";
  EXPECT_EQ(LoadError(kModel, options),
            heads +
                "eagle3/config.json#/hidden_size: is 32, but the model's is 192: the head is "
                "for another model");
  options.drafts.model = heads + "medusa";
  EXPECT_EQ(LoadError(kModel, options),
            heads +
                "medusa/model.safetensors: tensor \"0.0.linear.weight\": has shape [32, 32]; "
                "expected [192, 192]");
}

TEST(EngineTest, ADraftModelMayBeGivenTwice) {
  EngineOptions options;
  options.drafts.sources = "auto";
  const std::string models = SourceDir() + "/models/";
  options.drafts.more_models = {models + "a", models + "b", models + "c"};
  EXPECT_EQ(LoadError(kModel, options), "draft_model: must be given at most twice, not 3 times");
  options.drafts.more_models = {models + "tiny-extract", models + "tiny-extract"};
  EXPECT_EQ(LoadError(kModel, options), "draft_model: is given twice: " + models + "tiny-extract");
  // The model itself is always right; so is a copy of it.
  options.drafts.more_models[1] += "/";
  Result<Engine> engine = Engine::Load(kModel, options);
  ASSERT_TRUE(engine.ok()) << engine.error().ToString();
  Engine plain = Load();
  const auto expected = plain.Generate(Under(plain, kRegex, 1));
  const auto drafted = engine->Generate(Under(*engine, kRegex, 1));
  ASSERT_TRUE(expected.ok() && drafted.ok());
  EXPECT_EQ(drafted->text, expected->text);
  std::vector<std::string> names;
  for (const DraftSourceStats& source : drafted->stats.drafts.sources) names.push_back(source.name);
  for (const std::string& model : options.drafts.more_models) {
    EXPECT_EQ(std::ranges::count(names, "model:" + model), 1) << model;
  }
}

TEST(EngineTest, ABlockForSeveralTokensThatIsNotThere) {
  EngineOptions options;
  options.drafts.sources = "suffix,mtp";
  EXPECT_EQ(LoadError(kModel, options),
            "draft: the source \"mtp\" needs a block for several tokens, and the files of this "
            "LlamaForCausalLM have none that is known");
}

TEST(EngineTest, RequestsSayWhatIsWrongAndWhere) {
  Engine engine = Load(Template(kTemplate));
  const auto error_of = [&](const EngineRequest& request) {
    const Result<Generation> output = engine.Generate(request);
    return output.ok() ? "none" : output.error().ToString();
  };
  EngineRequest both = Under(engine, kRegex, 1);
  both.messages = {{"user", "x"}};
  EXPECT_EQ(error_of(both),
            "prompt: more than one of prompt, messages, chat_json, tokens and extract is given");

  EngineRequest empty;
  empty.extract = ExtractInput{"{}", ""};
  EXPECT_EQ(error_of(empty), "text: is empty");
  empty.extract->text = " \n";
  EXPECT_EQ(error_of(empty), "text: holds only white space");
  empty.extract->text = "a\xC3";
  EXPECT_EQ(error_of(empty), "text: byte 1: the text is not valid UTF-8");

  EngineRequest bad_json;
  bad_json.chat_json = "[{\"role\":";
  EXPECT_EQ(error_of(bad_json).rfind("chat_json: 1:", 0), 0u) << error_of(bad_json);
  EngineRequest bad_message;
  bad_message.messages = {{"user", "a"}, {"user", "\xC3"}};
  EXPECT_EQ(error_of(bad_message), "messages: #/1/content: byte 0: the text is not valid UTF-8");

  const Engine other = Load();
  EXPECT_EQ(error_of(Under(other, kRegex, 1)),
            "grammar: was compiled for another vocabulary than that of this engine");

  EngineRequest cold = Under(engine, kRegex, 1);
  cold.options.sampling.temperature = -1;
  EXPECT_EQ(error_of(cold).rfind("temperature: ", 0), 0u) << error_of(cold);
  EngineRequest tight = Under(engine, "[a-z]{400}", 1);
  tight.options.max_tokens = 3;
  EXPECT_NE(error_of(tight).find("max_tokens"), std::string::npos) << error_of(tight);
  EngineRequest unknown;
  // Before they are tokenized.
  const std::string spaces(1 << 20, ' ');
  EngineRequest spacious;
  spacious.prompt = spaces;
  EXPECT_EQ(error_of(spacious).rfind("prompt: has 1048576 bytes, but 4096 tokens hold no more", 0),
            0u)
      << error_of(spacious);
  spacious = {};
  spacious.messages = {{"user", spaces}};
  EXPECT_EQ(error_of(spacious).rfind("prompt: has 10", 0), 0u) << error_of(spacious);
  spacious = {};
  spacious.extract = ExtractInput{"{}", "a" + spaces};
  EXPECT_EQ(error_of(spacious).rfind("text: has 10", 0), 0u) << error_of(spacious);
  unknown.tokens = {1 << 30};
  EXPECT_EQ(error_of(unknown).rfind("prompt: has token 1073741824", 0), 0u) << error_of(unknown);
}

TEST(EngineTest, MessagesNeedATemplate) {
  Engine engine = Load();
  ASSERT_FALSE(engine.info().has_chat_template) << "the shipped model has got a template";
  EngineRequest request;
  request.messages = {{"user", "x"}};
  const Result<Generation> output = engine.Generate(request);
  ASSERT_FALSE(output.ok());
  EXPECT_NE(output.error().ToString().find("chat template"), std::string::npos)
      << output.error().ToString();
}

TEST(EngineTest, ModelsThatFillMasks) {
  Result<Engine> engine = Engine::Load(kModel + "-diffusion", {});
  ASSERT_TRUE(engine.ok()) << engine.error().ToString();
  EngineRequest request = Under(*engine, kRegex, 3);
  const auto with = [&](const DiffusionOptions& options) {
    request.options.diffusion = options;
    std::string streamed;
    request.options.on_token = [&](TokenId, std::string_view bytes) {
      streamed += bytes;
      return true;
    };
    const Result<Generation> output = engine->Generate(request);
    EXPECT_TRUE(output.ok()) << output.error().ToString();
    EXPECT_EQ(streamed, output->text) << "what is committed from the beginning on";
    return std::pair(output->text, output->stats.forward_calls);
  };
  const auto steps = with({});
  EXPECT_EQ(with({.schedule = "ssd"}).first, steps.first);
  EXPECT_LT(with({.threshold = 0}).second, steps.second);
  request.options.on_token = nullptr;
  request.options.diffusion = {};
  EXPECT_EQ(engine->Search(request, {}).error().place, "strategy");
  EXPECT_EQ(engine->Sample(request, {}).error().place, "sampler");
  EXPECT_EQ(engine->Score(request, std::vector<TokenId>{5}).error().place, "score");
  request.options.logprobs = 1;
  EXPECT_EQ(engine->Generate(request).error().place, "logprobs");
  for (const auto& [sources, place] : {std::pair("auto", ""), std::pair("lookahead", "draft")}) {
    EngineOptions options;
    options.drafts.sources = sources;
    const Result<Engine> drafting = Engine::Load(kModel + "-diffusion", options);
    EXPECT_EQ(drafting.ok() ? "" : drafting.error().place, place);
  }
}

}  // namespace
}  // namespace pawl
