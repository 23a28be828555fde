// Keys, certificates and credential files that are made when a test runs, so that none lies in the tree. For tests.
//
// The key and the certificate are made once in a process; any thread may call.
#pragma once

#include <string>
#include <vector>

#include <openssl/evp.h>

namespace headrace::rpc {

/// An RSA key of 2,048 bits.
EVP_PKEY* TestKey();
std::string TestKeyPem();
/// A certificate for 127.0.0.1 and localhost, signed with TestKey by itself: it is also the CA bundle that trusts it.
std::string TestCertificatePem();

/// The JSON of a service account's key file with TestKey; no token_uri when it is empty.
std::string KeyFileText(const std::string& token_uri);
std::string UserFileText(const std::string& token_uri);
inline constexpr char kTestSecret[] = "GOCSPX-t3st-s3cret";  // of UserFileText
inline constexpr char kTestRefreshToken[] = "1//test-refresh-token";

/// A new file below the test directory; removed at the end of the process by nobody, the directory is the test's.
std::string WriteTestFile(const std::string& text);

/// The claims of a JWT that TestKey signed; empty when it is none or the signature is wrong.
std::string VerifiedClaims(const std::string& jwt);

/// What must not be found in any text: the lines of the key's PEM, the secrets of UserFileText.
std::vector<std::string> TestSecrets();

}  // namespace headrace::rpc
