// Lists of names: the probabilities against all spellings tried one by one, the names against the
// monitors, and what stops a list.
#include "src/completion/name_list.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "src/base/stop_scope.h"
#include "src/completion/completion.h"
#include "src/completion/name_ranks.h"
#include "src/engine/engine_parts.h"
#include "tests/source_dir.h"
#include "tests/support/toy_model.h"

namespace pawl::completion {
namespace {

using monitors::Language;
using monitors::NameByte;
using DK = monitors::NameDetail::Kind;

uint64_t HashOfTokens(uint64_t seed, std::span<const TokenId> tokens) {
  uint64_t hash = seed;
  for (const TokenId t : tokens) hash = (hash ^ static_cast<uint64_t>(t)) * 1099511628211ULL;
  return hash;
}

float HashedLogit(uint64_t hash, size_t token) {
  uint64_t x = (hash ^ token) * 0x9E3779B97F4A7C15ULL;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9ULL;
  return static_cast<float>(x >> 40) / static_cast<float>(1 << 22);
}

std::unique_ptr<ToyModel> ListModel(int size, uint64_t seed) {
  return std::make_unique<ToyModel>(ToyOptions{.vocabulary_size = size, .context_length = 2000},
                                    [seed](const ToyModel::Place& place, std::span<float> out) {
                                      const uint64_t hash = HashOfTokens(seed, place.tokens);
                                      for (size_t t = 0; t < out.size(); ++t)
                                        out[t] = HashedLogit(hash, t);
                                    });
}

class NameListTest : public testing::Test {
 protected:
  void SetUp() override {
    auto tokenizer = Tokenizer::FromFile(SourceDir() + "/models/tiny-extract");
    ASSERT_TRUE(tokenizer.ok());
    tokenizer_ = *tokenizer;
    vocabulary_ = *tokenizer_->MakeVocabulary();
  }
  CodeCompleter Completer(std::unique_ptr<ToyModel> model) {
    return CodeCompleter(EngineAccess::Make(
        {LoadedModel::Of({tokenizer_, vocabulary_}, std::move(model)), nullptr}, 1));
  }
  // All spellings, token by token: after each the tokens that leave a name possible.
  void Spell(uint64_t seed, std::vector<TokenId> tokens, const std::string& text, double mass,
             const std::vector<std::string>& names, std::map<std::string, double>& out) const {
    std::vector<std::pair<TokenId, double>> allowed;
    const uint64_t hash = HashOfTokens(seed, tokens);
    double sum = 0;
    for (TokenId t = 0; t < vocabulary_->size(); ++t) {
      const bool whole = std::ranges::find(names, text) != names.end();
      bool may = false;
      if (vocabulary_->is_special(t)) {
        may = vocabulary_->is_end(t) && whole;
      } else {
        const std::string with = text + std::string(vocabulary_->bytes(t));
        may = with != text && std::ranges::any_of(names, [&](const std::string& name) {
                return name.starts_with(with) ||
                       (with.starts_with(name) && !NameByte(with[name.size()]));
              });
      }
      if (!may) continue;
      const double weight = std::exp(HashedLogit(hash, static_cast<size_t>(t)));
      allowed.emplace_back(t, weight);
      sum += weight;
    }
    for (const auto& [t, weight] : allowed) {
      const double part = mass * weight / sum;
      const std::string with =
          vocabulary_->is_special(t) ? text + "\n" : text + std::string(vocabulary_->bytes(t));
      const auto begins = [&](const std::string& name) { return name.starts_with(with); };
      if (std::ranges::none_of(names, begins)) {  // it goes on behind a name
        for (const std::string& name : names) {
          if (with.starts_with(name) && !NameByte(with[name.size()])) out[name] += part;
        }
      } else if (std::ranges::count_if(names, begins) == 1 &&
                 std::ranges::find(names, with) != names.end()) {
        out[with] += part;
      } else {
        std::vector<TokenId> longer = tokens;
        longer.push_back(t);
        Spell(seed, longer, with, part, names, out);
      }
    }
  }
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const Vocabulary> vocabulary_;
};

TEST_F(NameListTest, ProbabilitiesAreSumsOverAllSpellings) {
  const NameSpellings spellings(*vocabulary_);
  const std::vector<std::vector<std::string>> lists = {
      {"at", "atan", "name", "names"}, {" a", " add", " on"}, {"id"}, {"é", "éa"}};
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    for (const std::vector<std::string>& names : lists) {
      const std::unique_ptr<ToyModel> model = ListModel(vocabulary_->size(), seed);
      RankOptions options;
      options.missing = 0;
      options.most_rows = options.most_calls = 100'000;
      options.capacity = 100;
      const std::vector<TokenId> prompt = {5, 17};
      const Result<NameRanks> ranks = RankNames(*model, spellings, prompt, names, options);
      ASSERT_TRUE(ranks.ok()) << ranks.error().ToString();
      std::map<std::string, double> all;
      if (names.size() == 1) all[names[0]] = 1;
      if (names.size() > 1) Spell(seed, prompt, "", 1, names, all);
      for (size_t i = 0; i < names.size(); ++i)
        EXPECT_NEAR(ranks->probabilities[i], all[names[i]], 1e-6) << names[i];
      EXPECT_EQ(model->alive, 0);
      // Cut short: what is missing bounds the error.
      options.most_calls = 1;
      const Result<NameRanks> cut = RankNames(*model, spellings, prompt, names, options);
      ASSERT_TRUE(cut.ok());
      double sum = 0;
      for (size_t i = 0; i < names.size(); ++i) {
        EXPECT_NEAR(cut->probabilities[i], all[names[i]], cut->missing + 1e-6);
        sum += cut->probabilities[i];
      }
      EXPECT_NEAR(sum, 1, 1e-9);
      EXPECT_LE(cut->calls, 1);
    }
  }
}

std::vector<std::string> Labels(const NameList& list) {
  std::vector<std::string> out;
  for (const ListedName& name : list.names) out.push_back(name.name);
  std::ranges::sort(out);
  return out;
}

const ListedName* Find(const NameList& list, std::string_view name) {
  const auto found = std::ranges::find(list.names, name, &ListedName::name);
  return found == list.names.end() ? nullptr : &*found;
}

TEST_F(NameListTest, MembersWithKindsTypesAndDocumentation) {
  CodeCompleter completer = Completer(ListModel(vocabulary_->size(), 3));
  struct Case {
    Language language;
    std::string prefix;
    std::string name;
    DK kind;
    std::string detail, documentation;
  };
  const std::string python =
      "class Cart:\n    def total(self, tax: float = 0) -> float:\n        \"\"\"The sum.\n\n"
      "        With the tax.\n        \"\"\"\n        return 1.0\n\n\ncart = Cart()\ncart.";
  const std::string ts =
      "interface Cart {\n  /** The sum.\n   * With the tax. */\n  total(tax: number): string;\n"
      "  readonly size: number;\n}\nfunction f(cart: Cart) { return cart.";
  const std::string java =
      "class Cart {\n  /**\n   * The sum.\n   */\n  double total(int tax, String... names) "
      "{ return 1; }\n  int size;\n}\nclass B { void f(Cart cart) { cart.";
  for (const Case& c :
       std::vector<Case>{{Language::kPython, python, "total", DK::kMethod,
                          "def total(self, tax: float = 0) -> float", "The sum.\n\nWith the tax."},
                         {Language::kTypeScript, ts, "total", DK::kMethod, "(number) => string",
                          "The sum.\nWith the tax."},
                         {Language::kTypeScript, ts, "size", DK::kProperty, "number", ""},
                         {Language::kJava, java, "total", DK::kMethod,
                          "double total(int, String...)", "The sum."},
                         {Language::kJava, java, "size", DK::kField, "int", ""}}) {
    const auto list = completer.Names({.prefix = c.prefix, .language = c.language});
    ASSERT_TRUE(list.ok()) << list.error().ToString();
    // An object of a class of one's own takes any attribute in Python, but no list proposes new
    // ones.
    EXPECT_FALSE(list->open) << list->why;
    const ListedName* const found = Find(*list, c.name);
    ASSERT_NE(found, nullptr) << c.name;
    EXPECT_EQ(found->detail.kind, c.kind) << c.name;
    EXPECT_EQ(found->detail.detail, c.detail);
    EXPECT_EQ(found->detail.documentation, c.documentation);
    // In Python those that begin with "_" come last.
    const bool python_names = c.language == Language::kPython;
    EXPECT_TRUE(std::ranges::is_sorted(list->names, {}, [&](const ListedName& one) {
      return std::pair(python_names ? PrivacyOf(one.name) : 0, -one.probability);
    }));
    double sum = 0;
    for (const ListedName& name : list->names) sum += name.probability;
    EXPECT_NEAR(sum, 1, 1e-6);
    // What is begun leaves the names that begin so.
    const auto begun =
        completer.Names({.prefix = c.prefix + c.name.substr(0, 2), .language = c.language});
    ASSERT_TRUE(begun.ok());
    EXPECT_EQ(begun->begun, 2U);
    EXPECT_NE(Find(*begun, c.name), nullptr);
    for (const ListedName& name : begun->names)
      EXPECT_TRUE(name.name.starts_with(c.name.substr(0, 2))) << name.name;
  }
}

TEST_F(NameListTest, OpenPlacesHaveTheTextsNamesAndEmptyOnesSayWhy) {
  CodeCompleter completer = Completer(ListModel(vocabulary_->size(), 4));
  const auto names = [&](std::string prefix, std::string suffix = "", size_t most = 100) {
    auto list = completer.Names(
        {.prefix = std::move(prefix), .suffix = std::move(suffix), .language = Language::kPython},
        {.most = most});
    EXPECT_TRUE(list.ok());
    return list.ok() ? *list : NameList{};
  };
  // The type of `x` is not known: members that the text names.
  const NameList open = names("def f(x, ys):\n    x.alpha = ys.beta\n    x.", "\n    ys.gamma()\n");
  EXPECT_TRUE(open.open);
  EXPECT_EQ(open.why, "other names may stand here than those that are known");
  EXPECT_EQ(Labels(open), (std::vector<std::string>{"alpha", "beta", "gamma"}));
  // No member: the other names. A name that the cursor cuts is none.
  const NameList plain = names("alpha = 1  # comment word\ntext = 'word'\nal", "pine = 2\n");
  EXPECT_EQ(Labels(plain), (std::vector<std::string>{"alpha"}));
  EXPECT_EQ(plain.begun, 2U);
  const NameList cut = names("aa = ab = ac = 1\na", "", 2);
  EXPECT_TRUE(cut.cut);
  EXPECT_EQ(cut.names.size(), 2U);
  const std::pair<std::string, std::string> empty[] = {
      {"# a comment. ", "the place is in a comment or a string"},
      {"s = 'in a string. ", "the place is in a comment or a string"},
      {"x = 12", "the place is in a number"},
      {"s = 'a'\ns.zzz", "none of the 81 names that may stand here begins with \"zzz\""}};
  for (const auto& [prefix, why] : empty) {
    const NameList list = names(prefix);
    EXPECT_TRUE(list.names.empty()) << prefix;
    const auto number = why.find("81");
    if (number == std::string::npos) {
      EXPECT_EQ(list.why, why);
    } else {
      EXPECT_TRUE(list.why.starts_with("none of the ") && list.why.ends_with("\"zzz\""))
          << list.why;
    }
  }
  const auto unknown = completer.Names({.prefix = "fn main() { let abc = 1; a"});
  ASSERT_TRUE(unknown.ok());
  EXPECT_EQ(unknown->why, "the language of the file is not known");
}

// A file of the repository that another one imports changes: the next list has what it says now.
TEST_F(NameListTest, ChangedFilesOfTheRepositoryAreReadAgain) {
  namespace fs = std::filesystem;
  const std::string folder = testing::TempDir() + "/pawl_name_list_" + std::to_string(::getpid());
  fs::create_directories(folder);
  struct Case {
    Language language;
    std::string file, text, with, prefix;
  };
  for (const Case& c : std::vector<Case>{
           {Language::kPython, "shop.py", "before: int = 1\n", "after: int = 1\n",
            "import shop\nprint(shop."},
           {Language::kTypeScript, "shop.ts", "export interface Shop { before: number }\n",
            "export interface Shop { after: number }\n",
            "import { Shop } from './shop';\nfunction f(shop: Shop) { return shop."},
           {Language::kJava, "Shop.java", "public class Shop { public int before; }\n",
            "public class Shop { public int after; }\n",
            "class B { int f(Shop shop) { return shop."}}) {
    CodeCompleter completer = Completer(ListModel(vocabulary_->size(), 6));
    const std::string file = folder + "/" + c.file;
    const auto names = [&] {
      const auto list =
          completer.Names({.prefix = c.prefix,
                           .language = c.language,
                           .repo = folder,
                           .file = folder + "/main" + fs::path(c.file).extension().string()});
      EXPECT_TRUE(list.ok());
      return list.ok() ? *list : NameList{};
    };
    std::ofstream(file) << c.text;
    EXPECT_NE(Find(names(), "before"), nullptr) << c.file;
    std::ofstream(file) << c.with;
    completer.FilesChanged({file, folder + "/none.py", "/elsewhere/x.java"});
    const NameList now = names();
    EXPECT_NE(Find(now, "after"), nullptr) << c.file << " " << now.why;
    EXPECT_EQ(Find(now, "before"), nullptr) << c.file;
  }
  fs::remove_all(folder);
}

// The flag is set in the middle of a call: the list and the completion make no further one.
TEST_F(NameListTest, ACancelledRequestEndsWithTheCallUnderWay) {
  std::string prefix = "s = 'a'\n";
  for (int i = 0; i < 200; ++i) prefix += "value" + std::to_string(i) + " = s\n";
  prefix += "s.";
  for (const bool list : {true, false}) {
    for (const int at : {1, 2, 3}) {
      std::unique_ptr<ToyModel> model = ListModel(vocabulary_->size(), 5);
      ToyModel* const toy = model.get();
      std::atomic<bool> stop{false};
      toy->before = [&](std::span<const Row>) -> Status {
        if (toy->calls == at) stop = true;
        return {};
      };
      CodeCompleter completer = Completer(std::move(model));
      CompletionRequest request{.prefix = prefix, .language = Language::kPython};
      request.stop = &stop;
      if (list) {
        EXPECT_THROW((void)completer.Names(request, {.stop = &stop}), Stopped);
      } else {
        EXPECT_TRUE(completer.Complete(request).ok());
      }
      EXPECT_LE(toy->calls, at + 1) << list;
      EXPECT_TRUE(stop);
      // And the next one is answered.
      stop = false;
      toy->before = nullptr;
      EXPECT_TRUE(completer.Names(request, {.stop = &stop}).ok());
      EXPECT_TRUE(completer.Complete(request).ok());
    }
  }
}

}  // namespace
}  // namespace pawl::completion
