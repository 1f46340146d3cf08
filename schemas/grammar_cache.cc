// The key is every option one after the other, numbers as text and texts with their lengths, so
// that no two settings have the same one; what was not used for longest is at the end of a list.
#include "schemas/grammar_cache.h"

#include <cstdint>
#include <type_traits>

#include "schemas/read/option_fields.h"

namespace pawl {

std::string GrammarCache::KeyOf(std::string_view schema, const JsonSchemaOptions& options) {
  std::string key;
  const auto number = [&key](auto value) {
    key += std::to_string(static_cast<int64_t>(value));
    key += ' ';
  };
  const auto text = [&](std::string_view value) {
    number(value.size());
    key += value;
  };
  VisitOptions(options, [&](const char*, const auto& field) {
    if constexpr (std::is_same_v<decltype(field), const std::string&>) {
      text(field);
    } else {
      number(field);
    }
  });
  text(schema);
  return key;
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
  index_.emplace(entries_.front().first, entries_.begin());
  if (entries_.size() <= most_) return;
  index_.erase(entries_.back().first);
  entries_.pop_back();
}

}  // namespace pawl
