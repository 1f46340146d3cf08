// What the fuzz targets share. A target is a file with the one function that libFuzzer wants; built
// without it, driver.cc calls that function.
#ifndef PAWL_TESTS_FUZZ_FUZZ_UTIL_H_
#define PAWL_TESTS_FUZZ_FUZZ_UTIL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace pawl::fuzz {

// Token b is the byte b; token 256 is the end of output.
const std::shared_ptr<const Vocabulary>& Bytes();
inline constexpr TokenId kEnd = 256;

// Aborts with `what` and the text when `holds` is false.
void Require(bool holds, const char* what, std::string_view text);

// An error that a user may see: it says something, and no bug of Pawl's.
void RequireGoodError(const Error& error, std::string_view input);

// Bit b of the mask is set exactly when the state takes the byte, the end's when it is accepting.
// Returns how many bytes it takes.
int RequireHonestMask(const State& state, std::string_view text);

// The shortest completion leads to an accepting state. Returns the completed text; `found` tells
// whether there was one.
std::string RequireCompletion(const State& state, std::string_view text, bool& found);

// A walk of at most `steps` bytes from the start, each chosen among the allowed ones by a hash of
// `seed`, with all of the above at every state. Returns a complete text, or an empty one when no
// completion was found.
std::string RequireSoundWalk(const Grammar& grammar, uint64_t seed, int steps);

// A seed made of the input, so that the same input always takes the same walk.
uint64_t HashOf(std::string_view input);

}  // namespace pawl::fuzz

#endif  // PAWL_TESTS_FUZZ_FUZZ_UTIL_H_
