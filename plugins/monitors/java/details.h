// Kinds, types and Javadoc of the members of a Java value.
#ifndef PAWL_PLUGINS_MONITORS_JAVA_DETAILS_H_
#define PAWL_PLUGINS_MONITORS_JAVA_DETAILS_H_

#include <span>
#include <string>
#include <vector>

#include "plugins/monitors/java/typer.h"
#include "plugins/monitors/monitor.h"

namespace pawl::monitors::java {

// REQUIRES: as many details as names.
void MemberDetails(SymbolTable& world, const Value& value, std::span<const std::string> names,
                   std::vector<NameDetail>& details);
// Adds the members that are known, where others may be there too.
void KnownMembers(SymbolTable& world, const Value& value, std::vector<std::string>& names);
// Of the packages and classes in a package.
void PackageDetails(std::span<const std::string> names, std::vector<NameDetail>& details);

}  // namespace pawl::monitors::java

#endif  // PAWL_PLUGINS_MONITORS_JAVA_DETAILS_H_
