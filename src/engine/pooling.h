// How a model's files say that the states of a text become one vector: modules.json and the
// pooling's config.json of sentence-transformers, or the key pooling_type of a GGUF file.
#ifndef PAWL_SRC_ENGINE_POOLING_H_
#define PAWL_SRC_ENGINE_POOLING_H_

#include <string>
#include <string_view>

#include "pawl/result.h"
#include "src/decode/embed_work.h"

namespace pawl {

// "mean" or "last"; vectors have length 1. Errors: kInvalid for another name.
Result<Pooling> PoolingOf(std::string_view name);
// `path`: a folder or a GGUF file. Errors: kUnsupported where the files say nothing, or ask for
// what is not known here; kIo and kInvalid with the file as place.
Result<Pooling> ReadPooling(const std::string& path);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_POOLING_H_
