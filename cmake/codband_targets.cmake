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

# codband_add_library(NAME DEPS <layers> [LINK <external targets>] PROFILE <profile> SOURCES <files>
#                     DESCRIPTION <text>)
# makes codband_<NAME> with the alias codband::<NAME>, and refuses an edge that the layers forbid.
# The profiles are in cmake/codband_profiles.cmake.
function(codband_add_library name)
  cmake_parse_arguments(ARG "" "DESCRIPTION;PROFILE" "DEPS;LINK;SOURCES" ${ARGN})
  if(NOT name IN_LIST CODBAND_LAYERS)
    message(FATAL_ERROR "codband_add_library(${name}): '${name}' is not a layer; see cmake/layers.cmake")
  endif()
  if(NOT ARG_DESCRIPTION)
    message(FATAL_ERROR "codband_add_library(${name}): say in DESCRIPTION what the folder is for")
  endif()
  add_library(codband_${name} STATIC ${ARG_SOURCES})
  add_library(codband::${name} ALIAS codband_${name})
  set_target_properties(codband_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(codband_${name} PRIVATE codband_build_flags)
  target_include_directories(codband_${name} INTERFACE ${PROJECT_SOURCE_DIR})
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
