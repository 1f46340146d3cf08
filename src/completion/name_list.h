// The names that may stand at a place of a text, as an editor's list shows them.
//
//   CompletionPlanner planner(vocabulary);
//   Result<PlaceNames> place = planner.NamesAt({.prefix = "s = 'a'\ns.up", .language = kPython});
//   place->names, place->begun                    // "upper"; 2
//   place->Details(place->names)                  // kind, head, docstring
#ifndef PAWL_SRC_COMPLETION_NAME_LIST_H_
#define PAWL_SRC_COMPLETION_NAME_LIST_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/monitors/monitor.h"
#include "src/completion/monitor_constraint.h"

namespace pawl::completion {

class PlaceNames {
 public:
  std::vector<std::string> names;  // sorted; they begin with what is begun
  size_t begun = 0;                // bytes of the name before the cursor
  std::string followers;           // of the names, as in monitors::Completions
  // Other names may stand there too. The names are then those that the text has.
  bool open = false;
  std::string why;  // where it is open or empty: the reason, in words
  std::vector<std::string> limits;

  // As many as there are names. REQUIRES: they are some of `names`.
  std::vector<monitors::NameDetail> Details(std::span<const std::string> of) const;

 private:
  friend class CompletionPlanner;
  struct State;  // of the text in front of the name, under the host's mutex
  std::shared_ptr<State> state_;
};

struct ListedName {
  std::string name;
  double probability = 0;
  monitors::NameDetail detail;
};

struct NameListOptions {
  size_t most = 100;  // names in the list
  bool ranked = true;
  // Set by another thread: the list is not wanted any more.
  const std::atomic<bool>* stop = nullptr;
};

struct NameList {
  // The most probable first; in Python those that begin with "_" behind the others.
  std::vector<ListedName> names;
  size_t begun = 0;
  bool open = false;   // other names may stand there too
  bool cut = false;    // there are more names than options.most
  std::string why;     // where it is open or empty
  double missing = 0;  // of the probability, not told apart
  std::vector<std::string> limits;
};

// In Python 1 for a name that begins with "_", 2 for __name__, 0 for others: lists have them last.
int PrivacyOf(std::string_view name);

// Names in the code of a text, sorted. `members`: those that stand behind a point, else all others.
std::vector<std::string> NamesOfText(std::string_view prefix, std::string_view suffix,
                                     monitors::Language language, bool members);

}  // namespace pawl::completion

#endif  // PAWL_SRC_COMPLETION_NAME_LIST_H_
