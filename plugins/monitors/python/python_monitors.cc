// The monitors of Python. The text up to the cursor gets a name, what closes its brackets, the body
// that a header still lacks and the end of every `try` that is open.
#include <algorithm>
#include <filesystem>

#include "plugins/monitors/monitor.h"
#include "plugins/monitors/python/details.h"
#include "plugins/monitors/python/typer.h"
#include "plugins/monitors/work.h"

namespace pawl::monitors {
namespace {

using K = Kind;
using F = Field;
using python::SymbolTable;
using python::Typer;

constexpr std::string_view kName = python::kPlaceName;

// "\n  finally: pass" for each `try:` that is open at the end of the text, the innermost first.
std::string OpenTries(std::string_view text) {
  std::string out;
  size_t end = text.size();
  size_t least = SIZE_MAX;  // the indentation of the lines below
  bool last = true;
  while (least > 0) {
    const size_t newline = end == 0 ? std::string_view::npos : text.rfind('\n', end - 1);
    const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    const std::string_view line = text.substr(begin, end - begin);
    const size_t indent = std::min(line.find_first_not_of(" \t\r"), line.size());
    const std::string_view code = line.substr(indent);
    if (!code.empty() && code[0] != '#' && (indent < least || last)) {
      const bool opens = code.starts_with("try:") && !last;
      if (opens) out += "\n" + std::string(line.substr(0, indent)) + "finally: pass";
      // except, finally and else of a try further up belong to it.
      least = indent;
      if (code.starts_with("except") || code.starts_with("finally")) {
        // Its `try` is closed.
        size_t to = begin;
        while (to > 0) {
          const size_t up = to < 2 ? std::string_view::npos : text.rfind('\n', to - 2);
          const size_t from = up == std::string_view::npos ? 0 : up + 1;
          const std::string_view above = text.substr(from, to - 1 - from);
          const size_t deep = above.find_first_not_of(" \t\r");
          to = from;
          if (deep != std::string_view::npos && deep <= indent &&
              (above.substr(deep).starts_with("try:") || deep < indent)) {
            break;
          }
        }
        end = to == 0 ? 0 : to - 1;
        last = false;
        if (to == 0) break;
        continue;
      }
    }
    last = false;
    if (begin == 0) break;
    end = begin - 1;
  }
  return out;
}

// from a.b: the names that are imported are not there yet.
bool InFromImport(std::string_view text) {
  const size_t newline = text.rfind('\n');
  std::string_view line = newline == std::string_view::npos ? text : text.substr(newline + 1);
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line.starts_with("from ") && line.find(" import") == std::string_view::npos;
}

class PythonAnalysis : public Analysis {
 public:
  explicit PythonAnalysis(const MonitorOptions& options) : parser_(Language::kPython) {
    repo_ = options.repo;
    stubs_ = options.stubs;
    Renew();
  }

  void SetFile(const std::string& path) override {
    file_.clear();
    if (repo_.empty()) return;
    file_ = SourceFolder(repo_).PathOf(path);
  }

  // The node of [start, end) in the text so far with `splice` at the cursor and everything closed.
  const Node* Shadow(const Cursor& cursor, std::string_view splice, const Scan& scan,
                     uint32_t start, uint32_t end) {
    Renew();
    const auto at = static_cast<uint32_t>(cursor.text.size());
    Work::Bytes(cursor.text.size());
    const std::string tries = OpenTries(cursor.text);
    for (const char* more : {"", ": pass", " else 0", " in ():\n pass", " import pass_"}) {
      if (more[1] == 'i' && more[2] == 'm' && !InFromImport(cursor.text)) break;
      std::string text(cursor.text);
      text += splice;
      text += scan.Closers(false);
      text += more;
      text += tries;
      text += "\n";
      auto tree = parser_.Parse(std::move(text));
      const Node* node = tree->Smallest(start, end);
      bool good = true;
      const Node* statement = nullptr;
      for (const Node* up = node; up != nullptr && good; up = up->parent) {
        good = !up->is(K::k_ERROR);
        const Node* around = up->parent;
        if (statement == nullptr && around != nullptr &&
            (around->is(K::k_block) || around->parent == nullptr)) {
          statement = up;
        }
      }
      if (!good || statement == nullptr || statement->broken()) continue;
      world_->SetProgram(std::move(tree), file_, at);
      return world_->program().tree->Smallest(start, end);
    }
    unparsed = true;
    return nullptr;
  }
  // The same of a text that goes on behind the cursor; nullptr: it does not parse.
  const Node* Between(const Cursor& cursor, std::string_view splice, const Scan& scan,
                      uint32_t start, uint32_t end) {
    if (cursor.suffix.find_first_not_of(" \t\r\n") == std::string_view::npos) return nullptr;
    Renew();
    Work::Bytes(cursor.text.size() + cursor.suffix.size());
    const bool next_line = cursor.suffix.front() == '\n' || cursor.suffix.front() == '\r';
    for (const char* more : {"", ": pass", " else 0", " in ():\n pass"}) {
      std::string text(cursor.text);
      text += splice;
      if (next_line) text += scan.Closers(false) + more;
      text += cursor.suffix;
      if (text.back() != '\n') text += '\n';
      auto tree = parser_.Parse(std::move(text));
      if (tree->broken()) {
        if (!next_line) return nullptr;
        continue;
      }
      world_->SetProgram(std::move(tree), file_, UINT32_MAX);
      return world_->program().tree->Smallest(start, end);
    }
    return nullptr;
  }
  SymbolTable& world() { return *world_; }
  void FilesChanged(const std::vector<std::string>& files) override {
    const bool ours = std::any_of(files.begin(), files.end(), [](const std::string& file) {
      return file.ends_with(".py") || file.ends_with(".pyi");
    });
    if (ours && world_ != nullptr && !repo_.empty()) world_->ForgetRepository();
  }
  void Drop(bool whole) noexcept override {
    parser_.Forget();
    if (world_ != nullptr && !whole) {
      world_->Forget();
    } else {
      world_.reset();
    }
  }

  std::vector<Refusal> CheckFinished(std::string_view text,
                                     const std::vector<std::string>& monitors) override {
    Renew();
    world_->SetProgram(parser_.Parse(std::string(text)), file_, UINT32_MAX);
    Typer typer(*world_, false);
    std::vector<Refusal> refusals = typer.Check();
    std::erase_if(refusals, [&](const Refusal& r) {
      return std::find(monitors.begin(), monitors.end(), r.monitor) == monitors.end();
    });
    for (Refusal& refusal : refusals) refusal.at_end = true;
    return refusals;
  }

 private:
  void Renew() {
    if (world_ != nullptr) return;
    auto world = std::make_unique<SymbolTable>(stubs_, repo_);
    world->Find("builtins");
    world_ = std::move(world);
  }
  Parser parser_;
  std::string stubs_;
  std::string repo_;
  std::string file_;
  std::unique_ptr<SymbolTable> world_;
};

PythonAnalysis& Of(Analysis& analysis) { return static_cast<PythonAnalysis&>(analysis); }

// a.b: only what the type of `a` has.
class Dereference : public Monitor {
 public:
  const char* name() const override { return "dereference"; }
  bool Triggered(const Cursor& c) const override {
    if (!NameStart(c.next) || c.text.size() < 2 || c.text.back() != '.') return false;
    const std::string_view text = c.text.substr(0, c.text.size() - 1);
    if (text.back() == '.' || text.back() == ' ' || text.back() == '\n') return false;
    size_t start = text.size();
    while (start > 0 && NameByte(text[start - 1])) --start;
    return start == text.size() || text[start] < '0' || text[start] > '9';
  }
  Verdict Ask(const Cursor& c, Analysis& analysis) const override {
    PythonAnalysis& of = Of(analysis);
    const auto at = static_cast<uint32_t>(c.text.size());
    const auto end = at + static_cast<uint32_t>(kName.size());
    if (const Node* node = of.Between(c, kName, *c.scan, at, end)) {
      Typer typer(of.world(), python::WrittenPlace{.byte = at, .line_open = LineOpen(c.suffix)});
      return Named(typer, node, c.next);
    }
    Typer typer(of.world(), true);
    return Named(typer, of.Shadow(c, kName, *c.scan, at, end), c.next);
  }

 private:
  // Whether nothing but closing brackets follows on the line.
  static bool LineOpen(std::string_view suffix) {
    const std::string_view line = suffix.substr(0, suffix.find('\n'));
    const size_t at = line.find_first_not_of(" \t\r)]}:;,");
    return at == std::string_view::npos || line[at] == '#';
  }
  static Verdict Named(Typer& typer, const Node* node, char next) {
    if (node == nullptr || !node->is(K::k_identifier) || node->parent == nullptr) return {};
    std::optional<python::Names> names;
    if (node->parent->is(K::k_attribute) && node->field == F::k_attribute) {
      names = typer.NamesFor(node->parent);
    } else if (node->parent->is(K::k_dotted_name)) {
      names = typer.ModulesFor(node);
    }
    if (!names) return {};
    // cart.__: what is asked for is proposed.
    if (next == '_')
      std::erase_if(names->hidden, [](const auto& name) { return name.starts_with("__"); });
    auto completions = std::make_shared<Completions>();
    completions->names = std::move(names->names);
    completions->private_free = !names->whole;
    completions->hidden = std::move(names->hidden);
    completions->only_written = names->only_written;
    return {.names = std::move(completions)};
  }
  void Known(const Cursor& c, Analysis& analysis, std::vector<std::string>& names) const override {
    PythonAnalysis& of = Of(analysis);
    const Node* object = ObjectAt(c, of);
    if (object == nullptr) return;
    Typer typer(of.world(), true);
    python::KnownMembers(of.world(), typer.TypeOf(object), names);
  }
  void Details(const Cursor& c, Analysis& analysis, std::span<const std::string> names,
               std::vector<NameDetail>& details) const override {
    PythonAnalysis& of = Of(analysis);
    const Node* object = ObjectAt(c, of);
    if (object == nullptr) return;
    Typer typer(of.world(), true);
    python::MemberDetails(of.world(), typer.TypeOf(object), names, details);
  }

 private:
  // What stands before the point.
  static const Node* ObjectAt(const Cursor& c, PythonAnalysis& of) {
    const auto at = static_cast<uint32_t>(c.text.size());
    const Node* node = of.Shadow(c, kName, *c.scan, at, at + static_cast<uint32_t>(kName.size()));
    const bool member =
        node != nullptr && node->parent != nullptr && node->parent->is(K::k_attribute);
    return member ? node->parent->at(F::k_object) : nullptr;
  }
};

// f(a, b): as many arguments as it takes.
class ArgumentCount : public Monitor {
 public:
  const char* name() const override { return "arguments"; }
  bool Triggered(const Cursor& c) const override { return c.next == ')' && c.scan->in_call(); }
  Verdict Ask(const Cursor& c, Analysis& analysis) const override {
    PythonAnalysis& of = Of(analysis);
    Scan closed = *c.scan;
    closed.Add(')');
    const auto at = static_cast<uint32_t>(c.text.size());
    const Node* list = of.Shadow(c, ")", closed, at, at + 1);
    if (list == nullptr || !list->is(K::k_argument_list) || list->end != at + 1 ||
        list->parent == nullptr || !list->parent->is(K::k_call)) {
      return {};
    }
    Typer typer(of.world(), true);
    return {.refusal = typer.CallProblem(list->parent, false)};
  }
};

// f(name=...): a parameter of that name.
class Keywords : public Monitor {
 public:
  const char* name() const override { return "keywords"; }
  bool Triggered(const Cursor& c) const override {
    return c.next != '=' && c.scan->in_call() && c.text.size() > 2 && c.text.back() == '=' &&
           NameByte(c.text[c.text.size() - 2]);
  }
  Verdict Ask(const Cursor& c, Analysis& analysis) const override {
    PythonAnalysis& of = Of(analysis);
    const auto at = static_cast<uint32_t>(c.text.size());
    const Node* node = of.Shadow(c, kName, *c.scan, at, at + static_cast<uint32_t>(kName.size()));
    if (node == nullptr || node->parent == nullptr || !node->parent->is(K::k_keyword_argument) ||
        node->parent->parent == nullptr) {
      return {};
    }
    const Node* call = node->parent->parent->parent;
    if (call == nullptr || !call->is(K::k_call)) return {};
    Typer typer(of.world(), true);
    auto problem = typer.CallProblem(call, true);
    const Node* own = node->parent->at(F::k_name);
    if (!problem || own == nullptr || problem->byte != own->start) return {};
    return {.refusal = std::move(problem)};
  }
};

// A name that nothing declares: known at the end of the text.
class Names : public Monitor {
 public:
  const char* name() const override { return "names"; }
  bool Triggered(const Cursor& c) const override {
    (void)c;
    return false;
  }
  Verdict Ask(const Cursor& c, Analysis& analysis) const override {
    (void)c;
    (void)analysis;
    return {};
  }
};

}  // namespace

std::unique_ptr<Analysis> MakePythonAnalysis(const MonitorOptions& options) {
  return std::make_unique<PythonAnalysis>(options);
}

std::vector<std::unique_ptr<Monitor>> PythonMonitors() {
  std::vector<std::unique_ptr<Monitor>> monitors;
  monitors.push_back(std::make_unique<Dereference>());
  monitors.push_back(std::make_unique<ArgumentCount>());
  monitors.push_back(std::make_unique<Keywords>());
  monitors.push_back(std::make_unique<Names>());
  return monitors;
}

}  // namespace pawl::monitors
