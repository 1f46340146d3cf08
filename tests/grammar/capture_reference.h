// The slow, obvious search for the preferred derivation of a text, see pawl/grammar.h: tries
// everything in the order of preference and takes the first that fits. For grammars of bytes, texts
// of a few ASCII letters.
#ifndef PAWL_TESTS_GRAMMAR_CAPTURE_REFERENCE_H_
#define PAWL_TESTS_GRAMMAR_CAPTURE_REFERENCE_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "grammar/cfg/grammar_ir.h"
#include "pawl/grammar.h"
#include "tests/grammar/cfg_reference.h"

namespace pawl {

class CaptureReference {
 public:
  // REQUIRES: reference.Accepts(text) was asked last.
  CaptureReference(GrammarIr& ir, const CfgReference& reference, std::string_view text)
      : ir_(ir), reference_(reference), text_(text) {}

  // nullopt: gave up.
  std::optional<std::vector<Capture>> Run() {
    std::vector<Capture> out;
    if (!Rule(ir_.root(), 0, text_.size(), out) || steps_ > kMaxSteps) return std::nullopt;
    return out;
  }
  // The search met a rule that stands for itself; which derivation counts is then left open.
  bool circular() const { return circular_; }

 private:
  static constexpr int kMaxSteps = 200'000;
  // What is still to come, the next first.
  struct Todo {
    GrammarIr::ExprId expr = GrammarIr::kEmpty;
    uint32_t min = 0, max = 0;  // of a repetition that has begun
    bool repeats = false;
    size_t round_begin = SIZE_MAX;  // a round of a loop that has to get on
    std::shared_ptr<const Todo> next = nullptr;
  };
  using List = std::shared_ptr<const Todo>;

  static List Then(Todo todo, List next) {
    todo.next = std::move(next);
    return std::make_shared<const Todo>(std::move(todo));
  }

  bool Rule(GrammarIr::RuleId rule, size_t begin, size_t end, std::vector<Capture>& out) {
    if (!open_.emplace(rule, begin, end).second) {
      circular_ = true;
      return false;
    }
    const bool fits = Go(Then({.expr = ir_.rule(rule).body}, nullptr), begin, end, out);
    open_.erase({rule, begin, end});
    if (fits && ir_.rule(rule).attributes.capture) {
      out.push_back({*ir_.rule(rule).attributes.capture, begin, end,
                     std::string(text_.substr(begin, end - begin))});
    }
    return fits;
  }

  bool Matches(const GrammarIr::Expr& expr, size_t begin, size_t end) {
    ReId rest = expr.index;
    for (size_t i = begin; i < end; ++i) {
      if (expr.lazy && ir_.arena().Nullable(rest)) return false;
      rest = ir_.arena().Derive(rest, static_cast<char32_t>(text_[i]));
    }
    return ir_.arena().Nullable(rest);
  }

  // Appends to `out` when it fits, else leaves it alone.
  bool Go(const List& todo, size_t at, size_t end, std::vector<Capture>& out) {
    if (++steps_ > kMaxSteps) return false;
    if (todo == nullptr) return at == end;
    const size_t size = out.size();
    const auto back = [&] {
      out.resize(size);
      return false;
    };
    if (todo->round_begin != SIZE_MAX)
      return todo->round_begin < at ? Go(todo->next, at, end, out) : false;
    const GrammarIr::Expr& expr = ir_.expr(todo->expr);
    const List& rest = todo->next;
    switch (expr.kind) {
      case GrammarIr::Kind::kEmpty:
        return Go(rest, at, end, out);
      case GrammarIr::Kind::kRegex:
        for (size_t q = end + 1; q-- > at;) {
          if (Matches(expr, at, q) && Go(rest, q, end, out)) return true;
        }
        return false;
      case GrammarIr::Kind::kCall:
        for (size_t q = end + 1; q-- > at;) {
          if (!reference_.RuleEndsOf(expr.index, at).contains(q)) continue;
          if (Rule(expr.index, at, q, out) && Go(rest, q, end, out)) return true;
          back();
        }
        return false;
      case GrammarIr::Kind::kSequence: {
        List list = rest;
        for (size_t i = expr.operands.size(); i-- > 0;)
          list = Then({.expr = expr.operands[i]}, list);
        return Go(list, at, end, out);
      }
      case GrammarIr::Kind::kChoice:
        for (const GrammarIr::ExprId operand : expr.operands) {
          if (Go(Then({.expr = operand}, rest), at, end, out)) return true;
        }
        return false;
      case GrammarIr::Kind::kRepeat: {
        const bool nullable = reference_.EndsOf(expr.operands[0], at).contains(at);
        const uint32_t min = todo->repeats ? todo->min : nullable ? 0 : expr.min;
        const uint32_t max = todo->repeats ? todo->max : expr.max;
        const bool endless = expr.max == GrammarIr::kUnbounded;
        const auto fewer = [](uint32_t count) { return count == 0 ? 0 : count - 1; };
        Todo more = {.expr = todo->expr,
                     .min = fewer(min),
                     .max = endless ? max : fewer(max),
                     .repeats = true};
        if (expr.max == 1 || (endless && (nullable || expr.min <= 1))) {  // inline
          if (max > 0) {
            List list = endless ? Then(more, rest) : rest;
            if (endless) list = Then({.round_begin = at}, list);
            if (Go(Then({.expr = expr.operands[0]}, list), at, end, out)) return true;
          }
        } else if (max > 0) {
          for (size_t q = end; q > at; --q) {
            if (!reference_.EndsOf(expr.operands[0], at).contains(q)) continue;
            if (Go(Then({.expr = expr.operands[0]}, nullptr), at, q, out) &&
                Go(Then(more, rest), q, end, out)) {
              return true;
            }
            back();
          }
        }
        return min == 0 && Go(rest, at, end, out);
      }
      default:
        return false;
    }
  }

  GrammarIr& ir_;
  const CfgReference& reference_;
  const std::string_view text_;
  std::set<std::tuple<GrammarIr::RuleId, size_t, size_t>> open_;
  int steps_ = 0;
  bool circular_ = false;
};

}  // namespace pawl

#endif  // PAWL_TESTS_GRAMMAR_CAPTURE_REFERENCE_H_
