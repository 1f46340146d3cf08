// Drafts change nothing: every output with drafts is the one without, for every source, also for
// sources that are always right, always wrong or random; over tiny models of three families, all
// kinds of constraints, temperatures, penalties, budgets and callbacks, alone and in batches.
//
// PAWL_DRAFT_SEEDS sets how many seeds a cell has, PAWL_DRAFT_ALL_SEEDS how many for all sources
// together; the default keeps the suite short.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "grammar/grammar_access.h"
#include "pawl/compiler.h"
#include "src/decode/batch.h"
#include "src/decode/draft/drafter.h"
#include "src/decode/draft/model_source.h"
#include "src/decode/text_preference.h"
#include "src/model/draft_head.h"
#include "src/model/model.h"
#include "src/model/random_weights.h"
#include "tests/decode/sixteen_model.h"
#include "tests/model/model_test_util.h"
#include "tests/support/session.h"
#include "tests/support/vocabularies.h"

namespace pawl {
namespace {

constexpr TokenId kEnd = 2;

int SeedsFromEnvironment(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::max(1, std::atoi(value)) : otherwise;
}

// All of ASCII that is printed and some longer tokens: 130, as the smallest models have.
std::shared_ptr<const Vocabulary> DraftVocabulary() {
  std::vector<std::string> tokens =
      Joined({"<pad>", "<s>", "</s>"},
             Letters(' ', '~', {"\n",   "{\"", "\":",   "\",",  "\"}", "na",   "name",  "me",
                                "true", "fal", "se",    "nu",   "ll",  "red",  "green", "blue",
                                "co",   "lor", "\":\"", "\":{", "siz", "size", "er",    "in",
                                "th",   "10",  "00",    "]}",   "[{",  "},",   ",\"",   "<a>"}));
  EXPECT_EQ(tokens.size(), 130u);
  return VocabularyOf(std::move(tokens), {"<pad>", "<s>"}, {"</s>"});
}

Encoder LongestFirst(const std::shared_ptr<const Vocabulary>& vocabulary) {
  return [vocabulary](std::string_view text) {
    std::vector<TokenId> tokens;
    while (!text.empty()) {
      const TokenId token = vocabulary->LongestPrefix(text);
      if (token == kNoToken) return std::vector<TokenId>();
      tokens.push_back(token);
      text.remove_prefix(vocabulary->bytes(token).size());
    }
    return tokens;
  };
}

std::shared_ptr<const Constraint> Make(const Compiler& compiler, const std::string& kind) {
  Result<Grammar> grammar = Error{};
  if (kind == "none") return nullptr;
  if (kind == "schema") {
    grammar = compiler.CompileJsonSchema(R"({"type":"object","properties":{
      "name":{"type":"string","maxLength":9},"color":{"enum":["red","green","blue"]},
      "size":{"type":"integer"},"sizes":{"type":"array","items":{"enum":["red",10,true,null]},
      "maxItems":4}},"required":["name","color","sizes"],"additionalProperties":false})");
  } else if (kind == "lark") {
    grammar = compiler.CompileGrammar("start: (\"name\" \"=\" /[a-z]{1,4}/ \";\"){1,5}",
                                      GrammarLanguage::kLark);
  } else if (kind == "regex") {
    grammar = compiler.CompileRegex("(red|green|blue)(,(red|green|blue|[0-9]{1,3})){2,6}");
  } else {
    grammar = compiler.CompileStructuralTag(
        R"({"type":"structural_tag","format":{"type":"sequence","elements":[
        {"type":"tag","begin":"<a>","content":{"type":"regex","pattern":"[a-z ]{0,12}"},
        "end":"</a>"},{"type":"json_schema","json_schema":{"type":"object","properties":{
        "name":{"enum":["red","green"]}},"required":["name"],"additionalProperties":false}}]}})");
  }
  EXPECT_TRUE(grammar.ok()) << kind << ": " << grammar.error().ToString();
  return MakeConstraint(*grammar);
}

// Knows what comes, and drafts that, or anything but that.
class KnowingSource : public DraftSource {
 public:
  using Known = std::map<uint64_t, std::vector<TokenId>>;  // outputs by seed
  KnowingSource(const Known& known, bool right) : known_(known), right_(right) {}

  std::unique_ptr<DraftSession> Follow(const DraftRequest& request) override {
    class Follower : public DraftSession {
     public:
      Follower(const std::vector<TokenId>& output, bool right) : output_(output), right_(right) {}
      void Propose(const DraftPlace& place, DraftCursor&,
                   std::vector<DraftProposal>& out) override {
        const size_t at = place.tokens.size() - place.prompt + place.path.size();
        const TokenId truth = at < output_.size() ? output_[at] : kEnd;
        if (right_) out.push_back({truth, 0, 0.9f});
        for (TokenId t = 3, n = 0; !right_ && t < 130 && n < 3; ++t) {
          if (t == truth || !place.Allows(t)) continue;
          out.push_back({t, 0, 0.9f});
          ++n;
        }
      }

     private:
      const std::vector<TokenId>& output_;
      bool right_;
    };
    return std::make_unique<Follower>(known_.at(request.options->sampling.seed), right_);
  }

 private:
  const Known& known_;
  bool right_;
};

struct Case {
  uint64_t seed;
  float temperature;
};

// One of the newer stages, or none.
void SetStage(uint64_t seed, SamplerStages& stages) {
  switch (seed % 12) {
    case 0:
      stages.typical_p = 0.7f;
      break;
    case 1:
      stages.top_n_sigma = 1.5f;
      break;
    case 2:
      stages.xtc_probability = 0.5f;
      stages.xtc_threshold = 0.05f;
      break;
    case 3:
      stages.dry_multiplier = 0.8f;
      stages.dry_allowed_length = 1;
      break;
    case 4:
      stages.mirostat = 1;
      break;
    case 5:
      stages.mirostat = 2;
      stages.mirostat_tau = 2;
      break;
    case 6:
      stages.dynatemp_range = 0.4f;
      break;
    case 7:
      stages.temperature_last = 0.1f;
      stages.temperature_tokens = 30;
      break;
    case 8:
      stages.epsilon_cutoff = 0.02f;
      break;
    case 9:
      stages.eta_cutoff = 0.05f;
      stages.order = kLlamaStages;
      break;
    case 10:
      stages.momentum_alpha = 0.2f;
      break;
    default:
      break;
  }
}

class DraftsTest : public ::testing::Test {
 protected:
  explicit DraftsTest(std::shared_ptr<const Vocabulary> vocabulary = DraftVocabulary())
      : vocabulary_(std::move(vocabulary)) {}

  GenerateOptions OptionsOf(const Case& c, std::string* told) const {
    GenerateOptions options;
    options.sampling.temperature = c.temperature;
    options.sampling.seed = c.seed;
    options.max_tokens = c.seed % 5 == 1 ? 30 : 60;
    if (c.seed % 4 == 1) options.sampling.repetition_penalty = 1.3f;
    if (c.seed % 4 == 2) options.sampling.frequency_penalty = 0.4f;
    if (c.seed % 4 == 3) options.sampling.top_k = 7;
    if (c.seed % 6 == 2) options.sampling.top_p = 0.8f;
    SetStage(c.seed, options.sampling.stages);
    if (c.seed % 9 == 4) options.skip_forced = false;
    if (c.seed % 3 == 2) {
      options.logprobs = 2;
      options.mask_surprise = c.seed % 2 == 0;
      options.logit_bias = {{40, 1.5f}, {70, -2.0f}};
      options.on_report = [told](const TokenReport& report) {
        // All that is told of a token, to the last bit.
        *told += std::to_string(report.allowed) + "," +
                 std::to_string(std::bit_cast<uint32_t>(report.logprob)) + "," +
                 std::to_string(std::bit_cast<uint32_t>(report.surprise));
        for (const TokenLogprob& top : report.top) *told += ":" + std::to_string(top.token);
        return true;
      };
    }
    const bool stops = c.seed % 7 == 3;
    options.on_token = [told, stops](TokenId, std::string_view bytes) {
      *told += bytes;
      // A stop string that tokens may cross.
      return !stops || told->find("d\"") == std::string::npos;
    };
    return options;
  }

  std::vector<TokenId> PromptOf(const Case& c) const {
    std::string text = "{\"name\":\"green er\",\"color\":\"red\"} ";
    text += std::string(c.seed % 30, 'x') + " <a>name=er;</a>";
    return encode_(text);
  }

  struct Output {
    std::vector<TokenId> tokens;
    std::string text, told, error;
    StopReason stop = StopReason::kEnd;
    friend bool operator==(const Output&, const Output&) = default;
  };

  // In batches of so many.
  std::vector<Output> Run(Model& model, const std::shared_ptr<const Constraint>& constraint,
                          const std::vector<Case>& cases, int batch,
                          std::shared_ptr<Drafter> drafter, BatchStats* stats = nullptr) {
    BatchOptions options;
    options.max_batch = batch;
    options.max_rows = batch == 1 ? 256 : 96;
    options.threads = batch == 1 ? 1 : 2;
    options.look_threads = look_threads_;
    options.drafter = std::move(drafter);
    BatchEngine engine(model, vocabulary_, encode_, options);
    std::vector<Output> outputs(cases.size());
    for (size_t i = 0; i < cases.size(); ++i) {
      BatchRequest request;
      request.prompt = PromptOf(cases[i]);
      request.constraint = constraint;
      request.options = OptionsOf(cases[i], &outputs[i].told);
      request.done = [&outputs, i](Result<Generation> output) {
        if (!output.ok()) {
          outputs[i].error = output.error().ToString();
          return;
        }
        outputs[i].tokens = output->tokens;
        outputs[i].text = output->text;
        outputs[i].stop = output->stop;
      };
      engine.Add(std::move(request));
    }
    while (engine.Step()) {
    }
    if (stats != nullptr) *stats = engine.stats();
    return outputs;
  }

  // A file that outputs may quote.
  static std::string QuotedText() {
    const std::string file = ::testing::TempDir() + "drafts_test_quoted.txt";
    std::ofstream(file) << R"({"name":"er","color":"green","sizes":[10,true,"red"]} red,blue,100)"
                        << "\nname=abc;name=in;name=th; <a>some red words</a>{\"name\":\"red\"}";
    return file;
  }

  std::shared_ptr<Drafter> MakeDrafter(const std::string& name, const KnowingSource::Known& known,
                                       bool filter, bool always, const Model& model) {
    DraftSetting setting;
    setting.vocabulary = vocabulary_;
    setting.encode = encode_;
    setting.vocabulary_size = model.info().vocabulary_size;
    const bool own = name == "wrong" || name == "right" || name == "model";
    setting.options.sources = own ? "off" : name;
    setting.options.always = always;
    if (!heads_.empty()) {
      setting.options.sources = name;
      setting.heads = heads_;
      for (const std::string& head : heads_) {
        if (head != kOwnHead) setting.options.more_models.push_back(head);
      }
      const auto indices = ParseDraftSources(setting.options);
      EXPECT_TRUE(indices.ok());
      auto drafter = Drafter::Make(std::move(setting), *indices);
      EXPECT_TRUE(drafter.ok());
      return *std::move(drafter);
    }
    if (name == "text") setting.options.text_file = QuotedText();
    setting.options.filter = filter;
    const auto indices = ParseDraftSources(setting.options);
    EXPECT_TRUE(indices.ok());
    std::vector<Drafter::Named> more;
    if (name == "wrong" || name == "right") {
      more.push_back({name, std::make_unique<KnowingSource>(known, name == "right")});
    }
    if (name == "model") {
      // Two of the three models get another one as their draft model, the third itself.
      auto draft_model = LoadGolden("qwen3-bf16");
      EXPECT_NE(draft_model, nullptr);
      model_setting_ = setting;
      more.push_back({name, MakeModelSourceFrom(model_setting_, std::move(draft_model))});
    }
    auto drafter = Drafter::Make(std::move(setting), *indices, std::move(more));
    EXPECT_TRUE(drafter.ok());
    return *std::move(drafter);
  }

  std::shared_ptr<const Vocabulary> vocabulary_;
  Encoder encode_ = LongestFirst(vocabulary_);
  Compiler compiler_{vocabulary_};
  DraftSetting model_setting_;
  int look_threads_ = 0;            // as in a server
  std::vector<std::string> heads_;  // as DraftSetting::heads, in place of the draft model
};

TEST_F(DraftsTest, EveryOutputIsTheOneWithoutDrafts) {
  const int seeds = SeedsFromEnvironment("PAWL_DRAFT_SEEDS", 2);
  const int all_seeds = SeedsFromEnvironment("PAWL_DRAFT_ALL_SEEDS", 5);
  int64_t accepted = 0, compared = 0, closed = 0, cancelled = 0;
  std::map<std::string, int64_t> accepted_by;
  for (const char* family : {"llama-fp32-tied", "qwen3-bf16", "gemma2-bf16"}) {
    const auto model = LoadGolden(family);
    ASSERT_NE(model, nullptr);
    for (const char* kind : {"none", "schema", "lark", "regex", "tag"}) {
      const auto constraint = Make(compiler_, kind);
      for (const float temperature : {0.0f, 0.7f, 1.5f}) {
        std::vector<Case> cases;
        for (int i = 0; i < std::max(seeds, all_seeds); ++i) {
          cases.push_back({static_cast<uint64_t>(i), temperature});
        }
        const std::vector<Output> plain = Run(*model, constraint, cases, 1, nullptr);
        KnowingSource::Known known;
        for (size_t i = 0; i < cases.size(); ++i) {
          known[cases[i].seed] = plain[i].tokens;
          closed += plain[i].stop == StopReason::kClosed;
          cancelled += plain[i].stop == StopReason::kCancelled;
          ASSERT_EQ(plain[i].error, "");
        }
        for (const std::string name :
             {"forced",          "literals",     "suffix",         "history",
              "ngram",           "recycling",    "text",           "model",
              "lookahead",       "self",         "self:exit=1",    "self:unified=1",
              "self:skipdecode", "self:clasp=1", "random",         "wrong",
              "right",           "all",          "all-unfiltered", "all-weighed"}) {
          std::vector<Case> some = cases;
          const bool all = name.starts_with("all");
          some.resize(static_cast<size_t>(all ? all_seeds : seeds));
          for (const int batch : {1, 8}) {
            const auto drafter = MakeDrafter(all ? "all" : name, known, name != "all-unfiltered",
                                             name != "all-weighed", *model);
            BatchStats stats;
            const std::vector<Output> drafted =
                Run(*model, constraint, some, batch, drafter, &stats);
            for (size_t i = 0; i < some.size(); ++i) {
              ASSERT_TRUE(drafted[i] == plain[i])
                  << family << ", " << kind << ", " << name << ", batch " << batch
                  << ", temperature " << temperature << ", seed " << i << ": \"" << drafted[i].text
                  << "\" instead of \"" << plain[i].text << "\" " << drafted[i].error;
              ++compared;
            }
            accepted_by[name] += stats.accepted;
            accepted += stats.accepted;
            if (name == "wrong") {
              ASSERT_EQ(stats.accepted, 0);
            }
            if (name == "wrong" || name == "right") {
              ASSERT_GT(stats.drafts, 0);
            }
          }
        }
      }
    }
  }
  // The cells say something: every source was right at times, outputs ended for every reason.
  for (const auto& [name, count] : accepted_by) {
    if (name != "wrong") {
      EXPECT_GT(count, 0) << name;
    }
    RecordProperty(name, static_cast<int>(count));
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(closed, 0);
  EXPECT_GT(cancelled, 0);
  RecordProperty("compared", static_cast<int>(compared));
}

// Values of a text, by a grammar of that text whose masks are never known before. A server's looks
// are another thread's, and its drafts do not end there.
TEST_F(DraftsTest, OutputsThatPreferATextAreThoseWithoutDrafts) {
  JsonSchemaOptions schema;
  schema.whitespace = JsonSchemaOptions::Whitespace::kCompact;
  schema.bind_source = true;
  const Result<Grammar> grammar = compiler_.CompileJsonSchema(
      R"({"type":"object","properties":{"name":{"type":"string","maxLength":9},
          "size":{"type":"integer"},"color":{"type":"string","maxLength":5}},
          "required":["name","size","color"],"additionalProperties":false})",
      schema);
  ASSERT_TRUE(grammar.ok()) << grammar.error().ToString();
  const auto preferring = [&](float nats) {
    const std::optional<Grammar> copied =
        GrammarAccess::CopiedFrom(*grammar, "A green one of red er, 17 or 100 x");
    EXPECT_TRUE(copied.has_value());
    return PreferText(MakeConstraint(*grammar), *copied, {.nats = {nats, 4 * nats}});
  };
  const auto model = LoadGolden("llama-fp32-tied");
  ASSERT_NE(model, nullptr);
  std::vector<Case> cases;
  for (uint64_t seed = 0; seed < 12; ++seed) cases.push_back({seed, seed % 3 * 0.7f});
  look_threads_ = 0;
  const std::vector<Output> free = Run(*model, MakeConstraint(*grammar), cases, 1, nullptr);
  const std::vector<Output> plain = Run(*model, preferring(3), cases, 1, nullptr);
  EXPECT_NE(free, plain);  // the preference says something
  KnowingSource::Known known;
  for (size_t i = 0; i < cases.size(); ++i) known[cases[i].seed] = plain[i].tokens;
  for (const std::string name : {"right", "all"}) {
    for (const int batch : {1, 8}) {
      int64_t accepted[2] = {};
      for (const int threads : {0, 2}) {
        look_threads_ = threads;
        // Looks that are late on a busy machine end a tree.
        for (int tries = 0; tries < 3 && 2 * accepted[threads / 2] <= accepted[0]; ++tries) {
          BatchStats stats;
          const auto drafter = MakeDrafter(name, known, true, true, *model);
          ASSERT_EQ(Run(*model, preferring(3), cases, batch, drafter, &stats), plain)
              << name << ", batch " << batch << ", " << threads << " threads";
          accepted[threads / 2] = stats.accepted;
        }
      }
      EXPECT_GT(accepted[0], 0) << name;
      EXPECT_GT(2 * accepted[1], accepted[0]) << name << ", batch " << batch;
    }
  }
  look_threads_ = 0;
}

// Against the model without a head: what heads keep in its pages changes nothing either.
TEST_F(DraftsTest, TrainedHeadsChangeNoOutput) {
  const struct {
    const char* target;
    std::vector<std::string> heads;
    std::vector<std::string> sources;
    bool often = false;
  } heads[] = {{"heads/target", {"eagle3"}, {"model", "auto", "self:exit=2,model,lookahead"}, true},
               {"heads/target", {"eagle3-training"}, {"model", "auto"}},
               {"heads/target", {"eagle3-wide"}, {"model", "auto"}},
               {"heads/target", {"medusa"}, {"model", "auto", "self:exit=2,model,lookahead"}, true},
               {"heads/target", {"medusa-blocks"}, {"model", "auto"}},
               {"heads/target", {"hydra"}, {"model", "auto"}},
               {"heads/target", {"eagle3", "medusa"}, {"model", "auto"}},
               {"heads/target", {"eagle3-training", "eagle3-wide"}, {"model"}, true},
               {"mtp/qwen3_5", {"mtp"}, {"mtp", "mtp,suffix,recycling,self:exit=2"}, true},
               {"mtp/qwen3_5_moe", {"mtp"}, {"mtp"}},
               {"mtp/qwen3_next", {"mtp"}, {"mtp"}},
               {"mtp/qwen3_5", {"mtp", "medusa"}, {"mtp,model"}}};
  for (const auto& one : heads) {
    const int seeds = SeedsFromEnvironment("PAWL_DRAFT_SEEDS", one.often ? 4 : 2);
    const auto plain_model = LoadGolden(one.target);
    auto model = LoadGolden(one.target);
    ASSERT_NE(plain_model, nullptr);
    heads_.clear();
    for (const std::string& head : one.heads) {
      const bool own = head == kOwnHead;
      heads_.push_back(own ? head : GoldenFolder("heads/" + head));
      const Status status = own ? AttachOwnHead(model) : AttachDraftHead(model, heads_.back());
      ASSERT_TRUE(status.ok()) << status.error().ToString();
    }
    std::string all;
    for (const std::string& head : one.heads) all += head + " ";
    int64_t accepted = 0;
    for (const char* kind : {"none", "schema", "lark", "tag"}) {
      const auto constraint = Make(compiler_, kind);
      for (const float temperature : {0.0f, 0.7f, 1.5f}) {
        std::vector<Case> cases;
        for (int i = 0; i < seeds; ++i) cases.push_back({static_cast<uint64_t>(i), temperature});
        const std::vector<Output> plain = Run(*plain_model, constraint, cases, 1, nullptr);
        for (const std::string& name : one.sources) {
          for (const int batch : {1, 8}) {
            BatchStats stats;
            const std::vector<Output> drafted =
                Run(*model, constraint, cases, batch, MakeDrafter(name, {}, true, true, *model),
                    &stats);
            for (size_t i = 0; i < cases.size(); ++i) {
              ASSERT_TRUE(drafted[i] == plain[i])
                  << all << ", " << kind << ", " << name << ", batch " << batch << ", temperature "
                  << temperature << ", seed " << i << ": \"" << drafted[i].text
                  << "\" instead of \"" << plain[i].text << "\" " << drafted[i].error;
            }
            if (name == one.sources[0]) accepted += stats.accepted;
          }
        }
      }
    }
    EXPECT_GT(accepted, 0) << all;
  }
}

// Every family, whose models have 96 tokens and more: alone without drafts; with drafts, eight
// together, with prefixes that are in memory, and where memory is short.
class FamilyDraftsTest : public DraftsTest, public ::testing::WithParamInterface<std::string> {
 protected:
  FamilyDraftsTest()
      : DraftsTest(VocabularyOf(Joined({"<pad>", "<s>", "</s>"}, Letters(' ', '{', {"}"})),
                                {"<pad>", "<s>"}, {"</s>"})) {}

  // With memory for two sequences of eight.
  std::unique_ptr<Model> LoadSmall(const KvMemory& memory) const {
    const int64_t pages = 2 * memory.state.most() + 192 / memory.page_positions;
    ModelOptions options;
    options.threads = 1;
    options.dtype = GoldenDtype(GetParam());
    options.kv_bytes = pages * memory.page_bytes;
    Result<std::unique_ptr<Model>> model = LoadModel(GoldenFolder(GetParam()), options);
    EXPECT_TRUE(model.ok()) << model.error().ToString();
    return model.ok() ? *std::move(model) : nullptr;
  }
};

TEST_P(FamilyDraftsTest, DraftsBatchesPrefixesAndShortMemoryChangeNoBit) {
  const auto model = LoadGolden(GetParam());
  ASSERT_NE(model, nullptr);
  const auto small = LoadSmall(model->kv_memory());
  ASSERT_NE(small, nullptr);
  int64_t accepted = 0;
  for (const char* kind : {"none", "regex"}) {
    const auto constraint = Make(compiler_, kind);
    std::vector<Case> cases;
    for (uint64_t seed = 0; seed < 8; ++seed) cases.push_back({seed, seed % 2 == 0 ? 0.0f : 0.9f});
    std::vector<Output> plain;
    KnowingSource::Known known;
    for (const Case& one : cases) {
      plain.push_back(Run(*LoadGolden(GetParam()), constraint, {one}, 1, nullptr)[0]);
      ASSERT_EQ(plain.back().error, "");
      known[one.seed] = plain.back().tokens;
    }
    for (const std::string name : {"none", "suffix", "random", "right", "self:exit=1"}) {
      for (Model* const used : {model.get(), small.get()}) {
        for (const int batch : {1, 8}) {
          std::shared_ptr<Drafter> drafter;
          if (name != "none") drafter = MakeDrafter(name, known, true, true, *used);
          BatchStats stats;
          const std::vector<Output> outputs = Run(*used, constraint, cases, batch, drafter, &stats);
          for (size_t i = 0; i < cases.size(); ++i) {
            ASSERT_TRUE(outputs[i] == plain[i])
                << kind << ", " << name << ", batch " << batch << ", seed " << i << ": \""
                << outputs[i].text << "\" instead of \"" << plain[i].text << "\" "
                << outputs[i].error;
          }
          accepted += stats.accepted;
        }
      }
    }
  }
  EXPECT_GT(accepted, 100);
}

INSTANTIATE_TEST_SUITE_P(All, FamilyDraftsTest, ::testing::ValuesIn(FamilyGoldenNames()),
                         [](const auto& param) { return TestNameOf(param.param); });

TEST_F(DraftsTest, SourcesThatKnowTakeFewSteps) {
  const auto model = LoadGolden("llama-fp32-tied");
  const auto constraint = Make(compiler_, "none");
  const std::vector<Case> cases = {{0, 0.7f}};
  BatchStats plain, right;
  const std::vector<Output> output = Run(*model, constraint, cases, 1, nullptr, &plain);
  const KnowingSource::Known known = {{0, output[0].tokens}};
  Run(*model, constraint, cases, 1, MakeDrafter("right", known, true, true, *model), &right);
  const auto tokens = static_cast<int64_t>(output[0].tokens.size());
  ASSERT_GE(tokens, 17);
  // Sixteen drafts and the token behind them.
  EXPECT_LE(right.steps, 3 + tokens / 17);
  EXPECT_LT(right.steps, plain.steps);
  EXPECT_EQ(right.failed_drafts, 0);
}

// A tool that another request offered next to other tools: its calls are known by the text in front
// of their arguments.
TEST_F(DraftsTest, HistoriesKnowAToolFromRequestsWithOtherTools) {
  const auto request_with = [&](const std::string& other) {
    std::string tags;
    for (const std::string& name : {std::string("blue"), other}) {
      tags += std::string(tags.empty() ? "" : ",") + R"({"type":"tag","begin":"<a>)" + name +
              R"(=","content":{"type":"json_schema","json_schema":{"type":"object","properties":{
              "name":{"type":"string","maxLength":20},"size":{"type":"integer"}},
              "required":["name","size"],"additionalProperties":false}},"end":";"})";
    }
    Result<Grammar> grammar = compiler_.CompileStructuralTag(
        R"({"type":"structural_tag","format":{"type":"or","elements":[)" + tags + "]}}");
    EXPECT_TRUE(grammar.ok()) << grammar.error().ToString();
    return ForLoop(MakeConstraint(*grammar), *vocabulary_);
  };
  const std::string call = R"(<a>blue={"name":"some words here","size":1004};)";
  const auto model = LoadGolden("llama-fp32-tied");
  ASSERT_NE(model, nullptr);
  const auto drafter = MakeDrafter("history", {}, true, true, *model);
  // How many steps the call takes when these requests were there before.
  const auto steps = [&](const std::string& other) {
    std::shared_ptr<const LoopConstraint> at = request_with(other);
    const auto request = drafter->Begin({.prompt = std::vector<TokenId>{1}, .constraint = at});
    std::vector<TokenId> tokens = {1};
    const std::vector<TokenId> output = encode_(call);
    int count = 0;
    for (size_t done = 0; done < output.size(); ++count) {
      DraftTask task = {.request = request.get(),
                        .tokens = tokens,
                        .prompt = 1,
                        .at = at,
                        .mask = at->mask(),
                        .most_nodes = 8,
                        .most_depth = 16};
      drafter->Draft({&task, 1}, {});
      for (int node = 0; node >= 0 && done < output.size();) {
        const TokenId came = output[done++];
        tokens.push_back(came);
        drafter->Verified(*request, node, came);
        at = at->Next(came);
        if (at == nullptr) {
          ADD_FAILURE() << "refused at " << done;
          return 0;
        }
        node = request->tree.Child(node, came);
      }
    }
    drafter->Finish(*request, output);
    return count;
  };
  EXPECT_NE(FingerprintOf(request_with("red").get()), FingerprintOf(request_with("green").get()));
  const int first = steps("red");
  const auto size = static_cast<int>(encode_(call).size());
  // Under another grammar the call is known all the same.
  EXPECT_GE(first, size / 2);
  EXPECT_LE(steps("green"), size / 4);
}

// The budget counts tokens, not steps: at every budget the output is closed as without drafts.
TEST_F(DraftsTest, EveryBudgetClosesTheSame) {
  const auto model = LoadGolden("qwen3-bf16");
  const auto constraint = Make(compiler_, "schema");
  for (int budget = 20; budget < 64; ++budget) {
    std::optional<Generation> outputs[2];
    for (const bool drafts : {false, true}) {
      BatchOptions options;
      if (drafts) options.drafter = MakeDrafter("all", {}, true, true, *model);
      BatchEngine engine(*model, vocabulary_, encode_, options);
      // The history knows the output from the second time on.
      for (int round = 0; round < 2; ++round) {
        GenerateOptions generate;
        generate.sampling = {.temperature = 0.9f, .seed = static_cast<uint64_t>(budget)};
        generate.max_tokens = budget;
        engine.Add({.prompt = encode_("name"),
                    .constraint = constraint,
                    .options = generate,
                    .done = [&](Result<Generation> output) {
                      if (output.ok()) outputs[drafts] = *std::move(output);
                    }});
        while (engine.Step()) {
        }
      }
    }
    ASSERT_EQ(outputs[0].has_value(), outputs[1].has_value());
    if (!outputs[0]) continue;
    EXPECT_EQ(outputs[0]->text, outputs[1]->text) << budget;
    EXPECT_EQ(outputs[0]->stop, outputs[1]->stop) << budget;
  }
}

// Over 16 tokens: those that come with drafts have the distribution of the softmax, over all tokens
// and over those that a mask allows. PAWL_DRAFT_DRAWS sets how many are drawn.
TEST_F(DraftsTest, DrawsHaveTheirDistribution) {
  const auto vocabulary = SixteenLetters();
  const Compiler compiler(vocabulary);
  const int draws = (SeedsFromEnvironment("PAWL_DRAFT_DRAWS", 100'000) + 4999) / 5000 * 5000;
  for (const bool masked : {false, true}) {
    SixteenModel model;
    DraftSetting setting;
    setting.vocabulary = vocabulary;
    setting.vocabulary_size = 16;
    setting.options.sources = "suffix,ngram,random";
    setting.options.always = true;
    setting.options.nodes = 6;
    const auto indices = ParseDraftSources(setting.options);
    BatchOptions options;
    options.drafter = *Drafter::Make(std::move(setting), *indices);
    BatchEngine engine(model, vocabulary, {}, options);
    const auto grammar = compiler.CompileRegex("[acegj-p]*");
    std::vector<int> counts(16);
    int left = draws;
    constexpr int kPart = 5000;
    for (int part = 0; part < draws / kPart; ++part) {
      GenerateOptions generate;
      generate.sampling = {.temperature = 0.9f, .seed = static_cast<uint64_t>(100 + part)};
      generate.max_tokens = kPart;
      engine.Add({.prompt = {0},
                  .constraint = masked ? MakeConstraint(*grammar) : nullptr,
                  .options = generate,
                  .done = [&](Result<Generation> output) {
                    ASSERT_TRUE(output.ok());
                    for (const TokenId t : output->tokens) ++counts[static_cast<size_t>(t)];
                    left -= static_cast<int>(output->tokens.size());
                  }});
    }
    while (engine.Step()) {
    }
    ASSERT_EQ(left, 0);
    EXPECT_GT(engine.stats().accepted, draws / 20);
    double sum = 0;
    const auto allowed = [&](size_t v) {
      return !masked ||
             std::string("acegjklmnop").find(static_cast<char>('a' + v)) != std::string::npos;
    };
    const auto weight = [&](size_t v) {
      return allowed(v) ? std::exp(double{SixteenModel::Logit(v)} / 0.9) : 0;
    };
    for (size_t v = 0; v < 16; ++v) sum += weight(v);
    double chi = 0;
    for (size_t v = 0; v < 16; ++v) {
      const double expected = draws * weight(v) / sum;
      if (!allowed(v)) {
        EXPECT_EQ(counts[v], 0);
        continue;
      }
      chi += (counts[v] - expected) * (counts[v] - expected) / expected;
    }
    // The 99.9 % quantiles for 15 and 10 degrees of freedom.
    EXPECT_LT(chi, masked ? 29.6 : 37.7);
  }
}

TEST(DraftSourcesTest, NamesAreChecked) {
  const auto parse = [](const std::string& names) { return ParseDraftSources({.sources = names}); };
  EXPECT_EQ(parse("off")->size(), 0u);
  EXPECT_EQ(parse("auto")->size(), 6u);
  EXPECT_EQ(parse("suffix,forced")->size(), 2u);
  EXPECT_EQ(parse("suffix,wishes").error().ToString(),
            "draft: there is no source \"wishes\"; there are off, auto, forced, literals, suffix, "
            "history, ngram, recycling, text, model, mtp, lookahead, self, random");
  EXPECT_EQ(parse("self:exit=2,lookahead")->size(), 2u);
  EXPECT_FALSE(parse("suffix:1").ok());
  EXPECT_FALSE(parse("").ok());
  EXPECT_FALSE(parse("text").ok());
  EXPECT_FALSE(parse("model").ok());
}

}  // namespace
}  // namespace pawl
