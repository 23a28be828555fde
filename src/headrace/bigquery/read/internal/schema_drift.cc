#include "headrace/bigquery/read/internal/schema_drift.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace headrace::bigquery {
namespace {

constexpr size_t kMostListed = 50;

bool SameTypes(const arrow::DataType& a, const arrow::DataType& b) {
  if (a.id() != b.id()) return false;
  if (!arrow::is_nested(a.id())) return a.Equals(b, /*check_metadata=*/false);
  if (a.num_fields() != b.num_fields()) return false;
  for (int i = 0; i < a.num_fields(); ++i) {
    if (a.id() == arrow::Type::STRUCT && a.field(i)->name() != b.field(i)->name()) return false;
    if (!SameTypes(*a.field(i)->type(), *b.field(i)->type())) return false;
  }
  return true;
}

class Differences {
 public:
  void CompareFields(const std::string& prefix, const arrow::FieldVector& want, const arrow::FieldVector& have) {
    const size_t before = all_.size();
    for (const auto& field : want) {
      const auto found = Find(have, field->name());
      if (found == have.end()) {
        Add(prefix + field->name(), field->type()->ToString(), "nothing");
      } else {
        CompareTypes(prefix + field->name(), *field->type(), *(*found)->type());
      }
    }
    for (const auto& field : have) {
      if (Find(want, field->name()) == want.end()) Add(prefix + field->name(), "nothing", field->type()->ToString());
    }
    if (all_.size() > before) return;
    for (size_t i = 0; i < want.size(); ++i) {
      if (i >= have.size() || want[i]->name() != have[i]->name())
        return Add(prefix + want[i]->name(), fmt::format("place {}", i),
                   fmt::format("place {}", Find(have, want[i]->name()) - have.begin()));
    }
  }

  const std::vector<std::string>& all() const { return all_; }

 private:
  static arrow::FieldVector::const_iterator Find(const arrow::FieldVector& fields, const std::string& name) {
    return std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return field->name() == name; });
  }

  void CompareTypes(const std::string& path, const arrow::DataType& want, const arrow::DataType& have) {
    if (SameTypes(want, have)) return;
    if (want.id() == have.id() && want.id() == arrow::Type::STRUCT) return CompareFields(path + ".", want.fields(), have.fields());
    if (want.id() == have.id() && want.id() == arrow::Type::LIST) return CompareTypes(path, *want.field(0)->type(), *have.field(0)->type());
    Add(path, want.ToString(), have.ToString());
  }

  void Add(const std::string& column, const std::string& want, const std::string& have) {
    all_.push_back(fmt::format("{}: want {}, have {}", column, want, have));
  }

  std::vector<std::string> all_;
};

}  // namespace

arrow::Status CheckSameColumns(const arrow::Schema& session, const arrow::Schema& response) {
  Differences differences;
  differences.CompareFields("", session.fields(), response.fields());
  std::vector<std::string> all = differences.all();
  if (all.empty()) return arrow::Status::OK();
  ErrorInfo info{.code = Code::kDataLoss,
                 .service = "BigQuery Storage Read",
                 .method = "ReadRows",
                 .reason = "SCHEMA_DRIFT",
                 .column = all.front().substr(0, all.front().find(": want "))};
  const size_t count = all.size();
  if (count > kMostListed) {
    all.resize(kMostListed);
    all.push_back(fmt::format("{} more", count - kMostListed));
  }
  return MakeError(std::move(info), fmt::format("the schema of a response is not the session's: {}", fmt::join(all, "; ")));
}

}  // namespace headrace::bigquery
