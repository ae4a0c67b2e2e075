# SPDX-License-Identifier: Apache-2.0
option(PODSIM_WERROR "Warnings are errors" OFF)
option(PODSIM_SANITIZE "Address and undefined-behaviour sanitizers" OFF)

option(PODSIM_LIBRARY "Also libpodsim, for which every object is position-independent" ON)

add_library(pod_warnings INTERFACE)
target_compile_options(
  pod_warnings
  INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wdouble-promotion
            -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wcast-qual
            -Wcast-align -Wwrite-strings -Wundef -Wswitch-enum -Wvla -Wnull-dereference
            -Wimplicit-fallthrough -Wredundant-decls -Wdate-time -fno-common -ffp-contract=off
            "-fmacro-prefix-map=${CMAKE_CURRENT_SOURCE_DIR}/=")
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  target_compile_options(pod_warnings INTERFACE -Wduplicated-cond -Wduplicated-branches -Wlogical-op
                                                -Wjump-misses-init)
elseif(CMAKE_C_COMPILER_ID STREQUAL "Clang")
  target_compile_options(pod_warnings INTERFACE -Wcomma -Wunreachable-code
                                                -Wconditional-uninitialized -Wassign-enum)
endif()
if(PODSIM_LIBRARY)
  # Hidden names cost nothing to be position-independent; libpodsim shows those of src/api/libpodsim.map.
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  target_compile_options(pod_warnings INTERFACE -fvisibility=hidden)
endif()
if(PODSIM_WERROR)
  target_compile_options(pod_warnings INTERFACE -Werror)
endif()
if(PODSIM_SANITIZE)
  target_compile_options(pod_warnings INTERFACE -fsanitize=address,undefined
                                                -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(pod_warnings INTERFACE -fsanitize=address,undefined)
endif()

# madvise and dladdr1 are declared by these switches of the C library, which must come before any header.
set_source_files_properties(src/engine/pages.c PROPERTIES COMPILE_DEFINITIONS _DEFAULT_SOURCE)
set_source_files_properties(src/base/file.c PROPERTIES COMPILE_DEFINITIONS _GNU_SOURCE)

# MPICH's MPI_STATUSES_IGNORE is an address of nothing, which GCC takes for an array without room.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  set_source_files_properties(src/engine/par.c PROPERTIES COMPILE_OPTIONS -Wno-stringop-overflow)
endif()

# What base/banned.h poisons is poisoned in every source file of src/.
set(POD_BANNED "SHELL:-include \"${CMAKE_CURRENT_SOURCE_DIR}/src/base/banned.h\"")

# pod_add_module(NAME PUBLIC targets… PRIVATE targets…): one static library per folder of src/,
# with the rooms below it.
function(pod_add_module name)
  cmake_parse_arguments(arg "" "" "PUBLIC;PRIVATE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/src/${name}/*.c")
  list(REMOVE_ITEM sources "${CMAKE_CURRENT_SOURCE_DIR}/src/cli/main.c")
  if(sources)
    add_library(pod_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(pod_${name} PRIVATE ${arg_PRIVATE} pod_warnings)
    target_compile_definitions(pod_${name} PRIVATE _XOPEN_SOURCE=700)
    target_compile_options(pod_${name} PRIVATE ${POD_BANNED})
  else()
    add_library(pod_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(pod_${name} ${scope} "${CMAKE_CURRENT_SOURCE_DIR}/src")
  target_link_libraries(pod_${name} ${scope} ${arg_PUBLIC})
  add_library(pod::${name} ALIAS pod_${name})
endfunction()
