// Call: one request for outputs, from its prompts to its answer.
//
//   waits for a worker -> prompts are laid out, the constraint is compiled -> waits for the model
//   -> tokens come -> deltas go out -> the end
//
// What the API makes of it is a Formatter's affair: it turns outputs into the bodies and events of
// OpenAI's, Ollama's or our own API.
#ifndef PAWL_SRC_SERVER_CALL_H_
#define PAWL_SRC_SERVER_CALL_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pawl/generation.h"
#include "pawl/grammar.h"
#include "pawl/result.h"
#include "src/engine/async_engine.h"
#include "src/engine/output_parser.h"
#include "src/server/api_error.h"
#include "src/server/code_completion.h"
#include "src/server/constraint_spec.h"
#include "src/server/http.h"
#include "src/server/served_model.h"
#include "src/server/together.h"
#include "src/server/worker_pool.h"

namespace pawl::server {

class ServerState;

struct CallSpec {
  std::string route;  // for logs and metrics
  std::vector<PromptSpec> prompts;
  int n = 1;        // outputs for each prompt
  int best_of = 0;  // of so many, where that is more than n, the n best
  int draws() const { return best_of > n ? best_of : n; }
  // best_of orders the outputs; those of a stream come as they are drawn.
  bool ranks() const { return best_of > 1 && !stream; }
  TogetherSpec together;
  RequestConstraints asked;
  GenerateOptions options;
  std::vector<std::string> stop;
  bool include_stop = false;
  bool stream = false;
  // The prompt's own tokens come before those of the output (completions).
  bool echo = false;
  bool want_tokens = false;  // the formatter wants every token, not only the text
  Thinking thinking;
  int free_first = 0;  // tokens of free text before the answer, at most
  // Members of the request that ask for it, each with what it needs to change something.
  struct ThinkingWish {
    std::string pointer;
    const char* variable;  // of the chat template; nullptr: thoughts that are marked
  };
  std::vector<ThinkingWish> thinking_wishes;
  std::string budget_pointer;  // of options.max_tokens, where the request has it
  // Code to complete, under monitors where they are built in (code_completion.h).
  std::optional<CodeSpec> code;
  int adapter = 0;                // that the outputs have, by ServedModel::AdapterNamed
  int key = 0;                    // which of the server's keys the request has, from 1; 0: none
  bool prompt_only = false;       // the prompts are laid out, and no output begins
  bool one_by_one = false;        // an output that fails does not fail the others
  std::optional<Pooling> embeds;  // each prompt becomes a vector, and no output begins
  // JSON Pointers of members of the request that change nothing here.
  std::vector<std::string> ignored;
};

struct TokenEntry {
  TokenId token = kNoToken;
  std::string bytes;
  TokenReport::Source source = TokenReport::Source::kSampled;
  int allowed = -1;
  float logprob = 0, surprise = 0;
  std::vector<TokenLogprob> top;
  bool in_content = true;
  bool in_prompt = false;
};

struct ToolCallOut {
  std::string id, name, arguments;
  bool custom = false;
};

struct ChoiceOut {
  int index = 0;
  std::string content, reasoning;
  std::vector<ToolCallOut> calls;
  std::vector<TokenEntry> tokens;  // with want_tokens
  std::string finish;              // "stop", "length", "tool_calls"; empty while it goes on
  std::string stop_string;         // that ended it
  bool closed = false;             // by the budget or a limit, completely
  ClosedBy closed_by = ClosedBy::kNothing;
  std::vector<std::string> notes;  // Generation::notes
  std::vector<ValueDetails> details;
  std::vector<ValueConflict> conflicts;  // of a document
  int chunks = 0;                        // of a document
  std::optional<bool> parses;            // of code: whether the file still does, with the output
  uint64_t given_up = 0;                 // questions about code that the monitors gave up
  bool ended = false;
  bool absent = false;  // a search has found fewer outputs: it is no part of the answer
  std::optional<ApiError> error;
  GenerationStats stats;
  int reasoning_tokens = 0;
  std::vector<float> embedding;  // with CallSpec::embeds
};

struct CallOut {
  std::string id;  // random letters, for ids of answers
  int64_t created = 0;
  std::string model;
  std::vector<ChoiceOut> choices;
  bool has_grammar = false, grammar_known = false;
  double compile_seconds = 0, queue_seconds = 0, first_token_seconds = 0, total_seconds = 0;
  std::vector<std::string> ignored;  // of the request
  std::vector<std::string> notes;    // on the request
  std::string samplers;              // the stages that ran, where their order was asked for
  // Of outputs that were found together: which member of the request asked for them, and what is
  // told about them, by prompt.
  const char* together = nullptr;
  std::vector<std::string> together_reports;
  bool fewer = false;  // choices than were asked for
  // Sums over the outputs.
  int prompt_tokens = 0, reused_tokens = 0, output_tokens = 0, reasoning_tokens = 0;
};

// The report on what a request cost, as a JSON object.
// `together`: with what may have texts of the request.
std::string ReportOf(const CallOut& out, bool together = true);

// What the engine says of an output, with the place in the request. `constraint`: where that
// stands.
ApiError OutputError(const Error& error, const CallSpec& spec, size_t prompt,
                     const std::string& constraint);

class Formatter {
 public:
  virtual ~Formatter() = default;
  virtual std::string StreamType() const { return "text/event-stream"; }
  // Once, before everything else.
  virtual void Begin(const CallOut& /*out*/, std::string& /*text*/) {}
  // What has been added to `choice`. `first_token`: of its new entries.
  virtual void Add(const CallOut& out, const ChoiceOut& choice, std::span<const Delta> deltas,
                   size_t first_token, std::string& text) = 0;
  virtual void EndChoice(const CallOut& /*out*/, const ChoiceOut& /*choice*/,
                         std::string& /*text*/) {}
  virtual void End(const CallOut& out, std::string& text) = 0;
  // In the middle of a stream, which then ends.
  virtual void Fail(const ApiError& error, std::string& text) {
    text += "data: " + error.Body() + "\n\n" + StreamEnd();
  }
  // What a stream ends with.
  virtual std::string StreamEnd() const { return ""; }
  // Without a stream.
  virtual HttpReply Whole(const CallOut& out) = 0;
  virtual HttpReply Refuse(const ApiError& error) { return error.ToReply(); }
};

class Call : public std::enable_shared_from_this<Call> {
 public:
  // Answers at once where no place is left in the queue.
  static void Start(std::shared_ptr<ServerState> server, std::shared_ptr<Exchange> exchange,
                    CallSpec spec, std::unique_ptr<Formatter> formatter);
  ~Call();

  // From any thread. The client hears of `error` where it is still there.
  // false: it had been given up before.
  bool GiveUp(const std::optional<ApiError>& error) noexcept;
  double seconds() const;

 private:
  struct Choice;
  Call(std::shared_ptr<ServerState> server, std::shared_ptr<Exchange> exchange, CallSpec spec,
       std::unique_ptr<Formatter> formatter);

  // An exception that leaves a part of the call fails the call, whatever thread it is on: with 503
  // where memory ran out, else with 500.
  void OnWorker(void (Call::*part)()) noexcept;
  // Where there is no memory for an answer either: the connection is closed.
  void Abandon() noexcept;

  void Prepare();
  void PrepareChoices();
  // Throws Stopped where the call is given up.
  Result<PreparedPrompt> PrepareOne(const PromptSpec& prompt);
  // The records of examples in prompts of extract, as the grammar writes them.
  std::optional<ApiError> WriteExamples();
  // `bound`: BoundFor(choice). With what the text of an extraction is preferred by.
  std::shared_ptr<const Constraint> ConstraintOf(const Choice& choice, const Grammar& bound) const;
  // With prompt_only: the prompts are the answer.
  void ShowPrompts(std::span<const std::unique_ptr<Choice>> choices);
  std::optional<ApiError> CompilePlan(ThinkingStart thinking);
  std::optional<ApiError> PlanTools();
  std::optional<ApiError> PlanThinking(ThinkingStart thinking);
  // What is to say of an output by its end.
  void NoteEnd(StopReason stop, ChoiceOut& out) const;
  // Why the output ended, as the interfaces name it. A call that a stop string has cut is left out
  // where it is not with the client.
  std::string FinishOf(const Choice& choice, StopReason stop, ChoiceOut& out) const;
  Result<Grammar> CompileOne();
  // What is wrong with a text of /v1/extract.
  static Error OfText(Error error);
  ApiError CompileError(const Error& error);
  // The grammar of a choice, bound to its text. Errors have their place in the request.
  Result<Grammar> BoundFor(const Choice& choice);
  // Of a compilation that begins now: GiveUp stops it.
  std::shared_ptr<StopFlag> NewStop();
  void ScorePrompts();
  // Whether the tool is the one that the request makes most probable, and how that is found
  // (call_tool.cc).
  bool PicksTool() const;
  void PickTool();
  void PrepareBaseline();
  void ScoreTool(size_t at);
  void ToolScored(size_t at, const Result<TokenScores>& scores);
  void LaunchPicked();
  // What the request says for the tool of a call, in nats: whether it has the values.
  double EvidenceFor(size_t call);
  // Arguments are likely to be what the request says, and so is their being there.
  void PreferRequest();
  // nullptr: nothing is preferred.
  std::shared_ptr<const Constraint> WithRequestPreferred(
      std::shared_ptr<const Constraint> constraint) const;
  // Whether an answer may prefer values of the messages: where it is JSON of a schema.
  bool MayPreferMessages() const;
  // The call of that tool, by a search with a few beams.
  bool MayTakeBeams() const;
  void SubmitBeams(Choice& choice, std::shared_ptr<const Constraint> constraint);
  void BeamsFound(Choice& choice, const Result<SearchResult>& found);
  // The prompts' tokens in front of those of the outputs.
  void EchoPrompts();
  std::shared_ptr<DetailsRequest> DetailsOf(const Choice& choice,
                                            const std::optional<Grammar>& grammar) const;
  void Launch();
  // A choice that cannot begin has ended, with the error.
  void Begin(Choice& choice) noexcept;
  void Submit(Choice& choice);
  // With `embeds`: the vector of a prompt.
  void SubmitEmbedding(Choice& choice);
  // Of a prompt that is a document.
  void SubmitDocument(Choice& choice);
  // The output of a choice is with the engine, or failed.
  void Submitted(Choice& choice, const Result<AsyncEngine::Id>& id);
  void SubmitTogether(Choice& choice, std::shared_ptr<const Constraint> constraint,
                      const std::optional<Grammar>& grammar);
  void Refuse(const ApiError& error) noexcept;

  // On the engine's thread.
  std::string_view TextOf(Choice& choice, TokenId token, std::string_view bytes);
  bool Told(Choice& choice, const OutputToken& token);
  void Done(Choice& choice, Result<Generation> output) noexcept;
  void Found(Choice& first, Result<TogetherResult> found);
  Generation OutputOf(Choice& choice, TogetherOutput found);
  void Fill(Choice& choice, const TogetherOutput& output);
  void Scored(size_t prompt, Result<TokenScores> scores);

  // On the connection's thread.
  bool Pull(std::string& text);
  bool PullOrFail(std::string& text) noexcept;
  void Whole();
  void WholeOrRefuse() noexcept;
  std::vector<Delta> TakeFrom(Choice& choice, size_t& first_token);
  void Apply(Choice& choice, std::span<const Delta> deltas);
  void EndOf(Choice& choice);
  // What an output tells but for its text.
  void CopyOutput(const Generation& output, ChoiceOut& out) const;
  int PromptSize(const Choice& choice) const;
  void SumUp();
  bool MarkAbsent();
  Status TakeParts(const PromptSpec& prompt, EngineRequest& request) const;
  void KeepBest();
  void Log(int status) noexcept;
  void LogLine(int status);

  const std::shared_ptr<ServerState> server_;
  const uint64_t group_;  // of its outputs, among those of others
  const std::shared_ptr<Exchange> exchange_;
  CallSpec spec_;
  const std::unique_ptr<Formatter> formatter_;
  const std::chrono::steady_clock::time_point begin_;
  const WorkSize size_;  // of what workers do for it

  OutputPlan plan_;
  ThoughtPlan thoughts_;
  int string_bound_ = 0;           // characters; 0: none
  std::vector<Grammar> grammars_;  // by prompt; none: no constraint
  bool names_specials_ = false;    // special tokens are part of the text that is parsed
  CallOut out_;                    // of the connection's thread once it runs
  std::vector<TokenScores> scores_;
  // Of plan_.calls behind the prompt, then of the same behind the baseline; under mutex_.
  std::vector<double> tool_scores_;
  std::vector<TokenId> baseline_;  // the prompt without the request; empty: there is none
  bool beams_ = false;             // of a picked tool
  double beams_begin_ = 0;         // seconds()
  // Its call with all arguments copied from the request, which is preferred.
  struct {
    std::optional<Grammar> grammar;
    std::string text;
  } copied_;

  std::mutex mutex_;
  std::vector<std::unique_ptr<Choice>> choices_;
  size_t added_ = 0;                 // of choices_, to the engine
  size_t left_ = 0;                  // choices that have not ended; under mutex_
  bool launched_ = false;            // under mutex_
  std::shared_ptr<StopFlag> stop_;   // under mutex_
  std::optional<ApiError> failure_;  // under mutex_
  std::atomic<bool> gone_{false}, answered_{false};
  std::atomic<bool> halt_{false};  // of what reads the prompts: GiveUp sets it
  std::atomic<double> first_token_{0};
  bool begun_ = false;  // of a stream
  bool counted_ = false;
  int score_left_ = 0;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_CALL_H_
