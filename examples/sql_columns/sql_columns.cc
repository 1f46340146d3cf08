// A constraint of one's own: SQL queries over the tables and columns that a database really has.
//
//   sql_columns MODEL DATABASE
//
// The same as sql_columns.py, which says more.
#include <sqlite3.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "pawl/engine.h"

namespace {

using Names = std::vector<std::string>;
using Tables = std::map<std::string, Names>;  // and their columns

// Names in quotes.
constexpr const char* kColumns =
    "SELECT printf('\"%w\"', t.name), printf('\"%w\"', c.name) FROM sqlite_master AS t, "
    "pragma_table_info(t.name) AS c WHERE t.type = 'table' ORDER BY t.name, c.cid";
struct Shop {  // only read, so all outputs share it
  std::shared_ptr<const pawl::Vocabulary> vocabulary;
  Tables tables;
};

enum class Phase { kStart, kColumns, kTable, kOrder, kDone };
// What was chosen, and the bytes of the word that is begun.
struct State {
  Phase phase = Phase::kStart;
  Names columns = {};
  std::string table = {}, begun = {};
};
using Word = std::pair<std::string, State>;  // and the place behind it

bool HasAll(const Names& all, const Names& some) {
  return std::ranges::all_of(some, [&](auto& name) { return std::ranges::count(all, name) > 0; });
}

class Query : public pawl::Constraint {
 public:
  explicit Query(std::shared_ptr<const Shop> shop, State state = {})
      : shop_(std::move(shop)), at_(std::move(state)) {}

  Place Look() const override {
    std::vector<std::string> texts;
    for (const Word& word : Rests(at_)) texts.push_back(word.first);
    return {.mask = pawl::MaskOfTexts(*shop_->vocabulary, texts),
            .accepting = at_.phase == Phase::kDone,
            .forced = texts.size() == 1 ? texts[0] : ""};
  }

  std::shared_ptr<const Constraint> Advance(pawl::TokenId token) const override {
    const std::string written(shop_->vocabulary->bytes(token));
    for (const Word& word : Rests(at_)) {
      if (word.first == written) return std::make_shared<Query>(shop_, word.second);
      if (!word.first.starts_with(written)) continue;
      State begun = at_;
      begun.begun += written;
      return std::make_shared<Query>(shop_, std::move(begun));
    }
    return nullptr;
  }

  std::optional<std::vector<pawl::TokenId>> Completion(int most) const override {
    std::vector<pawl::TokenId> tokens;
    for (State at = at_; at.phase != Phase::kDone;) {
      // The word that leads on furthest; of several the shortest one.
      const std::vector<Word> words = Rests(at);
      const Word& word = *std::ranges::min_element(words, {}, [](const Word& w) {
        return std::pair(-static_cast<int>(w.second.phase), w.first.size());
      });
      std::ranges::copy(shop_->vocabulary->FewestTokens(word.first), std::back_inserter(tokens));
      at = State(word.second);
    }
    if (static_cast<int>(tokens.size()) > most) return std::nullopt;
    return tokens;
  }

 private:
  // What the words lack that go on from the bytes that are begun. No word begins with another.
  std::vector<Word> Rests(const State& at) const {
    std::vector<Word> rests;
    const auto add = [&](const std::string& text, State after) {
      if (text.starts_with(at.begun)) rests.emplace_back(text.substr(at.begun.size()), after);
    };
    const auto have = [this](const Names& columns, size_t least) {
      return std::ranges::any_of(shop_->tables, [&](const auto& table) {
        return table.second.size() >= least && HasAll(table.second, columns);
      });
    };
    if (at.phase == Phase::kStart) add("SELECT ", {Phase::kColumns});
    Names seen = at.columns;
    for (const auto& [table, names] : shop_->tables) {
      if (!HasAll(names, at.columns)) continue;
      for (const std::string& name : names) {
        if (at.phase != Phase::kColumns || HasAll(seen, {name})) continue;
        seen.push_back(name);
        Names after = at.columns;
        after.push_back(name);
        if (have(after, after.size() + 1)) add(name + ", ", {Phase::kColumns, after});
        add(name + " FROM ", {Phase::kTable, after});
      }
      if (at.phase != Phase::kTable) continue;
      add(table + ";", {Phase::kDone});
      add(table + " ORDER BY ", {Phase::kOrder, {}, table});
    }
    if (at.phase != Phase::kOrder) return rests;
    for (const std::string& name : shop_->tables.at(at.table)) add(name + ";", {Phase::kDone});
    return rests;
  }

  const std::shared_ptr<const Shop> shop_;
  const State at_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: sql_columns MODEL DATABASE\n", stderr), 2;
  auto engine = pawl::Engine::Load(argv[1]);
  if (!engine.ok()) return std::fprintf(stderr, "%s\n", engine.error().ToString().c_str()), 1;
  auto shop = std::make_shared<Shop>(Shop{engine->vocabulary(), {}});
  const auto add = [](void* tables, int, char** row, char**) {
    (*static_cast<Tables*>(tables))[row[0]].push_back(row[1]);
    return 0;
  };
  sqlite3* database = nullptr;
  bool ok = sqlite3_open_v2(argv[2], &database, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK &&
            sqlite3_exec(database, kColumns, add, &shop->tables, nullptr) == SQLITE_OK;

  pawl::EngineRequest request;
  request.prompt = "Who lives in Oslo?\nSQL: ";
  request.constraint = std::make_shared<Query>(shop);
  request.options.sampling = {.temperature = 1, .seed = 1};
  request.options.max_tokens = 100;
  const auto output = engine->Generate(request);
  if (!output.ok()) return std::fprintf(stderr, "%s\n", output.error().ToString().c_str()), 1;
  std::printf("%s\n", output->text.c_str());
  const std::string explain = "EXPLAIN " + output->text;  // SQLite takes it
  ok = ok && sqlite3_exec(database, explain.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
  if (!ok) std::fprintf(stderr, "%s: %s\n", argv[2], sqlite3_errmsg(database));
  sqlite3_close(database);
  return ok ? 0 : 1;
}
