// Processes, and the pipes that lead to them.
//
//   os::Program program{.arguments = {"pdftotext", file, "-"}, .out = pipe.write};
//   os::ProcessId child = 0;
//   if (const int error = os::StartProgram(program, child); error != 0) return
//   std::strerror(error);
//   ...
//   const int code = os::WaitForEnd(child);
#ifndef PAWL_SRC_BASE_OS_PROCESSES_H_
#define PAWL_SRC_BASE_OS_PROCESSES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pawl::os {

using ProcessId = int;
ProcessId ThisProcess();
// What main calls first: the arguments in UTF-8. Texts are read and written as they are, without
// another end of lines.
std::vector<std::string> BeginProgram(int argc, char** argv);
// Where the program that runs lies; "" where that cannot be told.
std::string ThisProgram();
// The program of that name in PATH; "": there is none.
std::string FindProgram(const std::string& name);
// NAME=VALUE of each variable of the environment.
std::vector<std::string> EnvironmentVariables();

struct Pipe {
  int read = -1, write = -1;
};
// Neither end is passed on to programs that are started. nullopt: errno says why.
std::optional<Pipe> MakePipe();
// A pipe whose writer gets an error, and no signal, when its reader is gone (SendTo). What is
// written to `write` is read at `read`.
std::optional<Pipe> MakeSendPipe();
int64_t SendTo(int file, const char* from, size_t bytes);
// The reader sees the end; the file stays open.
void EndSending(int file);
// os::Write to a pipe of MakePipe; the signal that its reader is gone does not come.
int64_t WriteQuietly(int file, const char* from, size_t bytes);
// Reads and writes do not wait: EAGAIN.
void DoNotWait(int file);

// What to wait for, and whether it has come. A file below 0 is passed over.
struct Ready {
  int file = -1;
  bool to_write = false;
  bool ready = false;  // also at the end, and after an error
};
// How many are ready; 0 when the time is over or a signal came. -1 milliseconds: any time.
int WaitUntilReady(std::span<Ready> files, int milliseconds);

inline constexpr int kInherited = -1, kNothing = -2;  // in place of a file

struct Program {
  std::vector<std::string> arguments;  // the first is looked for in PATH
  int in = kInherited, out = kInherited, err = kInherited;
  bool leads_group = false;       // EndGroup ends what it starts, too
  bool blocks_no_signal = false;  // whatever this thread blocks
  // The group ends first when a signal ends this process. REQUIRES: leads_group; ForgetGroup before
  // it is waited for.
  bool ends_with_us = false;
};
void ForgetGroup(ProcessId leader);
// A command line for the shell as the arguments of a program.
std::vector<std::string> ShellWords(const std::string& command);
// 0, or the error of errno.
int StartProgram(const Program& program, ProcessId& child);

// A copy of this process; 0 in the copy. -1: errno says why.
ProcessId Fork();
[[noreturn]] void ExitAtOnce(int code);

void AskToEnd(ProcessId child);
void End(ProcessId child);
// REQUIRES: it was started with leads_group.
void EndGroup(ProcessId child);
// The exit code; -1 when it was ended by a signal, or is no child. Once for each child.
int WaitForEnd(ProcessId child);
// The same, without waiting; nullopt: it still runs.
std::optional<int> EndedWith(ProcessId child);
// Seconds of processor time that it has used; 0 when it is gone.
double ProcessorSeconds(ProcessId child);

}  // namespace pawl::os

#endif  // PAWL_SRC_BASE_OS_PROCESSES_H_
