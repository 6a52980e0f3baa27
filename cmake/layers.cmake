# The layers of codband/: one line a folder, what it may use, lowest first. A folder can only use
# folders above it in this list, so the graph has no cycles. codband_add_library refuses to link an
# edge that is missing here, cmake/check_layers.cmake refuses to include one.
#
# codband_layer(NAME [USES <layers>] [NO_JSON] [NAMESPACE <name>])
#   NO_JSON    no JSON library may be included: the folder passes typed structs
#   NAMESPACE  codband::NAME unless given
function(codband_layer name)
  cmake_parse_arguments(ARG "NO_JSON" "NAMESPACE" "USES" ${ARGN})
  if(NOT ARG_NAMESPACE)
    set(ARG_NAMESPACE codband::${name})
  endif()
  foreach(used IN LISTS ARG_USES)
    if(NOT used IN_LIST CODBAND_LAYERS)
      message(FATAL_ERROR "codband_layer(${name}): '${used}' is not a layer below '${name}'")
    endif()
  endforeach()
  set(CODBAND_LAYERS ${CODBAND_LAYERS} ${name} PARENT_SCOPE)
  set(CODBAND_LAYER_${name} ${ARG_USES} PARENT_SCOPE)
  set(CODBAND_LAYER_${name}_NO_JSON ${ARG_NO_JSON} PARENT_SCOPE)
  set(CODBAND_LAYER_${name}_NAMESPACE ${ARG_NAMESPACE} PARENT_SCOPE)
endfunction()

set(CODBAND_LAYERS)
codband_layer(base NO_JSON NAMESPACE codband)
codband_layer(linalg NO_JSON USES base)
codband_layer(policy NO_JSON NAMESPACE codband USES base linalg)
codband_layer(features NO_JSON USES base)
codband_layer(sim NO_JSON USES base linalg policy)
codband_layer(data USES base)
codband_layer(replay USES base linalg policy sim data)
codband_layer(eval USES base linalg features policy)
codband_layer(report USES base)
codband_layer(experiments USES base linalg policy sim data replay eval report)
codband_layer(store NO_JSON USES base)
codband_layer(engine NO_JSON USES base linalg features policy store)
codband_layer(cluster NO_JSON USES base store)
codband_layer(server USES base linalg features policy eval store engine cluster)
codband_layer(cli USES base linalg policy sim data replay eval report experiments store engine
                       cluster server)
