// Figures of tokens become figures of values by the places of both in the text of the answer. A
// token belongs to a value where it has a byte of what stands from behind the colon to the value's
// end.
//
// Alternatives are asked for when the output has ended, one choice after the other, as
// classifications in the same batch: a text that begins with the output so far goes on with one of
// the choices. Where the value begins inside a token, the question begins in front of this token,
// and all choices begin with its first bytes.
#include "src/engine/record_details.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "schemas/scalar/json_string.h"
#include "src/base/failure.h"
#include "src/base/json.h"
#include "src/decode/search/run.h"
#include "src/engine/copied_text.h"
#include "src/engine/record_values.h"
#include "src/engine/schema_view.h"

namespace pawl {
namespace {

constexpr size_t kMostQuestions = 200;     // of a record
constexpr size_t kMostAlternatives = 256;  // of a choice
constexpr int64_t kQuestionRows = 1024;

// The answer of an output, with the places of its tokens.
struct AnswerText {
  AnswerText(const Vocabulary& vocabulary, const Generation& output)
      : first(output.tokens.size() - std::min(output.figures.size(), output.tokens.size())) {
    for (size_t i = first; i < output.tokens.size(); ++i) {
      begins.push_back(text.size());
      if (!vocabulary.is_special(output.tokens[i])) text += vocabulary.bytes(output.tokens[i]);
    }
    begins.push_back(text.size());
  }
  // The token that has the byte, counted from `first`. REQUIRES: place < text.size().
  size_t TokenAt(size_t place) const {
    return static_cast<size_t>(std::ranges::upper_bound(begins, place) - begins.begin()) - 1;
  }

  const size_t first;  // of the output's tokens
  std::string text;
  std::vector<size_t> begins;  // of the tokens, and the end
};

bool IsInRecord(const json::Value& record, const std::string& pointer) {
  const json::Value* at = &record;
  for (const std::string& token : json::PointerTokens(pointer)) {
    at = at->type == json::Type::kArray ? json::ItemAt(*at, token) : at->Find(token);
    if (at == nullptr) return false;
  }
  return true;
}

// What may stand in the place of a value: texts that the grammar accepts there, and their values.
struct Choices {
  std::vector<std::string> texts, values;
  bool has_own = false;  // the value that the output has is among them
};

Choices ChoicesOf(const DetailsRequest& request, const json::Value& schema,
                  const AnswerText& answer, const ValuePlace& place) {
  Choices out;
  std::optional<std::vector<std::string>> found = ChoicesAt(schema, place.pointer);
  if (!found || found->size() > kMostAlternatives) return out;
  const std::string_view text = answer.text;
  const std::optional<State> here = request.grammar->Start().Advance(text.substr(0, place.begin));
  if (!here) return out;
  const std::string_view own = text.substr(place.begin, place.end - place.begin);
  // A key that may be left out may be written as null.
  found->emplace_back("null");
  for (const std::string& value : *found) {
    for (std::string written : {value, schema::EscapeBeyondAscii(value)}) {
      const bool is_own = written == own;
      // A number ends with what stands behind it.
      const bool number = written[0] == '-' || (written[0] >= '0' && written[0] <= '9');
      if (number) written += text.substr(place.end, 1);
      if (std::ranges::find(out.texts, written) != out.texts.end()) break;
      if (!here->Advance(written)) continue;
      out.has_own = out.has_own || is_own;
      out.texts.push_back(written);
      out.values.push_back(value);
      break;
    }
  }
  return out;
}

void AddQuestion(const DetailsRequest& request, const json::Value& schema, const AnswerText& answer,
                 const ValuePlace& place, const Generation& output, PlannedDetails& out) {
  Choices choices = ChoicesOf(request, schema, answer, place);
  if (choices.texts.size() < 2 || !choices.has_own) return;
  ChoiceQuestion question;
  question.value = out.values.size() - 1;
  const size_t token = answer.TokenAt(place.begin);
  const size_t from = answer.begins[token];
  question.prompt = request.prompt;
  question.prompt.insert(question.prompt.end(), output.tokens.begin(),
                         output.tokens.begin() + static_cast<ptrdiff_t>(answer.first + token));
  for (std::string& text : choices.texts) {
    text.insert(0, std::string_view(answer.text).substr(from, place.begin - from));
  }
  question.texts = std::move(choices.texts);
  question.values = std::move(choices.values);
  out.questions.push_back(std::move(question));
}

// The figures of the value's tokens. All of them are known.
void AddFigures(const AnswerText& answer, const ValuePlace& place, const Generation& output,
                ValueDetails& value) {
  double log_probability = 0;
  bool closing = false;
  for (size_t i = answer.TokenAt(place.from); i < output.figures.size(); ++i) {
    if (answer.begins[i] >= place.end) break;
    if (answer.begins[i + 1] <= place.from) continue;
    const TokenFigure& figure = output.figures[i];
    log_probability += double{figure.logprob};
    value.surprise += double{figure.surprise};
    closing = closing || figure.closing;
  }
  if (!closing) value.probability = std::exp(log_probability);
}

// One output whose alternatives are asked for.
class DetailsJob : public std::enable_shared_from_this<DetailsJob> {
 public:
  DetailsJob(BatchEngine& batch, const LoadedModel& model,
             std::shared_ptr<const DetailsRequest> request, Result<Generation> output,
             std::function<void(Result<Generation>)> done)
      : batch_(batch),
        model_(model),
        request_(std::move(request)),
        output_(std::move(output)),
        done_(std::move(done)) {}

  void Start() {
    const Status planned = Guarded([this]() -> Status {
      if (!output_.ok()) return {};
      PlannedDetails plan =
          PlanDetails(*request_, model_.tokenizer(), *model_.vocabulary(), *output_);
      output_->details = std::move(plan.values);
      if (output_->stop != StopReason::kCancelled) questions_ = std::move(plan.questions);
      return {};
    });
    if (!planned.ok()) output_ = CopyOf(planned.error());
    Next();
  }

 private:
  // A question that cannot be asked is the last one.
  void Next() noexcept {
    while (next_ < questions_.size()) {
      const Status asked = Guarded([this]() -> Status {
        Ask(questions_[next_]);
        return {};
      });
      if (asked.ok()) return;
      questions_.clear();
    }
    done_(std::move(output_));
  }

  void Ask(const ChoiceQuestion& question) {
    SearchInput input{model_.model(request_->adapter), *model_.vocabulary(), model_.encoder(),
                      question.prompt, nullptr};
    input.choices_go_on = true;
    ClassifyOptions options;
    options.choices = question.texts;
    options.exact_rows = kQuestionRows;
    const RequestId id =
        batch_.Add(MakeSearchWork(std::move(input), std::move(options),
                                  [self = shared_from_this()](Result<ClassifyResult> result) {
                                    self->Take(std::move(result));
                                  }),
                   request_->group);
    if (request_->asks) request_->asks(id);
  }

  void Take(Result<ClassifyResult> result) noexcept {
    if (!result.ok()) {  // cancelled, or no memory is left
      questions_.clear();
      return Next();
    }
    const ChoiceQuestion& question = questions_[next_++];
    (void)Guarded([&]() -> Status {
      std::vector<ValueDetails::Alternative> all;
      for (size_t i = 0; i < question.values.size(); ++i) {
        all.push_back({question.values[i], result->choices[i].probability});
      }
      std::ranges::stable_sort(all, std::ranges::greater(),
                               &ValueDetails::Alternative::probability);
      const bool found = std::ranges::any_of(result->choices, [](const ChoiceProbability& one) {
        return one.log_probability > kZeroWeight;
      });
      if (found) output_->details[question.value].alternatives = std::move(all);
      return {};
    });
    Next();
  }

  BatchEngine& batch_;
  const LoadedModel& model_;
  const std::shared_ptr<const DetailsRequest> request_;
  Result<Generation> output_;
  const std::function<void(Result<Generation>)> done_;
  std::vector<ChoiceQuestion> questions_;
  size_t next_ = 0;
};

std::string DetailNumber(double value) {
  if (!std::isfinite(value)) return "null";
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.9g", value);
  return digits;
}

}  // namespace

PlannedDetails PlanDetails(const DetailsRequest& request, const Tokenizer& tokenizer,
                           const Vocabulary& vocabulary, const Generation& output) {
  PlannedDetails out;
  const AnswerText answer(vocabulary, output);
  size_t end = 0;
  const std::optional<std::vector<ValuePlace>> places = ValuesIn(answer.text, &end);
  if (!places) return out;
  const std::string written = answer.text.substr(0, end);
  const Result<json::Value> record =
      json::Parse(request.grammar ? request.grammar->Record(written) : written);
  if (!record.ok()) return out;
  const Result<json::Value> schema = json::Parse(request.schema);
  const SpanKind kind = schema.ok() ? SpanKindOf(*schema) : SpanKind::kSpan;
  std::map<std::string, ValueDetails::Span> spans;
  if (!request.text.empty()) {
    for (Span& span : CopiedText(tokenizer, request.text).Spans(*record, kind)) {
      spans[std::move(span.pointer)] = {
          static_cast<int64_t>(span.begin), static_cast<int64_t>(span.end),
          static_cast<int64_t>(span.begin_byte), static_cast<int64_t>(span.end_byte)};
    }
  }
  const bool asks = request.grammar && schema.ok();
  for (const ValuePlace& place : *places) {
    // Keys whose null means that they are not there.
    if (!IsInRecord(*record, place.pointer)) continue;
    ValueDetails& value = out.values.emplace_back();
    value.pointer = place.pointer;
    if (const auto span = spans.find(place.pointer); span != spans.end()) value.span = span->second;
    AddFigures(answer, place, output, value);
    if (asks && value.probability && out.questions.size() < kMostQuestions) {
      AddQuestion(request, *schema, answer, place, output, out);
    }
  }
  return out;
}

void AddDetails(BatchEngine& batch, const LoadedModel& model,
                std::shared_ptr<const DetailsRequest> request, Result<Generation> output,
                std::function<void(Result<Generation>)> done) {
  std::make_shared<DetailsJob>(batch, model, std::move(request), std::move(output), std::move(done))
      ->Start();
}

std::string DetailsJson(std::span<const ValueDetails> details) {
  std::string spans, bytes, probabilities, surprises, alternatives;
  for (const ValueDetails& value : details) {
    const auto add = [key = json::Quote(value.pointer)](std::string& to, const std::string& what) {
      to += (to.empty() ? "" : ",") + key + ":" + what;
    };
    const auto pair = [](int64_t begin, int64_t end) {
      return "[" + std::to_string(begin) + "," + std::to_string(end) + "]";
    };
    if (value.span) {
      add(spans, pair(value.span->begin, value.span->end));
      add(bytes, pair(value.span->begin_byte, value.span->end_byte));
    }
    add(probabilities, value.probability ? DetailNumber(*value.probability) : "null");
    add(surprises, DetailNumber(value.surprise));
    if (value.alternatives.empty()) continue;
    std::string list;
    for (const ValueDetails::Alternative& one : value.alternatives) {
      list += (list.empty() ? "{\"value\":" : ",{\"value\":") + one.value +
              ",\"probability\":" + DetailNumber(one.probability) + "}";
    }
    add(alternatives, "[" + list + "]");
  }
  return "\"spans\":{" + spans + "},\"byte_spans\":{" + bytes + "},\"probability\":{" +
         probabilities + "},\"surprise\":{" + surprises + "},\"alternatives\":{" + alternatives +
         "}";
}

std::string RecordLine::Json() const {
  std::string out = "{\"index\":" + std::to_string(index) + ",\"record\":";
  out += record;
  if (!reasoning.empty()) out += ",\"reasoning\":" + json::Quote(reasoning);
  if (!members.empty()) out += "," + members;
  out += ",\"finish_reason\":" + json::Quote(finish_reason);
  out += closed ? ",\"closed\":true" : ",\"closed\":false";
  const bool says_why = closed_by != ClosedBy::kNothing;
  if (closed) out += ",\"closed_by\":" + (says_why ? json::Quote(NameOf(closed_by)) : "null");
  out += ",\"prompt_tokens\":" + std::to_string(prompt_tokens);
  return out + ",\"output_tokens\":" + std::to_string(output_tokens) + "}";
}

}  // namespace pawl
