// The Python module pawl._pawl: python/native/binding.h says what is in it and what is not.
#include "python/native/binding.h"

namespace pawl::python {

void Raise(const Error& error) {
  const nb::object type = nb::module_::import_("pawl._errors").attr("PawlError");
  // Messages quote the input, which may be cut inside of a character.
  const auto text = [](const std::string& bytes) {
    return nb::steal<nb::object>(PyUnicode_DecodeUTF8(
        bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "backslashreplace"));
  };
  const nb::object value = type(ErrorCodeName(error.code), text(error.message), text(error.place));
  PyErr_SetObject(type.ptr(), value.ptr());
  throw nb::python_error();
}

void RaiseInvalid(std::string message) { Raise({ErrorCode::kInvalid, std::move(message), ""}); }

std::string TextOf(nb::handle value, const char* what) {
  if (PyBytes_Check(value.ptr())) {
    return {PyBytes_AS_STRING(value.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(value.ptr()))};
  }
  if (PyUnicode_Check(value.ptr())) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
    if (text == nullptr) {
      PyErr_Clear();
      RaiseInvalid(std::string(what) + " has a lone surrogate, which is no character");
    }
    return {text, static_cast<size_t>(size)};
  }
  throw nb::type_error((std::string(what) + " must be a str or bytes").c_str());
}

nb::bytes BytesOf(std::string_view text) { return nb::bytes(text.data(), text.size()); }

}  // namespace pawl::python

NB_MODULE(_pawl, module) {
  // Objects that other modules still hold when the interpreter ends are no leak to tell users of.
  nanobind::set_leak_warnings(false);
  module.doc() = "The native part of pawl; use the package pawl.";
  pawl::python::BindVocabulary(module);
  pawl::python::BindCompiler(module);
  pawl::python::BindConstraint(module);
  pawl::python::BindMatcher(module);
  pawl::python::BindEngine(module);
  pawl::python::BindSampling(module);
  pawl::python::BindStores(module);
}
