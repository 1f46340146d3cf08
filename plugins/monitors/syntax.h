// Syntax trees of unfinished source code: tree-sitter's trees behind nodes that know their parent
// and are made as they are looked at.
//
//   Parser parser(Language::kTypeScript);
//   std::unique_ptr<Tree> tree = parser.Parse("const a = [1]; a.length");
//   const Node* declaration = tree->root()->kids().front();
//
// A Parser keeps its last tree and parses the next text from it, so that a text which grows costs
// what was added. Thread safety: a Parser and its trees belong to one thread at a time.
#ifndef PAWL_PLUGINS_MONITORS_SYNTAX_H_
#define PAWL_PLUGINS_MONITORS_SYNTAX_H_

#include <tree_sitter/api.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::monitors {

// The kinds of nodes and the fields that the monitors know, by the names that the grammars give
// them. A kind that is not here is kOther; a token such as "+" too, its text tells.

// Shared by the languages: where two grammars use one name, they mean much the same.
// clang-format off
#define PAWL_MONITOR_KINDS(X) \
  X(ERROR) X(program) X(comment) X(identifier) X(property_identifier) \
  X(private_property_identifier) X(shorthand_property_identifier) \
  X(shorthand_property_identifier_pattern) X(type_identifier) X(statement_identifier) \
  X(function_declaration) X(generator_function_declaration) X(function_signature) \
  X(function_expression) X(generator_function) X(arrow_function) X(method_definition) \
  X(method_signature) X(abstract_method_signature) X(formal_parameters) X(required_parameter) \
  X(optional_parameter) X(rest_pattern) X(assignment_pattern) X(object_assignment_pattern) \
  X(object_pattern) X(array_pattern) X(pair_pattern) X(statement_block) X(lexical_declaration) \
  X(variable_declaration) X(variable_declarator) X(class_declaration) \
  X(abstract_class_declaration) X(class_heritage) X(extends_clause) X(implements_clause) \
  X(class_body) X(public_field_definition) X(class_static_block) X(property_signature) \
  X(index_signature) X(call_signature) X(construct_signature) X(interface_declaration) \
  X(interface_body) X(object_type) X(extends_type_clause) X(type_alias_declaration) \
  X(enum_declaration) X(enum_body) X(enum_assignment) X(expression_statement) X(if_statement) \
  X(else_clause) X(for_statement) X(for_in_statement) X(while_statement) X(do_statement) \
  X(return_statement) X(throw_statement) X(try_statement) X(catch_clause) X(finally_clause) \
  X(switch_statement) X(switch_body) X(switch_case) X(switch_default) X(labeled_statement) \
  X(break_statement) X(continue_statement) X(empty_statement) X(debugger_statement) \
  X(member_expression) X(subscript_expression) X(call_expression) X(new_expression) \
  X(arguments) X(binary_expression) X(unary_expression) X(update_expression) \
  X(assignment_expression) X(augmented_assignment_expression) X(ternary_expression) X(object) \
  X(pair) X(spread_element) X(array) X(string) X(string_fragment) X(escape_sequence) \
  X(template_string) X(template_substitution) X(regex) X(number) X(undefined) X(null) X(this) \
  X(super) X(parenthesized_expression) X(await_expression) X(yield_expression) X(as_expression) \
  X(satisfies_expression) X(non_null_expression) X(type_assertion) X(sequence_expression) \
  X(instantiation_expression) X(type_annotation) X(asserts_annotation) \
  X(type_predicate_annotation) X(type_predicate) X(asserts) X(predefined_type) \
  X(nested_type_identifier) X(generic_type) X(type_arguments) X(type_parameters) \
  X(type_parameter) X(constraint) X(default_type) X(array_type) X(tuple_type) X(union_type) \
  X(intersection_type) X(function_type) X(constructor_type) X(literal_type) \
  X(parenthesized_type) X(readonly_type) X(index_type_query) X(lookup_type) X(conditional_type) \
  X(type_query) X(template_literal_type) X(infer_type) X(optional_type) X(rest_type) \
  X(this_type) X(mapped_type_clause) X(ambient_declaration) X(export_statement) \
  X(import_statement) X(import_specifier) X(namespace_import) X(import_clause) \
  X(import_require_clause) X(export_clause) X(export_specifier) X(namespace_export) \
  X(import_alias) X(internal_module) X(module) X(meta_property) \
  X(computed_property_name) X(accessibility_modifier) X(override_modifier) \
  X(opting_type_annotation) X(omitting_type_annotation) X(adding_type_annotation) \
  X(nested_identifier) X(optional_chain) X(decorator) X(class_definition) \
  X(function_definition) X(assignment) X(attribute) X(call) X(argument_list) \
  X(keyword_argument) X(block) X(parameters) X(default_parameter) X(typed_parameter) \
  X(typed_default_parameter) X(list_splat_pattern) X(dictionary_splat_pattern) \
  X(import_from_statement) X(future_import_statement) X(aliased_import) X(dotted_name) \
  X(wildcard_import) X(decorated_definition) X(type) X(subscript) X(list) X(dictionary) X(set) \
  X(tuple) X(list_comprehension) X(set_comprehension) X(dictionary_comprehension) \
  X(generator_expression) X(for_in_clause) X(lambda) X(lambda_parameters) X(with_statement) \
  X(with_item) X(as_pattern) X(as_pattern_target) X(except_clause) X(global_statement) \
  X(nonlocal_statement) X(delete_statement) X(integer) X(float) X(concatenated_string) \
  X(comparison_operator) X(boolean_operator) X(binary_operator) X(not_operator) \
  X(unary_operator) X(conditional_expression) X(await) X(none) X(augmented_assignment) \
  X(pattern_list) X(tuple_pattern) X(list_pattern) X(expression_list) X(named_expression) \
  X(typed_assignment) X(match_statement) X(relative_import) X(import_prefix) \
  X(keyword_separator) X(positional_separator) X(list_splat) X(dictionary_splat) \
  X(interpolation) X(slice) X(class_literal) X(method_declaration) X(constructor_declaration) \
  X(field_declaration) X(constant_declaration) X(compact_constructor_declaration) \
  X(record_declaration) X(annotation_type_declaration) X(enum_constant) \
  X(enum_body_declarations) X(superclass) X(super_interfaces) X(extends_interfaces) \
  X(type_list) X(interface_type_list) X(modifiers) X(marker_annotation) X(annotation) \
  X(formal_parameter) X(spread_parameter) X(local_variable_declaration) X(method_invocation) \
  X(object_creation_expression) X(field_access) X(array_access) X(array_creation_expression) \
  X(cast_expression) X(instanceof_expression) X(lambda_expression) X(inferred_parameters) \
  X(method_reference) X(enhanced_for_statement) X(catch_formal_parameter) X(catch_type) \
  X(resource) X(import_declaration) X(package_declaration) X(asterisk) X(scoped_identifier) \
  X(scoped_type_identifier) X(integral_type) X(floating_point_type) X(boolean_type) \
  X(void_type) X(string_literal) X(character_literal) X(null_literal) \
  X(decimal_integer_literal) X(hex_integer_literal) X(octal_integer_literal) \
  X(binary_integer_literal) X(decimal_floating_point_literal) X(hex_floating_point_literal) \
  X(wildcard) X(annotated_type) X(dimensions) X(constructor_body) X(switch_expression) \
  X(switch_block) X(switch_rule) X(switch_label) X(switch_block_statement_group) \
  X(type_pattern) X(record_pattern) X(inferred_parameter) X(static_initializer) \
  X(explicit_constructor_invocation) X(type_bound) X(annotation_type_element_declaration) \
  X(record_pattern_body) X(record_pattern_component) X(resource_specification) X(array_initializer) \
  X(try_with_resources_statement) X(guard) X(case_clause) X(case_pattern) X(type_alias_statement) \
  X(elif_clause) X(member_type) X(print_statement) X(exec_statement) X(class_pattern) \
  X(keyword_pattern)
// clang-format on

enum class Kind : uint16_t {
  kOther = 0,
  kTrue,
  kFalse,
#define X(name) k_##name,
  PAWL_MONITOR_KINDS(X)
#undef X
};

// clang-format off
#define PAWL_MONITOR_FIELDS(X) \
  X(name) X(type) X(value) X(parameters) X(parameter) X(return_type) X(type_parameters) X(body) \
  X(pattern) X(left) X(right) X(operator) X(object) X(property) X(index) X(function) \
  X(arguments) X(type_arguments) X(constructor) X(condition) X(consequence) X(alternative) \
  X(initializer) X(increment) X(kind) X(key) X(argument) X(handler) X(finalizer) \
  X(optional_chain) X(source) X(alias) X(decorator) X(label) X(constraint) X(declaration) \
  X(sign) X(superclasses) X(superclass) X(interfaces) X(attribute) X(subscript) X(definition) \
  X(module_name) X(field) X(array) X(dimensions) X(declarator) X(element) X(scope) \
  X(index_type) X(init) X(resources)
// clang-format on

enum class Field : uint8_t {
  kNone = 0,
#define X(name) k_##name,
  PAWL_MONITOR_FIELDS(X)
#undef X
};

enum class Language : uint8_t { kTypeScript, kJava, kPython, kCpp };

// "typescript", "java", "python", "cpp"; also the endings of files' names. nullopt: none of them.
std::optional<Language> LanguageNamed(std::string_view name);
std::optional<Language> LanguageOfFile(std::string_view path);
// .tsx and .jsx: their grammar is not part of Pawl, so they have no language here.
bool HasJsx(std::string_view path);
const char* LanguageName(Language language);
// Whether there are syntax trees; C++ is left to language servers.
bool HasGrammar(Language language);

class Tree;

struct Node {
  TSNode raw;
  Tree* tree = nullptr;
  const Node* parent = nullptr;
  Kind kind = Kind::kOther;
  Field field = Field::kNone;
  bool named = false;
  uint32_t start = 0;
  uint32_t end = 0;

  std::span<const Node> kids() const;        // all children, punctuation too
  const Node* at(Field wanted) const;        // the first child with this field, nullptr
  const Node* first(Kind wanted) const;      // the first child of this kind, nullptr
  const Node* first_named() const;           // comments are passed over
  const Node* Enclosing(Kind wanted) const;  // the nearest ancestor of this kind, nullptr
  std::string_view text() const;
  bool is(Kind k) const { return kind == k; }
  bool broken() const { return ts_node_has_error(raw); }

  mutable const Node* children = nullptr;
  mutable uint32_t child_count = 0;
  mutable bool expanded = false;
  // How many nodes are above. A first child is as deep as its parent: chains of operators and of
  // members lean to the left and may be long.
  uint32_t depth = 0;
  // The nearest node above that opens a scope, kept by the search that climbs to it.
  mutable const Node* scope = nullptr;
};

class Tree {
 public:
  Tree(TSTree* tree, std::string text, Language language);
  ~Tree();
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  const Node* root() const { return &root_; }
  const std::string& text() const { return text_; }
  Language language() const { return language_; }
  bool broken() const { return cut_ || ts_node_has_error(root_.raw); }
  // The parser was stopped (limits.h): this is the tree of an empty text.
  bool cut() const { return cut_; }
  // TypeScript: where the `!` of `value!` stood, which the text of the tree has no more
  // (typescript/assertions.h); sorted.
  std::vector<uint32_t> asserted;
  bool Asserted(uint32_t byte) const {
    return !asserted.empty() && std::binary_search(asserted.begin(), asserted.end(), byte);
  }
  // The smallest named node that covers [start, end).
  const Node* Smallest(uint32_t start, uint32_t end) const;

 private:
  friend struct Node;
  friend class Parser;
  std::span<const Node> Expand(const Node& node);

  TSTree* tree_;
  std::string text_;
  Language language_;
  bool cut_ = false;
  Node root_;
  std::vector<std::unique_ptr<Node[]>> blocks_;
};

class Parser {
 public:
  explicit Parser(Language language);
  ~Parser();
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  // In a question (work.h), throws GaveUp where the parser was stopped, else the tree is cut.
  std::unique_ptr<Tree> Parse(std::string text);
  Language language() const { return language_; }
  // What the parser has done so far: its operations, and the KiB that it allocated.
  uint64_t steps() const { return steps_; }
  // The next text is parsed from its beginning.
  void Forget();

 private:
  Language language_;
  TSParser* parser_ = nullptr;
  uint64_t steps_ = 0;
  TSTree* last_ = nullptr;
  std::string last_text_;
};

}  // namespace pawl::monitors

#endif  // PAWL_PLUGINS_MONITORS_SYNTAX_H_
