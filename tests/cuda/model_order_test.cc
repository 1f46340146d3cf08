// The model in every timing that the emulation knows, and without what orders its work: the fence
// between uploads and the head, the wait between blocks. What graphs name and when they are made,
// and what memory is put aside.
#include <cstring>

#include "tests/cuda/model_util.h"

namespace pawl::PAWL_GPU {
namespace {

class ModelOrderTest : public GpuTest {};

// All that a model gives for a fixed series of calls: prompts by both paths, steps of a batch with
// masks that are new in each, filters and lists, a tree and what it leaves. As bits; calls that
// fail leave their message.
std::vector<uint32_t> Everything(bool library) {
  std::vector<uint32_t> all;
  const auto note = [&](const auto& values) {
    for (const auto& value : values) {
      static_assert(sizeof value == 4);
      all.push_back(0);
      std::memcpy(&all.back(), &value, 4);
    }
  };
  const auto failed = [&](const Status& status) {
    for (const char c : status.error().message) all.push_back(static_cast<uint32_t>(c));
  };
  TransformerCudaOptions options;
  options.library = library;
  Result<std::unique_ptr<Model>> loaded = LoadCuda(GoldenFolder("llama-bf16-llama3"), options);
  if (!loaded.ok()) return {};
  Model& model = **loaded;
  Random random(3);
  const auto width = static_cast<size_t>(model.info().vocabulary_size);
  const auto token = [&] { return static_cast<TokenId>(random() % width); };
  const SequenceId prompts = MakeSequence(model, 70);
  std::vector<Row> rows;
  for (int i = 0; i < 66; ++i) rows.push_back({token(), i, prompts, 0, i % 33 == 32 ? i / 33 : -1});
  std::vector<float> logits(2 * width);
  if (Status status = model.Forward(rows, logits); !status.ok()) failed(status);
  note(logits);

  std::vector<SequenceId> batch;
  for (int s = 0; s < 3; ++s) batch.push_back(MakeSequence(model, 20));
  for (int step = 0; step < 6; ++step) {
    rows.clear();
    std::vector<SampleRequest> requests(batch.size());
    std::vector<std::vector<SeenToken>> seen(batch.size());
    for (size_t s = 0; s < batch.size(); ++s) {
      rows.push_back({token(), step, batch[s], 0, static_cast<int32_t>(s)});
    }
    const auto late = [&] {
      for (size_t s = 0; s < batch.size(); ++s) {
        SampleRequest& request = requests[s];
        std::vector<uint32_t> words((width + 31) / 32);
        // Steps with lists and steps without.
        for (int n = 0; n < (step % 3 == 0 ? 3 : 200); ++n) {
          const auto t = static_cast<size_t>(token());
          words[t / 32] |= 1u << t % 32;
        }
        request.mask = std::make_shared<Mask>(static_cast<MaskId>(s), std::move(words));
        request.temperature = s == 0 ? 0.0f : 1.2f;
        request.seed = random();
        request.position = static_cast<uint64_t>(step);
        if (step % 3 != 2) continue;
        request.top_p = 0.9f;
        request.penalties.repetition = 1.3f;
        for (int n = 0; n < 5; ++n) seen[s].push_back({token(), n});
        request.seen = seen[s];
      }
    };
    std::vector<TokenId> tokens(batch.size(), -5);
    if (Status status = model.ForwardAndSample(rows, requests, tokens, late); !status.ok()) {
      failed(status);
    }
    note(tokens);
  }
  rows = {{token(), 6, batch[0], 0, 0},
          {token(), 7, batch[0], 0b01, 1},
          {token(), 7, batch[0], 0b01, 2},
          {token(), 8, batch[0], 0b101, 3}};
  logits.assign(4 * width, 0.0f);
  if (Status status = model.Forward(rows, logits); !status.ok()) failed(status);
  note(logits);
  if (Status status = model.CommitTree(batch[0], 3); !status.ok()) failed(status);
  rows = {{token(), 9, batch[0], 0, 0}};
  logits.resize(width);
  if (Status status = model.Forward(rows, logits); !status.ok()) failed(status);
  note(logits);
  return all;
}

void InTiming(Timing timing, int seed, const std::function<void()>& run) {
  SetTiming(timing, seed);
  run();
  (void)SynchronizeAll();
  SetTiming(Timing::kLate);
}

TEST_F(ModelOrderTest, TimingsChangeNothing) {
  for (const bool library : {true, false}) {
    const std::vector<uint32_t> expected = Everything(library);
    ASSERT_FALSE(expected.empty());
    const auto same = [&] { EXPECT_TRUE(Everything(library) == expected); };
    if (!library) {
      InTiming(Timing::kAtOnce, 0, same);
      InTiming(Timing::kMixed, 4, same);
      continue;
    }
    // One stream early and the other late, and chance.
    for (const int seed : {2, 4, 5, 6, 7}) InTiming(Timing::kMixed, seed, same);
  }
}

TEST_F(ModelOrderTest, WithoutTheFenceOfUploadsTokensAreWrong) {
  const std::vector<uint32_t> expected = Everything(true);
  int wrong = 0;
  LeaveOutFences(true);
  InTiming(Timing::kLate, 0, [&] { wrong += Everything(true) != expected; });
  LeaveOutFences(false);
  EXPECT_EQ(wrong, 1);
}

// Every block of a call ends with a wait for the device, because the next one's rows go to the same
// pinned memory, and the answers are read.
TEST_F(ModelOrderTest, WithoutTheWaitBetweenBlocksLogitsAreWrong) {
  TransformerCudaOptions options;
  options.library = false;
  Result<std::unique_ptr<Model>> loaded = LoadCuda(GoldenFolder("llama-bf16-llama3"), options);
  ASSERT_TRUE(loaded.ok());
  Model& model = **loaded;
  const auto width = static_cast<size_t>(model.info().vocabulary_size);
  const SequenceId sequence = MakeSequence(model, 70);
  std::vector<Row> rows;
  Random random(5);
  for (int i = 0; i < 66; ++i) {
    rows.push_back({static_cast<TokenId>(random() % width), i, sequence, 0, i == 65 ? 0 : -1});
  }
  const auto run = [&](int left_out) {
    std::vector<float> logits(width);
    model.Truncate(sequence, 0);
    LeaveOutSynchronize(left_out);
    (void)model.Forward(rows, logits);
    return logits;
  };
  const std::vector<float> expected = run(0);
  EXPECT_TRUE(SameBits(run(0), expected));
  const int waits = SynchronizeCalls();
  EXPECT_EQ(waits, 2);  // blocks of 64 and 2 rows
  for (int nth = 1; nth <= waits; ++nth) {
    EXPECT_FALSE(SameBits(run(nth), expected)) << nth;
    (void)SynchronizeAll();
  }
  LeaveOutSynchronize(0);
  EXPECT_TRUE(SameBits(run(0), expected));
}

// The first launch of a kernel loads its code, for which a capture is no place.
TEST_F(ModelOrderTest, NoKernelIsLaunchedForTheFirstTimeInACapture) {
  ForgetKernels();
  Result<std::unique_ptr<Model>> loaded = LoadCuda(GoldenFolder("gemma3-bf16"), {});
  ASSERT_TRUE(loaded.ok());
  auto& model = static_cast<TransformerCuda&>(**loaded);
  const SequenceId sequence = MakeSequence(model, 64);
  const std::vector<TokenId> tokens(40, 5);
  for (int at = 0; at < 40; at += 1 + at % 4) {
    (void)RunChunk(model, sequence, at, std::span(tokens).first(static_cast<size_t>(1 + at % 4)));
  }
  EXPECT_EQ(model.given_up(), "");
  EXPECT_GT(model.graphs_made(), 0);
}

std::vector<Row> PlainRows(SequenceId sequence, int count) {
  std::vector<Row> rows;
  for (int i = 0; i < count; ++i) rows.push_back({i % 50, i, sequence, 0, -1});
  return rows;
}

// Graphs are made once and again only when memory that they name has moved.
TEST_F(ModelOrderTest, OnlyMemoryThatGraphsNameDropsThem) {
  TransformerCudaOptions options;
  options.kv_bytes = 4 << 20;
  Result<std::unique_ptr<Model>> loaded = LoadCuda(GoldenFolder("llama-bf16-llama3"), options);
  ASSERT_TRUE(loaded.ok());
  auto& model = static_cast<TransformerCuda&>(**loaded);
  const auto width = static_cast<size_t>(model.info().vocabulary_size);
  const SequenceId sequence = MakeSequence(model, 100);
  // What attention shares between blocks has its size from here on.
  PAWL_EXPECT_OK(model.Forward(PlainRows(sequence, 64), {}));
  int at = 64;
  std::vector<float> logits(width);
  const auto step = [&] {
    const Row row = {static_cast<TokenId>(at % 50), at, sequence, 0, 0};
    PAWL_EXPECT_OK(model.Forward({&row, 1}, logits));
    ++at;
  };
  step();
  EXPECT_EQ(model.graphs_made(), 0);
  step();
  step();
  EXPECT_EQ(model.graphs_made(), 1);

  // The head's buffers grow: logits of many rows, what a sampler has seen, lists, the largest few.
  const int many = 30;
  std::vector<Row> rows;
  std::vector<SampleRequest> requests(many);
  std::vector<SeenToken> seen(400);
  std::vector<TokenLogprob> top(4);
  for (int s = 0; s < many; ++s) {
    rows.push_back({3, 0, MakeSequence(model, 4), 0, s});
    requests[static_cast<size_t>(s)].temperature = 1.0f;
    requests[static_cast<size_t>(s)].penalties.repetition = 1.5f;
    requests[static_cast<size_t>(s)].seen = seen;
    requests[static_cast<size_t>(s)].top = top;
  }
  std::vector<TokenId> tokens(many);
  PAWL_EXPECT_OK(model.ForwardAndSample(rows, requests, tokens, nullptr));
  for (const Row& row : rows) model.FreeSequence(row.sequence);
  // Prefill's own, and the pairs of slots of a tree.
  const SequenceId prompt = MakeSequence(model, 100);
  (void)RunChunk(model, prompt, 0, std::vector<TokenId>(90, 4));
  model.FreeSequence(prompt);
  const std::vector<Row> tree = {
      {1, at, sequence, 0, -1}, {2, at + 1, sequence, 0b01, -1}, {3, at + 1, sequence, 0b01, -1}};
  PAWL_EXPECT_OK(model.Forward(tree, {}));
  PAWL_EXPECT_OK(model.CommitTree(sequence, 2));
  at += 2;
  step();
  step();
  EXPECT_EQ(model.graphs_made(), 1);

  // Page tables do drop them, and what is captured then has their new place.
  rows.clear();
  std::vector<SequenceId> ids;
  for (int s = 0; s < 300; ++s) {
    ids.push_back(MakeSequence(model, 2));
    rows.push_back({3, 0, ids.back(), 0, -1});
  }
  PAWL_EXPECT_OK(model.Forward(rows, {}));
  const int64_t before = model.graphs_made();
  const std::vector<float> expected = logits;
  model.Truncate(sequence, --at);
  step();
  EXPECT_EQ(model.graphs_made(), before + 1);
  EXPECT_TRUE(SameBits(logits, expected));
  EXPECT_EQ(model.given_up(), "");
}

// With all of a device for itself, a model leaves room for what it allocates only when it is
// needed.
TEST_F(ModelOrderTest, KeysAndValuesLeaveRoomForPromptsAndSampling) {
  LimitMemory(int64_t{20} << 20);
  TransformerCudaOptions options;
  options.kv_bytes = -1;
  Result<std::unique_ptr<Model>> loaded =
      LoadCuda(GoldenFolder("qwen2-fp32-untied"), options, WeightDtype::kInt8);
  if (!loaded.ok()) LimitMemory(-1);
  ASSERT_TRUE(loaded.ok()) << loaded.error().ToString();
  auto& model = static_cast<TransformerCuda&>(**loaded);
  const int64_t left = CurrentDevice()->free_bytes;
  const KvMemory memory = model.kv_memory();
  // It did take what it could.
  EXPECT_GT(memory.page_bytes * memory.pages, left / 20);
  const SequenceId sequence = MakeSequence(model, 120);
  (void)RunChunk(model, sequence, 0, std::vector<TokenId>(110, 4));
  std::vector<Row> rows;
  std::vector<SampleRequest> requests(60);
  std::vector<TokenLogprob> top(8);
  const std::vector<uint32_t> some(static_cast<size_t>(model.info().vocabulary_size + 31) / 32,
                                   0x11111111u);
  for (int s = 0; s < 60; ++s) {
    rows.push_back({3, 0, MakeSequence(model, 4), 0, s});
    SampleRequest& request = requests[static_cast<size_t>(s)];
    request.temperature = 1.0f;
    request.top_k = 5;
    request.top = top;
    request.mask = std::make_shared<Mask>(static_cast<MaskId>(s), some);
  }
  std::vector<TokenId> tokens(60);
  const Status status = model.ForwardAndSample(rows, requests, tokens, nullptr);
  LimitMemory(-1);
  EXPECT_TRUE(status.ok()) << status.error().ToString();
  EXPECT_EQ(model.given_up(), "");
}

}  // namespace
}  // namespace pawl::PAWL_GPU
