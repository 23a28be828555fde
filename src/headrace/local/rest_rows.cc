// tabledata.list of the REST API.
#include "headrace/local/rest_api.h"
#include "headrace/local/rest_call.h"

namespace headrace::local {

RestApi::Answered RestApi::ListRows(const Call& /*call*/) { return NotServed("tabledata.list"); }

}  // namespace headrace::local
