// Input becomes values whose strings are marked as data; the program runs; what it wrote still has
// the marks. The tokenizer is then told where the data is, and looks for special tokens elsewhere
// only.
#include "src/text/chat/chat_template.h"

#include <algorithm>
#include <limits>

#include "src/base/json_reader.h"
#include "src/base/utf8.h"
#include "src/text/chat/jinja_interpreter.h"
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
  }
  return {};
}

Status CheckList(const json::Value& value, const char* name) {
  return JsonReader(value, std::string("#/") + name).OptionalArray().status();
}

}  // namespace

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

}  // namespace pawl
