// Recursive-descent checks, one for each format: date-time, date, time, duration (RFC 3339), email
// (RFC 5321 with the dot-atom and quoted-string of RFC 5322), hostname (RFC 1123), ipv4, ipv6 (RFC
// 4291), uri and its kin (RFC 3986, 3987), uri-template (RFC 6570), uuid (RFC 4122), json-pointer
// (RFC 6901) and its relative draft, byte (RFC 4648, RFC 7468).
#include "tests/oracle/formats.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "src/base/utf8.h"
#include "tests/oracle/ecma_pattern.h"

namespace pawl::oracle {
namespace {

using View = std::string_view;

bool Digit(char c) { return c >= '0' && c <= '9'; }
bool Alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool Alnum(char c) { return Digit(c) || Alpha(c); }
bool HexDigit(char c) { return Digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool OneOf(char c, View set) { return set.find(c) != View::npos; }

// Exactly `count` digits at the front, as a number; -1 when they are not there.
int TakeNumber(View& in, size_t count) {
  if (in.size() < count) return -1;
  int value = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!Digit(in[i])) return -1;
    value = value * 10 + (in[i] - '0');
  }
  in.remove_prefix(count);
  return value;
}

bool Take(View& in, char c) {
  if (in.empty() || in[0] != c) return false;
  in.remove_prefix(1);
  return true;
}

bool TakeDate(View& in) {
  const int year = TakeNumber(in, 4);
  if (year < 0 || !Take(in, '-')) return false;
  const int month = TakeNumber(in, 2);
  if (month < 1 || month > 12 || !Take(in, '-')) return false;
  const int day = TakeNumber(in, 2);
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  const int days[] = {31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return day >= 1 && day <= days[month - 1];
}

bool TakeTime(View& in) {
  const int hour = TakeNumber(in, 2);
  if (hour < 0 || hour > 23 || !Take(in, ':')) return false;
  const int minute = TakeNumber(in, 2);
  if (minute < 0 || minute > 59 || !Take(in, ':')) return false;
  const int second = TakeNumber(in, 2);
  if (second < 0 || second > 60) return false;
  if (Take(in, '.')) {
    if (in.empty() || !Digit(in[0])) return false;
    while (!in.empty() && Digit(in[0])) in.remove_prefix(1);
  }
  int offset = 0;
  if (!Take(in, 'Z') && !Take(in, 'z')) {
    const int sign = Take(in, '+') ? 1 : Take(in, '-') ? -1 : 0;
    if (sign == 0) return false;
    const int hours = TakeNumber(in, 2);
    if (hours < 0 || hours > 23 || !Take(in, ':')) return false;
    const int minutes = TakeNumber(in, 2);
    if (minutes < 0 || minutes > 59) return false;
    offset = sign * (hours * 60 + minutes);
  }
  // A leap second is the last of a day in UTC.
  return second < 60 || ((hour * 60 + minute - offset) % 1440 + 1440) % 1440 == 1439;
}

bool Date(View in) { return TakeDate(in) && in.empty(); }
bool Time(View in) { return TakeTime(in) && in.empty(); }
bool DateTime(View in) {
  return TakeDate(in) && (Take(in, 'T') || Take(in, 't')) && TakeTime(in) && in.empty();
}

// digits unit [digits next-unit ...]: units without a gap, from any of them on.
bool TakeUnits(View& in, View units) {
  size_t expected = View::npos;
  bool any = false;
  while (!in.empty() && Digit(in[0])) {
    while (!in.empty() && Digit(in[0])) in.remove_prefix(1);
    if (in.empty()) return false;
    const size_t unit = units.find(in[0]);
    if (unit == View::npos || (expected != View::npos && unit != expected)) return false;
    in.remove_prefix(1);
    expected = unit + 1;
    any = true;
  }
  return any;
}

bool Duration(View in) {
  if (!Take(in, 'P')) return false;
  if (View weeks = in; TakeUnits(weeks, "W") && weeks.empty()) return true;
  bool any = false;
  if (!in.empty() && in[0] != 'T') {
    if (!TakeUnits(in, "YMD")) return false;
    any = true;
  }
  if (Take(in, 'T')) {
    if (!TakeUnits(in, "HMS")) return false;
    any = true;
  }
  return any && in.empty();
}

bool Ipv4(View in) {
  for (int i = 0; i < 4; ++i) {
    if (i > 0 && !Take(in, '.')) return false;
    size_t n = 0;
    int value = 0;
    while (n < in.size() && n < 4 && Digit(in[n])) value = value * 10 + (in[n++] - '0');
    if (n == 0 || n > 3 || value > 255 || (n > 1 && in[0] == '0')) return false;
    in.remove_prefix(n);
  }
  return in.empty();
}

bool Ipv6(View in) {
  int groups = 0;
  bool gap = false;
  if (in.substr(0, 2) == "::") {
    gap = true;
    in.remove_prefix(2);
  }
  while (!in.empty()) {
    size_t n = 0;
    while (n < in.size() && HexDigit(in[n])) ++n;
    if (n < in.size() && in[n] == '.') {
      if (!Ipv4(in)) return false;
      groups += 2;
      in = {};
      break;
    }
    if (n == 0 || n > 4) return false;
    ++groups;
    in.remove_prefix(n);
    if (in.empty()) break;
    if (!Take(in, ':') || in.empty()) return false;
    if (in[0] == ':') {
      if (gap) return false;
      gap = true;
      in.remove_prefix(1);
    }
  }
  return gap ? groups <= 7 : groups == 8;
}

std::optional<bool> Hostname(View in) {
  if (in.empty() || in.size() > 253) return false;
  std::optional<bool> result = true;
  for (size_t at = 0; at <= in.size();) {
    const size_t dot = std::min(in.find('.', at), in.size());
    const View label = in.substr(at, dot - at);
    if (label.empty() || label.size() > 63 || label.front() == '-' || label.back() == '-')
      return false;
    for (const char c : label) {
      if (!Alnum(c) && c != '-') return false;
    }
    // "--" in the third place is reserved for encodings such as Punycode, which is not decoded
    // here.
    if (label.size() >= 4 && label.substr(2, 2) == "--") result = std::nullopt;
    at = dot + 1;
  }
  return result;
}

std::optional<bool> IdnHostname(View in) {
  for (const char c : in) {
    if (static_cast<unsigned char>(c) >= 0x80) return std::nullopt;
  }
  return Hostname(in);
}

std::optional<bool> Mail(View in, bool international) {
  const size_t at = in.rfind('@');
  if (at == View::npos || at == 0) return false;
  const View local = in.substr(0, at), domain = in.substr(at + 1);
  const auto letter = [&](char c) {
    return international && static_cast<unsigned char>(c) >= 0x80;
  };
  if (local.size() > 64) return false;
  if (local[0] == '"') {
    if (local.size() < 2 || local.back() != '"') return false;
    for (size_t i = 1; i + 1 < local.size(); ++i) {
      if (local[i] == '"') return false;
      if (local[i] == '\\' && ++i + 1 >= local.size()) return false;
      if ((static_cast<unsigned char>(local[i]) >= 0x7F && !letter(local[i])) ||
          static_cast<unsigned char>(local[i]) < ' ')
        return false;
    }
  } else {
    char before = '.';
    for (const char c : local) {
      if (c == '.' ? before == '.' : !Alnum(c) && !OneOf(c, "!#$%&'*+-/=?^_`{|}~") && !letter(c))
        return false;
      before = c;
    }
    if (before == '.') return false;
  }
  if (domain.size() > 2 && domain.front() == '[' && domain.back() == ']') {
    const View literal = domain.substr(1, domain.size() - 2);
    return literal.substr(0, 5) == "IPv6:" ? Ipv6(literal.substr(5)) : Ipv4(literal);
  }
  return international ? IdnHostname(domain) : Hostname(domain);
}

// Characters of a URI component: unreserved, sub-delims, `extra`, percent-encoded.
bool UriChars(View in, View extra, bool international) {
  for (size_t i = 0; i < in.size(); ++i) {
    const char c = in[i];
    if (c == '%') {
      if (i + 2 >= in.size() || !HexDigit(in[i + 1]) || !HexDigit(in[i + 2])) return false;
      i += 2;
    } else if (!Alnum(c) && !OneOf(c, "-._~!$&'()*+,;=") && !OneOf(c, extra) &&
               !(international && static_cast<unsigned char>(c) >= 0x80)) {
      return false;
    }
  }
  return true;
}

bool UriReference(View in, bool need_scheme, bool international) {
  const size_t hash = in.find('#');
  if (hash != View::npos) {
    if (!UriChars(in.substr(hash + 1), ":@/?", international)) return false;
    in = in.substr(0, hash);
  }
  const size_t question = in.find('?');
  if (question != View::npos) {
    if (!UriChars(in.substr(question + 1), ":@/?", international)) return false;
    in = in.substr(0, question);
  }
  const size_t colon = in.find(':');
  const bool scheme = colon != View::npos && in.substr(0, colon).find('/') == View::npos;
  if (scheme) {
    if (colon == 0 || !Alpha(in[0])) return false;
    for (const char c : in.substr(0, colon)) {
      if (!Alnum(c) && !OneOf(c, "+-.")) return false;
    }
    in.remove_prefix(colon + 1);
  } else if (need_scheme) {
    return false;
  }
  if (in.substr(0, 2) == "//") {
    in.remove_prefix(2);
    const size_t end = std::min(in.find('/'), in.size());
    View authority = in.substr(0, end);
    in.remove_prefix(end);
    const size_t user = authority.find('@');
    if (user != View::npos) {
      if (!UriChars(authority.substr(0, user), ":", international)) return false;
      authority.remove_prefix(user + 1);
    }
    View port;
    if (!authority.empty() && authority[0] == '[') {
      const size_t close = authority.find(']');
      if (close == View::npos) return false;
      const View literal = authority.substr(1, close - 1);
      if (!literal.empty() && (literal[0] == 'v' || literal[0] == 'V')) {
        const size_t dot = literal.find('.');
        if (dot == View::npos || dot < 2 || dot + 1 >= literal.size() ||
            !UriChars(literal.substr(dot + 1), ":", false)) {
          return false;
        }
      } else if (!Ipv6(literal)) {
        return false;
      }
      port = authority.substr(close + 1);
      if (!port.empty() && port[0] != ':') return false;
    } else {
      const size_t at = std::min(authority.find(':'), authority.size());
      if (!UriChars(authority.substr(0, at), "", international)) return false;
      port = authority.substr(at);
    }
    for (const char c : port.substr(port.empty() ? 0 : 1)) {
      if (!Digit(c)) return false;
    }
  }
  return UriChars(in, ":@/", international);
}

// name, name:length or name*; the name of letters, digits, '_', percent-encoded characters and
// single dots inside.
bool VariableSpec(View in) {
  const bool explode = in.size() > 1 && in.back() == '*';
  if (explode) in.remove_suffix(1);
  const size_t colon = explode ? View::npos : in.find(':');
  if (colon != View::npos) {
    const View length = in.substr(colon + 1);
    if (length.empty() || length.size() > 4 || length[0] == '0') return false;
    if (!std::all_of(length.begin(), length.end(), Digit)) return false;
    in = in.substr(0, colon);
  }
  bool dot_allowed = false;
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i] == '.') {
      if (!dot_allowed) return false;
      dot_allowed = false;
      continue;
    }
    if (in[i] == '%') {
      if (i + 2 >= in.size() || !HexDigit(in[i + 1]) || !HexDigit(in[i + 2])) return false;
      i += 2;
    } else if (!Alnum(in[i]) && in[i] != '_') {
      return false;
    }
    dot_allowed = true;
  }
  return dot_allowed;
}

bool UriTemplate(View in) {
  for (size_t i = 0; i < in.size(); ++i) {
    const auto c = static_cast<unsigned char>(in[i]);
    if (c == '{') {
      const size_t end = in.find('}', i);
      if (end == View::npos) return false;
      View body = in.substr(i + 1, end - i - 1);
      if (!body.empty() && OneOf(body[0], "+#./;?&=,!@|")) body.remove_prefix(1);
      for (size_t at = 0; at <= body.size();) {
        const size_t comma = std::min(body.find(',', at), body.size());
        if (!VariableSpec(body.substr(at, comma - at))) return false;
        at = comma + 1;
      }
      i = end;
    } else if (c == '}' || c <= ' ' || c == 0x7F || OneOf(in[i], "\"<>\\^`|")) {
      return false;
    } else if (c == '%') {
      if (i + 2 >= in.size() || !HexDigit(in[i + 1]) || !HexDigit(in[i + 2])) return false;
    }
  }
  return true;
}

bool Uuid(View in) {
  if (in.size() != 36) return false;
  for (size_t i = 0; i < in.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? in[i] != '-' : !HexDigit(in[i])) return false;
  }
  return true;
}

bool JsonPointer(View in) {
  if (!in.empty() && in[0] != '/') return false;
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i] == '~' && (i + 1 >= in.size() || (in[i + 1] != '0' && in[i + 1] != '1')))
      return false;
  }
  return true;
}

bool RelativeJsonPointer(View in) {
  size_t n = 0;
  while (n < in.size() && Digit(in[n])) ++n;
  if (n == 0 || (n > 1 && in[0] == '0')) return false;
  in.remove_prefix(n);
  return in == "#" || JsonPointer(in);
}

// Groups of four, of which the last may be padded; unused bits count for nothing.
bool Base64(View in) {
  if (in.size() % 4 != 0) return false;
  for (int i = 0; i < 2 && !in.empty() && in.back() == '='; ++i) in.remove_suffix(1);
  return std::all_of(in.begin(), in.end(), [](char c) { return Alnum(c) || OneOf(c, "+/"); });
}

// RFC 7468, line by line: armour around lines of base64, the last of which may be padded.
bool Armour(View in) {
  static const auto& labels = *new std::vector<View>{"CERTIFICATE",
                                                     "X509 CERTIFICATE",
                                                     "X.509 CERTIFICATE",
                                                     "ATTRIBUTE CERTIFICATE",
                                                     "X509 CRL",
                                                     "CRL",
                                                     "CERTIFICATE REQUEST",
                                                     "NEW CERTIFICATE REQUEST",
                                                     "PKCS7",
                                                     "CMS",
                                                     "PUBLIC KEY",
                                                     "PRIVATE KEY",
                                                     "ENCRYPTED PRIVATE KEY",
                                                     "RSA PRIVATE KEY",
                                                     "EC PRIVATE KEY"};
  std::vector<View> lines;
  while (!in.empty()) {
    const size_t end = in.find('\n');
    View line = in.substr(0, end);
    in.remove_prefix(end == View::npos ? in.size() : end + 1);
    if (end != View::npos && !line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back(line);
  }
  if (lines.size() < 2) return false;
  const auto armoured = [&](View line, View name) {
    return std::any_of(labels.begin(), labels.end(), [&](View label) {
      return line == "-----" + std::string(name) + " " + std::string(label) + "-----";
    });
  };
  if (!armoured(lines.front(), "BEGIN") || !armoured(lines.back(), "END") ||
      lines.front().substr(11) != lines.back().substr(9))
    return false;
  for (size_t i = 1; i + 1 < lines.size(); ++i) {
    View line = lines[i];
    if (line.empty()) return false;
    for (int k = 0; k < 2 && i + 2 == lines.size() && !line.empty() && line.back() == '='; ++k)
      line.remove_suffix(1);
    if (!std::all_of(line.begin(), line.end(), [](char c) { return Alnum(c) || OneOf(c, "+/"); }))
      return false;
  }
  return true;
}

using Check = std::function<std::optional<bool>(const std::string&)>;

const std::map<std::string, Check>& Checks() {
  static const auto& checks = *new std::map<std::string, Check>{
      {"date-time", DateTime},
      {"date", Date},
      {"time", Time},
      {"duration", Duration},
      {"ipv4", Ipv4},
      {"ipv6", Ipv6},
      {"hostname", Hostname},
      {"idn-hostname", IdnHostname},
      {"email", [](View in) { return Mail(in, false); }},
      {"idn-email", [](View in) { return Mail(in, true); }},
      {"uri", [](View in) { return UriReference(in, true, false); }},
      {"uri-reference", [](View in) { return UriReference(in, false, false); }},
      {"iri", [](View in) { return UriReference(in, true, true); }},
      {"iri-reference", [](View in) { return UriReference(in, false, true); }},
      {"uri-template", UriTemplate},
      {"uuid", Uuid},
      {"json-pointer", JsonPointer},
      {"relative-json-pointer", RelativeJsonPointer},
      {"regex", IsEcmaPattern},
      {"byte", [](View in) { return Base64(in) || Armour(in); }},
  };
  return checks;
}

}  // namespace

bool IsKnownFormat(const std::string& format) { return Checks().count(format) > 0; }

std::optional<bool> HasFormat(const std::string& format, const std::string& text) {
  const auto check = Checks().find(format);
  return check == Checks().end() ? std::optional<bool>(true) : check->second(text);
}

}  // namespace pawl::oracle
