// From the options of `headrace serve` to those of the local service.
#pragma once

#include "headrace/catalog/option_table.h"
#include "headrace/local/service.h"

namespace headrace::cli {

/// `values` as ParseArguments gives them. What the service itself checks (rates, sizes) is left to it.
arrow::Result<local::ServiceOptions> MakeServiceOptions(const catalog::OptionValues& values);

}  // namespace headrace::cli
