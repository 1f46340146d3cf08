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

// if x.kind == "a" and x.only_of_a: the object is of the class that a value of it tells.
bool ToldApart(const Node* object) {
  if (!object->is(K::k_identifier)) return false;
  const std::string member = std::string(object->text()) + ".";
  const Node* below = object;
  for (const Node* up = object->parent; up != nullptr && !up->is(K::k_function_definition);
       below = up, up = up->parent) {
    const bool branch = up->is(K::k_if_statement) || up->is(K::k_elif_clause);
    const Node* condition = branch ? up->at(F::k_condition)
                            : up->is(K::k_boolean_operator) && below->field == F::k_right
                                ? up->at(F::k_left)
                                : nullptr;
    if (condition == nullptr || condition == below) continue;
    const std::string_view text = condition->text();
    for (size_t at = text.find(member); at != std::string_view::npos;
         at = text.find(member, at + 1)) {
      if (at > 0 && NameByte(text[at - 1])) continue;
      size_t end = at + member.size();
      while (end < text.size() && NameByte(text[end])) ++end;
      if (text.substr(end).starts_with(" == ")) return true;
    }
  }
  return false;
}

// except AttributeError, except (ImportError, ...), except Exception, except:
bool Catches(const Node* statement, bool module) {
  for (const Node& kid : statement->kids()) {
    if (!kid.is(K::k_except_clause)) continue;
    std::string_view head = kid.text();
    head = head.substr(0, head.find(':'));
    if (head.find("AttributeError") != std::string_view::npos) return true;
    if (!module) continue;
    if (head.size() < 8) return true;
    for (const std::string_view word :
         {"ImportError", "ModuleNotFoundError", "NameError", "Exception", "BaseException"}) {
      if (head.find(word) != std::string_view::npos) return true;
    }
    // A name that is not one of Python's errors may stand for any of them.
    if (head.find("Error") == std::string_view::npos) return true;
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

}  // namespace

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

// Below a condition on what there is. `module`: of a member of a module or class, which a `try` may
// look for too.
bool Typer::GuardedAbove(const Node* node, bool module) const {
  const Node* below = node;
  for (const Node* up = node->parent; up != nullptr; below = up, up = up->parent) {
    const bool branch = up->is(K::k_if_statement) || up->is(K::k_elif_clause);
    const Node* condition = branch ? up->at(F::k_condition)
                            : up->is(K::k_boolean_operator) && below->field == F::k_right
                                ? up->at(F::k_left)
                                : nullptr;
    const bool choice = up->is(K::k_conditional_expression);
    if ((condition != nullptr && below != condition) || choice) {
      if (AsksForPlatform(condition != nullptr ? condition->text() : up->text())) return true;
    }
    // try: ... except AttributeError: the attempt is how it asks.
    if (up->is(K::k_try_statement) && below->field == F::k_body &&
        (place_ ? Catches(up, module) : module)) {
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
  const Node* last = nullptr;
  for (const Node& kid : body->kids()) {
    if (kid.named && !kid.is(K::k_comment)) last = &kid;
  }
  if (last == nullptr) return nullptr;
  const std::string_view text = last->text();
  const bool leaves = last->is(K::k_return_statement) || last->is(K::k_continue_statement) ||
                      last->is(K::k_break_statement) || text.starts_with("raise");
  return leaves ? TestOf(condition->first_named(), name) : nullptr;
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

// A type, and what tests of the object before may have made of it. Unknown: a test that is not
// understood.
Type Typer::WithTests(const Node* object, const Type& type) {
  if (!type.known() || !object->is(K::k_identifier) || IsReceiver(object)) return type;
  const Tree& tree = *world_.program().tree;
  const std::string& text = tree.text();
  const std::string needle = "isinstance(" + std::string(object->text());
  const size_t from = ScopeStart(object);
  Work::Bytes(object->start - std::min<size_t>(from, object->start));
  std::vector<Type> types = {type};
  for (size_t at = text.find(needle, from); at != std::string::npos && at < object->start;
       at = text.find(needle, at + 1)) {
    const size_t behind = at + needle.size();
    if (behind < text.size() && NameByte(text[behind])) continue;
    const Node* call = tree.Smallest(static_cast<uint32_t>(at), static_cast<uint32_t>(behind));
    while (call != nullptr && !call->is(K::k_call)) call = call->parent;
    if (call == nullptr || call->start != at) return {};
    Type tested = TestedType(call);
    if (!tested.known()) return {};
    types.push_back(std::move(tested));
    if (types.size() > 8) return {};
  }
  return types.size() == 1 ? type : Either(std::move(types));
}

bool Typer::Guarded(const Node* attribute, const Type& receiver) {
  const Node* root = RootOf(attribute->at(F::k_object));
  const std::string& text = world_.program().tree->text();
  if (root != nullptr && root->is(K::k_identifier)) {
    const std::string name(root->text());
    const bool self = IsReceiver(root);
    const size_t from = ScopeStart(root);
    Work::Bytes(8 * (attribute->start - std::min<size_t>(from, attribute->start)) / 4);
    const bool plain = root == attribute->at(F::k_object) && !self;  // see WithTests
    static constexpr std::array<std::string_view, 8> kAsks = {
        "isinstance(", "hasattr(", "setattr(", "callable(",
        "issubclass(", "type(",    "getattr(", "match "};
    for (size_t i = plain ? 1 : 0; i < (self ? 4 : kAsks.size()); ++i) {
      const std::string needle = std::string(kAsks[i]) + name;
      for (size_t at = text.find(needle, from); at != std::string::npos && at < attribute->start;
           at = text.find(needle, at + 1)) {
        const size_t behind = at + needle.size();
        if (behind >= text.size() || !NameByte(text[behind])) return true;
      }
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
