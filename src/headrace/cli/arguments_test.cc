#include "headrace/cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/cli/help.h"

namespace headrace::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

catalog::OptionValues OptionsOf(std::vector<std::string> arguments) {
  auto parsed = ParseArguments(std::move(arguments));
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? parsed->options : catalog::OptionValues{};
}

TEST(Arguments, ACopyWithOptionsInAnyPlaceAndForm) {
  auto parsed = ParseArguments({"copy", "--readers", "4", "bq:p.d.t", "--overwrite", "./out/", "--row-restriction=a = 'b=c'"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->verb, Verb::kCopy);
  EXPECT_THAT(parsed->positionals, ElementsAre("bq:p.d.t", "./out/"));
  EXPECT_EQ(parsed->options, (catalog::OptionValues{{"readers", "4"}, {"overwrite", "true"}, {"row_restriction", "a = 'b=c'"}}));
}

TEST(Arguments, ListsMayBeRepeatedAndLoadsKeepTheirCommas) {
  EXPECT_EQ(OptionsOf({"copy", "a", "b", "--selected-fields", "x,y", "--selected-fields", "z"})["selected_fields"], "x,y,z");
  EXPECT_EQ(OptionsOf({"copy", "a.csv", "b", "--csv-null-values", "", "--csv-null-values", "NA"})["csv_null_values"], ",NA");
  EXPECT_EQ(OptionsOf({"serve", "--load", "p.d.t=a,b.csv", "--load", "p.d.u=c"})["load"], "p.d.t=a,b.csv\np.d.u=c");
}

TEST(Arguments, ValuesStayWhole) {
  // Values that look like an option, a list of the parser's own, or a negative number.
  EXPECT_EQ(OptionsOf({"copy", "a", "b", "--row-restriction", "--x"})["row_restriction"], "--x");
  EXPECT_EQ(OptionsOf({"copy", "a", "b", "--row-restriction", "[a,b]"})["row_restriction"], "[a,b]");
  EXPECT_EQ(OptionsOf({"copy", "a", "b", "--row-restriction=[a,b]"})["row_restriction"], "[a,b]");
  EXPECT_EQ(OptionsOf({"copy", "a", "b", "--readers", "-1"})["readers"], "-1");
  auto parsed = ParseArguments({"copy", "bq:p.d.t", "[dir]"});
  ASSERT_TRUE(parsed.ok());
  EXPECT_THAT(parsed->positionals, ElementsAre("bq:p.d.t", "[dir]"));
  EXPECT_THAT(ParseArguments({"copy", "bq:p.d.t", "-"})->positionals, ElementsAre("bq:p.d.t", "-"));
}

TEST(Arguments, FilesOfAShellsPatternAreOneSource) {
  EXPECT_THAT(ParseArguments({"copy", "a.csv", "b.csv", "c.csv", "out/", "--overwrite"})->positionals,
              ElementsAre("a.csv", "b.csv", "c.csv", "out/"));
  EXPECT_EQ(OptionsOf({"copy", "a.csv", "b/", "--csv-header", "false"})["csv_header"], "false");
  EXPECT_THAT(ParseArguments({"copy", "a.csv", "b/", "--csv-header", "no"}).status().message(), HasSubstr("csv_header is 'no'"));
}

TEST(Arguments, DataOnStandardOutputAreSeenBeforeParsing) {
  EXPECT_TRUE(WritesDataToOutput({"copy", "bq:p.d.t", "-", "--nonsense"}));
  EXPECT_TRUE(WritesDataToOutput({"copy", "-", "-"}));
  EXPECT_FALSE(WritesDataToOutput({"copy", "-", "out/"}));
  EXPECT_FALSE(WritesDataToOutput({"schema", "x", "-"}));
  EXPECT_FALSE(WritesDataToOutput({}));
}

TEST(Arguments, FlagsMayHaveAValue) {
  EXPECT_EQ(OptionsOf({"copy", "a", "b", "--quiet", "--quiet", "--overwrite=true"}),
            (catalog::OptionValues{{"quiet", "true"}, {"overwrite", "true"}}));
  auto parsed = ParseArguments({"copy", "a", "b", "--quiet=false"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->options, catalog::OptionValues{}) << "an option that is off is as one that is not given";
  EXPECT_THAT(parsed->flags_off, ElementsAre("quiet"));
  EXPECT_TRUE(AsksForJson({"copy", "--json=true"}));
  EXPECT_FALSE(AsksForJson({"copy", "--json=false"}));
}

TEST(Arguments, HowOptionsAreHadIsNoOptionOfTheWork) {
  auto parsed = ParseArguments({"copy", "--config", "a.toml", "--print-config", "--readers", "2"});
  ASSERT_TRUE(parsed.ok()) << "--print-config needs no addresses: " << parsed.status();
  EXPECT_EQ(parsed->config, "a.toml");
  EXPECT_TRUE(parsed->print_config);
  EXPECT_EQ(parsed->options, (catalog::OptionValues{{"readers", "2"}}));
  EXPECT_FALSE(ParseArguments({"copy", "--config", "a.toml"}).ok());
}

TEST(Arguments, WhatIsRefused) {
  struct Case {
    std::vector<std::string> arguments;
    std::string says;
  };
  for (const Case& one : std::vector<Case>{
           {{}, "a verb is missing"},
           {{"move"}, "'move' is no verb of headrace: there are copy, resume, plan, schema, bench, serve, completion, man, version"},
           {{"cpoy", "a", "b"}, "did you mean copy?"},
           {{"shcema"}, "did you mean schema?"},
           {{"copy", "a", "b", "--format", "parqet"}, "did you mean parquet?"},
           {{"completion"}, "'headrace completion' needs SHELL"},
           {{"completion", "bsah"}, "'bsah' is no SHELL of 'headrace completion': there are bash, zsh, fish, did you mean bash?"},
           {{"man", "copy"}, "has no place for 'copy'"},
           {{"man", "--json"}, "takes no options"},
           {{"copy", "a", "b", "--quiet=no"}, "quiet is 'no': give true or false"},
           {{"copy", "a", "b", "--quiet", "--quiet=false"}, "--quiet is given as true and as false"},
           {{"copy", "a", "b", "--config", "a.toml", "--config", "b.toml"}, "--config is given 2 times"},
           {{"copy", "--print-config", "--readers=many"}, "readers is 'many'"},
           {{"schema", "a", "b", "--print-config"}, "has no place for 'b'"},
           {{"copy"}, "'headrace copy' needs SRC and DST"},
           {{"copy", "bq:p.d.t"}, "'headrace copy' needs DST"},
           {{"resume"}, "needs DIR"},
           {{"schema", "a", "b"}, "has no place for 'b'"},
           {{"serve", "x"}, "has no place for 'x'"},
           {{"copy", "a", "b", "--row-restrictoin", "x"}, "did you mean --row-restriction?"},
           {{"copy", "a", "b", "--row-restrictoin=x"}, "did you mean --row-restriction?"},
           {{"copy", "a", "b", "--load", "x"}, "--load does not apply to copy, only to: serve"},
           {{"resume", "d", "--overwrite"}, "--overwrite is fixed when a job starts"},
           {{"copy", "a", "b", "--query", "x"}, "query"},
           {{"version", "--json"}, "takes no options"},
           {{"copy", "a", "b", "--readers", "1", "--readers", "2"}, "--readers is given 2 times"},
           {{"copy", "a", "b", "--readers=many"}, "readers is 'many': give a whole number"},
           {{"copy", "a", "b", "--memory-limit", "lots"}, "memory_limit is 'lots'"},
           {{"copy", "a", "b", "--job-name="}, "has no value after '='"},
           {{"copy", "a", "b", "--job-name", ""}, "job_name is ''"},
           {{"copy", "a", "b", "-x"}, "there is no option"},
           {{"copy", "a", "b", "--readers"}, "--readers"},
       }) {
    SCOPED_TRACE(::testing::PrintToString(one.arguments));
    auto status = ParseArguments(one.arguments).status();
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.message(), HasSubstr(one.says));
    ASSERT_NE(GetErrorInfo(status), nullptr);
    EXPECT_THAT(GetErrorInfo(status)->reason, ::testing::AnyOf("USAGE", "INVALID_OPTION", "UNSUPPORTED"));
  }
}

TEST(Arguments, EveryOptionOfAVerbIsTakenByItAndByNoOther) {
  for (Verb verb : {Verb::kCopy, Verb::kResume, Verb::kPlan, Verb::kSchema, Verb::kBench, Verb::kServe}) {
    for (const catalog::Option& option : catalog::Options()) {
      if (option.hidden) continue;
      SCOPED_TRACE(std::string(VerbName(verb)) + " " + catalog::CommandLineName(option.name));
      std::vector<std::string> arguments = {std::string(VerbName(verb))};
      for (int i = verb == Verb::kServe ? 0 : verb == Verb::kCopy ? 2 : 1; i > 0; --i) arguments.emplace_back("x");
      arguments.push_back(catalog::CommandLineName(option.name));
      if (option.kind != catalog::OptionKind::kFlag) arguments.emplace_back(option.example);
      auto parsed = ParseArguments(arguments);
      EXPECT_EQ(parsed.ok(), (option.verbs & VerbBit(verb)) != 0) << parsed.status();
      if (parsed.ok() && option.places != catalog::kCommandLine) {
        EXPECT_EQ(parsed->options.at(std::string(option.name)), option.example);
      }
    }
  }
}

TEST(Arguments, HelpInEveryForm) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--help"}, {"-h"}, {"help"}, {"copy", "--help"}, {"copy", "bq:x", "-h"}, {"help", "copy"}}) {
    auto parsed = ParseArguments(arguments);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_TRUE(parsed->help);
  }
  EXPECT_TRUE(ParseArguments({"serve", "--help-all"})->help_all);
  EXPECT_EQ(ParseArguments({"--version"})->verb, Verb::kVersion);
}

struct Size {
  size_t lines = 0;
  size_t columns = 0;
};

Size SizeOf(const std::string& text) {
  Size size;
  size_t start = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    ++size.lines;
    size.columns = std::max(size.columns, end - start);
    start = end + 1;
  }
  return size;
}

TEST(Help, FitsAScreenAndHasAnExample) {
  EXPECT_LE(SizeOf(ProgramHelp()).lines, 40u);
  for (const VerbRow& row : Verbs()) {
    const Verb verb = row.verb;
    SCOPED_TRACE(VerbName(verb));
    std::string text = VerbHelp(verb, false);
    EXPECT_LE(SizeOf(text).lines, 40u) << text;
    EXPECT_LE(SizeOf(text).columns, 100u) << text;
    EXPECT_LE(SizeOf(VerbHelp(verb, true)).columns, 100u) << VerbHelp(verb, true);
    EXPECT_THAT(text, HasSubstr("\n  headrace " + std::string(VerbName(verb))));
    EXPECT_THAT(ProgramHelp(), HasSubstr("\n  " + std::string(VerbName(verb))));
  }
}

TEST(Help, HelpAllNamesEveryOptionAndNoHiddenOne) {
  for (const catalog::Option& option : catalog::Options()) {
    for (Verb verb : {Verb::kCopy, Verb::kResume, Verb::kPlan, Verb::kSchema, Verb::kBench, Verb::kServe}) {
      bool shown = VerbHelp(verb, true).find("  " + catalog::CommandLineName(option.name) + " ") != std::string::npos;
      EXPECT_EQ(shown, (option.verbs & VerbBit(verb)) != 0 && !option.hidden) << option.name << " in " << VerbName(verb);
    }
  }
}

}  // namespace
}  // namespace headrace::cli
