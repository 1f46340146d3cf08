// The formats by name of their constants: each stands in a file of its own, or with its family.
#ifndef PAWL_GRAMMAR_TAGS_FORMATS_CHAT_FORMATS_H_
#define PAWL_GRAMMAR_TAGS_FORMATS_CHAT_FORMATS_H_

#include "grammar/tags/formats/chat_format.h"
#include "pawl/result.h"

namespace pawl {

// The order is that in which templates are tried: what has marks of its own comes first, and what
// shares its marks with others last.
#define PAWL_CHAT_FORMATS(row)                                                                     \
  row(kGptOssFormat) row(kGlimmerFormat) row(kFunctionary32Format) row(kKimiK2Format)              \
      row(kKimiK3Format) row(kCohereFormat) row(kCommandR7bFormat) row(kSolarFormat)               \
          row(kMinimaxM3Format) row(kDeepSeekV32Format) row(kDeepSeekV4Format) row(kGemma4Format)  \
              row(kHunyuanFormat) row(kGlmFormat) row(kSeedFormat) row(kQwenXmlFormat)             \
                  row(kMiniCpm5Format) row(kMinimaxM2Format) row(kMinimaxM1Format)                 \
                      row(kMistralSmallFormat) row(kMinistralFormat) row(kMistralFormat)           \
                          row(kDeepSeekR1Format) row(kDeepSeekV31Format) row(kGranite3Format)      \
                              row(kNemotronFormat) row(kAprielFormat) row(kApertusFormat)          \
                                  row(kGigaChat31Format) row(kGigaChat3Format) row(kLfm2Format)    \
                                      row(kOlmo3Format) row(kFunctoolsFormat) row(kPhi4MiniFormat) \
                                          row(kCommandRFormat) row(kFunctionary31Format)           \
                                              row(kHermesFormat) row(kLlama3Format)                \
                                                  row(kPlainFormat)

#define PAWL_DECLARE(format) PAWL_EXPORT extern const ChatFormat format;
PAWL_CHAT_FORMATS(PAWL_DECLARE)
#undef PAWL_DECLARE

}  // namespace pawl

#endif  // PAWL_GRAMMAR_TAGS_FORMATS_CHAT_FORMATS_H_
