# The One Definition Rule: two types with one name in different files are undefined behaviour that
# neither the compiler nor an ordinary linker sees. GCC sees it when it merges the types of all
# objects for link-time optimisation.
#
# With CODBAND_ODR every object carries GCC's intermediate code beside its machine code, at little
# extra cost: one compilation serves the tests and this check. The preset asan-ubsan is the one that
# does so: the other builds have function multiversioning (linalg/vector_clones.h), whose dispatchers
# GCC 12 takes for violations. The link below merges the types and generates no code. It takes the
# objects of static libraries, not the archives, of which a linker drops members that nobody calls.
# Every program brings a main, hence muldefs.
set(CODBAND_ODR_LINK ${CMAKE_CXX_COMPILER} -flto -Wodr -Wlto-type-mismatch -Werror
    -r -flinker-output=rel -fuse-ld=bfd -Wl,-z,muldefs)

function(codband_collect_objects directory result)
  get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(children DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  set(objects)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type MATCHES "STATIC_LIBRARY|EXECUTABLE")
      list(APPEND objects $<TARGET_OBJECTS:${target}>)
    endif()
  endforeach()
  foreach(child IN LISTS children)
    codband_collect_objects(${child} more)
    list(APPEND objects ${more})
  endforeach()
  set(${result} ${objects} PARENT_SCOPE)
endfunction()

# codband_add_odr_check() makes the target odr: all libraries and programs of the build, tests
# included, in one link. Call it after every other target is made.
function(codband_add_odr_check)
  codband_collect_objects(${PROJECT_SOURCE_DIR} objects)
  set(list ${PROJECT_BINARY_DIR}/odr_objects.txt)
  set(checked ${PROJECT_BINARY_DIR}/odr.checked)
  file(GENERATE OUTPUT ${list} CONTENT "$<JOIN:${objects},\n>\n")
  add_custom_command(OUTPUT ${checked}
    COMMAND ${CODBAND_ODR_LINK} @${list} -o ${PROJECT_BINARY_DIR}/odr.o
    COMMAND ${CMAKE_COMMAND} -E rm ${PROJECT_BINARY_DIR}/odr.o
    COMMAND ${CMAKE_COMMAND} -E touch ${checked}
    DEPENDS ${objects} ${list}
    COMMENT "Checking the One Definition Rule over all objects"
    VERBATIM)
  add_custom_target(odr DEPENDS ${checked})
endfunction()

# codband_add_odr_violation(NAME SOURCES <files>) is the test Odr.<NAME>: the same flags and the same
# link refuse files that break the rule.
function(codband_add_odr_violation name)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  add_library(odr_${name} OBJECT ${ARG_SOURCES})
  target_link_libraries(odr_${name} PRIVATE codband_build_flags)
  set_target_properties(odr_${name} PROPERTIES UNITY_BUILD OFF)
  add_test(NAME Odr.${name}
    COMMAND ${CODBAND_ODR_LINK} $<TARGET_OBJECTS:odr_${name}>
            -o ${CMAKE_CURRENT_BINARY_DIR}/odr_${name}.o
    COMMAND_EXPAND_LISTS)
  set_tests_properties(Odr.${name} PROPERTIES LABELS fast
    PASS_REGULAR_EXPRESSION "error: [^\n]*(Werror=odr|Werror=lto-type-mismatch)")
endfunction()
