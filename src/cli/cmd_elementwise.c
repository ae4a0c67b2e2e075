/* SPDX-License-Identifier: Apache-2.0 */
/* podsim elementwise: arrays streamed through the vector unit of one chip. */
#include "base/units.h"
#include "chip/hbm.h"
#include "cli/command_list.h"
#include "cli/options.h"
#include "cli/tables.h"

#include <inttypes.h>

typedef struct elementwise_row {
    const char *chip;
    const char *op;
    const char *dtype;
    int64_t bytes;
    pod_time_ps time_ps;
    double rate_GBps;
    double peak_frac;
    double intensity;
    const char *bound;
} elementwise_row;

#define AT(field) POD_FIELD(elementwise_row, field)
/* clang-format off */
static const pod_emit_column columns[] = {
    {.name = "chip", AT(chip)},
    {.name = "op", AT(op)},
    {.name = "dtype", .title = "type", AT(dtype)},
    {.name = "bytes", .title = "size", .unit = "B", AT(bytes)},
    {.name = "time_us", .title = "time", .unit = "us", .decimals = 2, POD_TIME_FIELD(elementwise_row, time_ps, US)},
    {.name = "GBps", .title = "rate", .unit = "GB/s", .decimals = 2, AT(rate_GBps)},
    {.name = "peak_frac", .title = "of peak", .decimals = 4, AT(peak_frac)},
    {.name = "intensity_op_per_byte", .title = "intensity", .unit = "op/B", .decimals = 3, AT(intensity)},
    {.name = "bound", AT(bound)},
};
/* clang-format on */
#undef AT
enum { NCOLUMNS = sizeof columns / sizeof columns[0] };

static const char about[] =
    "bytes = size of one array; scale and relu read one and write one, add and multiply read two, "
    "axpy\n"
    "(a x + y) reads two and does two operations an element. time = launch + the larger of "
    "operations over\n"
    "the rate of the vector unit and bytes read and written over the HBM rate; GBps counts those "
    "bytes;\n"
    "peak_frac = of the nominal HBM rate; bound = what takes longest: hbm, vpu or launch.\n";

/* What an operation reads and does for each element that it writes. */
typedef struct kind {
    const char *name;
    int reads;
    int ops;
} kind;

static const char op_words[] = "scale|relu|add|multiply|axpy";
static const kind kinds[] = {
    {"scale",    1, 1},
    {"relu",     1, 1},
    {"add",      2, 1},
    {"multiply", 2, 1},
    {"axpy",     2, 2}
};

typedef struct elementwise_options {
    const char *chip;
    int32_t op;
    pod_dtype dtype;
    pod_cli_sizes sizes;
} elementwise_options;

static pod_status check_size(const pod_chip_spec *chip, const elementwise_options *own,
                             int64_t bytes, pod_error *err)
{
    const int size = pod_dtype_size(own->dtype);
    const int arrays = kinds[own->op].reads + 1;
    if (bytes % size != 0) {
        return pod_fail(err, POD_E_INVALID,
                        "%" PRId64 " bytes are no whole number of %s, which have %d", bytes,
                        pod_dtype_name(own->dtype), size);
    }
    return bytes <= chip->hbm_usable_bytes / arrays
               ? POD_OK
               : pod_fail(err, POD_E_NOFIT,
                          "%d arrays of %" PRId64 " bytes are more than the %" PRId64
                          " bytes that programs on %s may use; give at most %" PRId64,
                          arrays, bytes, chip->hbm_usable_bytes, chip->name,
                          chip->hbm_usable_bytes / arrays);
}

static pod_status add_row(pod_cli *cli, pod_emit *emit, const pod_chip_spec *chip,
                          const elementwise_options *own, int64_t bytes, pod_error *err)
{
    const kind *op = &kinds[own->op];
    const int64_t moved = (op->reads + 1) * bytes;
    const int64_t ops = op->ops * (bytes / pod_dtype_size(own->dtype));
    pod_vector_time time;
    POD_TRY(check_size(chip, own, bytes, err));
    POD_TRY(pod_vector_time_get(chip, ops, moved, &time, err));
    const pod_time_ps total_ps = time.time_ps + chip->copy_launch_ps;
    const char *longer = time.vpu_ps > time.hbm_ps ? "vpu" : "hbm";
    const double rate = total_ps > 0 ? (double)moved / pod_time_to_s(total_ps) : 0;
    const elementwise_row row = {
        .chip = chip->name,
        .op = op->name,
        .dtype = pod_dtype_name(own->dtype),
        .bytes = bytes,
        .time_ps = total_ps,
        .rate_GBps = rate / 1e9,
        .peak_frac = rate / chip->hbm_bytes_per_s,
        .intensity = moved > 0 ? (double)ops / (double)moved : 0,
        .bound = chip->copy_launch_ps > time.time_ps ? "launch" : longer,
    };
    pod_cli_explain(cli,
                    "time = launch %g us + max(%" PRId64 " operations / (%g T/s x %g), %" PRId64
                    " bytes / (%g GB/s x %g)) = %.9g us",
                    pod_time_to_us(chip->copy_launch_ps), ops, chip->vpu_ops_per_s / 1e12,
                    chip->vpu_eff_frac, moved, chip->hbm_bytes_per_s / 1e9, chip->hbm_eff_frac,
                    pod_time_to_us(total_ps));
    pod_emit_fields(emit, &row, NCOLUMNS);
    return POD_OK;
}

static pod_status run(pod_cli *cli, const elementwise_options *own, pod_error *err)
{
    static const char *const figures[] = {"hbm_eff_frac", "vpu_eff_frac", "copy_launch_us"};
    pod_chip_spec chip;
    pod_emit *emit = NULL;
    POD_TRY(pod_cli_chip_load(cli, own->chip, &chip, err));
    POD_TRY(pod_emit_new(cli->common.format, "elementwise", columns, NCOLUMNS, &emit, err));
    pod_cli_explain_origins(cli, &chip, figures, (int)(sizeof figures / sizeof figures[0]));
    pod_status st = POD_OK;
    for (int i = 0; i < own->sizes.count && st == POD_OK; i++) {
        st = add_row(cli, emit, &chip, own, own->sizes.bytes[i], err);
    }
    POD_THEN(st, pod_cli_finish(cli, emit, err));
    pod_emit_free(emit);
    return st;
}

#define FIELD(field) POD_CLI_FIELD(elementwise_options, field)
/* clang-format off */
static const pod_cli_option options[] = {
    {"chip", 0, POD_CLI_TEXT, FIELD(chip), "CHIP",
     "generation: v2, v3, v4, v5e, v5p, v6e or tpu7x", .example = "v5e", .matters = true},
    {"op", 0, POD_CLI_CHOICE, FIELD(op), "OP", "scale, relu, add, multiply or axpy (a x + y)",
     .words = op_words, .example = "add", .matters = true},
    {"bytes", 0, POD_CLI_SIZES, FIELD(sizes), "LIST",
     "size of one array: 1KiB,64MiB or 1KiB:1GiB:4 (from:to:factor)", .example = "64MiB", .matters = true},
    {"dtype", 0, POD_CLI_READ, FIELD(dtype), "TYPE",
     "of the elements: bf16, f32, int8 or fp8 (default: bf16)", .read = pod_cli_dtype_read, .matters = true},
};
/* clang-format on */
#undef FIELD

pod_status pod_cmd_elementwise(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    elementwise_options own = {.dtype = POD_DTYPE_BF16};
    const pod_cli_usage usage = {
        .synopsis = "--chip CHIP --op OP --bytes LIST",
        .examples = "--chip v5e --op add --bytes 64MiB\n"
                    "--chip tpu7x --op axpy --bytes 1KiB:1GiB:4 --dtype f32\n"
                    "--chip v5p --op relu --bytes 1GiB --explain\n",
        .about = about,
        .groups = POD_CLI_RATES | POD_CLI_EXPLAIN,
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .fields = &own,
    };
    POD_TRY(pod_cli_parse(cli, &usage, argc, argv, err));
    return cli->help ? POD_OK : run(cli, &own, err);
}
