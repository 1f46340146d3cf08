// What may still follow the digits of a number, calculated, against writing out every short number
// that begins like that.
#include "schemas/scalar/number_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "schemas/formula/atoms.h"

namespace pawl::schema {
namespace {

using Answer = NumberSearch::Answer;

// Plain texts of up to five characters, in the order in which they begin.
std::vector<std::string> Texts() {
  std::vector<std::string> out, open = {""};
  for (size_t i = 0; i < open.size(); ++i) {
    for (const char c : std::string("-.0123456789")) {
      const std::string text = open[i];
      const bool begun = !text.empty() && text != "-";
      const bool point = text.find('.') != std::string::npos;
      if (c == '-' ? !text.empty() : c == '.' && (!begun || point)) continue;
      if (c != '.' && c != '-' && (text == "0" || text == "-0")) continue;
      if (text.size() < 4) open.push_back(text + c);
      if (c != '.' && c != '-') out.push_back(text + c);
    }
  }
  return out;
}

TEST(NumberSearchTest, AgreesWithWritingNumbersOut) {
  const std::vector<std::string> texts = Texts();
  std::mt19937 random(3);
  const auto decimal = [&](int scale) {
    std::string digits = std::to_string(random() % 120);
    if (random() % 2) digits += "." + std::to_string(1 + random() % 9);
    return *Decimal::Parse((scale < 0 && random() % 2 ? "-" : "") + digits);
  };
  int no = 0, yes = 0;
  for (int round = 0; round < 25; ++round) {
    SchemaTable table;
    std::vector<AtomId> atoms;
    for (size_t n = 1 + random() % 2; n > 0; --n) {
      NumberConstraint constraint;
      if (random() % 2) constraint.minimum = decimal(-1);
      if (random() % 2) constraint.maximum = decimal(-1);
      if (random() % 3 == 0) {
        Decimal step = decimal(1);
        if (!step.is_zero()) constraint.multiple_of = step;
      }
      constraint.integer = random() % 3 == 0;
      const FormulaId formula = table.AddNumber(std::move(constraint));
      if (!table.formulas.IsConstant(formula)) atoms.push_back(table.formulas.value(formula));
    }
    std::sort(atoms.begin(), atoms.end());
    atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end());
    if (atoms.empty()) continue;
    NumberClasses classes(table, atoms, /*canonical=*/false);
    const bool negated = random() % 2;  // of the last
    const auto wanted = [&](const NumberClasses::Class& c) {
      bool all = true;
      for (const AtomId atom : atoms)
        all = all && classes.Holds(c, atom) != (negated && atom == atoms.back());
      return all;
    };
    NumberSearch search(classes, wanted, /*plain=*/false, /*no_minus_zero=*/false);
    const auto fits = [&](const std::string& text) {
      return wanted(classes.Of(*Decimal::Parse(text), text.find('.') == std::string::npos));
    };
    std::vector<std::string> fitting;
    for (const std::string& text : texts) {
      if (fits(text)) fitting.push_back(text);
    }
    for (const std::string& prefix : texts) {
      if (prefix.size() > 2) continue;
      Mantissa mantissa;
      for (const char c : prefix) mantissa.Push(c);
      std::string more;
      const Answer answer = search.Completes(mantissa, 0, &more);
      const bool found = std::ranges::any_of(
          fitting, [&](const std::string& text) { return text.starts_with(prefix); });
      if (answer == Answer::kYes) {
        ++yes;
        EXPECT_TRUE(fits(prefix + more)) << prefix << "|" << more;
      } else if (answer == Answer::kNo) {
        ++no;
        EXPECT_FALSE(found) << prefix;
      }
    }
  }
  EXPECT_GT(yes, 200);
  EXPECT_GT(no, 80);
}

}  // namespace
}  // namespace pawl::schema
