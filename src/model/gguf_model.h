// What the metadata of a GGUF file says, turned into what the rest of Pawl works with: the
// description of the transformer, the names of its tensors, and the raw vocabulary.
#ifndef PAWL_SRC_MODEL_GGUF_MODEL_H_
#define PAWL_SRC_MODEL_GGUF_MODEL_H_

#include "pawl/result.h"
#include "src/model/gguf.h"
#include "src/model/transformer_config.h"
#include "src/text/gguf_tokenizer.h"

namespace pawl {

// Errors: kInvalid, kLimit and kUnsupported, place "FILE: KEY".
Result<TransformerConfig> ReadGgufConfig(const GgufFile& file);

// The keys tokenizer.ggml.*; views into the file. Errors as above.
Result<GgufVocabulary> ReadGgufVocabulary(const GgufFile& file);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_GGUF_MODEL_H_
