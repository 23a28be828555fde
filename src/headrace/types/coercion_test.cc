#include "headrace/types/coercion.h"

#include <fstream>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/types/type_table.h"

namespace headrace {
namespace {

std::vector<std::string> DocumentedRows() {
  std::ifstream file(HEADRACE_SOURCE_DIR "/docs/types.md");
  std::vector<std::string> rows;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line == "<!-- coercion table -->") inside = true;
    if (line == "<!-- end of coercion table -->") inside = false;
    if (inside && line.starts_with("|")) rows.push_back(line);
  }
  if (rows.size() > 2) rows.erase(rows.begin(), rows.begin() + 2);
  return rows;
}

TEST(CoercionTest, DocumentAndCodeSayTheSame) {
  std::vector<std::string> rows;
  for (const auto& row : CoercionTable()) {
    rows.push_back(fmt::format("| {} | {} | {} | {} |", row.to ? TypeName(*row.to) : "ARRAY<T>", SourceName(row.from),
                               row.coercion == Coercion::kAlways ? "always" : "unless strict", row.how));
  }
  EXPECT_EQ(DocumentedRows(), rows);
}

TEST(CoercionTest, EveryTypeIsReadFromSomethingAndOnceFromEach) {
  std::set<std::pair<std::optional<TypeKind>, ValueSource>> seen;
  std::set<std::optional<TypeKind>> kinds;
  for (const auto& row : CoercionTable()) {
    EXPECT_TRUE(seen.insert({row.to, row.from}).second) << row.how;
    kinds.insert(row.to);
    EXPECT_NE(row.coercion, Coercion::kNever);
    EXPECT_EQ(CoercionOf(row.to, row.from), row.coercion);
  }
  EXPECT_EQ(kinds.size(), TypeTable().size());
  for (const auto& row : TypeTable()) {
    for (auto source : {ValueSource::kInteger, ValueSource::kDecimal, ValueSource::kText, ValueSource::kBool, ValueSource::kObject,
                        ValueSource::kArray}) {
      EXPECT_EQ(CoercionOf(row.kind, source) != Coercion::kNever, seen.count({row.kind, source}) == 1) << row.name;
    }
  }
}

}  // namespace
}  // namespace headrace
