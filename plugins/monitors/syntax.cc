// tree-sitter's nodes are small values that know neither their parent nor their children: both are
// searched for each time. Monitors go up as often as they go down, but look at few nodes of a tree:
// the path to the cursor, the declarations around it. So nodes of our own are made when their
// parent is first asked for its children.
//
// A parser remembers the last text. The bytes that the next one shares with it at its beginning and
// end are found by comparison, what lies between is told to tree-sitter as one edit; it then reuses
// all subtrees outside.
#include "plugins/monitors/syntax.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "plugins/monitors/work.h"
#include "src/base/stop_scope.h"

extern "C" {
const TSLanguage* tree_sitter_typescript(void);
const TSLanguage* tree_sitter_java(void);
const TSLanguage* tree_sitter_python(void);
}

namespace pawl::monitors {
namespace {

// What a grammar's numbers mean.
struct Tables {
  const TSLanguage* language;
  std::vector<Kind> kinds;
  std::vector<Field> fields;

  explicit Tables(const TSLanguage* of) : language(of) {
    const std::unordered_map<std::string_view, Kind> kind_names = {
        {"true", Kind::kTrue},
        {"false", Kind::kFalse},
        {"line_comment", Kind::k_comment},
        {"block_comment", Kind::k_comment},
#define X(name) {#name, Kind::k_##name},
        PAWL_MONITOR_KINDS(X)
#undef X
    };
    const std::unordered_map<std::string_view, Field> field_names = {
#define X(name) {#name, Field::k_##name},
        PAWL_MONITOR_FIELDS(X)
#undef X
    };
    for (uint32_t i = 0; i < ts_language_symbol_count(of); ++i) {
      const auto symbol = static_cast<TSSymbol>(i);
      const auto found = kind_names.find(ts_language_symbol_name(of, symbol));
      // Keywords such as "number" and "object" are tokens with the name of a node.
      const bool is_node = ts_language_symbol_type(of, symbol) == TSSymbolTypeRegular;
      kinds.push_back(found != kind_names.end() && is_node ? found->second : Kind::kOther);
    }
    fields.push_back(Field::kNone);
    for (uint32_t i = 1; i <= ts_language_field_count(of); ++i) {
      const auto found =
          field_names.find(ts_language_field_name_for_id(of, static_cast<TSFieldId>(i)));
      fields.push_back(found == field_names.end() ? Field::kNone : found->second);
    }
  }
};

const Tables& TablesOf(Language language) {
  static const Tables typescript(tree_sitter_typescript());
  static const Tables java(tree_sitter_java());
  static const Tables python(tree_sitter_python());
  return language == Language::kTypeScript ? typescript
         : language == Language::kJava     ? java
                                           : python;
}

Kind KindOf(const Tables& tables, TSNode node) {
  const TSSymbol symbol = ts_node_symbol(node);
  if (symbol == static_cast<TSSymbol>(-1)) return Kind::k_ERROR;
  return symbol < tables.kinds.size() ? tables.kinds[symbol] : Kind::kOther;
}

// Where `more` ends when it begins at `from`.
TSPoint Behind(TSPoint from, std::string_view more) {
  const auto rows = static_cast<uint32_t>(std::count(more.begin(), more.end(), '\n'));
  if (rows == 0) return {from.row, from.column + static_cast<uint32_t>(more.size())};
  return {from.row + rows, static_cast<uint32_t>(more.size() - more.rfind('\n') - 1)};
}

}  // namespace

std::optional<Language> LanguageNamed(std::string_view name) {
  if (name == "typescript" || name == "ts") return Language::kTypeScript;
  if (name == "java") return Language::kJava;
  if (name == "python" || name == "py") return Language::kPython;
  if (name == "cpp" || name == "c++" || name == "cc" || name == "cxx") return Language::kCpp;
  return std::nullopt;
}

std::optional<Language> LanguageOfFile(std::string_view path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view ending = path.substr(dot + 1);
  if (ending == "ts" || ending == "mts" || ending == "cts") return Language::kTypeScript;
  if (ending == "java") return Language::kJava;
  if (ending == "py" || ending == "pyi") return Language::kPython;
  for (const char* cpp : {"cc", "cpp", "cxx", "h", "hh", "hpp", "hxx"}) {
    if (ending == cpp) return Language::kCpp;
  }
  return std::nullopt;
}

bool HasJsx(std::string_view path) { return path.ends_with(".tsx") || path.ends_with(".jsx"); }

const char* LanguageName(Language language) {
  return language == Language::kTypeScript ? "typescript"
         : language == Language::kJava     ? "java"
         : language == Language::kCpp      ? "cpp"
                                           : "python";
}

bool HasGrammar(Language language) { return language != Language::kCpp; }

std::span<const Node> Node::kids() const {
  Work::Step(1 + child_count / 16);
  return expanded ? std::span<const Node>(children, child_count) : tree->Expand(*this);
}

const Node* Node::at(Field wanted) const {
  for (const Node& kid : kids()) {
    if (kid.field == wanted && !kid.is(Kind::k_comment)) return &kid;
  }
  return nullptr;
}

const Node* Node::first(Kind wanted) const {
  for (const Node& kid : kids()) {
    if (kid.kind == wanted) return &kid;
  }
  return nullptr;
}

const Node* Node::first_named() const {
  for (const Node& kid : kids()) {
    if (kid.named && !kid.is(Kind::k_comment)) return &kid;
  }
  return nullptr;
}

const Node* Node::Enclosing(Kind wanted) const {
  const Node* at = parent;
  while (at != nullptr && at->kind != wanted) at = at->parent;
  return at;
}

std::string_view Node::text() const {
  return std::string_view(tree->text_).substr(start, end - start);
}

Tree::Tree(TSTree* tree, std::string text, Language language)
    : tree_(tree), text_(std::move(text)), language_(language) {
  root_.raw = ts_tree_root_node(tree_);
  root_.tree = this;
  root_.kind = KindOf(TablesOf(language_), root_.raw);
  root_.named = true;
  root_.start = 0;
  root_.end = static_cast<uint32_t>(text_.size());
}

Tree::~Tree() { ts_tree_delete(tree_); }

std::span<const Node> Tree::Expand(const Node& node) {
  const Tables& tables = TablesOf(language_);
  const uint32_t count = ts_node_child_count(node.raw);
  Work::At(node.start);
  Work::CheckTreeDepth(node.depth);
  Work::Step(count);
  if (count == 0) {
    node.expanded = true;
    return {};
  }
  blocks_.push_back(std::make_unique<Node[]>(count));
  Node* const block = blocks_.back().get();
  TSTreeCursor cursor = ts_tree_cursor_new(node.raw);
  uint32_t i = 0;
  for (bool more = ts_tree_cursor_goto_first_child(&cursor); more && i < count;
       more = ts_tree_cursor_goto_next_sibling(&cursor), ++i) {
    Node& kid = block[i];
    kid.raw = ts_tree_cursor_current_node(&cursor);
    kid.tree = this;
    kid.parent = &node;
    kid.kind = KindOf(tables, kid.raw);
    const TSFieldId field = ts_tree_cursor_current_field_id(&cursor);
    kid.field = field < tables.fields.size() ? tables.fields[field] : Field::kNone;
    kid.named = ts_node_is_named(kid.raw);
    kid.start = ts_node_start_byte(kid.raw);
    kid.end = ts_node_end_byte(kid.raw);
    kid.depth = node.depth + (i == 0 ? 0 : 1);
  }
  ts_tree_cursor_delete(&cursor);
  node.expanded = true;
  node.child_count = i;
  node.children = block;
  return {node.children, i};
}

const Node* Tree::Smallest(uint32_t start, uint32_t end) const {
  const Node* at = &root_;
  for (;;) {
    const Node* inside = nullptr;
    const auto kids = at->kids();
    // Children stand in the order of the text.
    auto kid = std::upper_bound(kids.begin(), kids.end(), start,
                                [](uint32_t byte, const Node& n) { return byte < n.end; });
    for (; kid != kids.end() && kid->start <= start; ++kid) {
      if (kid->named && kid->end >= end) {
        inside = &*kid;
        break;
      }
    }
    if (inside == nullptr) return at;
    at = inside;
  }
}

namespace {

// What a parser may do for one text: read so many pieces of it, take so many operations, and
// allocate so many bytes.
struct ParserBudget {
  std::string_view text;
  uint64_t pieces_left = 0;
  uint64_t operations_left = 0;
  uint64_t bytes_left = 0;
  bool stopped = false;

  explicit ParserBudget(std::string_view whole)
      : text(whole),
        pieces_left(kParserPieces + kParserRereads * (whole.size() / kParserPieceBytes)),
        operations_left(kParserOperations + kParserOperationsPerByte * whole.size()),
        bytes_left(kParserBytes + kParserBytesPerByte * whole.size()) {}

  // In steps: an operation is one, and so are 1 KiB of memory.
  uint64_t Used() const {
    const ParserBudget fresh(text);
    return fresh.operations_left - operations_left + (fresh.bytes_left - bytes_left) / 1024;
  }

  static const char* Read(void* payload, uint32_t byte, TSPoint, uint32_t* size) {
    auto& budget = *static_cast<ParserBudget*>(payload);
    if (budget.pieces_left == 0 || StopScope::Requested()) budget.stopped = true;
    if (budget.pieces_left > 0) --budget.pieces_left;
    if (budget.stopped || byte >= budget.text.size()) {
      *size = 0;
      return "";
    }
    *size = static_cast<uint32_t>(std::min<size_t>(kParserPieceBytes, budget.text.size() - byte));
    return budget.text.data() + byte;
  }

  // Called by the parser each time it has taken kOperationsPerCall operations; true ends it.
  static bool Progress(TSParseState* state) {
    constexpr uint64_t kOperationsPerCall = 100;
    auto& budget = *static_cast<ParserBudget*>(state->payload);
    if (budget.operations_left < kOperationsPerCall || budget.bytes_left == 0 ||
        StopScope::Requested()) {
      budget.stopped = true;
    } else {
      budget.operations_left -= kOperationsPerCall;
    }
    return budget.stopped;
  }
};

// The budget of the parser that runs in this thread.
thread_local constinit ParserBudget* running = nullptr;

void CountBytes(size_t bytes) {
  if (running != nullptr) running->bytes_left -= std::min<uint64_t>(running->bytes_left, bytes);
}
void* CountedMalloc(size_t bytes) {
  CountBytes(bytes);
  return std::malloc(bytes);
}
void* CountedCalloc(size_t count, size_t bytes) {
  CountBytes(count * bytes);
  return std::calloc(count, bytes);
}
void* CountedRealloc(void* block, size_t bytes) {
  CountBytes(bytes);
  return std::realloc(block, bytes);
}

void CountAllocations() {
  static const bool once = [] {
    ts_set_allocator(CountedMalloc, CountedCalloc, CountedRealloc, std::free);
    return true;
  }();
  (void)once;
}

}  // namespace

Parser::Parser(Language language) : language_(language) {
  CountAllocations();
  parser_ = ts_parser_new();
  ts_parser_set_language(parser_, TablesOf(language).language);
}

Parser::~Parser() {
  Forget();
  ts_parser_delete(parser_);
}

void Parser::Forget() {
  if (last_ != nullptr) ts_tree_delete(last_);
  last_ = nullptr;
  last_text_.clear();
}

std::unique_ptr<Tree> Parser::Parse(std::string text) {
  Work::Bytes(text.size() / 16);
  if (last_ != nullptr) {
    const size_t shorter = std::min(text.size(), last_text_.size());
    const size_t same = static_cast<size_t>(
        std::mismatch(text.begin(), text.begin() + static_cast<ptrdiff_t>(shorter),
                      last_text_.begin())
            .first -
        text.begin());
    size_t tail = 0;
    while (tail < shorter - same &&
           text[text.size() - 1 - tail] == last_text_[last_text_.size() - 1 - tail]) {
      ++tail;
    }
    TSInputEdit edit;
    edit.start_byte = static_cast<uint32_t>(same);
    edit.old_end_byte = static_cast<uint32_t>(last_text_.size() - tail);
    edit.new_end_byte = static_cast<uint32_t>(text.size() - tail);
    const std::string_view before = text;
    const std::string_view old = last_text_;
    edit.start_point = Behind({0, 0}, before.substr(0, same));
    edit.old_end_point = Behind(edit.start_point, old.substr(same, edit.old_end_byte - same));
    edit.new_end_point = Behind(edit.start_point, before.substr(same, edit.new_end_byte - same));
    ts_tree_edit(last_, &edit);
  }
  ParserBudget budget(text);
  running = &budget;
  TSTree* tree = ts_parser_parse_with_options(
      parser_, last_,
      TSInput{.payload = &budget,
              .read = ParserBudget::Read,
              .encoding = TSInputEncodingUTF8,
              .decode = nullptr},
      TSParseOptions{.payload = &budget, .progress_callback = ParserBudget::Progress});
  running = nullptr;
  steps_ += budget.Used();
  Forget();
  // Where the last pieces were not read, the tree is that of another text.
  if (tree == nullptr || budget.stopped) {
    if (tree != nullptr) ts_tree_delete(tree);
    ts_parser_reset(parser_);
    StopScope::Check();
    Work::GiveUp();
    auto cut =
        std::make_unique<Tree>(ts_parser_parse_string(parser_, nullptr, "", 0), "", language_);
    cut->cut_ = true;
    return cut;
  }
  auto made = std::make_unique<Tree>(tree, std::move(text), language_);
  last_text_ = made->text();
  last_ = ts_tree_copy(tree);
  return made;
}

}  // namespace pawl::monitors
