// The graph of a search as a picture. Beginnings of the same length stand in one column. Each
// beginning stands at the height of those that go on with it; the tokens stand on the lines.
#include <algorithm>
#include <charconv>
#include <numeric>
#include <string>
#include <vector>

#include "pawl/sampling.h"
#include "src/base/utf8.h"

namespace pawl {
namespace {

constexpr int kColumn = 90, kLine = 22, kMargin = 20;

std::string XmlText(std::string_view bytes) {
  std::string text;
  for (const char c : EncodeCodepoints(DecodeCodepoints(bytes))) {
    if (c == '&') {
      text += "&amp;";
    } else if (c == '<') {
      text += "&lt;";
    } else if (c == '>') {
      text += "&gt;";
    } else if (c == '\n') {
      text += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      text += ' ';
    } else {
      text += c;
    }
  }
  return text;
}

std::string Fixed(double value) {
  char digits[40];
  const auto end = std::to_chars(static_cast<char*>(digits), digits + sizeof digits, value,
                                 std::chars_format::fixed, 1);
  return {static_cast<char*>(digits), end.ptr};
}

// Places of the nodes that are drawn.
class Layout {
 public:
  Layout(const SearchGraph& graph, size_t most) : graph_(graph) {
    const size_t count = graph.nodes.size();
    drawn.assign(count, false);
    column.assign(count, 0);
    height.assign(count, -1);
    next_.resize(count);
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [&](size_t i) { return graph.nodes[i].log_probability; });
    for (size_t i = 0; i < std::min(most, count); ++i) drawn[order[i]] = true;
    for (const SearchGraph::Edge& edge : graph.edges) {
      const auto from = static_cast<size_t>(edge.from), to = static_cast<size_t>(edge.to);
      if (drawn[from] && drawn[to]) next_[from].push_back(to);
    }
    if (count > 0) Place();
  }

  std::vector<bool> drawn;
  std::vector<int> column;
  std::vector<double> height;
  double lines = 0;
  int columns = 0;

 private:
  // Nodes in an order in which those that they lead to come first.
  void Place() {
    std::vector<std::pair<size_t, size_t>> path = {{0, 0}};
    std::vector<bool> seen(graph_.nodes.size(), false);
    std::vector<size_t> order;
    seen[0] = true;
    while (!path.empty()) {
      auto& [node, at] = path.back();
      if (at < next_[node].size()) {
        const size_t to = next_[node][at++];
        if (!seen[to]) path.emplace_back(to, 0);
        seen[to] = true;
        continue;
      }
      order.push_back(node);
      double sum = 0, count = 0;
      for (const size_t to : next_[node]) {
        if (height[to] < 0) continue;
        sum += height[to];
        ++count;
      }
      height[node] = count > 0 ? sum / count : lines++;
      path.pop_back();
    }
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
      columns = std::max(columns, column[*node]);
      for (const size_t to : next_[*node]) column[to] = std::max(column[to], column[*node] + 1);
    }
  }

  const SearchGraph& graph_;
  std::vector<std::vector<size_t>> next_;
};

}  // namespace

std::string SearchSvg(const SearchGraph& graph, size_t most) {
  const Layout layout(graph, most);
  const auto x = [&](int node) {
    return double{kMargin} + kColumn * layout.column[static_cast<size_t>(node)];
  };
  const auto y = [&](int node) {
    return double{kMargin} + kLine * layout.height[static_cast<size_t>(node)];
  };
  const std::string width = Fixed(2 * kMargin + kColumn * layout.columns);
  const std::string high = Fixed(2 * kMargin + kLine * layout.lines);
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" +
                    high + "\" viewBox=\"0 0 " + width + " " + high +
                    "\" font-family=\"monospace\" font-size=\"10\">\n";
  const auto shown = [&](int node) {
    return layout.drawn[static_cast<size_t>(node)] && layout.height[static_cast<size_t>(node)] >= 0;
  };
  for (const SearchGraph::Edge& edge : graph.edges) {
    if (!shown(edge.from) || !shown(edge.to)) continue;
    svg += "<line x1=\"" + Fixed(x(edge.from)) + "\" y1=\"" + Fixed(y(edge.from)) + "\" x2=\"" +
           Fixed(x(edge.to)) + "\" y2=\"" + Fixed(y(edge.to)) + "\" stroke=\"#999\"/>\n";
    svg += "<text x=\"" + Fixed((x(edge.from) + x(edge.to)) / 2) + "\" y=\"" +
           Fixed((y(edge.from) + y(edge.to)) / 2 - 2) +
           "\" text-anchor=\"middle\" xml:space=\"preserve\">" +
           (edge.text.empty() ? "end" : XmlText(edge.text)) + "</text>\n";
  }
  for (int node = 0; node < static_cast<int>(graph.nodes.size()); ++node) {
    if (!shown(node)) continue;
    const SearchGraph::Node& one = graph.nodes[static_cast<size_t>(node)];
    svg += "<circle cx=\"" + Fixed(x(node)) + "\" cy=\"" + Fixed(y(node)) + "\" r=\"4\" fill=\"" +
           (one.complete ? "#2a7" : "#fff") + "\" stroke=\"#333\"><title>log P " +
           Fixed(one.log_probability) + "</title></circle>\n";
  }
  return svg + "</svg>\n";
}

}  // namespace pawl
