// Signals to the whole process.
#ifndef PAWL_SRC_BASE_OS_SIGNALS_H_
#define PAWL_SRC_BASE_OS_SIGNALS_H_

namespace pawl::os {

// A write to a pipe or socket that has no reader is an error, and ends nothing.
void IgnoreBrokenPipes();
// So is a write beyond the largest size of a file.
void IgnoreFileSizeLimit();

// For a program that runs until it is told to end: SIGINT and SIGTERM end it, SIGHUP says that its
// logs were moved. Hold is called before any other thread begins, so that all of them leave the
// signals to the one that waits.
enum class ServerSignal { kEnd, kReopen };
void HoldServerSignals();
ServerSignal WaitForServerSignal();
// From here on each of them ends the process.
void ReleaseServerSignals();

}  // namespace pawl::os

#endif  // PAWL_SRC_BASE_OS_SIGNALS_H_
