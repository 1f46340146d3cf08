// Constraints that are written in Python, and the masks for them.
//
// The engine asks a constraint on threads of its own. They take the interpreter lock for the call
// and for reading what it returns, and for nothing else. An exception of Python becomes one of C++
// whose text has the type and the message, so that it ends its own output.
#include "pawl/constraint.h"

#include <functional>
#include <stdexcept>

#include "python/native/binding.h"

namespace pawl::python {
namespace {

using SharedMask = std::shared_ptr<Mask>;

SharedMask Holder(std::shared_ptr<const Mask> mask) {
  return std::const_pointer_cast<Mask>(std::move(mask));
}

// "ValueError: no such column". REQUIRES: the interpreter lock.
std::string Described(const nb::python_error& error) {
  std::string text = nb::cast<std::string>(nb::handle(error.type()).attr("__name__"));
  const nb::object message = nb::steal<nb::object>(PyObject_Str(error.value().ptr()));
  if (!message.is_valid()) {
    PyErr_Clear();
    return text;
  }
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(message.ptr(), &size);
  if (bytes == nullptr) PyErr_Clear();
  if (bytes != nullptr && size > 0) text += ": " + std::string(bytes, static_cast<size_t>(size));
  return text;
}

class PythonConstraint final : public Constraint {
 public:
  // REQUIRES: the interpreter lock.
  PythonConstraint(nb::object object, std::shared_ptr<const Vocabulary> vocabulary)
      : object_(std::move(object)),
        vocabulary_(std::move(vocabulary)),
        exact_(nb::cast<bool>(nb::bool_(object_.attr("exact")))) {}
  ~PythonConstraint() override {
    // At the end of the interpreter there is no lock to take.
    if (Py_IsInitialized() == 0) {
      (void)object_.release();
      return;
    }
    if (PyGILState_Check() != 0) {
      object_.reset();
      return;
    }
    // A thread of the engine that waited for the lock would be ended here, inside a destructor, if
    // the interpreter ends meanwhile. So the interpreter frees the object when it comes to that.
    PyObject* object = object_.release().ptr();
    const auto free = [](void* given) {
      Py_DECREF(static_cast<PyObject*>(given));
      return 0;
    };
    if (Py_AddPendingCall(free, object) == 0) return;
    const nb::gil_scoped_acquire acquire;  // too many wait
    Py_DECREF(object);
  }
  PythonConstraint(const PythonConstraint&) = delete;
  PythonConstraint& operator=(const PythonConstraint&) = delete;

  Place Look() const override {
    return Asked<Place>([&] { return PlaceOf(object_.attr("look")()); });
  }
  std::shared_ptr<const Constraint> Advance(TokenId token) const override {
    return Asked<std::shared_ptr<const Constraint>>([&]() -> std::shared_ptr<const Constraint> {
      nb::object next = object_.attr("advance")(token);
      if (next.is_none()) return nullptr;
      if (!nb::hasattr(next, "look")) Wrong("advance must return a Constraint or None", next);
      return std::make_shared<PythonConstraint>(std::move(next), vocabulary_);
    });
  }
  std::optional<std::vector<TokenId>> Completion(int most) const override {
    return Asked<std::optional<std::vector<TokenId>>>([&]() -> std::optional<std::vector<TokenId>> {
      const nb::object tokens = object_.attr("completion")(most);
      if (tokens.is_none()) return std::nullopt;
      std::vector<TokenId> out;
      if (!nb::try_cast(tokens, out)) Wrong("completion must return tokens or None", tokens);
      return out;
    });
  }
  bool exact() const override { return exact_; }

 private:
  [[noreturn]] static void Wrong(const std::string& what, nb::handle got) {
    throw std::invalid_argument(what + ", not " +
                                nb::cast<std::string>(got.type().attr("__name__")));
  }

  template <typename Answer, typename Ask>
  static Answer Asked(const Ask& ask) {
    const nb::gil_scoped_acquire acquire;
    try {
      return ask();
    } catch (const nb::python_error& error) {
      throw std::runtime_error(Described(error));
    }
  }

  Place PlaceOf(const nb::object& from) const {
    if (!nb::hasattr(from, "accepting")) Wrong("look must return a Place", from);
    Place place;
    place.mask = MaskOf(from.attr("mask"));
    place.accepting = nb::cast<bool>(nb::bool_(from.attr("accepting")));
    place.forced = TextOf(from.attr("forced"), "forced");
    place.limit = TextOf(from.attr("limit"), "limit");
    const nb::object temperature = from.attr("temperature");
    float degrees = 0;
    if (!temperature.is_none()) {
      if (!nb::try_cast(temperature, degrees)) Wrong("temperature must be a number", temperature);
      place.temperature = degrees;
    }
    return place;
  }

  std::shared_ptr<const Mask> MaskOf(const nb::object& mask) const {
    if (mask.is_none()) return nullptr;
    if (nb::isinstance<Mask>(mask)) return nb::cast<SharedMask>(mask);
    std::vector<TokenId> tokens;
    if (!nb::try_cast(mask, tokens)) Wrong("mask must be a Mask, tokens or None", mask);
    for (const TokenId token : tokens) {
      if (token < 0 || token >= vocabulary_->size()) {
        throw std::out_of_range("its mask has token " + std::to_string(token) +
                                ", but the vocabulary has " + std::to_string(vocabulary_->size()));
      }
    }
    return MaskOfTokens(*vocabulary_, tokens);
  }

  nb::object object_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  const bool exact_;
};

}  // namespace

std::shared_ptr<const Constraint> ConstraintOf(nb::object object,
                                               std::shared_ptr<const Vocabulary> vocabulary) {
  if (object.is_none()) return nullptr;
  return std::make_shared<PythonConstraint>(std::move(object), std::move(vocabulary));
}

void BindConstraint(nb::module_& module) {
  nb::class_<Mask>(module, "Mask")
      .def("__len__", &Mask::count)
      .def("__contains__",
           [](const Mask& mask, int64_t token) {
             const auto bits = static_cast<int64_t>(mask.words().size()) * 32;
             return token >= 0 && token < bits && mask.Allows(static_cast<TokenId>(token));
           })
      .def_prop_ro("tokens", &Mask::Tokens);
  module.def(
      "mask_of_tokens",
      [](const Vocabulary& vocabulary, const std::vector<TokenId>& tokens) {
        return Holder(MaskOfTokens(vocabulary, tokens));
      },
      nb::arg("vocabulary"), nb::arg("tokens"));
  module.def(
      "mask_where",
      [](const Vocabulary& vocabulary, const nb::callable& fits) {
        return Holder(MaskWhere(vocabulary, [&](TokenId token, std::string_view bytes) {
          return nb::cast<bool>(nb::bool_(fits(token, BytesOf(bytes))));
        }));
      },
      nb::arg("vocabulary"), nb::arg("fits"));
  module.def(
      "mask_of_texts",
      [](const Vocabulary& vocabulary, const nb::iterable& texts) {
        std::vector<std::string> all;
        for (nb::handle text : texts) all.push_back(TextOf(text, "a text"));
        return Holder(MaskOfTexts(vocabulary, all));
      },
      nb::arg("vocabulary"), nb::arg("texts"));
}

}  // namespace pawl::python
