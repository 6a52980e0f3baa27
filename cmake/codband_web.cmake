# The dashboard: web/ bundled by esbuild and written as a C++ source, which CODBAND_WEB_BUNDLE names.
# Packages of npm are installed below the build tree, as web/package-lock.json pins them. Without
# Node.js and npm a page stands in that says so; CODBAND_WEB=OFF chooses it.
option(CODBAND_WEB "Build the dashboard, where Node.js and npm are found" ${PROJECT_IS_TOP_LEVEL})
find_program(CODBAND_NODE node)
find_program(CODBAND_NPM npm)
set(CODBAND_WEB_BUNDLE ${PROJECT_SOURCE_DIR}/codband/server/api/web_bundle_none.cc)
if(CODBAND_WEB AND CODBAND_NODE AND CODBAND_NPM)
  set(CODBAND_WEB_SOURCE ${PROJECT_SOURCE_DIR}/web)
  set(CODBAND_WEB_BUILD ${PROJECT_BINARY_DIR}/web)
  file(GLOB CODBAND_WEB_FILES CONFIGURE_DEPENDS ${CODBAND_WEB_SOURCE}/src/*)
  add_custom_command(
    OUTPUT ${CODBAND_WEB_BUILD}/packages.stamp
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CODBAND_WEB_BUILD}
    COMMAND ${CMAKE_COMMAND} -E copy ${CODBAND_WEB_SOURCE}/package.json
            ${CODBAND_WEB_SOURCE}/package-lock.json ${CODBAND_WEB_BUILD}
    COMMAND ${CODBAND_NPM} ci --prefix ${CODBAND_WEB_BUILD} --omit=dev --no-audit --no-fund
            --loglevel=error
    COMMAND ${CMAKE_COMMAND} -E touch ${CODBAND_WEB_BUILD}/packages.stamp
    DEPENDS ${CODBAND_WEB_SOURCE}/package.json ${CODBAND_WEB_SOURCE}/package-lock.json
    COMMENT "Installing the dashboard's packages" VERBATIM)
  add_custom_command(
    OUTPUT ${CODBAND_WEB_BUILD}/web_bundle.cc
    COMMAND ${CODBAND_NODE} ${CODBAND_WEB_SOURCE}/build.mjs ${CODBAND_WEB_BUILD}
    DEPENDS ${CODBAND_WEB_BUILD}/packages.stamp ${CODBAND_WEB_SOURCE}/build.mjs
            ${CODBAND_WEB_FILES}
    COMMENT "Bundling the dashboard" VERBATIM)
  set(CODBAND_WEB_BUNDLE ${CODBAND_WEB_BUILD}/web_bundle.cc)
elseif(CODBAND_WEB)
  message(STATUS "The dashboard is left out: node or npm is missing")
endif()
