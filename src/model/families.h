// The model families, each a function that turns the settings of its config.json into a
// TransformerConfig. What all have in common is read in transformer_config.cc.
#ifndef PAWL_SRC_MODEL_FAMILIES_H_
#define PAWL_SRC_MODEL_FAMILIES_H_

#include <string>
#include <string_view>

#include "src/base/json_reader.h"
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
  void (*read)(const JsonReader& in, TransformerConfig& config);
};

// nullptr when there is none.
const Family* FindFamily(std::string_view architecture);
// "GemmaForCausalLM, LlamaForCausalLM and ..."
std::string FamilyNames();

// The RoPE settings at the top level of config.json in either spelling: rope_theta and
// rope_scaling, or rope_parameters.
RopeConfig ReadRope(const JsonReader& in, int context, double default_theta);
// One object of RoPE settings.
RopeConfig ReadRopeObject(const JsonReader& object, int context, double theta, bool type_required);

// A setting that is not understood may be harmless or may change every number, and its name does
// not tell which. So a member with a value is read, known to be harmless, or an error.

// kUnsupported unless the setting is `supported` or absent.
void ExpectString(const JsonReader& in, std::string_view supported);
// kUnsupported where it says something: anything but null, false or empty.
void ExpectNothing(const JsonReader& in);
// kUnsupported for the first member that nothing has read and that says something; names that begin
// with '_' are comments. `owner`: "LlamaForCausalLM", for the message.
void RefuseTheRest(const JsonReader& in, std::string_view owner);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_FAMILIES_H_
