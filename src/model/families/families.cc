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
  std::string_view names;  // plain ones, with a space around each
  const char* lacks;
};
constexpr Refusal kRefusals[] = {
    {" gemma3n ", "alternating updates of four residual streams"},
    {" lladamoe rnd1 diffusiongemma ", "experts next to attention to positions behind a row"},
    {" dream llada ", "a folder: GGUF files of diffusion models are not read"},
    {" rwkv rwkv6 rwkv6qwen2 rwkv7 arwkv7 ", "the recurrent state of RWKV"},
    {" xlstm ", "the recurrent state of xLSTM"},
    {" mamba falconmamba jamba zamba ", "the state space of Mamba 1"},
    {" recurrentgemma ", "the recurrent state of Griffin"},
    {" minimax minimax01 ", "the recurrent state of lightning attention"},
    {" falconh1 ", "attention and Mamba-2 next to each other, with a factor for each part"},
    {" cohere cohere2 cohere2moe cohere2vision commandr falcon phi phi2 gptj gptneox codegen ",
     "attention and MLP next to each other"},
    {" gptbigcode starcoder gpt2 gptneo opt openaigpt biogpt ", "learned embeddings of positions"},
    {" bloom mpt ", "biases of attention by distance"},
    {" apertus apertus1p5 apertus1p5text ", "the activation xIELU"},
    {" bitnet ", "weights of three values with norms of their own"},
    {" qwen4exp ", "embeddings of token groups"},
    {" lfm3 lfm3vl ", "a gate for each head of attention"},
    {" museglimmer ", "norms of queries and keys without weights, and a second epsilon of norms"},
    {" granitemoe granitemoeshared graniteswa granitemoeswa glm4moe mixtral ",
     "a description of its settings and tensors; its layers are of known parts"},
    {" phimoe ", "the choice of experts by SparseMixer"},
    {" phi4multimodal ", "adapters for images and sounds"},
    {" deepseekv3 ", "experts that are chosen by groups"},
    {" deepseekv32 deepseek32 glmmoedsa glmdsa ", "attention to positions that an index chooses"},
    {" llama4 ", "attention in chunks"},
    {" t5 t5encoder t5gemma t5gemma2 mt5 umt5 longt5 switchtransformers bart mbart plbart led "
     "pegasus pegasusx bigbirdpegasus blenderbot blenderbotsmall m2m100 marian marianmt nllbmoe "
     "prophetnet fsmt encoderdecoder visionencoderdecoder whisper bert modernbert neobert "
     "eurobert nomicbert nomicbertmoe jinabertv2 jinabertv3 ",
     "an encoder"},
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

std::string PlainName(std::string_view name) {
  for (const std::string_view end : {"Model", "LMHead", "For"}) {
    if (const size_t at = name.rfind(end); at != name.npos && at > 0) name = name.substr(0, at);
  }
  std::string plain;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') {
      plain += static_cast<char>(c - 'A' + 'a');
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      plain += c;
    }
  }
  return plain;
}

std::string WhyRefused(std::string_view architecture) {
  const std::string word = " " + PlainName(architecture) + " ";
  for (const Refusal& refusal : kRefusals) {
    if (refusal.names.find(word) != std::string_view::npos) {
      return std::string("; it needs ") + refusal.lacks;
    }
  }
  return "";
}

std::string FamilyNames(bool gguf) {
  std::vector<std::string_view> names;
  const auto add = [&](const auto& list) {
    for (const char* name : list) {
      if (name != nullptr && std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  };
  for (const Family* family : kFamilies) {
    if (gguf) {
      add(family->gguf);
    } else {
      add(family->architectures);
      add(family->wrappers);
    }
  }
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

}  // namespace pawl
