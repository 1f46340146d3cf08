// Checks of code: its syntax, and the monitors.
#ifndef PAWL_SRC_COMPLETION_CODE_CHECK_H_
#define PAWL_SRC_COMPLETION_CODE_CHECK_H_

#include <memory>
#include <string>

#include "pawl/result.h"
#include "pawl/sampling.h"

namespace pawl::completion {

//     syntax    a complete output parses. LANGUAGE: typescript, java, python, cpp
//     monitor   the monitors of the language refuse neither the text nor its end
// Errors: kInvalid with the text as place. What decode/sampling/check_spec.h is offered.
Result<std::shared_ptr<const Check>> MakeCodeCheck(const std::string& spec);

}  // namespace pawl::completion

#endif  // PAWL_SRC_COMPLETION_CODE_CHECK_H_
