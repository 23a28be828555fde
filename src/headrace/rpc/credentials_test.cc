#include "headrace/rpc/credentials.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "headrace/rpc/channel.h"
#include "headrace/rpc/credential_file.h"
#include "headrace/rpc/secrets_testing.h"

namespace headrace::rpc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const Endpoint kService{.host = "bigquerystorage.googleapis.com", .port = 443};
const Endpoint kEmulator{.host = "localhost", .port = 9060, .plaintext = true, .given_by = "bigquery_storage_endpoint"};
constexpr char kSecret[] = "s3cr3t-k3y-m4t3ri4l";

TEST(Credentials, KindsOfTheOption) {
  EXPECT_EQ(ParseCredentials("", kService)->kind, CredentialKind::kApplicationDefault);
  EXPECT_EQ(ParseCredentials("adc", kService)->kind, CredentialKind::kApplicationDefault);
  EXPECT_EQ(ParseCredentials("none", kService)->kind, CredentialKind::kNone);
  EXPECT_EQ(ParseCredentials("", kEmulator)->kind, CredentialKind::kNone);
  EXPECT_EQ(ParseCredentials("none", kEmulator)->kind, CredentialKind::kNone);
  EXPECT_EQ(*ParseCredentials("token:MY_TOKEN", kService), (Credentials{.kind = CredentialKind::kAccessToken, .source = "MY_TOKEN"}));
  EXPECT_EQ(*ParseCredentials("/a/key.json", kService), (Credentials{.kind = CredentialKind::kFile, .source = "/a/key.json"}));
}

// Spec 11: credentials beside an emulator endpoint.
TEST(Credentials, RefusedBesideAPlaintextEndpoint) {
  for (const char* value : {"adc", "token:T", "/a/key.json"}) {
    auto credentials = ParseCredentials(value, kEmulator);
    ASSERT_FALSE(credentials.ok()) << value;
    EXPECT_THAT(credentials.status().message(),
                AllOf(HasSubstr("credentials"), HasSubstr("bigquery_storage_endpoint"), HasSubstr("localhost:9060")));
  }
}

TEST(Credentials, KindsThatAreNotBuiltAreRefusedByName) {
  for (const char* kind : {"impersonate:a@b.c", "external_account:x", "authorized_user", "api_key:abc", "gcloud"}) {
    auto credentials = ParseCredentials(kind, kService);
    ASSERT_FALSE(credentials.ok()) << kind;
    EXPECT_EQ(CodeOf(credentials.status()), Code::kUnimplemented);
    EXPECT_THAT(credentials.status().message(), HasSubstr(std::string(kind).substr(0, std::string(kind).find(':'))));
  }
  auto blank = ParseCredentials("  ", kService);
  EXPECT_EQ(CodeOf(blank.status()), Code::kInvalidArgument);
}

TEST(Credentials, ErrorsNeverHoldKeyMaterial) {
  const std::string inline_json = std::string("{\"private_key\":\"") + kSecret + "\"}";
  EXPECT_THAT(ParseCredentials(inline_json, kService).status().ToString(), Not(HasSubstr(kSecret)));
  EXPECT_THAT(ParseCredentials(std::string("token:") + kSecret, kService).status().ToString(), Not(HasSubstr(kSecret)));
  const std::string texts[] = {
      std::string("not json ") + kSecret,
      std::string("[\"") + kSecret + "\"]",
      std::string("{\"type\":\"") + kSecret + "\"}",
      std::string("{\"type\":\"service_account\",\"private_key\":\"") + kSecret + "\"}",
      std::string(
          "{\"type\":\"service_account\",\"client_email\":\"a@b\",\"client_id\":\"2\",\"private_key_id\":\"1\",\"private_key\":\"") +
          kSecret + "\"}",
  };
  for (const std::string& text : texts) {
    const std::string path = WriteTestFile(text);
    auto pool =
        ChannelPool::Make({.endpoint = kService, .credentials = {.kind = CredentialKind::kFile, .source = path}}, LocalFileSystem());
    ASSERT_FALSE(pool.ok()) << text;
    EXPECT_THAT(pool.status().ToString(), AllOf(HasSubstr("credentials"), Not(HasSubstr(kSecret)), Not(HasSubstr(path))));
    EXPECT_TRUE(LocalFileSystem()->Remove(path).ok());
  }
}

TEST(Credentials, FilesThatOpenAClient) {
  for (const std::string& text : {KeyFileText(""), KeyFileText("https://oauth2.googleapis.com/token"),
                                  KeyFileText("http://127.0.0.1:1/token"), UserFileText("https://oauth2.googleapis.com/token")}) {
    const std::string path = WriteTestFile(text);
    auto pool =
        ChannelPool::Make({.endpoint = kService, .credentials = {.kind = CredentialKind::kFile, .source = path}}, LocalFileSystem());
    EXPECT_TRUE(pool.ok()) << pool.status();
    EXPECT_TRUE(LocalFileSystem()->Remove(path).ok());
  }
}

TEST(CredentialFile, GooglesOwnTokenServerIsNotAsked) {
  for (const char* uri : {"", "https://oauth2.googleapis.com/token", "https://accounts.google.com/o/oauth2/token"}) {
    EXPECT_EQ(std::get<ServiceAccountKey>(*ParseCredentialFile(KeyFileText(uri))).token_uri, "") << uri;
  }
  EXPECT_EQ(std::get<ServiceAccountKey>(*ParseCredentialFile(KeyFileText("https://sts.example/t"))).token_uri, "https://sts.example/t");
  auto user = nlohmann::json::parse(UserFileText("https://sts.example/t"));
  EXPECT_EQ(std::get<AuthorizedUser>(*ParseCredentialFile(user.dump())).token_uri, "https://sts.example/t");
  user.erase("token_uri");
  EXPECT_EQ(std::get<AuthorizedUser>(*ParseCredentialFile(user.dump())).token_uri, "https://oauth2.googleapis.com/token");
}

TEST(CredentialFile, EachFieldIsChecked) {
  const nlohmann::json key = nlohmann::json::parse(KeyFileText("https://sts.example/t"));
  const nlohmann::json user = nlohmann::json::parse(UserFileText("https://sts.example/t"));
  const struct {
    const nlohmann::json* file;
    const char* field;
    nlohmann::json value;  // null = without the field
    const char* told;
  } cases[] = {
      {&key, "type", nullptr, "\"type\""},
      {&key, "type", 7, "\"type\""},
      {&key, "client_email", nullptr, "\"client_email\""},
      {&key, "client_email", "", "\"client_email\""},
      {&key, "private_key_id", nullptr, "\"private_key_id\""},
      {&key, "private_key", nullptr, "\"private_key\""},
      {&key, "private_key", kSecret, "no RSA key"},
      {&key, "token_uri", 7, "\"token_uri\""},
      {&key, "token_uri", std::string("http://example.com/") + kSecret, "http beyond this machine"},
      {&key, "token_uri", std::string("https://user:") + kSecret + "@example.com/", "a user, a password"},
      {&key, "universe_domain", "example.com", "universe domain"},
      {&user, "client_id", nullptr, "\"client_id\""},
      {&user, "client_secret", nullptr, "\"client_secret\""},
      {&user, "refresh_token", nullptr, "\"refresh_token\""},
      {&user, "quota_project_id", "a\r\nb", "\"quota_project_id\""},
  };
  for (const auto& c : cases) {
    nlohmann::json file = *c.file;
    if (c.value.is_null()) {
      file.erase(c.field);
    } else {
      file[c.field] = c.value;
    }
    const auto parsed = ParseCredentialFile(file.dump());
    ASSERT_FALSE(parsed.ok()) << c.field;
    EXPECT_THAT(parsed.status().ToString(), AllOf(HasSubstr(c.told), Not(HasSubstr(kSecret)), Not(HasSubstr(kTestSecret))));
    for (const std::string& secret : TestSecrets()) EXPECT_THAT(parsed.status().ToString(), Not(HasSubstr(secret)));
  }
  nlohmann::json same = key;
  same["universe_domain"] = "googleapis.com";
  EXPECT_TRUE(ParseCredentialFile(same.dump()).ok());
}

TEST(CredentialFile, OtherKindsAreRefusedByName) {
  for (const char* kind :
       {"external_account", "external_account_authorized_user", "impersonated_service_account", "gdch_service_account"}) {
    const auto file = ParseCredentialFile(nlohmann::json{{"type", kind}, {"refresh_token", kSecret}}.dump());
    EXPECT_EQ(CodeOf(file.status()), Code::kUnimplemented);
    EXPECT_THAT(file.status().message(), AllOf(HasSubstr(kind), Not(HasSubstr(kSecret))));
  }
}

TEST(Credentials, ACaBundleIsReadAndRefusedWhereItActsOnNothing) {
  const Credentials none{.kind = CredentialKind::kNone};
  EXPECT_TRUE(CheckCaBundle("", kEmulator).ok());
  EXPECT_TRUE(CheckCaBundle("ca.pem", kService).ok());
  EXPECT_THAT(CheckCaBundle("ca.pem", kEmulator).message(), AllOf(HasSubstr("ca_bundle"), HasSubstr("localhost:9060")));
  const auto make = [&](const std::string& bundle) {
    return ChannelPool::Make({.endpoint = kService, .credentials = none, .ca_bundle = bundle}, LocalFileSystem()).status();
  };
  EXPECT_TRUE(make(WriteTestFile(TestCertificatePem())).ok());
  EXPECT_THAT(make("/no/such/ca.pem").ToString(), AllOf(HasSubstr("ca_bundle"), HasSubstr("/no/such/ca.pem")));
  EXPECT_THAT(make(WriteTestFile("no certificate")).message(), HasSubstr("holds no certificate"));
}

// Spec 11: a missing file is found at first use, not when the option is checked; the error holds neither path nor cause.
TEST(Credentials, MissingFileIsFoundWhenAClientIsOpened) {
  auto credentials = ParseCredentials("/no/such/key.json", kService);
  ASSERT_TRUE(credentials.ok());
  auto pool = ChannelPool::Make({.endpoint = kService, .credentials = *credentials}, LocalFileSystem());
  EXPECT_EQ(CodeOf(pool.status()), Code::kUnauthenticated);
  EXPECT_THAT(pool.status().ToString(), Not(HasSubstr("/no/such")));
}

/// Sets an environment variable for a scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value)
      : name_(name), had_(std::getenv(name) != nullptr), before_(had_ ? std::getenv(name) : "") {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { had_ ? ::setenv(name_, before_.c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* const name_;
  const bool had_;
  const std::string before_;
};

TEST(Credentials, AdcsFileIsOursWhenItIsOfAKindOfOurs) {
  const Variable no_home("HOME", "/no/such/home");
  const Credentials adc{.kind = CredentialKind::kApplicationDefault};
  const auto make = [&](const std::string& path, const std::string& bundle = "") {
    const Variable named("GOOGLE_APPLICATION_CREDENTIALS", path);
    return ChannelPool::Make({.endpoint = kService, .credentials = adc, .ca_bundle = bundle}, LocalFileSystem());
  };
  const std::string bundle = WriteTestFile(TestCertificatePem());
  auto key = make(WriteTestFile(KeyFileText("")), bundle);
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ((*key)->tokens()->kind(), "the service account's key found by adc");
  auto user = make(WriteTestFile(UserFileText("https://sts.example/t")));
  ASSERT_TRUE(user.ok()) << user.status();
  EXPECT_EQ((*user)->tokens()->kind(), "the authorized user found by adc");
  EXPECT_EQ((*user)->options().quota_project, "users-project");
  // A kind of ours that is broken is an error of ours; every other file is gRPC's to judge.
  auto broken = make(WriteTestFile(R"({"type":"service_account"})"));
  EXPECT_THAT(broken.status().message(), HasSubstr("client_email"));
  for (const std::string& text : {std::string(R"({"type":"external_account"})"), std::string("[]"), std::string("no json")}) {
    EXPECT_EQ(*FindDefaultCredentialFile(WriteTestFile(text), LocalFileSystem()), std::nullopt) << text;
    EXPECT_EQ(GetErrorInfo(make(WriteTestFile(text), bundle).status())->resource, "ca_bundle");
  }
  EXPECT_EQ(*FindDefaultCredentialFile("/no/such/file", LocalFileSystem()), std::nullopt);
  const Variable named("GOOGLE_APPLICATION_CREDENTIALS", "");
  EXPECT_EQ(DefaultCredentialPath(), "/no/such/home/.config/gcloud/application_default_credentials.json");
}

TEST(Credentials, TokenIsReadFromItsVariable) {
  ::unsetenv("HEADRACE_TEST_TOKEN");
  const Credentials token{.kind = CredentialKind::kAccessToken, .source = "HEADRACE_TEST_TOKEN"};
  auto missing = ChannelPool::Make({.endpoint = kService, .credentials = token}, LocalFileSystem());
  EXPECT_THAT(missing.status().message(), HasSubstr("HEADRACE_TEST_TOKEN"));
  for (const char* wrong : {"ya29.abc\n", "ya29 abc", "ya29.\xC3\xA9"}) {
    ::setenv("HEADRACE_TEST_TOKEN", wrong, 1);
    auto refused = ChannelPool::Make({.endpoint = kService, .credentials = token}, LocalFileSystem());
    EXPECT_THAT(refused.status().message(), AllOf(HasSubstr("HEADRACE_TEST_TOKEN"), Not(HasSubstr("ya29"))));
  }
  ::setenv("HEADRACE_TEST_TOKEN", "ya29.abc", 1);
  EXPECT_TRUE(ChannelPool::Make({.endpoint = kService, .credentials = token}, LocalFileSystem()).ok());
  ::unsetenv("HEADRACE_TEST_TOKEN");
}

}  // namespace
}  // namespace headrace::rpc
