# The generated trace schema: <build>/generated/heddle/trace_generated.h
set(HEDDLE_TRACE_SCHEMA ${CMAKE_CURRENT_SOURCE_DIR}/trace/trace.fbs)
set(HEDDLE_TRACE_GENERATED ${CMAKE_BINARY_DIR}/generated/heddle/trace_generated.h)
add_custom_command(
  OUTPUT ${HEDDLE_TRACE_GENERATED}
  COMMAND ${FLATC} --cpp --scoped-enums --gen-object-api -o ${CMAKE_BINARY_DIR}/generated/heddle ${HEDDLE_TRACE_SCHEMA}
  DEPENDS ${HEDDLE_TRACE_SCHEMA}
  COMMENT "flatc trace.fbs")
add_custom_target(heddle_schema DEPENDS ${HEDDLE_TRACE_GENERATED})
