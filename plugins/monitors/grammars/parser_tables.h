// The parser tables of grammars made for tree-sitter's ABI 14 use two names that the headers of
// tree-sitter 0.25 changed.
#ifndef PAWL_PLUGINS_MONITORS_GRAMMARS_PARSER_TABLES_H_
#define PAWL_PLUGINS_MONITORS_GRAMMARS_PARSER_TABLES_H_

#include "tree_sitter/parser.h"

#define TSFieldMapSlice TSMapSlice
#define version abi_version

#endif  // PAWL_PLUGINS_MONITORS_GRAMMARS_PARSER_TABLES_H_
