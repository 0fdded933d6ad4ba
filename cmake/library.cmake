# libpnet: the functions of include/pnet.h and its parts, shared and static, from the objects that pnetc has too; and its installation.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

pnet_library(pnet_api library)
target_link_libraries(pnet_api PUBLIC pnet_compiler)

set(pnet_soversion 0) # PNET_ABI
set(pnet_libraries pnet_static)

# A static program takes no shared library.
if(NOT PNET_STATIC)
  list(APPEND pnet_libraries pnet)
  add_library(pnet SHARED $<TARGET_OBJECTS:pnet_api>)
  target_link_libraries(pnet PRIVATE pnet_compiler)
  target_link_options(pnet PRIVATE -Wl,--as-needed -Wl,--version-script=${CMAKE_SOURCE_DIR}/library/pnet.map)
  if(NOT PNET_SANITIZE)
    target_link_options(pnet PRIVATE -Wl,--no-undefined)
  endif()
  set_target_properties(pnet PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${pnet_soversion}
    LINK_DEPENDS ${CMAKE_SOURCE_DIR}/library/pnet.map)
endif()

# One archive with everything; its user links what these libraries need.
set(objects "")
foreach(part pnet_api pnet_compiler pnet_runtime pnet_lang pnet_kernels ${pnet_isa_targets})
  list(APPEND objects $<TARGET_OBJECTS:${part}>)
endforeach()
add_library(pnet_static STATIC ${objects})
set_target_properties(pnet_static PROPERTIES OUTPUT_NAME pnet LINKER_LANGUAGE C)
set(pnet_needs -lyaml -ljansson -lz -lgomp -lpthread -ldl -lm)
if(PNET_CUDA_BUILT)
  list(APPEND pnet_needs -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lstdc++ -lrt)
endif()
target_link_libraries(pnet_static INTERFACE $<INSTALL_INTERFACE:${pnet_needs}>)

foreach(target ${pnet_libraries})
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN *.h)
install(TARGETS ${pnet_libraries} EXPORT pnet
        LIBRARY COMPONENT library NAMELINK_COMPONENT development ARCHIVE COMPONENT development)

# The examples, as a program in this tree has them; tests/library/test_install.sh builds them as others do.
file(GLOB examples CONFIGURE_DEPENDS examples/*.c)
foreach(source ${examples})
  get_filename_component(example ${source} NAME_WE)
  add_executable(example_${example} ${source})
  target_include_directories(example_${example} PRIVATE include)
  target_link_libraries(example_${example} PRIVATE pnet_api)
endforeach()

# pkg-config and CMake find the installed tree wherever it is moved to.
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/pnet)
file(RELATIVE_PATH pnet_up /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
string(JOIN " " pnet_private ${pnet_needs})
configure_file(cmake/pnet.pc.in pnet.pc @ONLY)
configure_package_config_file(cmake/pnetConfig.cmake.in pnetConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(pnetConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/pnet.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
install(FILES ${CMAKE_BINARY_DIR}/pnetConfig.cmake ${CMAKE_BINARY_DIR}/pnetConfigVersion.cmake DESTINATION ${package}
        COMPONENT development)
install(EXPORT pnet NAMESPACE pnet:: FILE pnetTargets.cmake DESTINATION ${package} COMPONENT development)
# The shared library alone, for the Python package (python/pyproject.toml).
if(NOT PNET_STATIC)
  install(FILES $<TARGET_FILE:pnet> DESTINATION pnet RENAME libpnet.so COMPONENT python EXCLUDE_FROM_ALL)
endif()
