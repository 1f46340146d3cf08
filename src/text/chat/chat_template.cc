// Input becomes values whose strings are marked as data; the program runs; what it wrote still has
// the marks. The tokenizer is then told where the data is, and looks for special tokens elsewhere
// only.
#include "src/text/chat/chat_template.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/json_reader.h"
#include "src/base/os/files.h"
#include "src/base/utf8.h"
#include "src/text/chat/jinja_program.h"

namespace pawl {

namespace {

// Bytes of the texts of a value, and one for each value.
int64_t SizeOf(const json::Value& value) {
  int64_t size = 0;
  std::vector<const json::Value*> stack = {&value};
  while (!stack.empty()) {
    const json::Value* next = stack.back();
    stack.pop_back();
    size += static_cast<int64_t>(next->text.size()) + 1;
    for (const json::Value& item : next->items) stack.push_back(&item);
    for (const auto& [key, member] : next->members) {
      size += static_cast<int64_t>(key.size()) + 1;
      stack.push_back(&member);
    }
  }
  return size;
}

Status CheckMessages(const json::Value& messages) {
  if (messages.type != json::Type::kArray) {
    return Error{ErrorCode::kInvalid,
                 std::string("must be a list of messages, not ") + json::TypeName(messages.type),
                 "#/messages"};
  }
  for (size_t i = 0; i < messages.items.size(); ++i) {
    const json::Value& message = messages.items[i];
    const std::string place = "#/messages/" + std::to_string(i);
    if (message.type != json::Type::kObject) {
      return Error{
          ErrorCode::kInvalid,
          std::string("must be an object with a role, not ") + json::TypeName(message.type), place};
    }
    const json::Value* role = message.Find("role");
    if (role == nullptr || role->type != json::Type::kString) {
      return Error{ErrorCode::kInvalid, "must be a string, such as \"user\"", place + "/role"};
    }
    if (Status status = CheckIsText(message, place); !status.ok()) return status;
  }
  return {};
}

Status CheckList(const json::Value& value, const char* name) {
  return JsonReader(value, std::string("#/") + name).OptionalArray().status();
}

}  // namespace

// "images": the spelling of Ollama.
Status CheckIsText(const json::Value& message, const std::string& place) {
  static constexpr std::string_view kMedia[] = {
      "image", "image_url", "input_image", "images",     "video", "video_url", "input_video",
      "audio", "audio_url", "input_audio", "image_data", "file",  "input_file"};
  const auto is_media = [](std::string_view name) {
    return std::ranges::find(kMedia, name) != std::end(kMedia);
  };
  const auto refuse = [](std::string_view what, std::string at) {
    return Error{ErrorCode::kUnsupported,
                 "is of type " + json::Quote(what) + "; a conversation may have text alone",
                 std::move(at)};
  };
  const auto check = [&](const json::Value& object, const std::string& at) -> Status {
    for (const auto& [key, value] : object.members) {
      if (is_media(key) && (value.size() > 0 || !value.text.empty())) return refuse(key, at);
    }
    return {};
  };
  if (Status status = check(message, place); !status.ok()) return status;
  const json::Value* content = message.Find("content");
  for (size_t i = 0; content != nullptr && i < content->items.size(); ++i) {
    const std::string at = place + "/content/" + std::to_string(i);
    const json::Value* type = content->items[i].Find("type");
    if (type != nullptr && is_media(type->text)) return refuse(type->text, at);
    if (Status status = check(content->items[i], at); !status.ok()) return status;
  }
  return {};
}

Result<std::string> ContentText(const json::Value& content, const std::string& pointer) {
  if (content.type == json::Type::kNull) return std::string();
  if (content.type == json::Type::kString) return content.text;
  if (content.type != json::Type::kArray) {
    return Error{ErrorCode::kInvalid, "must be a string or a list of parts", pointer};
  }
  std::string text;
  for (size_t i = 0; i < content.items.size(); ++i) {
    const json::Value& part = content.items[i];
    const std::string place = json::PointerJoin(pointer, std::to_string(i));
    if (part.type == json::Type::kString) {
      text += part.text;
      continue;
    }
    const json::Value* type = part.Find("type");
    const json::Value* said = part.Find("text");
    if (said == nullptr) said = part.Find("refusal");
    if (said != nullptr && said->type != json::Type::kString) {
      return Error{ErrorCode::kInvalid, "must be a string", json::PointerJoin(place, "text")};
    }
    if (said == nullptr) {
      return Error{ErrorCode::kUnsupported,
                   "is a part of type " +
                       json::Quote(type != nullptr ? type->text : std::string("?")) +
                       "; a conversation may have text alone",
                   place};
    }
    text += said->text;
  }
  return text;
}

Status JoinTextParts(ChatInput& input) {
  for (size_t i = 0; i < input.messages.items.size(); ++i) {
    for (json::Member& member : input.messages.items[i].members) {
      if (member.first != "content" || member.second.type != json::Type::kArray) continue;
      const std::string place = "#/messages/" + std::to_string(i);
      if (Status status = CheckIsText(input.messages.items[i], place); !status.ok()) return status;
      Result<std::string> text = ContentText(member.second, place + "/content");
      if (!text.ok()) return text.error();
      member.second = json::Value();
      member.second.type = json::Type::kString;
      member.second.text = *std::move(text);
    }
  }
  return {};
}

Result<ChatTemplate> ChatTemplate::Parse(std::string_view source) {
  if (source.size() > kMaxBytes) {
    return Error{ErrorCode::kLimit, "a chat template of more than 1 MiB", ""};
  }
  if (const size_t bad = FindInvalidUtf8(source); bad != std::string_view::npos) {
    return Error{ErrorCode::kInvalid, "not UTF-8", "byte " + std::to_string(bad)};
  }
  Result<jinja::Program> program = jinja::ParseTemplate(source);
  if (!program.ok()) return program.error();
  ChatTemplate chat;
  for (const MarkedText& text : program->strings) {
    chat.literals_ += text.bytes();
    chat.literals_ += '\0';
  }
  chat.program_ = std::make_shared<const jinja::Program>(*std::move(program));
  return chat;
}

bool ChatTemplate::Mentions(std::string_view word) const {
  const std::string_view text = program_->source;
  const auto in_word = [&](size_t at) {
    const char c = at < text.size() ? text[at] : ' ';
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !in_word(at - 1)) && !in_word(at + word.size())) return true;
  }
  return false;
}

Result<MarkedText> ChatTemplate::Render(const ChatInput& input, const ChatLimits& limits) const {
  for (const Status& status : {CheckMessages(input.messages), CheckList(input.tools, "tools"),
                               CheckList(input.documents, "documents")}) {
    if (!status.ok()) return status.error();
  }
  int64_t size = SizeOf(input.messages) + SizeOf(input.tools) + SizeOf(input.documents);
  for (const auto& [name, value] : input.arguments) size += SizeOf(value);
  jinja::Heap heap(limits.fuel + size);
  std::vector<std::pair<std::string, jinja::Value>> variables;
  variables.emplace_back("messages", heap.FromJson(input.messages, true));
  variables.emplace_back("tools", heap.FromJson(input.tools, false));
  variables.emplace_back("documents", heap.FromJson(input.documents, false));
  variables.emplace_back("add_generation_prompt", jinja::Value::Bool(input.add_generation_prompt));
  for (const auto& [name, text] : input.special_tokens) {
    variables.emplace_back(name, heap.String(text));
  }
  for (const auto& [name, value] : input.arguments) {
    const jinja::Value made = heap.FromJson(value, false);
    const auto same =
        std::find_if(variables.begin(), variables.end(),
                     [&wanted = name](const auto& variable) { return variable.first == wanted; });
    if (same != variables.end()) {
      same->second = made;
    } else {
      variables.emplace_back(name, made);
    }
  }
  jinja::RunOptions options;
  options.max_output = limits.max_output;
  options.now = input.now;
  return jinja::Run(*program_, heap, variables, options);
}

std::vector<TokenId> EncodeChat(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                const MarkedText& prompt, bool trust_input) {
  constexpr int kAny = std::numeric_limits<int>::max();
  return *EncodeChatWithin(tokenizer, chat, prompt, kAny, trust_input);
}

Result<std::vector<TokenId>> EncodeChatWithin(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                              const MarkedText& prompt, int max_tokens,
                                              bool trust_input) {
  EncodeOptions options;
  options.parse_special = true;
  std::vector<TokenId> control;
  if (!trust_input) {
    control = tokenizer.ControlTokensIn(chat.literals());
    options.control = control;
    options.data = prompt.data();
  }
  return tokenizer.EncodeWithin(prompt.bytes(), max_tokens, options);
}

// Newer models have the template in a file of its own, older ones in tokenizer_config.json, some of
// them several with names. The file counts when both are there, as in transformers.

namespace {

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
  const std::string inside = folder + (folder.empty() || folder.ends_with('/') ? "" : "/");
  const std::string config = inside + "tokenizer_config.json";
  const std::string file = inside + "chat_template.jinja";
  if (os::Exists(config)) {
    Result<std::string> read = ReadRegularFile(config);
    if (!read.ok()) return read.error();
    Result<json::Value> root = json::Parse(*read);
    if (!root.ok()) return Broken(root.error().message, config + ": " + root.error().place);
    if (root->type != json::Type::kObject) return Broken("must be an object", config + "#");
    for (const char* token : {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token",
                              "cls_token", "mask_token"}) {
      const json::Value* value = root->Find(token);
      if (value == nullptr) continue;
      if (const std::string* written = TokenText(*value))
        source.special_tokens.emplace_back(token, *written);
    }
    const json::Value* value = root->Find("chat_template");
    if (value != nullptr && value->type != json::Type::kNull && !os::Exists(file)) {
      source.place = config + "#/chat_template";
      Result<std::string> picked = PickTemplate(*value, name, source.place);
      if (!picked.ok()) return picked.error();
      text = *std::move(picked);
    }
  }
  if (os::Exists(file)) {
    source.place = file;
    if (!name.empty()) {
      return Broken(
          "there is one chat template without a name, and none called " + json::Quote(name),
          source.place);
    }
    Result<std::string> read = ReadRegularFile(file);
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

// Chat input: only the shape is looked at here; what messages hold is for the template to say.

namespace {

// Takes the members that are null from the messages: many templates would write them out as "None".
// The reference implementation passes them on like this. `place`: of the list.
Status SettleMessages(json::Value& messages, const std::string& place) {
  if (messages.type != json::Type::kArray) return {};  // refused when it is rendered
  if (messages.items.empty()) {
    return Error{ErrorCode::kInvalid, "an empty conversation; expected at least one message",
                 place};
  }
  for (json::Value& message : messages.items) {
    std::erase_if(message.members,
                  [](const auto& member) { return member.second.type == json::Type::kNull; });
  }
  return {};
}

}  // namespace

Result<ChatInput> ChatInputFromJson(const json::Value& value) {
  ChatInput input;
  if (value.type == json::Type::kArray) {
    input.messages = value;
    if (Status status = SettleMessages(input.messages, "#"); !status.ok()) return status.error();
    return input;
  }
  if (value.type != json::Type::kObject) {
    return Error{ErrorCode::kInvalid,
                 std::string("must be a list of messages or an object with \"messages\", not ") +
                     json::TypeName(value.type),
                 "#"};
  }
  for (const auto& [key, member] : value.members) {
    const std::string place = json::PointerJoin("#", key);
    if (key == "messages") {
      input.messages = member;
    } else if (key == "tools") {
      input.tools = member;
    } else if (key == "documents") {
      input.documents = member;
    } else if (key == "add_generation_prompt") {
      if (!member.is_bool()) return Error{ErrorCode::kInvalid, "must be true or false", place};
      input.add_generation_prompt = member.type == json::Type::kTrue;
    } else if (key == "chat_template_kwargs") {
      if (member.type != json::Type::kObject) {
        return Error{ErrorCode::kInvalid, "must be an object", place};
      }
      for (const auto& [name, argument] : member.members) {
        input.arguments.emplace_back(name, argument);
      }
    } else {
      return Error{ErrorCode::kInvalid,
                   "is not known; expected messages, tools, documents, add_generation_prompt or "
                   "chat_template_kwargs",
                   place};
    }
  }
  if (value.Find("messages") == nullptr) {
    return Error{ErrorCode::kInvalid, "is missing, must be a list of messages", "#/messages"};
  }
  if (Status status = SettleMessages(input.messages, "#/messages"); !status.ok()) {
    return status.error();
  }
  return input;
}

Result<std::tm> ParseTime(std::string_view text) {
  const Error bad{ErrorCode::kInvalid,
                  "must be a time such as 2025-03-14 or 2025-03-14T09:26:53, not " +
                      json::Quote(text.substr(0, 40)),
                  ""};
  std::string_view form = "dddd-dd-ddTdd:dd:dd";
  if (text.size() == 10) form = form.substr(0, 10);
  if (text.size() != form.size()) return bad;
  for (size_t i = 0; i < form.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (form[i] == 'd' ? !digit : text[i] != form[i]) return bad;
  }
  const auto number = [&](size_t at, size_t digits) {
    int value = 0;
    for (size_t i = at; i < at + digits && i < text.size(); ++i)
      value = value * 10 + (text[i] - '0');
    return value;
  };
  const int year = number(0, 4), month = number(5, 2), day = number(8, 2);
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (year < 1 || month < 1 || month > 12 || day < 1) return bad;
  if (day > kDays[month - 1] + (leap && month == 2 ? 1 : 0)) return bad;
  std::tm time{};
  time.tm_year = year - 1900;
  time.tm_mon = month - 1;
  time.tm_mday = day;
  time.tm_hour = number(11, 2);
  time.tm_min = number(14, 2);
  time.tm_sec = number(17, 2);
  if (time.tm_hour > 23 || time.tm_min > 59 || time.tm_sec > 59) return bad;
  for (int m = 0; m < month - 1; ++m) time.tm_yday += kDays[m] + (leap && m == 1 ? 1 : 0);
  time.tm_yday += day - 1;
  // Days since Monday, 1 January of the year 1.
  const int before = year - 1;
  const int days = before * 365 + before / 4 - before / 100 + before / 400 + time.tm_yday;
  time.tm_wday = (days + 1) % 7;
  return time;
}

}  // namespace pawl
