# libidem: the runtime and the interceptors in one library. The shared one
# exports idem_* only; the static one is what tests of the inside link.
add_library(idem_static STATIC)
add_library(idem SHARED)
foreach(library idem idem_static)
  target_link_libraries(${library} PRIVATE idem_runtime idem_interceptors)
  target_include_directories(
    ${library} INTERFACE ${PROJECT_SOURCE_DIR}/runtime/include
                         ${PROJECT_SOURCE_DIR}/interceptors/include)
  target_link_libraries(${library} PUBLIC PkgConfig::protobuf-c)
endforeach()
set_target_properties(idem PROPERTIES VERSION ${PROJECT_VERSION}
                                      SOVERSION ${PROJECT_VERSION_MAJOR})
