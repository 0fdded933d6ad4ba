# CPack runs this before it packs the installed files. SOURCE_DATE_EPOCH, where it is set, is their time, so that the same sources
# make the same packages (https://reproducible-builds.org/specs/source-date-epoch). The program's own times are none of it.
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND find ${CPACK_TEMPORARY_INSTALL_DIRECTORY} -exec touch -h -d @$ENV{SOURCE_DATE_EPOCH} {} +
                  RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "the times of files cannot be set")
  endif()
endif()
