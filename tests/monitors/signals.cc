// A monitor for Python: the signals that may stand behind `signal.signal(signal.`.
#include "plugins/monitors/monitor.h"

namespace pawl::monitors {
namespace {

class Signals : public Monitor {
 public:
  const char* name() const override { return "signals"; }
  // Cheap, asked before every byte of code: is this a place for me?
  bool Triggered(const Cursor& c) const override {
    return NameStart(c.next) && c.text.ends_with("signal.signal(signal.");
  }
  // The names that may come (Verdict::names), a refusal of the next byte (Verdict::refusal), or
  // nothing, which means that anything may come.
  Verdict Ask(const Cursor& /*cursor*/, Analysis& /*analysis*/) const override {
    auto may_come = std::make_shared<Completions>();
    may_come->names = {"SIGALRM", "SIGHUP", "SIGINT", "SIGTERM", "Signals"};  // sorted
    may_come->followers = ",.";  // what may stand behind a name; empty: whatever ends one
    return {.names = std::move(may_come)};
  }
};

}  // namespace

std::unique_ptr<Monitor> MakeSignalsMonitor() { return std::make_unique<Signals>(); }

}  // namespace pawl::monitors
