# libidem: the runtime and the interceptors in one library. The shared one
# exports idem_* only; the static one is what tests of the inside link.
add_library(idem_static STATIC)
add_library(idem SHARED)
add_library(idem::idem ALIAS idem)
foreach(library idem idem_static)
  target_link_libraries(
    ${library}
    PUBLIC idem_headers
    PRIVATE idem_runtime idem_interceptors)
endforeach()
set_target_properties(idem PROPERTIES VERSION ${PROJECT_VERSION}
                                      SOVERSION ${PROJECT_VERSION_MAJOR})
