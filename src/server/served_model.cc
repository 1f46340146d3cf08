// Prompts. What clients send in messages is settled here for templates: parts of text are joined,
// the role "developer" is "system", the arguments of earlier calls are JSON again and not text.
#include "src/server/served_model.h"

#include <algorithm>
#include <filesystem>

#include "src/engine/model_files.h"
#include "src/engine/pooling.h"
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
  if (Status status = CheckIsText(message, pointer); !status.ok()) return status;
  if (Value* content = Member(message, "content")) {
    Result<std::string> text = ContentText(*content, pointer + "/content");
    if (!text.ok()) return text.error();
    *content = StringValue(*std::move(text));
  } else {
    message.members.emplace_back("content", StringValue(""));
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
  for (const LoraAdapter& adapter : options.model.lora) {
    if (adapter.name != out->name_) continue;
    return Error{ErrorCode::kInvalid,
                 "has the name of the model itself, " + json::Quote(out->name_), "lora"};
  }
  Result<std::unique_ptr<LoadedModel>> loaded =
      LoadedModel::Open(path,
                        {.text = options.chat_template,
                         .place = "chat template",
                         .think_open = options.think_open,
                         .think_close = options.think_close},
                        options.settings);
  if (!loaded.ok()) return loaded.error();
  out->loaded_ = *std::move(loaded);
  out->pooling_ = options.pooling.empty() ? ReadPooling(path) : PoolingOf(options.pooling);
  const LoadedModel& model = *out->loaded_;
  const auto note = [&](const std::string& text) {
    if (options.note) options.note(text);
  };
  if (out->has_chat()) {
    out->chat_text_ = model.chat()->chat.literals();
    out->traits_ = model.traits();
    out->shows_tools_ = out->ProbeTools();
    // An instruction names the form then.
    if (!out->shows_tools_ && out->traits_.format == nullptr) {
      out->traits_.format = PlainTraits().format;
    }
  } else if (model.chat().error().code != ErrorCode::kIo) {
    note("the chat template cannot be used: " + model.chat().error().ToString());
  }
  if (!options.tool_syntax.empty()) {
    const ChatFormat* format = ChatFormatNamed(options.tool_syntax);
    if (format == nullptr) return Error{ErrorCode::kInvalid, "is not known", "--tool-syntax"};
    out->traits_ = TraitsOf(out->chat_text_, format);
    if (!options.think_close.empty()) {
      out->traits_.think_open = options.think_open;
      out->traits_.think_close = options.think_close;
    }
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
  out->rerank_ = ReadRerankHead(path, out->info());
  return out;
}

std::optional<int> ServedModel::AdapterNamed(std::string_view name) const {
  const auto& adapters = info().adapters;
  constexpr std::string_view kLatest = ":latest";
  for (int i = 0; i < 2; ++i) {
    if (name.empty() || name == name_) return 0;
    const auto found = std::ranges::find(adapters, name, &ModelInfo::Adapter::name);
    if (found != adapters.end()) return static_cast<int>(found - adapters.begin()) + 1;
    if (!name.ends_with(kLatest)) break;
    name.remove_suffix(kLatest.size());
  }
  return std::nullopt;
}

Result<std::vector<TokenId>> ServedModel::EncodeFramed(const PromptSpec& spec) const {
  const int context = loaded_->context_length();
  if (!spec.pair) {
    return tokenizer().EncodeWithin(spec.text, context, {.add_special_tokens = true});
  }
  if (!rerank_.ok()) return rerank_.error();
  std::vector<TokenId> tokens = rerank_->before;
  const auto add = [&](const std::vector<TokenId>& more) {
    tokens.insert(tokens.end(), more.begin(), more.end());
  };
  const Result<std::vector<TokenId>> first = tokenizer().EncodeWithin(spec.text, context);
  if (!first.ok()) return first;
  const Result<std::vector<TokenId>> second = tokenizer().EncodeWithin(*spec.pair, context);
  if (!second.ok()) return second;
  add(*first);
  add(rerank_->between);
  add(*second);
  add(rerank_->after);
  return tokens;
}

Result<PreparedPrompt> ServedModel::Prepare(const PromptSpec& spec) const {
  PreparedPrompt out;
  switch (spec.kind) {
    case PromptSpec::Kind::kText:
      if (spec.framed) return WithTokens(EncodeFramed(spec), spec);
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
                               .text = spec.document ? "text" : spec.text,
                               .instruction = spec.instruction,
                               .examples = spec.examples,
                               .view = spec.view,
                               .record = spec.record,
                               .problem = spec.problem};
      Result<std::vector<TokenId>> tokens =
          loaded_->EncodeExtract(input, LocalTime(), spec.thinking);
      const auto of_request = [&](const char* member) {
        return !tokens.ok() && tokens.error().place == member;
      };
      if (of_request("instruction") || of_request("examples")) {
        return Error{tokens.error().code, tokens.error().message, "#/" + tokens.error().place};
      }
      Result<PreparedPrompt> prompt = WithTokens(std::move(tokens), spec);
      if (!prompt.ok()) return prompt;
      prompt->thinking = ThinkingStartOf(tokenizer(), prompt->tokens, traits_);
      prompt->note = UnclosedNote(tokenizer(), prompt->tokens, traits_);
      return prompt;
    }
    case PromptSpec::Kind::kChat:
      return PrepareChat(spec);
  }
  return out;
}

// A template that refuses this conversation may show tools in another: it is not told apart.
bool ServedModel::ProbeTools() const {
  constexpr std::string_view kProbe = "pawl_probe";
  ChatInput input;
  input.messages.type = json::Type::kArray;
  input.messages.items.push_back(MakeChatMessage("user", "x"));
  Result<Value> tools = json::Parse(
      R"([{"type":"function","function":{"name":"pawl_probe","description":"x","parameters":)"
      R"({"type":"object","properties":{"x":{"type":"string","description":"x"}}}}}])");
  if (!tools.ok()) return true;
  input.tools = *std::move(tools);
  input.now = LocalTime();
  const Result<MarkedText> prompt = loaded_->RenderChat(std::move(input));
  return !prompt.ok() || prompt->bytes().find(kProbe) != std::string::npos;
}

// The tools as a general instruction. Whole schemas only where they take less than a quarter of the
// context.
Result<MarkedText> ServedModel::RenderWithTools(const PromptSpec& spec, ChatInput input) const {
  const int context = info().context_length;
  const auto tokens = [&](const std::string& text) {
    return static_cast<int>(tokenizer().Encode(text).size());
  };
  const ToolInstruction& told = spec.told_tools;
  const bool whole = tokens(told.with_schemas) < context / 4;
  const std::string& text = whole ? told.with_schemas : told.text;
  if (const int size = whole ? 0 : tokens(text); size >= context) {
    return Error{ErrorCode::kLimit,
                 "the list of " + std::to_string(told.forms.size()) + " tools has " +
                     std::to_string(size) + " tokens, but the model's context holds " +
                     std::to_string(context),
                 "#/tools"};
  }
  WriteCallsAsText(told, input.messages);
  ChatInput as_system = input;
  AddInstruction(text, InstructionPlace::kSystem, as_system.messages);
  const std::string_view last = std::string_view(text).substr(text.rfind('\n') + 1);
  Result<MarkedText> prompt = loaded_->RenderChat(std::move(as_system));
  if (prompt.ok() && prompt->bytes().find(last) != std::string::npos) return prompt;
  // A template without system messages.
  AddInstruction(text, InstructionPlace::kUser, input.messages);
  Result<MarkedText> with_user = loaded_->RenderChat(std::move(input));
  if (!with_user.ok()) return prompt.ok() ? std::move(with_user) : std::move(prompt);
  if (with_user->bytes().find(last) != std::string::npos) return with_user;
  return Error{ErrorCode::kUnsupported,
               "the model's chat template shows neither tools nor a message that could name them",
               "#/tools"};
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
  TellTemplate(spec.thinking, input.arguments);
  input.now = LocalTime();
  const Result<MarkedText> prompt = spec.told_tools.empty()
                                        ? loaded_->RenderChat(std::move(input))
                                        : RenderWithTools(spec, std::move(input));
  if (!prompt.ok()) {
    Error error = prompt.error();
    if (error.place == "#/tools") return error;
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
  if (!out.ok()) return out;
  out->thinking = ThinkingStartOf(prompt->bytes(), traits_);
  out->note = UnclosedNote(prompt->bytes(), traits_);
  return out;
}

}  // namespace pawl::server
