/* SPDX-License-Identifier: Apache-2.0 */
/* podsim profile: where the time of a measured step went. */
#include "base/text.h"
#include "cli/command_list.h"
#include "cli/options.h"
#include "cli/tables.h"
#include "report/profile.h"

#include <stdlib.h>
#include <string.h>

static const char about[] =
    "FILE is a profile that XProf wrote (plugins/profile/RUN/HOST.trace.json.gz or "
    "HOST.xplane.pb).\n"
    "Rows are operations of one step of one chip, by their own time (a loop's without its "
    "body's),\n"
    "or with --by kind their categories; gaps are what lies between operations.\n";

typedef struct profile_texts {
    const char *file;
    const char *step;
    int64_t chip;
    int64_t top;
    bool kinds;
} profile_texts;

#define AT(field) POD_CLI_FIELD(profile_texts, field)
/* clang-format off */
static const pod_cli_option options[] = {
    {"measured-step", 0, POD_CLI_TEXT, AT(step), "NAME", "step by its name (default: the one of median time)"},
    {"measured-chip", 0, POD_CLI_COUNT, AT(chip), "N", "device of the file (default 0)", .max = INT32_MAX},
    {"by", 0, POD_CLI_CHOICE, AT(kinds), "op|kind", "what a row is (default op)"},
    {"top", 0, POD_CLI_COUNT, AT(top), "N", "rows that the table shows (default 20)", .max = INT32_MAX},
};
/* clang-format on */
#undef AT

static int op_by_category(const void *a, const void *b)
{
    return strcmp(((const pod_profile_op *)a)->category, ((const pod_profile_op *)b)->category);
}

static int op_by_its_time(const void *a, const void *b)
{
    const pod_profile_op *one = a;
    const pod_profile_op *two = b;
    if (one->time_ps != two->time_ps) {
        return one->time_ps > two->time_ps ? -1 : 1;
    }
    return op_by_category(a, b);
}

/* Operations of one category become one, in place; their names stay with the profile. @return how many */
static int kinds_join(pod_profile_op *op, int count)
{
    int kept = 0;
    qsort(op, (size_t)count, sizeof *op, op_by_category);
    for (int i = 0; i < count; i++) {
        if (kept > 0 && strcmp(op[kept - 1].category, op[i].category) == 0) {
            op[kept - 1].runs += op[i].runs;
            op[kept - 1].time_ps += op[i].time_ps;
        } else {
            op[kept++] = op[i];
        }
    }
    qsort(op, (size_t)kept, sizeof *op, op_by_its_time);
    return kept;
}

static void profile_row(pod_emit *emit, const char *name, const char *category, int64_t runs,
                        pod_time_ps time_ps, const pod_profile *profile)
{
    pod_emit_text(emit, name);
    pod_emit_text(emit, category);
    pod_emit_i64(emit, runs);
    pod_emit_double(emit, (double)time_ps / (double)POD_PS_PER_US);
    pod_emit_double(emit, profile->step_ps > 0 ? (double)time_ps / (double)profile->step_ps : 0);
}

static void profile_head(pod_emit *emit, const profile_texts *texts, const pod_profile *profile)
{
    pod_time_ps exposed_ps = 0;
    for (int i = 0; i < profile->nops; i++) {
        exposed_ps += pod_profile_communicates(&profile->op[i]) ? profile->op[i].time_ps : 0;
    }
    pod_emit_heading(emit, "podsim profile: %s, %s, one of %d device%s", texts->file,
                     profile->device, profile->devices, pod_text_plural(profile->devices));
    char text[3][POD_FORMAT_MAX];
    pod_emit_heading(emit, "step %s, one of %d: %s, of which %s are communication, %s gaps",
                     profile->step, profile->steps,
                     pod_format_time(pod_time_to_s(profile->step_ps), text[0], sizeof text[0]),
                     pod_format_time(pod_time_to_s(exposed_ps), text[1], sizeof text[1]),
                     pod_format_time(pod_time_to_s(profile->gaps_ps), text[2], sizeof text[2]));
}

static pod_status profile_print(pod_cli *cli, const profile_texts *texts,
                                const pod_profile *profile, pod_error *err)
{
    /* clang-format off */
    static const pod_emit_column columns[] = {
        {.name = "name"},
        {.name = "kind"},
        {.name = "runs"},
        {.name = "time_us", .title = "time", .unit = "us", .decimals = 3},
        {.name = "share_frac", .title = "share", .unit = "%", .decimals = 1, .percent = true},
    };
    /* clang-format on */
    pod_emit *emit = NULL;
    pod_profile_op *rows = malloc(((size_t)profile->nops + 1) * sizeof *rows);
    pod_status st = rows != NULL ? pod_emit_new(cli->common.format, "profile", columns,
                                                sizeof columns / sizeof columns[0], &emit, err)
                                 : pod_fail(err, POD_E_NOMEM, "no memory for the output");
    if (st == POD_OK) {
        memcpy(rows, profile->op, (size_t)profile->nops * sizeof *rows);
        const int count = texts->kinds ? kinds_join(rows, profile->nops) : profile->nops;
        const bool table = cli->common.format == POD_FORMAT_TABLE;
        const int shown = table && texts->top < count ? (int)texts->top : count;
        profile_head(emit, texts, profile);
        for (int i = 0; i < shown; i++) {
            profile_row(emit, texts->kinds ? rows[i].category : rows[i].name, rows[i].category,
                        rows[i].runs, rows[i].time_ps, profile);
        }
        profile_row(emit, "gaps", "gaps", 1, profile->gaps_ps, profile);
        if (shown < count) {
            pod_emit_note(emit, "%d more; --top N shows more of them", count - shown);
        }
        st = pod_cli_finish(cli, emit, err);
    }
    pod_emit_free(emit);
    free(rows);
    return st;
}

pod_status pod_cmd_profile(pod_cli *cli, int argc, const char **argv, pod_error *err)
{
    profile_texts texts = {.top = 20};
    const pod_cli_usage usage = {
        .synopsis = "FILE [--by kind]",
        .examples =
            "topologies/examples/profile/steps.trace.json\n"
            "topologies/examples/profile/steps.trace.json --by kind\n"
            "topologies/examples/profile/steps.trace.json --measured-chip 1 --measured-step 7\n",
        .about = about,
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .fields = &texts,
        .positional = &texts.file,
    };
    pod_status st = pod_cli_parse(cli, &usage, argc, argv, err);
    if (st != POD_OK || cli->help) {
        return st;
    }
    if (texts.file == NULL) {
        return pod_fail(err, POD_E_USAGE,
                        "profile of what? Give a FILE, as HOST.trace.json.gz or HOST.xplane.pb");
    }
    pod_profile profile = {.nops = 0};
    if (pod_par_rank(cli->par) == 0) {
        st = pod_cli_read_check(cli, texts.file, err);
        POD_THEN(st, pod_profile_read(texts.file, (int)texts.chip, texts.step, &profile, err));
        st = st == POD_OK ? profile_print(cli, &texts, &profile, err) : st;
    }
    pod_profile_free(&profile);
    return pod_par_agree(cli->par, st, err);
}
