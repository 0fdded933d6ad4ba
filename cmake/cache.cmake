# A compiler cache, where ccache is installed: several builds of one commit, and the same build again, cost little.
find_program(PNET_CCACHE ccache)
if(PNET_CCACHE)
  foreach(language C CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${PNET_CCACHE})
    endif()
  endforeach()
endif()
