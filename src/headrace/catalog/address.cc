#include "headrace/catalog/address.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include <fmt/format.h>

namespace headrace::catalog {
namespace {

std::string_view RoleName(AddressRole role) { return role == AddressRole::kDestination ? "destination" : "source"; }

std::string WhatWorks(AddressRole role) {
  switch (role) {
    case AddressRole::kSource:
      return "a source is bq:project.dataset.table";
    case AddressRole::kDestination:
      return "a destination is a directory (./flights/) or a single Parquet file (./flights.parquet)";
    case AddressRole::kDescribed:
      return "a schema is known of bq:project.dataset.table and of a local Parquet or CSV file";
  }
  return "";
}

arrow::Status NotBuilt(AddressRole role, std::string_view text, std::string_view what) {
  return Unsupported(std::string(RoleName(role)), fmt::format("the {} '{}' is {}: {}", RoleName(role), text, what, WhatWorks(role)));
}

/// The part before the first colon if it looks like a scheme: letters, digits, '+', '-', no slash before the colon.
std::optional<std::string_view> SchemeOf(std::string_view text) {
  size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  std::string_view scheme = text.substr(0, colon);
  for (char c : scheme) {
    bool letter_or_digit = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter_or_digit && c != '+' && c != '-') return std::nullopt;
  }
  return scheme;
}

arrow::Status RefuseScheme(AddressRole role, std::string_view text, std::string_view scheme) {
  if (scheme == "bt") return NotBuilt(role, text, "a Bigtable table, which this version does not read or write");
  if (scheme == "gs") return NotBuilt(role, text, "in Cloud Storage, which this version does not read or write");
  if (scheme == "bigquery") return NotBuilt(role, text, "not spelled as this program does (the prefix is 'bq:')");
  return NotBuilt(role, text, fmt::format("of an unknown kind ('{}:'; for a local file of that name put './' before it)", scheme));
}

bool LooksLikeTable(std::string_view text) {
  int dots = 0;
  for (char c : text) {
    if (c == '/') return false;
    dots += c == '.';
  }
  return dots == 2 && text.front() != '.';
}

/// An absolute path without "." and empty parts. ".." stays: behind a symbolic link it is not the part before it that it leads back to.
std::string WithoutDots(std::string_view path) {
  std::string text;
  bool ends_open = false;  // in a slash, or in "." as its last part
  while (!path.empty()) {
    path.remove_prefix(path.front() == '/' ? 1 : 0);
    std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(part.size());
    ends_open = part.empty() || part == ".";
    if (!ends_open) text += fmt::format("/{}", part);
  }
  return ends_open || text.empty() ? text + "/" : text;
}

}  // namespace

arrow::Result<Address> ParseAddress(std::string_view text, AddressRole role) {
  if (text.empty()) return InvalidOption(std::string(RoleName(role)), fmt::format("the {} is empty: {}", RoleName(role), WhatWorks(role)));
  if (text.find('\0') != std::string_view::npos) return NotBuilt(role, text, "no address: it has a zero byte");
  if (text == "-")
    return NotBuilt(role, text,
                    role == AddressRole::kDestination ? "standard output, which this version does not write data to"
                                                      : "standard input, which this version does not read");
  if (auto scheme = SchemeOf(text)) {
    if (*scheme != "bq") return RefuseScheme(role, text, *scheme);
    if (role == AddressRole::kDestination) return NotBuilt(role, text, "a BigQuery table, which this version only reads");
    std::string_view table = text.substr(3);
    if (table.empty()) return InvalidOption("source", "the source 'bq:' names no table: write bq:project.dataset.table");
    return Address{AddressKind::kBigQuery, std::string(text), std::string(table)};
  }
  if (role != AddressRole::kDestination) {
    if (LooksLikeTable(text)) return NotBuilt(role, text, fmt::format("a file's name (for the BigQuery table write bq:{})", text));
    if (role == AddressRole::kSource) return NotBuilt(role, text, "a file or directory, which this version does not read");
  }
  return Address{AddressKind::kLocalPath, std::string(text), std::string(text)};
}

Address Absolute(const Address& address) {
  if (address.kind != AddressKind::kLocalPath) return address;
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(address.target, error);
  if (error) return address;
  std::string text = WithoutDots(path.string());
  return Address{AddressKind::kLocalPath, text, text};
}

}  // namespace headrace::catalog
