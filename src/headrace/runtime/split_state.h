// A split as the plans of sources keep it. Free functions, any thread.
//
// Each source has a message of its own, with the fields id, split_descriptor, position, end_position and estimated_bytes: its file format
// is its own. How they carry a split is written once.
#pragma once

#include "headrace/runtime/split.h"

namespace headrace {

template <typename Message>
void WriteSplit(const Split& split, Message* out) {
  out->set_id(split.id);
  out->set_split_descriptor(split.descriptor);
  out->set_position(split.position);
  out->set_end_position(split.end_position);
  out->set_estimated_bytes(split.estimated_bytes);
}

template <typename Message>
Split ReadSplit(const Message& in) {
  return {.id = in.id(),
          .descriptor = in.split_descriptor(),
          .position = in.position(),
          .end_position = in.end_position(),
          .estimated_bytes = in.estimated_bytes()};
}

}  // namespace headrace
