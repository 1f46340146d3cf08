// What is wrong with a program: names that nothing declares, members that a type does not have,
// calls with too many or too few arguments, assignments to constants; and, strictly, everything
// that does not type-check or that is not followed.
#ifndef PAWL_PLUGINS_MONITORS_TYPESCRIPT_CHECK_H_
#define PAWL_PLUGINS_MONITORS_TYPESCRIPT_CHECK_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/monitors/monitor.h"
#include "plugins/monitors/typescript/checker.h"

namespace pawl::monitors::ts {

struct Problem {
  size_t byte = 0;
  std::string identifier;
  const char* monitor = "";
  std::string message;
};
// Whether NamesInScope has the word, which is no name.
bool ScopeWord(std::string_view word);

// Sorted names of the members of an expression; nullopt: anything may be one.
std::optional<std::vector<std::string>> MemberNames(Checker& checker, const Node* object);
// Names of the types and namespaces in a namespace of another file, behind `space.` in a type.
std::optional<std::vector<std::string>> TypeNames(Checker& checker, const Node* space);
// Whether a comment tells the compiler to pass over the errors of the line that begins at the byte
// or holds it: @ts-ignore and @ts-expect-error above it, @ts-nocheck at the top.
bool Unchecked(std::string_view text, size_t byte);
// Names that may stand where `node`, an expression, stands in a finished text; nullopt when it is
// no place for one.
std::optional<std::vector<std::string>> NamesInScope(Checker& checker, const Node* node);

// What is known of members of an expression, and of names in scope at an expression. REQUIRES: as
// many details as names.
void MemberDetails(Checker& checker, const Node* object, std::span<const std::string> names,
                   std::vector<NameDetail>& details);
// Adds the members that are known, where others may be there too.
void KnownMembers(Checker& checker, const Node* object, std::vector<std::string>& names);
void ScopeDetails(Checker& checker, const Node* at, std::span<const std::string> names,
                  std::vector<NameDetail>& details);

std::optional<Problem> MemberProblem(Checker& checker, const Node* member);
std::optional<Problem> CountProblem(Checker& checker, const Node* call);
std::optional<Problem> ConstantProblem(Checker& checker, const Node* assignment);
std::optional<Problem> InstantiationProblem(Checker& checker, const Node* call);
std::optional<Problem> NameProblem(Checker& checker, const Node* name);

// All of a finished program.
std::vector<Problem> FindProblems(Checker& checker, bool strict);
void FindStrictProblems(Checker& checker, std::vector<Problem>& problems);
// Where the first error node begins.
size_t FirstError(const Node* root);

// The declarations of the standard library (lib.es*.d.ts of the package node-typescript, without
// comments), and those that newer versions of the language have added since.

std::string LibraryText();
// Names that a host such as a browser or Node declares: they exist, nothing is known of their
// types.
bool HostName(std::string_view name);
const std::string_view* HostNames(size_t* count);

}  // namespace pawl::monitors::ts

#endif  // PAWL_PLUGINS_MONITORS_TYPESCRIPT_CHECK_H_
