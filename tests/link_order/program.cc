// Needs both sides of the clash: Parquet and Arrow's compute library on one, gRPC with TLS on the other.
#include <arrow/compute/initialize.h>
#include <grpcpp/security/credentials.h>
#include <parquet/properties.h>

int main() {
  auto credentials = grpc::SslCredentials({});
  auto properties = parquet::default_writer_properties();
  return arrow::compute::Initialize().ok() && credentials != nullptr && properties != nullptr ? 0 : 1;
}
