// JSON text as Python's json.dumps(value, ensure_ascii=False) writes it: what MaskBench and its
// peers feed to an engine.
#ifndef PAWL_SRC_CLI_MEASURE_PYTHON_JSON_H_
#define PAWL_SRC_CLI_MEASURE_PYTHON_JSON_H_

#include <string>

#include "src/base/json.h"

namespace pawl::cli {

// ", " and ": " between members, floats in Python's shortest form ("1e+16", "0.0001"), integers as
// they were written, only what must be escaped escaped.
std::string PythonJson(const json::Value& value);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_MEASURE_PYTHON_JSON_H_
