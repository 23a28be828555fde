// Where data come from and go to, as a user writes it: bq:project.dataset.table, ./directory/, ./file.parquet, './2024-*.csv', -.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"

namespace headrace::catalog {

/// kStandardStream is "-": standard input or standard output.
enum class AddressKind { kBigQuery, kLocalPath, kStandardStream };
enum class AddressRole { kSource, kDestination };

struct Address {
  AddressKind kind = AddressKind::kLocalPath;
  std::string text{};                  // as it was written
  std::string target{};                // the table's name, the path (a source's may be a pattern), or "-"
  std::vector<std::string> further{};  // of a source: the other paths of a list of files

  bool operator==(const Address&) const = default;
};

/// Only what can be read or written in this role is accepted; everything else is refused by name, with what works instead.
arrow::Result<Address> ParseAddress(std::string_view text, AddressRole role);
/// Several sources are a list of local files, as a shell makes it of a pattern; one is what ParseAddress says.
arrow::Result<Address> ParseSources(const std::vector<std::string>& texts);

/// A local path in a form that means the same in another working directory, without asking the file system; other addresses as they are. A
/// trailing slash stays, and so does "..". With the role of a source, a pattern means the same files whatever the working directory is
/// called.
Address Absolute(const Address& address, AddressRole role);

}  // namespace headrace::catalog
