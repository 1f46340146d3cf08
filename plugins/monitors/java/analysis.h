// JavaAnalysis: the Java text that is being written, parsed and typed anew at each trigger.
// Monitors of Java ask it for the node at the cursor.
#ifndef PAWL_PLUGINS_MONITORS_JAVA_ANALYSIS_H_
#define PAWL_PLUGINS_MONITORS_JAVA_ANALYSIS_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/monitors/java/symbol_table.h"
#include "plugins/monitors/monitor.h"

namespace pawl::monitors::java {

// What stands for the name that is not written yet.
inline constexpr std::string_view kName = "pawl_name__";

class JavaAnalysis : public Analysis {
 public:
  explicit JavaAnalysis(const MonitorOptions& options)
      : parser_(Language::kJava), repository_(Open(options)) {
    path_ = options.class_path;
    if (std::string modules = DefaultJavaModules(); !modules.empty())
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
  std::vector<std::string> Limits() const override {
    std::vector<std::string> limits =
        world_ != nullptr ? world_->limits() : std::vector<std::string>();
    if (repository_ != nullptr && !repository_->limit().empty())
      limits.push_back(repository_->folder() + ": " + repository_->limit());
    return limits;
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
    if (world_ == nullptr) world_ = std::make_unique<SymbolTable>(path_, repository_.get());
  }

  Parser parser_;
  std::vector<std::string> path_;
  std::unique_ptr<Repository> repository_;
  std::unique_ptr<SymbolTable> world_;
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

}  // namespace pawl::monitors::java

#endif  // PAWL_PLUGINS_MONITORS_JAVA_ANALYSIS_H_
