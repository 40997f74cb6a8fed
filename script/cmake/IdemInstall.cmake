# What `cmake --install` puts down: the library, its headers, the generator, the
# .protos, a CMake package and a pkg-config file.
include(CMakePackageConfigHelpers)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/idem)

set_target_properties(idem_headers PROPERTIES EXPORT_NAME headers)
# A static library: for whatever linker its user has.
set_target_properties(idem_wkt PROPERTIES EXPORT_NAME wkt
                                          INTERPROCEDURAL_OPTIMIZATION OFF)
install(
  TARGETS idem idem_headers idem_wkt protoc-gen-idem
  EXPORT idemTargets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/include/idem
                  ${PROJECT_SOURCE_DIR}/interceptors/include/idem
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/idl/idem/v1/health.proto
              ${PROJECT_SOURCE_DIR}/idl/idem/v1/ledger.proto
              ${PROJECT_SOURCE_DIR}/idl/idem/v1/options.proto
              ${PROJECT_SOURCE_DIR}/idl/idem/v1/wire.proto
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/idem/v1)
install(
  DIRECTORY ${PROJECT_BINARY_DIR}/idl/idem_wkt.idl/
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/idem-wkt
  FILES_MATCHING
  PATTERN "*.h")

install(
  EXPORT idemTargets
  NAMESPACE idem::
  DESTINATION ${package})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/idemConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/idemConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/script/cmake/idemConfig.cmake
              ${PROJECT_SOURCE_DIR}/idl/IdemGenerate.cmake
        DESTINATION ${package})

# Its prefix is told from where it lies: `cmake --install --prefix` chooses it.
file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${PROJECT_SOURCE_DIR}/script/cmake/idem.pc.in
               ${PROJECT_BINARY_DIR}/idem.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/idem.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
