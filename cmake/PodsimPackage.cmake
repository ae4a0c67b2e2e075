# SPDX-License-Identifier: Apache-2.0
# Manual pages from what --help-all prints, completions, pages and examples, and a Debian package of all that is installed:
# cpack --config build/release/CPackConfig.cmake.
find_program(GZIP_PROGRAM gzip REQUIRED)
set(doc "${CMAKE_INSTALL_DOCDIR}")

set(manuals)
file(READ src/cli/command_list.h commands)
string(REGEX MATCHALL "\n    X\\([a-z]+" commands "${commands}")
list(TRANSFORM commands REPLACE "\n    X\\(" "")
foreach(command "" ${commands})
  string(REGEX REPLACE "(.+)" "-\\1" suffix "${command}")
  set(manual "${CMAKE_CURRENT_BINARY_DIR}/man/podsim${suffix}.1.gz")
  add_custom_command(
    OUTPUT "${manual}"
    COMMAND "$<TARGET_FILE:podsim>" help --man ${command} | "${GZIP_PROGRAM}" -9n > "${manual}"
    DEPENDS podsim
    VERBATIM)
  list(APPEND manuals "${manual}")
endforeach()
file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/man")
add_custom_target(podsim_pages ALL DEPENDS ${manuals})
install(FILES ${manuals} DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")

install(FILES completions/podsim.bash DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME podsim)
install(FILES completions/_podsim DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions")
install(FILES README.md DESTINATION "${doc}")
install(DIRECTORY docs DESTINATION "${doc}" FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png")
install(FILES python/pyproject.toml DESTINATION share/podsim/python)
install(FILES python/backend/wheel_of_sources.py DESTINATION share/podsim/python/backend)
file(GLOB python_sources CONFIGURE_DEPENDS python/podsim/*.py python/podsim/py.typed)
install(FILES ${python_sources} DESTINATION share/podsim/python/podsim)

# What Debian asks of every package. Its changelog has one entry: this version.
file(CONFIGURE OUTPUT debian/copyright CONTENT "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: podsim

Files: *
Copyright: 2026 The podsim authors
License: Apache-2.0

License: Apache-2.0
 On Debian systems the license is in /usr/share/common-licenses/Apache-2.0.
" @ONLY)
file(CONFIGURE OUTPUT debian/changelog CONTENT "podsim (${PROJECT_VERSION}) stable; urgency=low

  * Version ${PROJECT_VERSION}.

 -- The podsim authors <podsim@packages.debian.org>  Thu, 01 Jan 2026 00:00:00 +0000
" @ONLY)
execute_process(COMMAND "${GZIP_PROGRAM}" -9nf "${CMAKE_CURRENT_BINARY_DIR}/debian/changelog" COMMAND_ERROR_IS_FATAL ANY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/debian/copyright" "${CMAKE_CURRENT_BINARY_DIR}/debian/changelog.gz"
        DESTINATION "${doc}")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The podsim authors <podsim@packages.debian.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "predicts what jobs cost on TPU pod slices")
set(CPACK_PACKAGE_DESCRIPTION
    "podsim says what a collective, a training step or a compiled JAX program\ncosts on a TPU pod slice, without the pod. The package has the program, a\nlibrary with its header, tables, examples, manual pages and completions.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
file(CONFIGURE OUTPUT debian/shlibs CONTENT "libpodsim 0 podsim (>= ${PROJECT_VERSION})\n" @ONLY)
file(CONFIGURE OUTPUT debian/triggers CONTENT "activate-noawait ldconfig\n" @ONLY)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_BINARY_DIR}/debian/shlibs"
                                       "${CMAKE_CURRENT_BINARY_DIR}/debian/triggers")
set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "gnuplot-nox, python3")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE)
include(CPack)
