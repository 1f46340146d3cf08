// transformers' ...ForSequenceClassification: the tensor `score.weight`, a row for each label, over
// the state behind the last norm.
#include "src/engine/rerank_head.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/kernels.h"
#include "src/base/json.h"
#include "src/base/json_file.h"
#include "src/base/json_reader.h"
#include "src/model/safetensors.h"
#include "src/model/transformer_config.h"

namespace pawl {

namespace {

// The form for two texts of a post-processor. What only moves offsets adds nothing.
void ReadPairForm(const JsonReader& in, RerankHead& head) {
  const std::string& type = in["type"].String();
  if (type == "Sequence") {
    for (const JsonReader step : in["processors"].Array().items()) ReadPairForm(step, head);
    return;
  }
  if (type == "ByteLevel") return;
  if (type != "TemplateProcessing") {
    return in["type"].Unsupported("is " + json::Quote(type.substr(0, 50)) +
                                  ", of which no form for two texts is known");
  }
  const JsonReader special = in["special_tokens"];
  std::vector<TokenId>* places[] = {&head.before, &head.between, &head.after};
  size_t seen = 0;
  for (const JsonReader item : in["pair"].Array().items()) {
    if (const JsonReader text = item["Sequence"]; text.present()) {
      if (seen == 2 || text["id"].String() != (seen == 0 ? "A" : "B")) {
        return text.Unsupported("must be A, then B");
      }
      ++seen;
      continue;
    }
    const JsonReader token = special[item["SpecialToken"]["id"].String()];
    for (const JsonReader id : token["ids"].Array().items()) {
      places[seen]->push_back(static_cast<TokenId>(id.Whole(0, kMaxVocabulary)));
    }
  }
  if (seen != 2) in["pair"].Unsupported("must have A and B");
}

Status ReadPairForm(const std::string& path, RerankHead& head) {
  const Result<json::Value> root = ReadSettingsFile(path);
  if (!root.ok()) return root.error();
  const JsonReader in(*root, path + ": #");
  if (in["post_processor"].present()) ReadPairForm(in["post_processor"], head);
  return in.status();
}

}  // namespace

double RerankHead::Logit(std::span<const float> state) const {
  double sum = 0;
  for (size_t i = 0; i < std::min(weights.size(), state.size()); ++i) {
    sum += double{weights[i]} * state[i];
  }
  return sum;
}

Result<RerankHead> ReadRerankHead(const std::string& path, const ModelInfo& info) {
  if (!info.classifies) {
    return Error{ErrorCode::kUnsupported,
                 "it is a " + info.architecture +
                     ", and a head that ranks is that of a ...ForSequenceClassification with one "
                     "label",
                 path};
  }
  Result<Checkpoint> checkpoint = Checkpoint::Open(path);
  if (!checkpoint.ok()) return checkpoint.error();
  const std::string place = path + ": tensor \"score.weight\"";
  const TensorView* const view = checkpoint->Find("score.weight");
  if (view == nullptr) return Error{ErrorCode::kInvalid, "is missing", place};
  if (view->shape.size() != 2 || view->shape[1] != info.hidden) {
    return Error{
        ErrorCode::kInvalid,
        "has shape " + ShapeToString(view->shape) + "; expected " + ShapeToString({1, info.hidden}),
        place};
  }
  if (view->shape[0] != 1) {
    return Error{ErrorCode::kUnsupported,
                 "has " + std::to_string(view->shape[0]) + " labels, and a rank needs one", place};
  }
  const bool half = view->dtype == "BF16" || view->dtype == "F16";
  if (!half && view->dtype != "F32") {
    return Error{ErrorCode::kUnsupported, "is " + view->dtype + "; expected F32, F16 or BF16",
                 place};
  }
  const WeightType type = view->dtype == "BF16"  ? WeightType::kBf16
                          : view->dtype == "F16" ? WeightType::kF16
                                                 : WeightType::kF32;
  RerankHead head;
  head.weights.resize(static_cast<size_t>(info.hidden));
  std::vector<float> aligned(static_cast<size_t>(view->bytes) / sizeof(float) + 1);
  std::memcpy(aligned.data(), view->data, static_cast<size_t>(view->bytes));
  FindKernels(KernelVariant::kPortable)
      ->to_float(aligned.data(), type, info.hidden, head.weights.data());
  if (!std::ranges::all_of(head.weights, [](float x) { return std::isfinite(x); })) {
    return Error{ErrorCode::kInvalid, "has a number that is not finite", place};
  }
  if (Status status = ReadPairForm(path + "/tokenizer.json", head); !status.ok()) {
    return status.error();
  }
  return head;
}

}  // namespace pawl
