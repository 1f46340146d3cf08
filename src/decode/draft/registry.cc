// The list of sources. The order is that in which a node asks them.
#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "src/decode/draft/model_source.h"
#include "src/decode/draft/source.h"

namespace pawl {
namespace {

constexpr std::array kEntries = {
    DraftSourceEntry{"forced", &MakeForcedSource, true, "text that the grammar dictates"},
    DraftSourceEntry{"literals", &MakeLiteralsSource, true, "keys, enum values and constants"},
    DraftSourceEntry{"suffix", &MakeSuffixSource, true, "what stood in prompt and output before"},
    DraftSourceEntry{"history", &MakeHistorySource, true, "outputs under the same grammar"},
    DraftSourceEntry{"ngram", &MakeNgramSource, true, "counts of short contexts"},
    DraftSourceEntry{"recycling", &MakeRecyclingSource, true, "the model's runners-up"},
    DraftSourceEntry{"text", &MakeTextSource, false, "a text file"},
    DraftSourceEntry{"model", &MakeModelSource, false, "smaller models, or trained heads"},
    DraftSourceEntry{"mtp", &MakeMtpSource, false,
                     "a block for several tokens in the model's files"},
    DraftSourceEntry{"lookahead", &MakeLookaheadSource, false,
                     "guesses that the model corrects call by call"},
    DraftSourceEntry{"self", &MakeSelfSource, false,
                     "some of the model's own layers, as self:del or self:exit=8"},
    DraftSourceEntry{"random", &MakeRandomSource, false, "any tokens: for tests"},
};

}  // namespace

std::span<const DraftSourceEntry> DraftSources() { return kEntries; }

std::vector<std::string> DraftModelsOf(const DraftOptions& options) {
  std::vector<std::string> models = options.more_models;
  if (!options.model.empty()) models.insert(models.begin(), options.model);
  return models;
}

bool NamesDrafts(const DraftOptions& options) {
  if (options.sources == "off") return false;
  return !ChoosesDraftSources(options) || !DraftModelsOf(options).empty() ||
         !options.text_file.empty() || !options.history_file.empty();
}

size_t IndexOfDraftSource(std::string_view name) {
  return static_cast<size_t>(
      std::ranges::find_if(kEntries, [&](const auto& entry) { return name == entry.name; }) -
      kEntries.begin());
}

Result<std::unique_ptr<DraftSource>> MakeDraftSource(size_t index, const DraftSetting& setting,
                                                     size_t nth) {
  if (nth > 0) return MakeModelSourceOf(setting, nth);
  return kEntries[index].make(setting);
}

size_t CountOfDraftSource(size_t index, const DraftOptions& options) {
  const bool several = std::string_view(kEntries[index].name) == "model";
  return several ? std::max<size_t>(1, DraftModelsOf(options).size()) : 1;
}

std::string NameOfDraftSource(size_t index, const DraftOptions& options, size_t nth) {
  const std::string name = kEntries[index].name;
  if (CountOfDraftSource(index, options) < 2) return name;
  const auto last = [](std::string path) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    return path.substr(path.rfind('/') + 1);
  };
  const std::vector<std::string> models = DraftModelsOf(options);
  const std::string& path = models[nth];
  const bool alike = last(models[0]) == last(models[1]);
  return name + ":" + (alike ? path : last(path));
}

Result<std::vector<size_t>> ParseDraftSources(const DraftOptions& options) {
  const std::string_view given = options.sources;
  std::vector<size_t> found;
  const std::vector<std::string> models = DraftModelsOf(options);
  if (models.size() > kMostDraftModels) {
    return Error{ErrorCode::kInvalid,
                 "must be given at most twice, not " + std::to_string(models.size()) + " times",
                 "draft_model"};
  }
  if (models.size() == 2 && models[0] == models[1]) {
    return Error{ErrorCode::kInvalid, "is given twice: " + models[0], "draft_model"};
  }
  if (given == "off") return found;
  if (given == "auto" || given == "all") {
    for (size_t i = 0; i < kEntries.size(); ++i) {
      const std::string_view name = kEntries[i].name;
      if (kEntries[i].free || (name == "text" && !options.text_file.empty()) ||
          (name == "model" && !models.empty())) {
        found.push_back(i);
      }
    }
    return found;
  }
  std::array<bool, kEntries.size()> chosen = {};
  for (size_t begin = 0; begin <= given.size();) {
    const size_t comma = std::min(given.find(',', begin), given.size());
    std::string_view name = given.substr(begin, comma - begin);
    if (name.starts_with("self:")) name = name.substr(0, 4);
    const auto entry =
        std::find_if(kEntries.begin(), kEntries.end(),
                     [&](const DraftSourceEntry& candidate) { return candidate.name == name; });
    if (name == "off" || name == "auto" || name == "all") {
      return Error{ErrorCode::kInvalid,
                   "\"" + std::string(name) + "\" stands alone, without other sources", "draft"};
    }
    if (entry == kEntries.end()) {
      std::string names = "off, auto";
      for (const DraftSourceEntry& known : kEntries) names += std::string(", ") + known.name;
      return Error{ErrorCode::kInvalid,
                   "there is no source \"" + std::string(name) + "\"; there are " + names, "draft"};
    }
    chosen[static_cast<size_t>(entry - kEntries.begin())] = true;
    begin = comma + 1;
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (!chosen[i]) continue;
    const std::string_view name = kEntries[i].name;
    if (name == "text" && options.text_file.empty()) {
      return Error{ErrorCode::kInvalid, "the source \"text\" needs a text file", "draft"};
    }
    if (name == "model" && models.empty()) {
      return Error{ErrorCode::kInvalid, "the source \"model\" needs a draft model", "draft"};
    }
    found.push_back(i);
  }
  return found;
}

std::string_view SettingOfSource(const DraftOptions& options, std::string_view name) {
  const std::string_view given = options.sources;
  for (size_t begin = 0; begin <= given.size();) {
    const size_t comma = std::min(given.find(',', begin), given.size());
    const std::string_view one = given.substr(begin, comma - begin);
    if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == ':') {
      return one.substr(name.size() + 1);
    }
    begin = comma + 1;
  }
  return {};
}

Result<DraftRules> ParseDraftRules(const DraftOptions& options) {
  DraftRules rules;
  const auto* const found = std::ranges::find(kVerifyRules, options.verify);
  if (found == kVerifyRules.end()) {
    std::string names;
    for (const char* const name : kVerifyRules)
      names += (names.empty() ? "" : ", ") + std::string(name);
    return Error{ErrorCode::kInvalid,
                 "there is no rule \"" + options.verify + "\"; there are " + names, "draft_verify"};
  }
  rules.rule = static_cast<VerifyRule>(found - kVerifyRules.begin());
  if (rules.rejects() && options.lossy > 0) {
    return Error{ErrorCode::kInvalid, "is not there together with draft_lossy", "draft_verify"};
  }
  if (options.shape == "heap") return rules;
  constexpr std::string_view kDelayed = "delayed:";
  const char* at = options.shape.data();
  const char* const end = at + options.shape.size();
  bool good = options.shape.starts_with(kDelayed);
  const auto read = [&](int least, int most, int& out) {
    const auto [behind, error] = std::from_chars(at, end, out);
    good = good && error == std::errc() && out >= least && out <= most;
    at = behind;
  };
  if (good) {
    at += kDelayed.size();
    read(0, kMostDelay, rules.delay);
    good = good && at < end && *at++ == ',';
    if (good) read(1, kMostRollouts, rules.rollouts);
  }
  if (good && at == end) return rules;
  return Error{ErrorCode::kInvalid,
               "must be heap, or delayed:D,K with D from 0 to " + std::to_string(kMostDelay) +
                   " and K from 1 to " + std::to_string(kMostRollouts) + ", not \"" +
                   options.shape + "\"",
               "draft_shape"};
}

namespace {

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

// A short token that is allowed: structure before content, so that the walk soon stands where the
// grammar's own words are.
TokenId ShortestAllowed(const Mask& mask, const Constraint& at) {
  const std::span<const uint32_t> words = mask.words();
  TokenId least = kNoToken;
  // Byte tokens stand first in most vocabularies; beyond a few thousand ids it does not matter.
  for (size_t w = 0; w < words.size() && least == kNoToken; ++w) {
    for (uint32_t word = words[w]; word != 0 && least == kNoToken; word &= word - 1) {
      const auto token = static_cast<TokenId>(w * 32) + __builtin_ctz(word);
      if (at.Advance(token) != nullptr) least = token;
    }
  }
  return least;
}

}  // namespace

uint64_t FingerprintOf(const LoopConstraint* constraint) {
  if (constraint == nullptr) return 0;
  constexpr int kSteps = 5;
  uint64_t hash = 1;
  std::shared_ptr<const LoopConstraint> kept;
  for (int i = 0; i < kSteps; ++i) {
    const Constraint::Place place = constraint->LookUnforced();
    const std::shared_ptr<const Mask>& mask = place.mask;
    hash = Mix(hash, place.accepting ? 3 : 5);
    if (mask == nullptr) break;
    for (const uint32_t word : mask->words()) hash = Mix(hash, word);
    const TokenId token = ShortestAllowed(*mask, *constraint);
    if (token == kNoToken) break;
    kept = constraint->Next(token);
    if (kept == nullptr) break;
    constraint = kept.get();
  }
  return hash == 0 ? 1 : hash;
}

}  // namespace pawl
