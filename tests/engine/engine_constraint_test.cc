// EngineRequest::constraint as a program outside of the tree sees it. The oracle is the grammar: a
// class that passes each question on to a grammar has to give the grammar's outputs.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/constraint.h"
#include "pawl/engine.h"
#include "tests/source_dir.h"

namespace pawl {
namespace {

Engine LoadFor(const std::string& drafts, int batch) {
  EngineOptions options;
  options.max_batch = batch;
  options.drafts.sources = drafts;
  Result<Engine> engine = Engine::Load(SourceDir() + "/models/tiny-extract", options);
  EXPECT_TRUE(engine.ok()) << engine.error().ToString();
  return *std::move(engine);
}

// Passes the questions on.
class Passes : public Constraint {
 public:
  Passes(std::shared_ptr<const Constraint> to, bool exact, int left)
      : to_(std::move(to)), exact_(exact), left_(left) {}
  Place Look() const override {
    if (left_ == 0) throw std::runtime_error("this place has no answer");
    return to_->Look();
  }
  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    auto next = to_->Advance(token);
    return next == nullptr ? nullptr : std::make_shared<Passes>(std::move(next), exact_, left_ - 1);
  }
  std::optional<std::vector<TokenId>> Completion(int most) const override {
    return to_->Completion(most);
  }
  bool exact() const override { return exact_; }

 private:
  const std::shared_ptr<const Constraint> to_;
  const bool exact_;
  const int left_;
};

// `left`: places until an exception.
std::shared_ptr<const Constraint> Passing(const Grammar& grammar, bool exact = true,
                                          int left = std::numeric_limits<int>::max()) {
  return std::make_shared<Passes>(MakeConstraint(grammar), exact, left);
}

const std::vector<std::string> kRegexes = {"(yes|no), [a-z ]{3,30}", "[0-9]{2,9}(\\.[0-9]+)?",
                                           "\\{\"total\":(null|[1-9][0-9]{0,5})\\}"};

EngineRequest RequestFor(uint64_t seed) {
  EngineRequest request;
  request.prompt = "The answer is ";
  request.options.max_tokens = 10 + static_cast<int>(seed % 20);
  request.options.sampling = {.temperature = 1.2f, .seed = seed};
  return request;
}

TEST(EngineConstraintTest, AClassThatPassesQuestionsOnGivesTheGrammarsOutputs) {
  for (const char* drafts : {"off", "auto"}) {
    for (const bool exact : {true, false}) {
      SCOPED_TRACE(std::string(drafts) + (exact ? " exact" : " inexact"));
      Engine engine = LoadFor(drafts, 4);
      const Compiler compiler(engine.vocabulary());
      std::vector<EngineRequest> grammars, own;
      for (uint64_t seed = 0; seed < 12; ++seed) {
        const Result<Grammar> grammar = compiler.CompileRegex(kRegexes[seed % kRegexes.size()]);
        ASSERT_TRUE(grammar.ok());
        grammars.push_back(RequestFor(seed));
        own.push_back(grammars.back());
        grammars.back().grammar = *grammar;
        own.back().constraint = Passing(*grammar, exact);
        // Nothing is forced where the mask is not exact.
        grammars.back().options.skip_forced = own.back().options.skip_forced = exact;
      }
      const auto expected = engine.GenerateAll(grammars);
      const auto got = engine.GenerateAll(own);
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_TRUE(expected[i].ok() && got[i].ok()) << i << got[i].error().ToString();
        EXPECT_EQ(got[i]->tokens, expected[i]->tokens) << i;
        EXPECT_EQ(got[i]->stop, expected[i]->stop) << i;
        EXPECT_EQ(got[i]->stats.forced_tokens, expected[i]->stats.forced_tokens) << i;
      }
    }
  }
}

TEST(EngineConstraintTest, AGrammarAndAConstraintBothHold) {
  Engine engine = LoadFor("off", 4);
  const Compiler compiler(engine.vocabulary());
  const Result<Grammar> one = compiler.CompileRegex("[a-m ]{4,40};");
  const Result<Grammar> other = compiler.CompileRegex("[h-z ;]{6,30}");
  const Result<Grammar> both = compiler.CompileRegex("[h-m ]{5,29};");
  ASSERT_TRUE(one.ok() && other.ok() && both.ok());
  int closed = 0;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    EngineRequest request = RequestFor(seed);
    request.grammar = *one;
    request.constraint = Passing(*other);
    const Result<Generation> output = engine.Generate(request);
    ASSERT_TRUE(output.ok()) << output.error().ToString();
    const auto end = both->Start().Advance(output->text);
    EXPECT_TRUE(end && end->accepting()) << output->text;
    closed += output->stop == StopReason::kClosed;
  }
  EXPECT_GT(closed, 0);
}

TEST(EngineConstraintTest, AnExceptionEndsItsOwnOutput) {
  Engine engine = LoadFor("off", 4);
  const Result<Grammar> grammar = Compiler(engine.vocabulary()).CompileRegex("[a-z]{8,40}");
  ASSERT_TRUE(grammar.ok());
  std::vector<EngineRequest> requests;
  for (int i = 0; i < 8; ++i) {
    requests.push_back(RequestFor(11));
    requests.back().constraint = i % 2 == 0 ? Passing(*grammar) : Passing(*grammar, true, i / 2);
  }
  const auto outputs = engine.GenerateAll(requests);
  for (size_t i = 0; i < outputs.size(); ++i) {
    ASSERT_EQ(outputs[i].ok(), i % 2 == 0) << i;
    if (i % 2 == 0) continue;
    EXPECT_EQ(outputs[i].error().place, "constraint");
    EXPECT_EQ(outputs[i].error().message, "this place has no answer");
  }
  // Too small a budget: both numbers, and the name of what the caller gave.
  const Result<Grammar> longer = Compiler(engine.vocabulary()).CompileRegex("[a-z]{200}");
  ASSERT_TRUE(longer.ok());
  requests[0].constraint = Passing(*longer);
  requests[0].options.max_tokens = 1;
  const Result<Generation> small = engine.Generate(requests[0]);
  ASSERT_FALSE(small.ok());
  EXPECT_EQ(small.error().place, "max_tokens");
  EXPECT_NE(small.error().message.find("but the budget is 1"), std::string::npos);
}

TEST(EngineConstraintTest, SamplersObeyIt) {
  Engine engine = LoadFor("off", 1);
  const Result<Grammar> grammar =
      Compiler(engine.vocabulary()).CompileRegex("(yes|no), [a-z ]{1,8}");
  ASSERT_TRUE(grammar.ok());
  for (const SamplerKind kind : {SamplerKind::kGcd, SamplerKind::kSmc, SamplerKind::kAsap}) {
    const SamplerOptions options{.sampler = kind, .n = 4, .seed = 3, .max_tokens = 12};
    EngineRequest request;
    request.prompt = "The answer is ";
    EngineRequest own = request;
    request.grammar = *grammar;
    own.constraint = Passing(*grammar);
    const Result<SamplerResult> expected = engine.Sample(request, options);
    const Result<SamplerResult> got = engine.Sample(own, options);
    ASSERT_TRUE(expected.ok() && got.ok()) << got.error().ToString();
    ASSERT_EQ(got->outputs.size(), expected->outputs.size());
    for (size_t i = 0; i < got->outputs.size(); ++i) {
      EXPECT_EQ(got->outputs[i].text, expected->outputs[i].text);
    }
    own.constraint = Passing(*grammar, false);
    const Result<SamplerResult> refused = engine.Sample(own, options);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(refused.error().place, "constraint");
  }
}

}  // namespace
}  // namespace pawl
