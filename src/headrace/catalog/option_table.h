// The one table of options: the command line parses and explains from it, docs/options.md and the persisted configuration are checked
// against it.
//
// Plain constant data; any thread.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "headrace/base/error.h"

namespace headrace::catalog {

enum class OptionKind {
  kText,
  kInteger,
  kBytes,     // 8388608, 8MiB, 8M (both 2^20), 8MB (10^6)
  kDuration,  // 500ms, 60s, 5m, 1h; a bare number is seconds
  kNumber,
  kFlag,
  kList,  // a,b,c; on the command line also given several times
  kTime,  // RFC 3339
  kEach,  // one value each time it is given; joined by line feeds here
  kBool,  // true or false, always given: its default is true
};

/// What an option acts on. An option given where none of its places is in use is an error, never ignored.
enum OptionPlace : unsigned {
  kBigQuerySource = 1,
  kFileSink = 2,
  kJob = 4,
  kServe = 8,
  kSchemaOutput = 16,
  kOutput = 32,
  kFileSource = 64,
  kCommandLine = 128,  // what is given to the program, before anything is made of it
  kMeasurement = 256,  // a source that is read and dropped, to see how fast that is
};

enum OptionVerb : unsigned { kCopy = 1, kResume = 2, kPlan = 4, kSchema = 8, kServeVerb = 16, kBench = 32 };

/// What the text of an option names, where that can be completed from the file system.
enum class PathHint { kNone, kFile, kDirectory };

struct Option {
  std::string_view name;  // row_restriction in the library and in files, --row-restriction on the command line
  OptionKind kind;
  std::string_view default_text;  // as a reader of the manual should see it
  std::string_view help;          // one line for the screen
  unsigned places;                // OptionPlace bits
  unsigned verbs;                 // OptionVerb bits: where the command line takes it; under kResume: what may differ from the first run
  std::string_view example;       // a value that is valid and is not the default
  std::string_view group;         // heading in help and manual
  bool common = false;            // shown by --help; the others by --help-all
  bool hidden = false;            // for our own tests; in no help and no manual
  /// Words that are valid, between spaces: the only valid values, unless a path is one too.
  std::string_view words{};
  PathHint path = PathHint::kNone;

  bool takes_only_words() const { return !words.empty() && path == PathHint::kNone; }
};

/// In the order of the manual.
std::span<const Option> Options();
/// By library name; null when there is none.
const Option* FindOption(std::string_view name);

/// Options as text by library name: what the command line collects, checkpoints keep and MakeSource takes.
using OptionValues = std::map<std::string, std::string>;

/// row_restriction -> --row-restriction, and back (also without the dashes).
std::string CommandLineName(std::string_view name);
std::string LibraryName(std::string_view command_line_name);

/// The placeholder for a value in help: N, SIZE, FILE ...
std::string_view ValueName(const Option& option);
std::string_view VerbName(OptionVerb verb);
/// "a BigQuery source and a job": for error texts and the manual.
std::string PlacesText(unsigned places);
/// "copy, plan": for error texts and the manual.
std::string VerbsText(unsigned verbs);

/// The option whose name is nearest to `name` if it is near enough to be meant (see NearestWord), among `verbs`.
std::optional<std::string> NearestOption(std::string_view name, unsigned verbs);
/// The error for an option that does not exist, or that exists but not for this verb. `name` as the library spells it.
arrow::Status RefuseOption(std::string_view name, OptionVerb verb);

}  // namespace headrace::catalog
