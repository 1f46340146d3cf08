// What monitors may do before they give up.
//
// All limits are counted, never timed, so that the same text has the same answers on every machine.
// A question that reaches one of them has no answer: nothing is refused, and the question is
// counted (MonitorCounts::given_up). A step is about as much work as a look at one node of a syntax
// tree or at one type, 20 to 50 ns.
#ifndef PAWL_PLUGINS_MONITORS_LIMITS_H_
#define PAWL_PLUGINS_MONITORS_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace pawl::monitors {

struct MonitorLimits {
  // Of one question: what may stand at the cursor, whether the next byte may come.
  uint64_t question_steps = 500'000;
  // Of all questions about one text. Those that would come behind are not asked.
  uint64_t text_steps = 60'000'000;
  // Of the check of a finished text, for each byte and in any case.
  uint64_t finish_steps = 10'000'000;
  uint64_t finish_steps_per_byte = 400;
  // Of reading the declarations of another file: a stub, a module, a file of the repository.
  uint64_t file_steps = 20'000'000;
  // After so many questions that were given up nothing is asked of a text any more.
  uint32_t most_given_up = 4;
  // Open brackets at a time, the ${ of templates too. A text with more is too deep to analyse.
  size_t brackets = 256;
  // Nodes of a syntax tree above a node. The left end of a chain, such as a.b.c or a + b + c, does
  // not count.
  uint32_t tree_depth = 1000;
  // Walks over types that stand in each other: the base of a base, the type of an initializer.
  uint32_t type_depth = 200;
  // A name that is longer is not compared with what may stand there.
  size_t name_bytes = 1024;
};

// Steps for a node of a type that is copied: a node takes some 100 bytes.
inline constexpr uint64_t kStepsPerTypeNode = 4;

// The parser reads a text in pieces. It is stopped when it has come back to earlier pieces so often
// that the pieces read are more than `kParserPieces` and as many times `kParserRereads` as the text
// has.
inline constexpr size_t kParserPieceBytes = 4096;
inline constexpr uint64_t kParserPieces = 1000;
inline constexpr uint64_t kParserRereads = 64;
// The parser is also stopped after so many of its own operations (a token shifted, a rule reduced,
// a step of its recovery from errors), and so many more for each byte of the text. Programs take up
// to 2.4 a byte.
inline constexpr uint64_t kParserOperations = 300'000;
inline constexpr uint64_t kParserOperationsPerByte = 3;
// Likewise of the bytes that it allocates in all, also of those that it frees again: its recovery
// from errors copies lists of children that grow with the text. Programs take up to 120 a byte.
inline constexpr uint64_t kParserBytes = uint64_t{32} << 20;
inline constexpr uint64_t kParserBytesPerByte = 160;

}  // namespace pawl::monitors

#endif  // PAWL_PLUGINS_MONITORS_LIMITS_H_
