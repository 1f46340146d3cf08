// Answers of the index are kept, so that a name that is asked for again costs no query; when there
// are very many of them they are forgotten together.
#include "plugins/monitors/repository.h"

#include <algorithm>

namespace pawl::monitors {
namespace {

constexpr size_t kMaxAnswers = 100000;

}  // namespace

std::unique_ptr<Repository> Repository::Open(const std::string& folder, const std::string& cache,
                                             const IndexOptions& options) {
  std::vector<std::string> places = {":memory:"};
  if (!cache.empty()) places.insert(places.begin(), IndexPath(cache, folder));
  for (const std::string& path : places) {
    auto index = RepositoryIndex::Open(path, ForeignFile::kReplace);
    if (!index.ok()) continue;
    const auto counts = (*index)->Update(folder, options);
    if (!counts.ok()) continue;
    return std::unique_ptr<Repository>(new Repository(folder, std::move(*index), counts->limit));
  }
  return nullptr;
}

const std::vector<std::string>& Repository::FilesWithType(const std::string& name) {
  if (types_.size() > kMaxAnswers) types_.clear();
  const auto [at, is_new] = types_.try_emplace(name);
  if (!is_new) return at->second;
  const auto symbols = index_->Named(name);
  if (!symbols.ok()) return at->second;
  for (const IndexedSymbol& s : *symbols) {
    const bool type = s.kind == "class" || s.kind == "interface" || s.kind == "enum" ||
                      s.kind == "record" || s.kind == "alias";
    if (!type || !s.container.empty()) continue;
    if (std::find(at->second.begin(), at->second.end(), s.file) == at->second.end())
      at->second.push_back(s.file);
  }
  return at->second;
}

bool Repository::HasPackage(const std::string& name) {
  if (packages_.size() > kMaxAnswers) packages_.clear();
  const auto [at, is_new] = packages_.try_emplace(name, false);
  if (!is_new) return at->second;
  const auto symbols = index_->Named(name);
  at->second = symbols.ok() && std::any_of(symbols->begin(), symbols->end(),
                                           [](const auto& s) { return s.kind == "package"; });
  return at->second;
}

bool Repository::Has(const std::string& path) const { return folder_.HasFile(path); }

std::optional<std::string> Repository::Read(const std::string& path) const {
  auto text = folder_.Read(path, SourceLimits().file_bytes);
  if (!text.ok()) return std::nullopt;
  return std::move(*text);
}

}  // namespace pawl::monitors
