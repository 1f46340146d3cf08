// The strategies by name, with their arguments.
#include <algorithm>
#include <charconv>
#include <string>

#include "src/decode/search/strategy.h"

namespace pawl {
namespace {

constexpr SearchArgument kBeamArguments[] = {
    {"lookahead", 0, 0, 1024, "tokens behind a candidate that the critic judges it by"},
};
constexpr SearchArgument kBestFirstArguments[] = {
    {"batch", 4, 1, 256, "hypotheses that are expanded in one call of the model"},
};

constexpr SearchArgument kAdaDecArguments[] = {
    {"threshold", 1, 0, 1e300, "entropy in nats above which it looks ahead", false},
    {"lookahead", 5, 0, 1024, "tokens that each candidate is continued by"},
    {"beams", 3, 1, 256, "candidates"},
    {"drafts", 0, 0, 64, "tokens of a draft that a call verifies; outputs stay the same"},
};
constexpr SearchArgument kCautiousArguments[] = {
    {"entropy_threshold_low", 0.01, 0, 1e300, "entropy in nats up to which there are min_trials",
     false},
    {"entropy_threshold_high", 1.5, 0, 1e300, "entropy in nats from which there are max_trials",
     false},
    {"min_trials", 1, 1, 256, "continuations that are sampled, at least"},
    {"max_trials", 10, 1, 256, "continuations that are sampled, at most"},
    {"temperature", 1, 1e-6, 1e6, "of the draws", false},
    {"drafts", 0, 0, 64, "tokens of a draft that a call verifies; outputs stay the same"},
};
constexpr SearchArgument kContrastiveArguments[] = {
    {"penalty_alpha", 0.6, 0, 1, "weight of the likeness to earlier tokens; 0: greedy", false},
    {"top_k", 4, 1, 256, "candidates: the most probable tokens"},
};
constexpr SearchArgument kForesightArguments[] = {
    {"num_rollouts", 4, 1, 4096, "steps that are drawn behind a beam"},
    {"beams", 4, 1, 4096, "steps that are kept"},
    {"step", 16, 1, 1024, "most tokens of a step, which also ends with a line"},
    {"horizon", 8, 0, 65536, "tokens that a step is continued by"},
    {"temperature", 1, 1e-6, 1e6, "of the draws", false},
    {"sigma", 1, 0, 1e300, "steps this far below the mean are dropped", false},
    {"agreement", 0.7, 0, 2, "share of continuations that agree, at which it stops", false},
    {"drafts", 0, 0, 64, "tokens of a draft that a call verifies; outputs stay the same"},
};
constexpr SearchArgument kLatticeArguments[] = {
    {"ngram", 4, 1, 65536, "last tokens that are equal where two beginnings become one"},
    {"nodes", 1024, 1, 1e9, "beginnings that are expanded"},
    {"drafts", 0, 0, 64, "tokens of a draft that a call verifies; outputs stay the same"},
};
constexpr SearchArgument kSelfInfillArguments[] = {
    {"loops", 2, 0, 64, "times that an end and a middle are written, at most"},
    {"threshold", 0.25, 0, 1, "probability of the best token below which it stops for them", false},
    {"temperature", 0, 0, 1e6, "of the draws; 0: the best token", false},
};
constexpr SearchArgument kPlannedArguments[] = {
    {"rollouts", 100, 1, 1e9, "outputs that are completed"},
    {"width", 3, 1, 256, "children of a node: its most probable tokens"},
    {"c", 4, 0, 1e6, "exploration", false},
    {"c_base", 10, 1e-6, 1e9, "growth of the exploration with visits", false},
    {"drafts", 0, 0, 64, "tokens of a draft that a call verifies; outputs stay the same"},
};

constexpr SearchStrategy kStrategies[] = {
    {"adadec", "greedy, with a look-ahead where the entropy is high", kAdaDecArguments,
     SearchAdaDec, kUsesLength | kHasOneOutput},
    {"beam", "keeps the num_beams best beginnings of each length", kBeamArguments, SearchBeam,
     kUsesBeams | kUsesLength},
    {"best-first", "expands the most probable beginning: the exact n best outputs",
     kBestFirstArguments, SearchBestFirst, 0, 2048},
    {"cntp", "sampling, with several trials where the entropy is high", kCautiousArguments,
     SearchCautious, kUsesLength | kHasOneOutput},
    {"contrastive", "greedy, but for tokens whose states are like those of earlier ones",
     kContrastiveArguments, SearchContrastive, kHasOneOutput | kNeedsStates},
    {"diverse-beam", "num_beam_groups beams that avoid each other's tokens", kBeamArguments,
     SearchDiverseBeam, kUsesBeams | kUsesGroups | kUsesLength},
    {"foresight", "steps of a few lines, chosen by what would follow them", kForesightArguments,
     SearchForesight, kUsesLength},
    {"lattice", "many outputs that share their parts", kLatticeArguments, SearchLattice,
     kUsesLength},
    {"mcts", "tree search for what checks and critics of whole outputs prefer", kPlannedArguments,
     SearchPlanned},
    {"self-infill", "where the model is uncertain, first the end and then the middle",
     kSelfInfillArguments, nullptr, kHasOneOutput},
    {"superposed",
     "n outputs from the rows of one",
     {},
     SearchSuperposed,
     kUsesLength | kMixesRows},
};

}  // namespace

std::string ArgumentNumber(double value) {
  char digits[32];
  return {static_cast<char*>(digits), std::to_chars(digits, digits + sizeof digits, value).ptr};
}

std::span<const SearchStrategy> SearchStrategies() { return kStrategies; }

const SearchStrategy* FindStrategy(std::string_view name) {
  const auto found = std::ranges::find_if(
      kStrategies, [&](const SearchStrategy& one) { return name == one.name; });
  return found == std::end(kStrategies) ? nullptr : &*found;
}

std::string UnusedOption(const std::string& strategy,
                         const std::function<bool(const std::string& option)>& given) {
  static constexpr std::pair<const char*, StrategyUse> kUses[] = {
      {"num_beams", kUsesBeams},
      {"early_stopping", kUsesBeams},
      {"num_beam_groups", kUsesGroups},
      {"diversity_penalty", kUsesGroups},
      {"length_penalty", kUsesLength}};
  const SearchStrategy* const found = FindStrategy(strategy);
  for (const auto& [option, use] : kUses) {
    if (found != nullptr && (found->uses & use) == 0 && given(option)) return option;
  }
  return "";
}

std::string SearchHelp() {
  std::string help;
  for (const SearchStrategy& one : kStrategies) {
    help += std::string(one.name) + std::string(14 - std::string_view(one.name).size(), ' ') +
            one.help + "\n";
    for (const SearchArgument& argument : one.arguments) {
      const std::string given = std::string(argument.name) + "=" + ArgumentNumber(argument.value);
      help += "    " + given + std::string(given.size() < 30 ? 30 - given.size() : 1, ' ') +
              argument.help + "\n";
    }
  }
  return help;
}

}  // namespace pawl
