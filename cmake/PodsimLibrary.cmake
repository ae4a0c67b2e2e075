# SPDX-License-Identifier: Apache-2.0
# libpodsim: a shared library of all modules, its header, and what pkg-config and find_package(podsim) read.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(map "${PROJECT_SOURCE_DIR}/src/api/libpodsim.map")
file(GLOB api_sources CONFIGURE_DEPENDS src/api/*.c)
add_library(podsim_library SHARED ${api_sources})
add_library(podsim::podsim ALIAS podsim_library)
target_link_libraries(podsim_library PRIVATE pod_cli MPI::MPI_C m pod_warnings)
target_compile_definitions(podsim_library PRIVATE _XOPEN_SOURCE=700 PODSIM_VERSION="${PROJECT_VERSION}")
target_compile_options(podsim_library PRIVATE ${POD_BANNED})
target_link_options(podsim_library PRIVATE "LINKER:--version-script=${map}" LINKER:--no-undefined)
set_target_properties(
  podsim_library
  PROPERTIES OUTPUT_NAME podsim EXPORT_NAME podsim VERSION ${PROJECT_VERSION} SOVERSION 0 LINK_DEPENDS "${map}"
             LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib" UNITY_BUILD OFF
             PUBLIC_HEADER "${PROJECT_SOURCE_DIR}/src/api/podsim.h")
target_include_directories(podsim_library INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
                                                    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src/api>")

install(TARGETS podsim_library EXPORT podsim PUBLIC_HEADER)
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/podsim")
install(EXPORT podsim FILE podsim-config.cmake NAMESPACE podsim:: DESTINATION "${package}")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/podsim-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/podsim-config-version.cmake" DESTINATION "${package}")
# The prefix is where the file lies, so that the folder can be moved.
file(RELATIVE_PATH up "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
file(CONFIGURE OUTPUT podsim.pc @ONLY CONTENT [[
prefix=${pcfiledir}/@up@
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: podsim
Description: @PROJECT_DESCRIPTION@
Version: @PROJECT_VERSION@
Libs: -L${libdir} -lpodsim
Cflags: -I${includedir}
]])
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/podsim.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
