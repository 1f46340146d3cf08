// A template is a list of ids with the place of the text's own tokens among them; sequences of
// processors are applied in their order.
#include "src/text/post_processor.h"

#include <limits>
#include <string>

#include "src/text/tokenizer_steps.h"

namespace pawl {
PostProcessor PostProcessor::Load(const JsonReader& node) {
  PostProcessor out;
  if (!node.present()) return out;
  ForEachStep(node, "processors",
              [&](const JsonReader& step, const std::string& type) { out.Add(step, type); });
  return out;
}

TokenId PostProcessor::LoadId(const JsonReader& node) {
  return static_cast<TokenId>(node.Whole(0, std::numeric_limits<TokenId>::max()));
}

void PostProcessor::Add(const JsonReader& node, const std::string& type) {
  if (type == "ByteLevel") {
    node.OnlyMembers({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  } else if (type == "TemplateProcessing") {
    AddTemplate(node);
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    node.OnlyMembers({"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
    Template added;
    added.before.push_back(LoadId(node["cls"].Item(1)));
    added.after.push_back(LoadId(node["sep"].Item(1)));
    templates_.push_back(std::move(added));
  } else {
    node["type"].Unsupported("post-processor " + json::Quote(type));
  }
}

void PostProcessor::AddTemplate(const JsonReader& node) {
  node.OnlyMembers({"type", "single", "pair", "special_tokens"});
  const JsonReader single = node["single"], special = node["special_tokens"];
  Template added;
  bool seen = false;
  for (const JsonReader item : single.Array().items()) {
    item.OnlyMembers({"Sequence", "SpecialToken"});
    if (const JsonReader sequence = item["Sequence"]; sequence.present()) {
      if (sequence["id"].String() != "A") sequence.Unsupported("a second text");
      if (seen) sequence.Unsupported("the text twice");
      seen = true;
      continue;
    }
    const JsonReader token = special[item["SpecialToken"]["id"].String()];
    for (const JsonReader id : token["ids"].Array().items()) {
      (seen ? added.after : added.before).push_back(LoadId(id));
    }
  }
  if (!seen) single.Unsupported("a template without the text");
  templates_.push_back(std::move(added));
}

void PostProcessor::CollectIds(std::vector<TokenId>& out) const {
  for (const Template& added : templates_) {
    out.insert(out.end(), added.before.begin(), added.before.end());
    out.insert(out.end(), added.after.begin(), added.after.end());
  }
}

std::vector<TokenId> PostProcessor::Apply(std::vector<TokenId> ids) const {
  for (const Template& added : templates_) {
    ids.insert(ids.begin(), added.before.begin(), added.before.end());
    ids.insert(ids.end(), added.after.begin(), added.after.end());
  }
  return ids;
}

}  // namespace pawl
