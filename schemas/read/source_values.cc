// A value begins where neither a digit nor a letter stands before it. Numbers are read with each
// grouping mark and each decimal mark in turn, so that no reading is preferred. Dates are three
// parts with two separators; each order of the parts that gives a real date counts.
#include "schemas/read/source_values.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "schemas/limits.h"
#include "src/base/source_text.h"
#include "src/base/utf8.h"

namespace pawl::schema {
namespace {

bool IsAsciiDigit(char32_t c) { return c >= '0' && c <= '9'; }
bool IsWordLike(char32_t c) { return SourceText::IsWord(c); }

// A cursor over the text; reading leaves it where it was unless something was read.
class TextCursor {
 public:
  TextCursor(std::u32string_view text, size_t at) : text_(text), at_(at) {}
  size_t at() const { return at_; }
  char32_t Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : U'\0';
  }
  bool Take(char32_t c) {
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  // From `least` to `most` digits, and no digit behind them.
  std::optional<std::string> Digits(size_t least, size_t most) {
    std::string out;
    while (out.size() <= most && IsAsciiDigit(Peek(out.size())))
      out.push_back(static_cast<char>(Peek(out.size())));
    if (out.size() < least || out.size() > most) return std::nullopt;
    at_ += out.size();
    return out;
  }
  std::optional<int> Number(size_t least, size_t most) {
    const auto digits = Digits(least, most);
    if (!digits) return std::nullopt;
    return std::stoi(*digits);
  }
  // An ASCII word in lower case.
  std::string Word() {
    std::string out;
    for (; Peek() < 0x80 && IsLetter(static_cast<char>(Peek())); ++at_)
      out.push_back(static_cast<char>(Peek() | 0x20));
    return out;
  }
  bool AtWordEnd() const { return !IsWordLike(Peek()); }

 private:
  std::u32string_view text_;
  size_t at_;
};

bool BeginsValue(std::u32string_view text, size_t at) {
  return at == 0 || !IsWordLike(text[at - 1]);
}

// The mark at a place joins digits on both sides to one number: an apostrophe only groups of three.
bool JoinsDigits(std::u32string_view text, size_t at) {
  const auto digit = [text](size_t i) { return i < text.size() && IsAsciiDigit(text[i]); };
  if (at == 0) return false;
  size_t before = at - 1;
  while (before > 0 && SourceText::IsMark(text[before])) --before;
  if (!digit(before) || !digit(at + 1)) return false;
  const char32_t mark = text[at];
  if (mark == '.' || mark == ',' || mark == '_') return true;
  return (mark == '\'' || mark == U'\u2019') && digit(at + 2) && digit(at + 3) && !digit(at + 4);
}

// One reading of the number at a place, or nothing. The end of a number is no mark with a digit
// behind it, unless that is the full stop of a sentence.
std::optional<Decimal> ReadNumber(std::u32string_view text, size_t at, char32_t group,
                                  char32_t point, size_t& end) {
  TextCursor in(text, at);
  const bool negative = in.Peek() == '-' || in.Peek() == U'\u2212';
  if (negative || in.Peek() == '+') in.Take(in.Peek());
  std::string whole;
  const size_t most = limits::kNumberPlaces;
  while (IsAsciiDigit(in.Peek()) && whole.size() <= most) {
    whole.push_back(static_cast<char>(in.Peek()));
    in.Take(in.Peek());
  }
  if (whole.empty()) return std::nullopt;
  const auto grouped = [&] {
    return group != 0 && in.Peek() == group && IsAsciiDigit(in.Peek(1)) &&
           IsAsciiDigit(in.Peek(2)) && IsAsciiDigit(in.Peek(3)) && !IsAsciiDigit(in.Peek(4));
  };
  if (whole.size() <= 3) {
    // Groups of a number with a space between them are few; a column of numbers has many.
    const bool space = group == ' ' || group == U'\u00A0';
    const size_t most_grouped = space ? limits::kSpacedDigits : most;
    while (whole.size() <= most_grouped && grouped()) {
      in.Take(group);
      whole += *in.Digits(3, 3);
    }
    if (whole.size() > most_grouped) return std::nullopt;
  }
  std::string decimals;
  if (point != 0 && in.Peek() == point && IsAsciiDigit(in.Peek(1))) {
    in.Take(point);
    for (; IsAsciiDigit(in.Peek()) && decimals.size() <= most; in.Take(in.Peek()))
      decimals.push_back(static_cast<char>(in.Peek()));
  }
  if (whole.size() + decimals.size() > most) return std::nullopt;
  const char32_t next = in.Peek();
  if (JoinsDigits(text, in.at())) return std::nullopt;
  // 1e5 and 6.02e23 are other numbers than 1 and 6.02.
  const size_t exponent = in.Peek(1) == '+' || in.Peek(1) == '-' ? 2 : 1;
  if ((next == 'e' || next == 'E') && IsAsciiDigit(in.Peek(exponent))) return std::nullopt;
  std::string number = (negative ? "-" : "") + whole;
  const size_t zeros = std::min(whole.find_first_not_of('0'), whole.size() - 1);
  number = (negative ? "-" : "") + whole.substr(zeros);
  if (!decimals.empty()) number += "." + decimals;
  auto value = Decimal::Parse(number);
  if (!value.ok()) return std::nullopt;
  end = in.at();
  return *std::move(value);
}

struct Date {
  int year = 0, month = 0, day = 0;
};

bool IsRealDate(const Date& date) {
  constexpr std::array<int, 12> kDays = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (date.month < 1 || date.month > 12 || date.day < 1) return false;
  const bool leap = (date.year % 4 == 0 && date.year % 100 != 0) || date.year % 400 == 0;
  const int days = date.month == 2 && !leap ? 28 : kDays[static_cast<size_t>(date.month - 1)];
  return date.day <= days;
}

std::string TwoDigits(int value) {
  return {static_cast<char>('0' + value / 10), static_cast<char>('0' + value % 10)};
}

std::string ToText(const Date& date) {
  return TwoDigits(date.year / 100) + TwoDigits(date.year % 100) + "-" + TwoDigits(date.month) +
         "-" + TwoDigits(date.day);
}

// January to December, and the first three letters of each; 0: none.
int MonthOf(const std::string& word) {
  constexpr std::array<std::string_view, 12> kMonths = {
      "january", "february", "march",     "april",   "may",      "june",
      "july",    "august",   "september", "october", "november", "december"};
  for (size_t i = 0; i < kMonths.size(); ++i) {
    if (word == kMonths[i] || word == kMonths[i].substr(0, 3) || (i == 8 && word == "sept"))
      return static_cast<int>(i) + 1;
  }
  return 0;
}

struct Part {
  int value = 0, month = 0;  // of a name
  size_t digits = 0;
  bool ordinal = false;
  bool short_year = false;  // '24
};

std::optional<Part> ReadPart(TextCursor& in) {
  Part part;
  if ((in.Peek() == '\'' || in.Peek() == U'\u2019') && IsAsciiDigit(in.Peek(1))) {
    in.Take(in.Peek());
    const auto year = in.Number(2, 2);
    if (!year || !in.AtWordEnd()) return std::nullopt;
    return Part{.value = *year, .digits = 2, .short_year = true};
  }
  if (IsAsciiDigit(in.Peek())) {
    const auto digits = in.Digits(1, 4);
    if (!digits || digits->size() == 3) return std::nullopt;
    part.value = std::stoi(*digits);
    part.digits = digits->size();
    TextCursor behind = in;
    const std::string suffix = behind.Word();
    if (suffix == "st" || suffix == "nd" || suffix == "rd" || suffix == "th") {
      part.ordinal = true;
      in = behind;
    } else if (!suffix.empty() && suffix != "t") {
      return std::nullopt;
    }
    return part;
  }
  part.month = MonthOf(in.Word());
  if (part.month == 0) return std::nullopt;
  if (in.Peek() == '.') in.Take('.');
  return part;
}

constexpr char32_t kWordBetween = U'o';

// The mark between two parts: one of `/ . -` or a space, or a comma and a space. With names "of" or
// "the" as well, which is kWordBetween.
std::optional<char32_t> ReadSeparator(TextCursor& in) {
  const char32_t mark = in.Peek();
  if (mark != '/' && mark != '.' && mark != '-' && mark != ' ' && mark != ',') return std::nullopt;
  in.Take(mark);
  if (mark != ' ' && in.Peek() == ' ') in.Take(' ');
  TextCursor behind = in;
  const std::string word = behind.Word();
  if ((word != "of" && word != "the") || !behind.Take(' ')) return mark;
  in = behind;
  return kWordBetween;
}

void AddDate(int year, const Part& given, int month, const Part& day, std::vector<Date>& out) {
  if (given.digits == 2) {
    for (const int century : {1900, 2000}) {
      const Date date{century + year, month, day.value};
      if (IsRealDate(date)) out.push_back(date);
    }
    return;
  }
  const Date date{year, month, day.value};
  if (given.digits == 4 && IsRealDate(date)) out.push_back(date);
}

// The dates that the phrase at a place may be, and where it ends.
std::vector<Date> ReadDates(std::u32string_view text, size_t at, size_t& end) {
  TextCursor in(text, at);
  std::array<Part, 3> parts;
  std::array<char32_t, 2> marks{};
  for (size_t i = 0; i < 3; ++i) {
    if (i > 0) {
      const auto mark = ReadSeparator(in);
      if (!mark) return {};
      marks[i - 1] = *mark;
    }
    const auto part = ReadPart(in);
    if (!part) return {};
    parts[i] = *part;
  }
  std::vector<Date> out;
  const auto& [a, b, c] = parts;
  const auto day = [](const Part& part) {
    return part.month == 0 && part.digits <= 2 && !part.short_year;
  };
  const auto year = [](const Part& part) { return part.month == 0 && !part.ordinal; };
  const bool alike = marks[0] == marks[1];
  if (a.month != 0 && day(b) && year(c)) AddDate(c.value, c, a.month, b, out);
  if (b.month != 0 && day(a) && year(c)) AddDate(c.value, c, b.month, a, out);
  if (b.month != 0 && a.digits == 4 && day(c)) AddDate(a.value, a, b.month, c, out);
  const bool mark = marks[0] != ',' && marks[0] != kWordBetween;
  if (a.month + b.month + c.month == 0 && alike && mark) {
    if (day(a) && day(b) && year(c)) {
      AddDate(c.value, c, b.value, a, out);
      AddDate(c.value, c, a.value, b, out);
    }
    if (a.digits == 4 && day(b) && day(c)) AddDate(a.value, a, b.value, c, out);
  }
  end = in.at();
  return out;
}

struct Time {
  std::string text;  // of the format
  size_t end;
};

constexpr int kMostOffset = 14;  // hours

// "+02:00", "+0200": hours and minutes that a zone may have. The cursor stands at the sign.
std::optional<std::string> ReadOffset(TextCursor& in) {
  const char32_t sign = in.Peek();
  if (sign != '+' && sign != '-') return std::nullopt;
  in.Take(sign);
  TextCursor whole = in;
  std::optional<std::string> digits = whole.Digits(4, 4);
  if (digits) {
    in = whole;
  } else {
    digits = in.Digits(2, 2);
    const auto minutes = in.Take(':') ? in.Digits(2, 2) : std::nullopt;
    if (!digits || !minutes) return std::nullopt;
    *digits += *minutes;
  }
  const int hours = std::stoi(digits->substr(0, 2));
  if (hours > kMostOffset || digits->substr(2) > "59") return std::nullopt;
  return static_cast<char>(sign) + digits->substr(0, 2) + ":" + digits->substr(2);
}

// "am", "p.m." behind at most one space: the hours in front of it. nullopt: it is not there.
std::optional<int> ReadHalf(TextCursor& in) {
  TextCursor marks = in;
  marks.Take(' ');
  const char32_t half = marks.Peek() | 0x20;
  if (half != 'a' && half != 'p') return std::nullopt;
  marks.Take(marks.Peek());
  marks.Take('.');
  if ((marks.Peek() | 0x20) != 'm') return std::nullopt;
  marks.Take(marks.Peek());
  if (!marks.AtWordEnd()) return std::nullopt;
  marks.Take('.');
  in = marks;
  return half == 'p' ? 12 : 0;
}

// The offset of an abbreviation of a zone in capitals: those of RFC 5322, and those that have one
// meaning.
std::optional<std::string> OffsetOf(std::u32string_view name) {
  struct Zone {
    std::u32string_view name;
    const char* offset;
  };
  static constexpr Zone kZones[] = {
      {U"UTC", "Z"},       {U"GMT", "Z"},      {U"UT", "Z"},        {U"EST", "-05:00"},
      {U"EDT", "-04:00"},  {U"CST", "-06:00"}, {U"CDT", "-05:00"},  {U"MST", "-07:00"},
      {U"MDT", "-06:00"},  {U"PST", "-08:00"}, {U"PDT", "-07:00"},  {U"WET", "+00:00"},
      {U"WEST", "+01:00"}, {U"CET", "+01:00"}, {U"CEST", "+02:00"}, {U"EET", "+02:00"},
      {U"EEST", "+03:00"}, {U"JST", "+09:00"},
  };
  const auto* const found = std::ranges::find(kZones, name, &Zone::name);
  if (found == std::end(kZones)) return std::nullopt;
  return found->offset;
}

// "+2", "+5:30", "+530" behind UTC or GMT. The cursor stands at the sign.
std::optional<std::string> ReadShortOffset(TextCursor& in) {
  const char32_t sign = in.Peek();
  in.Take(sign);
  int hours = 0, minutes = 0;
  if (const auto both = in.Number(3, 3)) {
    hours = *both / 100;
    minutes = *both % 100;
  } else {
    const auto few = in.Number(1, 2);
    if (!few) return std::nullopt;
    hours = *few;
    if (in.Peek() == ':' && IsAsciiDigit(in.Peek(1))) {
      in.Take(':');
      const auto more = in.Number(2, 2);
      if (!more) return std::nullopt;
      minutes = *more;
    }
  }
  if (hours > kMostOffset || minutes > 59 || !in.AtWordEnd()) return std::nullopt;
  return static_cast<char>(sign) + TwoDigits(hours) + ":" + TwoDigits(minutes);
}

// "CET", "(CET)", "UTC", "GMT+2", "UTC +5:30", "UTC+02:00". nullopt: none of these; the cursor may
// have moved.
std::optional<std::string> ReadZoneName(TextCursor& in) {
  const bool opened = in.Take('(');
  std::u32string name;
  for (; in.Peek() >= 'A' && in.Peek() <= 'Z' && name.size() < 5; in.Take(in.Peek()))
    name += in.Peek();
  std::optional<std::string> offset = OffsetOf(name);
  if (!offset || !in.AtWordEnd()) return std::nullopt;
  TextCursor behind = in;
  behind.Take(' ');
  const char32_t sign = behind.Peek();
  if (offset == "Z" && (sign == '+' || sign == '-')) {
    TextCursor whole = behind;
    auto given = ReadOffset(whole);
    if (!given) given = ReadShortOffset(whole = behind);
    if (given) {
      in = whole;
      offset = given;
    }
  }
  if (opened && !in.Take(')')) return std::nullopt;
  return offset;
}

// "14:05", "14:05:30.5", "2 pm", "2:05 p.m.", "2.05 pm", "noon", with a zone: "Z", "+02:00", "CET"
// or none. What follows "14:05-" may be a zone or another time: both readings.
std::vector<Time> ReadTimes(std::u32string_view text, size_t at) {
  TextCursor in(text, at);
  if (!IsAsciiDigit(in.Peek())) {
    const std::string word = in.Word();
    if (!in.AtWordEnd() || (word != "noon" && word != "midnight")) return {};
    const std::string local = word == "noon" ? "12:00:00" : "00:00:00";
    TextCursor named = in;
    named.Take(' ');
    if (auto zone = ReadZoneName(named)) return {{local + *zone, named.at()}};
    return {{local + "Z", in.at()}};
  }
  const auto hour = in.Number(1, 2);
  if (!hour) return {};
  int minute = 0;
  std::string seconds;
  const char32_t mark = in.Peek();
  const bool minutes_follow = mark == ':' || (mark == '.' && IsAsciiDigit(in.Peek(1)));
  if (minutes_follow) {
    in.Take(mark);
    const auto minutes = in.Number(2, 2);
    if (!minutes) return {};
    minute = *minutes;
    if (mark == ':' && in.Take(':')) {
      const auto digits = in.Digits(2, 2);
      if (!digits || *digits > "59") return {};
      seconds = *digits;
      if (in.Peek() == '.' && IsAsciiDigit(in.Peek(1))) {
        in.Take('.');
        seconds += "." + in.Digits(1, 9).value_or("0");
      }
    }
  }
  int hours = *hour;
  if (const auto half = ReadHalf(in)) {
    if (hours < 1 || hours > 12) return {};
    hours = hours % 12 + *half;
  } else if (mark != ':') {
    return {};
  }
  if (hours > 23 || minute > 59) return {};
  const bool exact = !seconds.empty() || (at > 0 && (text[at - 1] | 0x20) == 't');
  const std::string local =
      TwoDigits(hours) + ":" + TwoDigits(minute) + ":" + (seconds.empty() ? "00" : seconds);
  // The format wants a zone: a time without one, and UTC, is Z.
  std::vector<Time> out = {{local + "Z", in.at()}};
  if (in.Take('Z') || in.Take('z')) {
    out[0].end = in.at();
    return out;
  }
  in.Take(' ');
  if (TextCursor named = in; auto zone = ReadZoneName(named)) return {{local + *zone, named.at()}};
  const bool may_be_range = in.Peek() == '-' && in.Peek(3) == ':' && !exact;
  const auto zone = ReadOffset(in);
  if (!zone) return out;
  if (!may_be_range) out.clear();
  out.push_back({local + *zone, in.at()});
  return out;
}

// Behind the minutes of a time, or in its zone. "9:00-17:00" is two times.
bool IsInsideTime(std::u32string_view text, size_t at) {
  if (at > 0 && (text[at - 1] == '+' || text[at - 1] == '-')) {
    const std::u32string_view zone =
        text.substr(0, at > 1 && text[at - 2] == ' ' ? at - 2 : at - 1);
    if (zone.ends_with(U"GMT") || zone.ends_with(U"UTC")) return true;
  }
  if (at < 2 || !IsAsciiDigit(text[at - 2])) return false;
  const char32_t before = text[at - 1];
  if (before == ':' || before == '+' || before == '.') return true;
  if (before != '-') return false;
  // What stands in front of the hyphen: hours and minutes alone.
  size_t begin = at - 1;
  while (begin > 0 && IsAsciiDigit(text[begin - 1])) --begin;
  if (at - 1 - begin != 2 || begin == 0 || text[begin - 1] != ':') return true;
  const size_t colon = --begin;
  while (begin > 0 && IsAsciiDigit(text[begin - 1])) --begin;
  const bool exact = begin > 0 && (text[begin - 1] == ':' || (text[begin - 1] | 0x20) == 't');
  return begin == colon || exact;
}

// "on 5 March 2024", ", Tuesday, the 5th of March" behind a time: where the date begins.
std::optional<size_t> DateBehindTime(std::u32string_view text, size_t end) {
  TextCursor in(text, end);
  const bool comma = in.Take(',');
  if (!in.Take(' ')) return std::nullopt;
  const auto skip = [&in](const auto& is_skipped) {
    TextCursor word = in;
    if (!is_skipped(word.Word())) return false;
    word.Take(',');
    if (!word.Take(' ')) return false;
    in = word;
    return true;
  };
  const bool on = skip([](const std::string& word) { return word == "on"; });
  if (!comma && !on) return std::nullopt;
  skip([](const std::string& word) {
    static constexpr std::array<std::string_view, 7> kDays = {
        "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"};
    return std::ranges::any_of(
        kDays, [&](std::string_view day) { return word == day || word == day.substr(0, 3); });
  });
  skip([](const std::string& word) { return word == "the"; });
  return in.at();
}

// The times behind a date: "T", a space, "," or "at" between them.
std::vector<Time> TimesBehindDate(std::u32string_view text, size_t end) {
  TextCursor in(text, end);
  if (!in.Take('T')) {
    in.Take(',');
    in.Take(' ');
    TextCursor word = in;
    if (word.Word() == "at" && word.Take(' ')) in = word;
  }
  return ReadTimes(text, in.at());
}

// The times with a date at a place, in either order.
void AddDateTimes(std::u32string_view text, size_t at, std::vector<SourceValue<std::string>>& out) {
  size_t end = 0;
  const std::vector<Date> dates = ReadDates(text, at, end);
  if (!dates.empty()) {
    for (const Time& time : TimesBehindDate(text, end)) {
      for (const Date& date : dates) out.push_back({ToText(date) + "T" + time.text, at, time.end});
    }
    return;
  }
  if (IsInsideTime(text, at)) return;
  for (const Time& time : ReadTimes(text, at)) {
    const std::optional<size_t> begin = DateBehindTime(text, time.end);
    if (!begin) continue;
    const std::vector<Date> behind = ReadDates(text, *begin, end);
    // A date with a time of its own is not of this one.
    if (behind.empty() || !TimesBehindDate(text, end).empty()) continue;
    for (const Date& date : behind) out.push_back({ToText(date) + "T" + time.text, at, end});
  }
}

// A code of ISO 4217 stands in front of the place: USD1,240.
bool IsBehindCurrency(std::u32string_view text, size_t at) {
  static constexpr std::string_view kCodes =
      "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP "
      "BYN BZD CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP "
      "GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR "
      "KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK "
      "MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR "
      "SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS "
      "UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW";
  if (at < 3 || (at > 3 && IsWordLike(text[at - 4]))) return false;
  std::string code;
  for (const char32_t c : text.substr(at - 3, 3)) {
    if (c < 'A' || c > 'Z') return false;
    code.push_back(static_cast<char>(c));
  }
  return kCodes.find(code) != std::string_view::npos;
}

}  // namespace

std::vector<SourceValue<Decimal>> NumbersIn(std::u32string_view text) {
  std::vector<SourceValue<Decimal>> out;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool sign = text[at] == '-' || text[at] == '+' || text[at] == U'\u2212';
    const bool digit = IsAsciiDigit(text[at]);
    if (!sign && !digit) continue;
    if (!BeginsValue(text, at) && !(digit && IsBehindCurrency(text, at))) continue;
    // Not inside of another number.
    if (digit && at > 1 && JoinsDigits(text, at - 1)) continue;
    // .5 is a half; No.5 has a word in front of its full stop.
    if (digit && at > 0 && text[at - 1] == '.' &&
        (at == 1 || !(IsWordLike(text[at - 2]) || text[at - 2] == '.')))
      continue;
    const auto first = static_cast<ptrdiff_t>(out.size());
    for (const char32_t group : {U'\0', U',', U'.', U'\'', U'\u2019', U'_', U' ', U'\u00A0'}) {
      for (const char32_t point : {U'\0', U'.', U','}) {
        if (group == point && group != 0) continue;
        SourceValue<Decimal> one{{}, at, 0};
        auto value = ReadNumber(text, at, group, point, one.end);
        if (!value) continue;
        one.value = *std::move(value);
        if (std::find(out.begin() + first, out.end(), one) == out.end())
          out.push_back(std::move(one));
      }
    }
  }
  return out;
}

std::vector<SourceValue<std::string>> DatesIn(std::u32string_view text, std::string_view format) {
  std::vector<SourceValue<std::string>> out;
  size_t read = 0;  // by each reading of the time before
  for (size_t at = 0; at < text.size(); ++at) {
    if (!BeginsValue(text, at) || !IsWordLike(text[at])) continue;
    size_t end = 0;
    if (format == "time") {
      if (at < read || IsInsideTime(text, at)) continue;
      std::vector<Time> times = ReadTimes(text, at);
      if (!times.empty()) read = std::ranges::min(times, {}, &Time::end).end;
      for (Time& time : times) out.push_back({std::move(time.text), at, time.end});
      continue;
    }
    if (format == "date") {
      for (const Date& date : ReadDates(text, at, end)) out.push_back({ToText(date), at, end});
      continue;
    }
    AddDateTimes(text, at, out);
  }
  return out;
}

}  // namespace pawl::schema
