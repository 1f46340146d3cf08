// Clauses: can these disjunctions all be true at once, and how?
//
// A small solver for propositional logic. What many conditions on one object leave is of that form:
// each condition is a disjunction, and what decides them are the values of a few keys
// (solve/solver_clauses.cc).
#ifndef PAWL_SCHEMAS_FORMULA_CLAUSES_H_
#define PAWL_SCHEMAS_FORMULA_CLAUSES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pawl::schema {

// Not thread-safe.
class Clauses {
 public:
  // A variable or its negation.
  using Literal = uint32_t;
  static constexpr Literal Not(Literal literal) { return literal ^ 1; }

  // Of a new variable. Where nothing speaks against `first`, that is its value.
  Literal NewVariable(bool first = false);
  // One of these is true. An empty clause is never true.
  void Add(std::vector<Literal> clause);
  enum class Answer : uint8_t { kNo, kUnknown, kYes };
  // Takes what it needs of `steps`, the clauses that are looked at; kUnknown where they are spent.
  // More clauses may be added afterwards.
  Answer Solve(int64_t& steps);
  // The value of a literal. REQUIRES: Solve has answered kYes, and nothing was added since.
  bool True(Literal literal) const { return values_[literal] == kTrue; }

  size_t variables() const { return levels_.size(); }

 private:
  static constexpr int8_t kOpen = 0, kTrue = 1, kFalse = -1;
  static constexpr uint32_t kNone = UINT32_MAX;
  void Assign(Literal literal, uint32_t reason);
  void Undo(size_t level);
  // The clause that is false; kNone: there is none.
  uint32_t Propagate(int64_t& steps);
  // Adds what the false clause teaches, and goes back to where that decides something.
  void Learn(uint32_t clause, int64_t& steps);
  uint32_t Keep(std::vector<Literal> clause);

  std::vector<int8_t> values_;     // by literal
  std::vector<uint32_t> levels_;   // by variable: decisions that were made when it got its value,
  std::vector<uint32_t> reasons_;  // and the clause that gave it; kNone: a decision
  std::vector<bool> first_;        // by variable: the value that is tried first
  std::vector<double> activity_;   // by variable: how much it had to do with what went wrong
  double bump_ = 1;
  std::vector<std::vector<Literal>> clauses_;   // of two literals at least; the first two watch
  std::vector<std::vector<uint32_t>> watches_;  // by literal: the clauses that it watches
  std::vector<Literal> trail_;                  // what is true, in order
  std::vector<size_t> decisions_;               // places in trail_
  size_t next_ = 0;                             // of the trail, to be propagated
  bool impossible_ = false;
  std::vector<bool> seen_;  // by variable, in Learn
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_FORMULA_CLAUSES_H_
