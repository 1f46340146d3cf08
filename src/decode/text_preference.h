// Values that stand in a text are preferred: a token with which the value leaves the text loses
// some nats. All values of the schema stay possible, whatever the text has.
//
//   TextPreference preference{.nats = {1, 10}, .by_field = {{"/customer", {6, 10}}}};
//   constraint = PreferText(MakeConstraint(grammar), copied, preference);
//
// `copied` is the grammar of the same schema in which each string, number and date is copied from
// the text (Verbatim::kAll). Both are followed. A token that only the first one takes leaves the
// text. The value is then free up to its end, and behind it the second grammar goes on as if it had
// written another value there. So leaving costs once for each value, and what the model is sure of
// is written all the same. Where the text has no string and no number for a field, nothing is lost.
#ifndef PAWL_SRC_DECODE_TEXT_PREFERENCE_H_
#define PAWL_SRC_DECODE_TEXT_PREFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/constraint.h"
#include "pawl/grammar.h"
#include "pawl/matcher.h"

namespace pawl {

// What a token loses: one with which a value leaves the text at its beginning, and one with which a
// value that began as a copy goes on otherwise. 0: nothing.
struct PreferenceNats {
  float begin = 0, inside = 0;
  bool any() const { return begin > 0 || inside > 0; }
};

struct TextPreference {
  PreferenceNats nats = {};  // of fields without an entry below
  // By JSON Pointer, with * in place of the numbers of items: "/lines/*/name".
  std::map<std::string, PreferenceNats, std::less<>> by_field = {};
  // What a token loses that leaves `copied` outside of values: with a key that it does not have, or
  // by going on without one that it needs. Then nothing is preferred any more.
  float keys = 0;
  // The tokenizer, and the text of `copied`. With them a value that is spelled otherwise than the
  // tokenizer would spell the copy has left the text (copied_spelling.h).
  Encoder encode = {};
  std::string text = {};

  bool any() const;
  PreferenceNats Of(std::string_view field) const;
};

// Where a text of JSON is: in which field, and whether in a string or number of it.
class JsonPlace {
 public:
  // What a byte has done to strings, numbers and literals that are values.
  enum class Event : uint8_t { kNone, kBegins, kEnds, kEndedBefore };

  Event Feed(char byte);
  // Before or inside of a value; not inside of a key or between values.
  bool at_value() const { return mode_ != Mode::kAfter && mode_ != Mode::kKey; }
  // In front of a value.
  bool before() const { return mode_ == Mode::kBefore; }
  // A byte of the value is there, the quote of a string aside.
  bool inside() const {
    return mode_ == Mode::kPlain || (mode_ == Mode::kString && value_.size() > 1);
  }
  // What is there of a string, number or literal, but no more than kMostValue bytes. REQUIRES:
  // at_value().
  static constexpr size_t kMostValue = 5000;
  std::string_view value() const { return before() ? std::string_view() : value_; }
  // TextPreference::by_field names it so. REQUIRES: at_value().
  std::string Field() const;

 private:
  enum class Mode : uint8_t {
    kBefore,  // a value, or the end of an empty list
    kString,
    kPlain,  // in a number or literal
    kKey,
    kAfter,  // behind a value, or in front of a key
  };
  struct Level {
    bool list = false;
    std::string key;  // as it is spelled
  };
  void Structure(char byte);

  std::vector<Level> levels_;
  Mode mode_ = Mode::kBefore;
  bool escaped_ = false;
  std::string value_;
};

// REQUIRES: both grammars are of one vocabulary, and `constraint` is at its beginning. Where
// nothing is preferred, or `copied` takes nothing: `constraint`.
std::shared_ptr<const Constraint> PreferText(std::shared_ptr<const Constraint> constraint,
                                             const Grammar& copied, TextPreference preference);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_TEXT_PREFERENCE_H_
