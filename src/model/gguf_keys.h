// The metadata of a GGUF file below one prefix, with typed reads. The first error is kept.
//
//   GgufKeys keys(file, "llama.");
//   const int64_t width = keys.Int("embedding_length", kMaxWidth, std::nullopt);
//   keys.RefuseTheRest();
//   if (keys.error()) return *keys.error();
#ifndef PAWL_SRC_MODEL_GGUF_KEYS_H_
#define PAWL_SRC_MODEL_GGUF_KEYS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pawl/result.h"
#include "pawl/vocabulary.h"
#include "src/model/gguf.h"

namespace pawl {

class GgufKeys {
 public:
  GgufKeys(const GgufFile& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

  const GgufFile& file() const { return file_; }
  const GgufValue* Find(const std::string& key);
  bool Has(const std::string& key) { return Find(key) != nullptr; }
  // The same without counting as a read.
  bool Stands(const std::string& key) const { return file_.FindValue(prefix_ + key) != nullptr; }
  // From `low` to `high`.
  int64_t Int(const std::string& key, int64_t high, std::optional<int64_t> otherwise,
              int64_t low = 1);
  // One for each of `count` layers: a list of them, or one number for all.
  std::vector<int64_t> Ints(const std::string& key, int count, int64_t high,
                            std::optional<int64_t> otherwise, int64_t low = 1);
  double Positive(const std::string& key, std::optional<double> otherwise);
  std::string String(const std::string& key, std::string otherwise);
  // A token id; kNoToken when absent.
  TokenId Token(const std::string& key, int64_t vocabulary);
  bool Bool(const std::string& key, bool otherwise);
  void Fail(ErrorCode code, const std::string& key, std::string message);
  // Keys below the prefix that nothing has read would change the result unseen.
  void RefuseTheRest();
  const std::optional<Error>& error() const { return error_; }

 private:
  const GgufFile& file_;
  std::string prefix_;
  std::set<std::string> used_;
  std::optional<Error> error_;
};

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_GGUF_KEYS_H_
