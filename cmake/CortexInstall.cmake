# Two export sets, because the compiled archive fits only the LLVM that it was built with, and the headers fit any.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(cortex_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cortex)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/cortex DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
install(TARGETS cortex_headers cortex EXPORT cortexTargets)
install(TARGETS cortex_compiled EXPORT cortexCompiledTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT cortexTargets NAMESPACE cortex:: DESTINATION ${cortex_package_dir})
install(EXPORT cortexCompiledTargets NAMESPACE cortex:: DESTINATION ${cortex_package_dir})

if(CORTEX_LLVM)
  string(REGEX MATCH "^[0-9]+" cortex_llvm_major "${CORTEX_LLVM_FOUND_VERSION}")
endif()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/cortexConfig.cmake.in
                              ${CMAKE_CURRENT_BINARY_DIR}/cortexConfig.cmake INSTALL_DESTINATION ${cortex_package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/cortexConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/cortexConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/cortexConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/CortexLLVM.cmake ${PROJECT_SOURCE_DIR}/cmake/CortexZ3.cmake
        DESTINATION ${cortex_package_dir})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/cortex)
