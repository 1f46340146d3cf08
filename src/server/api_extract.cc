// /v1/extract: a schema and texts in, records out. Each record is what `pawl extract` writes for
// its text with the same options.
#include <utility>

#include "src/base/file.h"
#include "src/engine/copied_fields.h"
#include "src/engine/copied_text.h"
#include "src/engine/document.h"
#include "src/engine/loaded_model.h"
#include "src/engine/record_details.h"
#include "src/engine/schema_view.h"
#include "src/server/api.h"

namespace pawl::server {
namespace {

constexpr size_t kMostTexts = 10'000;

// What the request wants to know of its records.
struct RecordWants {
  bool spans = true, details = false, logprobs = false, reports = false;
  bool single = false;                   // one text, whose error is that of the request
  SpanKind span_kind = SpanKind::kSpan;  // of `spans`
};

class ExtractFormatter : public Formatter {
 public:
  ExtractFormatter(std::shared_ptr<ServerState> server, std::vector<std::string> texts,
                   RecordWants wants)
      : server_(std::move(server)), texts_(std::move(texts)), wants_(wants) {}

  void Add(const CallOut&, const ChoiceOut&, std::span<const Delta>, size_t,
           std::string&) override {}
  void EndChoice(const CallOut&, const ChoiceOut& choice, std::string& text) override {
    text += "data: " + Record(choice) + "\n\n";
  }
  void End(const CallOut& out, std::string& text) override {
    JsonWriter json;
    json.Object().Key("usage").Raw(UsageOf(out)).Key("pawl").Raw(ReportOf(out)).End();
    text += "data: " + json.text() + "\n\n" + StreamEnd();
  }
  std::string StreamEnd() const override { return kStreamEnd; }
  HttpReply Whole(const CallOut& out) override {
    if (wants_.single && out.choices[0].error) return out.choices[0].error->ToReply();
    JsonWriter json;
    json.Object().Key("id").String("extract-" + out.id).Key("object").String("extract");
    json.Key("created").Int(out.created).Key("model").String(out.model).Key("records").Array();
    for (const ChoiceOut& choice : out.choices) json.Raw(Record(choice));
    json.End().Key("usage").Raw(UsageOf(out)).Key("pawl").Raw(ReportOf(out)).End();
    HttpReply reply;
    reply.body = json.Take();
    return reply;
  }

 private:
  std::string Record(const ChoiceOut& choice) const {
    JsonWriter json;
    json.Object().Key("index").Int(choice.index);
    if (choice.error) return json.Key("error").Raw(choice.error->Object()).End().Take();
    const Result<json::Value> record = json::Parse(choice.content);
    if (!record.ok()) {  // cut by the budget, or without a constraint
      return json.Key("text")
          .String(choice.content)
          .Key("finish_reason")
          .String(choice.finish)
          .End()
          .Take();
    }
    RecordLine line;
    line.index = choice.index;
    line.record = choice.content;
    line.reasoning = choice.reasoning;
    if (wants_.details) {
      line.members = DetailsJson(choice.details);
      if (choice.chunks > 0) line.members += "," + ConflictsJson(choice.conflicts);
    } else if (wants_.spans && choice.chunks > 0) {
      JsonWriter spans;
      spans.Object();
      for (const ValueDetails& one : choice.details) {
        if (!one.span) continue;
        spans.Key(one.pointer).Array().Int(one.span->begin).Int(one.span->end).End();
      }
      line.members = "\"spans\":" + spans.End().Take();
    } else if (wants_.spans) {
      JsonWriter spans;
      spans.Object();
      const CopiedText text(server_->model->tokenizer(), texts_[static_cast<size_t>(choice.index)]);
      for (const Span& span : text.Spans(*record, wants_.span_kind)) {
        spans.Key(span.pointer).Array().Int(static_cast<int64_t>(span.begin));
        spans.Int(static_cast<int64_t>(span.end)).End();
      }
      line.members = "\"spans\":" + spans.End().Take();
    }
    const auto add = [&line](const char* name, const std::string& value) {
      line.members += (line.members.empty() ? "\"" : ",\"") + std::string(name) + "\":" + value;
    };
    if (choice.chunks > 0) add("chunks", std::to_string(choice.chunks));
    if (wants_.logprobs) add("logprobs", ChatLogprobs(*server_, choice, 0));
    if (wants_.reports) add("pawl_tokens", TokenReports(choice, 0));
    line.finish_reason = choice.finish;
    line.closed = choice.closed;
    line.closed_by = choice.closed_by;
    line.prompt_tokens = choice.stats.prompt_tokens;
    line.output_tokens = choice.stats.output_tokens;
    return line.Json();
  }

  const std::shared_ptr<ServerState> server_;
  const std::vector<std::string> texts_;
  const RecordWants wants_;
};

// What a request says of the prompt, schema and texts aside.
struct Asking {
  std::string instruction;
  std::vector<ExtractExample> examples;
  SchemaView view = SchemaView::kDefault;
  std::optional<double> prefer_text;
  std::string record, problem;  // of an earlier try
  bool close_repetition = true;
};

// "record" and "problem": an earlier record of the text, and what is wrong with it. The client
// checks records and asks again: the server runs no check of its own.
void ReadEarlierTry(const JsonReader& in, Asking& out) {
  for (const char* name : {"check", "checks", "retries", "max_retries"}) {
    if (!in[name].present()) continue;
    in[name].Unsupported(
        R"(is for the client: ask again with the refused "record" and the "problem" with it, or )"
        R"(give "sampler" with "checks")");
  }
  const JsonReader record = in["record"], problem = in["problem"];
  if (!record.present() && !problem.present()) return;
  if (!record.present()) record.Fail("is missing: the record that has the problem");
  if (!problem.present()) problem.Fail("is missing: what is wrong with the record");
  if (in["texts"].present()) record.Fail(R"(is of one text: give "text", not "texts")");
  if (in["document"].Bool(false)) record.Unsupported("is not for documents");
  if (!in.ok()) return;
  out.record = json::Dump(*record.value());
  out.problem = problem.String();
  if (in.ok() && out.problem.empty()) problem.Fail("is empty");
}

Asking ReadAsking(const JsonReader& in) {
  constexpr size_t kMostExamples = 100;
  Asking out;
  if (in["instruction"].present()) out.instruction = in["instruction"].String();
  const JsonReader examples = in["examples"].OptionalArray();
  if (examples.size() > kMostExamples) {
    examples.Fail("must have at most " + std::to_string(kMostExamples) + " examples",
                  ErrorCode::kLimit);
  }
  for (const JsonReader given : examples.items()) {
    const JsonReader one = given.Object(), record = one["record"];
    if (!record.present()) record.Fail("is missing");
    const std::string text = one["text"].String();
    if (in.ok()) out.examples.push_back({text, json::Dump(*record.value())});
  }
  if (const JsonReader view = in["schema_view"]; view.present()) {
    const std::string name = view.String();
    const std::optional<SchemaView> named = SchemaViewNamed(name);
    if (named) out.view = *named;
    if (!named) view.Fail(kSchemaViewNames);
  }
  ReadEarlierTry(in, out);
  if (double nats = 0; in["prefer_text"].Read(nats, 0, kMostPreferText)) out.prefer_text = nats;
  if (const JsonReader repetition = in["repetition"]; repetition.present()) {
    const std::string name = repetition.String();
    out.close_repetition = name != "allow";
    if (name != "allow" && name != "close") repetition.Fail(R"(must be "close" or "allow")");
  }
  return out;
}

// What a prompt without places for it does not show.
void IgnoreUnshown(const Asking& asking, CallSpec& spec) {
  if (asking.view != SchemaView::kDefault) spec.ignored.emplace_back("/schema_view");
  if (asking.record.empty()) return;
  spec.ignored.emplace_back("/record");
  spec.ignored.emplace_back("/problem");
}

// "document" with "chunk_tokens" and "passes".
std::optional<DocumentOptions> ReadDocument(const JsonReader& in, const LoadedModel& model) {
  const bool document = in["document"].Bool(false);
  DocumentOptions out;
  for (const auto& [name, field] :
       {std::pair("chunk_tokens", &out.chunk_tokens), std::pair("passes", &out.passes)}) {
    const JsonReader given = in[name];
    if (given.Read(*field, 0, model.context_length()) && !document) {
      given.Fail("needs \"document\": true");
    }
  }
  if (!document || !in.ok()) return std::nullopt;
  if (Status status = CheckDocument(out, model); !status.ok()) {
    const std::string place = in[status.error().place].place();
    in.Fail(Error{status.error().code, status.error().message, place});
  }
  return out;
}

// What a request for documents may not ask for.
void CheckDocumentRequest(const JsonReader& in, const CallSpec& spec) {
  const JsonReader document = in["document"];
  if (spec.together.any()) document.Unsupported("is for records that are drawn alone");
  if (!spec.stop.empty()) in["stop"].Unsupported("is not for documents");
  const bool thinks =
      spec.thinking.mode == Thinking::Mode::kAuto || spec.thinking.mode == Thinking::Mode::kTokens;
  if (thinks || spec.free_first > 0) document.Unsupported("comes without thoughts");
}

// The schema of the request: "schema", or a template of NuExtract under "template".
std::string ReadSchema(const JsonReader& in) {
  const JsonReader schema = in["schema"], shape = in["template"];
  if (!shape.present()) {
    if (!schema.present()) {
      schema.Fail("is missing");
    } else if (!schema.IsObject() && !schema.value()->is_bool()) {
      schema.Fail("must be a JSON Schema, an object");
    }
    return in.ok() ? json::Dump(*schema.value()) : "";
  }
  if (schema.present()) shape.Fail("is a second schema: #/schema is there too");
  if (!in.ok()) return "";
  Result<std::string> made = SchemaOfTemplate(*shape.value());
  if (made.ok()) return *std::move(made);
  shape.Fail(
      Error{made.error().code, made.error().message, shape.place() + made.error().place.substr(1)});
  return "";
}

}  // namespace

Status StartExtract(const ApiRequest& request) {
  const JsonReader in = JsonReader(request.body).Object();
  CallSpec spec;
  spec.route = "/v1/extract";
  const JsonReader texts = in["texts"].OptionalArray(), text = in["text"];
  const std::string schema_text = ReadSchema(in);
  const char* const schema_place = in["template"].present() ? "#/template" : "#/schema";
  if (texts.present() == text.present()) {
    text.Fail(R"(must be given: one "text", or a list of "texts")");
  }
  if (texts.present() && (texts.size() == 0 || texts.size() > kMostTexts)) {
    texts.Fail("must have 1 to " + std::to_string(kMostTexts) + " texts, not " +
                   std::to_string(texts.size()),
               ErrorCode::kLimit);
  }
  if (!in.ok()) return in.error();
  std::vector<std::string> all;
  const Asking asking = ReadAsking(in);
  if (!in.ok()) return in.error();
  const LoadedModel& model = request.server->model->loaded();
  const std::optional<DocumentOptions> document = ReadDocument(in, model);
  if (!in.ok()) return in.error();
  ExtractInput asked{.schema = schema_text,
                     .text = {},
                     .instruction = asking.instruction,
                     .examples = asking.examples,
                     .view = asking.view,
                     .prefer_text = asking.prefer_text};
  model.choices().Apply(asked);
  const auto add = [&](const JsonReader& one) {
    all.push_back(one.String());
    if (Status status = CheckExtractText(all.back()); !status.ok()) {
      one.Fail(InFile(one.place(), status.error()));
    }
    PromptSpec prompt;
    prompt.kind = PromptSpec::Kind::kExtract;
    prompt.text = all.back();
    prompt.schema = schema_text;
    prompt.instruction = asked.instruction;
    prompt.examples = asked.examples;
    prompt.view = asked.view;
    prompt.record = asking.record;
    prompt.problem = asking.problem;
    prompt.prefer_text = asked.prefer_text;
    prompt.document = document;
    prompt.pointer = one.place();
    spec.prompts.push_back(std::move(prompt));
  };
  if (text.present()) add(text);
  for (const JsonReader one : texts.items()) add(one);
  const Result<json::Value> tree = json::Parse(schema_text);
  const RecordWants wants = {.spans = in["spans"].Bool(true),
                             .details = in["details"].Bool(false),
                             .logprobs = in["logprobs"].Bool(false),
                             .reports = in["token_report"].Bool(false),
                             .single = text.present(),
                             .span_kind = tree.ok() ? SpanKindOf(*tree) : SpanKind::kSpan};
  spec.options.details = wants.details;
  if (wants.logprobs) {
    spec.options.logprobs = 0;
    in["top_logprobs"].Read(spec.options.logprobs, 0, 20);
  }
  spec.want_tokens = wants.logprobs || wants.reports;
  if (Status status =
          ReadCommon(request, in, {"max_tokens"}, request.server->options.max_tokens, spec);
      !status.ok()) {
    return status;
  }
  if (spec.asked.answer.kind != ConstraintSpec::Kind::kNone) {
    return Error{ErrorCode::kInvalid, std::string("is a second constraint next to ") + schema_place,
                 spec.asked.answer.pointer};
  }
  if (!spec.asked.tools.empty()) in["tools"].Unsupported("is not for this route");
  spec.asked.answer.kind = ConstraintSpec::Kind::kJsonSchema;
  spec.asked.answer.text = schema_text;
  spec.asked.answer.pointer = schema_place;
  spec.asked.layout.bind_source = spec.asked.layout.source.empty();
  spec.asked.layout.FillIn(model.ExtractOptions(""));
  if (!(model.extract().ok() && model.extract()->shows_views())) IgnoreUnshown(asking, spec);
  if (asking.prefer_text && (spec.together.any() || !spec.asked.layout.bind_source))
    spec.ignored.emplace_back("/prefer_text");
  if (document) CheckDocumentRequest(in, spec);
  if (document && (wants.logprobs || wants.reports)) {
    in["document"].Unsupported("comes without tokens");
  }
  if (wants.details && spec.together.any()) {
    in["details"].Unsupported("come with records that are drawn alone");
  }
  spec.options.close_repetition = asking.close_repetition;
  // As the command: greedy unless it says otherwise, seed 0, always complete.
  if (!in["temperature"].present()) spec.options.sampling.temperature = 0;
  if (!in["seed"].present()) spec.options.sampling.seed = 0;
  if (spec.options.at_budget == AtBudget::kCloseOrCut) spec.options.at_budget = AtBudget::kClose;
  if (spec.draws() != 1) in["n"].Unsupported("must be 1 on this route");
  if (!in.ok()) return in.error();
  spec.one_by_one = true;
  Call::Start(request.server, request.exchange, std::move(spec),
              std::make_unique<ExtractFormatter>(request.server, std::move(all), wants));
  return {};
}

}  // namespace pawl::server
