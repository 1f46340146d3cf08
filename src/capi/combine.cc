// Grammars of grammars. Each remembers the source of the one it came from and the step that made
// it, so that it can be kept as bytes like any other.
#include "pawl/combine.h"

#include "src/capi/handles.h"

namespace pawl::capi {
namespace {

// `count` texts; false when one of the pointers is NULL where it must not be.
bool Texts(const char* const* texts, const size_t* lengths, size_t count,
           std::vector<std::string>& out) {
  if (!IsText(texts, count) || !IsText(lengths, count)) return false;
  for (size_t i = 0; i < count; ++i) {
    if (!IsText(texts[i], lengths[i])) return false;
    out.emplace_back(Text(texts[i], lengths[i]));
  }
  return true;
}

pawl_status Finish(const pawl_grammar& from, GrammarSource::Step step, Result<Grammar> made,
                   pawl_grammar** out, pawl_error** error) {
  if (!made.ok()) return Fail(error, made.error());
  GrammarSource source = from.source;
  source.steps.push_back(std::move(step));
  *out = new pawl_grammar{*std::move(made), from.vocabulary, std::move(source)};
  return PAWL_OK;
}

}  // namespace
}  // namespace pawl::capi

using namespace pawl;        // NOLINT: this file is the C face of that namespace
using namespace pawl::capi;  // NOLINT

extern "C" {

pawl_status pawl_grammar_infill(const pawl_grammar* grammar, const char* prefix,
                                size_t prefix_length, const char* const* after,
                                const size_t* after_lengths, size_t after_count, pawl_grammar** out,
                                pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (grammar == nullptr) return Null(error, "grammar");
    if (out == nullptr) return Null(error, "out");
    if (!IsText(prefix, prefix_length)) return Null(error, "prefix");
    Infilling infilling{std::string(Text(prefix, prefix_length)), {}};
    if (!Texts(after, after_lengths, after_count, infilling.after)) return Null(error, "after");
    if (after_count == 0) infilling.after = {""};
    GrammarSource::Step step{"infill", {infilling.prefix}};
    step.texts.insert(step.texts.end(), infilling.after.begin(), infilling.after.end());
    return Finish(*grammar, std::move(step), Infill(grammar->grammar, infilling), out, error);
  });
}

pawl_status pawl_grammar_require_words(const pawl_grammar* grammar, const char* const* words,
                                       const size_t* lengths, size_t count, pawl_grammar** out,
                                       pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (grammar == nullptr) return Null(error, "grammar");
    if (out == nullptr) return Null(error, "out");
    GrammarSource::Step step{"words", {}};
    if (!Texts(words, lengths, count, step.texts)) return Null(error, "words");
    Result<Grammar> made = RequireWords(grammar->grammar, step.texts);
    return Finish(*grammar, std::move(step), std::move(made), out, error);
  });
}

pawl_status pawl_grammar_intersect(const pawl_grammar* a, const pawl_grammar* b, pawl_grammar** out,
                                   pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (a == nullptr) return Null(error, "a");
    if (b == nullptr) return Null(error, "b");
    if (out == nullptr) return Null(error, "out");
    if (a->vocabulary->fingerprint != b->vocabulary->fingerprint)
      return BadArgument(error, "b", "has another vocabulary");
    return Finish(*a, {"intersect", {Serialize(b->source, b->vocabulary->fingerprint)}},
                  Intersect(a->grammar, b->grammar), out, error);
  });
}

pawl_status pawl_grammar_complement(const pawl_grammar* grammar, pawl_grammar** out,
                                    pawl_error** error) {
  return Guard(error, [&]() -> pawl_status {
    if (grammar == nullptr) return Null(error, "grammar");
    if (out == nullptr) return Null(error, "out");
    return Finish(*grammar, {"complement", {}}, Complement(grammar->grammar), out, error);
  });
}

}  // extern "C"
