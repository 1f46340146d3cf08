// Prompts. What clients send in messages is settled here for templates: parts of text are joined,
// the role "developer" is "system", the arguments of earlier calls are JSON again and not text.
#include "src/server/served_model.h"

#include <algorithm>
#include <filesystem>

#include "src/text/chat/chat_template.h"

namespace pawl::server {
namespace {

using json::PointerJoin;
using json::Value;

Value* Member(Value& object, std::string_view key) {
  for (json::Member& member : object.members) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

// A content of parts as one text.
Result<std::string> TextOf(const Value& content, const std::string& pointer) {
  if (content.type == json::Type::kNull) return std::string();
  if (content.type == json::Type::kString) return content.text;
  if (content.type != json::Type::kArray) {
    return Error{ErrorCode::kInvalid, "must be a string or a list of parts", pointer};
  }
  std::string text;
  for (size_t i = 0; i < content.items.size(); ++i) {
    const Value& part = content.items[i];
    const std::string place = PointerJoin(pointer, std::to_string(i));
    if (part.type == json::Type::kString) {
      text += part.text;
      continue;
    }
    const Value* type = part.Find("type");
    const Value* said = part.Find("text");
    if (said == nullptr) said = part.Find("refusal");
    if (said != nullptr && said->type != json::Type::kString) {
      return Error{ErrorCode::kInvalid, "must be a string", PointerJoin(place, "text")};
    }
    if (said == nullptr) {
      return Error{ErrorCode::kUnsupported,
                   "is a part of type " +
                       json::Quote(type != nullptr ? type->text : std::string("?")) +
                       "; this server takes text",
                   place};
    }
    text += said->text;
  }
  return text;
}

// The message as templates expect it.
Status Settle(Value& message, const std::string& pointer) {
  if (message.type != json::Type::kObject) {
    return Error{ErrorCode::kInvalid, "must be an object", pointer};
  }
  Value* role = Member(message, "role");
  if (role == nullptr || role->type != json::Type::kString) {
    return Error{ErrorCode::kInvalid, "must be a string", pointer + "/role"};
  }
  if (role->text == "developer") role->text = "system";
  if (role->text == "function") role->text = "tool";
  if (Value* content = Member(message, "content")) {
    Result<std::string> text = TextOf(*content, pointer + "/content");
    if (!text.ok()) return text.error();
    *content = StringValue(*std::move(text));
  } else {
    message.members.emplace_back("content", StringValue(""));
  }
  if (const Value* images = message.Find("images"); images != nullptr && images->size() > 0) {
    return Error{ErrorCode::kUnsupported, "are not taken: this server takes text",
                 pointer + "/images"};
  }
  Value* calls = Member(message, "tool_calls");
  if (calls == nullptr || calls->type != json::Type::kArray) return {};
  for (Value& call : calls->items) {
    Value* function = Member(call, "function");
    Value* arguments = function == nullptr ? nullptr : Member(*function, "arguments");
    if (arguments == nullptr || arguments->type != json::Type::kString) continue;
    if (Result<Value> parsed = json::Parse(arguments->text); parsed.ok()) {
      *arguments = *std::move(parsed);
    }
  }
  return {};
}

// Of a text that is too long, the error has the place in the request.
Result<PreparedPrompt> WithTokens(Result<std::vector<TokenId>> tokens, const PromptSpec& spec) {
  if (tokens.ok()) return PreparedPrompt{.tokens = *std::move(tokens)};
  Error error = tokens.error();
  if (error.place.empty()) error.place = spec.pointer;
  return error;
}

}  // namespace

json::Value StringValue(std::string text) {
  json::Value value;
  value.type = json::Type::kString;
  value.text = std::move(text);
  return value;
}

Result<std::unique_ptr<ServedModel>> ServedModel::Load(const std::string& path,
                                                       const ServedModelOptions& options) {
  std::unique_ptr<ServedModel> out(new ServedModel());
  out->name_ = options.name;
  if (out->name_.empty()) {
    std::filesystem::path file = std::filesystem::path(path).lexically_normal();
    if (!file.has_filename()) file = file.parent_path();
    out->name_ = file.filename().string();
  }
  Result<std::unique_ptr<LoadedModel>> loaded =
      LoadedModel::Open(path, {.text = options.chat_template, .place = "chat template"});
  if (!loaded.ok()) return loaded.error();
  out->loaded_ = *std::move(loaded);
  const LoadedModel& model = *out->loaded_;
  const auto note = [&](const std::string& text) {
    if (options.note) options.note(text);
  };
  if (out->has_chat()) {
    out->chat_text_ = model.chat()->chat.literals();
    out->traits_ = TraitsOf(out->chat_text_);
  } else if (model.chat().error().code != ErrorCode::kIo) {
    note("the chat template cannot be used: " + model.chat().error().ToString());
  }
  if (!options.tool_syntax.empty()) {
    const std::optional<ToolSyntax> syntax = ToolSyntaxOf(options.tool_syntax);
    if (!syntax) return Error{ErrorCode::kInvalid, "is not known", "--tool-syntax"};
    out->traits_.syntax = *syntax;
  }
  // What a template has against a message of a user is known before the weights are read.
  const auto tried = model.EncodeExtract({.schema = "{}", .text = "text"}, LocalTime());
  if (!tried.ok() && (out->has_chat() || model.extract().ok())) {
    note("no prompt for extracting: " + tried.error().ToString());
  }
  out->can_extract_ = tried.ok();
  if (Status status = out->loaded_->LoadWeights(options.model, options.note); !status.ok()) {
    return status.error();
  }
  return out;
}

Result<PreparedPrompt> ServedModel::Prepare(const PromptSpec& spec) const {
  PreparedPrompt out;
  switch (spec.kind) {
    case PromptSpec::Kind::kText:
      return WithTokens(loaded_->EncodePlain(spec.text, spec.parse_special), spec);
    case PromptSpec::Kind::kTokens:
      out.tokens = spec.tokens;
      return out;
    case PromptSpec::Kind::kInfill:
      return WithTokens(loaded_->EncodeInfill(spec.text, spec.suffix, spec.files), spec);
    case PromptSpec::Kind::kExtract: {
      if (!can_extract_) {
        return Error{ErrorCode::kUnsupported, "this model has no prompt for extracting", ""};
      }
      const ExtractInput input{.schema = spec.schema,
                               .text = spec.text,
                               .instruction = spec.instruction,
                               .examples = spec.examples,
                               .view = spec.view};
      Result<std::vector<TokenId>> tokens = loaded_->EncodeExtract(input, LocalTime());
      const auto of_request = [&](const char* member) {
        return !tokens.ok() && tokens.error().place == member;
      };
      if (of_request("instruction") || of_request("examples")) {
        return Error{tokens.error().code, tokens.error().message, "#/" + tokens.error().place};
      }
      return WithTokens(std::move(tokens), spec);
    }
    case PromptSpec::Kind::kChat:
      return PrepareChat(spec);
  }
  return out;
}

Result<PreparedPrompt> ServedModel::PrepareChat(const PromptSpec& spec) const {
  ChatInput input;
  input.messages = spec.messages;
  for (size_t i = 0; i < input.messages.items.size(); ++i) {
    const std::string place = PointerJoin(spec.pointer, std::to_string(i));
    if (Status status = Settle(input.messages.items[i], place); !status.ok()) {
      return status.error();
    }
  }
  if (!has_chat()) {
    if (loaded_->chat().error().code != ErrorCode::kIo) {
      return Error{ErrorCode::kUnsupported,
                   "the model's chat template cannot be used: " + loaded_->chat().error().message,
                   spec.pointer};
    }
    // The last thing that the user said.
    const auto& messages = input.messages.items;
    const auto last = std::find_if(messages.rbegin(), messages.rend(), [](const Value& message) {
      return message.Find("role")->text == "user";
    });
    if (last == messages.rend()) {
      return Error{ErrorCode::kInvalid,
                   "has no message of a user, and this model has no chat template", spec.pointer};
    }
    PromptSpec plain;
    plain.text = last->Find("content")->text;
    const bool extracts = can_extract_ && (!spec.schema.empty() || !loaded_->plain().text.empty());
    plain.kind = extracts ? PromptSpec::Kind::kExtract : PromptSpec::Kind::kText;
    plain.schema = spec.schema.empty() ? "{}" : spec.schema;
    return Prepare(plain);
  }
  input.tools = spec.tools;
  for (const json::Member& argument : spec.arguments.members) {
    input.arguments.emplace_back(argument.first, argument.second);
  }
  input.now = LocalTime();
  const Result<MarkedText> prompt = loaded_->RenderChat(std::move(input));
  if (!prompt.ok()) {
    Error error = prompt.error();
    if (error.place.starts_with("#")) {
      error.place = "#/messages" + error.place.substr(1);
    } else {
      error.message =
          "the model's chat template refuses this at " + error.place + ": " + error.message;
      error.place = spec.pointer;
    }
    return error;
  }
  Result<PreparedPrompt> out = WithTokens(loaded_->EncodeChat(*prompt), spec);
  if (out.ok()) out->thinking = ThinkingStartOf(prompt->bytes(), traits_);
  return out;
}

}  // namespace pawl::server
