// Which type each tensor of a quantized GGUF file gets: a file of type Q4_K_M has tensors of Q4_K,
// Q6_K and others.
//
//   const GgufFileType* type = FindGgufFileType("Q4_K_M");
//   GgufMixture mixture(file, *type);
//   mixture.TypeOf("blk.0.ffn_down.weight");  // "Q6_K"
#ifndef PAWL_SRC_MODEL_GGUF_MIXTURE_H_
#define PAWL_SRC_MODEL_GGUF_MIXTURE_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "src/model/gguf.h"

namespace pawl {

struct GgufFileType {
  const char* name;
  uint32_t id;       // general.file_type
  const char* type;  // of most tensors
};
// In upper or lower case; nullptr where there is none.
const GgufFileType* FindGgufFileType(std::string_view name);
// "F32, F16, ..."
std::string GgufFileTypeNames();

// The choice is that of llama.cpp's quantizer without an importance matrix.
class GgufMixture {
 public:
  GgufMixture(const GgufFile& file, const GgufFileType& type);
  // The tensor's own type where it stays as it is: norms, biases and what is small.
  // REQUIRES: the file has the tensor.
  std::string TypeOf(const std::string& name) const;

 private:
  std::string Wanted(const std::string& name, int64_t cols) const;
  std::string WantedValue(int layer) const;
  std::string WantedDown(int layer) const;
  // The layers that deserve more bits: the first eighth, the last, and every third between.
  bool MoreBits(int layer, int layers) const;

  const GgufFile& file_;
  std::string_view type_;  // of the file
  std::string usual_;      // of most tensors
  std::string arch_;
  int layers_ = 0, experts_ = 0, values_ = 0;
  bool shared_heads_ = false;  // four query heads or more share a key and value
  bool is_70b_ = false;
  bool tied_ = true;
  std::map<int, int> value_index_;  // of layers that have attn_v, their order
};

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_GGUF_MIXTURE_H_
