// Newer models have the template in a file of its own, older ones in tokenizer_config.json, some of
// them several with names. The file counts when both are there, as in transformers.
#include "src/text/chat/chat_source.h"

#include <filesystem>

#include "src/base/file.h"
#include "src/base/json.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

Error Broken(std::string message, std::string place) {
  return Error{ErrorCode::kInvalid, std::move(message), std::move(place)};
}

// The template of that name in "chat_template"; `place` is where it stands.
Result<std::string> PickTemplate(const json::Value& value, std::string_view name,
                                 std::string& place) {
  if (value.type == json::Type::kString) {
    if (!name.empty()) {
      return Broken(
          "there is one chat template without a name, and none called " + json::Quote(name), place);
    }
    return value.text;
  }
  if (value.type != json::Type::kArray) {
    return Broken("must be a string or a list of templates with names", place);
  }
  const std::string wanted(name.empty() ? "default" : name);
  std::string names;
  for (size_t i = 0; i < value.items.size(); ++i) {
    const std::string here = place + "/" + std::to_string(i);
    const json::Value* known = value.items[i].Find("name");
    const json::Value* text = value.items[i].Find("template");
    if (known == nullptr || text == nullptr || known->type != json::Type::kString ||
        text->type != json::Type::kString) {
      return Broken("must be an object with the strings \"name\" and \"template\"", here);
    }
    if (known->text == wanted) {
      place = here + "/template";
      return text->text;
    }
    names += (names.empty() ? "" : ", ") + known->text;
  }
  return Broken("there is no chat template called " + json::Quote(wanted) + "; there are " + names,
                place);
}

// "<s>", or {"content": "<s>", ...}.
const std::string* TokenText(const json::Value& value) {
  const json::Value* text = value.type == json::Type::kObject ? value.Find("content") : &value;
  return text != nullptr && text->type == json::Type::kString ? &text->text : nullptr;
}

}  // namespace

Result<ChatSource> LoadChatSource(const std::string& folder, std::string_view name) {
  ChatSource source;
  std::optional<std::string> text;
  const fs::path config = fs::path(folder) / "tokenizer_config.json";
  const fs::path file = fs::path(folder) / "chat_template.jinja";
  std::error_code ignored;
  if (fs::exists(config, ignored)) {
    Result<std::string> read = ReadRegularFile(config.string());
    if (!read.ok()) return read.error();
    Result<json::Value> root = json::Parse(*read);
    if (!root.ok())
      return Broken(root.error().message, config.string() + ": " + root.error().place);
    if (root->type != json::Type::kObject)
      return Broken("must be an object", config.string() + "#");
    for (const char* token : {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token",
                              "cls_token", "mask_token"}) {
      const json::Value* value = root->Find(token);
      if (value == nullptr) continue;
      if (const std::string* written = TokenText(*value))
        source.special_tokens.emplace_back(token, *written);
    }
    const json::Value* value = root->Find("chat_template");
    if (value != nullptr && value->type != json::Type::kNull && !fs::exists(file, ignored)) {
      source.place = config.string() + "#/chat_template";
      Result<std::string> picked = PickTemplate(*value, name, source.place);
      if (!picked.ok()) return picked.error();
      text = *std::move(picked);
    }
  }
  if (fs::exists(file, ignored)) {
    source.place = file.string();
    if (!name.empty()) {
      return Broken(
          "there is one chat template without a name, and none called " + json::Quote(name),
          source.place);
    }
    Result<std::string> read = ReadRegularFile(file.string());
    if (!read.ok()) return read.error();
    text = *std::move(read);
  }
  if (!text) {
    return Error{ErrorCode::kIo,
                 "no chat template: neither chat_template.jinja nor \"chat_template\" in "
                 "tokenizer_config.json",
                 folder};
  }
  Result<ChatSource> made = MakeChatSource(*text, std::move(source.place));
  if (made.ok()) made->special_tokens = std::move(source.special_tokens);
  return made;
}

Result<ChatSource> MakeChatSource(std::string_view text, std::string place) {
  Result<ChatTemplate> chat = ChatTemplate::Parse(text);
  if (chat.ok()) return ChatSource{*std::move(chat), std::move(place), {}};
  Error error = chat.error();
  error.place = place + (error.place.empty() ? "" : ": " + error.place);
  return error;
}

}  // namespace pawl
