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

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/monitors/kinds.h"

namespace pawl::monitors {

enum class Language : uint8_t { kTypeScript, kJava, kPython, kCpp };

// "typescript", "java", "python", "cpp"; also the endings of files' names. nullopt: none of them.
std::optional<Language> LanguageNamed(std::string_view name);
std::optional<Language> LanguageOfFile(std::string_view path);
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
  bool Covers(uint32_t byte) const { return start <= byte && byte < end; }
  bool broken() const { return ts_node_has_error(raw); }

  mutable const Node* children = nullptr;
  mutable uint32_t child_count = 0;
  mutable bool expanded = false;
  // How many nodes are above. A first child is as deep as its parent: chains of operators and of
  // members lean to the left and may be long.
  uint32_t depth = 0;
  // The nearest node above that opens a scope, kept by whoever climbs to it.
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
