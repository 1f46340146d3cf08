// Modules: the files that a TypeScript text imports by a relative path, and what these import.
//
// Their texts stand behind the program, each in a block of its own, so that one tree has all of
// them and a module's names are a scope. Text behind the cursor is finished, so they are closed.
//
//   Modules modules;
//   modules.SetFile("src/shop.ts");
//   const ModuleTexts& behind = modules.Behind(text);      // of `import { Item } from "./item"`
//   parser.Parse(text + behind.text);
#ifndef PAWL_PLUGINS_MONITORS_TYPESCRIPT_MODULES_H_
#define PAWL_PLUGINS_MONITORS_TYPESCRIPT_MODULES_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace pawl::monitors::ts {

// Where a module's block is, from the beginning of the texts, and which module each path that it
// imports from is. The first one is the program itself.
struct ModulePlace {
  uint32_t start = 0;
  std::unordered_map<std::string, size_t> imports;
};

struct ModuleTexts {
  std::string text;
  std::vector<ModulePlace> places;
};

// Thread safety: one thread at a time.
class Modules {
 public:
  // The file of the program; empty: what it imports is not known.
  void SetFile(const std::string& path);
  // Read again where a file has changed.
  const ModuleTexts& Behind(std::string_view program);

 private:
  struct File {
    std::filesystem::file_time_type time = {};
    bool good = false;
    std::string text;
    std::vector<std::pair<std::string, std::string>> imports;  // as written, and the file
  };
  const File& Load(const std::string& path);
  std::string folder_;
  std::map<std::string, File> files_;
  std::string key_;  // of the texts
  ModuleTexts texts_;
};

}  // namespace pawl::monitors::ts

#endif  // PAWL_PLUGINS_MONITORS_TYPESCRIPT_MODULES_H_
