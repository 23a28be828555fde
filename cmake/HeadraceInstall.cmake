# What `cmake --install` puts where: the shared library libheadrace, the public headers, find_package(Headrace), pkg-config, the program with its
# manual page and shell completions.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Everything below the faces goes into the library; local/ and cli/ are the faces' own.
get_property(_libraries GLOBAL PROPERTY HEADRACE_LIBRARIES)
list(FILTER _libraries EXCLUDE REGEX "^headrace_(local|cli)")
set(_objects)
foreach(_library ${_libraries})
  list(APPEND _objects "$<TARGET_OBJECTS:${_library}>")
endforeach()
add_library(headrace_library SHARED ${_objects})
# LINK_ONLY through the archives gives the libraries they need; nothing is taken from the archives themselves, the objects are here already.
target_link_libraries(headrace_library PRIVATE headrace_link_first headrace_flags Arrow::arrow_shared headrace_catalog)
target_link_options(headrace_library PRIVATE "LINKER:--version-script=${CMAKE_SOURCE_DIR}/cmake/headrace.map")
set_property(TARGET headrace_library APPEND PROPERTY LINK_DEPENDS "${CMAKE_SOURCE_DIR}/cmake/headrace.map")
# Before 1.0 every minor release may break the binary interface, so each has a name of its own.
set_target_properties(headrace_library PROPERTIES OUTPUT_NAME headrace LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                                          INSTALL_RPATH "${HEADRACE_ARROW_DIR}")
install(TARGETS headrace_library LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

if(TARGET headrace)
  set_target_properties(headrace PROPERTIES INSTALL_RPATH "${HEADRACE_ARROW_DIR}")
  install(TARGETS headrace RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # The program makes its own manual page and completions from its tables, when it is installed: a build that nobody installs does without.
  set(_made "${CMAKE_BINARY_DIR}/install")
  foreach(_command_and_file "man:headrace.1" "completion bash:headrace.bash" "completion zsh:_headrace" "completion fish:headrace.fish")
    string(REGEX MATCH "^(.*):(.*)$" _ "${_command_and_file}")
    string(REPLACE " " ";" _command "${CMAKE_MATCH_1}")
    install(CODE "execute_process(COMMAND \"$<TARGET_FILE:headrace>\" ${_command} OUTPUT_FILE \"${_made}/${CMAKE_MATCH_2}\" COMMAND_ERROR_IS_FATAL ANY)")
  endforeach()
  install(FILES "${_made}/headrace.1" DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES "${_made}/headrace.bash" DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME headrace)
  install(FILES "${_made}/_headrace" DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES "${_made}/headrace.fish" DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

set(HEADRACE_PUBLIC_FOLDERS base types runtime bigquery files catalog)
foreach(_folder ${HEADRACE_PUBLIC_FOLDERS})
  install(DIRECTORY src/headrace/${_folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/headrace
          FILES_MATCHING PATTERN "*.h" PATTERN "*_testing.h" EXCLUDE PATTERN internal EXCLUDE)
endforeach()

set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Headrace)
configure_package_config_file(cmake/HeadraceConfig.cmake.in "${CMAKE_BINARY_DIR}/install/HeadraceConfig.cmake" INSTALL_DESTINATION ${_package_dir}
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/install/HeadraceConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/install/HeadraceConfig.cmake" "${CMAKE_BINARY_DIR}/install/HeadraceConfigVersion.cmake" cmake/FindHeadraceArrow.cmake
        DESTINATION ${_package_dir})

if(HEADRACE_ARROW_DIR)
  # The wheel's libraries have versioned names only and lie outside the loader's search path.
  set(HEADRACE_PC_REQUIRES "")
  set(HEADRACE_PC_ARROW_CFLAGS "-isystem ${HEADRACE_ARROW_DIR}/include")
  set(HEADRACE_PC_ARROW_LIBS "-L${HEADRACE_ARROW_DIR} -l:libarrow.so.${HEADRACE_ARROW_SOVERSION} -Wl,-rpath,${HEADRACE_ARROW_DIR}")
else()
  set(HEADRACE_PC_REQUIRES "arrow = ${HEADRACE_ARROW_VERSION}")
  set(HEADRACE_PC_ARROW_CFLAGS "")
  set(HEADRACE_PC_ARROW_LIBS "")
endif()
configure_file(cmake/headrace.pc.in "${CMAKE_BINARY_DIR}/install/headrace.pc" @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/install/headrace.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
