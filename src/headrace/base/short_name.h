// Names of the service as people read them. Free functions, any thread.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

/// A resource's name for the text of an error or a log: as it is when it is short, else its end, with the ends alone of a long part:
/// ".../streams/CAEaAmpk...OAFIAVgB". The names of read streams have hundreds of characters, which bury what a text says of them. Where a
/// program looks (ErrorInfo::resource, facts of a report) the name stays whole.
std::string ShortName(std::string_view name);

}  // namespace headrace
