// Outputs of tiny random models that fill masks: options of the loop, schedules and caches, and
// what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/base/file.h"
#include "src/base/json_reader.h"
#include "src/decode/check_input.h"
#include "src/decode/diffusion/mask_filler.h"
#include "tests/search/tiny_filler.h"

namespace pawl {
namespace {

TEST(DiffusionWorkTest, RequestsShareCallsAndKeepTheirOutputs) {
  for (const char* name : {"llada", "dream"}) {
    TinyFiller tiny(name);
    GenerateOptions options;
    options.max_tokens = 40;
    const std::string regex = "\\{\"ab\":[0-9]{3,9},\"x\":\\[\"[a-z]{2,20}\"\\]\\}";
    std::vector<std::string> streamed(1);
    const auto together = tiny.Run(4, regex, options);
    const int64_t shared = tiny.calls;
    int64_t alone = 0;
    options.on_token = [&](TokenId, std::string_view bytes) {
      streamed[0] += bytes;
      return true;
    };
    const auto first = tiny.Run(1, regex, options);
    for (const Result<Generation>& output : together) {
      ASSERT_TRUE(output.ok()) << output.error().ToString();
      EXPECT_EQ(output->stop, StopReason::kEnd);
      const Grammar grammar = *Compiler(tiny.vocabulary).CompileRegex(regex);
      alone += output->stats.forward_calls;
      const auto end = grammar.Start().Advance(std::string_view(output->text));
      ASSERT_TRUE(end.has_value()) << output->text;
      EXPECT_TRUE(end->accepting()) << output->text;
    }
    EXPECT_EQ(first[0]->text, together[0]->text);
    EXPECT_EQ(streamed[0], together[0]->text);
    EXPECT_LT(shared, alone);
    EXPECT_EQ(dynamic_cast<const TransformerCpu&>(*tiny.model).sequences().pool().in_use(), 0);
  }
}

TEST(DiffusionWorkTest, RefusesWhatMeansNothing) {
  TinyFiller tiny("dream");
  GenerateOptions options;
  options.max_tokens = 8;
  const auto place = [&] {
    const auto output = tiny.Run(1, "", options);
    return output[0].ok() ? "" : output[0].error().place;
  };
  EXPECT_EQ(place(), "");
  options.logprobs = 3;
  EXPECT_EQ(place(), "logprobs");
  options.logprobs = -1;
  options.sampling.top_k = 5;
  EXPECT_EQ(place(), "top_k");
  options.sampling.top_k = 0;
  options.sampling.repetition_penalty = 2;
  EXPECT_EQ(place(), "repetition_penalty");
  options.sampling.repetition_penalty = 1;
  options.sampling.draft_lanes = 4;
  EXPECT_EQ(place(), "draft_lanes");
  options.sampling.draft_lanes = 1;
  for (const auto& [stage, name] : std::vector<std::pair<SamplerStages, std::string>>{
           {{.typical_p = 0.5f}, "typical_p"},
           {{.xtc_probability = 0.5f}, "xtc_probability"},
           {{.dry_multiplier = 1}, "dry_multiplier"},
           {{.mirostat = 2}, "mirostat"},
           {{.dynatemp_range = 1}, "dynatemp_range"},
           {{.momentum_alpha = 1}, "momentum_alpha"},
           {{.order = "top_k"}, "samplers"}}) {
    options.sampling.stages = stage;
    EXPECT_EQ(place(), name);
  }
}

// Sums of logits may leave the range of numbers.
TEST(DiffusionWorkTest, GuidanceAtItsMostIsValid) {
  for (const char* name : {"llada", "dream"}) {
    TinyFiller tiny(name);
    GenerateOptions options;
    options.max_tokens = 16;
    options.diffusion.cfg_scale = 1e6;
    const auto output = tiny.Run(1, "[xyz]{3,12}", options);
    ASSERT_TRUE(output[0].ok()) << output[0].error().ToString();
    EXPECT_EQ(output[0]->text.find_first_not_of("xyz"), std::string::npos) << output[0]->text;
  }
}

// All outputs take 20 tokens of the 24 of the canvas.
TEST(DiffusionWorkTest, OptionsSayHowManyCalls) {
  TinyFiller tiny("dream");
  GenerateOptions options;
  options.max_tokens = 24;
  const auto calls = [&](const DiffusionOptions& given) {
    options.diffusion = given;
    const auto output = tiny.Run(1, "[xyz]{20}", options);
    if (!output[0].ok()) return -1;
    EXPECT_EQ(output[0]->text.size(), 20u);
    return output[0]->stats.forward_calls;
  };
  EXPECT_EQ(calls({.threshold = 0}), 1);
  EXPECT_EQ(calls({.threshold = 0, .block_length = 5}), 4);
  EXPECT_GE(calls({.threshold = 1}), 20);
  EXPECT_EQ(calls({.steps = 4}), 4);
  EXPECT_GE(calls({}), 18) << "a step for each position, but for those without a choice";
  EXPECT_EQ(calls({.steps = 1, .block_length = 10}), 2) << "a call for each block";
  EXPECT_EQ(calls({.steps = 5, .block_length = 1 << 30}), 5);
  // At most as sure as by the share.
  const int by_share = calls({.threshold = 0.5, .alg = "maskgit_plus"});
  EXPECT_EQ(by_share, calls({.threshold = 0.5}));
  EXPECT_GT(calls({.threshold = 0.5, .alg = "topk_margin"}), by_share);
  EXPECT_GT(calls({.threshold = 0.5, .alg = "entropy"}), by_share);
}

TEST(DiffusionWorkTest, RandomMasksFollowTheSeed) {
  TinyFiller tiny("llada");
  GenerateOptions options;
  options.max_tokens = 24;
  options.diffusion = {.steps = 12, .remasking = "random"};
  std::set<std::string> texts;
  for (const uint64_t seed : {1, 2, 3, 1, 2, 3}) {
    options.sampling.seed = seed;
    const auto output = tiny.Run(1, "[a-z]{10,20}", options);
    ASSERT_TRUE(output[0].ok()) << output[0].error().ToString();
    texts.insert(output[0]->text);
  }
  EXPECT_GT(texts.size(), 1u);
  EXPECT_LE(texts.size(), 3u);
}

TEST(DiffusionWorkTest, ErrorsNameTheOptionOfTheLoop) {
  TinyFiller dream("dream"), llada("llada");
  const auto place = [&](const DiffusionOptions& given, TinyFiller& tiny) {
    GenerateOptions options;
    options.max_tokens = 4;
    options.diffusion = given;
    const auto output = tiny.Run(1, "", options);
    return output[0].ok() ? "" : output[0].error().place;
  };
  EXPECT_EQ(place({.threshold = 1.1}, dream), "diffusion.threshold");
  EXPECT_EQ(place({.threshold = -0.1}, dream), "diffusion.threshold");
  EXPECT_EQ(place({.threshold = std::nan("")}, dream), "diffusion.threshold");
  EXPECT_EQ(place({.steps = 0}, dream), "diffusion.steps");
  EXPECT_EQ(place({.steps = 3, .threshold = 0.5}, dream), "diffusion.steps");
  EXPECT_EQ(place({.block_length = 0}, dream), "diffusion.block_length");
  EXPECT_EQ(place({.remasking = "low_confidence"}, dream), "diffusion.remasking");
  EXPECT_EQ(place({.remasking = "low_confidence"}, llada), "");
  EXPECT_EQ(place({.remasking = "surest"}, llada), "diffusion.remasking");
  EXPECT_EQ(place({.remasking = "random"}, llada), "");
  EXPECT_EQ(place({.threshold = 0.5, .remasking = "random"}, llada), "diffusion.remasking");
  EXPECT_EQ(place({.alg = "entropy"}, llada), "diffusion.alg");
  EXPECT_EQ(place({.alg_temp = 1}, llada), "diffusion.alg_temp");
  EXPECT_EQ(place({.eps = 0.1}, llada), "diffusion.eps");
  EXPECT_EQ(place({.alg = "best"}, dream), "diffusion.alg");
  EXPECT_EQ(place({.alg = "origin", .alg_temp = 1}, dream), "diffusion.alg_temp");
  EXPECT_EQ(place({.eps = 1}, dream), "diffusion.eps");
  EXPECT_EQ(place({.alg_temp = -1}, dream), "diffusion.alg_temp");
  EXPECT_EQ(place({.schedule = "fast"}, dream), "diffusion.schedule");
  EXPECT_EQ(place({.schedule = "ssd", .threshold = 0.5}, dream), "diffusion.threshold");
  EXPECT_EQ(place({.threshold = 0.5, .factor = 1}, dream), "diffusion.factor");
  EXPECT_EQ(place({.schedule = "localleap", .factor = 1}, dream), "diffusion.factor");
  EXPECT_EQ(place({.schedule = "threshold", .alg = "origin"}, dream), "diffusion.alg");
  EXPECT_EQ(place({.cfg_scale = -1}, llada), "diffusion.cfg_scale");
  EXPECT_EQ(place({.cfg_scale = 1e38}, llada), "diffusion.cfg_scale");
  EXPECT_EQ(place({.cache = "all"}, llada), "diffusion.cache");
  EXPECT_EQ(place({.kv_refresh = 2}, llada), "diffusion.kv_refresh");
  EXPECT_EQ(place({.cache = "dkv", .kv_refresh = 0}, llada), "diffusion.kv_refresh");
}

TEST(DiffusionWorkTest, CausalModelsRefuseTheOptions) {
  const std::pair<DiffusionOptions, std::string> kGiven[] = {{{.schedule = "ssd"}, "schedule"},
                                                             {{.threshold = 0.9}, "threshold"},
                                                             {{.factor = 1}, "factor"},
                                                             {{.steps = 8}, "steps"},
                                                             {{.block_length = 8}, "block_length"},
                                                             {{.remasking = "random"}, "remasking"},
                                                             {{.alg = "entropy"}, "alg"},
                                                             {{.alg_temp = 0}, "alg_temp"},
                                                             {{.eps = 0}, "eps"},
                                                             {{.cfg_scale = 0}, "cfg_scale"},
                                                             {{.cache = "none"}, "cache"},
                                                             {{.kv_refresh = 2}, "kv_refresh"}};
  for (const auto& [given, name] : kGiven) {
    const Status status = RefuseDiffusion(given);
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().place, "diffusion." + name);
    EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  }
  EXPECT_TRUE(RefuseDiffusion({}).ok());
}

TEST(DiffusionWorkTest, TheSeedDecides) {
  TinyFiller tiny("llada");
  GenerateOptions options;
  options.max_tokens = 24;
  options.sampling.temperature = 2;
  std::set<std::string> texts;
  for (const uint64_t seed : {1, 2, 3, 1, 2, 3}) {
    options.sampling.seed = seed;
    const auto output = tiny.Run(1, "[a-z]{10,20}", options);
    ASSERT_TRUE(output[0].ok());
    texts.insert(output[0]->text);
  }
  EXPECT_EQ(texts.size(), 3u);
}

// Text and calls.
using Said = std::pair<std::string, int>;
Said SaidWith(TinyFiller& tiny, const DiffusionOptions& given, float temperature = 0) {
  GenerateOptions options;
  options.max_tokens = 48;
  options.sampling.temperature = temperature;
  options.sampling.seed = 5;
  options.diffusion = given;
  const auto output = tiny.Run(1, "\\{\"ab\":[0-9]{3,9},\"x\":\\[\"[a-z]{20,30}\"\\]\\}", options);
  if (!output[0].ok()) return {output[0].error().ToString(), -1};
  return {output[0]->text, output[0]->stats.forward_calls};
}

TEST(DiffusionWorkTest, OptionsAtTheirLimitsAreOff) {
  TinyFiller dream("dream"), llada("llada");
  for (TinyFiller* const tiny : {&dream, &llada}) {
    const Said steps = SaidWith(*tiny, {.steps = 12}, 1);
    EXPECT_EQ(SaidWith(*tiny, {.schedule = "stepwise", .steps = 12}, 1), steps);
    EXPECT_EQ(SaidWith(*tiny, {.steps = 12, .cfg_scale = 0}, 1), steps);
    EXPECT_NE(SaidWith(*tiny, {.steps = 12, .cfg_scale = 3}, 1).first, steps.first);
    EXPECT_EQ(SaidWith(*tiny, {.factor = 0}), SaidWith(*tiny, {.threshold = 1}));
    EXPECT_EQ(SaidWith(*tiny, {.schedule = "threshold"}), SaidWith(*tiny, {.threshold = 0.9}));
    for (const char* cache : {"none", "prefix", "dual", "dkv"}) {
      DiffusionOptions kept = {.steps = 12, .cache = cache};
      if (kept.cache != "none") kept.kv_refresh = 1;
      EXPECT_EQ(SaidWith(*tiny, kept, 1), steps) << cache;
    }
  }
  const Said steps = SaidWith(dream, {.steps = 12});
  EXPECT_EQ(SaidWith(dream, {.steps = 12, .alg_temp = 0}), steps);
  EXPECT_NE(SaidWith(dream, {.steps = 12, .alg_temp = 5}).first, steps.first);
  EXPECT_NE(SaidWith(dream, {.steps = 12, .alg = "origin"}).first, steps.first);
}

TEST(DiffusionWorkTest, DraftedCanvasesChangeNoOutput) {
  TinyFiller dream("dream"), llada("llada");
  int fewer = 0;
  for (TinyFiller* const tiny : {&dream, &llada}) {
    for (const char* cache : {"none", "prefix", "dual"}) {
      for (const double scale : {0.0, 1.0}) {
        const float temperature = scale > 0 ? 1 : 0;
        DiffusionOptions given = {.block_length = 24, .cfg_scale = scale, .cache = cache};
        const auto [text, calls] = SaidWith(*tiny, given, temperature);
        given.schedule = "ssd";
        const auto [same, drafted] = SaidWith(*tiny, given, temperature);
        EXPECT_EQ(same, text) << cache;
        EXPECT_LE(drafted, calls);
        fewer += drafted < calls;
      }
    }
  }
  EXPECT_GT(fewer, 3);
}

TEST(DiffusionWorkTest, EveryScheduleWithEveryCacheIsValid) {
  TinyFiller dream("dream"), llada("llada");
  const auto& vocabulary = dream.vocabulary;
  std::vector<std::string> schemas;
  for (int i = 0; i < 20; ++i) {
    const std::string few = std::to_string(1 + i % 4), more = std::to_string(5 + i % 7);
    schemas.push_back(R"({"type":"object","properties":{"ab":{"type":"string","pattern":"^[a-z]{)" +
                      few + "," + more + R"(}$"},"x":{"type":"array","maxItems":)" + few +
                      R"(,"items":{"enum":[1,12,"ab",{"a":)" + more +
                      R"(}]}}},"required":["ab"],"additionalProperties":false})");
  }
  std::set<std::string> texts;
  for (const char* cache : {"none", "prefix", "dual", "dkv"}) {
    for (const char* schedule : {"stepwise", "threshold", "prophet", "localleap", "ssd"}) {
      for (size_t i = 0; i < 2 * schemas.size(); ++i) {
        const bool shifted = i >= schemas.size();
        const size_t n = i % schemas.size();
        GenerateOptions options;
        options.max_tokens = 64;
        options.sampling.seed = n;
        options.sampling.temperature = n % 3 == 0 ? 1 : 0;
        options.diffusion = {.schedule = schedule, .cache = cache};
        options.diffusion.block_length = n % 5 < 3 ? 16 : 64;
        if (shifted) options.diffusion.alg = "entropy";
        const std::string name = schedule;
        if (name != "threshold" && name != "localleap") options.diffusion.steps = 8;
        const Grammar grammar = *Compiler(vocabulary).CompileJsonSchema(schemas[n]);
        const auto output = (shifted ? dream : llada).RunIn(1, grammar, options);
        ASSERT_TRUE(output[0].ok()) << output[0].error().ToString();
        const auto end = grammar.Start().Advance(std::string_view(output[0]->text));
        ASSERT_TRUE(end.has_value()) << output[0]->text;
        EXPECT_TRUE(end->accepting()) << cache << " " << schedule << " " << output[0]->text;
        texts.insert(output[0]->text);
      }
    }
  }
  EXPECT_GT(texts.size(), 100u);
}

TEST(DiffusionWorkTest, EveryKindOfConstraint) {
  TinyFiller dream("dream"), llada("llada");
  const Compiler compiler(dream.vocabulary);
  const std::vector<std::string> choices = {"abc", "x12", "abcdefghi"};
  const std::pair<const char*, Result<Grammar>> grammars[] = {
      {"schema", compiler.CompileJsonSchema(R"({"type":"array","items":{"enum":[1,"a"]},)"
                                            R"("minItems":2,"maxItems":5})")},
      {"choice", compiler.CompileChoice(choices)},
      {"substring", compiler.CompileSubstring("abcxyz12345")},
      {"grammar",
       compiler.CompileGrammar("root ::= \"{\" list \"}\"\nlist ::= [a-z]+ | [0-9] \",\" list\n",
                               GrammarLanguage::kGbnf)},
      {"tag", compiler.CompileStructuralTag(
                  R"({"type":"structural_tag","format":{"type":"tag","begin":"ab{","content":)"
                  R"({"type":"json_schema","json_schema":{"enum":[12,[3]]}},"end":"}"}})")},
  };
  for (const auto& [name, grammar] : grammars) {
    ASSERT_TRUE(grammar.ok()) << name << ": " << grammar.error().ToString();
    for (TinyFiller* const tiny : {&dream, &llada}) {
      GenerateOptions options;
      options.max_tokens = 32;
      options.sampling.temperature = 1;
      options.diffusion.threshold = 0.3;
      options.diffusion.block_length = 32;
      const auto output = tiny->RunIn(1, *grammar, options);
      ASSERT_TRUE(output[0].ok()) << name << ": " << output[0].error().ToString();
      const auto end = grammar->Start().Advance(std::string_view(output[0]->text));
      ASSERT_TRUE(end.has_value()) << name << ": " << output[0]->text;
      EXPECT_TRUE(end->accepting()) << name << ": " << output[0]->text;
    }
  }
}

TEST(DiffusionWorkTest, GapsStandInOneCanvas) {
  TinyFiller dream("dream"), llada("llada");
  for (TinyFiller* const tiny : {&dream, &llada}) {
    const Grammar grammar =
        *Compiler(tiny->vocabulary)
             .CompileRegex("\\{\"ab\":[0-9]{2,5},\"x\":\"[a-z]{1,9}\",\"y\":1?\\}");
    for (const char* cache : {"none", "prefix", "dual", "dkv"}) {
      GenerateOptions options;
      options.max_tokens = 20;
      options.diffusion = {.schedule = "ssd", .cache = cache};
      options.diffusion.prefix = "{\"ab\":";
      options.diffusion.gaps = {",\"x\":\"", "\",\"y\":", "}"};
      options.diffusion.gap_tokens = 8;
      size_t canvases = 0;
      std::vector<TokenId> last;
      options.diffusion.on_canvas = [&](std::span<const TokenId> canvas) {
        ++canvases;
        last.assign(canvas.begin(), canvas.end());
      };
      const auto output = tiny->RunIn(1, grammar, options);
      ASSERT_TRUE(output[0].ok()) << output[0].error().ToString();
      ASSERT_EQ(output[0]->gaps.size(), 3u);
      const std::string text = output[0]->gaps[0] + ",\"x\":\"" + output[0]->gaps[1] +
                               "\",\"y\":" + output[0]->gaps[2] + "}";
      EXPECT_EQ(output[0]->text, text);
      const auto end = grammar.Start().Advance(options.diffusion.prefix + text);
      ASSERT_TRUE(end.has_value()) << text;
      EXPECT_TRUE(end->accepting()) << text;
      EXPECT_EQ(canvases, static_cast<size_t>(output[0]->stats.forward_calls));
      EXPECT_EQ(last, output[0]->tokens);
    }
    GenerateOptions options;
    const auto error_of = [&](const DiffusionOptions& given, const char* regex) {
      options.diffusion = given;
      const auto output = tiny->Run(1, regex, options);
      return output[0].ok() ? "" : output[0].error().ToString();
    };
    EXPECT_EQ(error_of({.gaps = {"b"}, .gap_tokens = 4}, "[0-9]{8}ab"),
              "diffusion.gap_tokens: gap 1 has no output that is known to fit 4 tokens");
    EXPECT_NE(error_of({.gaps = {"b", "c"}}, "[0-9]{2}b[0-9]a").find("diffusion.gaps: gap "),
              std::string::npos);
    EXPECT_EQ(error_of({.gap_tokens = 4}, "a"), "diffusion.gap_tokens: needs gaps");
    EXPECT_EQ(error_of({.gaps = std::vector<std::string>(65, "b"), .gap_tokens = 1}, "[ab]*"),
              "diffusion.gaps: are 65, and at most 64 are filled together");
    // Before anything of that size is made.
    EXPECT_NE(error_of({.gaps = {"b", "b"}, .gap_tokens = 2147483647}, "[ab]*")
                  .find("diffusion.gap_tokens: the canvas with its gaps takes at least"),
              std::string::npos);
    EXPECT_EQ(error_of({.gaps = {"a"}}, ""), "diffusion.gaps: need a grammar of the whole text");
  }
}

std::vector<TokenId> TokensAt(const JsonReader& in) {
  std::vector<TokenId> tokens;
  for (const JsonReader token : in.items()) {
    tokens.push_back(static_cast<TokenId>(token.Whole(0, 100)));
  }
  return tokens;
}

// Canvases that a program in Python has filled (scripts/make_diffusion_loops.py).
TEST(DiffusionWorkTest, LoopsEqualThoseOfAnotherProgram) {
  TinyFiller dream("dream"), llada("llada");
  const auto text = ReadFile(SourceDir() + "/tests/data/models/diffusion/loops.json");
  ASSERT_TRUE(text.ok());
  const auto value = json::Parse(*text);
  ASSERT_TRUE(value.ok());
  int canvases = 0;
  const JsonReader loops(*value);
  for (const JsonReader loop : loops.items()) {
    BatchRequest request;
    request.prompt = TokensAt(loop["prompt"]);
    GenerateOptions& options = request.options;
    options.max_tokens = static_cast<int>(loop["length"].Whole(1, 100));
    options.sampling.temperature = static_cast<float>(loop["temperature"].Number());
    options.sampling.seed = static_cast<uint64_t>(loop["seed"].Whole());
    const JsonReader given = loop["diffusion"];
    const auto number = [&](const char* name, std::optional<double>& out) {
      if (given[name].present()) out = given[name].Number();
    };
    const auto count = [&](const char* name, std::optional<int>& out) {
      if (given[name].present()) out = static_cast<int>(given[name].Whole(1, 100));
    };
    count("steps", options.diffusion.steps);
    count("block_length", options.diffusion.block_length);
    number("threshold", options.diffusion.threshold);
    number("factor", options.diffusion.factor);
    number("cfg_scale", options.diffusion.cfg_scale);
    number("alg_temp", options.diffusion.alg_temp);
    number("eps", options.diffusion.eps);
    given["schedule"].Read(options.diffusion.schedule);
    given["remasking"].Read(options.diffusion.remasking);
    given["alg"].Read(options.diffusion.alg);
    TinyFiller& tiny = loop["model"].String() == "dream" ? dream : llada;
    BatchEngine engine(*tiny.model, tiny.vocabulary, {}, {});
    request.done = [&](const Result<Generation>& output) {
      ASSERT_TRUE(output.ok()) << output.error().ToString();
      EXPECT_EQ(output->tokens, TokensAt(loop["tokens"])) << loop.place();
      EXPECT_EQ(output->stats.forward_calls, loop["calls"].Whole()) << loop.place();
      ++canvases;
    };
    engine.Add(std::move(request));
    while (engine.Step()) {
    }
  }
  EXPECT_EQ(canvases, 400);
}

}  // namespace
}  // namespace pawl
