// Arbitrary bytes as a structural tag: it is read or refused with a place, and what is read gives
// masks that are what the bytes fit.
#include <optional>
#include <string>
#include <vector>

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
  uint64_t draw = fuzz::HashOf(text);
  // Tokens taken as a whole are not what their bytes are.
  if (text.find("token") == std::string::npos && text.find("lark") == std::string::npos) {
    fuzz::RequireSoundWalk(*grammar, draw, 24);
    return 0;
  }
  State state = grammar->Start();
  for (int step = 0; step < 8; ++step) {
    const auto mask = state.mask();
    std::vector<TokenId> allowed;
    for (TokenId id = 0; id < fuzz::kEnd; ++id) {
      const bool fits = state.Advance(id).has_value();
      fuzz::Require(fits == mask->Allows(id), "the mask and the state disagree about a token",
                    text);
      if (fits) allowed.push_back(id);
    }
    if (allowed.empty()) break;
    state = *state.Advance(allowed[draw % allowed.size()]);
    draw = draw * 6364136223846793005u + 1442695040888963407u;
  }
  return 0;
}
