// Monitors as a constraint (pawl/constraint.h).
//
//   auto host = std::make_shared<MonitorHost>(*MonitorSet::Make(Language::kTypeScript, {}),
//                                             vocabulary);
//   auto constraint = MonitorConstraint(host, {.prefix = "const xs = [1];\nxs."});
//   auto output = session.Generate(prompt, constraint, {.at_budget = AtBudget::kCut});
//
// Drafts, sampling and batches work as with any constraint. With a grammar the output obeys both.
// The masks are upper bounds (Constraint::exact): a token that reaches beyond a trigger is asked
// about when it is drawn.
//
// Thread safety: constraints of one host may be used from several threads; one of them at a time
// asks the monitors.
#ifndef PAWL_SRC_COMPLETION_MONITOR_CONSTRAINT_H_
#define PAWL_SRC_COMPLETION_MONITOR_CONSTRAINT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pawl/constraint.h"
#include "pawl/vocabulary.h"
#include "plugins/monitors/monitor.h"

namespace pawl::completion {

// A vocabulary by what a name can do with its tokens.
class NameTokens {
 public:
  explicit NameTokens(const Vocabulary& vocabulary);
  using Bits = std::vector<uint32_t>;
  const Bits& text() const { return text_; }  // all that are text
  // Adds the tokens that may come where one of `names` may, of which `begun` is written. Where
  // nothing is, tokens that do not begin a name are left to be asked about.
  // `name_first`: they are left out.
  void AddNames(const monitors::Completions& names, std::string_view begun, bool name_first,
                Bits& bits) const;
  // Adds the tokens that are a beginning of `text`, and those that begin with it.
  void AddText(std::string_view text, Bits& bits) const;

 private:
  const Vocabulary& vocabulary_;
  Bits text_, no_name_byte_, no_name_start_;  // the last two by the token's first byte
  std::unordered_map<std::string_view, std::vector<TokenId>> whole_;  // a name and nothing else
  std::unordered_map<std::string_view, std::vector<TokenId>> tail_;   // a name and more
  size_t longest_ = 0;  // bytes of the longest name in them
};

// Monitors that constraints share.
class MonitorHost {
 public:
  // `set` may be nullptr: no monitors.
  MonitorHost(std::unique_ptr<monitors::MonitorSet> set,
              std::shared_ptr<const Vocabulary> vocabulary);
  const std::shared_ptr<const Vocabulary>& vocabulary() const { return vocabulary_; }
  const NameTokens& tokens() const { return tokens_; }
  monitors::MonitorSet* set() { return set_.get(); }  // with the mutex
  std::mutex& mutex() { return mutex_; }
  // Of all that was asked so far.
  monitors::MonitorCounts counts();
  // Analysis::Limits of the monitors.
  std::vector<std::string> Limits();
  // Tokens that were asked about and refused.
  uint64_t refused() const { return refused_; }
  void Refused() { ++refused_; }

 private:
  std::unique_ptr<monitors::MonitorSet> set_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  NameTokens tokens_;
  std::mutex mutex_;
  std::atomic<uint64_t> refused_{0};
};

struct MonitoredText {
  std::string prefix;  // what is written
  std::string suffix;  // what stands behind the cursor, where that counts as written; or empty
  std::string must;    // what the output has to begin with
  // Where names are known at the cursor the output begins with one, and not with white space or a
  // comment: a completion that is asked for there is to be a name.
  bool name_first = false;
  // What else than a name may be first behind the `.` of a member, where the cursor stands there;
  // nullopt: it does not.
  std::optional<std::string> member = std::nullopt;
  std::shared_ptr<const Constraint> grammar = nullptr;  // that the output obeys too
  // Counts the questions of this text that a limit ended, or nullptr.
  std::shared_ptr<std::atomic<uint64_t>> given_up = nullptr;
};
std::shared_ptr<const Constraint> MonitorConstraint(std::shared_ptr<MonitorHost> host,
                                                    const MonitoredText& text);
// Whether the monitors let `text.must` be written behind `text.prefix`.
bool MonitorsAllow(MonitorHost& host, const MonitoredText& text);

}  // namespace pawl::completion

#endif  // PAWL_SRC_COMPLETION_MONITOR_CONSTRAINT_H_
