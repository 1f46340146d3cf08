// What a class has: the names of its body, what its methods assign to behind self, its bases. A
// class is open where it may have members whose names are not written down.
#include <algorithm>
#include <array>

#include "plugins/monitors/python/symbol_table.h"
#include "plugins/monitors/scan.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::python {
namespace {

using K = Kind;
using F = Field;
using TK = Type::Kind;

// x.a = ..., for x.a in ..., with ... as x.a, (x.a, b) = ..., del x.a
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
        continue;
      case K::k_as_pattern_target:
        return true;
      case K::k_assignment:
      case K::k_augmented_assignment:
      case K::k_for_statement:
      case K::k_for_in_clause:
        return below->field == F::k_left;
      default:
        return false;
    }
  }
  return false;
}

// Whether the text of a class gives its objects members by names that are computed. Members whose
// names stand there are added to `named`.
bool AddsMembers(std::string_view text, std::unordered_set<std::string>& named) {
  const auto all = [&](std::string_view word, const auto& judge) {
    for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
      const bool whole = at == 0 || !NameByte(text[at - 1]) || word[0] == '_';
      // What takes an object's state out of another adds no names.
      const size_t method = text.rfind("def ", at);
      if (method != std::string_view::npos) {
        const std::string_view name = text.substr(method + 4, 14);
        if (name.starts_with("__setstate__(") || name.starts_with("__copy__(") ||
            name.starts_with("__deepcopy__(") || name.starts_with("__repr__(")) {
          continue;
        }
      }
      if (whole && judge(text.substr(at + word.size()))) return true;
    }
    return false;
  };
  // setattr(self, "name", ...), object.__setattr__(self, "name", ...)
  const auto set = [&](std::string_view rest) {
    const size_t comma = rest.find(',');
    if (comma == std::string_view::npos) return true;
    const size_t start = rest.find_first_not_of(" \n", comma + 1);
    if (start == std::string_view::npos || (rest[start] != '"' && rest[start] != '\'')) return true;
    const size_t end = rest.find(rest[start], start + 1);
    if (end == std::string_view::npos) return true;
    named.emplace(rest.substr(start + 1, end - start - 1));
    return false;
  };
  if (all("setattr(", set) || all("__setattr__(", [&](std::string_view rest) {
        return rest.starts_with("self, ") && !rest.starts_with("self, name") &&
               !rest.starts_with("self, key") && !rest.starts_with("self, attr") && set(rest);
      })) {
    return true;
  }
  // What is only read adds nothing.
  const auto dictionary = [&](std::string_view rest) {
    static constexpr std::array<std::string_view, 10> kReads = {
        ".copy(", ".items(", ".keys(", ".values(", ".get(", ")", ":", "\n", " ==", ","};
    return std::ranges::none_of(kReads, [&](std::string_view r) { return rest.starts_with(r); });
  };
  return all("__dict__", dictionary) ||
         all("vars(",
             [&](std::string_view rest) {
               const size_t close = rest.find(')');
               return close == std::string_view::npos || dictionary(rest.substr(close + 1));
             }) ||
         all("locals(", [](std::string_view) { return true; });
}

}  // namespace

Class* SymbolTable::ClassOf(const Node* node, Module& module) {
  auto& slot = module.classes[node];
  if (slot != nullptr) return slot.get();
  slot = std::make_unique<Class>();
  Class& c = *slot;
  c.module = &module;
  c.node = node;
  if (const Node* name = node->at(F::k_name)) c.name = std::string(name->text());
  if (const Node* body = node->at(F::k_body)) CollectBindings(body, c.scope);
  c.unfinished = &module == program_.get() && node->start < cursor_ && cursor_ <= node->end;
  c.dynamic = c.scope.names.contains("__getattr__") ||
              (c.scope.names.contains("__getattribute__") && module.name != "builtins") ||
              !c.scope.stars.empty();
  for (const std::string_view decorator : DecoratorsOf(node)) {
    if (!Harmless(decorator) && !KeepsClass(decorator, module)) {
      c.dynamic = true;
    }
  }
  if (!module.stub) {
    Work::Bytes(node->end - node->start);
    if (AddsMembers(node->text(), c.stored) || node->broken()) {
      c.dynamic = true;
    }
  }
  c.open = c.dynamic || c.unfinished;
  return &c;
}

// typing.List is list.
Type SymbolTable::AliasOfTyping(std::string_view name, int depth) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kAliases = {
      {{"List", "list"},
       {"Dict", "dict"},
       {"Set", "set"},
       {"FrozenSet", "frozenset"},
       {"DefaultDict", "defaultdict"},
       {"Counter", "Counter"},
       {"Deque", "deque"},
       {"ChainMap", "ChainMap"},
       {"OrderedDict", "OrderedDict"}}};
  const auto* found = std::ranges::find(kAliases, name, [](const auto& one) { return one.first; });
  if (found == kAliases.end()) return {};
  Module* module = Find(found - kAliases.begin() < 4 ? "builtins" : "collections");
  return module == nullptr ? Type{} : MemberOfModule(*module, found->second, depth + 1);
}

// A decorator that is written to return the class that it is given.
bool SymbolTable::KeepsClass(std::string_view decorator, Module& module) {
  decorator = decorator.substr(0, decorator.find_first_of("( #"));
  if (decorator.empty() || decorator.find('.') != std::string_view::npos) return false;
  const Type of = MemberOfModule(module, decorator);
  if (!of.is(TK::kFunction)) return false;
  return std::ranges::all_of(of.functions, [](const Node* one) {
    const Node* returns = one->at(F::k_return_type);
    return returns != nullptr && returns->text().find("ype[") != std::string_view::npos;
  });
}

void SymbolTable::ReadHead(Class& c) {
  if (c.head_read) return;
  c.head_read = true;
  if (c.module->stub && c.module->name == "typing") c.is_abstract = true;
  const Node* list = c.node->at(F::k_superclasses);
  std::vector<std::string> generic;
  std::vector<std::string> seen;
  const auto note = [](const Type& type, std::vector<std::string>& into) {
    std::vector<const Type*> todo = {&type};
    while (!todo.empty()) {
      const Type* one = todo.back();
      todo.pop_back();
      if (one->is(TK::kVariable) && std::find(into.begin(), into.end(), one->name) == into.end())
        into.push_back(one->name);
      for (auto arg = one->args.rbegin(); arg != one->args.rend(); ++arg) todo.push_back(&*arg);
    }
  };
  if (const Node* own = c.node->at(F::k_type_parameters)) {
    for (const Node& kid : own->kids()) {
      if (kid.named) generic.emplace_back(kid.text().substr(0, kid.text().find_first_of(":= ")));
    }
  }
  if (list != nullptr) {
    for (const Node& kid : list->kids()) {
      if (!kid.named || kid.is(K::k_comment)) continue;
      if (kid.is(K::k_keyword_argument)) {
        const Node* value = kid.at(F::k_value);
        const Node* key = kid.at(F::k_name);
        const std::string_view text = value == nullptr ? "" : value->text();
        if (key != nullptr && key->text() == "metaclass") {
          c.metaclass = c.is_abstract = true;
          const Type meta = FromAnnotation(value, *c.module);
          if (meta.is(TK::kInstance) && meta.cls->module->stub) c.meta = meta.cls;
        }
        if (!text.ends_with("ABCMeta") && !text.ends_with("EnumMeta") && text != "True" &&
            text != "False" && !text.ends_with("EnumType")) {
          c.open = c.dynamic = true;
        }
        continue;
      }
      std::string_view head = kid.text();
      head = head.substr(0, head.find('['));
      if (const size_t dot = head.rfind('.'); dot != std::string_view::npos)
        head = head.substr(dot + 1);
      if (head == "Protocol" || head == "ABC") c.is_abstract = true;
      if (head == "Generic" || head == "Protocol") {
        for (const Node* arg : TypeArguments(&kid)) note(FromAnnotation(arg, *c.module), generic);
        continue;
      }
      Type base = FromAnnotation(&kid, *c.module);
      if (head == "TypedDict" && !base.is(TK::kInstance)) {
        Module* typing = Find("typing");
        if (typing != nullptr) base = MemberOfModule(*typing, "_TypedDict");
        if (base.is(TK::kClass)) base.kind = TK::kInstance;
      }
      const bool versions =
          base.is(TK::kEither) &&
          std::ranges::all_of(base.args, [](const Type& one) { return one.is(TK::kInstance); });
      if (kid.text() == "type" && Builtin("type") != nullptr)
        base = {.kind = TK::kInstance, .cls = Builtin("type")};
      if (versions) {
        // Declared for several versions: what any of them has.
        for (const Type& one : base.args) {
          note(one, seen);
          if (one.is(TK::kInstance)) c.bases.push_back(one);
        }
        continue;
      }
      if (!base.is(TK::kInstance)) {
        c.open = c.dynamic = true;
        c.bases_known = false;
        continue;
      }
      note(base, seen);
      c.bases.push_back(std::move(base));
    }
  }
  c.variables = generic.empty() ? std::move(seen) : std::move(generic);
  const bool object = c.name == "object" && c.module->name == "builtins";
  if (!object) {
    if (Class* root = Builtin("object")) {
      c.bases.push_back({.kind = TK::kInstance, .cls = root});
    } else {
      c.open = true;
    }
  }
}

const std::unordered_set<std::string>& SymbolTable::SetOnSelf(Class& c) {
  if (c.self_read) return c.set_on_self;
  c.self_read = true;
  if (c.module->stub) {
    c.set_on_self = UnlistedNames(c.module->name + ":" + c.name);
    return c.set_on_self;
  }
  if (const auto slots = c.scope.names.find("__slots__"); slots != c.scope.names.end()) {
    for (const Binding& binding : slots->second) {
      const Node* right =
          binding.kind == Binding::Kind::kAssignment ? binding.node->at(F::k_right) : nullptr;
      const std::string_view text = right == nullptr ? "" : right->text();
      for (size_t at = text.find_first_of("\"'"); at != std::string_view::npos;) {
        const size_t end = text.find(text[at], at + 1);
        if (end == std::string_view::npos) break;
        c.set_on_self.emplace(text.substr(at + 1, end - at - 1));
        c.stored.emplace(text.substr(at + 1, end - at - 1));
        at = text.find_first_of("\"'", end + 1);
      }
    }
  }
  // self.x = ..., whatever self is called.
  std::vector<const Node*> todo = {c.node};
  while (!todo.empty()) {
    Work::Step();
    const Node* node = todo.back();
    todo.pop_back();
    if (node->is(K::k_attribute)) {
      const Node* object = node->at(F::k_object);
      const Node* name = node->at(F::k_attribute);
      if (object != nullptr && name != nullptr && object->is(K::k_identifier) &&
          (object->text() == "self" || object->text() == "cls") && name->text() != kPlaceName) {
        c.set_on_self.insert(std::string(name->text()));
        if (AssignedTo(node)) c.stored.insert(std::string(name->text()));
        const Node* statement = node->parent;
        const Node* annotation =
            statement != nullptr && statement->is(K::k_assignment) && node->field == F::k_left
                ? statement->at(F::k_type)
                : nullptr;
        if (annotation != nullptr) {
          const auto [at, made] =
              c.self_annotations.try_emplace(std::string(name->text()), annotation);
          if (!made) at->second = nullptr;
        }
      }
    }
    for (const Node& kid : node->kids()) {
      if (kid.named) todo.push_back(&kid);
    }
  }
  return c.set_on_self;
}

bool SymbolTable::Derives(Class& c, std::string_view module, std::string_view name) {
  bool found = false;
  Walk({.kind = TK::kInstance, .cls = &c}, [&](Class& above, const Substitution& with) {
    (void)with;
    found = above.name == name && above.module->name == module;
    return found;
  });
  return found;
}

bool SymbolTable::MembersOf(const Type& type, std::unordered_set<std::string>& names,
                            bool& library) {
  return Walk(type, [&](Class& c, const Substitution& with) {
    (void)with;
    Work::Step(c.scope.names.size());
    for (const auto& [name, bindings] : c.scope.names) names.insert(name);
    const auto& set = SetOnSelf(c);
    names.insert(c.stored.begin(), c.stored.end());
    if (c.module->stub) names.insert(set.begin(), set.end());
    library = library || (c.module->stub && c.module->name != "builtins");
    return false;
  });
}

}  // namespace pawl::monitors::python
