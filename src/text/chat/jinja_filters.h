// Filters and tests as functions. Internal to src/text/chat.
#ifndef PAWL_SRC_TEXT_CHAT_JINJA_FILTERS_H_
#define PAWL_SRC_TEXT_CHAT_JINJA_FILTERS_H_

#include <string_view>
#include <vector>

#include "src/text/chat/jinja_value.h"

namespace pawl::jinja {

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

}  // namespace pawl::jinja

#endif  // PAWL_SRC_TEXT_CHAT_JINJA_FILTERS_H_
