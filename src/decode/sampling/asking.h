// Asking: what the samplers want to know of checks, with when they have to be asked.
#ifndef PAWL_SRC_DECODE_SAMPLING_ASKING_H_
#define PAWL_SRC_DECODE_SAMPLING_ASKING_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"
#include "pawl/sampling.h"
#include "pawl/vocabulary.h"

namespace pawl {

using Checks = std::vector<std::shared_ptr<const Check>>;

// Whether the output `text`, `tokens` may go on with `token` and its bytes. `asked` counts
// questions. `by_bytes`: set to whether it was a check of bytes that called it dead. Errors: those
// of the checks.
Result<bool> MayGoOn(const Checks& checks, const std::string& text,
                     const std::vector<TokenId>& tokens, TokenId token, std::string_view bytes,
                     int64_t& asked, bool* by_bytes = nullptr);
// Whether it may go on with `bytes`, a part of a token. Only checks of bytes are asked: what they
// call dead stays dead with whatever tokens it is written.
Result<bool> BytesMayGoOn(const Checks& checks, const std::string& text,
                          const std::vector<TokenId>& tokens, std::string_view bytes,
                          int64_t& asked);
// Whether it may end.
Result<bool> MayEnd(const Checks& checks, std::string_view text, std::span<const TokenId> tokens,
                    int64_t& asked);

}  // namespace pawl

#endif  // PAWL_SRC_DECODE_SAMPLING_ASKING_H_
