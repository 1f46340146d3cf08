// The end of the forward pass: the head, and tokens drawn on the device.
//
// Logits of a large vocabulary are half a megabyte a row, which takes longer to fetch than a small
// model to compute them; a token is four bytes. Sampling is sample.* of masked_rows.cu, the rule of
// src/decode/sampler.cc. Where the masks of a block allow few tokens, the head itself is cut down:
// the union of the masks becomes an ascending list, only these rows of the head are read, and their
// logits are spread out to their places. That a logit is computed by way of the list changes none
// of its bits.
#include <algorithm>
#include <cstddef>

#include "src/model/transformer_cuda.h"

namespace pawl::PAWL_GPU {
namespace {

// At 128 k tokens, 16 MiB.
constexpr int kMaskRows = 1024;
// Listing pays when so much of the head, one part in this many, is wanted at most.
constexpr int64_t kListedPart = 4;

}  // namespace

Status TransformerCuda::ForwardAndSample(std::span<const Row> rows,
                                         std::span<const SampleRequest> requests,
                                         std::span<TokenId> tokens) {
  Wanted wanted;
  wanted.requests = requests;
  wanted.tokens = tokens.first(std::min(tokens.size(), requests.size()));
  wanted.sample = true;
  return Run(rows, wanted);
}

Status TransformerCuda::GrowLogits(int count) {
  return Grow(logits_, int64_t{count} * (logits_stride_ + 1) * 4, true);
}

Result<TransformerCuda::HeadMode> TransformerCuda::PrepareHead(std::span<const Row> rows,
                                                               std::span<const size_t> outputs,
                                                               int count, const Wanted& wanted) {
  if (!wanted.sample || outputs.empty()) return HeadMode::kLogits;
  if (masks_ == nullptr) {
    struct Piece {
      DeviceMemory* memory;
      int64_t bytes;
    };
    for (const Piece& piece :
         {Piece{&compact_, kMostSkinnyRows * logits_stride_ * 4},
          Piece{&listed_, int64_t{config_.vocabulary} * 4},
          Piece{&chunk_counts_, (int64_t{config_.vocabulary} / 8192 + 1) * 4},
          Piece{&sample_workspace_, WorkspaceBytes(kMostSkinnyRows, config_.vocabulary)}}) {
      Result<DeviceMemory> memory = DeviceMemory::Make(piece.bytes);
      if (!memory.ok()) return memory.error();
      *piece.memory = *std::move(memory);
    }
    if (Status status = Grow(sample_rows_, sizeof(SampleRows), true); !status.ok()) {
      return status.error();
    }
    Result<std::unique_ptr<DeviceMasks>> masks = DeviceMasks::Make(config_.vocabulary, kMaskRows);
    if (!masks.ok()) return masks.error();
    masks_ = *std::move(masks);
  }
  masks_->NextStep();
  auto* sampled = static_cast<SampleRows*>(sample_rows_.pinned);
  int64_t allowed = 0;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    // Rows that fill up a shape are the first one once more.
    const size_t row = outputs[i < outputs.size() ? i : 0];
    const SampleRequest& request = wanted.requests[static_cast<size_t>(rows[row].output)];
    sampled->masks[i] = -1;
    if (request.mask != nullptr) {
      const Result<int32_t> mask_row = masks_->RowOf(request.mask, stream_);
      if (!mask_row.ok()) return mask_row.error();
      sampled->masks[i] = *mask_row;
    }
    if (i < outputs.size()) {
      allowed += request.mask != nullptr ? request.mask->count() : config_.vocabulary;
    }
    sampled->temperatures[i] = request.temperature;
    sampled->seeds[i] = request.seed;
    sampled->positions[i] = request.position;
  }
  Status status =
      CopyIn(sample_rows_.device.data(), sampled, offsetof(SampleRows, tokens), stream_);
  if (!status.ok()) return status.error();
  return allowed * kListedPart <= config_.vocabulary ? HeadMode::kSampleListed : HeadMode::kSample;
}

Status TransformerCuda::EnqueueHead(const float* x, const int32_t* list, int count, HeadMode mode) {
  GatherRows gather;
  gather.from = x;
  gather.stride = hidden_stride_;
  gather.list = list;
  gather.columns = config_.hidden;
  gather.count = count;
  gather.to = last_.as<float>();
  if (Status status = RunGatherRows(gather, stream_); !status.ok()) return status;
  auto* logits = logits_.device.as<float>();
  auto* flags = reinterpret_cast<int32_t*>(logits + int64_t{count} * logits_stride_);
  if (Status status = Fill(flags, 0, count * 4, stream_); !status.ok()) return status;
  MatMul head;
  head.parts[0].w = head_;
  head.parts[0].y = logits;
  head.parts[0].y_stride = logits_stride_;
  head.x = last_.as<float>();
  head.x_stride = hidden_stride_;
  head.rows = count;
  head.norm = final_norm_;
  head.epsilon = config_.norm_epsilon;
  head.soft_cap = config_.logit_soft_cap;
  head.not_finite = flags;
  if (mode != HeadMode::kSampleListed) {
    Status status = RunMatMul(head, stream_);
    if (!status.ok() || mode == HeadMode::kLogits) return status;
    return EnqueueSampling(count);
  }
  auto* sampled = sample_rows_.device.as<SampleRows>();
  UnionOfMasks allowed;
  allowed.masks = masks_->words();
  allowed.masks_stride = masks_->stride();
  allowed.mask_rows = sampled->masks;
  allowed.count = count;
  allowed.vocabulary = config_.vocabulary;
  allowed.tokens = listed_.as<int32_t>();
  allowed.token_count = &sampled->token_count;
  allowed.chunk_counts = chunk_counts_.as<int32_t>();
  if (Status status = RunUnionOfMasks(allowed, stream_); !status.ok()) return status;
  head.parts[0].y = compact_.as<float>();
  head.row_list = allowed.tokens;
  head.row_list_count = allowed.token_count;
  if (Status status = RunMatMul(head, stream_); !status.ok()) return status;
  SpreadLogits spread;
  spread.compact = compact_.as<float>();
  spread.compact_stride = logits_stride_;
  spread.tokens = allowed.tokens;
  spread.token_count = allowed.token_count;
  spread.count = count;
  spread.vocabulary = config_.vocabulary;
  spread.logits = logits;
  spread.logits_stride = logits_stride_;
  if (Status status = RunSpreadLogits(spread, stream_); !status.ok()) return status;
  return EnqueueSampling(count);
}

Status TransformerCuda::EnqueueSampling(int count) {
  auto* sampled = sample_rows_.device.as<SampleRows>();
  SampleArgs sample;
  sample.rows.logits = logits_.device.data();
  sample.rows.logits_stride = logits_stride_;
  sample.rows.vocabulary = config_.vocabulary;
  sample.rows.masks = masks_->words();
  sample.rows.masks_stride = masks_->stride();
  sample.rows.mask_rows = sampled->masks;
  sample.rows.count = count;
  sample.temperatures = sampled->temperatures;
  sample.seeds = sampled->seeds;
  sample.positions = sampled->positions;
  sample.tokens = sampled->tokens;
  sample.workspace = sample_workspace_.data();
  return Sample(sample, stream_);
}

Status TransformerCuda::FetchHead(std::span<const Row> rows, std::span<const size_t> outputs,
                                  int count, const Wanted& wanted) {
  Status status;
  const auto then = [&](auto&& step) {
    if (status.ok()) status = step();
  };
  const int64_t flags_at = int64_t{count} * logits_stride_ * 4;
  auto* pinned = static_cast<char*>(logits_.pinned);
  auto* sampled = static_cast<SampleRows*>(sample_rows_.pinned);
  if (!outputs.empty()) {
    // Flags lie behind the logits.
    const int64_t skipped = wanted.sample ? flags_at : 0;
    then([&] {
      return CopyOut(pinned + skipped, logits_.device.as<char>() + skipped,
                     flags_at - skipped + count * 4, stream_);
    });
    if (wanted.sample) {
      then([&] {
        return CopyOut(sampled->tokens, sample_rows_.device.as<SampleRows>()->tokens, count * 4,
                       stream_);
      });
    }
  }
  then([&] { return Synchronize(stream_); });
  if (!status.ok()) return status;
  const auto* from = reinterpret_cast<const float*>(pinned);
  const auto* flags = reinterpret_cast<const int32_t*>(pinned + flags_at);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int32_t output = rows[outputs[i]].output;
    if (flags[i] != 0) bad_rows_.push_back(static_cast<int32_t>(outputs[i]));
    if (!wanted.sample) {
      std::copy_n(from + static_cast<int64_t>(i) * logits_stride_, config_.vocabulary,
                  wanted.logits.data() + int64_t{output} * config_.vocabulary);
      continue;
    }
    wanted.tokens[static_cast<size_t>(output)] = sampled->tokens[i];
    if (sampled->tokens[i] == kNothingAllowed && status.ok()) {
      status = Error{ErrorCode::kInvalid, "the mask allows no token",
                     "output " + std::to_string(output)};
    }
  }
  return status;
}

}  // namespace pawl::PAWL_GPU
