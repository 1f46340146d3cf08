// Intake: a request that a worker reads, from its body to the answer or the Call that it becomes.
//
//   Intake::Start(server, exchange, [](Intake& intake) {
//     const StopScope scope(&intake.halt());
//     ...                                       // may throw Stopped
//     if (intake.Claim()) exchange->Reply(...);
//   });
//
// It ends early where its client goes, where its time is over (408) and where the server stops. The
// work hears of that by halt(), and has no answer to give any more.
#ifndef PAWL_SRC_SERVER_INTAKE_H_
#define PAWL_SRC_SERVER_INTAKE_H_

#include <atomic>
#include <functional>
#include <memory>

#include "pawl/result.h"
#include "src/server/api_error.h"
#include "src/server/http.h"

namespace pawl::server {

class ServerState;

// Thread-safe.
class Intake : public std::enable_shared_from_this<Intake> {
 public:
  using Work = std::function<void(Intake& intake)>;

  // Answers at once where too many wait already or the server stops. `refuse`: answers with an
  // error, from any thread.
  static void Start(const std::shared_ptr<ServerState>& server, std::shared_ptr<Exchange> exchange,
                    std::function<void(const ApiError& error)> refuse, Work work);
  ~Intake();

  // The answer is the caller's from now on. false: it was given already.
  bool Claim() { return !claimed_.exchange(true); }
  // Answers with `error`, and ends the work. false: the answer was somebody else's.
  bool GiveUp(const ApiError& error) noexcept;
  double seconds() const;

  const std::atomic<bool>& halt() const { return halt_; }
  // The same for what compiles.
  const std::shared_ptr<StopFlag>& stop() const { return stop_; }

 private:
  Intake(std::shared_ptr<ServerState> server, std::shared_ptr<Exchange> exchange,
         std::function<void(const ApiError& error)> refuse);
  void Run(const Work& work);
  void End();

  const std::shared_ptr<ServerState> server_;
  const std::shared_ptr<Exchange> exchange_;
  const std::function<void(const ApiError& error)> refuse_;
  const std::shared_ptr<StopFlag> stop_ = std::make_shared<StopFlag>();
  std::atomic<bool> claimed_{false}, halt_{false};
  bool counted_ = false;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_INTAKE_H_
