// Names of models for Python. The environment is read in python/pawl/_stores.py, and comes here as
// a dict.
#include "pawl/engine.h"
#include "python/native/binding.h"
#include "src/engine/hub_pull.h"
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

// get(url, headers, head, body): one GET request. It calls head(status, headers) and body(bytes)
// until one of them returns False, and returns None, or (may_pass, message) of a connection that
// failed.
Status GetByPython(const nb::callable& get, const HubRequest& request,
                   const HubReceiver& receiver) {
  const nb::gil_scoped_acquire locked;
  const nb::object head =
      nb::cpp_function([&receiver](int status, const std::vector<nb::tuple>& headers) {
        HubAnswer answer{status, {}};
        for (const nb::tuple& header : headers) {
          answer.headers.emplace_back(TextOf(header[0], "a header"), TextOf(header[1], "a header"));
        }
        return receiver.head(answer);
      });
  const nb::object body = nb::cpp_function([&receiver](const nb::bytes& bytes) {
    const nb::gil_scoped_release unlocked;
    return receiver.body({bytes.c_str(), bytes.size()});
  });
  const nb::object failure = get(request.url, nb::cast(request.headers), head, body);
  if (failure.is_none()) return {};
  const nb::tuple said(failure);
  return Error{nb::cast<bool>(said[0]) ? ErrorCode::kIo : ErrorCode::kInvalid,
               TextOf(said[1], "a message"), ""};
}

std::string PullByPython(const std::string& name, const nb::dict& environment,
                         const nb::callable& get, const nb::object& progress) {
  const HubClient client(Take(HubSettingsOf(VariablesOf(environment))),
                         [&](const HubRequest& request, const HubReceiver& receiver) {
                           return GetByPython(get, request, receiver);
                         });
  PullOptions options;
  options.pause = [](std::chrono::milliseconds time) {
    const nb::gil_scoped_acquire locked;
    nb::module_::import_("time").attr("sleep")(static_cast<double>(time.count()) / 1000);
  };
  if (!progress.is_none()) {
    options.progress = [&](const PullProgress& now) {
      const nb::gil_scoped_acquire locked;
      progress(now.file, now.all_done, now.all_size);
    };
  }
  Result<std::string> path = Error{};
  {
    const nb::gil_scoped_release unlocked;
    path = PullModel(name, client, options);
  }
  return Take(std::move(path));
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
      .def_ro("lmstudio", &ModelPaths::lmstudio)
      .def_ro("settings", &ModelPaths::settings);
  module.def("resolve_model", [](const std::string& name, const ModelPaths& paths) {
    Result<std::string> path = Error{};
    {
      const nb::gil_scoped_release unlocked;
      path = ResolveModel(name, paths);
    }
    return Take(std::move(path));
  });
  module.def("pull_model", PullByPython, nb::arg("name"), nb::arg("environment"), nb::arg("get"),
             nb::arg("progress").none());
}

}  // namespace pawl::python
