// The monitors of Java. The text up to the cursor gets a name and what closes its brackets; errors
// elsewhere in the text do no harm, but what the cursor stands in has to parse.
#include <algorithm>

#include "plugins/monitors/java/analysis.h"
#include "plugins/monitors/java/typer.h"

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
