// Which fields of a record are likely to be copied from the text, and by how much values that stand
// in it are preferred (src/decode/text_preference.h). Examples are evidence: a field whose values
// all stand in their texts is likely to be copied, and one with a value that does not is written
// freely. So is a pattern, or a format such as that of e-mail addresses, which few spans of a text
// fit.
//
//   constraint = WithTextPreference(std::move(constraint), grammar, input, model);
#ifndef PAWL_SRC_ENGINE_COPIED_FIELDS_H_
#define PAWL_SRC_ENGINE_COPIED_FIELDS_H_

#include <memory>

#include "pawl/constraint.h"
#include "pawl/engine.h"
#include "pawl/grammar.h"
#include "src/decode/text_preference.h"
#include "src/engine/loaded_model.h"

namespace pawl {

// ExtractInput::prefer_text where nothing says otherwise, and of fields that are likely to be
// copied: their values in the examples all stand in the texts, or the schema has a pattern for
// them, or a format that few spans of a text fit.
inline constexpr PreferenceNats kPreferText = {1, 10}, kPreferLikelyText = {6, 10};
inline constexpr double kMostPreferText = 1000;

TextPreference PreferenceOf(const ExtractInput& input);

// kInvalid with "prefer_text" as place where it is out of its range.
Status CheckPreferText(const ExtractInput& input);

// `constraint` with the preference of the input, to which the choices of the model's files are
// applied. `grammar`: of the answer, before it is bound to the text.
std::shared_ptr<const Constraint> WithTextPreference(std::shared_ptr<const Constraint> constraint,
                                                     const Grammar& grammar, ExtractInput input,
                                                     const LoadedModel& model);

}  // namespace pawl

#endif  // PAWL_SRC_ENGINE_COPIED_FIELDS_H_
