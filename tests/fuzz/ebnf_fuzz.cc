// Arbitrary bytes as a grammar in EBNF and in GBNF: it is read, or refused with a place and a
// reason. What is read is printed in both languages; what is printed is read again and can be
// printed again.
#include <string>
#include <string_view>

#include "grammar/languages/ebnf.h"
#include "grammar/languages/print.h"
#include "tests/fuzz/fuzz_util.h"

namespace {

using Reader = pawl::Result<pawl::GrammarIr> (*)(std::string_view, const pawl::LanguageOptions&);

struct Language {
  pawl::GrammarLanguage language;
  Reader read;
};
constexpr Language kLanguages[] = {{pawl::GrammarLanguage::kEbnf, &pawl::ReadEbnf},
                                   {pawl::GrammarLanguage::kGbnf, &pawl::ReadGbnf}};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pawl;
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const Language& source : kLanguages) {
    Result<GrammarIr> ir = source.read(text, {});
    if (!ir.ok()) {
      fuzz::RequireGoodError(ir.error(), text);
      fuzz::Require(ir.error().code == ErrorCode::kLimit || !ir.error().place.empty(),
                    "an error without a place", text);
      continue;
    }
    fuzz::Require(ir->root() != GrammarIr::kNoRule, "a grammar without a root", text);
    for (const Language& target : kLanguages) {
      const Result<std::string> printed = PrintGrammar(*ir, target.language);
      if (!printed.ok()) {
        fuzz::RequireGoodError(printed.error(), text);
        continue;
      }
      Result<GrammarIr> again = target.read(*printed, {});
      if (!again.ok()) {
        fuzz::Require(again.error().code == ErrorCode::kLimit,
                      ("what was printed is refused: " + again.error().ToString()).c_str(),
                      text + "\n--\n" + *printed);
        continue;
      }
      const Result<std::string> second = PrintGrammar(*again, target.language);
      fuzz::Require(second.ok(), "what was read again cannot be printed", text);
    }
  }
  return 0;
}
