// A request has one answer, and three may want to give it: the work, the clock, and the client by
// going. The first of them claims it; the flag that the others set only makes the work end sooner.
#include "src/server/intake.h"

#include <chrono>
#include <string>
#include <utility>

#include "src/base/failure.h"
#include "src/base/stop_scope.h"
#include "src/server/server_state.h"

namespace pawl::server {

Intake::Intake(std::shared_ptr<ServerState> server, std::shared_ptr<Exchange> exchange,
               std::function<void(const ApiError& error)> refuse)
    : server_(std::move(server)), exchange_(std::move(exchange)), refuse_(std::move(refuse)) {}

Intake::~Intake() {
  const std::lock_guard lock(server_->mutex);
  server_->intakes.erase(this);
  if (counted_) --server_->reading;
}

double Intake::seconds() const {
  const auto since = std::chrono::steady_clock::now() - exchange_->request().received;
  return std::chrono::duration<double>(since).count();
}

void Intake::Start(const std::shared_ptr<ServerState>& server, std::shared_ptr<Exchange> exchange,
                   std::function<void(const ApiError& error)> refuse, Work work) {
  const size_t bytes = exchange->request().body.size();
  const std::shared_ptr<Intake> intake(new Intake(server, std::move(exchange), std::move(refuse)));
  if (server->draining) {
    intake->GiveUp({.status = 503, .message = "the server is shutting down", .retry_seconds = 1});
    return;
  }
  const int most = server->options.max_queue + server->options.max_batch;
  intake->counted_ = true;
  if (server->reading.fetch_add(1) >= most) {
    ++server->metrics.refused_full;
    intake->GiveUp(
        {.status = 429,
         .message = "the queue is full: " + std::to_string(most) + " requests wait to be read",
         .retry_seconds = 1});
    return;
  }
  {
    const std::lock_guard lock(server->mutex);
    server->intakes.insert(intake.get());
  }
  intake->exchange_->OnGone([weak = intake->weak_from_this()] {
    const auto alive = weak.lock();
    if (alive == nullptr) return;
    alive->End();
    if (alive->Claim()) ++alive->server_->metrics.cancelled;
  });
  server->workers->Submit([intake, work = std::move(work)] { intake->Run(work); },
                          WorkSizeOf(bytes));
}

void Intake::Run(const Work& work) {
  if (halt_) return;
  try {
    work(*this);
  } catch (const Stopped&) {
    // Who stopped it has answered, or the client has gone.
  } catch (...) {
    GiveUp(FailureError(CurrentFailure()));
  }
}

void Intake::End() {
  halt_ = true;
  stop_->Stop();
}

bool Intake::GiveUp(const ApiError& error) noexcept {
  if (!Claim()) return false;
  End();
  try {
    refuse_(error);
  } catch (...) {
    exchange_->Abort();
  }
  return true;
}

}  // namespace pawl::server
