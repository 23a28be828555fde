// A column's name as names are compared: without regard to the case of ASCII letters (types/schema.h, SameColumnName).
#pragma once

#include <string>
#include <string_view>

namespace headrace::avro {

inline std::string FoldedName(std::string_view name) {
  std::string folded(name);
  for (char& c : folded) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return folded;
}

}  // namespace headrace::avro
