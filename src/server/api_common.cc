// Members that mean the same in all APIs, and parts of answers that look the same.
#include <algorithm>
#include <charconv>
#include <random>
#include <utility>

#include "src/server/api.h"

namespace pawl::server {
namespace {

constexpr int kMostOutputs = 64;
constexpr size_t kMostStops = 16;
constexpr size_t kMostBiases = 4096;
constexpr int kMostTokens = 1 << 24;
constexpr size_t kMostPrompts = 2048;

void ReadBias(const ServerState& server, RequestReader& in, CallSpec& spec) {
  const json::Value* bias = in.FindObject("logit_bias");
  if (bias == nullptr) return;
  if (bias->size() > kMostBiases) {
    return in.Fail("logit_bias", "has more than " + std::to_string(kMostBiases) + " tokens",
                   ErrorCode::kLimit);
  }
  for (const auto& [key, value] : bias->members) {
    const std::string place = "logit_bias";
    int token = -1;
    const char* const end = key.data() + key.size();
    const auto [at, error] = std::from_chars(key.data(), end, token);
    const std::optional<double> number = NumberOf(value);
    if (error != std::errc() || at != end || token < 0 || !number || *number < -100 ||
        *number > 100 || token >= server.model->vocabulary()->size()) {
      return in.Fail({ErrorCode::kInvalid, "must be a number from -100 to 100 for a token's id",
                      json::PointerJoin(in.PointerOf(place), key)});
    }
    spec.options.logit_bias.emplace_back(token, static_cast<float>(*number));
  }
}

void ReadStop(RequestReader& in, CallSpec& spec) {
  in.Strings("stop", spec.stop, kMostStops);
  in.Bool("include_stop_str_in_output", spec.include_stop);
  if (!in.ok()) return;
  for (const std::string& stop : spec.stop) {
    if (stop.empty()) return in.Fail("stop", "has an empty string");
    if (stop.size() > 1024) return in.Fail("stop", "has a string of more than 1024 bytes");
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
void ReadThinking(RequestReader& in, CallSpec& spec, json::Value& arguments) {
  if (const json::Value* given = in.FindObject("chat_template_kwargs")) arguments = *given;
  in.Int("thinking_budget", spec.thinking_tokens, 0, kMostTokens);
  std::string effort;
  const json::Value* reasoning = in.Find("reasoning");
  if (reasoning != nullptr && reasoning->type == json::Type::kObject) {
    RequestReader inner(*reasoning, in.PointerOf("reasoning"));
    inner.String("effort", effort);
    if (!inner.ok()) return in.Fail(inner.error());
  }
  in.String("reasoning_effort", effort);
  if (effort == "none" || effort == "minimal") {
    SetArgument(arguments, "enable_thinking", BoolValue(false));
  } else if (!effort.empty()) {
    json::Value value;
    value.type = json::Type::kString;
    value.text = effort;
    SetArgument(arguments, "reasoning_effort", std::move(value));
  }
  const json::Value* thinking = in.Find("thinking");
  if (thinking != nullptr && thinking->type == json::Type::kObject) {
    RequestReader inner(*thinking, in.PointerOf("thinking"));
    std::string type;
    inner.String("type", type);
    inner.Int("budget_tokens", spec.thinking_tokens, 0, kMostTokens);
    if (!inner.ok()) return in.Fail(inner.error());
    if (type == "disabled") SetArgument(arguments, "enable_thinking", BoolValue(false));
  }
  const json::Value* think = in.Find("think");  // Ollama's
  if (think != nullptr && think->is_bool()) {
    SetArgument(arguments, "enable_thinking", BoolValue(think->type == json::Type::kTrue));
  } else if (think != nullptr && think->type == json::Type::kString) {
    SetArgument(arguments, "reasoning_effort", *think);
  }
}

}  // namespace

void ReadSampling(RequestReader& in, CallSpec& spec) {
  SamplingParams& sampling = spec.options.sampling;
  in.Float("temperature", sampling.temperature, 0, 100);
  if (in.Float("top_p", sampling.top_p, 0, 1) && sampling.top_p <= 0) sampling.top_p = 1e-6f;
  int top_k = 0;
  if (in.Int("top_k", top_k, -1, 1 << 30)) sampling.top_k = std::max(0, top_k);
  in.Float("min_p", sampling.min_p, 0, 1);
  in.Float("presence_penalty", sampling.presence_penalty, -2, 2);
  in.Float("frequency_penalty", sampling.frequency_penalty, -2, 2);
  in.Float("repetition_penalty", sampling.repetition_penalty, 0.01, 100);
  in.Float("repeat_penalty", sampling.repetition_penalty, 0.01, 100);
}

void ReadSeed(RequestReader& in, CallSpec& spec) {
  int64_t seed = 0;
  if (in.Int64("seed", seed) && seed != -1) {
    spec.options.sampling.seed = static_cast<uint64_t>(seed);
  } else {
    thread_local std::mt19937_64 random{std::random_device{}()};
    spec.options.sampling.seed = random();
  }
}

Status ReadCommon(const ApiRequest& request, RequestReader& in,
                  std::initializer_list<const char*> max_names, int default_tokens,
                  CallSpec& spec) {
  if (!in.ok()) return in.error();
  ServerState& server = *request.server;
  spec.options.sampling.temperature = server.model->temperature();
  spec.options.max_tokens = default_tokens;
  ReadSampling(in, spec);
  ReadSeed(in, spec);
  for (const char* name : max_names) {
    int tokens = 0;
    if (!in.Int(name, tokens, -1, kMostTokens)) continue;
    if (tokens >= 0) {
      spec.options.max_tokens = tokens;
      spec.budget_pointer = in.PointerOf(name);
    }
    break;
  }
  in.Int("n", spec.n, 1, kMostOutputs);
  int best_of = spec.n;
  if (in.Int("best_of", best_of, 1, kMostOutputs) && best_of != spec.n) {
    in.Fail("best_of", "must be n where it is given", ErrorCode::kUnsupported);
  }
  ReadStop(in, spec);
  ReadBias(server, in, spec);
  in.Bool("stream", spec.stream);
  bool close = true;
  in.Bool("close_at_budget", close);
  spec.options.at_budget = close ? AtBudget::kCloseOrCut : AtBudget::kCut;
  in.Bool("mask_surprise", spec.options.mask_surprise);
  in.Bool("drafts", spec.options.drafts);
  json::Value arguments;
  ReadThinking(in, spec, arguments);
  if (!in.ok()) return in.error();
  for (PromptSpec& prompt : spec.prompts) prompt.arguments = arguments;
  const KnownTools::Match* const match = request.tools;
  Result<RequestConstraints> asked =
      ReadConstraints(in.object(), match == nullptr ? nullptr : match->tools.get());
  if (!asked.ok()) return asked.error();
  if (match != nullptr) {
    server.known_tools.Keep(request.exchange->request().body, *match, asked->tools);
  }
  spec.asked = *std::move(asked);
  if (spec.asked.layout.max_string < 0) spec.asked.layout.max_string = server.options.max_string;
  // What says who asks, or where an answer is to be kept, changes no output.
  for (const char* name : {"model", "user", "metadata", "store", "service_tier", "keep_alive",
                           "safety_identifier", "prompt_cache_key", "cache_prompt"}) {
    (void)in.Find(name);
  }
  spec.ignored = in.Unread(spec.asked.read);
  return {};
}

Status ReadChatPrompt(RequestReader& in, CallSpec& spec, std::string_view messages_name) {
  const json::Value* messages = in.FindArray(messages_name);
  if (!in.ok()) return in.error();
  if (messages == nullptr || messages->items.empty()) {
    return Error{ErrorCode::kInvalid, "must be a list of messages that is not empty",
                 in.PointerOf(messages_name)};
  }
  PromptSpec prompt;
  prompt.kind = PromptSpec::Kind::kChat;
  prompt.messages = *messages;
  prompt.pointer = in.PointerOf(messages_name);
  spec.prompts = {std::move(prompt)};
  return {};
}

Status ReadPrompts(RequestReader& in, std::string_view name, const ServerState& server,
                   std::vector<PromptSpec>& prompts) {
  const json::Value* given = in.Find(name);
  const std::string place = in.PointerOf(name);
  if (given == nullptr) return Error{ErrorCode::kInvalid, "is missing", place};
  const Error wrong{ErrorCode::kInvalid, "must be a text, a list of token ids, or a list of either",
                    place};
  const auto tokens_of = [&](const json::Value& list) -> Result<std::vector<TokenId>> {
    std::vector<TokenId> tokens;
    for (const json::Value& item : list.items) {
      const std::optional<int64_t> token = WholeOf(item);
      if (!token || *token < 0 || *token >= server.model->info().vocabulary_size) {
        return Error{ErrorCode::kInvalid, "has something that is no token id of this model", place};
      }
      tokens.push_back(static_cast<TokenId>(*token));
    }
    return tokens;
  };
  const auto add = [&](const json::Value& one) -> Status {
    PromptSpec prompt;
    prompt.pointer = place;
    // Editors spell the marks of a gap in the prompt; what they spell is meant.
    prompt.parse_special = true;
    if (one.type == json::Type::kString) {
      prompt.text = one.text;
    } else if (one.type == json::Type::kArray) {
      Result<std::vector<TokenId>> tokens = tokens_of(one);
      if (!tokens.ok()) return tokens.error();
      prompt.kind = PromptSpec::Kind::kTokens;
      prompt.tokens = *std::move(tokens);
    } else {
      return wrong;
    }
    prompts.push_back(std::move(prompt));
    return {};
  };
  if (given->type == json::Type::kString) return add(*given);
  if (given->type != json::Type::kArray || given->items.empty()) return wrong;
  if (given->items[0].type == json::Type::kNumber) return add(*given);
  if (given->items.size() > kMostPrompts) {
    return Error{ErrorCode::kLimit, "has more than " + std::to_string(kMostPrompts) + " prompts",
                 place};
  }
  for (const json::Value& one : given->items) {
    if (Status status = add(one); !status.ok()) return status;
  }
  return {};
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

}  // namespace pawl::server
