// Of the corpus for the LSP tier: unions, enums, function members, members of members.
#include <array>
#include <functional>
#include <list>
#include <set>
#include <string>
#include <vector>

enum class Kind { kIn, kOut };

struct Entry {
  Kind kind = Kind::kIn;
  long cents = 0;
  std::string note;
  union {
    int line;
    float ratio;
  };
  Entry() : line(0) {}
  bool operator<(const Entry& other) const { return cents < other.cents; }
};

struct Account {
  std::string owner;
  std::vector<Entry> entries;
  std::function<bool(const Entry&)> filter;
  std::array<int, 3> code = {1, 2, 3};

  long Balance() const {
    long sum = 0;
    for (const Entry& entry : entries) {
      sum += entry.kind == Kind::kIn ? entry.cents : -entry.cents;
    }
    return sum;
  }
};

class Bank {
 public:
  Account& Open(const std::string& owner) {
    accounts_.emplace_back();
    accounts_.back().owner = owner;
    return accounts_.back();
  }
  std::list<Account>& accounts() { return accounts_; }

 private:
  std::list<Account> accounts_;
};

static long Total(Bank& bank) {
  long total = 0;
  for (auto& account : bank.accounts()) {
    total += account.Balance();
    if (account.filter && !account.entries.empty() && account.filter(account.entries.front())) {
      total -= account.entries.back().cents;
    }
  }
  return total;
}

int main() {
  Bank bank;
  Account& mine = bank.Open("Ann");
  mine.entries.resize(3);
  mine.entries[0].cents = 250;
  mine.entries.at(1).note = "tea";
  mine.entries.begin()->line = 7;
  mine.filter = [](const Entry& e) { return e.cents > 100 && e.note.empty(); };
  mine.code.fill(4);
  std::set<Entry> sorted(mine.entries.begin(), mine.entries.end());
  const Entry* first = &*sorted.begin();
  long Entry::*member = &Entry::cents;
  long sum = first->*member + first->cents + sorted.rbegin()->cents;
  auto* again = &bank;
  sum += Total(*again) + static_cast<long>(again->accounts().size());
  struct Local {
    int depth;
    Local* up;
  };
  Local inner{1, nullptr}, outer{2, &inner};
  sum += outer.up->depth + (outer.up != nullptr ? outer.up : &outer)->depth;
  return sum > 0 && mine.owner.compare("Ann") == 0 && mine.code.size() == 3 ? 0 : 1;
}
