// The list of families, and what is known not to be one.
#include <algorithm>
#include <iterator>

#include "src/model/families/family.h"

namespace pawl {

extern const Family kLlamaFamily, kMistralFamily, kQwen2Family, kQwen3Family, kGemmaFamily,
    kGemma2Family, kGemma3Family, kPhi3Family, kSmolLm3Family, kGraniteFamily, kOlmo2Family,
    kOlmo3Family, kExaone4Family, kErnieFamily, kHunyuanFamily, kSeedOssFamily, kGlm4Family,
    kQwen3VlFamily, kMinistral3Family, kStarCoder2Family, kQwen2MoeFamily, kQwen3MoeFamily,
    kGptOssFamily, kQwen3_5Family, kLfm2Family;

namespace {

constexpr const Family* kFamilies[] = {
    &kLlamaFamily,    &kMistralFamily,  &kQwen2Family,   &kQwen3Family,      &kGemmaFamily,
    &kGemma2Family,   &kGemma3Family,   &kPhi3Family,    &kSmolLm3Family,    &kGraniteFamily,
    &kOlmo2Family,    &kOlmo3Family,    &kExaone4Family, &kErnieFamily,      &kHunyuanFamily,
    &kSeedOssFamily,  &kGlm4Family,     &kQwen3VlFamily, &kMinistral3Family, &kStarCoder2Family,
    &kQwen2MoeFamily, &kQwen3MoeFamily, &kGptOssFamily,  &kQwen3_5Family,    &kLfm2Family};

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

std::string FamilyNames(bool gguf) {
  std::string names;
  for (const Family* family : kFamilies) {
    const char* name = gguf ? family->gguf[0] : family->architectures[0];
    if (name == nullptr) continue;
    if (!names.empty()) names += family == kFamilies[std::size(kFamilies) - 1] ? " and " : ", ";
    names += name;
  }
  return names;
}

}  // namespace pawl
