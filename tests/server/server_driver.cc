// `pawl serve` in small: the server and nothing of the other commands, so that it is soon built
// with sanitizers. bench/server/load.py starts it in place of the command (--pawl).
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "src/server/server.h"

int main(int argc, char** argv) {
  pawl::server::ServerOptions options;
  options.model_path = PAWL_SOURCE_DIR "/models/tiny-extract";
  options.model.model.threads = 1;
  for (int i = 1; i + 1 < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--port") options.http.port = std::atoi(argv[i + 1]);
    if (name == "--batch") options.max_batch = std::atoi(argv[i + 1]);
    if (name == "--model") options.model_path = argv[i + 1];
    if (name == "--grammar-mb") {
      options.grammar_bytes = static_cast<size_t>(std::atoi(argv[i + 1])) << 20;
    }
  }
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  auto server = pawl::server::Server::Start(options);
  if (!server.ok() || !(*server)->WaitUntilReady().ok()) {
    std::fprintf(stderr, "the server does not start\n");
    return 1;
  }
  std::printf("listening on http://127.0.0.1:%d\n", (*server)->port());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  (void)(*server)->Stop();
  return 0;
}
