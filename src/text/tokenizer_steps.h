// What several parts of a tokenizer.json share: the steps that a part (its normalizer, its decoder)
// consists of, and the byte-level alphabet.
#ifndef PAWL_SRC_TEXT_TOKENIZER_STEPS_H_
#define PAWL_SRC_TEXT_TOKENIZER_STEPS_H_

#include <optional>
#include <string>
#include <string_view>

#include "src/base/json_reader.h"

namespace pawl {

// Calls `add` with each step and its type, in order. A Sequence, which may stand in another one,
// has its steps in the member `list`.
template <typename Add>
void ForEachStep(const JsonReader& node, const char* list, const Add& add, int depth = 0) {
  constexpr int kMaxNesting = 16;
  if (depth > kMaxNesting) return node.Fail("nested too deeply", ErrorCode::kLimit);
  const std::string& type = node["type"].String();
  if (type != "Sequence") return add(node, type);
  node.OnlyMembers({"type", list});
  for (const JsonReader step : node[list].Array().items()) ForEachStep(step, list, add, depth + 1);
}

// The byte-level alphabet of GPT-2: each byte written as one printable character, so that a
// vocabulary of bytes is a vocabulary of strings. Printable Latin-1 stands for itself, the other 68
// bytes take the code points from U+0100 on, in order (a space is U+0120, a newline U+010A).

char32_t ByteToAlphabet(unsigned char byte);
// The byte that a character of the alphabet stands for, -1 for other characters.
int AlphabetToByte(char32_t c);
// The bytes of a text in the alphabet; nullopt when some character is not in it.
std::optional<std::string> AlphabetToBytes(std::string_view text);
// Any bytes in the alphabet.
std::string BytesToAlphabet(std::string_view bytes);

// The byte that a byte-fallback token ("<0x0A>") stands for, -1 for other strings.
int ByteFallbackValue(std::string_view token);

}  // namespace pawl

#endif  // PAWL_SRC_TEXT_TOKENIZER_STEPS_H_
