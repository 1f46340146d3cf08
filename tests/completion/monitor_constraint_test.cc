// Monitors in the decode loop: masks allow all that the monitors do, drafts change nothing, a
// grammar holds too.
#include "src/completion/monitor_constraint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pawl/compiler.h"
#include "src/completion/statement.h"
#include "src/decode/draft/drafter.h"
#include "src/model/model.h"
#include "src/text/tokenizer.h"
#include "tests/source_dir.h"
#include "tests/support/session.h"

namespace pawl::completion {
using namespace monitors;  // NOLINT(google-build-using-namespace)
namespace {

constexpr const char* kMemberPrefix =
    "interface Point { width: number; height: number; toText(): string }\n"
    "function f(p: Point, q: number[]) {\n  const label: string = p.toText();\n  return p.";

class ConstraintTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string folder = SourceDir() + "/models/tiny-extract";
    auto tokenizer = Tokenizer::FromFile(folder);
    ASSERT_TRUE(tokenizer.ok());
    tokenizer_ = *tokenizer;
    vocabulary_ = *tokenizer_->MakeVocabulary();
    auto model = LoadModel(folder, {.threads = 1});
    ASSERT_TRUE(model.ok()) << model.error().ToString();
    model_ = *std::move(model);
    host_ =
        std::make_shared<MonitorHost>(*MonitorSet::Make(Language::kTypeScript, {}), vocabulary_);
  }

  std::shared_ptr<Drafter> Draft() const {
    DraftSetting setting;
    setting.options.always = true;
    setting.options.nodes = 12;
    setting.vocabulary = vocabulary_;
    setting.vocabulary_size = model_->info().vocabulary_size;
    std::vector<Drafter::Named> more;
    more.emplace_back("guess", std::make_unique<GuessSource>());
    auto made = Drafter::Make(setting, {}, std::move(more));
    EXPECT_TRUE(made.ok());
    return *std::move(made);
  }

  // Guesses tokens that the mask allows, some of them refused when they are asked about.
  class GuessSource : public DraftSource {
   public:
    std::unique_ptr<DraftSession> Follow(const DraftRequest&) override {
      class Follower : public DraftSession {
       public:
        void Propose(const DraftPlace& place, DraftCursor&,
                     std::vector<DraftProposal>& out) override {
          const size_t seed = place.tokens.size() + place.path.size();
          for (size_t i = 0, t = 3 + seed * 37 % 1000; i < 6 && t < 2040; t += 11) {
            if (!place.Allows(static_cast<TokenId>(t))) continue;
            out.push_back({static_cast<TokenId>(t), 0, 0.3f});
            ++i;
          }
        }
      };
      return std::make_unique<Follower>();
    }
  };

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::unique_ptr<Model> model_;
  std::shared_ptr<MonitorHost> host_;
};

// Names that are not judged, by their first letter.
TEST_F(ConstraintTest, MasksAllowWhatIsNotJudged) {
  const NameTokens tokens(*vocabulary_);
  const monitors::Completions names{
      .names = {"Cat", "Cow"}, .private_free = true, .lower_free = true};
  for (const std::string begun : {"", "C"}) {
    NameTokens::Bits bits(tokens.text().size(), 0);
    tokens.AddNames(names, begun, true, bits);
    for (TokenId t = 0; t < vocabulary_->size(); ++t) {
      const std::string_view bytes = vocabulary_->bytes(t);
      if (vocabulary_->is_special(t) || bytes.empty()) continue;
      const std::string written = begun + std::string(bytes);
      bool allowed = begun.empty() && (bytes[0] == '_' || (bytes[0] >= 'a' && bytes[0] <= 'z'));
      for (const std::string& name : names.names) {
        allowed |= name.starts_with(written);
        allowed |= written.size() > name.size() && written.starts_with(name) &&
                   !monitors::NameByte(written[name.size()]);
      }
      EXPECT_EQ((bits[static_cast<size_t>(t) / 32] >> (t % 32) & 1) != 0, allowed)
          << '"' << begun << "\" \"" << bytes << '"';
    }
  }
}

// The slow method: each token's bytes are tried alone.
TEST_F(ConstraintTest, MasksAllowWhatTheMonitorsDo) {
  MonitorSet& set = *host_->set();
  for (const char* more : {"", "wid", "width", "width + q.", "width + q.len", "toText().",
                           "width; // p.", "width + \"p."}) {
    const std::string text = std::string(kMemberPrefix) + more;
    auto at = MonitorConstraint(host_, {.prefix = kMemberPrefix, .suffix = "", .must = ""});
    for (const TokenId token : vocabulary_->FewestTokens(more)) {
      at = at->Advance(token);
      ASSERT_NE(at, nullptr) << more;
    }
    EXPECT_FALSE(at->exact());
    const auto [mask, accepting, forced, temperature, limit] = at->Look();
    TextState state = set.Start(kMemberPrefix);
    ASSERT_TRUE(state.Add(more, nullptr)) << more;
    int allowed = 0;
    for (TokenId t = 0; t < vocabulary_->size(); ++t) {
      if (vocabulary_->is_special(t)) {
        EXPECT_EQ(mask->Allows(t), vocabulary_->is_end(t) && accepting) << more;
        continue;
      }
      TextState next = state;
      const bool right = next.Add(vocabulary_->bytes(t), nullptr);
      EXPECT_EQ(at->Advance(t) != nullptr, right) << more << " " << vocabulary_->bytes(t);
      EXPECT_TRUE(!right || mask->Allows(t)) << more << " " << vocabulary_->bytes(t);
      allowed += right;
    }
    EXPECT_GT(allowed, 0) << more;
    // Inside of a name the mask is nearly all that is to be known.
    if (std::string_view(more) == "wid") {
      EXPECT_LE(mask->count(), allowed + 4);
      EXPECT_FALSE(accepting);
      const std::optional<std::vector<TokenId>> closing = at->Completion(100);
      ASSERT_TRUE(closing.has_value());
      std::string closed = more;
      for (const TokenId t : *closing) closed += vocabulary_->bytes(t);
      EXPECT_EQ(closed, "width");
    }
  }
}

TEST_F(ConstraintTest, DraftsChangeNothing) {
  const std::vector<TokenId> prompt = tokenizer_->Encode(kMemberPrefix);
  int refused = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    GenerateOptions options;
    options.max_tokens = 24;
    options.at_budget = AtBudget::kCut;
    options.sampling.seed = seed;
    options.sampling.temperature = seed % 2 == 0 ? 1.5f : 0.0f;
    if (seed % 3 == 2) options.sampling.top_k = 50;
    const uint64_t before = host_->refused();
    const auto run = [&](std::shared_ptr<Drafter> drafter) {
      Session session(*model_, vocabulary_, {}, std::move(drafter));
      return session.Generate(
          prompt, MonitorConstraint(host_, {.prefix = kMemberPrefix, .suffix = "", .must = ""}),
          options);
    };
    const auto plain = run(nullptr);
    const auto drafted = run(Draft());
    ASSERT_TRUE(plain.ok()) << plain.error().ToString();
    ASSERT_TRUE(drafted.ok()) << drafted.error().ToString();
    EXPECT_EQ(plain->tokens, drafted->tokens);
    EXPECT_EQ(plain->text, drafted->text);
    EXPECT_GT(drafted->stats.drafts.rows, 0);
    refused += static_cast<int>(host_->refused() - before);
    // The text is one that the monitors let be written.
    TextState state = host_->set()->Start(kMemberPrefix);
    EXPECT_TRUE(state.Add(plain->text, nullptr)) << plain->text;
  }
  EXPECT_GT(refused, 0);
}

TEST_F(ConstraintTest, AGrammarHoldsToo) {
  auto compiler = Compiler(vocabulary_);
  const auto grammar = compiler.CompileRegex("[a-z]{3,12};");
  ASSERT_TRUE(grammar.ok());
  const std::vector<TokenId> prompt = tokenizer_->Encode(kMemberPrefix);
  for (uint64_t seed = 0; seed < 4; ++seed) {
    GenerateOptions options;
    options.max_tokens = 20;
    options.sampling.seed = seed;
    options.sampling.temperature = 1;
    Session session(*model_, vocabulary_);
    const auto made =
        session.Generate(prompt,
                         MonitorConstraint(host_, {.prefix = kMemberPrefix,
                                                   .suffix = "",
                                                   .must = "",
                                                   .grammar = MakeConstraint(*grammar)}),
                         options);
    ASSERT_TRUE(made.ok()) << made.error().ToString();
    // The members in small letters.
    EXPECT_TRUE(made->text == "width;" || made->text == "height;" || made->text == "constructor;")
        << made->text;
  }
}

TEST_F(ConstraintTest, WhatHasToComeComes) {
  const std::vector<TokenId> prompt = tokenizer_->Encode(kMemberPrefix);
  GenerateOptions options;
  options.max_tokens = 12;
  options.at_budget = AtBudget::kCut;
  Session session(*model_, vocabulary_);
  const auto made = session.Generate(
      prompt, MonitorConstraint(host_, {.prefix = kMemberPrefix, .suffix = "", .must = "hei"}),
      options);
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(made->text.starts_with("height")) << made->text;
  EXPECT_FALSE(MonitorsAllow(*host_, {.prefix = kMemberPrefix, .suffix = "", .must = "depth"}));
  EXPECT_TRUE(MonitorsAllow(*host_, {.prefix = kMemberPrefix, .suffix = "", .must = "dept"}) ==
              MonitorsAllow(*host_, {.prefix = kMemberPrefix, .suffix = "", .must = "zzz"}));
}

TEST(StatementEndTest, WhereStatementsEnd) {
  const auto cut = [](Language language, const std::string& prefix, const std::string& text) {
    // The same for any way in which the bytes come.
    const size_t whole = StatementEnd(language, prefix).Take(text);
    StatementEnd one(language, prefix);
    size_t by_bytes = std::string::npos;
    for (size_t i = 0; i < text.size() && by_bytes == std::string::npos; ++i) {
      const size_t stop = one.Take(std::string_view(text).substr(i, 1));
      if (stop != std::string::npos) by_bytes = i + stop;
    }
    EXPECT_EQ(whole, by_bytes) << text;
    return text.substr(0, whole);
  };
  const Language ts = Language::kTypeScript, py = Language::kPython, cpp = Language::kCpp;
  EXPECT_EQ(cut(ts, "const a = f(", "x);\nb();"), "x");
  EXPECT_EQ(cut(ts, "const a = ", "f(x);\nb();"), "f(x);");
  EXPECT_EQ(cut(ts, "const a = ", "x +\n  y\nb();"), "x +\n  y");
  EXPECT_EQ(cut(ts, "", "if (a) {\n  b();\n}\nc();"), "if (a) {\n  b();\n}");
  EXPECT_EQ(cut(ts, "f(() => { a.", "b; c; } )"), "b;");
  EXPECT_EQ(cut(ts, "const s = ", "\"a;\\n\" + b // c;\nd"), "\"a;\\n\" + b // c;");
  EXPECT_EQ(cut(cpp, "int x = p->", "size();\nreturn"), "size();");
  EXPECT_EQ(cut(py, "x = ", "f(1,\n  2)\ny = 3"), "f(1,\n  2)");
  EXPECT_EQ(cut(py, "    ", "if a:\n        b()\n        c()\n    d()"),
            "if a:\n        b()\n        c()\n    ");
  EXPECT_EQ(cut(py, "x = ", "1 # a: b\ny"), "1 # a: b");
}

}  // namespace
}  // namespace pawl::completion
