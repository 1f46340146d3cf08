// OutputParser: the text of an output, piece by piece, into what the model thought, what it
// answered, and the calls of tools.
//
//   OutputParser parser(plan);
//   std::vector<Delta> deltas = parser.Feed(bytes);      // as tokens come
//   std::vector<Delta> rest = parser.Finish();
//
// What comes out does not depend on how the text was cut, up to the places where deltas of one kind
// are cut themselves: joined, they are the same. No delta ends inside of a character; bytes that
// are not UTF-8 come out as U+FFFD.
//
// Not thread-safe.
#ifndef PAWL_SRC_ENGINE_OUTPUT_PARSER_H_
#define PAWL_SRC_ENGINE_OUTPUT_PARSER_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/engine/call_arguments.h"
#include "src/engine/output_plan.h"

namespace pawl {

struct Delta {
  enum class Kind {
    kReasoning,
    kContent,
    kCallBegin,  // `text` is the tool's name
    kArguments,  // or the input of a custom tool
    kCallEnd,
  };
  Kind kind = Kind::kContent;
  int call = -1;    // 0, 1, ... in the order of the output
  size_t tool = 0;  // index of the tool, of kCallBegin
  std::string text;
};

// Bytes as they come into whole characters. What is not UTF-8 becomes U+FFFD as Unicode (3.9,
// "maximal subparts"), browsers and Python have it: one for the bytes with which a character begins
// and does not go on, one for each byte that begins none. So where the bytes were cut does not
// show.
class Utf8Gate {
 public:
  // What is complete. A character that has begun waits for its rest.
  std::string Feed(std::string_view bytes);
  std::string Finish();

 private:
  std::string held_;
};

class OutputParser {
 public:
  // The plan must outlive the parser.
  explicit OutputParser(const OutputPlan& plan);

  std::vector<Delta> Feed(std::string_view bytes);
  std::vector<Delta> Finish();
  // What comes next belongs to the answer, as far as is known.
  bool in_content() const {
    return state_ == State::kText || state_ == State::kStart || state_ == State::kSaid;
  }

 private:
  enum class State {
    kStart,      // thinking may begin
    kThinking,   // until the closing mark
    kGap,        // white space behind the thoughts
    kText,       // content, until a trigger
    kMessage,    // between messages, in formats that have them
    kSaid,       // content, until the mark that closes it
    kCallStart,  // a trigger was read (it is still in the buffer)
    kList,       // between the calls of a list
    kArguments,
    kInputStart,
    kInput,
    kInputEnd,  // {"input":"..."}
    kRaw,
    kCallEnd,    // the end of a call
    kAfterCall,  // white space behind a call
    kDirect,
  };
  // What a mark that was found does. Of two that fit the longer one counts.
  struct Found {
    size_t length = 0;
    bool more = false;  // a longer one may come
    const CallSyntax* call = nullptr;
    std::optional<State> state;
    std::string_view close;  // kSaid
  };

  // Whether anything has happened; false: more input is needed.
  bool Step(bool at_end);
  bool StepStart(bool at_end);
  bool StepThinking(bool at_end);
  bool StepText(bool at_end);
  bool StepMessage(bool at_end);
  bool StepSaid(bool at_end);
  bool StepCallStart(bool at_end);
  bool StepList(bool at_end);
  bool StepArguments(bool at_end);
  bool StepInput(bool at_end);
  bool StepRaw(bool at_end);
  bool StepCallEnd(bool at_end);
  bool StepAfterCall(bool at_end);

  void Emit(Delta::Kind kind, std::string_view text);
  void BeginCall(const CallSyntax& call);
  void EndCall();
  // Marks at the front of the buffer.
  void Consider(std::string_view mark, State state, std::string_view close, Found& found) const;
  void ConsiderCalls(Found& found) const;
  // Takes what was found; false: nothing.
  bool Take(const Found& found);
  State AfterThoughts() const;
  bool in_list() const { return plan_.format != nullptr && plan_.format->in_list(); }

  const OutputPlan& plan_;
  State state_;
  Utf8Gate gate_;
  std::string buffer_;  // read, not yet handed out
  std::vector<Delta> out_;
  std::vector<std::string_view> triggers_, list_opens_, list_closes_;
  const CallSyntax* call_ = nullptr;
  std::unique_ptr<CallArguments> arguments_;
  std::string_view said_close_;
  int calls_ = 0;
  bool call_open_ = false;
  std::string spaces_;  // behind a call or the thoughts
};

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_OUTPUT_PARSER_H_
