# The gRPC C++ peers, from the distribution's packages: libgrpc++-dev,
# protobuf-compiler-grpc, libprotobuf-dev.
pkg_check_modules(grpc REQUIRED IMPORTED_TARGET grpc++>=1.51 protobuf)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

set(CMAKE_CXX_STANDARD 17)
set(peer_sources)
foreach(source peer.pb peer.grpc.pb)
  list(APPEND peer_sources ${CMAKE_CURRENT_BINARY_DIR}/${source}.cc)
endforeach()
add_custom_command(
  OUTPUT ${peer_sources}
  COMMAND
    ${PROTOC} --cpp_out=${CMAKE_CURRENT_BINARY_DIR}
    --grpc_out=${CMAKE_CURRENT_BINARY_DIR}
    --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} -I ${CMAKE_CURRENT_SOURCE_DIR}
    peer.proto
  DEPENDS peer.proto
  VERBATIM)

add_library(grpc_side STATIC grpc_side.cc ${peer_sources})
target_include_directories(grpc_side SYSTEM
                           PUBLIC ${CMAKE_CURRENT_BINARY_DIR})
target_link_libraries(grpc_side PUBLIC bench_measure PkgConfig::grpc
                                       absl_synchronization)

foreach(peer async callback stream sync)
  add_executable(grpc_${peer}_side grpc_${peer}_side.cc)
  target_link_libraries(grpc_${peer}_side PRIVATE grpc_side)
endforeach()
