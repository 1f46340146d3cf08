// GrowthWatch: ends a question to a machine that makes it grow beyond a bound, in the middle of the
// question (StepWatch in src/base/stop_scope.h). Between questions the budget frees what is too
// much; but a question could take all memory before it is asked.
//
//   const GrowthWatch watch(*machine, before + most);     // throws TooMuchMemory while it lives
#ifndef PAWL_GRAMMAR_GROWTH_WATCH_H_
#define PAWL_GRAMMAR_GROWTH_WATCH_H_

#include <algorithm>
#include <cstddef>

#include "grammar/machine.h"
#include "src/base/failure.h"
#include "src/base/stop_scope.h"

namespace pawl {

class GrowthWatch final : public StepWatch {
 public:
  // `most`: of Machine::GrowthHint().
  GrowthWatch(const Machine& machine, size_t most) : machine_(machine), most_(most) {}
  void Look() override {
    if (machine_.GrowthHint() > most_) {
      throw TooMuchMemory(
          "what has to be found of this grammar at once takes more memory than all grammars may "
          "keep");
    }
  }

  // What a question may add where `limit` bytes may be kept: below a certain size a grammar that
  // was given a small budget could not be asked at all.
  static size_t MostOf(size_t limit) { return std::max(limit, size_t{32} << 20); }

 private:
  const Machine& machine_;
  const size_t most_;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_GROWTH_WATCH_H_
