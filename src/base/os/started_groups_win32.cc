// A job object ends with its last handle, so the groups end with this process by themselves.
#include "src/base/os/started_groups.h"

namespace pawl::os {

StartScope::StartScope() = default;
StartScope::~StartScope() = default;
void StartScope::Started(ProcessId) const {}
void ForgetGroup(ProcessId) {}

}  // namespace pawl::os
