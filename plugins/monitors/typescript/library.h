// The declarations of the standard library (lib.es*.d.ts of the package node-typescript, without
// comments), and those that newer versions of the language have added since.
#ifndef PAWL_PLUGINS_MONITORS_TYPESCRIPT_LIBRARY_H_
#define PAWL_PLUGINS_MONITORS_TYPESCRIPT_LIBRARY_H_

#include <string>
#include <string_view>

namespace pawl::monitors::ts {

std::string LibraryText();
// Names that a host such as a browser or Node declares: they exist, nothing is known of their
// types.
bool HostName(std::string_view name);
const std::string_view* HostNames(size_t* count);

}  // namespace pawl::monitors::ts

#endif  // PAWL_PLUGINS_MONITORS_TYPESCRIPT_LIBRARY_H_
