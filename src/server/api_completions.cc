// /v1/completions, and llama.cpp's /completion and /infill.
#include <utility>

#include "src/decode/sampler_stages.h"
#include "src/server/api.h"

namespace pawl::server {
namespace {

class CompletionFormatter : public OpenAiFormatter {
 public:
  using OpenAiFormatter::OpenAiFormatter;

  void Add(const CallOut& out, const ChoiceOut& choice, std::span<const Delta> deltas,
           size_t first_token, std::string& text) override {
    std::string added;
    for (const Delta& delta : deltas) {
      if (delta.kind == Delta::Kind::kContent) added += delta.text;
      if (delta.kind != Delta::Kind::kReasoning) continue;
      Chunk(out, choice.index, "reasoning_content", json::Quote(delta.text), "null", "null", "",
            text);
    }
    if (added.empty() && !wants_.logprobs && !wants_.reports) return;
    Chunk(out, choice.index, "text", json::Quote(added), "null",
          wants_.logprobs ? Logprobs(choice, first_token) : "null",
          wants_.reports ? TokenReports(choice, first_token) : "", text);
  }
  void EndChoice(const CallOut& out, const ChoiceOut& choice, std::string& text) override {
    Chunk(out, choice.index, "text", "\"\"", json::Quote(choice.finish), "null", "", text);
  }

 protected:
  void Said(const ChoiceOut& choice, JsonWriter& json) const override {
    json.Key("text").String(choice.content);
    if (!choice.reasoning.empty()) json.Key("reasoning_content").String(choice.reasoning);
  }

  void Head(const CallOut& out, bool, JsonWriter& json) const override {
    json.Object().Key("id").String("cmpl-" + out.id).Key("object").String("text_completion");
    json.Key("created").Int(out.created).Key("model").String(out.model);
  }

  // {"tokens", "token_logprobs", "top_logprobs", "text_offset"}, parallel lists.
  std::string Logprobs(const ChoiceOut& choice, size_t first) const override {
    const Vocabulary& vocabulary = *server_->model->vocabulary();
    JsonWriter tokens, logprobs, tops, offsets;
    tokens.Array();
    logprobs.Array();
    tops.Array();
    offsets.Array();
    size_t offset = 0;
    for (size_t i = 0; i < choice.tokens.size(); ++i) {
      const TokenEntry& entry = choice.tokens[i];
      const std::string text = ShownBytes(entry.bytes);
      if (i >= first) {
        tokens.String(text);
        offsets.Int(static_cast<int64_t>(offset));
        if (entry.in_prompt && i == 0) {
          logprobs.Null();
          tops.Null();
        } else {
          logprobs.Number(entry.logprob);
          tops.Object();
          bool has_own = false;
          for (const TokenLogprob& one : entry.top) {
            tops.Key(ShownBytes(vocabulary.bytes(one.token))).Number(one.logprob);
            has_own = has_own || one.token == entry.token;
          }
          if (!has_own && entry.top.empty()) tops.Key(text).Number(entry.logprob);
          tops.End();
        }
      }
      for (const char c : text) offset += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
    }
    JsonWriter json;
    json.Object().Key("tokens").Raw(tokens.End().text());
    json.Key("token_logprobs").Raw(logprobs.End().text());
    json.Key("top_logprobs").Raw(tops.End().text());
    json.Key("text_offset").Raw(offsets.End().text());
    return json.End().Take();
  }
};

// llama.cpp's own shape.
class LlamaFormatter : public Formatter {
 public:
  void Add(const CallOut& out, const ChoiceOut& choice, std::span<const Delta> deltas, size_t,
           std::string& text) override {
    std::string added;
    for (const Delta& delta : deltas) {
      if (delta.kind == Delta::Kind::kContent) added += delta.text;
    }
    JsonWriter json;
    json.Object().Key("index").Int(choice.index).Key("content").String(added);
    json.Key("stop").Bool(false).Key("model").String(out.model).End();
    text += "data: " + json.text() + "\n\n";
  }
  void End(const CallOut& out, std::string& text) override {
    for (const ChoiceOut& choice : out.choices) {
      if (choice.absent) continue;
      text += "data: " + Last(out, choice, "") + "\n\n";
    }
  }
  HttpReply Whole(const CallOut& out) override {
    HttpReply reply;
    if (out.choices.size() == 1 && !out.fewer) {
      reply.body = Last(out, out.choices[0], out.choices[0].content);
      return reply;
    }
    JsonWriter json;
    json.Array();
    for (const ChoiceOut& choice : out.choices) json.Raw(Last(out, choice, choice.content));
    reply.body = json.End().Take();
    return reply;
  }

 private:
  static std::string Last(const CallOut& out, const ChoiceOut& choice, const std::string& content) {
    const GenerationStats& stats = choice.stats;
    const bool word = !choice.stop_string.empty();
    const bool limit = choice.finish == "length";
    JsonWriter json;
    json.Object().Key("index").Int(choice.index).Key("content").String(content);
    if (!choice.reasoning.empty()) json.Key("reasoning_content").String(choice.reasoning);
    json.Key("stop").Bool(true).Key("model").String(out.model);
    json.Key("stop_type").String(word ? "word" : limit ? "limit" : "eos");
    json.Key("stopping_word").String(choice.stop_string);
    json.Key("tokens_predicted").Int(stats.output_tokens);
    json.Key("tokens_evaluated").Int(stats.prompt_tokens);
    json.Key("tokens_cached").Int(stats.reused_tokens).Key("truncated").Bool(false);
    json.Key("timings").Object().Key("prompt_n").Int(stats.prompt_tokens - stats.reused_tokens);
    json.Key("prompt_ms").Number(stats.prefill_seconds * 1e3);
    json.Key("predicted_n").Int(stats.output_tokens);
    json.Key("predicted_ms").Number(stats.decode_seconds * 1e3).End();
    return json.Key("pawl").Raw(ReportOf(out)).End().Take();
  }
};

}  // namespace

Status StartCompletion(const ApiRequest& request) {
  const JsonReader in = JsonReader(request.body).Object();
  CallSpec spec;
  spec.route = "/v1/completions";
  if (Status status = ReadPrompts(in["prompt"], *request.server, spec.prompts); !status.ok()) {
    return status;
  }
  const std::string suffix = in["suffix"].String("");
  for (PromptSpec& prompt : spec.prompts) {
    if (suffix.empty()) break;
    if (prompt.kind == PromptSpec::Kind::kTokens) {
      in["suffix"].Unsupported("needs a prompt that is a text");
    }
    prompt.kind = PromptSpec::Kind::kInfill;
    prompt.suffix = suffix;
  }
  in["echo"].Read(spec.echo);
  // An editor that marks the gap itself: with the language known it is completed as any other.
  if (std::optional<CodeSpec> code = ReadCode(in); code && !spec.echo && spec.prompts.size() == 1) {
    PromptSpec& prompt = spec.prompts[0];
    if (prompt.kind == PromptSpec::Kind::kText) ReadGapMarks(prompt, request.server->model->fim());
    if (prompt.kind == PromptSpec::Kind::kInfill) spec.code = std::move(code);
  }
  const bool logprobs = in["logprobs"].Read(spec.options.logprobs, 0, 20);
  const bool reports = in["token_report"].Bool(false);
  const bool usage = in["stream_options"].OptionalObject()["include_usage"].Bool(false);
  spec.want_tokens = logprobs || reports;
  if (Status status = ReadCommon(request, in, {"max_tokens", "max_completion_tokens"}, 16, spec);
      !status.ok()) {
    return status;
  }
  if (spec.code) spec.code->has_grammar = HasConstraint(spec.asked);
  if (spec.echo && spec.stream) in["echo"].Unsupported("is there without a stream only");
  if (spec.prompts.size() * static_cast<size_t>(spec.draws()) > 2048) {
    in["n"].Fail("asks for more than 2048 outputs in all", ErrorCode::kLimit);
  }
  if (!in.ok()) return in.error();
  const OpenAiFormatter::Wants wants = {logprobs, usage, reports};
  Call::Start(request.server, request.exchange, std::move(spec),
              std::make_unique<CompletionFormatter>(request.server, wants));
  return {};
}

Status StartInfill(const ApiRequest& request, bool infill) {
  const JsonReader in = JsonReader(request.body).Object();
  CallSpec spec;
  spec.route = infill ? "/infill" : "/completion";
  if (infill) {
    PromptSpec prompt;
    prompt.kind = PromptSpec::Kind::kInfill;
    prompt.pointer = "#/input_prefix";
    // "prompt": what stands behind the prefix already.
    prompt.text = in["input_prefix"].String("") + in["prompt"].String("");
    prompt.suffix = in["input_suffix"].String("");
    for (const JsonReader file : in["input_extra"].OptionalArray().items()) {
      file.Object();
      prompt.files.emplace_back(file["filename"].String(""), file["text"].String(""));
    }
    ReadGapMarks(prompt);
    spec.code = ReadCode(in);
    spec.prompts = {std::move(prompt)};
  } else if (Status status = ReadPrompts(in["prompt"], *request.server, spec.prompts);
             !status.ok()) {
    return status;
  }
  if (const JsonReader images = in["image_data"].OptionalArray(); images.size() > 0) {
    images.Unsupported("are not taken: this server takes text");
  }
  if (Status status = ReadCommon(request, in, {"n_predict", "max_tokens"}, 128, spec);
      !status.ok()) {
    return status;
  }
  // Masks are filled without stages.
  const bool fills = request.server->model->loaded().model().filling().has_value();
  if (std::string& order = spec.options.sampling.stages.order; order.empty() && !fills) {
    order = kLlamaStages;
  }
  if (spec.code) spec.code->has_grammar = HasConstraint(spec.asked);
  Call::Start(request.server, request.exchange, std::move(spec),
              std::make_unique<LlamaFormatter>());
  return {};
}

}  // namespace pawl::server
