// PrefixTrie: what outputs that were tried have taught about prefixes. A node is a prefix that was
// visited; theta of a prefix is an upper bound of the probability that the model, from there, ends
// up with a valid output:
//   theta = 1                                        of a prefix that was not visited
//   theta = sum of P(y | prefix) theta(prefix y)     of a visited one, over the tokens allowed
//   there theta = 0 and 1                                  of what was found invalid, of a valid
//   end
// It never rises, and where every continuation was visited it is the probability itself.
//
//   PrefixTrie trie({.max_bytes = 1 << 20});
//   int node = trie.Visit(PrefixTrie::kNone, 0, 0.5, 3);   // the root: 3 tokens, of mass 0.5
//   trie.AddDead(node, 17, 0.2);                           // token 17, of probability 0.2
//   trie.Update(node);                                     // theta() == 0.3
//
// Sparse: a node holds the mass of its allowed tokens in one number and an edge for each token that
// was tried. Bounded: when the bytes are used up nothing is added any more; what is known stays.
#ifndef PAWL_SRC_DECODE_SAMPLING_PREFIX_TRIE_H_
#define PAWL_SRC_DECODE_SAMPLING_PREFIX_TRIE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"

namespace pawl {

struct OracleTrieOptions {
  size_t max_bytes = size_t{64} << 20;
};

// One thread at a time.
class PrefixTrie {
 public:
  static constexpr int32_t kNone = -1;  // no node: not visited
  static constexpr int32_t kDead = -2;  // theta 0
  static constexpr int32_t kEnd = -3;   // a valid output, theta 1
  struct Edge {
    TokenId token;
    int32_t node;  // a node, kDead or kEnd
    double probability;
  };

  explicit PrefixTrie(const OracleTrieOptions& options = {}) : options_(options) {}

  // The root, or kNone.
  int32_t root() const { return nodes_.empty() ? kNone : 0; }
  // Makes the node of a prefix visited for the first time: the one behind `token`, which has this
  // probability, of `parent`; kNone when there is no room, or none was for the parent. `allowed`:
  // the mass of the tokens that may follow, `count` of them.
  int32_t Visit(int32_t parent, TokenId token, double probability, double allowed, int count);
  int32_t MakeRoot(double allowed, int count) { return Visit(kNone, kNoToken, 1, allowed, count); }
  // What was tried behind a node and led to no further prefix. No effect on kNone.
  void AddDead(int32_t node, TokenId token, double probability);
  void AddEnd(int32_t node, TokenId token, double probability);
  // theta of the node and of all above it, from their edges.
  void Update(int32_t node);

  std::span<const Edge> edges(int32_t node) const { return At(node).edges; }
  const Edge* Find(int32_t node, TokenId token) const;
  // Of a node, kDead, kEnd, or kNone.
  double Theta(int32_t node) const;
  double ThetaOf(const Edge& edge) const { return Theta(edge.node); }
  double Allowed(int32_t node) const { return At(node).allowed; }
  // The mass of the allowed tokens that have no edge.
  double Remainder(int32_t node) const;

  // Upper and lower bound of the mass of valid outputs.
  double theta() const { return Theta(root()); }
  double found() const { return found_; }
  int64_t node_count() const { return static_cast<int64_t>(nodes_.size()); }
  size_t bytes() const { return bytes_; }
  bool full() const { return full_; }

  // Everything, as bytes; Load is the inverse. `key` names what the trie is of: model, prompt,
  // grammar, checks, temperature, budget. Errors of Load: kInvalid for damaged bytes and for
  // another key.
  std::string Save(std::string_view key) const;
  static Result<PrefixTrie> Load(std::string_view bytes, std::string_view key,
                                 const OracleTrieOptions& options = {});

 private:
  struct Node {
    int32_t parent;
    int32_t count;  // of allowed tokens
    double allowed;
    double theta;
    double reach;             // the probability of the prefix
    std::vector<Edge> edges;  // ascending by token
  };
  const Node& At(int32_t node) const { return nodes_[static_cast<size_t>(node)]; }
  Node& At(int32_t node) { return nodes_[static_cast<size_t>(node)]; }
  bool AddEdge(int32_t node, const Edge& edge);
  bool Room(size_t bytes);

  OracleTrieOptions options_;
  std::vector<Node> nodes_;
  size_t bytes_ = 0;
  double found_ = 0;
  bool full_ = false;
};

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLING_PREFIX_TRIE_H_
