// The folder that holds the sources, found when a test runs: models, schemas and goldens lie below
// it. No test has the path compiled in, so that a built test can be taken to another place or
// machine.
#ifndef PAWL_TESTS_SOURCE_DIR_H_
#define PAWL_TESTS_SOURCE_DIR_H_

#include <filesystem>
#include <string>

namespace pawl {

// The nearest folder above the test program, or else above the working directory, that has
// `tests/data`; "." where there is none.
inline std::string SourceDir() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (fs::path place : {fs::read_symlink("/proc/self/exe", ignored), fs::current_path(ignored)}) {
    for (; !place.empty(); place = place.parent_path()) {
      if (fs::exists(place / "tests" / "data", ignored)) return place.string();
      if (place == place.parent_path()) break;
    }
  }
  return ".";
}

}  // namespace pawl

#endif  // PAWL_TESTS_SOURCE_DIR_H_
