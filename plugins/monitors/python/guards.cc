// Whether a text asks what an object is before it takes an attribute: `isinstance`, `hasattr`, a
// condition on the version, a `try` around it. Then the attribute may be one that the type lacks.
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

// except AttributeError, except (ImportError, ...), except Exception, except:
bool Catches(const Node* statement) {
  for (const Node& kid : statement->kids()) {
    if (!kid.is(K::k_except_clause)) continue;
    std::string_view head = kid.text();
    head = head.substr(0, head.find(':'));
    if (head.size() < 8) return true;
    for (const std::string_view word : {"AttributeError", "ImportError", "ModuleNotFoundError",
                                        "NameError", "Exception", "BaseException"}) {
      if (head.find(word) != std::string_view::npos) return true;
    }
    // A name that is not one of Python's errors may stand for any of them.
    if (head.find("Error") == std::string_view::npos) return true;
  }
  return false;
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

// Below a condition on what there is. `module`: of a member of a module or class, which a `try` may
// look for too.
bool Typer::GuardedAbove(const Node* node, bool module) const {
  const Node* below = node;
  for (const Node* up = node->parent; up != nullptr; below = up, up = up->parent) {
    if (up->is(K::k_if_statement) || up->is(K::k_conditional_expression) ||
        up->is(K::k_elif_clause)) {
      const Node* condition = up->at(F::k_condition);
      const std::string_view asked = condition != nullptr ? condition->text() : up->text();
      for (const std::string_view word : {"version", "platform", "PY2", "PY3", "os.name", "win",
                                          "posix", "hasattr", "TYPE_CHECKING", "implementation"}) {
        if (asked.find(word) != std::string_view::npos) return true;
      }
    }
    // try: ... except AttributeError: the attempt is how it asks.
    if (module && up->is(K::k_try_statement) && below->field == F::k_body &&
        (!place_ || Catches(up))) {
      return true;
    }
  }
  return false;
}

bool Typer::Guarded(const Node* attribute, const Type& receiver) {
  const Node* root = RootOf(attribute->at(F::k_object));
  const std::string& text = world_.program().tree->text();
  if (root != nullptr && root->is(K::k_identifier)) {
    const std::string name(root->text());
    const bool self = IsReceiver(root);
    const size_t from = ScopeStart(root);
    Work::Bytes(8 * (attribute->start - std::min<size_t>(from, attribute->start)) / 4);
    static constexpr std::array<std::string_view, 8> kAsks = {
        "isinstance(", "hasattr(", "setattr(", "callable(",
        "issubclass(", "type(",    "getattr(", "match "};
    for (size_t i = 0; i < (self ? 4 : kAsks.size()); ++i) {
      const std::string needle = std::string(kAsks[i]) + name;
      for (size_t at = text.find(needle, from); at != std::string::npos && at < attribute->start;
           at = text.find(needle, at + 1)) {
        const size_t behind = at + needle.size();
        if (behind >= text.size() || !NameByte(text[behind])) return true;
      }
    }
  }
  return GuardedAbove(attribute, receiver.is(TK::kModule) || receiver.is(TK::kClass));
}

}  // namespace pawl::monitors::python
