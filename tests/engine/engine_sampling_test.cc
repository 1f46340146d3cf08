// Engine::Sample and Engine::Score as a program outside of the tree sees them. The oracle is the
// command: `pawl generate --sampler` and `pawl score` have to give the same figures to the digit.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/engine.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

const std::string kModel = SourceDir() + "/models/tiny-extract";
constexpr const char* kPrompt = "The answer is ";
constexpr const char* kRegex = "(yes|no), [a-z ]{1,8}";

const std::map<SamplerKind, std::string> kNames = {
    {SamplerKind::kGcd, "gcd"}, {SamplerKind::kFvo, "fvo"},   {SamplerKind::kAwrs, "awrs"},
    {SamplerKind::kSmc, "smc"}, {SamplerKind::kAsap, "asap"}, {SamplerKind::kRs, "rs"},
    {SamplerKind::kArs, "ars"}, {SamplerKind::kCars, "cars"}};

Engine Load(const EngineOptions& options = {}) {
  Result<Engine> engine = Engine::Load(kModel, options);
  EXPECT_TRUE(engine.ok()) << engine.error().ToString();
  return *std::move(engine);
}

std::vector<std::string> Command(const std::string& arguments) {
  const std::string line = std::string(PAWL_COMMAND) + " " + arguments + " 2>/dev/null";
  std::FILE* pipe = ::popen(line.c_str(), "r");
  std::string out;
  char buffer[4096];
  while (const size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, got);
  ::pclose(pipe);
  std::vector<std::string> lines;
  std::istringstream in(out);
  for (std::string each; std::getline(in, each);) lines.push_back(each);
  return lines;
}
std::vector<std::string> Generate(const std::string& more) {
  return Command("generate --model " + kModel + " --prompt '" + kPrompt +
                 "' --max-tokens 12 --json-lines " + more);
}

// Text, tokens, weight and probability; what the report counts depends on what came before.
std::string Figures(const std::string& line) { return line.substr(0, line.find(",\"report\"")); }
void ExpectLines(const Result<SamplerResult>& result, const std::vector<std::string>& lines) {
  ASSERT_TRUE(result.ok()) << result.error().ToString();
  ASSERT_EQ(result->outputs.size(), lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(Figures(OutputJson(result->outputs[i])), Figures(lines[i]));
  }
}

EngineRequest Under(const Engine& engine, const std::string& regex) {
  EngineRequest request;
  request.prompt = kPrompt;
  if (!regex.empty()) request.grammar = *Compiler(engine.vocabulary()).CompileRegex(regex);
  return request;
}
SamplerOptions Options(SamplerKind kind, int n, uint64_t seed = 3) {
  SamplerOptions options{.sampler = kind, .n = n, .seed = seed, .max_tokens = 12};
  // The model hardly ever writes such a text by itself.
  if (kind >= SamplerKind::kRs) options.attempts = 20;
  return options;
}

std::shared_ptr<const Check> No(char letter) {
  return MakeCheck(CheckGranularity::kByte, [letter](const CheckQuestion& q) -> Result<Verdict> {
    return q.text.find(letter) == std::string_view::npos ? Verdict::kAccept : Verdict::kDead;
  });
}

TEST(EngineSamplingTest, SameLinesAsTheCommand) {
  Engine engine = Load();
  for (const auto& [kind, name] : kNames) {
    SCOPED_TRACE(name);
    const std::string attempts = kind >= SamplerKind::kRs ? " --attempts 20" : "";
    ExpectLines(engine.Sample(Under(engine, kRegex), Options(kind, 6)),
                Generate("--regex '" + std::string(kRegex) + "' --n 6 --seed 3 --sampler " + name +
                         attempts));
  }
  SamplerOptions options = Options(SamplerKind::kSmc, 7);
  options.fidelity = Fidelity::kAligned;
  options.temperature = 0.7;
  ExpectLines(engine.Sample(Under(engine, kRegex), options),
              Generate("--regex '" + std::string(kRegex) +
                       "' --n 7 --seed 3 --fidelity aligned --temperature 0.7"));
}

TEST(EngineSamplingTest, FunctionsAndTextsAreChecksLikeThoseOfTheCommand) {
  Engine engine = Load();
  for (const auto& [kind, name] : kNames) {
    if (kind == SamplerKind::kFvo) continue;
    SCOPED_TRACE(name);
    const std::vector<std::string> lines =
        Generate("--n 4 --seed 3 --check 'regex:[^e]{0,9}' --attempts 20 --sampler " + name);
    SamplerOptions options = Options(kind, 4);
    options.attempts = 20;
    options.checks = {*MakeCheckOf("regex:[^e]{0,9}", engine.vocabulary())};
    ExpectLines(engine.Sample(Under(engine, ""), options), lines);
    options.checks = {
        MakeCheck(CheckGranularity::kByte, [](const CheckQuestion& q) -> Result<Verdict> {
          size_t letters = 0;
          for (const char c : q.text) letters += (c & 0xC0) != 0x80;
          return letters < 10 && q.text.find('e') == std::string_view::npos ? Verdict::kAccept
                                                                            : Verdict::kDead;
        })};
    const Result<SamplerResult> result = engine.Sample(Under(engine, ""), options);
    ASSERT_TRUE(result.ok());
    for (const WeightedOutput& out : result->outputs) {
      EXPECT_EQ(out.text.find('e'), std::string::npos);
    }
  }
}

TEST(EngineSamplingTest, AModelProposes) {
  Engine engine = Load();
  EngineOptions coarse;
  coarse.model.dtype = WeightDtype::kInt8;
  Engine other = Load(coarse);
  const EngineRequest request = Under(engine, kRegex);
  SamplerOptions options = Options(SamplerKind::kSmc, 5);
  options.checks = {No('a')};
  const Result<SamplerResult> alone = engine.Sample(request, options);
  const Result<SamplerResult> proposed = engine.Sample(request, options, &other);
  ASSERT_TRUE(alone.ok() && proposed.ok());
  EXPECT_GT(proposed->model_rows, alone->model_rows);
  for (const WeightedOutput& out : proposed->outputs) {
    const Result<std::vector<double>> scores = engine.Score(Under(engine, ""), out.tokens);
    ASSERT_TRUE(scores.ok());
    EXPECT_NEAR(std::accumulate(scores->begin(), scores->end(), 0.0), out.log_probability, 1e-4);
  }
  const Result<SamplerResult> itself = engine.Sample(request, options, &engine);
  ASSERT_FALSE(itself.ok());
  EXPECT_EQ(itself.error().place, "proposal");
}

TEST(EngineSamplingTest, ThreadsAndBatchesChangeNothing) {
  std::vector<SamplerResult> results[8];
  for (const auto& [threads, batch] : {std::pair(1, 1), {3, 32}, {2, 7}}) {
    EngineOptions setting;
    setting.model.threads = threads;
    Engine engine = Load(setting);
    for (const auto& [kind, name] : kNames) {
      SamplerOptions options = Options(kind, 6);
      options.batch = batch;
      options.checks = {No('e'), No('x')};
      const Result<SamplerResult> result = engine.Sample(Under(engine, "[a-z ]{2,9}"), options);
      ASSERT_TRUE(result.ok());
      results[static_cast<size_t>(kind)].push_back(*result);
    }
  }
  for (const std::vector<SamplerResult>& of : results) {
    for (const SamplerResult& each : of) {
      ASSERT_EQ(each.outputs.size(), of[0].outputs.size());
      for (size_t i = 0; i < each.outputs.size(); ++i) {
        EXPECT_EQ(each.outputs[i].tokens, of[0].outputs[i].tokens);
        EXPECT_EQ(each.outputs[i].log_weight, of[0].outputs[i].log_weight);
        EXPECT_EQ(each.outputs[i].report.evaluations, of[0].outputs[i].report.evaluations);
      }
    }
  }
}

TEST(EngineSamplingTest, WhatWasLearntIsKept) {
  for (const size_t bytes : {size_t{64} << 20, size_t{0}}) {
    EngineOptions setting;
    setting.oracle_bytes = bytes;
    Engine engine = Load(setting);
    const EngineRequest request = Under(engine, "[ab]{2}");
    const SamplerOptions options = Options(SamplerKind::kAsap, 60);
    const Result<SamplerResult> first = engine.Sample(request, options);
    const Result<SamplerResult> again = engine.Sample(request, options);
    SamplerOptions warmer = options;
    warmer.temperature = 1.2;
    const Result<SamplerResult> other = engine.Sample(request, warmer);
    const Result<SamplerResult> third = engine.Sample(request, options);
    ASSERT_TRUE(first.ok() && again.ok() && other.ok() && third.ok());
    const auto rows = [](const SamplerResult& r) {
      int64_t sum = 0;
      for (const WeightedOutput& out : r.outputs) sum += out.report.model_rows;
      return sum;
    };
    if (bytes > 0) {
      EXPECT_EQ(rows(*again), 0);
      EXPECT_EQ(rows(*third), 0);
      EXPECT_LE(again->outputs.back().report.theta, first->outputs.back().report.theta);
      EXPECT_GT(rows(*other), 0);
    } else {
      ExpectLines(again, [&] {
        std::vector<std::string> lines;
        for (const WeightedOutput& out : first->outputs) lines.push_back(OutputJson(out));
        return lines;
      }());
    }
  }
}

// With memory for little more than one run: pages that a run kept would be missed soon.
TEST(EngineSamplingTest, CancelledRunsGiveTheirMemoryBack) {
  EngineOptions setting;
  setting.max_batch = 1;
  setting.model.kv_bytes = 4 << 20;
  setting.model.kept_kv_bytes = 0;
  Engine engine = Load(setting);
  EngineRequest request = Under(engine, kRegex);
  request.options.max_tokens = 20;
  const Result<Generation> before = engine.Generate(request);
  ASSERT_TRUE(before.ok()) << before.error().ToString();
  for (int round = 0; round < 12; ++round) {
    for (const auto& [kind, name] : kNames) {
      SamplerOptions options = Options(kind, 20, static_cast<uint64_t>(round));
      options.batch = 8;
      int told = 0;
      options.on_output = [&](const WeightedOutput&) { return ++told < 2; };
      const Result<SamplerResult> cancelled = engine.Sample(request, options);
      ASSERT_TRUE(cancelled.ok()) << name << ": " << cancelled.error().ToString();
      EXPECT_TRUE(cancelled->cancelled);
      EXPECT_EQ(cancelled->outputs.size(), 2u);
      options.on_output = {};
      std::atomic<int> asked = 0;
      options.checks = {
          MakeCheck(CheckGranularity::kByte, [&](const CheckQuestion&) -> Result<Verdict> {
            if (++asked < 9) return Verdict::kAccept;
            return Error{ErrorCode::kIo, "is gone", "the database"};
          })};
      options.n = 2;
      const Result<SamplerResult> failed = engine.Sample(request, options);
      if (!failed.ok()) {
        EXPECT_EQ(failed.error().ToString(), "the database: is gone");
      }
    }
  }
  const Result<Generation> after = engine.Generate(request);
  ASSERT_TRUE(after.ok()) << after.error().ToString();
  EXPECT_EQ(after->text, before->text);
}

TEST(EngineSamplingTest, ScoresAreThoseOfTheCommand) {
  Engine engine = Load();
  const EngineRequest request = Under(engine, "");
  for (const std::string text : {"yes", "no, not at all", "h\xC3\xA9"}) {
    for (const double temperature : {1.0, 0.5}) {
      const Result<std::vector<double>> scores =
          engine.Score(request, engine.Encode(text), temperature);
      ASSERT_TRUE(scores.ok());
      const std::vector<std::string> lines =
          Command("score --model " + kModel + " --prompt '" + kPrompt + "' --text '" + text +
                  "' --temperature " + std::to_string(temperature));
      ASSERT_EQ(lines.size(), 1u);
      EXPECT_NEAR(std::accumulate(scores->begin(), scores->end(), 0.0), std::stod(lines[0]), 1e-9);
    }
  }
  const Result<SamplerResult> result =
      engine.Sample(Under(engine, kRegex), Options(SamplerKind::kSmc, 5));
  ASSERT_TRUE(result.ok());
  for (const WeightedOutput& out : result->outputs) {
    const Result<std::vector<double>> scores = engine.Score(request, out.tokens);
    ASSERT_TRUE(scores.ok());
    EXPECT_NEAR(std::accumulate(scores->begin(), scores->end(), 0.0), out.log_probability, 1e-4);
  }
}

// The bar for checks: at most 5 % of what asking about the whole vocabulary at every step costs,
// and no fewer valid outputs. A mask is what asking about everything gives.
TEST(EngineSamplingTest, ChecksAreAskedAboutFewTokens) {
  Engine engine = Load();
  const std::string schema = SourceDir() + "/schemas/examples/contact.json";
  std::ifstream file(schema);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Compiler compiler(engine.vocabulary());
  EngineRequest request;
  request.prompt = "Ann Lee works at Harrow Ltd. Phone: 020 7946 0018.\n";
  request.grammar = *compiler.CompileJsonSchema(text);
  SamplerOptions options{.sampler = SamplerKind::kGcd, .n = 6, .max_tokens = 300};
  const Result<SamplerResult> masked = engine.Sample(request, options);
  // The mask knows the keys, the check all the rest.
  request.grammar = *compiler.CompileJsonSchema(
      R"({"type":"object","properties":{"name":true,"email":true,"phone":true,"company":true,)"
      R"("job_title":true,"city":true},"required":["name","email","phone","company","job_title",)"
      R"("city"],"additionalProperties":false})");
  options.sampler = SamplerKind::kAwrs;
  options.checks = {*MakeCheckOf("schema:" + schema, engine.vocabulary())};
  const Result<SamplerResult> checked = engine.Sample(request, options);
  ASSERT_TRUE(masked.ok() && checked.ok());
  int64_t steps = 0, asked = 0;
  int valid_masked = 0, valid_checked = 0;
  for (const WeightedOutput& out : masked->outputs) valid_masked += out.report.valid;
  for (const WeightedOutput& out : checked->outputs) {
    valid_checked += out.report.valid;
    asked += out.report.evaluations;
    steps += static_cast<int64_t>(out.report.removed.size());
  }
  EXPECT_GE(valid_masked, 4);
  EXPECT_GE(valid_checked, valid_masked);
  EXPECT_GT(asked, steps);
  EXPECT_LE(asked * 20, steps * engine.vocabulary()->size());
}

// A check without any mask, where the model hardly ever writes what is valid. Beginnings of refused
// tokens save most questions, and change neither an output nor a weight.
TEST(EngineSamplingTest, BeginningsSaveQuestions) {
  Engine engine = Load();
  const std::string regex = "[A-Za-z ,.]{4,12}";
  EngineRequest request;
  request.prompt = kPrompt;
  for (const SamplerKind kind : {SamplerKind::kAwrs, SamplerKind::kSmc}) {
    SamplerOptions options = Options(kind, 20);
    options.max_tokens = 20;
    options.checks = {*MakeCheckOf("regex:" + regex, engine.vocabulary())};
    const Result<SamplerResult> few = engine.Sample(request, options);
    options.checks = {*MakeCheckOf("regex@token:" + regex, engine.vocabulary())};
    const Result<SamplerResult> many = engine.Sample(request, options);
    ASSERT_TRUE(few.ok() && many.ok());
    int64_t steps = 0, asked = 0, asked_of_tokens = 0;
    for (size_t i = 0; i < few->outputs.size(); ++i) {
      const WeightedOutput& out = few->outputs[i];
      EXPECT_EQ(out.tokens, many->outputs[i].tokens);
      EXPECT_EQ(out.log_weight, many->outputs[i].log_weight);
      EXPECT_EQ(out.report.draws, many->outputs[i].report.draws);
      steps += static_cast<int64_t>(out.report.removed.size());
      asked += out.report.evaluations;
      asked_of_tokens += many->outputs[i].report.evaluations;
    }
    EXPECT_LE(asked * 20, steps * engine.vocabulary()->size());
    EXPECT_LT(asked * 3, asked_of_tokens);
  }
}

TEST(EngineSamplingTest, ErrorsSayWhatIsWrongAndWhere) {
  Engine engine = Load();
  Engine other = Load();
  const EngineRequest request = Under(engine, kRegex);
  const auto place = [&](const EngineRequest& asked, const SamplerOptions& options) {
    const Result<SamplerResult> result = engine.Sample(asked, options);
    return result.ok() ? "none" : result.error().place;
  };
  using Options = SamplerOptions;
  EXPECT_EQ(place(request, Options{.n = 0}), "n");
  EXPECT_EQ(place(request, Options{.n = 1 << 30}), "n");
  EXPECT_EQ(place(request, Options{.particles = 1 << 20}), "particles");
  EXPECT_EQ(place(request, Options{.temperature = 0}), "temperature");
  EXPECT_EQ(place(request, Options{.checks = {nullptr}}), "checks");
  EXPECT_EQ(place(request, Options{.accepts = 1}), "accepts");
  EXPECT_EQ(place(request, Options{.batch = 0}), "batch");
  EXPECT_EQ(place(Under(other, kRegex), Options{}), "grammar");
  EngineRequest two = request;
  two.messages = {{"user", "x"}};
  EXPECT_EQ(place(two, Options{}), "prompt");
  EngineRequest longest = request;
  longest.prompt = std::string(200000, 'x');
  EXPECT_EQ(place(longest, Options{}), "prompt");
  const Result<SamplerResult> long_prompt = engine.Sample(longest, Options{});
  ASSERT_FALSE(long_prompt.ok());
  EXPECT_EQ(long_prompt.error().code, ErrorCode::kLimit);
  const TokenId unknown[] = {1 << 20};
  const Result<std::vector<double>> score = engine.Score(Under(engine, ""), unknown);
  ASSERT_FALSE(score.ok());
  EXPECT_EQ(score.error().place, "tokens");
  EXPECT_FALSE(engine.Score(Under(engine, ""), {}, -1).ok());
}

}  // namespace
}  // namespace pawl
