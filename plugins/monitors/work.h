// The work of monitors in steps, and the limits of a question.
//
//   try {
//     Work question(limits, limits.question_steps);
//     ...                                    // calls Work::Step() wherever there is something to
//     do
//   } catch (const GaveUp& why) { ... }      // the question has no answer
//
// Without a question around them, steps are counted and never end anything. At least every 1,000
// steps the computation looks whether another thread wants it to stop (StopScope).
//
// Thread safety: questions and counts belong to the thread.
#ifndef PAWL_PLUGINS_MONITORS_WORK_H_
#define PAWL_PLUGINS_MONITORS_WORK_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

namespace pawl::monitors {

// What monitors may do before they give up. All limits are counted, never timed, so that the same
// text has the same answers on every machine. A question that reaches one of them has no answer:
// nothing is refused, and the question is counted (MonitorCounts::given_up). A step is about as
// much work as a look at one node of a syntax tree or at one type, 20 to 50 ns.

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

// Thrown by a step too many (kSteps), or where something is nested too deeply (kDepth).
class GaveUp : public std::exception {
 public:
  enum class Why : uint8_t { kSteps, kDepth };
  GaveUp(Why why, uint32_t byte) : why_(why), byte_(byte) {}
  const char* what() const noexcept override {
    return why_ == Why::kSteps ? "too many steps" : "too deep to analyse";
  }
  Why why() const { return why_; }
  // Where the text was looked at last.
  uint32_t byte() const { return byte_; }

 private:
  Why why_;
  uint32_t byte_;
};

class Work {
 public:
  // Questions stand in each other: what the inner one does counts for the inner one only.
  Work(const MonitorLimits& limits, uint64_t steps)
      : limits_(limits), limit_(steps), outer_(Here().question) {
    Here().question = this;
  }
  ~Work() { Here().question = outer_; }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  uint64_t used() const { return used_; }

  static void Step(uint64_t steps = 1) {
    Counters& here = Here();
    here.total += steps;
    if (here.total >= here.look_at) Look();
    if (here.question == nullptr) return;
    here.question->used_ += steps;
    if (here.question->used_ > here.question->limit_) Steps();
  }
  // Bytes that are searched or compared, and not understood.
  static void Bytes(uint64_t bytes) { Step(1 + bytes / 256); }
  // Ends the question, if there is one.
  // A copy of a type, whose `args` are types again. A type is a tree that is copied as a whole, so
  // a copy counts by its size: a class that names its variable twice doubles what stands for it.
  template <typename Type>
  static Type CountedCopy(const Type& type) {
    std::vector<const Type*> todo = {&type};
    while (!todo.empty()) {
      const Type* const at = todo.back();
      todo.pop_back();
      Step(kStepsPerTypeNode);
      for (const Type& arg : at->args) todo.push_back(&arg);
    }
    return type;
  }
  static void GiveUp() {
    if (Here().question != nullptr) Steps();
  }
  // Only counted.
  static void Count(uint64_t steps) { Here().total += steps; }
  // The steps of this thread since it began.
  static uint64_t Total() { return Here().total; }
  // The limits of the question, or the default ones.
  static const MonitorLimits& Limits();
  // Notes the byte of the text that is looked at, for the message.
  static void At(uint32_t byte) { Here().byte = byte; }
  static uint32_t byte() { return Here().byte; }
  // A node so deep in its tree is not looked at.
  static void CheckTreeDepth(uint32_t depth) {
    if (Here().question != nullptr && depth > Here().question->limits_.tree_depth) TooDeep();
  }

  // A walk inside of others.
  class Deeper {
   public:
    Deeper() {
      if (++Here().depth > Limits().type_depth) {
        --Here().depth;
        TooDeep();
      }
    }
    ~Deeper() { --Here().depth; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
  };

 private:
  struct Counters {
    uint64_t total = 0;
    uint64_t look_at = 1000;
    Work* question = nullptr;
    uint32_t depth = 0;
    uint32_t byte = 0;
  };
  static Counters& Here() {
    static thread_local constinit Counters counters;
    return counters;
  }
  static void Look();
  [[noreturn]] static void Steps();
  [[noreturn]] static void TooDeep();

  const MonitorLimits& limits_;
  const uint64_t limit_;
  uint64_t used_ = 0;
  Work* const outer_;
};

}  // namespace pawl::monitors

#endif  // PAWL_PLUGINS_MONITORS_WORK_H_
