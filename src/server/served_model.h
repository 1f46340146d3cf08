// ServedModel: a model with all that turns requests into its prompts and its outputs into answers.
//
//   auto model = ServedModel::Load("models/tiny-extract", {});
//   Result<PreparedPrompt> prompt = (*model)->Prepare(spec);
//
// Immutable after loading but for `model`, which belongs to the thread that decodes; the const
// functions are thread-safe.
#ifndef PAWL_SRC_SERVER_SERVED_MODEL_H_
#define PAWL_SRC_SERVER_SERVED_MODEL_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/vocabulary_tables.h"
#include "pawl/engine.h"
#include "pawl/result.h"
#include "src/base/json.h"
#include "src/decode/embed_work.h"
#include "src/engine/loaded_model.h"
#include "src/engine/output_plan.h"
#include "src/engine/rerank_head.h"
#include "src/engine/thinking.h"
#include "src/server/tool_instruction.h"

namespace pawl::server {

json::Value StringValue(std::string text);

struct PromptSpec {
  enum class Kind {
    kText,  // to go on from
    kTokens,
    kChat,     // messages, for the chat template
    kExtract,  // a text and a schema, for the prompt of `pawl extract`
    kInfill,   // a text before and one behind the gap
  };
  Kind kind = Kind::kText;
  std::string text;  // kText; kExtract: the text; kInfill: before the gap
  std::string schema;
  std::string instruction;               // kExtract
  std::vector<ExtractExample> examples;  // kExtract, as they are shown
  SchemaView view = SchemaView::kDefault;
  std::string record = {}, problem = {};    // kExtract, for another try: ExtractInput
  std::optional<double> prefer_text;        // kExtract
  std::optional<DocumentOptions> document;  // kExtract: the text is one
  std::string suffix;
  std::vector<std::pair<std::string, std::string>> files;  // kInfill: name, text
  std::vector<TokenId> tokens;
  json::Value messages, tools, arguments;  // kChat
  ToolInstruction told_tools;              // kChat: those that the template does not show
  Thinking thinking = {.mode = Thinking::Mode::kOff};
  bool parse_special = false;
  // kText: with the tokens that the tokenizer puts around a text, as models for embeddings read it.
  bool framed = false;
  std::optional<std::string> pair = {};  // framed: a second text behind it
  std::string pointer;                   // where it stands in the request
};

struct PreparedPrompt {
  std::vector<TokenId> tokens;
  ThinkingStart thinking = ThinkingStart::kOff;
  std::string note = {};  // of thoughts that it opens and nothing closes; empty: none
};

struct ServedModelOptions {
  ModelOptions model;
  std::string name;           // what /v1/models calls it; empty: the folder's name
  std::string tool_syntax;    // empty: by the chat template
  std::string chat_template;  // text in place of the model's own
  std::string settings = {};  // the folder of measured choices; empty: none
  std::string pooling = {};   // of embeddings: "mean", "last"; empty: as the files say
  // The marks of thoughts in place of the template's; both or none.
  std::string think_open = {}, think_close = {};
  std::function<void(const std::string& note)> note;
};

class ServedModel {
 public:
  static Result<std::unique_ptr<ServedModel>> Load(const std::string& path,
                                                   const ServedModelOptions& options);

  // Errors: place is a JSON Pointer where something in the request is wrong; kLimit for a text that
  // is too long for the context. A StopScope of the calling thread ends it.
  Result<PreparedPrompt> Prepare(const PromptSpec& spec) const;
  // For messages to a model that has no chat template: the last thing that the user said, through
  // the prompt of `pawl extract` where there is one.
  bool has_chat() const { return loaded_->chat().ok(); }
  // Whether the chat template writes the tools into the prompt.
  bool shows_tools() const { return shows_tools_; }
  bool can_infill() const { return fim() != nullptr; }
  const FimTemplate* fim() const { return loaded_->fim(); }

  const std::string& name() const { return name_; }
  // The adapter that requests for this name get, 0 for the model's own and an empty one; nullopt:
  // there is no such name. "NAME:latest" is NAME.
  std::optional<int> AdapterNamed(std::string_view name) const;
  // Of AdapterNamed.
  const std::string& NameOf(int adapter) const {
    return adapter == 0 ? name_ : info().adapters[static_cast<size_t>(adapter) - 1].name;
  }
  // As EngineRequest::lora.
  std::string LoraOf(int adapter) const { return adapter == 0 ? "" : NameOf(adapter); }
  // Of embeddings, or why there are none.
  const Result<Pooling>& pooling() const { return pooling_; }
  // Of /v1/rerank, or why there is none.
  const Result<RerankHead>& rerank() const { return rerank_; }
  LoadedModel& loaded() const { return *loaded_; }
  const Tokenizer& tokenizer() const { return loaded_->tokenizer(); }
  const std::shared_ptr<const Vocabulary>& vocabulary() const { return loaded_->vocabulary(); }
  const ModelTraits& traits() const { return traits_; }
  const ModelInfo& info() const { return loaded_->info(); }
  // What a request without one gets.
  float temperature() const { return has_chat() ? 1.0f : 0.0f; }
  const std::string& chat_source() const { return chat_text_; }

 private:
  ServedModel() = default;
  Result<PreparedPrompt> PrepareChat(const PromptSpec& spec) const;
  Result<std::vector<TokenId>> EncodeFramed(const PromptSpec& spec) const;
  bool ProbeTools() const;
  Result<MarkedText> RenderWithTools(const PromptSpec& spec, ChatInput input) const;

  std::unique_ptr<LoadedModel> loaded_;
  std::string name_, chat_text_;
  Result<Pooling> pooling_ = Pooling();
  Result<RerankHead> rerank_ = RerankHead();
  bool can_extract_ = false, shows_tools_ = false;
  ModelTraits traits_ = PlainTraits();
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_SERVED_MODEL_H_
