// A chat template as a program for a stack machine. Internal to src/text/chat.
//
// The parser writes instructions while it reads, and the interpreter runs them on stacks of its
// own: neither calls itself, however deep a template nests. Jumps are relative, so that a piece of
// a program can be moved.
#ifndef PAWL_SRC_TEXT_CHAT_JINJA_PROGRAM_H_
#define PAWL_SRC_TEXT_CHAT_JINJA_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "src/text/chat/jinja_value.h"

namespace pawl::jinja {

// Filters and tests as functions.

// Of an argument, which may not be there.
inline bool TruthOf(const Value* value) { return value != nullptr && Truth(*value); }

// What a filter, test or method is called with.
struct Arguments {
  const Value* positional;
  size_t count;
  const std::vector<std::string>* names;
  const Value* named;

  // The argument at a position or with a name; nullptr when absent.
  const Value* Find(size_t position, std::string_view name) const;
};

struct FilterEntry {
  const char* name;
  Value (*function)(Heap&, const Value&, const Arguments&);
  size_t most_arguments;              // positional ones
  std::vector<const char*> keywords;  // by position
};
struct TestEntry {
  const char* name;
  bool (*function)(Heap&, const Value&, const Arguments&);
  size_t arguments;
};
// A number in a program is an index into these.
const std::vector<FilterEntry>& Filters();
const std::vector<TestEntry>& Tests();
int32_t FindFilter(std::string_view name);  // -1 when there is none
int32_t FindTest(std::string_view name);
// The filters on lists and mappings; Filters() has them too.
std::vector<FilterEntry> SequenceFilters();

// These check the number and the names of the arguments.
Value ApplyFilter(Heap& heap, int32_t filter, const Value& value, const Arguments& arguments);
bool ApplyTest(Heap& heap, int32_t test, const Value& value, const Arguments& arguments);

enum class Op : uint8_t {
  kText,    // writes string a
  kOutput,  // pops a value and writes it
  // Values: pushes.
  kString,    // string a
  kInteger,   // integers[a]
  kFloat,     // floats[a]
  kConstant,  // a: a Constant
  kName,      // the variable names[a]
  kList,      // pops a values
  kTuple,
  kDict,       // pops a pairs
  kAttribute,  // pops a value, takes names[a] of it
  kItem,       // pops key and value
  kSlice,      // pops step, end, begin, value
  // Operators: pop two (the unary ones one) and push one.
  kNot,
  kNegate,
  kPlus,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kConcat,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
  kChain,  // compares as the Op b says; true: the second operand stays, false: it is left and jumps
           // a
  // Jumps, by a.
  kJump,
  kJumpIfFalse,
  kJumpIfFalseKeep,
  kJumpIfTrueKeep,  // the value stays if it jumps
  // Calls: pop the arguments of calls[a], then what they are given to.
  kFilter,  // filter b
  kTest,    // test b
  kMethod,  // names[b]
  kCall,    // a value; b: 1 when the body of a call block lies below it
  // Statements.
  kStore,           // pops into the variable names[a]
  kStoreAttribute,  // pops into the attribute names[b] of the namespace names[a]
  kUnpack,          // pops a value with a items, pushes them so that the first is on top
  kForBegin,        // pops what to go through
  kFilterNext,      // the next item in a scope of its own, or jumps a
  kFilterKeep,      // pops whether the item stays, ends the scope
  kForNext,         // the next item in a scope of its own, or jumps a, the loop over
  kForContinue,     // ends the scope and jumps a; b: 1 at the end of a round
  kForBreak,        // ends scope and loop and jumps a
  kForElse,         // behind the loop; jumps a when some round came to its end
  kPushScope,
  kPopScope,
  kPushBuffer,
  kPopBuffer,  // what is written in between is pushed as a string
  kMacro,      // pushes macros[a] with its scope
  kArgument,   // jumps b when argument a of the running macro was given
  kReturn,     // from a macro
  kEnd,
};

enum class Constant : int32_t { kUndefined, kNone, kFalse, kTrue };

struct Instruction {
  Op op;
  int32_t a = 0;
  int32_t b = 0;
  uint32_t offset = 0;  // into the source, for messages
};

// The arguments of a call as they lie on the stack: first the positional ones, then those with
// names.
struct CallShape {
  int32_t positional = 0;
  std::vector<std::string> names;
  size_t size() const { return static_cast<size_t>(positional) + names.size(); }
};

struct MacroCode {
  std::string name;
  std::vector<std::string> parameters;
  int32_t entry = 0;  // first instruction
  bool uses_caller = false;
};

struct Program {
  std::string source;  // normalized
  std::vector<Instruction> code;
  std::deque<MarkedText> strings;
  std::deque<std::string> names;
  std::vector<int64_t> integers;
  std::vector<double> floats;
  std::vector<CallShape> calls;
  std::vector<MacroCode> macros;
};

// Errors: kInvalid and kUnsupported with place "line:column"; kLimit.
Result<Program> ParseTemplate(std::string_view source);

Value CallMethod(Heap& heap, const Value& value, std::string_view name, const Arguments& arguments);
// The method `format` of strings (jinja_format.cc).
Value FormatMethod(Heap& heap, const Value& format, const Arguments& arguments);
Value Arithmetic(Heap& heap, Op op, const Value& a, const Value& b);
bool Compare(Heap& heap, Op op, const Value& a, const Value& b);

// Running a program.

struct RunOptions {
  size_t max_output = size_t{64} << 20;  // bytes
  std::optional<std::tm> now;            // of strftime_now
};

// What the program writes. `variables` live in `heap`. Errors: kInvalid and kLimit, the place
// "line:column" of what failed.
Result<MarkedText> Run(const Program& program, Heap& heap,
                       const std::vector<std::pair<std::string, Value>>& variables,
                       const RunOptions& options);

}  // namespace pawl::jinja

#endif  // PAWL_SRC_TEXT_CHAT_JINJA_PROGRAM_H_
