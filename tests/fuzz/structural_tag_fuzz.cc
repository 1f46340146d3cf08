// Arbitrary bytes as a structural tag: it is read or refused with a place, and what is read gives
// masks that are what the bytes fit.
#include <string>

#include "pawl/compiler.h"
#include "tests/fuzz/fuzz_util.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pawl;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Compiler compiler(fuzz::Bytes());
  const auto grammar = compiler.CompileStructuralTag(text);
  if (!grammar.ok()) {
    fuzz::RequireGoodError(grammar.error(), text);
    return 0;
  }
  fuzz::RequireSoundWalk(*grammar, fuzz::HashOf(text), 24);
  return 0;
}
