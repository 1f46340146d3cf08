// Arbitrary bytes as calls of the C library: the first names the kind of grammar, the second the
// length of its text, the rest one call each. Masks must agree with accepting, a clone with what it
// was cloned from, and a roll back must lead where the matcher stood; nothing may leak or crash.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/pawl.h"
#include "tests/fuzz/fuzz_util.h"

namespace {

using pawl::fuzz::Require;

constexpr int32_t kSize = 259;  // bytes, "ab", end, and a second end
constexpr size_t kWords = 9;
using Row = std::array<uint32_t, kWords>;

const pawl_vocabulary* Vocabulary() {
  static const pawl_vocabulary* made = [] {
    static std::vector<std::string> texts;
    for (int b = 0; b < 256; ++b) texts.emplace_back(1, static_cast<char>(b));
    texts.insert(texts.end(), {"ab", "<end>", "<eot>"});
    std::vector<const char*> tokens;
    std::vector<size_t> lengths;
    for (const std::string& text : texts) {
      tokens.push_back(text.data());
      lengths.push_back(text.size());
    }
    const int32_t ends[] = {257, 258};
    pawl_vocabulary_tokens init;
    pawl_vocabulary_tokens_init(&init, sizeof init);
    init.tokens = tokens.data();
    init.lengths = lengths.data();
    init.count = tokens.size();
    init.end_tokens = ends;
    init.end_token_count = 2;
    pawl_vocabulary* vocabulary = nullptr;
    Require(pawl_vocabulary_create(&init, &vocabulary, nullptr) == PAWL_OK, "vocabulary", "");
    return vocabulary;
  }();
  return made;
}

Row MaskOf(const pawl_matcher* matcher, std::string_view input) {
  Row row;
  row.fill(~0u);
  const pawl_status status = pawl_matcher_fill_mask(matcher, row.data(), row.size());
  Require(status == (row == Row{} ? PAWL_ENDED : PAWL_OK), "the status of a mask", input);
  return row;
}

bool Bit(const Row& row, int32_t token) {
  return ((row[static_cast<size_t>(token) / 32] >> (token % 32)) & 1) != 0;
}

void Drive(pawl_matcher* matcher, std::string_view calls, std::string_view input) {
  std::vector<Row> masks = {MaskOf(matcher, input)};  // of every step so far
  constexpr size_t kMostCalls = 64;
  for (const char c : calls.substr(0, kMostCalls)) {
    const auto call = static_cast<unsigned char>(c);
    if (call < 0xE0) {  // takes the first allowed token from here on
      int32_t token = call;
      while (token < kSize - 1 && !Bit(masks.back(), token)) ++token;
      const bool allowed = Bit(masks.back(), token);
      size_t taken = 0;
      Require(pawl_matcher_validate_tokens(matcher, &token, 1, &taken) == PAWL_OK, "valid", input);
      const pawl_status status = pawl_matcher_accept(matcher, token);
      Require(status == (allowed ? PAWL_OK : PAWL_REFUSED), "mask and accept disagree", input);
      Require(taken == (allowed ? 1u : 0u), "mask and validate disagree", input);
      if (allowed) masks.push_back(MaskOf(matcher, input));
    } else if (call < 0xF0) {
      const size_t steps = call & 3;
      const bool enough = steps < masks.size();
      Require(pawl_matcher_rollback(matcher, steps) == (enough ? PAWL_OK : PAWL_BAD_ARGUMENT),
              "roll back", input);
      if (enough) masks.resize(masks.size() - steps);
      Require(MaskOf(matcher, input) == masks.back(), "not where it was", input);
    } else if (call < 0xF4) {
      pawl_matcher* clone = nullptr;
      Require(pawl_matcher_clone(matcher, &clone) == PAWL_OK, "clone", input);
      Require(pawl_matcher_reset(clone) == PAWL_OK && MaskOf(clone, input) == masks.front(),
              "a clone does not start over", input);
      pawl_matcher_free(clone);
    } else if (call < 0xF8) {
      std::array<int32_t, 32> tokens;
      size_t count = 0;
      size_t taken = 0;
      pawl_matcher_forced_tokens(matcher, tokens.data(), tokens.size(), &count);
      pawl_matcher_validate_tokens(matcher, tokens.data(), count, &taken);
      Require(taken == count, "forced tokens are refused", input);
    } else {
      // A chain of drafts, and a branch: the same masks as one after another.
      const int32_t tokens[] = {-1, 'a', 256, call};
      const int32_t parents[] = {-1, 0, 1, 0};
      std::array<Row, 4> rows;
      std::array<uint8_t, 4> fits;
      Require(pawl_matcher_fill_tree(matcher, tokens, parents, 4, rows[0].data(), kWords,
                                     fits.data(), nullptr, nullptr) == PAWL_OK,
              "tree", input);
      Require(rows[0] == masks.back(), "the root of a tree has another mask", input);
      Require(fits[1] == static_cast<uint8_t>(Bit(rows[0], 'a')), "a draft fits or not", input);
      Require(fits[2] == static_cast<uint8_t>(fits[1] != 0 && Bit(rows[1], 256)), "the next one",
              input);
    }
    Require(pawl_matcher_steps(matcher) + 1 == masks.size(), "steps", input);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const char* const kinds[] = {"json_schema", "regex", "choice"};
  const char* kind = kinds[data[0] % 3];
  const std::string_view text = input.substr(2, data[1]);
  pawl_compiler* compiler = nullptr;
  Require(pawl_compiler_create(Vocabulary(), nullptr, &compiler, nullptr) == PAWL_OK, "c", input);
  pawl_grammar* grammar = nullptr;
  pawl_error* error = nullptr;
  if (pawl_compile(compiler, kind, text.data(), text.size(), nullptr, &grammar, &error) ==
      PAWL_OK) {
    std::string bytes;
    size_t length = 0;
    pawl_grammar_serialize(grammar, nullptr, 0, &length, nullptr);
    bytes.resize(length);
    pawl_grammar_serialize(grammar, bytes.data(), length, &length, nullptr);
    pawl_grammar* back = nullptr;
    Require(pawl_grammar_deserialize(compiler, bytes.data(), length, &back, nullptr) == PAWL_OK,
            "a grammar does not come back", input);
    pawl_matcher* matcher = nullptr;
    Require(pawl_matcher_create(back, nullptr, &matcher, nullptr) == PAWL_OK, "matcher", input);
    pawl_grammar_free(back);
    Drive(matcher, input.substr(2 + text.size()), input);
    pawl_matcher_free(matcher);
    pawl_grammar_free(grammar);
  } else {
    Require(pawl_error_status(error) != PAWL_INTERNAL && pawl_error_message(error)[0] != 0,
            pawl_error_message(error), input);
    pawl_error_free(error);
  }
  // As a serialized grammar the input is refused, whatever it is.
  Require(pawl_grammar_deserialize(compiler, input.data(), size, &grammar, nullptr) != PAWL_OK ||
              input.starts_with("PAWL-GRM"),
          "not a serialized grammar", input);
  pawl_compiler_free(compiler);
  return 0;
}
