// RecordFilter: the record of a text that was written under JsonSchemaOptions::Keys::kAll, as the
// text comes. Keys whose null means "not there" are left out.
//
//   RecordFilter filter(keys);
//   Show(filter.Feed("{\"a\":1,\"b\":nu"));      // {"a":1
//   Show(filter.Feed("ll,\"c\":2}"));            // ,"c":2}
//   Show(filter.Finish());
//
// What comes out is a beginning of a text of the grammar of the schema as it was given, so a whole
// record is valid for that schema. A key is held back until the first bytes of its value decide.
#ifndef PAWL_GRAMMAR_RECORD_FILTER_H_
#define PAWL_GRAMMAR_RECORD_FILTER_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/grammar.h"
#include "pawl/result.h"

namespace pawl {

// What a grammar of Keys::kAll knows of the schema as it was given.
struct RecordKeys {
  Grammar given;
  // Several branches of objects may take a value. Whether a null is one of the record may then show
  // later.
  bool unions = false;
};

class PAWL_EXPORT RecordFilter {
 public:
  explicit RecordFilter(std::shared_ptr<const RecordKeys> keys);
  // What is certain of the record with these bytes.
  std::string Feed(std::string_view bytes);
  // The rest; of a text that was cut, as it is.
  std::string Finish();
  // The record left the given grammar, which must not happen; from there on the text passes.
  bool failed() const { return failed_; }

 private:
  enum class Stage : uint8_t { kText, kMember, kNull };
  // One way to understand the text so far.
  struct Reading {
    State at;
    std::string unread;       // by `at`
    std::string out;          // not handed out
    std::vector<bool> fresh;  // of each open container: no member of it was taken
    bool left_out = false;    // the last member, and so the white space behind it
    bool SameFuture(const Reading& other) const {
      return at == other.at && fresh == other.fresh && left_out == other.left_out;
    }
  };
  void Take(char c);
  void TakeText(char c);
  void TakeMember(char c);
  void TakeNull(char c);
  void Pass(std::string_view bytes);
  void Open(bool object);
  void Close();
  std::string MemberFor(const Reading& reading) const;
  void TakeMemberText();
  void Decide();
  // Moves the states to the ends of their texts, and drops the readings that do not fit.
  void ReadOn();

  const std::shared_ptr<const RecordKeys> keys_;
  std::vector<Reading> readings_;  // the preferred one first; never empty
  Stage stage_ = Stage::kText;
  std::vector<bool> objects_;       // open containers: objects, or arrays
  std::vector<std::string> leads_;  // of each: the white space before its first member
  bool in_string_ = false, escaped_ = false;
  bool has_key_ = false, has_colon_ = false;
  std::string member_;  // held back, up to the value
  std::string null_;
  bool failed_ = false;
};

}  // namespace pawl

#endif  // PAWL_GRAMMAR_RECORD_FILTER_H_
