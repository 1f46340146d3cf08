// The rules at the top of model.h: a row's logits have the same bits however its call is made up,
// and calls that break the rules are refused with nothing changed.
#include <algorithm>
#include <random>

#include "src/model/transformer_cpu.h"
#include "tests/model/model_test_util.h"

namespace pawl {
namespace {

constexpr int kLength = 200;  // more than one block of rows

class RowsTest : public testing::TestWithParam<std::pair<std::string, KernelVariant>> {
 protected:
  void SetUp() override {
    if (FindKernels(kernels_) == nullptr) GTEST_SKIP() << "this processor lacks these instructions";
    model_ = LoadGolden(name_, 1, kernels_);
    ASSERT_NE(model_, nullptr);
    vocabulary_ = static_cast<size_t>(model_->info().vocabulary_size);
    tokens_ = RandomTokens(random_, static_cast<int>(vocabulary_), kLength);
    alone_ = Alone(tokens_);
  }

  // Logits of every position, one row per call.
  std::vector<float> Alone(const std::vector<TokenId>& tokens) {
    const SequenceId sequence = MakeSequence(*model_, 256);
    std::vector<float> all;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const std::vector<float> one =
          RunChunk(*model_, sequence, static_cast<int>(i), std::span(tokens).subspan(i, 1));
      all.insert(all.end(), one.begin(), one.end());
    }
    model_->FreeSequence(sequence);
    return all;
  }

  std::span<const float> At(std::span<const float> logits, size_t i) const {
    return logits.subspan(i * vocabulary_, vocabulary_);
  }

  // The prefix cache has so many of the tokens; of a model with states, some of them, and the
  // others are computed.
  void ReuseUpTo(SequenceId sequence, std::span<const TokenId> tokens, int expected) {
    const int reused = model_->ReusePrefix(sequence, tokens);
    EXPECT_TRUE(reused == expected || model_->kv_memory().state.state > 0) << reused;
    if (reused >= expected) return;
    RunChunk(*model_, sequence, reused,
             tokens.subspan(static_cast<size_t>(reused), static_cast<size_t>(expected - reused)));
  }

  const std::string name_ = GetParam().first;
  const KernelVariant kernels_ = GetParam().second;
  std::mt19937 random_{20240117};
  std::unique_ptr<Model> model_;
  size_t vocabulary_ = 0;
  std::vector<TokenId> tokens_;
  std::vector<float> alone_;
};

TEST_P(RowsTest, ChunksOfAnySizeHaveTheSameBits) {
  for (int round = 0; round < 6; ++round) {
    const SequenceId sequence = MakeSequence(*model_, kLength);
    size_t at = 0;
    while (at < tokens_.size()) {
      const size_t size =
          std::min<size_t>(round == 0 ? tokens_.size() : 1 + random_() % 40, tokens_.size() - at);
      const std::vector<float> logits =
          RunChunk(*model_, sequence, static_cast<int>(at), std::span(tokens_).subspan(at, size));
      ASSERT_TRUE(SameBits(logits, std::span(alone_).subspan(at * vocabulary_, size * vocabulary_)))
          << "chunk of " << size << " at " << at;
      at += size;
    }
    model_->FreeSequence(sequence);
  }
}

TEST_P(RowsTest, RowsWithoutOutputChangeNothing) {
  const SequenceId sequence = MakeSequence(*model_, kLength);
  std::vector<Row> rows;
  for (int i = 0; i < kLength; ++i) {
    rows.push_back({tokens_[static_cast<size_t>(i)], i, sequence, 0, -1});
  }
  rows[50].output = 2;  // outputs in any order, gaps left alone
  rows[199].output = 0;
  const std::vector<float> logits = RunRows(*model_, rows);
  EXPECT_TRUE(SameBits(At(logits, 2), At(alone_, 50)));
  EXPECT_TRUE(SameBits(At(logits, 0), At(alone_, 199)));
  EXPECT_TRUE(std::isnan(logits[vocabulary_]));
}

TEST_P(RowsTest, SequencesInOneCallDoNotMix) {
  std::vector<std::vector<TokenId>> texts = {tokens_};
  std::vector<std::vector<float>> expected = {alone_};
  std::vector<SequenceId> sequences = {MakeSequence(*model_, 256)};
  for (int i = 1; i < 4; ++i) {
    texts.push_back(RandomTokens(random_, static_cast<int>(vocabulary_), 60 + 20 * i));
    expected.push_back(Alone(texts.back()));
    sequences.push_back(MakeSequence(*model_, 256));
  }
  std::vector<size_t> at(4, 0);
  for (int call = 0; call < 20; ++call) {
    // Up to 20 further rows of each, interleaved at random.
    std::vector<Row> rows;
    std::vector<std::pair<size_t, size_t>> origin;
    for (int i = 0; i < 50; ++i) {
      const size_t s = random_() % 4;
      if (at[s] == texts[s].size()) continue;
      rows.push_back({texts[s][at[s]], static_cast<int32_t>(at[s]), sequences[s], 0,
                      static_cast<int32_t>(rows.size())});
      origin.emplace_back(s, at[s]++);
    }
    const std::vector<float> logits = RunRows(*model_, rows);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto [s, position] = origin[i];
      ASSERT_TRUE(SameBits(At(logits, i), At(expected[s], position))) << s << " " << position;
    }
  }
}

TEST_P(RowsTest, ThreadsChangeNoBit) {
  for (const int threads : {1, 2, 3, 5}) {
    // Threads take part in every loop, however small.
    const TransformerConfig config = *ReadTransformerConfig(GoldenFolder(name_));
    const std::unique_ptr<Model> model = MakeGolden(name_, config, kernels_, threads, 1);
    const SequenceId sequence = MakeSequence(*model, kLength);
    EXPECT_TRUE(SameBits(RunChunk(*model, sequence, 0, tokens_), alone_)) << threads;
    const std::vector<float> again =
        RunChunk(*model, sequence, 100, std::span(tokens_).subspan(100, 1));
    EXPECT_TRUE(SameBits(again, At(alone_, 100))) << threads;
  }
}

// All but AMX and BFMMLA, which add in another order.
TEST_P(RowsTest, KernelVariantsHaveTheSameBits) {
  std::vector<float> first;
  for (const KernelVariant variant : kExactKernels) {
    if (FindKernels(variant) == nullptr) continue;
    const std::unique_ptr<Model> model = LoadGolden(name_, 1, variant);
    const SequenceId sequence = MakeSequence(*model, kLength);
    const std::vector<float> logits = RunChunk(*model, sequence, 0, tokens_);
    if (first.empty()) first = logits;
    EXPECT_TRUE(SameBits(logits, first)) << model->info().kernels;
  }
}

TEST_P(RowsTest, TruncateForgets) {
  const SequenceId sequence = MakeSequence(*model_, kLength);
  const std::vector<TokenId> other = RandomTokens(random_, static_cast<int>(vocabulary_), 40);
  RunChunk(*model_, sequence, 0, other);
  model_->Truncate(sequence, 0);
  RunChunk(*model_, sequence, 0, std::span(tokens_).first(30));
  RunChunk(*model_, sequence, 30, other);
  model_->Truncate(sequence, 30);
  const std::vector<float> logits =
      RunChunk(*model_, sequence, 30, std::span(tokens_).subspan(30, 20));
  EXPECT_TRUE(SameBits(logits, std::span(alone_).subspan(30 * vocabulary_, 20 * vocabulary_)));
  // A smaller position truncates too.
  EXPECT_TRUE(
      SameBits(RunChunk(*model_, sequence, 10, std::span(tokens_).subspan(10, 1)), At(alone_, 10)));
}

TEST_P(RowsTest, PagesInAnyOrderHaveTheSameBits) {
  // Sequences that grow by turns and go again leave the free pages in disorder.
  for (int round = 0; round < 3; ++round) {
    std::vector<SequenceId> others;
    for (int i = 0; i < 6; ++i) others.push_back(MakeSequence(*model_, 100));
    for (int turn = 0; turn < 4; ++turn) {
      for (const SequenceId other : others) {
        RunChunk(*model_, other, 20 * turn,
                 RandomTokens(random_, static_cast<int>(vocabulary_), 20));
      }
    }
    std::shuffle(others.begin(), others.end(), random_);
    for (size_t i = 0; i < 4; ++i) model_->FreeSequence(others[i]);
    const SequenceId sequence = MakeSequence(*model_, kLength);
    size_t at = 0;
    while (at < tokens_.size()) {
      const size_t size = std::min<size_t>(1 + random_() % 50, tokens_.size() - at);
      ASSERT_TRUE(SameBits(
          RunChunk(*model_, sequence, static_cast<int>(at), std::span(tokens_).subspan(at, size)),
          std::span(alone_).subspan(at * vocabulary_, size * vocabulary_)));
      at += size;
      RunChunk(*model_, others[4], 80, std::vector<TokenId>{1});
    }
    for (const SequenceId id : {sequence, others[4], others[5]}) model_->FreeSequence(id);
  }
}

TEST_P(RowsTest, WhatThePrefixCacheHeldHasTheSameBits) {
  const std::span<const TokenId> tokens(tokens_);
  const std::vector<TokenId> other = RandomTokens(random_, static_cast<int>(vocabulary_), 40);
  // alone_ was computed by a sequence that has ended.
  const SequenceId a = MakeSequence(*model_, kLength), b = MakeSequence(*model_, kLength);
  ReuseUpTo(a, tokens.first(100), 96);
  EXPECT_TRUE(SameBits(RunChunk(*model_, a, 96, tokens.subspan(96, 30)),
                       std::span(alone_).subspan(96 * vocabulary_, 30 * vocabulary_)));
  // While it goes on elsewhere from the middle of a shared page, others see what was there.
  ReuseUpTo(b, tokens, kLength / kPagePositions * kPagePositions);
  model_->Truncate(a, 37);
  RunChunk(*model_, a, 37, other);
  EXPECT_EQ(model_->ReusePrefix(a, tokens), 37 + 40) << "not the same beginning";
  EXPECT_TRUE(SameBits(RunChunk(*model_, b, 60, tokens.subspan(60, 40)),
                       std::span(alone_).subspan(60 * vocabulary_, 40 * vocabulary_)));
  // Back into what was shared; to the beginning where windows have let go of that.
  const int back = GetParam().first == "mistral-fp16-window" ? 0 : 10;
  RunChunk(*model_, a, back,
           tokens.subspan(static_cast<size_t>(back), static_cast<size_t>(110 - back)));
  EXPECT_TRUE(SameBits(RunChunk(*model_, a, 110, tokens.subspan(110, 20)),
                       std::span(alone_).subspan(110 * vocabulary_, 20 * vocabulary_)));
}

// A tree in the making: tokens and parents of its rows, the first being plain.
struct Tree {
  std::vector<TokenId> tokens;
  std::vector<int> parents;
  std::vector<Row> Rows(SequenceId sequence, int base, int plain, int first_output) const {
    std::vector<Row> rows;
    std::vector<uint64_t> path;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const int parent = parents[i];
      const auto p = static_cast<size_t>(parent);
      path.push_back(parent < 0 ? 0 : path[p] | uint64_t{1} << parent);
      const int position = parent < 0 ? base : rows[p].position + 1;
      rows.push_back({tokens[i], position, sequence, static_cast<int>(i) < plain ? 0 : path[i],
                      first_output + static_cast<int32_t>(i)});
    }
    return rows;
  }
  std::vector<TokenId> Path(int row) const {
    std::vector<TokenId> path;
    for (; row >= 0; row = parents[static_cast<size_t>(row)]) {
      path.insert(path.begin(), tokens[static_cast<size_t>(row)]);
    }
    return path;
  }
};

TEST_P(RowsTest, TreesHaveTheBitsOfTheirPaths) {
  for (int round = 0; round < 12; ++round) {
    const int base = static_cast<int>(random_() % 60);
    const int plain = 1 + static_cast<int>(random_() % 5);
    const int size = round == 0 ? kMaxTreeRows : plain + static_cast<int>(random_() % 25);
    Tree tree;
    tree.tokens = RandomTokens(random_, static_cast<int>(vocabulary_), size);
    for (int i = 0; i < size; ++i) {
      tree.parents.push_back(i < plain ? i - 1
                                       : static_cast<int>(random_() % static_cast<unsigned>(i)));
    }
    const SequenceId sequence = MakeSequence(*model_, 256);
    const SequenceId neighbour = MakeSequence(*model_, 256);
    if (base > 0)
      RunChunk(*model_, sequence, 0, std::span(tokens_).first(static_cast<size_t>(base)));
    // Another sequence's rows come between, enough of them that the tree crosses a block of rows.
    std::vector<Row> rows;
    const int crowd = static_cast<int>(random_() % 130);
    for (int i = 0; i < crowd; ++i) {
      rows.push_back({tokens_[static_cast<size_t>(i)], i, neighbour, 0, -1});
    }
    const std::vector<Row> tree_rows = tree.Rows(sequence, base, plain, 0);
    rows.insert(rows.end(), tree_rows.begin(), tree_rows.end());
    const std::vector<float> logits = RunRows(*model_, rows);

    const SequenceId chain = MakeSequence(*model_, 256);
    if (base > 0) RunChunk(*model_, chain, 0, std::span(tokens_).first(static_cast<size_t>(base)));
    for (int i = 0; i < size; ++i) {
      const std::vector<TokenId> path = tree.Path(i);
      const std::vector<float> expected = RunChunk(*model_, chain, base, path);
      ASSERT_TRUE(SameBits(At(logits, static_cast<size_t>(i)), At(expected, path.size() - 1)))
          << "round " << round << " row " << i;
    }
    // Committing any row leaves the sequence as if its path had been fed.
    const int kept = static_cast<int>(random_() % static_cast<unsigned>(size));
    const std::vector<TokenId> path = tree.Path(kept);
    ASSERT_TRUE(model_->CommitTree(sequence, kept).ok());
    RunChunk(*model_, chain, base, path);
    const int next = base + static_cast<int>(path.size());
    EXPECT_TRUE(SameBits(RunChunk(*model_, sequence, next, std::span(tokens_).first(3)),
                         RunChunk(*model_, chain, next, std::span(tokens_).first(3))));
    for (const SequenceId id : {sequence, neighbour, chain}) model_->FreeSequence(id);
  }
}

TEST_P(RowsTest, UncommittedTreeRowsAreForgotten) {
  const SequenceId sequence = MakeSequence(*model_, 16);
  RunRows(*model_, {{tokens_[0], 0, sequence, 0, -1}, {tokens_[5], 1, sequence, 1, -1}});
  EXPECT_TRUE(SameBits(RunChunk(*model_, sequence, 1, std::span(tokens_).subspan(1, 2)),
                       std::span(alone_).subspan(vocabulary_, 2 * vocabulary_)));
}

TEST(KvBytesTest, AFullMemoryIsAnErrorAndChangesNothing) {
  ModelOptions options;
  options.kv_bytes = 1;
  const auto none = LoadModel(GoldenFolder("llama-fp32-tied"), options);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("does not hold a page"), std::string::npos);
  const int64_t page = LoadGolden("llama-fp32-tied")->kv_memory().page_bytes;
  options.kv_bytes = 5 * page + page / 2;
  const auto model = LoadModel(GoldenFolder("llama-fp32-tied"), options);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ((*model)->kv_memory().pages, 5);
  EXPECT_EQ((*model)->NewSequence(81).error().code, ErrorCode::kLimit);
  const SequenceId a = MakeSequence(**model, 80), b = MakeSequence(**model, 80);
  const std::vector<TokenId> tokens(60, 7);
  const std::vector<float> first = RunChunk(**model, a, 0, tokens);
  std::vector<float> logits(257);
  std::vector<Row> rows;
  for (int i = 0; i < 20; ++i) rows.push_back({9, i, b, 0, -1});
  const Status full = (*model)->Forward(rows, logits);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::kLimit);
  EXPECT_NE(full.error().message.find("1 of 5 are free"), std::string::npos);
  EXPECT_TRUE((*model)->bad_rows().empty());
  EXPECT_TRUE(SameBits(RunChunk(**model, a, 59, std::vector<TokenId>{7}),
                       std::span(first).subspan(59 * 257)));
  (*model)->FreeSequence(a);
  EXPECT_EQ((*model)->kv_memory().available, 5);
  EXPECT_TRUE((*model)->Forward(rows, logits).ok());
}

std::vector<std::pair<std::string, KernelVariant>> RowsParams() {
  std::vector<std::pair<std::string, KernelVariant>> params;
  for (const std::string& name : GoldenNames()) params.emplace_back(name, KernelVariant::kAuto);
  for (const std::string& name : FamilyGoldenNames()) {
#ifdef PAWL_EMULATED_TILES
    // A loop for each tile takes its time: of the families, those whose layers differ most.
    if (!name.ends_with("qwen3_next-bf16") && !name.ends_with("granite4_h-bf16")) continue;
#endif
    params.emplace_back(name, KernelVariant::kAuto);
  }
  // Which are never chosen by themselves.
  for (const char* name : {"llama-bf16-llama3", "qwen2-bf16-window-yarn", "gemma3-bf16"}) {
    params.emplace_back(name, KernelVariant::kAmxBf16);
    params.emplace_back(name, KernelVariant::kAvx512Bf16);
  }
  return params;
}

INSTANTIATE_TEST_SUITE_P(All, RowsTest, testing::ValuesIn(RowsParams()), [](const auto& param) {
  std::string name = param.param.first;
  if (param.param.second == KernelVariant::kAmxBf16) name += "_amx_bf16";
  if (param.param.second == KernelVariant::kAvx512Bf16) name += "_avx512_bf16";
  return TestNameOf(name);
});

// ---- Refused calls ----

class BadRowsTest : public testing::Test {
 protected:
  void SetUp() override {
    model_ = LoadGolden("llama-fp32-tied");
    ASSERT_NE(model_, nullptr);
    sequence_ = MakeSequence(*model_, 16);
    RunChunk(*model_, sequence_, 0, std::vector<TokenId>{1, 2, 3});
    expected_ = RunChunk(*model_, sequence_, 3, std::vector<TokenId>{4});
  }

  void ExpectRefused(const std::vector<Row>& rows, ErrorCode code, const std::string& place,
                     const std::string& part) {
    std::vector<float> logits(257 * 4);
    const Status status = model_->Forward(rows, logits);
    ASSERT_FALSE(status.ok()) << part;
    EXPECT_EQ(status.error().code, code) << status.error().ToString();
    EXPECT_EQ(status.error().place, place);
    EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().ToString();
    // The sequence is as it was.
    EXPECT_TRUE(SameBits(RunChunk(*model_, sequence_, 3, std::vector<TokenId>{4}), expected_));
  }

  std::unique_ptr<Model> model_;
  SequenceId sequence_ = -1;
  std::vector<float> expected_;
};

TEST_F(BadRowsTest, AreNamed) {
  const SequenceId s = sequence_;
  const ErrorCode invalid = ErrorCode::kInvalid;
  ExpectRefused({{257, 4, s, 0, 0}}, invalid, "row 0", "token 257");
  ExpectRefused({{-1, 4, s, 0, 0}}, invalid, "row 0", "token -1");
  ExpectRefused({{1, -1, s, 0, 0}}, invalid, "row 0", "negative position");
  ExpectRefused({{1, 4, s + 1, 0, 0}}, invalid, "row 0", "no sequence");
  ExpectRefused({{1, 4, -5, 0, 0}}, invalid, "row 0", "no sequence");
  ExpectRefused({{1, 6, s, 0, 0}}, invalid, "row 0", "gap");
  ExpectRefused({{1, 4, s, 0, 4}}, invalid, "row 0", "output 4");
  ExpectRefused({{1, 4, s, 0, 2147483647}}, invalid, "row 0", "output");
  ExpectRefused({{1, 4, s, 0, -1}, {1, 4, s, 0, -1}}, invalid, "row 1", "where 5 was expected");
  ExpectRefused({{1, 4, s, 0, -1}, {1, 6, s, 0, -1}}, invalid, "row 1", "where 5 was expected");
  ExpectRefused({{1, 16, s, 0, -1}}, ErrorCode::kLimit, "row 0", "capacity of 16");
  ExpectRefused({{1, 2147483647, s, 0, -1}}, ErrorCode::kLimit, "row 0", "capacity of 16");
}

TEST_F(BadRowsTest, Trees) {
  const SequenceId s = sequence_;
  const ErrorCode invalid = ErrorCode::kInvalid;
  ExpectRefused({{1, 4, s, 1, 0}}, invalid, "row 0", "earlier rows");
  ExpectRefused({{1, 4, s, 0, 0}, {1, 5, s, 2, 0}}, invalid, "row 1", "earlier rows");
  ExpectRefused({{1, 4, s, 0, 0}, {1, 6, s, 1, 0}}, invalid, "row 1", "does not follow");
  ExpectRefused({{1, 4, s, 0, 0}, {1, 5, s, 1, 0}, {1, 6, s, 2, 0}}, invalid, "row 2",
                "all ancestors");
  ExpectRefused({{1, 4, s, 0, 0}, {1, 5, s, 1, 0}, {2, 5, s, 1, 0}, {1, 6, s, 7, 0}}, invalid,
                "row 3", "all ancestors");
  std::vector<Row> wide = {{1, 4, s, 0, 0}};
  for (int i = 0; i < kMaxTreeRows; ++i) wide.push_back({2, 5, s, 1, -1});
  ExpectRefused(wide, ErrorCode::kLimit, "row 64", "at most 64");
}

TEST_F(BadRowsTest, CommitTree) {
  EXPECT_FALSE(model_->CommitTree(sequence_, 1).ok());
  EXPECT_FALSE(model_->CommitTree(sequence_, -1).ok());
  EXPECT_FALSE(model_->CommitTree(99, 0).ok());
  EXPECT_TRUE(model_->CommitTree(sequence_, 0).ok());
  EXPECT_FALSE(model_->CommitTree(sequence_, 0).ok()) << "only once";
  RunChunk(*model_, sequence_, 4, std::vector<TokenId>{4});
  model_->Truncate(sequence_, 2);
  EXPECT_FALSE(model_->CommitTree(sequence_, 0).ok()) << "not after Truncate";
}

TEST_F(BadRowsTest, Sequences) {
  EXPECT_EQ(model_->NewSequence(0).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(model_->NewSequence(-3).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(model_->NewSequence(257).error().code, ErrorCode::kLimit);
  model_->FreeSequence(77);
  model_->Truncate(77, 0);
  model_->FreeSequence(sequence_);
  model_->FreeSequence(sequence_);
  std::vector<float> logits(257);
  EXPECT_FALSE(model_->Forward(std::vector<Row>{{1, 0, sequence_, 0, 0}}, logits).ok());
  EXPECT_EQ(*model_->NewSequence(16), sequence_);
  EXPECT_TRUE(model_->Forward({}, {}).ok());
}

}  // namespace
}  // namespace pawl
