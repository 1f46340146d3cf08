// GrammarCache: the grammars that were used last, by what they were compiled from.
//
//   Result<Grammar> grammar = cache.Get(key, [&] { return compiler.CompileRegex(pattern); });
//
// Thread-safe. Threads that miss the same key at once compile once: the others wait.
#ifndef PAWL_SCHEMAS_GRAMMAR_CACHE_H_
#define PAWL_SCHEMAS_GRAMMAR_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "pawl/compiler.h"
#include "pawl/grammar.h"
#include "pawl/result.h"
#include "src/base/sync.h"

namespace pawl {

// What decides a grammar: its kind, its texts and every option but resolve_document.
std::string GrammarKeyOf(std::string_view kind, std::span<const std::string> texts,
                         const GrammarOptions& options = {});

class GrammarCache {
 public:
  // The grammars used longest ago go when one of the bounds is reached. `most`: grammars.
  // `most_bytes`: keys, and what a grammar keeps that has given all its memory back; what is found
  // of states and masks is bounded by the compiler (CompilerOptions::memory_budget).
  explicit GrammarCache(size_t most, size_t most_bytes = std::numeric_limits<size_t>::max())
      : most_(most), most_bytes_(most_bytes) {}

  struct Stats {
    int64_t hits = 0, misses = 0, evicted = 0, stopped = 0;
    size_t grammars = 0, key_bytes = 0;
    double compile_seconds = 0;
  };

  // The grammar of `key`, or what `compile` returns, which is kept. `known`: set to whether it was
  // there. `stop`: of this call; kLimit when it stops a call that waits for another's compilation.
  Result<Grammar> Get(const std::string& key, const std::function<Result<Grammar>()>& compile,
                      const std::shared_ptr<StopFlag>& stop = nullptr, bool* known = nullptr);
  Stats stats() const;

 private:
  struct Entry {
    std::string key;
    Grammar grammar;
    size_t bytes;
  };
  void Keep(const std::string& key, const Grammar& grammar);

  const size_t most_, most_bytes_;
  mutable Mutex mutex_;
  ConditionVariable compiled_;
  std::set<std::string> compiling_;
  std::list<Entry> entries_;  // used last first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> index_;
  Stats stats_;
};

}  // namespace pawl

#endif  // PAWL_SCHEMAS_GRAMMAR_CACHE_H_
