// Two rows of logits in device memory, one mask: four tokens allowed in the first row, everything
// in the second; then the token that each row would give.
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "pawl/cuda_kernels.h"

int main() {
  constexpr int kRows = 2, kVocabulary = 100, kWords = (kVocabulary + 31) / 32;
  std::vector<float> logits;
  for (int i = 0; i < kRows * kVocabulary; ++i) logits.push_back(static_cast<float>(i % 7));
  const std::vector<uint32_t> mask = {0xf0, 0, 0, 0};
  const std::vector<int32_t> mask_rows = {0, -1};  // -1: none
  const int64_t workspace_bytes = pawl::cuda::WorkspaceBytes(kRows, kVocabulary);
  const size_t sizes[] = {logits.size() * 4, kWords * 4, kRows * 4, kRows * 4,
                          static_cast<size_t>(workspace_bytes)};
  void* memory[5] = {};
  for (int i = 0; i < 5; ++i) {
    if (const cudaError_t error = cudaMalloc(&memory[i], sizes[i]); error != cudaSuccess) {
      std::printf("no device: %s\n", cudaGetErrorString(error));
      return 0;
    }
  }
  cudaMemcpy(memory[0], logits.data(), sizes[0], cudaMemcpyHostToDevice);
  cudaMemcpy(memory[1], mask.data(), sizes[1], cudaMemcpyHostToDevice);
  cudaMemcpy(memory[2], mask_rows.data(), sizes[2], cudaMemcpyHostToDevice);

  pawl::BitmaskArgs args;
  args.logits = memory[0];
  args.logits_stride = args.vocabulary = kVocabulary;
  args.masks = static_cast<uint32_t*>(memory[1]);
  args.masks_stride = kWords;
  args.mask_rows = static_cast<int32_t*>(memory[2]);
  args.count = kRows;
  pawl::Status status = pawl::cuda::ApplyBitmask(args, nullptr);

  // The same masks while drawing, which needs no masked logits.
  pawl::SampleArgs sample;
  sample.rows.logits = args.logits;
  sample.rows.logits_stride = sample.rows.vocabulary = kVocabulary;
  sample.rows.masks = args.masks;
  sample.rows.masks_stride = kWords;
  sample.rows.mask_rows = args.mask_rows;
  sample.rows.count = kRows;
  sample.tokens = static_cast<int32_t*>(memory[3]);
  sample.workspace = memory[4];
  if (status.ok()) status = pawl::cuda::Sample(sample, nullptr);
  if (!status.ok()) {
    std::printf("%s\n", status.error().ToString().c_str());
    return 1;
  }
  int32_t tokens[kRows];
  cudaMemcpy(logits.data(), memory[0], sizes[0], cudaMemcpyDeviceToHost);
  cudaMemcpy(tokens, memory[3], sizes[3], cudaMemcpyDeviceToHost);
  for (int row = 0; row < kRows; ++row) {
    int allowed = 0;
    for (int t = 0; t < kVocabulary; ++t) allowed += std::isfinite(logits[row * kVocabulary + t]);
    std::printf("row %d: %d allowed, token %d\n", row, allowed, tokens[row]);
  }
  for (void* piece : memory) cudaFree(piece);
}
