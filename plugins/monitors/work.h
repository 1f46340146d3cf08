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

#include <cstdint>
#include <exception>
#include <vector>

#include "plugins/monitors/limits.h"

namespace pawl::monitors {

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
