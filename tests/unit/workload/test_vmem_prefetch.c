/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "program/op_time.h"
#include "workload/build/vmem_prefetch.h"

/* One core with an array of 128, a peak of 1e14, an HBM of 1e12 and a VMEM of 1e13; nothing else takes time. */
static pod_chip_spec chip_make(void)
{
    pod_chip_spec chip = {.devices = 1,
                          .cores = 1,
                          .mxus_per_core = 1,
                          .mxu_dim = 128,
                          .mxu_eff_frac = 1,
                          .mxu_step_frac = 1,
                          .clock_hz = 1e18,
                          .vmem_bytes = 1 << 24,
                          .vmem_block_bytes = 1 << 22,
                          .vmem_bytes_per_s = 1e13,
                          .hbm_bytes_per_s = 1e12,
                          .hbm_eff_frac = 1};
    chip.peak_ops_per_s[POD_DTYPE_BF16] = 1e14;
    return chip;
}

enum { ROWS = 8, SIDE = 1024 };

/* 2 MiB of weights, 2.097 us of HBM, after a compute op. */
static pod_program program_make(double compute_us, pod_memory_kind kind)
{
    pod_program program;
    pod_program_init(&program, 0);
    pod_op compute = pod_op_make(POD_OP_COMPUTE, "compute", 0);
    compute.unit_ps = pod_time_from_s(compute_us * 1e-6);
    (void)pod_program_op(&program, &compute, NULL, 0);
    pod_op matmul = pod_op_make(POD_OP_MATMUL, "matmul", 0);
    matmul.m = ROWS;
    matmul.k = SIDE;
    matmul.n = SIDE;
    matmul.dtype = POD_DTYPE_BF16;
    matmul.touch[1] = pod_program_buffer(&program, "w", kind, true, POD_DTYPE_BF16, SIDE, SIDE);
    (void)pod_program_op(&program, &matmul, NULL, 0);
    return program;
}

static pod_vmem_prefetched prefetch(pod_program *program, const pod_chip_spec *chip)
{
    pod_programs programs = {.nstages = 1, .stages = program};
    pod_vmem_prefetched out;
    pod_error err = {0};
    cr_assert_eq(pod_vmem_prefetch(&programs, chip, &out, &err), POD_OK, "%s", err.text);
    return out;
}

static double time_s(const pod_program *program, const pod_chip_spec *chip, int op)
{
    pod_op_time time;
    cr_assert_eq(pod_op_time_find(chip, &program->ops[op], &time, NULL), POD_OK);
    return pod_time_to_s(time.time_ps);
}

/* All 2.097 us come beside 10 us of compute; what is left of the matmul passes at VMEM's rate or is A's and C's. */
Test(vmem_prefetch, weights_come_beside_the_op_before)
{
    const pod_chip_spec chip = chip_make();
    pod_program program = program_make(10, POD_MEMORY_WEIGHTS);
    const double before = time_s(&program, &chip, 0) + time_s(&program, &chip, 1);
    const pod_vmem_prefetched out = prefetch(&program, &chip);
    const double after = time_s(&program, &chip, 0) + time_s(&program, &chip, 1);
    cr_assert_eq(out.matmuls, 1);
    cr_assert_eq(program.ops[0].prefetch_bytes, 2 * SIDE * SIDE);
    cr_assert(program.ops[1].weights_in_vmem);
    cr_assert_float_eq(time_s(&program, &chip, 0), 10e-6, 1e-12);
    cr_assert_float_eq(pod_time_to_s(out.gain_ps), before - after, 1e-12);
    cr_assert_gt(before - after, 1e-6);
    pod_program_fini(&program);
}

/* Beside 1 us of compute the HBM is busy for 2.097: that op takes as long. */
Test(vmem_prefetch, an_op_that_is_too_short_is_lengthened)
{
    const pod_chip_spec chip = chip_make();
    pod_program program = program_make(1, POD_MEMORY_WEIGHTS);
    cr_assert_eq(prefetch(&program, &chip).matmuls, 1);
    cr_assert_float_eq(time_s(&program, &chip, 0), 2.0 * SIDE * SIDE / 1e12, 1e-12);
    pod_program_fini(&program);
}

Test(vmem_prefetch, what_the_step_makes_or_waits_for_or_has_no_room_for_is_not)
{
    pod_chip_spec chip = chip_make();
    pod_program made = program_make(10, POD_MEMORY_ACTIVATIONS);
    cr_assert_eq(prefetch(&made, &chip).matmuls, 0);
    pod_program_fini(&made);

    pod_program waits = program_make(10, POD_MEMORY_WEIGHTS);
    waits.ops[0].kind = POD_OP_HOST; /* no core op is before it any more */
    cr_assert_eq(prefetch(&waits, &chip).matmuls, 0);
    pod_program_fini(&waits);

    pod_program large = program_make(10, POD_MEMORY_WEIGHTS);
    chip.vmem_bytes = chip.vmem_block_bytes + 2 * SIDE * SIDE - 1;
    cr_assert_eq(prefetch(&large, &chip).matmuls, 0);
    chip.vmem_bytes++;
    cr_assert_eq(prefetch(&large, &chip).matmuls, 1);
    pod_program_fini(&large);
}

/* An op that waits for HBM itself leaves it no time. */
Test(vmem_prefetch, hbm_that_is_busy_is_left_alone)
{
    const pod_chip_spec chip = chip_make();
    pod_program program = program_make(10, POD_MEMORY_WEIGHTS);
    pod_op first = program.ops[1];
    first.ndeps = 0;
    program.ops[0] = first;
    cr_assert_eq(prefetch(&program, &chip).matmuls, 0);
    pod_program_fini(&program);
}
