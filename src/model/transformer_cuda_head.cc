// The end of the forward pass: the head, and tokens drawn on the device.
//
// Logits of a large vocabulary are half a megabyte a row, which takes longer to fetch than a small
// model to compute them; a token is four bytes. Rows with a temperature and a mask are drawn in the
// head itself (head.cuh), and rows of the head that no mask allows are not read. Penalties and
// filters look at all logits, which then stay on the device (process.cu). Callers that want logits
// get those that their masks allow.
//
// The forward pass is on its stream when the requests are asked for (`late`), and what the head
// needs to know about them (masks that are new, numbers, lists) goes to the device on a stream of
// its own meanwhile. The head waits for both.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "kernels/cuda/kernels.h"
#include "src/model/transformer_cuda.h"

namespace pawl::PAWL_GPU {

// DeviceMasks: the least recently used goes first. A row's words are copied to its own place in
// pinned memory, from where the device takes them while the host goes on; the place is not written
// again before the next step, when the copy has arrived.

Result<std::unique_ptr<DeviceMasks>> DeviceMasks::Make(int vocabulary, int rows) {
  std::unique_ptr<DeviceMasks> masks(new DeviceMasks());
  masks->stride_ = (int64_t{vocabulary} + 31) / 32;
  masks->rows_ = rows;
  const int64_t bytes = masks->stride_ * rows * 4;
  Result<DeviceMemory> memory = DeviceMemory::Make(bytes);
  if (!memory.ok()) return memory.error();
  masks->memory_ = *std::move(memory);
  Result<void*> pinned = AllocatePinned(bytes);
  if (!pinned.ok()) return pinned.error();
  masks->pinned_ = static_cast<uint32_t*>(*pinned);
  return masks;
}

DeviceMasks::~DeviceMasks() { FreePinned(pinned_); }

void DeviceMasks::NextStep() { ++step_; }

Result<int32_t> DeviceMasks::RowOf(const std::shared_ptr<const Mask>& mask, Stream stream) {
  const auto found = found_.find(mask.get());
  if (found != found_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
    found->second->step = step_;
    return found->second->row;
  }
  int32_t row = static_cast<int32_t>(entries_.size());
  if (row == rows_) {
    if (entries_.back().step == step_) {
      return Error{ErrorCode::kLimit,
                   "more than " + std::to_string(rows_) + " different masks in one step", "cuda"};
    }
    row = entries_.back().row;
    found_.erase(entries_.back().mask.get());
    entries_.pop_back();
  }
  uint32_t* to = pinned_ + row * stride_;
  const std::span<const uint32_t> words = mask->words();
  const auto count = std::min(words.size(), static_cast<size_t>(stride_));
  std::copy_n(words.begin(), count, to);
  std::fill(to + count, to + stride_, 0u);
  Status status = CopyIn(memory_.as<uint32_t>() + row * stride_, to, stride_ * 4, stream);
  if (!status.ok()) return status.error();
  ++uploads_;
  entries_.push_front({mask, row, step_});
  found_[mask.get()] = entries_.begin();
  return row;
}

namespace {

// At 128 k tokens, 16 MiB.
constexpr int kMaskRows = 1024;
// Masks that allow so few tokens in all become a list.
constexpr int kMostListed = 1024;
// Listing pays when so much of the head, one part in this many, is wanted at most.
constexpr int64_t kListedPart = 4;

bool Filters(const SampleRequest& request) {
  return request.penalties.any() ||
         (request.temperature != 0 &&
          (request.top_k > 0 || request.top_p < 1 || request.min_p > 0)) ||
         !request.top.empty();
}

// The tokens whose bits are set, below `limit`, ascending.
void ListBits(std::span<const uint32_t> words, int limit, std::vector<int32_t>& tokens) {
  for (size_t w = 0; w < words.size(); ++w) {
    for (uint32_t word = words[w]; word != 0; word &= word - 1) {
      const auto token = static_cast<int32_t>(w * 32) + std::countr_zero(word);
      if (token < limit) tokens.push_back(token);
    }
  }
}

}  // namespace

Status TransformerCuda::GrowLogits(int count) {
  return Grow(logits_, int64_t{count} * logits_stride_ * 4, true);
}

int64_t TransformerCuda::HeadBytes() const {
  const int64_t masks = int64_t{kMaskRows} * ((config_.vocabulary + 31) / 32) * 4;
  const int64_t logits = kMostSkinnyRows * logits_stride_ * 4;
  return masks + logits + WorkspaceBytes(kMostSkinnyRows, config_.vocabulary);
}

Status TransformerCuda::AllocateHead() {
  if (masks_ != nullptr) return {};
  constexpr int64_t kRowsBytes = sizeof(HeadRows) + kMostSkinnyRows * sizeof(ProcessRow);
  if (Status status = Grow(head_rows_, kRowsBytes, true); !status.ok()) return status;
  if (Status status = Grow(head_seen_, 1024, true); !status.ok()) return status;
  Result<DeviceMemory> state = DeviceMemory::Make(sizeof(HeadState));
  if (!state.ok()) return state.error();
  head_state_ = *std::move(state);
  if (Status status = Fill(head_state_.data(), 0, sizeof(HeadState), stream_); !status.ok()) {
    return status;
  }
  Result<std::unique_ptr<DeviceMasks>> masks = DeviceMasks::Make(config_.vocabulary, kMaskRows);
  if (!masks.ok()) return masks.error();
  masks_ = *std::move(masks);
  return {};
}

Status TransformerCuda::RunHead(std::span<const Row> rows, std::span<const size_t> outputs,
                                const float* x, const int32_t* list, Wanted& wanted) {
  if (wanted.late) std::exchange(wanted.late, nullptr)();
  if (outputs.empty()) return Synchronize(stream_);
  if (Status status = Grow(head_answers_, sizeof(HeadAnswers), true); !status.ok()) return status;
  const Result<Head> head =
      wanted.sample ? PrepareSampling(rows, outputs, wanted) : PrepareLogits(rows, outputs);
  if (!head.ok()) return head.error();
  if (Status status = Raise(uploaded_, uploads_); !status.ok()) return status;
  if (Status status = WaitFor(uploaded_, stream_); !status.ok()) return status;
  const auto count = static_cast<int>(outputs.size());
  if (Status status = EnqueueHead(x, list, count, *head); !status.ok()) return status;
  return wanted.sample ? FetchTokens(rows, outputs, *head, wanted)
                       : FetchLogits(rows, outputs, *head, wanted);
}

Status TransformerCuda::SendList(std::span<const int32_t> tokens) {
  const auto bytes = static_cast<int64_t>(tokens.size_bytes());
  if (Status status = Grow(head_list_, std::max<int64_t>(bytes, kMostListed * 4), true);
      !status.ok()) {
    return status;
  }
  std::memcpy(head_list_.pinned, tokens.data(), tokens.size_bytes());
  return CopyIn(head_list_.device.data(), head_list_.pinned, bytes, uploads_);
}

Result<TransformerCuda::Head> TransformerCuda::PrepareLogits(std::span<const Row> rows,
                                                             std::span<const size_t> outputs) {
  Head head;
  if (Status status = GrowLogits(static_cast<int>(outputs.size())); !status.ok()) {
    return status.error();
  }
  any_.assign(static_cast<size_t>(config_.vocabulary + 31) / 32, 0);
  for (const size_t output : outputs) {
    const std::span<const uint32_t> allowed = rows[output].allowed;
    if (allowed.empty()) return head;
    for (size_t w = 0; w < std::min(allowed.size(), any_.size()); ++w) any_[w] |= allowed[w];
  }
  listed_.clear();
  ListBits(any_, config_.vocabulary, listed_);
  if (static_cast<int64_t>(listed_.size()) * kListedPart > config_.vocabulary) return head;
  head.mode = HeadMode::kListedLogits;
  head.listed = static_cast<int>(listed_.size());
  if (Status status = AllocateHead(); !status.ok()) return status.error();
  if (Status status = SendList(listed_); !status.ok()) return status.error();
  static_cast<HeadRows*>(head_rows_.pinned)->list_count = head.listed;
  Status status = CopyIn(head_rows_.device.data(), head_rows_.pinned, sizeof(HeadRows), uploads_);
  if (!status.ok()) return status.error();
  return head;
}

Result<TransformerCuda::Head> TransformerCuda::PrepareSampling(std::span<const Row> rows,
                                                               std::span<const size_t> outputs,
                                                               const Wanted& wanted) {
  if (Status status = AllocateHead(); !status.ok()) return status.error();
  masks_->NextStep();
  Head head;
  head.mode = HeadMode::kSample;
  // Rows without a mask allow more than that.
  const int64_t most_listed = std::min<int64_t>(kMostListed, config_.vocabulary / kListedPart);
  int64_t allowed = 0, seen_count = 0;
  for (const size_t output : outputs) {
    seen_count +=
        static_cast<int64_t>(wanted.requests[static_cast<size_t>(rows[output].output)].seen.size());
  }
  if (Status status = Grow(head_seen_, seen_count * 8, true); !status.ok()) return status.error();
  auto* sampled = static_cast<HeadRows*>(head_rows_.pinned);
  auto* process = reinterpret_cast<ProcessRow*>(sampled + 1);
  auto* seen = static_cast<int32_t*>(head_seen_.pinned);
  seen_count = 0;
  listed_.clear();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const SampleRequest& request = wanted.requests[static_cast<size_t>(rows[outputs[i]].output)];
    sampled->masks[i] = request.unwanted ? kNoTokenWanted : kEveryToken;
    sampled->limits[i] = request.vocabulary < 0 ? config_.vocabulary
                                                : std::min(request.vocabulary, config_.vocabulary);
    sampled->temperatures[i] = request.temperature;
    sampled->seeds[i] = request.seed;
    sampled->positions[i] = request.position;
    head.limit = i == 0 ? sampled->limits[i] : std::min(head.limit, sampled->limits[i]);
    process[i] = ProcessRow();
    if (request.unwanted) continue;
    if (request.mask != nullptr) {
      const Result<int32_t> mask_row = masks_->RowOf(request.mask, uploads_);
      if (!mask_row.ok()) return mask_row.error();
      sampled->masks[i] = *mask_row;
    }
    allowed += request.mask != nullptr ? request.mask->count() : config_.vocabulary;
    if (allowed <= most_listed && request.mask != nullptr) {
      ListBits(request.mask->words(), sampled->limits[i], listed_);
    }
    if (!Filters(request)) continue;
    head.mode = HeadMode::kProcess;
    head.top = std::max(head.top, static_cast<int>(request.top.size()));
    process[i].penalties = request.penalties;
    process[i].top_k = request.top_k;
    process[i].top_p = request.top_p;
    if (request.min_p > 0) process[i].least = std::log(request.min_p);
    if (!request.penalties.any()) continue;
    process[i].seen_begin = static_cast<int32_t>(seen_count);
    for (const SeenToken& token : request.seen) {
      if (token.token < 0 || token.token >= sampled->limits[i]) continue;
      seen[2 * seen_count] = token.token;
      seen[2 * seen_count + 1] = token.count;
      ++seen_count;
    }
    process[i].seen_count = static_cast<int32_t>(seen_count) - process[i].seen_begin;
  }
  if (head.mode == HeadMode::kSample && allowed <= most_listed) {
    std::sort(listed_.begin(), listed_.end());
    listed_.erase(std::unique(listed_.begin(), listed_.end()), listed_.end());
    head.mode = HeadMode::kSampleListed;
    head.listed = static_cast<int>(listed_.size());
    if (Status status = SendList(listed_); !status.ok()) return status.error();
  }
  sampled->list_count = head.listed;
  int64_t bytes = sizeof(HeadRows);
  if (head.mode == HeadMode::kProcess) {
    bytes += static_cast<int64_t>(outputs.size() * sizeof(ProcessRow));
    const auto count = static_cast<int>(outputs.size());
    if (Status status = GrowLogits(count); !status.ok()) return status.error();
    if (head.top > 0) {
      const int64_t tops = int64_t{count} * kMostTopTokens * 8;
      if (Status status = Grow(head_top_, tops, true); !status.ok()) return status.error();
      if (const int64_t needed = WorkspaceBytes(count, config_.vocabulary);
          needed > top_workspace_.bytes()) {
        Result<DeviceMemory> memory = DeviceMemory::Make(needed);
        if (!memory.ok()) return memory.error();
        top_workspace_ = *std::move(memory);
      }
    }
    Status status = CopyIn(head_seen_.device.data(), head_seen_.pinned, seen_count * 8, uploads_);
    if (!status.ok()) return status.error();
  }
  Status status = CopyIn(head_rows_.device.data(), head_rows_.pinned, bytes, uploads_);
  if (!status.ok()) return status.error();
  return head;
}

Status TransformerCuda::EnqueueHead(const float* x, const int32_t* list, int count,
                                    const Head& head) {
  auto* answers = head_answers_.device.as<HeadAnswers>();
  auto* rows = head_rows_.device.as<HeadRows>();
  MatMul product;
  product.parts[0].w = head_;
  product.x = x;
  product.x_stride = hidden_stride_;
  product.x_rows = list;
  product.rows = count;
  product.norm = final_norm_;
  product.epsilon = config_.norm_epsilon;
  product.soft_cap = config_.logit_soft_cap;
  if (head.mode == HeadMode::kSample || head.mode == HeadMode::kSampleListed) {
    HeadSample sample;
    sample.product = product;
    sample.masks = masks_->words();
    sample.masks_stride = masks_->stride();
    sample.rows = rows;
    if (head.mode == HeadMode::kSampleListed) {
      sample.list = head_list_.device.as<int32_t>();
      sample.most_listed = std::max(head.listed, 1);
    }
    sample.state = head_state_.as<HeadState>();
    sample.answers = answers;
    return RunHeadSample(sample, stream_);
  }
  auto* logits = logits_.device.as<float>();
  product.parts[0].y = logits;
  product.parts[0].y_stride = logits_stride_;
  if (head.mode == HeadMode::kListedLogits) {
    product.row_list = head_list_.device.as<int32_t>();
    product.row_list_count = &rows->list_count;
  }
  if (head.mode == HeadMode::kLogits) {
    Status status = Fill(answers->not_finite, 0, sizeof answers->not_finite, stream_);
    if (!status.ok()) return status;
    product.not_finite = answers->not_finite;
  }
  Status status = RunMatMul(product, stream_);
  if (!status.ok() || head.mode != HeadMode::kProcess) return status;
  if (head.top > 0) {
    TopKArgs top;
    top.rows.logits = logits;
    top.rows.logits_stride = logits_stride_;
    top.rows.vocabulary = head.limit;
    top.rows.masks = masks_->words();
    top.rows.masks_stride = masks_->stride();
    top.rows.mask_rows = rows->masks;
    top.rows.count = count;
    top.k = head.top;
    top.tokens = head_top_.device.as<int32_t>();
    top.logprobs = reinterpret_cast<float*>(top.tokens + count * kMostTopTokens);
    top.workspace = top_workspace_.data();
    status = TopK(top, stream_);
    if (!status.ok()) return status;
  }
  ProcessLogits process;
  process.logits = logits;
  process.logits_stride = logits_stride_;
  process.count = count;
  process.masks = masks_->words();
  process.masks_stride = masks_->stride();
  process.rows = rows;
  process.process = reinterpret_cast<const ProcessRow*>(rows + 1);
  process.seen = head_seen_.device.as<int32_t>();
  process.answers = answers;
  return RunProcessLogits(process, stream_);
}

Status TransformerCuda::FetchLogits(std::span<const Row> rows, std::span<const size_t> outputs,
                                    const Head& head, const Wanted& wanted) {
  const auto width = static_cast<size_t>(config_.vocabulary);
  auto* answers = static_cast<HeadAnswers*>(head_answers_.pinned);
  auto* pinned = static_cast<float*>(logits_.pinned);
  const bool listed = head.mode == HeadMode::kListedLogits;
  Status status;
  for (size_t i = 0; i < outputs.size() && status.ok(); ++i) {
    const int64_t at = static_cast<int64_t>(i) * logits_stride_;
    const int64_t floats = listed ? head.listed : config_.vocabulary;
    status = CopyOut(pinned + at, logits_.device.as<float>() + at, floats * 4, stream_);
  }
  if (status.ok()) {
    status = CopyOut(answers, head_answers_.device.data(), sizeof(HeadAnswers), stream_);
  }
  if (status.ok()) status = Synchronize(stream_);
  if (!status.ok()) return status;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Row& row = rows[outputs[i]];
    const float* from = pinned + static_cast<int64_t>(i) * logits_stride_;
    float* to = wanted.logits.data() + static_cast<size_t>(row.output) * width;
    bool bad = false;
    if (!listed) {
      std::copy_n(from, width, to);
      bad = answers->not_finite[i] != 0;
    }
    for (size_t n = 0; listed && n < listed_.size(); ++n) {
      const auto token = static_cast<size_t>(listed_[n]);
      const bool its =
          token / 32 < row.allowed.size() && (row.allowed[token / 32] >> token % 32 & 1) != 0;
      if (!its) continue;
      to[token] = from[n];
      bad = bad || !std::isfinite(from[n]);
    }
    if (bad) bad_rows_.push_back(static_cast<int32_t>(outputs[i]));
  }
  return {};
}

Status TransformerCuda::FetchTokens(std::span<const Row> rows, std::span<const size_t> outputs,
                                    const Head& head, const Wanted& wanted) {
  auto* answers = static_cast<HeadAnswers*>(head_answers_.pinned);
  const size_t tops = outputs.size() * kMostTopTokens;
  Status status = CopyOut(answers, head_answers_.device.data(), sizeof(HeadAnswers), stream_);
  if (status.ok() && head.top > 0) {
    status =
        CopyOut(head_top_.pinned, head_top_.device.data(), static_cast<int64_t>(tops * 8), stream_);
  }
  if (status.ok()) status = Synchronize(stream_);
  if (!status.ok()) return status;
  const auto* top_tokens = static_cast<const int32_t*>(head_top_.pinned);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto output = static_cast<size_t>(rows[outputs[i]].output);
    const SampleRequest& request = wanted.requests[output];
    const int32_t token = answers->tokens[i];
    wanted.tokens[output] = token >= 0 ? token : kNoToken;
    if (request.unwanted) continue;
    for (size_t k = 0; k < request.top.size(); ++k) {
      const size_t at = i * static_cast<size_t>(head.top) + k;
      const auto* logprobs = reinterpret_cast<const float*>(top_tokens + tops);
      request.top[k] = {top_tokens[at] >= 0 ? top_tokens[at] : kNoToken, logprobs[at]};
    }
    if (token == kBrokenLogits) bad_rows_.push_back(static_cast<int32_t>(outputs[i]));
    if (token == kNothingAllowed && status.ok()) {
      status = Error{ErrorCode::kInvalid, "the mask allows no token",
                     "output " + std::to_string(output)};
    }
  }
  return status;
}

}  // namespace pawl::PAWL_GPU
