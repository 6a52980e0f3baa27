# ./test builds and runs everything twice, optimised and under sanitizers, but for tests that find
# the same in both: they say where they run, and the other build leaves them out.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(CODBAND_RUN sanitized)
else()
  set(CODBAND_RUN optimised)
endif()

# codband_add_test(NAME SOURCES <files> DEPS <targets> [RUN optimised|sanitized] [LABEL fast|slow]
#                  [PROFILE <profile>] [PROGRAM] [TOGETHER] [LONG <tests>])
# One GoogleTest binary; every test in it is its own CTest entry. Label: fast unless given; slow
# tests run optimised, are one CTest entry, and are built by the target slow, not by all. Profile: test
# unless given. PROGRAM: the tests run the program codband; its path is CODBAND_PROGRAM. TOGETHER: one
# CTest entry for all, as they share what is expensive to start.
# LONG: tests that repeat much what shorter ones of the binary do once; they run optimised alone,
# under sanitizers they would take most of the time.
add_custom_target(slow)
function(codband_add_test name)
  cmake_parse_arguments(ARG "PROGRAM;TOGETHER" "RUN;LABEL;PROFILE" "SOURCES;DEPS;LONG" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL fast)
  endif()
  if(ARG_LABEL STREQUAL slow)
    set(ARG_RUN optimised)
    set(ARG_TOGETHER ON)
  endif()
  if(ARG_RUN AND NOT ARG_RUN STREQUAL CODBAND_RUN)
    return()
  endif()
  if(NOT ARG_PROFILE)
    set(ARG_PROFILE test)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE codband_build_flags ${ARG_DEPS} GTest::gtest_main GTest::gmock rapidcheck
                                        Eigen3::Eigen)
  codband_use_profile(${name} ${ARG_PROFILE})
  target_compile_definitions(${name} PRIVATE
    CODBAND_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(ARG_PROGRAM)
    target_compile_definitions(${name} PRIVATE CODBAND_PROGRAM="$<TARGET_FILE:codband>")
    add_dependencies(${name} codband)
  endif()
  if(ARG_LABEL STREQUAL slow)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    add_dependencies(slow ${name})
  endif()
  if(ARG_TOGETHER)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 3600)
    return()
  endif()
  set(filter)
  if(ARG_LONG AND CODBAND_RUN STREQUAL sanitized)
    string(JOIN ":" long ${ARG_LONG})
    set(filter TEST_FILTER "-${long}")
  endif()
  # RapidCheck tries the same cases on every run.
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 ${filter}
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 900 ENVIRONMENT "RC_PARAMS=seed=20190707")
endfunction()

# codband_add_unit_tests(FOLDER [RUN ...] [PROFILE ...] [LONG ...]) puts all codband/FOLDER/**/*_test.cc into
# FOLDER_test, and those named *_slow_test.cc into FOLDER_slow_test.
function(codband_add_unit_tests folder)
  set(directory ${PROJECT_SOURCE_DIR}/codband/${folder})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${directory}/*_test.cc)
  set(slow ${all})
  list(FILTER slow INCLUDE REGEX "_slow_test\\.cc$")
  list(FILTER all EXCLUDE REGEX "_slow_test\\.cc$")
  if(all)
    codband_add_test(${folder}_test SOURCES ${all} DEPS codband::${folder} ${ARGN})
  endif()
  if(slow)
    codband_add_test(${folder}_slow_test SOURCES ${slow} DEPS codband::${folder} LABEL slow ${ARGN})
  endif()
endfunction()
