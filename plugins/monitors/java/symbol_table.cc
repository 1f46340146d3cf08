// Where classes come from. A name is looked for in the text itself, then in the repository, then on
// the class path; what was found, and what was not, is remembered. Classes of the repository are
// read from their files when they are first asked for. When the files take more than a budget, all
// of them are forgotten at the next text.
#include "plugins/monitors/java/symbol_table.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "plugins/monitors/work.h"

namespace pawl::monitors::java {
namespace {

using K = Kind;
using F = Field;
using TK = Type::Kind;

constexpr size_t kMaxFileBytes = size_t{32} << 20;
constexpr size_t kMaxCompiled = 20000;

// Lombok writes getters, loggers and more into classes. These of its annotations add no name.
bool AddsNames(const Import& import) {
  if (!import.name.starts_with("lombok") && !import.name.starts_with("manifold.")) return false;
  static constexpr std::array<std::string_view, 4> kHarmless = {
      "lombok.NonNull", "lombok.SneakyThrows", "lombok.ToString", "lombok.Cleanup"};
  return std::find(kHarmless.begin(), kHarmless.end(), import.name) == kHarmless.end();
}

}  // namespace

std::string WithoutSpace(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') result += c;
  }
  return result;
}

bool DeclaresClass(const Node& node) {
  switch (node.kind) {
    case K::k_class_declaration:
    case K::k_interface_declaration:
    case K::k_enum_declaration:
    case K::k_record_declaration:
    case K::k_annotation_type_declaration:
      return true;
    default:
      return false;
  }
}

void SymbolTable::SetProgram(std::unique_ptr<Tree> tree, uint32_t cursor) {
  if (file_bytes_ > kMaxFileBytes) {
    in_repository_.clear();
    files_.clear();
    file_bytes_ = 0;
  }
  if (compiled_.size() > kMaxCompiled || path_.unpacked() > ClassPath::kMaxUnpackedBytes / 2) {
    compiled_.clear();
    path_.Forget();
  }
  program_ = SourceFile();
  program_.tree = std::move(tree);
  program_.cursor = cursor;
  Collect(program_);
}

void SymbolTable::Collect(SourceFile& file) {
  for (const Node& kid : file.tree->root()->kids()) {
    if (kid.is(K::k_package_declaration)) {
      for (const Node& name : kid.kids()) {
        if (name.is(K::k_scoped_identifier) || name.is(K::k_identifier))
          file.package = WithoutSpace(name.text());
      }
    } else if (kid.is(K::k_import_declaration)) {
      Import import;
      for (const Node& part : kid.kids()) {
        if (part.is(K::k_scoped_identifier) || part.is(K::k_identifier))
          import.name = WithoutSpace(part.text());
        if (part.is(K::k_asterisk)) import.all = true;
        if (part.text() == "static") import.is_static = true;
      }
      if (AddsNames(import)) file.generated = true;
      file.imports.push_back(std::move(import));
    } else if (DeclaresClass(kid)) {
      CollectIn(&kid, nullptr, file);
    }
  }
}

// The class of a declaration and those in its body.
void SymbolTable::CollectIn(const Node* node, Class* outer, SourceFile& file) {
  struct Entry {
    const Node* node;
    Class* outer;
  };
  std::vector<Entry> todo = {{node, outer}};
  while (!todo.empty()) {
    const Entry entry = todo.back();
    todo.pop_back();
    const Node* name = entry.node->at(F::k_name);
    if (name == nullptr) continue;
    const std::string simple(name->text());
    const std::string& prefix = entry.outer != nullptr ? entry.outer->name : file.package;
    Class* made =
        Declare(entry.node, entry.outer, file, prefix.empty() ? simple : prefix + "." + simple);
    const Node* body = entry.node->at(F::k_body);
    if (body == nullptr || made == nullptr) continue;
    for (const Node& kid : body->kids()) {
      if (DeclaresClass(kid)) todo.push_back({&kid, made});
      if (kid.is(K::k_enum_body_declarations)) {
        for (const Node& inner : kid.kids()) {
          if (DeclaresClass(inner)) todo.push_back({&inner, made});
        }
      }
    }
  }
}

Class* SymbolTable::Declare(const Node* node, Class* outer, SourceFile& file, std::string name) {
  auto& slot = file.classes[name];
  if (slot != nullptr) {
    // Declared twice: an unfinished text, or variants of one class.
    slot->open = true;
    file.by_node[node] = slot.get();
    return slot.get();
  }
  slot = std::make_unique<Class>();
  Class& c = *slot;
  c.name = std::move(name);
  if (const Node* simple = node->at(F::k_name)) c.simple = std::string(simple->text());
  c.package = file.package;
  if (outer != nullptr) c.outer = outer->name;
  c.top = outer != nullptr ? outer->top : c.name;
  c.is_interface =
      node->is(K::k_interface_declaration) || node->is(K::k_annotation_type_declaration);
  c.is_enum = node->is(K::k_enum_declaration);
  c.is_static = outer == nullptr || c.is_interface || c.is_enum || outer->is_interface ||
                node->is(K::k_record_declaration);
  if (const Node* modifiers = node->first(K::k_modifiers)) {
    for (const Node& word : modifiers->kids()) {
      if (word.text() == "static") c.is_static = true;
      if (word.text() == "abstract") c.is_abstract = true;
    }
  }
  c.unfinished = node->start < file.cursor && file.cursor <= node->end;
  c.open = file.generated || c.unfinished;
  c.file = &file;
  c.node = node;
  if (const Node* list = node->at(F::k_type_parameters)) ReadVariables(list, c.variables);
  file.by_node[node] = &c;
  return &c;
}

Class* SymbolTable::ClassOf(const Node* node, SourceFile& file) {
  if (const auto found = file.by_node.find(node); found != file.by_node.end()) return found->second;
  // A class in a method, an anonymous one, the body of a constant.
  Class* outer = nullptr;
  for (const Node* up = node->parent; up != nullptr && outer == nullptr; up = up->parent) {
    if (DeclaresClass(*up)) outer = ClassOf(up, file);
  }
  std::string name =
      (outer != nullptr ? outer->name : file.package) + ".local-" + std::to_string(node->start);
  return Declare(node, outer, file, std::move(name));
}

SourceFile* SymbolTable::FileOf(const std::string& path) {
  if (const auto known = files_.find(path); known != files_.end()) return known->second.get();
  auto made = std::make_unique<SourceFile>();
  auto text = repository_->Read(path);
  Parser parser(Language::kJava);
  if (text) file_bytes_ += text->size() * 8;  // the tree is larger than its text
  try {
    const Work file(Work::Limits(), Work::Limits().file_steps);
    made->tree = parser.Parse(text ? std::move(*text) : "");
    Collect(*made);
  } catch (const GaveUp&) {
    // As if it declared nothing.
    made = std::make_unique<SourceFile>();
    made->tree = parser.Parse("");
  }
  return (files_[path] = std::move(made)).get();
}

void SymbolTable::SetFile(std::string file) {
  if (file == file_) return;
  file_ = std::move(file);
  in_repository_.clear();
}

void SymbolTable::Forget() noexcept {
  program_ = SourceFile{};
  files_.clear();
  file_bytes_ = 0;
  in_repository_.clear();
}

Class* SymbolTable::FindInRepository(const std::string& name) {
  if (repository_ == nullptr) return nullptr;
  const auto [at, is_new] = in_repository_.try_emplace(name, nullptr);
  if (!is_new) return at->second;
  // com.foo.Outer.Inner: any of its parts may be the class at the top of a file.
  Class* found = nullptr;
  size_t start = 0;
  while (start < name.size()) {
    const size_t end = std::min(name.find('.', start), name.size());
    const std::string package = start == 0 ? "" : name.substr(0, start - 1);
    const std::string part = name.substr(start, end - start);
    start = end + 1;
    if (part.empty() || (part[0] >= 'a' && part[0] <= 'z' && end < name.size())) continue;
    for (const std::string& path : repository_->FilesWithType(part)) {
      if (!path.ends_with(".java") || path == file_) continue;
      SourceFile* file = FileOf(path);
      if (file->package != package) continue;
      const auto in_file = file->classes.find(name);
      if (in_file == file->classes.end()) continue;
      if (found != nullptr) found->open = true;  // there are two: which one is meant is not known
      if (found == nullptr) found = in_file->second.get();
    }
    if (found != nullptr) break;
  }
  in_repository_[name] = found;
  return found;
}

Class* SymbolTable::Find(const std::string& name) {
  if (const auto found = program_.classes.find(name); found != program_.classes.end())
    return found->second.get();
  if (Class* found = FindInRepository(name)) return found;
  const auto known = compiled_.find(name);
  if (known != compiled_.end()) return known->second.get();
  auto read = path_.Find(name);
  if (read != nullptr && read->name != name) read = nullptr;
  return (compiled_[name] = std::move(read)).get();
}

bool SymbolTable::HasPackage(const std::string& name) {
  if (name == program_.package) return true;
  if (repository_ != nullptr && repository_->HasPackage(name)) return true;
  return path_.HasPackage(name);
}

Type SymbolTable::WithDimensions(Type type, const Node* dimensions) {
  if (dimensions == nullptr) return type;
  for (const Node& part : dimensions->kids()) {
    if (part.text() == "[") type = type.known() ? ArrayOf(std::move(type)) : Type{};
  }
  return type;
}

Type SymbolTable::ClassNamed(Class& c) const { return ClassType(c.name); }

Type SymbolTable::TypeFromNode(const Node* node, SourceFile& file, int depth) {
  if (node == nullptr || depth > 40) return {};
  switch (node->kind) {
    case K::k_integral_type:
    case K::k_floating_point_type:
    case K::k_boolean_type:
      return Primitive(node->text());
    case K::k_void_type:
      return {.kind = TK::kVoid, .name = {}, .args = {}};
    case K::k_type_identifier:
    case K::k_identifier:
      return Named(node->text(), node, file, depth);
    case K::k_scoped_type_identifier:
    case K::k_scoped_identifier: {
      const std::string text = WithoutSpace(node->text());
      if (text.find_first_of("@<") != std::string::npos) return {};
      const size_t dot = text.find('.');
      Type type = Named(text.substr(0, dot), node, file, depth);
      size_t at = dot;
      if (!type.is(TK::kClass)) {
        // A name with its package.
        return Find(text) != nullptr ? ClassType(text) : Type{};
      }
      while (at != std::string::npos) {
        const size_t end = text.find('.', at + 1);
        Class* in = Find(type.name);
        bool known = true;
        if (in == nullptr) return {};
        type = NestedType(*in, text.substr(at + 1, end == std::string::npos ? end : end - at - 1),
                          known);
        if (!type.is(TK::kClass)) return {};
        at = end;
      }
      return type;
    }
    case K::k_generic_type: {
      const Node* base = node->first_named();
      Type type = TypeFromNode(base, file, depth + 1);
      if (!type.is(TK::kClass)) return {};
      type.args.clear();
      if (const Node* list = node->first(K::k_type_arguments)) {
        for (const Node& arg : list->kids()) {
          if (arg.named && !arg.is(K::k_comment))
            type.args.push_back(TypeFromNode(&arg, file, depth + 1));
        }
      }
      return type;
    }
    case K::k_array_type:
      return WithDimensions(TypeFromNode(node->at(F::k_element), file, depth + 1),
                            node->at(F::k_dimensions));
    case K::k_annotated_type: {
      const Node* last = nullptr;
      for (const Node& kid : node->kids()) {
        if (kid.named && !kid.is(K::k_comment)) last = &kid;
      }
      return TypeFromNode(last, file, depth + 1);
    }
    case K::k_wildcard: {
      Type wildcard{.kind = TK::kExtends, .name = {}, .args = {}};
      bool bound = false;
      for (const Node& kid : node->kids()) {
        if (kid.text() == "extends") bound = true;
        if (kid.is(K::k_super) || kid.text() == "super") {
          wildcard.kind = TK::kSuper;
          bound = true;
        } else if (bound && kid.named && !kid.is(K::k_comment)) {
          wildcard.args.push_back(TypeFromNode(&kid, file, depth + 1));
        }
      }
      if (wildcard.is(TK::kSuper) && wildcard.args.empty()) return {};
      return wildcard;
    }
    default:
      return {};
  }
}

Type SymbolTable::Named(std::string_view name, const Node* node, SourceFile& file, int depth) {
  if (depth > 40 || name == "var" || name == "val") return {};
  const Node* below = node;
  for (const Node* up = node->parent; up != nullptr; below = up, up = up->parent) {
    Work::Step();
    if (const Node* list = up->at(F::k_type_parameters)) {
      for (const Node& parameter : list->kids()) {
        if (!parameter.is(K::k_type_parameter)) continue;
        const Node* id = nullptr;
        for (const Node& kid : parameter.kids()) {
          if (id == nullptr && (kid.is(K::k_type_identifier) || kid.is(K::k_identifier))) id = &kid;
        }
        if (id == nullptr || id->text() != name) continue;
        Type variable{.kind = TK::kVariable, .name = std::string(name), .args = {}};
        if (const Node* bound = parameter.first(K::k_type_bound)) {
          std::vector<Type> bounds;
          for (const Node& kid : bound->kids()) {
            if (!kid.named || kid.is(K::k_comment)) continue;
            // T extends Comparable<T>: its own bound is not asked for again.
            bounds.push_back(depth > 2 ? Type{} : TypeFromNode(&kid, file, depth + 3));
          }
          const bool all =
              std::all_of(bounds.begin(), bounds.end(), [](const Type& b) { return b.known(); });
          variable.args.push_back(all ? Either(std::move(bounds)) : Type{});
        }
        return variable;
      }
    }
    if (up->is(K::k_block)) {
      // A class that is declared in the block, before this.
      for (const Node& statement : up->kids()) {
        if (statement.start >= below->end) break;
        const Node* local = DeclaresClass(statement) ? &statement : nullptr;
        if (local == nullptr) continue;
        const Node* id = local->at(F::k_name);
        if (id != nullptr && id->text() == name) return ClassNamed(*ClassOf(local, file));
      }
    }
    const bool body =
        up->is(K::k_class_body) && up->parent != nullptr &&
        (up->parent->is(K::k_object_creation_expression) || up->parent->is(K::k_enum_constant));
    if (!DeclaresClass(*up) && !body) continue;
    Class* in = ClassOf(body ? up->parent : up, file);
    if (in->simple == name) return ClassNamed(*in);
    // Heads of classes do not see what the class inherits.
    if (up->at(F::k_body) != nullptr && up->at(F::k_body) != below && !body) continue;
    bool known = true;
    Type nested = NestedType(*in, name, known);
    if (nested.known()) return nested;
  }
  return Imported(name, file);
}

Type SymbolTable::Imported(std::string_view name, SourceFile& file) {
  Work::Step(file.imports.size());
  for (const Import& import : file.imports) {
    if (import.all || !import.name.ends_with(name)) continue;
    const size_t before = import.name.size() - name.size();
    if (before == 0 || import.name[before - 1] != '.') continue;
    if (Find(import.name) != nullptr) return ClassType(import.name);
    if (!import.is_static) return {};
  }
  const std::string own =
      file.package.empty() ? std::string(name) : file.package + "." + std::string(name);
  if (const auto found = file.classes.find(own); found != file.classes.end()) return ClassType(own);
  if (Find(own) != nullptr) return ClassType(own);
  bool unknown_package = false;
  Type from_import;
  for (const Import& import : file.imports) {
    if (!import.all) continue;
    const std::string full = import.name + "." + std::string(name);
    if (Find(full) != nullptr) {
      if (from_import.known() && from_import.name != full) return {};
      from_import = ClassType(full);
    } else if (!import.is_static && !HasPackage(import.name) && Find(import.name) == nullptr) {
      unknown_package = true;
    }
  }
  if (from_import.known()) return from_import;
  const std::string standard = "java.lang." + std::string(name);
  if (Find(standard) == nullptr) return {};
  // Names that java.lang got late, and that libraries had before.
  if (unknown_package && (name == "Record" || name == "Module" || name == "IO")) return {};
  return ClassType(standard);
}

// An inner class speaks of the type parameters of the classes around it. A type does not say what
// stands for these: Tree<String>.Node is only Tree.Node.
void SymbolTable::AddOuterVariables(const Class& of, Substitution& with) {
  constexpr int kMostOuter = 16;
  std::string outer = of.outer;
  for (int k = 0; k < kMostOuter && !outer.empty(); ++k) {
    Class* c = Find(outer);
    if (c == nullptr) return;
    ReadHead(*c);
    for (const std::string& name : c->variables) with.emplace_back(name, Type{});
    outer = c->outer;
  }
}

bool SymbolTable::Walk(const Type& type, const Visit& visit) {
  if (!type.is(TK::kClass)) return false;
  struct Entry {
    Type type;
  };
  std::vector<Entry> todo = {{type}};
  std::unordered_set<std::string> seen;
  bool closed = true;
  for (size_t i = 0; i < todo.size(); ++i) {
    Work::Step(2);
    const Type here = todo[i].type;
    if (!here.is(TK::kClass)) {
      closed = false;
      continue;
    }
    if (!seen.insert(here.name).second) continue;
    Class* c = Find(here.name);
    if (c == nullptr || seen.size() > 400) {
      closed = false;
      continue;
    }
    ReadHead(*c);
    Substitution with;
    for (size_t k = 0; k < c->variables.size(); ++k)
      with.emplace_back(c->variables[k],
                        here.args.size() == c->variables.size() ? here.args[k] : Type{});
    AddOuterVariables(*c, with);
    if (visit(*c, with)) return closed;
    if (c->open) closed = false;
    for (const Type& super : c->supers) todo.push_back({Substitute(super, with)});
  }
  return closed;
}

bool SymbolTable::SupersKnown(const Type& type) {
  bool known = true;
  Walk(type, [&](Class& above, const Substitution& with) {
    (void)with;
    if (above.open && !above.unfinished) known = false;
    for (const Type& super : above.supers) {
      if (!super.is(TK::kClass) || Find(super.name) == nullptr) known = false;
    }
    return false;
  });
  return known;
}

bool SymbolTable::MayBeInherited(const Type& type, const Node* node) {
  for (const Node* up = node->parent; up != nullptr; up = up->parent) {
    if (!DeclaresClass(*up)) continue;
    Class* in = ClassOf(up, program_);
    if (type.name == in->name || type.name.starts_with(in->name + ".")) return false;
    if (!SupersKnown(ClassNamed(*in))) return true;
  }
  return false;
}

Type SymbolTable::As(const Type& type, const std::string& super) {
  Type result;
  Walk(type, [&](Class& c, const Substitution& with) {
    if (c.name != super) return false;
    result = ClassType(super);
    for (const auto& [name, value] : with) result.args.push_back(value);
    return true;
  });
  return result;
}

SymbolTable::Answer SymbolTable::IsSubtype(const Type& type, const std::string& super) {
  if (super == "java.lang.Object") return Answer::kYes;
  bool found = false;
  const bool closed = Walk(type, [&](Class& c, const Substitution& with) {
    (void)with;
    found = found || c.name == super;
    return found;
  });
  if (found) return Answer::kYes;
  return closed ? Answer::kNo : Answer::kMaybe;
}

// A class inherits the nested ones that it may see: not private ones, and of another package only
// public and protected ones.
Type SymbolTable::NestedType(Class& in, std::string_view name, bool& known) {
  const auto sees = [&](const Class& owner, Visibility visibility) {
    if (owner.top == in.top) return true;
    if (visibility == Visibility::kPrivate) return false;
    return visibility != Visibility::kPackage || owner.package == in.package;
  };
  Type result;
  known = Walk(ClassNamed(in), [&](Class& c, const Substitution& with) {
    (void)with;
    if (c.file != nullptr) {
      const std::string full = c.name + "." + std::string(name);
      const auto nested = c.file->classes.find(full);
      if (nested == c.file->classes.end()) return false;
      Visibility visibility = c.is_interface ? Visibility::kPublic : Visibility::kPackage;
      const Node* modifiers = nested->second->node->first(K::k_modifiers);
      for (const Node& word : modifiers == nullptr ? std::span<const Node>() : modifiers->kids()) {
        if (word.text() == "private") visibility = Visibility::kPrivate;
        if (word.text() == "public" || word.text() == "protected") visibility = Visibility::kPublic;
      }
      if (sees(c, visibility)) result = ClassType(full);
    } else {
      Work::Step(c.members.size() / 4);
      for (const Member& m : c.members) {
        if (m.kind == Member::Kind::kType && m.name == name && sees(c, m.visibility))
          result = m.type;
      }
    }
    return result.known();
  });
  return result;
}

}  // namespace pawl::monitors::java
