// What a source reads, as its plan keeps it: a plan that is restored goes on reading that, so a source that was given something else is
// refused instead of being passed over. Free functions, any thread.
//
// Each source has a message of its own, with repeated `reads` of name and value.
#pragma once

#include <map>
#include <string>

#include "headrace/base/error.h"

namespace headrace {

/// Values by the name of their option; what has its default is left out. How it is reached, and with how many readers, is no part of it.
/// No secrets.
using SourceDescription = std::map<std::string, std::string>;

/// FAILED_PRECONDITION with the reason SOURCE_CHANGED, naming the first option that differs and both values. An empty `kept` is of an
/// earlier release, which kept none: it fits every source.
arrow::Status CheckSameSource(const SourceDescription& kept, const SourceDescription& given);

template <typename Message>
void WriteDescription(const SourceDescription& description, Message* out) {
  for (const auto& [name, value] : description) {
    auto* one = out->add_reads();
    one->set_name(name);
    one->set_value(value);
  }
}

template <typename Message>
SourceDescription ReadDescription(const Message& in) {
  SourceDescription description;
  for (const auto& one : in.reads()) description[one.name()] = one.value();
  return description;
}

}  // namespace headrace
