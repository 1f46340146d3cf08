// Unified layer skipping: Liu et al., arXiv 2404.06954. SkipDecode: Del Corro et al., arXiv
// 2307.02628. LayerSkip's early exit: Elhoushi et al., arXiv 2404.16710. DEL: Zarch et al., arXiv
// 2504.05598. CLaSp: Chen et al., arXiv 2505.24196.
#include "src/decode/draft/self_layers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

namespace pawl {
namespace {

constexpr int kBudgetShare = 4;  // the least budget is a quarter of the layers

double Cosine(std::span<const float> a, std::span<const float> b) {
  double product = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    product += double{a[i]} * double{b[i]};
    of_a += double{a[i]} * double{a[i]};
    of_b += double{b[i]} * double{b[i]};
  }
  const double norm = std::sqrt(of_a * of_b);
  return norm > 0 ? product / norm : 0;
}

}  // namespace

Result<SelfDrafts> ParseSelfDrafts(std::string_view setting, int layers) {
  SelfDrafts out;
  const auto wrong = [&](const std::string& message) {
    return Error{ErrorCode::kInvalid, message + ", not \"self:" + std::string(setting) + "\"",
                 "draft"};
  };
  const size_t sign = setting.find('=');
  const std::string_view name = setting.substr(0, sign);
  const std::string_view value =
      sign == std::string_view::npos ? std::string_view() : setting.substr(sign + 1);
  const char* const end = value.data() + value.size();
  if (setting.empty() || setting == "del") return out;
  if (setting == "skipdecode") {
    out.kind = SelfDrafts::Kind::kSkipDecode;
    return out;
  }
  if (name == "unified") {
    out.kind = SelfDrafts::Kind::kUnified;
    const auto [behind, error] = std::from_chars(value.data(), end, out.share);
    if (error == std::errc() && behind == end && out.share > 0 && out.share <= 1) return out;
    return wrong("the share of layers that unified skipping keeps is above 0 and at most 1");
  }
  if (name == "exit" || name == "clasp") {
    const bool exit = name == "exit";
    out.kind = exit ? SelfDrafts::Kind::kExit : SelfDrafts::Kind::kClasp;
    const auto [behind, error] = std::from_chars(value.data(), end, out.number);
    const int most = layers == 0 ? 1 << 20 : exit ? layers : layers - 1;
    if (error == std::errc() && behind == end && out.number >= 1 && out.number <= most) return out;
    return wrong(std::string("the number of layers ") +
                 (exit ? "before the exit" : "that CLaSp leaves out") + " is from 1 on" +
                 (layers == 0 ? std::string() : ", to " + std::to_string(most)));
  }
  return wrong(
      "there are self:unified=SHARE, self:exit=LAYERS, self:skipdecode, self:del and "
      "self:clasp=SKIPPED");
}

std::vector<int> FirstLayers(int count) {
  std::vector<int> kept;
  for (int i = 0; i < count; ++i) kept.push_back(i);
  return kept;
}

std::vector<int> EvenLayers(int layers, double share) {
  const int count = std::clamp(static_cast<int>(std::lround(share * layers)), std::min(2, layers),
                               std::max(1, layers));
  std::vector<int> kept;
  for (int i = 0; i < count; ++i) {
    kept.push_back(count == 1 ? 0 : (2 * i * (layers - 1) + count - 1) / (2 * (count - 1)));
  }
  return kept;
}

std::vector<int> BudgetLayers(int layers, int position, int last) {
  const int least = std::clamp(layers / kBudgetShare, std::min(2, layers), std::max(1, layers));
  const double share = last <= 0 ? 1 : std::clamp(static_cast<double>(position) / last, 0.0, 1.0);
  const int count = layers - static_cast<int>(std::lround(share * (layers - least)));
  std::vector<int> kept = {0};
  for (int i = layers - count + 1; i < layers; ++i) kept.push_back(i);
  return kept;
}

ExitChoice ChooseExit(std::span<const ExitCount> exits, int layers, int most_drafts) {
  ExitChoice choice;
  double best = 1.0 / layers;
  for (int drafts = 1; drafts <= most_drafts; ++drafts) {
    for (size_t i = 0; i < exits.size(); ++i) {
      const double right = exits[i].asked > 0 ? exits[i].right / exits[i].asked : 0;
      const double tokens =
          right < 1 ? (1 - std::pow(right, drafts + 1)) / (1 - right) : drafts + 1;
      const double value = tokens / (drafts * exits[i].layers + layers);
      if (value > best * (1 + 1e-12)) {
        best = value;
        choice = {i, drafts};
      }
    }
  }
  return choice;
}

Result<std::vector<int>> ClaspLayers(std::span<const float> whole, int layers, int width,
                                     int left_out, const RunOneLayer& run) {
  const auto size = static_cast<size_t>(width);
  const auto most = static_cast<size_t>(left_out);
  // The states behind the layers so far, by the number of layers left out; those that exist.
  std::vector<std::vector<float>> states = {{whole.begin(), whole.begin() + width}};
  std::vector<std::vector<bool>> skips;  // by layer and number
  std::vector<float> ran;
  for (int layer = 0; layer < layers; ++layer) {
    ran.clear();
    for (const std::vector<float>& state : states)
      ran.insert(ran.end(), state.begin(), state.end());
    if (Status status = run(layer, ran); !status.ok()) return status.error();
    const auto behind = whole.subspan(static_cast<size_t>(layer + 1) * size, size);
    std::vector<std::vector<float>> next;
    std::vector<bool>& skip = skips.emplace_back();
    for (size_t j = 0; j <= std::min(most, static_cast<size_t>(layer) + 1); ++j) {
      const bool can_run = j<states.size(), can_skip = j> 0;
      const std::span<const float> after =
          can_run ? std::span<const float>(ran).subspan(j * size, size) : std::span<const float>();
      skip.push_back(!can_run ||
                     (can_skip && Cosine(states[j - 1], behind) > Cosine(after, behind)));
      next.push_back(skip.back() ? states[j - 1] : std::vector<float>(after.begin(), after.end()));
    }
    states = std::move(next);
  }
  std::vector<int> kept;
  size_t j = std::min(most, static_cast<size_t>(layers));
  for (int layer = layers - 1; layer >= 0; --layer) {
    if (skips[static_cast<size_t>(layer)][j]) {
      --j;
    } else {
      kept.push_back(layer);
    }
  }
  std::ranges::reverse(kept);
  return kept;
}

}  // namespace pawl
