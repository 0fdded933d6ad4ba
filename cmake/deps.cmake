# What the project is built with. Everything here is in Debian under the name in the comment.
if(PNET_STATIC)
  set(ZLIB_USE_STATIC_LIBS ON)
  list(PREPEND CMAKE_FIND_LIBRARY_SUFFIXES .a)
endif()
find_package(FLEX 2.6 REQUIRED)          # flex
find_package(BISON 3.7 REQUIRED)         # bison
find_package(OpenMP REQUIRED COMPONENTS C) # gcc
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)              # zlib1g-dev
find_package(PkgConfig REQUIRED)         # pkgconf
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)     # libyaml-dev
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)   # libjansson-dev
