#include "headrace/rpc/jwt.h"

#include <memory>
#include <vector>

#include <nlohmann/json.hpp>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

namespace headrace::rpc {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

/// Null when it is no private key.
Key ReadKey(std::string_view pem) {
  Key none(nullptr, &EVP_PKEY_free);
  constexpr size_t kLongestPem = 64 << 10;
  if (pem.size() > kLongestPem) return none;
  const std::unique_ptr<BIO, decltype(&BIO_free)> input(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
  if (input == nullptr) return none;
  // The callback answers "no pass phrase"; OpenSSL's own would ask on the terminal.
  const auto no_phrase = [](char*, int, int, void*) { return 0; };
  Key key(PEM_read_bio_PrivateKey(input.get(), nullptr, no_phrase, nullptr), &EVP_PKEY_free);
  ERR_clear_error();
  return key;
}

/// RFC 4648, 5, without padding.
std::string Base64Url(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  text.reserve((bytes.size() * 4 + 2) / 3);
  uint32_t bits = 0;
  int held = 0;
  for (const char c : bytes) {
    bits = (bits << 8) | static_cast<unsigned char>(c);
    held += 8;
    while (held >= 6) {
      held -= 6;
      text += kDigits[(bits >> held) & 63];
    }
  }
  if (held > 0) text += kDigits[(bits << (6 - held)) & 63];
  return text;
}

}  // namespace

bool IsRsaKey(std::string_view pem) {
  const Key key = ReadKey(pem);
  return key != nullptr && EVP_PKEY_base_id(key.get()) == EVP_PKEY_RSA;
}

arrow::Result<std::string> SignJwt(std::string_view key_id, std::string_view claims, std::string_view pem) {
  const auto failed = [] {
    ERR_clear_error();  // what OpenSSL would say may tell of the key
    return MakeError({.code = Code::kUnauthenticated, .resource = "credentials", .reason = "CREDENTIALS"},
                     "the private key of the option credentials cannot sign");
  };
  const nlohmann::json header = {{"alg", "RS256"}, {"typ", "JWT"}, {"kid", key_id}};
  std::string token = Base64Url(header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)) + '.' + Base64Url(claims);
  const Key key = ReadKey(pem);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (key == nullptr || context == nullptr) return failed();
  if (EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1) return failed();
  const auto* message = reinterpret_cast<const unsigned char*>(token.data());
  size_t size = 0;
  if (EVP_DigestSign(context.get(), nullptr, &size, message, token.size()) != 1) return failed();
  std::vector<unsigned char> signature(size);
  if (EVP_DigestSign(context.get(), signature.data(), &size, message, token.size()) != 1) return failed();
  token += '.';
  token += Base64Url({reinterpret_cast<const char*>(signature.data()), size});
  return token;
}

}  // namespace headrace::rpc
