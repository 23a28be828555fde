#include "headrace/runtime/report.h"

#include <nlohmann/json.hpp>

namespace headrace {

std::string Report::ToJson() const {
  nlohmann::ordered_json json = {{"job_name", job_name},
                                 {"run_id", run_id},
                                 {"rows_read", rows_read},
                                 {"records_in", records_in},
                                 {"rows_written", rows_written},
                                 {"rows_rejected", rows_rejected},
                                 {"rows_skipped", rows_skipped},
                                 {"bytes_read", bytes_read},
                                 {"bytes_in_memory", bytes_in_memory},
                                 {"bytes_written", bytes_written},
                                 {"seconds", seconds},
                                 {"splits", splits},
                                 {"cuts", cuts},
                                 {"checkpoints", checkpoints},
                                 {"restarts", restarts},
                                 {"resumed", resumed},
                                 {"peak_budget_bytes", peak_budget_bytes},
                                 {"peak_resident_bytes", peak_resident_bytes},
                                 {"counters", counters},
                                 {"facts", facts},
                                 {"warnings", warnings}};
  // Paths need not be UTF-8 as JSON must be.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace headrace
