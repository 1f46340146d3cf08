// What lazy rules do to the terminals beside them. Internal to grammar/languages.
#ifndef PAWL_GRAMMAR_LANGUAGES_LARK_LAZY_H_
#define PAWL_GRAMMAR_LANGUAGES_LARK_LAZY_H_

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/languages/lark_ast.h"

namespace pawl::lark {

// A set of lazy rules of one scope, by their bits.
using LazySet = uint64_t;

class LazyRules {
 public:
  static constexpr size_t kMost = 64;
  // What an expression of the grammar says about lazy rules.
  struct Facts {
    LazySet first = 0;  // those that may begin where it begins
    LazySet again = 0;  // those with which it may go on where it ends
    bool empty = false;
    friend bool operator==(const Facts&, const Facts&) = default;
  };

  // `tree` and `scope` must outlive it.
  // `stop_is_suffix`: a rule with a stop is lazy as well.
  LazyRules(const Tree& tree, const Scope& scope, bool stop_is_suffix);
  bool any() const { return !rules_.empty(); }
  bool too_many() const { return too_many_; }
  const std::vector<const Definition*>& rules() const { return rules_; }
  LazySet BitOf(const Definition& rule) const;
  const Facts& Of(NodeId node) const { return facts_[node]; }

 private:
  Facts Compute(NodeId id);

  const Tree& tree_;
  bool too_many_ = false;
  std::vector<const Definition*> rules_;
  std::unordered_map<std::string_view, Facts> by_name_;
  std::vector<Facts> facts_;  // by node
};

}  // namespace pawl::lark

#endif  // PAWL_GRAMMAR_LANGUAGES_LARK_LAZY_H_
