// dlopen. A program without shared libraries of its own loads none.
#include <dlfcn.h>

#include "src/base/os/libraries.h"

namespace pawl::os {

void* OpenLibrary(const char* name) { return ::dlopen(name, RTLD_LAZY | RTLD_LOCAL); }

void* FunctionOf(void* library, const char* name) { return ::dlsym(library, name); }

}  // namespace pawl::os
