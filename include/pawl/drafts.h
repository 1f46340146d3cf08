// Drafts: several tokens of an output in one call of the model. How they are asked for, and what
// they gave.
//
//   pawl::EngineOptions options;                 // pawl/engine.h
//   options.drafts.sources = "auto";             // or "forced,suffix", ...; docs/drafting.md
//
// Drafts change how long an output takes, and nothing else: every token is the one that comes
// without them (unless DraftOptions::lossy says otherwise).
#ifndef PAWL_DRAFTS_H_
#define PAWL_DRAFTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace pawl {

struct DraftOptions {
  // "off"; "auto": all sources that need nothing from outside, and those that the fields below
  // name something for; or names with commas between them.
  std::string sources = "off";
  int nodes = 16;              // most tokens that are drafted for an output in a call, 1 to 63
  bool filter = true;          // false: also drafts that the grammar refuses. For measuring
  bool always = false;         // true: also where it is expected to take longer. For measuring
  std::string text_file = {};  // UTF-8: what outputs may quote; source "text"
  std::string model = {};      // a smaller model with the same vocabulary; source "model"
  // Outputs by grammar, kept from one run to the next: read at the start where it exists, written
  // at the end. Empty: only while the engine lives. At most so many bytes in memory.
  std::string history_file = {};
  int64_t history_bytes = int64_t{64} << 20;
  // 0: outputs are those without drafts. Above, below 1: a draft is taken in place of the token
  // that was drawn where its probability is at least 1 - lossy, so that each token's distribution
  // is off by at most `lossy` in total variation. What comes then depends on what was drafted, and
  // so on the time that calls take. At temperature 0 the probabilities are those of temperature 1.
  float lossy = 0;
};

struct DraftSourceStats {
  std::string name;
  int64_t drafted = 0;   // tokens that it proposed
  int64_t kept = 0;      // those of them that the grammar allows
  int64_t accepted = 0;  // those of them that came
  double seconds = 0;
};

struct DraftStats {
  int64_t calls = 0;     // of the model, with drafts
  int64_t rows = 0;      // drafts that the model verified
  int64_t accepted = 0;  // of them
  double expected = 0;   // how many of them were expected to come
  int64_t lossy = 0;     // of them: that came by DraftOptions::lossy alone
  double seconds = 0;    // making them; verifying them is the model's
  std::vector<DraftSourceStats> sources;
};

}  // namespace pawl

#endif  // PAWL_DRAFTS_H_
