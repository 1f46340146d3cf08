// Attributes that are assigned to, calls of setattr, uses of __dict__.
#include "plugins/monitors/python/changes.h"

#include <algorithm>
#include <array>
#include <vector>

#include "plugins/monitors/python/symbol_table.h"
#include "plugins/monitors/scan.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::python {
namespace {

using K = Kind;
using F = Field;

constexpr int kMostCalls = 6;
constexpr size_t kMostAliases = 200;

bool OneOf(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// What a string without holes and escapes says; empty: it is none.
std::string_view Written(const Node* node) {
  if (node == nullptr || !node->is(K::k_string)) return {};
  const std::string_view text = node->text();
  if (text.size() < 3 || (text[0] != '"' && text[0] != '\'') || text.back() != text[0]) return {};
  const std::string_view inside = text.substr(1, text.size() - 2);
  return std::ranges::all_of(inside, NameByte) ? inside : std::string_view{};
}

std::vector<const Node*> Given(const Node* call) {
  std::vector<const Node*> given;
  const Node* list = call->at(F::k_arguments);
  if (list == nullptr || !list->is(K::k_argument_list)) return given;
  for (const Node& kid : list->kids()) {
    if (kid.named && !kid.is(K::k_comment)) given.push_back(&kid);
  }
  return given;
}

// The name of the function around the node; empty: there is none.
std::string_view FunctionAround(const Node* node) {
  const Node* function = node->Enclosing(K::k_function_definition);
  const Node* name = function == nullptr ? nullptr : function->at(F::k_name);
  return name == nullptr ? std::string_view{} : name->text();
}

enum class Around : uint8_t { kModule, kClass, kFunction };

// What the statement of a node is a part of.
std::pair<Around, const Node*> ScopeAround(const Node* node) {
  for (const Node* up = node->parent; up != nullptr; up = up->parent) {
    if (up->is(K::k_function_definition) || up->is(K::k_lambda)) return {Around::kFunction, up};
    if (up->is(K::k_class_definition)) return {Around::kClass, up};
  }
  return {Around::kModule, nullptr};
}

class Reader {
 public:
  Reader(const Scope& scope, Changes& out) : scope_(scope), out_(out) {}
  void Read(const Tree& tree);

 private:
  void Word(const Tree& tree, size_t at, std::string_view word);
  void Assignment(const Tree& tree, size_t at);
  void Targets(const Node* target);
  void OfAttribute(const Node* node);
  void OfCall(const Node* node);
  void OfPatch(const Node* name);
  // Members by computed names for the object that an expression stands for.
  void Computed(const Node* object, int depth = 0);
  void Returned(const Node* function);
  void Bound(const Binding& binding, int depth);
  bool AliasExposed(const Node* name);
  bool Local(const Node* name, int depth);
  void Called(const Node* function, std::string_view parameter, size_t index, int depth);
  void SetBy(const Node* object, const Node* name, bool through);
  // Whether keys that are computed may get into a dictionary of names; those that stand in the text
  // are noted.
  bool Exposed(const Node* dictionary);
  bool Updated(const Node* call);

  const Scope& scope_;
  Changes& out_;
  std::unordered_set<const Node*> seen_;  // functions whose calls were looked at
};

// Words are looked for in the text, since most texts have few of them, and a tree is made as it is
// looked at.
void Reader::Read(const Tree& tree) {
  const std::string_view text = tree.text();
  Work::Bytes(2 * text.size());
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '=') {
      Assignment(tree, at);
      ++at;
      while (at < text.size() && text[at] == '=') ++at;
      continue;
    }
    if (!NameByte(text[at])) {
      ++at;
      continue;
    }
    size_t end = at + 1;
    while (end < text.size() && NameByte(text[end])) ++end;
    Word(tree, at, text.substr(at, end - at));
    at = end;
  }
}

void Reader::Word(const Tree& tree, size_t at, std::string_view word) {
  static constexpr std::array<std::string_view, 13> kWords = {
      "setattr", "__setattr__", "__dict__",  "vars",        "locals",           "globals", "exec",
      "global",  "modules",     "__class__", "__getattr__", "__getattribute__", "patch"};
  const bool target = word == "for" || word == "as";
  if (word.size() < 2 || (!target && !OneOf(word, kWords))) return;
  const std::string_view text = tree.text();
  if (target) {
    // for x.a in ..., with ... as x.a
    const std::string_view rest = text.substr(at, text.find('\n', at) - at);
    if (rest.find('.') == std::string_view::npos) return;
  }
  const Node* node =
      tree.Smallest(static_cast<uint32_t>(at), static_cast<uint32_t>(at + word.size()));
  if (node == nullptr) return;
  if (target) {
    if (node->is(K::k_for_statement)) Targets(node->at(F::k_left));
    if (node->is(K::k_as_pattern)) Targets(node->at(F::k_alias));
    return;
  }
  if (node->is(K::k_global_statement)) {
    for (const Node& kid : node->kids()) {
      if (kid.is(K::k_identifier)) out_.rebound.emplace(kid.text());
    }
    return;
  }
  if (node->is(K::k_exec_statement)) out_.globals = true;
  if (!node->is(K::k_identifier) || node->parent == nullptr) return;
  if (word == "patch" || (word == "setattr" && node->field == F::k_attribute)) {
    OfPatch(node);
  } else if (node->field == F::k_attribute && node->parent->is(K::k_attribute)) {
    OfAttribute(node->parent);
  } else if (node->field == F::k_function && node->parent->is(K::k_call)) {
    OfCall(node->parent);
  }
  if (word == "__setattr__" && node->parent->is(K::k_attribute) &&
      node->parent->field == F::k_function && node->parent->parent->is(K::k_call)) {
    OfCall(node->parent->parent);
  }
}

// x.a = ...; (x.a, y) = ...; x.a += ...
void Reader::Assignment(const Tree& tree, size_t at) {
  const std::string_view text = tree.text();
  if (at == 0 || text[at - 1] == '!' || text[at - 1] == '<' || text[at - 1] == '>' ||
      text[at - 1] == ':' || (at + 1 < text.size() && text[at + 1] == '=')) {
    if (text[at - (at > 0)] != '<' && text[at - (at > 0)] != '>') return;
    if (at < 2 || text[at - 2] != text[at - 1]) return;  // <<=
  }
  const size_t newline = text.rfind('\n', at);
  const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
  std::string_view line = text.substr(start, at - start);
  if (line.find('.') == std::string_view::npos &&
      line.find_first_of(")]") == std::string_view::npos)
    return;
  // Behind an open bracket it gives an argument its name.
  int depth = 0;
  for (const char c : line)
    depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
  if (depth > 0) return;
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  while (!line.empty() && (line.back() == ' ' || !NameByte(line.back()))) {
    if (line.back() == ')' || line.back() == ']') break;
    line.remove_suffix(1);
  }
  const bool plain = std::ranges::all_of(line, [](char c) { return NameByte(c) || c == '.'; });
  if (plain) {
    const size_t dot = line.rfind('.');
    if (dot == std::string_view::npos) return;
    (line.substr(0, dot) == "self" ? out_.set_on_self : out_.set).emplace(line.substr(dot + 1));
    return;
  }
  const Node* node = tree.Smallest(static_cast<uint32_t>(at), static_cast<uint32_t>(at + 1));
  if (node != nullptr && (node->is(K::k_assignment) || node->is(K::k_augmented_assignment) ||
                          node->is(K::k_type_alias_statement))) {
    Targets(node->at(F::k_left));
  }
}

void Reader::Targets(const Node* target) {
  std::vector<const Node*> todo = {target};
  while (!todo.empty()) {
    Work::Step();
    const Node* node = todo.back();
    todo.pop_back();
    if (node == nullptr) continue;
    if (node->is(K::k_attribute)) OfAttribute(node);
    for (const Node& kid : node->kids()) {
      if (kid.named) todo.push_back(&kid);
    }
  }
}

void Reader::OfAttribute(const Node* node) {
  const Node* object = node->at(F::k_object);
  const Node* name = node->at(F::k_attribute);
  if (object == nullptr || name == nullptr) return;
  const std::string_view text = name->text();
  if (text == "__dict__") {
    // new.__dict__ = self.__dict__.copy(): the names that the class has.
    const Node* right = node->parent->is(K::k_assignment) ? node->parent->at(F::k_right) : nullptr;
    const bool same =
        right != nullptr && node->field == F::k_left &&
        (right->text() == "self.__dict__.copy()" || right->text() == "self.__dict__" ||
         right->text() == "vars(self).copy()" || right->text() == "dict(self.__dict__)");
    if (!same && (AssignedTo(node) || Exposed(node))) Computed(object);
    return;
  }
  if (text == "__setattr__") {
    const Node* call = node->parent;
    if (!call->is(K::k_call) || node->field != F::k_function) Computed(object);
    return;
  }
  if (text == "modules" && object->text() == "sys") {
    // By a name that is computed it is hardly a module that is known otherwise.
    (void)Exposed(node);
    return;
  }
  if (text == kPlaceName || !AssignedTo(node)) return;
  const bool self = object->is(K::k_identifier) && ClassOfReceiver(node, object->text()) != nullptr;
  (self ? out_.set_on_self : out_.set).emplace(text);
  if (text == "__class__" || text == "__getattr__" || text == "__getattribute__") Computed(object);
}

void Reader::OfCall(const Node* node) {
  const Node* function = node->at(F::k_function);
  if (function == nullptr) return;
  const std::string_view name = function->text();
  if (function->is(K::k_attribute)) {
    const Node* last = function->at(F::k_attribute);
    if (last == nullptr || last->text() != "__setattr__") return;
    const std::vector<const Node*> given = Given(node);
    // x.__setattr__("name", 1), object.__setattr__(x, "name", 1), super().__setattr__("name", 1)
    if (given.size() == 2) {
      SetBy(function->at(F::k_object), given[0], true);
    } else if (given.size() == 3) {
      SetBy(given[0], given[1], true);
    } else {
      Computed(given.empty() ? function->at(F::k_object) : given[0]);
    }
    return;
  }
  if (!function->is(K::k_identifier)) return;
  if (name == "setattr") {
    const std::vector<const Node*> given = Given(node);
    if (given.size() == 3) {
      SetBy(given[0], given[1], false);
    } else {
      Computed(given.empty() ? nullptr : given[0]);
    }
  } else if (name == "vars" || name == "locals") {
    const std::vector<const Node*> given = Given(node);
    if (!given.empty()) {
      if (Exposed(node)) Computed(given[0]);
      return;
    }
    const auto [around, in] = ScopeAround(node);
    if (around == Around::kFunction || !Exposed(node)) return;
    if (around == Around::kClass) {
      out_.classes.insert(in);
    } else {
      out_.globals = true;
    }
  } else if (name == "globals") {
    if (Exposed(node)) out_.globals = true;
  } else if (name == "exec") {
    const auto [around, in] = ScopeAround(node);
    const std::vector<const Node*> given = Given(node);
    if (around == Around::kClass) {
      out_.classes.insert(in);
    } else if (given.size() < 2 || given[1]->text() == "globals()" ||
               given[1]->text().ends_with("__dict__")) {
      out_.globals = true;
    }
  }
}

// mock.patch("a.b.C"), patch.object(x, "name"), monkeypatch.setattr(x, "name", value)
void Reader::OfPatch(const Node* name) {
  const Node* function = name;
  while (function->parent->is(K::k_attribute)) function = function->parent;
  const Node* call = function->parent;
  if (!call->is(K::k_call) || function->field != F::k_function ||
      function->text().ends_with(".dict") || function->text().ends_with(".stopall")) {
    return;
  }
  bool known = false;
  size_t position = 0;
  for (const Node* one : Given(call)) {
    if (one->is(K::k_keyword_argument)) {
      // patch.multiple("module", name=...)
      if (const Node* key = one->at(F::k_name)) out_.replaced.emplace(key->text());
      continue;
    }
    if (position++ > 1 || !one->is(K::k_string)) continue;
    std::string_view text = one->text();
    if (text.find('{') != std::string_view::npos) continue;
    while (!text.empty() && !NameByte(text.back())) text.remove_suffix(1);
    size_t start = text.size();
    while (start > 0 && NameByte(text[start - 1])) --start;
    if (start == text.size()) continue;
    known = true;
    out_.replaced.emplace(text.substr(start));
  }
  out_.all_replaced = out_.all_replaced || !known;
}

void Reader::SetBy(const Node* object, const Node* name, bool through) {
  if (const std::string_view written = Written(name); !written.empty()) {
    out_.given.emplace(written);
    if (written == "__class__" || written == "__getattr__") Computed(object);
    return;
  }
  // def __setattr__(self, name, value): super().__setattr__(name, value)
  if (through && name->is(K::k_identifier)) {
    const Node* function = name->Enclosing(K::k_function_definition);
    const Node* own = function == nullptr ? nullptr : function->at(F::k_name);
    const Node* list = function == nullptr ? nullptr : function->at(F::k_parameters);
    if (own != nullptr && own->text() == "__setattr__" && list != nullptr) {
      std::vector<const Node*> parameters;
      for (const Node& kid : list->kids()) {
        if (kid.named && !kid.is(K::k_comment)) parameters.push_back(&kid);
      }
      Scope bound;
      if (const Node* body = function->at(F::k_body)) CollectBindings(body, bound);
      if (parameters.size() == 3 && !bound.names.contains(std::string(name->text()))) {
        const Node* second = parameters[1];
        if (!second->is(K::k_identifier)) second = second->first_named();
        if (second != nullptr && second->text() == name->text()) return;
      }
    }
  }
  Computed(object);
}

void Reader::Computed(const Node* object, int depth) {
  while (object != nullptr && object->is(K::k_parenthesized_expression))
    object = object->first_named();
  if (object == nullptr || depth > kMostCalls) {
    out_.all_classes = true;
    return;
  }
  const Node* of = object;
  // type(self), self.__class__, super()
  if (of->is(K::k_call)) {
    const Node* function = of->at(F::k_function);
    const std::vector<const Node*> given = Given(of);
    if (function != nullptr && function->text() == "super") {
      if (const Node* around = of->Enclosing(K::k_class_definition)) {
        out_.classes.insert(around);
        return;
      }
    }
    if (function != nullptr && function->text() == "type" && given.size() == 1) {
      of = given[0];
    } else if (function != nullptr) {
      Returned(function);
      return;
    }
  } else if (of->is(K::k_attribute) && of->at(F::k_attribute) != nullptr &&
             of->at(F::k_attribute)->text() == "__class__") {
    of = of->at(F::k_object);
  }
  if (of != nullptr && of->text().starts_with("sys.modules")) {
    out_.globals = true;
    return;
  }
  if (depth > 0 && of != nullptr &&
      (of->is(K::k_none) || of->is(K::k_string) || of->is(K::k_integer) ||
       of->is(K::k_dictionary) || of->is(K::k_list) || of->is(K::k_tuple) || of->is(K::k_lambda))) {
    return;
  }
  if (of == nullptr || !of->is(K::k_identifier)) {
    out_.all_classes = true;
    return;
  }
  if (const Node* around = ClassOfReceiver(of, of->text())) {
    out_.classes.insert(around);
    return;
  }
  if (Local(of, depth)) return;
  const auto found = scope_.names.find(std::string(of->text()));
  if (found == scope_.names.end()) {
    out_.all_classes = true;
    return;
  }
  for (const Binding& binding : found->second) Bound(binding, depth);
}

// Whether a call is given the variable.
static bool GivenTo(const Node* call, std::string_view name) {
  return std::ranges::any_of(Given(call), [&](const Node* one) { return one->text() == name; });
}

// What a call returns, of which only classes and functions of the text are of interest.
void Reader::Returned(const Node* function) {
  const Node* root = function;
  while (root->is(K::k_attribute) && root->at(F::k_object) != nullptr) root = root->at(F::k_object);
  if (root->text() == "sys" && function->text().starts_with("sys.modules")) {
    out_.globals = true;
    return;
  }
  if (!root->is(K::k_identifier)) {
    out_.all_classes = true;
    return;
  }
  const auto found = scope_.names.find(std::string(root->text()));
  if (found == scope_.names.end()) {
    // list(...), type(...)
    if (root != function || root->text() == "cls") out_.all_classes = true;
    return;
  }
  for (const Binding& binding : found->second) {
    if (binding.kind == Binding::Kind::kImport) continue;
    const bool made = root == function || function->text().ends_with(".__new__");
    if (binding.kind == Binding::Kind::kClass && made) {
      out_.classes.insert(binding.node);
    } else {
      out_.all_classes = true;
    }
  }
}

// An object that a binding gives a name.
void Reader::Bound(const Binding& binding, int depth) {
  switch (binding.kind) {
    case Binding::Kind::kClass:
      out_.classes.insert(binding.node);
      return;
    case Binding::Kind::kFunction:
      return;
    case Binding::Kind::kImport:
      // A module, or what is no class of this text.
      out_.patched.emplace(binding.member.empty() ? binding.module : binding.member);
      return;
    case Binding::Kind::kAssignment: {
      const Node* right = binding.node->at(F::k_right);
      if (right != nullptr && (right->is(K::k_call) || right->is(K::k_identifier))) {
        Computed(right, depth + 1);
        return;
      }
      break;
    }
    case Binding::Kind::kLoop: {
      const Node* right = binding.node->at(F::k_right);
      if (right != nullptr && (right->is(K::k_list) || right->is(K::k_tuple))) {
        for (const Node& kid : right->kids()) {
          if (kid.named && !kid.is(K::k_comment)) Computed(&kid, depth + 1);
        }
        return;
      }
      break;
    }
    default:
      break;
  }
  out_.all_classes = true;
}

// A variable of a function, or a parameter: then it is what the calls of the function give.
bool Reader::Local(const Node* name, int depth) {
  for (const Node* up = name->parent; up != nullptr; up = up->parent) {
    if (!up->is(K::k_function_definition)) continue;
    const Node* list = up->at(F::k_parameters);
    const Node* own = up->at(F::k_name);
    Scope scope;
    if (const Node* body = up->at(F::k_body)) CollectBindings(body, scope);
    const auto bound = scope.names.find(std::string(name->text()));
    const bool local = bound != scope.names.end() && !scope.elsewhere.contains(bound->first);
    if (local) {
      for (const Binding& binding : bound->second) {
        // x, rest = work(x, rest): what it was before.
        const Node* right = binding.node->at(F::k_right);
        if (right != nullptr && right->is(K::k_call) && GivenTo(right, name->text())) continue;
        Bound(binding, depth);
      }
    }
    bool parameter = false;
    size_t at = 0;
    if (list != nullptr) {
      for (const Node& kid : list->kids()) {
        if (!kid.named || kid.is(K::k_comment)) continue;
        const Node* id = kid.is(K::k_identifier) ? &kid : kid.at(F::k_name);
        if (id == nullptr) id = kid.first_named();
        parameter = id != nullptr && id->text() == name->text();
        if (parameter) break;
        ++at;
      }
    }
    if (parameter) out_.computes[up].emplace(name->text());
    if (parameter && own != nullptr) Called(up, name->text(), at, depth);
    if (parameter || local) return true;
  }
  return false;
}

// What the calls of a function in the text give a parameter of it.
void Reader::Called(const Node* function, std::string_view parameter, size_t index, int depth) {
  if (!seen_.insert(function).second) return;
  const std::string_view name = function->at(F::k_name)->text();
  // Python calls these, with objects of any class.
  static constexpr std::array<std::string_view, 4> kOfDescriptors = {"__set_name__", "__get__",
                                                                     "__set__", "__delete__"};
  if (OneOf(name, kOfDescriptors)) out_.all_classes = true;
  const bool method = ScopeAround(function).first == Around::kClass;
  const std::string& text = function->tree->text();
  Work::Bytes(text.size());
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at > 0 && NameByte(text[at - 1])) || end >= text.size() || NameByte(text[end])) continue;
    const Node* use =
        function->tree->Smallest(static_cast<uint32_t>(at), static_cast<uint32_t>(end));
    if (use == nullptr || !use->is(K::k_identifier) || use->parent == function) continue;
    const Node* call = use->parent;
    if (call->is(K::k_attribute)) call = call->parent;
    if (call == nullptr || !call->is(K::k_call)) continue;
    size_t position = method && use->parent->is(K::k_attribute) ? 1 : 0;
    for (const Node* given : Given(call)) {
      const Node* value = given;
      if (given->is(K::k_keyword_argument)) {
        if (given->at(F::k_name) == nullptr || given->at(F::k_name)->text() != parameter) continue;
        value = given->at(F::k_value);
      } else if (given->is(K::k_list_splat) || given->is(K::k_dictionary_splat)) {
        continue;
      } else if (position++ != index) {
        continue;
      }
      if (value != nullptr) Computed(value, depth + 1);
    }
  }
}

// d.update(...): what stands in the text, and the names of an object of the same class, are known.
bool Reader::Updated(const Node* call) {
  for (const Node* one : Given(call)) {
    if (one->is(K::k_keyword_argument)) {
      if (const Node* name = one->at(F::k_name)) out_.given.emplace(name->text());
      continue;
    }
    if (one->is(K::k_dictionary)) {
      for (const Node& pair : one->kids()) {
        if (!pair.named || pair.is(K::k_comment)) continue;
        const std::string_view key = Written(pair.at(F::k_key));
        if (key.empty()) return true;
        out_.given.emplace(key);
      }
      continue;
    }
    const std::string_view text = one->text();
    if (text == "self.__dict__" || text == "vars(self)") continue;
    return true;
  }
  return false;
}

bool Reader::Exposed(const Node* dictionary) {
  static constexpr std::array<std::string_view, 32> kReaders = {
      "dict",   "repr",      "str",  "len",      "sorted",    "iter",    "list",     "tuple",
      "set",    "frozenset", "copy", "deepcopy", "format",    "print",   "bool",     "hash",
      "any",    "all",       "zip",  "filter",   "enumerate", "pformat", "pprint",   "dumps",
      "update", "extend",    "join", "eval",     "max",       "getattr", "reversed", "isinstance"};
  static constexpr std::array<std::string_view, 18> kReads = {
      "copy",    "items",       "keys",     "values",       "get",     "pop",
      "popitem", "clear",       "fromkeys", "__contains__", "__len__", "__iter__",
      "__eq__",  "__getitem__", "__repr__", "__delitem__",  "__ne__",  "__str__"};
  static constexpr std::array<std::string_view, 5> kStates = {
      "__getstate__", "__reduce__", "__reduce_ex__", "__repr__", "__eq__"};
  const Node* below = dictionary;
  for (const Node* up = dictionary->parent; up != nullptr; below = up, up = up->parent) {
    switch (up->kind) {
      case K::k_parenthesized_expression:
      case K::k_boolean_operator:
      case K::k_conditional_expression:
      case K::k_tuple:
      case K::k_expression_list:
        continue;
      case K::k_attribute: {
        const Node* name = up->at(F::k_attribute);
        const Node* call = up->parent;
        if (below->field != F::k_object || name == nullptr) return true;
        if (name->text() == kPlaceName || OneOf(name->text(), kReads)) return false;
        if (call == nullptr || !call->is(K::k_call) || up->field != F::k_function) return true;
        if (name->text() == "update") return Updated(call);
        const std::vector<const Node*> given = Given(call);
        const std::string_view key = given.empty() ? std::string_view{} : Written(given[0]);
        if ((name->text() != "setdefault" && name->text() != "__setitem__") || key.empty())
          return true;
        out_.given.emplace(key);
        return false;
      }
      case K::k_subscript: {
        if (below->field != F::k_value) return false;
        if (!AssignedTo(up)) return false;
        const std::string_view key = Written(up->at(F::k_subscript));
        if (key.empty()) return true;
        out_.given.emplace(key);
        return false;
      }
      case K::k_comparison_operator:
      case K::k_not_operator:
      case K::k_binary_operator:
      case K::k_list_splat:
      case K::k_dictionary_splat:
      case K::k_interpolation:
      case K::k_expression_statement:
      case K::k_if_statement:
      case K::k_elif_clause:
      case K::k_while_statement:
      case K::k_delete_statement:
        return false;
      case K::k_for_statement:
      case K::k_for_in_clause:
        return below->field != F::k_right;
      case K::k_augmented_assignment:
        return below->field == F::k_left;
      case K::k_assignment: {
        // names = x.__dict__, of which it matters what becomes of `names`.
        const Node* left = up->at(F::k_left);
        return below->field != F::k_right || left == nullptr || !left->is(K::k_identifier) ||
               AliasExposed(left);
      }
      case K::k_argument_list: {
        const Node* function = up->parent == nullptr ? nullptr : up->parent->at(F::k_function);
        if (function == nullptr) return true;
        // json.dumps(x.__dict__): a function of another module.
        const Node* root = function;
        while (root != nullptr && root->is(K::k_attribute)) root = root->at(F::k_object);
        if (root != nullptr && root != function) {
          const auto found = scope_.names.find(std::string(root->text()));
          if (found != scope_.names.end() &&
              std::ranges::all_of(found->second, [](const Binding& b) {
                return b.kind == Binding::Kind::kImport;
              })) {
            return false;
          }
        }
        if (function->is(K::k_attribute)) function = function->at(F::k_attribute);
        return function == nullptr || !OneOf(function->text(), kReaders);
      }
      case K::k_return_statement:
        return !OneOf(FunctionAround(up), kStates);
      default:
        return true;
    }
  }
  return true;
}

// Whether keys that are computed may get into a dictionary that a variable stands for.
bool Reader::AliasExposed(const Node* name) {
  if (!seen_.insert(name).second || seen_.size() > kMostAliases) return true;
  const Node* around = name->Enclosing(K::k_function_definition);
  const std::string& text = name->tree->text();
  size_t at = around == nullptr ? 0 : around->start;
  const size_t end = around == nullptr ? text.size() : around->end;
  Work::Bytes(end - at);
  for (at = text.find(name->text(), at); at < end; at = text.find(name->text(), at + 1)) {
    const size_t behind = at + name->text().size();
    if ((at > 0 && (NameByte(text[at - 1]) || text[at - 1] == '.')) ||
        (behind < text.size() && NameByte(text[behind]))) {
      continue;
    }
    const Node* use =
        name->tree->Smallest(static_cast<uint32_t>(at), static_cast<uint32_t>(behind));
    if (use == nullptr || !use->is(K::k_identifier) || use == name || AssignedTo(use)) continue;
    if (Exposed(use)) return true;
  }
  return false;
}

}  // namespace

Changes ReadChanges(const Tree& tree, const Scope& scope) {
  Changes changes;
  Reader(scope, changes).Read(tree);

  return changes;
}

bool AssignedTo(const Node* node) {
  const Node* below = node;
  for (const Node* up = node->parent; up != nullptr; below = up, up = up->parent) {
    switch (up->kind) {
      case K::k_pattern_list:
      case K::k_tuple_pattern:
      case K::k_list_pattern:
      case K::k_tuple:
      case K::k_list:
      case K::k_parenthesized_expression:
      case K::k_list_splat_pattern:
      case K::k_list_splat:
      case K::k_type:
        continue;
      case K::k_as_pattern_target:
        return true;
      case K::k_assignment:
      case K::k_augmented_assignment:
      case K::k_for_statement:
      case K::k_for_in_clause:
      case K::k_type_alias_statement:  // type(x).a = 1, as it is read
        return below->field == F::k_left;
      default:
        return false;
    }
  }
  return false;
}

const Node* ClassOfReceiver(const Node* node, std::string_view name) {
  for (const Node* up = node->parent; up != nullptr; up = up->parent) {
    Work::Step();
    if (!up->is(K::k_function_definition)) continue;
    const Node* list = up->at(F::k_parameters);
    const Node* first = list == nullptr ? nullptr : list->first_named();
    if (first == nullptr) continue;
    if (!first->is(K::k_identifier)) first = first->first_named();
    if (first == nullptr || first->text() != name) continue;
    const Node* around = up->parent;
    while (around != nullptr && !around->is(K::k_class_definition)) {
      if (around->is(K::k_function_definition) || around->is(K::k_lambda)) return nullptr;
      around = around->parent;
    }
    return around;
  }
  return nullptr;
}

bool BoundFromInside(const Node* function, std::string_view name) {
  const std::string_view text = function->text();
  Work::Bytes(text.size());
  if (text.find("nonlocal ") == std::string_view::npos) return false;
  std::vector<const Node*> todo = {function};
  while (!todo.empty()) {
    Work::Step();
    const Node* node = todo.back();
    todo.pop_back();
    if (node->is(K::k_nonlocal_statement)) {
      for (const Node& kid : node->kids()) {
        if (kid.is(K::k_identifier) && kid.text() == name) return true;
      }
    }
    for (const Node& kid : node->kids()) {
      if (kid.named) todo.push_back(&kid);
    }
  }
  return false;
}

}  // namespace pawl::monitors::python
