# -O2 everywhere; the inner loops of kernels/cpu/isa get -O3 below.
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
add_library(pnet_flags INTERFACE)
target_compile_definitions(pnet_flags INTERFACE _GNU_SOURCE PNET_VERSION="${PROJECT_VERSION}")
# -fno-math-errno and -fno-trapping-math change no result; they let square roots be one instruction.
target_compile_options(pnet_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Wconversion;-Wshadow;
  -Wstrict-prototypes;-Wmissing-prototypes;-Wvla;-fno-math-errno;-fno-trapping-math>)
if(CMAKE_C_COMPILER_ID MATCHES Clang) # says so of every simd loop that instrumentation keeps scalar
  target_compile_options(pnet_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Wno-pass-failed>)
endif()
if(PNET_WERROR)
  target_compile_options(pnet_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Werror>)
endif()
if(PNET_SANITIZE)
  target_compile_options(pnet_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C>:-fsanitize=${PNET_SANITIZE};-fno-sanitize-recover=all;-fno-omit-frame-pointer;-g>)
  target_link_options(pnet_flags INTERFACE -fsanitize=${PNET_SANITIZE})
endif()
set(PNET_GENERATED_FLAGS -Wno-conversion -Wno-shadow -Wno-missing-prototypes -Wno-unused-function
    -Wno-sign-compare)

# A source of kernels/cpu/isa is compiled once for each instruction set, with PNET_ISA naming it.
function(pnet_isa_objects target)
  file(GLOB isa_sources CONFIGURE_DEPENDS kernels/cpu/isa/*.c)
  if(NOT isa_sources)
    return()
  endif()
  get_target_property(all ${target} SOURCES)
  list(REMOVE_ITEM all ${isa_sources})
  set_target_properties(${target} PROPERTIES SOURCES "${all}")
  set(variants "base:")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND variants "avx2:-mavx2|-mfma"
         "avx512:-mavx512f|-mavx512vl|-mavx512dq|-mavx512bw|-mfma|-mprefer-vector-width=512")
  endif()
  foreach(variant ${variants})
    string(REPLACE ":" ";" parts "${variant}")
    list(GET parts 0 isa)
    list(LENGTH parts count)
    set(flags "")
    if(count GREATER 1)
      list(GET parts 1 flags)
      string(REPLACE "|" ";" flags "${flags}")
    endif()
    add_library(${target}_${isa} OBJECT ${isa_sources})
    target_compile_definitions(${target}_${isa} PRIVATE PNET_ISA=${isa})
    target_compile_options(${target}_${isa} PRIVATE $<$<CONFIG:Release>:-O3> ${flags})
    target_include_directories(${target}_${isa} PRIVATE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${target}_${isa} PRIVATE pnet_flags)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_${isa}>)
    list(APPEND isa_targets ${target}_${isa})
  endforeach()
  set(pnet_isa_targets ${isa_targets} PARENT_SCOPE) # libraries without sources of their own
endfunction()
