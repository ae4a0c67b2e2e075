/* SPDX-License-Identifier: Apache-2.0 */
#include "api/rows.h"

#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define HLO POD_SOURCE_DIR "/topologies/examples/hlo/mlp_v5p_64.hlo.txt"
#define MLP                                                                                        \
    {"model", "mlp:layers=2,d_model=64,d_ff=256"},                                                 \
    {                                                                                              \
        "batch", "64"                                                                              \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, NULL                                                                                 \
    }

typedef struct question {
    const char *command;
    podsim_option options[8];
} question;

static const question questions[] = {
    {"slice",      {{"slice", "v5p:4x4x4"}, END}                                               },
    {"collective",
     {{"slice", "v5e:4x4"}, {"op", "all-reduce"}, {"bytes", "1KiB"}, {"algorithm", "all"}, END}},
    {"step",       {{"slice", "v5e:4x4"}, MLP, {"mesh", "data=16"}, END}                       },
    {"compare",    {{"slice", "v5e:4x4"}, MLP, END}                                            },
    {"plan",       {MLP, {"slices", "v5e:2x4,v5e:4x4"}, {"tokens", "1G"}, END}                 },
    {"hlo",        {{"", HLO}, {"slice", "v5p:4x4x4"}, END}                                    },
};

static podsim_result *ask(podsim *context, const question *asked)
{
    podsim_result *result = NULL;
    const podsim_code code = podsim_ask(context, asked->command, asked->options, &result);
    cr_assert_eq(code, PODSIM_OK, "%s: %s", asked->command, podsim_error(context));
    cr_assert_str_empty(podsim_error(context));
    cr_assert_gt(podsim_result_rows(result), 0);
    return result;
}

Test(api_podsim, every_field_of_a_struct_is_a_column)
{
    podsim *context = podsim_open();
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        podsim_result *result = ask(context, &questions[i]);
        pod_text missing = {0};
        pod_api_result_missing(result, &missing);
        const char *expected =
            strcmp(questions[i].command, "step") == 0 ? "rank\nstatus\nreason\nbound_s\n" : NULL;
        cr_assert(expected == NULL ? missing.size == 0 : strcmp(missing.data, expected) == 0,
                  "%s lacks %s", questions[i].command, missing.data);
        pod_text_free(&missing);
        podsim_result_free(result);
    }
    podsim_close(context);
}

Test(api_podsim, structs_cells_and_json_say_the_same)
{
    podsim *context = podsim_open();
    podsim_result *result = ask(context, &questions[1]);
    char text[64];
    for (size_t i = 0; i < podsim_result_rows(result); i++) {
        const podsim_collective_row *row = podsim_collective_at(result, i);
        cr_assert_str_eq(row->algorithm, podsim_result_text(result, i, "algorithm"));
        cr_assert(row->time_us == podsim_result_number(result, i, "time_us"));
        cr_assert_eq(row->bytes, 1024);
        cr_assert_eq(row->wrong, 0);
        (void)snprintf(text, sizeof text, "\"algorithm\":\"%s\"", row->algorithm);
        cr_assert_not_null(strstr(podsim_result_json(result), text));
        cr_assert_geq(row->time_us, row->bound_us);
    }
    cr_assert_null(podsim_collective_at(result, podsim_result_rows(result)));
    cr_assert_null(podsim_step_at(result, 0));
    cr_assert_null(podsim_result_text(result, 0, "no such column"));
    cr_assert(isnan(podsim_result_number(result, 0, "algorithm")));
    cr_assert_str_eq(podsim_result_column(result, 0), "slice");
    cr_assert_null(podsim_result_column(result, podsim_result_columns(result)));
    podsim_close(context);
    cr_assert_str_eq(podsim_collective_at(result, 0)->op,
                     "all-reduce"); /* it outlives its context */
    podsim_result_free(result);
}

Test(api_podsim, what_does_not_apply_is_none)
{
    podsim *context = podsim_open();
    podsim_result *result = ask(context, &questions[2]);
    const podsim_step_row *row = podsim_step_at(result, 0);
    cr_assert_str_eq(row->mesh, "data=16");
    cr_assert_null(row->dcn_mesh);
    cr_assert_null(row->status);
    cr_assert_eq(row->rank, PODSIM_NONE);
    cr_assert(isnan(row->bound_s));
    cr_assert_gt(row->step_time_s, 0);
    podsim_result_free(result);
    result = ask(context, &questions[4]);
    cr_assert_null(podsim_plan_at(result, 0)->dcn_mesh);
    podsim_result_free(result);
    podsim_close(context);
}

typedef struct mistake {
    const char *command;
    podsim_option options[4];
    podsim_code code;
    const char *text;
} mistake;

/* clang-format off */
static const mistake mistakes[] = {
    {"slcie", {END}, PODSIM_USAGE, "slice"},
    {"help", {END}, PODSIM_USAGE, "no command with rows"},
    {"--version", {END}, PODSIM_USAGE, "no command with rows"},
    {"slice", {END}, PODSIM_USAGE, "--slice"},
    {"slice", {{"slcie", "v5p:4x4x4"}, END}, PODSIM_USAGE, "--slice"},
    {"slice", {{"slice", NULL}, END}, PODSIM_USAGE, "needs a value"},
    {"slice", {{"--slice", "v5p:4x4x4"}, END}, PODSIM_USAGE, "begins with a dash"},
    {"slice", {{"slice=v5p:4x4x4", NULL}, END}, PODSIM_USAGE, "holds a '='"},
    {"slice", {{"", "--slice=v5p:4x4x4"}, END}, PODSIM_USAGE, "without a name"},
    {"slice", {{"", NULL}, END}, PODSIM_USAGE, "without a name"},
    {"slice", {{"slice", "v5p:4x4x4"}, {"format", "csv"}, END}, PODSIM_USAGE, "--format"},
    {"slice", {{"slice", "v5p:4x4x4"}, {"outp", "x"}, END}, PODSIM_USAGE, "say how results are printed"},
    {"slice", {{"slice", "v5p:4x4x4"}, {"wide", NULL}, END}, PODSIM_USAGE, "say how results are printed"},
    {"slice", {{"slice", "v5p:4x4x4"}, {"help", NULL}, END}, PODSIM_USAGE, "help is not for programs"},
    {"slice", {{"slice", "v5p:4x4x5x6"}, END}, PODSIM_INPUT, "4x4x5x6"},
    {"hlo", {{"", "/nowhere.txt"}, {"slice", "v5p:4x4x4"}, END}, PODSIM_SYSTEM, "/nowhere.txt"},
};
/* clang-format on */

Test(api_podsim, errors_are_a_code_and_one_line)
{
    podsim *context = podsim_open();
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        podsim_result *result = NULL;
        const podsim_code code =
            podsim_ask(context, mistakes[i].command, mistakes[i].options, &result);
        const char *error = podsim_error(context);
        cr_assert_eq(code, mistakes[i].code, "%zu: %d %s", i, (int)code, error);
        cr_assert_not_null(strstr(error, mistakes[i].text), "%zu: %s", i, error);
        cr_assert_null(strchr(error, '\n'));
        cr_assert_null(result);
    }
    podsim_result_free(ask(context, &questions[0])); /* it goes on after errors */
    podsim_close(context);
}

Test(api_podsim, messages_are_kept_instead_of_printed)
{
    static const podsim_option options[] = {
        {"slice",   "v5p:4x4x4"},
        {"explain", NULL       },
        END
    };
    podsim *context = podsim_open();
    podsim_result *result = NULL;
    cr_assert_eq(podsim_slice(context, options, &result), PODSIM_OK);
    cr_assert_not_null(strstr(podsim_result_messages(result), "chips = 4 x 4 x 4 = 64\n"));
    podsim_result_free(result);
    result = ask(context, &questions[0]);
    cr_assert_str_empty(podsim_result_messages(result));
    podsim_result_free(result);
    podsim_close(context);
}

/* What two threads get is what one gets, with real numbers and without. Assertions don't work outside the test's own
 * thread: an error becomes text that differs. */
static void *ask_all(void *texts)
{
    podsim *context = podsim_open();
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        podsim_result *result = NULL;
        (void)podsim_ask(context, questions[i].command, questions[i].options, &result);
        pod_text_add(texts, result == NULL ? podsim_error(context) : podsim_result_json(result));
        podsim_result_free(result);
    }
    podsim_close(context);
    return NULL;
}

Test(api_podsim, threads_do_not_disturb_each_other)
{
    enum { THREADS = 3 };
    pod_text alone = {0};
    pod_text texts[THREADS] = {0};
    pthread_t threads[THREADS];
    ask_all(&alone);
    cr_assert_not_null(strstr(alone.data, "\"step_time_s\":"));
    for (int i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, ask_all, &texts[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
        cr_assert_str_eq(texts[i].data, alone.data);
        pod_text_free(&texts[i]);
    }
    pod_text_free(&alone);
}
