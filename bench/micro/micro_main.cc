// headrace_bench_micro [--smoke] [--turned] [--case TEXT]... [--benchmark_...]: decoding, decompressing and filtering without a connection,
// each beside a peer over the same bytes. --smoke: tiny sizes; --turned: the clients of a case in the other order; --case: only cases whose
// name has this in it. The other options are Google Benchmark's. Exit code: 0, or 2 for wrong usage; a client that failed stands in the
// output as such.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <arrow/compute/initialize.h>

#include "bench/micro/cases.h"
#include "headrace/bigquery/process.h"

namespace headrace::bench {
namespace {

struct Options {
  bool good = true;
  bool smoke = false;
  bool turned = false;
  std::vector<std::string> cases{};

  bool Wants(const Case& one) const {
    return cases.empty() ||
           std::any_of(cases.begin(), cases.end(), [&](const auto& text) { return one.name.find(text) != std::string::npos; });
  }
};

Options Parse(const std::vector<std::string>& words) {
  Options options;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--smoke") {
      options.smoke = true;
    } else if (words[i] == "--turned") {
      options.turned = true;
    } else if (words[i] == "--case" && i + 1 < words.size()) {
      options.cases.push_back(words[++i]);
    } else {
      options.good = false;
    }
  }
  return options;
}

void Register(Case one, bool turned) {
  if (turned) std::reverse(one.clients.begin(), one.clients.end());
  for (const Client& client : one.clients) {
    benchmark::RegisterBenchmark((one.name + "/" + client.name).c_str(), [run = client.run](benchmark::State& state) {
      const auto status = run(state);
      if (!status.ok()) state.SkipWithError(status.ToString().c_str());
    });
  }
}

std::vector<Case> AllCases(Prepared* prepared) {
  std::vector<Case> all;
  for (const auto& cases : {DecodingCases(prepared), CodecCases(prepared), FilterCases(prepared)}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

}  // namespace
}  // namespace headrace::bench

int main(int argc, char** argv) {
  using namespace headrace::bench;
  headrace::bigquery::TuneProcess();
  benchmark::Initialize(&argc, argv);  // takes its own options out
  const Options options = Parse({argv + 1, argv + argc});
  Prepared prepared(options.smoke ? Sizes{.responses = 2, .response_bytes = 32 << 10, .batches = 2, .batch_rows = 1'000} : Sizes{});
  bool any = false;
  for (const Case& one : AllCases(&prepared)) {
    if (!options.Wants(one)) continue;
    any = true;
    Register(one, options.turned);
  }
  if (!options.good || !any) {
    std::fputs("usage: headrace_bench_micro [--smoke] [--turned] [--case TEXT]... [--benchmark_...]; the cases are\n", stderr);
    for (const Case& one : AllCases(&prepared)) std::fprintf(stderr, "  %s\n", one.name.c_str());
    return 2;
  }
  if (const auto ready = arrow::compute::Initialize(); !ready.ok()) {
    std::fprintf(stderr, "%s\n", ready.ToString().c_str());
    return 1;
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
