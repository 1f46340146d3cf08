// Past outputs by grammar: records under one schema share their layout, the values of their enums,
// and often whole values.
//
// For each grammar there is a suffix automaton over the outputs, with a mark before each, so that
// also the first tokens have a context. There is one more over the outputs under all grammars. A
// request with tools is under a grammar of all its tools, which is another one where one tool of
// ten differs. What is the same is the text in front of a call's arguments: it names the tool, and
// with it as the context the automaton of all outputs knows the tool's calls. Of the two the one
// with the longer context guesses. All of them together keep within a number of bytes: a
// grammar whose outputs reach its share starts again with the later half of them, and the grammar
// that was not used for longest goes first.
//
// A file of histories is a line "pawl draft history 1 V" (V: the vocabulary's size), then for each
// grammar its fingerprint, its owner unless that is 0, and its outputs' tokens. What is in it
// decides drafts only, never an output, so a file that does not fit the vocabulary is an error and
// nothing worse can happen.
#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <utility>

#include "src/base/file.h"
#include "src/base/os/files.h"
#include "src/decode/draft/suffix_automaton.h"
#include "src/decode/draft/suffix_proposals.h"

namespace pawl {
namespace {

constexpr TokenId kBeginning = -2;
constexpr size_t kMostFileBytes = size_t{1} << 30;
constexpr const char* kFileMark = "pawl draft history 1 ";
constexpr int64_t kPastBytes = 160;  // of a grammar, without its outputs
// Half of the memory of all sources.
constexpr int64_t kShareOfHistory = 2;
// In place of a grammar: outputs under all of them.
constexpr uint64_t kAnyGrammar = DraftRequest::kUnknownGrammar - 1;

struct PastKey {
  uint64_t grammar = 0, owner = 0;
  friend auto operator<=>(const PastKey&, const PastKey&) = default;
};

struct Past {
  std::shared_ptr<SuffixAutomaton> text = std::make_shared<SuffixAutomaton>();
  uint64_t used = 0;
};

class HistorySource : public DraftSource {
 public:
  explicit HistorySource(const DraftSetting& setting)
      : setting_(setting),
        most_bytes_(std::min(setting.options.history_bytes,
                             DraftBytes(setting.options) / kShareOfHistory)) {}

  std::unique_ptr<DraftSession> Follow(const DraftRequest& request) override;

  std::shared_ptr<SuffixAutomaton> Of(const PastKey& key) {
    std::shared_ptr<SuffixAutomaton> text = Used(key).text;
    Trim();
    return text;
  }

  void Learn(const PastKey& key, std::span<const TokenId> output) {
    if (output.empty()) return;
    LearnOne(key, output);
    LearnOne({.grammar = kAnyGrammar, .owner = key.owner}, output);
  }

  void LearnOne(const PastKey& key, std::span<const TokenId> output) {
    Past& past = Used(key);
    bytes_ -= past.text->bytes();
    try {
      past.text->Append(kBeginning);
      for (const TokenId token : output) past.text->Append(token);
      if (past.text->bytes() > most_bytes_ / 2) Halve(past);
    } catch (...) {
      // Followers that hold the text find it empty, and look for the grammar's new one.
      pasts_.erase(key);
      bytes_ -= kPastBytes;
      throw;
    }
    bytes_ += past.text->bytes();
    Trim();
  }

  int64_t bytes() const override { return bytes_; }

  Status Read(const std::string& file) {
    const Result<std::string> content = ReadRegularFile(file, kMostFileBytes);
    if (!content.ok()) return content.error();
    std::string_view rest = *content;
    const auto bad = [&](const char* why) {
      return Error{ErrorCode::kInvalid,
                   std::string(why) + " at byte " + std::to_string(content->size() - rest.size()),
                   file};
    };
    const std::string mark = kFileMark + std::to_string(setting_.vocabulary->size()) + "\n";
    if (!rest.starts_with(kFileMark)) return bad("is no history of drafts");
    if (!rest.starts_with(mark)) return bad("is of another vocabulary");
    rest.remove_prefix(mark.size());
    PastKey key;
    std::vector<TokenId> output;
    while (!rest.empty()) {
      const size_t end = rest.find('\n');
      if (end == std::string_view::npos) return bad("ends in the middle of a line");
      std::string_view line = rest.substr(0, end);
      const bool names = line.starts_with("g ");
      if (names) line.remove_prefix(2);
      output.clear();
      if (names) key = {};
      int numbers = 0;
      do {
        uint64_t value = 0;
        const auto [at, error] =
            std::from_chars(line.data(), line.data() + line.size(), value, names ? 16 : 10);
        const bool fits = names || value < static_cast<uint64_t>(setting_.vocabulary->size());
        if (error != std::errc() || !fits) return bad("there is no token");
        if (names) (numbers == 0 ? key.grammar : key.owner) = value;
        if (names && ++numbers > 2) return bad("a grammar has more than an owner");
        if (!names) output.push_back(static_cast<TokenId>(value));
        line.remove_prefix(static_cast<size_t>(at - line.data()));
        if (!line.empty() && line[0] != ' ') return bad("there is no token");
        if (!line.empty()) line.remove_prefix(1);
      } while (!line.empty());
      rest.remove_prefix(end + 1);
      if (!names) Learn(key, output);
    }
    return {};
  }

  Status Save() override {
    if (setting_.options.history_file.empty()) return {};
    std::string out = kFileMark + std::to_string(setting_.vocabulary->size()) + "\n";
    // The oldest first, so that reading keeps the newest.
    std::vector<std::pair<uint64_t, PastKey>> order;
    for (const auto& [key, past] : pasts_) {
      // What is under all grammars is read from the others.
      const bool own = key.grammar != kAnyGrammar;
      if (own && past.text->size() > 0) order.push_back({past.used, key});
    }
    std::sort(order.begin(), order.end());
    const auto hex = [](uint64_t number) {
      char digits[17];
      char* const begin = static_cast<char*>(digits);
      return std::string(begin, std::to_chars(begin, begin + sizeof digits, number, 16).ptr);
    };
    for (const auto& [used, key] : order) {
      out += "g " + hex(key.grammar) + (key.owner != 0 ? " " + hex(key.owner) : "") + "\n";
      const std::span<const TokenId> tokens = pasts_[key].text->tokens();
      for (size_t i = 1; i < tokens.size(); ++i) {
        // A line for each output.
        const bool ends = i + 1 == tokens.size() || tokens[i + 1] < 0;
        if (tokens[i] >= 0) out += std::to_string(tokens[i]) + (ends ? "\n" : " ");
      }
    }
    return WriteFile(setting_.options.history_file, out);
  }

 private:
  Past& Used(const PastKey& key) {
    const auto [past, fresh] = pasts_.try_emplace(key);
    if (fresh) bytes_ += kPastBytes + past->second.text->bytes();
    past->second.used = ++clock_;
    return past->second;
  }
  void Trim() {
    while (bytes_ > most_bytes_ && !pasts_.empty()) {
      const auto oldest = std::min_element(
          pasts_.begin(), pasts_.end(),
          [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
      bytes_ -= kPastBytes + oldest->second.text->bytes();
      pasts_.erase(oldest);
    }
  }
  void Halve(Past& past) const {
    const std::span<const TokenId> tokens = past.text->tokens();
    size_t begin = tokens.size() / 2;
    while (begin < tokens.size() && tokens[begin] != kBeginning) ++begin;
    // Followers keep the old one until they end.
    auto text = std::make_shared<SuffixAutomaton>();
    for (const TokenId token : tokens.subspan(begin)) text->Append(token);
    past.text = std::move(text);
  }

  const DraftSetting& setting_;
  const int64_t most_bytes_;
  std::map<PastKey, Past> pasts_;
  uint64_t clock_ = 0;
  int64_t bytes_ = 0;
};

class NoDrafts : public DraftSession {
 public:
  void Propose(const DraftPlace&, DraftCursor&, std::vector<DraftProposal>&) override {}
};

class HistoryFollower : public DraftSession {
 public:
  HistoryFollower(HistorySource& source, const PastKey& key)
      : source_(source), own_{.key = key}, all_{.key = {kAnyGrammar, key.owner}} {
    Restart(own_);
    Restart(all_);
  }
  void Append(std::span<const TokenId> tokens) override {
    // Outputs alone; the first call is the prompt.
    if (!std::exchange(began_, true)) return;
    output_.insert(output_.end(), tokens.begin(), tokens.end());
    for (Place* const place : {&own_, &all_}) {
      for (const TokenId token : tokens) place->at = place->text->Next(place->at, token);
    }
  }
  DraftCursor Root() override {
    // Another request may have ended and added its output, which changes what states mean; the
    // place is found again by the last tokens.
    for (Place* const place : {&own_, &all_}) {
      if (place->text->size() != place->known) Restart(*place);
    }
    used_ = all_.at.length > own_.at.length ? &all_ : &own_;
    return CursorOf(used_->at);
  }
  DraftCursor Next(DraftCursor at, TokenId token) override {
    return CursorOf(used_->text->Next(MatchOf(at), token));
  }
  void Propose(const DraftPlace& place, DraftCursor& cursor,
               std::vector<DraftProposal>& out) override {
    if (used_->text->size() > 0) ProposeFrom(*used_->text, cursor, place, out);
  }
  void Finish(std::span<const TokenId> output) override { source_.Learn(own_.key, output); }

 private:
  static constexpr size_t kContext = 64;
  // Where the end of the output stands in past ones.
  struct Place {
    PastKey key;
    std::shared_ptr<SuffixAutomaton> text = nullptr;
    size_t known = 0;
    SuffixAutomaton::Match at = {};
  };

  void Restart(Place& place) {
    place.text = source_.Of(place.key);
    place.known = place.text->size();
    place.at = {};
    size_t begin = 0;
    if (output_.size() > kContext) {
      begin = output_.size() - kContext;
    } else {
      place.at = place.text->Next(place.at, kBeginning);
    }
    for (size_t i = begin; i < output_.size(); ++i) {
      place.at = place.text->Next(place.at, output_[i]);
    }
  }

  HistorySource& source_;
  Place own_, all_;
  const Place* used_ = &own_;  // for the tree that grows
  bool began_ = false;
  std::vector<TokenId> output_;
};

std::unique_ptr<DraftSession> HistorySource::Follow(const DraftRequest& request) {
  if (request.grammar == DraftRequest::kUnknownGrammar) return std::make_unique<NoDrafts>();
  return std::make_unique<HistoryFollower>(
      *this, PastKey{.grammar = request.grammar, .owner = request.owner()});
}

}  // namespace

Result<std::unique_ptr<DraftSource>> MakeHistorySource(const DraftSetting& setting) {
  auto source = std::make_unique<HistorySource>(setting);
  const std::string& file = setting.options.history_file;
  if (!file.empty() && os::Exists(file)) {
    if (Status status = source->Read(file); !status.ok()) return status.error();
  }
  // It is written at the end, and then an error would come too late.
  if (!file.empty()) {
    if (Status status = CheckWritable(file); !status.ok()) return status.error();
  }
  return std::unique_ptr<DraftSource>(std::move(source));
}

}  // namespace pawl
