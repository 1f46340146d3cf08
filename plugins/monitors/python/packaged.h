// What Pawl brings along for Python: the stubs of the standard library (typeshed), and the names
// that its modules and classes have although their stubs leave them out.
#ifndef PAWL_PLUGINS_MONITORS_PYTHON_PACKAGED_H_
#define PAWL_PLUGINS_MONITORS_PYTHON_PACKAGED_H_

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace pawl::monitors::python {

// A stub by its path, such as "os/path.pyi"; nullopt: there is none.
std::optional<std::string> PackagedStub(std::string_view path);
// What a folder of stubs holds: names of files and of folders.
std::vector<std::string> PackagedStubsIn(std::string_view folder);
// Of a module ("http.server") or of a class in it ("turtle:ScrolledCanvas").
std::unordered_set<std::string> UnlistedNames(std::string_view owner);

}  // namespace pawl::monitors::python

#endif  // PAWL_PLUGINS_MONITORS_PYTHON_PACKAGED_H_
