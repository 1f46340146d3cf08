// A template is a list of ids with the place of the text's own tokens among them; sequences of
// processors are applied in their order.
#include "src/text/post_processor.h"

#include <limits>

namespace pawl {
namespace {}

PostProcessor PostProcessor::Load(const JsonNode& node) {
  PostProcessor out;
  if (node.present()) out.Add(node, 0);
  return out;
}

TokenId PostProcessor::LoadId(const JsonNode& node) {
  const int64_t id = node.Integer();
  if (id < 0 || id > std::numeric_limits<TokenId>::max()) {
    node.Fail(ErrorCode::kInvalid, "token id out of range");
    return 0;
  }
  return static_cast<TokenId>(id);
}

void PostProcessor::Add(const JsonNode& node, int depth) {
  if (depth > kMaxNesting) return node.Fail(ErrorCode::kLimit, "nested too deeply");
  const std::string& type = node.Member("type").String();
  if (type == "Sequence") {
    node.OnlyMembers({"type", "processors"});
    const JsonNode list = node.Member("processors");
    for (size_t i = 0, n = list.ArraySize(); i < n; ++i) Add(list.Item(i), depth + 1);
  } else if (type == "ByteLevel") {
    node.OnlyMembers({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  } else if (type == "TemplateProcessing") {
    AddTemplate(node);
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    node.OnlyMembers({"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
    Template added;
    added.before.push_back(LoadId(node.Member("cls").Item(1)));
    added.after.push_back(LoadId(node.Member("sep").Item(1)));
    templates_.push_back(std::move(added));
  } else {
    node.Member("type").Unsupported("post-processor " + json::Quote(type));
  }
}

void PostProcessor::AddTemplate(const JsonNode& node) {
  node.OnlyMembers({"type", "single", "pair", "special_tokens"});
  const JsonNode single = node.Member("single"), special = node.Member("special_tokens");
  Template added;
  bool seen = false;
  for (size_t i = 0, n = single.ArraySize(); i < n; ++i) {
    const JsonNode item = single.Item(i);
    item.OnlyMembers({"Sequence", "SpecialToken"});
    if (const JsonNode sequence = item.Member("Sequence"); sequence.present()) {
      if (sequence.Member("id").String() != "A") sequence.Unsupported("a second text");
      if (seen) sequence.Unsupported("the text twice");
      seen = true;
      continue;
    }
    const JsonNode token = special.Member(item.Member("SpecialToken").Member("id").String());
    const JsonNode ids = token.Member("ids");
    for (size_t k = 0, count = ids.ArraySize(); k < count; ++k) {
      (seen ? added.after : added.before).push_back(LoadId(ids.Item(k)));
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
