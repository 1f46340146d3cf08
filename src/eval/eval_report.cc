// Nulls stand apart in both forms: a schema with many optional fields gives a good share of right
// fields to a model that writes null everywhere.
#include "src/eval/eval_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/json.h"

namespace pawl::eval {
namespace {

std::string Percent(int64_t part, int64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.1f}", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string Share(const std::optional<double>& share, const char* none, int digits) {
  return share ? fmt::format("{:.{}f}", *share, digits) : none;
}

double PerText(double sum, const EvalRun& run) {
  return run.scores.texts == 0 ? 0 : sum / static_cast<double>(run.scores.texts);
}

double PerSecond(const EvalRun& run) {
  return run.seconds <= 0 ? 0 : static_cast<double>(run.scores.texts) / run.seconds;
}

std::string Row(const std::string& name, const FieldCounts& c, size_t width) {
  return fmt::format("{:<{}}  {:>6}  {:>6}  {:>6}  {:>6}  {:>6}  {:>6}  {:>6}\n", name, width,
                     c.values, Percent(c.right, c.values), Percent(c.exact, c.values),
                     Percent(c.normalised, c.values), Percent(c.numeric, c.values), c.nulls,
                     Percent(c.right_nulls, c.nulls));
}

std::string TableOfOne(const EvalRun& run) {
  size_t width = 10;
  for (const auto& [name, counts] : run.scores.fields) width = std::max(width, name.size());
  std::string out =
      fmt::format("{:<{}}  {:>6}  {:>6}  {:>6}  {:>6}  {:>6}  {:>6}  {:>6}\n", "field", width,
                  "values", "right", "exact", "norm.", "num.", "nulls", "right");
  for (const auto& [name, counts] : run.scores.fields) out += Row(name, counts, width);
  const FieldCounts all = run.scores.all();
  out += Row("all", all, width);
  const EvalScores& s = run.scores;
  out += fmt::format(
      "fields right: {} % of {}; records right: {} % of {}; failed: {}; invented keys: {}\n",
      Percent(all.right + all.right_nulls, all.values + all.nulls), all.values + all.nulls,
      Percent(s.whole, s.texts), s.texts, s.failed, s.invented);
  const auto share = [](const std::optional<double>& one) { return Share(one, "-", 3); };
  out += fmt::format("F1 of values: {} (precision {}, recall {})\n", share(s.values.f1()),
                     share(s.values.precision()), share(s.values.recall()));
  if (s.list_records.expected + s.list_records.written > 0) {
    out += fmt::format("lists: F1 of records {}, of fields {}; empty by mistake: {}\n",
                       share(s.list_records.f1()), share(s.list_fields.f1()), s.empty_lists);
  }
  if (run.misfits > 0) {
    out += fmt::format("right records that do not fit the schema: {}\n", run.misfits);
  }
  out += fmt::format(
      "{:.2f} records a second; a record: {:.1f} tokens, prompt {:.1f}, mask_surprise {:.2f} "
      "nats\n",
      PerSecond(run), PerText(static_cast<double>(run.output_tokens), run),
      PerText(static_cast<double>(run.prompt_tokens), run), PerText(run.mask_surprise, run));
  return out;
}

std::string PairsJson(const PairCounts& pairs) {
  const auto share = [](const std::optional<double>& one) { return Share(one, "null", 6); };
  return fmt::format(
      "{{\"f1\":{},\"precision\":{},\"recall\":{},\"right\":{},\"written\":{},\"expected\":{}}}",
      share(pairs.f1()), share(pairs.precision()), share(pairs.recall()), pairs.right,
      pairs.written, pairs.expected);
}

std::string CountsJson(const FieldCounts& c) {
  return fmt::format(
      "{{\"values\":{},\"right\":{},\"exact\":{},\"normalised\":{},\"numeric\":{},\"nulls\":{},"
      "\"right_nulls\":{}}}",
      c.values, c.right, c.exact, c.normalised, c.numeric, c.nulls, c.right_nulls);
}

std::string RunJson(const EvalRun& run) {
  const EvalScores& s = run.scores;
  std::string fields;
  for (const auto& [name, counts] : s.fields) {
    fields +=
        fmt::format("{}{}:{}", fields.empty() ? "" : ",", json::Quote(name), CountsJson(counts));
  }
  return fmt::format(
      "{{\"setting\":{},\"texts\":{},\"failed\":{},\"records_right\":{},\"invented_keys\":{},"
      "\"empty_lists\":{},\"misfits\":{},\"all\":{},\"fields\":{{{}}},\"values\":{},\"list_"
      "records\":{},"
      "\"list_fields\":{},\"seconds\":{:.3f},\"records_per_second\":{:.3f},"
      "\"tokens_per_record\":{:.3f},\"prompt_tokens_per_record\":{:.3f},"
      "\"mask_surprise_per_record\":{:.4f}}}",
      json::Quote(run.name), s.texts, s.failed, s.whole, s.invented, s.empty_lists, run.misfits,
      CountsJson(s.all()), fields, PairsJson(s.values), PairsJson(s.list_records),
      PairsJson(s.list_fields), run.seconds, PerSecond(run),
      PerText(static_cast<double>(run.output_tokens), run),
      PerText(static_cast<double>(run.prompt_tokens), run), PerText(run.mask_surprise, run));
}

}  // namespace

std::string TableOf(const std::vector<EvalRun>& runs) {
  std::string out;
  for (const EvalRun& run : runs) {
    if (runs.size() > 1) out += (out.empty() ? "" : "\n") + run.name + "\n";
    out += TableOfOne(run);
  }
  for (size_t i = 1; i < runs.size(); ++i) {
    const PairedResult test = PairedTest(runs[0].right_by_text, runs[i].right_by_text);
    out += fmt::format(
        "{}{} against {}: {:+} fields; better in {} texts, worse in {}, same in {}; p = {:.2g}\n",
        i == 1 ? "\n" : "", runs[i].name, runs[0].name, test.difference, test.better_b,
        test.better_a, test.same, test.p);
  }
  return out;
}

std::string JsonOf(const std::vector<EvalRun>& runs) {
  std::string settings, comparisons;
  for (const EvalRun& run : runs) settings += (settings.empty() ? "" : ",") + RunJson(run);
  for (size_t i = 1; i < runs.size(); ++i) {
    const PairedResult test = PairedTest(runs[0].right_by_text, runs[i].right_by_text);
    comparisons += fmt::format(
        "{}{{\"setting\":{},\"against\":{},\"fields\":{},\"better\":{},\"worse\":{},\"same\":{},"
        "\"p\":{:.6g}}}",
        i == 1 ? "" : ",", json::Quote(runs[i].name), json::Quote(runs[0].name), test.difference,
        test.better_b, test.better_a, test.same, test.p);
  }
  return "{\"settings\":[" + settings + "],\"comparisons\":[" + comparisons + "]}\n";
}

}  // namespace pawl::eval
