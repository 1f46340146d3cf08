// The template comes from a file, the model's folder or its GGUF file; the messages from a file or
// from the texts on the command line. Only here is the clock read: the library takes a time.
#include "src/cli/chat.h"

#include <ctime>
#include <utility>

#include "src/base/file.h"
#include "src/base/json.h"
#include "src/cli/command.h"
#include "src/cli/options.h"
#include "src/engine/loaded_model.h"
#include "src/engine/message_source.h"
#include "src/engine/model_files.h"
#include "src/text/chat/chat_template.h"

namespace pawl::cli {
namespace {

Status SetLastUserText(json::Value& messages, const std::string& text) {
  for (auto message = messages.items.rbegin(); message != messages.items.rend(); ++message) {
    const json::Value* const role = message->Find("role");
    if (role == nullptr || role->text != "user") continue;
    for (auto& [name, member] : message->members) {
      if (name == "content") member = json::Value{json::Type::kString, text, {}, {}};
    }
    return {};
  }
  return Error{ErrorCode::kInvalid, "needs a message of the user", "--contrast-prompt"};
}

}  // namespace

void ChatFlags::AddTo(CLI::App* command, const std::vector<CLI::Option*>& text) {
  auto* chat_flag = command->add_flag(
      "--chat", chat, "The text is what the user says to a chat model: apply its chat template");
  command->add_option("--system", system, "With --chat: the system message")
      ->needs(chat_flag)
      ->type_name("TEXT");
  auto* messages = TextOption(command, "--messages", messages_file, "FILE",
                              "Conversation as JSON, a list of messages or an object with "
                              "\"messages\", \"tools\", ...; -: standard input")
                       ->excludes(chat_flag);
  for (CLI::Option* option : text) messages->excludes(option);
  TextOption(command, "--chat-template", template_file, "FILE",
             "File with another template than the model's");
  TextOption(command, "--chat-template-name", template_name, "NAME",
             "Which one, where the model has several (default: \"default\")");
  TextOption(command, "--chat-arg", arguments, "NAME=JSON",
             "A variable of the template, such as enable_thinking=false; several times");
  TextOption(command, "--now", now, "TIME",
             "The time that templates see, such as 2025-03-14 (default: now)");
  command->add_flag("--trust-messages", trust,
                    "Special tokens written out in messages become those tokens");
}

Status ChatFlags::Check() const {
  if (any()) return {};
  const bool given = !template_file.empty() || !template_name.empty() || !arguments.empty() ||
                     !now.empty() || trust;
  if (!given) return {};
  return Error{ErrorCode::kInvalid, "options of chat templates need --chat or --messages", ""};
}

Result<ChatPrompt> ChatFlags::Render(const std::string& path, const Tokenizer& tokenizer,
                                     std::string_view user, int max_tokens,
                                     const Thinking& thinking,
                                     const std::optional<std::string>& last) const {
  Result<ChatSource> source = [&]() -> Result<ChatSource> {
    if (template_file.empty()) return LoadModelChat(path, template_name, tokenizer);
    Result<std::string> text = ReadFile(template_file);
    if (!text.ok()) return text.error();
    return MakeChatFor(path, tokenizer, *text, template_file);
  }();
  if (!source.ok()) return source.error();

  ChatInput input;
  const std::string name = messages_file == "-" ? "standard input" : messages_file;
  if (has_messages()) {
    Result<std::string> text = ReadInput(messages_file);
    if (!text.ok()) return text.error();
    Result<json::Value> value = json::Parse(*text);
    if (!value.ok()) return InFile(name, value.error());
    Result<ChatInput> read = ChatInputFromJson(*value);
    if (!read.ok()) return InFile(name, read.error());
    input = *std::move(read);
    if (Status status = JoinTextParts(input); !status.ok()) return InFile(name, status.error());
  } else {
    input.messages.type = json::Type::kArray;
    if (!system.empty()) input.messages.items.push_back(MakeChatMessage("system", system));
    input.messages.items.push_back(MakeChatMessage("user", user));
  }
  if (last) {
    if (Status status = SetLastUserText(input.messages, *last); !status.ok()) return status.error();
  }
  input.special_tokens = source->special_tokens;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    const std::string key = argument.substr(0, equals);
    if (equals == std::string::npos || key.empty()) {
      return Error{ErrorCode::kInvalid, "must be NAME=JSON, not " + json::Quote(argument),
                   "--chat-arg"};
    }
    Result<json::Value> value = json::Parse(std::string_view(argument).substr(equals + 1));
    if (!value.ok()) return InFile("--chat-arg " + key, value.error());
    input.arguments.emplace_back(key, *std::move(value));
  }
  TellTemplate(thinking, input.arguments);
  if (now.empty()) {
    input.now = LocalTime();
  } else {
    Result<std::tm> time = ParseTime(now);
    if (!time.ok()) return InFile("--now", time.error());
    input.now = *time;
  }
  Result<MarkedText> prompt = source->chat.Render(input);
  if (!prompt.ok()) {
    const bool in_input = prompt.error().place.starts_with("#");
    return InFile(in_input ? (has_messages() ? name : "--chat") : source->place, prompt.error());
  }
  Result<std::vector<TokenId>> tokens =
      EncodeChatWithin(tokenizer, source->chat, *prompt, max_tokens, trust);
  if (!tokens.ok()) return InFile("the prompt", tokens.error());
  return ChatPrompt{prompt->bytes(), *std::move(tokens), TraitsOf(source->chat.literals()),
                    SourceOfMessages(input.messages)};
}

}  // namespace pawl::cli
