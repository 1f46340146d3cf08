// The constraint of a call, into the grammars of its outputs. One grammar serves all prompts whose
// bound on strings is the same; where the texts of prompts bound them, each length has its own.
#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/stop_scope.h"
#include "src/decode/closing.h"
#include "src/engine/copied_fields.h"
#include "src/engine/copied_text.h"
#include "src/engine/loaded_model.h"
#include "src/engine/message_source.h"
#include "src/engine/schema_view.h"
#include "src/server/call.h"
#include "src/server/call_choice.h"
#include "src/server/server_state.h"

namespace pawl::server {

// What bounds strings when neither the schema nor the request does: as in `pawl extract`, the
// length of the prompt's longest text.
static int LongestString(const PromptSpec& prompt) {
  constexpr int64_t kMost = 1 << 30;
  int64_t longest = MaxStringFor(prompt.text);
  for (const json::Value& message : prompt.messages.items) {
    const json::Value* content = message.Find("content");
    if (content != nullptr && content->type == json::Type::kString) {
      longest = std::max(longest, MaxStringFor(content->text));
    }
  }
  return static_cast<int>(std::min(longest, kMost));
}

// The form of calls, and for a template that shows no tools the instruction that does.
std::optional<ApiError> Call::PlanTools() {
  const ServedModel& model = *server_->model;
  RequestConstraints& asked = spec_.asked;
  const bool calls = asked.choice.mode != ToolChoice::Mode::kNone && !asked.choice.allowed.empty();
  const bool chats = model.has_chat() && spec_.prompts[0].kind == PromptSpec::Kind::kChat;
  // Thoughts have a constraint of their own.
  Result<OutputPlan> plan = MakePlan(asked, model.traits(), ThinkingStart::kOff);
  if (!plan.ok()) {
    // A place in the request, of what no part of it has by itself.
    if (plan.error().place.starts_with("#/tool_choice")) {
      return FromError(Error{plan.error().code, plan.error().message, ""}, plan.error().place);
    }
    return CompileError(plan.error());
  }
  plan_ = *std::move(plan);
  if (plan_.no_form_of_calls) {
    out_.notes.push_back(
        "no tool was offered as a call: the model's chat template shows no form of tool calls that "
        "is known, and `pawl serve --tool-syntax NAME` names one");
  }
  if (calls && chats && !model.shows_tools() && !plan_.calls.empty()) {
    spec_.prompts[0].told_tools = InstructionOf(asked, plan_);
    // As the lines of the instruction are: a small model copies better what it has seen.
    if (asked.choice.mode == ToolChoice::Mode::kRequired && !asked.layout.asked_whitespace) {
      asked.layout.item_separator = ", ";
      asked.layout.key_separator = ": ";
    }
  }
  return std::nullopt;
}

std::optional<ApiError> Call::PlanThinking(ThinkingStart thinking) {
  const PromptSpec& prompt = spec_.prompts[0];
  const bool prompted =
      prompt.kind == PromptSpec::Kind::kChat || prompt.kind == PromptSpec::Kind::kExtract;
  const ModelTraits& traits = server_->model->traits();
  if (prompted) thoughts_ = PlanThoughts(traits, thinking, prompt.thinking);
  if (spec_.free_first > 0) {
    const auto wrong = [](ErrorCode code, const char* message) {
      return FromError(Error{code, message, "#/free_first"}, "");
    };
    if (!plan_.calls.empty()) return wrong(ErrorCode::kUnsupported, "cannot be used with tools");
    if (spec_.code) return wrong(ErrorCode::kUnsupported, "is not for code");
    Result<ThoughtPlan> free = WithFreeText(thoughts_, spec_.free_first,
                                            plan_.grammar.kind != ConstraintSpec::Kind::kNone);
    if (!free.ok()) return wrong(free.error().code, free.error().message.c_str());
    thoughts_ = *std::move(free);
    plan_.think_close = thoughts_.close;
    plan_.free_text = true;
  }
  plan_.thinking = !thoughts_.splits  ? ThinkingStart::kOff
                   : thoughts_.opened ? ThinkingStart::kOpen
                                      : ThinkingStart::kMay;
  const auto& chat = server_->model->loaded().chat();
  for (const CallSpec::ThinkingWish& wish : spec_.thinking_wishes) {
    const bool heard = wish.variable != nullptr && chat.ok() && chat->chat.Mentions(wish.variable);
    const bool marked = wish.variable == nullptr && prompted && !thoughts_.changes_nothing;
    if (!heard && !marked) out_.ignored.push_back(wish.pointer);
  }
  return std::nullopt;
}

using Schemas = std::vector<const json::Value*>;

// The schemas, with what they refer to and their branches.
static Schemas Expanded(const json::Value& root, const Schemas& schemas) {
  constexpr size_t kMost = 64;
  Schemas out = schemas;
  for (size_t i = 0; i < out.size() && out.size() < kMost; ++i) {
    const json::Value& at = *out[i];
    if (const json::Value* reference = at.Find("$ref"); reference != nullptr) {
      const json::Value* target = &root;
      const bool local = reference->text.starts_with("#");
      for (const std::string& token : json::PointerTokens(local ? reference->text.substr(1) : "")) {
        if (target != nullptr) target = target->Find(token);
      }
      const bool known = std::ranges::find(out, target) != out.end();
      if (local && target != nullptr && !known) out.push_back(target);
    }
    for (const char* name : {"anyOf", "oneOf", "allOf"}) {
      const json::Value* branches = at.Find(name);
      if (branches == nullptr) continue;
      for (const json::Value& branch : branches->items) out.push_back(&branch);
    }
  }
  return out;
}

// The schemas of a member, or with an empty key of an item.
static Schemas Inside(const json::Value& root, const Schemas& schemas, const std::string* key,
                      size_t index) {
  Schemas out;
  const auto add = [&](const json::Value* schema) {
    if (schema != nullptr && schema->type == json::Type::kObject) out.push_back(schema);
  };
  for (const json::Value* at : schemas) {
    if (key != nullptr) {
      const json::Value* properties = at->Find("properties");
      const json::Value* named = properties == nullptr ? nullptr : properties->Find(*key);
      add(named != nullptr ? named : at->Find("additionalProperties"));
      continue;
    }
    const json::Value* first = at->Find("prefixItems");
    add(first != nullptr && index < first->items.size() ? &first->items[index] : at->Find("items"));
  }
  return Expanded(root, out);
}

static bool IsAtBound(const json::Value& value, int bound) {
  const auto characters =
      std::ranges::count_if(value.text, [](char c) { return (c & 0xC0) != 0x80; });
  return value.type == json::Type::kString && characters == bound;
}

// Whether a string in the value is as long as the bound lets it be: mostly none is.
static bool HasStringAtBound(const json::Value& value, int bound) {
  std::vector<const json::Value*> open = {&value};
  while (!open.empty()) {
    const json::Value& at = *open.back();
    open.pop_back();
    if (IsAtBound(at, bound)) return true;
    for (const json::Member& member : at.members) open.push_back(&member.second);
    for (const json::Value& item : at.items) open.push_back(&item);
  }
  return false;
}

// Names the strings that the bound ended: as long as it lets them be, where the schema sets no end
// of its own.
static void FindEndedStrings(const json::Value& value, int bound, const std::string& pointer,
                             const std::string& schema, std::vector<std::string>& notes) {
  const Result<json::Value> root = json::Parse(schema);
  if (!root.ok()) return;
  struct Place {
    const json::Value* value;
    std::string pointer;
    Schemas schemas;
  };
  std::vector<Place> open = {{&value, pointer, Expanded(*root, {&*root})}};
  while (!open.empty()) {
    const Place at = std::move(open.back());
    open.pop_back();
    const bool ends = std::ranges::any_of(at.schemas, [](const json::Value* one) {
      return one->Find("enum") != nullptr || one->Find("const") != nullptr ||
             one->Find("maxLength") != nullptr;
    });
    if (IsAtBound(*at.value, bound) && !ends) {
      notes.push_back(at.pointer + ": the string ended at the bound of " + std::to_string(bound) +
                      " characters (max_string)");
    }
    for (const json::Member& member : at.value->members) {
      open.push_back({&member.second, json::PointerJoin(at.pointer, member.first),
                      Inside(*root, at.schemas, &member.first, 0)});
    }
    for (size_t i = 0; i < at.value->items.size(); ++i) {
      open.push_back({&at.value->items[i], json::PointerJoin(at.pointer, std::to_string(i)),
                      Inside(*root, at.schemas, nullptr, i)});
    }
  }
}

void Call::NoteEnd(StopReason stop, ChoiceOut& out) const {
  if (out.calls.empty()) {
    std::string all = AllThoughtsNote(stop, out.reasoning, out.content, out.stats.budget);
    if (!all.empty()) out.notes.push_back(std::move(all));
  }
  if (string_bound_ <= 0) return;
  const auto look = [&](const std::string& text, const std::string& schema,
                        const std::string& pointer) {
    const Result<json::Value> value = json::Parse(text);
    if (value.ok() && HasStringAtBound(*value, string_bound_)) {
      FindEndedStrings(*value, string_bound_, pointer, schema, out.notes);
    }
  };
  for (size_t i = 0; i < out.calls.size(); ++i) {
    const ToolCallOut& call = out.calls[i];
    const auto tool = std::ranges::find(spec_.asked.tools, call.name, &ToolSpec::name);
    if (call.custom || tool == spec_.asked.tools.end()) continue;
    look(call.arguments, tool->input.text,
         "tool_calls/" + std::to_string(i) + "/function/arguments#");
  }
  if (spec_.asked.answer.kind != ConstraintSpec::Kind::kJsonSchema) return;
  look(out.content, spec_.asked.answer.text, "content#");
}

std::optional<ApiError> Call::WriteExamples() {
  if (spec_.prompts.empty()) return std::nullopt;
  if (spec_.prompts[0].examples.empty() && spec_.prompts[0].record.empty()) return std::nullopt;
  const StopScope scope(&halt_);
  LayoutSpec layout = spec_.asked.layout;
  if (layout.max_string < 0) layout.max_string = LongestString(spec_.prompts[0]);
  bool known = false;
  const Result<Grammar> grammar =
      server_->grammars->Get(spec_.asked.answer, layout, known, NewStop());
  if (!grammar.ok()) return FromError(grammar.error(), spec_.asked.answer.pointer);
  // All prompts have the same examples.
  std::vector<ExtractExample> examples = spec_.prompts[0].examples;
  const json::Value schema = *json::Parse(spec_.prompts[0].schema);
  for (size_t i = 0; i < examples.size(); ++i) {
    Result<std::string> record = WriteRecord(*grammar, schema, *json::Parse(examples[i].record));
    if (!record.ok()) {
      return FromError(record.error(), "#/examples/" + std::to_string(i) + "/record");
    }
    examples[i].record = *std::move(record);
  }
  for (PromptSpec& prompt : spec_.prompts) prompt.examples = examples;
  // A record that was wrong need not fit the schema.
  if (std::string& wrong = spec_.prompts[0].record; !wrong.empty()) {
    Result<std::string> record = WriteRecord(*grammar, schema, *json::Parse(wrong));
    if (record.ok()) wrong = *std::move(record);
  }
  return std::nullopt;
}

std::optional<ApiError> Call::CompilePlan(ThinkingStart thinking) {
  const StopScope scope(&halt_);
  LayoutSpec& layout = spec_.asked.layout;
  std::vector<int> longest;  // by prompt, where it is not the same for all
  // A tool that writes a file takes what it is given.
  if (layout.max_string < 0 && !plan_.calls.empty()) layout.max_string = 0;
  if (layout.max_string < 0) {
    for (const PromptSpec& prompt : spec_.prompts) longest.push_back(LongestString(prompt));
    layout.max_string = *std::ranges::max_element(longest);
    if (!spec_.one_by_one) longest.clear();
  }
  string_bound_ = layout.max_string;
  if (spec_.prompts[0].kind == PromptSpec::Kind::kChat && layout.source.empty()) {
    layout.bind_source = true;  // fields are copied from the messages
  }
  if (!layout.source.empty())
    layout.source = CopiedText(server_->model->tokenizer(), layout.source).text();
  if (std::optional<ApiError> error = PlanThinking(thinking)) return error;
  if (spec_.prompts[0].kind == PromptSpec::Kind::kChat && spec_.prompts[0].prefer_text &&
      !PicksTool() && !MayPreferMessages())
    out_.ignored.emplace_back("/prefer_text");
  names_specials_ = plan_.grammar.kind == ConstraintSpec::Kind::kStructuralTag &&
                    (!plan_.calls.empty() || plan_.marked());
  if (plan_.grammar.kind == ConstraintSpec::Kind::kNone) return std::nullopt;
  out_.has_grammar = true;
  out_.grammar_known = true;
  if (longest.empty()) longest.assign(spec_.prompts.size(), layout.max_string);
  std::map<int, Grammar> by_length;
  const double begin = seconds();
  for (const int length : longest) {
    if (!by_length.contains(length)) {
      layout.max_string = length;
      Result<Grammar> grammar = CompileOne();
      if (!grammar.ok()) return CompileError(grammar.error());
      if (spec_.options.at_budget == AtBudget::kClose && grammar->Start().completion_length() < 0) {
        return FromError(NoValueFits("#"), plan_.grammar.pointer);
      }
      for (const std::string& note : grammar->notes()) {
        if (std::ranges::find(out_.notes, note) == out_.notes.end()) out_.notes.push_back(note);
      }
      by_length.emplace(length, *std::move(grammar));
    }
    grammars_.push_back(by_length.at(length));
  }
  out_.compile_seconds = seconds() - begin;
  server_->metrics.compile.Observe(out_.compile_seconds);
  return std::nullopt;
}

Error Call::OfText(Error error) {
  if (error.code == ErrorCode::kLimit) error.message += "; \"document\": true reads it in chunks";
  return error;
}

Result<Grammar> Call::CompileOne() {
  bool known = false;
  Result<Grammar> grammar =
      server_->grammars->Get(plan_.grammar, spec_.asked.layout, known, NewStop());
  out_.grammar_known = out_.grammar_known && known;
  return grammar;
}

std::shared_ptr<StopFlag> Call::NewStop() {
  const std::lock_guard lock(mutex_);
  stop_ = std::make_shared<StopFlag>();
  if (gone_ || failure_) stop_->Stop();
  return stop_;
}

// In one grammar for everything places mean nothing to a client: the parts are tried one by one.
ApiError Call::CompileError(const Error& error) {
  const auto fails = [&](const ConstraintSpec& part) -> std::optional<ApiError> {
    if (part.kind == ConstraintSpec::Kind::kNone) return std::nullopt;
    bool known = false;
    const Result<Grammar> alone =
        server_->grammars->Get(part, spec_.asked.layout, known, NewStop());
    if (alone.ok()) return std::nullopt;
    return FromError(alone.error(), part.pointer);
  };
  if (std::optional<ApiError> found = fails(spec_.asked.answer)) return *found;
  for (const ToolSpec& tool : spec_.asked.tools) {
    if (std::optional<ApiError> found = fails(tool.input)) return *found;
  }
  Error whole = error;
  whole.message = error.ToString();
  whole.place.clear();
  return FromError(whole, plan_.grammar.pointer);
}

Result<Grammar> Call::BoundFor(const Choice& choice) {
  const Grammar& grammar = grammars_[choice.prompt];
  if (grammar.unbound().empty()) return grammar;
  const PromptSpec& prompt = spec_.prompts[choice.prompt];
  const bool chat = prompt.kind == PromptSpec::Kind::kChat;
  const std::string text = CopiedText(server_->model->tokenizer(),
                                      chat ? SourceOfMessages(prompt.messages) : prompt.text)
                               .text();
  Result<Grammar> bound = grammar.Bind(text);
  if (bound.ok()) return bound;
  const auto placed = [](Error error, const std::string& pointer) {
    if (error.place.starts_with('#')) error.place = pointer + error.place.substr(1);
    return error;
  };
  if (plan_.calls.empty()) return placed(bound.error(), plan_.grammar.pointer);
  // Nothing may be said and no tool called: the first part that the text does not fit.
  std::vector<const ConstraintSpec*> parts = {&spec_.asked.answer};
  for (const ToolSpec& tool : spec_.asked.tools) parts.push_back(&tool.input);
  for (const ConstraintSpec* const part : parts) {
    if (part->kind == ConstraintSpec::Kind::kNone) continue;
    bool known = false;
    const Result<Grammar> alone =
        server_->grammars->Get(*part, spec_.asked.layout, known, NewStop());
    if (!alone.ok() || alone->unbound().empty()) continue;
    if (const Result<Grammar> made = alone->Bind(text); !made.ok())
      return placed(made.error(), part->pointer);
  }
  return placed(bound.error(), plan_.grammar.pointer);
}

bool Call::MayPreferMessages() const {
  return spec_.prompts[0].kind == PromptSpec::Kind::kChat && !spec_.together.any() &&
         plan_.calls.empty() && !plan_.marked() &&
         plan_.grammar.kind == ConstraintSpec::Kind::kJsonSchema;
}

std::shared_ptr<const Constraint> Call::ConstraintOf(const Choice& choice,
                                                     const Grammar& bound) const {
  std::shared_ptr<const Constraint> constraint = MakeConstraint(bound);
  const PromptSpec& prompt = spec_.prompts[choice.prompt];
  if (copied_.grammar) return WithRequestPreferred(std::move(constraint));
  if (prompt.prefer_text && MayPreferMessages()) {
    ExtractInput input = {.schema = plan_.grammar.text, .text = SourceOfMessages(prompt.messages)};
    input.prefer_text = prompt.prefer_text;
    return WithTextPreference(std::move(constraint), grammars_[choice.prompt], std::move(input),
                              server_->model->loaded());
  }
  if (prompt.kind != PromptSpec::Kind::kExtract || spec_.together.any()) return constraint;
  return WithTextPreference(std::move(constraint), grammars_[choice.prompt],
                            {.schema = prompt.schema,
                             .text = prompt.text,
                             .examples = prompt.examples,
                             .prefer_text = prompt.prefer_text},
                            server_->model->loaded());
}

void Call::ShowPrompts(std::span<const std::unique_ptr<Choice>> choices) {
  for (const auto& choice : choices) {
    out_.prompt_tokens += static_cast<int>(choice->prompt_tokens.size());
    out_.choices.emplace_back();
    out_.choices.back().content = server_->model->tokenizer().Decode(choice->prompt_tokens, true);
  }
  exchange_->Post([self = shared_from_this()] { self->WholeOrRefuse(); });
}

// Special tokens that the parser reads have their names for a text. Code is cut where it ends.
std::string_view Call::TextOf(Choice& choice, TokenId token, std::string_view bytes) {
  const Vocabulary& vocabulary = *server_->model->vocabulary();
  if (bytes.empty() && vocabulary.is_special(token)) {
    const std::string_view name = vocabulary.bytes(token);
    if (names_specials_ || plan_.IsMark(name)) bytes = name;
  }
  if (choice.code == nullptr) return bytes;
  choice.code_goes_on = choice.code->Add(bytes);
  return choice.code->added();
}

}  // namespace pawl::server
