// `pawl tune`: which strategy with which parameters is best, on examples whose answers are known or
// can be checked.
//
// Trials come from src/eval/tuner.h; the first one is the default. Each is measured on a quarter of
// the examples, then on half, then on all, and ends where it is below the median of the trials
// before (successive halving). Every third example is held out, and says at the end whether the
// best trial is better than the default. Each trial is a line of the ledger, so a run that was
// ended goes on.
#include "src/cli/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "src/base/digest.h"
#include "src/base/json.h"
#include "src/base/names.h"
#include "src/cli/command.h"
#include "src/cli/eval_pass.h"
#include "src/cli/sampler_flags.h"
#include "src/eval/paired_test.h"
#include "src/eval/tuner.h"

namespace pawl::cli {
namespace {

// What an example gave: the larger the better, and rows of the model.
struct Measured {
  double score = 0, rows = 0;
};
using Measure = std::function<Result<std::vector<Measured>>(const std::vector<double>& values,
                                                            std::span<const size_t> examples)>;

// What is tuned.
struct TuneTask {
  std::vector<eval::Knob> knobs;
  std::vector<double> defaults;
  size_t examples = 0;
  std::string texts;  // a digest of the examples
  Measure measure;
  // The options that the values mean, as lines of a configuration file.
  std::function<std::string(const std::vector<double>& values)> config;
};

// Four digits, without the sign of a zero.
std::string ScoreText(double value) {
  std::string text = fmt::format("{:.4f}", value);
  return text == "-0.0000" ? "0.0000" : text;
}

std::string NumberText(double value) { return fmt::format("{:.6g}", value); }

std::string ChoiceAt(const std::vector<eval::Knob>& knobs, const std::vector<double>& values,
                     std::string_view name) {
  const auto found = std::ranges::find(knobs, name, &eval::Knob::name);
  if (found == knobs.end()) return "";
  return found->choices[static_cast<size_t>(values[static_cast<size_t>(found - knobs.begin())])];
}

double NumberAt(const std::vector<eval::Knob>& knobs, const std::vector<double>& values,
                std::string_view name) {
  const auto found = std::ranges::find(knobs, name, &eval::Knob::name);
  return values[static_cast<size_t>(found - knobs.begin())];
}

// ---- Trials ----

class TuneTrials {
  static constexpr int kMostRepeats = 64;

 public:
  TuneTrials(const TuneFlags& flags, const TuneTask& task)
      : flags_(flags), task_(task), tuner_(task.knobs, flags.seed()) {
    for (size_t i = 0; i < task.examples; ++i) (eval::HeldOut(i) ? held_ : seen_).push_back(i);
    for (const size_t part : {size_t{4}, size_t{2}}) {
      if (seen_.size() / part >= 2) rungs_.push_back(seen_.size() / part);
    }
    rungs_.push_back(seen_.size());
    means_.resize(rungs_.size());
  }

  int Go() {
    if (task_.examples < kLeastExamples) {
      return Fail(kTune, Error{ErrorCode::kInvalid,
                               fmt::format("needs {} examples or more, not {}: a third is held out",
                                           kLeastExamples, task_.examples),
                               flags_.prompts.empty() ? "--data" : "--prompts"});
    }
    if (Status status = ReadLedger(); !status.ok()) return Fail(kTune, status.error());
    for (uint64_t i = 0; i < flags_.trials; ++i) {
      const Result<bool> tried = Try(i);
      if (!tried.ok()) return Fail(kTune, tried.error());
      if (*tried) continue;
      Note(kTune, fmt::format("after {} trials the next {} settings were none but tried ones", i,
                              kMostRepeats));
      break;
    }
    return Tell();
  }

 private:
  double ScoreOf(std::span<const Measured> measured) const {
    double sum = 0;
    for (const Measured& one : measured) sum += one.score - flags_.row_cost * one.rows / 1000;
    return sum / static_cast<double>(measured.size());
  }

  // Values that no trial had. A tuner may come back to a setting, or change a value that does not
  // count for its strategy: it is told what is known. nullopt: it does nothing else.
  std::optional<std::vector<double>> NextValues() {
    for (int repeats = 0; repeats < kMostRepeats; ++repeats) {
      std::vector<double> values = tuner_.Next();
      const auto before = tried_.find(task_.config(values));
      if (before == tried_.end()) return values;
      tuner_.Tell(values, before->second.mean, before->second.whole);
    }
    return std::nullopt;
  }

  // false: there was nothing to try.
  Result<bool> Try(uint64_t number) {
    const std::optional<std::vector<double>> next =
        number == 0 ? std::optional(task_.defaults) : NextValues();
    if (!next) return false;
    const std::vector<double>& values = *next;
    if (number < ledger_.size()) {
      const Status status = Replay(number, values);
      return status.ok() ? Result<bool>(true) : status.error();
    }
    std::vector<Measured> measured;
    std::vector<double> means;
    for (size_t rung = 0; rung < rungs_.size(); ++rung) {
      const std::span<const size_t> more =
          std::span(seen_).subspan(measured.size(), rungs_[rung] - measured.size());
      const Result<std::vector<Measured>> got = task_.measure(values, more);
      if (!got.ok()) return got.error();
      measured.insert(measured.end(), got->begin(), got->end());
      means.push_back(ScoreOf(measured));
      if (number > 0 && BelowMedian(rung, means.back())) break;
    }
    Take(number, values, means);
    const Status kept = flags_.ledger.empty() ? Status() : AppendLine(values, means);
    return kept.ok() ? Result<bool>(true) : kept.error();
  }

  bool BelowMedian(size_t rung, double mean) const {
    std::vector<double> before = means_[rung];
    if (rung + 1 == rungs_.size() || before.size() < 3) return false;
    std::ranges::sort(before);
    return mean < before[before.size() / 2];
  }

  void Take(uint64_t number, const std::vector<double>& values, const std::vector<double>& means) {
    for (size_t rung = 0; rung < means.size(); ++rung) means_[rung].push_back(means[rung]);
    const bool whole = means.size() == rungs_.size();
    tuner_.Tell(values, means.back(), whole);
    tried_.emplace(task_.config(values), Known{means.back(), whole});
    std::string line = task_.config(values);
    std::ranges::replace(line, '\n', ' ');
    Note(kTune, fmt::format("trial {}: {}{}  {}", number + 1, ScoreText(means.back()),
                            whole ? "" : " (ended early)", line));
  }

  // ---- The ledger

  std::string Header() const {
    std::string names;
    for (const eval::Knob& knob : task_.knobs) names += knob.name + " ";
    return fmt::format(
        "{{\"seed\":{},\"examples\":{},\"knobs\":{},\"row_cost\":{},\"texts\":\"{}\",{}}}",
        flags_.seed(), task_.examples, json::Quote(names), NumberText(flags_.row_cost), task_.texts,
        LedgerOptions(flags_));
  }

  static std::string ListOf(const std::vector<double>& values) {
    std::string list;
    for (const double value : values) {
      list += (list.empty() ? "" : ",") + fmt::format("{:.17g}", value);
    }
    return "[" + list + "]";
  }

  Status ReadLedger() {
    if (flags_.ledger.empty()) return {};
    const Result<std::string> text = ReadInput(flags_.ledger);
    if (!text.ok()) return WriteFile(flags_.ledger, Header() + "\n");
    std::string_view rest = *text;
    for (int number = 1; !rest.empty(); ++number) {
      const size_t end = rest.find('\n');
      // What was being written when a run was ended.
      if (end == std::string_view::npos) break;
      const std::string line(rest.substr(0, end));
      rest.remove_prefix(end + 1);
      const std::string place = fmt::format("{}: line {}", flags_.ledger, number);
      if (number == 1) {
        if (Status status = CheckLedgerHeader(line, Header(), place); !status.ok()) return status;
        continue;
      }
      const Result<json::Value> value = json::Parse(line);
      if (!value.ok()) return InFile(place, value.error());
      ledger_.push_back(*value);
    }
    kept_ = text->substr(0, text->size() - rest.size());
    return {};
  }

  Status Replay(uint64_t number, const std::vector<double>& values) {
    const std::string place = fmt::format("{}: line {}", flags_.ledger, number + 2);
    const json::Value* given = ledger_[number].Find("values");
    const json::Value* means = ledger_[number].Find("means");
    const Result<json::Value> wanted = json::Parse(ListOf(values));
    if (given == nullptr || means == nullptr || means->items.empty() ||
        means->items.size() > rungs_.size() || json::Dump(*given) != json::Dump(*wanted)) {
      return Error{ErrorCode::kInvalid, "is of another run", place};
    }
    std::vector<double> read;
    for (const json::Value& one : means->items) read.push_back(std::atof(one.text.c_str()));
    Take(number, values, read);
    return {};
  }

  Status AppendLine(const std::vector<double>& values, const std::vector<double>& means) {
    if (kept_.empty()) kept_ = Header() + "\n";
    kept_ += "{\"values\":" + ListOf(values) + ",\"means\":" + ListOf(means) + "}\n";
    return WriteFile(flags_.ledger, kept_);
  }

  // ---- The end

  int Tell() {
    const eval::Trial& best = tuner_.trials()[tuner_.best()];
    const Result<std::vector<Measured>> plain = task_.measure(task_.defaults, held_);
    if (!plain.ok()) return Fail(kTune, plain.error());
    const Result<std::vector<Measured>> tuned = task_.measure(best.values, held_);
    if (!tuned.ok()) return Fail(kTune, tuned.error());
    std::vector<int64_t> a, b;
    for (size_t i = 0; i < held_.size(); ++i) {
      a.push_back(std::llround(1000 * (*plain)[i].score));
      b.push_back(std::llround(1000 * (*tuned)[i].score));
    }
    const eval::PairedResult test = eval::PairedTest(a, b);
    const std::string config = task_.config(best.values);
    Print(fmt::format("held out ({} examples): {}, the default {}, p {:.4f}\n", held_.size(),
                      ScoreText(ScoreOf(*tuned)), ScoreText(ScoreOf(*plain)), test.p));
    if (test.difference <= 0) {
      Print("nothing is better than the default on the examples held out\n");
      if (!flags_.out.empty()) Note(kTune, "nothing is written to " + flags_.out);
      return kExitOk;
    }
    Print(config);
    if (flags_.out.empty()) return kExitOk;
    if (Status status = WriteFile(flags_.out, config); !status.ok()) {
      return Fail(kTune, status.error());
    }
    Note(kTune, "written to " + flags_.out);
    return kExitOk;
  }

  const TuneFlags& flags_;
  const TuneTask& task_;
  eval::Tuner tuner_;
  std::vector<size_t> seen_, held_, rungs_;
  std::vector<std::vector<double>> means_;  // by rung, of the trials that came so far
  std::vector<json::Value> ledger_;
  std::string kept_;
  struct Known {
    double mean = 0;
    bool whole = false;
  };
  std::map<std::string, Known> tried_;  // by configuration
};

// ---- Records ----

struct SpaceChoice {
  const char* name;
  const char* whitespace;
  std::vector<std::string> separators;
};
const std::vector<SpaceChoice>& SpaceChoices() {
  static const std::vector<SpaceChoice> kSpaces = {{"compact", "compact", {",", ":"}},
                                                   {"spaced", "compact", {", ", ": "}},
                                                   {"bounded", "bounded", {",", ":"}}};
  return kSpaces;
}

ExtractSetting SettingAt(const ExtractSetting& base, const std::vector<eval::Knob>& knobs,
                         const std::vector<double>& values) {
  ExtractSetting setting = base;
  const SpaceChoice& space =
      SpaceChoices()[static_cast<size_t>(NumberAt(knobs, values, "whitespace"))];
  setting.layout.whitespace = space.whitespace;
  setting.layout.separators = space.separators;
  setting.layout.keys = ChoiceAt(knobs, values, "keys");
  setting.layout.asked.insert({"whitespace", "separators", "keys"});
  setting.view = ChoiceAt(knobs, values, "schema-view");
  const std::string contrast = ChoiceAt(knobs, values, "contrast");
  if (contrast != "off") setting.contrast = contrast;
  return setting;
}

int TuneExtraction(const TuneFlags& flags) {
  const Result<std::vector<eval::EvalText>> texts = flags.texts.Read();
  if (!texts.ok()) return Fail(kTune, texts.error());
  Result<EvalInput> input = OpenModelAndSchema(kTune, flags.texts);
  if (!input.ok()) return Fail(kTune, input.error());
  const Result<ExtractPrompt>& prompt = input->engine->model().extract();
  const bool views = prompt.ok() && prompt->shows_views();
  TuneTask task;
  std::vector<std::string> spaces;
  for (const SpaceChoice& one : SpaceChoices()) spaces.emplace_back(one.name);
  task.knobs = {{.name = "whitespace", .choices = spaces},
                {.name = "keys", .choices = {"all", "required"}},
                {.name = "contrast", .choices = {"off", "0.25", "0.5"}}};
  if (views) {
    task.knobs.push_back({.name = "schema-view", .choices = {"template", "keys", "schema"}});
  }
  task.defaults.assign(task.knobs.size(), 0);
  task.examples = texts->size();
  Digest digest(DigestKind::kSha256);
  for (const eval::EvalText& one : *texts) {
    digest.Add(json::Quote(one.text) + json::Quote(one.schema) + json::Dump(one.record) + "\n");
  }
  task.texts = digest.Hex();
  if (Status status = input->engine->LoadWeights(flags.texts.extract, flags.texts.extract.batch);
      !status.ok()) {
    return Fail(kTune, status.error());
  }
  Progress progress(kTune, "tuning");
  task.measure = [&](const std::vector<double>& values,
                     std::span<const size_t> examples) -> Result<std::vector<Measured>> {
    std::vector<eval::EvalText> some;
    for (const size_t i : examples) some.push_back((*texts)[i]);
    const ExtractSetting setting = SettingAt(flags.texts.extract.setting, task.knobs, values);
    EvalPass pass(flags.texts, *input->engine, setting, some);
    if (Status status = pass.Prepare(input->schema, input->schema_place); !status.ok()) {
      return status.error();
    }
    const Result<eval::EvalRun> run = pass.Run(kTune, progress);
    if (!run.ok()) return run.error();
    const auto rows = static_cast<double>(run->output_tokens + run->prompt_tokens);
    std::vector<Measured> measured;
    for (const int64_t right : run->right_by_text) {
      measured.push_back({static_cast<double>(right), rows / static_cast<double>(some.size())});
    }
    return measured;
  };
  task.config = [&](const std::vector<double>& values) {
    const ExtractSetting setting = SettingAt(flags.texts.extract.setting, task.knobs, values);
    const std::vector<std::string>& separators = setting.layout.separators;
    std::string config =
        fmt::format("[extract]\nwhitespace=\"{}\"\nseparators=[\"{}\",\"{}\"]\nkeys=\"{}\"\n",
                    setting.layout.whitespace, separators[0], separators[1], setting.layout.keys);
    if (views) config += fmt::format("schema-view=\"{}\"\n", setting.view);
    if (!setting.contrast.empty()) config += fmt::format("contrast=\"{}\"\n", setting.contrast);
    return config;
  };
  return TuneTrials(flags, task).Go();
}

// ---- Prompts ----

std::vector<eval::Knob> SearchKnobs(bool checks) {
  std::vector<eval::Knob> knobs = {
      {.name = "strategy",
       .choices = {"greedy", "sample", "beam", "adadec", "cntp", "foresight", "mcts"}},
      {.name = "num_beams", .least = 2, .most = 8, .whole = true},
      {.name = "length_penalty", .least = 0, .most = 2},
      {.name = "temperature", .least = 0.2, .most = 1.5},
      {.name = "threshold", .least = 0.1, .most = 4, .log = true},
      {.name = "lookahead", .least = 1, .most = 16, .whole = true, .log = true},
      {.name = "max_trials", .least = 2, .most = 16, .whole = true},
      {.name = "rollouts", .least = 4, .most = 128, .whole = true, .log = true},
      {.name = "width", .least = 2, .most = 6, .whole = true}};
  if (checks) knobs.push_back({.name = "checks", .choices = {"off", "on"}});
  return knobs;
}

// The values that count for the strategy.
SearchOptions SearchAt(const std::vector<eval::Knob>& knobs, const std::vector<double>& values) {
  SearchOptions options;
  const auto number = [&](const char* name) { return NumberAt(knobs, values, name); };
  const auto argument = [&](const char* name, double value) {
    options.arguments.emplace_back(name, value);
  };
  const std::string strategy = ChoiceAt(knobs, values, "strategy");
  options.strategy = strategy;
  if (strategy == "greedy") {
    options.strategy = "beam";
    options.num_beams = 1;
  } else if (strategy == "sample") {
    options.strategy = "cntp";
    argument("max_trials", 1);
    argument("temperature", number("temperature"));
  } else if (strategy == "beam") {
    options.num_beams = static_cast<int>(number("num_beams"));
    options.length_penalty = number("length_penalty");
  } else if (strategy == "adadec") {
    argument("threshold", number("threshold"));
    argument("lookahead", number("lookahead"));
  } else if (strategy == "cntp") {
    argument("max_trials", number("max_trials"));
    argument("temperature", number("temperature"));
  } else if (strategy == "foresight") {
    argument("temperature", number("temperature"));
  } else {
    argument("rollouts", number("rollouts"));
    argument("width", number("width"));
  }
  return options;
}

std::string SearchConfig(const TuneFlags& flags, const SearchOptions& options, bool checks) {
  std::string config = "[generate]\nsearch=\"" + options.strategy + "\"\n";
  if (flags.special) config += "special=true\n";
  if (options.strategy == "beam") {
    config += fmt::format("num-beams={}\nlength-penalty={}\n", options.num_beams,
                          NumberText(options.length_penalty));
  }
  const auto list = [&](const char* name, const std::vector<std::string>& texts) {
    std::string items;
    for (const std::string& text : texts) items += (items.empty() ? "" : ",") + json::Quote(text);
    if (!items.empty()) config += fmt::format("{}=[{}]\n", name, items);
  };
  std::vector<std::string> arguments;
  for (const auto& [name, value] : options.arguments) {
    arguments.push_back(name + "=" + NumberText(value));
  }
  list("search-arg", arguments);
  if (!checks) return config;
  list("check", flags.texts.extract.retry.checks);
  if (!flags.critic.empty()) config += "critic=" + json::Quote(flags.critic) + "\n";
  return config;
}

int TunePrompts(const TuneFlags& flags) {
  const Result<std::vector<TunePrompt>> prompts = ReadPrompts(flags.prompts);
  if (!prompts.ok()) return Fail(kTune, prompts.error());
  const ExtractFlags& extract = flags.texts.extract;
  SamplerFlags sampler;
  sampler.checks = extract.retry.checks;
  sampler.check_timeout = extract.retry.check_timeout;
  sampler.critic = flags.critic;
  const bool judged = !sampler.checks.empty() || !sampler.critic.empty();
  for (const TunePrompt& one : *prompts) {
    if (one.expect || judged) continue;
    return Fail(kTune, Error{ErrorCode::kInvalid,
                             "needs \"expect\" in each line, or --check or --critic", "--prompts"});
  }
  Result<std::unique_ptr<ExtractEngine>> opened = ExtractEngine::Open(kTune, extract);
  if (!opened.ok()) return Fail(kTune, opened.error());
  const Result<std::optional<Grammar>> compiled =
      TuneGrammar(flags, (*opened)->model().vocabulary());
  if (!compiled.ok()) return Fail(kTune, compiled.error());
  const std::optional<Grammar>& grammar = *compiled;
  if (Status status = (*opened)->LoadWeights(extract, 1); !status.ok()) {
    return Fail(kTune, status.error());
  }
  Engine& engine = (*opened)->engine();
  std::vector<std::shared_ptr<const Check>> checks;
  std::shared_ptr<const Critic> critic;
  if (Status status = sampler.MakeChecks(engine, checks, critic); !status.ok()) {
    return Fail(kTune, status.error());
  }
  const auto score_of = [&](const TunePrompt& one, const SearchOutput& output) -> Result<double> {
    std::vector<TokenId> tokens = output.tokens;
    if (output.ended) tokens.pop_back();
    const CheckQuestion question = {.text = output.text, .tokens = tokens, .ended = true};
    double score = one.expect && *one.expect != output.text ? 0 : 1;
    for (const auto& check : checks) {
      const Result<Verdict> verdict = check->Judge(question);
      if (!verdict.ok()) return verdict.error();
      if (*verdict != Verdict::kAccept) score = 0;
    }
    if (critic == nullptr || score == 0) return score;
    const Result<double> judged_score = critic->Score(question);
    if (!judged_score.ok()) return judged_score.error();
    return score * std::exp(*judged_score);
  };
  TuneTask task;
  task.knobs = SearchKnobs(judged);
  task.defaults = {0, 4, 1, 1, 1, 5, 10, 100, 3};
  if (judged) task.defaults.push_back(0);
  task.examples = prompts->size();
  Digest digest(DigestKind::kSha256);
  for (const TunePrompt& one : *prompts) {
    digest.Add(json::Quote(one.prompt) + (one.expect ? json::Quote(*one.expect) : "null") + "\n");
  }
  task.texts = digest.Hex();
  const auto guided = [&](const std::vector<double>& values) {
    return ChoiceAt(task.knobs, values, "checks") == "on";
  };
  task.measure = [&](const std::vector<double>& values,
                     std::span<const size_t> examples) -> Result<std::vector<Measured>> {
    std::vector<Measured> measured;
    for (const size_t i : examples) {
      SearchOptions options = SearchAt(task.knobs, values);
      options.max_tokens = extract.setting.sampling.max_tokens;
      options.seed = flags.seed();
      if (guided(values)) {
        options.checks = checks;
        options.critic = critic;
      }
      EngineRequest request;
      request.prompt = (*prompts)[i].prompt;
      request.parse_special = flags.special;
      request.grammar = grammar;
      const Result<SearchResult> found = engine.Search(request, options);
      if (!found.ok()) return InFile(fmt::format("prompt {}", i + 1), found.error());
      Measured& one = measured.emplace_back();
      one.rows = static_cast<double>(found->model_rows);
      if (found->outputs.empty()) continue;
      const Result<double> score = score_of((*prompts)[i], found->outputs[0]);
      if (!score.ok()) return score.error();
      one.score = *score;
    }
    return measured;
  };
  task.config = [&](const std::vector<double>& values) {
    return SearchConfig(flags, SearchAt(task.knobs, values), guided(values));
  };
  return TuneTrials(flags, task).Go();
}

int TuneCommand(const TuneFlags& flags) {
  if (Status status = flags.texts.extract.Check(); !status.ok()) {
    return Fail(kTune, status.error());
  }
  if (!flags.entropy.empty()) {
    if (!flags.out.empty()) {
      if (Status status = CheckWritable(flags.out); !status.ok()) {
        return Fail(kTune, status.error());
      }
    }
    if (flags.prompts.empty() && flags.texts.data.empty()) return TuneEntropy(flags);
    return Fail(kTune, Error{ErrorCode::kInvalid,
                             std::string("cannot be used with ") +
                                 (flags.prompts.empty() ? "--data" : "--prompts"),
                             "--entropy"});
  }
  if (flags.prompts.empty() == flags.texts.data.empty()) {
    const bool none = flags.prompts.empty();
    return Fail(kTune, Error{ErrorCode::kInvalid,
                             none ? "must be given, or --prompts or --entropy"
                                  : "cannot be used with --data",
                             none ? "--data" : "--prompts"});
  }
  if (flags.prompts.empty() && (!flags.regex.empty() || !flags.critic.empty() || flags.special)) {
    return Fail(kTune, Error{ErrorCode::kInvalid, "needs --prompts",
                             !flags.regex.empty()    ? "--regex"
                             : !flags.critic.empty() ? "--critic"
                                                     : "--special"});
  }
  if (!flags.out.empty()) {
    if (Status status = CheckWritable(flags.out); !status.ok()) return Fail(kTune, status.error());
  }
  return flags.prompts.empty() ? TuneExtraction(flags) : TunePrompts(flags);
}

}  // namespace

Result<std::vector<TunePrompt>> ReadPrompts(const std::string& file) {
  const Result<std::string> text = ReadInput(file);
  if (!text.ok()) return text.error();
  std::vector<TunePrompt> prompts;
  std::string_view rest = *text;
  for (int number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string place = fmt::format("{}: line {}", file, number);
    const Result<json::Value> value = json::Parse(line);
    if (!value.ok()) return InFile(place, value.error());
    const json::Value* prompt = value->Find("prompt");
    const json::Value* expect = value->Find("expect");
    if (prompt == nullptr || prompt->type != json::Type::kString) {
      return Error{ErrorCode::kInvalid, "must have a text \"prompt\"", place};
    }
    if (expect != nullptr && expect->type != json::Type::kString) {
      return Error{ErrorCode::kInvalid, "\"expect\" must be a text", place};
    }
    TunePrompt& one = prompts.emplace_back();
    one.prompt = prompt->text;
    if (expect != nullptr) one.expect = expect->text;
  }
  return prompts;
}

std::string LedgerOptions(const TuneFlags& flags) {
  // They change no trial, or have a member of their own.
  constexpr std::string_view kOthers[] = {
      "--help",  "--config",     "--ledger", "--out",      "--trials", "--threads", "--batch",
      "--stats", "--stats-json", "--seed",   "--row-cost", "--data",   "--prompts", "--entropy"};
  std::map<std::string, std::string> digests;
  for (const CLI::Option* option : flags.command->get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || std::ranges::find(kOthers, name) != std::end(kOthers)) continue;
    Digest digest(DigestKind::kSha256);
    for (const std::string& value : option->results()) {
      std::optional<std::string> content;
      if (option->get_type_name() == "FILE" && value != "-") {
        if (Result<std::string> file = ReadInput(value); file.ok()) content = *std::move(file);
      }
      digest.Add(json::Quote(content.value_or(value)) + "\n");
    }
    digests[name] = digest.Hex().substr(0, 16);
  }
  std::string list;
  for (const auto& [name, digest] : digests) {
    list += (list.empty() ? "" : ",") + json::Quote(name) + ":" + json::Quote(digest);
  }
  return "\"options\":{" + list + "}";
}

Status CheckLedgerHeader(const std::string& line, const std::string& own_line,
                         const std::string& place) {
  const Result<json::Value> given = json::Parse(line);
  const Result<json::Value> own = json::Parse(own_line);
  const auto wrong = [&](std::string message) {
    return Error{ErrorCode::kInvalid, std::move(message), place};
  };
  if (!given.ok() || given->type != json::Type::kObject || given->Find("options") == nullptr) {
    return wrong("is not the first line of a ledger of this version of pawl tune");
  }
  const auto same = [](const json::Value* a, const json::Value* b) {
    return a != nullptr && b != nullptr && json::Dump(*a) == json::Dump(*b);
  };
  for (const auto& [name, value] : own->members) {
    const json::Value* const other = given->Find(name);
    if (same(&value, other)) continue;
    if (name != "options" || other == nullptr) {
      return wrong(fmt::format("is of another run: its \"{}\" differs", name));
    }
    for (const auto* const list : {&value, other}) {
      for (const auto& [option, unused] : list->members) {
        if (same(value.Find(option), other->Find(option))) continue;
        return wrong(fmt::format("is of another run: its {} differs", option));
      }
    }
  }
  return {};
}

Result<std::optional<Grammar>> TuneGrammar(const TuneFlags& flags,
                                           const std::shared_ptr<const Vocabulary>& vocabulary) {
  GrammarFlags constraint = flags.texts.extract.grammar;
  if (flags.regex.empty() && constraint.schema_file.empty()) return std::optional<Grammar>();
  if (!flags.regex.empty()) constraint.regex = flags.regex;
  if (Status status = constraint.Check(); !status.ok()) return status.error();
  Result<Grammar> compiled = constraint.Compile(vocabulary);
  if (!compiled.ok()) return compiled.error();
  return std::optional(*std::move(compiled));
}

void AddTune(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand(kTune, "Find the strategy and the parameters that are best on examples");
  const auto flags = std::make_shared<TuneFlags>();
  flags->command = command;
  flags->texts.AddTo(command);
  TextOption(command, "--prompts", flags->prompts, "FILE",
             "In place of --data: lines of {\"prompt\": ..., \"expect\": ...}; without \"expect\" "
             "--check and --critic judge the outputs");
  TextOption(command, "--entropy", flags->entropy, "FILE",
             "In place of --data: lines of {\"prompt\": ..., \"expect\": ...}; fits the threshold "
             "of adadec");
  command->add_flag("--special", flags->special,
                    "With --prompts or --entropy: read special tokens by their names in prompts");
  TextOption(command, "--regex", flags->regex, "REGEX",
             "With --prompts or --entropy: what outputs match");
  TextOption(command, "--critic", flags->critic, "COMMAND",
             "With --prompts: a program that scores outputs, or tests:COMMAND");
  CountOption(command, "--trials", flags->trials, 1, 100000, "Settings that are tried");
  RealOption(command, "--row-cost", flags->row_cost, 0, 1e6, "X",
             "What a thousand rows of the model cost, in units of the score");
  TextOption(command, "--ledger", flags->ledger, "FILE",
             "A line for each trial; a run with the same file goes on where it was ended");
  TextOption(command, "--out", flags->out, "FILE",
             "The best setting, for --config; only if it is better on the examples held out");
  flags->texts.extract.AddTo(command);
  command->footer(
      "Exit codes: 0 done; 2 bad input or usage.\n"
      "Example:\n  pawl tune --schema bench/extract/order.schema.json --data "
      "bench/extract/orders.jsonl --trials 12 --out tuned.toml\n  pawl extract --config tuned.toml "
      "--schema bench/extract/order.schema.json --text \"...\"");
  command->callback([flags, &action] { action = [flags] { return TuneCommand(*flags); }; });
}

}  // namespace pawl::cli
