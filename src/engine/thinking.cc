// Thoughts are a structural tag of their own before the constraint of the answer
// (src/decode/thinking_constraint.h). The texts are told apart by the marks: the constraint has put
// them where they are, so the two agree.
#include "src/engine/thinking.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "grammar/tags/chat_tag.h"
#include "pawl/compiler.h"
#include "src/decode/thinking_constraint.h"
#include "src/engine/loaded_model.h"

namespace pawl {
namespace {

constexpr int kMostThinkingTokens = 1 << 24;
constexpr size_t kTailTokens = 64;  // of a prompt: its last mark stands in them
constexpr std::string_view kBlanks = " \n\r\t";
constexpr std::string_view kMarkGap = "\n\n";

// Bytes at the end of `text` with which `mark` begins, less than the whole mark.
size_t BegunAtEnd(std::string_view text, std::string_view mark) {
  size_t most = std::min(text.size(), mark.size() - 1);
  while (most > 0 && !text.ends_with(mark.substr(0, most))) --most;
  return most;
}

}  // namespace

Result<Thinking> ParseThinking(std::string_view text) {
  Thinking out;
  if (text == "off" || text == "0") {
    out.mode = Thinking::Mode::kOff;
    return out;
  }
  if (text == "auto") {
    out.mode = Thinking::Mode::kAuto;
    return out;
  }
  out.mode = Thinking::Mode::kTokens;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, out.tokens);
  if (error == std::errc() && at == end && out.tokens > 0 && out.tokens <= kMostThinkingTokens) {
    return out;
  }
  return Error{ErrorCode::kInvalid,
               "must be off, auto or a number of tokens up to " +
                   std::to_string(kMostThinkingTokens) + ", not " + json::Quote(text.substr(0, 60)),
               ""};
}

Thinking ThinkingFor(const Thinking& thinking, bool chat) {
  if (thinking.mode == Thinking::Mode::kDefault) {
    return {.mode = chat ? Thinking::Mode::kAuto : Thinking::Mode::kOff};
  }
  if (thinking.mode == Thinking::Mode::kTokens && thinking.tokens <= 0) {
    return {.mode = Thinking::Mode::kOff};
  }
  return thinking;
}

void TellTemplate(const Thinking& thinking,
                  std::vector<std::pair<std::string, json::Value>>& arguments) {
  const bool off = thinking.mode == Thinking::Mode::kOff;
  if (!off && thinking.mode != Thinking::Mode::kTokens) return;
  // Qwen, GLM, SmolLM3 and most others read the first name, DeepSeek and Granite the second.
  for (const char* name : {"enable_thinking", "thinking"}) {
    if (std::ranges::any_of(arguments, [&](const auto& one) { return one.first == name; })) {
      continue;
    }
    json::Value value;
    value.type = off ? json::Type::kFalse : json::Type::kTrue;
    arguments.emplace_back(name, std::move(value));
  }
}

ThinkingStart ThinkingStartOf(const Tokenizer& tokenizer, std::span<const TokenId> prompt,
                              const ModelTraits& traits) {
  if (traits.think_close.empty()) return ThinkingStart::kOff;
  const auto tail = prompt.last(std::min(prompt.size(), kTailTokens));
  return ThinkingStartOf(tokenizer.Decode(tail, true), traits);
}

ThoughtPlan PlanThoughts(const ModelTraits& traits, ThinkingStart start, const Thinking& thinking) {
  ThoughtPlan plan;
  const bool off = thinking.mode == Thinking::Mode::kOff;
  plan.format = traits.format;
  plan.open = traits.think_open;
  plan.close = traits.think_close;
  const bool budget = thinking.mode == Thinking::Mode::kTokens;
  plan.changes_nothing =
      traits.think_close.empty() ? budget || off : budget && start == ThinkingStart::kOff;
  if (traits.think_close.empty() || start == ThinkingStart::kOff) return plan;
  plan.opened = start == ThinkingStart::kOpen;
  plan.splits = !off || plan.opened;
  plan.refuses = off && !plan.opened;
  if (off) plan.most_tokens = 0;
  if (thinking.mode == Thinking::Mode::kTokens) plan.most_tokens = thinking.tokens;
  return plan;
}

Result<ThoughtPlan> WithFreeText(ThoughtPlan plan, int tokens, bool constrained) {
  if (tokens == 0) return plan;
  const auto wrong = [](ErrorCode code, std::string message) {
    return Error{code, std::move(message), "free_first"};
  };
  if (tokens < 0 || tokens > kMostThinkingTokens) {
    return wrong(ErrorCode::kInvalid, "must be from 0 to " + std::to_string(kMostThinkingTokens) +
                                          ", not " + std::to_string(tokens));
  }
  if (!constrained) {
    return wrong(ErrorCode::kInvalid,
                 "needs a constraint, which is for the answer behind the text");
  }
  if (plan.splits || plan.marked()) {
    return wrong(ErrorCode::kUnsupported,
                 plan.splits ? "the model thinks before it answers: switch thinking off"
                             : "the model's chat template puts marks around answers");
  }
  ThoughtPlan out;
  out.close = kFreeTextEnd;
  out.splits = out.opened = out.free = true;
  out.most_tokens = tokens;
  return out;
}

std::string ThoughtPlan::Tag(bool answer) const {
  std::vector<std::string> parts;
  if (free) parts = {tag::Tag("", tag::AnyText(), close)};
  if (refuses && !marked()) {
    parts = {R"({"type":"any_text","excludes":[)" + json::Quote(open) + "]}"};
  } else if (splits && !free) {
    parts = {tag::Thoughts(format, {.open = open, .close = close, .opened = opened})};
  }
  if (answer && marked()) parts.push_back(tag::Const(format->answer_open[0]));
  return R"({"type":"structural_tag","format":)" + tag::Elements("sequence", parts) + "}";
}

Result<Grammar> ThoughtGrammars::Get(const std::string& tag,
                                     const std::shared_ptr<const Vocabulary>& vocabulary) {
  const std::lock_guard lock(mutex_);
  const auto known = grammars_.find(tag);
  if (known != grammars_.end()) return known->second;
  Result<Grammar> made = Compiler(vocabulary).CompileStructuralTag(tag);
  if (made.ok()) grammars_.emplace(tag, *made);
  return made;
}

Result<std::shared_ptr<const Constraint>> WithThoughts(const LoadedModel& model,
                                                       const ThoughtPlan& plan,
                                                       std::shared_ptr<const Constraint> answer,
                                                       int tokens, bool has_marks,
                                                       std::string* note) {
  const std::shared_ptr<const Vocabulary>& vocabulary = model.vocabulary();
  const bool adds_marks = plan.marked() && !has_marks;
  if (plan.refuses && !adds_marks) {
    if (answer != nullptr) return answer;
    const Result<Grammar> none = model.thought_grammars().Get(plan.Tag(false), vocabulary);
    if (!none.ok()) return none.error();
    return MakeConstraint(*none);
  }
  const bool limits = plan.splits && plan.most_tokens >= 0;
  const bool leads = plan.splits || (adds_marks && (answer != nullptr || plan.refuses));
  if (!leads || (answer == nullptr && !limits && !plan.refuses)) return answer;
  const Result<Grammar> thoughts = model.thought_grammars().Get(plan.Tag(adds_marks), vocabulary);
  if (!thoughts.ok()) return thoughts.error();
  ThinkFirstParts parts;
  parts.thoughts = ForLoop(MakeConstraint(*thoughts), *vocabulary);
  parts.answer = ForLoop(std::move(answer), *vocabulary);
  parts.vocabulary = vocabulary;
  parts.most_tokens = plan.splits ? plan.most_tokens : -1;
  parts.open_bytes = plan.opened ? 0 : plan.open.size();
  parts.ends_early = plan.free;
  parts.output_tokens = tokens;
  const int closing = static_cast<int>(vocabulary->FewestTokens(plan.close).size());
  parts.kept_tokens = kAnswerTokens + closing;
  if (note != nullptr && plan.splits && plan.most_tokens != 0 && parts.answer != nullptr) {
    const int shortest = parts.answer->CompletionLength(tokens);
    if (shortest >= 0 && shortest + parts.kept_tokens >= tokens) {
      *note = "the budget of " + std::to_string(tokens) + " tokens leaves none for " +
              (plan.free ? "free text" : "thoughts") + ": the shortest answer of " +
              std::to_string(shortest) + " and " + std::to_string(kAnswerTokens) + " more are kept";
    }
  }
  return std::shared_ptr<const Constraint>(ThinkFirst(std::move(parts)));
}

std::string AllThoughtsNote(StopReason stop, std::string_view reasoning, std::string_view text,
                            int budget) {
  if (stop != StopReason::kLength || reasoning.empty()) return "";
  if (text.find_first_not_of(kBlanks) != std::string_view::npos) return "";
  return "the budget of " + std::to_string(budget) +
         " tokens went to thoughts, so there is no answer";
}

std::string UnclosedNote(std::string_view prompt, const ModelTraits& traits) {
  if (!traits.think_close.empty()) return "";
  const size_t last = prompt.find_last_not_of(kBlanks);
  const std::string_view text = prompt.substr(0, last == std::string_view::npos ? 0 : last + 1);
  for (const std::string_view mark :
       {"<think>", "<thinking>", "<thought>", "<reasoning>", "<|think|>", "[THINK]"}) {
    if (!text.ends_with(mark)) continue;
    return "the prompt ends in " + std::string(mark) +
           ", and the chat template names no mark that ends thoughts: the model may think inside "
           "of the answer, and no thoughts are kept apart; name both marks (--reasoning-marks)";
  }
  return "";
}

std::string UnclosedNote(const Tokenizer& tokenizer, std::span<const TokenId> prompt,
                         const ModelTraits& traits) {
  if (!traits.think_close.empty()) return "";
  return UnclosedNote(tokenizer.Decode(prompt.last(std::min(prompt.size(), kTailTokens)), true),
                      traits);
}

// ---- The texts ----

ThoughtText::ThoughtText(const ThoughtPlan& plan, std::shared_ptr<const Vocabulary> vocabulary,
                         bool constrained)
    : open_(plan.open),
      close_(plan.close),
      format_(plan.marked() ? plan.format : nullptr),
      gap_(plan.free ? "" : kMarkGap),
      constrained_(constrained),
      vocabulary_(std::move(vocabulary)),
      state_(plan.opened ? State::kThinking : State::kStart),
      thought_(plan.opened) {}

std::string_view ThoughtText::Add(TokenId token, std::string_view bytes) {
  added_.clear();
  if (state_ == State::kAnswer) {
    added_ = bytes;
    answer_ += bytes;
    return added_;
  }
  if (bytes.empty() && vocabulary_->is_special(token)) {
    const std::string_view name = vocabulary_->bytes(token);
    if (IsMark(name)) bytes = name;
  }
  held_ += bytes;
  while (Step(false)) {
  }
  // The line feeds behind the mark are the mark's.
  if (state_ != State::kAnswer || added_.empty()) ++tokens_;
  if (state_ == State::kAnswer && !thought_) tokens_ = 0;
  return added_;
}

std::string_view ThoughtText::Finish() {
  added_.clear();
  while (Step(true)) {
  }
  return added_;
}

void ThoughtText::Into(Generation& output) {
  output.text = std::move(answer_);
  output.reasoning = std::move(reasoning_);
  output.stats.reasoning_tokens = tokens_;
  std::string note =
      AllThoughtsNote(output.stop, output.reasoning, output.text, output.stats.budget);
  if (!note.empty()) output.notes.push_back(std::move(note));
}

// Whether something has happened; false: more is needed.
bool ThoughtText::Step(bool at_end) {
  if (format_ != nullptr && (state_ == State::kStart || state_ == State::kGap)) {
    return StepMarked(at_end);
  }
  const auto answer = [&](size_t from) {
    added_.append(held_, from);
    answer_.append(held_, from);
    held_.clear();
    state_ = State::kAnswer;
    return false;
  };
  const std::string_view held = held_;
  switch (state_) {
    case State::kStart: {
      const size_t first = std::min(held.find_first_not_of(kBlanks), held.size());
      const std::string_view rest = held.substr(first);
      if (rest.starts_with(open_)) {
        held_.erase(0, first + open_.size());
        state_ = State::kThinking;
        thought_ = true;
        return true;
      }
      if (std::string_view(open_).starts_with(rest) && !at_end) return false;
      return answer(0);
    }
    case State::kThinking: {
      const size_t close = held.find(close_);
      if (close != std::string_view::npos) {
        Think(held.substr(0, close));
        held_.erase(0, close + close_.size());
        state_ = State::kGap;
        return true;
      }
      const size_t kept = at_end ? 0 : BegunAtEnd(held, close_);
      Think(held.substr(0, held.size() - kept));
      held_.erase(0, held.size() - kept);
      return false;
    }
    case State::kGap: {
      const size_t first = std::min(held.find_first_not_of(kBlanks), held.size());
      if (!constrained_) return first < held.size() ? answer(first) : false;
      // A mark such as "))" may end later than it ends first: the constraint takes the last one.
      for (size_t shift = 1; shift < close_.size(); ++shift) {
        if (!close_.ends_with(std::string_view(close_).substr(0, close_.size() - shift))) continue;
        const std::string_view rest = std::string_view(close_).substr(close_.size() - shift);
        if (held.starts_with(rest)) {
          Think(std::string_view(close_).substr(0, shift));
          held_.erase(0, shift);
          return true;
        }
        if (rest.starts_with(held) && !at_end) return false;
      }
      if (held.starts_with(gap_)) return answer(gap_.size());
      if (gap_.starts_with(held) && !at_end) return false;
      return answer(0);
    }
    case State::kAnswer:
      return false;
  }
  return false;
}

// Between the messages of an output: thoughts, or the answer, begin with their mark.
bool ThoughtText::StepMarked(bool at_end) {
  std::string_view rest = held_;
  const bool may_wait = !at_end && std::string_view(format_->next).starts_with(rest);
  if (may_wait && rest.size() < format_->next.size()) return false;
  if (rest.starts_with(format_->next)) rest.remove_prefix(format_->next.size());
  if (!open_.empty() && rest.starts_with(open_)) {
    held_.erase(0, held_.size() - rest.size() + open_.size());
    state_ = State::kThinking;
    thought_ = true;
    return true;
  }
  bool waits = !open_.empty() && std::string_view(open_).starts_with(rest);
  for (const std::string_view open : TextsOf(format_->answer_open)) {
    if (rest.starts_with(open)) {
      rest.remove_prefix(open.size());
      waits = false;
      break;
    }
    waits = waits || open.starts_with(rest);
  }
  if (waits && !at_end) return false;
  added_ += rest;
  answer_ += rest;
  held_.clear();
  state_ = State::kAnswer;
  return false;
}

bool ThoughtText::IsMark(std::string_view name) const {
  if (name == open_ || name == close_) return true;
  if (format_ == nullptr) return false;
  const auto has = [&](std::string_view text) { return text.find(name) != std::string_view::npos; };
  return has(open_) || has(close_) || has(format_->next) ||
         std::ranges::any_of(TextsOf(format_->answer_open), has);
}

void ThoughtText::Think(std::string_view text) {
  if (text.empty()) return;
  reasoning_ += text;
  if (on_reasoning) on_reasoning(text);
}

void Follow(const std::shared_ptr<ThoughtText>& text, GenerateOptions& options) {
  if (text == nullptr) return;
  text->on_reasoning = std::move(options.on_reasoning);
  if (options.on_report) {
    // It comes first, so it is what the text is taken apart by.
    const auto bytes = std::make_shared<std::string_view>();
    options.on_report = [text, bytes, told = std::move(options.on_report)](TokenReport report) {
      *bytes = text->Add(report.token, report.bytes);
      report.bytes = *bytes;
      return told(report);
    };
    if (!options.on_token) return;
    options.on_token = [bytes, told = std::move(options.on_token)](
                           TokenId token, std::string_view) { return told(token, *bytes); };
    return;
  }
  options.on_token = [text, told = std::move(options.on_token)](TokenId token,
                                                                std::string_view bytes) {
    const std::string_view answer = text->Add(token, bytes);
    return told ? told(token, answer) : true;
  };
}

}  // namespace pawl
