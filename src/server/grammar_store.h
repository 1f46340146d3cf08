// GrammarStore: constraints of requests as grammars, compiled once and kept within a budget of
// bytes.
//
//   GrammarStore store(vocabulary, {.max_bytes = 256 << 20});
//   bool known = false;
//   Result<Grammar> grammar = store.Get(spec, layout, known, stop);   // errors: the spec's places
//   stop->Stop();   // from another thread: nobody wants it any more
//
// Thread-safe. Threads that want what another one compiles at the moment wait for it, and compile
// it themselves where that one was stopped.
#ifndef PAWL_SRC_SERVER_GRAMMAR_STORE_H_
#define PAWL_SRC_SERVER_GRAMMAR_STORE_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "pawl/compiler.h"
#include "pawl/grammar.h"
#include "src/server/constraint_spec.h"

namespace pawl::server {

class GrammarStore {
 public:
  struct Options {
    size_t max_bytes = size_t{256} << 20;  // for all that grammars keep, keys included
  };
  struct Stats {
    int64_t hits = 0, misses = 0, evicted = 0, stopped = 0;
    size_t grammars = 0, key_bytes = 0;
    size_t bytes = 0;  // of all, keys included
    double compile_seconds = 0;
  };

  GrammarStore(std::shared_ptr<const Vocabulary> vocabulary, const Options& options);

  // Also finds the mask of the first token and of the first one after what is forced, so that the
  // thread that decodes does not have to. `stop` is of this call alone. REQUIRES: spec.kind is not
  // kNone.
  Result<Grammar> Get(const ConstraintSpec& spec, const LayoutSpec& layout, bool& known,
                      const std::shared_ptr<StopFlag>& stop);
  // Compiler::FreeUnused.
  void FreeUnused() const { compiler_.FreeUnused(); }
  // Measures what the grammars take: for reports.
  Stats stats() const;

 private:
  struct Entry {
    std::string key;
    Grammar grammar;
    size_t bytes;
  };

  Result<Grammar> Compile(const ConstraintSpec& spec, const LayoutSpec& layout,
                          const std::shared_ptr<StopFlag>& stop) const;
  Result<Grammar> CompileAs(const ConstraintSpec& spec, const LayoutSpec& layout,
                            const std::shared_ptr<StopFlag>& stop) const;
  void Keep(const std::string& key, const Grammar& grammar);

  static constexpr size_t kKeyShare = 8;

  const std::shared_ptr<const Vocabulary> vocabulary_;
  const Compiler compiler_;
  const size_t most_key_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable compiled_;
  std::set<std::string> compiling_;
  std::list<Entry> entries_;  // used last first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> index_;
  Stats stats_;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_GRAMMAR_STORE_H_
