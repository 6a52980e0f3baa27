# How a target is compiled: its optimisation level and its precompiled header. A precompiled header
# serves all targets of one level, so the profiles are few:
#
# | profile     | release, dev | sanitizers | precompiled                          | for                |
# |-------------|--------------|------------|--------------------------------------|--------------------|
# | numeric     | -O3          | -O1        | std, fmt                             | what computes      |
# | service     | -O3          | -O0        | std, fmt                             | data, store, engine|
# | json        | -O3          | -O0        | std, fmt, nlohmann, simdjson         | JSON on hot paths  |
# | text        | -O1          | -O0        | std, fmt, nlohmann                   | reports, commands  |
# | test        | -O0          | -O0        | std, fmt, GoogleTest                 | tests              |
# | test_json   | -O0          | -O0        | ... and nlohmann                     | tests that read it |
# | test_linalg | -O0          | -O0        | ... and Eigen, RapidCheck            | reference algebra  |
#
# Tests are compiled more often than they run; -O0 halves the wait. Under sanitizers so does -O0 for
# everything that does not compute much. A profile without JSON has none in its precompiled header,
# so that a layer without JSON cannot use it by accident. Sources still include what they use: the
# presets tidy and fuzz compile without precompiled headers.
#
# All presets but tidy and fuzz are unity builds: up to sixteen sources of a target are one compilation,
# which halves the time. So two sources of one target cannot give the same name to two things, in
# unnamed namespaces either; the compiler says "redefinition". Choose the more telling name.
#
# The preset asan-ubsan leaves out the checks of UBSan that instrument every access to memory (null,
# alignment, vptr, object-size, pointer-overflow): they take a quarter of its compile time, and
# AddressSanitizer sees the access itself. The preset fuzz keeps them, alignment above all, for
# whatever decodes bytes.
set(CODBAND_PCH_std
  <algorithm> <array> <atomic> <chrono> <cmath> <cstddef> <cstdint> <filesystem> <functional>
  <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <stdexcept> <string>
  <string_view> <system_error> <thread> <unordered_map> <utility> <vector> <fmt/format.h>)

# codband_profile(NAME OPTIMISED <level> SANITIZED <level> HEADERS <headers> [LINK <targets>] [PIC])
# LINK: whose include folders and definitions the headers need. PIC: for static libraries.
function(codband_profile name)
  cmake_parse_arguments(ARG "PIC" "OPTIMISED;SANITIZED" "HEADERS;LINK" ${ARGN})
  set(level ${ARG_OPTIMISED})
  if(CODBAND_TESTS AND CMAKE_BUILD_TYPE STREQUAL RelWithDebInfo)
    set(level ${ARG_SANITIZED})
  endif()
  # A target needs a source. Where two profiles come to the same, one precompiled header is made.
  string(SHA256 key "${level} ${ARG_HEADERS} ${ARG_PIC}")
  get_property(twin GLOBAL PROPERTY CODBAND_PROFILE_${key})
  if(twin)
    set(precompiled ${twin})
  else()
    set(precompiled codband_precompiled_${name})
    set(empty ${PROJECT_BINARY_DIR}/${precompiled}.cc)
    file(CONFIGURE OUTPUT ${empty} CONTENT "// The precompiled header needs a target, which needs a source.\n")
    add_library(${precompiled} OBJECT EXCLUDE_FROM_ALL ${empty})
    target_link_libraries(${precompiled} PRIVATE codband_build_flags fmt::fmt ${ARG_LINK})
    target_compile_options(${precompiled} PRIVATE ${level})
    set_target_properties(${precompiled} PROPERTIES POSITION_INDEPENDENT_CODE ${ARG_PIC})
    target_precompile_headers(${precompiled} PRIVATE ${CODBAND_PCH_std} ${ARG_HEADERS})
    set_property(GLOBAL PROPERTY CODBAND_PROFILE_${key} ${precompiled})
  endif()
  set_property(GLOBAL PROPERTY CODBAND_PROFILE_LEVEL_${name} ${level})
  set_property(GLOBAL PROPERTY CODBAND_PROFILE_PRECOMPILED_${name} ${precompiled})
endfunction()

# codband_use_profile(TARGET NAME)
function(codband_use_profile target name)
  get_property(level GLOBAL PROPERTY CODBAND_PROFILE_LEVEL_${name})
  get_property(precompiled GLOBAL PROPERTY CODBAND_PROFILE_PRECOMPILED_${name})
  if(NOT level)
    message(FATAL_ERROR "codband_use_profile(${target}): '${name}' is not a profile; see cmake/codband_profiles.cmake")
  endif()
  target_compile_options(${target} PRIVATE ${level})
  target_precompile_headers(${target} REUSE_FROM ${precompiled})
endfunction()

codband_profile(numeric PIC OPTIMISED -O3 SANITIZED -O1)
codband_profile(service PIC OPTIMISED -O3 SANITIZED -O0)
# Only layers that may use JSON are compiled with these.
set(CODBAND_JSON_LAYERS ${CODBAND_WANTED})
list(REMOVE_ITEM CODBAND_JSON_LAYERS base linalg policy features sim data replay store engine cluster)
if(CODBAND_JSON_LAYERS)
  codband_require(nlohmann_json::nlohmann_json simdjson::simdjson)
  codband_profile(json PIC OPTIMISED -O3 SANITIZED -O0
                  HEADERS <nlohmann/json.hpp> <simdjson.h>
                  LINK nlohmann_json::nlohmann_json simdjson::simdjson)
  codband_profile(text PIC OPTIMISED -O1 SANITIZED -O0
                  HEADERS <nlohmann/json.hpp> LINK nlohmann_json::nlohmann_json)
endif()
if(CODBAND_TESTS)
  codband_profile(test OPTIMISED -O0 SANITIZED -O0 HEADERS <gtest/gtest.h> LINK GTest::gtest)
  codband_profile(test_json OPTIMISED -O0 SANITIZED -O0
                  HEADERS <gtest/gtest.h> <nlohmann/json.hpp>
                  LINK GTest::gtest nlohmann_json::nlohmann_json)
  codband_profile(test_linalg OPTIMISED -O0 SANITIZED -O0
                  HEADERS <gtest/gtest.h> <Eigen/Dense> <rapidcheck/gtest.h>
                  LINK GTest::gtest Eigen3::Eigen rapidcheck)
endif()
