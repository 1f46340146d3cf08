// What a request asks for, as a source of a grammar; the cache and the compiler are those of all
// doors. The cache's keys may take an eighth of the bytes, what is found of states and masks the
// rest.
#include "src/server/grammar_store.h"

#include <limits>
#include <string>
#include <utility>

#include "schemas/grammar_source.h"

namespace pawl::server {
namespace {

GrammarSource SourceOf(const ConstraintSpec& spec) {
  switch (spec.kind) {
    case ConstraintSpec::Kind::kJsonSchema:
      return {.kind = "json_schema", .texts = {spec.text}};
    case ConstraintSpec::Kind::kRegex:
      return {.kind = "regex", .texts = {spec.text}};
    case ConstraintSpec::Kind::kChoice:
      return {.kind = "choice", .texts = spec.choices};
    case ConstraintSpec::Kind::kGrammar:
      return {.kind = std::string(KindOf(spec.language)), .texts = {spec.text}};
    case ConstraintSpec::Kind::kStructuralTag:
      return {.kind = "structural_tag", .texts = {spec.text}};
    case ConstraintSpec::Kind::kNone:
      break;
  }
  return {};
}

// The first masks take the longest; no output waits for them here.
void Warm(const Grammar& grammar) {
  State state = grammar.Start();
  (void)state.completion_length();
  (void)state.mask();
  const std::string forced = state.forced();
  if (forced.empty()) return;
  if (const std::optional<State> next = state.Advance(forced)) (void)next->mask();
}

}  // namespace

GrammarStore::GrammarStore(std::shared_ptr<const Vocabulary> vocabulary, const Options& options)
    : compiler_(std::move(vocabulary),
                {.memory_budget = options.max_bytes - options.max_bytes / kKeyShare}),
      cache_(std::numeric_limits<size_t>::max(), options.max_bytes / kKeyShare) {}

Result<Grammar> GrammarStore::Get(const ConstraintSpec& spec, const LayoutSpec& layout, bool& known,
                                  const std::shared_ptr<StopFlag>& stop) {
  const GrammarSource source = SourceOf(spec);
  GrammarOptions options;
  options.json_schema = layout.ToOptions();
  const auto compile = [&]() -> Result<Grammar> {
    Result<Grammar> grammar = CompileSource(compiler_, source, options, stop);
    if (grammar.ok()) Warm(*grammar);
    return grammar;
  };
  const std::string key = GrammarKeyOf(source.kind, source.texts, options);
  return cache_.Get(key, compile, stop, &known);
}

GrammarStore::Stats GrammarStore::stats() const {
  Stats out;
  static_cast<GrammarCache::Stats&>(out) = cache_.stats();
  out.bytes = compiler_.memory_bytes() + out.key_bytes;
  return out;
}

}  // namespace pawl::server
