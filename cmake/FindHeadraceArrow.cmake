# Arrow C++ and Parquet as Arrow::arrow_shared and Parquet::parquet_shared: the system's packages if they are there, else the pinned
# pyarrow wheel, which ships headers and versioned shared libraries but no CMake configuration.
find_package(Arrow CONFIG QUIET)
find_package(Parquet CONFIG QUIET)
if(Arrow_FOUND AND Parquet_FOUND)
  set(HEADRACE_ARROW_VERSION "${ARROW_VERSION}")
  set(HeadraceArrow_FOUND TRUE)
  return()
endif()

set(HEADRACE_PYTHON "${CMAKE_SOURCE_DIR}/build/venv/bin/python" CACHE FILEPATH "A Python that has the pinned pyarrow wheel")
execute_process(
  COMMAND "${HEADRACE_PYTHON}" -c "import importlib.util, os; print(os.path.dirname(importlib.util.find_spec('pyarrow').origin))"
  OUTPUT_VARIABLE _pyarrow OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE _failed)
if(_failed)
  message(FATAL_ERROR "No Arrow C++ package and no pyarrow wheel for ${HEADRACE_PYTHON}. Run scripts/setup.sh first.")
endif()
file(STRINGS "${_pyarrow}/include/arrow/util/config.h" _version REGEX "define ARROW_VERSION_STRING ")
string(REGEX REPLACE ".*\"([^\"]+)\".*" "\\1" HEADRACE_ARROW_VERSION "${_version}")
file(STRINGS "${_pyarrow}/include/arrow/util/config.h" _soversion REGEX "define ARROW_SO_VERSION ")
string(REGEX REPLACE ".*\"([^\"]+)\".*" "\\1" _soversion "${_soversion}")

function(_headrace_arrow_library target file)
  set(_path "${_pyarrow}/${file}.so.${_soversion}")
  if(NOT EXISTS "${_path}")
    message(FATAL_ERROR "The pyarrow wheel in ${_pyarrow} has no ${file}.so.${_soversion}")
  endif()
  add_library(${target} SHARED IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${_path}" INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${_pyarrow}/include"
                                             INTERFACE_INCLUDE_DIRECTORIES "${_pyarrow}/include")
endfunction()
_headrace_arrow_library(Arrow::arrow_shared libarrow)
_headrace_arrow_library(ArrowCompute::arrow_compute_shared libarrow_compute)
_headrace_arrow_library(Parquet::parquet_shared libparquet)
set_property(TARGET ArrowCompute::arrow_compute_shared PROPERTY INTERFACE_LINK_LIBRARIES Arrow::arrow_shared)
set_property(TARGET Parquet::parquet_shared PROPERTY INTERFACE_LINK_LIBRARIES Arrow::arrow_shared)
set(HEADRACE_ARROW_DIR "${_pyarrow}")
set(HeadraceArrow_FOUND TRUE)
message(STATUS "Arrow C++ ${HEADRACE_ARROW_VERSION} from the pyarrow wheel")
