// The cheap rung between masks and populations: one step of the future validity that ASAp learns
// over many outputs, asked of the model at once. Each of the most probable allowed tokens y is
// weighted with the mass A(y) that the mask behind it leaves, as theta of a trie in which all of
// them were visited once. What a draft tree is for verifying drafts, it is here for looking ahead:
// one call has the rows of all of them, and the logits behind the one that is drawn are those of
// the next step.
//
// Outputs are drawn from q(y) in proportion to P(y) A(y) and weighted with P / q, so they are
// properly weighted like those of plain masks, with less variance.
#include <algorithm>
#include <cmath>
#include <utility>

#include "src/base/stop_scope.h"
#include "src/decode/sampling/aligned.h"

namespace pawl {
namespace {

constexpr uint64_t kOutputSeeds = 3;
constexpr int kMostLookahead = 32;

// One step of kFvo: the most probable allowed tokens are each followed by the mass that the
// mask behind them leaves; `behind` gets, for each of `tried`, the logits' place.
struct Ahead {
  std::vector<TokenId> tried;
  StepLaw law;                    // masses are P times that mass
  std::vector<double> log_ahead;  // by item of the law
};

const Candidate* Find(const StepLaw& law, TokenId token) {
  return &*std::lower_bound(law.allowed.begin(), law.allowed.end(), token,
                            [](const Candidate& c, TokenId t) { return c.token < t; });
}

// Looks one token ahead of each of the most probable allowed tokens: a call of one row more than
// there are such tokens. The logits behind the one that is drawn are the next step's.
class LookaheadRun {
 public:
  LookaheadRun(const SamplerSetting& setting, Branches& branches)
      : s_(setting), branches_(branches) {}

  Result<WeightedOutput> Output(uint64_t seed) {
    OutputSoFar output(s_.task);
    WeightedOutput out;
    out.report.sampler = SamplerKind::kFvo;
    const int64_t rows = branches_.rows();
    Result<int> branch = branches_.New();
    if (!branch.ok()) return branch.error();
    std::vector<float> logits(branches_.prompt_logits().begin(), branches_.prompt_logits().end());
    out.log_weight = 0;
    bool failed = false;
    while (!output.ended() && !failed) {
      s_.task.CheckTime();
      out.report.at_budget |= output.at_budget();
      const Allowed allowed = output.AllowedNext();
      Result<StepLaw> law = LawOf(s_.task, logits, allowed);
      if (!law.ok()) return law.error();
      out.report.removed.push_back(allowed.dead ? 1
                                                : 0 - std::expm1(std::min(0.0, law->log_allowed)));
      out.report.mask_surprise -= law->log_allowed;
      if (allowed.dead) break;
      Result<Ahead> ahead = Look(output, *law, *branch);
      if (!ahead.ok()) return ahead.error();
      Result<StepDraw> draw =
          DrawStep(s_.task, output, ahead->law, nullptr, Noise(seed, output.tokens().size()));
      if (!draw.ok()) return draw.error();
      out.report.evaluations += draw->counts.asked;
      out.report.draws += draw->counts.draws;
      failed = draw->token == kNoToken;
      if (failed) break;
      const Candidate* chosen = Find(ahead->law, draw->token);
      const double log_ahead =
          ahead->log_ahead[static_cast<size_t>(chosen - ahead->law.allowed.data())];
      out.log_weight += draw->log_weight - log_ahead;
      if (!output.Append(draw->token, chosen->log_mass - log_ahead)) {
        return Error{ErrorCode::kInternal, "the mask allowed a token, the state did not", ""};
      }
      if (output.ended()) break;
      branches_.Append(*branch, draw->token);
      const auto tried = std::find(ahead->tried.begin(), ahead->tried.end(), draw->token);
      size_t place = static_cast<size_t>(tried - ahead->tried.begin());
      if (tried == ahead->tried.end()) {
        const int run[] = {*branch};
        if (Status status = branches_.Run(run); !status.ok()) return status.error();
        place = 0;
      }
      logits.assign(branches_.logits(place).begin(), branches_.logits(place).end());
    }
    branches_.Free(*branch);
    out.tokens = output.tokens();
    out.text = output.text();
    out.log_probability = output.log_probability;
    out.report.valid = output.ended();
    if (!out.report.valid) out.log_weight = kZeroWeight;
    out.report.model_rows = branches_.rows() - rows;
    return out;
  }

 private:
  Result<Ahead> Look(const OutputSoFar& output, const StepLaw& law, int branch) {
    Ahead ahead;
    ahead.law = law;
    std::vector<const Candidate*> best;
    for (const Candidate& c : law.allowed) {
      if (!output.IsEnd(c.token)) best.push_back(&c);
    }
    const auto most = std::min(
        best.size(), static_cast<size_t>(std::clamp(s_.options.lookahead, 0, kMostLookahead)));
    std::partial_sort(best.begin(), best.begin() + static_cast<ptrdiff_t>(most), best.end(),
                      [](const Candidate* a, const Candidate* b) {
                        return a->log_mass > b->log_mass ||
                               (a->log_mass == b->log_mass && a->token < b->token);
                      });
    best.resize(most);
    ahead.log_ahead.assign(law.allowed.size(), 0);
    // A lone token is taken whatever comes behind it.
    if (law.allowed.size() > 1) {
      for (const Candidate* c : best) ahead.tried.push_back(c->token);
    }
    if (!ahead.tried.empty()) {
      if (Status status = branches_.LookBehind(branch, ahead.tried); !status.ok()) {
        return status.error();
      }
    }
    for (size_t i = 0; i < ahead.tried.size(); ++i) {
      OutputSoFar next = output;
      if (!next.Append(ahead.tried[i], 0)) {
        return Error{ErrorCode::kInternal, "the mask allowed a token, the state did not", ""};
      }
      const Allowed allowed = next.AllowedNext();
      Result<StepLaw> behind = LawOf(s_.task, branches_.logits(i), allowed);
      if (!behind.ok()) return behind.error();
      const auto item = static_cast<size_t>(best[i] - law.allowed.data());
      ahead.log_ahead[item] = allowed.dead ? kNoMass : std::min(0.0, behind->log_allowed);
    }
    std::vector<Candidate> kept;
    std::vector<double> kept_ahead;
    for (size_t i = 0; i < law.allowed.size(); ++i) {
      if (ahead.log_ahead[i] == kNoMass) continue;
      kept.push_back({law.allowed[i].token, law.allowed[i].log_mass + ahead.log_ahead[i]});
      kept_ahead.push_back(ahead.log_ahead[i]);
    }
    ahead.law.allowed = std::move(kept);
    ahead.log_ahead = std::move(kept_ahead);
    ahead.law.log_allowed = LogSum(ahead.law.allowed);
    return ahead;
  }

  const SamplerSetting& s_;
  Branches& branches_;
};

}  // namespace

Result<SamplerResult> SampleWithLookahead(const SamplerSetting& setting) {
  Branches branches(setting.host, setting.model, setting.prompt, setting.capacity);
  if (Status status = branches.Start(); !status.ok()) return status.error();
  SamplerResult result;
  LookaheadRun run(setting, branches);
  try {
    for (int i = 0; i < setting.options.n && !result.cancelled; ++i) {
      Result<WeightedOutput> out =
          run.Output(SeedFor(setting.options.seed, static_cast<uint64_t>(i), kOutputSeeds));
      if (!out.ok()) return out.error();
      result.outputs.push_back(*std::move(out));
      const auto& tell = setting.options.on_output;
      result.cancelled = tell && !tell(result.outputs.back());
      if (!setting.options.keep_outputs) result.outputs.clear();
    }
  } catch (const OutOfTime&) {
    result.timed_out = true;
  }
  result.model_calls = branches.calls();
  result.model_rows = branches.rows();
  return result;
}

}  // namespace pawl
