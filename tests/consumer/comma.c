/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose language writes 0,5: answers are the same, and it writes as before when it has asked. */
#include <locale.h>
#include <podsim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *ask(void)
{
    static const podsim_option options[] = {
        {"slice", "v5e:4x4"            },
        {"op",    "all-reduce"         },
        {"bytes", "64KiB"              },
        {"data",  "none"               },
        {"rates", "book"               },
        {"set",   "link_book_GBps=45.5"},
        {NULL,    NULL                 }
    };
    podsim_result *result = NULL;
    podsim *context = podsim_open();
    if (context == NULL || podsim_collective(context, options, &result) != PODSIM_OK) {
        fprintf(stderr, "%s\n", context != NULL ? podsim_error(context) : "no context");
        exit(1);
    }
    char *json = strdup(podsim_result_json(result));
    podsim_result_free(result);
    podsim_close(context);
    return json;
}

int main(int argc, char **argv)
{
    char half[8];
    char *point = ask();
    if (argc != 2 || setlocale(LC_ALL, argv[1]) == NULL
        || strcmp(localeconv()->decimal_point, ",") != 0) {
        fprintf(stderr, "no locale with a comma\n");
        return 1;
    }
    char *comma = ask();
    snprintf(half, sizeof half, "%.1f", 0.5);
    if (strcmp(point, comma) != 0 || strcmp(half, "0,5") != 0) {
        fprintf(stderr, "%s\n%s\n%s\n", point, comma, half);
        return 1;
    }
    free(point);
    free(comma);
    return 0;
}
