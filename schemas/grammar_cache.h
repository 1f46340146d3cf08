// GrammarCache: the grammars of the JSON Schemas that were used last.
//
// Thread-safe. Two threads that miss the same schema at once both compile it; one result is kept.
#ifndef PAWL_SCHEMAS_GRAMMAR_CACHE_H_
#define PAWL_SCHEMAS_GRAMMAR_CACHE_H_

#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "pawl/grammar.h"
#include "pawl/json_schema_options.h"

namespace pawl {

class GrammarCache {
 public:
  explicit GrammarCache(size_t most) : most_(most) {}

  // What decides a grammar: the schema's text and every option but resolve_document.
  static std::string KeyOf(std::string_view schema, const JsonSchemaOptions& options);
  std::optional<Grammar> Find(const std::string& key);
  void Keep(const std::string& key, const Grammar& grammar);

 private:
  using Entry = std::pair<std::string, Grammar>;
  const size_t most_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // used last first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> index_;
};

}  // namespace pawl

#endif  // PAWL_SCHEMAS_GRAMMAR_CACHE_H_
