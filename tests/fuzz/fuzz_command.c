/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines, a word after each blank: any is answered, or refused in one line, and never says that podsim is wrong.
 * Numbers of 3 to 11 digits are left out, as some ask for hours of simulation, and so are paths. */
#include "fuzz.h"

#include "cli/cli.h"
#include "cli/commands.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MAX = 40, LINE_MAX_BYTES = 400, DIGITS_SMALL = 2, DIGITS_HUGE = 12 };

static bool is_tried(const char *line)
{
    int digits = 0;
    bool tried = strpbrk(line, "/@") == NULL;
    for (const char *c = line; tried && *c != '\0'; c++) {
        digits = isdigit((unsigned char)*c) ? digits + 1 : 0;
        const bool more = isdigit((unsigned char)c[1]) != 0;
        tried = more || digits <= DIGITS_SMALL || digits >= DIGITS_HUGE;
    }
    return tried;
}

static void run(pod_par *par, pod_experiment_tables *tables, int argc, const char **argv)
{
    pod_cli cli;
    pod_error err = {0};
    pod_cli_init(&cli, par, tables, pod_cli_execute);
    pod_cli_line_set(&cli, argc, argv);
    const pod_status st = pod_cli_execute(&cli, argc, argv, &err);
    POD_ASSERT(st != POD_E_INTERNAL);
    POD_ASSERT(st == POD_OK || st == POD_E_CHECK
               || (err.text[0] != '\0' && strchr(err.text, '\n') == NULL));
    pod_cli_fini(&cli);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static pod_par *par;
    char line[LINE_MAX_BYTES + 1] = "";
    const char *words[WORDS_MAX + 2];
    int count = 0;
    if (par == NULL) {
        char folder[] = "/tmp/podsim_fuzz_XXXXXX"; /* for files that a line writes */
        POD_ASSERT(setenv("PODSIM_DATA", POD_SOURCE_DIR, 1) == 0);
        POD_ASSERT(mkdtemp(folder) != NULL && chdir(folder) == 0);
        POD_ASSERT(pod_par_start(NULL, NULL, &par, NULL) == POD_OK);
    }
    if (size > LINE_MAX_BYTES) {
        return 0;
    }
    memcpy(line, data, size);
    if (!is_tried(line)) {
        return 0;
    }
    for (char *rest = line, *word = strtok_r(rest, " \n", &rest); word != NULL && count < WORDS_MAX;
         word = strtok_r(NULL, " \n", &rest)) {
        words[count++] = word;
    }
    words[count] = NULL;
    pod_experiment_tables tables = {0};
    run(par, &tables, count, words);
    pod_experiment_tables_fini(&tables);
    return 0;
}
