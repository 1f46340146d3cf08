// Members that mean the same in all APIs, and parts of answers that look the same.
#include <algorithm>
#include <charconv>
#include <random>
#include <utility>

#include "src/base/os/random.h"
#include "src/decode/sampler_stages.h"
#include "src/engine/copied_fields.h"
#include "src/engine/search_json.h"
#include "src/server/api.h"
#include "src/server/api_error.h"

namespace pawl::server {
namespace {

constexpr size_t kMostStops = 16;
constexpr size_t kMostBiases = 4096;
constexpr int kMostTokens = 1 << 24;
constexpr size_t kMostPrompts = 2048;
constexpr const char* kNoPrompt = "must be a text, a list of token ids, or a list of either";

void ReadBias(const ServerState& server, const JsonReader& in, CallSpec& spec) {
  if (in.OptionalObject().size() > kMostBiases) {
    return in.Fail("has more than " + std::to_string(kMostBiases) + " tokens", ErrorCode::kLimit);
  }
  if (!in.IsObject()) return;
  for (const auto& [key, value] : in.value()->members) {
    int token = -1;
    const char* const end = key.data() + key.size();
    const auto [at, error] = std::from_chars(key.data(), end, token);
    const std::optional<double> number = json::NumberOf(value);
    if (error != std::errc() || at != end || token < 0 || !number || *number < -100 ||
        *number > 100 || token >= server.model->vocabulary()->size()) {
      return in[key].Fail("must be a number from -100 to 100 for a token's id");
    }
    spec.options.logit_bias.emplace_back(token, static_cast<float>(*number));
  }
}

void ReadStop(const JsonReader& in, CallSpec& spec) {
  in["stop"].ReadStrings(spec.stop, kMostStops);
  in["include_stop_str_in_output"].Read(spec.include_stop);
  for (const std::string& stop : spec.stop) {
    if (stop.empty()) in["stop"].Fail("has an empty string");
    if (stop.size() > 1024) in["stop"].Fail("has a string of more than 1024 bytes");
  }
}

json::Value BoolValue(bool value) {
  json::Value out;
  out.type = value ? json::Type::kTrue : json::Type::kFalse;
  return out;
}

void SetArgument(json::Value& arguments, const std::string& name, json::Value value) {
  arguments.type = json::Type::kObject;
  if (arguments.Find(name) == nullptr) arguments.members.emplace_back(name, std::move(value));
}

// How much the model is to think, in the words of several APIs.
class ThinkingReader {
 public:
  ThinkingReader(const JsonReader& in, CallSpec& spec, json::Value& arguments)
      : in_(in), spec_(spec), arguments_(arguments) {}

  void Read() {
    const JsonReader given = in_["chat_template_kwargs"].OptionalObject();
    if (given.present()) arguments_ = *given.value();
    for (const char* name : {"enable_thinking", "thinking"}) {
      const JsonReader one = given[name];
      if (one.present()) Switch(one, one.Bool(), name);
    }
    const JsonReader budget = in_["thinking_budget"], enabled = in_["enable_thinking"];
    int tokens = 0;
    if (budget.Read(tokens, 0, kMostTokens)) Budget(budget, tokens);
    if (enabled.present()) Switch(enabled, enabled.Bool(), "enable_thinking");
    ReadEffort(in_["reasoning"]["effort"]);
    ReadEffort(in_["reasoning_effort"]);
    ReadThinking(in_["thinking"]);
    const JsonReader think = in_["think"];  // Ollama's
    if (!think.present()) return;
    if (think.value()->is_bool()) {
      Switch(think, think.Is(json::Type::kTrue), "enable_thinking");
    } else if (think.IsString() &&
               IsOneOf(think.String(), {"none", "minimal", "low", "medium", "high", "max", ""})) {
      ReadEffort(think);
    } else {
      think.Fail(R"(must be true, false, "low", "medium", "high" or "none", not )" +
                 json::Shown(*think.value()));
    }
  }

 private:
  using Mode = Thinking::Mode;

  static bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, text) != names.end();
  }
  // Off is stronger than a number, a number than auto.
  void Set(Mode mode, int tokens = 0) {
    Thinking& thinking = spec_.thinking;
    if (thinking.mode == Mode::kOff || (thinking.mode == Mode::kTokens && mode == Mode::kAuto)) {
      return;
    }
    thinking = {.mode = mode, .tokens = tokens};
  }
  void Wish(const JsonReader& at, const char* variable) {
    spec_.thinking_wishes.push_back({at.place().substr(1), variable});
  }
  void Budget(const JsonReader& at, int tokens) {
    Set(tokens == 0 ? Mode::kOff : Mode::kTokens, tokens);
    Wish(at, nullptr);
  }
  void Switch(const JsonReader& at, bool on, const char* variable) {
    Set(on ? Mode::kAuto : Mode::kOff);
    if (on) SetArgument(arguments_, variable, BoolValue(true));
    Wish(at, on ? variable : nullptr);
  }
  void ReadEffort(const JsonReader& at) {
    std::string effort;
    if (!at.Read(effort) || effort.empty()) return;
    if (effort == "none" || effort == "minimal") return Switch(at, false, nullptr);
    Set(Mode::kAuto);
    SetArgument(arguments_, "reasoning_effort", StringValue(effort));
    Wish(at, "reasoning_effort");
  }
  // "off", "auto", a number; or {"type": ..., "budget_tokens": ...}.
  void ReadThinking(const JsonReader& at) {
    if (!at.present()) return;
    if (at.IsObject()) {
      const JsonReader named = at["type"];
      const std::string type = named.String("enabled");
      int tokens = 0;
      if (!IsOneOf(type, {"enabled", "disabled", "auto", "adaptive"})) {
        return named.Fail(R"(must be "enabled", "disabled", "auto" or "adaptive", not )" +
                          json::Quote(type));
      }
      if (at["budget_tokens"].Read(tokens, 0, kMostTokens)) Budget(at["budget_tokens"], tokens);
      if (type == "disabled") Switch(at["type"], false, nullptr);
      return;
    }
    if (at.value()->is_bool()) return Switch(at, at.Is(json::Type::kTrue), "enable_thinking");
    if (at.Is(json::Type::kNumber)) {
      int tokens = 0;
      if (at.Read(tokens, 0, kMostTokens)) Budget(at, tokens);
      return;
    }
    const Result<Thinking> thinking = ParseThinking(at.String());
    if (!thinking.ok()) return at.Fail(thinking.error().message);
    Set(thinking->mode, thinking->tokens);
    if (thinking->mode != Mode::kAuto) Wish(at, nullptr);
  }

  const JsonReader& in_;
  CallSpec& spec_;
  json::Value& arguments_;
};

// Members that have no meaning for outputs that come together.
void CheckTogether(const JsonReader& in, bool extracts, CallSpec& spec) {
  if (spec.best_of > 0 && spec.best_of != spec.n && !in["use_beam_search"].Bool(false)) {
    in["best_of"].Unsupported("is for outputs that are drawn alone, and for use_beam_search");
  }
  spec.best_of = 0;
  if (!spec.options.logit_bias.empty()) {
    in["logit_bias"].Unsupported("is for outputs that are drawn alone");
  }
  if (!spec.stop.empty()) in["stop"].Unsupported("ends outputs that are drawn token by token");
  if (spec.together.classify && spec.n != 1) in["n"].Unsupported("must be 1 with classify");
  const bool chat = std::ranges::any_of(spec.prompts, [](const PromptSpec& prompt) {
    return prompt.kind == PromptSpec::Kind::kChat;
  });
  if ((chat || extracts) && spec.together.self_infills()) {
    in[in["search"].present() ? "search" : "self_infill"].Unsupported(
        "goes on with a prompt, not with a chat");
  }
  if (spec.want_tokens) in["logprobs"].Unsupported("come with outputs that are drawn alone");
}

}  // namespace

void ReadSampling(const JsonReader& in, CallSpec& spec) {
  SamplingParams& sampling = spec.options.sampling;
  in["temperature"].Read(sampling.temperature, 0, 100);
  if (in["top_p"].Read(sampling.top_p, 0, 1) && sampling.top_p <= 0) sampling.top_p = 1e-6f;
  int top_k = 0;
  if (in["top_k"].Read(top_k, -1, 1 << 30)) sampling.top_k = std::max(0, top_k);
  in["min_p"].Read(sampling.min_p, 0, 1);
  in["draft_lanes"].Read(sampling.draft_lanes, 1, kMostDraftLanes);
  in["presence_penalty"].Read(sampling.presence_penalty, -2, 2);
  in["frequency_penalty"].Read(sampling.frequency_penalty, -2, 2);
  in["repetition_penalty"].Read(sampling.repetition_penalty, 0.01, 100);
  in["repeat_penalty"].Read(sampling.repetition_penalty, 0.01, 100);
  ReadSamplerStages(in, sampling.stages);
  const Status stages = CheckSamplerStages(sampling.stages);
  if (in.ok() && !stages.ok()) in[stages.error().place].Fail(stages.error().message);
}

void ReadSeed(const JsonReader& in, CallSpec& spec) {
  int64_t seed = 0;
  if (in.Read(seed) && seed != -1) {
    spec.options.sampling.seed = static_cast<uint64_t>(seed);
  } else {
    thread_local std::mt19937_64 random{os::RandomSeed()};
    spec.options.sampling.seed = random();
  }
}

void AddIgnored(const JsonReader& in, CallSpec& spec) {
  constexpr size_t kMost = 256;
  for (const json::Member* member : in.Unread(kMost)) {
    spec.ignored.push_back(
        Shortened(json::PointerJoin(in.place(), member->first).substr(1), kMostPointerBytes));
  }
}

Status ReadCommon(const ApiRequest& request, const JsonReader& in,
                  std::initializer_list<const char*> max_names, int default_tokens,
                  CallSpec& spec) {
  ServerState& server = *request.server;
  if (Status status = CheckWrites(server.model->loaded()); !status.ok()) {
    return Error{status.error().code, status.error().message + ": see /v1/rerank", "#/model"};
  }
  spec.options.sampling.temperature = server.model->temperature();
  spec.options.max_tokens = default_tokens;
  // A search draws no tokens: what is not read is told as ignored.
  const bool contrasts =
      in["contrast"].present() || in["contrast_prompt"].present() || in["self_infill"].present();
  const bool searches =
      in["search"].present() || in["use_beam_search"].Bool(false) || in["classify"].Bool(false);
  if (!searches && !contrasts) ReadSampling(in, spec);
  if (!searches && contrasts) in["temperature"].Read(spec.options.sampling.temperature, 0, 100);
  ReadSeed(in["seed"], spec);
  for (const char* name : max_names) {
    int tokens = 0;
    if (!in[name].Read(tokens, -1, kMostTokens)) continue;
    if (tokens >= 0) {
      spec.options.max_tokens = tokens;
      spec.budget_pointer = in[name].place();
    }
    break;
  }
  in["n"].Read(spec.n, 1, kMostOutputs);
  if (in["best_of"].Read(spec.best_of, 1, kMostOutputs) && spec.best_of < spec.n) {
    in["best_of"].Fail("must be at least n, which is " + std::to_string(spec.n));
  }
  ReadStop(in, spec);
  ReadBias(server, in["logit_bias"], spec);
  in["stream"].Read(spec.stream);
  const bool extracts = !spec.prompts.empty() && spec.prompts[0].kind == PromptSpec::Kind::kExtract;
  ReadTogether(in,
               {spec.n, spec.draws(), server.options.search_rows, server.options.search_nodes,
                extracts, server.options.check_commands, spec.options},
               spec.together);
  if (spec.together.any()) {
    CheckTogether(in, extracts, spec);
  } else if (spec.draws() > spec.n && spec.stream) {
    in["best_of"].Unsupported("must be n where the answer is a stream");
  }
  spec.options.at_budget =
      in["close_at_budget"].Bool(true) ? AtBudget::kCloseOrCut : AtBudget::kCut;
  in["mask_surprise"].Read(spec.options.mask_surprise);
  const JsonReader diffusion = in["diffusion"].OptionalObject();
  ReadDiffusionOptions(diffusion, spec.options.diffusion);
  RefuseUnread(diffusion);
  if (spec.together.any() && in["diffusion"].present()) {
    in["diffusion"].Unsupported("is for outputs that are drawn alone");
  }
  in["drafts"].Read(spec.options.drafts);
  if (in["free_first"].Read(spec.free_first, 0, kMostTokens) && spec.free_first > 0 &&
      spec.together.any()) {
    in["free_first"].Unsupported("is for outputs that are drawn alone");
  }
  spec.options.draft_owner = request.owner;
  spec.key = request.key;
  spec.adapter = request.adapter;
  json::Value arguments;
  ThinkingReader(in, spec, arguments).Read();
  if (!in.ok()) return in.error();
  for (PromptSpec& prompt : spec.prompts) {
    prompt.arguments = arguments;
    const bool chat = prompt.kind == PromptSpec::Kind::kChat;
    prompt.thinking = ThinkingFor(spec.thinking, chat);
    if (double nats = 0; chat && in["prefer_text"].Read(nats, 0, kMostPreferText))
      prompt.prefer_text = nats;
  }
  const KnownTools::Match* const match = request.tools;
  Result<RequestConstraints> asked =
      ReadConstraints(in, match == nullptr ? nullptr : match->tools.get());
  if (!asked.ok()) return asked.error();
  if (match != nullptr) {
    server.known_tools.Keep(request.exchange->request().body, *match, asked->tools);
  }
  spec.asked = *std::move(asked);
  if (spec.together.classify) {
    if (spec.asked.answer.kind != ConstraintSpec::Kind::kChoice || !spec.asked.tools.empty()) {
      const bool plain = in["choice"].present();
      return Error{ErrorCode::kInvalid,
                   plain
                       ? "needs a choice as structured_outputs.choice or guided_choice, not choice"
                       : "needs a choice, such as structured_outputs.choice",
                   in.place() + "/classify"};
    }
    spec.together.classify->choices = spec.asked.answer.choices;
  }
  if (spec.asked.layout.max_string < 0) spec.asked.layout.max_string = server.options.max_string;
  // What says who asks, or where an answer is to be kept, changes no output.
  in.Ignore({"model", "user", "metadata", "store", "service_tier", "keep_alive",
             "safety_identifier", "prompt_cache_key", "cache_prompt"});
  AddIgnored(in, spec);
  return {};
}

Status ReadChatPrompt(const JsonReader& messages, CallSpec& spec) {
  if (messages.OptionalArray().size() == 0) {
    messages.Fail("must be a list of messages that is not empty");
  }
  if (!messages.ok()) return messages.error();
  PromptSpec prompt;
  prompt.kind = PromptSpec::Kind::kChat;
  prompt.messages = *messages.value();
  prompt.pointer = messages.place();
  spec.prompts = {std::move(prompt)};
  return {};
}

Status ReadPrompts(const JsonReader& in, const ServerState& server,
                   std::vector<PromptSpec>& prompts) {
  const auto add = [&](const json::Value& one) {
    PromptSpec prompt;
    prompt.pointer = in.place();
    // Editors spell the marks of a gap in the prompt; what they spell is meant.
    prompt.parse_special = true;
    if (one.type == json::Type::kString) {
      prompt.text = one.text;
    } else if (one.type == json::Type::kArray) {
      prompt.kind = PromptSpec::Kind::kTokens;
      for (const json::Value& item : one.items) {
        const std::optional<int64_t> token = json::WholeOf(item);
        if (!token || *token < 0 || *token >= server.model->info().vocabulary_size) {
          return in.Fail("has something that is no token id of this model");
        }
        prompt.tokens.push_back(static_cast<TokenId>(*token));
      }
    } else {
      return in.Fail(kNoPrompt);
    }
    prompts.push_back(std::move(prompt));
  };
  if (!in.present()) {
    in.Fail("is missing");
  } else if (in.IsString() || in.Item(0).Is(json::Type::kNumber)) {
    add(*in.value());
  } else if (!in.IsArray() || in.size() == 0) {
    in.Fail(kNoPrompt);
  } else if (in.size() > kMostPrompts) {
    in.Fail("has more than " + std::to_string(kMostPrompts) + " prompts", ErrorCode::kLimit);
  } else {
    for (const json::Value& one : in.value()->items) {
      if (in.ok()) add(one);
    }
  }
  return in.status();
}

void ReadGapMarks(PromptSpec& prompt, const FimTemplate* own) {
  const std::optional<FimParts> parts = ParseFimPrompt(prompt.text);
  if (!parts) return;
  if (prompt.kind == PromptSpec::Kind::kText) {
    if (own == nullptr || parts->form != own) return;
    if (!prompt.text.starts_with(own->suffix_first ? own->suffix : own->prefix)) return;
  }
  prompt.kind = PromptSpec::Kind::kInfill;
  prompt.text = parts->prefix;
  prompt.suffix = parts->suffix + prompt.suffix;
}

bool HasConstraint(const RequestConstraints& asked) {
  return asked.answer.kind != ConstraintSpec::Kind::kNone || !asked.tools.empty();
}

std::string ShownBytes(std::string_view bytes) {
  Utf8Gate gate;
  std::string out = gate.Feed(bytes);
  return out + gate.Finish();
}

void WriteLogprob(JsonWriter& json, std::string_view bytes, float logprob) {
  json.Key("token").String(ShownBytes(bytes)).Key("bytes").Array();
  for (const char c : bytes) json.Int(static_cast<unsigned char>(c));
  json.End().Key("logprob").Number(logprob);
}

std::string ChatLogprobs(const ServerState& server, const ChoiceOut& choice, size_t first) {
  const Vocabulary& vocabulary = *server.model->vocabulary();
  JsonWriter json;
  json.Object().Key("content").Array();
  for (size_t i = first; i < choice.tokens.size(); ++i) {
    const TokenEntry& entry = choice.tokens[i];
    if (!entry.in_content) continue;
    json.Object();
    WriteLogprob(json, entry.bytes, entry.logprob);
    json.Key("top_logprobs").Array();
    for (const TokenLogprob& one : entry.top) {
      json.Object();
      WriteLogprob(json, vocabulary.bytes(one.token), one.logprob);
      json.End();
    }
    json.End().End();
  }
  return json.End().Key("refusal").Null().End().Take();
}

std::string TokenReports(const ChoiceOut& choice, size_t first) {
  JsonWriter json;
  json.Array();
  for (size_t i = first; i < choice.tokens.size(); ++i) {
    const TokenEntry& entry = choice.tokens[i];
    static constexpr const char* kNames[] = {"sampled", "forced", "closing", "drafted"};
    json.Object().Key("id").Int(entry.token).Key("text").String(ShownBytes(entry.bytes));
    json.Key("source").String(entry.in_prompt ? "prompt"
                                              : kNames[static_cast<size_t>(entry.source)]);
    json.Key("allowed").Int(entry.allowed);
    json.Key("surprise").Number(entry.surprise).End();
  }
  return json.End().Take();
}

std::string UsageOf(const CallOut& out) {
  JsonWriter json;
  json.Object().Key("prompt_tokens").Int(out.prompt_tokens);
  json.Key("completion_tokens").Int(out.output_tokens);
  json.Key("total_tokens").Int(out.prompt_tokens + out.output_tokens);
  json.Key("prompt_tokens_details").Object().Key("cached_tokens").Int(out.reused_tokens).End();
  json.Key("completion_tokens_details").Object();
  json.Key("reasoning_tokens").Int(out.reasoning_tokens).End();
  return json.End().Take();
}

json::Value MessageOf(std::string_view role, json::Value content) {
  json::Value message;
  message.type = json::Type::kObject;
  message.members.emplace_back("role", StringValue(std::string(role)));
  message.members.emplace_back("content", std::move(content));
  return message;
}

void DeclareTools(const ApiRequest& request, CallSpec& spec) {
  PromptSpec& prompt = spec.prompts[0];
  const RequestConstraints& asked = spec.asked;
  if (asked.answer.kind == ConstraintSpec::Kind::kJsonSchema) prompt.schema = asked.answer.text;
  if (asked.choice.mode == ToolChoice::Mode::kNone || asked.choice.allowed.empty()) return;
  if (request.server->model->has_chat()) {
    prompt.tools.type = json::Type::kArray;
    for (const size_t index : asked.choice.allowed) {
      prompt.tools.items.push_back(asked.tools[index].Declared());
    }
  }
  const ConstraintSpec& input = asked.tools[asked.choice.allowed[0]].input;
  if (prompt.schema.empty() && asked.choice.allowed.size() == 1 &&
      input.kind == ConstraintSpec::Kind::kJsonSchema) {
    prompt.schema = input.text;
  }
}

void OpenAiFormatter::End(const CallOut& out, std::string& text) {
  if (wants_.usage) {
    JsonWriter json;
    Head(out, true, json);
    json.Key("choices").Array().End().Key("usage").Raw(UsageOf(out));
    json.Key("pawl").Raw(ReportOf(out)).End();
    text += "data: " + json.text() + "\n\n";
  }
  text += StreamEnd();
}

HttpReply OpenAiFormatter::Whole(const CallOut& out) {
  JsonWriter json;
  Head(out, false, json);
  json.Key("choices").Array();
  for (const ChoiceOut& choice : out.choices) {
    json.Object().Key("index").Int(choice.index);
    Said(choice, json);
    json.Key("logprobs").Raw(wants_.logprobs ? Logprobs(choice, 0) : "null");
    json.Key("finish_reason").String(choice.finish);
    if (wants_.reports) json.Key("pawl_tokens").Raw(TokenReports(choice, 0));
    json.End();
  }
  json.End().Key("usage").Raw(UsageOf(out)).Key("pawl").Raw(ReportOf(out)).End();
  HttpReply reply;
  reply.body = json.Take();
  return reply;
}

void OpenAiFormatter::Chunk(const CallOut& out, int index, const char* key, const std::string& said,
                            const std::string& finish, const std::string& logprobs,
                            const std::string& reports, std::string& text) const {
  JsonWriter json;
  Head(out, true, json);
  json.Key("choices").Array().Object().Key("index").Int(index).Key(key).Raw(said);
  json.Key("logprobs").Raw(logprobs).Key("finish_reason").Raw(finish).End().End();
  if (wants_.usage) json.Key("usage").Null();
  if (!reports.empty()) {
    json.Key("pawl").Object().Key("index").Int(index).Key("tokens").Raw(reports).End();
  }
  json.End();
  text += "data: " + json.text() + "\n\n";
}

}  // namespace pawl::server
