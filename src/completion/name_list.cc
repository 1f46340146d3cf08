// Where the monitors know the names at a place, the list has these. Elsewhere any name may stand,
// and the list has those that the text uses at such places: behind a point the members that it
// names, else its other names. The model then tells which of them are likely.
#include "src/completion/name_list.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "src/base/stop_scope.h"
#include "src/completion/completion.h"
#include "src/completion/keywords.h"
#include "src/engine/engine_parts.h"

namespace pawl::completion {

using monitors::NameByte;
using monitors::NameStart;

struct PlaceNames::State {
  std::shared_ptr<MonitorHost> host;
  std::optional<monitors::TextState> text;
  ~State() {
    // States share their texts.
    const std::lock_guard lock(host->mutex());
    text.reset();
  }
};

std::vector<monitors::NameDetail> PlaceNames::Details(std::span<const std::string> of) const {
  if (state_ == nullptr) return std::vector<monitors::NameDetail>(of.size());
  const std::lock_guard lock(state_->host->mutex());
  return state_->text->Details(of);
}

std::vector<std::string> NamesOfText(std::string_view prefix, std::string_view suffix,
                                     monitors::Language language, bool members) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  constexpr size_t kMostNames = 2000;
  constexpr size_t kMostName = 100;
  std::set<std::string, std::less<>> names;
  monitors::Scan scan(language);
  StopSteps steps;
  // What is nearest to the place matters; a long text is read from a line on.
  if (prefix.size() > kMostBytes) prefix.remove_prefix(prefix.size() - kMostBytes);
  const auto read = [&](std::string_view text, bool whole_end) {
    for (size_t at = 0; at < text.size();) {
      steps.Step();
      const char c = text[at];
      if (!scan.in_code() || !NameStart(c)) {
        scan.Add(c);
        // The digits of a number, with a unit behind them, are no name.
        if (scan.in_code() && NameByte(c) && !NameStart(c)) {
          while (++at < text.size() && NameByte(text[at])) scan.Add(text[at]);
        } else {
          ++at;
        }
        continue;
      }
      size_t end = at;
      while (end < text.size() && NameByte(text[end])) ++end;
      const bool member = scan.significant() == '.';
      const bool cut = (end == text.size() && !whole_end) || end - at > kMostName;
      const std::string_view name = text.substr(at, end - at);
      if (member == members && !cut && names.size() < kMostNames &&
          (member || !IsKeyword(language, name))) {
        names.emplace(name);
      }
      scan.Add(text.substr(at, end - at));
      at = end;
    }
  };
  read(prefix, false);
  scan.Add('a');  // the name that comes: what stands behind it is no member of what stands before
  suffix = suffix.substr(0, kMostBytes);
  suffix.remove_prefix(
      static_cast<size_t>(std::ranges::find_if_not(suffix, NameByte) - suffix.begin()));
  read(suffix, true);
  return {names.begin(), names.end()};
}

int PrivacyOf(std::string_view name) {
  if (!name.starts_with('_')) return 0;
  return name.starts_with("__") && name.ends_with("__") ? 2 : 1;
}

Result<PlaceNames> CompletionPlanner::NamesAt(const CompletionRequest& request) {
  Result<std::shared_ptr<MonitorHost>> host = HostOf(request);
  if (!host.ok()) return host.error();
  PlaceNames place;
  const monitors::Language language = request.language.value_or(monitors::Language::kPython);
  monitors::Scan scan(language);
  scan.Add(request.prefix);
  size_t begin = request.prefix.size();
  while (scan.in_code() && begin > 0 && NameByte(request.prefix[begin - 1])) --begin;
  if (begin < request.prefix.size() && !NameStart(request.prefix[begin])) {
    place.why = "the place is in a number";
    return place;
  }
  place.begun = request.prefix.size() - begin;
  const std::string_view begun = std::string_view(request.prefix).substr(begin);
  const bool in_code = scan.in_code();
  std::shared_ptr<const monitors::Completions> known;
  std::vector<std::string> words;
  place.open = in_code;
  if ((*host)->set() == nullptr) {
    place.why = !request.language
                    ? (monitors::HasJsx(request.file) ? "the monitors do not read JSX"
                                                      : "the language of the file is not known")
                : request.use_monitors
                    ? std::string("there are no monitors for ") + monitors::LanguageName(language)
                    : "the monitors are off";
  } else {
    place.state_ = std::make_shared<PlaceNames::State>(PlaceNames::State{*host, {}});
    const bool aware = request.suffix_aware && request.suffix.size() <= kMostParsedSuffix;
    const std::lock_guard lock((*host)->mutex());
    monitors::MonitorSet& set = *(*host)->set();
    place.state_->text = set.Start(request.prefix.substr(0, begin), aware ? request.suffix : "");
    known = place.state_->text->Expected();
    if (known == nullptr) {
      place.why = place.state_->text->WhyOpen();
      words = place.state_->text->Known();
    }
    place.limits = set.analysis().Limits();
  }
  if (known != nullptr && known->private_unknown && begun.starts_with('_')) {
    place.why = "names that begin with _ are not in the stubs";
    known = nullptr;
  }
  if (known == nullptr && in_code) {
    const std::string_view before = std::string_view(request.prefix).substr(0, begin);
    const bool members = before.ends_with('.') || before.ends_with("->");
    std::vector<std::string> own = NamesOfText(before, request.suffix, language, members);
    words.insert(words.end(), own.begin(), own.end());
    std::ranges::sort(words);
    words.erase(std::unique(words.begin(), words.end()), words.end());
  }
  const std::vector<std::string>& from = known != nullptr ? known->names : words;
  auto name = std::ranges::lower_bound(from, begun);
  for (; name != from.end() && name->starts_with(begun); ++name) place.names.push_back(*name);
  if (known != nullptr && place.names.empty() && !begun.empty()) {
    // Who has begun such a name means it.
    std::ranges::copy_if(known->hidden, std::back_inserter(place.names),
                         [&](const std::string& one) { return one.starts_with(begun); });
  }
  if (known != nullptr) {
    place.open = false;
    place.followers = known->followers;
    if (place.names.empty()) {
      place.why = "none of the " + std::to_string(known->names.size()) +
                  " names that may stand here begins with \"" + std::string(begun) + "\"";
    }
  } else if (!in_code && place.why.empty()) {
    place.why = "the place is in a comment or a string";
  }
  return place;
}

void CompletionPlanner::FilesChanged(const std::vector<std::string>& files) {
  const std::lock_guard lock(mutex_);
  for (const Kept& kept : kept_) {
    const std::lock_guard asking(kept.host->mutex());
    if (kept.host->set() != nullptr) kept.host->set()->analysis().FilesChanged(files);
  }
}

Result<NameList> CodeCompleter::Names(const CompletionRequest& request,
                                      const NameListOptions& options) {
  const StopScope scope(options.stop);
  Result<PlaceNames> place = planner_.NamesAt(request);
  if (!place.ok()) return place.error();
  NameList list;
  list.begun = place->begun;
  list.open = place->open;
  list.why = place->why;
  list.limits = place->limits;
  std::vector<double> probabilities(place->names.size(), 0);
  if (options.ranked && place->names.size() > 1) {
    // The space in front of a name is a part of the model's token.
    std::string before = request.prefix.substr(0, request.prefix.size() - place->begun);
    const bool space = before.size() > 1 && before.back() == ' ' &&
                       before[before.size() - 2] != ' ' && before[before.size() - 2] != '\n';
    std::vector<std::string> names = place->names;
    if (space) {
      before.pop_back();
      for (std::string& name : names) name.insert(0, 1, ' ');
    }
    RankOptions ranking;
    ranking.followers = place->followers;
    ranking.capacity = engine_.info().context_length;
    int most = ranking.capacity - kRoomForNames;
    if (request.max_prompt_tokens > 0) most = std::min(most, request.max_prompt_tokens);
    std::vector<TokenId> prompt =
        PromptOf(before, request.suffix, static_cast<size_t>(std::max(16, most)));
    if (!prompt.empty() && static_cast<int>(prompt.size()) < ranking.capacity) {
      const LoadedModel& model = EngineAccess::ModelOf(engine_);
      const Result<int> adapter = model.AdapterOf("");
      if (!adapter.ok()) return adapter.error();
      if (spellings_ == nullptr)
        spellings_ = std::make_unique<NameSpellings>(*engine_.vocabulary());
      Result<NameRanks> ranks =
          RankNames(model.model(*adapter), *spellings_, std::move(prompt), names, ranking);
      if (!ranks.ok()) return ranks.error();
      probabilities = std::move(ranks->probabilities);
      list.missing = ranks->missing;
    }
  } else {
    std::ranges::fill(probabilities,
                      1.0 / static_cast<double>(std::max<size_t>(1, probabilities.size())));
  }
  StopScope::Check();
  std::vector<size_t> order(place->names.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return probabilities[i]; });
  if (request.language == monitors::Language::kPython)
    std::ranges::stable_sort(order, {}, [&](size_t i) { return PrivacyOf(place->names[i]); });
  list.cut = order.size() > options.most;
  order.resize(std::min(order.size(), options.most));
  std::vector<std::string> chosen;
  for (const size_t i : order) chosen.push_back(place->names[i]);
  std::vector<monitors::NameDetail> details = place->Details(chosen);
  for (size_t i = 0; i < order.size(); ++i) {
    list.names.push_back({std::move(chosen[i]), probabilities[order[i]], std::move(details[i])});
  }
  return list;
}

}  // namespace pawl::completion
