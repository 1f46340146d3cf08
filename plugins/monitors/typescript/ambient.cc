// What files say that no import leads to. `declare module "./shop" { interface Cart { ... } }` and
// `declare global { ... }` add members from any file of the project, and a file without imports and
// exports declares names for all others. Which of the repository's files do so is found by a look
// at their texts, once; the few that do are parsed. What they add is known by name, with open
// types.
#include <algorithm>
#include <array>

#include "plugins/monitors/typescript/checker.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors::ts {

namespace {

// A folder with more is looked at as far as these go.
constexpr SourceLimits kLooked = {.entries = 40'000,
                                  .files = 4'000,
                                  .file_bytes = size_t{1} << 20,
                                  .source_bytes = size_t{24} << 20};
constexpr size_t kMostParsed = 100;
constexpr size_t kMostNames = 20'000;

bool NameChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}

// The word at the start of the text, which loses it and the space behind it.
std::string_view TakeWord(std::string_view& text) {
  size_t end = 0;
  while (end < text.size() && NameChar(text[end])) ++end;
  const std::string_view word = text.substr(0, end);
  while (end < text.size() && (text[end] == ' ' || text[end] == '\t')) ++end;
  text.remove_prefix(end);
  return word;
}

// The names that the lines of a script declare: `interface Point {`. A look at lines, so that names
// inside of functions count too.
struct Script {
  bool module = false;  // it has imports or exports
  std::vector<std::string> names;
};

Script Look(std::string_view text) {
  static constexpr std::array<std::string_view, 10> kHeads = {
      "interface", "namespace", "module", "class", "enum",
      "function",  "type",      "var",    "let",   "const"};
  Script script;
  size_t at = 0;
  while (at < text.size() && script.names.size() < kMostNames) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    const bool indented = line.starts_with(' ') || line.starts_with('\t');
    at = end + 1;
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    std::string_view word = TakeWord(line);
    if (!indented && (word == "import" || word == "export")) script.module = true;
    while (word == "declare" || word == "abstract" || word == "async" || word == "export" ||
           word == "global") {
      word = TakeWord(line);
    }
    if (word == "const" && line.starts_with("enum ")) word = TakeWord(line);
    if (std::find(kHeads.begin(), kHeads.end(), word) == kHeads.end()) continue;
    if (const std::string_view name = TakeWord(line); !name.empty())
      script.names.emplace_back(name);
  }
  return script;
}

}  // namespace

const AmbientFiles& ModuleFiles::Ambient() {
  if (ambient_) return *ambient_;
  ambient_.emplace();
  const auto list = folder_.List(kLooked);
  if (!list.ok()) return *ambient_;
  for (const auto& [path, language] : list->files) {
    if (language != Language::kTypeScript) continue;
    const auto text = folder_.Read(path, kLooked.file_bytes);
    if (!text.ok()) continue;
    Work::Bytes(text->size() / 16);
    const bool adds = text->find("declare module") != std::string::npos ||
                      text->find("declare global") != std::string::npos;
    if (adds && ambient_->augmenting.size() < kMostParsed) ambient_->augmenting.push_back(path);
    Script script = Look(*text);
    if (!script.module) ambient_->scripts.emplace_back(path, std::move(script.names));
  }
  return *ambient_;
}

void Checker::ReadAmbient() {
  if (ambient_read_ || files_ == nullptr) return;
  ambient_read_ = true;
  const Work file(Work::Limits(), Work::Limits().file_steps);
  const AmbientFiles& ambient = files_->Ambient();
  for (const std::string& path : ambient.augmenting) {
    if (path == path_) continue;
    if (const ModuleText* text = files_->Read(path)) AugmentBy(*text);
  }
  size_t parsed = 0;
  for (const auto& [path, names] : ambient.scripts) {
    if (path == path_) continue;
    bool library = false;
    for (const std::string& name : names) {
      const Symbol* global = Global(name);
      library = library || (global != nullptr && global->is(kInterface));
      shared_.insert(name);
    }
    if (!library || parsed >= kMostParsed) continue;
    ++parsed;
    if (const ModuleText* text = files_->Read(path)) AugmentBy(*text);
  }
}

void Checker::AugmentBy(const ModuleText& text) {
  if (module_texts_.emplace(text.tree.get(), &text).second) Augment(text.tree->root());
}

namespace {

bool HasImports(const Node* program) {
  return std::any_of(program->kids().begin(), program->kids().end(), [](const Node& s) {
    return s.is(K::k_import_statement) || s.is(K::k_export_statement);
  });
}

}  // namespace

bool Checker::IsScript() const { return tree_ != nullptr && !HasImports(tree_->root()); }

// Members that another file adds to an interface of the library; they are open.
void Checker::AddToLibrary(const Node* interface) {
  const Node* name = interface->at(F::k_name);
  Symbol* lib = name == nullptr ? nullptr : Global(name->text());
  if (lib == nullptr || !lib->is(kInterface)) return;
  const Binding binding(*this, interface->tree);
  Symbol* added = NewSymbol(name->text(), kInterface, interface);
  FillMembers(added);
  FillMembers(lib);
  for (auto& [key, member] : added->members) {
    member->type = pool_.open;
    lib->members.emplace(key, member);
  }
}

// declare module "./shop" { interface Cart { ... } }, declare global { ... }: what has this name is
// open, wherever it is declared.
void Checker::Augment(const Node* program) {
  const bool module_file = HasImports(program);
  const bool own = program->tree == tree_.get();
  for (const Node& statement : program->kids()) {
    if (statement.is(K::k_interface_declaration) && !own && !module_file) AddToLibrary(&statement);
    if (!statement.is(K::k_ambient_declaration)) continue;
    if (const Node* inner = statement.first(K::k_interface_declaration);
        inner != nullptr && !own && !module_file) {
      AddToLibrary(inner);
    }
    const Node* module = statement.first(K::k_module);
    const Node* body =
        module != nullptr ? module->at(F::k_body) : statement.first(K::k_statement_block);
    if (body == nullptr || !(module == nullptr || own || module_file)) continue;
    for (const Node& kid : body->kids()) {
      const Node* inner = kid.is(K::k_export_statement) ? kid.at(F::k_declaration) : &kid;
      if (inner != nullptr && inner->is(K::k_expression_statement)) inner = inner->first_named();
      if (inner == nullptr) continue;
      if (module == nullptr && !own) {
        std::vector<std::string_view> names;
        DeclaredNames(inner, names);
        for (const std::string_view declared : names) shared_.emplace(declared);
      }
      const Node* name = inner->at(F::k_name);
      if (name == nullptr) continue;
      if (module != nullptr || inner->is(K::k_interface_declaration))
        augmented_.emplace(name->text());
      if (module == nullptr && !own && inner->is(K::k_interface_declaration)) AddToLibrary(inner);
    }
  }
}

}  // namespace pawl::monitors::ts
