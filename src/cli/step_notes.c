/* SPDX-License-Identifier: Apache-2.0 */
/* What a step's table says below its row, and the files of its collectives and its memory. */
#include "base/text.h"
#include "cli/step.h"

#include "base/units.h"
#include "report/breakdown.h"
#include "report/op_lines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOP_COLLECTIVES = 5 };

/* ---- collectives ---- */

typedef struct collective_row {
    pod_collective_line line;
    double time_us;
    double exposed_us;
} collective_row;

/* clang-format off */
static const pod_emit_column collective_columns[] = {
    {.name = "name", POD_FIELD(collective_row, line.name)},
    {.name = "op", POD_FIELD(collective_row, line.op)},
    {.name = "mesh_axis", .title = "over", POD_FIELD(collective_row, line.axes)},
    {.name = "group", POD_FIELD(collective_row, line.group)},
    {.name = "bytes", .title = "size", .unit = "B", POD_FIELD(collective_row, line.bytes)},
    {.name = "count", POD_FIELD(collective_row, line.count)},
    {.name = "time_us", .title = "time", .unit = "us", POD_FIELD(collective_row, time_us)},
    {.name = "exposed_us", .title = "exposed", .unit = "us", POD_FIELD(collective_row, exposed_us)},
};
/* clang-format on */
enum { COLLECTIVE_COLUMNS = sizeof collective_columns / sizeof *collective_columns };

static collective_row collective_row_of(const pod_collective_line *line)
{
    return (collective_row){*line, line->time_s * 1e6, line->exposed_s * 1e6};
}

/* ---- tables ---- */

typedef struct mesh_row {
    const char *axis;
    pod_mesh_axis_info info;
} mesh_row;

static void note_mesh(pod_findings *findings, const pod_mesh *mesh)
{
    /* clang-format off */
    static const pod_emit_column columns[] = {
        {.name = "axis", POD_FIELD(mesh_row, axis)},
        {.name = "size", POD_FIELD(mesh_row, info.size)},
        {.name = "physical", POD_FIELD(mesh_row, info.physical)},
        {.name = "closed", POD_FIELD(mesh_row, info.closed)},
        {.name = "links", .title = "links a chip", POD_FIELD(mesh_row, info.links)},
    };
    /* clang-format on */
    pod_findings_table(findings, "mesh", columns, sizeof columns / sizeof *columns, "Mesh:");
    for (int i = 0; i < mesh->naxes; i++) {
        const mesh_row row = {pod_mesh_axis_name(mesh->axis[i].axis), mesh->axis[i]};
        pod_findings_row(findings, &row, "  %-9s %5d  on %s, %s, %d link%s a chip", row.axis,
                         row.info.size, row.info.physical, row.info.closed ? "closed" : "open",
                         row.info.links, pod_text_plural(row.info.links));
    }
}

typedef struct part_row {
    const char *what;
    double time_us;
    double share_percent;
} part_row;

/* Width of a column after a name: what the name takes more than its own width is missing here. */
static int width_after(const char *name, int own, int width)
{
    const int over = (int)strlen(name) - own;
    return over > 0 ? width - over : width;
}

static void note_part(pod_findings *findings, const char *what, double part_s, double step_s)
{
    const part_row row = {what, part_s * 1e6, 100 * part_s / step_s};
    const pod_time_unit unit = pod_time_unit_of(step_s);
    pod_findings_row(findings, &row, "  %-28s %*.3f %s  %5.1f %%", row.what,
                     width_after(what, 28, 12), part_s * unit.per_s, unit.name, row.share_percent);
}

/* @param fault  what chips wait for */
static void note_breakdown(pod_findings *findings, const pod_breakdown *b, const char *fault,
                           double hbm_frac, pod_step_mode mode)
{
    /* clang-format off */
    static const pod_emit_column columns[] = {
        {.name = "what", POD_FIELD(part_row, what)},
        {.name = "time_us", .title = "time", .unit = "us", POD_FIELD(part_row, time_us)},
        {.name = "share_percent", .title = "share", .unit = "%", POD_FIELD(part_row, share_percent)},
    };
    /* clang-format on */
    pod_findings_table(findings, "time", columns, sizeof columns / sizeof *columns,
                       "Where the time goes, mean over chips:");
    if (b->step_s <= 0) {
        return;
    }
    note_part(findings, "matmuls", b->matmul_s, b->step_s);
    note_part(findings, "elementwise", b->vector_s, b->step_s);
    note_part(findings, "(of these bound by HBM)", b->hbm_bound_s, b->step_s);
    for (int i = 0; i < b->naxes; i++) {
        char what[POD_PROGRAM_AXES_MAX + 16];
        (void)snprintf(what, sizeof what, "exposed over %s", b->axis[i].axes);
        note_part(findings, what, b->axis[i].exposed_s, b->step_s);
    }
    if (b->slowest_s > 0) {
        note_part(findings, POD_SLOWEST_SLICE, b->slowest_s, b->step_s);
    }
    if (b->exposed_host_s > 0) {
        note_part(findings, "exposed to the host", b->exposed_host_s, b->step_s);
    }
    if (b->wait_s > 0) {
        char what[POD_FAULT_NAME_MAX + 16];
        (void)snprintf(what, sizeof what, "waiting for %s", fault);
        note_part(findings, what, b->wait_s, b->step_s);
    }
    note_part(findings, "idle", b->idle_s, b->step_s);
    pod_findings_say(findings, POD_FINDING_BELOW, "mxu",
                     "  MXU utilisation %.1f %%, HBM %.1f %% of its rate%s", 100 * b->mxu_frac,
                     100 * hbm_frac,
                     mode == POD_STEP_TRAIN    ? "; usual: MFU 40 to 60 %"
                     : mode == POD_STEP_DECODE ? "; usual: HBM 50 to 60 %"
                                               : "");
}

/* The first `top` of the core. */
static void note_top(pod_findings *findings, const pod_op_line *lines, int count, int64_t top,
                     double step_s)
{
    int64_t shown = 0;
    for (int i = 0; i < count && shown < top; i++) {
        if (lines[i].core && shown++ == 0) {
            pod_op_table_begin(findings, step_s, false);
        }
        if (lines[i].core) {
            pod_op_table_add(findings, &lines[i], step_s);
        }
    }
}

static pod_status note_collectives(pod_findings *findings, const pod_programs *programs,
                                   const pod_step_result *result, pod_error *err)
{
    pod_collective_line *lines = NULL;
    int count = 0;
    const pod_time_unit unit = pod_time_unit_of(pod_time_to_s(result->time_ps));
    POD_TRY(pod_collective_lines(programs, result, &lines, &count, err));
    pod_collective_lines_sort(lines, count);
    if (count > 0) {
        pod_findings_table(findings, "collectives", collective_columns, COLLECTIVE_COLUMNS,
                           "Collectives, the most exposed first:");
    }
    for (int i = 0; i < count && i < TOP_COLLECTIVES; i++) {
        char bytes[POD_FORMAT_MAX];
        const collective_row row = collective_row_of(&lines[i]);
        pod_findings_row(
            findings, &row, "  %-22s %-*s over %-9s %3lld x %-9s %7.3f, %7.3f %s exposed",
            lines[i].name, width_after(lines[i].name, 22, 14), lines[i].op, lines[i].axes,
            (long long)lines[i].count, pod_format_bytes(lines[i].bytes, bytes, sizeof bytes),
            lines[i].time_s * unit.per_s, lines[i].exposed_s * unit.per_s, unit.name);
    }
    free(lines);
    return POD_OK;
}

typedef struct links_row {
    const char *axis;
    int64_t bytes[2];
    double busy_percent[2];
} links_row;

/* What the links of each direction carry, mean over chips. */
static void note_links(pod_findings *findings, const pod_slice *slice,
                       const pod_step_result *result)
{
    static const char *const names[POD_AXES] = {"x", "y", "z"};
    /* clang-format off */
    static const pod_emit_column columns[] = {
        {.name = "axis", POD_FIELD(links_row, axis)},
        {.name = "ahead_bytes", .title = "+", .unit = "B", POD_FIELD(links_row, bytes[0])},
        {.name = "ahead_busy_percent", .title = "busy", .unit = "%", POD_FIELD(links_row, busy_percent[0])},
        {.name = "back_bytes", .title = "-", .unit = "B", POD_FIELD(links_row, bytes[1])},
        {.name = "back_busy_percent", .title = "busy", .unit = "%", POD_FIELD(links_row, busy_percent[1])},
    };
    /* clang-format on */
    const double cells = (double)result->cells;
    pod_findings_table(findings, "links", columns, sizeof columns / sizeof *columns,
                       "Links, mean over chips:");
    for (int axis = 0; axis < POD_AXES; axis++) {
        links_row row = {.axis = names[axis]};
        char text[2][POD_FORMAT_MAX];
        if (slice->dims[axis] == 1) {
            continue;
        }
        for (int way = 0; way < 2; way++) {
            const int direction = 2 * axis + way;
            row.bytes[way] =
                (int64_t)((double)result->links.direction_bytes[direction] / cells + 0.5);
            row.busy_percent[way] = 100 * (double)result->links.direction_busy_ps[direction] / cells
                                    / (double)result->time_ps;
            (void)pod_format_bytes(row.bytes[way], text[way], sizeof text[way]);
        }
        pod_findings_row(findings, &row, "  +%s %10s, busy %5.1f %%    -%s %10s, busy %5.1f %%",
                         row.axis, text[0], row.busy_percent[0], row.axis, text[1],
                         row.busy_percent[1]);
    }
}

static void note_link(pod_findings *findings, const pod_slice *slice, const pod_step_result *result)
{
    const pod_link_summary *links = &result->links;
    if (links->busiest_chip < 0 || result->time_ps == 0) {
        return;
    }
    note_links(findings, slice, result);
    char at[40];
    char bytes[POD_FORMAT_MAX];
    const double busy_s = pod_time_to_s(links->busy_ps);
    const double step_s = pod_time_to_s(result->time_ps);
    const pod_time_unit unit = pod_time_unit_of(step_s);
    pod_findings_say(findings, POD_FINDING_BELOW, "busiest_link",
                     "Busiest link: %s:%s carries %s, busy %.3f %s of %.3f %s (%.1f %%)",
                     pod_slice_chip_text(slice, links->busiest_chip % slice->nchips, at, sizeof at),
                     pod_direction_name(links->busiest_direction),
                     pod_format_bytes(links->busiest_bytes, bytes, sizeof bytes),
                     busy_s * unit.per_s, unit.name, step_s * unit.per_s, unit.name,
                     100 * busy_s / step_s);
}

pod_status pod_step_explain_collectives(const pod_cli *cli, const pod_programs *programs,
                                        const pod_step_result *result, pod_error *err)
{
    pod_collective_line *lines = NULL;
    int count = 0;
    const pod_status st = pod_collective_lines(programs, result, &lines, &count, err);
    for (int i = 0; i < count; i++) {
        char bytes[POD_FORMAT_MAX];
        const pod_collective_line *line = &lines[i];
        if (line->algorithm[0] != '\0') {
            pod_cli_explain(cli, "%s: %s of %s over %s, %d chips, by %s", line->name, line->op,
                            pod_format_bytes(line->bytes, bytes, sizeof bytes), line->axes,
                            (int)line->group, line->algorithm);
        }
    }
    free(lines);
    return st;
}

pod_status pod_step_notes_network(pod_findings *findings, const pod_slice *slice,
                                  const pod_programs *programs, const pod_step_result *result,
                                  pod_error *err)
{
    POD_TRY(note_collectives(findings, programs, result, err));
    note_link(findings, slice, result);
    return POD_OK;
}

typedef struct memory_row {
    const char *kind;
    int64_t bytes;
} memory_row;

/* clang-format off */
static const pod_emit_column memory_columns[] = {
    {.name = "kind", POD_FIELD(memory_row, kind)},
    {.name = "bytes", .unit = "B", POD_FIELD(memory_row, bytes)},
};
/* clang-format on */

/* ", 16 KiB a token and chip; room for 408 sequences more": caches and activations grow with the sequences. */
static const char *cache_text(const pod_experiment_step_case *run_case, const pod_chip_spec *chip,
                              char *buf, size_t size)
{
    const pod_step_request *request = &run_case->request;
    const pod_work_layout *layout = &run_case->work.layout;
    const pod_memory_use *use = &run_case->work.memory;
    const int64_t cache = use->by_kind[POD_MEMORY_CACHE];
    const int64_t grows = cache + use->by_kind[POD_MEMORY_ACTIVATIONS];
    const int64_t sequences =
        pod_ceil_div(request->batch, pod_work_layout_pieces(layout, &layout->rows));
    const double tokens = (double)sequences * (double)(request->seq + request->serving.cached);
    const double room = (double)(chip->hbm_usable_bytes - use->peak_bytes) / (double)grows;
    char token[POD_FORMAT_MAX];
    (void)snprintf(buf, size, ", %s a token and chip; room for %.0f sequences more",
                   pod_format_bytes((int64_t)((double)cache / tokens + 0.5), token, sizeof token),
                   floor(room * (double)request->batch));
    return buf;
}

static void note_memory(pod_findings *findings, const pod_experiment_step_case *run_case,
                        const pod_chip_spec *chip)
{
    const pod_memory_use *use = &run_case->work.memory;
    char bytes[POD_FORMAT_MAX];
    char usable[POD_FORMAT_MAX];
    char cache[128] = "";
    pod_findings_table(findings, "memory", memory_columns, 2, "Memory: %s a chip of %s usable",
                       pod_format_bytes(use->peak_bytes, bytes, sizeof bytes),
                       pod_format_bytes(chip->hbm_usable_bytes, usable, sizeof usable));
    for (int k = 0; k < POD_MEMORY_KINDS; k++) {
        const memory_row row = {pod_memory_kind_name((pod_memory_kind)k), use->by_kind[k]};
        if (row.bytes > 0) {
            pod_findings_row(findings, &row, "  %-12s %s%s", row.kind,
                             pod_format_bytes(row.bytes, bytes, sizeof bytes),
                             k == POD_MEMORY_CACHE ? cache_text(run_case, chip, cache, sizeof cache)
                                                   : "");
        }
    }
}

/* ---- remedies ---- */

/* The options of a step of twice the batch: of what was asked for those that say how much a batch is. */
static void twice_the_batch_text(const pod_experiment_step_request *asked, int64_t batch, char *buf,
                                 size_t size)
{
    char bytes[64] = "";
    char host[64] = "";
    if (asked->input.bytes > 0) {
        (void)snprintf(bytes, sizeof bytes, " --input-bytes-per-step %lld",
                       (long long)(2 * asked->input.bytes));
    }
    if (asked->input.host_ps > 0) {
        (void)snprintf(host, sizeof host, " --host-ms-per-batch %.12g",
                       2e3 * pod_time_to_s(asked->input.host_ps));
    }
    const bool per_chip = asked->batch_per_chip > 0;
    (void)snprintf(buf, size, "--batch%s %lld%s%s", per_chip ? "-per-chip" : "",
                   (long long)(per_chip ? 2 * asked->batch_per_chip : batch), bytes, host);
}

/* What a remedy says to do. */
static void remedy_text(const pod_experiment_step_case *run_case,
                        const pod_experiment_step_remedy *remedy, char *buf, size_t size)
{
    char mesh[POD_MESH_TEXT_MAX];
    char batch[192];
    switch (remedy->change) {
    case POD_CHANGE_NONE:
    case POD_CHANGES:
        buf[0] = '\0';
        break;
    case POD_CHANGE_GATHER_AHEAD:
        (void)snprintf(buf, size,
                       "--gather-ahead 1: gather weights while the layer before computes");
        break;
    case POD_CHANGE_MORE_MICROBATCHES:
        (void)snprintf(buf, size,
                       "--microbatches %d: a smaller part of the pipeline's slots stays empty",
                       (int)remedy->microbatches);
        break;
    case POD_CHANGE_FEWER_MICROBATCHES:
        (void)snprintf(buf, size, "--microbatches %d: more rows for each weight read from HBM",
                       (int)remedy->microbatches);
        break;
    case POD_CHANGE_BATCH:
        twice_the_batch_text(run_case->asked, remedy->batch, batch, sizeof batch);
        (void)snprintf(buf, size, "twice the batch, %s: weights are read and summed no more often",
                       batch);
        break;
    case POD_CHANGE_TENSOR:
        (void)snprintf(buf, size, "--mesh %s: activations are %s",
                       pod_logical_mesh_print(&remedy->mesh, mesh, sizeof mesh),
                       pod_logical_mesh_size(&remedy->mesh, POD_MESH_TENSOR) > 1
                           ? "summed over fewer chips"
                           : "not summed at all");
        break;
    case POD_CHANGE_COLLECTIVE_MATMUL:
        (void)snprintf(buf, size,
                       "--collective-matmul on: activations move while matmuls use them");
        break;
    case POD_CHANGE_SIZES:
        if (run_case->asked->model.kind == POD_MODEL_TRANSFORMER) {
            (void)snprintf(buf, size, "d_ff=%lld", (long long)remedy->model.d_ff);
        } else {
            (void)snprintf(buf, size, "%s=%lld, %s=%lld",
                           run_case->asked->model.kind == POD_MODEL_MLP ? "d_model" : "k",
                           (long long)remedy->model.d_model,
                           run_case->asked->model.kind == POD_MODEL_MLP ? "d_ff" : "n",
                           (long long)remedy->model.d_ff);
        }
        break;
    }
}

static void note_remedy(pod_findings *findings, const pod_experiment_step_case *run_case,
                        const pod_chip_spec *chip, const pod_experiment_step_remedy *remedy)
{
    char text[320];
    remedy_text(run_case, remedy, text, sizeof text);
    if (remedy->change == POD_CHANGE_SIZES) {
        pod_findings_say(findings, POD_FINDING_BELOW, "remedy",
                         "First remedy: %s, sizes of a shard in multiples of %d: matmuls fill the "
                         "array; %.1f %% less time a FLOP (simulated)",
                         text, chip->mxu_dim, 100 * remedy->gain_frac);
    } else if (remedy->change != POD_CHANGE_NONE) {
        pod_findings_say(findings, POD_FINDING_BELOW, "remedy",
                         "First remedy: %s; %.1f %% less time a token (simulated)", text,
                         100 * remedy->gain_frac);
    }
}

void pod_step_breakdown(const pod_experiment_step_case *run_case, const pod_chip_spec *chip,
                        const pod_step_result *result, const pod_experiment_step_faults *faults,
                        pod_breakdown *breakdown)
{
    const double peak = chip->peak_ops_per_s[run_case->request.dtype];
    pod_breakdown_get(&run_case->work.programs, result, peak, breakdown);
    if (faults->found.count > 0 && faults->healthy.ops != NULL) {
        pod_breakdown healthy;
        pod_breakdown_get(&run_case->work.programs, &faults->healthy, peak, &healthy);
        pod_breakdown_wait(breakdown, &healthy);
    }
}

void pod_step_faults_note(pod_findings *findings, const char *what, const pod_breakdown *breakdown,
                          const pod_experiment_faults *faults)
{
    const pod_faults_words words = {
        .what = what, .how = "", .how_healthy = "", .wait_s = breakdown->wait_s};
    pod_faults_note(findings, faults, &words);
}

pod_status pod_step_notes(pod_findings *findings, const pod_experiment_step_case *run_case,
                          const pod_chip_spec *chip, const pod_step_result *result, int64_t top,
                          const pod_experiment_step_faults *faults,
                          const pod_experiment_step_remedy *remedy, pod_error *err)
{
    pod_breakdown breakdown;
    pod_op_line *lines = NULL;
    int count = 0;
    const double step_s = pod_time_to_s(result->time_ps);
    const pod_experiment_faults *found = &faults->found;
    pod_step_breakdown(run_case, chip, result, faults, &breakdown);
    note_mesh(findings, &run_case->mesh);
    POD_TRY(pod_op_lines(&run_case->work.programs, result, chip, &lines, &count, err));
    note_breakdown(findings, &breakdown, found->row[found->blamed].name,
                   pod_op_lines_hbm_frac(lines, count, chip, step_s), run_case->request.mode);
    note_top(findings, lines, count, top, step_s);
    free(lines);
    POD_TRY(pod_step_notes_network(findings, &run_case->setup->slice, &run_case->work.programs,
                                   result, err));
    pod_step_dcn_note(findings, run_case, chip, result);
    pod_step_input_note(findings, run_case, chip, result);
    pod_step_prefetch_note(findings, run_case);
    note_memory(findings, run_case, chip);
    pod_step_serving_note(findings, run_case, chip, result);
    pod_step_faults_note(findings, "", &breakdown, found);
    if (!pod_faults_note_remedy(findings, found, "a token")) {
        note_remedy(findings, run_case, chip, remedy);
    }
    return POD_OK;
}

/* ---- files ---- */

static pod_status write_collectives(const char *path, const pod_experiment_step_case *run_case,
                                    const pod_step_result *result, pod_error *err)
{
    pod_collective_line *lines = NULL;
    int count = 0;
    pod_emit *emit = NULL;
    pod_status st = pod_collective_lines(&run_case->work.programs, result, &lines, &count, err);
    if (st == POD_OK) {
        st = pod_emit_new(POD_FORMAT_CSV, "step", collective_columns, COLLECTIVE_COLUMNS, &emit,
                          err);
    }
    for (int i = 0; st == POD_OK && i < count; i++) {
        const collective_row row = collective_row_of(&lines[i]);
        pod_emit_fields(emit, &row, COLLECTIVE_COLUMNS);
    }
    if (st == POD_OK) {
        st = pod_emit_write(emit, path, err);
    }
    pod_emit_free(emit);
    free(lines);
    return st;
}

static pod_status write_ops(const char *path, const pod_experiment_step_case *run_case,
                            const pod_chip_spec *chip, const pod_step_result *result,
                            pod_error *err)
{
    pod_op_line *lines = NULL;
    int count = 0;
    pod_emit *emit = NULL;
    pod_status st = pod_op_lines(&run_case->work.programs, result, chip, &lines, &count, err);
    POD_THEN(st, pod_op_lines_emit(POD_FORMAT_CSV, lines, count, &emit, err));
    POD_THEN(st, pod_emit_write(emit, path, err));
    pod_emit_free(emit);
    free(lines);
    return st;
}

static pod_status write_memory(const char *path, const pod_memory_use *use, pod_error *err)
{
    pod_emit *emit = NULL;
    POD_TRY(pod_emit_new(POD_FORMAT_CSV, "step", memory_columns, 2, &emit, err));
    for (int k = 0; k < POD_MEMORY_KINDS; k++) {
        const memory_row row = {pod_memory_kind_name((pod_memory_kind)k), use->by_kind[k]};
        pod_emit_fields(emit, &row, 2);
    }
    const pod_status st = pod_emit_write(emit, path, err);
    pod_emit_free(emit);
    return st;
}

pod_status pod_step_files_write(const pod_cli *cli, const pod_step_texts *texts,
                                const pod_experiment_step_case *run_case, const pod_chip_spec *chip,
                                const pod_step_result *result, pod_error *err)
{
    pod_status st = POD_OK;
    if (pod_par_rank(cli->par) != 0) {
        return POD_OK;
    }
    if (texts->ops != NULL) {
        st = write_ops(texts->ops, run_case, chip, result, err);
    }
    if (st == POD_OK && texts->collectives != NULL) {
        st = write_collectives(texts->collectives, run_case, result, err);
    }
    if (st == POD_OK && texts->memory != NULL) {
        st = write_memory(texts->memory, &run_case->work.memory, err);
    }
    return st;
}
