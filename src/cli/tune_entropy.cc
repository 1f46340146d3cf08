// `pawl tune --entropy`: the threshold of adadec, from texts that are known.
//
// At each place of a text the most probable token is right or wrong. The entropy of the law tells
// how likely it is wrong; the threshold is where that becomes one half. Every third text is held
// out, and says what the threshold would have done there. Each text is a line of the ledger, so a
// run that was ended goes on.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/digest.h"
#include "src/base/json.h"
#include "src/cli/command.h"
#include "src/cli/extractor.h"
#include "src/cli/progress.h"
#include "src/cli/tune.h"
#include "src/decode/search/run.h"
#include "src/engine/engine_parts.h"
#include "src/eval/logistic.h"
#include "src/eval/tuner.h"

namespace pawl::cli {
namespace {

using EntropyPoints = std::vector<std::pair<double, bool>>;

// Of each text its places, as lines.
class EntropyLedger {
 public:
  EntropyLedger(std::string file, std::string header)
      : file_(std::move(file)), header_(std::move(header)) {}

  // Errors: kInvalid with the line.
  Status Read() {
    if (file_.empty()) return {};
    const Result<std::string> text = ReadInput(file_);
    if (!text.ok()) {
      kept_ = header_ + "\n";
      return WriteFile(file_, kept_);
    }
    std::string_view rest = *text;
    for (int number = 1; !rest.empty(); ++number) {
      const size_t end = rest.find('\n');
      if (end == std::string_view::npos) break;  // what was being written
      const std::string line(rest.substr(0, end));
      const std::string place = fmt::format("{}: line {}", file_, number);
      if (number == 1) {
        if (Status status = CheckLedgerHeader(line, header_, place); !status.ok()) return status;
      } else if (std::optional<EntropyPoints> points = PointsOf(line)) {
        known.push_back(*std::move(points));
      } else {
        return Error{ErrorCode::kInvalid, "has no places of a text", place};
      }
      rest.remove_prefix(end + 1);
    }
    kept_ = text->substr(0, text->size() - rest.size());
    if (kept_.empty()) kept_ = header_ + "\n";
    return {};
  }

  Status Append(const EntropyPoints& points) {
    if (file_.empty()) return {};
    std::string list;
    for (const auto& [entropy, wrong] : points) {
      list += fmt::format("{}[{:.17g},{}]", list.empty() ? "" : ",", entropy, wrong ? 1 : 0);
    }
    kept_ += "{\"places\":[" + list + "]}\n";
    return WriteFile(file_, kept_);
  }

  std::vector<EntropyPoints> known;  // of the first texts

 private:
  static std::optional<EntropyPoints> PointsOf(const std::string& line) {
    const Result<json::Value> value = json::Parse(line);
    const json::Value* const places = value.ok() ? value->Find("places") : nullptr;
    if (places == nullptr || places->type != json::Type::kArray) return std::nullopt;
    EntropyPoints points;
    for (const json::Value& one : places->items) {
      if (one.items.size() != 2) return std::nullopt;
      points.emplace_back(std::atof(one.items[0].text.c_str()), one.items[1].text == "1");
    }
    return points;
  }

  const std::string file_, header_;
  std::string kept_;
};

double Percent(size_t part, size_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

int TellThreshold(const TuneFlags& flags, const std::vector<EntropyPoints>& texts) {
  EntropyPoints seen, held;
  size_t held_texts = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    EntropyPoints& part = eval::HeldOut(i) ? held : seen;
    part.insert(part.end(), texts[i].begin(), texts[i].end());
    held_texts += eval::HeldOut(i) ? 1 : 0;
  }
  const eval::LogisticFit fit = eval::FitLogistic(seen);
  const double threshold = fit.slope > 0 ? -fit.intercept / fit.slope : -1;
  if (threshold < 0) {
    Print("the entropy does not tell where the most probable token is wrong\n");
    if (!flags.out.empty()) Note(kTune, "nothing is written to " + flags.out);
    return kExitOk;
  }
  size_t wrong = 0, pauses = 0, caught = 0;
  for (const auto& [entropy, is_wrong] : held) {
    wrong += is_wrong ? 1 : 0;
    pauses += entropy > threshold ? 1 : 0;
    caught += is_wrong && entropy > threshold ? 1 : 0;
  }
  Print(
      fmt::format("held out ({} texts, {} places): {:.1f} % of the most probable tokens are "
                  "wrong; adadec would pause at {:.1f} % of the places, where {:.1f} % are wrong, "
                  "{:.1f} % of all that are\n",
                  held_texts, held.size(), Percent(wrong, held.size()),
                  Percent(pauses, held.size()), Percent(caught, pauses), Percent(caught, wrong)));
  const std::string config =
      fmt::format("[generate]\nsearch=\"adadec\"\n{}search-arg=[\"threshold={:.4f}\"]\n",
                  flags.special ? "special=true\n" : "", threshold);
  Print(config);
  if (flags.out.empty()) return kExitOk;
  if (Status status = WriteFile(flags.out, config); !status.ok()) {
    return Fail(kTune, status.error());
  }
  Note(kTune, "written to " + flags.out);
  return kExitOk;
}

}  // namespace

int TuneEntropy(const TuneFlags& flags) {
  const Result<std::vector<TunePrompt>> prompts = ReadPrompts(flags.entropy);
  if (!prompts.ok()) return Fail(kTune, prompts.error());
  const auto fail_at = [&](size_t i, Error error) {
    return Fail(kTune, InFile(fmt::format("{}: text {}", flags.entropy, i + 1), std::move(error)));
  };
  for (size_t i = 0; i < prompts->size(); ++i) {
    if ((*prompts)[i].expect) continue;
    return fail_at(i, Error{ErrorCode::kInvalid, "must have a text \"expect\"", ""});
  }
  if (prompts->size() < kLeastExamples) {
    return Fail(kTune, Error{ErrorCode::kInvalid,
                             fmt::format("needs {} examples or more, not {}: a third is held out",
                                         kLeastExamples, prompts->size()),
                             "--entropy"});
  }
  const ExtractFlags& extract = flags.texts.extract;
  Result<std::unique_ptr<ExtractEngine>> opened = ExtractEngine::Open(kTune, extract);
  if (!opened.ok()) return Fail(kTune, opened.error());
  const LoadedModel& model = (*opened)->model();
  const Result<std::optional<Grammar>> grammar = TuneGrammar(flags, model.vocabulary());
  if (!grammar.ok()) return Fail(kTune, grammar.error());
  if (Status status = (*opened)->LoadWeights(extract, 1); !status.ok()) {
    return Fail(kTune, status.error());
  }
  Digest digest(DigestKind::kSha256);
  for (const TunePrompt& one : *prompts) {
    digest.Add(json::Quote(one.prompt));
    digest.Add(json::Quote(*one.expect));
  }
  EntropyLedger ledger(flags.ledger,
                       fmt::format("{{\"entropy\":{},\"texts\":\"{}\",{}}}", prompts->size(),
                                   digest.Hex(), LedgerOptions(flags)));
  if (Status status = ledger.Read(); !status.ok()) return Fail(kTune, status.error());
  std::vector<EntropyPoints> texts = ledger.known;
  if (texts.size() > prompts->size()) texts.resize(prompts->size());
  std::optional<Progress> progress;
  progress.emplace(kTune, "measuring");
  for (size_t i = texts.size(); i < prompts->size(); ++i) {
    progress->Set(fmt::format("measuring: {} of {} texts", i, prompts->size()));
    EngineRequest request;
    request.prompt = (*prompts)[i].prompt;
    request.parse_special = flags.special;
    request.grammar = *grammar;
    const Result<SearchInput> input = SearchInputOf(request, model);
    if (!input.ok()) return fail_at(i, input.error());
    const Result<std::vector<EntropyPlace>> places =
        EntropiesOf(*input, model.tokenizer().Encode(*(*prompts)[i].expect, {}));
    if (!places.ok()) {
      progress.reset();
      return fail_at(i, places.error());
    }
    EntropyPoints& points = texts.emplace_back();
    for (const EntropyPlace& place : *places) points.emplace_back(place.entropy, place.wrong);
    if (Status status = ledger.Append(points); !status.ok()) return Fail(kTune, status.error());
  }
  progress.reset();
  return TellThreshold(flags, texts);
}

}  // namespace pawl::cli
