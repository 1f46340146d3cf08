// Arbitrary bytes as a GGUF file: parsed or refused with the byte. Of what parses, every tensor
// lies within the bytes, and description, weights and tokenizer are read or refused.
#include <memory>
#include <string>

#include "src/model/gguf.h"
#include "src/model/gguf_model.h"
#include "src/model/transformer_weights.h"
#include "tests/fuzz/fuzz_util.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pawl;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  Result<GgufFile> file = GgufFile::Parse(bytes, "F");
  if (!file.ok()) {
    fuzz::RequireGoodError(file.error(), input);
    fuzz::Require(file.error().place.starts_with("F: byte "), "an error without a byte", input);
    return 0;
  }
  for (const auto& [name, tensor] : file->tensors()) {
    const bool inside = tensor.data >= bytes.data() && tensor.bytes >= 0 &&
                        tensor.data + tensor.bytes <= bytes.data() + size;
    fuzz::Require(inside, "a tensor outside of the file", input);
  }
  const Result<GgufVocabulary> vocabulary = ReadGgufVocabulary(*file);
  if (vocabulary.ok()) {
    const auto tokenizer = MakeGgufTokenizer(*vocabulary);
    if (!tokenizer.ok()) fuzz::RequireGoodError(tokenizer.error(), input);
  } else {
    fuzz::RequireGoodError(vocabulary.error(), input);
  }
  const Result<TransformerConfig> config = ReadGgufConfig(*file);
  if (!config.ok()) {
    fuzz::RequireGoodError(config.error(), input);
    return 0;
  }
  const Result<TransformerWeights> weights = LoadTransformerWeights(
      std::make_unique<GgufFile>(*std::move(file)), *config, GgufNames(*config), nullptr);
  if (!weights.ok()) fuzz::RequireGoodError(weights.error(), input);
  return 0;
}
