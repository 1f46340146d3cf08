// A decoder of the file is a chain over a list of strings. In every chain in use the steps up to
// "Fuse" look at one token at a time (and at whether it is the first), and what follows only cuts
// the front of the text. Chains of that shape are all that is accepted, because it is what makes
// "the bytes of a token" well defined, which masks and streaming rest on.
#include "src/text/token_decoder.h"

#include "src/base/stop_scope.h"
#include "src/base/utf8.h"
#include "src/text/normalizer.h"
#include "src/text/tokenizer_steps.h"

namespace pawl {

TokenDecoder TokenDecoder::Load(const JsonReader& node) {
  TokenDecoder out;
  out.join_with_space_ = !node.present();
  if (!node.present()) return out;
  ForEachStep(node, "decoders",
              [&](const JsonReader& step, const std::string& type) { out.Add(step, type); });
  return out;
}

void TokenDecoder::Add(const JsonReader& node, const std::string& type) {
  if (type == "Fuse") {
    node.OnlyMembers({"type"});
    joined_ = true;
    return;
  }
  if (type == "Strip") {
    node.OnlyMembers({"type", "content", "start", "stop"});
    Step step{.kind = Kind::kStrip, .content = node["content"].String()};
    const int64_t start = node["start"].Whole(0), stop = node["stop"].Whole(0);
    if (step.content.empty()) node["content"].Fail("must be one character");
    if (joined_ && stop > 0) node["stop"].Unsupported("cutting the end of the whole text");
    step.start = static_cast<size_t>(start);
    step.stop = static_cast<size_t>(stop);
    (joined_ ? text_steps_ : steps_).push_back(std::move(step));
    return;
  }
  if (joined_)
    return node["type"].Unsupported("decoder " + json::Quote(type) + " on the joined text");
  if (type == "ByteLevel") {
    node.OnlyMembers({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    steps_.push_back({.kind = Kind::kByteLevel});
    joined_ = true;
  } else if (type == "Replace") {
    node.OnlyMembers({"type", "pattern", "content"});
    steps_.push_back({.kind = Kind::kReplace,
                      .pattern = LoadPattern(node["pattern"]),
                      .content = node["content"].String()});
  } else if (type == "ByteFallback") {
    node.OnlyMembers({"type"});
    steps_.push_back({.kind = Kind::kByteFallback});
  } else if (type == "Metaspace") {
    node.OnlyMembers(
        {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"});
    Step step{.kind = Kind::kMetaspace};
    const JsonReader replacement = node["replacement"], scheme = node["prepend_scheme"];
    if (replacement.String().empty()) replacement.Fail("must be one character");
    step.pattern = SplitRegex::Literal(replacement.String());
    const std::string name = scheme.String("always");
    if (name != "always" && name != "first" && name != "never") {
      scheme.Unsupported("prepend scheme " + json::Quote(name));
    }
    step.drop_first = name != "never" && node["add_prefix_space"].Bool(true);
    steps_.push_back(std::move(step));
  } else {
    node["type"].Unsupported("decoder " + json::Quote(type));
  }
}

void TokenDecoder::StripFront(std::string& text, std::string_view content, size_t most) {
  size_t cut = 0;
  for (; most > 0 && std::string_view(text).substr(cut).starts_with(content); --most)
    cut += content.size();
  text.erase(0, cut);
}

std::string TokenDecoder::DecodeOne(const Token& token, bool first) const {
  std::string text = token.text;
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Kind::kByteLevel:
        if (token.verbatim) break;
        if (auto bytes = AlphabetToBytes(text)) text = std::move(*bytes);
        break;
      case Kind::kReplace:
        text = ReplaceMatches(text, step.pattern, step.content);
        break;
      case Kind::kByteFallback:
        if (const int byte = ByteFallbackValue(text); byte >= 0)
          text.assign(1, static_cast<char>(byte));
        break;
      case Kind::kMetaspace:
        text = ReplaceMatches(text, step.pattern, first && step.drop_first ? "" : " ");
        break;
      case Kind::kStrip: {
        StripFront(text, step.content, step.start);
        for (size_t left = step.stop; left > 0 && text.ends_with(step.content); --left) {
          text.resize(text.size() - step.content.size());
        }
        break;
      }
    }
  }
  if (join_with_space_ && !first) text.insert(text.begin(), ' ');
  return text;
}

std::string TokenDecoder::DecodeAll(const std::vector<Token>& tokens) const {
  std::string out;
  StopSteps steps;
  for (size_t i = 0; i < tokens.size(); ++i) {
    steps.Step(1 + tokens[i].text.size());
    out += DecodeOne(tokens[i], i == 0);
  }
  for (const Step& step : text_steps_) StripFront(out, step.content, step.start);
  return out;
}

// The bytes of a token depend on the text before it in one way only: at the front some formats drop
// a space. So the first tokens, up to one that adds text, are kept as an anchor, and the bytes of
// any later token are what decoding it behind the anchor adds. That is a constant amount of work
// for each token.

std::string StreamDecoder::Feed(TokenId id) {
  anchor_.push_back(id);
  std::string text = tokenizer_.Decode(anchor_, keep_special_);
  held_.append(text, anchor_length_);
  if (anchor_length_ > 0) {
    anchor_.pop_back();
  } else {
    anchor_length_ = text.size();
  }
  const size_t complete = CompleteUtf8Prefix(held_);
  std::string out = held_.substr(0, complete);
  held_.erase(0, complete);
  return out;
}

std::string StreamDecoder::Finish() {
  anchor_.clear();
  anchor_length_ = 0;
  return std::exchange(held_, {});
}

}  // namespace pawl
