# CPack runs this before it packs the installed files, so that the same sources make the same packages on any day, with any umask.
# SOURCE_DATE_EPOCH, where it is set, is the time of all files (https://reproducible-builds.org/specs/source-date-epoch).
function(all)
  execute_process(COMMAND find ${CPACK_TEMPORARY_INSTALL_DIRECTORY} ${ARGN} {} + RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "find ${ARGN}: failed")
  endif()
endfunction()
all(-type d -exec chmod 755)
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  all(-exec touch -h -d @$ENV{SOURCE_DATE_EPOCH})
endif()
