// Files where the system has none (WebAssembly): bytes in memory with a name, which os/files.h then
// knows. A file's folder is there with its first file.
//
//   os::AddMemoryFile("model/config.json", bytes, size);     // the bytes stay until it is removed
//   os::RemoveMemoryFiles();
#ifndef PAWL_SRC_BASE_OS_MEMORY_FILES_H_
#define PAWL_SRC_BASE_OS_MEMORY_FILES_H_

#include <cstddef>
#include <string>

namespace pawl::os {

// The file owns the bytes, which std::malloc gave. One that has the name is replaced.
void AddMemoryFile(std::string path, std::byte* data, size_t bytes);
// REQUIRES: nothing that MapFile gave is in use.
void RemoveMemoryFiles();

}  // namespace pawl::os

#endif  // PAWL_SRC_BASE_OS_MEMORY_FILES_H_
