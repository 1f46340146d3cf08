// CallArguments: the arguments of one call, as a format of chats writes them, into JSON, while they
// come.
//
//   std::unique_ptr<CallArguments> arguments = CallArguments::Make(format, parameters, "}");
//   taken = arguments->Feed(text, false, json);   // from the front of what has come
//   arguments->done()                             // what follows is not theirs
//
// Joined, the JSON does not depend on how the text was cut. The texts must be whole characters. A
// format that does not write the types of values takes them from the schema of the parameters.
//
// Not thread-safe.
#ifndef PAWL_SRC_ENGINE_CALL_ARGUMENTS_H_
#define PAWL_SRC_ENGINE_CALL_ARGUMENTS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "grammar/tags/formats/chat_format.h"
#include "src/base/json.h"

namespace pawl {

class CallArguments {
 public:
  // `parameters`: the schema, which must outlive this; a null value where nothing is known of them.
  // `behind`: the first characters of what may stand behind a call's arguments.
  static std::unique_ptr<CallArguments> Make(const ChatFormat& format,
                                             const json::Value& parameters,
                                             std::string_view behind);
  virtual ~CallArguments() = default;

  // Takes from the front of `text` what can be read, appends its JSON to `out`, and says how many
  // bytes that was. `at_end`: no more will come.
  virtual size_t Feed(std::string_view text, bool at_end, std::string& out) = 0;
  bool done() const { return done_; }

 protected:
  bool done_ = false;
};

// One escape of a JSON string at the front of `text`, which begins with a backslash: its length,
// and what it stands for is appended to `out`; 0: not complete.
size_t UnescapeJson(std::string_view text, bool at_end, std::string& out);

// The length of the longest end of `text` with which `mark` begins, less than the whole mark.
size_t PartialAtEnd(std::string_view text, std::string_view mark);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_CALL_ARGUMENTS_H_
