/* SPDX-License-Identifier: Apache-2.0 */
/* What a step's table says below its row, and the files of its collectives and its memory. */
#include "cli/step.h"

#include "base/file.h"
#include "base/units.h"
#include "models/roofline.h"
#include "report/breakdown.h"

#include <stdio.h>
#include <stdlib.h>

enum { TOP_COLLECTIVES = 5 };

static void note_mesh(pod_emit *emit, const pod_mesh *mesh)
{
    for (int i = 0; i < mesh->naxes; i++) {
        const pod_mesh_axis_info *axis = &mesh->axis[i];
        pod_emit_note(emit, "  %-9s %5d  on %s, %s, %d link%s a chip",
                      pod_mesh_axis_name(axis->axis), axis->size, axis->physical,
                      axis->closed ? "closed" : "open", axis->links, axis->links == 1 ? "" : "s");
    }
}

static void note_part(pod_emit *emit, const char *what, double part_s, double step_s)
{
    pod_emit_note(emit, "  %-28s %12.3f us  %5.1f %%", what, part_s * 1e6, 100 * part_s / step_s);
}

static void note_breakdown(pod_emit *emit, const pod_breakdown *b)
{
    if (b->step_s <= 0) {
        return;
    }
    note_part(emit, "matmuls", b->matmul_s, b->step_s);
    note_part(emit, "elementwise", b->vector_s, b->step_s);
    note_part(emit, "(of these bound by HBM)", b->hbm_bound_s, b->step_s);
    for (int i = 0; i < b->naxes; i++) {
        char what[POD_PROGRAM_AXES_MAX + 16];
        (void)snprintf(what, sizeof what, "exposed over %s", b->axis[i].axes);
        note_part(emit, what, b->axis[i].exposed_s, b->step_s);
    }
    if (b->exposed_host_s > 0) {
        note_part(emit, "exposed to the host", b->exposed_host_s, b->step_s);
    }
    note_part(emit, "idle", b->idle_s, b->step_s);
    pod_emit_note(emit, "  MXU utilisation %.1f %%", 100 * b->mxu_frac);
}

static pod_status note_collectives(pod_emit *emit, const pod_experiment_step_case *run_case,
                                   const pod_step_result *result, pod_error *err)
{
    pod_collective_line *lines = NULL;
    int count = 0;
    const pod_status st =
        pod_collective_lines(&run_case->work.programs, result, &lines, &count, err);
    if (st != POD_OK) {
        return st;
    }
    pod_collective_lines_sort(lines, count);
    if (count > 0) {
        pod_emit_note(emit, "Collectives, the most exposed first:");
    }
    for (int i = 0; i < count && i < TOP_COLLECTIVES; i++) {
        char bytes[POD_FORMAT_MAX];
        pod_emit_note(emit, "  %-24s %-14s over %-12s %4lld x %-10s %10.3f us, %10.3f us exposed",
                      lines[i].name, lines[i].op, lines[i].axes, (long long)lines[i].count,
                      pod_format_bytes(lines[i].bytes, bytes, sizeof bytes), lines[i].time_s * 1e6,
                      lines[i].exposed_s * 1e6);
    }
    free(lines);
    return POD_OK;
}

/* What the links of each direction carry, mean over chips. */
static void note_links(pod_emit *emit, const pod_slice *slice, const pod_step_result *result)
{
    const double cells = (double)result->cells;
    const double step_ps = (double)result->time_ps;
    pod_emit_note(emit, "Links, mean over chips:");
    for (int axis = 0; axis < POD_AXES; axis++) {
        if (slice->dims[axis] == 1) {
            continue;
        }
        const int64_t *bytes = &result->links.direction_bytes[2 * axis];
        const pod_time_ps *busy_ps = &result->links.direction_busy_ps[2 * axis];
        char text[2][POD_FORMAT_MAX];
        for (int way = 0; way < 2; way++) {
            (void)pod_format_bytes((int64_t)((double)bytes[way] / cells + 0.5), text[way],
                                   sizeof text[way]);
        }
        pod_emit_note(emit, "  +%c %10s, busy %5.1f %%    -%c %10s, busy %5.1f %%", "xyz"[axis],
                      text[0], 100 * (double)busy_ps[0] / cells / step_ps, "xyz"[axis], text[1],
                      100 * (double)busy_ps[1] / cells / step_ps);
    }
}

static void note_link(pod_emit *emit, const pod_experiment_step_case *run_case,
                      const pod_step_result *result)
{
    const pod_slice *slice = &run_case->setup->slice;
    const pod_link_summary *links = &result->links;
    if (links->busiest_chip < 0 || result->time_ps == 0) {
        return;
    }
    note_links(emit, slice, result);
    char at[40];
    char bytes[POD_FORMAT_MAX];
    const double busy_s = pod_time_to_s(links->busy_ps);
    pod_emit_note(emit, "Busiest link: %s:%s carries %s, busy %.3f us of %.3f us (%.1f %%)",
                  pod_slice_chip_text(slice, links->busiest_chip % slice->nchips, at, sizeof at),
                  pod_direction_name(links->busiest_direction),
                  pod_format_bytes(links->max_bytes, bytes, sizeof bytes), busy_s * 1e6,
                  pod_time_to_us(result->time_ps), 100 * busy_s / pod_time_to_s(result->time_ps));
}

static void note_memory(pod_emit *emit, const pod_memory_use *use, const pod_chip_spec *chip)
{
    char bytes[POD_FORMAT_MAX];
    char usable[POD_FORMAT_MAX];
    pod_emit_note(emit, "Memory: %s a chip of %s usable",
                  pod_format_bytes(use->peak_bytes, bytes, sizeof bytes),
                  pod_format_bytes(chip->hbm_usable_bytes, usable, sizeof usable));
    for (int k = 0; k < POD_MEMORY_KINDS; k++) {
        if (use->by_kind[k] > 0) {
            pod_emit_note(emit, "  %-12s %s", pod_memory_kind_name((pod_memory_kind)k),
                          pod_format_bytes(use->by_kind[k], bytes, sizeof bytes));
        }
    }
}

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

static void note_remedy(pod_emit *emit, const pod_experiment_step_case *run_case,
                        const pod_chip_spec *chip, const pod_experiment_step_remedy *remedy)
{
    char text[320];
    remedy_text(run_case, remedy, text, sizeof text);
    if (remedy->change == POD_CHANGE_SIZES) {
        pod_emit_note(emit,
                      "First remedy: %s, sizes of a shard in multiples of %d: matmuls fill the "
                      "array; %.1f %% less time a FLOP (simulated)",
                      text, chip->mxu_dim, 100 * remedy->gain_frac);
    } else if (remedy->change != POD_CHANGE_NONE) {
        pod_emit_note(emit, "First remedy: %s; %.1f %% less time a token (simulated)", text,
                      100 * remedy->gain_frac);
    }
}

/** Of prefill and decode: the least time by a closed form. */
static void note_roofline(pod_emit *emit, const pod_experiment_step_case *run_case,
                          const pod_chip_spec *chip, const pod_step_result *result)
{
    const pod_step_request *request = &run_case->request;
    const double step_s = pod_time_to_s(result->time_ps);
    if (request->mode != POD_STEP_PREFILL && request->mode != POD_STEP_DECODE) {
        return;
    }
    const pod_roofline_args args =
        pod_roofline_args_of(request->model, chip, request->dtype, request->batch, request->seq,
                             run_case->mesh.ndevices);
    const bool decode = request->mode == POD_STEP_DECODE;
    const pod_roofline r = decode ? pod_roofline_decode(&args) : pod_roofline_prefill(&args);
    char cache[POD_FORMAT_MAX + 32] = "";
    if (decode) {
        (void)snprintf(cache, sizeof cache, "cache %.3f us, ", r.cache_s * 1e6);
    }
    pod_emit_note(emit,
                  "Roofline of all chips: %sweights %.3f us, matmuls %.3f us: at least %.3f us, "
                  "%.1f %% of the step",
                  cache, r.weights_s * 1e6, r.products_s * 1e6, r.least_s * 1e6,
                  100 * r.least_s / step_s);
}

pod_status pod_step_notes(pod_emit *emit, const pod_experiment_step_case *run_case,
                          const pod_chip_spec *chip, const pod_step_result *result,
                          const pod_experiment_step_remedy *remedy, pod_error *err)
{
    pod_breakdown breakdown;
    pod_breakdown_get(&run_case->work.programs, result,
                      chip->peak_ops_per_s[run_case->request.dtype], &breakdown);
    pod_emit_note(emit, "Mesh:");
    note_mesh(emit, &run_case->mesh);
    pod_emit_note(emit, "Where the time goes, mean over chips:");
    note_breakdown(emit, &breakdown);
    const pod_status st = note_collectives(emit, run_case, result, err);
    note_link(emit, run_case, result);
    pod_step_dcn_note(emit, run_case, chip, result);
    note_memory(emit, &run_case->work.memory, chip);
    note_roofline(emit, run_case, chip, result);
    note_remedy(emit, run_case, chip, remedy);
    return st;
}

/* ---- files ---- */

static pod_status write_emitted(const char *path, pod_emit *emit, pod_error *err)
{
    const char *text = NULL;
    size_t size = 0;
    const pod_status st = pod_emit_finish(emit, &text, &size, err);
    return st == POD_OK ? pod_file_write(path, text, size, err) : st;
}

static pod_status write_collectives(const char *path, const pod_experiment_step_case *run_case,
                                    const pod_step_result *result, pod_error *err)
{
    static const pod_emit_column columns[] = {
        {.name = "name"},  {.name = "op"},    {.name = "mesh_axis"}, {.name = "group"},
        {.name = "bytes"}, {.name = "count"}, {.name = "time_us"},   {.name = "exposed_us"}};
    pod_collective_line *lines = NULL;
    int count = 0;
    pod_emit *emit = NULL;
    pod_status st = pod_collective_lines(&run_case->work.programs, result, &lines, &count, err);
    if (st == POD_OK) {
        st = pod_emit_new(POD_FORMAT_CSV, "step", columns, sizeof columns / sizeof columns[0],
                          &emit, err);
    }
    for (int i = 0; st == POD_OK && i < count; i++) {
        pod_emit_text(emit, lines[i].name);
        pod_emit_text(emit, lines[i].op);
        pod_emit_text(emit, lines[i].axes);
        pod_emit_i64(emit, lines[i].group);
        pod_emit_i64(emit, lines[i].bytes);
        pod_emit_i64(emit, lines[i].count);
        pod_emit_double(emit, lines[i].time_s * 1e6);
        pod_emit_double(emit, lines[i].exposed_s * 1e6);
    }
    if (st == POD_OK) {
        st = write_emitted(path, emit, err);
    }
    pod_emit_free(emit);
    free(lines);
    return st;
}

static pod_status write_memory(const char *path, const pod_memory_use *use, pod_error *err)
{
    static const pod_emit_column columns[] = {{.name = "kind"}, {.name = "bytes"}};
    pod_emit *emit = NULL;
    pod_status st = pod_emit_new(POD_FORMAT_CSV, "step", columns, 2, &emit, err);
    for (int k = 0; st == POD_OK && k < POD_MEMORY_KINDS; k++) {
        pod_emit_text(emit, pod_memory_kind_name((pod_memory_kind)k));
        pod_emit_i64(emit, use->by_kind[k]);
    }
    if (st == POD_OK) {
        st = write_emitted(path, emit, err);
    }
    pod_emit_free(emit);
    return st;
}

pod_status pod_step_files_write(const pod_cli *cli, const pod_step_texts *texts,
                                const pod_experiment_step_case *run_case,
                                const pod_step_result *result, pod_error *err)
{
    pod_status st = POD_OK;
    if (pod_par_rank(cli->par) != 0) {
        return POD_OK;
    }
    if (texts->collectives != NULL) {
        st = write_collectives(texts->collectives, run_case, result, err);
    }
    if (st == POD_OK && texts->memory != NULL) {
        st = write_memory(texts->memory, &run_case->work.memory, err);
    }
    return st;
}
