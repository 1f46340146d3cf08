// What families with layers of Mamba-2 share.
#include <limits>

#include "src/model/families/family.h"

namespace pawl {

void CheckMamba(int inner, Mamba2& mamba, const std::function<void(const char*)>& fail) {
  if (mamba.heads < 1 || inner % mamba.heads != 0 || inner / mamba.heads > kMaxHeadDim) {
    return fail("must divide the inner width, into heads of at most 1024");
  }
  if (mamba.groups < 1 || mamba.heads % mamba.groups != 0) {
    return fail("must be a multiple of the number of groups");
  }
  mamba.head_dim = inner / mamba.heads;
}

void ExpectNoTimeLimit(const JsonReader& in) {
  if (in.OptionalArray().present() && in.size() != 2) in.Fail("must be a list of two numbers");
  if (!in.present() || !in.ok()) return;
  const JsonReader most = in.Item(1);
  const bool infinite = most.IsObject() ? most["__float__"].String() == "Infinity"
                                        : most.Number(0) > std::numeric_limits<float>::max();
  if (in.Item(0).Number() != 0 || !infinite) {
    in.Unsupported("is " + json::Shown(*in.value()) + "; expected 0 and Infinity");
  }
}

Mamba2 ReadGgufMamba(GgufKeys& keys, TransformerConfig& config) {
  const auto whole = [&](const char* key, int64_t most) {
    return static_cast<int>(keys.Int(key, most, std::nullopt));
  };
  Mamba2 mamba;
  mamba.heads = whole("ssm.time_step_rank", kMaxWidth);
  mamba.groups = whole("ssm.group_count", kMaxWidth);
  mamba.state = whole("ssm.state_size", kMaxHeadDim);
  mamba.taps = whole("ssm.conv_kernel", kMostTaps);
  CheckMamba(whole("ssm.inner_size", kMaxWidth), mamba, [&](const char* message) {
    keys.Fail(ErrorCode::kInvalid, "ssm.time_step_rank", message);
  });
  const auto has = [&](int layer, const char* name) {
    return keys.file().Find("blk." + std::to_string(layer) + "." + name) != nullptr;
  };
  for (int i = 0; i < config.layer_count(); ++i) {
    mamba.convolution_bias = mamba.convolution_bias || has(i, "ssm_conv1d.bias");
    mamba.bias = mamba.bias || has(i, "ssm_in.bias");
  }
  for (int i = 0; i < config.layer_count(); ++i) {
    if (has(i, "ssm_a")) config.layers[static_cast<size_t>(i)].mixer = mamba;
  }
  return mamba;
}

void RenameMamba(TensorNames& names) {
  names.mixed = "mamba.in_proj";
  names.z = names.decay = nullptr;
  names.convolution = "mamba.conv1d";
  names.rates = "mamba.A_log";
  names.rate_biases = "mamba.dt_bias";
  names.skips = "mamba.D";
  names.state_norm = "mamba.norm";
  names.mixer_out = "mamba.out_proj";
}

void RenameGgufMamba(TensorNames& names) {
  names.mixed = "ssm_in";
  names.z = names.decay = nullptr;
  names.convolution = "ssm_conv1d";
  names.rates = "ssm_a";
  names.rate_biases = "ssm_dt.bias";
  names.skips = "ssm_d";
  names.state_norm = "ssm_norm";
  names.mixer_out = "ssm_out";
  names.log_rates = false;
}

}  // namespace pawl
