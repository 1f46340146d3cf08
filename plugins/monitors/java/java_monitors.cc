// The monitors of Java. The text up to the cursor gets a name and what closes its brackets; errors
// elsewhere in the text do no harm, but what the cursor stands in has to parse.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/monitors/java/details.h"
#include "plugins/monitors/java/packages.h"
#include "plugins/monitors/java/symbol_table.h"
#include "plugins/monitors/java/typer.h"
#include "plugins/monitors/monitor.h"

namespace pawl::monitors::java {

// The Java text that is being written, parsed and typed anew at each trigger. Monitors ask it for
// the node at the cursor.

// What stands for the name that is not written yet.
inline constexpr std::string_view kName = "pawl_name__";

class JavaAnalysis : public Analysis {
 public:
  explicit JavaAnalysis(const MonitorOptions& options)
      : parser_(Language::kJava), repository_(Open(options)) {
    path_ = options.class_path;
    if (std::string modules = DefaultJavaModules(options.java_home, &note_); !modules.empty())
      path_.push_back(std::move(modules));
    Renew();
  }

  // The node of [start, end) in the text so far with `splice` at the cursor and everything closed.
  // nullptr: what it stands in has errors.
  const Node* Shadow(const Cursor& cursor, std::string_view splice, const Scan& scan,
                     uint32_t start, uint32_t end) {
    Renew();
    const auto at = static_cast<uint32_t>(cursor.text.size());
    if (!cursor.suffix.empty()) {
      std::string text(cursor.text);
      text += splice;
      text += cursor.suffix;
      if (const Node* node = Program(std::move(text), UINT32_MAX, start, end)) return node;
    }
    for (const bool ternaries : {true, false}) {
      if (!ternaries && !scan.has_ternary()) break;
      std::string text(cursor.text);
      text += splice;
      text += scan.Closers(ternaries);
      if (const Node* node = Program(std::move(text), at, start, end)) return node;
    }
    unparsed = true;
    return nullptr;
  }
  SymbolTable& world() { return *world_; }
  // Names of packages and their types, for the program that was parsed last.
  PackageNames& packages() {
    Renew();
    if (packages_ == nullptr) packages_ = std::make_unique<PackageNames>(*world_);
    return *packages_;
  }
  // As Shadow, for a text that ends before the cursor: a declaration is put behind it.
  const Node* ShadowOfDeclaration(std::string_view text, bool behind_try = false) {
    Scan scan(Language::kJava);
    scan.Add(text);
    if (!scan.in_code() || scan.too_deep() != SIZE_MAX) return nullptr;
    const Cursor cursor{.text = text, .suffix = {}, .scan = &scan};
    const std::string type = behind_try ? "finally {} Object " : "Object ";
    const std::string splice = type + std::string(kName) + ";";
    const auto start = static_cast<uint32_t>(text.size() + type.size());
    return Shadow(cursor, splice, scan, start, start + static_cast<uint32_t>(kName.size()));
  }
  void SetFile(const std::string& path) override {
    if (repository_ == nullptr) return;
    file_ = repository_->PathOf(path);
    packages_ = nullptr;
    if (world_ != nullptr) world_->SetFile(file_);
  }
  std::vector<std::string> Limits() const override {
    std::vector<std::string> limits =
        world_ != nullptr ? world_->limits() : std::vector<std::string>();
    if (!note_.empty()) limits.push_back(note_);
    if (repository_ != nullptr && !repository_->limit().empty())
      limits.push_back(repository_->folder() + ": " + repository_->limit());
    return limits;
  }
  void FilesChanged(const std::vector<std::string>& files) override {
    if (repository_ != nullptr && repository_->FilesChanged(files) && world_ != nullptr)
      world_->Forget();
  }
  void Drop(bool whole) noexcept override {
    parser_.Forget();
    packages_.reset();
    if (world_ != nullptr && !whole) {
      world_->Forget();
    } else {
      world_.reset();
    }
  }

  std::vector<Refusal> CheckFinished(std::string_view text,
                                     const std::vector<std::string>& monitors) override {
    (void)text;
    (void)monitors;
    return {};
  }

 private:
  static std::unique_ptr<Repository> Open(const MonitorOptions& options) {
    return options.repo.empty() ? nullptr : Repository::Open(options.repo, options.cache);
  }
  const Node* Program(std::string text, uint32_t cursor, uint32_t start, uint32_t end) {
    auto tree = parser_.Parse(std::move(text));
    const Node* node = tree->Smallest(start, end);
    const Node* member = nullptr;
    for (const Node* up = node; up != nullptr; up = up->parent) {
      if (up->is(Kind::k_ERROR)) return nullptr;
      const Node* around = up->parent;
      const bool in_body =
          around != nullptr &&
          (around->is(Kind::k_class_body) || around->is(Kind::k_interface_body) ||
           around->is(Kind::k_enum_body_declarations) || around->is(Kind::k_program));
      if (in_body && member == nullptr) member = up;
    }
    if (member == nullptr || member->broken()) return nullptr;
    world_->SetProgram(std::move(tree), cursor);
    return world_->program().tree->Smallest(start, end);
  }

  void Renew() {
    if (world_ != nullptr) return;
    world_ = std::make_unique<SymbolTable>(path_, repository_.get());
    world_->SetFile(file_);
  }

  Parser parser_;
  std::vector<std::string> path_;
  std::unique_ptr<Repository> repository_;
  std::string file_;  // in the repository
  std::string note_;
  std::unique_ptr<SymbolTable> world_;
  std::unique_ptr<PackageNames> packages_;
};

inline JavaAnalysis& Of(Analysis& analysis) { return static_cast<JavaAnalysis&>(analysis); }

inline std::string_view TrimEnd(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\t' ||
                           text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

// Abstract classes behind `new`, and assignments to what is final: checks.cc.
std::unique_ptr<Monitor> MakeNewMonitor();
std::unique_ptr<Monitor> MakeConstantsMonitor();

// The monitors that judge what has just been written: a class that cannot be made, and a variable
// that cannot be assigned to. Both look at declarations whose meaning the rest of the text cannot
// change, and are silent about all others.

namespace {

using K = Kind;
using F = Field;

bool Space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

bool HasWord(const Node* modifiers, std::string_view word) {
  if (modifiers == nullptr) return false;
  for (const Node& kid : modifiers->kids()) {
    if (kid.text() == word) return true;
  }
  return false;
}

// Whether the text ends with `new Name<...>(...)`, as far as its letters tell.
bool EndsWithCreation(std::string_view text) {
  constexpr size_t kMostArguments = 4000;
  size_t at = text.size();
  int depth = 0;
  do {
    if (at == 0 || text.size() - at > kMostArguments) return false;
    --at;
    depth += text[at] == ')' ? 1 : text[at] == '(' ? -1 : 0;
  } while (depth > 0);
  size_t name = at;
  while (name > 0) {
    const char c = text[name - 1];
    if (!NameByte(c) && !Space(c) && c != '.' && c != '<' && c != '>' && c != ',' && c != '?')
      break;
    --name;
  }
  const std::string_view head = text.substr(name, at - name);
  const size_t word = head.rfind("new ");
  return word != std::string_view::npos && (word == 0 || !NameByte(head[word - 1]));
}

// new C(...): not of an interface or an abstract class, unless a body follows.
class New : public Monitor {
 public:
  const char* name() const override { return "new"; }
  bool Triggered(const Cursor& c) const override {
    // A "{", a comment or white space may be the way to a body.
    if (c.next == '{' || c.next == '/' || Space(c.next)) return false;
    const std::string_view text = TrimEnd(c.text);
    return text.ends_with(')') && EndsWithCreation(text);
  }
  Verdict Ask(const Cursor& c, Analysis& analysis) const override {
    JavaAnalysis& of = Of(analysis);
    const auto close = static_cast<uint32_t>(TrimEnd(c.text).size()) - 1;
    const Node* list = of.Shadow(c, "", *c.scan, close, close + 1);
    if (list == nullptr || !list->is(K::k_argument_list) || list->end != close + 1) return {};
    const Node* made = list->parent;
    if (made == nullptr || !made->is(K::k_object_creation_expression)) return {};
    // outer.new Inner() is looked for in the class of `outer`.
    if (made->first(K::k_class_body) != nullptr || made->kids().front().named) return {};
    const Node* type = made->at(F::k_type);
    if (type == nullptr) return {};
    SymbolTable& world = of.world();
    const Type meant = world.TypeFromNode(type, world.program());
    Class* found = meant.is(Type::Kind::kClass) ? world.Find(meant.name) : nullptr;
    if (found == nullptr || !Settled(*found, world.program())) return {};
    world.ReadHead(*found);
    if (!found->is_abstract && !found->is_interface && !found->is_enum) return {};
    std::string_view written = type->text();
    written = written.substr(0, written.find_first_of("< "));
    return {.refusal = Refusal{.byte = type->start,
                               .identifier = std::string(written),
                               .message = "no object of it can be made"}};
  }

 private:
  // A class of the text, or one that is imported by its name: a class that is declared further down
  // does not take its place.
  static bool Settled(const Class& c, const SourceFile& file) {
    if (c.file == &file) return true;
    for (const Import& import : file.imports) {
      if (!import.all && !import.is_static && import.name == c.name) return true;
    }
    return false;
  }
};

// What is known of assigning to a variable.
enum class Target { kUnknown, kMayBeSet, kFinal };

Target OfDeclaration(const Node& declaration, const Node& declarator) {
  if (!HasWord(declaration.first(K::k_modifiers), "final")) return Target::kMayBeSet;
  // final int x; is set once, later.
  return declarator.at(F::k_value) != nullptr ? Target::kFinal : Target::kUnknown;
}

// A declaration of `name` by a statement; nullopt: it declares none.
std::optional<Target> DeclaredBy(const Node* statement, std::string_view name) {
  if (statement == nullptr || !statement->is(K::k_local_variable_declaration)) return std::nullopt;
  for (const Node& kid : statement->kids()) {
    const Node* id = kid.field == F::k_declarator ? kid.at(F::k_name) : nullptr;
    if (id != nullptr && id->text() == name) return OfDeclaration(*statement, kid);
  }
  return std::nullopt;
}

std::optional<Target> Parameter(const Node* list, std::string_view name) {
  if (list == nullptr) return std::nullopt;
  if (list->is(K::k_identifier) && list->text() == name) return Target::kMayBeSet;  // name -> ...
  for (const Node& kid : list->kids()) {
    if (kid.is(K::k_identifier) && kid.text() == name) return Target::kMayBeSet;
    if (!kid.is(K::k_formal_parameter)) {
      if (kid.named && kid.text().find(name) != std::string_view::npos) return Target::kUnknown;
      continue;
    }
    const Node* id = kid.at(F::k_name);
    if (id == nullptr || id->text() != name) continue;
    return HasWord(kid.first(K::k_modifiers), "final") ? Target::kFinal : Target::kMayBeSet;
  }
  return std::nullopt;
}

bool IsClassBody(const Node* node) {
  return node->is(K::k_class_body) || node->is(K::k_enum_body_declarations) ||
         node->is(K::k_interface_body) || node->is(K::k_record_declaration);
}

// x instanceof Foo name, case Foo name: variables of their own, whose reach is not followed.
bool BoundByPattern(const Node* around, std::string_view name) {
  std::vector<const Node*> todo = {around};
  while (!todo.empty()) {
    const Node* node = todo.back();
    todo.pop_back();
    const bool pattern = node->is(K::k_instanceof_expression) || node->is(K::k_type_pattern) ||
                         node->is(K::k_record_pattern_component);
    for (const Node& kid : node->kids()) {
      if (pattern && kid.is(K::k_identifier) && kid.text() == name) return true;
      if (kid.named) todo.push_back(&kid);
    }
  }
  return false;
}

// A field of the innermost class around `at`: what is further out may be hidden by what that class
// inherits, or declares further down.
Target FieldTarget(const Node* at, std::string_view name) {
  bool in_method = false;
  bool in_lambda = false;
  for (const Node* up = at->parent; up != nullptr; up = up->parent) {
    in_method = in_method || up->is(K::k_method_declaration);
    in_lambda = in_lambda || up->is(K::k_lambda_expression);
    if (!IsClassBody(up)) continue;
    if (!up->is(K::k_class_body)) return Target::kUnknown;
    for (const Node& kid : up->kids()) {
      if (!kid.is(K::k_field_declaration)) continue;
      for (const Node& declarator : kid.kids()) {
        const Node* id = declarator.field == F::k_declarator ? declarator.at(F::k_name) : nullptr;
        if (id == nullptr || id->text() != name) continue;
        const Target target = OfDeclaration(kid, declarator);
        // Without a value it is set in constructors and initializers, and nowhere else.
        const bool nowhere = in_method && !in_lambda;
        return target == Target::kUnknown && nowhere ? Target::kFinal : target;
      }
    }
    return Target::kUnknown;
  }
  return Target::kUnknown;
}

Target TargetOf(const Node* left) {
  if (left->is(K::k_field_access)) {
    const Node* object = left->at(F::k_object);
    const Node* field = left->at(F::k_field);
    if (object == nullptr || field == nullptr || !object->is(K::k_this)) return Target::kUnknown;
    return FieldTarget(left, field->text());
  }
  if (!left->is(K::k_identifier)) return Target::kUnknown;
  const std::string_view name = left->text();
  const Node* below = left;
  const Node* member = left;  // of the class: a method, an initializer
  for (const Node* up = left->parent; up != nullptr; below = up, up = up->parent) {
    std::optional<Target> found;
    switch (up->kind) {
      case K::k_block:
      case K::k_constructor_body:
      case K::k_switch_block_statement_group:
        for (const Node& statement : up->kids()) {
          if (statement.start >= below->start) break;
          if (auto declared = DeclaredBy(&statement, name)) found = declared;
        }
        break;
      case K::k_switch_block:  // groups see what earlier groups declare
        for (const Node& group : up->kids()) {
          if (group.start >= below->start) break;
          for (const Node& statement : group.kids()) {
            if (auto declared = DeclaredBy(&statement, name)) found = declared;
          }
        }
        break;
      case K::k_for_statement:
        found = DeclaredBy(up->at(F::k_init), name);
        break;
      case K::k_enhanced_for_statement: {
        const Node* id = up->at(F::k_name);
        if (id == nullptr || id->text() != name) break;
        found = HasWord(up->first(K::k_modifiers), "final") ? Target::kFinal : Target::kMayBeSet;
        break;
      }
      case K::k_try_with_resources_statement: {
        const Node* resources = up->at(F::k_resources);
        if (resources == nullptr || below == resources) break;
        for (const Node& resource : resources->kids()) {
          const Node* id = resource.is(K::k_resource) ? resource.at(F::k_name) : nullptr;
          // Behind the block, in a catch, it is not there any more.
          if (id != nullptr && id->text() == name)
            found = below->field == F::k_body ? Target::kFinal : Target::kUnknown;
        }
        break;
      }
      case K::k_catch_clause: {
        const Node* parameter = up->first(K::k_catch_formal_parameter);
        const Node* id = parameter != nullptr ? parameter->at(F::k_name) : nullptr;
        if (id == nullptr || id->text() != name) break;
        found =
            HasWord(parameter->first(K::k_modifiers), "final") ? Target::kFinal : Target::kMayBeSet;
        break;
      }
      case K::k_lambda_expression:
      case K::k_method_declaration:
      case K::k_constructor_declaration:
        found = Parameter(up->at(F::k_parameters), name);
        break;
      default:
        break;
    }
    if (found) return *found;
    if (IsClassBody(up)) {
      return BoundByPattern(member, name) ? Target::kUnknown : FieldTarget(left, name);
    }
    member = up;
  }
  return Target::kUnknown;
}

// x = 1, x += 1, x++ of what is final.
class Constants : public Monitor {
 public:
  const char* name() const override { return "constants"; }
  bool Triggered(const Cursor& c) const override {
    const std::string_view t = c.text;
    if (t.size() < 3) return false;
    if (t.back() == '=' && c.next != '=') {
      const char before = t[t.size() - 2];
      if (before == '=' || before == '!') return false;
      if (before == '<' || before == '>') return t[t.size() - 3] == before;
      static constexpr std::array<std::string_view, 10> kTypes = {
          "int", "long", "short", "byte", "char", "boolean", "float", "double", "var", "String"};
      return !EndsWithDeclared(t.substr(0, t.size() - 1), kTypes);
    }
    return (t.ends_with("++") || t.ends_with("--")) && !NameStart(c.next) &&
           NameByte(t[t.size() - 3]);
  }
  Verdict Ask(const Cursor& c, Analysis& analysis) const override {
    JavaAnalysis& of = Of(analysis);
    const auto at = static_cast<uint32_t>(c.text.size());
    const Node* left = nullptr;
    if (c.text.back() == '=') {
      const std::string splice = " " + std::string(kName);
      const Node* node =
          of.Shadow(c, splice, *c.scan, at + 1, at + static_cast<uint32_t>(splice.size()));
      const Node* assignment = node != nullptr ? node->parent : nullptr;
      if (assignment == nullptr || !assignment->is(K::k_assignment_expression) ||
          node->field != F::k_right) {
        return {};
      }
      left = assignment->at(F::k_left);
    } else {
      const Node* node = of.Shadow(c, "", *c.scan, at - 1, at);
      if (node == nullptr || !node->is(K::k_update_expression)) return {};
      left = node->first_named();
    }
    if (left == nullptr || TargetOf(left) != Target::kFinal) return {};
    const Node* name = left->is(K::k_field_access) ? left->at(F::k_field) : left;
    return {.refusal = Refusal{.byte = name->start,
                               .identifier = std::string(name->text()),
                               .message = "it is final"}};
  }
};

}  // namespace

std::unique_ptr<Monitor> MakeNewMonitor() { return std::make_unique<New>(); }
std::unique_ptr<Monitor> MakeConstantsMonitor() { return std::make_unique<Constants>(); }

}  // namespace pawl::monitors::java

namespace pawl::monitors {
namespace {

using K = Kind;
using F = Field;
using java::JavaAnalysis;
using java::kName;
using java::Of;
using java::TrimEnd;
using java::Typer;
using java::Value;

Verdict Names(std::optional<std::vector<std::string>> names) {
  if (!names) return {};
  auto completions = std::make_shared<Completions>();
  completions->names = std::move(*names);
  return {.names = std::move(completions)};
}

Verdict Names(std::optional<java::NamesThere> there) {
  if (!there) return {};
  auto completions = std::make_shared<Completions>();
  completions->names = std::move(there->names);
  completions->lower_free = there->lower_free;
  return {.names = std::move(completions)};
}

// a.b: only what the type of `a` has.
class Dereference : public Monitor {
 public:
  const char* name() const override { return "dereference"; }
  bool Triggered(const Cursor& c) const override {
    if (!NameStart(c.next)) return false;
    const std::string_view text = TrimEnd(c.text);
    // Not the full stop of a comment.
    if (text.size() < 2 || text.back() != '.' || c.scan->significant() != '.') return false;
    if (text[text.size() - 2] == '.') return false;
    // "1.5f": the point of a number.
    size_t start = text.size() - 1;
    while (start > 0 && NameByte(text[start - 1])) --start;
    return !(start + 1 < text.size() && text[start] >= '0' && text[start] <= '9');
  }
  Verdict Ask(const Cursor& c, Analysis& analysis) const override {
    JavaAnalysis& of = Of(analysis);
    if (const java::DottedPlace place = java::DottedPlaceAt(c.text);
        place.word != java::DottedPlace::Word::kNone) {
      return OfDotted(c, place, of);
    }
    if (java::OnlyClassFollows(c.text)) return Names(std::vector<std::string>{"class"});
    const auto at = static_cast<uint32_t>(c.text.size());
    const Node* node = of.Shadow(c, kName, *c.scan, at, at + static_cast<uint32_t>(kName.size()));
    if (node == nullptr || node->parent == nullptr) return OfType(c, of);
    const Node* parent = node->parent;
    if (node->is(K::k_type_identifier) && parent->is(K::k_scoped_type_identifier))
      return OfScoped(*parent, node, of);
    if (!node->is(K::k_identifier)) return {};
    const bool access = (parent->is(K::k_field_access) && node->field == F::k_field) ||
                        (parent->is(K::k_method_invocation) && node->field == F::k_name);
    if (!access) return Annotated(*parent) ? OfScoped(*parent, node, of) : Verdict{};
    Typer typer(of.world());
    if (Typer::OfSuper(parent)) {
      const Value above = typer.AboveOf(parent);
      return above.type.known() ? Names(typer.MemberNames(above, node)) : Verdict{};
    }
    const Node* object = parent->at(F::k_object);
    const Value value = typer.Evaluate(object);
    if (value.type.known()) return Names(typer.MemberNames(value, node));
    return OfPackage(object, typer, of);
  }
  void Known(const Cursor& c, Analysis& analysis, std::vector<std::string>& names) const override {
    JavaAnalysis& of = Of(analysis);
    const Node* object = ObjectAt(c, of);
    if (object == nullptr) return;
    Typer typer(of.world());
    java::KnownMembers(of.world(), typer.Evaluate(object), names);
  }
  void Details(const Cursor& c, Analysis& analysis, std::span<const std::string> names,
               std::vector<NameDetail>& details) const override {
    JavaAnalysis& of = Of(analysis);
    if (java::DottedPlaceAt(c.text).word != java::DottedPlace::Word::kNone)
      return java::PackageDetails(names, details);
    const Node* object = ObjectAt(c, of);
    if (object == nullptr) return;
    Typer typer(of.world());
    java::MemberDetails(of.world(), typer.Evaluate(object), names, details);
  }

 private:
  static Verdict OfDotted(const Cursor& c, const java::DottedPlace& place, JavaAnalysis& of) {
    using Word = java::DottedPlace::Word;
    // The package of the text counts, and what it declares does not yet.
    if (of.ShadowOfDeclaration(c.text.substr(0, place.start)) == nullptr) return {};
    of.unparsed = false;
    if (place.word == Word::kPackage) return Names(of.packages().Declared(place.before));
    return Names(of.packages().Imported(place.before, place.word == Word::kImportStatic));
  }
  // The text does not parse, since only a type may stand here and more has to follow.
  static Verdict OfType(const Cursor& c, JavaAnalysis& of) {
    const auto place = java::TypePlaceAt(c.text);
    if (!place) return {};
    const Node* node = of.ShadowOfDeclaration(c.text.substr(0, place->boundary), place->in_catch);
    if (node == nullptr || node->parent == nullptr || node->parent->parent == nullptr) return {};
    const Node* declaration = node->parent->parent;
    const bool member =
        declaration->is(K::k_field_declaration) || declaration->is(K::k_constant_declaration);
    const bool top = declaration->parent != nullptr && declaration->parent->is(K::k_program);
    if (!place->anywhere && !(place->of_member && member) && !(place->at_top && top)) return {};
    of.unparsed = false;
    return Names(of.packages().Types(place->before, node));
  }
  // @a.b.C; elsewhere a name with points may be that of a module.
  static bool Annotated(const Node& name) {
    if (!name.is(K::k_scoped_identifier)) return false;
    const Node* up = name.parent;
    while (up != nullptr && up->is(K::k_scoped_identifier)) up = up->parent;
    return up != nullptr && (up->is(K::k_marker_annotation) || up->is(K::k_annotation));
  }
  static Verdict OfScoped(const Node& scoped, const Node* node, JavaAnalysis& of) {
    const Node* before = scoped.first_named();
    if (before == nullptr || before == node) return {};
    std::string name = java::WithoutSpace(before->text());
    if (name.find_first_of("<@") != std::string::npos) return {};
    return Names(of.packages().Types(name, node));
  }
  // a.b.C in an expression, where `a` is no variable.
  static Verdict OfPackage(const Node* object, Typer& typer, JavaAnalysis& of) {
    const Node* root = object;
    while (root != nullptr && root->is(K::k_field_access)) root = root->at(F::k_object);
    if (root == nullptr || !root->is(K::k_identifier)) return {};
    const std::string name = java::WithoutSpace(object->text());
    const std::string_view first = root->text();
    // A field may be declared further down; none is called so.
    const bool reserved = first == "java" || first == "javax" || first == "jdk";
    if (!reserved && (root == object || !of.packages().Begins(name))) return {};
    if (!typer.NoVariable(root)) return {};
    return Names(of.packages().In(name));
  }
  // What stands before the point.
  static const Node* ObjectAt(const Cursor& c, JavaAnalysis& of) {
    const auto at = static_cast<uint32_t>(c.text.size());
    const Node* node = of.Shadow(c, kName, *c.scan, at, at + static_cast<uint32_t>(kName.size()));
    return node != nullptr && node->parent != nullptr ? node->parent->at(F::k_object) : nullptr;
  }
};

// f(a, b): as many arguments as some overload takes.
class ArgumentCount : public Monitor {
 public:
  const char* name() const override { return "arguments"; }
  bool Triggered(const Cursor& c) const override { return c.next == ')' && c.scan->in_call(); }
  Verdict Ask(const Cursor& c, Analysis& analysis) const override {
    JavaAnalysis& of = Of(analysis);
    Scan closed = *c.scan;
    closed.Add(')');
    const auto at = static_cast<uint32_t>(c.text.size());
    const Node* list = of.Shadow(c, ")", closed, at, at + 1);
    if (list == nullptr || !list->is(K::k_argument_list) || list->end != at + 1) return {};
    const Node* call = list->parent;
    const bool made = call->is(K::k_object_creation_expression);
    if (!made && !call->is(K::k_method_invocation)) return {};
    size_t count = 0;
    for (const Node& kid : list->kids()) count += kid.named && !kid.is(K::k_comment) ? 1 : 0;
    Typer typer(of.world());
    const Node* name = made ? call->at(F::k_type) : call->at(F::k_name);
    if (!made) {
      // All overloads are known only where all members are.
      const Node* object = call->at(F::k_object);
      if (object == nullptr || !typer.MemberNames(typer.Evaluate(object), call)) return {};
    }
    const auto candidates = typer.CandidatesOf(call);
    if (!candidates || candidates->empty() || name == nullptr) return {};
    for (const java::Candidate& candidate : *candidates) {
      size_t least = 0;
      size_t most = 0;
      Typer::Arity(*candidate.method, least, most);
      if (count >= least && count <= most) return {};
    }
    return {.refusal = Refusal{.byte = name->start,
                               .identifier = std::string(name->text()),
                               .message = "takes no " + std::to_string(count) + " arguments"}};
  }
};

// Whether the text ends with the "case A, B," of a switch: another label comes.
bool InLabels(std::string_view text) {
  if (!text.ends_with(',')) return false;
  constexpr size_t kMostBytes = 4000;
  size_t at = text.size();
  while (at > 0 && text.size() - at < kMostBytes &&
         (NameByte(text[at - 1]) || text[at - 1] == ',' || text[at - 1] == ' ' ||
          text[at - 1] == '\n')) {
    --at;
  }
  const std::string_view labels = text.substr(at);
  const size_t word = labels.rfind("case ");
  return word != std::string_view::npos && (word == 0 || !NameByte(labels[word - 1]));
}

// case A: a constant of the enum.
class Labels : public Monitor {
 public:
  const char* name() const override { return "labels"; }
  bool Triggered(const Cursor& c) const override {
    if (!NameStart(c.next)) return false;
    const std::string_view text = TrimEnd(c.text);
    if (InLabels(text)) return true;
    return text.size() < c.text.size() && text.ends_with("case") &&
           (text.size() == 4 || !NameByte(text[text.size() - 5]));
  }
  Verdict Ask(const Cursor& c, Analysis& analysis) const override {
    JavaAnalysis& of = Of(analysis);
    const auto at = static_cast<uint32_t>(c.text.size());
    const Node* node = of.Shadow(c, kName, *c.scan, at, at + static_cast<uint32_t>(kName.size()));
    if (node == nullptr || !node->is(K::k_identifier)) return {};
    Typer typer(of.world());
    auto names = typer.LabelsOf(node);
    if (names) {
      names->insert(names->end(), {"default", "null"});
      std::sort(names->begin(), names->end());
    }
    return Names(std::move(names));
  }
};

}  // namespace

std::unique_ptr<Analysis> MakeJavaAnalysis(const MonitorOptions& options) {
  return std::make_unique<JavaAnalysis>(options);
}

std::vector<std::unique_ptr<Monitor>> JavaMonitors() {
  std::vector<std::unique_ptr<Monitor>> monitors;
  monitors.push_back(std::make_unique<Dereference>());
  monitors.push_back(std::make_unique<ArgumentCount>());
  monitors.push_back(std::make_unique<Labels>());
  monitors.push_back(java::MakeNewMonitor());
  monitors.push_back(java::MakeConstantsMonitor());
  return monitors;
}

}  // namespace pawl::monitors
