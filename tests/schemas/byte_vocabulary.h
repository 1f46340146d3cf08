// The smallest vocabulary that can write anything: every byte, and one token that ends the output.
#ifndef PAWL_TESTS_SCHEMAS_BYTE_VOCABULARY_H_
#define PAWL_TESTS_SCHEMAS_BYTE_VOCABULARY_H_

#include <memory>
#include <string>
#include <utility>

#include "pawl/vocabulary.h"

namespace pawl {

inline std::shared_ptr<const Vocabulary> Bytes() {
  VocabularyInit init;
  for (int b = 0; b < 256; ++b) init.tokens.push_back(std::string(1, static_cast<char>(b)));
  init.tokens.push_back("<end>");
  init.end_tokens = {256};
  return *Vocabulary::Create(std::move(init));
}

}  // namespace pawl

#endif  // PAWL_TESTS_SCHEMAS_BYTE_VOCABULARY_H_
