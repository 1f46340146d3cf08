// Arbitrary bytes as a safetensors file: parsed or refused; of what parses, every tensor lies
// within the bytes and has the size of its shape.
#include <string>

#include "src/model/safetensors.h"
#include "tests/fuzz/fuzz_util.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pawl;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const Result<SafetensorsFile> file = SafetensorsFile::Parse(bytes, "F");
  if (!file.ok()) {
    fuzz::RequireGoodError(file.error(), input);
    return 0;
  }
  int64_t total = 0;
  for (const auto& [name, tensor] : file->tensors()) {
    const bool inside = tensor.data >= bytes.data() && tensor.bytes >= 0 &&
                        tensor.data + tensor.bytes <= bytes.data() + size;
    fuzz::Require(inside, "a tensor outside of the file", input);
    total += tensor.bytes;
  }
  fuzz::Require(total <= static_cast<int64_t>(size), "tensors overlap", input);
  return 0;
}
