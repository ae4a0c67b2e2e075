/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "experiment/measurement.h"

#include <stdlib.h>

static const char HEADER[] = "id,class,command,args,metric,value,unit,tolerance_frac,source,note\n";

static pod_status read_rows(world *w, const char *body, const char *class_name, pod_table **table,
                            pod_experiment_measurement **rows, int *count)
{
    char text[1024];
    (void)snprintf(text, sizeof text, "%s%s", HEADER, body);
    OK(pod_table_parse("m.csv", text, strlen(text), table, &w->err));
    return pod_experiment_measurements_read(*table, class_name, rows, count, &w->err);
}

/* Stands for the command line: its args are its figure, or how it fails. */
static pod_status figure(void *context, pod_par *self, const char *command, const char *args,
                         const char *metric, double *value, pod_error *err)
{
    (void)self;
    (void)metric;
    int *calls = context;
    cr_expect_str_eq(command, "copy");
    (*calls)++;
    if (strcmp(args, "nomem") == 0) {
        return pod_fail(err, POD_E_NOMEM, "no memory");
    }
    if (strcmp(args, "bad") == 0) {
        return pod_fail(err, POD_E_USAGE, "no such option");
    }
    *value = strtod(args, NULL);
    return POD_OK;
}

Test(measurement, errors_verdicts_and_classes)
{
    static const char body[] = "a,times,copy,1100,time_us,1,ms,0.2,s,\n"
                               "b,times,copy,1300,time_us,1,ms,0.2,s,\n"
                               "c,times,copy,bad,time_us,1,ms,0.2,s,\n"
                               "d,ratios,copy,30 :: 20,GBps,1.5,ratio,0,s,\n"
                               "e,times,copy,950,time_us,1,ms,0.2,s,\n"
                               "f,times,copy,1000,time_us,1,ms,0.2,s,\n";
    world world_, *w = &world_;
    world_init(w, "v5e:1x1");
    pod_table *table = NULL;
    pod_experiment_measurement *rows = NULL;
    pod_experiment_measured measured[6];
    pod_experiment_class *classes = NULL;
    int count = 0;
    int nclasses = 0;
    int calls = 0;
    OK(read_rows(w, body, NULL, &table, &rows, &count));
    cr_assert_eq(count, 6);
    OK(pod_experiment_measurements_run(&w->experiment, rows, count, figure, NULL, &calls, measured,
                                       &w->err));
    cr_expect_eq(calls, 7, "one each, two for the ratio");
    cr_expect_float_eq(measured[0].predicted, 1.1, 1e-12, "in ms");
    cr_expect_float_eq(measured[0].error_frac, 0.1, 1e-12);
    cr_expect(measured[0].within);
    cr_expect_not(measured[1].within);
    cr_expect(measured[1].supported);
    cr_expect_not(measured[2].supported);
    cr_expect_str_eq(measured[2].reason, "no such option");
    cr_expect_eq(measured[3].predicted, 1.5);
    cr_expect(measured[3].within);
    OK(pod_experiment_classes(rows, measured, count, &classes, &nclasses, &w->err));
    cr_assert_eq(nclasses, 2);
    cr_expect_str_eq(classes[0].name, "times");
    cr_expect_eq(classes[0].rows, 5);
    cr_expect_eq(classes[0].off, 1);
    cr_expect_eq(classes[0].unsupported, 1);
    cr_expect_float_eq(classes[0].median_error_frac, 0.075, 1e-12, "of 0, 0.05, 0.1 and 0.3");
    cr_expect_float_eq(classes[0].p90_error_frac, 0.3, 1e-12, "of 4 rows");
    cr_expect_float_eq(classes[0].worst_error_frac, 0.3, 1e-12);
    cr_expect_float_eq(classes[0].bias_frac, 0.0875, 1e-12);
    cr_expect_str_eq(classes[0].worst_id, "b");
    cr_expect_eq(classes[1].off + classes[1].unsupported, 0);
    free(classes);
    free(rows);
    pod_table_free(table);
    world_fini(w);
}

Test(measurement, what_ends_the_run)
{
    world world_, *w = &world_;
    world_init(w, "v5e:1x1");
    pod_table *table = NULL;
    pod_experiment_measurement *rows = NULL;
    pod_experiment_measured measured[1];
    int count = 0;
    int calls = 0;
    OK(read_rows(w, "a,times,copy,nomem,time_us,1,ms,0.2,s,\n", NULL, &table, &rows, &count));
    cr_expect_eq(pod_experiment_measurements_run(&w->experiment, rows, 1, figure, NULL, &calls,
                                                 measured, &w->err),
                 POD_E_NOMEM);
    cr_expect_str_eq(w->err.text, "a: no memory");
    free(rows);
    pod_table_free(table);
    world_fini(w);
}

Test(measurement, a_class_is_selected_or_unknown)
{
    static const char body[] = "a,x,copy,1,time_us,1,us,0,s,\nb,y,copy,1,time_us,1,us,0,s,\n";
    world world_, *w = &world_;
    world_init(w, "v5e:1x1");
    pod_table *table = NULL;
    pod_experiment_measurement *rows = NULL;
    int count = 0;
    OK(read_rows(w, body, "y", &table, &rows, &count));
    cr_assert_eq(count, 1);
    cr_expect_str_eq(rows[0].id, "b");
    free(rows);
    pod_table_free(table);
    cr_expect_eq(read_rows(w, body, "z", &table, &rows, &count), POD_E_USAGE);
    pod_table_free(table);
    cr_expect_eq(read_rows(w, "a,x,copy,1,time_us,1,GB/s,0,s,\n", NULL, &table, &rows, &count),
                 POD_E_TABLE, "a time is no bandwidth");
    pod_table_free(table);
    world_fini(w);
}
