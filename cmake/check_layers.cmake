# Checks what the sources include and where they put their names; needs nothing but CMake:
#   cmake -P cmake/check_layers.cmake
#   cmake -DCODBAND_ROOT=DIR -P cmake/check_layers.cmake    another tree with a folder codband/
# Refused, for every file below codband/<folder>/:
#   - an include of a folder that cmake/layers.cmake does not let it use
#   - an include in quotes that does not name its file from the root: the check could not follow it
#   - a JSON library in a layer marked NO_JSON
#   - a namespace other than the folder's, or none
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/layers.cmake)
if(NOT CODBAND_ROOT)
  cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH CODBAND_ROOT)
endif()
set(faults)

macro(fault text)
  list(APPEND faults "  ${path}: ${text}")
endmacro()

function(check_includes path layer)
  file(STRINGS ${CODBAND_ROOT}/${path} includes ENCODING UTF-8
       REGEX "^[ \t]*#[ \t]*include[ \t]*[\"<]")
  foreach(line IN LISTS includes)
    string(REGEX MATCH "include[ \t]*([\"<])([^\">]*)" matched "${line}")
    set(bracket ${CMAKE_MATCH_1})
    set(header ${CMAKE_MATCH_2})
    if(header MATCHES "^codband/([^/]+)/")
      set(used ${CMAKE_MATCH_1})
      if(NOT used STREQUAL layer AND NOT used IN_LIST CODBAND_LAYER_${layer})
        fault("includes ${header}, but ${layer} may not use ${used}")
      endif()
      if(header MATCHES "\\.\\.")
        fault("includes ${header}: name it by its path from the root")
      endif()
    elseif(bracket STREQUAL "\"")
      fault("includes ${header}: name it by its path from the root, codband/...")
    endif()
    if(CODBAND_LAYER_${layer}_NO_JSON AND header MATCHES "^(nlohmann/|simdjson|boost/json)")
      fault("includes ${header}, but ${layer} is a layer without JSON")
    endif()
  endforeach()
  set(faults ${faults} PARENT_SCOPE)
endfunction()

function(check_namespace path layer)
  set(expected ${CODBAND_LAYER_${layer}_NAMESPACE})
  file(STRINGS ${CODBAND_ROOT}/${path} opened ENCODING UTF-8
       REGEX "^[ \t]*(inline )?namespace codband[A-Za-z0-9_:]*[ \t]*({|$)")
  foreach(line IN LISTS opened)
    string(REGEX MATCH "codband[A-Za-z0-9_:]*" namespace "${line}")
    if(NOT namespace STREQUAL expected)
      fault("opens namespace ${namespace}, but ${layer} has ${expected}")
    endif()
  endforeach()
  # A file of macros alone has no line that begins with a letter.
  file(STRINGS ${CODBAND_ROOT}/${path} code ENCODING UTF-8 LIMIT_COUNT 1 REGEX "^[A-Za-z]")
  if(code AND NOT opened)
    fault("is not in namespace ${expected}")
  endif()
  set(faults ${faults} PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE files RELATIVE ${CODBAND_ROOT} ${CODBAND_ROOT}/codband/*.cc
     ${CODBAND_ROOT}/codband/*.h ${CODBAND_ROOT}/codband/*.cc.in)
if(NOT files)
  message(FATAL_ERROR "No sources below ${CODBAND_ROOT}/codband")
endif()
foreach(path IN LISTS files)
  string(REGEX MATCH "^codband/([^/]+)/" matched ${path})
  set(layer ${CMAKE_MATCH_1})
  if(layer IN_LIST CODBAND_LAYERS)
    check_includes(${path} ${layer})
    check_namespace(${path} ${layer})
  else()
    fault("is in no layer of cmake/layers.cmake")
  endif()
endforeach()

list(LENGTH files count)
if(faults)
  list(JOIN faults "\n" text)
  message(FATAL_ERROR "The layers of cmake/layers.cmake are broken:\n${text}\n")
endif()
message(STATUS "Layers: the includes and namespaces of ${count} files are in order")
