// GGUF, versions 2 and 3 (github.com/ggml-org/ggml, docs/gguf.md): metadata and tensors of a model
// in one mapped file, or in several whose names end in -00001-of-00003.gguf and so on.
//
//   Result<GgufFile> file = GgufFile::Open("model.gguf");
//   const GgufValue* layers = file->FindValue("llama.block_count");
//   const TensorView* norm = file->Find("output_norm.weight");
#ifndef PAWL_SRC_MODEL_GGUF_H_
#define PAWL_SRC_MODEL_GGUF_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pawl/result.h"
#include "src/base/file.h"
#include "src/model/tensor_source.h"

namespace pawl {

struct GgufValue {
  enum class Kind { kUnsigned, kSigned, kFloat, kBool, kString, kArray };
  Kind kind = Kind::kUnsigned;
  uint64_t offset = 0;    // of the value in the file, for messages
  uint64_t number = 0;    // kUnsigned, kBool; kSigned as two's complement
  double real = 0;        // kFloat
  std::string_view text;  // kString, into the file
  std::string_view raw;   // its type and all behind it, as the file has them

  // kArray: the elements, all of one kind; arrays of arrays are refused.
  Kind element = Kind::kUnsigned;
  std::vector<std::string_view> strings;
  std::vector<int64_t> integers;  // also of bools
  std::vector<float> reals;
  size_t size() const { return strings.size() + integers.size() + reals.size(); }
};

// A type of tensors: its number in files, its name, and a block's elements and bytes.
struct GgufType {
  uint32_t id;
  const char* name;
  int64_t elements, bytes;
};
// nullptr for a name that no type has.
const GgufType* FindGgufType(std::string_view name);

// Immutable once opened; safe to read from any thread. The file must not be cut short while it is
// mapped.
class GgufFile final : public TensorSource {
 public:
  // The file, and all further parts where it is the first one of a split model, whose metadata
  // counts. Errors: kIo; kInvalid, kUnsupported and kLimit with place "FILE: byte N" or "FILE:
  // KEY". Every count, length, offset and alignment is checked against the file before it is used.
  static Result<GgufFile> Open(const std::string& path);
  // The same of bytes in memory, which must outlive the result. `name` stands for the path.
  static Result<GgufFile> Parse(std::span<const std::byte> bytes, const std::string& name);
  // What another format says in the terms of GGUF: metadata as a file without tensors, and tensors
  // that lie in `source`, or in `numbers` where they have no data.
  struct Tensor {
    std::string name;
    TensorView view;
    std::string path;
    int paired = 0;  // PairedRows
  };
  static Result<GgufFile> Of(std::string header, const std::string& path,
                             std::shared_ptr<const TensorSource> source,
                             std::vector<Tensor> tensors, std::vector<float> numbers);
  // The rows of each head of so many lie in two halves, where those of a file stand in pairs: 2 i
  // is i here, and 2 i + 1 the i-th of the second half. 0: all rows are in their place.
  int PairedRows(const std::string& name) const;

  const std::string& path() const { return path_; }
  // nullptr when there is none.
  const GgufValue* FindValue(std::string_view key) const;
  const std::map<std::string, GgufValue, std::less<>>& values() const { return values_; }

  // Shapes have the reader's order: rows first, ggml's first dimension last.
  const TensorView* Find(std::string_view name) const override;
  const std::string& PathOf(std::string_view name) const override;
  std::vector<std::string> Names() const override;
  int64_t bytes() const override { return static_cast<int64_t>(size_); }
  void Release(const std::byte* data, int64_t bytes) const override;
  const std::unordered_map<std::string, TensorView>& tensors() const { return tensors_; }

 private:
  struct Other {
    std::string header;
    std::shared_ptr<const TensorSource> source;
    std::vector<float> numbers;
    std::unordered_map<std::string, int> paired;
  };
  static Result<GgufFile> OpenOne(const std::string& path);
  Status AddParts(uint64_t count);

  std::string path_;
  std::vector<MappedFile> files_;       // none where the bytes are the caller's
  std::shared_ptr<const Other> other_;  // of Of
  std::vector<std::string> parts_;      // the paths of the further files of a split model
  std::unordered_map<std::string, size_t> part_of_;  // by tensor, of those in further files
  size_t size_ = 0;
  std::map<std::string, GgufValue, std::less<>> values_;
  std::unordered_map<std::string, TensorView> tensors_;
};

// Whether the path names a file that begins as a GGUF file does.
bool LooksLikeGguf(const std::string& path);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_GGUF_H_
