// What a file declares, from its syntax tree: the nodes that have a name and say what it is. The
// three languages differ in what their nodes are called, not in what is asked of them. Bodies of
// functions are not entered; the tree is walked with a stack of its own, so that deep nesting costs
// memory and not the program's stack.
#include <algorithm>
#include <utility>

#include "plugins/monitors/index.h"

namespace pawl::monitors {
namespace {

using K = Kind;
using F = Field;

const char* KindOf(const Node& node, bool member) {
  switch (node.kind) {
    case K::k_class_declaration:
    case K::k_abstract_class_declaration:
    case K::k_class_definition:
      return "class";
    case K::k_interface_declaration:
    case K::k_annotation_type_declaration:
      return "interface";
    case K::k_enum_declaration:
      return "enum";
    case K::k_record_declaration:
      return "record";
    case K::k_type_alias_declaration:
      return "alias";
    case K::k_function_declaration:
    case K::k_generator_function_declaration:
    case K::k_function_signature:
      return "function";
    case K::k_function_definition:
      return member ? "method" : "function";
    case K::k_method_definition:
    case K::k_method_declaration:
    case K::k_method_signature:
    case K::k_abstract_method_signature:
      return "method";
    case K::k_constructor_declaration:
    case K::k_compact_constructor_declaration:
      return "constructor";
    case K::k_public_field_definition:
    case K::k_property_signature:
    case K::k_field_declaration:
    case K::k_constant_declaration:
      return "field";
    case K::k_enum_constant:
    case K::k_enum_assignment:
      return "constant";
    default:
      return nullptr;
  }
}

bool IsType(const Node& node) {
  switch (node.kind) {
    case K::k_class_declaration:
    case K::k_abstract_class_declaration:
    case K::k_class_definition:
    case K::k_interface_declaration:
    case K::k_annotation_type_declaration:
    case K::k_enum_declaration:
    case K::k_record_declaration:
      return true;
    default:
      return false;
  }
}

std::string Cut(std::string_view text, size_t most = 400) {
  return std::string(text.substr(0, most));
}

// A type annotation without its colon.
std::string TypeText(const Node* node) {
  if (node == nullptr) return "";
  std::string_view text = node->text();
  while (!text.empty() && (text.front() == ':' || text.front() == ' ')) text.remove_prefix(1);
  return Cut(text);
}

void Describe(const Node& node, IndexedSymbol& symbol, Language language) {
  std::string words;
  for (const Node& kid : node.kids()) {
    if (kid.field == F::k_name || kid.field == F::k_body) break;
    if (kid.is(K::k_modifiers) || kid.is(K::k_accessibility_modifier) || !kid.named)
      words += std::string(kid.text()) + " ";
  }
  const auto has = [&](std::string_view word) { return words.find(word) != std::string::npos; };
  symbol.is_static = has("static");
  symbol.visibility = has("private")                                  ? "private"
                      : has("protected")                              ? "protected"
                      : language == Language::kJava && !has("public") ? "package"
                                                                      : "public";
  if (language == Language::kPython && symbol.name.starts_with("_")) symbol.visibility = "private";
  if (const Node* list = node.at(F::k_parameters)) {
    symbol.arity = 0;
    for (const Node& kid : list->kids()) {
      if (kid.named && !kid.is(K::k_comment)) ++symbol.arity;
    }
    symbol.signature = Cut(list->text());
  }
  symbol.type = TypeText(node.at(F::k_return_type) != nullptr ? node.at(F::k_return_type)
                                                              : node.at(F::k_type));
  for (const Node& kid : node.kids()) {
    if (kid.is(K::k_class_heritage) || kid.is(K::k_extends_type_clause) ||
        kid.is(K::k_extends_interfaces) || kid.field == F::k_superclass ||
        kid.field == F::k_interfaces || kid.field == F::k_superclasses) {
      symbol.supertypes += (symbol.supertypes.empty() ? "" : " ") + Cut(kid.text());
    }
  }
}

int LineOf(const Node& node) { return static_cast<int>(ts_node_start_point(node.raw).row) + 1; }

// What an __init__ sets are fields of the object.
void AddFieldsSetIn(const Node& init, const std::string& container,
                    std::vector<IndexedSymbol>& symbols) {
  std::vector<const Node*> todo = {&init};
  while (!todo.empty()) {
    const Node* at = todo.back();
    todo.pop_back();
    const Node* left = at->is(K::k_assignment) ? at->at(F::k_left) : nullptr;
    if (left != nullptr && left->is(K::k_attribute) && left->text().starts_with("self.")) {
      IndexedSymbol field{
          .name = Cut(left->text().substr(5)), .kind = "field", .container = container};
      field.visibility = field.name.starts_with("_") ? "private" : "public";
      field.type = TypeText(at->at(F::k_type));
      field.line = LineOf(*at);
      symbols.push_back(std::move(field));
    }
    for (const Node& kid : at->kids()) {
      if (kid.named) todo.push_back(&kid);
    }
  }
}

void AddConstants(const Node& enum_body, const std::string& container,
                  std::vector<IndexedSymbol>& symbols) {
  for (const Node& kid : enum_body.kids()) {
    if (!kid.is(K::k_property_identifier)) continue;
    symbols.push_back(IndexedSymbol{.name = Cut(kid.text()),
                                    .kind = "constant",
                                    .container = container,
                                    .visibility = "public",
                                    .is_static = true,
                                    .line = LineOf(kid)});
  }
}

}  // namespace

FileSymbols ExtractSymbols(const Tree& tree) {
  FileSymbols found;
  struct Entry {
    const Node* node;
    std::string container;
  };
  std::vector<Entry> todo = {{tree.root(), ""}};
  const Language language = tree.language();
  while (!todo.empty()) {
    const Entry entry = std::move(todo.back());
    todo.pop_back();
    const Node& node = *entry.node;
    if (node.is(K::k_import_statement) || node.is(K::k_import_declaration) ||
        node.is(K::k_import_from_statement)) {
      found.imports.push_back(Cut(node.text()));
      continue;
    }
    if (node.is(K::k_package_declaration)) {
      const Node* name = node.first(K::k_scoped_identifier);
      if (name == nullptr) name = node.first(K::k_identifier);
      if (name != nullptr) {
        found.symbols.push_back(
            IndexedSymbol{.name = Cut(name->text()), .kind = "package", .line = LineOf(node)});
      }
      continue;
    }
    std::string inside = entry.container;
    const bool member = !entry.container.empty();
    const char* kind = KindOf(node, member);
    const bool top_variable =
        node.is(K::k_variable_declarator) && node.parent->parent != nullptr &&
        (node.parent->parent->is(K::k_program) || node.parent->parent->is(K::k_export_statement));
    if (kind != nullptr || top_variable) {
      IndexedSymbol symbol;
      symbol.kind = kind != nullptr ? kind : "variable";
      symbol.container = entry.container;
      symbol.line = LineOf(node);
      if (node.is(K::k_field_declaration) || node.is(K::k_constant_declaration)) {
        // int a, b = 1;
        for (const Node& kid : node.kids()) {
          if (kid.field != F::k_declarator || kid.at(F::k_name) == nullptr) continue;
          symbol.name = Cut(kid.at(F::k_name)->text());
          Describe(node, symbol, language);
          found.symbols.push_back(symbol);
        }
        continue;
      }
      if (const Node* name = node.at(F::k_name)) {
        symbol.name = Cut(name->text());
        Describe(node, symbol, language);
        if (symbol.kind == "method" && symbol.name == "constructor") symbol.kind = "constructor";
        found.symbols.push_back(symbol);
        if (IsType(node)) inside = symbol.name;
      }
      if (!IsType(node)) {
        if (language == Language::kPython && symbol.name == "__init__" && member)
          AddFieldsSetIn(node, entry.container, found.symbols);
        continue;
      }
    }
    if (node.is(K::k_enum_body)) AddConstants(node, entry.container, found.symbols);
    const auto kids = node.kids();
    for (auto kid = kids.rbegin(); kid != kids.rend(); ++kid) {
      if (kid->named) todo.push_back({&*kid, inside});
    }
  }
  return found;
}

}  // namespace pawl::monitors
