#include "schemas/grammar_cache.h"

#include <cstdint>

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
  number(options.order);
  number(options.whitespace);
  number(options.max_whitespace);
  text(options.item_separator);
  text(options.key_separator);
  number(options.ascii);
  number(options.additional_properties);
  text(options.default_dialect);
  text(options.force_dialect);
  number(options.assert_formats);
  number(options.canonical_spelling);
  number(options.max_digits);
  number(options.max_decimals);
  number(options.max_string);
  number(options.excluded_texts.size());
  for (const std::string& excluded : options.excluded_texts) text(excluded);
  number(options.allow_exponents);
  number(options.profile);
  number(options.list_annotations);
  number(options.max_documents);
  number(options.max_schema_bytes);
  number(options.max_depth);
  number(options.step_fuel);
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
