// The source "model" with a model that is there already, or with a trained head of the model that
// the drafts are for.
#ifndef PAWL_SRC_DECODE_DRAFT_MODEL_SOURCE_H_
#define PAWL_SRC_DECODE_DRAFT_MODEL_SOURCE_H_

#include <memory>

#include "src/decode/draft/source.h"

namespace pawl {

class Tokenizer;

// `setting` must outlive the source.
std::unique_ptr<DraftSource> MakeModelSourceFrom(const DraftSetting& setting,
                                                 std::unique_ptr<Model> model);

// The same of a model with another vocabulary. REQUIRES: DraftSetting::encode.
std::unique_ptr<DraftSource> MakeBytesSource(const DraftSetting& setting,
                                             std::unique_ptr<Model> model,
                                             std::shared_ptr<const Tokenizer> tokenizer,
                                             std::shared_ptr<const Vocabulary> vocabulary);

// The source "model" with that one of DraftModelsOf.
Result<std::unique_ptr<DraftSource>> MakeModelSourceOf(const DraftSetting& setting, size_t nth);

// Drafts by a head that is attached to the model of DraftPlace::target (draft_head.h), by its
// number in ModelInfo::draft_heads. `setting` must outlive the source.
std::unique_ptr<DraftSource> MakeHeadSource(const DraftSetting& setting, int number);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_DRAFT_MODEL_SOURCE_H_
