# How an optimised build is compiled (docs/decisions/0054).
include(CheckCCompilerFlag)
include(CheckIPOSupported)

# By itself gcc clears and copies each struct of 100 bytes and more by "rep
# stos" and "rep movs": 15 ns where a loop of stores takes 3, and an echo clears
# ten of them. The options are gcc's for x86; others do well without.
set(idem_strategies
    -mmemset-strategy=vector_loop:512:noalign,libcall:-1:noalign
    -mmemcpy-strategy=vector_loop:512:noalign,libcall:-1:noalign)
list(GET idem_strategies 0 idem_strategy)
check_c_compiler_flag(${idem_strategy} IDEM_HAS_STRATEGIES)
if(IDEM_HAS_STRATEGIES)
  foreach(strategy ${idem_strategies})
    add_compile_options(
      $<$<AND:$<COMPILE_LANGUAGE:C>,$<NOT:$<CONFIG:Debug>>>:${strategy}>)
  endforeach()
endif()

# Takes as long to link each program as to compile the library: for what ships
# and what is measured.
option(IDEM_LTO "Optimise when linking" OFF)
if(IDEM_LTO)
  check_ipo_supported(LANGUAGES C CXX)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
endif()
