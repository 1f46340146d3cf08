// Kinds, types and docstrings of the members of a Python type.
#ifndef PAWL_PLUGINS_MONITORS_PYTHON_DETAILS_H_
#define PAWL_PLUGINS_MONITORS_PYTHON_DETAILS_H_

#include <span>
#include <string>
#include <vector>

#include "plugins/monitors/monitor.h"
#include "plugins/monitors/python/symbol_table.h"

namespace pawl::monitors::python {

// REQUIRES: as many details as names.
void MemberDetails(SymbolTable& world, const Type& type, std::span<const std::string> names,
                   std::vector<NameDetail>& details);

// Adds the members that are known, where others may be there too.
void KnownMembers(SymbolTable& world, const Type& type, std::vector<std::string>& names);

}  // namespace pawl::monitors::python

#endif  // PAWL_PLUGINS_MONITORS_PYTHON_DETAILS_H_
