// The C++ examples of docs/rows.md, word for word (test_docs.py compares), with a main around them.
#include <iostream>
#include <string>

#include "headrace/bigquery/read/source.h"
#include "headrace/runtime/read_rows.h"

// clang-format off
// docs/rows.md 1
struct Order {
  int64_t id;
  double amount;
};

arrow::Result<double> SumOfOrders() {
  ARROW_ASSIGN_OR_RAISE(auto source, headrace::bigquery::Source::Make({.table = "my-project.sales.orders", .selected_fields = {"id", "amount"}}));
  auto mapper = [](const headrace::RowView& row, const headrace::Collector<Order>& out) -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(auto amount, row["amount"].OrNull(&headrace::ValueView::Float64));
    if (!amount) return arrow::Status::OK();  // no record: the row is skipped, and counted
    ARROW_ASSIGN_OR_RAISE(auto id, row["id"].Int64());
    return out.Emit({.id = id, .amount = *amount});
  };
  ARROW_ASSIGN_OR_RAISE(auto orders, headrace::ReadRows<Order>(source, mapper));
  double sum = 0;
  ARROW_RETURN_NOT_OK(orders->ForEach([&](const Order& order) {
    sum += order.amount;
    return arrow::Status::OK();
  }));
  return sum;
}
// docs/rows.md 1 ends

// docs/rows.md 2
/// Prints up to `count` rows and answers where to go on.
arrow::Result<std::string> PrintSome(int count, const std::string& state) {
  ARROW_ASSIGN_OR_RAISE(auto source, headrace::bigquery::Source::Make({.table = "my-project.sales.orders"}));
  auto mapper = [](const headrace::RowView& row, const headrace::Collector<std::string>& out) -> arrow::Status {
    std::string line;
    for (int i = 0; i < row.column_count(); ++i) {
      line += (i == 0 ? "" : " ") + row.field(i).name + "=";
      if (!row[i].is_null()) ARROW_RETURN_NOT_OK(row[i].AppendText(&line));
    }
    return out.Emit(std::move(line));
  };
  ARROW_ASSIGN_OR_RAISE(auto lines, headrace::ReadRows<std::string>(source, mapper, {.state = state}));
  for (int i = 0; i < count; ++i) {
    ARROW_ASSIGN_OR_RAISE(auto line, lines->Next());
    if (!line) break;
    std::cout << *line << "\n";
  }
  return lines->Snapshot();
}
// docs/rows.md 2 ends
// clang-format on

arrow::Status Run() {
  ARROW_ASSIGN_OR_RAISE(double sum, SumOfOrders());
  std::cout << "sum " << std::to_string(sum) << "\n";
  ARROW_ASSIGN_OR_RAISE(auto state, PrintSome(450, ""));
  std::cout << "go on\n";
  return PrintSome(1'000'000, state).status();
}

int main() {
  auto status = Run();
  if (!status.ok()) std::cerr << status.ToString() << "\n";
  return status.ok() ? 0 : 1;
}
