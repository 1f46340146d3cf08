// The law behind each beginning of a text that is known. The rows of many tokens run in one call,
// as those of a draft do.
#include <algorithm>
#include <cmath>
#include <utility>

#include "src/decode/search/run.h"
#include "src/decode/search/search_run.h"

namespace pawl {
namespace {

constexpr size_t kTogetherPlaces = 32;

// nullopt: there is no choice. Errors: the token may not follow.
Result<std::optional<EntropyPlace>> PlaceBehind(RankedTokens& law, TokenId token, size_t nth) {
  const auto& items = law.items();
  const bool allowed = std::ranges::any_of(
      items, [&](const RankedTokens::Item& item) { return item.token == token; });
  if (!allowed) {
    return Error{ErrorCode::kInvalid,
                 "its token " + std::to_string(nth + 1) + " is one that may not follow", "text"};
  }
  if (items.size() < 2) return std::optional<EntropyPlace>();
  double sum = 0, weighted = 0;
  for (const RankedTokens::Item& item : items) {
    const double p = std::exp(item.log_mass);
    sum += p;
    weighted += p * item.log_mass;
  }
  const double entropy = sum > 0 ? std::log(sum) - weighted / sum : 0;
  return std::optional(EntropyPlace{entropy, law.At(0).token != token});
}

}  // namespace

Result<std::vector<EntropyPlace>> EntropiesOf(const SearchInput& input,
                                              std::span<const TokenId> text) {
  SearchOptions options;
  options.skip_forced = false;
  options.max_rows = std::numeric_limits<int64_t>::max();
  SamplingTask task;
  task.model = &input.model.info();
  task.vocabulary = &input.vocabulary;
  task.constraint = input.constraint;
  const auto prompt = static_cast<int64_t>(input.prompt.size());
  const int64_t positions = task.model->context_length;
  if (prompt + static_cast<int64_t>(text.size()) >= positions) {
    return Error{ErrorCode::kLimit,
                 "has more tokens with its prompt than the model's " + std::to_string(positions),
                 "text"};
  }
  task.max_tokens = static_cast<int>(positions - prompt) - 1;
  task.ExcludeControlTokens();
  SearchRun run(
      {input.model, input.encode, input.prompt, task, options, static_cast<int>(positions)});
  if (Status status = run.Start(); !status.ok()) return status.error();
  std::vector<EntropyPlace> places;
  Hypo at = SearchRun::kRoot;
  for (size_t begin = 0; begin < text.size();) {
    const std::span<const TokenId> rest =
        text.subspan(begin, std::min(kTogetherPlaces, text.size() - begin));
    const std::vector<TokenId> drafts[] = {{rest.begin(), rest.end() - 1}};
    std::vector<SearchRun::Ahead> ahead;
    SearchRun::LawOptions together;
    together.drafts = drafts;
    together.ahead = &ahead;
    Result<std::vector<RankedTokens>> laws = run.Laws({&at, 1}, together);
    if (!laws.ok()) return laws.error();
    for (size_t i = 0; i <= ahead[0].tokens.size(); ++i, ++begin) {
      RankedTokens& law = i == 0 ? (*laws)[0] : ahead[0].laws[i - 1];
      const Result<std::optional<EntropyPlace>> place = PlaceBehind(law, text[begin], begin);
      if (!place.ok()) return place.error();
      if (*place) places.push_back(**place);
      const auto item = std::ranges::find(law.items(), text[begin], &RankedTokens::Item::token);
      const Hypo from = at;
      const Result<Hypo> child = run.Child(from, *item);
      if (!child.ok()) return child.error();
      if (*child == kNoHypo) {
        return Error{ErrorCode::kLimit, "leaves no room for a complete output", "text"};
      }
      at = *child;
      run.Drop(from);
    }
  }
  return places;
}

}  // namespace pawl
