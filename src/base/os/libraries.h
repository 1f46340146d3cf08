// Shared libraries that are loaded while the program runs.
#ifndef PAWL_SRC_BASE_OS_LIBRARIES_H_
#define PAWL_SRC_BASE_OS_LIBRARIES_H_

namespace pawl::os {

// null: there is no such library, or this program cannot load any. It stays loaded.
void* OpenLibrary(const char* name);
// The address of a function of it; null: it has none of that name.
void* FunctionOf(void* library, const char* name);

}  // namespace pawl::os

#endif  // PAWL_SRC_BASE_OS_LIBRARIES_H_
