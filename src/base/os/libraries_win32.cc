// LoadLibrary.
#include <windows.h>

#include "src/base/os/libraries.h"
#include "src/base/os/wide_win32.h"

namespace pawl::os {

void* OpenLibrary(const char* name) { return ::LoadLibraryW(Wide(name).c_str()); }

void* FunctionOf(void* library, const char* name) {
  return reinterpret_cast<void*>(::GetProcAddress(static_cast<HMODULE>(library), name));
}

}  // namespace pawl::os
