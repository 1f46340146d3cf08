// Weights in safetensors files: one mapped file, or the several files of a sharded checkpoint.
//
//   Result<SafetensorsFile> file = SafetensorsFile::Open("model.safetensors");
//   const TensorView* norm = file->Find("model.norm.weight");
#ifndef PAWL_SRC_MODEL_SAFETENSORS_H_
#define PAWL_SRC_MODEL_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "src/base/file.h"
#include "src/model/tensor_source.h"

namespace pawl {

// Immutable once opened; safe to read from any thread. The file must not be cut short while it is
// mapped.
class SafetensorsFile {
 public:
  // Errors: kIo; kInvalid or kLimit with place "FILE" or "FILE: tensor NAME" when the header is
  // damaged, tensors overlap or leave holes, or the file is shorter or longer than its header says.
  static Result<SafetensorsFile> Open(const std::string& path);
  // The same of bytes in memory, which must outlive the result. `name` stands for the path.
  static Result<SafetensorsFile> Parse(std::span<const std::byte> bytes, const std::string& name);

  const std::string& path() const { return path_; }
  int64_t bytes() const { return size_; }
  // nullptr when there is none.
  const TensorView* Find(std::string_view name) const;
  const std::unordered_map<std::string, TensorView>& tensors() const { return tensors_; }

 private:
  Status ParseHeader(std::string_view header, const std::byte* data, int64_t data_bytes);

  std::string path_;
  MappedFile file_;
  int64_t size_ = 0;
  std::unordered_map<std::string, TensorView> tensors_;
};

// All tensors of a model folder: model.safetensors, or the files that model.safetensors.index.json
// lists.
class Checkpoint final : public TensorSource {
 public:
  // Errors: those of SafetensorsFile; kIo when the folder has neither; kInvalid for an index that
  // names a missing tensor or a file outside the folder.
  static Result<Checkpoint> Open(const std::string& folder);

  const TensorView* Find(std::string_view name) const override;
  const std::string& PathOf(std::string_view name) const override;
  std::vector<std::string> Names() const override;
  int64_t bytes() const override;
  void Release(const std::byte* data, int64_t bytes) const override;

 private:
  std::vector<SafetensorsFile> files_;
  std::unordered_map<std::string, size_t> shard_of_;  // empty for a single file
  std::string index_path_;
};

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_SAFETENSORS_H_
