# Debian packages by CPack, from an installation under /usr (the preset `package`): `pnet` (pnetc), `libpnet0` (named as its soname is,
# so that two ABIs can be installed side by side), `libpnet-dev`, `python3-pnet`.
if(PNET_STATIC)
  return() # packages have the shared library
endif()
set(debian ${CMAKE_BINARY_DIR}/debian)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME pnet)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
# who makes the packages, as Debian's tools ask for it
set(maintainer "the pnet authors")
set(address pnet@localhost)
if(DEFINED ENV{DEBFULLNAME})
  set(maintainer $ENV{DEBFULLNAME})
endif()
if(DEFINED ENV{DEBEMAIL})
  set(address $ENV{DEBEMAIL})
endif()
set(CPACK_PACKAGE_CONTACT "${maintainer} <${address}>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program library development python3)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(version ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  set(CPACK_READELF_EXECUTABLE ${CMAKE_READELF})
endif()
set(section science)
if(PNET_CUDA_BUILT) # the CUDA runtime is linked statically, and is not free
  set(section non-free/science)
endif()

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME pnet)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION ${section})
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "compiler and runtime for networks on point clouds
A .pnet file describes a network on the points of a cloud: convolution,
attention, pooling, losses. pnetc checks and plans it, trains it on data sets
of clouds, and runs it, on the points themselves or on voxels.

This package has the program pnetc, networks to start from, and the manual.")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libpnet${pnet_soversion})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION ${section})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${debian}/triggers)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "networks on point clouds inside of other programs: the library
libpnet compiles networks on point clouds and runs and trains them on arrays
of the program around it.")
# PNET_ABI 0 promises nothing from one version to the next: programs need the version that they were compiled with.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY "=")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libpnet-dev)
if(PNET_CUDA_BUILT)
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION non-free/libdevel)
else()
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
endif()
# the others are what a program needs that links the static library
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libpnet${pnet_soversion} (= ${version}), libc6-dev, libjansson-dev, libyaml-dev, zlib1g-dev")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "networks on point clouds inside of other programs: header and static library
libpnet compiles networks on point clouds and runs and trains them on arrays
of the program around it.

This package has its header, the static library, and files for pkg-config
and CMake.")

set(CPACK_DEBIAN_PYTHON3_PACKAGE_NAME python3-pnet)
set(CPACK_DEBIAN_PYTHON3_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON3_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON3_PACKAGE_DEPENDS "libpnet${pnet_soversion} (= ${version}), python3 (>= 3.9), python3-numpy (>= 1:1.23)")
set(CPACK_DEBIAN_PYTHON3_PACKAGE_CONTROL_EXTRA ${debian}/postinst;${debian}/prerm)
set(CPACK_DEBIAN_PYTHON3_DESCRIPTION "networks on point clouds for Python and NumPy
The package pnet compiles networks on point clouds and runs and trains them
on arrays of NumPy, by libpnet.")

# The documentation that every package has: copyright, and the changelogs, packed.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # of SOURCE_DATE_EPOCH, where it is set
file(READ LICENSE license)
string(REGEX REPLACE "^MIT License\n\nCopyright[^\n]*\n\n" "" license "${license}")
string(REGEX REPLACE "\n$" "" license "${license}")
string(REPLACE "\n" "\n " license " ${license}")
string(REPLACE "\n \n" "\n .\n" license "${license}")
set(cuda_copyright "")
if(PNET_CUDA_BUILT)
  file(READ cmake/debian/copyright.cuda cuda_copyright)
endif()
configure_file(cmake/debian/copyright.in ${debian}/copyright @ONLY)
configure_file(cmake/debian/changelog.in ${debian}/changelog @ONLY)
file(WRITE ${debian}/triggers "activate-noawait ldconfig\n")
foreach(script postinst prerm)
  configure_file(cmake/debian/python3.${script} ${debian}/${script} COPYONLY)
  file(CHMOD ${debian}/${script} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endforeach()
add_custom_command(OUTPUT ${debian}/changelog.gz ${debian}/changelog.Debian.gz DEPENDS CHANGELOG.md ${debian}/changelog
  COMMAND sh -c "gzip -9n <'${CMAKE_SOURCE_DIR}/CHANGELOG.md' >changelog.gz"
  COMMAND sh -c "gzip -9n <changelog >changelog.Debian.gz"
  WORKING_DIRECTORY ${debian} VERBATIM)
add_custom_target(changelogs ALL DEPENDS ${debian}/changelog.gz ${debian}/changelog.Debian.gz)
foreach(part PROGRAM LIBRARY DEVELOPMENT PYTHON3)
  string(TOLOWER ${part} component)
  install(FILES ${debian}/copyright ${debian}/changelog.gz ${debian}/changelog.Debian.gz
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${part}_PACKAGE_NAME} COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()

# Python's package for the system's Python, which finds the system's library.
set(python_folder lib/python3/dist-packages)
configure_file(cmake/debian/METADATA.in ${debian}/METADATA @ONLY)
install(DIRECTORY python/pnet DESTINATION ${python_folder} COMPONENT python3 EXCLUDE_FROM_ALL
        FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
install(FILES ${debian}/METADATA DESTINATION ${python_folder}/pnet-${PROJECT_VERSION}.dist-info COMPONENT python3 EXCLUDE_FROM_ALL)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/package_same.cmake)
include(CPack)
