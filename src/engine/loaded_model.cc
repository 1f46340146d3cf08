// Loading a model, in the order in which mistakes show soonest: the tokenizer, the prompts, the
// weights. The command, the server, the C++ and Python engine and code completion load models here
// and nowhere else, so that each check is made for all of them.
#include "src/engine/loaded_model.h"

#include <algorithm>
#include <limits>

#include "grammar/tags/formats/chat_format.h"
#include "src/base/file.h"
#include "src/base/os/calendar.h"
#include "src/base/os/processors.h"
#include "src/base/utf8.h"
#include "src/engine/model_files.h"
#include "src/engine/schema_view.h"
#include "src/model/adapted_model.h"
#include "src/model/draft_head.h"
#include "src/text/chat/chat_template.h"

namespace pawl {

Encoder ModelText::encoder() const {
  if (tokenizer == nullptr) return {};
  return [tokenizer = tokenizer](std::string_view piece) { return tokenizer->Encode(piece); };
}

Result<ModelText> LoadModelText(const std::string& path) {
  Result<std::shared_ptr<const Tokenizer>> tokenizer = LoadTokenizer(path);
  if (!tokenizer.ok()) return tokenizer.error();
  Result<std::shared_ptr<const Vocabulary>> vocabulary = (*tokenizer)->MakeVocabulary();
  if (!vocabulary.ok()) return InFile(path, vocabulary.error());
  return ModelText{*std::move(tokenizer), *std::move(vocabulary)};
}

std::optional<std::tm> LocalTime() { return os::LocalTimeAt(std::time(nullptr)); }

Status CheckExtractText(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return Error{ErrorCode::kInvalid, text.empty() ? "is empty" : "holds only white space", ""};
  }
  return CheckUtf8(text);
}

int64_t MaxStringFor(std::string_view text) {
  constexpr int64_t kLeast = 256;
  const auto characters = std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
  return std::max<int64_t>(kLeast, characters);
}

JsonSchemaOptions ExtractSchemaOptions(std::string_view text) {
  JsonSchemaOptions options;
  options.whitespace = JsonSchemaOptions::Whitespace::kCompact;
  options.additional_properties = false;
  options.keys = JsonSchemaOptions::Keys::kAll;
  options.open_if_unsatisfiable = true;
  options.max_string = MaxStringFor(text);
  options.bind_source = true;
  return options;
}

JsonSchemaOptions LoadedModel::ExtractOptions(std::string_view text) const {
  JsonSchemaOptions options = ExtractSchemaOptions(text);
  choices_.Apply(options);
  return options;
}

std::unique_ptr<LoadedModel> LoadedModel::Of(ModelText text, std::unique_ptr<Model> model) {
  std::unique_ptr<LoadedModel> out(new LoadedModel(""));
  out->SetText(std::move(text));
  out->model_ = std::move(model);
  out->context_length_ = out->info().context_length;
  return out;
}

void LoadedModel::SetText(ModelText text) {
  text_ = std::move(text);
  if (text_.tokenizer != nullptr) fim_ = FindFimTemplate(tokenizer());
}

// The vocabulary, where tokens that end a turn in the format of the chat template, and that the
// model's files do not list as such, end an output as well.
static Result<std::shared_ptr<const Vocabulary>> WithStops(
    const Tokenizer& tokenizer, std::shared_ptr<const Vocabulary> vocabulary,
    std::string_view chat_template) {
  const ChatFormat* format = FormatOf(chat_template);
  if (format == nullptr) return vocabulary;
  VocabularyInit init;
  for (const std::string_view stop : TextsOf(format->stops)) {
    const TokenId id = tokenizer.IdOf(stop);
    const bool known = id >= 0 && id < vocabulary->size() && vocabulary->is_special(id);
    if (known && !vocabulary->is_end(id)) init.end_tokens.push_back(id);
  }
  if (init.end_tokens.empty()) return vocabulary;
  const std::span<const TokenId> ends = vocabulary->end_tokens();
  init.end_tokens.insert(init.end_tokens.begin(), ends.begin(), ends.end());
  for (TokenId id = 0; id < vocabulary->size(); ++id) {
    init.tokens.emplace_back(vocabulary->bytes(id));
    if (vocabulary->is_special(id)) init.special.push_back(id);
  }
  return Vocabulary::Create(std::move(init));
}

Result<std::unique_ptr<LoadedModel>> LoadedModel::Open(const std::string& path,
                                                       const ChatOverride& chat,
                                                       const std::string& settings) {
  if (Status status = CheckModelPath(path); !status.ok()) return status.error();
  std::unique_ptr<LoadedModel> out(new LoadedModel(path));
  Result<ModelText> text = LoadModelText(path);
  if (!text.ok()) return text.error();
  out->SetText(*std::move(text));
  const Tokenizer& tokenizer = out->tokenizer();
  Result<PromptTemplate> plain = LoadPromptTemplate(path, tokenizer);
  if (!plain.ok()) return plain.error();
  out->plain_ = *std::move(plain);
  out->choices_.own = out->plain_.settings;
  if (Status status = LoadMeasured(settings, path, out->choices_); !status.ok()) {
    return status.error();
  }
  if (chat.text.empty()) {
    out->chat_ = LoadModelChat(path, "", tokenizer);
  } else {
    out->chat_ = MakeChatFor(path, tokenizer, chat.text, chat.place);
    // Given for this one purpose, so what is wrong with it is told now.
    if (!out->chat_.ok()) return out->chat_.error();
  }
  out->extract_ = ExtractPrompt::Make(out->plain_, out->chat_);
  if (chat.think_open.empty() != chat.think_close.empty()) {
    return Error{ErrorCode::kInvalid, "must be given with the other mark",
                 chat.think_open.empty() ? "reasoning_open" : "reasoning_close"};
  }
  out->think_open_ = chat.think_open;
  out->think_close_ = chat.think_close;
  if (out->chat_.ok()) out->traits_ = out->TraitsWith(*out->chat_);
  if (out->chat_.ok()) {
    Result<std::shared_ptr<const Vocabulary>> vocabulary =
        WithStops(tokenizer, out->text_.vocabulary, out->chat_->chat.literals());
    if (!vocabulary.ok()) return InFile(path, vocabulary.error());
    out->text_.vocabulary = *std::move(vocabulary);
  }
  // What is wrong with the description is told with the weights.
  const Result<int> context = ContextLengthOf(path);
  out->context_length_ = context.ok() ? *context : std::numeric_limits<int>::max();
  return out;
}

ModelTraits LoadedModel::TraitsWith(const ChatSource& chat) const {
  ModelTraits traits = TraitsOf(chat.chat.literals());
  if (!think_close_.empty()) {
    traits.think_open = think_open_;
    traits.think_close = think_close_;
  }
  return traits;
}

Status LoadedModel::LoadWeights(const ModelOptions& options,
                                const std::function<void(const std::string&)>& note) {
  Result<std::unique_ptr<Model>> model = LoadModel(path_, options, note);
  if (!model.ok()) return model.error();
  if (Status status = CheckBos(plain_, tokenizer(), (*model)->info().vocabulary_size, path_);
      !status.ok()) {
    return status;
  }
  model_ = *std::move(model);
  MakeViews();
  context_length_ = info().context_length;
  threads_ = options.threads;
  return {};
}

int LoadedModel::mask_threads() const {
  if (!model_->samples()) return std::max(1, info().threads);
  return threads_ > 0 ? threads_ : os::AvailableProcessors();
}

Status LoadedModel::AttachHeads(const DraftOptions& options, std::vector<size_t>& sources) {
  const auto has = [&](std::string_view name) {
    return std::ranges::find(sources, IndexOfDraftSource(name)) != sources.end();
  };
  const auto attached = [&](std::string_view head) {
    return std::ranges::find(heads_, head) != heads_.end();
  };
  for (const std::string& path : DraftModelsOf(options)) {
    if (!has("model") || !IsDraftHead(path) || attached(path)) continue;
    if (Status status = AttachDraftHead(model_, path); !status.ok()) return status;
    MakeViews();
    heads_.push_back(path);
  }
  const bool chosen = ChoosesDraftSources(options);
  if (!has(kOwnHead) && !chosen) return {};
  if (!attached(kOwnHead)) {
    if (chosen && !HasOwnHead(*model_)) return {};
    Status status = AttachOwnHead(model_);
    if (!status.ok()) {
      if (chosen) return {};
      Error error = status.error();
      if (error.place.empty()) error.place = "draft";
      return error;
    }
    MakeViews();
    heads_.emplace_back(kOwnHead);
  }
  if (chosen) sources.push_back(IndexOfDraftSource(kOwnHead));
  return {};
}

void LoadedModel::MakeViews() {
  adapted_.clear();
  for (size_t i = 0; i < info().adapters.size(); ++i) {
    adapted_.push_back(std::make_unique<AdaptedModel>(*model_, static_cast<int>(i) + 1));
  }
}

Result<int> LoadedModel::AdapterOf(std::string_view name) const {
  if (name.empty()) return own_adapter_;
  std::string names;
  const auto& adapters = info().adapters;
  for (size_t i = 0; i < adapters.size(); ++i) {
    if (adapters[i].name == name) return static_cast<int>(i) + 1;
    if (i < 20) names += (names.empty() ? "" : ", ") + adapters[i].name;
  }
  return Error{ErrorCode::kInvalid,
               "is no adapter of this model: " +
                   (names.empty() ? "it was loaded without any" : "it has " + names),
               "lora"};
}

Result<std::shared_ptr<Drafter>> LoadedModel::MakeDrafter(const DraftOptions& options) {
  Result<std::vector<size_t>> sources = ParseDraftSources(options);
  if (!sources.ok()) return sources.error();
  if (const auto rules = ParseDraftRules(options); !rules.ok()) return rules.error();
  if (sources->empty()) return std::shared_ptr<Drafter>();
  // Masks are filled in any order. A choice that is left to the engine is then none.
  if (model_->filling()) {
    if (!NamesDrafts(options)) return std::shared_ptr<Drafter>();
    return Error{ErrorCode::kUnsupported, "means nothing for a model that fills masks", "draft"};
  }
  if (Status status = AttachHeads(options, *sources); !status.ok()) return status.error();
  DraftSetting setting;
  setting.vocabulary = vocabulary();
  setting.encode = encoder();
  setting.options = options;
  setting.vocabulary_size = info().vocabulary_size;
  setting.layers = info().layers;
  setting.heads = heads_;
  setting.tokenizer_of = LoadTokenizer;
  Result<std::unique_ptr<Drafter>> drafter = Drafter::Make(std::move(setting), *sources);
  if (!drafter.ok()) return drafter.error();
  return std::shared_ptr<Drafter>(*std::move(drafter));
}

Result<std::vector<TokenId>> LoadedModel::EncodePlain(std::string_view text, bool special) const {
  return EncodeText(tokenizer(), plain_, text, special, context_length_);
}

Result<std::vector<TokenId>> LoadedModel::EncodeExtract(const ExtractInput& input,
                                                        const std::optional<std::tm>& now,
                                                        const Thinking& thinking,
                                                        const Grammar* grammar) const {
  if (!extract_.ok()) return extract_.error();
  ExtractInput written = input;
  choices_.Apply(written);
  if (grammar != nullptr) {
    if (Status status = WriteExamples(*grammar, input.schema, written.examples); !status.ok()) {
      return status.error();
    }
  }
  return extract_->Encode(tokenizer(), written, context_length_, now, thinking);
}

Result<std::vector<TokenId>> LoadedModel::EncodeInfill(
    std::string_view prefix, std::string_view suffix,
    const std::vector<std::pair<std::string, std::string>>& files) const {
  if (fim_ == nullptr) return EncodePlain(prefix, false);
  return FimTokens(*fim_, tokenizer(),
                   {.prefix = prefix,
                    .suffix = suffix,
                    .files = files,
                    .bos = plain_.bos,
                    .max_tokens = context_length_});
}

Result<MarkedText> LoadedModel::RenderChat(ChatInput input) const {
  if (!chat_.ok()) return chat_.error();
  input.special_tokens = chat_->special_tokens;
  return chat_->chat.Render(input);
}

Result<std::vector<TokenId>> LoadedModel::EncodeChat(const MarkedText& prompt, bool trust) const {
  return EncodeChatWithin(tokenizer(), chat_->chat, prompt, context_length_, trust);
}

}  // namespace pawl
