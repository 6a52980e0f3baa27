# The libraries of others that the layers link: the one list of how each is found by CMake, and how
# pkg-config and Debian call it. A layer names the target in LINK; only those of wanted layers are
# looked for.
#
# codband_package(TARGET FIND <arguments of find_package> [PKG_CONFIG <module>])
#   PKG_CONFIG  "zlib", or "-lname" where there is no module; nothing for headers in the usual place
function(codband_package target)
  cmake_parse_arguments(ARG "" "PKG_CONFIG" "FIND" ${ARGN})
  set_property(GLOBAL PROPERTY CODBAND_PACKAGE_FIND_${target} ${ARG_FIND})
  set_property(GLOBAL PROPERTY CODBAND_PACKAGE_PKG_CONFIG_${target} ${ARG_PKG_CONFIG})
endfunction()

codband_package(Boost::headers FIND Boost 1.74)
codband_package(CLI11::CLI11 FIND CLI11 2.1)
codband_package(Eigen3::Eigen FIND Eigen3 3.4 PKG_CONFIG eigen3)
codband_package(OpenSSL::Crypto FIND OpenSSL 3 PKG_CONFIG libcrypto)
codband_package(OpenSSL::SSL FIND OpenSSL 3 PKG_CONFIG libssl)
codband_package(PostgreSQL::PostgreSQL FIND PostgreSQL PKG_CONFIG libpq)
codband_package(RocksDB::rocksdb-shared FIND RocksDB PKG_CONFIG -lrocksdb)
codband_package(Threads::Threads FIND Threads PKG_CONFIG -lpthread)
codband_package(ZLIB::ZLIB FIND ZLIB PKG_CONFIG zlib)
codband_package(fmt::fmt FIND fmt 9 PKG_CONFIG fmt)
codband_package(nlohmann_json::nlohmann_json FIND nlohmann_json 3.11)
codband_package(prometheus-cpp::core FIND prometheus-cpp CONFIG COMPONENTS core PKG_CONFIG prometheus-cpp-core)
codband_package(simdjson::simdjson FIND simdjson 3 PKG_CONFIG -lsimdjson)
codband_package(tomlplusplus::tomlplusplus FIND tomlplusplus 3)

# codband_require(TARGETS...) finds what is not found yet.
function(codband_require)
  foreach(target IN LISTS ARGN)
    if(TARGET ${target})
      continue()
    endif()
    get_property(find GLOBAL PROPERTY CODBAND_PACKAGE_FIND_${target})
    if(NOT find)
      message(FATAL_ERROR "codband_require(${target}): it is not in cmake/codband_packages.cmake")
    endif()
    find_package(${find} REQUIRED GLOBAL)
  endforeach()
endfunction()
