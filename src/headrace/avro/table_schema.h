// Between a table's schema and Avro's, both ways. Free functions, any thread.
#pragma once

#include <string>

#include "headrace/avro/schema.h"
#include "headrace/base/error.h"
#include "headrace/types/schema.h"

namespace headrace::avro {

/// Who reads the Avro.
enum class Dialect {
  kStorageRead,  // what the Storage Read API sends: record __root__, DATETIME as text, attributes sqlType
  kLoadFile,  // what a load job takes: DATETIME as local-timestamp-micros, no sqlType; INTERVAL, RANGE, TIMESTAMP(12) and names that Avro's
              // grammar cannot hold are refused by column
  kExport     // what an export holds, and our own files: every type, so that reading gives the same table again
};

/// What a session asks for TIMESTAMP(12) (AvroSerializationOptions.picos_timestamp_precision of storage/v1/avro.proto).
enum class PicosPrecision { kMicros, kNanos, kPicos };

struct AvroSchemaOptions {
  Dialect dialect = Dialect::kExport;
  PicosPrecision picos = PicosPrecision::kPicos;
  /// kStorageRead: placeholders and the attribute displayName for names that Avro's grammar cannot hold (enable_display_name_attribute of
  /// the same message); without it such a name is refused, as the service does. kExport always has them.
  bool display_names = false;
};

/// The Avro schema of the table's rows, as JSON text. Every STRUCT is a record named after its column; a name that was taken before gets
/// the path of its parents as namespace.
arrow::Result<std::string> ToAvroSchema(const TableSchema& table, const AvroSchemaOptions& options);

/// The table that holds rows of this schema, of whoever wrote it. What no BigQuery type holds is refused by column: unions of several
/// types, null alone, arrays of arrays, duration, big-decimal, a UUID that is no text, local-timestamp-nanos, records that contain
/// themselves.
arrow::Result<TableSchema> FromAvroSchema(const Schema& schema);

}  // namespace headrace::avro
