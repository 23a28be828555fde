// Standard input and output as files: descriptors that others opened and that stay open. One thread each.
#pragma once

#include <memory>

#include <arrow/io/interfaces.h>

#include "headrace/base/file_system.h"

namespace headrace {

/// Sync and Close do nothing. A reader that went away is CANCELLED with the reason OUTPUT_CLOSED.
std::unique_ptr<WritableFile> OpenOutputDescriptor(int descriptor);

/// Ends the wait for input, which may be for ever: nobody has to type or write anything. Any thread.
class InputInterrupt {
 public:
  InputInterrupt();
  ~InputInterrupt();
  InputInterrupt(const InputInterrupt&) = delete;
  InputInterrupt& operator=(const InputInterrupt&) = delete;

  /// What waits, and what would wait later, answers CANCELLED.
  void Set();
  /// Readable once it is set; -1 when the system has none left, and then nothing can be interrupted.
  int descriptor() const { return event_; }

 private:
  const int event_;
};

/// Read answers fewer bytes than asked for only at the end. `interrupt` may be null.
std::shared_ptr<arrow::io::InputStream> OpenInputDescriptor(int descriptor, std::shared_ptr<InputInterrupt> interrupt = nullptr);

}  // namespace headrace
