# SPDX-License-Identifier: Apache-2.0

if(PODSIM_MPI)
  set(MPIEXEC_FOR_TESTS "${MPIEXEC_EXECUTABLE}")
else()
  find_program(MPIEXEC_FOR_TESTS NAMES mpirun mpiexec REQUIRED)
endif()

# What every launched test runs with: root may launch, more ranks than cores may run, idle ranks give
# way, and shared memory works without ptrace rights (containers). Open MPI leaks by itself. It doesn't look for
# networks, and doesn't wait a second for ranks that ended on an error: a launch takes half as long.
set(POD_MPI_ENVIRONMENT
    OMPI_ALLOW_RUN_AS_ROOT=1
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1
    OMPI_MCA_hwloc_base_binding_policy=none
    OMPI_MCA_mpi_yield_when_idle=1
    OMPI_MCA_btl_vader_single_copy_mechanism=none
    OMPI_MCA_pml=ob1
    OMPI_MCA_odls_base_sigkill_timeout=0
    OPENBLAS_NUM_THREADS=1
    ASAN_OPTIONS=detect_leaks=0)

# What a workflow of CMakePresets.json builds for its tests.
add_custom_target(unit_tests)
add_custom_target(launched_tests)

# Tests that take long have a COST, so that ctest begins with them also in a new build folder, and no core idles at the
# end while the other runs the last of them.

# How many of ctest's slots a test takes that runs on up to RANKS ranks. Launches mostly wait, and what tests compute
# is small, so that a test on every core leaves half of them idle: a slot is for four ranks.
function(pod_slots ranks variable)
  math(EXPR slots "(${ranks} + 3) / 4")
  set(${variable} ${slots} PARENT_SCOPE)
endfunction()

# For programs that include tests/failing.h.
set(POD_WRAP_MALLOC -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc)

# pod_add_unit_test(MODULE SOURCE LINK…): a Criterion program tests/unit/MODULE/test_FILE.c becomes
# the test unit.MODULE.FILE. LeakSanitizer can't fail a Criterion test (its processes end without
# passing the exit code on), so under PODSIM_SANITIZE a wrapper looks for the report instead. One that includes
# tests/unit/sample.h becomes two tests: a sample of its cases, and all. One that includes tests/unit/out_of_memory.h has
# memory that runs out. CMake sees either when it configures.
function(pod_add_unit_test module source)
  get_filename_component(file "${source}" NAME_WE)
  string(REGEX REPLACE "^test_" "" file "${file}")
  set(target "unit_${module}_${file}")
  set(name "unit.${module}.${file}")
  add_executable(${target} "${source}")
  target_link_libraries(${target} PRIVATE pod_${module} ${ARGN} PkgConfig::CRITERION m pod_warnings)
  target_compile_definitions(${target} PRIVATE _XOPEN_SOURCE=700
                                               POD_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_dependencies(unit_tests ${target})
  set(wrapper)
  if(PODSIM_SANITIZE)
    set(wrapper bash "${PROJECT_SOURCE_DIR}/tests/unit/fail_on_leaks")
  endif()
  add_test(NAME "${name}" COMMAND ${wrapper} $<TARGET_FILE:${target}>)
  set(environment OPENBLAS_NUM_THREADS=1 "PODSIM_DATA=${PROJECT_SOURCE_DIR}")
  set_tests_properties("${name}" PROPERTIES LABELS "unit" PROCESSORS 1 ENVIRONMENT "${environment}")
  file(STRINGS "${source}" failing REGEX "^#include \"../out_of_memory\\.h\"$")
  if(failing)
    target_link_options(${target} PRIVATE ${POD_WRAP_MALLOC})
  endif()
  file(STRINGS "${source}" sampled REGEX "^#include \"../sample\\.h\"$")
  if(sampled)
    set_tests_properties("${name}" PROPERTIES COST 10)
    add_test(NAME "${name}_all" COMMAND ${wrapper} $<TARGET_FILE:${target}>)
    set_tests_properties("${name}_all" PROPERTIES LABELS "unit;slow" PROCESSORS 1 COST 10 TIMEOUT ${POD_SLOW_S}
                                                  ENVIRONMENT "${environment};PODSIM_TEST_SAMPLE=all")
  endif()
endfunction()

# pod_add_mpi_test(NAME subject SOURCE file RANKS 1 2 4 [LINKS target…] [ARGS arg…] [SLOW]): a plain program
# (tests/mpi/mpi_check.h) run at each number of ranks. In tests/mpi/MODULE it becomes mpi.MODULE.subject.npN. Every
# launch costs about half a second, so batch cases per program.
function(pod_add_mpi_test)
  cmake_parse_arguments(arg "SLOW" "NAME;SOURCE" "RANKS;LINKS;ARGS" ${ARGN})
  get_filename_component(module "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  set(target "mpi_${module}_${arg_NAME}")
  add_executable(${target} "${arg_SOURCE}")
  target_link_libraries(${target} PRIVATE ${arg_LINKS} MPI::MPI_C m pod_warnings)
  add_dependencies(launched_tests ${target})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests/mpi")
  target_compile_definitions(${target} PRIVATE _XOPEN_SOURCE=700)
  set(labels mpi)
  set(timeout)
  if(arg_SLOW)
    list(APPEND labels slow)
    set(timeout TIMEOUT ${POD_SLOW_S})
  endif()
  foreach(ranks ${arg_RANKS})
    set(name "mpi.${module}.${arg_NAME}.np${ranks}")
    add_test(NAME "${name}" COMMAND "${MPIEXEC_FOR_TESTS}" -n ${ranks} $<TARGET_FILE:${target}>
                                    ${arg_ARGS})
    pod_slots(${ranks} slots)
    set_tests_properties(
      "${name}" PROPERTIES LABELS "${labels}" ${timeout} PROCESSORS ${slots} ENVIRONMENT
                           "${POD_MPI_ENVIRONMENT};PODSIM_DATA=${PROJECT_SOURCE_DIR}")
  endforeach()
endfunction()
