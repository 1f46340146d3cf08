// Each format is written down as its RFC has it, production by production, as ECMA patterns that
// are put together as text, and with the arena's operators where the rule is a conjunction
// (lengths, the contextual rules of internationalized host names) or where a pattern would be silly
// (leap seconds).
//
// What a regular language cannot say: that the Punycode behind "xn--" decodes to a valid label
// (such labels pass by the rules for ASCII labels), and that a regular expression has balanced
// groups of any depth
// (`regex` is the sublanguage with groups nested at most four deep; see RegexFormat).
#include "grammar/regex/formats.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "grammar/regex/ecma_parser.h"

namespace pawl {
namespace {

using std::string;

// RFC 3339, section 5.6 and appendix C (leap years).
constexpr char kDate[] =
    "(?:\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|"
    "02-(?:0[1-9]|1\\d|2[0-8]))|"
    "(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)";
constexpr char kTime[] =
    "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d+)?(?:[Zz]|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)";

// RFC 3339, appendix A.
string Duration() {
  const string second = "\\d+S";
  const string minute = "\\d+M(?:" + second + ")?";
  const string hour = "\\d+H(?:" + minute + ")?";
  const string time = "T(?:" + hour + "|" + minute + "|" + second + ")";
  const string day = "\\d+D";
  const string month = "\\d+M(?:" + day + ")?";
  const string year = "\\d+Y(?:" + month + ")?";
  return "P(?:(?:" + day + "|" + month + "|" + year + ")(?:" + time + ")?|" + time + "|\\d+W)";
}

// RFC 2673, section 3.2, without leading zeros.
string Ipv4() {
  const string octet = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
  return "(?:" + octet + "\\.){3}" + octet;
}

// RFC 3986, section 3.2.2.
string Ipv6() {
  const string h16 = "[0-9A-Fa-f]{1,4}";
  const string last = "(?:" + h16 + ":" + h16 + "|" + Ipv4() + ")";
  string all = "(?:(?:" + h16 + ":){6}" + last;
  for (int before = 0; before <= 7; ++before) {
    // At most `before` pieces, "::", then the rest.
    string front;
    if (before > 0)
      front = "(?:(?:" + h16 + ":){0," + std::to_string(before - 1) + "}" + h16 + ")?";
    string back = last;
    if (before == 6) back = h16;
    if (before == 7) back = "";
    const int pieces = 5 - before;
    if (pieces > 0) back = "(?:" + h16 + ":){" + std::to_string(pieces) + "}" + last;
    all += "|" + front + "::" + back;
  }
  return all + ")";
}

// RFC 3986, appendix A; with ucschar and iprivate of RFC 3987 when international.
class UriPatterns {
 public:
  explicit UriPatterns(bool international) {
    string other, priv;
    if (international) {
      other = "\\u{A0}-\\u{D7FF}\\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFEF}";
      for (const char plane : string("123456789ABCDE")) {
        const string p(1, plane);
        other += "\\u{" + p + (plane == 'E' ? "1000" : "0000") + "}-\\u{" + p + "FFFD}";
      }
      priv = "\\u{E000}-\\u{F8FF}\\u{F0000}-\\u{FFFFD}\\u{100000}-\\u{10FFFD}";
    }
    const string plain = "A-Za-z0-9\\-._~!$&'()*+,;=" + other;  // unreserved and sub-delims
    const auto of = [](const string& members) { return "(?:[" + members + "]|%[0-9A-Fa-f]{2})"; };
    const string pchar = of(plain + ":@");
    const string address =
        "\\[(?:" + Ipv6() + "|[vV][0-9A-Fa-f]+\\.[A-Za-z0-9\\-._~!$&'()*+,;=:]+)\\]";
    const string authority =
        "(?:" + of(plain + ":") + "*@)?(?:" + address + "|" + of(plain) + "*)(?::\\d*)?";
    const string segments = "(?:/" + pchar + "*)*";
    const string network = "//" + authority + segments;
    const string absolute = "/(?:" + pchar + "+" + segments + ")?";
    const string end =
        "(?:\\?" + of(plain + ":@/?" + priv) + "*)?(?:#" + of(plain + ":@/?") + "*)?";
    absolute_ = "[A-Za-z][A-Za-z0-9+\\-.]*:(?:" + network + "|" + absolute + "|" + pchar + "+" +
                segments + "|)" + end;
    relative_ =
        "(?:" + network + "|" + absolute + "|" + of(plain + "@") + "+" + segments + "|)" + end;
  }
  const string& absolute() const { return absolute_; }
  string reference() const { return "(?:" + absolute_ + "|" + relative_ + ")"; }

 private:
  string absolute_, relative_;
};

// RFC 6570, section 2, with erratum 6937 (the apostrophe is a literal).
string UriTemplate() {
  const string percent = "%[0-9A-Fa-f]{2}";
  const string literal =
      "(?:[!#$&'()*+,\\-./0-9:;=?@A-Z\\[\\]_a-z~\\u{A0}-\\u{D7FF}\\u{E000}-\\u{FDCF}"
      "\\u{FDF0}-\\u{FFEF}\\u{10000}-\\u{10FFFD}]|" +
      percent + ")";
  const string name_char = "(?:[A-Za-z0-9_]|" + percent + ")";
  const string variable = name_char + "(?:\\.?" + name_char + ")*(?::[1-9]\\d{0,3}|\\*)?";
  return "(?:" + literal + "|\\{[+#./;?&=,!@|]?" + variable + "(?:," + variable + ")*\\})*";
}

// Base64 of RFC 4648, plain or in the armour of RFC 7468 (the "PEM" of certificates and keys),
// which schemas mean as well when they say "byte". Of the lax grammar there: lines of any length
// and padding at the end of the last; the RFC counts neither characters nor padding.
string Byte() {
  string armoured;
  for (const char* label : {"CERTIFICATE", "X509 CERTIFICATE", "X\\.509 CERTIFICATE",
                            "ATTRIBUTE CERTIFICATE", "X509 CRL", "CRL", "CERTIFICATE REQUEST",
                            "NEW CERTIFICATE REQUEST", "PKCS7", "CMS", "PUBLIC KEY", "PRIVATE KEY",
                            "ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"}) {
    const string name = label;
    armoured += (armoured.empty() ? "" : "|") + name + "-----\\r?\\n(?:[A-Za-z0-9+/]+\\r?\\n)*" +
                "(?:[A-Za-z0-9+/]*={1,2}\\r?\\n)?-----END " + name;
  }
  return "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?|"
         "-----BEGIN (?:" +
         armoured + ")-----(?:\\r?\\n)?";
}

constexpr char kJsonPointer[] = "(?:/(?:[^~/]|~[01])*)*";
string RelativeJsonPointer() { return string("(?:0|[1-9]\\d*)(?:#|") + kJsonPointer + ")"; }
constexpr char kUuid[] = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}";

// Patterns of ECMA-262 with the "u" flag that are valid whatever surrounds them: no back references
// or named groups, character ranges between ASCII letters, digits and signs in order, counters up
// to 99 in order, and groups at most four deep. No digit may follow "\0"; what begins with one
// stands apart for that, since looking ahead would make a search of each step of the automaton.
string RegexFormat() {
  const string zeros = "(?:\\\\0)*";
  const string escape =
      "\\\\(?:[dDwWsSfnrtv]|c[A-Za-z]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|"
      "u\\{0*(?:10|[0-9A-Fa-f])?[0-9A-Fa-f]{1,4}\\}|[pP]\\{(?:L[CulmtoU]?|M[nce]?|N[dlo]?|P["
      "cdseifo]?|"
      "S[mcko]?|Z[slp]?|C[cfson]?|Alphabetic|Any|ASCII|White_Space)\\}|"
      "[\\^$\\\\.*+?()\\[\\]{}|/])";
  string range, digit_range;  // x-y with x <= y
  for (char lo = '!'; lo <= '~'; ++lo) {
    if (lo == '\\' || lo == ']' || lo == '[' || lo == '^' || lo == '-') continue;
    const auto hex = [](char c) {
      const char* digits = "0123456789ABCDEF";
      return string("\\x") + digits[(c >> 4) & 15] + digits[c & 15];
    };
    string highs;
    for (char hi = lo; hi <= '~'; ++hi) {
      if (hi != '\\' && hi != ']' && hi != '[' && hi != '-') highs += hex(hi);
    }
    (lo >= '0' && lo <= '9' ? digit_range : range) += "|" + hex(lo) + "-[" + highs + "]";
  }
  const string member = "(?:[^\\\\\\]\\-\\[\\^0-9]|\\[|" + escape + "|\\\\b|\\\\-" + range + ")";
  // A plain '-' only first or last, so that it never makes a range.
  const string set =
      "\\[\\^?-?(?:[0-9]" + digit_range + "|" + zeros + member + ")*" + zeros + "-?\\]";
  string ordered = "[0-9]|[1-9][0-9]|[0-9],|[1-9][0-9],|[0-9],[1-9][0-9]";
  for (char digit = '0'; digit <= '9'; ++digit) {
    const string d(1, digit);
    ordered += "|" + d + ",[" + d + "-9]";
    if (digit == '0') continue;
    for (char unit = '0'; unit <= '9'; ++unit) {
      const string u(1, unit);
      ordered += "|" + d + u + "," + d + "[" + u + "-9]";
    }
    if (digit < '9')
      ordered += "|" + d + "[0-9],[" + string(1, static_cast<char>(digit + 1)) + "-9][0-9]";
  }
  const string quantifier = "(?:[*+?]|\\{(?:" + ordered + ")\\})\\??";
  const string maybe = "(?:" + quantifier + ")?";
  const string item = "[\\^$|]|\\\\[bB]|\\\\0" + quantifier +
                      "|(?:[^\\^$\\\\.*+?()\\[\\]{}|0-9]|\\.|" + escape + "|" + set + ")" + maybe;
  string inner, group;
  for (int depth = 0; depth <= 4; ++depth) {
    inner = "(?:[0-9]" + maybe + "|" + zeros + "(?:" + item + group + "))*" + zeros;
    group = "|\\((?:\\?:)?" + inner + "\\)" + maybe + "|\\(\\?<?[=!]" + inner + "\\)";
  }
  return inner;
}

// Builds terms out of whole-string patterns; the first error sticks.
class FormatBuilder {
 public:
  explicit FormatBuilder(RegexArena& arena) : arena_(arena) {}

  ReId Parse(const string& pattern) {
    RegexSyntaxOptions whole;
    whole.search = false;
    const Result<ReId> id = ParseEcma(arena_, pattern, whole);
    if (id.ok()) return *id;
    if (status_.ok()) status_ = id.error();
    return RegexArena::kNothing;
  }
  ReId Time();
  ReId DateTime() { return arena_.Concat({Parse(kDate), Parse("[Tt]"), Time()}); }
  ReId Hostname();
  ReId IdnHostname();
  ReId Email(bool international);
  const Status& status() const { return status_; }

 private:
  ReId AtMost(uint32_t characters, ReId id) {
    return arena_.And(id, arena_.Repeat(RegexArena::kAnyChar, 0, characters));
  }

  RegexArena& arena_;
  Status status_;
};

// A leap second is the last second of a day in UTC, 23:59:60Z. At an offset the local time is 23:59
// plus or minus it: each of the 1440 local times has one offset with each sign. As minutes carry
// into hours in one case only, hours and minutes are related apart, and intersected.
ReId FormatBuilder::Time() {
  const auto two_digits = [&](int value) {
    const char32_t text[] = {U'0' + static_cast<char32_t>(value / 10),
                             U'0' + static_cast<char32_t>(value % 10)};
    return arena_.Literal(std::u32string(text, 2));
  };
  const ReId colon = Parse(":"), any = Parse("[0-9][0-9]"), leap = Parse(":60(?:\\.\\d+)?");
  // Local hours and offset hours for each of `count` values, whatever the minutes are, and so on.
  const auto related = [&](ReId sign, bool hours, int first, int count, auto local_of) {
    std::vector<ReId> out;
    for (int offset = first; offset < count; ++offset) {
      const ReId local = two_digits(local_of(offset)), there = two_digits(offset);
      out.push_back(hours ? arena_.Concat({local, colon, any, leap, sign, there, colon, any})
                          : arena_.Concat({any, colon, local, leap, sign, any, colon, there}));
    }
    return arena_.Or(out);
  };
  const ReId east = Parse("\\+"), west = Parse("-");
  std::vector<ReId> alternatives{Parse(kTime), Parse("23:59:60(?:\\.\\d+)?[Zz]")};
  for (int offset = 0; offset < 24; ++offset) {
    alternatives.push_back(arena_.Concat({two_digits((23 + offset) % 24), Parse(":59"), leap, east,
                                          two_digits(offset), Parse(":00")}));
  }
  const ReId carried[] = {related(east, true, 0, 24, [](int hour) { return hour; }),
                          related(east, false, 1, 60, [](int minute) { return minute - 1; })};
  const ReId taken[] = {related(west, true, 0, 24, [](int hour) { return 23 - hour; }),
                        related(west, false, 0, 60, [](int minute) { return 59 - minute; })};
  alternatives.push_back(arena_.And(carried));
  alternatives.push_back(arena_.And(taken));
  return arena_.Or(alternatives);
}

// RFC 1123, section 2.1: labels of 1 to 63 letters, digits and inner hyphens, 253 characters in
// all.
constexpr char kLabel[] = "[A-Za-z0-9](?:[A-Za-z0-9\\-]{0,61}[A-Za-z0-9])?";

ReId FormatBuilder::Hostname() {
  return AtMost(253, Parse(string(kLabel) + "(?:\\." + kLabel + ")*"));
}

// RFC 5890 to 5893: U-labels with the contextual rules of RFC 5892, appendix A, and the Bidi rule.
ReId FormatBuilder::IdnHostname() {
  const ReId dot = Parse("[.\\u3002\\uFF0E\\uFF61]");
  const ReId characters = Parse(
      "(?:\\p{IDNA2008_PVALID}|(?<=l)\\u00B7(?=l)|\\u0375(?=\\p{sc=Greek})|"
      "(?<=\\p{sc=Hebrew})[\\u05F3\\u05F4]|\\u30FB|[\\u0660-\\u0669\\u06F0-\\u06F9]|"
      "(?<=\\p{ccc=9})[\\u200C\\u200D]|"
      "(?<=[\\p{jt=L}\\p{jt=D}]\\p{jt=T}*)\\u200C(?=\\p{jt=T}*[\\p{jt=R}\\p{jt=D}]))+");
  const ReId katakana = Parse("[^\\u30FB]*|[^]*[\\p{sc=Hira}\\p{sc=Kana}\\p{sc=Hani}][^]*");
  const ReId digits = Parse("[^\\u0660-\\u0669]*|[^\\u06F0-\\u06F9]*");
  const ReId shape = Parse("(?!-)(?!\\p{M})(?!..--)[^]{1,59}(?<!-)");
  const ReId ascii = Parse(string("(?!..--)") + kLabel);
  const ReId a_label = Parse(string("(?=[xX][nN]--)(?!.*---)") + kLabel);
  const ReId unicode[] = {characters, katakana, digits, shape};
  const ReId label_forms[] = {arena_.And(unicode), ascii, a_label};
  const ReId label = arena_.Or(label_forms);
  // The Bidi rule binds every label of a name that has a right-to-left one.
  const ReId right_to_left = Parse("[\\p{bc=R}\\p{bc=AL}\\p{bc=AN}]");
  const ReId without =
      arena_.Not(arena_.Concat({RegexArena::kAnything, right_to_left, RegexArena::kAnything}));
  const string weak = "\\p{bc=EN}\\p{bc=ES}\\p{bc=CS}\\p{bc=ET}\\p{bc=ON}\\p{bc=BN}\\p{bc=NSM}";
  const string rtl = "[\\p{bc=R}\\p{bc=AL}" + weak;
  const ReId bidi = Parse("(?=[\\p{bc=R}\\p{bc=AL}])(?:" + rtl + "]*|(?!.*\\p{bc=EN})" + rtl +
                          "\\p{bc=AN}]*)(?<=[\\p{bc=R}\\p{bc=AL}\\p{bc=EN}\\p{bc=AN}]\\p{bc=NSM}*)|"
                          "\\p{bc=L}[\\p{bc=L}" +
                          weak + "]*(?<=[\\p{bc=L}\\p{bc=EN}]\\p{bc=NSM}*)");
  const auto list = [&](ReId item) {
    return arena_.Concat(item, arena_.Star(arena_.Concat(dot, item)));
  };
  const ReId either[] = {arena_.And(list(label), without), list(arena_.And(label, bidi))};
  return AtMost(253, arena_.Or(either));
}

// RFC 5321, section 4.1.2, Mailbox; RFC 6531 adds the characters beyond ASCII.
ReId FormatBuilder::Email(bool international) {
  const string other = international ? "\\u{80}-\\u{10FFFF}" : "";
  const string atom = "[A-Za-z0-9!#$%&'*+\\-/=?^_`{|}~" + other + "]+";
  const ReId local = AtMost(
      64, Parse(atom + "(?:\\." + atom + ")*|\"(?:[ !#-\\[\\]-~" + other + "]|\\\\[ -~])*\""));
  const ReId address = Parse("\\[(?:" + Ipv4() + "|IPv6:" + Ipv6() + ")\\]");
  ReId domain = Hostname();
  if (international) {
    const string letter = "[A-Za-z0-9" + other + "]";
    const string label = letter + "(?:[A-Za-z0-9\\-" + other + "]{0,61}" + letter + ")?";
    domain = AtMost(253, Parse(label + "(?:\\." + label + ")*"));
  }
  return arena_.Concat({local, arena_.Char('@'), arena_.Or(domain, address)});
}

// Every format: its name, and how its language is made.
struct Format {
  std::string_view name;
  ReId (*make)(FormatBuilder& b);
};
constexpr Format kFormats[] = {
    {"date", [](FormatBuilder& b) { return b.Parse(kDate); }},
    {"time", [](FormatBuilder& b) { return b.Time(); }},
    {"date-time", [](FormatBuilder& b) { return b.DateTime(); }},
    {"duration", [](FormatBuilder& b) { return b.Parse(Duration()); }},
    {"email", [](FormatBuilder& b) { return b.Email(false); }},
    {"idn-email", [](FormatBuilder& b) { return b.Email(true); }},
    {"hostname", [](FormatBuilder& b) { return b.Hostname(); }},
    {"idn-hostname", [](FormatBuilder& b) { return b.IdnHostname(); }},
    {"ipv4", [](FormatBuilder& b) { return b.Parse(Ipv4()); }},
    {"ipv6", [](FormatBuilder& b) { return b.Parse(Ipv6()); }},
    {"uri", [](FormatBuilder& b) { return b.Parse(UriPatterns(false).absolute()); }},
    {"uri-reference", [](FormatBuilder& b) { return b.Parse(UriPatterns(false).reference()); }},
    {"iri", [](FormatBuilder& b) { return b.Parse(UriPatterns(true).absolute()); }},
    {"iri-reference", [](FormatBuilder& b) { return b.Parse(UriPatterns(true).reference()); }},
    {"uri-template", [](FormatBuilder& b) { return b.Parse(UriTemplate()); }},
    {"uuid", [](FormatBuilder& b) { return b.Parse(kUuid); }},
    {"json-pointer", [](FormatBuilder& b) { return b.Parse(kJsonPointer); }},
    {"relative-json-pointer", [](FormatBuilder& b) { return b.Parse(RelativeJsonPointer()); }},
    {"regex", [](FormatBuilder& b) { return b.Parse(RegexFormat()); }},
    {"byte", [](FormatBuilder& b) { return b.Parse(Byte()); }},
    {"binary", [](FormatBuilder&) { return RegexArena::kAnything; }}};

const Format* Find(std::string_view name) {
  const auto* const found = std::ranges::find(kFormats, name, &Format::name);
  return found == std::end(kFormats) ? nullptr : found;
}

}  // namespace

std::vector<std::string_view> KnownFormats() {
  std::vector<std::string_view> names;
  for (const Format& format : kFormats) names.push_back(format.name);
  return names;
}

bool IsKnownFormat(std::string_view format) { return Find(format) != nullptr; }

Result<ReId> FormatRegex(RegexArena& arena, std::string_view name) {
  const Format* const format = Find(name);
  if (format == nullptr) {
    return Error{ErrorCode::kUnsupported, "unknown format '" + string(name.substr(0, 80)) + "'",
                 ""};
  }
  FormatBuilder builder(arena);
  const ReId id = format->make(builder);
  if (Status status = builder.status(); !status.ok()) return status.error();
  if (arena.overflow())
    return Error{ErrorCode::kLimit, "the format needs more memory than the limit allows", ""};
  return id;
}

Result<ReId> FormatCache::Regex(RegexArena& arena, std::string_view format) const {
  if (!IsKnownFormat(format)) return FormatRegex(arena, format);
  const Made* made;
  {
    const std::lock_guard lock(mutex_);
    auto it = made_.find(format);
    if (it == made_.end()) {
      RegexArena workshop;  // what making it took stays there
      const Result<ReId> built = FormatRegex(workshop, format);
      auto fresh = std::make_unique<Made>();
      fresh->id = built.ok() ? Result<ReId>(fresh->arena.Import(workshop, *built)) : built;
      it = made_.emplace(format, std::move(fresh)).first;
    }
    made = it->second.get();
  }
  if (!made->id.ok()) return made->id.error();
  const ReId id = arena.Import(made->arena, *made->id);
  if (arena.overflow())
    return Error{ErrorCode::kLimit, "the format needs more memory than the limit allows", ""};
  return id;
}

}  // namespace pawl
