// The properties that every compiled schema has to have, each as a function from a schema to the
// description of a counter-example, empty when none was found.
#ifndef PAWL_TESTS_SCHEMAS_PROPERTY_CHECKS_H_
#define PAWL_TESTS_SCHEMAS_PROPERTY_CHECKS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "pawl/compiler.h"
#include "src/base/json.h"
#include "tests/schemas/property_generators.h"

namespace pawl::property {

// Order, white space, separators and spelling at random.
JsonSchemaOptions RandomOptions(Dice& dice);

// What became of a schema.
enum class Outcome { kChecked, kUnsatisfiable, kRefused };

struct Finding {
  Outcome outcome = Outcome::kChecked;
  std::string failure;  // empty: all is well
  std::string refusal;  // why, when refused
};

using Check = Finding (*)(const Compiler& compiler, const Vocabulary& vocabulary,
                          const json::Value& schema, uint64_t seed);

// A mask allows exactly the tokens that Advance takes, on states of random walks.
Finding CheckMasks(const Compiler&, const Vocabulary&, const json::Value& schema, uint64_t seed);
// Every state reached can be completed, and the completed text is valid.
Finding CheckCompletions(const Compiler&, const Vocabulary&, const json::Value& schema,
                         uint64_t seed);
// Text made of allowed tokens only, up to the end token, is valid.
Finding CheckWalks(const Compiler&, const Vocabulary&, const json::Value& schema, uint64_t seed);
// A text is accepted exactly when it is valid (any order, any white space).
Finding CheckInstances(const Compiler&, const Vocabulary&, const json::Value& schema,
                       uint64_t seed);
// Forced bytes are the only continuation, and all of it.
Finding CheckForced(const Compiler&, const Vocabulary&, const json::Value& schema, uint64_t seed);

}  // namespace pawl::property

#endif  // PAWL_TESTS_SCHEMAS_PROPERTY_CHECKS_H_
