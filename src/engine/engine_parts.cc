// Each door hands its requests in here, so that each check is made for all of them: a request is
// laid out and encoded on the thread of its caller, who is told at once what is wrong with it.
#include "src/engine/engine_parts.h"

#include <algorithm>
#include <utility>

#include "grammar/grammar_access.h"
#include "src/base/file.h"
#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/engine/copied_fields.h"
#include "src/engine/copied_text.h"
#include "src/engine/message_source.h"
#include "src/engine/model_files.h"
#include "src/engine/model_paths.h"
#include "src/text/chat/chat_template.h"

namespace pawl {
namespace {

constexpr int kMostBatch = 1024;

Result<ChatInput> InputOf(const EngineRequest& request) {
  ChatInput input;
  if (!request.chat_json.empty()) {
    Result<json::Value> value = json::Parse(request.chat_json);
    if (!value.ok()) return InFile("chat_json", value.error());
    Result<ChatInput> read = ChatInputFromJson(*value);
    if (!read.ok()) return InFile("chat_json", read.error());
    input = *std::move(read);
  } else {
    input.messages.type = json::Type::kArray;
    for (const ChatMessage& message : request.messages) {
      const std::string place = "messages: #/" + std::to_string(input.messages.items.size());
      if (Status status = CheckUtf8(message.role); !status.ok()) {
        return InFile(place + "/role", status.error());
      }
      if (Status status = CheckUtf8(message.content); !status.ok()) {
        return InFile(place + "/content", status.error());
      }
      input.messages.items.push_back(MakeChatMessage(message.role, message.content));
    }
  }
  if (Status status = JoinTextParts(input); !status.ok()) {
    return InFile(request.chat_json.empty() ? "messages" : "chat_json", status.error());
  }
  input.now = request.now;
  TellTemplate(ThinkingFor(request.thinking, true), input.arguments);
  return input;
}

Result<std::vector<TokenId>> ChatTokens(const EngineRequest& request, const LoadedModel& model) {
  if (!model.chat().ok()) return model.chat().error();
  Result<ChatInput> input = InputOf(request);
  if (!input.ok()) return input.error();
  const Result<MarkedText> prompt = model.RenderChat(*std::move(input));
  if (!prompt.ok()) {
    const bool in_input = prompt.error().place.starts_with("#");
    const char* given = request.chat_json.empty() ? "messages" : "chat_json";
    return InFile(in_input ? given : model.chat()->place, prompt.error());
  }
  return model.EncodeChat(*prompt);
}

}  // namespace

Result<EngineParts> LoadEngineParts(const std::string& path, const EngineOptions& options) {
  if (options.max_batch < 1 || options.max_batch > kMostBatch) {
    return Error{ErrorCode::kInvalid,
                 "must be from 1 to " + std::to_string(kMostBatch) + ", not " +
                     std::to_string(options.max_batch),
                 "max_batch"};
  }
  if (options.model.threads < 0) {
    return Error{ErrorCode::kInvalid,
                 "must be at least 0, not " + std::to_string(options.model.threads), "threads"};
  }
  if (const auto sources = ParseDraftSources(options.drafts); !sources.ok()) {
    return sources.error();
  }
  if (const auto rules = ParseDraftRules(options.drafts); !rules.ok()) return rules.error();
  const Result<std::string> found = ResolveModel(path, options.paths);
  if (!found.ok()) return found.error();
  EngineParts parts;
  Result<std::unique_ptr<LoadedModel>> loaded =
      LoadedModel::Open(*found,
                        {.text = options.chat_template,
                         .think_open = options.reasoning_open,
                         .think_close = options.reasoning_close},
                        options.paths.settings);
  if (!loaded.ok()) return loaded.error();
  parts.model = *std::move(loaded);
  if (Status status = parts.model->LoadWeights(options.model); !status.ok()) {
    return status.error();
  }
  DraftOptions drafts = options.drafts;
  drafts.model.clear();
  drafts.more_models.clear();
  for (const std::string& model : DraftModelsOf(options.drafts)) {
    Result<std::string> small = ResolveModel(model, options.paths);
    if (!small.ok()) return small.error();
    drafts.more_models.push_back(*std::move(small));
  }
  Result<std::shared_ptr<Drafter>> drafter = parts.model->MakeDrafter(drafts);
  if (!drafter.ok()) return drafter.error();
  parts.drafter = *std::move(drafter);
  return parts;
}

BatchOptions BatchOptionsFor(const LoadedModel& model, int max_batch,
                             std::shared_ptr<Drafter> drafter) {
  BatchOptions batch;
  batch.max_batch = max_batch;
  batch.max_rows = std::max(batch.max_rows, 2 * max_batch);
  batch.threads = max_batch > 1 ? model.mask_threads() : 1;
  batch.look_threads = std::max(2, batch.threads);
  batch.drafter = std::move(drafter);
  return batch;
}

EngineInfo InfoOf(const LoadedModel& loaded) {
  const ModelInfo& model = loaded.info();
  EngineInfo info;
  info.architecture = model.architecture;
  info.weights = model.dtype;
  info.kernels = model.kernels;
  info.parameters = model.parameters;
  info.weight_bytes = model.weight_bytes;
  info.context_length = model.context_length;
  info.threads = model.threads;
  info.has_chat_template = loaded.chat().ok();
  for (const ModelInfo::Adapter& adapter : model.adapters) info.lora.push_back(adapter.name);
  return info;
}

void UseAdapter(const LoadedModel& model, int adapter, BatchRequest& request) {
  if (adapter == 0) return;
  request.model = &model.model(adapter);
  // An owner that is the same in every run, as histories have files.
  uint64_t owner = (request.options.draft_owner ^ model.AdapterKey(adapter)) * 0x9e3779b97f4a7c15u;
  owner ^= owner >> 32;
  request.options.draft_owner = owner == 0 ? 1 : owner;
}

Result<std::vector<TokenId>> PromptTokensOf(const EngineRequest& request,
                                            const LoadedModel& model) {
  const int given = int{!request.prompt.empty()} + int{!request.messages.empty()} +
                    int{!request.chat_json.empty()} + int{!request.tokens.empty()} +
                    int{request.extract.has_value()};
  if (given > 1) {
    return Error{ErrorCode::kInvalid,
                 "more than one of prompt, messages, chat_json, tokens and extract is given",
                 "prompt"};
  }
  const auto placed = [](Result<std::vector<TokenId>> tokens, const char* place) {
    if (tokens.ok() || !tokens.error().place.empty()) return tokens;
    return Result<std::vector<TokenId>>(InFile(place, tokens.error()));
  };
  if (request.extract) {
    if (Status status = CheckExtractText(request.extract->text); !status.ok()) {
      return InFile("text", status.error());
    }
    const Grammar* const grammar = request.grammar ? &*request.grammar : nullptr;
    return placed(model.EncodeExtract(*request.extract, request.now,
                                      ThinkingFor(request.thinking, false), grammar),
                  "text");
  }
  if (!request.tokens.empty()) return request.tokens;
  if (!request.messages.empty() || !request.chat_json.empty()) {
    return placed(ChatTokens(request, model), "prompt");
  }
  if (Status status = CheckUtf8(request.prompt); !status.ok()) {
    return InFile("prompt", status.error());
  }
  return placed(model.EncodePlain(request.prompt, request.parse_special), "prompt");
}

namespace {

std::string TextWithCuts(const ExtractInput& input) {
  return WithCuts(input.text, {input.cut_begin, input.cut_end});
}

// The grammar of the request, with the text of the request where its fields are copied from one
// that has not come yet. REQUIRES: it has a grammar.
Result<Grammar> BoundGrammar(const EngineRequest& request, const LoadedModel& model) {
  const Grammar& grammar = *request.grammar;
  if (grammar.unbound().empty()) return grammar;
  const auto bind = [&](std::string_view text) {
    return grammar.Bind(CopiedText(model.tokenizer(), text).text());
  };
  if (request.extract) return bind(TextWithCuts(*request.extract));
  json::Value messages;
  for (const ChatMessage& message : request.messages) {
    messages.items.push_back(MakeChatMessage(message.role, message.content));
  }
  if (!request.chat_json.empty()) {
    Result<json::Value> chat = json::Parse(request.chat_json);
    if (!chat.ok()) return InFile("chat_json", chat.error());
    const json::Value* const inside = chat->Find("messages");
    messages = inside != nullptr ? *inside : *std::move(chat);
  } else if (request.messages.empty()) {
    return Error{ErrorCode::kInvalid, "needs the text that is copied from (source)",
                 grammar.unbound()};
  }
  return bind(SourceOfMessages(messages));
}

}  // namespace

Status CheckWrites(const LoadedModel& model) {
  if (!model.info().classifies) return {};
  return Error{ErrorCode::kUnsupported, "the model has a head for labels, and none that writes",
               ""};
}

Result<std::shared_ptr<const Constraint>> ConstraintOf(const EngineRequest& request,
                                                       const LoadedModel& model) {
  if (Status status = CheckWrites(model); !status.ok()) return status.error();
  if (!request.grammar) return request.constraint;
  if (&request.grammar->vocabulary() != model.vocabulary().get()) {
    return Error{ErrorCode::kInvalid,
                 "was compiled for another vocabulary than that of this engine", "grammar"};
  }
  const Result<Grammar> bound = BoundGrammar(request, model);
  if (!bound.ok()) return bound.error();
  std::shared_ptr<const Constraint> grammar = MakeConstraint(*bound);
  if (request.constraint == nullptr) return grammar;
  if (GrammarAccess::RecordKeysOf(*request.grammar) != nullptr) {
    return Error{ErrorCode::kUnsupported, "must be \"required\" next to a constraint of your own",
                 "keys"};
  }
  return Both(std::move(grammar), request.constraint, model.vocabulary());
}

static Result<std::shared_ptr<const Constraint>> SearchConstraintOf(const EngineRequest& request,
                                                                    const LoadedModel& model) {
  using Mode = Thinking::Mode;
  if (request.free_first != 0) {
    return Error{ErrorCode::kUnsupported, "is for outputs that are drawn alone", "free_first"};
  }
  if (request.thinking.mode == Mode::kAuto || request.thinking.mode == Mode::kTokens) {
    return Error{ErrorCode::kUnsupported, "samplers draw answers without thoughts", "thinking"};
  }
  return ConstraintOf(request, model);
}

Result<std::shared_ptr<const Constraint>> SamplerConstraintOf(const EngineRequest& request,
                                                              const LoadedModel& model) {
  if (request.constraint != nullptr && !request.constraint->exact()) {
    return Error{ErrorCode::kUnsupported, "is not exact, which samplers need", "constraint"};
  }
  return SearchConstraintOf(request, model);
}

Result<SearchInput> SearchInputOf(const EngineRequest& request, const LoadedModel& model) {
  Result<std::vector<TokenId>> prompt = PromptTokensOf(request, model);
  if (!prompt.ok()) return prompt.error();
  Result<std::shared_ptr<const Constraint>> constraint = SearchConstraintOf(request, model);
  if (!constraint.ok()) return constraint.error();
  const Result<int> adapter = model.AdapterOf(request.lora);
  if (!adapter.ok()) return adapter.error();
  SearchInput input{model.model(*adapter), *model.vocabulary(), model.encoder(), *std::move(prompt),
                    *std::move(constraint)};
  input.cuts = request.options.at_budget == AtBudget::kCut;
  return input;
}

// nullopt: the model has none, or wants the suffix first, so that it cannot write one.
static std::optional<InfillMarks> InfillMarksOf(const LoadedModel& model) {
  const FimTemplate* const form = model.fim();
  if (form == nullptr || form->suffix_first || *form->middle == 0) return std::nullopt;
  const Tokenizer& tokenizer = model.tokenizer();
  return InfillMarks{.prefix = tokenizer.IdOf(form->prefix),
                     .suffix = tokenizer.IdOf(form->suffix),
                     .middle = tokenizer.IdOf(form->middle),
                     .begin = model.plain().bos ? tokenizer.bos() : kNoToken};
}

namespace {

// The chat with another text as the last message of the user; "": it has none.
Result<std::string> WithLastUserText(const std::string& chat_json, const std::string& text) {
  Result<json::Value> chat = json::Parse(chat_json);
  if (!chat.ok()) return InFile("chat_json", chat.error());
  std::vector<json::Value>* messages = &chat->items;
  for (auto& [name, member] : chat->members) {
    if (name == "messages") messages = &member.items;
  }
  for (auto message = messages->rbegin(); message != messages->rend(); ++message) {
    const json::Value* const role = message->Find("role");
    if (role == nullptr || role->text != "user") continue;
    for (auto& [name, member] : message->members) {
      if (name == "content") member = json::Value{json::Type::kString, text, {}, {}};
    }
    return json::Dump(*chat);
  }
  return std::string();
}

}  // namespace

Result<SearchInput> SearchInputOf(const EngineRequest& request, const SearchOptions& options,
                                  const LoadedModel& model) {
  Result<SearchInput> input = SearchInputOf(request, model);
  if (input.ok() && options.strategy == "self-infill") {
    if (!request.messages.empty() || !request.chat_json.empty() || request.extract) {
      return Error{ErrorCode::kUnsupported, "self-infill goes on with a prompt, not with a chat",
                   "strategy"};
    }
    if (request.constraint == nullptr && request.grammar) {
      Result<Grammar> bound = BoundGrammar(request, model);
      if (!bound.ok()) return bound.error();
      input->grammar = *std::move(bound);
    }
    input->infill = InfillMarksOf(model);
  }
  if (!input.ok() || !options.contrast_prompt) return input;
  const auto wrong = [](const char* message) {
    return Error{ErrorCode::kInvalid, message, "contrast_prompt"};
  };
  if (options.contrast_prompt->empty()) return wrong("is empty");
  EngineRequest other;
  other.parse_special = request.parse_special;
  other.thinking = request.thinking;
  other.now = request.now;
  other.messages = request.messages;
  if (!request.chat_json.empty()) {
    Result<std::string> chat = WithLastUserText(request.chat_json, *options.contrast_prompt);
    if (!chat.ok()) return chat.error();
    if (chat->empty()) return wrong("needs a message of the user");
    other.chat_json = *std::move(chat);
  } else if (request.extract) {
    other.extract = request.extract;
    other.extract->text = *options.contrast_prompt;
  } else if (other.messages.empty()) {
    other.prompt = *options.contrast_prompt;
  } else {
    const auto last = std::find_if(other.messages.rbegin(), other.messages.rend(),
                                   [](const ChatMessage& one) { return one.role == "user"; });
    if (last == other.messages.rend()) return wrong("needs a message of the user");
    last->content = *options.contrast_prompt;
  }
  Result<std::vector<TokenId>> tokens = PromptTokensOf(other, model);
  if (!tokens.ok()) return tokens.error();
  input->contrast = *std::move(tokens);
  return input;
}

Result<SearchInput> ClassifyInputOf(const EngineRequest& request, const LoadedModel& model) {
  if (request.grammar || request.constraint != nullptr) {
    return Error{ErrorCode::kInvalid, "choices are compared without a constraint",
                 request.grammar ? "grammar" : "constraint"};
  }
  return SearchInputOf(request, model);
}

namespace {

constexpr const char* kThinkingChangesNothing =
    "thinking changes nothing: the model's chat template marks no thoughts, or closes them";
constexpr const char* kViewChangesNothing =
    "schema_view changes nothing: the prompt of the model's pawl.json shows the schema as it is, "
    "or "
    "not at all";

// What the request asks of thoughts, where the output may have some.
Result<std::optional<ThoughtPlan>> ThoughtsOf(const EngineRequest& request,
                                              const LoadedModel& model,
                                              std::span<const TokenId> prompt) {
  const bool chat = !request.messages.empty() || !request.chat_json.empty();
  if (!chat && !request.extract) {
    if (request.thinking.mode == Thinking::Mode::kDefault) return std::optional<ThoughtPlan>();
    return Error{ErrorCode::kInvalid, "needs messages, chat_json or extract", "thinking"};
  }
  const ModelTraits& traits = model.traits();
  return std::optional(PlanThoughts(traits, ThinkingStartOf(model.tokenizer(), prompt, traits),
                                    ThinkingFor(request.thinking, chat)));
}

}  // namespace

void TellApart(ThoughtText* text, const std::vector<std::string>& notes,
               Result<Generation>& output) {
  if (!output.ok()) return;
  if (text != nullptr) text->Into(*output);
  output->notes.insert(output->notes.end(), notes.begin(), notes.end());
}

namespace {

constexpr const char* kPrefersNothing =
    "prefer_text changes nothing: values are copied from the text or another source already, or "
    "the text has none for a field that needs one";

// What is to say of a request of extraction before its output.
void NoteExtraction(const EngineRequest& request, const LoadedModel& model,
                    std::vector<std::string>& notes) {
  if (!request.extract) return;
  if (request.extract->view != SchemaView::kDefault && !model.extract()->shows_views()) {
    notes.emplace_back(kViewChangesNothing);
  }
  if (!request.grammar) return;
  const std::vector<std::string>& of_grammar = request.grammar->notes();
  notes.insert(notes.end(), of_grammar.begin(), of_grammar.end());
}

}  // namespace

Result<LaidOut> LayOut(const EngineRequest& request, const LoadedModel& model,
                       const ThoughtPlan* thoughts) {
  const Result<int> adapter = model.AdapterOf(request.lora);
  if (!adapter.ok()) return adapter.error();
  Result<std::vector<TokenId>> prompt = PromptTokensOf(request, model);
  if (!prompt.ok()) return prompt.error();
  Result<std::shared_ptr<const Constraint>> constraint = ConstraintOf(request, model);
  if (!constraint.ok()) return constraint.error();
  bool prefers_nothing = false;
  if (request.extract && request.grammar) {
    if (Status status = CheckPreferText(*request.extract); !status.ok()) return status.error();
    const std::shared_ptr<const Constraint> plain = *constraint;
    constraint = WithTextPreference(plain, *request.grammar, *request.extract, model);
    prefers_nothing = request.extract->prefer_text.value_or(0) > 0 && *constraint == plain;
  }
  Result<std::optional<ThoughtPlan>> plan =
      thoughts != nullptr ? std::optional(*thoughts) : ThoughtsOf(request, model, *prompt);
  if (!plan.ok()) return plan.error();
  if (request.free_first != 0) {
    Result<ThoughtPlan> free =
        WithFreeText(plan->value_or(ThoughtPlan()), request.free_first, *constraint != nullptr);
    if (!free.ok()) return free.error();
    *plan = *std::move(free);
  }
  LaidOut laid;
  NoteExtraction(request, model, laid.notes);
  if (prefers_nothing) laid.notes.emplace_back(kPrefersNothing);
  const auto note = [&laid](std::string text) {
    if (!text.empty()) laid.notes.push_back(std::move(text));
  };
  if (plan->has_value()) {
    const ThoughtPlan& found = **plan;
    const bool constrained = *constraint != nullptr;
    const int room = model.context_length() - static_cast<int>(prompt->size());
    std::string no_thoughts;
    constraint =
        WithThoughts(model, found, *std::move(constraint),
                     std::min(request.options.max_tokens, room), /*has_marks=*/false, &no_thoughts);
    if (!constraint.ok()) return constraint.error();
    note(std::move(no_thoughts));
    if (thoughts == nullptr) note(UnclosedNote(model.tokenizer(), *prompt, model.traits()));
    if (found.apart()) {
      laid.text = std::make_shared<ThoughtText>(found, model.vocabulary(), constrained);
    }
    const bool asked = request.thinking.mode != Thinking::Mode::kDefault;
    if (asked && found.changes_nothing) note(kThinkingChangesNothing);
  }
  if (request.options.details) {
    laid.details = std::make_shared<DetailsRequest>(
        DetailsRequest{.prompt = *prompt, .group = request.group, .adapter = *adapter});
    if (request.grammar) {
      Result<Grammar> bound = BoundGrammar(request, model);
      if (!bound.ok()) return bound.error();
      laid.details->grammar = *std::move(bound);
    }
    if (request.extract) {
      laid.details->schema = request.extract->schema;
      laid.details->text = TextWithCuts(*request.extract);
    }
  }
  BatchRequest& out = laid.request;
  out.prompt = *std::move(prompt);
  out.constraint = *std::move(constraint);
  out.options = request.options;
  if (!out.options.close_repetition) out.options.close_repetition = request.extract.has_value();
  out.group = request.group;
  UseAdapter(model, *adapter, out);
  return laid;
}

Result<Generation> ForCaller(Result<Generation> output) {
  if (output.ok() || output.error().place != "constraint") return output;
  Error error = output.error();
  error.place = "grammar";
  return error;
}

void CutAtStop(const StopStrings& stops, size_t text_size, Generation& output) {
  if (stops.found().empty()) return;
  output.text.resize(std::min(output.text.size(), text_size));
  output.stop = StopReason::kStopText;
  output.stop_text = stops.found();
}

// ---- Tries ----

bool CachedTries::Key::operator==(const Key& other) const {
  const bool same_grammar = grammar.has_value() == other.grammar.has_value() &&
                            (!grammar || grammar->Start() == other.grammar->Start());
  return same_grammar && constraint == other.constraint && prompt == other.prompt &&
         temperature == other.temperature && max_tokens == other.max_tokens && lora == other.lora &&
         adaptive == other.adaptive && checks == other.checks;
}

CachedTries::Key CachedTries::KeyOf(std::span<const TokenId> prompt, const EngineRequest& request,
                                    const SamplerOptions& options) {
  return {.prompt = {prompt.begin(), prompt.end()},
          .grammar = request.grammar,
          .constraint = request.constraint,
          .temperature = options.temperature,
          .max_tokens = options.max_tokens,
          .lora = request.lora,
          .adaptive = options.sampler == SamplerKind::kArs && !options.fidelity,
          .checks = options.checks};
}

std::list<CachedTries::Known> CachedTries::Take(Key key) {
  std::list<Known> taken;
  {
    const std::lock_guard lock(mutex_);
    const auto known =
        std::ranges::find_if(tries_, [&](const Known& one) { return one.key == key; });
    if (known != tries_.end()) taken.splice(taken.begin(), tries_, known);
  }
  if (taken.empty()) {
    taken.push_back({std::move(key), PrefixTrie({.max_bytes = max_bytes_ / 4})});
  }
  return taken;
}

void CachedTries::PutBack(std::list<Known> trie) noexcept {
  std::list<Known> forgotten;
  const std::lock_guard lock(mutex_);
  // Another sampler may have begun one of the same key meanwhile.
  const auto same =
      std::ranges::find_if(tries_, [&](const Known& one) { return one.key == trie.front().key; });
  if (same != tries_.end()) forgotten.splice(forgotten.end(), tries_, same);
  tries_.splice(tries_.begin(), trie);
  size_t bytes = 0;
  for (auto it = tries_.begin(); it != tries_.end();) {
    const auto next = std::next(it);
    bytes += it->trie.bytes();
    // One that knows nothing is not worth a place.
    if (bytes > max_bytes_ || it->trie.node_count() == 0) {
      forgotten.splice(forgotten.end(), tries_, it);
    }
    it = next;
  }
}

}  // namespace pawl
