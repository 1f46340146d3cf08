// The toy keeps its tokens where a model keeps keys and values: in the slots that KvSequences
// plans. So the rules for pages, prefixes and trees are those of the real backends.
#include "tests/support/toy_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/base/random.h"
#include "src/decode/sampler.h"

namespace pawl {

ToyModel::ToyModel(const ToyOptions& options, Logits logits)
    : sequences({options.pages, options.kept}, options.context_length),
      options_(options),
      logits_(std::move(logits)),
      memory_(options.reads ? static_cast<size_t>(options.pages * kPagePositions) : 0, kNoToken) {
  model_info.vocabulary_size = options.vocabulary_size;
  model_info.context_length = options.context_length;
}

Result<SequenceId> ToyModel::NewSequence(int capacity) {
  if (!options_.reads) return alive++;
  Result<SequenceId> made = sequences.New(capacity);
  if (made.ok()) ++alive;
  return made;
}

void ToyModel::FreeSequence(SequenceId id) {
  if (!options_.reads || sequences.Known(id)) --alive;
  if (options_.reads) sequences.Free(id);
}

void ToyModel::Truncate(SequenceId id, int length) {
  if (options_.reads) sequences.Truncate(id, length);
}

int ToyModel::ReusePrefix(SequenceId id, std::span<const TokenId> tokens) {
  return options_.reads ? sequences.ReusePrefix(id, tokens) : 0;
}

int ToyModel::ReuseCopying(SequenceId id, std::span<const TokenId> tokens) {
  if (!options_.reads) return 0;
  std::vector<SlotCopy> copies;
  const int length = sequences.ReuseCopying(id, tokens, copies);
  Copy(copies);
  return length;
}

KvMemory ToyModel::kv_memory() const {
  if (!options_.reads) return {};
  return {kPagePositions, sequences.pool().pages(), sequences.pool().available(), 1};
}

void ToyModel::Copy(const std::vector<SlotCopy>& copies) {
  for (const SlotCopy& copy : copies) {
    memory_[static_cast<size_t>(copy.to)] = memory_[static_cast<size_t>(copy.from)];
  }
}

std::vector<TokenId> ToyModel::TokensOf(const PlannedRow& row) const {
  std::vector<TokenId> tokens;
  for (int32_t p = 0; p < row.prefix; ++p) {
    const int32_t page = plan_.pages[static_cast<size_t>(row.pages_begin + p / kPagePositions)];
    tokens.push_back(memory_[static_cast<size_t>(page * kPagePositions + p % kPagePositions)]);
  }
  for (int32_t e = 0; e < row.extra_count; ++e) {
    const int32_t slot = plan_.extra[static_cast<size_t>(row.extra_begin + e)];
    tokens.push_back(memory_[static_cast<size_t>(slot)]);
  }
  return tokens;
}

Status ToyModel::Compute(std::span<const Row> rows, std::span<float> logits, bool keep_tree) {
  bad_.clear();
  ++calls;
  most_rows = std::max(most_rows, static_cast<int>(rows.size()));
  if (before) {
    if (Status status = before(rows); !status.ok()) return status;
  }
  const auto width = static_cast<size_t>(options_.vocabulary_size);
  if (options_.reads) {
    const PlanLimits limits = {options_.vocabulary_size, static_cast<int64_t>(logits.size()),
                               keep_tree};
    if (Status status = sequences.Plan(rows, limits, plan_); !status.ok()) return status;
    Copy(plan_.copies);
    for (size_t i = 0; i < rows.size(); ++i) {
      memory_[static_cast<size_t>(plan_.rows[i].slot)] = rows[i].token;
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].output < 0) continue;
    const std::span<float> out = logits.subspan(static_cast<size_t>(rows[i].output) * width, width);
    std::vector<TokenId> tokens;
    if (options_.reads) tokens = TokensOf(plan_.rows[i]);
    logits_({rows[i], tokens}, out);
    if (!std::isnan(out[0])) continue;
    bad_.push_back(static_cast<int32_t>(i));
    if (!options_.reads) continue;
    plan_.changes[static_cast<size_t>(plan_.change_of[static_cast<size_t>(rows[i].sequence)])]
        .failed = true;
  }
  if (options_.reads) sequences.Finish(rows, plan_);
  if (after) {
    if (Status status = after(rows); !status.ok()) return status;
  }
  if (bad_.empty()) return {};
  return Error{ErrorCode::kInvalid, "not finite", "model"};
}

Status ToyModel::CommitTree(SequenceId id, int row) {
  if (!options_.reads) return {};
  std::vector<SlotCopy> copies;
  const Status status = sequences.CommitTree(id, row, copies);
  Copy(copies);
  return status;
}

Status ToyModel::Run(const ModelCall& call) {
  if (!call.draws) return Compute(call.rows, call.logits, call.keep_tree);
  const std::span<const SampleRequest> requests = call.requests;
  const auto width = static_cast<size_t>(options_.vocabulary_size);
  std::vector<float> logits(requests.size() * width);
  if (Status status = Compute(call.rows, logits, call.keep_tree); !status.ok()) return status;
  call.late();
  for (size_t i = 0; i < requests.size(); ++i) {
    const SampleRequest& request = requests[i];
    if (request.unwanted) continue;
    temperatures[request.position].push_back(request.temperature);
    Sampler sampler({.temperature = request.temperature, .seed = request.seed});
    const auto known = static_cast<size_t>(request.vocabulary);
    const Result<TokenId> token = sampler.Sample(std::span(logits).subspan(i * width, known),
                                                 request.mask.get(), request.position, {});
    if (!token.ok()) return token.error();
    call.tokens[i] = *token;
  }
  return {};
}

void HashedLogits(const ToyModel::Place& place, std::span<float> out) {
  const uint64_t hash = HashOf(place.tokens);
  for (size_t v = 0; v < out.size(); ++v) out[v] = 4 * UniformAt(hash, 1, v);
}

}  // namespace pawl
