// What Python holds of an engine, for the sources that bind it: engine.cc (outputs) and sampling.cc
// (samplers and scores).
#ifndef PAWL_PYTHON_NATIVE_BOUND_ENGINE_H_
#define PAWL_PYTHON_NATIVE_BOUND_ENGINE_H_

#include <memory>

#include "pawl/engine.h"
#include "python/native/binding.h"
#include "python/native/job.h"
#include "src/engine/async_engine.h"

namespace pawl::python {

struct BoundEngine {
  std::shared_ptr<AsyncEngine> engine;
  std::shared_ptr<ArmedJobs> armed = std::make_shared<ArmedJobs>();

  ~BoundEngine() {
    if (engine == nullptr) return;
    // Its thread is joined, perhaps after a step; others may go on meanwhile.
    nb::gil_scoped_release release;
    engine.reset();
    armed->Close();
  }
};

// A prompt: ("prompt", text, special), ("tokens", ids), ("chat", JSON) or ("extract", schema, text,
// instruction, examples, view, record, problem).
EngineRequest RequestOf(const nb::tuple& prompt);

}  // namespace pawl::python

#endif  // PAWL_PYTHON_NATIVE_BOUND_ENGINE_H_
