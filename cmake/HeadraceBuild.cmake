# How every target of the tree is built: warnings, sanitizers, link order, one library and one test program per folder.
add_library(headrace_flags INTERFACE)
target_compile_options(headrace_flags INTERFACE -Wall -Wextra $<$<BOOL:${HEADRACE_WERROR}>:-Werror>)
if(HEADRACE_SANITIZE)
  target_compile_options(headrace_flags INTERFACE -fsanitize=${HEADRACE_SANITIZE} -fno-omit-frame-pointer
    $<$<BOOL:${HEADRACE_FUZZ}>:-fsanitize=fuzzer-no-link>)
  target_link_options(headrace_flags INTERFACE -fsanitize=${HEADRACE_SANITIZE})
  if(HEADRACE_SANITIZE MATCHES undefined)
    # A finding ends the program, else a test would pass with it.
    target_compile_options(headrace_flags INTERFACE -fno-sanitize-recover=undefined)
  endif()
endif()
# What a sanitized unit test needs in its environment; programs that pytest starts get it, and more, from scripts/test.sh.
set(HEADRACE_TEST_ENVIRONMENT)
if(HEADRACE_SANITIZE MATCHES address)
  set(HEADRACE_TEST_ENVIRONMENT "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/cmake/sanitizers/leak.supp:print_suppressions=0")
elseif(HEADRACE_SANITIZE MATCHES thread)
  # Debian's gRPC is not instrumented: 174 false reports without this.
  set(HEADRACE_TEST_ENVIRONMENT "TSAN_OPTIONS=ignore_noninstrumented_modules=1")
endif()
if(HEADRACE_BUILD_TESTS)
  target_compile_definitions(headrace_flags INTERFACE HEADRACE_FAIL_POINTS=1)
endif()
find_program(HEADRACE_MOLD mold)
if(HEADRACE_MOLD)
  target_link_options(headrace_flags INTERFACE -fuse-ld=mold)
endif()

# The pyarrow wheel's libparquet exports OpenSSL's and simdjson's symbols and its libarrow_compute re2's. Naming the system's own libraries first makes them
# and gRPC bind to themselves; tests/link_order proves it (LD_DEBUG=bindings).
add_library(headrace_link_first INTERFACE)
target_link_options(headrace_link_first INTERFACE "LINKER:--push-state,--no-as-needed" "SHELL:-lssl -lcrypto -lre2 -lsimdjson" "LINKER:--pop-state")

set(HEADRACE_PCH <arrow/api.h> <chrono> <cstdint> <functional> <map> <memory> <mutex> <optional> <string> <string_view> <variant> <vector>)

# headrace_folder(NAME [NO_PCH] [FAST_TESTS] [SOURCES_EXTRA ...] DEPENDS target... [TEST_DEPENDS target...])
# makes the static library headrace_NAME of the folder's *.cc and, with tests, the program headrace_NAME_test of its *_test.cc.
function(headrace_folder name)
  cmake_parse_arguments(ARG "NO_PCH;FAST_TESTS" "" "EXTRA;DEPENDS;TEST_DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|_main|_testing)\\.cc$")
  list(FILTER tests INCLUDE REGEX "(_test|_testing)\\.cc$")
  if(NOT sources AND NOT ARG_EXTRA)
    set(sources "${CMAKE_SOURCE_DIR}/cmake/empty.cc")
  endif()
  add_library(headrace_${name} STATIC ${sources} ${ARG_EXTRA})
  target_include_directories(headrace_${name} PUBLIC "${CMAKE_SOURCE_DIR}/src" PRIVATE "${CMAKE_CURRENT_BINARY_DIR}")
  target_link_libraries(headrace_${name} PUBLIC headrace_flags headrace_link_first ${ARG_DEPENDS})
  set_property(GLOBAL APPEND PROPERTY HEADRACE_LIBRARIES headrace_${name})
  if(NOT ARG_NO_PCH)
    target_precompile_headers(headrace_${name} PRIVATE ${HEADRACE_PCH})
  endif()
  if(HEADRACE_BUILD_TESTS AND tests)
    add_executable(headrace_${name}_test ${tests})
    target_link_libraries(headrace_${name}_test PRIVATE headrace_${name} ${ARG_TEST_DEPENDS} GTest::gmock GTest::gtest GTest::gtest_main)
    # The tests' own code need not be fast, and takes more than half of the time of a build with optimisation; but for the search through
    # the ledger's states.
    if(NOT ARG_FAST_TESTS)
      target_compile_options(headrace_${name}_test PRIVATE -O0 -g1)
    endif()
    target_precompile_headers(headrace_${name}_test PRIVATE ${HEADRACE_PCH} <gmock/gmock.h> <gtest/gtest.h>)
    # The sanitizers make programs two to fifteen times slower.
    set(timeout 120)
    if(HEADRACE_SANITIZE)
      set(timeout 900)
    endif()
    gtest_discover_tests(headrace_${name}_test DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         PROPERTIES TIMEOUT ${timeout} LABELS unit ENVIRONMENT "${HEADRACE_TEST_ENVIRONMENT}")
  endif()
endfunction()

# headrace_proto(TARGET FILE...): a message library of our own .proto files, included as "headrace/folder/file.pb.h".
function(headrace_proto target)
  set(generated)
  foreach(file ${ARGN})
    file(RELATIVE_PATH relative "${CMAKE_SOURCE_DIR}/src" "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
    string(REGEX REPLACE "\\.proto$" "" stem "${relative}")
    set(out "${CMAKE_BINARY_DIR}/generated/own/${stem}")
    add_custom_command(
      OUTPUT "${out}.pb.cc" "${out}.pb.h"
      COMMAND ${CMAKE_COMMAND} -E make_directory "${CMAKE_BINARY_DIR}/generated/own"
      COMMAND protobuf::protoc "-I${CMAKE_SOURCE_DIR}/src" "--cpp_out=${CMAKE_BINARY_DIR}/generated/own" "${CMAKE_SOURCE_DIR}/src/${relative}"
      DEPENDS "${CMAKE_SOURCE_DIR}/src/${relative}" VERBATIM)
    list(APPEND generated "${out}.pb.cc")
  endforeach()
  add_library(${target} STATIC ${generated})
  set_property(GLOBAL APPEND PROPERTY HEADRACE_LIBRARIES ${target})
  target_include_directories(${target} SYSTEM PUBLIC "${CMAKE_BINARY_DIR}/generated/own")
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf headrace_link_first)
  if(HEADRACE_SANITIZE)
    target_link_libraries(${target} PUBLIC headrace_flags)
    target_compile_options(${target} PRIVATE -w)
  endif()
endfunction()
