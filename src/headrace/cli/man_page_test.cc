#include "headrace/cli/man_page.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/cli/exit_code.h"
#include "headrace/cli/verb_table.h"

namespace headrace::cli {
namespace {

using ::testing::HasSubstr;

std::string WithDashes(std::string_view text) {
  std::string escaped;
  for (char c : text) escaped += c == '-' ? "\\-" : std::string(1, c);
  return escaped;
}

TEST(ManPage, HasEveryVerbOptionAndExitCode) {
  const std::string page = ManualPage();
  for (const VerbRow& row : Verbs()) {
    EXPECT_THAT(page, HasSubstr(fmt::format("\n\\fBheadrace {}\\fR", row.name)));
    EXPECT_THAT(page, HasSubstr(fmt::format("\n.SS {}\n", row.name)));
  }
  for (const catalog::Option& option : catalog::Options()) {
    const std::string line = fmt::format("\n.TP\n\\fB{}\\fR", WithDashes(catalog::CommandLineName(option.name)));
    EXPECT_EQ(page.find(line) != std::string::npos, !option.hidden) << option.name;
  }
  for (const ExitCodeRow& row : kExitCodes) {
    EXPECT_THAT(page, HasSubstr(fmt::format("\n.TP\n\\fB{}\\fR\n{}\n", static_cast<int>(row.code), row.meaning)));
  }
}

TEST(ManPage, NoTextIsARequest) {
  const std::string page = ManualPage();
  for (size_t start = 0, end = 0; end != std::string::npos; start = end + 1) {
    end = page.find('\n', start);
    const std::string line = page.substr(start, end - start);
    if (!line.starts_with('.') && !line.starts_with('\'')) continue;
    EXPECT_THAT(line, ::testing::ContainsRegex("^\\.(TH|SH|SS|TP|PP|RS|RE|nf|fi|nh)")) << line;
  }
}

}  // namespace
}  // namespace headrace::cli
