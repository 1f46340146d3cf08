// Which of several options a user has given, for messages that name them.
#ifndef PAWL_SRC_CLI_GIVEN_OPTIONS_H_
#define PAWL_SRC_CLI_GIVEN_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <string>

namespace pawl::cli {

// The first of these options that was given; "": none.
std::string FirstGiven(const CLI::App& command, std::initializer_list<const char*> options);
// The first option of AddStageOptions that was given; "": none.
std::string StageGiven(const CLI::App& command);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_GIVEN_OPTIONS_H_
