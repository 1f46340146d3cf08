// Matcher and BatchFiller for Python.
#include "pawl/matcher.h"

#include <algorithm>

#include "python/native/binding.h"

namespace pawl::python {
namespace {

// A token that is too large for a TokenId fits nowhere, like any other that the vocabulary lacks.
TokenId TokenOf(const Matcher& matcher, int64_t token) {
  return token < 0 || token >= matcher.grammar().vocabulary().size() ? kNoToken
                                                                     : static_cast<TokenId>(token);
}

std::vector<TokenId> TokensOf(const Matcher& matcher, const std::vector<int64_t>& tokens) {
  std::vector<TokenId> out;
  out.reserve(tokens.size());
  for (int64_t token : tokens) out.push_back(TokenOf(matcher, token));
  return out;
}

bool Accept(Matcher& matcher, int64_t token) {
  const TokenId id = TokenOf(matcher, token);
  return id != kNoToken && matcher.Accept(id);
}

size_t ValidateTokens(const Matcher& matcher, const std::vector<int64_t>& tokens) {
  std::vector<TokenId> ids = TokensOf(matcher, tokens);
  // What the vocabulary lacks ends the prefix.
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == kNoToken) ids.resize(i);
  }
  nb::gil_scoped_release release;
  return matcher.ValidateTokens(ids);
}

bool FillMask(const Matcher& matcher, nb::handle array, int64_t row) {
  const MaskRows rows(array);
  const Vocabulary& vocabulary = matcher.grammar().vocabulary();
  const std::span<uint32_t> words = rows.Row(row, vocabulary);
  nb::gil_scoped_release release;
  ClearTail(words, vocabulary);
  return matcher.FillMask(words);
}

std::vector<TokenId> ForcedTokens(const Matcher& matcher, size_t limit, nb::handle encode) {
  if (encode.is_none()) {
    nb::gil_scoped_release release;
    return matcher.ForcedTokens(limit);
  }
  return matcher.ForcedTokens(limit, [&](std::string_view text) {
    return nb::cast<std::vector<TokenId>>(encode(BytesOf(text)));
  });
}

std::vector<bool> FillTree(const Matcher& matcher, const std::vector<int64_t>& tokens,
                           const std::vector<int32_t>& parents, nb::handle array) {
  const MaskRows rows(array);
  const Vocabulary& vocabulary = matcher.grammar().vocabulary();
  // -1 stands for the parent's position; what the vocabulary lacks must not mean the same.
  std::vector<TokenId> ids;
  ids.reserve(tokens.size());
  for (int64_t token : tokens) {
    if (token < -1 || token >= vocabulary.size()) {
      RaiseInvalid("token " + std::to_string(token) + " is not in the vocabulary");
    }
    ids.push_back(static_cast<TokenId>(token));
  }
  if (rows.rows() < ids.size()) {
    RaiseInvalid("the mask has " + std::to_string(rows.rows()) + " rows for " +
                 std::to_string(ids.size()) + " nodes");
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    ClearTail(rows.Row(static_cast<int64_t>(i), vocabulary), vocabulary);
  }
  std::vector<uint8_t> accepted(ids.size());
  Result<size_t> fit = [&]() -> Result<size_t> {
    nb::gil_scoped_release release;
    return FillTreeMasks(matcher, ids, parents, rows.data(), rows.stride(), accepted);
  }();
  (void)Take(std::move(fit));
  return {accepted.begin(), accepted.end()};
}

size_t FillBatch(const BatchFiller& filler, nb::sequence matchers, nb::handle array,
                 std::optional<std::vector<int64_t>> where) {
  const MaskRows rows(array);
  std::vector<BatchFiller::Row> work;
  const size_t count = nb::len(matchers);
  if (where && where->size() != count) {
    RaiseInvalid(std::to_string(where->size()) + " rows for " + std::to_string(count) +
                 " matchers");
  }
  std::vector<bool> seen(rows.rows());
  for (size_t i = 0; i < count; ++i) {
    nb::object item = matchers[i];
    if (item.is_none()) continue;
    const auto* matcher = nb::cast<const Matcher*>(item);
    const int64_t row = where ? (*where)[i] : static_cast<int64_t>(i);
    const Vocabulary& vocabulary = matcher->grammar().vocabulary();
    const std::span<uint32_t> words = rows.Row(row, vocabulary);
    const auto index = static_cast<size_t>(words.data() - rows.data()) / rows.stride();
    if (seen[index]) RaiseInvalid("row " + std::to_string(row) + " is named twice");
    seen[index] = true;
    ClearTail(words, vocabulary);
    work.push_back({matcher, words});
  }
  nb::gil_scoped_release release;
  return filler.Fill(work);
}

// A matcher with the draft tokens that follow it, and where its rows begin.
struct Draft {
  const Matcher* matcher;
  std::vector<TokenId> path;  // kNoToken, then the draft
  int64_t first = 0;
  int64_t accepted = 0;
  bool stuck = false;  // a row has no token though the output has not ended
};

bool AllZero(std::span<const uint32_t> row) {
  return std::all_of(row.begin(), row.end(), [](uint32_t word) { return word == 0; });
}

bool TerminatedAfter(Matcher matcher, std::span<const TokenId> tokens) {
  for (TokenId token : tokens) matcher.Accept(token);
  return matcher.terminated();
}

// Row j is what may come after the first j draft tokens. Behind a refused token the last row that
// held is repeated; where the output has ended every token is allowed, for nothing will be sampled
// there and a row of zeros would make a sampler divide by nothing.
void FillDraft(Draft& draft, const MaskRows& rows) {
  const Vocabulary& vocabulary = draft.matcher->grammar().vocabulary();
  const size_t nodes = draft.path.size();
  std::vector<int32_t> parents(nodes);
  for (size_t i = 0; i < nodes; ++i) parents[i] = static_cast<int32_t>(i) - 1;
  std::vector<uint8_t> accepted(nodes);
  (void)FillTreeMasks(*draft.matcher, draft.path, parents, rows.Row(draft.first, vocabulary).data(),
                      rows.stride(), accepted);
  for (size_t i = 0; i < nodes; ++i) {
    const std::span<uint32_t> row = rows.Row(draft.first + static_cast<int64_t>(i), vocabulary);
    if (i > 0 && accepted[i] == 0) {
      const auto last = rows.Row(draft.first + static_cast<int64_t>(i) - 1, vocabulary);
      std::copy(last.begin(), last.end(), row.begin());
      continue;
    }
    draft.accepted = static_cast<int64_t>(i);
    if (!AllZero(row)) continue;
    if (TerminatedAfter(*draft.matcher, std::span(draft.path).subspan(1, i))) {
      std::fill(row.begin(), row.end(), ~uint32_t{0});
    } else {
      draft.stuck = true;
    }
  }
}

std::vector<int64_t> FillDrafts(const BatchFiller& filler, nb::sequence matchers,
                                nb::sequence drafts, nb::handle array,
                                std::optional<std::vector<int64_t>> first_rows) {
  const MaskRows rows(array);
  const size_t count = nb::len(matchers);
  if (nb::len(drafts) != count || (first_rows && first_rows->size() != count)) {
    RaiseInvalid("there must be a draft and a first row for each of the " + std::to_string(count) +
                 " matchers");
  }
  std::vector<Draft> work;
  std::vector<BatchFiller::Row> plain;
  std::vector<bool> seen(rows.rows());
  int64_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    Draft draft{nb::cast<const Matcher*>(nb::handle(matchers[i])), {kNoToken}};
    for (nb::handle token : nb::object(drafts[i])) {
      const auto id = TokenOf(*draft.matcher, nb::cast<int64_t>(token));
      // What the vocabulary lacks is refused like a token that does not fit.
      draft.path.push_back(id == kNoToken ? draft.matcher->grammar().vocabulary().size() : id);
    }
    draft.first = first_rows ? (*first_rows)[i] : next;
    next = draft.first + static_cast<int64_t>(draft.path.size());
    const Vocabulary& vocabulary = draft.matcher->grammar().vocabulary();
    for (int64_t row = draft.first; row < next; ++row) {
      const std::span<uint32_t> words = rows.Row(row, vocabulary);
      const auto index = static_cast<size_t>(words.data() - rows.data()) / rows.stride();
      if (seen[index]) RaiseInvalid("row " + std::to_string(row) + " is named twice");
      seen[index] = true;
      ClearTail(words, vocabulary);
    }
    if (draft.path.size() == 1) {
      plain.push_back({draft.matcher, rows.Row(draft.first, vocabulary)});
    }
    work.push_back(std::move(draft));
  }
  nb::gil_scoped_release release;
  const bool look = filler.Fill(plain) > 0;  // some row has no token
  std::vector<int64_t> accepted;
  for (Draft& draft : work) {
    if (draft.path.size() > 1) {
      FillDraft(draft, rows);
    } else if (look) {
      const auto row = rows.Row(draft.first, draft.matcher->grammar().vocabulary());
      if (draft.matcher->terminated()) {
        std::fill(row.begin(), row.end(), ~uint32_t{0});
      } else {
        draft.stuck = AllZero(row);
      }
    }
    accepted.push_back(draft.stuck ? -1 - draft.accepted : draft.accepted);
  }
  return accepted;
}

}  // namespace

void BindMatcher(nb::module_& module) {
  nb::class_<Matcher>(module, "Matcher")
      .def(
          "__init__",
          [](Matcher* self, const Grammar& grammar, std::optional<std::vector<TokenId>> end_tokens,
             bool terminate_without_end_token) {
            MatcherOptions options;
            if (end_tokens) options.end_tokens = *std::move(end_tokens);
            options.terminate_without_end_token = terminate_without_end_token;
            new (self) Matcher(Take(Matcher::Create(grammar, options)));
          },
          nb::arg("grammar"), nb::arg("end_tokens") = nb::none(),
          nb::arg("terminate_without_end_token") = false)
      .def("accept", &Accept, nb::arg("token"))
      .def(
          "accept_bytes",
          [](Matcher& self, nb::handle text) { return self.AcceptBytes(TextOf(text, "the text")); },
          nb::arg("text"))
      .def(
          "rollback",
          [](Matcher& self, int64_t steps) {
            const size_t most = self.steps();
            if (steps >= 0 && static_cast<uint64_t>(steps) <= most) {
              self.Rollback(static_cast<size_t>(steps));
              return;
            }
            throw nb::index_error(("there are no " + std::to_string(steps) +
                                   " steps to take back, there are " + std::to_string(most))
                                      .c_str());
          },
          nb::arg("steps") = 1)
      .def("reset", &Matcher::Reset)
      .def("copy", [](const Matcher& self) { return Matcher(self); })
      .def("__copy__", [](const Matcher& self) { return Matcher(self); })
      .def(
          "__deepcopy__", [](const Matcher& self, nb::handle) { return Matcher(self); },
          nb::arg("memo"))
      .def_prop_ro("steps", &Matcher::steps)
      .def_prop_ro("terminated", &Matcher::terminated)
      .def_prop_ro("accepting", &Matcher::accepting)
      .def_prop_ro("grammar", [](const Matcher& self) { return self.grammar(); })
      .def("fill_mask", &FillMask, nb::arg("mask"), nb::arg("row") = 0)
      .def("allowed_tokens",
           [](const Matcher& self) {
             const Vocabulary& vocabulary = self.grammar().vocabulary();
             std::vector<uint32_t> row(static_cast<size_t>(vocabulary.mask_words()));
             {
               nb::gil_scoped_release release;
               self.FillMask(row);
             }
             std::vector<TokenId> tokens;
             for (TokenId id = 0; id < vocabulary.size(); ++id) {
               if (row[static_cast<size_t>(id) / 32] >> (id % 32) & 1) tokens.push_back(id);
             }
             return tokens;
           })
      .def("validate_tokens", &ValidateTokens, nb::arg("tokens"))
      .def(
          "forced_bytes",
          [](const Matcher& self, size_t limit) { return BytesOf(self.ForcedBytes(limit)); },
          nb::arg("limit") = 256)
      .def("forced_tokens", &ForcedTokens, nb::arg("limit") = 256, nb::arg("encode") = nb::none())
      .def(
          "matched_prefix",
          [](const Matcher& self, nb::handle text) {
            return self.MatchedPrefix(TextOf(text, "the text"));
          },
          nb::arg("text"))
      .def("shortest_completion",
           [](const Matcher& self) -> std::optional<nb::bytes> {
             auto text = self.CompletionBytes();
             if (!text) return std::nullopt;
             return BytesOf(*text);
           })
      .def("captures",
           [](const Matcher& self) {
             Result<std::vector<Capture>> found = [&] {
               nb::gil_scoped_release release;
               return self.Captures();
             }();
             nb::list out;
             for (const Capture& capture : Take(std::move(found))) {
               out.append(
                   nb::make_tuple(capture.name, capture.begin, capture.end, BytesOf(capture.text)));
             }
             return out;
           })
      .def_prop_ro("temperature", [](const Matcher& self) { return self.temperature(); })
      .def("completion_tokens", [](const Matcher& self) { return self.CompletionTokens(); })
      .def("fill_tree_masks", &FillTree, nb::arg("tokens"), nb::arg("parents"), nb::arg("mask"));

  nb::class_<BatchFiller>(module, "BatchFiller")
      .def(
          "__init__",
          [](BatchFiller* self, int64_t threads) {
            constexpr int kMost = 1024;
            if (threads < 0 || threads > kMost) {
              throw nb::value_error(("threads must be from 0 (all processors) to 1024, not " +
                                     std::to_string(threads))
                                        .c_str());
            }
            new (self) BatchFiller(static_cast<int>(threads));
          },
          nb::arg("threads") = 0)
      .def_prop_ro("threads", &BatchFiller::threads)
      .def("fill", &FillBatch, nb::arg("matchers"), nb::arg("mask"), nb::arg("rows") = nb::none())
      .def("fill_drafts", &FillDrafts, nb::arg("matchers"), nb::arg("drafts"), nb::arg("mask"),
           nb::arg("first_rows") = nb::none());

  module.def(
      "draft_tree_parents",
      [](const std::vector<int32_t>& next_token, const std::vector<int32_t>& next_sibling) {
        return Take(DraftTreeParents(next_token, next_sibling));
      },
      nb::arg("next_token"), nb::arg("next_sibling"));
}

}  // namespace pawl::python
