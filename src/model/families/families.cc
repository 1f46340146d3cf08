// The list of families, and what is known not to be one.
#include <algorithm>
#include <iterator>

#include "src/model/families/family.h"

namespace pawl {

extern const Family kLlamaFamily, kMistralFamily, kQwen2Family, kQwen3Family, kGemmaFamily,
    kGemma2Family, kGemma3Family, kGemma4Family, kPhi3Family, kSmolLm3Family, kGraniteFamily,
    kOlmo2Family, kOlmo3Family, kExaone4Family, kErnieFamily, kHunyuanFamily, kSeedOssFamily,
    kGlm4Family, kQwen3VlFamily, kMinistral3Family, kStarCoder2Family, kQwen2MoeFamily,
    kQwen3MoeFamily, kGptOssFamily, kQwen3_5Family, kLfm2Family, kGraniteHybridFamily,
    kQwen3_5MoeFamily, kQwen3NextFamily, kDeepSeekV2Family, kGlm4MoeLiteFamily, kNemotronHFamily,
    kLfm2MoeFamily, kGemma4UnifiedFamily, kDreamFamily, kLladaFamily;

namespace {

constexpr const Family* kFamilies[] = {
    &kLlamaFamily,         &kMistralFamily,       &kQwen2Family,     &kQwen3Family,
    &kGemmaFamily,         &kGemma2Family,        &kGemma3Family,    &kGemma4Family,
    &kPhi3Family,          &kSmolLm3Family,       &kGraniteFamily,   &kOlmo2Family,
    &kOlmo3Family,         &kExaone4Family,       &kErnieFamily,     &kHunyuanFamily,
    &kSeedOssFamily,       &kGlm4Family,          &kQwen3VlFamily,   &kMinistral3Family,
    &kStarCoder2Family,    &kQwen2MoeFamily,      &kQwen3MoeFamily,  &kGptOssFamily,
    &kGraniteHybridFamily, &kQwen3_5MoeFamily,    &kQwen3NextFamily, &kDeepSeekV2Family,
    &kGlm4MoeLiteFamily,   &kQwen3_5Family,       &kLfm2Family,      &kNemotronHFamily,
    &kLfm2MoeFamily,       &kGemma4UnifiedFamily, &kDreamFamily,     &kLladaFamily};

// What is known to be missing for architectures that people ask for, of both kinds of files.
struct Refusal {
  std::string_view begin;  // of the name
  const char* lacks;
};
constexpr Refusal kRefusals[] = {
    {"Gemma3n", "alternating updates of four residual streams"},
    {"gemma3n", "alternating updates of four residual streams"},
    {"dream", "attention to positions behind a row"},
    {"LLaDAMoE", "attention to positions behind a row"},
    {"llada", "attention to positions behind a row"},
    {"DiffusionGemma", "attention to positions behind a row"},
    {"Rwkv", "the recurrent state of RWKV"},
    {"rwkv", "the recurrent state of RWKV"},
    {"xLSTM", "the recurrent state of xLSTM"},
    {"Cohere", "attention and MLP next to each other"},
    {"cohere", "attention and MLP next to each other"},
    {"command-r", "attention and MLP next to each other"},
    {"Falcon", "attention and MLP next to each other"},
    {"falcon", "attention and MLP next to each other"},
    {"Phi", "attention and MLP next to each other"},
    {"phi2", "attention and MLP next to each other"},
    {"Apertus", "the activation xIELU"},
    {"apertus", "the activation xIELU"},
    {"BitNet", "weights of three values with norms of their own"},
    {"bitnet", "weights of three values with norms of their own"},
    {"Qwen4Exp", "embeddings of token groups"},
    {"qwen4exp", "embeddings of token groups"},
    {"T5", "an encoder"},
    {"t5", "an encoder"},
    {"Bart", "an encoder"},
    {"bert", "an encoder"},
};

template <size_t N>
bool Names(const char* const (&names)[N], std::string_view name) {
  return std::ranges::any_of(names, [&](const char* one) { return one != nullptr && name == one; });
}

}  // namespace

std::span<const Family* const> AllFamilies() { return kFamilies; }

const Family* FindFamily(std::string_view architecture) {
  for (const Family* family : kFamilies) {
    if (Names(family->architectures, architecture)) return family;
  }
  return nullptr;
}

const Family* FindWrapped(std::string_view architecture, std::string_view model_type) {
  for (const Family* family : kFamilies) {
    if (!Names(family->wrappers, architecture)) continue;
    if (model_type.empty() || model_type == family->model_type) return family;
  }
  return nullptr;
}

const Family* FindGgufFamily(std::string_view architecture) {
  for (const Family* family : kFamilies) {
    if (Names(family->gguf, architecture)) return family;
  }
  return nullptr;
}

const char* NameOf(const Family& family) {
  return family.architectures[0] != nullptr ? family.architectures[0] : family.wrappers[0];
}

std::string WhyRefused(std::string_view architecture) {
  for (const Refusal& refusal : kRefusals) {
    if (architecture.starts_with(refusal.begin)) return std::string("; it needs ") + refusal.lacks;
  }
  return "";
}

std::string FamilyNames(bool gguf) {
  std::string names;
  for (const Family* family : kFamilies) {
    const char* name = gguf ? family->gguf[0] : NameOf(*family);
    if (name == nullptr) continue;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

}  // namespace pawl
