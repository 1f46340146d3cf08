// OpenRules: rules of a grammar that is written while it is found out what is called.
//
//   OpenRules<ContId> rules(ir, "rest_");
//   const ExprId first = rules.Call(start);
//   for (size_t i = 0; i < rules.size(); ++i) rules.Define(i, ... which may call further keys ...);
//
// A rule is named by the order in which keys are called first. Thread safety: none.
#ifndef PAWL_GRAMMAR_CFG_OPEN_RULES_H_
#define PAWL_GRAMMAR_CFG_OPEN_RULES_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "grammar/cfg/grammar_ir.h"

namespace pawl {

template <typename Key>
class OpenRules {
 public:
  OpenRules(GrammarIr& ir, std::string prefix) : ir_(ir), prefix_(std::move(prefix)) {}

  // A call of the key's rule.
  GrammarIr::ExprId Call(const Key& key) {
    const auto [known, inserted] = rules_.emplace(key, GrammarIr::kNoRule);
    if (inserted) {
      known->second = ir_.AddRule(prefix_ + std::to_string(keys_.size()));
      keys_.push_back(key);
    }
    return ir_.Call(known->second);
  }
  size_t size() const { return keys_.size(); }
  Key key(size_t i) const { return keys_[i]; }
  void Define(size_t i, GrammarIr::ExprId body) { ir_.Define(rules_.at(keys_[i]), body); }

 private:
  GrammarIr& ir_;
  std::string prefix_;
  std::map<Key, GrammarIr::RuleId> rules_;
  std::vector<Key> keys_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_CFG_OPEN_RULES_H_
