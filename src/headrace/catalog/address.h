// Where data come from and go to, as a user writes it: bq:project.dataset.table, ./directory/, ./file.parquet.
#pragma once

#include <string>
#include <string_view>

#include "headrace/base/error.h"

namespace headrace::catalog {

enum class AddressKind { kBigQuery, kLocalPath };
/// kDescribed: what `schema` is asked about, a source or a local file.
enum class AddressRole { kSource, kDestination, kDescribed };

struct Address {
  AddressKind kind = AddressKind::kLocalPath;
  std::string text{};    // as it was written
  std::string target{};  // the table's name, or the path

  bool operator==(const Address&) const = default;
};

/// Only what can be read, written or described in this role is accepted; everything else is refused by name, with what works instead.
arrow::Result<Address> ParseAddress(std::string_view text, AddressRole role);

/// A local path in a form that means the same in another working directory, without asking the file system; other addresses as they are. A
/// trailing slash stays, and so does "..".
Address Absolute(const Address& address);

}  // namespace headrace::catalog
