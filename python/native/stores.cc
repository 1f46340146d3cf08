// Names of models for Python. The environment is read in python/pawl/_stores.py, and comes here as
// a dict.
#include "pawl/engine.h"
#include "python/native/binding.h"
#include "src/engine/model_paths.h"

namespace pawl::python {
namespace {

Variable VariablesOf(const nb::dict& environment) {
  return [environment](const char* name) -> std::string {
    const nb::str key(name);
    if (!environment.contains(key)) return "";
    return TextOf(environment[key], name);
  };
}

}  // namespace

void BindStores(nb::module_& module) {
  nb::class_<ModelPaths>(module, "ModelPaths")
      .def("__init__",
           [](ModelPaths* self, const nb::dict& environment) {
             new (self) ModelPaths(ModelPathsOf(VariablesOf(environment)));
           })
      .def_ro("hub", &ModelPaths::hub)
      .def_ro("ollama", &ModelPaths::ollama)
      .def_ro("lmstudio", &ModelPaths::lmstudio);
  module.def("resolve_model", [](const std::string& name, const ModelPaths& paths) {
    Result<std::string> path = Error{};
    {
      const nb::gil_scoped_release unlocked;
      path = ResolveModel(name, paths);
    }
    return Take(std::move(path));
  });
}

}  // namespace pawl::python
