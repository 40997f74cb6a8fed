# idem_generate(TARGET t PROTOS a.proto … [IMPORT_DIRS d …])
#
# A static library t of what the .protos say: x.pb-c.h/.c by protoc-c and
# x.idem.h/.c by protoc-gen-idem, under the build folder by the path of the
# .proto. PROTOS are paths as an import would name them, found in IMPORT_DIRS
# (default: the current source folder). Whoever links t gets the include
# folders, and links idem for the functions that the stubs call.
#
# A changed import, or a changed generator, generates again.

# In this tree idem/v1 is beside this file; installed, in the include folder.
if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/idem/v1/options.proto)
  set(IDEM_IDL_DIR ${CMAKE_CURRENT_LIST_DIR})
  set(IDEM_GENERATOR protoc-gen-idem)
  set(IDEM_WKT idem_wkt)
else()
  get_target_property(IDEM_IDL_DIR idem::headers INTERFACE_INCLUDE_DIRECTORIES)
  set(IDEM_GENERATOR idem::protoc-gen-idem)
  set(IDEM_WKT idem::wkt)
endif()

function(_idem_generate_one out proto import_flags)
  string(REGEX REPLACE "[.]proto$" "" name ${proto})
  set(base ${out}/${name})
  get_filename_component(folder ${base} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})

  add_custom_command(
    OUTPUT ${base}.fds
    COMMAND
      ${PROTOC} ${import_flags} --include_imports --include_source_info
      --dependency_out=${base}.d --descriptor_set_out=${base}.fds ${proto}
    DEPFILE ${base}.d
    COMMENT "Reading ${proto}"
    VERBATIM)
  add_custom_command(
    OUTPUT ${base}.pb-c.c ${base}.pb-c.h ${base}.idem.c ${base}.idem.h
    COMMAND ${IDEM_GENERATOR} --lower ${base}.fds ${base}.c.fds
    COMMAND ${PROTOC_C} --descriptor_set_in=${base}.c.fds --c_out=${out}
            ${proto}
    COMMAND
      ${PROTOC} --descriptor_set_in=${base}.fds
      --plugin=protoc-gen-idem=$<TARGET_FILE:${IDEM_GENERATOR}> --idem_out=${out}
      ${proto}
    DEPENDS ${base}.fds ${IDEM_GENERATOR}
    BYPRODUCTS ${base}.c.fds
    COMMENT "Generating ${name}.idem.c"
    VERBATIM)
endfunction()

function(idem_generate)
  cmake_parse_arguments(arg "" "TARGET" "PROTOS;IMPORT_DIRS" ${ARGN})
  if(NOT arg_TARGET OR NOT arg_PROTOS OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "idem_generate(TARGET t PROTOS a.proto … "
                        "[IMPORT_DIRS d …]): ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_IMPORT_DIRS)
    set(arg_IMPORT_DIRS ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  set(flags)
  foreach(dir ${arg_IMPORT_DIRS} ${IDEM_IDL_DIR})
    get_filename_component(dir ${dir} ABSOLUTE)
    list(APPEND flags -I${dir})
  endforeach()
  list(REMOVE_DUPLICATES flags)

  set(out ${CMAKE_CURRENT_BINARY_DIR}/${arg_TARGET}.idl)
  set(sources)
  foreach(proto ${arg_PROTOS})
    _idem_generate_one(${out} ${proto} "${flags}")
    string(REGEX REPLACE "[.]proto$" "" name ${proto})
    list(APPEND sources ${out}/${name}.pb-c.c ${out}/${name}.idem.c
         ${out}/${name}.pb-c.h ${out}/${name}.idem.h)
  endforeach()

  add_library(${arg_TARGET} STATIC ${sources})
  target_include_directories(${arg_TARGET} PUBLIC $<BUILD_INTERFACE:${out}>)
  target_link_libraries(${arg_TARGET} PUBLIC idem::headers)
  if(arg_TARGET STREQUAL "idem_wkt")
    target_include_directories(
      ${arg_TARGET}
      PUBLIC $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/idem-wkt>)
  else()
    target_link_libraries(${arg_TARGET} PUBLIC ${IDEM_WKT})
  endif()
  # Our own code keeps our rules; protoc-c's is as it is.
  if(TARGET idem_warnings)
    get_target_property(warnings idem_warnings INTERFACE_COMPILE_OPTIONS)
    foreach(source ${sources})
      if(source MATCHES "[.]idem[.]c$")
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
                                                         "${warnings}")
      endif()
    endforeach()
  endif()
endfunction()
