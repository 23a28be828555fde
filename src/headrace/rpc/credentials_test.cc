#include "headrace/rpc/credentials.h"

#include <unistd.h>

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "headrace/rpc/channel.h"

namespace headrace::rpc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const Endpoint kService{.host = "bigquerystorage.googleapis.com", .port = 443};
const Endpoint kEmulator{.host = "localhost", .port = 9060, .plaintext = true, .given_by = "bigquery_storage_endpoint"};
constexpr char kSecret[] = "s3cr3t-k3y-m4t3ri4l";

std::string WriteFile(const std::string& text) {
  static int count = 0;
  std::string path = testing::TempDir() + "/headrace_key_" + std::to_string(::getpid()) + "_" + std::to_string(count++) + ".json";
  EXPECT_TRUE(WriteFileAtomically(LocalFileSystem(), path, text, true).ok());
  return path;
}

TEST(Credentials, KindsOfTheOption) {
  EXPECT_EQ(ParseCredentials("", kService)->kind, CredentialKind::kApplicationDefault);
  EXPECT_EQ(ParseCredentials("adc", kService)->kind, CredentialKind::kApplicationDefault);
  EXPECT_EQ(ParseCredentials("none", kService)->kind, CredentialKind::kNone);
  EXPECT_EQ(ParseCredentials("", kEmulator)->kind, CredentialKind::kNone);
  EXPECT_EQ(ParseCredentials("none", kEmulator)->kind, CredentialKind::kNone);
  EXPECT_EQ(*ParseCredentials("token:MY_TOKEN", kService), (Credentials{.kind = CredentialKind::kAccessToken, .source = "MY_TOKEN"}));
  EXPECT_EQ(*ParseCredentials("/a/key.json", kService), (Credentials{.kind = CredentialKind::kServiceAccountKey, .source = "/a/key.json"}));
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
    const std::string path = WriteFile(text);
    auto pool = ChannelPool::Make({.endpoint = kService, .credentials = {.kind = CredentialKind::kServiceAccountKey, .source = path}},
                                  LocalFileSystem());
    ASSERT_FALSE(pool.ok()) << text;
    EXPECT_THAT(pool.status().ToString(), AllOf(HasSubstr("credentials"), Not(HasSubstr(kSecret)), Not(HasSubstr(path))));
    EXPECT_TRUE(LocalFileSystem()->Remove(path).ok());
  }
}

// A key made here, so that none lies in the tree.
TEST(Credentials, AGoodKeyFileOpensAClient) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_RSA_gen(2048), &EVP_PKEY_free);
  const std::unique_ptr<BIO, decltype(&BIO_free)> output(BIO_new(BIO_s_mem()), &BIO_free);
  ASSERT_EQ(PEM_write_bio_PrivateKey(output.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr), 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(output.get(), &data);
  const nlohmann::json file = {{"type", "service_account"},
                               {"private_key", std::string(data, static_cast<size_t>(size))},
                               {"private_key_id", "1"},
                               {"client_email", "a@b"},
                               {"client_id", "2"}};
  const std::string path = WriteFile(file.dump());
  auto pool = ChannelPool::Make({.endpoint = kService, .credentials = {.kind = CredentialKind::kServiceAccountKey, .source = path}},
                                LocalFileSystem());
  EXPECT_TRUE(pool.ok()) << pool.status();
  EXPECT_TRUE(LocalFileSystem()->Remove(path).ok());
}

TEST(Credentials, OtherKeyFilesAreRefusedByName) {
  const std::string path = WriteFile(R"({"type":"authorized_user","refresh_token":"s3cr3t"})");
  auto key = LoadServiceAccountKey({.kind = CredentialKind::kServiceAccountKey, .source = path}, LocalFileSystem());
  EXPECT_EQ(CodeOf(key.status()), Code::kUnimplemented);
  EXPECT_THAT(key.status().message(), AllOf(HasSubstr("authorized_user"), Not(HasSubstr("s3cr3t"))));
  EXPECT_TRUE(LocalFileSystem()->Remove(path).ok());
}

// Spec 11: a missing file is found at first use, not when the option is checked; the error holds neither path nor cause.
TEST(Credentials, MissingFileIsFoundWhenAClientIsOpened) {
  auto credentials = ParseCredentials("/no/such/key.json", kService);
  ASSERT_TRUE(credentials.ok());
  auto pool = ChannelPool::Make({.endpoint = kService, .credentials = *credentials}, LocalFileSystem());
  EXPECT_EQ(CodeOf(pool.status()), Code::kUnauthenticated);
  EXPECT_THAT(pool.status().ToString(), Not(HasSubstr("/no/such")));
}

TEST(Credentials, TokenIsReadFromItsVariable) {
  ::unsetenv("HEADRACE_TEST_TOKEN");
  const Credentials token{.kind = CredentialKind::kAccessToken, .source = "HEADRACE_TEST_TOKEN"};
  auto missing = ChannelPool::Make({.endpoint = kService, .credentials = token}, LocalFileSystem());
  EXPECT_THAT(missing.status().message(), HasSubstr("HEADRACE_TEST_TOKEN"));
  ::setenv("HEADRACE_TEST_TOKEN", "ya29.abc", 1);
  EXPECT_TRUE(ChannelPool::Make({.endpoint = kService, .credentials = token}, LocalFileSystem()).ok());
  ::unsetenv("HEADRACE_TEST_TOKEN");
}

}  // namespace
}  // namespace headrace::rpc
