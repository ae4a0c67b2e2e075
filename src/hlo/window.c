/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of convolutions: their text, and which taps hit. */
#include "hlo/matmul.h"

#include "base/units.h"

__extension__ typedef __int128 wide;

enum { HITS_LOOP_MAX = 1 << 20 };

/* ---- the attribute ---- */

typedef enum window_field {
    SIZE,
    STRIDE,
    PAD,
    LHS_DILATE,
    RHS_DILATE,
    REVERSAL,
    FIELDS
} window_field;

static const char *const field_names[FIELDS] = {"size",       "stride",     "pad",
                                                "lhs_dilate", "rhs_dilate", "rhs_reversal"};

static void set(pod_hlo_window_dim *dim, window_field field, int64_t low, int64_t high)
{
    switch (field) {
    case SIZE:
        dim->size = low;
        break;
    case STRIDE:
        dim->stride = low;
        break;
    case PAD:
        dim->pad_low = low;
        dim->pad_high = high;
        break;
    case LHS_DILATE:
        dim->lhs_dilate = low;
        break;
    case RHS_DILATE:
        dim->rhs_dilate = low;
        break;
    case REVERSAL:
    case FIELDS:
        break;
    }
}

/* Figures are joined by 'x', so they aren't names to the scanner: 3x3, 1_1x1_1, -1_0. */
static pod_status take_figures(pod_hlo_scan *scan, window_field field, pod_hlo_window_dim *dims,
                               int *count)
{
    int at = 0;
    pod_status st = POD_OK;
    do {
        int64_t low = 0;
        int64_t high = 0;
        const uint32_t begin = scan->at;
        st = pod_hlo_signed(scan, field_names[field], POD_HLO_COUNT_MAX, &low);
        if (st == POD_OK && field == PAD) {
            st = pod_hlo_expect(scan, '_', "a pad");
        }
        if (st == POD_OK && field == PAD) {
            st = pod_hlo_signed(scan, "pad", POD_HLO_COUNT_MAX, &high);
        }
        const bool small = low < (field == STRIDE || field == LHS_DILATE || field == RHS_DILATE)
                           || (field == SIZE && low < 0);
        if (st == POD_OK && field != PAD && small) {
            st = pod_hlo_fail(scan, begin, "%s of a window is too small", field_names[field]);
        }
        if (st == POD_OK && at == POD_HLO_SPATIAL_MAX) {
            st = pod_hlo_fail_limit(scan, begin, "dims of a window", POD_HLO_SPATIAL_MAX);
        }
        if (st == POD_OK) {
            set(&dims[at++], field, low, high);
        }
    } while (st == POD_OK && pod_hlo_take(scan, 'x'));
    if (st == POD_OK && *count > 0 && at != *count) {
        st =
            pod_hlo_fail(scan, scan->at, "a window whose figures count %d and %d dims", *count, at);
    }
    *count = at;
    return st;
}

static pod_status window_take_field(pod_hlo_scan *scan, pod_hlo_window_dim *dims, int *count)
{
    pod_hlo_span name;
    pod_status st = pod_hlo_name(scan, "a figure of a window", &name);
    window_field field = SIZE;
    while (st == POD_OK && field < FIELDS && !pod_hlo_is(scan->text, name, field_names[field])) {
        field++;
    }
    if (st == POD_OK && field == FIELDS) {
        st = pod_hlo_fail(scan, name.begin, "'%.*s' is no figure of a window", pod_hlo_shown(name),
                          scan->text + name.begin);
    }
    POD_THEN(st, pod_hlo_expect(scan, '=', "a window"));
    return st == POD_OK ? take_figures(scan, field, dims, count) : st;
}

pod_status pod_hlo_window(const pod_hlo_module *module, const pod_hlo_instruction *instruction,
                          pod_hlo_window_dim *dims, int *count, pod_error *err)
{
    pod_hlo_span value;
    *count = 0;
    if (!pod_hlo_attribute_of(module, instruction, POD_HLO_AT_WINDOW, &value)) {
        return POD_OK;
    }
    for (int i = 0; i < POD_HLO_SPATIAL_MAX; i++) {
        dims[i] = (pod_hlo_window_dim){.size = 1, .stride = 1, .lhs_dilate = 1, .rhs_dilate = 1};
    }
    pod_hlo_scan scan = pod_hlo_part(module, value, err);
    pod_status st = pod_hlo_expect(&scan, '{', "a window");
    while (st == POD_OK && !pod_hlo_take(&scan, '}')) {
        st = window_take_field(&scan, dims, count);
    }
    return st == POD_OK ? pod_hlo_end(&scan, "a window") : st;
}

/* ---- hits ---- */

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* x in [0, modulus) with a·x = 1 modulo modulus; a and modulus have no common divisor. */
static int64_t inverse(int64_t a, int64_t modulus)
{
    wide r0 = modulus;
    wide r1 = a % modulus;
    wide t0 = 0;
    wide t1 = 1;
    while (r1 != 0) {
        const wide quotient = r0 / r1;
        const wide r2 = r0 - quotient * r1;
        const wide t2 = t0 - quotient * t1;
        r0 = r1;
        r1 = r2;
        t0 = t1;
        t1 = t2;
    }
    return (int64_t)(t0 < 0 ? t0 + modulus : t0) % modulus;
}

static wide floor_div(wide a, wide b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Progression c + i·step for i in [0, count): how many terms lie in [0, last] and are multiples of
 * `multiple`. */
typedef struct progression {
    int64_t step;
    int64_t count;
    int64_t multiple;
    wide last;
    int64_t divisor; /* gcd of step and multiple */
    int64_t period;  /* multiple / divisor */
    int64_t inverse; /* of step / divisor modulo period */
} progression;

static int64_t terms(const progression *p, wide c)
{
    if (c % p->divisor != 0 || p->last < 0) {
        return 0;
    }
    wide low = c >= 0 ? 0 : -floor_div(c, p->step); /* first i with c + i·step >= 0 */
    wide high = floor_div(p->last - c, p->step);
    high = high < p->count - 1 ? high : p->count - 1;
    if (low > high) {
        return 0;
    }
    wide residue = (-(c / p->divisor)) % p->period;
    residue = residue < 0 ? residue + p->period : residue;
    const wide first = residue * p->inverse % p->period; /* i modulo the period */
    wide skipped = (first - low) % p->period;
    skipped = skipped < 0 ? skipped + p->period : skipped;
    low += skipped;
    return low > high ? 0 : (int64_t)((high - low) / p->period + 1);
}

pod_status pod_hlo_window_hits(const pod_hlo_window_dim *dim, int64_t n, int64_t positions,
                               int64_t *hits)
{
    const bool by_taps = dim->size <= positions;
    const int64_t rounds = by_taps ? dim->size : positions;
    if (rounds > HITS_LOOP_MAX) {
        return POD_E_RANGE;
    }
    progression p = {.step = by_taps ? dim->stride : dim->rhs_dilate,
                     .count = by_taps ? positions : dim->size,
                     .multiple = dim->lhs_dilate,
                     .last = ((wide)n - 1) * dim->lhs_dilate};
    p.divisor = gcd(p.step, p.multiple);
    p.period = p.multiple / p.divisor;
    p.inverse = p.period == 1 ? 0 : inverse(p.step / p.divisor, p.period);
    const int64_t other = by_taps ? dim->rhs_dilate : dim->stride;
    wide sum = 0;
    for (int64_t i = 0; i < rounds; i++) {
        sum += terms(&p, (wide)i * other - dim->pad_low);
    }
    *hits = (int64_t)sum;
    return sum <= POD_HLO_COUNT_MAX ? POD_OK : POD_E_RANGE;
}
