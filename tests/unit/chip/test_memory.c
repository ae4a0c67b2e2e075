/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/memory.h"

#include "fixture.h"

#include <string.h>

static pod_hbm_ledger ledger_of(int64_t usable_bytes)
{
    pod_chip_spec chip = {.hbm_usable_bytes = usable_bytes};
    pod_hbm_ledger ledger;
    pod_hbm_ledger_init(&ledger, &chip);
    return ledger;
}

Test(memory, fits_to_the_last_byte)
{
    pod_hbm_ledger ledger = ledger_of(100);
    cr_assert_eq(pod_hbm_ledger_add(&ledger, POD_HBM_OTHER, 100, NULL), POD_OK);
    cr_expect_eq(pod_hbm_ledger_check(&ledger, "it", NULL), POD_OK);
    cr_assert_eq(pod_hbm_ledger_add(&ledger, POD_HBM_OTHER, 1, NULL), POD_OK);
    cr_expect_eq(pod_hbm_ledger_check(&ledger, "it", NULL), POD_E_NOFIT);
}

Test(memory, says_by_how_much_and_what_takes_most)
{
    const int64_t gib = INT64_C(1) << 30;
    pod_hbm_ledger ledger = ledger_of(16 * gib);
    cr_assert_eq(pod_hbm_ledger_add(&ledger, POD_HBM_WEIGHTS, 4 * gib, NULL), POD_OK);
    cr_assert_eq(pod_hbm_ledger_add(&ledger, POD_HBM_OPTIMIZER, 16 * gib, NULL), POD_OK);
    pod_error err = {.status = POD_OK};
    cr_expect_eq(pod_hbm_ledger_check(&ledger, "mlp on v5e", &err), POD_E_NOFIT);
    cr_expect_str_eq(err.text, "mlp on v5e needs 20.00 GiB of HBM a chip, 4.00 GiB more than the "
                               "16.00 GiB a program may use; the most is optimizer, 16.00 GiB");
}

Test(memory, refuses_sizes_that_overflow)
{
    pod_hbm_ledger ledger = ledger_of(100);
    cr_expect_eq(pod_hbm_ledger_add(&ledger, POD_HBM_INPUT, -1, NULL), POD_E_RANGE);
    cr_assert_eq(pod_hbm_ledger_add(&ledger, POD_HBM_INPUT, INT64_MAX, NULL), POD_OK);
    cr_expect_eq(pod_hbm_ledger_add(&ledger, POD_HBM_GATHERED, 1, NULL), POD_E_RANGE);
    cr_expect_eq(ledger.bytes[POD_HBM_GATHERED], 0);
    cr_expect_eq(ledger.total_bytes, INT64_MAX);
}

Test(memory, names_its_kinds)
{
    cr_expect_str_eq(pod_hbm_kind_name(POD_HBM_GATHERED), "gathered");
    cr_expect_str_eq(pod_hbm_kind_name(POD_HBM_OTHER), "other");
}
