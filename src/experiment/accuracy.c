/* SPDX-License-Identifier: Apache-2.0 */
#include "experiment/accuracy.h"

#include <math.h>
#include <string.h>

enum { ROWS_MAX = 1024 };
static const double ERROR_MAX = 1e6;

static double error_frac(const pod_table *errors, int row)
{
    double frac = 0;
    (void)pod_table_double(errors, row, pod_table_column(errors, "error_frac"), -ERROR_MAX,
                           ERROR_MAX, &frac, NULL);
    return fabs(frac);
}

static bool is_of(const pod_table *errors, int row, const char *column, const char *value)
{
    return value == NULL
           || strcmp(pod_table_text(errors, row, pod_table_column(errors, column)), value) == 0;
}

pod_accuracy pod_accuracy_of(const pod_table *errors, const char *class, const char *chip)
{
    double sorted[ROWS_MAX];
    int n = 0;
    for (int row = 0; row < pod_table_rows(errors) && n < ROWS_MAX; row++) {
        if (!is_of(errors, row, "class", class) || !is_of(errors, row, "chip", chip)) {
            continue;
        }
        const double frac = error_frac(errors, row);
        int at = n++;
        for (; at > 0 && sorted[at - 1] > frac; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = frac;
    }
    pod_accuracy accuracy = {.rows = n};
    if (n > 0) {
        accuracy.median_frac = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
        accuracy.worst_frac = sorted[n - 1];
    }
    return accuracy;
}

pod_status pod_accuracy_check(const pod_table *errors, pod_error *err)
{
    static const char *const columns[] = {"id",
                                          "class",
                                          "chip",
                                          "published",
                                          "predicted",
                                          "error_frac",
                                          "without_row_frac",
                                          "without_family_frac",
                                          "without_chip_frac"};
    POD_TRY(pod_table_expect(errors, columns, sizeof columns / sizeof *columns, false, err));
    const int column = pod_table_column(errors, "error_frac");
    for (int row = 0; row < pod_table_rows(errors); row++) {
        double frac = 0;
        POD_TRY(pod_table_double(errors, row, column, -ERROR_MAX, ERROR_MAX, &frac, err));
    }
    return POD_OK;
}
