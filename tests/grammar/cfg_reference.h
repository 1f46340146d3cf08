// The slow, obvious recogniser for a GrammarIr: which ends can a text of an expression have that
// begins at a given place? Least fixpoint by iteration, no cleverness. Only for bytes (tokens and
// automata are left out).
#ifndef PAWL_TESTS_GRAMMAR_CFG_REFERENCE_H_
#define PAWL_TESTS_GRAMMAR_CFG_REFERENCE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/cfg/grammar_ir.h"
#include "src/base/utf8.h"

namespace pawl {

class CfgReference {
 public:
  explicit CfgReference(GrammarIr& ir) : ir_(ir) {}

  // Whether the whole text is in the language of the root rule.
  bool Accepts(std::string_view text) {
    const std::u32string points = DecodeCodepoints(text);
    text_ = points;
    const size_t n = points.size() + 1;
    ends_.assign(size_t{ir_.expr_count()} * n, {});
    rule_ends_.assign(size_t{ir_.rule_count()} * n, {});
    // Expressions stand behind their operands, so one pass in their order and one over the rules is
    // a round; rounds go on until nothing is new.
    for (bool changed = true; changed;) {
      changed = false;
      for (GrammarIr::ExprId id = 0; id < ir_.expr_count(); ++id) {
        for (size_t at = 0; at < n; ++at) changed |= Update(id, at, n);
      }
      for (GrammarIr::RuleId rule = 0; rule < ir_.rule_count(); ++rule) {
        for (size_t at = 0; at < n; ++at) {
          std::set<size_t>& ends = rule_ends_[rule * n + at];
          const size_t before = ends.size();
          const std::set<size_t>& body = ends_[ir_.rule(rule).body * n + at];
          ends.insert(body.begin(), body.end());
          changed |= ends.size() != before;
        }
      }
    }
    return rule_ends_[ir_.root() * n].contains(points.size());
  }

  // After Accepts: where texts of an expression or a rule that begin at a place may end.
  const std::set<size_t>& EndsOf(GrammarIr::ExprId id, size_t at) const {
    return ends_[id * (text_.size() + 1) + at];
  }
  const std::set<size_t>& RuleEndsOf(GrammarIr::RuleId rule, size_t at) const {
    return rule_ends_[rule * (text_.size() + 1) + at];
  }

 private:
  bool Update(GrammarIr::ExprId id, size_t at, size_t n) {
    const GrammarIr::Expr& expr = ir_.expr(id);
    std::set<size_t>& ends = ends_[id * n + at];
    const size_t before = ends.size();
    switch (expr.kind) {
      case GrammarIr::Kind::kEmpty:
        ends.insert(at);
        break;
      case GrammarIr::Kind::kRegex: {
        if (before > 0) break;  // depends on nothing else
        ReId rest = expr.index;
        for (size_t i = at;; ++i) {
          if (ir_.arena().Nullable(rest)) {
            ends.insert(i);
            if (expr.lazy) break;
          }
          if (i == text_.size()) break;
          rest = ir_.arena().Derive(rest, text_[i]);
          if (rest == RegexArena::kNothing) break;
        }
        break;
      }
      case GrammarIr::Kind::kCall:
        ends = rule_ends_[expr.index * n + at];
        break;
      case GrammarIr::Kind::kSequence: {
        std::set<size_t> here = {at};
        for (const GrammarIr::ExprId operand : expr.operands) {
          std::set<size_t> next;
          for (const size_t i : here)
            next.insert(ends_[operand * n + i].begin(), ends_[operand * n + i].end());
          here = std::move(next);
        }
        ends.insert(here.begin(), here.end());
        break;
      }
      case GrammarIr::Kind::kChoice:
        for (const GrammarIr::ExprId operand : expr.operands)
          ends.insert(ends_[operand * n + at].begin(), ends_[operand * n + at].end());
        break;
      case GrammarIr::Kind::kRepeat: {
        // Counts beyond min and beyond the text's length (+1 for empty rounds) say nothing new.
        std::set<size_t> here = {at};
        const uint64_t rounds = std::min<uint64_t>(expr.max, uint64_t{expr.min} + text_.size() + 1);
        for (uint64_t round = 0;; ++round) {
          if (round >= expr.min) ends.insert(here.begin(), here.end());
          if (round == rounds || here.empty()) break;
          std::set<size_t> next;
          for (const size_t i : here) {
            const std::set<size_t>& more = ends_[expr.operands[0] * n + i];
            next.insert(more.begin(), more.end());
          }
          here = std::move(next);
        }
        break;
      }
      default:
        break;
    }
    return ends.size() != before;
  }

  GrammarIr& ir_;
  std::u32string text_;
  std::vector<std::set<size_t>> ends_, rule_ends_;  // [id * (length + 1) + start]
};

}  // namespace pawl

#endif  // PAWL_TESTS_GRAMMAR_CFG_REFERENCE_H_
