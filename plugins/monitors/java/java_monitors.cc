// The monitors of Java. The text up to the cursor gets a name and what closes its brackets; errors
// elsewhere in the text do no harm, but what the cursor stands in has to parse.
#include <algorithm>

#include "plugins/monitors/java/typer.h"
#include "plugins/monitors/monitor.h"

namespace pawl::monitors {
namespace {

using K = Kind;
using F = Field;
using java::Typer;
using java::Value;
using java::World;

constexpr std::string_view kName = "pawl_name__";

class JavaAnalysis : public Analysis {
 public:
  explicit JavaAnalysis(const MonitorOptions& options)
      : parser_(Language::kJava), repository_(Open(options.repo)) {
    std::vector<std::string> path = options.class_path;
    if (const std::string modules = java::DefaultJavaModules(); !modules.empty())
      path.push_back(modules);
    world_ = std::make_unique<World>(std::move(path), repository_.get());
  }

  // The node of [start, end) in the text so far with `splice` at the cursor and everything closed.
  // nullptr: what it stands in has errors.
  const Node* Shadow(const Cursor& cursor, std::string_view splice, const Scan& scan,
                     uint32_t start, uint32_t end) {
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
    return nullptr;
  }
  World& world() { return *world_; }

  std::vector<Refusal> CheckFinished(std::string_view text,
                                     const std::vector<std::string>& monitors) override {
    (void)text;
    (void)monitors;
    return {};
  }

 private:
  static std::unique_ptr<Repository> Open(const std::string& folder) {
    return folder.empty() ? nullptr : Repository::Open(folder);
  }
  const Node* Program(std::string text, uint32_t cursor, uint32_t start, uint32_t end) {
    auto tree = parser_.Parse(std::move(text));
    const Node* node = tree->Smallest(start, end);
    const Node* member = nullptr;
    for (const Node* up = node; up != nullptr; up = up->parent) {
      if (up->is(K::k_ERROR)) return nullptr;
      const Node* around = up->parent;
      const bool in_body = around != nullptr &&
                           (around->is(K::k_class_body) || around->is(K::k_interface_body) ||
                            around->is(K::k_enum_body_declarations) || around->is(K::k_program));
      if (in_body && member == nullptr) member = up;
    }
    if (member == nullptr || member->broken()) return nullptr;
    world_->SetProgram(std::move(tree), cursor);
    return world_->program().tree->Smallest(start, end);
  }

  Parser parser_;
  std::unique_ptr<Repository> repository_;
  std::unique_ptr<World> world_;
};

JavaAnalysis& Of(Analysis& analysis) { return static_cast<JavaAnalysis&>(analysis); }

std::string_view TrimEnd(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\t' ||
                           text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

Verdict Names(std::optional<std::vector<std::string>> names) {
  if (!names) return {};
  auto completions = std::make_shared<Completions>();
  completions->names = std::move(*names);
  return {.names = std::move(completions)};
}

// a.b: only what the type of `a` has.
class Dereference : public Monitor {
 public:
  const char* name() const override { return "dereference"; }
  bool Triggered(const Cursor& c) const override {
    if (!NameStart(c.next)) return false;
    const std::string_view text = TrimEnd(c.text);
    if (text.size() < 2 || text.back() != '.') return false;
    if (text[text.size() - 2] == '.') return false;
    // "1.5f": the point of a number.
    size_t start = text.size() - 1;
    while (start > 0 && NameByte(text[start - 1])) --start;
    return !(start + 1 < text.size() && text[start] >= '0' && text[start] <= '9');
  }
  Verdict Ask(const Cursor& c, Analysis& analysis) const override {
    JavaAnalysis& of = Of(analysis);
    const auto at = static_cast<uint32_t>(c.text.size());
    const Node* node = of.Shadow(c, kName, *c.scan, at, at + static_cast<uint32_t>(kName.size()));
    if (node == nullptr || !node->is(K::k_identifier) || node->parent == nullptr) return {};
    const Node* parent = node->parent;
    const bool access = (parent->is(K::k_field_access) && node->field == F::k_field) ||
                        (parent->is(K::k_method_invocation) && node->field == F::k_name);
    if (!access) return {};
    Typer typer(of.world());
    const Value value = typer.Evaluate(parent->at(F::k_object));
    if (!value.type.known()) return {};
    return Names(typer.MemberNames(value, node));
  }
};

// f(a, b): as many arguments as some overload takes.
class ArgumentCount : public Monitor {
 public:
  const char* name() const override { return "arguments"; }
  bool Triggered(const Cursor& c) const override {
    return c.next == ')' && c.scan->bracket() == '(';
  }
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

// case A: a constant of the enum.
class Labels : public Monitor {
 public:
  const char* name() const override { return "labels"; }
  bool Triggered(const Cursor& c) const override {
    if (!NameStart(c.next)) return false;
    const std::string_view text = TrimEnd(c.text);
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
  return monitors;
}

}  // namespace pawl::monitors
