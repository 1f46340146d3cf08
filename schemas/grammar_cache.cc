// The key is every option (KeyOf in option_fields.h) and the schema; what was not used for longest
// is at the end of a list.
#include "schemas/grammar_cache.h"

#include "schemas/read/option_fields.h"

namespace pawl {

std::string GrammarCache::KeyOf(std::string_view schema, const JsonSchemaOptions& options) {
  return pawl::KeyOf(options) + std::string(schema);
}

std::optional<Grammar> GrammarCache::Find(const std::string& key) {
  std::lock_guard lock(mutex_);
  const auto found = index_.find(key);
  if (found == index_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

void GrammarCache::Keep(const std::string& key, const Grammar& grammar) {
  std::lock_guard lock(mutex_);
  if (index_.contains(key)) return;
  entries_.emplace_front(key, grammar);
  try {
    index_.emplace(entries_.front().first, entries_.begin());
  } catch (...) {
    entries_.pop_front();
    throw;
  }
  if (entries_.size() <= most_) return;
  index_.erase(entries_.back().first);
  entries_.pop_back();
}

}  // namespace pawl
