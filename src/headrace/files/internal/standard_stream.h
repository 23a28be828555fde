// Standard input and output as files: descriptors that others opened and that stay open. One thread each.
#pragma once

#include <memory>

#include <arrow/io/interfaces.h>

#include "headrace/base/file_system.h"

namespace headrace {

/// Ends the wait for whoever writes the input or reads the output, which may be for ever: nobody has to. Any thread.
class StreamInterrupt {
 public:
  StreamInterrupt();
  ~StreamInterrupt();
  StreamInterrupt(const StreamInterrupt&) = delete;
  StreamInterrupt& operator=(const StreamInterrupt&) = delete;

  /// What waits, and what would wait later, answers CANCELLED.
  void Set();
  /// Readable once it is set; -1 when the system has none left, and then nothing can be interrupted.
  int descriptor() const { return event_; }

 private:
  const int event_;
};

/// Close reports what a file system tells late (a quota, a disk behind a network), and leaves the descriptor open. A reader that went away
/// is CANCELLED with the reason OUTPUT_CLOSED. `interrupt` may be null.
std::unique_ptr<WritableFile> OpenOutputDescriptor(int descriptor, std::shared_ptr<StreamInterrupt> interrupt = nullptr);

/// Read answers fewer bytes than asked for only at the end. `interrupt` may be null.
std::shared_ptr<arrow::io::InputStream> OpenInputDescriptor(int descriptor, std::shared_ptr<StreamInterrupt> interrupt = nullptr);

}  // namespace headrace
