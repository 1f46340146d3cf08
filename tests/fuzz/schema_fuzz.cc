// Arbitrary bytes as a JSON Schema: they compile or are refused with a message, within the fuel. Of
// what compiles, a random walk over the masks is checked state by state.
#include "pawl/compiler.h"
#include "tests/fuzz/fuzz_util.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pawl;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const uint64_t seed = fuzz::HashOf(text);
  JsonSchemaOptions options;
  options.step_fuel = 5'000;
  if ((seed & 1) != 0) {
    options.order = JsonSchemaOptions::Order::kAny;
    options.whitespace = JsonSchemaOptions::Whitespace::kAny;
    options.canonical_spelling = false;
    options.allow_exponents = true;
  }
  const Compiler compiler(fuzz::Bytes());
  const Result<Grammar> grammar = compiler.CompileJsonSchema(text, options);
  if (!grammar.ok()) {
    fuzz::RequireGoodError(grammar.error(), text);
    return 0;
  }
  constexpr int kSteps = 24;
  fuzz::RequireSoundWalk(*grammar, seed, kSteps);
  return 0;
}
