// Attention: of rows of as many sequences (decoding), of rows of one sequence (verifying drafts;
// attention.cu), and of a prompt's tiles (prefill.cu), each over a context.
#include <bit>
#include <memory>

#include "bench/kernel_bench.h"
#include "kernels/cuda/reference/kernels.h"

namespace pawl::PAWL_GPU {
namespace {

int PowerOfTwo(int n) {
  int power = 1;
  while (power < n) power *= 2;
  return power;
}

// Keys and values of sequences. The device's pages repeat those that the host has, and sequences
// share pages where there are more than the pool holds, which is far more than a cache does.
struct Pages {
  Pages(const BenchShape& shape, CacheType type, int context, int sequences, int64_t pool_bytes) {
    const int64_t page_bytes =
        int64_t{shape.kv_heads} * kPageSize * HeadStride(shape.head_dim) * CacheBytes(type);
    const int of_sequence = (context + kPageSize - 1) / kPageSize;
    const int64_t wanted = int64_t{of_sequence} * sequences;
    const auto pages =
        static_cast<int>(std::min(wanted, std::max<int64_t>(pool_bytes / page_bytes, of_sequence)));
    const auto on_host = static_cast<int>(
        std::min<int64_t>(pages, std::max<int64_t>((int64_t{32} << 20) / page_bytes, 1)));
    const DeviceWeight like = type == CacheType::kF32    ? DeviceWeight::kF32
                              : type == CacheType::kBf16 ? DeviceWeight::kBf16
                                                         : DeviceWeight::kFp8;
    host_keys = RandomWeights(like, on_host * page_bytes, 51);
    host_values = RandomWeights(like, on_host * page_bytes, 52);
    keys = Must(DeviceMemory::Make(pages * page_bytes));
    values = Must(DeviceMemory::Make(pages * page_bytes));
    FillRepeated(keys, host_keys.data(), static_cast<int64_t>(host_keys.size()));
    FillRepeated(values, host_values.data(), static_cast<int64_t>(host_values.size()));
    for (int64_t i = 0; i < wanted; ++i) {
      const auto page = static_cast<int32_t>(i % pages);
      table.push_back(page);
      host_table.push_back(page % on_host);
    }
    device_table = std::make_unique<Device<int32_t>>(table);
    cache = {keys.data(), values.data(), type, shape.kv_heads, shape.head_dim};
    host_cache = {host_keys.data(), host_values.data(), type, shape.kv_heads, shape.head_dim};
    pages_of_sequence = of_sequence;
  }
  std::vector<std::byte> host_keys, host_values;
  std::vector<int32_t> table, host_table;
  DeviceMemory keys, values;
  std::unique_ptr<Device<int32_t>> device_table;
  Cache cache, host_cache;
  int pages_of_sequence = 0;
};

struct Given {
  std::unique_ptr<Pages> pages;
  std::vector<float> host_q;
  std::vector<DeviceRow> host_rows;
  std::unique_ptr<Device<float>> q, out, partial;
  std::unique_ptr<Device<uint16_t>> halves;
  std::unique_ptr<Device<DeviceRow>> rows;
  std::unique_ptr<Device<RowRun>> runs;
};

double BytesOf(const BenchShape& shape, CacheType type, double positions, int rows) {
  return 2.0 * positions * shape.kv_heads * HeadStride(shape.head_dim) * CacheBytes(type) +
         8.0 * rows * shape.heads * shape.head_dim;
}

Case AttentionCase(const BenchSizes& sizes, const BenchShape& shape, CacheType type, int rows,
                   int context, bool one_sequence) {
  const int width = shape.heads * shape.head_dim;
  const auto given = std::make_shared<Given>();
  given->pages =
      std::make_unique<Pages>(shape, type, context, one_sequence ? 1 : rows, sizes.pool_bytes);
  given->host_q = RandomFloats(static_cast<size_t>(rows) * static_cast<size_t>(width), 53);
  double seen = 0;
  for (int r = 0; r < rows; ++r) {
    DeviceRow row;
    row.position = one_sequence ? std::max(context - rows + r, 0) : context - 1;
    row.prefix = row.position + 1;
    row.table_begin = one_sequence ? 0 : r * given->pages->pages_of_sequence;
    seen += row.prefix;
    given->host_rows.push_back(row);
  }
  given->q = std::make_unique<Device<float>>(given->host_q);
  given->rows = std::make_unique<Device<DeviceRow>>(given->host_rows);
  given->out =
      std::make_unique<Device<float>>(static_cast<size_t>(rows) * static_cast<size_t>(width));
  const int of_a_call = std::min(rows, kMostSkinnyRows);
  const int most_positions = std::max(PowerOfTwo(context), 256);
  given->partial = std::make_unique<Device<float>>(static_cast<size_t>(
      AttentionWorkspace(of_a_call, shape.heads, shape.head_dim, most_positions) / 4));
  Attention args;
  args.q = given->q->data();
  args.q_stride = args.out_stride = width;
  args.rows = given->rows->data();
  args.heads = shape.heads;
  args.tables = given->pages->device_table->data();
  args.extra = args.tables;  // of no row
  args.cache = given->pages->cache;
  args.scale = 0.2f;
  args.most_positions = most_positions;
  args.partial = given->partial->data();
  args.out = given->out->data();
  Case made;
  made.bytes = BytesOf(shape, type, one_sequence ? context : seen, rows);
  made.flops = 4.0 * seen * shape.heads * shape.head_dim;
  made.bound = 1e-4;
  made.run = [=](int, Stream stream) -> Status {
    Attention attention = args;
    for (int first = 0; first < rows; first += of_a_call) {
      attention.count = std::min(of_a_call, rows - first);
      if (Status status = RunAttention(attention, stream); !status.ok()) return status;
      attention.q += int64_t{of_a_call} * width;
      attention.out += int64_t{of_a_call} * width;
      attention.rows += of_a_call;
    }
    return {};
  };
  made.error = [=, run = made.run]() {
    given->out->Poison();
    Check(run(0, nullptr));
    const std::vector<float> got = given->out->Values();
    Attention host = args;
    host.q = given->host_q.data();
    host.rows = given->host_rows.data();
    host.tables = given->pages->host_table.data();
    host.cache = given->pages->host_cache;
    Deviation deviation;
    deviation.Written(got);
    Bits random(54);
    for (int n = 0; n < 3; ++n) {
      const int r = n == 0 ? rows - 1 : static_cast<int>(random.Below(static_cast<uint32_t>(rows)));
      const int h = static_cast<int>(random.Below(static_cast<uint32_t>(shape.heads)));
      const std::vector<double> expected = reference::AttentionAt(host, r, h);
      const size_t at = static_cast<size_t>(r) * static_cast<size_t>(width) +
                        static_cast<size_t>(h * shape.head_dim);
      for (size_t i = 0; i < expected.size(); ++i) deviation.Add(got[at + i], expected[i]);
    }
    return deviation.Relative();
  };
  return made;
}

// The last `rows` positions of a context.
Case PrefillCase(const BenchSizes& sizes, const BenchShape& shape, CacheType type, int rows,
                 int context) {
  const int width = shape.heads * shape.head_dim, first = std::max(context - rows, 0);
  const auto given = std::make_shared<Given>();
  given->pages = std::make_unique<Pages>(shape, type, first + rows, 1, sizes.pool_bytes);
  const auto q = std::make_shared<std::vector<uint16_t>>();
  for (const float v : RandomFloats(static_cast<size_t>(rows) * static_cast<size_t>(width), 55)) {
    q->push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(v) >> 16));
  }
  const auto device_q = std::make_shared<Device<uint16_t>>(*q);
  std::vector<RowRun> runs;
  double seen = 0;
  for (int r = 0; r < rows; ++r) {
    DeviceRow row;
    row.position = first + r;
    row.prefix = row.position + 1;
    seen += row.prefix;
    given->host_rows.push_back(row);
    if (r % kPrefillTile == 0) runs.push_back({r, std::min(kPrefillTile, rows - r)});
  }
  given->rows = std::make_unique<Device<DeviceRow>>(given->host_rows);
  given->runs = std::make_unique<Device<RowRun>>(runs);
  given->halves =
      std::make_unique<Device<uint16_t>>(static_cast<size_t>(rows) * static_cast<size_t>(width));
  PrefillAttention args;
  args.q = device_q->data();
  args.q_stride = args.out_stride = width;
  args.rows = given->rows->data();
  args.runs = given->runs->data();
  args.run_count = static_cast<int>(runs.size());
  args.heads = shape.heads;
  args.tables = given->pages->device_table->data();
  args.cache = given->pages->cache;
  args.scale = 0.2f;
  args.out = given->halves->data();
  Case made;
  made.bytes = BytesOf(shape, type, first + rows, rows);
  made.flops = 4.0 * seen * shape.heads * shape.head_dim;
  made.bound = type == CacheType::kFp8 ? 4e-2 : 1e-2;
  made.run = [=, keep = device_q](int, Stream stream) { return RunPrefillAttention(args, stream); };
  made.error = [=, run = made.run]() {
    given->halves->Poison();
    Check(run(0, nullptr));
    const std::vector<uint16_t> got = given->halves->Values();
    PrefillAttention host = args;
    host.q = q->data();
    host.rows = given->host_rows.data();
    host.tables = given->pages->host_table.data();
    host.cache = given->pages->host_cache;
    Deviation deviation;
    for (const uint16_t bits : got) deviation.Same(bits != 0xffff);
    Bits random(56);
    for (int n = 0; n < 4; ++n) {
      const int r = n == 0 ? rows - 1 : static_cast<int>(random.Below(static_cast<uint32_t>(rows)));
      const int h = static_cast<int>(random.Below(static_cast<uint32_t>(shape.heads)));
      const std::vector<double> expected = reference::PrefillAttentionAt(host, r, h);
      const size_t at = static_cast<size_t>(r) * static_cast<size_t>(width) +
                        static_cast<size_t>(h * shape.head_dim);
      for (size_t i = 0; i < expected.size(); ++i) {
        deviation.Add(reference::Bf16Value(got[at + i]), expected[i]);
      }
    }
    return deviation.Relative();
  };
  return made;
}

}  // namespace

void BenchAttention(KernelBench& bench) {
  const BenchSizes& sizes = bench.sizes();
  for (const BenchShape& shape : sizes.shapes) {
    for (const CacheType type : {CacheType::kBf16, CacheType::kFp8, CacheType::kF32}) {
      for (const int context : sizes.contexts) {
        const std::string of_context = std::string(shape.name) + ", cache " + TypeName(type) +
                                       ", " + std::to_string(context) + " positions, ";
        for (const int rows : sizes.rows) {
          const std::string of_rows = std::to_string(rows) + " rows";
          bench.Add("attention", of_context + of_rows,
                    [&] { return AttentionCase(sizes, shape, type, rows, context, false); });
          if (rows == 1) continue;
          bench.Add("attention", of_context + of_rows + " of a sequence",
                    [&] { return AttentionCase(sizes, shape, type, rows, context, true); });
        }
        const int rows = sizes.rows.back();
        bench.Add("prefill_attention", of_context + std::to_string(rows) + " rows",
                  [&] { return PrefillCase(sizes, shape, type, rows, context); });
      }
      const std::string of_prompt = std::string(shape.name) + ", cache " + TypeName(type) + ", " +
                                    std::to_string(sizes.prompt);
      bench.Add("prefill_attention", of_prompt + " positions, all of them rows",
                [&] { return PrefillCase(sizes, shape, type, sizes.prompt, sizes.prompt); });
    }
  }
}

}  // namespace pawl::PAWL_GPU
