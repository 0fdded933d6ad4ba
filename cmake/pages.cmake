# Pages of the manual and completions for bash, zsh and fish, from the table that pnetc prints of itself; and their installation.
include(GNUInstallDirs)
set(PNET_ZSH_FOLDER ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "Where the completion for zsh is installed")
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  message(STATUS "pnetc cannot be run here: no pages of the manual, no completions")
  return()
endif()
set(pages ${CMAKE_BINARY_DIR}/pages)
string(TIMESTAMP today "%Y-%m-%d" UTC) # of SOURCE_DATE_EPOCH, where it is set
file(GLOB page_scripts CONFIGURE_DEPENDS cmake/pages/*)
add_custom_command(OUTPUT ${pages}/table DEPENDS pnetc ${page_scripts}
  COMMAND sh ${CMAKE_SOURCE_DIR}/cmake/pages/make.sh "$<JOIN:${CMAKE_CROSSCOMPILING_EMULATOR};$<TARGET_FILE:pnetc>, >"
          ${pages} ${today} VERBATIM)
add_custom_target(pages ALL DEPENDS ${pages}/table)
install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT program FILES_MATCHING PATTERN "*.gz")
install(FILES ${pages}/bash/pnetc DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)
install(FILES ${pages}/zsh/_pnetc DESTINATION ${PNET_ZSH_FOLDER} COMPONENT program)
install(FILES ${pages}/fish/pnetc.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
