// The model families, each a function that turns the settings of its config.json into a
// TransformerConfig. What all have in common is read in transformer_config.cc.
#ifndef PAWL_SRC_MODEL_FAMILIES_H_
#define PAWL_SRC_MODEL_FAMILIES_H_

#include <string>
#include <string_view>

#include "src/model/config_reader.h"
#include "src/model/transformer_config.h"

namespace pawl {

// What a family's files leave out.
struct FamilyDefaults {
  int kv_heads = 0;  // 0: as many as heads
  int head_dim = 0;  // 0: hidden / heads
  int context = 2048;
  bool tied_embeddings = false;
  int heads = 0, vocabulary = 0;  // 0: the file has to say
  // The object of config.json that describes the text model, of one that also sees images; nullptr:
  // all of it.
  const char* text_config = nullptr;
};

struct Family {
  const char* architecture;  // the entry of `architectures`
  FamilyDefaults defaults;
  // Called once widths, layers (a default each) and context are filled in; reads the rest. RoPE is
  // the family's too: it calls ReadRope.
  void (*read)(ConfigReader& reader, TransformerConfig& config);
};

// nullptr when there is none.
const Family* FindFamily(std::string_view architecture);
// "GemmaForCausalLM, LlamaForCausalLM and ..."
std::string FamilyNames();

// The RoPE settings at the top level of config.json in either spelling: rope_theta and
// rope_scaling, or rope_parameters.
RopeConfig ReadRope(ConfigReader& reader, int context, double default_theta);
// One object of RoPE settings. `key`: where it stands, "rope_parameters/full_attention".
RopeConfig ReadRopeObject(ConfigReader& reader, const json::Value& object, std::string_view key,
                          int context, double theta, bool type_required);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_FAMILIES_H_
