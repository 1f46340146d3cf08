// AsyncEngine: requests of several threads share the calls of one model, and what each gets is what
// it gets alone.
#include "src/engine/async_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "src/decode/sampling/run.h"
#include "tests/source_dir.h"
#include "tests/support/model_around.h"

namespace pawl {
namespace {

const std::string kModel = SourceDir() + "/models/tiny-extract";

// Counts the calls of the model, and waits before the first one until it is opened.
class Counted : public ModelAround {
 public:
  struct Counts {
    std::atomic<int64_t> calls{0};
    std::atomic<int> fail_next{0};  // calls that throw
    std::mutex mutex;
    std::condition_variable changed;
    bool open = true;

    void Open(bool value) {
      const std::lock_guard lock(mutex);
      open = value;
      changed.notify_all();
    }
  };
  Counted(std::unique_ptr<Model> inner, Counts& counts)
      : ModelAround(std::move(inner)), counts_(counts) {}
  Status Run(const ModelCall& call) override {
    {
      std::unique_lock lock(counts_.mutex);
      counts_.changed.wait(lock, [&] { return counts_.open; });
    }
    ++counts_.calls;
    if (counts_.fail_next > 0) {
      --counts_.fail_next;
      throw std::bad_alloc();
    }
    return inner_.Run(call);
  }

 private:
  Counts& counts_;
};

// A model whose calls are counted, and engines of it one after the other.
struct CountedSetup {
  CountedSetup() {
    Result<std::unique_ptr<LoadedModel>> opened =
        LoadedModel::Open(kModel, {.text = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n"
                                           "{% endfor %}[assistant] "});
    EXPECT_TRUE(opened.ok()) << opened.error().ToString();
    model = *std::move(opened);
    ModelOptions options;
    options.threads = 1;
    EXPECT_TRUE(model->LoadWeights(options).ok());
    model->WrapModel([this](std::unique_ptr<Model> inner) {
      return std::make_unique<Counted>(std::move(inner), counts);
    });
  }
  Grammar Regex(const char* text) const {
    return *Compiler(model->vocabulary()).CompileRegex(text);
  }

  Counted::Counts counts;
  std::unique_ptr<LoadedModel> model;
};

EngineRequest Chat(int number, int tokens = 40) {
  EngineRequest request;
  request.messages = {{"user", "Tell me of " + std::string(static_cast<size_t>(number) + 1, 'x')}};
  request.options.max_tokens = tokens;
  request.options.sampling = {.temperature = 1, .seed = static_cast<uint64_t>(number)};
  return request;
}

SamplerOptions EightParticles() {
  SamplerOptions options;
  options.sampler = SamplerKind::kSmc;
  options.n = options.particles = options.batch = 8;
  options.max_tokens = 40;
  options.temperature = 1;
  options.seed = 5;
  return options;
}

// Waits until so many callbacks have come.
class Count {
 public:
  void Add() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  void WaitFor(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

void ExpectSame(const SamplerResult& got, const SamplerResult& wanted) {
  ASSERT_EQ(got.outputs.size(), wanted.outputs.size());
  for (size_t i = 0; i < wanted.outputs.size(); ++i) {
    EXPECT_EQ(got.outputs[i].text, wanted.outputs[i].text) << i;
    EXPECT_EQ(got.outputs[i].log_weight, wanted.outputs[i].log_weight) << i;
    EXPECT_EQ(got.outputs[i].log_probability, wanted.outputs[i].log_probability) << i;
  }
}

std::string TextOf(const Result<Generation>& output) {
  return output.ok() ? output->text : output.error().ToString();
}

// One request, waiting for its end.
Result<Generation> RunOne(AsyncEngine& engine, const EngineRequest& request,
                          Delivery delivery = {}) {
  std::optional<Result<Generation>> got;
  Count count;
  delivery.done = [&](Result<Generation> output) {
    got = std::move(output);
    count.Add();
  };
  const Result<AsyncEngine::Id> id = engine.Submit(request, std::move(delivery));
  if (!id.ok()) return id.error();
  count.WaitFor(1);
  return *std::move(got);
}

TEST(AsyncEngineTest, FourChatsAndASamplerShareCalls) {
  CountedSetup setup;
  EngineRequest sampled;
  sampled.prompt = "Names: ";
  sampled.grammar = setup.Regex("[a-z ]{30,60}");

  // Each alone.
  std::vector<std::string> alone;
  SamplerResult samples_alone;
  {
    AsyncEngine engine(*setup.model, {});
    for (int i = 0; i < 4; ++i) alone.push_back(TextOf(RunOne(engine, Chat(i))));
    Result<SamplerResult> samples = engine.Sample(sampled, EightParticles());
    ASSERT_TRUE(samples.ok()) << samples.error().ToString();
    samples_alone = *std::move(samples);
  }
  const int64_t calls_alone = setup.counts.calls.exchange(0);

  // All at once: the model waits until they have been handed in.
  std::vector<Result<Generation>> chats(4, Error{});
  Result<SamplerResult> samples = Error{};
  {
    AsyncEngine engine(*setup.model, {});
    setup.counts.Open(false);
    Count count;
    for (size_t i = 0; i < chats.size(); ++i) {
      Delivery delivery;
      delivery.done = [&chats, &count, i](Result<Generation> output) {
        chats[i] = std::move(output);
        count.Add();
      };
      ASSERT_TRUE(engine.Submit(Chat(static_cast<int>(i)), std::move(delivery)).ok());
    }
    ASSERT_TRUE(engine
                    .SubmitSampler(sampled, EightParticles(), nullptr,
                                   [&](Result<SamplerResult> result) {
                                     samples = std::move(result);
                                     count.Add();
                                   })
                    .ok());
    setup.counts.Open(true);
    count.WaitFor(5);
    EXPECT_EQ(engine.Close().ok(), true);
  }
  for (size_t i = 0; i < chats.size(); ++i) EXPECT_EQ(TextOf(chats[i]), alone[i]) << i;
  ASSERT_TRUE(samples.ok()) << samples.error().ToString();
  ExpectSame(*samples, samples_alone);
  EXPECT_LE(static_cast<double>(setup.counts.calls), 0.75 * static_cast<double>(calls_alone));
}

TEST(AsyncEngineTest, StopStringsEndAnOutput) {
  CountedSetup setup;
  AsyncEngine engine(*setup.model, {});
  EngineRequest request;
  request.prompt = "a";
  request.grammar = setup.Regex("one two three four");
  for (const bool include : {false, true}) {
    std::string shown;
    Count count;
    std::optional<Result<Generation>> output;
    Delivery delivery;
    request.stops = {"hree", "ee f"};
    request.include_stop = include;
    delivery.on_token = [&](const OutputToken& token) {
      shown += token.bytes;
      shown.resize(token.size);
      EXPECT_LE(token.safe, token.size);
      return true;
    };
    delivery.done = [&](Result<Generation> got) {
      output = std::move(got);
      count.Add();
    };
    ASSERT_TRUE(engine.Submit(request, std::move(delivery)).ok());
    count.WaitFor(1);
    ASSERT_TRUE(output->ok());
    EXPECT_EQ((*output)->text, include ? "one two three" : "one two t");
    EXPECT_EQ(shown, (*output)->text);
    EXPECT_EQ((*output)->stop, StopReason::kStopText);
    EXPECT_EQ((*output)->stop_text, "hree");
  }
}

// Thoughts are told apart first, then the record is made, and stop strings are looked for in it.
TEST(AsyncEngineTest, ARecordStandsBehindThoughtsAndBeforeStopStrings) {
  Result<std::unique_ptr<LoadedModel>> model =
      LoadedModel::Open(kModel, {.text = "{% for m in messages %}{{ m.content }}\n{% endfor %}"
                                         "{% if false %}</think>{% endif %}<think>\n"});
  ASSERT_TRUE(model.ok()) << model.error().ToString();
  ModelOptions model_options;
  model_options.threads = 1;
  ASSERT_TRUE((*model)->LoadWeights(model_options).ok());
  const Result<Grammar> grammar = Compiler((*model)->vocabulary())
                                      .CompileJsonSchema(R"({"type": "object", "properties": {
              "a": {"type": "string", "maxLength": 2}, "b": {"type": "string", "maxLength": 2},
              "c": {"enum": ["x"]}}, "required": ["c"]})",
                                                         ExtractSchemaOptions());
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  AsyncEngine engine(**model, {});
  int left_out = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    EngineRequest request = Chat(0, 200);
    request.grammar = *grammar;
    request.thinking = {.mode = Thinking::Mode::kTokens, .tokens = 7};
    request.options.sampling = {.temperature = 2, .seed = seed};
    request.stops = {"null", R"("x")"};
    std::string shown;
    Count count;
    std::optional<Result<Generation>> output;
    Delivery delivery;
    delivery.on_token = [&](const OutputToken& token) {
      shown += token.bytes;
      shown.resize(token.size);
      return true;
    };
    delivery.done = [&](Result<Generation> got) {
      output = std::move(got);
      count.Add();
    };
    ASSERT_TRUE(engine.Submit(request, std::move(delivery)).ok());
    count.WaitFor(1);
    ASSERT_TRUE(output->ok()) << output->error().ToString();
    EXPECT_EQ((*output)->stop_text, R"("x")");
    EXPECT_TRUE((*output)->text.starts_with("{")) << (*output)->text;
    EXPECT_TRUE((*output)->text.ends_with(R"("c":)")) << (*output)->text;
    EXPECT_EQ((*output)->text.find("null"), std::string::npos);
    EXPECT_EQ(shown, (*output)->text);
    EXPECT_NE((*output)->reasoning, "");
    const std::string written = (*model)->tokenizer().Decode((*output)->tokens);
    EXPECT_NE(written.find(R"("b":)"), std::string::npos) << written;
    left_out += written.find("null") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(left_out, 0);
}

TEST(AsyncEngineTest, ScoresAreThoseOfTheEngineAlone) {
  CountedSetup setup;
  AsyncEngine engine(*setup.model, {});
  EngineRequest request;
  request.prompt = "Once ";
  const std::vector<TokenId> tokens = {5, 6, 7, 8};
  const Result<std::vector<double>> scores = engine.Score(request, tokens, 0.7);
  ASSERT_TRUE(scores.ok()) << scores.error().ToString();
  const std::vector<TokenId> prompt = *PromptTokensOf(request, *setup.model);
  ASSERT_TRUE(engine.Close().ok());
  const Result<std::vector<double>> wanted = ScoreTokens(setup.model->model(), prompt, tokens, 0.7);
  ASSERT_TRUE(wanted.ok());
  EXPECT_EQ(*scores, *wanted);
}

TEST(AsyncEngineTest, ErrorsNameTheirPlace) {
  CountedSetup setup;
  AsyncEngine engine(*setup.model, {});
  EngineRequest request;
  request.prompt = "\xff";
  EXPECT_EQ(engine.Submit(request, {}).error().place, "prompt: byte 0");
  request.prompt = "a";
  const std::vector<TokenId> none = {1 << 30};
  EXPECT_EQ(engine.Score(request, none).error().place, "tokens");
  EXPECT_EQ(engine.Score(request, std::vector<TokenId>{5}, 0).error().place, "temperature");
  SamplerOptions options = EightParticles();
  options.n = 0;
  EXPECT_EQ(engine.Sample(request, options).error().place, "n");
  request.grammar = setup.Regex("[a-z]{100}");
  request.options.max_tokens = 3;
  EXPECT_EQ(RunOne(engine, request).error().place, "max_tokens");
  request.options.max_tokens = 300;
  EXPECT_TRUE(RunOne(engine, request).ok());
}

TEST(AsyncEngineTest, ACancelledRequestEndsWithWhatItHas) {
  CountedSetup setup;
  AsyncEngine engine(*setup.model, {});
  EngineRequest request;
  request.prompt = "Once ";
  request.grammar = setup.Regex("[a-z ]*[.]");
  request.options.max_tokens = 400;
  request.options.at_budget = AtBudget::kCut;
  std::optional<Result<Generation>> output;
  Count tokens, ended;
  Delivery delivery;
  std::atomic<int> seen{0};
  setup.counts.Open(false);
  delivery.on_token = [&](const OutputToken&) {
    if (++seen == 3) setup.counts.Open(false);  // the next call waits until it is cancelled
    tokens.Add();
    return true;
  };
  delivery.done = [&](Result<Generation> got) {
    output = std::move(got);
    ended.Add();
  };
  const Result<AsyncEngine::Id> id = engine.Submit(request, std::move(delivery));
  ASSERT_TRUE(id.ok());
  setup.counts.Open(true);
  tokens.WaitFor(3);
  engine.Cancel(*id);
  setup.counts.Open(true);
  ended.WaitFor(1);
  ASSERT_TRUE(output->ok());
  EXPECT_EQ((*output)->stop, StopReason::kCancelled);
  EXPECT_GE((*output)->tokens.size(), 3u);
  EXPECT_LE((*output)->tokens.size(), 5u);
  engine.Cancel(*id);  // ended: ignored
  engine.Cancel(12345);
  EXPECT_TRUE(RunOne(engine, Chat(1)).ok());
}

// A call of the model that throws ends the request whose rows it had; the thread goes on.
TEST(AsyncEngineTest, TheThreadSurvivesWhatACallThrows) {
  CountedSetup setup;
  AsyncEngine engine(*setup.model, {});
  const std::string wanted = TextOf(RunOne(engine, Chat(2)));
  setup.counts.fail_next = 1;
  const Result<Generation> failed = RunOne(engine, Chat(2));
  ASSERT_FALSE(failed.ok());
  EXPECT_TRUE(IsOutOfMemory(failed.error())) << failed.error().ToString();
  EXPECT_EQ(TextOf(RunOne(engine, Chat(2))), wanted);
  // An exception of a callback as well.
  Delivery delivery;
  delivery.on_token = [](const OutputToken&) -> bool {
    throw std::runtime_error("of the callback");
  };
  const Result<Generation> thrown = RunOne(engine, Chat(2), std::move(delivery));
  ASSERT_FALSE(thrown.ok());
  EXPECT_EQ(thrown.error().message, "of the callback");
  EXPECT_EQ(TextOf(RunOne(engine, Chat(2))), wanted);
}

TEST(AsyncEngineTest, CloseEndsWhatRuns) {
  CountedSetup setup;
  AsyncEngine engine(*setup.model, {});
  setup.counts.Open(false);
  std::vector<Result<Generation>> outputs(3, Generation{});
  for (size_t i = 0; i < outputs.size(); ++i) {
    Delivery delivery;
    delivery.done = [&outputs, i](Result<Generation> output) { outputs[i] = std::move(output); };
    ASSERT_TRUE(engine.Submit(Chat(static_cast<int>(i)), std::move(delivery)).ok());
  }
  Result<std::vector<double>> scores = std::vector<double>();
  Result<SamplerResult> samples = SamplerResult();
  std::thread waits([&] {
    EngineRequest request;
    request.prompt = "a";
    samples = engine.Sample(request, EightParticles());
  });
  while (setup.counts.calls == 0 && engine.waiting() < 4) std::this_thread::yield();
  std::thread closes([&] { EXPECT_TRUE(engine.Close().ok()); });
  while (engine.Submit(Chat(0), {}).ok()) std::this_thread::yield();
  setup.counts.Open(true);
  closes.join();
  waits.join();
  for (const Result<Generation>& output : outputs) {
    ASSERT_FALSE(output.ok());
    EXPECT_EQ(output.error().message, "the engine is closed");
  }
  ASSERT_FALSE(samples.ok());
  EXPECT_EQ(engine.Submit(Chat(0), {}).error().message, "the engine is closed");
  EXPECT_TRUE(engine.Close().ok());
}

// on_output comes to the thread that waits, and may end the run.
// Its chunks are requests of their own: it ends once, however it ends.
TEST(AsyncEngineTest, ADocumentEndsOnceWhenItIsCancelledOrClosed) {
  CountedSetup setup;
  EngineRequest request;
  const std::string schema =
      R"({"type":"object","properties":{"name":{"type":"string"}},"required":["name"]})";
  std::string text;
  for (int i = 0; i < 200; ++i) text += "Ann Lee called at noon. ";
  request.extract = ExtractInput{schema, text};
  request.grammar = *Compiler(setup.model->vocabulary()).CompileJsonSchema(schema);
  request.document = DocumentOptions{16, 2};
  for (const bool cancel : {true, false}) {
    setup.counts.Open(false);
    std::atomic<int> ends{0};
    std::atomic<bool> cancelled{false}, failed{false};
    {
      AsyncEngine engine(*setup.model, {.max_batch = 4});
      Delivery delivery;
      delivery.done = [&](Result<Generation> output) {
        cancelled = output.ok() && output->stop == StopReason::kCancelled;
        failed = !output.ok();
        ++ends;
      };
      const Result<AsyncEngine::Id> id = engine.Submit(request, std::move(delivery));
      ASSERT_TRUE(id.ok()) << id.error().ToString();
      if (cancel) engine.Cancel(*id);
      setup.counts.Open(true);
      for (int i = 0; cancel && ends == 0 && i < 1000; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
    EXPECT_EQ(ends, 1);
    EXPECT_EQ(cancelled, cancel);
    EXPECT_EQ(failed, !cancel);
  }
}

TEST(AsyncEngineTest, OutputsOfASamplerComeToTheThreadThatWaits) {
  CountedSetup setup;
  AsyncEngine engine(*setup.model, {});
  EngineRequest request;
  request.prompt = "Names: ";
  request.grammar = setup.Regex("[a-z ]{3,20}");
  SamplerOptions options = EightParticles();
  options.sampler = SamplerKind::kAwrs;
  options.batch = 2;
  int told = 0;
  const std::thread::id here = std::this_thread::get_id();
  options.on_output = [&](const WeightedOutput&) {
    EXPECT_EQ(std::this_thread::get_id(), here);
    return ++told < 3;
  };
  const Result<SamplerResult> result = engine.Sample(request, options);
  ASSERT_TRUE(result.ok()) << result.error().ToString();
  EXPECT_EQ(told, 3);
  EXPECT_TRUE(result->cancelled);
  // An exception of the callback comes out of the call, once the run has ended.
  options.on_output = [&](const WeightedOutput&) -> bool { throw std::runtime_error("here"); };
  EXPECT_THROW((void)engine.Sample(request, options), std::runtime_error);
  // The wait may end earlier.
  options.on_output = nullptr;
  setup.counts.Open(false);
  const Result<SamplerResult> ended = engine.Sample(request, options, nullptr, [&] {
    setup.counts.Open(true);
    return false;
  });
  EXPECT_FALSE(ended.ok());
  EXPECT_TRUE(RunOne(engine, Chat(1)).ok());
}

// Attempts that the first token refutes ask for no logits; a run of them has to end all the same.
TEST(AsyncEngineTest, ASamplerThatAsksForNoLogitsCanBeCancelled) {
  CountedSetup setup;
  AsyncEngine engine(*setup.model, {});
  EngineRequest request;
  request.prompt = "Names: ";
  request.grammar = setup.Regex("[0-9]{60}");
  SamplerOptions options;
  options.sampler = SamplerKind::kRs;
  options.attempts = 1'000'000'000;
  int asked = 0;
  const Result<SamplerResult> result =
      engine.Sample(request, options, nullptr, [&] { return ++asked < 3; });
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(asked, 3);
}

// A trie that a sampler has learnt serves the next one with the same key, and two at once are fine.
TEST(AsyncEngineTest, SamplersLearnFromEarlierOnes) {
  CountedSetup setup;
  AsyncEngine engine(*setup.model, {});
  EngineRequest request;
  request.prompt = "The answer is ";
  request.grammar = setup.Regex("(yes|no)");
  SamplerOptions options;
  options.sampler = SamplerKind::kCars;
  options.max_tokens = 8;
  options.attempts = 200;
  const Result<SamplerResult> first = engine.Sample(request, options);
  ASSERT_TRUE(first.ok()) << first.error().ToString();
  options.seed = 1;
  const Result<SamplerResult> second = engine.Sample(request, options);
  ASSERT_TRUE(second.ok());
  EXPECT_GE(second->trie_nodes, first->trie_nodes);
  EXPECT_LE(second->outputs[0].report.theta, first->outputs[0].report.theta);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back(
        [&engine, request, options] { EXPECT_TRUE(engine.Sample(request, options).ok()); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(AsyncEngineTest, AProposalIsLentByAnEngineThatRests) {
  const auto engine = *AsyncEngine::Load(kModel, {});
  const auto other = *AsyncEngine::Load(kModel, {});
  EngineRequest request;
  request.prompt = "Names: ";
  request.grammar = *Compiler(engine->model().vocabulary()).CompileRegex("[a-z ]{3,20}");
  SamplerOptions options = EightParticles();
  EXPECT_EQ(engine->Sample(request, options, engine).error().place, "proposal");
  const Result<SamplerResult> result = engine->Sample(request, options, other);
  ASSERT_TRUE(result.ok()) << result.error().ToString();
  // What is handed in to the lender meanwhile waits, and runs afterwards.
  Count ended;
  int told = 0;
  const int64_t steps = other->steps();
  options.on_output = [&](const WeightedOutput&) {
    EXPECT_EQ(other->steps(), steps);
    if (told++ > 0) return true;
    Delivery delivery;
    delivery.done = [&](const Result<Generation>& output) {
      EXPECT_TRUE(output.ok());
      ended.Add();
    };
    EngineRequest asked;
    asked.prompt = "Once ";
    asked.options.max_tokens = 3;
    EXPECT_TRUE(other->Submit(asked, std::move(delivery)).ok());
    EXPECT_EQ(engine->Sample(request, EightParticles(), other).error().place, "proposal");
    return true;
  };
  const Result<SamplerResult> again = engine->Sample(request, options, other);
  ASSERT_TRUE(again.ok()) << again.error().ToString();
  EXPECT_EQ(told, 8);
  ExpectSame(*again, *result);
  ended.WaitFor(1);
  EXPECT_GT(other->steps(), steps);
}

TEST(AsyncEngineTest, DraftsAreKeptInTheirFile) {
  const std::string file = testing::TempDir() + "/async_engine_test.drafts";
  std::remove(file.c_str());
  EngineOptions options;
  options.drafts.sources = "history";
  options.drafts.history_file = file;
  const auto engine = *AsyncEngine::Load(kModel, options);
  EngineRequest request;
  request.prompt = "Once ";
  request.grammar = *Compiler(engine->model().vocabulary()).CompileRegex("[a-z ]{3,20}");
  ASSERT_TRUE(RunOne(*engine, request).ok());
  ASSERT_TRUE(engine->Save().ok());
  EXPECT_TRUE(std::ifstream(file).good());
  std::remove(file.c_str());
  ASSERT_TRUE(engine->Close().ok());
  EXPECT_TRUE(std::ifstream(file).good());
  std::remove(file.c_str());
}

}  // namespace
}  // namespace pawl
