#include "headrace/catalog/address.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "headrace/base/file_system.h"
#include "headrace/files/file_format.h"

namespace headrace::catalog {
namespace {

std::string_view RoleName(AddressRole role) { return role == AddressRole::kDestination ? "destination" : "source"; }

std::string WhatWorks(AddressRole role) {
  return role == AddressRole::kSource
             ? "a source is bq:project.dataset.table, a local file, a directory, a pattern ('./2024-*.csv') or - (standard input)"
             : "a destination is a directory (./flights/), a single file (./flights.parquet) or - (standard output)";
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

constexpr std::string_view kPatternSigns = "*?[";

/// A table's name without its prefix, not a file's: a.b.csv and orders.csv.gz are files.
bool LooksLikeTable(std::string_view text) {
  if (FileKindOfName(text) || text.find_first_of(kPatternSigns) != std::string_view::npos) return false;
  int dots = 0;
  for (char c : text) {
    if (c == '/') return false;
    dots += c == '.';
  }
  return dots == 2 && text.front() != '.';
}

/// The directory that the path starts in is no part of the pattern: its name may hold a pattern's signs by accident.
std::string AbsoluteSource(const std::string& path) {
  std::string absolute = AbsolutePath(path);
  std::string start = AbsolutePath(".");
  bool relative_pattern = !path.starts_with('/') && path.find_first_of(kPatternSigns) != std::string::npos;
  if (!relative_pattern || !absolute.starts_with(start)) return absolute;
  std::string literal;
  for (char c : start) literal += kPatternSigns.find(c) == std::string_view::npos ? std::string(1, c) : fmt::format("[{}]", c);
  return literal + absolute.substr(start.size());
}

}  // namespace

arrow::Result<Address> ParseAddress(std::string_view text, AddressRole role) {
  if (text.empty()) return InvalidOption(std::string(RoleName(role)), fmt::format("the {} is empty: {}", RoleName(role), WhatWorks(role)));
  if (text.find('\0') != std::string_view::npos) return NotBuilt(role, text, "no address: it has a zero byte");
  if (text == "-") return Address{AddressKind::kStandardStream, "-", "-"};
  if (auto scheme = SchemeOf(text)) {
    if (*scheme != "bq") return RefuseScheme(role, text, *scheme);
    if (role == AddressRole::kDestination) return NotBuilt(role, text, "a BigQuery table, which this version only reads");
    std::string_view table = text.substr(3);
    if (table.empty()) return InvalidOption("source", "the source 'bq:' names no table: write bq:project.dataset.table");
    return Address{AddressKind::kBigQuery, std::string(text), std::string(table)};
  }
  if (role == AddressRole::kSource && LooksLikeTable(text)) {
    return NotBuilt(role, text, fmt::format("no file of a known format (for the BigQuery table write bq:{0}, for a file ./{0})", text));
  }
  return Address{AddressKind::kLocalPath, std::string(text), std::string(text)};
}

arrow::Result<Address> ParseSources(const std::vector<std::string>& texts) {
  if (texts.empty()) return ParseAddress("", AddressRole::kSource);
  ARROW_ASSIGN_OR_RAISE(Address sources, ParseAddress(texts.front(), AddressRole::kSource));
  for (size_t i = 1; i < texts.size(); ++i) {
    ARROW_ASSIGN_OR_RAISE(Address one, ParseAddress(texts[i], AddressRole::kSource));
    const Address& odd = sources.kind != AddressKind::kLocalPath ? sources : one;
    if (odd.kind != AddressKind::kLocalPath) {
      return InvalidOption("source", fmt::format("'{}' is one of {} sources: only local files are read as a list", odd.text, texts.size()));
    }
    sources.further.push_back(std::move(one.target));
  }
  return sources;
}

Address Absolute(const Address& address, AddressRole role) {
  if (address.kind != AddressKind::kLocalPath) return address;
  auto absolute = [role](const std::string& path) { return role == AddressRole::kSource ? AbsoluteSource(path) : AbsolutePath(path); };
  Address result{AddressKind::kLocalPath, absolute(address.target), ""};
  result.target = result.text;
  for (const std::string& path : address.further) result.further.push_back(absolute(path));
  return result;
}

}  // namespace headrace::catalog
