// A GGUF file holds the vocabulary and the template as keys; a folder has a file for each. Which of
// the two a path is shows in its first bytes, not in its name.
#include "src/engine/model_files.h"

#include <optional>
#include <utility>

#include "src/base/os/files.h"
#include "src/model/gguf.h"
#include "src/model/gguf_model.h"

namespace pawl {
namespace {

Result<std::shared_ptr<const Tokenizer>> GgufTokenizer(const std::string& path) {
  Result<GgufFile> file = GgufFile::Open(path);
  if (!file.ok()) return file.error();
  Result<GgufVocabulary> vocabulary = ReadGgufVocabulary(*file);
  if (!vocabulary.ok()) return vocabulary.error();
  return MakeGgufTokenizer(*vocabulary);
}

bool IsFolder(const std::string& path) {
  const std::optional<os::FileInfo> info = os::InfoOf(path);
  return info && info->kind == os::FileKind::kFolder;
}

void AddSpecialTokens(const Tokenizer& tokenizer, ChatSource& source) {
  const auto add = [&](const char* variable, TokenId id) {
    if (id != kNoToken) source.special_tokens.emplace_back(variable, tokenizer.NameOf(id));
  };
  add("bos_token", tokenizer.bos());
  add("eos_token", tokenizer.end_tokens().empty() ? kNoToken : tokenizer.end_tokens()[0]);
}

Result<ChatSource> GgufChat(const std::string& path, const std::string& name,
                            const Tokenizer& tokenizer) {
  Result<GgufFile> file = GgufFile::Open(path);
  if (!file.ok()) return file.error();
  const std::string key = "tokenizer.chat_template" + (name.empty() ? "" : "." + name);
  const GgufValue* value = file->FindValue(key);
  const std::string place = path + ": " + key;
  if (value == nullptr) return Error{ErrorCode::kIo, "no chat template: the key is missing", place};
  if (value->kind != GgufValue::Kind::kString) {
    return Error{ErrorCode::kInvalid, "must be a string", place};
  }
  Result<ChatSource> source = MakeChatSource(value->text, place);
  if (!source.ok()) return source;
  AddSpecialTokens(tokenizer, *source);
  return source;
}

json::Value Text(std::string_view text) { return {json::Type::kString, std::string(text), {}, {}}; }

}  // namespace

Status CheckModelPath(const std::string& path) {
  if (IsFolder(path) || LooksLikeGguf(path)) return {};
  const std::optional<os::FileInfo> info = os::InfoOf(path);
  return Error{ErrorCode::kIo,
               !info ? "no such model folder or file"
               : info->kind == os::FileKind::kRegular && info->bytes == 0
                   ? "is an empty file"
                   : "neither a model folder nor a GGUF file",
               path};
}

Result<std::shared_ptr<const Tokenizer>> LoadTokenizer(const std::string& path) {
  return LooksLikeGguf(path) ? GgufTokenizer(path) : Tokenizer::FromFile(path);
}

Result<ChatSource> LoadModelChat(const std::string& path, const std::string& name,
                                 const Tokenizer& tokenizer) {
  if (LooksLikeGguf(path)) return GgufChat(path, name, tokenizer);
  if (IsFolder(path)) return LoadChatSource(path, name);
  return LoadChatSource(os::FolderOf(path), name);
}

Result<ChatSource> MakeChatFor(const std::string& path, const Tokenizer& tokenizer,
                               std::string_view text, const std::string& place) {
  Result<ChatSource> made = MakeChatSource(text, place);
  if (!made.ok()) return made;
  const Result<ChatSource> models = LoadModelChat(path, "", tokenizer);
  if (models.ok()) {
    made->special_tokens = models->special_tokens;
  } else {
    AddSpecialTokens(tokenizer, *made);
  }
  return made;
}

json::Value MakeChatMessage(std::string_view role, std::string_view content) {
  json::Value message{json::Type::kObject, {}, {}, {}};
  message.members.emplace_back("role", Text(role));
  message.members.emplace_back("content", Text(content));
  return message;
}

}  // namespace pawl
