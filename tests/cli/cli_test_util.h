// Runs the pawl command as a user would, and makes the files it needs.
#ifndef PAWL_TESTS_CLI_CLI_TEST_UTIL_H_
#define PAWL_TESTS_CLI_CLI_TEST_UTIL_H_

#include <string>
#include <string_view>
#include <vector>

namespace pawl {

struct CommandResult {
  int exit_code = -1;  // -1: it could not be started or was killed
  std::string out;
  std::string err;
};

// Runs `build/pawl arguments...` with `input` on its standard input.
CommandResult RunPawl(const std::vector<std::string>& arguments, std::string_view input = "");

// A folder of this test program's own; its files are named freely.
std::string ScratchPath(const std::string& name);
// Writes a scratch file and returns its path.
std::string WriteScratch(const std::string& name, std::string_view content);

// A model folder: a tiny Llama model with random weights from tests/data/models, context 256, with
// a tokenizer of single bytes (ids 0 to 255), <s> (256) and </s> (257). Made once.
const std::string& RandomModelFolder();

// The same model with another pawl.json, in a folder of that name; without one when `pawl_json` is
// empty.
std::string ModelFolderWith(const std::string& name, std::string_view pawl_json);

// The byte-level tokenizer.json of those folders.
std::string ByteTokenizerJson();

}  // namespace pawl

#endif  // PAWL_TESTS_CLI_CLI_TEST_UTIL_H_
