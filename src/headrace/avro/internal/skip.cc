#include "headrace/avro/internal/skip.h"

#include <limits>

#include "headrace/avro/internal/varint.h"

namespace headrace::avro {
namespace {

const uint8_t* Advance(const uint8_t* at, const uint8_t* end, int64_t bytes) {
  return bytes < 0 || bytes > end - at ? nullptr : at + bytes;
}

const uint8_t* SkipSized(const uint8_t* at, const uint8_t* end) {
  int64_t size = 0;
  at = ReadLong(at, end, &size);
  return at == nullptr ? nullptr : Advance(at, end, size);
}

const uint8_t* SkipBlocks(const Node& node, const uint8_t* at, const uint8_t* end, int depth) {
  const Node& element = node.element();
  while (true) {
    int64_t count = 0;
    at = ReadLong(at, end, &count);
    if (at == nullptr || count == 0) return at;
    if (count < 0) {  // the block's size in bytes follows
      at = SkipSized(at, end);
      if (at == nullptr) return nullptr;
      continue;
    }
    // A map's entry has its key before the value, which takes a byte at least.
    const bool map = node.kind == Kind::kMap;
    if (!map && element.always_empty) continue;
    if (count > end - at) return nullptr;
    for (int64_t i = 0; i < count; ++i) {
      if (map) at = SkipSized(at, end);
      if (at != nullptr) at = SkipValue(element, at, end, depth - 1);
      if (at == nullptr) return nullptr;
    }
  }
}

}  // namespace

const uint8_t* SkipValue(const Node& node, const uint8_t* at, const uint8_t* end, int depth) {
  if (depth < 0) return nullptr;
  int64_t number = 0;
  switch (node.kind) {
    case Kind::kNull:
      return at;
    case Kind::kBoolean:
      return Advance(at, end, 1);
    case Kind::kInt:
    case Kind::kLong:
    case Kind::kEnum:
      return ReadLong(at, end, &number);
    case Kind::kFloat:
      return Advance(at, end, sizeof(float));
    case Kind::kDouble:
      return Advance(at, end, sizeof(double));
    case Kind::kFixed:
      return Advance(at, end, node.size);
    case Kind::kBytes:
    case Kind::kString:
      return SkipSized(at, end);
    case Kind::kRecord:
      if (node.always_empty) return at;
      for (const RecordField& field : node.fields) {
        at = SkipValue(*field.type, at, end, depth - 1);
        if (at == nullptr) return nullptr;
      }
      return at;
    case Kind::kArray:
    case Kind::kMap:
      return SkipBlocks(node, at, end, depth);
    case Kind::kUnion:
      at = ReadLong(at, end, &number);
      if (at == nullptr || number < 0 || number >= static_cast<int64_t>(node.branches.size())) return nullptr;
      return SkipValue(*node.branches[static_cast<size_t>(number)], at, end, depth - 1);
  }
  return nullptr;
}

}  // namespace headrace::avro
