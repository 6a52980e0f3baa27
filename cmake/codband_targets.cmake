# Warnings and numerics are the same for every target of ours and reach none of our consumers.
add_library(codband_build_flags INTERFACE)
target_compile_options(codband_build_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast
  # A fused multiply-add rounds once where two instructions round twice: results would depend on
  # the processor.
  -ffp-contract=off
  # GCC 12 sees overlaps and overflows in std::string that are not there (GCC bug 105651). Which ones
  # depends on what it inlines, and that on the precompiled header.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overread>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds>
  # In a unity build the sources are included files, in which GCC does not expect local types.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>
  # See cmake/codband_odr.cmake.
  $<$<BOOL:${CODBAND_ODR}>:-flto>
  $<$<BOOL:${CODBAND_ODR}>:-ffat-lto-objects>
  $<$<BOOL:${CODBAND_DEVELOPER}>:-Werror>)
# Programs are linked from the machine code; only the target odr reads the intermediate code.
target_link_options(codband_build_flags INTERFACE $<$<BOOL:${CODBAND_ODR}>:-fno-lto>)
target_include_directories(codband_build_flags INTERFACE ${PROJECT_SOURCE_DIR})

include(${CMAKE_CURRENT_LIST_DIR}/layers.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/codband_packages.cmake)

# codband_closure(RESULT LAYERS...): these layers and all that they may use, lowest first.
function(codband_closure result)
  set(wanted ${ARGN})
  foreach(layer IN LISTS ARGN)
    if(NOT layer IN_LIST CODBAND_LAYERS)
      list(JOIN CODBAND_LAYERS ", " all)
      message(FATAL_ERROR "CODBAND_COMPONENTS: '${layer}' is not a layer; there are ${all}")
    endif()
  endforeach()
  # What a layer uses stands before it.
  set(downwards ${CODBAND_LAYERS})
  list(REVERSE downwards)
  foreach(layer IN LISTS downwards)
    if(layer IN_LIST wanted)
      list(APPEND wanted ${CODBAND_LAYER_${layer}})
    endif()
  endforeach()
  set(ordered)
  foreach(layer IN LISTS CODBAND_LAYERS)
    if(layer IN_LIST wanted)
      list(APPEND ordered ${layer})
    endif()
  endforeach()
  set(${result} ${ordered} PARENT_SCOPE)
endfunction()

# What is built: the layers of CODBAND_COMPONENTS with what they use, or all.
if(CODBAND_COMPONENTS)
  codband_closure(CODBAND_WANTED ${CODBAND_COMPONENTS})
else()
  set(CODBAND_WANTED ${CODBAND_LAYERS})
endif()

# codband_add_library(NAME DEPS <layers> [LINK <external targets>] PROFILE <profile> SOURCES <files>
#                     DESCRIPTION <text>)
# makes codband_<NAME> with the alias codband::<NAME>, and refuses an edge that the layers forbid.
# LINK: targets of cmake/codband_packages.cmake. A layer that is not wanted is left out.
# The profiles are in cmake/codband_profiles.cmake.
function(codband_add_library name)
  cmake_parse_arguments(ARG "" "DESCRIPTION;PROFILE" "DEPS;LINK;SOURCES" ${ARGN})
  if(NOT name IN_LIST CODBAND_LAYERS)
    message(FATAL_ERROR "codband_add_library(${name}): '${name}' is not a layer; see cmake/layers.cmake")
  endif()
  if(NOT ARG_DESCRIPTION)
    message(FATAL_ERROR "codband_add_library(${name}): say in DESCRIPTION what the folder is for")
  endif()
  if(NOT name IN_LIST CODBAND_WANTED)
    return()
  endif()
  codband_require(${ARG_LINK})
  add_library(codband_${name} STATIC ${ARG_SOURCES})
  add_library(codband::${name} ALIAS codband_${name})
  set_target_properties(codband_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON EXPORT_NAME ${name}
    CODBAND_DEPS "${ARG_DEPS}" CODBAND_LINK "${ARG_LINK}" CODBAND_DESCRIPTION "${ARG_DESCRIPTION}")
  target_compile_features(codband_${name} PUBLIC cxx_std_20)
  target_link_libraries(codband_${name} PRIVATE $<BUILD_INTERFACE:codband_build_flags>)
  target_include_directories(codband_${name} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  codband_use_profile(codband_${name} ${ARG_PROFILE})
  foreach(dep IN LISTS ARG_DEPS)
    if(NOT dep IN_LIST CODBAND_LAYER_${name})
      message(FATAL_ERROR "codband_add_library(${name}): layer '${name}' may not use '${dep}'")
    endif()
    target_link_libraries(codband_${name} PUBLIC codband::${dep})
  endforeach()
  if(ARG_LINK)
    target_link_libraries(codband_${name} PUBLIC ${ARG_LINK})
  endif()
endfunction()
