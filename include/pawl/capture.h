// Captures: parts of an output to which a grammar gives names.
//
//   pawl::Matcher matcher(*compiler.CompileGrammar(
//       "start: \"a\" n \"b\"\nn[capture]: /[0-9]+/", pawl::GrammarLanguage::kLark));
//   matcher.AcceptBytes("a12b");
//   matcher.Captures()->front();   // {name "n", begin 1, end 3, text "12"}
//
// Which derivation counts, where a grammar is ambiguous. From left to right, every rule and every
// terminal takes the longest text with which the whole still fits; of alternatives the first that
// fits, and a loop goes round once more before it ends. A group that is counted, (...){2,5}, is
// like a rule; a text and the marker that ends it (suffix=, stop=) are cut so that the marker is as
// long as it can be. A rule that may stand for itself (a: a | "x") does so no more often than it
// must.
#ifndef PAWL_CAPTURE_H_
#define PAWL_CAPTURE_H_

#include <cstddef>
#include <string>

namespace pawl {

struct Capture {
  std::string name;
  // Bytes of the output. The output is the bytes of its tokens, special tokens by their names.
  size_t begin = 0, end = 0;
  // The output from begin to end, without the stops of XGrammar's Lark inside of it.
  std::string text;
  friend bool operator==(const Capture&, const Capture&) = default;
};

}  // namespace pawl

#endif  // PAWL_CAPTURE_H_
