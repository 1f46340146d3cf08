// Whether a text asks what an object is before it takes an attribute: `isinstance`, `hasattr`, a
// condition on the version, a `try` around it. Then the attribute may be one that the type lacks.
#include <algorithm>
#include <array>

#include "plugins/monitors/python/typer.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::python {
namespace {

using K = Kind;
using F = Field;
using TK = Type::Kind;

// What the expression begins with: x of x.a[1]().b
const Node* RootOf(const Node* object) {
  const Node* root = object;
  while (root != nullptr &&
         (root->is(K::k_attribute) || root->is(K::k_subscript) || root->is(K::k_call))) {
    const Node* next = root->at(F::k_object);
    if (next == nullptr) next = root->at(F::k_value);
    if (next == nullptr) next = root->at(F::k_function);
    root = next;
  }
  return root;
}

// Where a text asks something of a name, white space aside; npos: nowhere before `to`.
size_t FindAsk(std::string_view text, std::string_view ask, std::string_view name, size_t from,
               size_t to) {
  for (size_t at = text.find(ask, from); at < to; at = text.find(ask, at + 1)) {
    size_t begin = at + ask.size();
    while (begin < text.size() && (text[begin] == ' ' || text[begin] == '\n')) ++begin;
    const size_t end = begin + name.size();
    if (text.substr(begin, name.size()) == name && (end >= text.size() || !NameByte(text[end])) &&
        (at == 0 || !NameByte(text[at - 1]))) {
      return at;
    }
  }
  return std::string_view::npos;
}

// x.kind == "a", x.kind is A, x.kind in (A, B)
bool ComparesMember(std::string_view text, std::string_view name) {
  const std::string member = std::string(name) + ".";
  for (size_t at = text.find(member); at != std::string_view::npos;
       at = text.find(member, at + 1)) {
    if (at > 0 && NameByte(text[at - 1])) continue;
    size_t end = at + member.size();
    while (end < text.size() && NameByte(text[end])) ++end;
    for (const std::string_view compared : {" == ", " is ", " in ", " != ", " not in "}) {
      if (text.substr(end).starts_with(compared) && !text.substr(end).starts_with(" is None") &&
          !text.substr(end).starts_with(" is not None")) {
        return true;
      }
    }
  }
  return false;
}

// The conditions of which one decides whether a node inside of `up` is read; `below`: the part of
// it in which the node stands.
std::vector<const Node*> ConditionsOf(const Node* up, const Node* below) {
  std::vector<const Node*> conditions;
  switch (up->kind) {
    case K::k_if_statement:
    case K::k_elif_clause:
      if (below->field != F::k_condition) conditions.push_back(up->at(F::k_condition));
      break;
    case K::k_boolean_operator:
      if (below->field == F::k_right) conditions.push_back(up->at(F::k_left));
      break;
    case K::k_conditional_expression: {
      size_t i = 0;
      for (const Node& kid : up->kids()) {
        if (!kid.named || kid.is(K::k_comment)) continue;
        if (i++ == 1 && &kid != below) conditions.push_back(&kid);
      }
      break;
    }
    case K::k_list_comprehension:
    case K::k_set_comprehension:
    case K::k_dictionary_comprehension:
    case K::k_generator_expression:
      for (const Node& kid : up->kids()) {
        if (kid.named && &kid != below && kid.field != F::k_body && !kid.is(K::k_for_in_clause))
          conditions.push_back(&kid);
      }
      break;
    default:
      break;
  }
  std::erase(conditions, nullptr);
  return conditions;
}

// except AttributeError, except (ImportError, ...), except Exception, except:
bool ClauseCatches(const Node* clause, bool module) {
  std::string_view head = clause->text();
  head = head.substr(0, head.find(':'));
  if (head.size() < 8) return true;
  for (const std::string_view word : {"AttributeError", "Exception", "BaseException"}) {
    if (head.find(word) != std::string_view::npos) return true;
  }
  if (!module) return false;
  for (const std::string_view word : {"ImportError", "ModuleNotFoundError", "NameError"}) {
    if (head.find(word) != std::string_view::npos) return true;
  }
  // A name that is not one of Python's errors may stand for any of them.
  return head.find("Error") == std::string_view::npos;
}

bool Catches(const Node* statement, bool module) {
  return std::ranges::any_of(statement->kids(), [&](const Node& kid) {
    return kid.is(K::k_except_clause) && ClauseCatches(&kid, module);
  });
}

// In the handler of a `try`: what stands there is for where the other is not there. A handler of
// any error counts where the `try` asks the same object.
bool InHandler(const Node* statement, const Node* clause, const Node* use, bool module) {
  if (!clause->is(K::k_except_clause) || !ClauseCatches(clause, module)) return false;
  std::string_view head = clause->text();
  head = head.substr(0, head.find(':'));
  for (const std::string_view word :
       {"AttributeError", "ImportError", "NotFoundError", "NameError"}) {
    if (head.find(word) != std::string_view::npos) return true;
  }
  const Node* body = statement->at(F::k_body);
  const Node* root = RootOf(use);
  const std::string_view text = body == nullptr ? std::string_view{} : body->text();
  const std::string_view name = root == nullptr ? std::string_view{} : root->text();
  return !name.empty() && FindAsk(text, "", name, 0, text.size()) < text.size();
}

// c of a if c else b
bool IsCondition(const Node* choice, const Node* part) {
  size_t i = 0;
  for (const Node& kid : choice->kids()) {
    if (!kid.named || kid.is(K::k_comment)) continue;
    if (i++ == 1) return &kid == part;
  }
  return false;
}

// A condition on the version, the platform or on what there is.
bool AsksForPlatform(std::string_view asked) {
  static constexpr std::array<std::string_view, 16> kWords = {
      "version", "platform", "PY2",           "PY3",           "os.name", "win32",
      "\"win",   "'win",     "WINDOWS",       "windows",       "\"nt\"",  "'nt'",
      "posix",   "hasattr",  "TYPE_CHECKING", "implementation"};
  return std::ranges::any_of(
      kWords, [&](std::string_view word) { return asked.find(word) != std::string_view::npos; });
}

// Whether a statement is left for good: return, raise, continue, break, sys.exit().
bool Leaves(const Node* block) {
  const Node* last = nullptr;
  for (const Node& kid : block->kids()) {
    if (kid.named && !kid.is(K::k_comment)) last = &kid;
  }
  if (last == nullptr) return false;
  const std::string_view text = last->text();
  return last->is(K::k_return_statement) || last->is(K::k_continue_statement) ||
         last->is(K::k_break_statement) || text.starts_with("raise") ||
         text.starts_with("sys.exit") || text.starts_with("exit(");
}

// Functions whose answer is of what an object is: is_dataclass(x), has_keys(x).
bool AsksWhatItIs(std::string_view function) {
  static constexpr std::array<std::string_view, 14> kOther = {
      "isinstance", "isdir",    "isfile", "isabs", "islink",  "ismount",   "isjunction",
      "isnan",      "isfinite", "isinf",  "is_",   "isclose", "iskeyword", "isatty"};
  if (std::ranges::find(kOther, function) != kOther.end()) return false;
  while (function.starts_with('_')) function.remove_prefix(1);
  return function.starts_with("is") || function.starts_with("has") || function.starts_with("Is") ||
         function.starts_with("Has");
}

}  // namespace

// with suppress(AttributeError):, with self.assertRaises(AttributeError):, assertRaises(
// AttributeError, lambda: x.y).
bool IsExpected(const Node* node, std::string_view error) {
  const auto names = [&](std::string_view head) {
    const bool expects = head.find("suppress(") != std::string_view::npos ||
                         head.find("aises") != std::string_view::npos;
    return expects && (head.find(error) != std::string_view::npos ||
                       head.find("Exception") != std::string_view::npos);
  };
  const Node* below = node;
  for (const Node* up = node->parent; up != nullptr; below = up, up = up->parent) {
    const bool with = up->is(K::k_with_statement) && below->field == F::k_body;
    const bool call = up->is(K::k_call) && below->field == F::k_arguments;
    if ((with || call) && names(up->text().substr(0, (with ? below : node)->start - up->start)))
      return true;
  }
  return false;
}

// if x.kind == "a" and x.only_of_a: the object is of the class that a value of it tells.
bool Typer::ToldApart(const Node* object) const {
  if (!object->is(K::k_identifier)) return false;
  const Node* below = object;
  for (const Node* up = object->parent; up != nullptr && !up->is(K::k_function_definition);
       below = up, up = up->parent) {
    for (const Node* condition : ConditionsOf(up, below)) {
      if (ComparesMember(condition->text(), object->text())) return true;
    }
  }
  return false;
}

size_t Typer::AskedUntil(const Node* node) const {
  if (unfinished_) return node->start;
  const Node* up = node;
  while (up->parent != nullptr) {
    const Kind kind = up->parent->kind;
    if (kind == K::k_block || kind == K::k_if_statement || kind == K::k_elif_clause ||
        kind == K::k_while_statement || kind == K::k_for_statement || kind == K::k_with_statement ||
        kind == K::k_try_statement || kind == K::k_function_definition ||
        kind == K::k_class_definition || kind == K::k_match_statement || kind == K::k_case_clause ||
        up->parent->parent == nullptr) {
      break;
    }
    up = up->parent;
  }
  return up->end;
}

// Whether a function is asked what the object is, which stands for more than it says: a TypeGuard.
bool Typer::AskedByFunction(const std::string& name, size_t from, size_t to) {
  const std::string_view text = world_.program().tree->text();
  for (size_t at = text.find(name, from); at < to; at = text.find(name, at + 1)) {
    size_t open = at;
    while (open > from && (text[open - 1] == ' ' || text[open - 1] == '\n')) --open;
    size_t end = at + name.size();
    while (end < text.size() && (text[end] == ' ' || text[end] == '\n')) ++end;
    if (open == from || text[open - 1] != '(' || end >= text.size() ||
        (text[end] != ')' && text[end] != ',')) {
      continue;
    }
    size_t start = open - 1;
    while (start > from && NameByte(text[start - 1])) --start;
    const std::string_view function = text.substr(start, open - 1 - start);
    if (function.empty()) continue;
    if (AsksWhatItIs(function)) return true;
    const Type of = start > 0 && text[start - 1] == '.'
                        ? Type{}
                        : world_.MemberOfModule(world_.program(), function);
    const bool guard = std::ranges::any_of(of.functions, [](const Node* one) {
      const Node* returns = one->at(F::k_return_type);
      return returns != nullptr && (returns->text().find("TypeGuard") != std::string_view::npos ||
                                    returns->text().find("TypeIs") != std::string_view::npos);
    });
    if (guard) return true;
  }
  return false;
}

// Where the function begins that binds the name; 0: the module does.
size_t Typer::ScopeStart(const Node* name) {
  const std::string text(name->text());
  for (const Node* up = name->parent; up != nullptr; up = up->parent) {
    if (!up->is(K::k_function_definition)) continue;
    const Node* parameters = up->at(F::k_parameters);
    if (parameters != nullptr) {
      std::vector<const Node*> todo = {parameters};
      while (!todo.empty()) {
        const Node* node = todo.back();
        todo.pop_back();
        if (node->is(K::k_identifier) && node->text() == text) return up->start;
        for (const Node& kid : node->kids()) {
          if (kid.named) todo.push_back(&kid);
        }
      }
    }
    const Scope& scope = ScopeOf(up);
    if (scope.names.contains(text) && !scope.elsewhere.contains(text)) return up->start;
  }
  return 0;
}

// Type checkers are told to overlook what is wrong there.
bool Typer::Overlooked(const Node* attribute) const {
  const std::string_view text = world_.program().tree->text();
  const size_t end = std::min(text.find('\n', attribute->end), text.size());
  const std::string_view rest = text.substr(attribute->start, end - attribute->start);
  return rest.find("type: ignore") != std::string_view::npos ||
         rest.find("pyright: ignore") != std::string_view::npos;
}

// A condition on the version or the platform, by its words or those of a variable in it:
// NEW = sys.version_info >= (3,).
bool Typer::AsksForVersion(const Node* condition) const {
  if (AsksForPlatform(condition->text())) return true;
  std::vector<const Node*> todo = {condition};
  while (!todo.empty()) {
    Work::Step();
    const Node* node = todo.back();
    todo.pop_back();
    for (const Node& kid : node->kids()) {
      if (kid.named) todo.push_back(&kid);
    }
    if (!node->is(K::k_identifier) || node->field == F::k_attribute) continue;
    const auto& names = world_.program().scope.names;
    const auto found = names.find(std::string(node->text()));
    if (found == names.end()) continue;
    for (const Binding& binding : found->second) {
      if (binding.kind != Binding::Kind::kAssignment) continue;
      const Node* right = binding.node->at(F::k_right);
      if (right != nullptr && right->text().size() < 200 && AsksForPlatform(right->text()))
        return true;
    }
  }
  return false;
}

// if PY3: return ..., above the statement: what stands below is for another version.
bool Typer::LeftByVersion(const Node* block, const Node* below) const {
  for (const Node& kid : block->kids()) {
    Work::Step();
    if (kid.start >= below->start) break;
    if (!kid.is(K::k_if_statement)) continue;
    const Node* condition = kid.at(F::k_condition);
    const Node* body = kid.at(F::k_consequence);
    if (condition != nullptr && body != nullptr && Leaves(body) && AsksForVersion(condition))
      return true;
  }
  return false;
}

// Below a condition on what there is. `module`: of a member of a module or class, which a `try` may
// look for too.
bool Typer::GuardedAbove(const Node* node, bool module) const {
  if (IsExpected(node, "AttributeError")) return true;
  const Node* below = node;
  for (const Node* up = node->parent; up != nullptr; below = up, up = up->parent) {
    const bool branch = up->is(K::k_if_statement) || up->is(K::k_elif_clause);
    const Node* condition = branch ? up->at(F::k_condition)
                            : up->is(K::k_boolean_operator) && below->field == F::k_right
                                ? up->at(F::k_left)
                                : nullptr;
    const bool choice = up->is(K::k_conditional_expression);
    // sys.maxsize if NEW else sys.maxint
    if (choice && module && !IsCondition(up, below)) return true;
    if ((condition != nullptr && below != condition) || choice) {
      if (AsksForVersion(condition != nullptr ? condition : up)) return true;
    }
    if ((up->is(K::k_block) || up->parent == nullptr) && LeftByVersion(up, below)) return true;
    // try: ... except AttributeError: the attempt is how it asks. While a text is written, what is
    // caught is not known yet.
    if (up->is(K::k_try_statement) && InHandler(up, below, node, module)) return true;
    if (up->is(K::k_try_statement) && below->field == F::k_body &&
        (unfinished_ || (!place_ && module) || Catches(up, module))) {
      return true;
    }
  }
  return false;
}

namespace {

// The classes of isinstance(x, A), isinstance(x, (A, B)): nodes of their names.
std::vector<const Node*> TestedClasses(const Node* call) {
  std::vector<const Node*> given;
  const Node* list = call->at(F::k_arguments);
  if (list == nullptr) return given;
  for (const Node& kid : list->kids()) {
    if (kid.named && !kid.is(K::k_comment)) given.push_back(&kid);
  }
  if (given.size() != 2) return {};
  std::vector<const Node*> todo = {given[1]};
  std::vector<const Node*> classes;
  while (!todo.empty()) {
    const Node* node = todo.back();
    todo.pop_back();
    if (node->is(K::k_tuple) || node->is(K::k_parenthesized_expression)) {
      for (const Node& kid : node->kids()) {
        if (kid.named && !kid.is(K::k_comment)) todo.push_back(&kid);
      }
    } else if (node->is(K::k_binary_operator)) {
      todo.push_back(node->at(F::k_left));
      todo.push_back(node->at(F::k_right));
    } else {
      classes.push_back(node);
    }
    if (todo.empty() || todo.back() == nullptr) break;
  }
  return classes;
}

// The call isinstance(name, ...) among the conditions that all hold; nullptr: there is none.
const Node* TestOf(const Node* condition, std::string_view name) {
  while (condition != nullptr && condition->is(K::k_parenthesized_expression))
    condition = condition->first_named();
  if (condition == nullptr) return nullptr;
  if (condition->is(K::k_boolean_operator)) {
    const Node* op = condition->at(F::k_operator);
    if (op == nullptr || op->text() != "and") return nullptr;
    const Node* left = TestOf(condition->at(F::k_left), name);
    return left != nullptr ? left : TestOf(condition->at(F::k_right), name);
  }
  if (!condition->is(K::k_call)) return nullptr;
  const Node* function = condition->at(F::k_function);
  const Node* list = condition->at(F::k_arguments);
  const Node* first = list == nullptr ? nullptr : list->first_named();
  const bool test = function != nullptr && function->text() == "isinstance" && first != nullptr &&
                    first->is(K::k_identifier) && first->text() == name;
  return test ? condition : nullptr;
}

// if not isinstance(name, A): return
const Node* TestThatLeaves(const Node* statement, std::string_view name) {
  if (!statement->is(K::k_if_statement) || statement->at(F::k_alternative) != nullptr)
    return nullptr;
  const Node* condition = statement->at(F::k_condition);
  const Node* body = statement->at(F::k_consequence);
  if (condition == nullptr || body == nullptr || !condition->is(K::k_not_operator)) return nullptr;
  return Leaves(body) ? TestOf(condition->first_named(), name) : nullptr;
}

}  // namespace

Type Typer::TestedType(const Node* call) {
  std::vector<Type> types;
  for (const Node* one : TestedClasses(call)) {
    Type of = TypeOf(one);
    if (of.is(TK::kInstance) && of.name == "alias") of.kind = TK::kClass;
    if (!of.is(TK::kClass)) return {};
    types.push_back({.kind = TK::kInstance, .cls = of.cls});
  }
  return types.empty() ? Type{} : Either(std::move(types));
}

// What a name is of which nothing else is known, where a test says it. `last`: where it was bound.
Type Typer::Narrowed(const Node* use, const std::string& name, const Node* container,
                     uint32_t last) {
  const Node* below = use;
  Type narrowed;
  for (const Node* up = use->parent; up != nullptr && up != container;
       below = up, up = up->parent) {
    // An attempt: what it catches is not known while the text is written.
    if (!place_ && up->is(K::k_try_statement) && below->field == F::k_body) return {};
    if (narrowed.known()) continue;
    const Node* test = nullptr;
    if ((up->is(K::k_if_statement) || up->is(K::k_elif_clause)) &&
        below->field == F::k_consequence) {
      test = TestOf(up->at(F::k_condition), name);
    } else if (up->is(K::k_boolean_operator) && below->field == F::k_right &&
               up->at(F::k_operator) != nullptr && up->at(F::k_operator)->text() == "and") {
      test = TestOf(up->at(F::k_left), name);
    } else if (up->is(K::k_block)) {
      for (const Node& kid : up->kids()) {
        if (kid.start >= below->start) break;
        if (const Node* one = kid.named ? TestThatLeaves(&kid, name) : nullptr) test = one;
      }
    }
    if (test == nullptr) continue;
    if (test->start < last) return {};
    narrowed = TestedType(test);
    if (!narrowed.known()) return {};
  }
  return narrowed;
}

namespace {

// The calls isinstance(name, ...) of which a condition says, where it is `holds`, that none is
// true.
void FailedTests(const Node* condition, bool holds, std::string_view name,
                 std::vector<const Node*>& failed) {
  while (condition != nullptr) {
    Work::Step();
    if (condition->is(K::k_parenthesized_expression)) {
      condition = condition->first_named();
    } else if (condition->is(K::k_not_operator)) {
      holds = !holds;
      condition = condition->first_named();
    } else if (condition->is(K::k_boolean_operator)) {
      // All parts of an `and` that holds do, and no part of an `or` that does not.
      const Node* op = condition->at(F::k_operator);
      if (op == nullptr || (op->text() == "and") != holds) return;
      FailedTests(condition->at(F::k_left), holds, name, failed);
      condition = condition->at(F::k_right);
    } else {
      const Node* test = holds ? nullptr : TestOf(condition, name);
      if (test != nullptr) failed.push_back(test);
      return;
    }
  }
}

// The same of the branches above of an `if` statement, and of the one in which `below` stands.
void FailedInBranches(const Node* statement, const Node* below, std::string_view name,
                      std::vector<const Node*>& failed) {
  const Node* condition = statement->at(F::k_condition);
  if (below == condition) return;
  if (below->field == F::k_consequence || below->field == F::k_body) {
    FailedTests(condition, true, name, failed);
    return;
  }
  FailedTests(condition, false, name, failed);
  for (const Node& kid : statement->kids()) {
    if (&kid == below) break;
    if (kid.is(K::k_elif_clause)) FailedTests(kid.at(F::k_condition), false, name, failed);
  }
}

// The same below a statement: each branch that leaves is one whose condition did not hold.
void FailedBelow(const Node* statement, std::string_view name, std::vector<const Node*>& failed) {
  const Node* condition = statement->at(F::k_condition);
  if (statement->is(K::k_while_statement)) {
    FailedTests(condition, false, name, failed);
  } else if (statement->is(K::k_if_statement)) {
    const Node* body = statement->at(F::k_consequence);
    if (body == nullptr || !Leaves(body)) return;
    FailedTests(condition, false, name, failed);
    for (const Node& kid : statement->kids()) {
      if (!kid.is(K::k_elif_clause)) continue;
      body = kid.at(F::k_consequence);
      if (body == nullptr || !Leaves(body)) return;
      FailedTests(kid.at(F::k_condition), false, name, failed);
    }
  } else if (statement->text().starts_with("assert ")) {
    FailedTests(statement->first_named(), true, name, failed);
  }
}

// a if c else b: where `below` is read.
void FailedInChoice(const Node* choice, const Node* below, std::string_view name,
                    std::vector<const Node*>& failed) {
  const Node* condition = nullptr;
  size_t at = 0;
  size_t stands = 0;
  for (const Node& kid : choice->kids()) {
    if (!kid.named || kid.is(K::k_comment)) continue;
    if (at == 1) condition = &kid;
    if (&kid == below) stands = at;
    ++at;
  }
  if (stands != 1) FailedTests(condition, stands == 0, name, failed);
}

}  // namespace

// The tests that have failed where the name is used.
std::vector<const Node*> Typer::FailedAt(const Node* use) const {
  const std::string_view name = use->text();
  std::vector<const Node*> failed;
  const Node* below = use;
  for (const Node* up = use->parent; up != nullptr && !up->is(K::k_class_definition);
       below = up, up = up->parent) {
    Work::Step();
    if (up->is(K::k_if_statement) || up->is(K::k_elif_clause) || up->is(K::k_while_statement)) {
      FailedInBranches(up, below, name, failed);
    } else if (up->is(K::k_conditional_expression)) {
      FailedInChoice(up, below, name, failed);
    } else if (up->is(K::k_boolean_operator) && below->field == F::k_right) {
      const Node* op = up->at(F::k_operator);
      FailedTests(up->at(F::k_left), op != nullptr && op->text() == "and", name, failed);
    } else if (up->is(K::k_block) || up->parent == nullptr) {
      for (const Node& kid : up->kids()) {
        if (kid.start >= below->start) break;
        if (kid.named) FailedBelow(&kid, name, failed);
      }
    }
  }
  return failed;
}

// Whether tests have failed for each class that the object is said to be of: then it is of one that
// nothing tells. An assignment behind the tests gives it a class again.
bool Typer::IsOfNoneOf(const Node* use, const Type& type) {
  std::vector<const Node*> failed = FailedAt(use);
  if (failed.empty()) return false;
  const Node* function = use->Enclosing(K::k_function_definition);
  const Scope& scope = function == nullptr ? world_.program().scope : ScopeOf(function);
  if (const auto bound = scope.names.find(std::string(use->text())); bound != scope.names.end()) {
    for (const Binding& binding : bound->second) {
      if (binding.node->end > use->start) continue;
      const Node* block = binding.node->Enclosing(K::k_block);
      if (block != nullptr && !Inside(use, block)) continue;
      std::erase_if(failed, [&](const Node* test) { return test->start < binding.node->start; });
    }
  }
  std::vector<Class*> classes;
  for (const Node* test : failed) {
    const Type tested = TestedType(test);
    for (const Type& one : tested.is(TK::kEither) ? tested.args : std::vector<Type>{tested}) {
      if (one.is(TK::kInstance)) classes.push_back(one.cls);
    }
  }
  if (classes.empty()) return false;
  const std::vector<Type> parts = type.is(TK::kEither) ? type.args : std::vector<Type>{type};
  return std::ranges::all_of(parts, [&](const Type& part) {
    if (part.is(TK::kNone)) return true;
    if (!part.is(TK::kInstance)) return false;
    bool covered = false;
    world_.Walk(part, [&](Class& c, const Substitution& with) {
      (void)with;
      covered = std::ranges::find(classes, &c) != classes.end();
      return covered;
    });
    return covered;
  });
}

// A type, and what tests of the object before may have made of it. Unknown: a test that is not
// understood.
Type Typer::WithTests(const Node* object, const Type& type) {
  if (!type.known() || !object->is(K::k_identifier) || IsReceiver(object)) return type;
  const Tree& tree = *world_.program().tree;
  const std::string_view text = tree.text();
  constexpr std::string_view kAsk = "isinstance(";
  const size_t from = ScopeStart(object);
  const size_t to = AskedUntil(object);
  Work::Bytes(to - std::min<size_t>(from, to));
  std::vector<Type> types = {type};
  for (size_t at = FindAsk(text, kAsk, object->text(), from, to); at < to;
       at = FindAsk(text, kAsk, object->text(), at + 1, to)) {
    const Node* call =
        tree.Smallest(static_cast<uint32_t>(at), static_cast<uint32_t>(at + kAsk.size() - 1));
    while (call != nullptr && !call->is(K::k_call)) call = call->parent;
    if (call == nullptr || call->start != at) return {};
    Type tested = TestedType(call);
    if (!tested.known()) return {};
    types.push_back(std::move(tested));
    if (types.size() > 8) return {};
  }
  if (types.size() == 1) return type;
  return IsOfNoneOf(object, type) ? Type{} : Either(std::move(types));
}

bool Typer::Guarded(const Node* attribute, const Type& receiver) {
  const Node* root = RootOf(attribute->at(F::k_object));
  const std::string& text = world_.program().tree->text();
  if (root != nullptr && root->is(K::k_identifier)) {
    const std::string name(root->text());
    const bool self = IsReceiver(root);
    const size_t from = ScopeStart(root);
    const size_t to = AskedUntil(attribute);
    Work::Bytes(10 * (to - std::min<size_t>(from, to)) / 4);
    const bool plain = root == attribute->at(F::k_object) && !self;  // see WithTests
    static constexpr std::array<std::string_view, 8> kAsks = {
        "isinstance(", "hasattr(", "setattr(", "callable(",
        "issubclass(", "type(",    "getattr(", "match "};
    for (size_t i = plain ? 1 : 0; i < (self ? 4 : kAsks.size()); ++i) {
      if (FindAsk(text, kAsks[i], name, from, to) < to) return true;
    }
    if (!self && (FindAsk(text, "", name + ".__class__", from, to) < to ||
                  AskedByFunction(name, from, to))) {
      return true;
    }
  }
  if (place_ && root != nullptr && root == attribute->at(F::k_object) && IsReceiver(root))
    return false;
  if (root != nullptr && root == attribute->at(F::k_object) && ToldApart(root)) return true;
  // While a text is written, what is caught is not known yet.
  const bool tried = receiver.is(TK::kModule) || receiver.is(TK::kClass) ||
                     (!place_ && root != nullptr && IsReceiver(root));
  return GuardedAbove(attribute, tried);
}

}  // namespace pawl::monitors::python
