// What the parser tables of newer grammars expect of <tree_sitter/parser.h> and Debian 12's libtree-sitter-dev (0.20)
// does not have yet: sets of characters as sorted ranges, a switch over single characters as a list of pairs, and reductions without names.
// Newer versions define ADVANCE_MAP themselves; then there is nothing to add.
#ifndef PAWL_PLUGINS_MONITORS_GRAMMARS_PARSER_TABLES_H_
#define PAWL_PLUGINS_MONITORS_GRAMMARS_PARSER_TABLES_H_

#include "tree_sitter/parser.h"

#ifndef ADVANCE_MAP

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  int32_t start;
  int32_t end;  // inclusive
} TSCharacterRange;

// Whether one of the sorted, disjoint ranges has the character.
static inline bool set_contains(const TSCharacterRange* ranges, uint32_t count, int32_t character) {
  uint32_t low = 0;
  uint32_t high = count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (character > ranges[middle].end) {
      low = middle + 1;
    } else if (character < ranges[middle].start) {
      high = middle;
    } else {
      return true;
    }
  }
  return false;
}

// Pairs of a character and the state that it leads to.
#define ADVANCE_MAP(...)                                                          \
  {                                                                               \
    static const uint16_t pairs[] = {__VA_ARGS__};                                \
    for (uint32_t pair = 0; pair + 1 < sizeof pairs / sizeof *pairs; pair += 2) { \
      if (pairs[pair] == lookahead) {                                             \
        state = pairs[pair + 1];                                                  \
        goto next_state;                                                          \
      }                                                                           \
    }                                                                             \
  }

// The numbers of a reduction came with their names before.
#undef REDUCE
#define REDUCE(symbol_name, children, precedence, production) \
  {{                                                          \
    .reduce = {                                               \
      .type = TSParseActionTypeReduce,                        \
      .child_count = (children),                              \
      .symbol = (symbol_name),                                \
      .dynamic_precedence = (precedence),                     \
      .production_id = (production)                           \
    },                                                        \
  }}

#endif

#endif  // PAWL_PLUGINS_MONITORS_GRAMMARS_PARSER_TABLES_H_
