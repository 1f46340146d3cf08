#include "plugins/monitors/typescript/check.h"
namespace pawl::monitors::ts {
void FindStrictProblems(Checker& checker, std::vector<Problem>& problems) {
  (void)checker;
  (void)problems;
}
}  // namespace pawl::monitors::ts
