// After Park et al., "Grammar-Aligned Decoding" (arXiv 2405.21047). Stored is what differs from
// "everything is fine": the mass that the mask leaves, and the tokens that were tried. The rest of
// a node's tokens have theta = 1 together.
//
// Where all allowed tokens have edges the remainder is nothing, and not what rounding leaves of a
// difference: so theta reaches the true mass.
#include "src/decode/sampling/prefix_trie.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace pawl {
namespace {

constexpr char kMagic[] = "pawl-oracle-1\n";

void Put(std::string& out, const void* data, size_t size) {
  out.append(static_cast<const char*>(data), size);
}

// Reads fixed sizes from bytes; `ok` turns false at the end of them.
struct Reader {
  std::string_view bytes;
  bool ok = true;
  template <typename T>
  T Take() {
    T value{};
    if (bytes.size() < sizeof value) {
      ok = false;
      return value;
    }
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes.remove_prefix(sizeof value);
    return value;
  }
};

Error Damaged() { return Error{ErrorCode::kInvalid, "is no trie, or damaged", ""}; }

}  // namespace

bool PrefixTrie::Room(size_t bytes) {
  if (bytes_ + bytes > options_.max_bytes) {
    full_ = true;
    return false;
  }
  bytes_ += bytes;
  return true;
}

bool PrefixTrie::AddEdge(int32_t node, const Edge& edge) {
  std::vector<Edge>& edges = At(node).edges;
  const auto it = std::lower_bound(edges.begin(), edges.end(), edge.token,
                                   [](const Edge& e, TokenId token) { return e.token < token; });
  if (it != edges.end() && it->token == edge.token) {
    it->node = edge.node;
    return true;
  }
  // Vectors keep up to twice what they hold.
  if (!Room(2 * sizeof(Edge))) return false;
  edges.insert(it, edge);
  return true;
}

int32_t PrefixTrie::Visit(int32_t parent, TokenId token, double probability, double allowed,
                          int count) {
  if (parent == kNone && !nodes_.empty()) return kNone;
  if (nodes_.size() >= static_cast<size_t>(INT32_MAX) || !Room(2 * sizeof(Node))) return kNone;
  const auto made = static_cast<int32_t>(nodes_.size());
  if (parent != kNone && !AddEdge(parent, {token, made, probability})) return kNone;
  const double reach = parent == kNone ? 1 : At(parent).reach * probability;
  nodes_.push_back({parent, count, allowed, std::min(1.0, allowed), reach, {}});
  return made;
}

void PrefixTrie::AddDead(int32_t node, TokenId token, double probability) {
  if (node != kNone) AddEdge(node, {token, kDead, probability});
}

void PrefixTrie::AddEnd(int32_t node, TokenId token, double probability) {
  if (node == kNone || Find(node, token) != nullptr) return;
  if (AddEdge(node, {token, kEnd, probability})) found_ += At(node).reach * probability;
}

const PrefixTrie::Edge* PrefixTrie::Find(int32_t node, TokenId token) const {
  if (node < 0) return nullptr;
  const std::vector<Edge>& edges = At(node).edges;
  const auto it = std::lower_bound(edges.begin(), edges.end(), token,
                                   [](const Edge& e, TokenId t) { return e.token < t; });
  return it != edges.end() && it->token == token ? &*it : nullptr;
}

double PrefixTrie::Theta(int32_t node) const {
  if (node == kDead) return 0;
  return node < 0 ? 1 : At(node).theta;
}

double PrefixTrie::Remainder(int32_t node) const {
  const Node& n = At(node);
  if (static_cast<int64_t>(n.edges.size()) >= n.count) return 0;
  double rest = n.allowed;
  for (const Edge& edge : n.edges) rest -= edge.probability;
  return std::max(0.0, rest);
}

void PrefixTrie::Update(int32_t node) {
  for (; node >= 0; node = At(node).parent) {
    double theta = Remainder(node);
    for (const Edge& edge : At(node).edges) theta += edge.probability * ThetaOf(edge);
    At(node).theta = std::min(At(node).theta, theta);
  }
}

std::string PrefixTrie::Save(std::string_view key) const {
  std::string out = kMagic;
  const uint64_t size = key.size(), count = nodes_.size();
  Put(out, &size, sizeof size);
  out += key;
  Put(out, &count, sizeof count);
  Put(out, &found_, sizeof found_);
  for (const Node& node : nodes_) {
    Put(out, &node.parent, sizeof node.parent);
    Put(out, &node.count, sizeof node.count);
    Put(out, &node.allowed, sizeof node.allowed);
    Put(out, &node.theta, sizeof node.theta);
    Put(out, &node.reach, sizeof node.reach);
    const uint64_t edges = node.edges.size();
    Put(out, &edges, sizeof edges);
    for (const Edge& edge : node.edges) {
      Put(out, &edge.token, sizeof edge.token);
      Put(out, &edge.node, sizeof edge.node);
      Put(out, &edge.probability, sizeof edge.probability);
    }
  }
  return out;
}

Result<PrefixTrie> PrefixTrie::Load(std::string_view bytes, std::string_view key,
                                    const OracleTrieOptions& options) {
  const std::string_view magic = kMagic;
  if (!bytes.starts_with(magic)) return Damaged();
  Reader in{bytes.substr(magic.size())};
  const auto size = in.Take<uint64_t>();
  if (!in.ok || size > in.bytes.size()) return Damaged();
  if (in.bytes.substr(0, size) != key) {
    return Error{ErrorCode::kInvalid,
                 "belongs to another model, prompt, constraint, check, temperature or budget", ""};
  }
  in.bytes.remove_prefix(size);
  PrefixTrie trie(options);
  const auto count = in.Take<uint64_t>();
  trie.found_ = in.Take<double>();
  const auto share = [](double p) { return p >= 0 && p <= 1 + 1e-9; };
  if (!in.ok || !share(trie.found_)) return Damaged();
  for (uint64_t i = 0; i < count; ++i) {
    Node node;
    node.parent = in.Take<int32_t>();
    node.count = in.Take<int32_t>();
    node.allowed = in.Take<double>();
    node.theta = in.Take<double>();
    node.reach = in.Take<double>();
    const auto edges = in.Take<uint64_t>();
    const bool place =
        i == 0 ? node.parent == kNone : node.parent >= 0 && static_cast<uint64_t>(node.parent) < i;
    if (!in.ok || !place || edges > in.bytes.size() || !share(node.allowed) || !share(node.theta) ||
        !share(node.reach)) {
      return Damaged();
    }
    if (!trie.Room(2 * sizeof(Node) + 2 * sizeof(Edge) * edges)) {
      return Error{ErrorCode::kLimit, "is larger than the limit for tries", ""};
    }
    for (uint64_t e = 0; e < edges; ++e) {
      Edge edge;
      edge.token = in.Take<TokenId>();
      edge.node = in.Take<int32_t>();
      edge.probability = in.Take<double>();
      const bool known =
          edge.node == kDead || edge.node == kEnd ||
          (edge.node > static_cast<int64_t>(i) && static_cast<uint64_t>(edge.node) < count);
      const bool ordered = node.edges.empty() || node.edges.back().token < edge.token;
      if (!in.ok || !known || !ordered || edge.token < 0 || !share(edge.probability)) {
        return Damaged();
      }
      node.edges.push_back(edge);
    }
    trie.nodes_.push_back(std::move(node));
  }
  if (!in.bytes.empty()) return Damaged();
  return trie;
}

}  // namespace pawl
