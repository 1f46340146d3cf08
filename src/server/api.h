// The routes that make outputs: each reads a body, starts a Call, and writes the answer in its
// form.
//
// A body that is wrong is an Error whose place is a JSON Pointer; the caller turns it into the
// API's own form.
#ifndef PAWL_SRC_SERVER_API_H_
#define PAWL_SRC_SERVER_API_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "pawl/result.h"
#include "src/base/json_reader.h"
#include "src/server/call.h"
#include "src/server/json_writer.h"
#include "src/server/server_state.h"

namespace pawl::server {

struct ApiRequest {
  std::shared_ptr<ServerState> server;
  std::shared_ptr<Exchange> exchange;
  const json::Value& body;
  // Of a route that looks for tools that came before; where they are known the body has none.
  const KnownTools::Match* tools = nullptr;
  uint64_t owner = 0;  // GenerateOptions::draft_owner
  int key = 0;         // CallSpec::key
  int adapter = 0;     // CallSpec::adapter
};

// Each starts a call, or says what is wrong with the body.
Status StartChat(const ApiRequest& request, bool fim);
Status StartCompletion(const ApiRequest& request);
Status StartResponse(const ApiRequest& request);
Status StartExtract(const ApiRequest& request);
Status StartEmbeddings(const ApiRequest& request);
Status StartRerank(const ApiRequest& request);
Status StartInfill(const ApiRequest& request, bool infill);
Status StartOllama(const ApiRequest& request, bool chat);
Status StartMessages(const ApiRequest& request);
// The prompt alone: how many tokens it has, or its text.
Status StartCountTokens(const ApiRequest& request);
Status StartApplyTemplate(const ApiRequest& request);

// ---- What they share ----

// Sampling, budget, stop strings, seeds, thinking and the constraint. `max_names`: what the budget
// may be called, the first that is there counts.
Status ReadCommon(const ApiRequest& request, const JsonReader& in,
                  std::initializer_list<const char*> max_names, int default_tokens, CallSpec& spec);
// The member `options` of Ollama's bodies, and what in others stands at the top.
void ReadSampling(const JsonReader& in, CallSpec& spec);
void ReadSeed(const JsonReader& in, CallSpec& spec);
// The places of members that nothing has read; the first of them, where there are many.
void AddIgnored(const JsonReader& in, CallSpec& spec);

// The messages of a chat.
Status ReadChatPrompt(const JsonReader& messages, CallSpec& spec);

// A prompt for a completion: a text, or tokens, or a list of either.
Status ReadPrompts(const JsonReader& in, const ServerState& server,
                   std::vector<PromptSpec>& prompts);

// The prompt of a gap, where the client has put the marks of a code model into its text: taken
// apart. `own`: only these marks, and only where nothing stands before them; nullptr: those of any
// model.
void ReadGapMarks(PromptSpec& prompt, const FimTemplate* own = nullptr);
// Whether the request asks for a grammar of any kind.
bool HasConstraint(const RequestConstraints& asked);
// Ollama's clients read {"error": "..."}.
HttpReply OllamaError(const ApiError& error);
// Anthropic's read {"type": "error", "error": {"type", "message"}}.
HttpReply MessagesError(const ApiError& error);

// The text of a token, as far as it is UTF-8.
std::string ShownBytes(std::string_view bytes);
// "token": ..., "bytes": [...], "logprob": ...
void WriteLogprob(JsonWriter& json, std::string_view bytes, float logprob);
// {"content": [...], "refusal": null} of the entries from `first` on that belong to the content.
std::string ChatLogprobs(const ServerState& server, const ChoiceOut& choice, size_t first);
// [{"id", "text", "source", "allowed", ...}] of the entries from `first` on.
std::string TokenReports(const ChoiceOut& choice, size_t first);
// {"prompt_tokens", "completion_tokens", "total_tokens", ...}
std::string UsageOf(const CallOut& out);
// {"role", "content"}
json::Value MessageOf(std::string_view role, json::Value content);
// The tools that the request may call, and the schema of its answer, for the chat template.
void DeclareTools(const ApiRequest& request, CallSpec& spec);

inline constexpr const char* kStreamEnd = "data: [DONE]\n\n";

// What the answers of the two kinds of completions have in common.
class OpenAiFormatter : public Formatter {
 public:
  // Which the client has asked for.
  struct Wants {
    bool logprobs = false, usage = false, reports = false;
  };
  OpenAiFormatter(std::shared_ptr<ServerState> server, Wants wants)
      : server_(std::move(server)), wants_(wants) {}
  void End(const CallOut& out, std::string& text) override;
  std::string StreamEnd() const override { return kStreamEnd; }
  HttpReply Whole(const CallOut& out) override;

 protected:
  // The members before "choices".
  virtual void Head(const CallOut& out, bool chunk, JsonWriter& json) const = 0;
  // What the choice has said: its members between "index" and "logprobs".
  virtual void Said(const ChoiceOut& choice, JsonWriter& json) const = 0;
  virtual std::string Logprobs(const ChoiceOut& choice, size_t first) const = 0;
  // `key`: of `said`. `logprobs`, `finish`: JSON. `reports`: JSON, or nothing.
  void Chunk(const CallOut& out, int index, const char* key, const std::string& said,
             const std::string& finish, const std::string& logprobs, const std::string& reports,
             std::string& text) const;

  const std::shared_ptr<ServerState> server_;
  const Wants wants_;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_API_H_
