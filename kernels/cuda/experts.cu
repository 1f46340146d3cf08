// What surrounds the products of experts (Shazeer et al., "Outrageously Large Neural Networks",
// 2017): which experts a row has and with what weights, slots by their experts, and the weighted
// sum. Each result is of one row, or is a count, so nothing depends on the order of blocks, and a
// row has the same bits in any company.
#include "kernels/cuda/device_language.h"
#include "kernels/cuda/kernels.h"

namespace pawl::PAWL_GPU {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

// Scores of a row to weights of all experts, but for kSoftmaxOfChosen, where they stay. A lane has
// the experts lane, lane + 32, ...
__device__ void WeighExperts(const ChooseExperts& p, float* scores) {
  const int lane = static_cast<int>(threadIdx.x);
  if (p.kind == ScoreKind::kSoftmaxOfChosen) return;
  if (p.kind == ScoreKind::kSigmoid) {
    for (int e = lane; e < p.experts; e += kWarpSize) scores[e] = 1.0f / (1.0f + expf(-scores[e]));
    return;
  }
  float most = -INFINITY, sum = 0.0f;
  for (int e = lane; e < p.experts; e += kWarpSize) most = fmaxf(most, scores[e]);
  most = WarpMax(most);
  for (int e = lane; e < p.experts; e += kWarpSize) {
    scores[e] = expf(scores[e] - most);
    sum += scores[e];
  }
  sum = WarpSum(sum);
  for (int e = lane; e < p.experts; e += kWarpSize) scores[e] /= sum;
}

// The experts of groups that are not among the best get -infinity. The first of equal groups is
// better.
__device__ void LeaveBestGroups(const ChooseExperts& p, float* compared, float* worth) {
  const int lane = static_cast<int>(threadIdx.x), size = p.experts / p.groups;
  __syncwarp();
  for (int g = lane; g < p.groups; g += kWarpSize) {
    float best = -INFINITY, second = -INFINITY;
    for (int e = g * size; e < g * size + size; ++e) {
      second = fmaxf(second, fminf(best, compared[e]));
      best = fmaxf(best, compared[e]);
    }
    worth[g] = best + (size > 1 ? second : 0.0f);
  }
  __syncwarp();
  for (int g = lane; g < p.groups; g += kWarpSize) {
    int better = 0;
    for (int o = 0; o < p.groups; ++o) {
      better += worth[o] > worth[g] || (worth[o] == worth[g] && o < g) ? 1 : 0;
    }
    if (better < p.chosen_groups) continue;
    for (int e = g * size; e < g * size + size; ++e) compared[e] = -INFINITY;
  }
  __syncwarp();
}

// The largest of what the warp has not taken, the lowest among equals; what is not a number counts
// as the least. `taken`: bits of this lane's experts.
__device__ int TakeBest(const float* compared, int experts, uint32_t* taken) {
  const int lane = static_cast<int>(threadIdx.x);
  float best = -INFINITY;
  int of_best = kMostExperts;  // none
  for (int k = 0; lane + k * kWarpSize < experts; ++k) {
    if ((*taken >> k & 1u) != 0) continue;
    const float value = compared[lane + k * kWarpSize];
    if (of_best == kMostExperts || value > best) {
      best = value == value ? value : -INFINITY;
      of_best = lane + k * kWarpSize;
    }
  }
  for (int bits = kWarpSize / 2; bits > 0; bits /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, best, bits);
    const int of_other = __shfl_xor_sync(kAllLanes, of_best, bits);
    if (other > best || (other == best && of_other < of_best)) {
      best = other;
      of_best = of_other;
    }
  }
  if (of_best % kWarpSize == lane) *taken |= 1u << of_best / kWarpSize;
  return of_best;
}

// A warp for each row. Grid: rows.
__global__ __launch_bounds__(kWarpSize) void ChooseKernel(ChooseExperts p) {
  DependencyWait();
  PAWL_SHARED(float, scores, kMostExperts);
  PAWL_SHARED(float, compared, kMostExperts);
  PAWL_SHARED(float, worth, kMostExperts);
  PAWL_SHARED(int32_t, picked, kMostChosen);
  const int lane = static_cast<int>(threadIdx.x);
  int32_t* experts = p.slot_experts + static_cast<int64_t>(blockIdx.x) * p.chosen;
  float* weights = p.slot_weights + static_cast<int64_t>(blockIdx.x) * p.chosen;
  if (p.rows[blockIdx.x].position < 0) {
    if (lane < p.chosen) {
      experts[lane] = -1;
      weights[lane] = 0.0f;
    }
    return;
  }
  const float* row = p.scores + static_cast<int64_t>(blockIdx.x) * p.scores_stride;
  for (int e = lane; e < p.experts; e += kWarpSize) scores[e] = row[e];
  WeighExperts(p, scores);
  for (int e = lane; e < p.experts; e += kWarpSize) {
    compared[e] = scores[e] + (p.choice_bias != nullptr ? p.choice_bias[e] : 0.0f);
  }
  if (p.groups > 1) LeaveBestGroups(p, compared, worth);
  uint32_t taken = 0;
  for (int i = 0; i < p.chosen; ++i) {
    const int best = TakeBest(compared, p.experts, &taken);
    if (lane == 0) picked[i] = best;
  }
  __syncwarp();
  const auto weight_of = [&](int i) {
    const float score = scores[picked[i]];
    return p.kind == ScoreKind::kSoftmaxOfChosen ? expf(score - scores[picked[0]]) : score;
  };
  if (lane >= p.chosen) return;
  float sum = 0.0f;
  int before = 0;  // chosen experts with lower numbers
  for (int i = 0; i < p.chosen; ++i) {
    sum += weight_of(i);
    before += picked[i] < picked[lane] ? 1 : 0;
  }
  float weight = weight_of(lane);
  if (p.normalized || p.kind == ScoreKind::kSoftmaxOfChosen) weight /= sum;
  weight *= p.scale;
  if (p.factors != nullptr) weight *= p.factors[picked[lane]];
  experts[before] = picked[lane];
  weights[before] = weight;
}

// Each block finds the slots of its expert: a warp looks at a part of all slots, counts its own and
// those of lower experts, and, when all have, writes down its own behind those. Grid: experts.
__global__ __launch_bounds__(kThreads) void GroupKernel(GroupSlots p) {
  DependencyWait();
  PAWL_SHARED(unsigned, used, kMostExperts / 32);  // bits of experts
  PAWL_SHARED(int32_t, lower_of_warps, kWarps);
  PAWL_SHARED(int32_t, own_of_warps, kWarps);
  const int expert = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kWarpSize, warp = thread / kWarpSize;
  for (int i = thread; i < kMostExperts / 32; i += kThreads) used[i] = 0;
  __syncthreads();
  const int portion = (p.count + kThreads - 1) / kThreads * kWarpSize;  // of a warp
  const int begin = warp * portion;
  const int end = begin + portion < p.count ? begin + portion : p.count;
  int lower = 0, own = 0;
  for (int at = begin; at < end; at += kWarpSize) {
    const int its = at + lane < end ? p.slot_experts[at + lane] : -1;
    if (its >= 0) atomicOr(used + its / 32, 1u << its % 32);
    lower += __popc(__ballot_sync(kAllLanes, its >= 0 && its < expert));
    own += __popc(__ballot_sync(kAllLanes, its == expert));
  }
  if (lane == 0) {
    lower_of_warps[warp] = lower;
    own_of_warps[warp] = own;
  }
  __syncthreads();
  int first = 0, place = 0, all = 0;
  for (int w = 0; w < kWarps; ++w) {
    first += lower_of_warps[w];
    place += w < warp ? own_of_warps[w] : 0;
    all += own_of_warps[w];
  }
  if (thread == 0) {
    int runs = 0, index = 0;
    for (int i = 0; i < kMostExperts / 32; ++i) {
      runs += __popc(used[i]);
      const unsigned below = i < expert / 32    ? used[i]
                             : i == expert / 32 ? used[i] & ((1u << expert % 32) - 1u)
                                                : 0u;
      index += __popc(below);
    }
    if (expert == 0) *p.run_count = runs;
    if (all > 0) p.runs[index] = {expert, first, all};
  }
  place += first;
  for (int at = begin; at < end && own > 0; at += kWarpSize) {
    const bool mine = at + lane < end && p.slot_experts[at + lane] == expert;
    const unsigned with = __ballot_sync(kAllLanes, mine);
    if (mine) {
      const int to = place + __popc(with & ((1u << lane) - 1u));
      p.slots[to] = at + lane;
      p.rows[to] = (at + lane) / p.chosen;
    }
    place += __popc(with);
  }
}

// Grid: rows.
__global__ __launch_bounds__(kThreads) void AddKernel(AddExperts p) {
  DependencyWait();
  const int64_t row = blockIdx.x;
  const int32_t* experts = p.slot_experts + row * p.chosen;
  const float* weights = p.slot_weights + row * p.chosen;
  if (experts[0] < 0) return;
  float of_shared = 1.0f;
  if (p.shared_scores != nullptr) {
    of_shared = 1.0f / (1.0f + expf(-p.shared_scores[row * p.shared_scores_stride]));
  }
  float* to = p.to + row * p.to_stride;
  for (int i = static_cast<int>(threadIdx.x); i < p.columns; i += kThreads) {
    float sum = p.shared != nullptr ? p.shared[row * p.shared_stride + i] * of_shared : 0.0f;
    for (int k = 0; k < p.chosen; ++k) {
      sum = Fma(weights[k], p.y[(row * p.chosen + k) * p.y_stride + i], sum);
    }
    to[i] = p.add ? to[i] + sum : sum;
  }
}

Shape Blocks(int x, unsigned threads) {
  Shape shape;
  shape.x = static_cast<unsigned>(x);
  shape.threads = threads;
  return shape;
}

}  // namespace

Status RunChooseExperts(const ChooseExperts& args, Stream stream) {
  if (args.experts > kMostExperts || args.chosen > kMostChosen || args.chosen > args.experts) {
    return Error{ErrorCode::kUnsupported,
                 std::to_string(args.chosen) + " of " + std::to_string(args.experts) +
                     " experts; the CUDA kernels take 32 of 1024",
                 "cuda"};
  }
  return Launch("experts.choose", Blocks(args.count, kWarpSize), stream, ChooseKernel, args);
}

Status RunGroupSlots(const GroupSlots& args, Stream stream) {
  return Launch("experts.group", Blocks(args.experts, kThreads), stream, GroupKernel, args);
}

Status RunAddExperts(const AddExperts& args, Stream stream) {
  return Launch("experts.add", Blocks(args.count, kThreads), stream, AddKernel, args);
}

}  // namespace pawl::PAWL_GPU
