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

// Whether a decorator's text gives the class that it is called with members, or makes another one.
bool AddsMembers(const Node* function) {
  const std::string_view text = function->text();
  Work::Bytes(text.size());
  for (const std::string_view word : {"setattr", "__dict__", "class ", "type("}) {
    if (text.find(word) != std::string_view::npos) return true;
  }
  std::vector<const Node*> todo = {function};
  while (!todo.empty()) {
    Work::Step();
    const Node* node = todo.back();
    todo.pop_back();
    if (node->is(K::k_attribute) && AssignedTo(node)) return true;
    for (const Node& kid : node->kids()) {
      if (kid.named) todo.push_back(&kid);
    }
  }
  return false;
}

}  // namespace

// A list takes no attributes but those that it has.
bool TakesNoAttributes(const Class& c) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kPlain = {
      {{"builtins",
        " str int float bool complex bytes list dict set tuple frozenset bytearray range "
        "memoryview slice "},
       {"re", " Match Pattern "},
       {"datetime", " datetime date time timedelta timezone "},
       {"collections", " deque defaultdict "},
       {"array", " array "},
       {"struct", " Struct "},
       {"decimal", " Decimal "},
       {"fractions", " Fraction "},
       {"pathlib", " Path PurePath PosixPath WindowsPath "},
       {"uuid", " UUID "},
       {"xml.etree.ElementTree", " Element "},
       {"time", " struct_time "}}};
  return c.module->stub && std::ranges::any_of(kPlain, [&](const auto& one) {
           return one.first == c.module->name &&
                  one.second.find(" " + c.name + " ") != std::string_view::npos;
         });
}

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
    if (!Harmless(decorator, module) && !KeepsClass(decorator, module)) {
      c.dynamic = true;
      c.replaced = !module.stub;
    }
  }
  if (!module.stub) {
    const Changes& changes = ChangesOf(module);
    if (changes.all_classes || changes.classes.contains(node) || node->broken()) c.dynamic = true;
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
  return std::ranges::all_of(of.functions, [&](const Node* one) {
    const Node* returns = one->at(F::k_return_type);
    return returns != nullptr && returns->text().find("ype[") != std::string_view::npos &&
           (of.module->stub || !AddsMembers(one));
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
          Type meta = FromAnnotation(value, *c.module);
          // Declared for several versions.
          if (meta.is(TK::kEither) && c.module->stub) meta = Type(meta.args.front());
          if (meta.is(TK::kInstance) && meta.cls->module->stub) c.meta = meta.cls;
        }
        static constexpr std::array<std::string_view, 3> kPlain = {"ABCMeta", "EnumMeta",
                                                                   "EnumType"};
        const std::string_view last = text.substr(text.rfind('.') + 1);
        const bool library = c.module->stub || c.meta != nullptr;
        // What the stubs say of its objects is true, whatever makes the class.
        if (c.module->stub && c.meta != nullptr) continue;
        if (text != "True" && text != "False" &&
            !(library && std::ranges::find(kPlain, last) != kPlain.end())) {
          c.open = c.dynamic = true;
        }
        continue;
      }
      std::string_view head = kid.text();
      head = head.substr(0, head.find('['));
      if (const size_t dot = head.rfind('.'); dot != std::string_view::npos)
        head = head.substr(dot + 1);
      if (head == "Protocol" || head == "ABC") c.is_abstract = true;
      if (head == "Protocol") c.protocol = true;
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
  if (!c.dynamic && ClassHandedOver(c)) c.open = c.dynamic = true;
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
  // self.x = ..., whatever self is called: o = object.__new__(cls); o.x = ...
  std::vector<const Node*> todo = {c.node};
  while (!todo.empty()) {
    Work::Step();
    const Node* node = todo.back();
    todo.pop_back();
    if (node->is(K::k_attribute)) {
      const Node* object = node->at(F::k_object);
      const Node* name = node->at(F::k_attribute);
      const bool self = object != nullptr && object->is(K::k_identifier) &&
                        (object->text() == "self" || object->text() == "cls" ||
                         ClassOfReceiver(node, object->text()) != nullptr);
      const bool assigned = AssignedTo(node);
      if (name != nullptr && (self || assigned) && name->text() != kPlaceName) {
        c.set_on_self.insert(std::string(name->text()));
        if (assigned) c.stored.insert(std::string(name->text()));
        const Node* statement = node->parent;
        const Node* annotation = self && statement != nullptr && statement->is(K::k_assignment) &&
                                         node->field == F::k_left
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

const Changes& SymbolTable::ChangesOf(Module& module) {
  if (module.changes == nullptr)
    module.changes = std::make_unique<Changes>(ReadChanges(*module.tree, module.scope));
  return *module.changes;
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
    if (c.module->stub) {
      names.insert(set.begin(), set.end());
    } else {
      const Changes& changes = ChangesOf(*c.module);
      names.insert(changes.set.begin(), changes.set.end());
      names.insert(changes.given.begin(), changes.given.end());
    }
    library = library || (c.module->stub && c.module->name != "builtins");
    return false;
  });
}

}  // namespace pawl::monitors::python
