// What the C functions share: what the handles hold, how a failure becomes a status and an error,
// and how structs of other versions are read. See include/pawl/pawl.h for the rules.
#ifndef PAWL_SRC_CAPI_HANDLES_H_
#define PAWL_SRC_CAPI_HANDLES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/compiler.h"
#include "pawl/grammar.h"
#include "pawl/matcher.h"
#include "pawl/pawl.h"
#include "pawl/vocabulary.h"
#include "schemas/grammar_source.h"
#include "src/text/tokenizer.h"

struct pawl_error {
  pawl_status status;
  std::string message;
  std::string place;
};

namespace pawl::capi {

struct VocabularyData {
  std::shared_ptr<const Vocabulary> vocabulary;
  std::shared_ptr<const Tokenizer> tokenizer;  // nullptr: the vocabulary was given as bytes
  Fingerprint fingerprint = {};
};

// Stores the error when the caller wants one, and gives its status back.
inline pawl_status Fail(pawl_error** error, pawl_status status, std::string message,
                        std::string place = {}) {
  if (error != nullptr) *error = new pawl_error{status, std::move(message), std::move(place)};
  return status;
}
inline pawl_status Fail(pawl_error** error, const Error& cause) {
  return Fail(error, static_cast<pawl_status>(cause.code) + PAWL_INVALID, cause.message,
              cause.place);
}
inline pawl_status BadArgument(pawl_error** error, std::string name, std::string message) {
  return Fail(error, PAWL_BAD_ARGUMENT, std::move(message), std::move(name));
}
inline pawl_status Null(pawl_error** error, std::string name) {
  return BadArgument(error, std::move(name), "must not be NULL");
}

// Runs the body of a C function; what the standard library throws ends here.
template <typename Body>
pawl_status Guard(pawl_error** error, const Body& body) noexcept {
  try {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      return Fail(error, PAWL_LIMIT, "out of memory");
    } catch (const std::exception& cause) {
      return Fail(error, PAWL_INTERNAL, cause.what());
    } catch (...) {  // of a function of the caller's
      return Fail(error, PAWL_INTERNAL, "an exception of no kind that the standard library has");
    }
  } catch (...) {  // no memory for the error either
    return PAWL_LIMIT;
  }
}

// A pointer and a length that make a text.
inline bool IsText(const void* data, size_t length) { return data != nullptr || length == 0; }
inline std::string_view Text(const char* data, size_t length) {
  return length == 0 ? std::string_view() : std::string_view(data, length);
}

// The *_init functions: the defaults, as far as the caller's version of the struct goes.
template <typename T>
void InitStruct(T* given, size_t struct_size, T defaults) {
  if (given == nullptr || struct_size < sizeof(size_t)) return;
  defaults.struct_size = struct_size;
  std::memset(static_cast<void*>(given), 0, struct_size);
  std::memcpy(static_cast<void*>(given), &defaults, std::min(struct_size, sizeof(T)));
}

// Reads a struct of the caller's version into `out`, which holds the defaults. What a later version
// of the library would understand and this one does not must be zero.
template <typename T>
pawl_status ReadStruct(const T* given, T& out, pawl_error** error) {
  if (given == nullptr) return PAWL_OK;
  const size_t size = given->struct_size;
  if (size < sizeof(size_t)) {
    return BadArgument(error, "struct_size", "too small: set the struct up by its init function");
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0)
      return Fail(error, PAWL_UNSUPPORTED, "an option of a later version of Pawl", "struct_size");
  }
  std::memcpy(static_cast<void*>(&out), given, std::min(size, sizeof(T)));
  return PAWL_OK;
}

}  // namespace pawl::capi

struct pawl_vocabulary {
  std::shared_ptr<const pawl::capi::VocabularyData> data;
};

struct pawl_compiler {
  pawl::Compiler compiler;
  std::shared_ptr<const pawl::capi::VocabularyData> vocabulary;
  uint64_t prepare_steps;
};

struct pawl_grammar {
  pawl::Grammar grammar;
  std::shared_ptr<const pawl::capi::VocabularyData> vocabulary;
  pawl::GrammarSource source;
};

struct pawl_matcher {
  pawl::Matcher matcher;
  std::shared_ptr<const pawl::capi::VocabularyData> vocabulary;
};

struct pawl_captures {
  std::vector<pawl::Capture> list;
};

struct pawl_batch {
  pawl::BatchFiller filler;
};

struct pawl_document {
  std::optional<std::string> text;
  std::string message;
};

#endif  // PAWL_SRC_CAPI_HANDLES_H_
