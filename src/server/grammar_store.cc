// Two things grow with use. What is found of a grammar's states and masks is bounded by the
// compiler's memory budget, over all grammars together. The keys, and what little a grammar keeps
// whatever is given back, are counted here, and may take an eighth of the bytes.
#include "src/server/grammar_store.h"

#include <chrono>
#include <utility>

#include "schemas/read/option_fields.h"

namespace pawl::server {
namespace {

constexpr size_t kKeptBytes = 4 << 10;  // of a grammar that has given all back, without its text

// What `Get` asks the compiler for. A field that is not listed here does not compile.
std::string KeyOf(const ConstraintSpec& spec, const LayoutSpec& layout) {
  // Where a text stands, and what it is called, changes messages only.
  [[maybe_unused]] const auto& [kind, text, choices, language, pointer, name, deprecated] = spec;
  std::string key;
  const auto number = [&](int64_t value) { key += std::to_string(value) + " "; };
  number(static_cast<int>(kind));
  number(static_cast<int>(language));
  number(layout.asked_additional_properties ? 1 : 0);  // else a schema may be opened
  key += pawl::KeyOf(layout.ToOptions());
  number(static_cast<int64_t>(choices.size()));
  for (const std::string& choice : choices) {
    number(static_cast<int64_t>(choice.size()));
    key += choice;
  }
  return key + text;
}

// The first masks are the dearest ones; here nobody else waits for them.
void Warm(const Grammar& grammar) {
  State state = grammar.Start();
  (void)state.shortest_close();
  (void)state.mask();
  const std::string forced = state.forced();
  if (forced.empty()) return;
  if (const std::optional<State> next = state.Advance(forced)) (void)next->mask();
}

}  // namespace

GrammarStore::GrammarStore(std::shared_ptr<const Vocabulary> vocabulary, const Options& options)
    : vocabulary_(vocabulary),
      compiler_(std::move(vocabulary),
                {.memory_budget = options.max_bytes - options.max_bytes / kKeyShare}),
      most_key_bytes_(options.max_bytes / kKeyShare) {}

Result<Grammar> GrammarStore::Get(const ConstraintSpec& spec, const LayoutSpec& layout, bool& known,
                                  const std::shared_ptr<StopFlag>& stop) {
  const std::string key = KeyOf(spec, layout);
  {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (const auto found = index_.find(key); found != index_.end()) {
        entries_.splice(entries_.begin(), entries_, found->second);
        ++stats_.hits;
        known = true;
        return found->second->grammar;
      }
      if (stop->stopped()) return Error{ErrorCode::kLimit, "nobody wants it any more", ""};
      if (compiling_.insert(key).second) break;
      compiled_.wait(lock);
    }
    ++stats_.misses;
  }
  known = false;
  // Whatever happens, those who wait for this one go on.
  struct Scope {
    GrammarStore& store;
    const std::string& key;
    ~Scope() {
      const std::lock_guard lock(store.mutex_);
      store.compiling_.erase(key);
      store.compiled_.notify_all();
    }
  } const scope{*this, key};
  const auto begin = std::chrono::steady_clock::now();
  Result<Grammar> grammar = Compile(spec, layout, stop);
  if (grammar.ok()) Warm(*grammar);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const std::lock_guard lock(mutex_);
  stats_.compile_seconds += seconds.count();
  if (!grammar.ok() && stop->stopped()) ++stats_.stopped;
  if (grammar.ok()) Keep(key, *grammar);
  return grammar;
}

Result<Grammar> GrammarStore::Compile(const ConstraintSpec& spec, const LayoutSpec& layout,
                                      const std::shared_ptr<StopFlag>& stop) const {
  Result<Grammar> grammar = CompileAs(spec, layout, stop);
  const bool closed = !layout.additional_properties && !layout.asked_additional_properties;
  if (grammar.ok() || !closed || grammar.error().code != ErrorCode::kUnsatisfiable) return grammar;
  LayoutSpec open = layout;
  open.additional_properties = true;
  return CompileAs(spec, open, stop);
}

Result<Grammar> GrammarStore::CompileAs(const ConstraintSpec& spec, const LayoutSpec& layout,
                                        const std::shared_ptr<StopFlag>& stop) const {
  GrammarOptions options;
  options.json_schema = layout.ToOptions();
  switch (spec.kind) {
    case ConstraintSpec::Kind::kJsonSchema:
      return compiler_.CompileJsonSchema(spec.text, options.json_schema, stop);
    case ConstraintSpec::Kind::kRegex:
      return compiler_.CompileRegex(spec.text);
    case ConstraintSpec::Kind::kChoice:
      return compiler_.CompileChoice(spec.choices);
    case ConstraintSpec::Kind::kGrammar:
      return compiler_.CompileGrammar(spec.text, spec.language, options, stop);
    case ConstraintSpec::Kind::kStructuralTag:
      return compiler_.CompileStructuralTag(spec.text, options, stop);
    case ConstraintSpec::Kind::kNone:
      break;
  }
  return Error{ErrorCode::kInternal, "there is no constraint", ""};
}

void GrammarStore::Keep(const std::string& key, const Grammar& grammar) {
  const size_t bytes = 2 * key.size() + kKeptBytes;  // the key, and the text in the grammar
  if (bytes > most_key_bytes_) return;
  entries_.push_front({key, grammar, bytes});
  try {
    index_.emplace(entries_.front().key, entries_.begin());
  } catch (...) {
    entries_.pop_front();
    throw;
  }
  stats_.key_bytes += bytes;
  while (stats_.key_bytes > most_key_bytes_) {
    stats_.key_bytes -= entries_.back().bytes;
    index_.erase(entries_.back().key);
    entries_.pop_back();
    ++stats_.evicted;
  }
  stats_.grammars = entries_.size();
}

GrammarStore::Stats GrammarStore::stats() const {
  Stats out;
  {
    const std::lock_guard lock(mutex_);
    out = stats_;
  }
  out.bytes = compiler_.memory_bytes() + out.key_bytes;
  return out;
}

}  // namespace pawl::server
