// Manifests of directory results.
#include "headrace/files/manifest.h"

#include "fuzz/fuzz_target.h"

namespace headrace::fuzz {

void FuzzOne(std::string_view bytes) {
  auto manifest = ManifestFromJson(bytes, "fuzzed");
  if (!manifest.ok()) return;
  auto again = ManifestToJson(*manifest);
  if (again.ok() && !ManifestFromJson(*again, "again").ok()) __builtin_trap();
}

std::vector<std::string> Seeds() {
  Manifest manifest{.format = "parquet",
                    .job_name = "job",
                    .run_id = "0123abcd",
                    .files = {{.name = "part-0123abcd-00000-0001.parquet", .rows = 7, .bytes = 100, .sha256 = std::string(64, 'a')}},
                    .total_rows = 7,
                    .total_bytes = 100,
                    .schema = arrow::schema({arrow::field("n", arrow::int64()), arrow::field("s", arrow::utf8())}),
                    .facts = {{"session", "s"}}};
  return {"{}", ManifestToJson(manifest).ValueOr("")};
}

}  // namespace headrace::fuzz
