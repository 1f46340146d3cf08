// The monitors of TypeScript. Each asks the text up to the cursor, with a name and whatever closes
// the open brackets spliced in, so that a parser takes it; where no way to close gives a text
// without errors nothing is known.
#include <algorithm>
#include <array>
#include <unordered_set>

#include "plugins/monitors/monitor.h"
#include "plugins/monitors/typescript/assertions.h"
#include "plugins/monitors/typescript/check.h"
#include "plugins/monitors/typescript/checker.h"

namespace pawl::monitors {
namespace {

using K = Kind;
using F = Field;
using ts::Checker;
using ts::T;
using ts::TypeRef;

constexpr std::string_view kName = "pawl_name__";

// Whether the cursor stands behind `space.` in a type that a "<" of the line may enclose.
bool InTypes(std::string_view text) {
  if (!text.ends_with('.')) return false;
  const size_t statement = text.find_last_of(";{}");
  const std::string_view code =
      statement == std::string_view::npos ? text : text.substr(statement + 1);
  constexpr size_t kMostCode = 2000;
  return code.size() < kMostCode && code.find('<') != std::string_view::npos;
}

class TypeScriptAnalysis : public Analysis {
 public:
  explicit TypeScriptAnalysis(const MonitorOptions& options) : parser_(Language::kTypeScript) {
    if (!options.repo.empty()) files_.emplace(options.repo);
    Renew();
  }

  void SetFile(const std::string& path) override {
    if (!files_) return;
    std::string file = files_->Inside(path);
    if (file == file_) return;
    file_ = std::move(file);
    checker_.reset();  // what stood for this file, or for imports of it
  }

  // Makes the program of the text so far, with `splice` at the cursor and everything closed. False:
  // no way gives a tree without errors.
  bool Shadow(const Cursor& cursor, std::string_view splice, const Scan& scan) {
    if (ts::Unchecked(cursor.text, cursor.text.size())) return false;
    Renew();
    // In the arguments or parameters of a type the closers do not know how many ">" are open.
    const bool types = InTypes(cursor.text);
    for (const std::string_view angles : {"", ">", ">>", ">(){}"}) {
      if (!angles.empty() && !types) break;
      for (const bool ternaries : {true, false}) {
        if (!ternaries && !scan.has_ternary()) break;
        std::string text(cursor.text);
        text += splice;
        text += angles;
        text += scan.Closers(ternaries);
        auto tree = texts_.Parse(std::move(text), cursor.text.size());
        if (tree->broken()) continue;
        checker_->SetProgram(std::move(tree), static_cast<uint32_t>(cursor.text.size()));
        return true;
      }
    }
    unparsed = true;
    return false;
  }
  // The same of a text that goes on behind the cursor: everything is declared that ever will be.
  bool Between(const Cursor& cursor, std::string_view splice) {
    Renew();
    std::string text(cursor.text);
    text += splice;
    text += cursor.suffix;
    auto tree = texts_.Parse(std::move(text), cursor.text.size());
    if (tree->broken()) return false;
    const auto end = static_cast<uint32_t>(tree->text().size());
    checker_->SetProgram(std::move(tree), end);
    return true;
  }
  Checker& checker() { return *checker_; }
  void FilesChanged(const std::vector<std::string>& files) override {
    const bool ours = std::any_of(files.begin(), files.end(), [](const std::string& file) {
      return file.ends_with("ts") || file.ends_with("tsx") || file.ends_with(".json");
    });
    if (!ours || !files_) return;
    files_->Clear();
    checker_.reset();
  }
  void Drop(bool whole) noexcept override {
    checker_.reset();
    if (whole && files_) files_->Clear();
    parser_.Forget();
    texts_.Forget();
  }

  std::vector<Refusal> CheckFinished(std::string_view text,
                                     const std::vector<std::string>& monitors) override {
    return Check(text, monitors, false);
  }
  std::vector<Refusal> CheckStrict(std::string_view text) override { return Check(text, {}, true); }

 private:
  std::vector<Refusal> Check(std::string_view text, const std::vector<std::string>& monitors,
                             bool strict) {
    Renew();
    auto tree = texts_.Parse(std::string(text));
    if (tree->broken()) {
      if (!strict) return {};
      return {Refusal{
          .byte = ts::FirstError(tree->root()), .message = "not TypeScript", .at_end = true}};
    }
    checker_->SetProgram(std::move(tree), static_cast<uint32_t>(text.size()));
    std::vector<Refusal> refusals;
    for (ts::Problem& problem : ts::FindProblems(*checker_, strict)) {
      if (!strict &&
          (std::find(monitors.begin(), monitors.end(), problem.monitor) == monitors.end() ||
           ts::Unchecked(text, problem.byte))) {
        continue;
      }
      refusals.push_back(Refusal{.byte = problem.byte,
                                 .identifier = std::move(problem.identifier),
                                 .monitor = problem.monitor,
                                 .message = std::move(problem.message),
                                 .at_end = true});
    }
    std::stable_sort(refusals.begin(), refusals.end(),
                     [](const Refusal& a, const Refusal& b) { return a.byte < b.byte; });
    return refusals;
  }

  // Types are never taken back one by one: when there are many, everything is made again.
  void Renew() {
    if (files_ && files_->Refresh()) checker_.reset();
    if (checker_ == nullptr || checker_->pool().size() > kMaxTypes) {
      if (library_ == nullptr) library_ = Checker::ReadLibrary(ts::LibraryText());
      checker_ = std::make_unique<Checker>(library_);
      if (files_ && !file_.empty()) checker_->SetModules(&*files_, file_);
    }
  }
  static constexpr size_t kMaxTypes = 400000;
  Parser parser_;
  ts::AssertedTexts texts_{parser_};
  std::shared_ptr<Tree> library_;
  std::optional<ts::ModuleFiles> files_;
  std::string file_;  // of the text, in the repository
  std::unique_ptr<Checker> checker_;
};

TypeScriptAnalysis& Of(Analysis& analysis) { return static_cast<TypeScriptAnalysis&>(analysis); }

bool Space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

std::string_view TrimEnd(std::string_view text) {
  while (!text.empty() && Space(text.back())) text.remove_suffix(1);
  return text;
}

// a.b, a?.b: only what the type of `a` has.
class Dereference : public Monitor {
 public:
  const char* name() const override { return "dereference"; }
  bool Triggered(const Cursor& c) const override {
    // A comment or a line's end before the name, "a?.[0]" and "a?.()", "a.#b", "...".
    if (c.next == '/' || c.next == '#' || c.next == '.' || Space(c.next)) return false;
    const std::string_view text = TrimEnd(c.text);
    // Not the full stop of a comment.
    if (text.size() < 2 || text.back() != '.' || c.scan->significant() != '.') return false;
    const char before = text[text.size() - 2];
    if (before == '.') return false;
    if (before == '?' && (c.next == '[' || c.next == '(' || c.next == '`')) return false;
    // "1.5": the point of a number.
    size_t start = text.size() - 1;
    while (start > 0 && NameByte(text[start - 1])) --start;
    return !(start + 1 < text.size() && text[start] >= '0' && text[start] <= '9');
  }
  Verdict Ask(const Cursor& c, Analysis& analysis) const override {
    TypeScriptAnalysis& of = Of(analysis);
    if (!of.Shadow(c, kName, *c.scan)) return {};
    Checker& checker = of.checker();
    const auto at = static_cast<uint32_t>(c.text.size());
    const Node* node = checker.tree()->Smallest(at, at + static_cast<uint32_t>(kName.size()));
    std::optional<std::vector<std::string>> names;
    const Node* whole = node->parent;
    if (whole == nullptr) return {};
    if (node->is(K::k_property_identifier) && whole->is(K::k_member_expression)) {
      names = ts::MemberNames(checker, whole->at(F::k_object));
    } else if (node->is(K::k_type_identifier) && whole->is(K::k_nested_type_identifier)) {
      names = ts::TypeNames(checker, whole->first_named());
    }
    if (!names) return {};
    auto completions = std::make_shared<Completions>();
    completions->names = std::move(*names);
    return {.names = std::move(completions)};
  }
  void Known(const Cursor& c, Analysis& analysis, std::vector<std::string>& names) const override {
    TypeScriptAnalysis& of = Of(analysis);
    if (!of.Shadow(c, kName, *c.scan)) return;
    const auto at = static_cast<uint32_t>(c.text.size());
    const Node* node = of.checker().tree()->Smallest(at, at + static_cast<uint32_t>(kName.size()));
    if (node->is(K::k_property_identifier) && node->parent != nullptr)
      ts::KnownMembers(of.checker(), node->parent->at(F::k_object), names);
  }
  void Details(const Cursor& c, Analysis& analysis, std::span<const std::string> names,
               std::vector<NameDetail>& details) const override {
    TypeScriptAnalysis& of = Of(analysis);
    if (!of.Shadow(c, kName, *c.scan)) return;
    const auto at = static_cast<uint32_t>(c.text.size());
    const Node* node = of.checker().tree()->Smallest(at, at + static_cast<uint32_t>(kName.size()));
    if (node->is(K::k_property_identifier) && node->parent != nullptr)
      ts::MemberDetails(of.checker(), node->parent->at(F::k_object), names, details);
  }
};

// f(a, b): as many arguments as some overload takes.
class ArgumentCount : public Monitor {
 public:
  const char* name() const override { return "arguments"; }
  bool Triggered(const Cursor& c) const override { return c.next == ')' && c.scan->in_call(); }
  Verdict Ask(const Cursor& c, Analysis& analysis) const override {
    TypeScriptAnalysis& of = Of(analysis);
    Scan closed = *c.scan;
    closed.Add(')');
    std::string text(c.text);
    text += ')';
    Cursor behind = c;
    behind.text = text;
    if (!of.Shadow(behind, "", closed)) return {};
    Checker& checker = of.checker();
    const auto at = static_cast<uint32_t>(c.text.size());
    const Node* list = checker.tree()->Smallest(at, at + 1);
    if (!list->is(K::k_arguments) || list->end != at + 1 || list->parent == nullptr) return {};
    if (auto problem = ts::CountProblem(checker, list->parent)) {
      return {.refusal = Refusal{.byte = problem->byte,
                                 .identifier = std::move(problem->identifier),
                                 .message = std::move(problem->message)}};
    }
    return {};
  }
};

// x = 1 where x is const, x++ too.
class Constants : public Monitor {
 public:
  const char* name() const override { return "constants"; }
  bool Triggered(const Cursor& c) const override {
    const std::string_view t = c.text;
    if (t.size() < 2) return false;
    if (t.back() == '=' && c.next != '=' && c.next != '>') {
      const char before = t[t.size() - 2];
      if (before == '=' || before == '!') return false;
      if (before == '<' || before == '>') return t.size() > 2 && t[t.size() - 3] == before;
      static constexpr std::array<std::string_view, 4> kDeclares = {"let", "const", "var", "type"};
      return !EndsWithDeclared(t.substr(0, t.size() - 1), kDeclares);
    }
    return (t.ends_with("++") || t.ends_with("--")) && !NameStart(c.next) &&
           NameByte(t[t.size() - 3 < t.size() ? t.size() - 3 : 0]);
  }
  Verdict Ask(const Cursor& c, Analysis& analysis) const override {
    TypeScriptAnalysis& of = Of(analysis);
    const bool assignment = c.text.back() == '=';
    Scan scan = *c.scan;
    std::string splice = assignment ? " " + std::string(kName) : "";
    scan.Add(splice);
    if (!of.Shadow(c, splice, scan)) return {};
    Checker& checker = of.checker();
    const auto at = static_cast<uint32_t>(c.text.size());
    const Node* node = checker.tree()->Smallest(at - 1, at);
    while (node != nullptr && !node->is(K::k_assignment_expression) &&
           !node->is(K::k_augmented_assignment_expression) && !node->is(K::k_update_expression)) {
      if (node->is(K::k_statement_block) || node->is(K::k_arrow_function)) return {};
      node = node->parent;
    }
    if (node == nullptr) return {};
    // In an open bracket this may be the default of a parameter or a pattern.
    for (const Node* up = node->parent; up != nullptr; up = up->parent) {
      if (up->is(K::k_parenthesized_expression) || up->is(K::k_array) || up->is(K::k_object) ||
          up->is(K::k_arguments)) {
        const Node* head = up->parent;
        const bool condition =
            head != nullptr && (head->is(K::k_if_statement) || head->is(K::k_while_statement));
        if (!condition && !node->is(K::k_update_expression)) return {};
      }
      if (up->is(K::k_statement_block) || up->is(K::k_program)) break;
    }
    if (auto problem = ts::ConstantProblem(checker, node)) {
      return {.refusal = Refusal{.byte = problem->byte,
                                 .identifier = std::move(problem->identifier),
                                 .message = std::move(problem->message)}};
    }
    return {};
  }
};

// new C(: not of an abstract class, nor of an interface.
class Instantiable : public Monitor {
 public:
  const char* name() const override { return "new"; }
  bool Triggered(const Cursor& c) const override {
    if (c.next != '(' || c.text.empty() || !NameByte(c.text.back())) return false;
    size_t i = c.text.size();
    while (i > 0 && NameByte(c.text[i - 1])) --i;
    const std::string_view before = TrimEnd(c.text.substr(0, i));
    return before.size() < i && before.ends_with("new");
  }
  Verdict Ask(const Cursor& c, Analysis& analysis) const override {
    TypeScriptAnalysis& of = Of(analysis);
    if (!of.Shadow(c, "()", *c.scan)) return {};
    Checker& checker = of.checker();
    const auto at = static_cast<uint32_t>(c.text.size());
    const Node* node = checker.tree()->Smallest(at - 1, at);
    if (!node->is(K::k_identifier) || node->parent == nullptr ||
        !node->parent->is(K::k_new_expression))
      return {};
    if (auto problem = ts::InstantiationProblem(checker, node->parent)) {
      return {.refusal = Refusal{.byte = problem->byte,
                                 .identifier = std::move(problem->identifier),
                                 .message = std::move(problem->message)}};
    }
    return {};
  }
};

// A name at the start of an expression: something in scope. While the text goes on, what is not
// declared yet may still be (a function further down, a constant that a function's body mentions),
// so this one speaks at the end of a text, and where the text behind the cursor is known.
class Names : public Monitor {
 public:
  const char* name() const override { return "names"; }
  bool Triggered(const Cursor& c) const override {
    return !c.suffix.empty() && NameStart(c.next) &&
           (c.text.empty() || (!NameByte(c.text.back()) && c.text.back() != '.'));
  }
  Verdict Ask(const Cursor& c, Analysis& analysis) const override {
    TypeScriptAnalysis& of = Of(analysis);
    if (!of.Between(c, kName)) return {};
    Checker& checker = of.checker();
    const auto at = static_cast<uint32_t>(c.text.size());
    auto names = ts::NamesInScope(
        checker, checker.tree()->Smallest(at, at + static_cast<uint32_t>(kName.size())));
    if (!names) return {};
    auto completions = std::make_shared<Completions>();
    completions->names = std::move(*names);
    return {.names = std::move(completions)};
  }
  void Details(const Cursor& c, Analysis& analysis, std::span<const std::string> names,
               std::vector<NameDetail>& details) const override {
    TypeScriptAnalysis& of = Of(analysis);
    if (!of.Between(c, kName)) return;
    const auto at = static_cast<uint32_t>(c.text.size());
    const Node* node = of.checker().tree()->Smallest(at, at + static_cast<uint32_t>(kName.size()));
    ts::ScopeDetails(of.checker(), node, names, details);
  }
};

}  // namespace

std::unique_ptr<Analysis> MakeTypeScriptAnalysis(const MonitorOptions& options) {
  return std::make_unique<TypeScriptAnalysis>(options);
}

std::vector<std::unique_ptr<Monitor>> TypeScriptMonitors() {
  std::vector<std::unique_ptr<Monitor>> monitors;
  monitors.push_back(std::make_unique<Dereference>());
  monitors.push_back(std::make_unique<ArgumentCount>());
  monitors.push_back(std::make_unique<Constants>());
  monitors.push_back(std::make_unique<Instantiable>());
  monitors.push_back(std::make_unique<Names>());
  return monitors;
}

}  // namespace pawl::monitors
