// A search over places: where the constraint is, which phrases are met, and how many tokens there
// are. Of places that are the same but for their length the shortest one counts. The next place is
// the one with the fewest tokens in sight: those that it has, and those that its phrases lack.
//
// In strings of JSON whole phrases are tried first, where the most phrases are met. So phrases find
// their strings where each of them has room for a few.
//
// Then those tokens are tried that bring a phrase on, and the first one of the shortest
// completion. Then, where few tokens may follow, all of them, so that nothing is missed; else
// single bytes as well: they lead to every text, though not by its shortest spelling.
#include "src/decode/search/phrase_plan.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "src/base/stop_scope.h"

namespace pawl {
namespace {

constexpr int kFewTokens = 64;
constexpr int kFewNarrowTokens = 4;
constexpr size_t kMostPlaces = size_t{1} << 17;  // in memory

}  // namespace

PhrasePlan::PhrasePlan(const SearchRun& run, ForcedPhrases& phrases, int64_t effort)
    : run_(run), phrases_(phrases), effort_(effort) {
  for (TokenId token = 0; token < run.task().known(); ++token) {
    if (run.task().BytesOf(token).size() == 1) bytes_.push_back(token);
  }
}

bool PhrasePlan::CanEnd(const Place& place) const {
  return !run_.closes() || place.at->CompletionLength(run_.task().max_tokens - place.length) >= 0;
}

std::vector<TokenId> PhrasePlan::NextTokens(const Place& place, Steps steps) {
  const bool narrow = steps == Steps::kNarrow;
  const int few = narrow ? kFewNarrowTokens : kFewTokens;
  const std::shared_ptr<const Mask> mask =
      place.at != nullptr ? place.at->mask() : run_.task().unconstrained;
  const bool in_string = steps == Steps::kPhrases && phrases_.in_string(place.state);
  std::vector<TokenId> tokens;
  if (in_string && place.at != nullptr) {
    tokens.push_back(phrases_.FirstOf("\""));
    const auto closing = place.at->Completion(run_.task().max_tokens - place.length);
    if (closing && !closing->empty() && closing->front() != tokens[0]) {
      tokens.push_back(closing->front());
    }
    std::erase_if(tokens, [&](TokenId token) { return token == kNoToken || !mask->Allows(token); });
  } else if (mask != nullptr && mask->count() <= few) {
    tokens = mask->Tokens();
  } else if (mask == nullptr && run_.task().known() <= few) {
    for (TokenId token = 0; token < run_.task().known(); ++token) tokens.push_back(token);
  } else {
    tokens = phrases_.Advancing(place.state);
    if (place.at != nullptr) {
      if (!narrow) tokens.insert(tokens.end(), bytes_.begin(), bytes_.end());
      const auto closing = place.at->Completion(run_.task().max_tokens - place.length);
      if (closing && !closing->empty()) tokens.push_back(closing->front());
    }
    std::erase_if(tokens, [&](TokenId token) { return mask != nullptr && !mask->Allows(token); });
  }
  std::erase_if(tokens, [&](TokenId token) { return run_.IsEndAt(place.at.get(), token); });
  return tokens;
}

std::optional<PhrasePlan::Path> PhrasePlan::Find(const Hypothesis& from, int32_t state,
                                                 size_t goal) {
  std::optional<Path> best;
  for (const Steps steps : {Steps::kPhrases, Steps::kNarrow, Steps::kWide}) {
    if (steps == Steps::kPhrases && (!phrases_.in_values() || from.at == nullptr)) continue;
    const int64_t effort = steps == Steps::kPhrases  ? effort_ / 2
                           : steps == Steps::kNarrow ? effort_ / 8
                                                     : effort_;
    std::optional<Path> path = Search(from, state, goal, steps, effort);
    if (path && (!best || path->met > best->met)) best = std::move(path);
    if (best && best->met >= goal) break;
  }
  return best;
}

std::optional<PhrasePlan::Place> PhrasePlan::Behind(const Place& place, size_t number,
                                                    std::string text) {
  Place next = {place.at, place.state, place.length, static_cast<int32_t>(number), {}};
  std::string_view rest = text;
  const auto take = [&](TokenId token) {
    --effort_;
    next.at = next.at->NextHere(token);
    if (next.at == nullptr) return false;
    const std::string_view bytes = run_.task().BytesOf(token);
    const bool fits = bytes.starts_with(rest) || rest.starts_with(bytes);
    rest.remove_prefix(std::min(rest.size(), bytes.size()));
    next.state = phrases_.After(next.state, bytes);
    next.tokens.push_back(token);
    return fits && !bytes.empty() && ++next.length <= run_.task().max_tokens;
  };
  while (!rest.empty()) {
    Hypothesis here;
    here.at = next.at;
    here.length = next.length;
    const std::vector<TokenId> forced = run_.ForcedBehind(here);
    for (const TokenId token : forced) {
      if (!take(token)) return std::nullopt;
    }
    if (!forced.empty()) continue;
    const TokenId token = phrases_.FirstOf(std::string(rest));
    if (token == kNoToken || !next.at->mask()->Allows(token) || !take(token)) return std::nullopt;
  }
  return next;
}

std::optional<PhrasePlan::Path> PhrasePlan::Search(const Hypothesis& from, int32_t state,
                                                   size_t goal, Steps steps, int64_t effort) {
  const int64_t least = effort_ - effort;
  std::vector<Place> places;
  // Tokens in sight and tokens that lack, or phrases that lack and tokens; number.
  using Waiting = std::tuple<int, int, size_t>;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> open;
  std::unordered_map<uint64_t, int32_t> shortest;
  std::optional<size_t> best;
  size_t most = phrases_.met_count(state);
  const auto add = [&](Place place) {
    const uint64_t key = place.at != nullptr ? place.at->key() : 1;
    if (const uint64_t mixed = MixedKeys(key, static_cast<uint64_t>(place.state) + 1); mixed != 0) {
      const auto [known, made] = shortest.emplace(mixed, place.length);
      if (!made && known->second <= place.length) return;
      known->second = place.length;
    }
    const int lacks = phrases_.total() - phrases_.progress(place.state);
    const int first = steps == Steps::kPhrases
                          ? static_cast<int>(phrases_.count() - phrases_.met_count(place.state))
                          : place.length + lacks;
    open.emplace(first, steps == Steps::kPhrases ? place.length : lacks, places.size());
    places.push_back(std::move(place));
  };
  const auto met = [&](size_t number) { return phrases_.met_count(places[number].state); };
  add({from.at, state, from.length, -1, {}});
  while (!open.empty() && effort_ > std::max<int64_t>(0, least) && places.size() < kMostPlaces) {
    const size_t number = std::get<2>(open.top());
    open.pop();
    if (!best || met(number) > most) {
      if (CanEnd(places[number])) best = number, most = met(number);
    }
    if (best && most >= goal) break;
    StopScope::Check();
    const Place place = places[number];
    Hypothesis here;
    here.at = place.at;
    here.length = place.length;
    // Forced text is in the tokenizer's spelling, as the search has it.
    --effort_;
    const std::vector<TokenId> forced = run_.ForcedBehind(here);
    if (!forced.empty()) {
      Place next = {place.at, place.state, place.length, static_cast<int32_t>(number), forced};
      for (const TokenId token : forced) {
        next.at = next.at->NextHere(token);
        next.state = phrases_.After(next.state, run_.task().BytesOf(token));
        ++next.length;
      }
      add(std::move(next));
      continue;
    }
    if (place.length >= run_.task().max_tokens) continue;
    if (steps == Steps::kPhrases) {
      for (const std::vector<std::string>& forms : phrases_.Endings(place.state)) {
        for (const std::string& form : forms) {
          std::optional<Place> next = Behind(place, number, form);
          if (!next) continue;
          add(*std::move(next));
          break;
        }
      }
    }
    for (const TokenId token : NextTokens(place, steps)) {
      --effort_;
      Place next = {nullptr,
                    phrases_.After(place.state, run_.task().BytesOf(token)),
                    place.length + 1,
                    static_cast<int32_t>(number),
                    {token}};
      if (place.at != nullptr) {
        next.at = place.at->NextHere(token);
        if (next.at == nullptr) continue;
      }
      add(std::move(next));
    }
  }
  if (!best || (most < goal && most <= phrases_.met_count(state))) return std::nullopt;
  Path path;
  path.met = most;
  for (auto number = static_cast<int32_t>(*best); number >= 0;) {
    const Place& place = places[static_cast<size_t>(number)];
    path.tokens.insert(path.tokens.begin(), place.tokens.begin(), place.tokens.end());
    number = place.parent;
  }
  return path;
}

}  // namespace pawl
