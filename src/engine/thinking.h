// What a model thinks before it answers: how much, where the answer begins, and which of the two a
// token belongs to. Every door of the engine uses this.
//
//   ThoughtPlan plan = PlanThoughts(model.traits(), start, thinking);
//   Result<std::shared_ptr<const Constraint>> constraint =
//       WithThoughts(model, plan, answer, options.max_tokens);     // pawl/constraint.h
//   auto text = std::make_shared<ThoughtText>(plan, vocabulary);   // nullptr where !plan.splits
//   Follow(text, options);                                         // callbacks get the answer
//   text->Into(output);                                            // Generation::text, ::reasoning
//
// The rules: the marks of thoughts come from the chat template (TraitsOf) or the caller. The end of
// the prompt says whether the thoughts are open, closed, or for the model to open. `off` closes
// open thoughts at once, and keeps the model from opening any. A number of tokens closes them then.
// Under a constraint, thoughts end early enough that the shortest answer and kAnswerTokens more fit
// into the budget.
#ifndef PAWL_SRC_ENGINE_THINKING_H_
#define PAWL_SRC_ENGINE_THINKING_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/constraint.h"
#include "pawl/engine.h"
#include "pawl/generation.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/base/json.h"
#include "src/base/sync.h"
#include "src/engine/output_plan.h"
#include "src/text/tokenizer.h"

namespace pawl {

class LoadedModel;

// Tokens that a budget keeps for the answer, besides those of the shortest one.
inline constexpr int kAnswerTokens = 64;

// "off", "auto", or a number of tokens up to 2^24. Errors: kInvalid without a place.
Result<Thinking> ParseThinking(std::string_view text);
// `thinking`, or where it has no say: auto for chats, off for what is no chat.
Thinking ThinkingFor(const Thinking& thinking, bool chat);
// Sets the variables by which templates are told, where the caller has not set them: none for auto.
void TellTemplate(const Thinking& thinking,
                  std::vector<std::pair<std::string, json::Value>>& arguments);
// Where the output of these tokens begins.
ThinkingStart ThinkingStartOf(const Tokenizer& tokenizer, std::span<const TokenId> prompt,
                              const ModelTraits& traits);

struct ThoughtPlan {
  std::string open, close;
  bool splits = false;   // the output may have thoughts or their marks
  bool opened = false;   // by the prompt
  bool refuses = false;  // the model must not open thoughts
  int most_tokens = -1;  // of the thoughts; -1: any number
  bool free = false;     // free text instead of thoughts (WithFreeText)
  // What was asked for can change nothing.
  bool changes_nothing = false;
  const ChatFormat* format = nullptr;  // may be nullptr

  // The answer stands between marks of the format.
  bool marked() const { return format != nullptr && format->marked(); }
  // The text has something that is no part of the answer.
  bool apart() const { return splits || marked(); }

  // The thoughts as a structural tag, JSON text. `answer`: with the marks before an answer.
  std::string Tag(bool answer) const;
};
ThoughtPlan PlanThoughts(const ModelTraits& traits, ThinkingStart start, const Thinking& thinking);

// What stands between free text and the answer.
inline constexpr std::string_view kFreeTextEnd = "\n\nFinal answer:\n";
// With free text of at most `tokens` tokens in the place of thoughts (EngineRequest::free_first),
// which kFreeTextEnd closes; 0: `plan`. `constrained`: the answer has a constraint. Errors have
// "free_first" as place: kInvalid, and kUnsupported where the model may think.
Result<ThoughtPlan> WithFreeText(ThoughtPlan plan, int tokens, bool constrained);

// Compiled grammars of thoughts and of texts without them, by their tag. Thread-safe.
class ThoughtGrammars {
 public:
  Result<Grammar> Get(const std::string& tag, const std::shared_ptr<const Vocabulary>& vocabulary);

 private:
  Mutex mutex_;
  std::map<std::string, Grammar> grammars_;  // under mutex_
};

// The constraint of the whole output. `answer` and the result may be nullptr: any text. `tokens`:
// of the whole output; the context may allow less. `has_marks`: `answer` has the format's marks.
// `note`: said of an output whose budget leaves no thoughts; nullptr: the caller has no use for it.
Result<std::shared_ptr<const Constraint>> WithThoughts(const LoadedModel& model,
                                                       const ThoughtPlan& plan,
                                                       std::shared_ptr<const Constraint> answer,
                                                       int tokens, bool has_marks = false,
                                                       std::string* note = nullptr);
// Of an output that ended in its thoughts; empty: it did not.
std::string AllThoughtsNote(StopReason stop, std::string_view reasoning, std::string_view text,
                            int budget);
// Where the end of a prompt opens thoughts and no mark is known that closes them, what happens
// then; empty: all is well.
std::string UnclosedNote(std::string_view prompt, const ModelTraits& traits);
std::string UnclosedNote(const Tokenizer& tokenizer, std::span<const TokenId> prompt,
                         const ModelTraits& traits);

// Takes the text of one output apart, token by token. Not thread-safe.
class ThoughtText {
 public:
  // `constrained`: the answer has a constraint, so only the line feeds of the mark are no part of
  // it.
  ThoughtText(const ThoughtPlan& plan, std::shared_ptr<const Vocabulary> vocabulary,
              bool constrained);

  // What the token adds to the answer. Valid until the next call.
  std::string_view Add(TokenId token, std::string_view bytes);
  // What was held back and is part of the answer after all.
  std::string_view Finish();
  // Moves the texts into the output. REQUIRES: Finish was called.
  void Into(Generation& output);

  // Called with what is thought, as it comes.
  std::function<void(std::string_view text)> on_reasoning;

 private:
  enum class State { kStart, kThinking, kGap, kAnswer };

  bool Step(bool at_end);
  bool StepMarked(bool at_end);
  bool IsMark(std::string_view name) const;
  void Think(std::string_view text);

  const std::string open_, close_;
  const ChatFormat* const format_;  // of marks around the answer; nullptr: none
  const std::string_view gap_;      // line feeds behind the closing mark that are the mark's
  const bool constrained_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  State state_;
  bool thought_;       // there are thoughts
  std::string held_;   // read, not yet told apart
  std::string added_;  // to the answer, by the last token
  std::string answer_, reasoning_;
  int tokens_ = 0;  // before the answer: of the thoughts, with their marks
};

// The callbacks of `options` get the answer only. `text` may be nullptr.
void Follow(const std::shared_ptr<ThoughtText>& text, GenerateOptions& options);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_THINKING_H_
