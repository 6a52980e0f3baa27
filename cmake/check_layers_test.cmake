# Tests cmake/check_layers.cmake: it accepts a small sound tree and refuses it with each fault.
#   cmake -P cmake/check_layers_test.cmake
cmake_minimum_required(VERSION 3.25)
string(RANDOM LENGTH 12 suffix)
if(DEFINED ENV{TMPDIR})
  set(root $ENV{TMPDIR}/codband_layers_${suffix})
else()
  set(root /tmp/codband_layers_${suffix})
endif()

function(write_sound_tree)
  file(REMOVE_RECURSE ${root})
  file(WRITE ${root}/codband/base/text.h "#pragma once\nnamespace codband {\n}\n")
  file(WRITE ${root}/codband/base/macros.h "// Macros alone.\n#pragma once\n#define CODBAND_X 1\n")
  file(WRITE ${root}/codband/linalg/kernels.cc
       "#include <vector>\n#include \"codband/base/text.h\"\nnamespace codband::linalg {\n}\n")
  file(WRITE ${root}/codband/policy/policy.cc
       "#include \"codband/linalg/kernels.h\"\n\nnamespace codband {\nnamespace {\n}\n}\n")
  file(WRITE ${root}/codband/server/http/reply.cc
       "#include <nlohmann/json.hpp>\n#include \"codband/engine/engine.h\"\n"
       "namespace codband::server {\n}\n")
endfunction()

function(run_check result output)
  execute_process(COMMAND ${CMAKE_COMMAND} -DCODBAND_ROOT=${root}
                          -P ${CMAKE_CURRENT_LIST_DIR}/check_layers.cmake
                  RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
  string(REGEX REPLACE "[ \n]+" " " all "${out}${err}")
  set(${result} ${code} PARENT_SCOPE)
  set(${output} "${all}" PARENT_SCOPE)
endfunction()

set(failures)

# expect_refusal(PATH TEXT MESSAGE): with TEXT in the file PATH the check fails and says MESSAGE.
function(expect_refusal path text message)
  write_sound_tree()
  file(WRITE ${root}/${path} "${text}")
  run_check(code output)
  string(FIND "${output}" "${path}: ${message}" found)
  if(code EQUAL 0 OR found EQUAL -1)
    set(failures "${failures}\n  expected '${path}: ${message}', got (${code}): ${output}"
        PARENT_SCOPE)
  endif()
endfunction()

write_sound_tree()
run_check(code output)
if(NOT code EQUAL 0)
  string(APPEND failures "\n  the sound tree is refused: ${output}")
endif()
expect_refusal(codband/linalg/up.cc
               "#include \"codband/policy/policy.h\"\nnamespace codband::linalg {\n}\n"
               "includes codband/policy/policy.h, but linalg may not use policy")
expect_refusal(codband/engine/side_test.cc
               "#  include <codband/sim/runner.h>\nnamespace codband::engine {\n}\n"
               "includes codband/sim/runner.h, but engine may not use sim")
expect_refusal(codband/sim/relative.cc
               "#include \"../cli/command.h\"\nnamespace codband::sim {\n}\n"
               "includes ../cli/command.h: name it by its path from the root")
expect_refusal(codband/sim/climbing.cc
               "#include \"codband/base/../cli/command.h\"\nnamespace codband::sim {\n}\n"
               "includes codband/base/../cli/command.h: name it by its path from the root")
foreach(layer base linalg policy features sim store engine cluster)
  if(layer STREQUAL base OR layer STREQUAL policy)
    set(namespace codband)
  else()
    set(namespace codband::${layer})
  endif()
  foreach(header nlohmann/json.hpp nlohmann/json_fwd.hpp simdjson.h)
    expect_refusal(codband/${layer}/json.cc
                   "#include <${header}>\nnamespace ${namespace} {\n}\n"
                   "includes ${header}, but ${layer} is a layer without JSON")
  endforeach()
endforeach()
expect_refusal(codband/sim/flat.h "#pragma once\nnamespace codband {\n}\n"
               "opens namespace codband, but sim has codband::sim")
expect_refusal(codband/server/api/deep.h "#pragma once\nnamespace codband::server::api {\n}\n"
               "opens namespace codband::server::api, but server has codband::server")
expect_refusal(codband/policy/nested.h "#pragma once\nnamespace codband::policy {\n}\n"
               "opens namespace codband::policy, but policy has codband")
expect_refusal(codband/sim/second.h
               "#pragma once\nnamespace codband::sim {\n}\nnamespace codband::policy {\n}\n"
               "opens namespace codband::policy, but sim has codband::sim")
expect_refusal(codband/sim/global.h "#pragma once\nstruct Global {};\n"
               "is not in namespace codband::sim")
expect_refusal(codband/helpers/new.h "#pragma once\nnamespace codband::helpers {\n}\n"
               "is in no layer of cmake/layers.cmake")

file(REMOVE_RECURSE ${root})
if(failures)
  message(FATAL_ERROR "cmake/check_layers.cmake does not refuse what it should:${failures}")
endif()
