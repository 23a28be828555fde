// What the readers of one source share. Any thread.
#pragma once

#include "headrace/bigquery/read/internal/open_streams.h"
#include "headrace/bigquery/read/internal/stream_cutter.h"

namespace headrace::bigquery {

struct SharedByReaders {
  CutPolicy cuts{};
  OpenStreams streams{};
};

}  // namespace headrace::bigquery
