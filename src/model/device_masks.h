// DeviceMasks: the masks that were used last, mirrored in device memory, so that a step sends the
// numbers of masks and not their bits.
#ifndef PAWL_SRC_MODEL_DEVICE_MASKS_H_
#define PAWL_SRC_MODEL_DEVICE_MASKS_H_

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "kernels/cuda/runtime.h"
#include "pawl/grammar.h"
#include "pawl/result.h"

namespace pawl::PAWL_GPU {

// Keeps a reference to each mask in it, so equal addresses are equal masks. One thread at a time.
class DeviceMasks {
 public:
  // Room for `rows` masks over `vocabulary` tokens. Errors: kLimit.
  static Result<std::unique_ptr<DeviceMasks>> Make(int vocabulary, int rows);
  ~DeviceMasks();
  DeviceMasks(const DeviceMasks&) = delete;
  DeviceMasks& operator=(const DeviceMasks&) = delete;

  // The row of the mask; uploads it on the stream when it is not there, in place of the one that
  // was asked for longest ago. Rows asked for since the last call of NextStep stay: with more
  // different masks in a step than there are rows, kLimit.
  Result<int32_t> RowOf(const std::shared_ptr<const Mask>& mask, Stream stream);
  // REQUIRES: what was uploaded so far has arrived.
  void NextStep();

  const uint32_t* words() const { return memory_.as<uint32_t>(); }
  int64_t stride() const { return stride_; }
  int64_t uploads() const { return uploads_; }

 private:
  struct Entry {
    std::shared_ptr<const Mask> mask;
    int32_t row;
    int64_t step;
  };
  DeviceMasks() = default;

  DeviceMemory memory_;
  uint32_t* pinned_ = nullptr;  // as many rows as the device memory has
  int64_t stride_ = 0;          // words
  int rows_ = 0;
  int64_t step_ = 0, uploads_ = 0;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<const Mask*, std::list<Entry>::iterator> found_;
};

}  // namespace pawl::PAWL_GPU

#endif  // PAWL_SRC_MODEL_DEVICE_MASKS_H_
