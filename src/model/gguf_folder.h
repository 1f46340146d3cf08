// A model folder as the GGUF file that it would be: its settings and its tokenizer as keys, its
// tensors under the names of GGUF, where they lie.
//
//   Result<GgufFile> file = ReadFolderAsGguf("models/smollm2");
//   file->Find("blk.0.attn_q.weight");
#ifndef PAWL_SRC_MODEL_GGUF_FOLDER_H_
#define PAWL_SRC_MODEL_GGUF_FOLDER_H_

#include <string>

#include "pawl/result.h"
#include "src/model/gguf.h"

namespace pawl {

// Folders of dense families whose settings the common keys of GGUF state, with a byte-level
// tokenizer. What the file would say is read back and compared with the folder: the description of
// the layers, and the tokens of a text.
// Errors: those of reading the folder; kUnsupported with what cannot be written, and its file.
Result<GgufFile> ReadFolderAsGguf(const std::string& folder);

}  // namespace pawl

#endif  // PAWL_SRC_MODEL_GGUF_FOLDER_H_
