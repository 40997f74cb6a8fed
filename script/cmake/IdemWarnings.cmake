# How our own code is compiled. Generated code does not link idem_warnings.
add_library(idem_warnings INTERFACE)
target_compile_options(
  idem_warnings
  INTERFACE -Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wstrict-prototypes
            -Wmissing-prototypes
            -Wcast-qual
            -Wpointer-arith
            -Wwrite-strings
            -Wundef
            -Wvla
            -Wformat=2
            -Wswitch-enum
            $<$<BOOL:${IDEM_WERROR}>:-Werror>)
target_compile_definitions(idem_warnings INTERFACE _GNU_SOURCE)

if(IDEM_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(IDEM_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(IDEM_SANITIZE STREQUAL "fuzzer") # clang's
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined
                      -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(IDEM_SANITIZE)
  message(FATAL_ERROR "IDEM_SANITIZE=${IDEM_SANITIZE}: address, thread or fuzzer")
endif()

if(IDEM_FAULTS)
  add_compile_definitions(IDEM_FAULTS=1)
endif()
