// Modules of the Java platform: which packages a text may name (Java Language Specification, 7.7).
//
// A text that lies in a named module names packages of that module and of those that it reads, and
// no others. So where the descriptions of all these modules are found, the names of packages are
// known whole.
#ifndef PAWL_PLUGINS_MONITORS_JAVA_MODULES_H_
#define PAWL_PLUGINS_MONITORS_JAVA_MODULES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/monitors/index.h"
#include "plugins/monitors/java/class_path.h"

namespace pawl::monitors::java {

// What a module-info.java says; nullopt: it describes no module.
std::optional<Module> ReadModuleText(std::string_view text);

// The packages that the file of the repository may name, sorted. nullopt: it lies in no module, a
// module that is read is not found, or a build tool may add sources to the module. `file`: the path
// in the repository; what the file itself says does not count.
std::optional<std::vector<std::string>> ReadablePackages(Repository& repository, ClassPath& path,
                                                         const std::string& file);

// The package of the file: that of all other files in its folder, or what the folders below the
// module's description say. Empty: not known.
std::string PackageOfFolder(Repository& repository, const std::string& file);

}  // namespace pawl::monitors::java

#endif  // PAWL_PLUGINS_MONITORS_JAVA_MODULES_H_
