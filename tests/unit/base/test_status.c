/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

Test(status, has_the_exit_codes_of_the_contract)
{
    cr_expect_eq(pod_status_exit_code(POD_OK), 0);
    cr_expect_eq(pod_status_exit_code(POD_E_CHECK), 1);
    cr_expect_eq(pod_status_exit_code(POD_E_USAGE), 2);
    cr_expect_eq(pod_status_exit_code(POD_E_INVALID), 3);
    cr_expect_eq(pod_status_exit_code(POD_E_RANGE), 3);
    cr_expect_eq(pod_status_exit_code(POD_E_TABLE), 3);
    cr_expect_eq(pod_status_exit_code(POD_E_NOFIT), 3);
    cr_expect_eq(pod_status_exit_code(POD_E_IO), 4);
    cr_expect_eq(pod_status_exit_code(POD_E_NOMEM), 4);
    cr_expect_eq(pod_status_exit_code(POD_E_SYSTEM), 4);
    cr_expect_eq(pod_status_exit_code(POD_E_INTERNAL), 70);
}

Test(status, has_a_text_for_every_status)
{
    for (int i = 0; i < POD_STATUS_COUNT; i++) {
        cr_expect_gt(strlen(pod_status_text((pod_status)i)), 0U);
    }
    cr_expect_str_eq(pod_status_text(POD_E_TABLE), "bad table");
}

Test(status, records_text_and_position)
{
    pod_error err = {.status = POD_OK};
    cr_expect_eq(pod_fail_at(&err, POD_E_TABLE, "chips.csv", 7, 12, "%s is %d", "clock", 0),
                 POD_E_TABLE);
    cr_expect_eq(err.status, POD_E_TABLE);
    cr_expect_str_eq(err.file, "chips.csv");
    cr_expect_eq(err.line, 7);
    cr_expect_eq(err.column, 12);
    cr_expect_str_eq(err.text, "clock is 0");
}

Test(status, keeps_the_first_error)
{
    pod_error err = {.status = POD_OK};
    (void)pod_fail(&err, POD_E_IO, "first");
    cr_expect_eq(pod_fail(&err, POD_E_USAGE, "second"), POD_E_USAGE, "its own status, still");
    cr_expect_eq(err.status, POD_E_IO);
    cr_expect_str_eq(err.text, "first");
    pod_error_clear(&err);
    (void)pod_fail(&err, POD_E_USAGE, "second");
    cr_expect_str_eq(err.text, "second");
    cr_expect_str_eq(err.file, "");
    cr_expect_eq(err.line, 0);
}

Test(status, works_without_a_place_for_the_error)
{
    cr_expect_eq(pod_fail(NULL, POD_E_IO, "lost"), POD_E_IO);
    cr_expect_eq(pod_fail_at(NULL, POD_E_IO, "f", 1, 1, "lost"), POD_E_IO);
    pod_error_clear(NULL);
}

Test(status, an_error_is_one_line_and_fits)
{
    pod_error err = {.status = POD_OK};
    (void)pod_fail(&err, POD_E_USAGE, "no chip '%s'", "a\nb\r\nc");
    cr_expect_str_eq(err.text, "no chip 'a b  c'");
    char longer[2 * POD_ERROR_TEXT_MAX];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    pod_error_clear(&err);
    (void)pod_fail_at(&err, POD_E_USAGE, longer, 0, 0, "%s", longer);
    cr_expect_eq(strlen(err.text), (size_t)POD_ERROR_TEXT_MAX - 1);
    cr_expect_eq(strlen(err.file), (size_t)POD_ERROR_FILE_MAX - 1);
}

static void exit_with(int exit_code)
{
    exit(exit_code);
}

Test(status, a_broken_invariant_ends_through_the_handler, .exit_code = 70)
{
    pod_panic_handler_set(exit_with);
    POD_ASSERT(1 + 1 == 3);
}

Test(status, a_broken_invariant_aborts_without_a_handler, .signal = SIGABRT)
{
    pod_panic_handler_set(exit_with);
    pod_panic_handler_set(NULL);
    POD_ASSERT(1 + 1 == 3);
}
