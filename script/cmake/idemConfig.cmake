# find_package(idem): the targets idem::idem, idem::wkt and idem::headers, and
# idem_generate(TARGET t PROTOS a.proto …).
include(CMakeFindDependencyMacro)
find_dependency(PkgConfig)
if(NOT TARGET PkgConfig::protobuf-c)
  pkg_check_modules(protobuf-c REQUIRED IMPORTED_TARGET libprotobuf-c>=1.4.1)
endif()
find_program(PROTOC protoc REQUIRED)
find_program(PROTOC_C protoc-c REQUIRED)
include(${CMAKE_CURRENT_LIST_DIR}/idemTargets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/IdemGenerate.cmake)
