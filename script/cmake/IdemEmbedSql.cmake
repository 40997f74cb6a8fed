# idem_embed_sql(TARGET DIRECTORY SYMBOL)
#
# Compile the migrations NNN_name.sql of a directory into a target, in order, as
# `const struct migration SYMBOL[]` (interceptors/src/migration.h). The last one
# has no text.
function(idem_embed_sql target directory symbol)
  file(GLOB files CONFIGURE_DEPENDS ${directory}/[0-9][0-9][0-9]_*.sql)
  list(SORT files)
  set(texts "")
  set(entries "")
  foreach(file IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(name ${file} NAME_WE)
    string(REGEX REPLACE "^0*([0-9]+)_.*" "\\1" version ${name})
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(APPEND texts "static const char text_${name}[] = {${bytes}0};\n")
    string(APPEND entries "    {${version}, \"${name}\", text_${name}},\n")
  endforeach()
  file(
    CONFIGURE
    OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.c
    CONTENT "#include \"migration.h\"

${texts}
const struct migration ${symbol}[] = {
${entries}    {0, 0, 0},
};
"
    @ONLY)
  target_sources(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.c)
endfunction()
