// Writes a GGUF file, version 3, from its header to its last tensor. The file has its name when all
// of it is there, and not before.
//
//   Result<GgufOutput> output = GgufOutput::Create("out.gguf", header);
//   for (...) output->Write(bytes);    // the tensors, in the order of the header
//   output->Finish();
#ifndef PAWL_SRC_MODEL_GGUF_OUTPUT_H_
#define PAWL_SRC_MODEL_GGUF_OUTPUT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/result.h"

namespace pawl {

// Key-value pairs and tensors, in order.
class GgufHeader {
 public:
  // `value`: its type and what is behind it, as GgufValue::raw.
  void Add(std::string_view key, std::string_view value);
  void AddUnsigned(std::string_view key, uint32_t value);
  // `shape`: rows first. REQUIRES: FindGgufType(dtype), and rows of whole blocks.
  void AddTensor(std::string_view name, std::string_view dtype, const std::vector<int64_t>& shape);

  // Padded to the alignment, so that the first tensor follows.
  std::string Bytes() const;
  // Of the file.
  int64_t total_bytes() const;
  void set_alignment(uint64_t alignment) { alignment_ = alignment; }
  uint64_t alignment() const { return alignment_; }
  int64_t tensor_bytes(size_t index) const { return sizes_[index]; }

 private:
  std::string values_, tensors_;
  uint64_t value_count_ = 0, alignment_ = 32;
  int64_t offset_ = 0;
  std::vector<int64_t> sizes_;
};

// Movable. What was written disappears when it is destroyed before Finish. One process at a time
// writes a name.
class GgufOutput {
 public:
  // Errors: kIo, also where the disk lacks the space for all of the file.
  static Result<GgufOutput> Create(const std::string& path, const GgufHeader& header);
  GgufOutput(GgufOutput&& other) noexcept;
  GgufOutput& operator=(GgufOutput&&) = delete;
  ~GgufOutput();

  // The next bytes of a tensor; padding follows its last one by itself.
  Status Write(std::span<const std::byte> bytes);
  // REQUIRES: all tensors were written.
  Status Finish();

 private:
  GgufOutput(std::string path, GgufHeader header);
  Status WriteAll(std::string_view bytes);
  Error Failed(const char* action) const;

  std::string path_, partial_;
  GgufHeader header_;
  int fd_ = -1;
  size_t tensor_ = 0;
  int64_t written_ = 0;  // of that tensor
};

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_GGUF_OUTPUT_H_
