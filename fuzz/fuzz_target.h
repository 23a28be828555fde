// What each target defines; libfuzzer_main.cc and replay_main.cc call it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headrace::fuzz {

/// Decodes `bytes`. Any answer is right; a crash, a hang or a sanitizer's finding is not.
void FuzzOne(std::string_view bytes);
/// Valid inputs from which mutations start, made by the encoders themselves.
std::vector<std::string> Seeds();

}  // namespace headrace::fuzz
