// What the tests of the grammar languages share.
#ifndef PAWL_TESTS_GRAMMAR_BNF_TEST_UTIL_H_
#define PAWL_TESTS_GRAMMAR_BNF_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/languages/language_options.h"
#include "tests/grammar/cfg_reference.h"

namespace pawl {

using GrammarReader = Result<GrammarIr> (*)(std::string_view, const LanguageOptions&);

inline void ExpectLanguage(GrammarReader read, std::string_view text,
                           const std::vector<std::string>& accepted,
                           const std::vector<std::string>& refused,
                           const std::string& root = "root") {
  LanguageOptions options;
  options.root = root;
  Result<GrammarIr> ir = read(text, options);
  ASSERT_TRUE(ir.ok()) << text << "\n" << ir.error().ToString();
  CfgReference reference(*ir);
  for (const std::string& word : accepted) {
    EXPECT_TRUE(reference.Accepts(word)) << text << "\nrefuses " << word;
  }
  for (const std::string& word : refused) {
    EXPECT_FALSE(reference.Accepts(word)) << text << "\naccepts " << word;
  }
}

// The error is "place: message", from the beginning.
inline void ExpectRefused(GrammarReader read, std::string_view text, std::string_view error) {
  const Result<GrammarIr> ir = read(text, {});
  ASSERT_FALSE(ir.ok()) << text;
  EXPECT_EQ(ir.error().ToString().substr(0, error.size()), error) << text;
}

}  // namespace pawl

#endif  // PAWL_TESTS_GRAMMAR_BNF_TEST_UTIL_H_
