#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>

#include "headrace/avro/internal/folded_name.h"
#include "headrace/avro/internal/program.h"
#include "headrace/types/type_table.h"

namespace headrace::avro {
namespace {

constexpr int64_t kPerSecond[] = {1, 1'000, 1'000'000, 1'000'000'000};  // by arrow::TimeUnit
constexpr int64_t kEnoughBytes = int64_t{1} << 31;

std::string Describe(const Node& node) {
  std::string text(KindName(node.kind));
  if (!node.full_name.empty()) text += " " + node.full_name;
  if (node.logical == Logical::kDecimal) return text + fmt::format(" decimal({}, {})", node.precision, node.scale);
  if (node.logical != Logical::kNone) text += fmt::format(" ({})", LogicalName(node.logical));
  return text;
}

arrow::Status Refuse(const std::string& path, std::string_view why) {
  ErrorInfo info{.code = Code::kUnimplemented, .resource = "Avro", .reason = "UNSUPPORTED", .column = path};
  return MakeError(std::move(info), fmt::format("column {}: {}", path, why));
}

arrow::Status WrongColumn(const std::string& path, std::string_view reason, std::string_view why) {
  ErrorInfo info{.code = Code::kInvalidArgument, .reason = std::string(reason), .column = path};
  return MakeError(std::move(info), fmt::format("column {}: {}", path, why));
}

bool IsMarked(const arrow::Field& field, std::string_view extension) {
  if (field.metadata() == nullptr) return false;
  auto name = field.metadata()->Get(std::string(kExtensionNameKey));
  return name.ok() && *name == extension;
}

class Compiler {
 public:
  arrow::Result<Program> Compile(const Schema& writer, const arrow::Schema& target) {
    const Node& root = writer.root();
    if (root.kind != Kind::kRecord) {
      return MakeError({.code = Code::kInvalidArgument, .reason = "INVALID_AVRO_SCHEMA"},
                       fmt::format("Avro schema: rows are records, not {}", Describe(root)));
    }
    open_.push_back(&root);
    ARROW_RETURN_NOT_OK(CompileFields(root, target.fields(), Scope(), &program_.top_columns));
    program_.min_row_bytes = root.min_bytes;
    program_.rows_are_empty = root.always_empty;
    return std::move(program_);
  }

 private:
  // Where a field stands: the columns that grow with it, the list around it, the path of its parent.
  struct Scope {
    int group = -1;  // -1: one value a row
    int parent_list = -1;
    std::string path{};
  };

  // `group` may move when groups are added, so it is looked up when it is used.
  std::vector<int>& GroupOf(const Scope& scope) {
    return scope.group < 0 ? program_.row_columns : program_.groups[static_cast<size_t>(scope.group)];
  }

  arrow::Status CompileFields(const Node& record, const arrow::FieldVector& targets, const Scope& scope, std::vector<int>* columns) {
    ARROW_ASSIGN_OR_RAISE(auto wanted, Match(record, targets, scope.path));
    columns->assign(targets.size(), -1);
    for (size_t i = 0; i < record.fields.size(); ++i) {
      const Node& type = *record.fields[i].type;
      if (!wanted[i]) {
        AddSkip(type);
        continue;
      }
      const arrow::Field& target = *targets[*wanted[i]];
      ARROW_ASSIGN_OR_RAISE((*columns)[*wanted[i]], CompileValue(type, target, Inside(scope, target.name())));
    }
    return arrow::Status::OK();
  }

  static Scope Inside(const Scope& scope, const std::string& name) {
    Scope inside = scope;
    inside.path = scope.path.empty() ? name : scope.path + "." + name;
    return inside;
  }

  // For each field of the writer the target that takes it.
  static arrow::Result<std::vector<std::optional<size_t>>> Match(const Node& record, const arrow::FieldVector& targets,
                                                                 const std::string& path) {
    std::unordered_multimap<std::string, size_t> writers;
    for (size_t i = 0; i < record.fields.size(); ++i) writers.emplace(FoldedName(record.fields[i].column_name()), i);
    std::vector<std::optional<size_t>> wanted(record.fields.size());
    for (size_t t = 0; t < targets.size(); ++t) {
      const std::string& name = targets[t]->name();
      const std::string where = path.empty() ? name : fmt::format("{}.{}", path, name);
      auto [first, last] = writers.equal_range(FoldedName(name));
      if (first == last) return WrongColumn(where, "COLUMN_NOT_FOUND", "the Avro schema has no such field");
      std::optional<size_t> found;
      bool ambiguous = false;
      for (auto it = first; it != last; ++it) {
        if (record.fields[it->second].column_name() == name) {  // the same letters win over other cases
          found = it->second;
          ambiguous = false;
          break;
        }
        ambiguous = found.has_value();
        found = it->second;
      }
      if (ambiguous) return WrongColumn(where, "AMBIGUOUS_COLUMN", "the Avro schema has several fields whose names differ only in case");
      if (wanted[*found]) return WrongColumn(where, "AMBIGUOUS_COLUMN", "asked for twice");
      wanted[*found] = t;
    }
    return wanted;
  }

  void AddSkip(const Node& node) {
    Op op{.code = OpCode::kSkipValue};
    switch (node.kind) {
      case Kind::kNull:
        return;
      case Kind::kInt:
      case Kind::kLong:
      case Kind::kEnum:
        op.code = OpCode::kSkipNumber;
        break;
      case Kind::kBytes:
      case Kind::kString:
        op.code = OpCode::kSkipSized;
        break;
      case Kind::kBoolean:
      case Kind::kFloat:
      case Kind::kDouble:
      case Kind::kFixed:
        op.code = OpCode::kSkipBytes;
        op.factor = node.min_bytes;
        break;
      default:
        if (node.always_empty) return;
        op.node = &node;
    }
    op.end = static_cast<int32_t>(program_.ops.size()) + 1;
    program_.ops.push_back(op);
  }

  int AddColumn(const Scope& scope, const arrow::Field& target, Shape shape, int width, Check check) {
    const int column = static_cast<int>(program_.columns.size());
    program_.columns.push_back(
        {.path = scope.path, .type = target.type(), .shape = shape, .width = width, .parent_list = scope.parent_list, .check = check});
    GroupOf(scope).push_back(column);
    return column;
  }

  // Answers the column.
  arrow::Result<int> CompileValue(const Node& declared, const arrow::Field& target, const Scope& scope) {
    Op op{.nullable = target.nullable()};
    const Optional split = SplitOptional(declared);
    if (split.value == nullptr && (declared.kind != Kind::kNull && declared.branches.size() > 1)) {
      return Refuse(scope.path, "a union of several types is no column; leave it out");
    }
    op.null_branch = static_cast<int8_t>(split.null_branch);
    op.value_branch = static_cast<int8_t>(split.value_branch);
    const size_t at = program_.ops.size();
    if (split.value == nullptr) return CompileAbsent(declared, target, scope, op);
    const Node& node = *split.value;
    switch (target.type()->id()) {
      case arrow::Type::LIST:
        return CompileList(node, target, scope, op);
      case arrow::Type::STRUCT:
        return CompileStruct(node, target, scope, op);
      default:
        break;
    }
    Leaf leaf;
    ARROW_RETURN_NOT_OK(SetLeaf(node, target, scope.path, &op, &leaf));
    op.column = AddColumn(scope, target, leaf.shape, leaf.width, leaf.check);
    op.end = static_cast<int32_t>(at) + 1;
    program_.ops.push_back(op);
    return op.column;
  }

  // A type that holds only null. The columns inside a struct are made, and stay null with it.
  arrow::Result<int> CompileAbsent(const Node& declared, const arrow::Field& target, const Scope& scope, Op op) {
    if (declared.kind == Kind::kUnion) AddSkip(declared);
    const size_t at = program_.ops.size();
    op.code = OpCode::kAbsent;
    op.null_branch = op.value_branch = -1;
    program_.ops.push_back(op);
    Op made = op;
    const auto& type = *target.type();
    if (type.id() == arrow::Type::STRUCT) {
      made.column = AddColumn(scope, target, Shape::kValidity, 0, Check::kNone);
      for (const auto& child : type.fields()) {
        ARROW_RETURN_NOT_OK(CheckDepth(scope.path));
        ++depth_;
        ARROW_ASSIGN_OR_RAISE(int column, CompileAbsent(null_, *child, Inside(scope, child->name()), {.nullable = child->nullable()}));
        --depth_;
        program_.columns[static_cast<size_t>(made.column)].children.push_back(column);
      }
    } else if (type.id() == arrow::Type::LIST) {
      ARROW_RETURN_NOT_OK(CheckDepth(scope.path));
      made.list_of_null = true;
      made.column = AddColumn(scope, target, Shape::kList, 0, Check::kNone);
      Scope elements = ElementsOf(scope, made.column, &made);
      ++depth_;
      ARROW_ASSIGN_OR_RAISE(made.element_column, CompileAbsent(null_, *type.field(0), elements, {.nullable = true}));
      --depth_;
      program_.columns[static_cast<size_t>(made.column)].children.push_back(made.element_column);
    } else {
      ARROW_ASSIGN_OR_RAISE(Leaf leaf, LeafShape(target, scope.path));
      made.column = AddColumn(scope, target, leaf.shape, leaf.width, Check::kNone);
    }
    made.end = static_cast<int32_t>(program_.ops.size());
    program_.ops[at] = made;
    return made.column;
  }

  Scope ElementsOf(const Scope& scope, int list_column, Op* op) {
    op->group = static_cast<int32_t>(program_.groups.size());
    program_.groups.emplace_back();
    Scope elements = scope;
    elements.group = op->group;
    elements.parent_list = list_column;
    return elements;
  }

  arrow::Status CheckDepth(const std::string& path) const {
    if (depth_ < Schema::kMaxDepth) return arrow::Status::OK();
    return Refuse(path, fmt::format("more than {} types inside each other", Schema::kMaxDepth));
  }

  arrow::Result<int> CompileStruct(const Node& node, const arrow::Field& target, const Scope& scope, Op op) {
    const bool interval = IsMarked(target, kIntervalExtension) && IsInterval(*target.type());
    if (node.kind == Kind::kString && interval) return CompileIntervalText(target, scope, op);
    if (node.kind != Kind::kRecord) return NoFit(node, target, scope.path);
    ARROW_RETURN_NOT_OK(Enter(node, scope.path));
    const size_t at = program_.ops.size();
    op.code = OpCode::kStruct;
    op.column = AddColumn(scope, target, Shape::kValidity, 0, interval ? Check::kInterval : Check::kNone);
    program_.ops.push_back(op);
    std::vector<int> children;
    ARROW_RETURN_NOT_OK(CompileFields(node, target.type()->fields(), scope, &children));
    program_.columns[static_cast<size_t>(op.column)].children = std::move(children);
    program_.ops[at].end = static_cast<int32_t>(program_.ops.size());
    Leave();
    return op.column;
  }

  static bool IsInterval(const arrow::DataType& type) {
    return type.num_fields() == 3 && type.field(0)->type()->id() == arrow::Type::INT32 &&
           type.field(1)->type()->id() == arrow::Type::INT32 && type.field(2)->type()->id() == arrow::Type::INT64;
  }

  // An INTERVAL as text fills the three columns of its struct at once.
  arrow::Result<int> CompileIntervalText(const arrow::Field& target, const Scope& scope, Op op) {
    const size_t at = program_.ops.size();
    op.code = OpCode::kIntervalOfText;
    op.column = AddColumn(scope, target, Shape::kValidity, 0, Check::kNone);
    program_.ops.push_back(op);
    for (const auto& child : target.type()->fields()) {
      ARROW_ASSIGN_OR_RAISE(int column, CompileAbsent(null_, *child, Inside(scope, child->name()), {.nullable = child->nullable()}));
      program_.columns[static_cast<size_t>(op.column)].children.push_back(column);
    }
    program_.ops[at].end = static_cast<int32_t>(program_.ops.size());
    return op.column;
  }

  arrow::Result<int> CompileList(const Node& node, const arrow::Field& target, const Scope& scope, Op op) {
    if (node.kind != Kind::kArray && node.kind != Kind::kMap) return NoFit(node, target, scope.path);
    ARROW_RETURN_NOT_OK(Enter(node, scope.path));
    const size_t at = program_.ops.size();
    op.code = OpCode::kList;
    op.list_of_null = true;
    op.column = AddColumn(scope, target, Shape::kList, 0, Check::kNone);
    const bool map = node.kind == Kind::kMap;
    op.min_bytes = std::min(kEnoughBytes, map ? node.element().min_bytes + 1 : node.element().min_bytes);
    op.empty_elements = !map && node.element().always_empty;
    const Scope elements = ElementsOf(scope, op.column, &op);
    program_.ops.push_back(op);
    const arrow::Field& item = *target.type()->field(0);
    ARROW_ASSIGN_OR_RAISE(int element, map ? CompileEntry(node, item, elements) : CompileValue(node.element(), item, elements));
    program_.ops[at].element_column = element;
    program_.columns[static_cast<size_t>(op.column)].children = {element};
    program_.ops[at].end = static_cast<int32_t>(program_.ops.size());
    Leave();
    return op.column;
  }

  // A map is an array of records {key, value}.
  arrow::Result<int> CompileEntry(const Node& map, const arrow::Field& target, const Scope& scope) {
    auto entry = std::make_unique<Node>();
    entry->kind = Kind::kRecord;
    entry->full_name = "entry";
    entry->fields = {{.name = "key", .type = &key_}, {.name = "value", .type = &map.element()}};
    entries_.push_back(std::move(entry));
    return CompileValue(*entries_.back(), target, scope);
  }

  // Keeps the way down from the root: a record that is met again contains itself.
  arrow::Status Enter(const Node& node, const std::string& path) {
    ARROW_RETURN_NOT_OK(CheckDepth(path));
    for (const Node* open : open_) {
      if (open == &node && node.kind == Kind::kRecord) {
        return Refuse(path, fmt::format("the record {} contains itself, which no table can hold; leave the column out", node.full_name));
      }
    }
    open_.push_back(&node);
    ++depth_;
    return arrow::Status::OK();
  }
  void Leave() {
    open_.pop_back();
    --depth_;
  }

  struct Leaf {
    Shape shape = Shape::kFixed;
    int width = 8;
    Check check = Check::kNone;
  };

  static arrow::Status NoFit(const Node& node, const arrow::Field& target, const std::string& path) {
    return Refuse(path, fmt::format("Avro's {} cannot be read as {}", Describe(node), target.type()->ToString()));
  }

  static arrow::Result<Leaf> LeafShape(const arrow::Field& target, const std::string& path) {
    switch (target.type()->id()) {
      case arrow::Type::BOOL:
        return Leaf{.shape = Shape::kBits};
      case arrow::Type::INT32:
      case arrow::Type::DATE32:
        return Leaf{.width = 4};
      case arrow::Type::INT64:
      case arrow::Type::DOUBLE:
      case arrow::Type::TIME64:
      case arrow::Type::TIMESTAMP:
        return Leaf{};
      case arrow::Type::DECIMAL128:
        return Leaf{.width = 16};
      case arrow::Type::DECIMAL256:
        return Leaf{.width = 32};
      case arrow::Type::STRING:
      case arrow::Type::BINARY:
        return Leaf{.shape = Shape::kText};
      default:
        return Refuse(path, fmt::format("Avro is not read into the Arrow type {}", target.type()->ToString()));
    }
  }

  arrow::Status SetLeaf(const Node& node, const arrow::Field& target, const std::string& path, Op* op, Leaf* leaf) {
    ARROW_ASSIGN_OR_RAISE(*leaf, LeafShape(target, path));
    bool fits = false;
    switch (target.type()->id()) {
      case arrow::Type::BOOL:
        op->code = OpCode::kBool;
        fits = node.kind == Kind::kBoolean;
        break;
      case arrow::Type::INT32:
        op->code = OpCode::kInt32;
        fits = node.kind == Kind::kInt;
        break;
      case arrow::Type::INT64:
        op->code = node.kind == Kind::kInt ? OpCode::kInt64OfInt : OpCode::kInt64;
        fits = node.kind == Kind::kInt || node.kind == Kind::kLong;
        break;
      case arrow::Type::DOUBLE:
        op->code = node.kind == Kind::kFloat ? OpCode::kDoubleOfFloat : OpCode::kDouble;
        fits = node.kind == Kind::kFloat || node.kind == Kind::kDouble;
        break;
      case arrow::Type::DATE32:
        leaf->check = Check::kDate;
        op->code = node.kind == Kind::kString ? OpCode::kDateOfText : OpCode::kInt32;
        fits = node.kind == Kind::kString || (node.kind == Kind::kInt && (node.logical == Logical::kDate || node.sql_type == "DATE"));
        break;
      case arrow::Type::TIME64:
        fits = SetTime(node, static_cast<const arrow::Time64Type&>(*target.type()), op);
        leaf->check = Check::kTime;
        break;
      case arrow::Type::TIMESTAMP:
        fits = SetTimestamp(node, static_cast<const arrow::TimestampType&>(*target.type()), op, leaf);
        break;
      case arrow::Type::DECIMAL128:
      case arrow::Type::DECIMAL256:
        if (node.logical != Logical::kDecimal) break;
        return SetDecimal(node, static_cast<const arrow::DecimalType&>(*target.type()), path, leaf->width, op);
      default:
        fits = SetText(node, target, op, leaf);
    }
    return fits ? arrow::Status::OK() : NoFit(node, target, path);
  }

  static bool SetText(const Node& node, const arrow::Field& target, Op* op, Leaf* leaf) {
    const bool utf8 = target.type()->id() == arrow::Type::STRING;
    if (utf8) leaf->check = Check::kUtf8;
    if (IsMarked(target, kTimestampPicosExtension)) return SetPicos(node, op);
    switch (node.kind) {
      case Kind::kString:
        op->code = OpCode::kText;
        return true;
      case Kind::kBytes:
        op->code = OpCode::kText;
        return node.logical == Logical::kNone;
      case Kind::kFixed:
        op->code = OpCode::kTextOfFixed;
        op->factor = node.size;
        return !utf8 && node.logical == Logical::kNone;
      case Kind::kEnum:
        op->code = OpCode::kTextOfEnum;
        op->node = &node;
        return utf8;
      default:
        return false;
    }
  }

  static bool SetPicos(const Node& node, Op* op) {
    op->code = OpCode::kPicosOfLong;
    switch (node.logical) {
      case Logical::kTimestampMillis:
        op->factor = kPerSecond[arrow::TimeUnit::MILLI];
        return true;
      case Logical::kTimestampMicros:
        op->factor = kPerSecond[arrow::TimeUnit::MICRO];
        return true;
      case Logical::kTimestampNanos:
        op->factor = kPerSecond[arrow::TimeUnit::NANO];
        return true;
      default:
        op->code = OpCode::kPicosOfText;
        return node.kind == Kind::kString;
    }
  }

  static bool SetTime(const Node& node, const arrow::Time64Type& type, Op* op) {
    if (type.unit() != arrow::TimeUnit::MICRO) return false;
    op->code = node.kind == Kind::kString ? OpCode::kTimeOfText : OpCode::kInt64;
    if (node.logical == Logical::kTimeMillis) {
      op->code = OpCode::kInt64OfInt;
      op->factor = 1'000;
    }
    return node.kind == Kind::kString || node.logical == Logical::kTimeMillis || node.logical == Logical::kTimeMicros;
  }

  // Of an instant in Avro's unit, `from` of a second, the column's.
  static void SetUnit(int64_t from, int64_t to, Op* op) {
    op->code = from == to ? OpCode::kInt64 : from < to ? OpCode::kInt64Times : OpCode::kInt64Divide;
    op->factor = from < to ? to / from : from / to;
  }

  static bool SetTimestamp(const Node& node, const arrow::TimestampType& type, Op* op, Leaf* leaf) {
    if (type.unit() < arrow::TimeUnit::MICRO) return false;
    if (type.unit() == arrow::TimeUnit::MICRO) leaf->check = Check::kInstant;
    const bool civil = type.timezone().empty();
    const int64_t to = kPerSecond[type.unit()];
    switch (node.logical) {
      case Logical::kTimestampMillis:
        SetUnit(kPerSecond[arrow::TimeUnit::MILLI], to, op);
        return true;
      case Logical::kTimestampMicros:
        SetUnit(kPerSecond[arrow::TimeUnit::MICRO], to, op);
        return true;
      case Logical::kTimestampNanos:
        SetUnit(kPerSecond[arrow::TimeUnit::NANO], to, op);
        return true;
      case Logical::kLocalTimestampMillis:
        SetUnit(kPerSecond[arrow::TimeUnit::MILLI], to, op);
        return civil;
      case Logical::kLocalTimestampMicros:
        SetUnit(kPerSecond[arrow::TimeUnit::MICRO], to, op);
        return civil;
      case Logical::kLocalTimestampNanos:
        SetUnit(kPerSecond[arrow::TimeUnit::NANO], to, op);
        return civil;
      default:
        op->code = civil ? OpCode::kDatetimeOfText : OpCode::kTimestampOfText;
        return node.kind == Kind::kString && type.unit() == arrow::TimeUnit::MICRO;
    }
  }

  arrow::Status SetDecimal(const Node& node, const arrow::DecimalType& type, const std::string& path, int width, Op* op) {
    op->code = node.kind == Kind::kFixed ? OpCode::kDecimalOfFixed : OpCode::kDecimal;
    op->factor = node.size;
    op->width = static_cast<uint8_t>(width);
    const int up = type.scale() - node.scale;
    if (up < 0) {
      return Refuse(path, fmt::format("Avro's decimal has {} digits after the point, the column only {}", node.scale, type.scale()));
    }
    // BIGNUMERIC(76, 38) holds whatever fits 256 bits, 39 digits before the point at the greatest; no other column has so many.
    constexpr int kWhole = 76;
    constexpr int kDigitsOf64Bits = 19;
    if (up > kWhole) return Refuse(path, "the decimal has too many digits after the point");
    const int precision = std::min(type.precision(), node.precision + up);
    DecimalPlan plan{.check_precision = precision < kWhole, .rescale = up > 0};
    if (plan.check_precision) plan.limit = arrow::BasicDecimal256::GetMaxValue(precision);
    for (int i = 0; i < up; ++i) plan.multiplier *= arrow::BasicDecimal256(10);
    plan.small_limit = std::numeric_limits<int64_t>::max();
    if (precision < kDigitsOf64Bits) {
      plan.small_limit = 1;
      for (int i = 0; i < precision; ++i) plan.small_limit *= 10;
      --plan.small_limit;
    }
    op->decimal = static_cast<int32_t>(program_.decimals.size());
    program_.decimals.push_back(plan);
    return arrow::Status::OK();
  }

  Program program_;
  std::vector<const Node*> open_;
  int depth_ = 0;
  Node null_{.kind = Kind::kNull, .always_empty = true};
  Node key_{.kind = Kind::kString, .min_bytes = 1};
  std::vector<std::unique_ptr<Node>> entries_;
};

}  // namespace

arrow::Result<Program> Compile(const Schema& writer, const arrow::Schema& target) { return Compiler().Compile(writer, target); }

}  // namespace headrace::avro
