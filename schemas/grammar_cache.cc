// A cache of grammars is a list in the order of use and an index into it. A key that is being
// compiled stands in a set; threads that ask for it wait until it has left the set, and look again:
// where the compilation failed or was stopped, one of them compiles.
#include "schemas/grammar_cache.h"

#include <chrono>

#include "grammar/languages/option_fields.h"
#include "src/base/stop_scope.h"

namespace pawl {
namespace {

constexpr size_t kKeptBytes = 4 << 10;  // of a grammar that has freed its machine, without its text
// Between two looks at the stop flag, for threads that wait for another thread's compilation.
constexpr std::chrono::milliseconds kStopInterval{20};

}  // namespace

std::string GrammarKeyOf(std::string_view kind, std::span<const std::string> texts,
                         const GrammarOptions& options) {
  // A field that is not listed here does not compile.
  const auto& [root, lark_as_xgrammar, json_schema, max_bytes, max_nesting, prepare_steps] =
      options;
  std::string key(kind);
  const auto number = [&](uint64_t value) { key += ' ' + std::to_string(value); };
  number(lark_as_xgrammar ? 1 : 0);
  number(max_bytes);
  number(static_cast<uint64_t>(max_nesting));
  number(prepare_steps);
  key += ' ' + KeyOf(json_schema) + std::to_string(root.size()) + ' ' + root;
  number(texts.size());
  for (const std::string& text : texts) {
    number(text.size());
    key += ' ' + text;
  }
  return key;
}

Result<Grammar> GrammarCache::Get(const std::string& key,
                                  const std::function<Result<Grammar>()>& compile,
                                  const std::shared_ptr<StopFlag>& stop, bool* known) {
  const auto stopped = [&] { return stop != nullptr && stop->stopped(); };
  {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (const auto found = index_.find(key); found != index_.end()) {
        entries_.splice(entries_.begin(), entries_, found->second);
        ++stats_.hits;
        if (known != nullptr) *known = true;
        return found->second->grammar;
      }
      if (stopped()) return Error{ErrorCode::kLimit, "compiling was stopped", ""};
      if (compiling_.insert(key).second) break;
      // Nothing wakes this thread when its client goes.
      if (!WaitFor(compiled_, lock, kStopInterval)) StopScope::Check();
    }
    ++stats_.misses;
  }
  if (known != nullptr) *known = false;
  // Threads that wait for this key go on, whatever happens.
  struct Scope {
    GrammarCache& cache;
    const std::string& key;
    ~Scope() {
      const std::lock_guard lock(cache.mutex_);
      cache.compiling_.erase(key);
      cache.compiled_.notify_all();
    }
  } const scope{*this, key};
  const auto begin = std::chrono::steady_clock::now();
  const auto count = [&](bool was_stopped) {
    stats_.compile_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    stats_.stopped += was_stopped ? 1 : 0;
  };
  Result<Grammar> grammar = [&] {
    try {
      return compile();
    } catch (const Stopped&) {
      const std::lock_guard lock(mutex_);
      count(true);
      throw;
    }
  }();
  const std::lock_guard lock(mutex_);
  count(!grammar.ok() && stopped());
  if (grammar.ok()) Keep(key, *grammar);
  return grammar;
}

void GrammarCache::Keep(const std::string& key, const Grammar& grammar) {
  const size_t bytes = 2 * key.size() + kKeptBytes;  // the key, and the text in the grammar
  if (bytes > most_bytes_ || most_ == 0) return;
  entries_.push_front({key, grammar, bytes});
  try {
    index_.emplace(entries_.front().key, entries_.begin());
  } catch (...) {
    entries_.pop_front();
    throw;
  }
  stats_.key_bytes += bytes;
  while (stats_.key_bytes > most_bytes_ || entries_.size() > most_) {
    stats_.key_bytes -= entries_.back().bytes;
    index_.erase(entries_.back().key);
    entries_.pop_back();
    ++stats_.evicted;
  }
  stats_.grammars = entries_.size();
}

GrammarCache::Stats GrammarCache::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace pawl
