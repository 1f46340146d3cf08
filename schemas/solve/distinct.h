// Many different strings or numbers: whether there is no end to them, and the first few.
#ifndef PAWL_SCHEMAS_SOLVE_DISTINCT_H_
#define PAWL_SCHEMAS_SOLVE_DISTINCT_H_

#include <functional>
#include <string>
#include <vector>

#include "schemas/scalar/number_program.h"
#include "schemas/scalar/string_search.h"

namespace pawl::schema {

// There are infinitely many accepted continuations, or more than 10^12. "No" may be wrong, "yes" is
// not.
bool Endless(StringSearch& search, StringSearch::StateId state);
// From `text`, which leads to `state`, infinitely many different numbers can be reached;
// `every_spelling`: and so they can from every other way to write its value, given that integers
// have one only. "No" may be wrong, "yes" is not.
bool Endless(NumberProgram& program, NumberProgram::StateId state, const std::string& text,
             bool every_spelling);

// Up to `count` accepted continuations, short ones first.
std::vector<std::u32string> Continuations(StringSearch& search, StringSearch::StateId state,
                                          size_t count);
// All accepted texts, short ones first; false where `within` (asked before each step of the search,
// with the steps so far and the texts found) puts an end to it.
bool ListTexts(StringSearch& search, const std::function<bool(size_t, size_t)>& within,
               std::vector<std::u32string>& out);
std::vector<std::string> Continuations(NumberProgram& program, NumberProgram::StateId state,
                                       size_t count);

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SOLVE_DISTINCT_H_
