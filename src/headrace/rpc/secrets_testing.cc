#include "headrace/rpc/secrets_testing.h"

#include <unistd.h>

#include <atomic>
#include <memory>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "headrace/base/file_system.h"

namespace headrace::rpc {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;

std::string Text(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(size)};
}

std::string DecodeBase64Url(std::string text) {
  for (char& c : text) c = c == '-' ? '+' : c == '_' ? '/' : c;
  const size_t padding = (4 - text.size() % 4) % 4;
  text.append(padding, '=');
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()), reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (size < 0) return "";
  bytes.resize(static_cast<size_t>(size) - padding);
  return bytes;
}

std::string MakeCertificate() {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), &X509_free);
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 86'400);
  X509_set_pubkey(certificate.get(), TestKey());
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate.get(), certificate.get(), nullptr, nullptr, 0);
  for (const auto& [kind, value] :
       {std::pair{NID_basic_constraints, "critical,CA:TRUE"}, {NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost"}}) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value);
    X509_add_ext(certificate.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }
  X509_sign(certificate.get(), TestKey(), EVP_sha256());
  const Bio output(BIO_new(BIO_s_mem()), &BIO_free);
  PEM_write_bio_X509(output.get(), certificate.get());
  return Text(output);
}

}  // namespace

EVP_PKEY* TestKey() {
  static EVP_PKEY* key = EVP_RSA_gen(2048);
  return key;
}

std::string TestKeyPem() {
  const Bio output(BIO_new(BIO_s_mem()), &BIO_free);
  PEM_write_bio_PrivateKey(output.get(), TestKey(), nullptr, nullptr, 0, nullptr, nullptr);
  return Text(output);
}

std::string TestCertificatePem() {
  static const std::string pem = MakeCertificate();
  return pem;
}

std::string KeyFileText(const std::string& token_uri) {
  nlohmann::json file = {{"type", "service_account"},
                         {"project_id", "p"},
                         {"private_key", TestKeyPem()},
                         {"private_key_id", "key-1"},
                         {"client_email", "reader@p.iam.example"},
                         {"client_id", "2"}};
  if (!token_uri.empty()) file["token_uri"] = token_uri;
  return file.dump();
}

std::string UserFileText(const std::string& token_uri) {
  const nlohmann::json file = {{"type", "authorized_user"},          {"client_id", "id.example"},           {"client_secret", kTestSecret},
                               {"refresh_token", kTestRefreshToken}, {"quota_project_id", "users-project"}, {"token_uri", token_uri}};
  return file.dump();
}

std::string WriteTestFile(const std::string& text) {
  static std::atomic<int> count{0};
  std::string path = testing::TempDir() + "/headrace_rpc_" + std::to_string(::getpid()) + "_" + std::to_string(count++);
  EXPECT_TRUE(WriteFileAtomically(LocalFileSystem(), path, text, true).ok());
  return path;
}

std::string VerifiedClaims(const std::string& jwt) {
  const size_t first = jwt.find('.');
  const size_t second = jwt.find('.', first + 1);
  if (first == std::string::npos || second == std::string::npos) return "";
  const std::string header = DecodeBase64Url(jwt.substr(0, first));
  if (header.find("\"RS256\"") == std::string::npos || header.find("\"key-1\"") == std::string::npos) return "";
  const std::string signature = DecodeBase64Url(jwt.substr(second + 1));
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, TestKey()) != 1) return "";
  const int verified = EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()), signature.size(),
                                        reinterpret_cast<const unsigned char*>(jwt.data()), second);
  return verified == 1 ? DecodeBase64Url(jwt.substr(first + 1, second - first - 1)) : "";
}

std::vector<std::string> TestSecrets() {
  std::vector<std::string> secrets = {kTestSecret, kTestRefreshToken};
  std::istringstream lines(TestKeyPem());
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("-----")) secrets.push_back(line);
  }
  return secrets;
}

}  // namespace headrace::rpc
