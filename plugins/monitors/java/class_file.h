// Class files (Java Virtual Machine Specification, chapter 4): what a class declares, with generic
// types where it has them.
#ifndef PAWL_PLUGINS_MONITORS_JAVA_CLASS_FILE_H_
#define PAWL_PLUGINS_MONITORS_JAVA_CLASS_FILE_H_

#include <string_view>

#include "pawl/result.h"
#include "plugins/monitors/java/types.h"

namespace pawl::monitors::java {

// Errors: kInvalid for bytes that are no class file, with the place.
Result<Class> ReadClassFile(std::string_view bytes);

}  // namespace pawl::monitors::java

#endif  // PAWL_PLUGINS_MONITORS_JAVA_CLASS_FILE_H_
