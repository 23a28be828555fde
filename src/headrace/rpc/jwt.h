// JSON web tokens (RFC 7519) signed with RS256 (RFC 7518, 3.3).
//
// Pure functions; any thread. Errors hold nothing of the key.
#pragma once

#include <string>
#include <string_view>

#include "headrace/base/error.h"

namespace headrace::rpc {

/// True for the PEM text of an RSA private key without a pass phrase.
bool IsRsaKey(std::string_view pem);

/// "header.claims.signature" in base64url; `claims` is a JSON object, `key_id` the id of the key `pem` for the header.
arrow::Result<std::string> SignJwt(std::string_view key_id, std::string_view claims, std::string_view pem);

}  // namespace headrace::rpc
