# Google's API definitions, generated at build time from the pinned npm package that scripts/setup.sh fetched and checked. Nothing of it is committed.
set(HEADRACE_GOOGLE_PROTOS "${HEADRACE_DEPS_DIR}/google-proto-files-6.0.1")
if(NOT EXISTS "${HEADRACE_GOOGLE_PROTOS}/google/cloud/bigquery/storage/v1/storage.proto")
  message(FATAL_ERROR "API definitions are missing in ${HEADRACE_GOOGLE_PROTOS}. Run scripts/setup.sh first.")
endif()
get_target_property(_grpc_plugin gRPC::grpc_cpp_plugin LOCATION)

# headrace_api(TARGET [MESSAGES file...] [SERVICES file...]): SERVICES get a gRPC stub as well.
function(headrace_api target)
  cmake_parse_arguments(ARG "" "" "MESSAGES;SERVICES" ${ARGN})
  set(root "${CMAKE_BINARY_DIR}/generated/api")
  file(MAKE_DIRECTORY "${root}")
  set(generated)
  foreach(file ${ARG_MESSAGES} ${ARG_SERVICES})
    string(REGEX REPLACE "\\.proto$" "" stem "${file}")
    # The system's google/protobuf files come first: the package's own copies use editions, which this protoc does not read.
    add_custom_command(
      OUTPUT "${root}/${stem}.pb.cc" "${root}/${stem}.pb.h"
      COMMAND protobuf::protoc -I/usr/include "-I${HEADRACE_GOOGLE_PROTOS}" "--cpp_out=${root}" "${HEADRACE_GOOGLE_PROTOS}/${file}"
      DEPENDS "${HEADRACE_GOOGLE_PROTOS}/${file}" VERBATIM)
    list(APPEND generated "${root}/${stem}.pb.cc")
  endforeach()
  foreach(file ${ARG_SERVICES})
    string(REGEX REPLACE "\\.proto$" "" stem "${file}")
    add_custom_command(
      OUTPUT "${root}/${stem}.grpc.pb.cc" "${root}/${stem}.grpc.pb.h"
      COMMAND protobuf::protoc -I/usr/include "-I${HEADRACE_GOOGLE_PROTOS}" "--grpc_out=${root}" "--plugin=protoc-gen-grpc=${_grpc_plugin}"
              "${HEADRACE_GOOGLE_PROTOS}/${file}"
      DEPENDS "${HEADRACE_GOOGLE_PROTOS}/${file}" VERBATIM)
    list(APPEND generated "${root}/${stem}.grpc.pb.cc")
  endforeach()
  add_library(${target} STATIC ${generated})
  set_property(GLOBAL APPEND PROPERTY HEADRACE_LIBRARIES ${target})
  target_include_directories(${target} SYSTEM PUBLIC "${root}")
  target_link_libraries(${target} PUBLIC headrace_link_first protobuf::libprotobuf gRPC::grpc++)
  if(HEADRACE_SANITIZE)
    target_link_libraries(${target} PUBLIC headrace_flags)
  endif()
  target_compile_options(${target} PRIVATE -w)
endfunction()

headrace_api(headrace_api_bigquery_storage
  MESSAGES google/api/annotations.proto google/api/http.proto google/api/client.proto google/api/field_behavior.proto google/api/resource.proto
           google/api/launch_stage.proto google/rpc/status.proto google/rpc/error_details.proto
           google/cloud/bigquery/storage/v1/annotations.proto google/cloud/bigquery/storage/v1/arrow.proto
           google/cloud/bigquery/storage/v1/avro.proto google/cloud/bigquery/storage/v1/protobuf.proto
           google/cloud/bigquery/storage/v1/stream.proto google/cloud/bigquery/storage/v1/table.proto
  SERVICES google/cloud/bigquery/storage/v1/storage.proto)
