// Witnesses: the shortest texts of formats, which schemas of one compiler share. To find that of a
// date-time takes 2 ms, and 128 tools may each have one.
//
// Thread-safe. Keeps a few kilobytes at most: formats are few, and so are the settings of a
// compiler's users.
#ifndef PAWL_SCHEMAS_FORMULA_WITNESSES_H_
#define PAWL_SCHEMAS_FORMULA_WITNESSES_H_

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "schemas/limits.h"

namespace pawl::schema {

class Witnesses {
 public:
  // `name`: the format, and all options (KeyOf).
  std::optional<std::string> Find(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = texts_.find(name);
    if (found == texts_.end()) return std::nullopt;
    return found->second;
  }
  void Keep(const std::string& name, const std::string& text) {
    if (name.size() + text.size() > limits::kWitnessBytes) return;
    const std::lock_guard lock(mutex_);
    if (texts_.size() >= limits::kWitnesses) texts_.clear();
    texts_.emplace(name, text);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> texts_;
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_FORMULA_WITNESSES_H_
