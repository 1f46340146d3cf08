// How the matrices of a model folder are stored, as the member quantization_config of config.json
// says.
#ifndef PAWL_SRC_MODEL_CHECKPOINT_FORMAT_H_
#define PAWL_SRC_MODEL_CHECKPOINT_FORMAT_H_

#include <cstdint>
#include <string>

#include "src/base/json_reader.h"

namespace pawl {

struct CheckpointFormat {
  enum class Kind : uint8_t {
    kFloats,  // F32, F16, BF16: not quantized
    kPacked,  // compressed-tensors, pack-quantized
    kAwq,
    kGptq,
    kFloat8,  // float-quantized of compressed-tensors, and fp8
    kMxfp4,   // of experts (quantized_checkpoint.h)
  };
  Kind kind = Kind::kFloats;
  std::string name;   // for people: "AWQ"
  int bits = 0;       // of an integer: 4 or 8
  int64_t group = 0;  // weights of a row that share a scale; 0: all
  bool zero_points = false;
  bool zeros_are_less_one = false;         // GPTQ of the first version states zero points less 1
  int64_t block_rows = 0, block_cols = 0;  // of kFloat8, where scales are for blocks
  const char* scale = "weight_scale";      // the name of kFloat8's scales

  bool operator==(const CheckpointFormat&) const = default;
};

// kFloats where it is absent. What Pawl does not read is an error with the name of the format.
CheckpointFormat ReadCheckpointFormat(const JsonReader& in);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_CHECKPOINT_FORMAT_H_
