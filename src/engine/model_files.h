// What a model brings along with its weights, wherever it keeps it: a folder with tokenizer.json,
// chat_template.jinja and the rest, or one GGUF file.
//
//   auto tokenizer = LoadTokenizer("models/tiny-extract");
//   auto chat = LoadModelChat("models/tiny-extract", "", **tokenizer);
#ifndef PAWL_SRC_ENGINE_MODEL_FILES_H_
#define PAWL_SRC_ENGINE_MODEL_FILES_H_

#include <memory>
#include <string>
#include <string_view>

#include "pawl/result.h"
#include "src/base/json.h"
#include "src/text/chat/chat_template.h"
#include "src/text/tokenizer.h"

namespace pawl {

// kIo when `path` is neither a folder nor a GGUF file.
Status CheckModelPath(const std::string& path);

// `path`: a tokenizer.json, a folder with one, or a GGUF file. Errors: those of
// Tokenizer::FromFile and MakeGgufTokenizer.
Result<std::shared_ptr<const Tokenizer>> LoadTokenizer(const std::string& path);

// The model's chat template. `path`: its folder or GGUF file, or a file in its folder. `name`:
// which one, where there are several; empty: the default. Errors: those of LoadChatSource; kIo when
// a GGUF file has none.
Result<ChatSource> LoadModelChat(const std::string& path, const std::string& name,
                                 const Tokenizer& tokenizer);
// Another template for the model; special tokens are those of its own, or else the tokenizer's.
// `place` begins the places of errors.
Result<ChatSource> MakeChatFor(const std::string& path, const Tokenizer& tokenizer,
                               std::string_view text, const std::string& place);
// {"role": role, "content": content}
json::Value MakeChatMessage(std::string_view role, std::string_view content);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_MODEL_FILES_H_
