// A search that a server runs is one of many requests. So its rows and hypotheses are limited by
// the server, and its checks run no commands and read no files, unless the server was started so
// that they may.
#include "src/server/together.h"

#include <algorithm>
#include <utility>

#include "src/decode/search/strategy.h"
#include "src/engine/search_json.h"
#include "src/server/json_writer.h"

namespace pawl::server {
namespace {

// Of the server at most, and what the strategy takes by itself.
void LimitSearch(const TogetherSetting& setting, SearchOptions& options) {
  const SearchStrategy* const strategy = FindStrategy(options.strategy);
  if (options.max_rows == 0 && strategy != nullptr) options.max_rows = strategy->rows;
  options.max_rows = std::min(options.max_rows, setting.most_rows);
  options.max_nodes = std::min(options.max_nodes, setting.most_nodes);
}

// The outputs that are searched are those that are answered.
void AgreeOnN(const JsonReader& in, const JsonReader& object, const TogetherSetting& setting,
              int n) {
  if (!object["n"].present() || n == setting.n) return;
  if (in["n"].present()) object["n"].Fail("is not the n of the request");
  if (n < 1 || n > kMostOutputs)
    object["n"].Fail("must be from 1 to " + std::to_string(kMostOutputs));
  if (object.ok()) setting.n = n;
}

std::vector<std::string> MembersOf(const JsonReader& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.value()->members) names.push_back(name);
  return names;
}

void ReadChecks(const JsonReader& object, const TogetherSetting& setting, TogetherSpec& spec) {
  ReadCheckSpecs(object, spec.checks);
  const std::string place = PlaceOfCommand(spec.checks);
  if (place.empty() || setting.commands) return;
  object.Fail(Error{ErrorCode::kUnsupported,
                    "runs a command or reads a file, which this server allows with "
                    "--check-commands only",
                    object.place() + "/" + place});
}

SearchOptions SearchOf(const TogetherSetting& setting) {
  SearchOptions options;
  options.n = setting.n;
  options.max_tokens = setting.options.max_tokens;
  options.skip_forced = setting.options.skip_forced;
  options.seed = setting.options.sampling.seed;
  return options;
}

// "self_infill": {"loops", "threshold"}: greedy, or with a temperature drawn.
void ReadSelfInfill(const JsonReader& object, const TogetherSetting& setting, TogetherSpec& spec) {
  SearchOptions& options = spec.search.emplace(SearchOf(setting));
  options.strategy = "self-infill";
  for (const char* name : {"loops", "threshold"}) {
    if (object[name].present()) options.arguments.emplace_back(name, object[name].Number());
  }
  options.arguments.emplace_back("temperature", double{setting.options.sampling.temperature});
  RefuseUnread(object);
  LimitSearch(setting, options);
  spec.pointer = "#/self_infill";
}

// Contrast without a search: greedy, or with a temperature drawn.
void ReadContrastAlone(const JsonReader& in, const TogetherSetting& setting, TogetherSpec& spec) {
  const JsonReader prompt = in["contrast_prompt"], contrast = in["contrast"];
  if (setting.n != 1) in["n"].Fail("must be 1: contrast without a search has one output");
  SamplingParams sampling = setting.options.sampling;
  if (setting.extracts && !in["temperature"].present()) sampling.temperature = 0;
  if (setting.extracts && !in["seed"].present()) sampling.seed = 0;
  SearchOptions& options = spec.search.emplace(GreedyOrDrawn(sampling));
  options.n = setting.n;
  options.max_tokens = setting.options.max_tokens;
  options.skip_forced = setting.options.skip_forced;
  LimitSearch(setting, options);
  spec.pointer = "#/contrast";
  ReadContrast(contrast, options);
  if (setting.extracts) {
    if (prompt.present()) prompt.Unsupported("is not for this route: the prompt without a text is");
    options.contrast_prompt = "(none)";
  } else if (!prompt.present()) {
    contrast.Fail("needs contrast_prompt");
  } else {
    options.contrast_prompt = prompt.String();
  }
}

}  // namespace

void RefuseUnread(const JsonReader& in) {
  const auto unread = in.Unread(1);
  if (!unread.empty()) in[unread.front()->first].Fail("is no option");
}

void ReadTogether(const JsonReader& in, const TogetherSetting& setting, TogetherSpec& spec) {
  for (const char* name : {"force_phrases", "force_ordered", "force_in"}) {
    if (in[name].present()) in[name].Fail("must stand in search");
  }
  const JsonReader search = in["search"].OptionalObject();
  const JsonReader sampler = in["sampler"].OptionalObject();
  const JsonReader beams = in["use_beam_search"];
  const bool beam = beams.Bool(false);
  const JsonReader infill = in["self_infill"].OptionalObject();
  if (infill.present()) {
    for (const char* name : {"search", "use_beam_search", "contrast", "contrast_prompt"}) {
      if (in[name].present()) in[name].Fail("cannot be used with self_infill");
    }
    ReadSelfInfill(infill, setting, spec);
  } else if (search.present()) {
    SearchOptions& options = spec.search.emplace(SearchOf(setting));
    ReadSearchOptions(search, options);
    ReadChecks(search, setting, spec);
    LimitSearch(setting, options);
    AgreeOnN(in, search, setting, options.n);
    RefuseUnread(search);
    spec.members = MembersOf(search);
    spec.pointer = "#/search";
    if (beam) beams.Fail("cannot be used with search");
    for (const char* name : {"contrast", "contrast_prompt"}) {
      if (in[name].present()) in[name].Fail("must stand in search");
    }
  } else if (in["contrast"].present() || in["contrast_prompt"].present()) {
    ReadContrastAlone(in, setting, spec);
    if (beam) beams.Fail("cannot be used with contrast");
  } else if (beam) {
    SearchOptions& options = spec.search.emplace(SearchOf(setting));
    options.num_beams = setting.best_of;
    LimitSearch(setting, options);
    spec.pointer = "#/use_beam_search";
    in["length_penalty"].Read(options.length_penalty);
    bool early = false;
    if (in["early_stopping"].Read(early) && early) options.early_stopping = EarlyStopping::kTrue;
  }
  if (sampler.present()) {
    if (spec.search) {
      return sampler.Fail(search.present()
                              ? "cannot be used with search"
                              : "cannot be used with contrast, self_infill and use_beam_search");
    }
    SamplerOptions& options = spec.sampler.emplace();
    options.n = setting.n;
    options.max_tokens = setting.options.max_tokens;
    options.seed = setting.options.sampling.seed;
    // That of the model's law, where the request has none.
    if (in["temperature"].present()) {
      options.temperature = double{setting.options.sampling.temperature};
    }
    ReadSamplerOptions(sampler, options);
    ReadChecks(sampler, setting, spec);
    AgreeOnN(in, sampler, setting, options.n);
    RefuseUnread(sampler);
    spec.members = MembersOf(sampler);
    spec.pointer = "#/sampler";
  }
  const JsonReader classify = in["classify"];
  if (classify.Bool(false)) {
    if (spec.any()) return classify.Fail("cannot be used with search and sampler");
    ClassifyOptions& options = spec.classify.emplace();
    spec.pointer = "#/classify";
    in["temperature"].Read(options.temperature);
    in["exact_missing"].Read(options.exact_missing);
    in["exact_rows"].Read(options.exact_rows, int64_t{1}, setting.most_rows);
  }
}

std::string TogetherSpec::PointerOf(const std::string& place) const {
  std::string member = search ? SearchMemberOf(place) : place;
  if (member == "seconds" && std::ranges::find(members, member) == members.end()) {
    member = "sampler_seconds";
  }
  if (std::ranges::find(members, member.substr(0, member.find('/'))) != members.end()) {
    return std::string(search ? "#/search/" : "#/sampler/") + member;
  }
  if (search && member == "num_beams") return "#/best_of";  // of use_beam_search
  static constexpr const char* kOfRequest[] = {
      "n",          "seed",          "temperature", "length_penalty",
      "exact_rows", "exact_missing", "contrast",    "contrast_prompt"};
  if (std::ranges::find(kOfRequest, member) != std::end(kOfRequest)) return "#/" + member;
  return pointer;
}

TogetherResult ResultOf(const SearchResult& found, const std::string& strategy) {
  TogetherResult result;
  JsonWriter json;
  json.Object().Key("strategy").String(strategy).Key("at_limit");
  if (found.at_limit.empty()) {
    json.Null();
  } else {
    json.String(found.at_limit);
  }
  json.Key("rows").Int(found.model_rows).Key("calls").Int(found.model_calls);
  json.Key("nodes").Int(found.nodes);
  if (found.paths > 0) json.Key("paths").Number(found.paths);
  if (found.steps > 0) json.Key("steps").Int(found.steps).Key("pauses").Int(found.pauses);
  json.Key("outputs").Array();
  for (const SearchOutput& one : found.outputs) {
    json.Object().Key("score").Number(one.score);
    json.Key("log_probability").Number(one.log_probability).Key("closed").Bool(one.closed);
    json.Key("missing_phrases").Array();
    for (const std::string& phrase : one.missing_phrases) json.String(phrase);
    json.End().End();
    TogetherOutput& output = result.outputs.emplace_back();
    output.tokens = one.tokens;
    if (one.ended) output.tokens.pop_back();
    output.stop = one.closed  ? StopReason::kClosed
                  : one.ended ? StopReason::kEnd
                              : StopReason::kLength;
  }
  result.report = json.End().End().Take();
  if (found.outputs.empty()) {
    result.why_none = "no output was found that the checks accept";
    if (!found.at_limit.empty()) result.why_none += ", up to the limit of " + found.at_limit;
  }
  return result;
}

TogetherResult ResultOf(const SamplerResult& sampled) {
  TogetherResult result;
  size_t valid = 0, tries = 0;
  JsonWriter json;
  json.Object().Key("rows").Int(sampled.model_rows).Key("calls").Int(sampled.model_calls);
  json.Key("effective_size").Number(sampled.effective_size);
  if (sampled.timed_out) json.Key("timed_out").Bool(true);
  json.Key("outputs").Array();
  for (const WeightedOutput& one : sampled.outputs) {
    json.Object().Key("log_weight").Number(one.log_weight);
    json.Key("log_probability").Number(one.log_probability);
    json.Key("report").Raw(ReportJson(one.report)).End();
    TogetherOutput& output = result.outputs.emplace_back();
    output.tokens = one.tokens;
    output.stop = StopReason::kLength;
    tries += static_cast<size_t>(one.report.attempts);
    if (!one.report.valid) {
      output.note = "the sampler has found no output that fits: this one does not";
      continue;
    }
    ++valid;
    output.tokens.pop_back();
    output.stop = StopReason::kEnd;
  }
  result.report = json.End().End().Take();
  if (valid == 0) {
    const size_t outputs = sampled.outputs.size();
    result.why_none =
        tries > outputs ? "no valid output was found in " + std::to_string(tries) + " attempts"
        : outputs == 1
            ? "the output that was drawn is not valid"
            : "none of the " + std::to_string(outputs) + " outputs that were drawn is valid";
    if (sampled.timed_out) result.why_none += ", and the time is over (seconds)";
  }
  return result;
}

TogetherResult ResultOf(const ClassifyResult& choices, std::vector<TokenId> best) {
  TogetherResult result;
  result.report = ClassifyJson(choices);
  // `valid` may be too small for a double.
  const bool found = std::ranges::any_of(choices.choices, [](const ChoiceProbability& one) {
    return one.log_probability > kZeroWeight;
  });
  if (!found && choices.at_limit) {
    result.why_none = "the limit of exact_rows was reached before the end of any choice";
  }
  result.outputs.push_back({std::move(best), StopReason::kEnd, ""});
  return result;
}

}  // namespace pawl::server
