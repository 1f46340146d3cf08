// The rooms of two floors: what a folder of grammar/ or schemas/ may include.
//
// A room uses those below it, and itself. The table is the order of each floor from the ground up;
// an include that runs the other way fails here, by name. What still does is listed with the
// reason; a line that is no longer needed fails too, so that the list only shrinks.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "tests/source_dir.h"

namespace {

using pawl::SourceDir;
namespace fs = std::filesystem;

struct Floor {
  std::string name;
  std::vector<std::string> rooms;   // from the ground up
  std::vector<std::string> below;   // beginnings of paths that every file may include
  std::vector<std::string> ground;  // headers of the floor's own folder that every room may include
  std::set<std::string> exceptions;  // "file -> include"
};

const std::vector<Floor>& Floors() {
  static const std::vector<Floor> floors = {
      {"grammar",
       {"regex", "masks", "cfg", "languages"},
       {"pawl/", "src/base/"},
       {"byte_class.h", "derived_machines.h", "explicit_automaton.h", "flat_map.h", "hash_index.h",
        "machine.h", "vocabulary_tables.h"},
       {}},
      {"schemas",
       {"number", "formula", "scalar", "read", "frames", "unique", "solve", "machine", "masks",
        "tag"},
       {"pawl/", "src/base/", "grammar/"},
       {"limits.h"},
       {}}};
  return floors;
}

bool StartsWith(const std::string& text, const std::string& start) {
  return text.compare(0, start.size(), start) == 0;
}

// The name in `#include "..."`, or "".
std::string Included(const std::string& line) {
  const std::string start = "#include \"";
  if (!StartsWith(line, start)) return "";
  return line.substr(start.size(), line.find('"', start.size()) - start.size());
}

// The place of a path's room in the order; the floor's own folder is above all of them.
size_t Height(const Floor& floor, const std::string& path) {
  const std::string rest = path.substr(floor.name.size() + 1);
  const size_t slash = rest.find('/');
  if (slash == std::string::npos) return floor.rooms.size();
  const auto room = std::find(floor.rooms.begin(), floor.rooms.end(), rest.substr(0, slash));
  EXPECT_NE(room, floor.rooms.end()) << path << " is in no room that the table names";
  return static_cast<size_t>(room - floor.rooms.begin());
}

bool Allowed(const Floor& floor, const std::string& file, const std::string& include) {
  if (std::any_of(floor.below.begin(), floor.below.end(),
                  [&](const std::string& start) { return StartsWith(include, start); })) {
    return true;
  }
  if (!StartsWith(include, floor.name + "/")) return false;
  const std::string rest = include.substr(floor.name.size() + 1);
  if (std::find(floor.ground.begin(), floor.ground.end(), rest) != floor.ground.end()) return true;
  return Height(floor, include) <= Height(floor, file);
}

TEST(RoomsTest, ARoomUsesThoseBelowIt) {
  const fs::path root = SourceDir();
  for (const Floor& floor : Floors()) {
    std::set<std::string> unused = floor.exceptions;
    size_t includes = 0;
    for (const auto& entry : fs::recursive_directory_iterator(root / floor.name)) {
      const fs::path extension = entry.path().extension();
      if (extension != ".h" && extension != ".cc") continue;
      const std::string file = fs::relative(entry.path(), root).generic_string();
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) {
        const std::string include = Included(line);
        if (include.empty()) continue;
        ++includes;
        if (Allowed(floor, file, include)) continue;
        const std::string edge = file + " -> " + include;
        unused.erase(edge);
        EXPECT_TRUE(floor.exceptions.count(edge) > 0) << edge << " runs upward";
      }
    }
    EXPECT_GT(includes, 50u) << floor.name;
    for (const std::string& edge : unused)
      ADD_FAILURE() << edge << " is gone: take it off the list";
  }
}

TEST(RoomsTest, EveryRoomSaysWhatItKnows) {
  const fs::path root = SourceDir();
  for (const std::string& room : Floors()[1].rooms) {
    const fs::path readme = root / "schemas" / room / "README.md";
    ASSERT_TRUE(fs::exists(readme)) << readme;
    std::ifstream in(readme);
    size_t lines = 0;
    for (std::string line; std::getline(in, line); ++lines) {
      // A formatter of C++ that got hold of it would change these.
      if (lines == 0) {
        EXPECT_TRUE(StartsWith(line, "# " + room + ": ")) << readme << ": " << line;
      }
      EXPECT_LE(line.size(), 120u) << readme << ": " << line;
      EXPECT_FALSE(StartsWith(line, "   ")) << readme << ": " << line;
    }
    EXPECT_LE(lines, 16u) << readme << " is a door plate, not a manual";
  }
}

}  // namespace
