#include "headrace/cli/config_file.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/random.h"
#include "headrace/catalog/option_value.h"
#include "headrace/cli/config_syntax.h"

namespace headrace::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ConfigFile : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, std::string_view content) {
    const std::string path = (directory_ / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  /// The options in effect of `arguments` with --config for a file of this name and content.
  arrow::Result<catalog::OptionValues> Effective(std::vector<std::string> arguments, const std::string& name, std::string_view content) {
    arguments.insert(arguments.end(), {"--config", Write(name, content)});
    ARROW_ASSIGN_OR_RAISE(Arguments parsed, ParseArguments(std::move(arguments)));
    ARROW_RETURN_NOT_OK(ApplyConfig(LocalFileSystem(), &parsed));
    return parsed.options;
  }

  void SetUp() override {
    directory_ = std::filesystem::path(::testing::TempDir()) / ("config-" + SystemRandom()->Hex(8));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_;
};

const std::vector<std::string> kCopy = {"copy", "bq:p.d.t", "out/"};
const std::vector<std::string> kServe = {"serve"};

TEST_F(ConfigFile, EachKindOfValueArrives) {
  struct Case {
    std::vector<std::string> arguments;
    std::string toml;
    std::string json;
    catalog::OptionValues options;
  };
  for (const Case& one : std::vector<Case>{
           {kCopy, "", "{}", {}},
           {kCopy, "# nothing\n", " {\n}\n", {}},
           {kCopy, "format = 'csv'", R"({"format": "csv"})", {{"format", "csv"}}},
           {kCopy, "max-stream-count = 4", R"({"max-stream-count": 4})", {{"max_stream_count", "4"}}},
           {kCopy, "max_stream_count = 4", R"({"max_stream_count": 4})", {{"max_stream_count", "4"}}},
           {kCopy, "memory-limit = '256MiB'", R"({"memory-limit": "256MiB"})", {{"memory_limit", "256MiB"}}},
           {kCopy, "memory-limit = 268_435_456", R"({"memory-limit": 268435456})", {{"memory_limit", "268435456"}}},
           {kCopy, "idle-limit = 60", R"({"idle-limit": 60})", {{"idle_limit", "60"}}},
           {kCopy, "max-rows-per-second = 0.5", R"({"max-rows-per-second": 0.5})", {{"max_rows_per_second", "0.5"}}},
           {kCopy, "max-rows-per-second = 100", R"({"max-rows-per-second": 100})", {{"max_rows_per_second", "100"}}},
           {kCopy, "overwrite = true", R"({"overwrite": true})", {{"overwrite", "true"}}},
           {kCopy, "overwrite = false", R"({"overwrite": false})", {}},
           {kCopy, "work-sharing = false", R"({"work-sharing": false})", {{"work_sharing", "false"}}},
           {kCopy, "selected-fields = ['a', 'b.c']", R"({"selected-fields": ["a", "b.c"]})", {{"selected_fields", "a,b.c"}}},
           {kCopy, "selected-fields = 'a,b.c'", R"({"selected-fields": "a,b.c"})", {{"selected_fields", "a,b.c"}}},
           {kServe, "csv-null-values = ['', 'NA']", R"({"csv-null-values": ["", "NA"]})", {{"csv_null_values", ",NA"}}},
           {kServe,
            "load = ['p.d.t=a,b.csv', 'p.d.u=c']",
            R"({"load": ["p.d.t=a,b.csv", "p.d.u=c"]})",
            {{"load", "p.d.t=a,b.csv\np.d.u=c"}}},
           {kCopy,
            "row-restriction = \"name = 'Ærø' AND\\n x > 1\"",
            R"({"row-restriction": "name = 'Ærø' AND\n x > 1"})",
            {{"row_restriction", "name = 'Ærø' AND\n x > 1"}}},
           {kCopy, "job-name = \"\"\"a\\\n é\"\"\"", R"({"job-name": "aé"})", {{"job_name", "aé"}}},
           {{"resume", "dir"}, "readers = 8", R"({"readers": 8})", {{"readers", "8"}}},
       }) {
    for (const auto& [name, content] : {std::pair{"c.toml", one.toml}, {"c.json", one.json}}) {
      SCOPED_TRACE(content);
      auto options = Effective(one.arguments, name, content);
      ASSERT_TRUE(options.ok()) << options.status();
      EXPECT_EQ(*options, one.options);
    }
  }
}

TEST_F(ConfigFile, TheCommandLineWins) {
  struct Case {
    std::vector<std::string> more;
    std::string toml;
    catalog::OptionValues options;
  };
  for (const Case& one : std::vector<Case>{
           {{"--readers", "2"}, "readers = 8\nwriters = 3", {{"readers", "2"}, {"writers", "3"}}},
           {{"--selected-fields", "x"}, "selected-fields = ['a', 'b']", {{"selected_fields", "x"}}},
           {{"--quiet=false"}, "quiet = true", {}},
           {{"--quiet"}, "quiet = false", {{"quiet", "true"}}},
           {{"--work-sharing", "true"}, "work-sharing = false", {{"work_sharing", "true"}}},
       }) {
    SCOPED_TRACE(one.toml);
    auto arguments = kCopy;
    arguments.insert(arguments.end(), one.more.begin(), one.more.end());
    auto options = Effective(arguments, "c.toml", one.toml);
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(*options, one.options);
  }
}

struct Refusal {
  std::string content;
  std::vector<std::string> says;
};

void ExpectRefused(const arrow::Result<catalog::OptionValues>& options, const Refusal& refusal, const std::string& file) {
  SCOPED_TRACE(refusal.content.substr(0, 200));
  ASSERT_FALSE(options.ok());
  EXPECT_THAT(options.status().message(), HasSubstr(file));
  for (const std::string& text : refusal.says) EXPECT_THAT(options.status().message(), HasSubstr(text));
  ASSERT_NE(GetErrorInfo(options.status()), nullptr);
  EXPECT_THAT(GetErrorInfo(options.status())->reason, ::testing::AnyOf("USAGE", "INVALID_OPTION", "UNSUPPORTED"));
}

TEST_F(ConfigFile, WhatIsRefusedInBothSyntaxes) {
  struct Both {
    std::string toml;
    std::string json;
    std::vector<std::string> says;
  };
  for (const Both& one : std::vector<Both>{
           {"\nreaders = '4'", "{\n\"readers\": \"4\"}", {":2: key \"readers\": the value is a string: give a whole number"}},
           {"\nreaders = true", "{\n\"readers\": true}", {":2: key \"readers\": the value is a boolean"}},
           {"readers = 1.5", "{\"readers\": 1.5}", {":1: key \"readers\": the value is a number with a fraction: give a whole number"}},
           {"format = 1", "{\"format\": 1}", {":1: key \"format\": the value is a whole number: give a string"}},
           {"format = ['csv']", "{\"format\": [\"csv\"]}", {"the value is an array: give a string"}},
           {"overwrite = 1", "{\"overwrite\": 1}", {"give true or false"}},
           {"overwrite = 'true'", "{\"overwrite\": \"true\"}", {"the value is a string: give true or false"}},
           {"selected-fields = [1]", "{\"selected-fields\": [1]}", {"an array of other things than strings: give an array of strings"}},
           {"selected-fields = [['a']]", "{\"selected-fields\": [[\"a\"]]}", {"key \"selected-fields\": the value is an array"}},
           {"selected-fields = []", "{\"selected-fields\": []}", {"it needs a value"}},
           {"selected-fields = ['a,b']", "{\"selected-fields\": [\"a,b\"]}", {"has a comma in it"}},
           {"\n\nrow-restrictoin = 'x'",
            "{\n\n\"row-restrictoin\": \"x\"}",
            {":3: key \"row-restrictoin\"", "did you mean --row-restriction?"}},
           {"port = 1", "{\"port\": 1}", {":1: key \"port\"", "--port does not apply to copy, only to: serve"}},
           {"query = 'x'", "{\"query\": \"x\"}", {":1: key \"query\""}},
           {"fail_point = 'x'", "{\"fail_point\": \"x\"}", {"there is no option --fail-point"}},
           {"config = 'x'", "{\"config\": \"x\"}", {"belongs on the command line"}},
           {"print-config = true", "{\"print-config\": true}", {"belongs on the command line"}},
           {"--readers = 1", "{\"--readers\": 1}", {":1: key \"--readers\"", "without the dashes"}},
           {"max-stream-count = 1\nmax_stream_count = 1",
            "{\"max-stream-count\": 1,\n\"max_stream_count\": 1}",
            {":2: key \"max_stream_count\"", "given already in line 1"}},
           {"format = 'parqet'", "{\"format\": \"parqet\"}", {":1: key \"format\"", "did you mean parquet?"}},
           {"memory-limit = 'lots'", "{\"memory-limit\": \"lots\"}", {":1: key \"memory-limit\"", "give a number of bytes"}},
           {"job-name = ''", "{\"job-name\": \"\"}", {"it needs a value"}},
           {"job-name = \"a\\u0000b\"", "{\"job-name\": \"a\\u0000b\"}", {"NUL"}},
           {"[copy]\nreaders = 1", "{\"copy\": {\"readers\": 1}}", {":1: key \"copy\""}},
           {"readers.most = 1", "{\"readers\": {\"most\": 1}}", {":1: key \"readers\": the value is a"}},
           {"readers = 1\n\"a\\nb\\u001b\" = 1", "{\"readers\": 1,\n\"a\\nb\\u001b\": 1}", {":2: key \"a\\nb\\u001B\""}},
           {"readers = 99999999999999999999", "{\"readers\": 99999999999999999999}", {"c."}},
       }) {
    ExpectRefused(Effective(kCopy, "c.toml", one.toml), {one.toml, one.says}, "c.toml");
    ExpectRefused(Effective(kCopy, "c.json", one.json), {one.json, one.says}, "c.json");
  }
}

TEST_F(ConfigFile, WhatIsRefusedInToml) {
  for (const Refusal& one : std::vector<Refusal>{
           {"readers = 1\nreaders = 1", {"line 2", "'readers'"}},
           {"readers", {"line 1", "this is no TOML"}},
           {"readers = 1\nformat = 'csv", {"line 2", "this is no TOML"}},
           {"snapshot-time = 2024-05-01T10:00:00Z",
            {":1: key \"snapshot-time\": the value is a date or time without quotes: give a string"}},
           {"{\"readers\": 1}", {"line 1", "this is no TOML"}},
           // What toml++ promises the compiler never to meet.
           {"selected-fields = [}", {"line 1", "this is no TOML"}},
           {"readers = é", {"line 1", "this is no TOML"}},
           {"é = 1", {"line 1", "this is no TOML"}},
           {"job-name = \"\"\"a\\é\"\"\"", {"line 1", "this is no TOML"}},
       }) {
    ExpectRefused(Effective(kCopy, "c.toml", one.content), one, "c.toml");
  }
}

TEST_F(ConfigFile, NestingUsesUpNoStack) {
  auto repeated = [](std::string_view text, size_t times) {
    std::string all;
    for (size_t i = 0; i < times; ++i) all += text;
    return all;
  };
  const std::string keys = repeated("a.", 500'000) + "a";
  for (const auto& [name, content] : std::vector<std::pair<std::string, std::string>>{
           {"c.toml", keys + " = 1"},
           {"c.toml", keys + " = 1\n!"},
           {"c.toml", repeated("'a'.", 200'000) + "a = 1"},
           // Strings and comments whose ends a reader could miss.
           {"c.toml", "x = \"\"\"\"a\\\"\"\"\"\"\n" + keys + " = 1"},
           {"c.toml", "x = '''\n.'\n'''' # '''\n" + keys + " = 1"},
           {"c.toml", "x = ['', \"\", '\\', \"\\\"\"] # \"\n" + keys + " = 1"},
           {"c.toml", "[" + keys + "]"},
           {"c.toml", "readers = {" + keys + " = 1}"},
           {"c.toml", "readers = " + repeated("[", 1'000'000)},
           {"c.toml", "readers = " + repeated("{a=", 300'000)},
           {"c.toml", repeated("readers = [{" + repeated("a.", 16) + "a = [\n{", 10'000)},
           {"c.json", "{\"readers\": " + repeated("[", 1'000'000)},
           {"c.json", repeated("{\"readers\":", 80'000)},
       }) {
    ExpectRefused(Effective(kCopy, name, content), {content.substr(0, 40), {}}, name);
  }
}

TEST_F(ConfigFile, DotsInStringsAndCommentsAreNoKeys) {
  const std::string dots(100, '.');
  const std::string text = R"(row-restriction = """@\"@""""" # @
job-name = '@'
checkpoint = "@\\"
selected-fields = ["@\"", '''
@''''']
max-rows-per-second = 0.5)";
  std::string filled;
  for (char c : text) filled += c == '@' ? dots : std::string(1, c);
  auto options = Effective(kCopy, "c.toml", filled);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(*options, (catalog::OptionValues{{"row_restriction", dots + "\"" + dots + "\"\""},
                                             {"job_name", dots},
                                             {"checkpoint", dots + "\\"},
                                             {"selected_fields", dots + "\"," + dots + "''"},
                                             {"max_rows_per_second", "0.5"}}));
}

TEST_F(ConfigFile, WhatIsRefusedInJson) {
  for (const Refusal& one : std::vector<Refusal>{
           {"", {"line 1", "this is no JSON"}},
           {"{\"readers\": 1,\n\"readers\": 1}", {":2: key \"readers\"", "given already in line 1"}},
           {"{\"readers\": 1,\n}", {"line 2, column 1", "this is no JSON"}},
           {"{\"readers\": 1}\n{}", {"line 2", "this is no JSON"}},
           {"{\"readers\": 1 // one\n}", {"line 1", "this is no JSON"}},
           {"[1]", {"no object with options"}},
           {"\"readers\"", {"no object with options"}},
           {"{\"readers\": null}", {":1: key \"readers\": the value is null: give a whole number"}},
           {"{\"selected-fields\": [\"a\", {}]}", {"the value is an object"}},
           {"readers = 1", {"line 1", "this is no JSON"}},
       }) {
    ExpectRefused(Effective(kCopy, "c.json", one.content), one, "c.json");
  }
}

TEST_F(ConfigFile, FilesThatAreNoConfigFiles) {
  for (const char* name : {"c.yaml", "c", "toml", "c.toml.bak", "c.TOML"}) {
    ExpectRefused(Effective(kCopy, name, "readers = 1"), {name, {"TOML or JSON", ".toml or .json"}}, name);
  }
  ExpectRefused(Effective(kCopy, "c.toml", "readers = 1\n# caf\xe9\n"), {"", {"line 2: it is not UTF-8"}}, "c.toml");
  ExpectRefused(Effective(kCopy, "c.json", "{\"job-name\": \"\xff\"}"), {"", {"line 1: it is not UTF-8"}}, "c.json");
  const std::string comment(size_t{1} << 20, '#');
  EXPECT_TRUE(Effective(kCopy, "c.toml", comment).ok()) << "just 1 MiB";
  ExpectRefused(Effective(kCopy, "c.toml", comment + "#"), {"", {"larger than 1 MiB"}}, "c.toml");
  std::filesystem::create_directories(directory_ / "d.toml");
  for (const char* name : {"absent.toml", "d.toml"}) {
    Arguments arguments{.verb = Verb::kCopy, .config = (directory_ / name).string()};
    auto status = ApplyConfig(LocalFileSystem(), &arguments);
    ExpectRefused(status, {name, {name}}, name);
  }
}

TEST_F(ConfigFile, NoSecretIsTakenOrRepeated) {
  for (const auto& [name, content] : std::vector<std::pair<std::string, std::string>>{
           {"c.toml", "credentials = 'ya29.canary'"},
           {"c.toml", "credentials = ya29.canary"},
           {"c.toml", "credentials = 'ya29.canary"},
           {"c.toml", "credentials = {private_key = 'canary'}"},
           {"c.toml", "channels = 'ya29.canary'"},
           {"c.json", "{\"credentials\": \"ya29.canary\"}"},
           {"c.json", "{\"credentials\": {\"private_key\": \"canary\"}}"},
           {"c.json", "{\"credentials\": \"ya29.canary"},
           {"c.json", "{\"credentials\": ya29.canary}"},
       }) {
    auto options = Effective(kCopy, name, content);
    EXPECT_FALSE(options.ok()) << content;
    EXPECT_THAT(options.status().ToString(), AllOf(HasSubstr(name), Not(HasSubstr("canary")), Not(HasSubstr("ya29")))) << content;
  }
  EXPECT_TRUE(Effective(kCopy, "c.toml", "credentials = 'token:SOME_TOKEN'").ok());
}

/// Every option of the verb with its example, but those that are there only once for several verbs stay as they are.
catalog::OptionValues Examples(const VerbRow& row) {
  catalog::OptionValues values;
  for (const catalog::Option* option : OptionsOf(row)) {
    if (option->places != catalog::kCommandLine) values[std::string(option->name)] = option->example;
  }
  return values;
}

TEST_F(ConfigFile, WhatIsPrintedReadsBackTheSame) {
  for (const VerbRow& row : Verbs()) {
    if (row.bit == 0) continue;
    SCOPED_TRACE(row.name);
    std::vector<std::string> arguments = {std::string(row.name)};
    for (size_t i = 0; i < row.required; ++i) arguments.push_back("x");
    auto none = ConfigText(row, {});
    ASSERT_TRUE(none.ok()) << none.status();
    EXPECT_EQ(*Effective(arguments, "none.toml", *none), catalog::OptionValues{}) << *none;

    // With its examples in force, and again as the examples in the comments.
    auto all = ConfigText(row, Examples(row));
    ASSERT_TRUE(all.ok()) << all.status();
    auto back = Effective(arguments, "all.toml", *all);
    ASSERT_TRUE(back.ok()) << back.status() << *all;
    EXPECT_EQ(*back, Examples(row));
    std::string uncommented;
    for (size_t start = 0, end = 0; end != std::string::npos; start = end + 1) {
      end = none->find('\n', start);
      std::string line = none->substr(start, end - start);
      if (line.starts_with("# ") && line.find(" = ") != std::string::npos && line.find(' ', 2) == line.find(" = ")) line.erase(0, 2);
      uncommented += line + "\n";
    }
    EXPECT_EQ(*Effective(arguments, "examples.toml", uncommented), Examples(row));
  }
}

TEST_F(ConfigFile, UnusualValuesReadBackTheSame) {
  for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{
           {"row_restriction", "a = \"b\\c\"\n\tAND x = 'y' # \x01\x7f"},
           {"job_name", "Ærø 日本 '''"},
           {"selected_fields", "a,,b,"},
           {"selected_fields", ","},
           {"max_rows_per_second", "1e5"},
           {"max_rows_per_second", "-0"},
           {"memory_limit", "007"},
           {"memory_limit", "1.5GiB"},
           {"idle_limit", "0"},
           {"schema", "[{\"name\": \"a\"}]"},
           {"work_sharing", "true"},
       }) {
    auto printed = ConfigText(RowOf(Verb::kCopy), {{name, text}});
    ASSERT_TRUE(printed.ok()) << printed.status();
    auto back = Effective(kCopy, "c.toml", *printed);
    ASSERT_TRUE(back.ok()) << back.status() << *printed;
    EXPECT_EQ(*back, (catalog::OptionValues{{name, text}}));
  }
  auto each = ConfigText(RowOf(Verb::kServe), {{"load", "p.d.t=a,\"b\".csv\np.d.u=c"}});
  EXPECT_EQ((*Effective(kServe, "c.toml", *each))["load"], "p.d.t=a,\"b\".csv\np.d.u=c");
  auto latin = ConfigText(RowOf(Verb::kCopy), {{"checkpoint", "caf\xe9"}});
  EXPECT_THAT(latin.status().message(), HasSubstr("--checkpoint has a value that is not UTF-8"));
}

TEST_F(ConfigFile, DefaultsAreCommentsWithTheirHelp) {
  auto text = ConfigText(RowOf(Verb::kCopy), {{"readers", "3"}});
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("\n# threads that read; streams are cut for more (default: 0 (automatic))\nreaders = 3\n"));
  EXPECT_THAT(*text, HasSubstr("\n# threads that write, each its own file (default: 0 (automatic))\n# writers = 2\n"));
  EXPECT_THAT(*text, AllOf(Not(HasSubstr("config =")), Not(HasSubstr("fail-point")), Not(HasSubstr("grpc-port"))));
}

}  // namespace
}  // namespace headrace::cli
