// LoadedModel: a model with all that belongs to it, as every door of the engine uses it.
//
//   Result<std::unique_ptr<LoadedModel>> model = LoadedModel::Open("models/tiny-extract");
//   Result<std::vector<TokenId>> prompt = (*model)->EncodePlain("Hello", false);
//   Status status = (*model)->LoadWeights({});
//   const Logits& logits = (*model)->model().Forward(...);
//
// Open reads the tokenizer, the prompts and the description, which takes milliseconds, so that
// callers can tell what is wrong with a prompt or a constraint before the weights are read.
//
// Thread safety: const methods may be called from several threads once LoadWeights has returned.
#ifndef PAWL_SRC_ENGINE_LOADED_MODEL_H_
#define PAWL_SRC_ENGINE_LOADED_MODEL_H_

#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/vocabulary_tables.h"
#include "pawl/engine.h"
#include "pawl/generation.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/decode/draft/drafter.h"
#include "src/engine/extract_prompt.h"
#include "src/engine/extract_settings.h"
#include "src/engine/output_plan.h"
#include "src/engine/prompt.h"
#include "src/engine/thinking.h"
#include "src/model/model.h"
#include "src/text/chat/chat_template.h"
#include "src/text/fim.h"
#include "src/text/tokenizer.h"

namespace pawl {

// A tokenizer and its vocabulary.
struct ModelText {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const Vocabulary> vocabulary;

  // The tokenizer's spelling of a text; keeps the tokenizer alive.
  Encoder encoder() const;
};
// `path`: a tokenizer.json, a folder with one, or a GGUF file. Errors name the file.
Result<ModelText> LoadModelText(const std::string& path);

// The local time now, for templates that ask for the time.
std::optional<std::tm> LocalTime();

// A text to extract a record from: kInvalid with place "" where it is empty, blank or not UTF-8. A
// model would make up a record from nothing; a blank text is more likely an unset variable.
Status CheckExtractText(std::string_view text);
// The most characters of a string in a record of `text` where neither the schema nor the caller
// says: a string longer than the text is a model that repeats itself. At least 256.
int64_t MaxStringFor(std::string_view text);

// A chat template in place of the model's own, and how errors name it. Without a text there is
// none.
struct ChatOverride {
  std::string text;
  std::string place = "chat_template";
  // The marks of thoughts in place of the template's; both or none.
  std::string think_open = {}, think_close = {};
};

class LoadedModel {
 public:
  // Errors: kIo where `path` is neither a model folder nor a GGUF file; those of the tokenizer, of
  // pawl.json and of `chat`. A chat template of the model that cannot be used is
  // told by chat() and extract(), to callers that need it.
  // `settings`: the folder of measured choices; empty: none.
  static Result<std::unique_ptr<LoadedModel>> Open(const std::string& path,
                                                   const ChatOverride& chat = {},
                                                   const std::string& settings = {});
  // A model that is not of files, with its weights. `text` may have no tokenizer: then prompts are
  // tokens, and no run of text is forced.
  static std::unique_ptr<LoadedModel> Of(ModelText text, std::unique_ptr<Model> model);
  // `note` is called with what is unusual about the files but no error. Errors: those of LoadModel;
  // kInvalid where prompts begin with a token that the model does not have (CheckBos).
  Status LoadWeights(const ModelOptions& options,
                     const std::function<void(const std::string&)>& note = {});

  const std::string& path() const { return path_; }
  const ModelText& text() const { return text_; }
  const Tokenizer& tokenizer() const { return *text_.tokenizer; }
  const std::shared_ptr<const Vocabulary>& vocabulary() const { return text_.vocabulary; }
  Encoder encoder() const { return text_.encoder(); }
  // What pawl.json says of prompts, or the tokenizer.
  const PromptTemplate& plain() const { return plain_; }
  // Or why there is none: kIo where the model has none.
  const Result<ChatSource>& chat() const { return chat_; }
  // What the chat template, or the caller, says of outputs.
  const ModelTraits& traits() const { return traits_; }
  // The same of another template in place of the model's.
  ModelTraits TraitsWith(const ChatSource& chat) const;
  ThoughtGrammars& thought_grammars() const { return *thought_grammars_; }
  const Result<ExtractPrompt>& extract() const { return extract_; }
  // What the files say of extraction.
  const ExtractChoices& choices() const { return choices_; }
  // ExtractSchemaOptions with these choices.
  JsonSchemaOptions ExtractOptions(std::string_view text) const;
  // How the tokenizer marks a gap; nullptr: it does not.
  const FimTemplate* fim() const { return fim_; }

  // REQUIRES: LoadWeights.
  Model& model() const { return *model_; }
  // The model as sequences of an adapter see it; 0: the model itself. REQUIRES: a number that
  // AdapterOf has given.
  Model& model(int adapter) const {
    return adapter == 0 ? *model_ : *adapted_[static_cast<size_t>(adapter) - 1];
  }
  // The number of the adapter that a request names; an empty name is that of UseAdapter. Errors:
  // kInvalid with "lora" as place.
  Result<int> AdapterOf(std::string_view name) const;
  // Requests that name no adapter get this one. REQUIRES: 0, or a number of an adapter.
  void UseAdapter(int adapter) { own_adapter_ = adapter; }
  int own_adapter() const { return own_adapter_; }
  // Tells the outputs of models and adapters apart, next to path(); 0: no adapter.
  uint64_t AdapterKey(int adapter) const {
    return adapter == 0 ? 0 : info().adapters[static_cast<size_t>(adapter) - 1].key;
  }
  const ModelInfo& info() const { return model_->info(); }
  // Threads for masks and samplers, the caller counted; at least 1. A model on a device leaves the
  // host's threads to the masks.
  int mask_threads() const;
  // For tests: a model around the one that was loaded.
  void WrapModel(const std::function<std::unique_ptr<Model>(std::unique_ptr<Model>)>& wrap) {
    model_ = wrap(std::move(model_));
    MakeViews();
  }
  // nullptr where `options` asks for no drafts. Draft models that are trained heads, and a block of
  // the model's own, are attached to the model, so references to it are void afterwards. Errors:
  // those of ParseDraftSources, of AttachDraftHead and of sources that read files. REQUIRES:
  // LoadWeights.
  Result<std::shared_ptr<Drafter>> MakeDrafter(const DraftOptions& options);

  // In tokens. The largest int before LoadWeights where the description cannot be read.
  int context_length() const { return context_length_; }
  // Prompts in tokens. Errors of a text that is too long for the context: kLimit, without a place.
  // A prompt of more tokens than the context may pass, and is for the batch engine to refuse.
  Result<std::vector<TokenId>> EncodePlain(std::string_view text, bool special) const;
  // `input.schema`: compact JSON. What `input` leaves open is as choices() say. `thinking`: what
  // templates are told. `grammar`: of the outputs, which writes the records of examples; nullptr:
  // they stand there as they were given.
  Result<std::vector<TokenId>> EncodeExtract(
      const ExtractInput& input, const std::optional<std::tm>& now,
      const Thinking& thinking = {.mode = Thinking::Mode::kOff},
      const Grammar* grammar = nullptr) const;
  // Without marks of a gap a model can only go on from what stands before the gap.
  Result<std::vector<TokenId>> EncodeInfill(
      std::string_view prefix, std::string_view suffix,
      const std::vector<std::pair<std::string, std::string>>& files) const;
  // The chat template over `input`, whose special tokens are set here. Errors: chat()'s; a place
  // that begins with "#" is a JSON Pointer into the messages, another one a place in the template.
  Result<MarkedText> RenderChat(ChatInput input) const;
  // `trust`: special tokens that messages spell become those tokens. REQUIRES: chat().ok().
  Result<std::vector<TokenId>> EncodeChat(const MarkedText& prompt, bool trust = false) const;

 private:
  explicit LoadedModel(std::string path) : path_(std::move(path)) {}
  // What the tokenizer says.
  void SetText(ModelText text);
  // The trained heads that the options name, and the model's own block, where the sources want
  // them. "auto" gets the source of the latter.
  Status AttachHeads(const DraftOptions& options, std::vector<size_t>& sources);
  // Of the model for each adapter, when there is another model.
  void MakeViews();

  std::string path_;
  ModelText text_;
  PromptTemplate plain_;
  Result<ChatSource> chat_ = Error{};
  Result<ExtractPrompt> extract_ = Error{};
  ExtractChoices choices_;
  ModelTraits traits_;
  std::string think_open_, think_close_;  // of the caller
  const std::unique_ptr<ThoughtGrammars> thought_grammars_ = std::make_unique<ThoughtGrammars>();
  const FimTemplate* fim_ = nullptr;
  int context_length_ = 0;
  int threads_ = 0;  // of ModelOptions
  std::unique_ptr<Model> model_;
  std::vector<std::string> heads_;               // as DraftSetting::heads
  std::vector<std::unique_ptr<Model>> adapted_;  // by adapter
  int own_adapter_ = 0;
};

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_LOADED_MODEL_H_
