// KnownTools: long lists of tools that came before, found again by their bytes. An agent sends the
// same hundred tools with each request; what is known is neither parsed nor checked again.
//
//   KnownTools::Match match = known.Find(body);
//   if (match.tools != nullptr) Parse(match.Rest(body));   // the same body with "tools": null
//   ...
//   if (match.tools == nullptr) known.Keep(body, match, tools);   // once they were read
//
// Bytes that are the same are the same JSON: a list ends where its bracket is closed, whatever
// follows. Thread-safe.
#ifndef PAWL_SRC_SERVER_KNOWN_TOOLS_H_
#define PAWL_SRC_SERVER_KNOWN_TOOLS_H_

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "src/server/constraint_spec.h"

namespace pawl::server {

class KnownTools {
 public:
  using Tools = std::shared_ptr<const std::vector<ToolSpec>>;

  struct Match {
    size_t begin = 0, size = 0;  // where the list stands in the body; begin is 0 where it has none
    Tools tools;                 // nullptr: not known
    // The body with null in place of the list. An error in it is at another place than in the body.
    std::string Rest(std::string_view body) const;
  };

  explicit KnownTools(size_t max_bytes) : max_bytes_(max_bytes) {}

  Match Find(std::string_view body);
  // REQUIRES: the body is JSON, `match` is of this body, and `tools` is what was read of it.
  void Keep(std::string_view body, const Match& match, const std::vector<ToolSpec>& tools);

  size_t bytes() const;

 private:
  struct Entry {
    std::string text;
    Tools tools;
    size_t bytes = 0;
  };

  const size_t max_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // used last first
  size_t bytes_ = 0;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_KNOWN_TOOLS_H_
