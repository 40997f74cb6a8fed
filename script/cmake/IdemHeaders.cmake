# What generated code and its users include: our public headers and
# protobuf-c's.
add_library(idem_headers INTERFACE)
add_library(idem::headers ALIAS idem_headers)
target_include_directories(
  idem_headers
  INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/runtime/include>
            $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/interceptors/include>
            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(idem_headers INTERFACE PkgConfig::protobuf-c)
