# codband_add_test(NAME SOURCES <files> DEPS <targets> [LABEL fast|slow])
# One GoogleTest binary; every test in it is its own CTest entry. Label: fast unless said otherwise.
function(codband_add_test name)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL fast)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE codband_build_flags ${ARG_DEPS} GTest::gtest_main GTest::gmock rapidcheck
                                        Eigen3::Eigen)
  # Tests are compiled more often than they run: this halves the wait.
  target_compile_options(${name} PRIVATE -O0)
  target_compile_definitions(${name} PRIVATE
    CODBAND_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  # Deep enough for hundreds of cases, the same cases on every run.
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 900 ENVIRONMENT "RC_PARAMS=seed=20190707")
endfunction()

# codband_add_unit_tests(FOLDER) puts all codband/FOLDER/**/*_test.cc into FOLDER_test, and those
# named *_slow_test.cc into FOLDER_slow_test.
function(codband_add_unit_tests folder)
  set(directory ${PROJECT_SOURCE_DIR}/codband/${folder})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${directory}/*_test.cc)
  set(slow ${all})
  list(FILTER slow INCLUDE REGEX "_slow_test\\.cc$")
  list(FILTER all EXCLUDE REGEX "_slow_test\\.cc$")
  if(all)
    codband_add_test(${folder}_test SOURCES ${all} DEPS codband::${folder})
  endif()
  if(slow)
    codband_add_test(${folder}_slow_test SOURCES ${slow} DEPS codband::${folder} LABEL slow)
  endif()
endfunction()

# So are, under sanitizers, the parts that do not compute much.
foreach(part cli report experiments data replay eval store engine server)
  target_compile_options(codband_${part} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0>)
endforeach()
