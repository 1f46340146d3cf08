// Where drafts come from: sources that guess the next token at a node of a draft tree.
//
// A source is shared by the requests of an engine; what it knows of one request is a follower. The
// drafter (drafter.h) asks followers for proposals, drops those that the grammar refuses, and tells
// them what came.
//
// To add a source: a file with a Make function, and a line in registry.cc.
#ifndef PAWL_SRC_DECODE_DRAFT_SOURCE_H_
#define PAWL_SRC_DECODE_DRAFT_SOURCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/vocabulary_tables.h"
#include "pawl/generation.h"
#include "pawl/grammar.h"
#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/decode/constraint.h"
#include "src/decode/draft/verify/draft_rules.h"
#include "src/decode/sampler.h"
#include "src/model/model.h"

namespace pawl {

class Tokenizer;

// Where a follower stands in what it knows; what the numbers mean is the source's.
struct DraftCursor {
  uint32_t a = 0, b = 0;
};

// The model that the drafts are for, and the sequence of the output there. While a tree grows, a
// source may make calls of some layers with it (ModelCall::layers), from `length` on.
struct DraftTarget {
  Model* model = nullptr;
  SequenceId sequence = -1;
  int length = 0;  // tokens that the sequence holds
};

// The law that a source drew the children of a node from, for rules of rejection.
struct DraftLaw {
  std::vector<TokenMass> masses;  // by ascending token
  std::vector<TokenId> drawn;     // in this order; under "spectr" a token may come twice
};

// A node of a tree, as a source sees it.
struct DraftPlace {
  std::span<const TokenId> tokens;     // prompt and output that there are
  size_t prompt = 0;                   // tokens of the prompt
  std::span<const TokenId> path;       // drafts after them, up to the node
  const LoopConstraint* at = nullptr;  // nullptr: anything goes, or (unfiltered) nothing is known
  const Mask* mask = nullptr;          // of `at`
  // Proposals that are not allowed will be dropped: do not let them weigh, but count them.
  bool filtered = true;
  bool paid = true;  // false: drafts have not yet saved time, so begin nothing that takes long
  double plain_seconds = 0;  // of a call without drafts; 0: not known
  // False: what a draft model says here can wait until the device verifies (Foresee).
  bool may_call = true;
  const DraftTarget* target = nullptr;  // nullptr: the source has only its own knowledge
  mutable int refused = 0;
  // For a source that draws its proposals: from what, where a rule of rejection is to know it.
  mutable std::shared_ptr<const DraftLaw> law = nullptr;
  bool Allows(TokenId token) const {
    return !filtered || mask == nullptr ||
           (static_cast<size_t>(token) / 32 < mask->words().size() && mask->Allows(token));
  }
};

// Buckets group proposals that are right about equally often; how often, is counted.
inline constexpr int kDraftBuckets = 64;
struct DraftProposal {
  TokenId token = kNoToken;
  uint8_t bucket = 0;
  float chance = 0;  // as long as nothing was counted
  // What the source learns from the node's row, in right tokens of later calls. A node with a worth
  // is made for this alone too.
  float worth = 0;
  // The decode loop takes it without asking the model, so a draft of it saves no call.
  bool given = false;
};

struct DraftRequest {
  std::span<const TokenId> prompt;
  std::shared_ptr<const LoopConstraint> constraint;
  uint64_t grammar = 0;  // of FingerprintOf
  const GenerateOptions* options = nullptr;

  static constexpr uint64_t kUnknownGrammar = ~uint64_t{0};
  GenerateOptions output_options() const {
    return options == nullptr ? GenerateOptions() : *options;
  }
  // Whose outputs teach this one.
  uint64_t owner() const { return options == nullptr ? 0 : options->draft_owner; }
};

// Calls of a draft model of a source's own, and those of them that Foresee made.
struct DraftModelCalls {
  int64_t all = 0, late = 0;
};

// The most leaves of a tree that Foresee goes on behind.
inline constexpr int kForeseenLeaves = 2;

// The logits behind a node.
struct DraftAnswer {
  DraftCursor cursor;
  TokenId token = kNoToken;  // of the node
  std::span<const float> logits;
  const Mask* mask = nullptr;  // nullptr: all logits are known
  const LoopConstraint* at = nullptr;
  bool visited = true;  // the output came by
};

// One thread at a time.
class DraftSession {
 public:
  virtual ~DraftSession() = default;
  // Prompt (the first call) and output gained these tokens.
  virtual void Append(std::span<const TokenId> /*tokens*/) {}
  // The cursor of the end of what was appended, and after a token from another cursor. Root is
  // called once for each tree: what a tree needed may be forgotten.
  virtual DraftCursor Root() { return {}; }
  virtual DraftCursor Next(DraftCursor /*at*/, TokenId /*token*/) { return {}; }
  // Adds to `out` what may come after the place, no token twice. May change the cursor.
  virtual void Propose(const DraftPlace& place, DraftCursor& cursor,
                       std::vector<DraftProposal>& out) = 0;
  // While the model verifies the tree on a device: gets ready what Propose will say if the output
  // comes to the place, by at most one call. The place is behind the nth of the tree's likeliest
  // leaves. What is proposed there goes to `out`; nothing: there is no use in going on.
  virtual void Foresee(const DraftPlace& /*place*/, int /*nth*/,
                       std::vector<DraftProposal>& /*out*/) {}
  virtual bool foresees() const { return false; }
  virtual DraftModelCalls calls() const { return {}; }
  // What came at a place that Propose was asked about.
  virtual void Learn(DraftCursor /*cursor*/, TokenId /*came*/) {}
  virtual bool wants_logits() const { return false; }
  // Those of all drafts, whether the output came by or not.
  virtual bool wants_all_logits() const { return false; }
  virtual void SeeLogits(const DraftAnswer& /*answer*/) {}
  // The output has ended.
  virtual void Finish(std::span<const TokenId> /*output*/) {}
};

// One thread at a time, its followers included.
class DraftSource {
 public:
  virtual ~DraftSource() = default;
  virtual std::unique_ptr<DraftSession> Follow(const DraftRequest& request) = 0;
  // Memory that is shared between requests.
  virtual int64_t bytes() const { return 0; }
  // Writes what is to be kept. Errors: kIo.
  virtual Status Save() { return {}; }
};

// What sources may keep between outputs.
inline int64_t DraftBytes(const DraftOptions& options) { return int64_t{options.memory} << 20; }

// What sources are made from. All must outlive them.
struct DraftSetting {
  std::shared_ptr<const Vocabulary> vocabulary;
  Encoder encode;
  DraftOptions options;
  int vocabulary_size = 0;  // of the model's logits
  int layers = 0;           // of the model; 0: unknown
  DraftRules rules;         // of the options; Drafter::Make sets them
  // The heads that are attached to the model, in order: their folders, kOwnHead for the model's own
  // block. Not known: the first is the one that is meant.
  std::vector<std::string> heads = {};
  // Of a draft model's folder or file; empty: a folder's tokenizer.json.
  std::function<Result<std::shared_ptr<const Tokenizer>>(const std::string& path)> tokenizer_of =
      nullptr;
  // Runs of forced text are spelled as the decode loop takes them (GenerateOptions::skip_forced);
  // false: as the tokenizer spells them behind what is there.
  bool as_skipped = true;
};

// As DraftSetting::heads.
inline constexpr std::string_view kOwnHead = "mtp";
inline constexpr size_t kMostDraftModels = 2;

struct DraftSourceEntry {
  const char* name;
  Result<std::unique_ptr<DraftSource>> (*make)(const DraftSetting& setting);
  bool free;         // part of "all": needs nothing but what is there
  const char* help;  // a few words
};
std::span<const DraftSourceEntry> DraftSources();

// "off", "auto", "all" or names: the entries' indices, in the registry's order. `setting` decides
// what "auto" takes. Errors: kInvalid, place "draft" or "draft_model".
Result<std::vector<size_t>> ParseDraftSources(const DraftOptions& options);
// Which sources there are is left to the engine.
inline bool ChoosesDraftSources(const DraftOptions& options) {
  return options.sources == "auto" || options.sources == "all";
}
// Something was asked for, so where drafts cannot run it is an error. "auto" alone is then off.
bool NamesDrafts(const DraftOptions& options);
// DraftOptions::verify and shape. Errors: kInvalid, place "draft_verify" or "draft_shape".
Result<DraftRules> ParseDraftRules(const DraftOptions& options);
// DraftOptions::model, where there is one, and more_models.
std::vector<std::string> DraftModelsOf(const DraftOptions& options);
// A source of the registry; `nth`: with that one of DraftModelsOf, where it is "model".
Result<std::unique_ptr<DraftSource>> MakeDraftSource(size_t index, const DraftSetting& setting,
                                                     size_t nth);
// Its name in statistics: of two models "model:" and the last part of the path.
std::string NameOfDraftSource(size_t index, const DraftOptions& options, size_t nth);
// How many there are of one entry.
size_t CountOfDraftSource(size_t index, const DraftOptions& options);
// The index in the registry. REQUIRES: there is one of that name.
size_t IndexOfDraftSource(std::string_view name);
// Of one entry of DraftOptions::sources, what stands behind the colon of its name.
std::string_view SettingOfSource(const DraftOptions& options, std::string_view name);

Result<std::unique_ptr<DraftSource>> MakeForcedSource(const DraftSetting& setting);
Result<std::unique_ptr<DraftSource>> MakeLiteralsSource(const DraftSetting& setting);
Result<std::unique_ptr<DraftSource>> MakeSuffixSource(const DraftSetting& setting);
Result<std::unique_ptr<DraftSource>> MakeHistorySource(const DraftSetting& setting);
Result<std::unique_ptr<DraftSource>> MakeNgramSource(const DraftSetting& setting);
Result<std::unique_ptr<DraftSource>> MakeRecyclingSource(const DraftSetting& setting);
Result<std::unique_ptr<DraftSource>> MakeTextSource(const DraftSetting& setting);
Result<std::unique_ptr<DraftSource>> MakeModelSource(const DraftSetting& setting);
Result<std::unique_ptr<DraftSource>> MakeMtpSource(const DraftSetting& setting);
Result<std::unique_ptr<DraftSource>> MakeLookaheadSource(const DraftSetting& setting);
Result<std::unique_ptr<DraftSource>> MakeSelfSource(const DraftSetting& setting);
Result<std::unique_ptr<DraftSource>> MakeRandomSource(const DraftSetting& setting);

// What a constraint allows at its beginning, as a number that is the same in every run: requests
// under one grammar have the same. 0 without a constraint.
uint64_t FingerprintOf(const LoopConstraint* constraint);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DRAFT_SOURCE_H_
