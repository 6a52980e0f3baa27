# cmake --install: the program, the libraries with their headers, a CMake package with one component
# for each layer, and one pkg-config module for each layer. A component brings the layers it uses and
# looks for their packages alone: find_package(codband COMPONENTS policy) needs no database.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(CODBAND_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/codband)

# The private libraries of a layer by name, for pkg-config: -lutf8proc.
set(CODBAND_PRIVATE_LIBS_base -lutf8proc)
set(CODBAND_PRIVATE_LIBS_data -lutf8proc -lstemmer)

# What a layer adds to the package configuration.
function(codband_config_of_layer layer result)
  get_target_property(links codband_${layer} CODBAND_LINK)
  set(text "if(\"${layer}\" IN_LIST _codband_wanted)\n")
  foreach(target IN LISTS links)
    get_property(find GLOBAL PROPERTY CODBAND_PACKAGE_FIND_${target})
    string(JOIN " " find ${find})
    string(APPEND text "  find_dependency(${find})\n")
  endforeach()
  string(APPEND text "  include(\${CMAKE_CURRENT_LIST_DIR}/codband-${layer}-targets.cmake)\n")
  string(APPEND text "  set(codband_${layer}_FOUND TRUE)\nendif()\n")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# A module says where it is relative to its own file: a prefix may be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
           BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig
           OUTPUT_VARIABLE CODBAND_PC_UP)

function(codband_write_pkg_config layer)
  get_target_property(deps codband_${layer} CODBAND_DEPS)
  get_target_property(links codband_${layer} CODBAND_LINK)
  set(modules)
  set(libs ${CODBAND_PRIVATE_LIBS_${layer}})
  foreach(dep IN LISTS deps)
    list(APPEND modules codband-${dep})
  endforeach()
  foreach(target IN LISTS links)
    get_property(name GLOBAL PROPERTY CODBAND_PACKAGE_PKG_CONFIG_${target})
    if(name MATCHES "^-l")
      list(APPEND libs ${name})
    elseif(name)
      list(APPEND modules ${name})
    endif()
  endforeach()
  string(JOIN " " CODBAND_PC_REQUIRES ${modules})
  string(JOIN " " CODBAND_PC_LIBS ${libs})
  set(CODBAND_PC_LAYER ${layer})
  get_target_property(CODBAND_PC_DESCRIPTION codband_${layer} CODBAND_DESCRIPTION)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/codband.pc.in
                 ${PROJECT_BINARY_DIR}/pkgconfig/codband-${layer}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/pkgconfig/codband-${layer}.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endfunction()

function(codband_install_layer layer)
  install(TARGETS codband_${layer} EXPORT codband-${layer}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  install(EXPORT codband-${layer} NAMESPACE codband:: FILE codband-${layer}-targets.cmake
          DESTINATION ${CODBAND_PACKAGE_DIR} COMPONENT development)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/codband/${layer}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/codband COMPONENT development
          FILES_MATCHING PATTERN *.h
          PATTERN test_*.h EXCLUDE PATTERN *_testing.h EXCLUDE
          PATTERN power_cuts.h EXCLUDE PATTERN *_fixture.h EXCLUDE)
  codband_write_pkg_config(${layer})
endfunction()

set(CODBAND_CONFIG_LAYERS)
set(CODBAND_INSTALLED_LAYERS)
foreach(layer IN LISTS CODBAND_LAYERS)
  if(TARGET codband_${layer})
    list(APPEND CODBAND_INSTALLED_LAYERS ${layer})
    codband_install_layer(${layer})
    codband_config_of_layer(${layer} text)
    string(APPEND CODBAND_CONFIG_LAYERS "${text}")
  endif()
endforeach()
# The layers again, each with all that it uses: what a component asks for.
set(CODBAND_CONFIG_NEEDS)
foreach(layer IN LISTS CODBAND_INSTALLED_LAYERS)
  codband_closure(needed ${layer})
  string(APPEND CODBAND_CONFIG_NEEDS "set(_codband_needs_${layer} ${needed})\n")
endforeach()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/codbandConfig.cmake.in
  ${PROJECT_BINARY_DIR}/codbandConfig.cmake
  INSTALL_DESTINATION ${CODBAND_PACKAGE_DIR} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/codbandConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/codbandConfig.cmake
              ${PROJECT_BINARY_DIR}/codbandConfigVersion.cmake
        DESTINATION ${CODBAND_PACKAGE_DIR} COMPONENT development)
if(TARGET codband)
  install(TARGETS codband RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
endif()
