// Names of the files that a sink makes. Free functions, any thread. docs/formats/manifest.md is their document.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headrace {

/// part-TAG-WWWWW-NNNN.EXT; NNNN is the number of the checkpoint that closes the file, and from the writer's second file of that
/// checkpoint on NNNN_SSSS ('_' sorts behind the '.' of NNNN.EXT, so that whoever reads by name reads in order). Never twice in a job:
/// a later run of it starts with a later checkpoint, and what no checkpoint names is removed before. `extension` begins with a dot.
std::string PartName(std::string_view tag, int writer, uint64_t checkpoint, uint64_t sequence, std::string_view extension);

/// .NAME.tmp
std::string TempPartName(std::string_view part_name);
/// .NAME.TAG.tmp: the temporary name of a single file.
std::string TempSingleName(std::string_view name, std::string_view tag);

/// The order in which a job wrote its files: by writer, checkpoint and running number as numbers, also where they outgrow their digits.
struct PartOrder {
  bool operator()(std::string_view a, std::string_view b) const;
};

/// Whether `name` is a final part name, of any job and format.
bool IsPartName(std::string_view name);
/// Whether `name` is a final part name of the job `tag`.
bool IsPartNameOf(std::string_view name, std::string_view tag);
/// The final name that belongs to a temporary part name of the job `tag`; empty when `name` is none.
std::string_view PartNameOfTemp(std::string_view name, std::string_view tag);

}  // namespace headrace
