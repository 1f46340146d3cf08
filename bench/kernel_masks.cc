// Masks on logits, and what is asked of masked logits: masked_rows.cu and masked_rows.cu.
#include <memory>

#include "bench/kernel_bench.h"
#include "kernels/bitmask.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/reference/kernels.h"

namespace pawl::PAWL_GPU {
namespace {

const char* TypeName(LogitType type) {
  constexpr const char* kNames[] = {"fp32", "fp16", "bf16"};
  return kNames[static_cast<int>(type)];
}
int BytesOf(LogitType type) { return type == LogitType::kF32 ? 4 : 2; }

// Rows of logits, each with a mask; logits of several turns. The device's rows repeat the host's.
struct Given {
  Given(const BenchSizes& sizes, LogitType type, int vocabulary, int rows, double share)
      : host_rows(std::min(rows, 4)), words((vocabulary + 31) / 32) {
    const DeviceWeight like = type == LogitType::kF32    ? DeviceWeight::kF32
                              : type == LogitType::kBf16 ? DeviceWeight::kBf16
                                                         : DeviceWeight::kF16;
    // Rows begin at sectors.
    stride = (vocabulary + 15) / 16 * 16;
    const int64_t row_bytes = stride * BytesOf(type);
    host = RandomWeights(like, host_rows * row_bytes, 61);
    turns = static_cast<int>(std::clamp<int64_t>(sizes.pool_bytes / (rows * row_bytes), 1, 64));
    logits = Must(DeviceMemory::Make(row_bytes * rows * turns));
    FillRepeated(logits, host.data(), static_cast<int64_t>(host.size()));
    Bits random(62);
    for (int i = 0; i < rows * words; ++i) {
      const auto half = static_cast<uint32_t>(random() >> 32);
      host_masks.push_back(share == 0.0 ? 0u : share == 1.0 ? ~0u : half);
    }
    masks = std::make_unique<Device<uint32_t>>(host_masks);
    workspace =
        std::make_unique<Device<std::byte>>(static_cast<size_t>(WorkspaceBytes(rows, vocabulary)));
    args.type = type;
    args.logits_stride = stride;
    args.vocabulary = vocabulary;
    args.masks = masks->data();
    args.masks_stride = words;
    args.count = rows;
  }
  const void* Logits(int turn) const {
    return logits.as<char>() + int64_t{turn} * args.count * stride * BytesOf(args.type);
  }
  // Row i of turn 0 on the host, as the one row of the arguments.
  MaskedRows Host(int i) const {
    MaskedRows row = args;
    row.logits = host.data() + (i % host_rows) * stride * BytesOf(args.type);
    row.masks = host_masks.data() + int64_t{i} * words;
    row.count = 1;
    return row;
  }
  // Masks and the sectors of logits with an allowed token in them.
  double ReadBytes() const {
    const int of_sector = static_cast<int>(kSectorBytes) / BytesOf(args.type);
    int64_t sectors = 0;
    for (int64_t w = 0; w < int64_t{args.count} * words; ++w) {
      const uint32_t word = host_masks[static_cast<size_t>(w)];
      for (int bit = 0; bit < 32; bit += of_sector) {
        sectors += (word >> bit & ((1u << of_sector) - 1)) != 0;
      }
    }
    return static_cast<double>(sectors * kSectorBytes + int64_t{args.count} * words * 4);
  }

  int host_rows, words, turns = 1;
  int64_t stride = 0;
  std::vector<std::byte> host;
  std::vector<uint32_t> host_masks;
  DeviceMemory logits;
  std::unique_ptr<Device<uint32_t>> masks;
  std::unique_ptr<Device<std::byte>> workspace;
  MaskedRows args;
};

Case BitmaskCase(const BenchSizes& sizes, LogitType type, int vocabulary, int rows, double share) {
  const auto given = std::make_shared<Given>(sizes, type, vocabulary, rows, share);
  Case made;
  for (int r = 0; r < rows; ++r) {
    made.bytes += static_cast<double>(MaskApplicationBytes(
        given->host_masks.data() + int64_t{r} * given->words, vocabulary, BytesOf(type)));
  }
  made.turns = given->turns;
  made.run = [=](int turn, Stream stream) {
    BitmaskArgs args;
    args.logits = const_cast<void*>(given->Logits(turn));
    args.type = type;
    args.logits_stride = given->stride;
    args.vocabulary = vocabulary;
    args.masks = given->args.masks;
    args.masks_stride = given->words;
    args.count = rows;
    return ApplyBitmask(args, stream);
  };
  made.error = [=, run = made.run]() {
    Check(run(0, nullptr));
    Deviation deviation;
    for (const int r : {0, rows - 1}) {
      const auto bytes = static_cast<size_t>(given->stride * BytesOf(type));
      std::vector<std::byte> got(bytes);
      Check(CopyOut(got.data(),
                    static_cast<const char*>(given->Logits(0)) + static_cast<size_t>(r) * bytes,
                    static_cast<int64_t>(bytes), nullptr));
      Check(Synchronize(nullptr));
      const MaskedRows host = given->Host(r);
      const auto* from = static_cast<const std::byte*>(host.logits);
      std::vector<std::byte> expected(from, from + bytes);
      BitmaskArgs args;
      args.logits = expected.data();
      args.type = type;
      args.logits_stride = given->stride;
      args.vocabulary = vocabulary;
      args.masks = host.masks;
      args.masks_stride = given->words;
      args.count = 1;
      pawl::ApplyBitmask(args);
      deviation.Same(got == expected);
    }
    return deviation.Relative();
  };
  return made;
}

enum class Question { kSample, kLogSoftmax, kTopK };
constexpr int kTop = 20;

Case MaskedCase(const BenchSizes& sizes, Question question, int vocabulary, int rows) {
  const auto given = std::make_shared<Given>(sizes, LogitType::kBf16, vocabulary, rows, 0.5);
  const auto width = static_cast<size_t>(vocabulary), count = static_cast<size_t>(rows);
  std::vector<float> temperatures(count, 0.8f);
  std::vector<uint64_t> seeds(count, 77), positions(count);
  for (size_t r = 0; r < count; ++r) positions[r] = r;
  struct Numbers {
    Device<float> temperatures;
    Device<uint64_t> seeds, positions;
    Device<int32_t> tokens;
    Device<float> logprobs;
  };
  const auto numbers = std::shared_ptr<Numbers>(
      new Numbers{Device<float>(temperatures), Device<uint64_t>(seeds), Device<uint64_t>(positions),
                  Device<int32_t>(count * kTop),
                  Device<float>(question == Question::kLogSoftmax ? count * width : count * kTop)});
  Case made;
  made.bytes = given->ReadBytes();
  if (question == Question::kLogSoftmax) made.bytes += 4.0 * rows * vocabulary;
  made.bound = 1e-5;
  made.turns = given->turns;
  made.run = [=](int turn, Stream stream) -> Status {
    MaskedRows masked = given->args;
    masked.logits = given->Logits(turn);
    if (question == Question::kSample) {
      SampleArgs args;
      args.rows = masked;
      args.temperatures = numbers->temperatures.data();
      args.seeds = numbers->seeds.data();
      args.positions = numbers->positions.data();
      args.tokens = numbers->tokens.data();
      args.workspace = given->workspace->data();
      return Sample(args, stream);
    }
    if (question == Question::kLogSoftmax) {
      LogSoftmaxArgs args;
      args.rows = masked;
      args.out = numbers->logprobs.data();
      args.out_stride = vocabulary;
      args.workspace = given->workspace->data();
      return LogSoftmax(args, stream);
    }
    TopKArgs args;
    args.rows = masked;
    args.k = kTop;
    args.tokens = numbers->tokens.data();
    args.logprobs = numbers->logprobs.data();
    args.workspace = given->workspace->data();
    return TopK(args, stream);
  };
  made.error = [=, run = made.run]() {
    numbers->tokens.Poison();
    numbers->logprobs.Poison();
    Check(run(0, nullptr));
    Deviation deviation;
    for (const int r : {0, rows - 1}) {
      const auto row = static_cast<size_t>(r);
      const MaskedRows host = given->Host(r);
      if (question == Question::kSample) {
        deviation.Same(numbers->tokens.Values(row, 1)[0] ==
                       reference::Draw(host, 0, 0.8f, 77, row));
        continue;
      }
      const std::vector<double> expected = reference::LogSoftmaxRow(host, 0);
      if (question == Question::kLogSoftmax) {
        const std::vector<float> got = numbers->logprobs.Values(row * width, width);
        for (size_t t = 0; t < width; ++t) {
          if (std::isinf(expected[t])) {
            deviation.Same(std::isinf(got[t]) && got[t] < 0);
          } else {
            deviation.Add(got[t], expected[t]);
          }
        }
        continue;
      }
      const std::vector<int32_t> top = reference::TopTokens(host, 0, kTop);
      const std::vector<int32_t> got = numbers->tokens.Values(row * kTop, kTop);
      const std::vector<float> logprobs = numbers->logprobs.Values(row * kTop, kTop);
      for (size_t k = 0; k < kTop; ++k) {
        deviation.Same(got[k] == top[k]);
        if (top[k] >= 0) deviation.Add(logprobs[k], expected[static_cast<size_t>(top[k])]);
      }
    }
    return deviation.Relative();
  };
  return made;
}

}  // namespace

void BenchMasks(KernelBench& bench) {
  const BenchSizes& sizes = bench.sizes();
  for (const BenchShape& shape : sizes.shapes) {
    for (const int rows : sizes.rows) {
      const std::string of_rows = ", " + std::to_string(rows) + " rows";
      for (const LogitType type : {LogitType::kBf16, LogitType::kF16, LogitType::kF32}) {
        for (const double share : {0.0, 0.5, 1.0}) {
          const std::string what = std::string(shape.name) + " " + TypeName(type) + of_rows + ", " +
                                   (share == 0.0   ? "none"
                                    : share == 0.5 ? "half"
                                                   : "all") +
                                   " allowed";
          bench.Add("bitmask", what,
                    [&] { return BitmaskCase(sizes, type, shape.vocabulary, rows, share); });
        }
      }
      bench.Add("sample", shape.name + of_rows,
                [&] { return MaskedCase(sizes, Question::kSample, shape.vocabulary, rows); });
      bench.Add("log_softmax", shape.name + of_rows,
                [&] { return MaskedCase(sizes, Question::kLogSoftmax, shape.vocabulary, rows); });
      bench.Add("top_k", shape.name + of_rows,
                [&] { return MaskedCase(sizes, Question::kTopK, shape.vocabulary, rows); });
    }
  }
}

}  // namespace pawl::PAWL_GPU
