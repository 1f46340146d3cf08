// Vocabulary and Tokenizer for Python.
#include "pawl/vocabulary.h"

#include <algorithm>

#include "python/native/binding.h"
#include "src/text/tokenizer.h"

namespace pawl::python {
namespace {

using SharedVocabulary = std::shared_ptr<Vocabulary>;

// nanobind's holders are of types without const; no method of Vocabulary that is bound changes it.
SharedVocabulary Holder(std::shared_ptr<const Vocabulary> vocabulary) {
  return std::const_pointer_cast<Vocabulary>(std::move(vocabulary));
}

TokenId CheckedToken(const Vocabulary& vocabulary, int64_t token) {
  if (token < 0 || token >= vocabulary.size()) {
    throw nb::index_error(("token " + std::to_string(token) + " of a vocabulary of " +
                           std::to_string(vocabulary.size()))
                              .c_str());
  }
  return static_cast<TokenId>(token);
}

SharedVocabulary MakeVocabulary(nb::sequence tokens, std::vector<TokenId> special,
                                std::vector<TokenId> end_tokens) {
  VocabularyInit init;
  init.tokens.reserve(nb::len(tokens));
  for (nb::handle token : tokens) init.tokens.push_back(TextOf(token, "a token"));
  init.special = std::move(special);
  init.end_tokens = std::move(end_tokens);
  nb::gil_scoped_release release;
  auto vocabulary = Vocabulary::Create(std::move(init));
  if (vocabulary.ok()) return Holder(*std::move(vocabulary));
  nb::gil_scoped_acquire acquire;
  Raise(vocabulary.error());
}

}  // namespace

void BindVocabulary(nb::module_& module) {
  nb::class_<Vocabulary>(module, "Vocabulary")
      .def(nb::new_([](nb::sequence tokens, std::vector<TokenId> special,
                       std::vector<TokenId> end_tokens) {
             return MakeVocabulary(tokens, std::move(special), std::move(end_tokens));
           }),
           nb::arg("tokens"), nb::arg("special") = std::vector<TokenId>(),
           nb::arg("end_tokens") = std::vector<TokenId>())
      .def("__len__", &Vocabulary::size)
      .def_prop_ro("mask_words", &Vocabulary::mask_words)
      .def_prop_ro("end_tokens",
                   [](const Vocabulary& v) {
                     return std::vector<TokenId>(v.end_tokens().begin(), v.end_tokens().end());
                   })
      .def_prop_ro("special",
                   [](const Vocabulary& v) {
                     std::vector<TokenId> special;
                     for (TokenId id = 0; id < v.size(); ++id) {
                       if (v.is_special(id)) special.push_back(id);
                     }
                     return special;
                   })
      .def(
          "bytes",
          [](const Vocabulary& v, int64_t token) {
            return BytesOf(v.bytes(CheckedToken(v, token)));
          },
          nb::arg("token"))
      .def(
          "is_special",
          [](const Vocabulary& v, int64_t token) { return v.is_special(CheckedToken(v, token)); },
          nb::arg("token"))
      .def(
          "is_end",
          [](const Vocabulary& v, int64_t token) { return v.is_end(CheckedToken(v, token)); },
          nb::arg("token"))
      .def(
          "fewest_tokens",
          [](const Vocabulary& v, nb::handle text) {
            return v.FewestTokens(TextOf(text, "the text"));
          },
          nb::arg("text"));

  nb::class_<Tokenizer>(module, "Tokenizer")
      .def_static(
          "from_file",
          [](const std::string& path) {
            return std::const_pointer_cast<Tokenizer>(Take(Tokenizer::FromFile(path)));
          },
          nb::arg("path"))
      .def_static(
          "from_json",
          [](nb::handle text) {
            return std::const_pointer_cast<Tokenizer>(
                Take(Tokenizer::FromJson(TextOf(text, "the tokenizer"))));
          },
          nb::arg("text"))
      .def("__len__", &Tokenizer::size)
      .def_prop_ro("bos",
                   [](const Tokenizer& t) -> std::optional<TokenId> {
                     if (t.bos() == kNoToken) return std::nullopt;
                     return t.bos();
                   })
      .def_prop_ro("end_tokens",
                   [](const Tokenizer& t) {
                     return std::vector<TokenId>(t.end_tokens().begin(), t.end_tokens().end());
                   })
      .def(
          "encode",
          [](const Tokenizer& t, nb::handle text, bool add_special_tokens, bool parse_special) {
            return t.Encode(TextOf(text, "the text"), {add_special_tokens, parse_special});
          },
          nb::arg("text"), nb::arg("add_special_tokens") = false, nb::arg("parse_special") = false)
      .def(
          "decode",
          [](const Tokenizer& t, const std::vector<TokenId>& ids, bool keep_special) {
            for (TokenId id : ids) {
              if (id < 0 || id >= t.size()) throw nb::index_error("a token out of range");
            }
            return BytesOf(t.Decode(ids, keep_special));
          },
          nb::arg("tokens"), nb::arg("keep_special") = false)
      .def(
          "id_of",
          [](const Tokenizer& t, nb::handle name) -> std::optional<TokenId> {
            const TokenId id = t.IdOf(TextOf(name, "the token"));
            if (id == kNoToken) return std::nullopt;
            return id;
          },
          nb::arg("token"))
      .def(
          "vocabulary",
          [](const Tokenizer& t, int padded_size) {
            return Holder(Take(t.MakeVocabulary(padded_size)));
          },
          nb::arg("padded_size") = 0);
}

}  // namespace pawl::python
