// A tree over the beginnings of names, best first. A node is a path of tokens and the names that
// its text begins. Expanding it takes the model's logits behind the path: the tokens with which one
// of its names goes on share the node's probability. A node whose text is a name that no other one
// begins with is done. What is left on nodes that are not expanded is at most what is missing.
//
// The nodes of a round are rows of one call, as a tree behind the prompt (sampling/branches.h). So
// a list of hundreds of names takes few calls, and the prompt is read once.
#include "src/completion/name_ranks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "plugins/monitors/scan.h"
#include "src/base/stop_scope.h"
#include "src/decode/sampling/branches.h"

namespace pawl::completion {

NameSpellings::NameSpellings(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
  for (TokenId t = 0; t < vocabulary.size(); ++t) {
    const std::string_view bytes = vocabulary.bytes(t);
    if (vocabulary.is_special(t) || bytes.empty()) continue;
    if (!monitors::NameByte(bytes[0])) ends_.push_back(t);
    size_t name = bytes[0] == ' ' ? 1 : 0;
    while (name < bytes.size() && monitors::NameByte(bytes[name])) ++name;
    if (name == 0) continue;
    longest_ = std::max(longest_, name);
    (name == bytes.size() ? whole_ : tail_)[bytes.substr(0, name)].push_back(t);
  }
  for (const TokenId t : vocabulary.end_tokens()) ends_.push_back(t);
}

std::span<const TokenId> NameSpellings::Whole(std::string_view bytes) const {
  const auto found = whole_.find(bytes);
  return found == whole_.end() ? std::span<const TokenId>() : found->second;
}

std::span<const TokenId> NameSpellings::Tail(std::string_view bytes) const {
  const auto found = tail_.find(bytes);
  return found == tail_.end() ? std::span<const TokenId>() : found->second;
}

namespace {

constexpr size_t kMostNodes = 16;  // of a call

struct RankNode {
  TokenId token = kNoToken;
  int parent = -1;
  size_t bytes = 0;           // of the text so far
  size_t first = 0, end = 0;  // of the names: those that begin with this text
  double mass = 0;
  bool open = true;
};

class Ranker {
 public:
  Ranker(Model& model, const NameSpellings& spellings, std::vector<TokenId> prompt,
         std::span<const std::string> names, const RankOptions& options)
      : spellings_(spellings),
        names_(names),
        options_(options),
        known_(std::min(model.info().vocabulary_size, spellings.vocabulary().size())),
        room_(options.capacity - static_cast<int>(prompt.size())),
        branches_(model, std::move(prompt), options.capacity, kRowsOfCall) {
    ranks_.probabilities.assign(names.size(), 0);
  }

  Result<NameRanks> Go() {
    if (Status status = branches_.Start(); !status.ok()) return status.error();
    StopScope::Check();
    const int64_t before = branches_.calls();
    nodes_.push_back({.end = names_.size(), .mass = 1});
    Expand(0, branches_.prompt_logits());
    while (branches_.calls() - before < options_.most_calls) {
      std::vector<int> wanted = Best();
      if (wanted.empty()) break;
      StopScope::Check();
      if (Status status = RunSome(wanted); !status.ok()) return status.error();
    }
    ranks_.calls = branches_.calls() - before;
    for (const RankNode& node : nodes_) {
      if (!node.open) continue;
      ranks_.missing += node.mass;
      const double share = node.mass / static_cast<double>(node.end - node.first);
      for (size_t i = node.first; i < node.end; ++i) ranks_.probabilities[i] += share;
    }
    return std::move(ranks_);
  }

 private:
  // Few rows: between the calls the thread looks whether the answer is still wanted.
  static constexpr int kRowsOfCall = 128;
  RankNode& At(int node) { return nodes_[static_cast<size_t>(node)]; }

  // Open nodes that are worth a row, the most probable first; none: enough is known.
  std::vector<int> Best() {
    std::vector<int> open;
    double missing = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].open || nodes_[i].mass <= 0) continue;
      missing += nodes_[i].mass;
      open.push_back(static_cast<int>(i));
    }
    if (missing <= options_.missing) return {};
    std::ranges::sort(open, [&](int a, int b) {
      return At(a).mass > At(b).mass || (At(a).mass == At(b).mass && a < b);
    });
    if (open.size() > kMostNodes) open.resize(kMostNodes);
    return open;
  }

  Status RunSome(const std::vector<int>& wanted) {
    std::vector<TreeToken> tree;
    std::map<int, int> places;  // in the tree, by node
    std::vector<int> run;
    for (const int node : wanted) {
      std::vector<int> missing;
      int depth = 0;
      for (int up = node; up > 0; up = At(up).parent) {
        ++depth;
        if (!places.contains(up)) missing.push_back(up);
      }
      if (depth > room_ || tree.size() + missing.size() >= kMaxTreeRows ||
          ranks_.rows + static_cast<int64_t>(tree.size() + missing.size()) > options_.most_rows) {
        break;
      }
      for (auto up = missing.rbegin(); up != missing.rend(); ++up) {
        const int parent = At(*up).parent;
        places[*up] = static_cast<int>(tree.size());
        tree.push_back({At(*up).token, parent > 0 ? places[parent] : -1, false});
      }
      tree[static_cast<size_t>(places[node])].wanted = true;
      run.push_back(node);
    }
    if (run.empty()) {
      options_.missing = 1;  // there is no room for more
      return {};
    }
    if (branch_ < 0) {
      const Result<int> made = branches_.New();
      if (!made.ok()) return made.error();
      branch_ = *made;
    }
    std::ranges::sort(run, {}, [&](int node) { return places[node]; });
    ranks_.rows += static_cast<int64_t>(tree.size());
    if (Status status = branches_.LookBehind(branch_, std::move(tree)); !status.ok()) return status;
    for (size_t i = 0; i < run.size(); ++i) Expand(run[i], branches_.logits(i));
    return {};
  }

  // What a token makes of a node: a longer beginning, or a name that is complete.
  struct Way {
    TokenId token;
    size_t bytes;  // of the text with it
    size_t first;  // the first of its names
    bool done;     // it goes on behind the name `first`
  };

  void AddWays(const RankNode& from, std::vector<Way>& ways) const {
    std::string_view before;
    for (size_t i = from.first; i < from.end; ++i) {
      const std::string_view left = std::string_view(names_[i]).substr(from.bytes);
      if (left.empty()) {
        for (const TokenId t : spellings_.ends()) {
          const std::string_view bytes = spellings_.vocabulary().bytes(t);
          const bool end = spellings_.vocabulary().is_special(t);
          if (end || Follows(bytes[0])) ways.push_back({t, from.bytes, i, true});
        }
        continue;
      }
      // Names are sorted: what this one shares with the one before it is done.
      size_t shared = 0;
      while (shared < left.size() && shared < before.size() && left[shared] == before[shared]) {
        ++shared;
      }
      const size_t longest = std::min(left.size(), spellings_.longest());
      for (size_t n = shared + 1; n <= longest; ++n) {
        for (const TokenId t : spellings_.Whole(left.substr(0, n)))
          ways.push_back({t, from.bytes + n, i, false});
      }
      for (const TokenId t : spellings_.Tail(left)) {
        if (Follows(spellings_.vocabulary().bytes(t)[left.size()]))
          ways.push_back({t, from.bytes + left.size(), i, true});
      }
      StopScope::Steps(1 + longest);
      before = left;
    }
  }
  bool Follows(char c) const {
    return options_.followers.empty() || options_.followers.find(c) != std::string::npos;
  }

  void Expand(int number, std::span<const float> logits) {
    const RankNode from = At(number);
    std::vector<Way> ways;
    AddWays(from, ways);
    std::erase_if(ways, [&](const Way& way) { return way.token >= known_; });
    float most = -std::numeric_limits<float>::infinity();
    for (const Way& way : ways) most = std::max(most, logits[static_cast<size_t>(way.token)]);
    // No token spells them, or the logits are not numbers: they stay as they are.
    if (!std::isfinite(most)) return;
    double sum = 0;
    const auto weight = [&](const Way& way) {
      return std::exp(static_cast<double>(logits[static_cast<size_t>(way.token)] - most));
    };
    for (const Way& way : ways) sum += weight(way);
    At(number).open = false;
    for (const Way& way : ways) {
      const double mass = from.mass * weight(way) / sum;
      size_t end = way.first + 1;
      const std::string_view text = std::string_view(names_[way.first]).substr(0, way.bytes);
      while (!way.done && end < from.end && names_[end].starts_with(text)) ++end;
      if (way.done || (end == way.first + 1 && text.size() == names_[way.first].size())) {
        ranks_.probabilities[way.first] += mass;
      } else {
        nodes_.push_back({.token = way.token,
                          .parent = number,
                          .bytes = way.bytes,
                          .first = way.first,
                          .end = end,
                          .mass = mass});
      }
    }
  }

  const NameSpellings& spellings_;
  const std::span<const std::string> names_;
  RankOptions options_;
  const int known_;
  const int room_;
  Branches branches_;
  int branch_ = -1;
  std::vector<RankNode> nodes_;
  NameRanks ranks_;
};

}  // namespace

Result<NameRanks> RankNames(Model& model, const NameSpellings& spellings,
                            std::vector<TokenId> prompt, std::span<const std::string> names,
                            const RankOptions& options) {
  return Ranker(model, spellings, std::move(prompt), names, options).Go();
}

}  // namespace pawl::completion
