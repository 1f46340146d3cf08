// JsonWriter: compact JSON, member by member, in the order in which it is written.
//
//   JsonWriter out;
//   out.Object().Key("id").String(id).Key("n").Int(3).Key("list").Array().Int(1).End().End();
//   Send(out.text());                               // {"id":"x","n":3,"list":[1]}
#ifndef PAWL_SRC_SERVER_JSON_WRITER_H_
#define PAWL_SRC_SERVER_JSON_WRITER_H_

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/json.h"

namespace pawl::server {

class JsonWriter {
 public:
  JsonWriter& Object() { return Open('{', '}'); }
  JsonWriter& Array() { return Open('[', ']'); }
  JsonWriter& End() {
    text_ += open_.back();
    open_.pop_back();
    comma_ = true;
    return *this;
  }
  JsonWriter& Key(std::string_view key) {
    Comma();
    text_ += json::Quote(key);
    text_ += ':';
    comma_ = false;
    return *this;
  }
  // UTF-8.
  JsonWriter& String(std::string_view value) { return Raw(json::Quote(value)); }
  JsonWriter& Int(int64_t value) { return Raw(std::to_string(value)); }
  JsonWriter& Number(double value) {
    if (!std::isfinite(value)) return Null();
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.9g", value);
    return Raw(digits);
  }
  JsonWriter& Bool(bool value) { return Raw(value ? "true" : "false"); }
  JsonWriter& Null() { return Raw("null"); }
  // A value that is JSON already.
  JsonWriter& Raw(std::string_view value) {
    Comma();
    text_ += value;
    comma_ = true;
    return *this;
  }

  const std::string& text() const { return text_; }
  std::string Take() { return std::move(text_); }

 private:
  JsonWriter& Open(char begin, char end) {
    Comma();
    text_ += begin;
    open_ += end;
    comma_ = false;
    return *this;
  }
  void Comma() {
    if (comma_) text_ += ',';
  }

  std::string text_;
  std::string open_;  // what closes what is open
  bool comma_ = false;
};

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_JSON_WRITER_H_
