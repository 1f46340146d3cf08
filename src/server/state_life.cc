// The order matters at the end: workers and the engine's thread use all the rest.
#include "src/server/state_life.h"

#include <memory>
#include <utility>

namespace pawl::server {

Status LoadState(ServerState& state, const LoadLimits& limits) {
  ServedModelOptions options = state.options.model;
  if (limits.kv_bytes > 0) options.model.kv_bytes = limits.kv_bytes;
  if (limits.kept_kv_bytes >= 0) options.model.kept_kv_bytes = limits.kept_kv_bytes;
  if (limits.progress) options.model.progress = limits.progress;
  Result<std::unique_ptr<ServedModel>> model = ServedModel::Load(state.options.model_path, options);
  if (!model.ok()) return model.error();
  Result<std::shared_ptr<Drafter>> drafter = std::shared_ptr<Drafter>();
  if (state.options.wrap_model) (*model)->loaded().WrapModel(state.options.wrap_model);
  if (state.options.make_drafter) {
    drafter = state.options.make_drafter(**model);
    if (!drafter.ok()) return drafter.error();
  }
  auto grammars = std::make_unique<GrammarStore>(
      (*model)->vocabulary(),
      GrammarStore::Options{.max_bytes = state.options.grammar_bytes -
                                         state.options.grammar_bytes / state.kToolShare});
  auto code = CodePlans::Make((*model)->vocabulary(), state.options.code);
  auto workers = std::make_unique<WorkerPool>(state.options.workers);
  auto engine = std::make_unique<AsyncEngine>(
      (*model)->loaded(),
      AsyncOptions{.max_batch = state.options.max_batch,
                   .drafter = *std::move(drafter),
                   .on_step = [&state](double s) { state.metrics.step.Observe(s); }});
  state.model = *std::move(model);
  state.grammars = std::move(grammars);
  state.code = std::move(code);
  state.workers = std::move(workers);
  state.engine = std::move(engine);
  state.ready = true;
  return {};
}

Status UnloadState(ServerState& state) {
  state.ready = false;
  state.workers.reset();
  Status saved;
  if (state.engine != nullptr) saved = state.engine->Close();
  state.engine.reset();
  state.code.reset();
  state.grammars.reset();
  state.model.reset();
  return saved;
}

}  // namespace pawl::server
