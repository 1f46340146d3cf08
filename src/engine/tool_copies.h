// What the arguments of a call would be if all were taken from the request: the schema of the
// arguments as the request has them.
//
//   std::optional<std::string> schema = SchemaAsRequested(parameters, "A vegetarian curry,
//   please");
//
// Strings, numbers and dates are to be copied (Verbatim::kAll), or null where the request has none.
// A key that is not required is there if the request names it, else it is not: a value of its
// `enum`, the name of a key that is true or false, any number for a number. Other keys stay as they
// are. This is what small models do wrong (bench/tools/), so it is no more than preferred
// (src/decode/text_preference.h).
#ifndef PAWL_SRC_ENGINE_TOOL_COPIES_H_
#define PAWL_SRC_ENGINE_TOOL_COPIES_H_

#include <optional>
#include <string>
#include <string_view>

namespace pawl {

// nullopt: this is no schema of an object with `properties`.
std::optional<std::string> SchemaAsRequested(std::string_view parameters, std::string_view request);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_TOOL_COPIES_H_
