# What is installed besides the tool and the preload library: the runtime beside the latter, and the public C++ API with a
# CMake package (find_package(heddle), target heddle::trace) and a pkg-config file.
include(CMakePackageConfigHelpers)

install(TARGETS heddle_runtime LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/heddle)

set_target_properties(heddle_trace PROPERTIES EXPORT_NAME trace)
target_include_directories(heddle_trace INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS heddle_trace EXPORT heddleTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${CMAKE_SOURCE_DIR}/include/heddle/measure.h ${CMAKE_SOURCE_DIR}/include/heddle/trace.h ${CMAKE_BINARY_DIR}/generated/heddle/trace_generated.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/heddle)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/heddle)
install(EXPORT heddleTargets NAMESPACE heddle:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/heddleConfig.cmake.in ${CMAKE_BINARY_DIR}/heddleConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/heddleConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/heddleConfig.cmake ${CMAKE_BINARY_DIR}/heddleConfigVersion.cmake
        DESTINATION ${package_dir})

# Relative to the file itself, so that --prefix at install time is followed.
file(RELATIVE_PATH HEDDLE_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${CMAKE_CURRENT_LIST_DIR}/heddle.pc.in ${CMAKE_BINARY_DIR}/heddle.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/heddle.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
