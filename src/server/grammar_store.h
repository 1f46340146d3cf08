// GrammarStore: constraints of requests as grammars, compiled once and kept within a budget of
// bytes.
//
//   GrammarStore store(vocabulary, {.max_bytes = 256 << 20});
//   bool known = false;
//   Result<Grammar> grammar = store.Get(spec, layout, known, stop);   // errors: the spec's places
//   stop->Stop();   // from another thread, when no client waits for it
//
// Thread-safe, as the GrammarCache that it holds.
#ifndef PAWL_SRC_SERVER_GRAMMAR_STORE_H_
#define PAWL_SRC_SERVER_GRAMMAR_STORE_H_

#include <cstddef>
#include <memory>

#include "pawl/compiler.h"
#include "pawl/grammar.h"
#include "schemas/grammar_cache.h"
#include "src/server/constraint_spec.h"

namespace pawl::server {

class GrammarStore {
 public:
  struct Options {
    size_t max_bytes = size_t{256} << 20;  // for all that grammars keep, keys included
  };
  struct Stats : GrammarCache::Stats {
    size_t bytes = 0;  // of all, keys included
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
  static constexpr size_t kKeyShare = 8;

  const Compiler compiler_;
  GrammarCache cache_;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_GRAMMAR_STORE_H_
