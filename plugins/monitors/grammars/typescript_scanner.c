// The part of TypeScript's tokens that tree-sitter's tables can not describe, for the parser tables of the package
// tree-sitter-typescript, whose source distribution leaves its scanner out. Written from the language's rules
// (ECMA-262 12.10, automatic semicolon insertion; 12.9.6, template literals) and the list of tokens that the tables name.
//
// The parser calls Scan with the set of tokens that it could use at this point. "||" is in that set where an operator may
// follow, that is, behind an expression: only there do "(" and "[" on a new line go on with the line before.
#include <stdbool.h>
#include <stddef.h>
#include <wctype.h>

#include "tree_sitter/parser.h"

enum Token {
  kAutomaticSemicolon,
  kTemplateChars,
  kTernaryMark,
  kHtmlComment,
  kLogicalOr,
  kEscapeSequence,
  kRegexPattern,
  kJsxText,
  kSignatureSemicolon,
  kErrorRecovery,
};

static void Advance(TSLexer* lexer) { lexer->advance(lexer, false); }
static void Skip(TSLexer* lexer) { lexer->advance(lexer, true); }

static bool IsSpace(int32_t c) { return c == 0x2028 || c == 0x2029 || c == 0xFEFF || iswspace((wint_t)c); }
static bool IsNameCharacter(int32_t c) { return c == '_' || c == '$' || iswalnum((wint_t)c); }

static bool ScanTemplateCharacters(TSLexer* lexer) {
  lexer->result_symbol = kTemplateChars;
  for (bool some = false;; some = true) {
    lexer->mark_end(lexer);
    if (lexer->lookahead == '`' || lexer->lookahead == '\\') return some;
    if (lexer->lookahead == 0 && lexer->eof(lexer)) return false;
    if (lexer->lookahead == '$') {
      Advance(lexer);
      if (lexer->lookahead == '{') return some;
      continue;
    }
    Advance(lexer);
  }
}

// White space and comments. False at a slash that begins neither kind of comment.
static bool SkipSpaceAndComments(TSLexer* lexer, bool* newline, bool* comment) {
  for (;;) {
    while (IsSpace(lexer->lookahead)) {
      if (lexer->lookahead == '\n' || lexer->lookahead == 0x2028 || lexer->lookahead == 0x2029) *newline = true;
      Skip(lexer);
    }
    if (lexer->lookahead != '/') return true;
    Skip(lexer);
    if (lexer->lookahead == '/') {
      *comment = true;
      while (lexer->lookahead != '\n' && !lexer->eof(lexer)) Skip(lexer);
    } else if (lexer->lookahead == '*') {
      *comment = true;
      Skip(lexer);
      for (bool star = false; !lexer->eof(lexer); Skip(lexer)) {
        if (star && lexer->lookahead == '/') {
          Skip(lexer);
          break;
        }
        star = lexer->lookahead == '*';
        if (lexer->lookahead == '\n') *newline = true;
      }
    } else {
      return false;
    }
  }
}

// Whether the name ahead is "in" or "instanceof": operators, behind which the line goes on.
static bool AtWordOperator(TSLexer* lexer) {
  static const char kWord[] = "instanceof";
  size_t i = 0;
  while (i < sizeof kWord - 1 && lexer->lookahead == kWord[i]) {
    Skip(lexer);
    ++i;
  }
  return (i == 2 || i == sizeof kWord - 1) && !IsNameCharacter(lexer->lookahead);
}

static bool ScanAutomaticSemicolon(TSLexer* lexer, const bool* valid, bool* slash) {
  lexer->result_symbol = kAutomaticSemicolon;
  lexer->mark_end(lexer);
  // On the same line only a closing brace or the end of the file stand for a semicolon.
  while (IsSpace(lexer->lookahead) && lexer->lookahead != '\n') Skip(lexer);
  bool newline = false;
  bool comment = false;
  if (!SkipSpaceAndComments(lexer, &newline, &comment)) {
    *slash = true;
    return false;
  }
  if (lexer->eof(lexer)) return true;
  if (lexer->lookahead == '}') {
    // In `type F = ({a}: {a: number}) => number` the brace closes a pattern.
    Skip(lexer);
    while (IsSpace(lexer->lookahead)) Skip(lexer);
    return lexer->lookahead == ':' ? valid[kLogicalOr] : true;
  }
  if (!newline) return false;
  switch (lexer->lookahead) {
    case '`':
    case ',':
    case '.':
    case ';':
    case '*':
    case '%':
    case '>':
    case '<':
    case '=':
    case '?':
    case '^':
    case '|':
    case '&':
    case ':':
      return false;
    case '{':
      return !valid[kSignatureSemicolon];
    case '(':
    case '[':
      return !valid[kLogicalOr];
    case '+':
    case '-': {
      const int32_t sign = lexer->lookahead;
      Skip(lexer);
      return lexer->lookahead == sign;  // "++x" begins a statement, "+x" goes on
    }
    case '!':
      Skip(lexer);
      return lexer->lookahead != '=';
    case 'i':
      return !AtWordOperator(lexer);
    default:
      return true;
  }
}

// The "?" of a conditional expression: not of "?.", "??", nor of an optional parameter.
static bool ScanTernaryMark(TSLexer* lexer) {
  while (IsSpace(lexer->lookahead)) Skip(lexer);
  if (lexer->lookahead != '?') return false;
  Advance(lexer);
  if (lexer->lookahead == '?') return false;
  lexer->mark_end(lexer);
  lexer->result_symbol = kTernaryMark;
  if (lexer->lookahead == '.') {
    Advance(lexer);
    return iswdigit((wint_t)lexer->lookahead);  // x ?.5 : 1
  }
  while (IsSpace(lexer->lookahead)) Advance(lexer);
  return lexer->lookahead != ':' && lexer->lookahead != ')' && lexer->lookahead != ',';
}

static bool ScanHtmlComment(TSLexer* lexer) {
  while (IsSpace(lexer->lookahead)) Skip(lexer);
  const char* mark = lexer->lookahead == '<' ? "<!--" : "-->";
  for (; *mark != 0; ++mark) {
    if (lexer->lookahead != *mark) return false;
    Advance(lexer);
  }
  while (lexer->lookahead != '\n' && !lexer->eof(lexer)) Advance(lexer);
  lexer->result_symbol = kHtmlComment;
  lexer->mark_end(lexer);
  return true;
}

static bool ScanJsxText(TSLexer* lexer) {
  bool some = false;
  bool space_since_newline = false;
  bool visible = false;
  while (lexer->lookahead != 0 && lexer->lookahead != '<' && lexer->lookahead != '>' && lexer->lookahead != '{' &&
         lexer->lookahead != '}' && lexer->lookahead != '&') {
    if (lexer->lookahead == '\n') space_since_newline = true;
    if (!IsSpace(lexer->lookahead)) visible = true;
    some = true;
    Advance(lexer);
  }
  lexer->mark_end(lexer);
  lexer->result_symbol = kJsxText;
  return some && (visible || !space_since_newline);  // lines of nothing but white space are no text
}

static bool Scan(TSLexer* lexer, const bool* valid) {
  if (valid[kTemplateChars]) {
    return !valid[kAutomaticSemicolon] && ScanTemplateCharacters(lexer);  // both: the parser recovers from an error
  }
  if (valid[kJsxText] && !valid[kAutomaticSemicolon]) return ScanJsxText(lexer);
  if (valid[kAutomaticSemicolon] || valid[kSignatureSemicolon]) {
    bool slash = false;
    if (ScanAutomaticSemicolon(lexer, valid, &slash)) return true;
    return !slash && valid[kTernaryMark] && lexer->lookahead == '?' && ScanTernaryMark(lexer);
  }
  if (valid[kTernaryMark] && ScanTernaryMark(lexer)) return true;
  if (valid[kHtmlComment] && !valid[kLogicalOr] && !valid[kEscapeSequence] && !valid[kRegexPattern] &&
      (lexer->lookahead == '<' || lexer->lookahead == '-')) {
    return ScanHtmlComment(lexer);
  }
  return false;
}

#define EXTERNAL_SCANNER(NAME)                                                                                    \
  void* tree_sitter_##NAME##_external_scanner_create(void) { return NULL; }                                       \
  void tree_sitter_##NAME##_external_scanner_destroy(void* payload) { (void)payload; }                            \
  unsigned tree_sitter_##NAME##_external_scanner_serialize(void* payload, char* buffer) {                         \
    (void)payload, (void)buffer;                                                                                  \
    return 0;                                                                                                     \
  }                                                                                                               \
  void tree_sitter_##NAME##_external_scanner_deserialize(void* payload, const char* buffer, unsigned length) {    \
    (void)payload, (void)buffer, (void)length;                                                                    \
  }                                                                                                               \
  bool tree_sitter_##NAME##_external_scanner_scan(void* payload, TSLexer* lexer, const bool* valid) {             \
    (void)payload;                                                                                                \
    return Scan(lexer, valid);                                                                                    \
  }

EXTERNAL_SCANNER(typescript)
