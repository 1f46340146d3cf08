// Options and limits of compiling a JSON Schema, one documented struct.
#ifndef PAWL_JSON_SCHEMA_OPTIONS_H_
#define PAWL_JSON_SCHEMA_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "pawl/result.h"

namespace pawl {

struct JsonSchemaOptions {
  // Order of named properties. kSchema: as they stand in `properties` (keys that only patterns or
  // additionalProperties allow come after them); kAny: any order.
  enum class Order { kSchema, kAny };
  Order order = Order::kSchema;

  // White space between the tokens of JSON: none but what the separators have; at most
  // `max_whitespace` characters at each place; any amount. Compact is what makes keys forced bytes.
  enum class Whitespace { kCompact, kBounded, kAny };
  Whitespace whitespace = Whitespace::kBounded;
  int max_whitespace = 24;
  // With kCompact: what stands between two items or members, and between a key and its value. A
  // comma (a colon), then up to 16 characters of white space: ", " and ": " give what Python's
  // json.dumps writes.
  std::string item_separator = ",";
  std::string key_separator = ":";

  // The dialect when the schema has no "$schema": "draft4", "draft6", "draft7", "2019-09",
  // "2020-12".
  std::string default_dialect = "2020-12";
  // When not empty, used in place of "$schema".
  std::string force_dialect;

  // "format" is an assertion for the formats that Pawl knows; unknown ones are annotations.
  bool assert_formats = true;

  // One spelling instead of all that JSON allows: strings and keys with escapes where JSON needs
  // them (quotes, backslashes, controls) and nowhere else; integers, and numbers of an enum,
  // without ".0". For text that a model writes: keys are then forced bytes. Turn it off to check
  // texts that others wrote.
  bool canonical_spelling = true;

  // What else canonical spelling bounds, since a model that repeats itself would go on to the end
  // of its budget: the significant digits of a number; the decimals of the seconds in the formats
  // time and date-time, and the digits of each number in a duration. A number that fits only with
  // more digits, and a time or duration for which the schema asks more, get more. 0: no bound.
  int max_digits = 17;
  int max_decimals = 9;
  // The characters (code points) of a string value to which the schema sets no end: neither a
  // maxLength nor a choice of texts. A string that fits only when it is longer may be longer. 0: no
  // bound. In any spelling.
  int64_t max_string = 0;

  // Texts that no string value may contain, one a line, as structural tags ask for it ("excludes"):
  // markers of a model's own, which would end what is around the JSON.
  std::string excluded_texts;

  // Strings and keys are ASCII: every other character is written \uXXXX (two of them beyond the
  // Basic Multilingual Plane).
  bool ascii = false;

  // What an object may have beyond the keys that the schema speaks of, where the schema says
  // neither additionalProperties nor unevaluatedProperties. The specification: anything (true).
  // false closes every object of which the schema names a key or a pattern, together with all that
  // is applied to it in place (allOf, $ref, ...), as unevaluatedProperties would; each branch of a
  // plain anyOf or oneOf is closed by itself. An object about which nothing is said stays open.
  bool additional_properties = true;

  // Numbers may be written with an exponent ("1e3"); from -400 to 400 where a bound or a divisor is
  // asked of the number.
  bool allow_exponents = false;

  // The keywords that may be used. kStrict: only those of "strict" structured outputs as OpenAI
  // describes them (docs/json_schema.md has the rules); what breaks a rule is kUnsupported, with
  // what to write instead. What is accepted means the same under both.
  enum class Profile { kFull, kStrict };
  Profile profile = Profile::kFull;

  // Grammar::notes() also lists each keyword that demands nothing and why, one "POINTER: keyword:
  // why" for each: annotations by the specification, and what the dialect or these options leave
  // without effect. At most 1000, then one "and N more".
  bool list_annotations = false;

  // The text of another document that a reference leads to, by its absolute URI without fragment.
  // Asked while compiling only; an error refuses the schema at the reference, with the error's
  // message. Asked for the metaschema of an unknown "$schema" too, whose "$vocabulary" then counts.
  // Not set: only the schema itself is there. Pawl itself never fetches anything.
  std::function<Result<std::string>(std::string_view uri)> resolve_document;
  int max_documents = 256;  // how many it may give; together at most max_schema_bytes

  // Limits. Fuel is counted in steps, so the same input always ends the same way.
  int64_t max_schema_bytes = 16 << 20;
  int max_depth = 256;          // schemas in schemas; the JSON of the text: twice as deep, and 8
  int64_t step_fuel = 200'000;  // for one question "can this still be completed?"
};

}  // namespace pawl

#endif  // PAWL_JSON_SCHEMA_OPTIONS_H_
