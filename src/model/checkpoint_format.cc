// Each tool that quantizes writes an object of its own. What says how weights lie is read and
// checked; settings of the quantization itself (how scales were found) say nothing about the file.
// Rounding of activations is not done: a model answers as its weights say, in full precision of the
// kernels.
#include "src/model/checkpoint_format.h"

#include <optional>
#include <utility>

namespace pawl {
namespace {

using Storage = CheckpointFormat::Kind;

constexpr const char* kReadFormats =
    "compressed-tensors (pack-quantized, float-quantized), awq, gptq without act-order, fp8 and "
    "mxfp4 are read";
constexpr int64_t kMostGroup = int64_t{1} << 20;

void Refuse(const JsonReader& in, const std::string& name) {
  in.Unsupported("weights in the format " + name + " are not supported; " + kReadFormats);
}

std::string ShortOf(const std::string& text) { return json::Quote(text.substr(0, 50)); }

// 4 or 8.
int ReadBits(const JsonReader& in, const std::string& name) {
  const int64_t bits = in.Whole(1, 64);
  if (in.ok() && bits != 4 && bits != 8)
    Refuse(in, name + " with " + std::to_string(bits) + " bits");
  return static_cast<int>(bits);
}

// -1, 0 or nothing: a whole row.
int64_t ReadGroup(const JsonReader& in) {
  return std::max<int64_t>(0, in.Whole(-1, kMostGroup, 0));
}

void ReadBlock(const JsonReader& in, CheckpointFormat& format) {
  if (!in.present()) return;
  if (!in.IsArray() || in.size() != 2) return in.Fail("must be a list of two sizes");
  format.block_rows = in.Item(0).Whole(1, kMostGroup);
  format.block_cols = in.Item(1).Whole(1, kMostGroup);
}

// The weights of one group of layers.
void ReadPackedGroup(const JsonReader& in, CheckpointFormat& format) {
  format.name = "compressed-tensors pack-quantized";
  if (const std::string type = in["type"].String("int"); type != "int") {
    return Refuse(in["type"], format.name + " of type " + ShortOf(type));
  }
  format.bits = ReadBits(in["num_bits"], format.name);
  format.zero_points = !in["symmetric"].Bool(true);
  const std::string strategy = in["strategy"].String("group");
  format.group = ReadGroup(in["group_size"]);
  if (strategy == "channel") format.group = 0;
  if (strategy != "channel" && strategy != "group") {
    return Refuse(in["strategy"], format.name + " by " + ShortOf(strategy));
  }
  const JsonReader order = in["actorder"];
  if (order.present() && (!order.IsString() || order.String() == "group")) {
    Refuse(order, format.name + " with act-order");
  }
}

void ReadFloatGroup(const JsonReader& in, CheckpointFormat& format) {
  format.name = "compressed-tensors float-quantized";
  format.bits = 8;
  if (in["num_bits"].Whole(1, 64, 8) != 8 || in["type"].String("float") != "float") {
    return Refuse(in, format.name + " with other weights than floats of 8 bits");
  }
  const std::string strategy = in["strategy"].String("tensor");
  if (strategy == "block") ReadBlock(in["block_structure"], format);
  if (strategy != "tensor" && strategy != "channel" && strategy != "block") {
    Refuse(in["strategy"], format.name + " by " + ShortOf(strategy));
  }
}

void ReadCompressedTensors(const JsonReader& in, CheckpointFormat& format) {
  const std::string name = in["format"].String();
  const bool packed = name == "pack-quantized";
  if (in.ok() && !packed && name != "float-quantized") {
    return Refuse(in["format"], "compressed-tensors " + ShortOf(name));
  }
  for (const char* key : {"sparsity_config", "transform_config"}) {
    if (in[key].size() > 0) Refuse(in[key], std::string("compressed-tensors with ") + key);
  }
  const JsonReader groups = in["config_groups"].Object();
  if (!in.ok()) return;
  if (groups.size() == 0) return groups.Fail("has no group");
  std::optional<CheckpointFormat> first;
  for (const auto& [key, value] : groups.value()->members) {
    const JsonReader group = groups[key].Object();
    CheckpointFormat read;
    read.kind = packed ? Storage::kPacked : Storage::kFloat8;
    if (const std::string own = group["format"].String(name); own != name) {
      return Refuse(group["format"], "compressed-tensors " + ShortOf(own) + " next to " + name);
    }
    const JsonReader weights = group["weights"].Object();
    if (!in.ok()) return;
    if (packed) {
      ReadPackedGroup(weights, read);
    } else {
      ReadFloatGroup(weights, read);
    }
    if (first && !(*first == read)) {
      return Refuse(group, read.name + " with groups of layers that differ");
    }
    first = read;
  }
  format = *first;
}

void ReadAwq(const JsonReader& in, CheckpointFormat& format) {
  format.kind = Storage::kAwq;
  format.name = "AWQ";
  format.bits = ReadBits(in["bits"], format.name);
  if (in.ok() && format.bits != 4) return Refuse(in["bits"], "AWQ with 8 bits");
  format.group = ReadGroup(in["group_size"]);
  format.zero_points = in["zero_point"].Bool(true);
  if (const std::string version = in["version"].String("gemm"); version != "gemm") {
    Refuse(in["version"], "AWQ " + ShortOf(version));
  }
}

void ReadGptq(const JsonReader& in, CheckpointFormat& format) {
  format.kind = Storage::kGptq;
  format.name = "GPTQ";
  format.zero_points = true;
  format.bits = ReadBits(in["bits"], format.name);
  format.group = ReadGroup(in["group_size"]);
  if (in["desc_act"].Bool(false)) return Refuse(in["desc_act"], "GPTQ with act-order");
  if (in["dynamic"].size() > 0) Refuse(in["dynamic"], "GPTQ with settings of single layers");
  const std::string version = in["checkpoint_format"].String("gptq");
  format.zeros_are_less_one = version == "gptq";
  if (version != "gptq" && version != "gptq_v2") {
    Refuse(in["checkpoint_format"], "GPTQ " + ShortOf(version));
  }
}

void ReadFp8(const JsonReader& in, CheckpointFormat& format) {
  format.kind = Storage::kFloat8;
  format.name = "fp8";
  format.bits = 8;
  format.scale = "weight_scale_inv";
  ReadBlock(in["weight_block_size"], format);
  if (const std::string kind = in["fmt"].String("e4m3"); kind != "e4m3") {
    Refuse(in["fmt"], "fp8 " + ShortOf(kind));
  }
}

}  // namespace

CheckpointFormat ReadCheckpointFormat(const JsonReader& in) {
  CheckpointFormat format;
  if (!in.present()) return format;
  const JsonReader object = in.Object();
  std::string method = object["quant_method"].String(
      object["load_in_4bit"].present() || object["load_in_8bit"].present() ? "bitsandbytes" : "");
  if (!in.ok()) return format;
  if (method == "compressed-tensors") {
    ReadCompressedTensors(object, format);
  } else if (method == "awq") {
    ReadAwq(object, format);
  } else if (method == "gptq") {
    ReadGptq(object, format);
  } else if (method == "fp8") {
    ReadFp8(object, format);
  } else if (method == "mxfp4") {
    format.kind = Storage::kMxfp4;
    format.name = "mxfp4";
  } else if (method.empty()) {
    object["quant_method"].Fail("is missing: the name of a format");
  } else {
    // modelopt writes several formats: NVFP4, FP8.
    const JsonReader algorithm = object["quant_algo"];
    if (algorithm.IsString()) method += " " + algorithm.String();
    Refuse(object["quant_method"], ShortOf(method));
  }
  return format;
}

}  // namespace pawl
