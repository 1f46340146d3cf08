// A trie over tokens of all spellings of the choices, of which only the likely part is made. A node
// is a beginning of spellings, whose tokens stand for the beginning of one text. Expanding a node
// needs the model's law behind it: its children are the tokens that go on with the text of a
// choice, and where the text is a choice the end tokens give a part of its probability.
//
// What hangs on a node that is not expanded has at most the probability of the node. So the sum of
// these is what is missing at most. First the tokenizer's own spellings are expanded, because they
// have nearly all of the probability, then always the most probable nodes.
//
// Where texts go on behind a choice, the tokens that end a choice and those that go beyond its end
// give its probability, and nothing is looked for behind them.
//
// All sums are logarithms: a long choice may have a probability below the smallest double.
//
// The rows of a call are a tree behind the prompt (branches.h): a node comes with its path. A path
// that is too long for a tree gets a branch.
#include "src/decode/search/classify.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "grammar/vocabulary_tables.h"
#include "src/base/stop_scope.h"
#include "src/decode/sampling/step_law.h"

namespace pawl {
namespace {

constexpr size_t kMostTree = kMaxTreeRows - 1;  // tokens: the prompt's last row is one of the tree
constexpr size_t kMostExpanded = 16;            // nodes of a call, but for the first ones

struct SpellingNode {
  TokenId token = kNoToken;
  int parent = -1;
  int depth = 0;
  size_t bytes = 0;           // of the text so far
  size_t first = 0, end = 0;  // of the sorted choices: those that begin with this text
  double log_mass = kNoMass;
  bool expanded = false;
  std::map<TokenId, int> children = {};
};

class Classifier {
 public:
  Classifier(const SearchInput& input, const ClassifyOptions& options, int capacity,
             BranchHost* host)
      : input_(input),
        options_(options),
        capacity_(capacity),
        branches_(host, input.model, input.prompt, capacity) {
    for (size_t i = 0; i < options.choices.size(); ++i) sorted_.push_back({options.choices[i], i});
    std::ranges::sort(sorted_);
    masses_.assign(options.choices.size(), kNoMass);
    const auto add = [&](TokenId token) {
      if (token >= 0 && token < Known() && !IsEnd(token)) ends_.push_back(token);
    };
    for (const TokenId token : input.vocabulary.end_tokens()) add(token);
    for (const TokenId token : input.model.info().end_tokens) add(token);
  }

  Result<ClassifyResult> Go() {
    if (Status status = branches_.Start(); !status.ok()) return status.error();
    prompt_calls_ = branches_.calls();
    nodes_.push_back({.end = sorted_.size(), .log_mass = 0});
    if (Status status = Expand(0, branches_.prompt_logits()); !status.ok()) return status.error();
    std::vector<int> wanted = OwnSpellings();
    for (;;) {
      while (!wanted.empty() && !at_limit_) {
        StopScope::Check();
        if (Status status = RunSome(wanted); !status.ok()) return status.error();
      }
      if (at_limit_ || Missing() <= std::log(options_.exact_missing) + Valid()) break;
      for (auto it = open_.begin(); it != open_.end() && wanted.size() < kMostExpanded; ++it) {
        wanted.push_back(it->second);
      }
      if (wanted.empty()) break;
      std::ranges::sort(wanted);
    }
    return Answer();
  }

 private:
  int Known() const {
    return std::min(input_.model.info().vocabulary_size, input_.vocabulary.size());
  }
  bool IsEnd(TokenId token) const { return std::ranges::find(ends_, token) != ends_.end(); }
  SpellingNode& At(int node) { return nodes_[static_cast<size_t>(node)]; }
  std::string_view TextOf(const SpellingNode& node) const {
    return std::string_view(sorted_[node.first].first).substr(0, node.bytes);
  }
  // The logarithms of what was found, and of what is missing at most.
  double Valid() const { return LogSum(masses_); }
  double Missing() const {
    if (open_.empty()) return kNoMass;
    const double least = open_.begin()->first;
    double sum = 0;
    for (auto it = open_.rbegin(); it != open_.rend(); ++it) sum += std::exp(least - it->first);
    return std::log(sum) - least;
  }

  // The child with this token, made where there is none. -1: no choice goes on so.
  int ChildOf(int parent, TokenId token) {
    const SpellingNode& from = At(parent);
    if (const auto found = from.children.find(token); found != from.children.end()) {
      return found->second;
    }
    if (input_.vocabulary.is_special(token) || token >= Known()) return -1;
    const std::string_view bytes = input_.vocabulary.bytes(token);
    if (bytes.empty()) return -1;
    SpellingNode child = {.token = token, .parent = parent, .depth = from.depth + 1};
    child.bytes = from.bytes + bytes.size();
    const auto goes_on = [&](size_t i) {
      return std::string_view(sorted_[i].first).substr(from.bytes).starts_with(bytes);
    };
    // The choices are sorted, so those that go on so stand together.
    child.first = from.first;
    while (child.first < from.end && !goes_on(child.first)) ++child.first;
    child.end = child.first;
    while (child.end < from.end && goes_on(child.end)) ++child.end;
    if (child.first == child.end) return -1;
    nodes_.push_back(std::move(child));
    const int made = static_cast<int>(nodes_.size()) - 1;
    At(parent).children[token] = made;
    return made;
  }

  std::vector<int> OwnSpellings() {
    std::vector<int> own;
    if (!input_.encode) return own;
    for (const std::string& choice : options_.choices) {
      int node = 0;
      std::vector<int> path;
      for (const TokenId token : input_.encode(choice)) {
        node = ChildOf(node, token);
        if (node < 0) break;
        path.push_back(node);
      }
      // A spelling of another text, such as one with a space before it, is none.
      if (node <= 0 || At(node).bytes != choice.size()) continue;
      // Behind the last token nothing is asked for where the text goes on.
      if (input_.choices_go_on) path.pop_back();
      for (const int one : path) {
        if (std::ranges::find(own, one) == own.end()) own.push_back(one);
      }
    }
    std::ranges::sort(own);  // parents come before their children
    return own;
  }

  void Add(size_t choice, double log_mass) { masses_[choice] = LogAdd(masses_[choice], log_mass); }

  // The law behind a node has come.
  Status Expand(int number, std::span<const float> logits) {
    const Result<StepLaw> law = MakeStepLaw(logits, options_.temperature, nullptr, 0);
    if (!law.ok()) return law.error();
    const double base = At(number).log_mass;
    At(number).expanded = true;
    if (const auto it = open_.find({-base, number}); it != open_.end()) open_.erase(it);
    if (!(base > kNoMass)) return {};
    const SpellingNode from = At(number);
    // Of texts with the same beginning the shortest one is the first.
    if (!input_.choices_go_on && sorted_[from.first].first.size() == from.bytes) {
      for (const TokenId end : ends_) {
        Add(sorted_[from.first].second, base + law->LogProbability(logits, end));
      }
    }
    const TokenTrie& trie = TrieOf(input_.vocabulary);
    for (size_t i = from.first; i < from.end; ++i) {
      const std::string_view rest = std::string_view(sorted_[i].first).substr(from.bytes);
      uint32_t at = TokenTrie::kRoot;
      for (const char byte : rest) {
        at = trie.Child(at, static_cast<uint8_t>(byte));
        if (at == TokenTrie::kNone) break;
        if (input_.choices_go_on && &byte == &rest.back()) break;
        trie.ForTokens(trie.nodes()[at], [&](TokenId token) {
          const int child = ChildOf(number, token);
          if (child < 0 || At(child).log_mass > kNoMass) return;
          const double mass = base + law->LogProbability(logits, token);
          At(child).log_mass = mass;
          if (mass > kNoMass) open_.insert({-mass, child});
        });
      }
      if (!input_.choices_go_on || at == TokenTrie::kNone) continue;
      const std::span<const TokenId> reaching = trie.order().subspan(
          trie.FirstToken(at), trie.FirstToken(trie.nodes()[at].end) - trie.FirstToken(at));
      for (const TokenId token : reaching) {
        if (token >= Known()) continue;
        Add(sorted_[i].second, base + law->LogProbability(logits, token));
      }
    }
    return {};
  }

  std::vector<TokenId> PathOf(int node) {
    std::vector<TokenId> tokens;
    for (; node > 0; node = At(node).parent) tokens.push_back(At(node).token);
    std::ranges::reverse(tokens);
    return tokens;
  }

  // Runs and expands as many of the first of these as a call takes, and takes them out of the list.
  Status RunSome(std::vector<int>& wanted) {
    // Without a place for the text nothing follows.
    const auto no_room = [&](int node) {
      return At(node).depth + static_cast<int>(input_.prompt.size()) > capacity_;
    };
    std::erase_if(wanted, no_room);
    if (wanted.empty()) return {};
    const int64_t left = options_.exact_rows - rows_;
    std::vector<TreeToken> tree;
    std::map<int, int> places;  // in the tree, by node
    std::vector<int> run;
    for (const int node : wanted) {
      std::vector<int> missing;
      for (int up = node; up > 0 && !places.contains(up); up = At(up).parent) missing.push_back(up);
      const size_t size = tree.size() + missing.size();
      if (static_cast<int64_t>(size) > left) {
        at_limit_ = true;
        if (run.empty()) return {};
      }
      if (size > kMostTree || at_limit_) break;
      for (auto up = missing.rbegin(); up != missing.rend(); ++up) {
        const int parent = At(*up).parent;
        places[*up] = static_cast<int>(tree.size());
        tree.push_back({At(*up).token, parent > 0 ? places[parent] : -1, false});
      }
      tree[static_cast<size_t>(places[node])].wanted = true;
      run.push_back(node);
    }
    if (run.empty()) return RunLong(wanted, left);
    wanted.erase(wanted.begin(), wanted.begin() + static_cast<ptrdiff_t>(run.size()));
    if (branch_ < 0) {
      const Result<int> made = branches_.New();
      if (!made.ok()) return made.error();
      branch_ = *made;
    }
    // Answers come in the order of the tree.
    std::vector<int> order = run;
    std::ranges::sort(order, {}, [&](int node) { return places[node]; });
    rows_ += static_cast<int64_t>(tree.size());
    if (Status status = branches_.LookBehind(branch_, std::move(tree)); !status.ok()) return status;
    for (size_t i = 0; i < order.size(); ++i) {
      if (Status status = Expand(order[i], branches_.logits(i)); !status.ok()) return status;
    }
    return {};
  }

  // The first of these on a branch, with those behind it that are its children in a row.
  Status RunLong(std::vector<int>& wanted, int64_t left) {
    size_t count = 1;
    while (count < wanted.size() && At(wanted[count]).parent == wanted[count - 1]) ++count;
    at_limit_ = static_cast<int64_t>(count) > left;
    if (at_limit_) return {};
    if (long_branch_ < 0) {
      const Result<int> made = branches_.New();
      if (!made.ok()) return made.error();
      long_branch_ = *made;
    }
    branches_.Seek(long_branch_, PathOf(wanted[count - 1]));
    const int branches[] = {long_branch_};
    const int answers[] = {static_cast<int>(count)};
    rows_ += answers[0];
    if (Status status = branches_.RunTails(branches, answers); !status.ok()) return status;
    for (size_t i = 0; i < count; ++i) {
      if (Status status = Expand(wanted[i], branches_.logits(i)); !status.ok()) return status;
    }
    wanted.erase(wanted.begin(), wanted.begin() + static_cast<ptrdiff_t>(count));
    return {};
  }

  ClassifyResult Answer() const {
    ClassifyResult result;
    const double valid = Valid(), missing = Missing();
    result.valid = std::exp(valid);
    result.missing = std::exp(missing);
    // A bound from above, so not 0 where anything is missing.
    if (missing > kNoMass) {
      result.missing = std::max(result.missing, std::numeric_limits<double>::denorm_min());
    }
    result.at_limit = at_limit_;
    result.rows = rows_;
    result.calls = branches_.calls() - prompt_calls_;
    for (size_t i = 0; i < masses_.size(); ++i) {
      result.choices.push_back({options_.choices[i],
                                valid > kNoMass ? std::exp(masses_[i] - valid) : 0,
                                std::max(kZeroWeight, masses_[i])});
    }
    return result;
  }

  const SearchInput& input_;
  const ClassifyOptions& options_;
  const int capacity_;
  Branches branches_;
  int branch_ = -1, long_branch_ = -1;
  std::vector<std::pair<std::string, size_t>> sorted_;  // choices with their numbers
  std::vector<double> masses_;                          // logarithms, by number
  std::vector<TokenId> ends_;
  std::vector<SpellingNode> nodes_;
  std::set<std::pair<double, int>> open_;  // -log_mass, node: the most probable first
  // Of tokens behind the prompt. Those that run again do not count, so the limit is the same
  // whatever else runs.
  int64_t rows_ = 0;
  int64_t prompt_calls_ = 0;
  bool at_limit_ = false;  // the next rows would be too many
};

}  // namespace

Result<ClassifyResult> Classify(const SearchInput& input, const ClassifyOptions& options,
                                int capacity, BranchHost* host) {
  return Classifier(input, options, capacity, host).Go();
}

}  // namespace pawl
