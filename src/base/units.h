/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/units.h  Quantities with units: parse them, print them, convert them.
 *
 *  Model: simulated time is int64 picoseconds (106 days); bytes and counts are int64; rates are
 *  double, in bytes (or operations) per second, one way unless the name says otherwise.
 *  K/M/G/T/P = 10^3…, Ki/Mi/Gi/Ti/Pi = 2^10…; "B" may follow or not ("64Ki", "64KiB"). Bits never
 *  occur inside podsim.
 *
 *  The time of a transfer is rounded up to the next picosecond, once, here (pod_rate_time_ps), so
 *  that no simulated transfer is faster than its wire.
 *
 *  Threads: none. Errors: POD_E_USAGE (text that is no quantity, or one beyond the range). */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef int64_t pod_time_ps;

/** The most that a part with a fault can be slower than a healthy one. */
#define POD_SLOWNESS_MAX 1e6

#define POD_TIME_NEVER    INT64_MAX
#define POD_PS_PER_NS     INT64_C(1000)
#define POD_PS_PER_US     INT64_C(1000000)
#define POD_BYTES_PER_GIB (INT64_C(1) << 30)
#define POD_PS_PER_MS     INT64_C(1000000000)
#define POD_PS_PER_S      INT64_C(1000000000000)

/** Seconds to picoseconds, rounded to nearest; POD_TIME_NEVER if it doesn't fit or is not finite.
 */
pod_time_ps pod_time_from_s(double seconds);
double pod_time_to_s(pod_time_ps time_ps);
double pod_time_to_us(pod_time_ps time_ps);

/** A transfer rate prepared for fast use: 1e12 / bytes_per_s = mantissa / 2^shift picoseconds per
 *  byte, the mantissa cut to 63 or 64 significant bits. Cut, not rounded up, so that whole answers
 *  stay whole: 45 bytes at 45 GB/s take 1000 ps, not 1001. The cut is below 2^-62 of any time. */
typedef struct pod_rate {
    double bytes_per_s;
    uint64_t ps_per_byte_mantissa; /**< 0 = infinitely fast */
    int ps_per_byte_shift;         /**< 0 to 127 */
} pod_rate;

/** @param bytes_per_s  > 0 (POD_ASSERT); from 2^103 on, and infinity, it takes no time; below 2^-23 a byte
 *  takes POD_TIME_NEVER. */
pod_rate pod_rate_make(double bytes_per_s);

__extension__ typedef unsigned __int128 pod_u128;

/** a / b rounded up, and a rounded up to a multiple of b. @param a  >= 0 @param b  > 0 */
static inline int64_t pod_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0 ? 1 : 0);
}

static inline int64_t pod_round_up(int64_t a, int64_t b)
{
    return pod_ceil_div(a, b) * b;
}

/** The smaller and the larger of two. fmin and fmax of the C library would be calls. */
static inline int64_t pod_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t pod_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline double pod_max_f64(double a, double b)
{
    return a > b ? a : b;
}

/** Time to move `bytes` at `rate`, rounded up. POD_TIME_NEVER when it exceeds int64 (106 days).
 *  Within 1 ps of the exact quotient rounded up; inline because every simulated hop calls it.
 *  @param bytes >= 0 */
static inline pod_time_ps pod_rate_time_ps(pod_rate rate, int64_t bytes)
{
    const pod_u128 one = 1;
    const pod_u128 scaled = (pod_u128)(uint64_t)bytes * rate.ps_per_byte_mantissa;
    const pod_u128 time =
        (scaled + ((one << rate.ps_per_byte_shift) - 1)) >> rate.ps_per_byte_shift;
    return time < (pod_u128)POD_TIME_NEVER ? (pod_time_ps)time : POD_TIME_NEVER;
}

static inline double pod_bytes_to_gib(int64_t bytes)
{
    return (double)bytes / (double)POD_BYTES_PER_GIB;
}

/** a*b and a+b of non-negative int64 with overflow told. @return false on overflow (*out kept). */
bool pod_mul_i64(int64_t a, int64_t b, int64_t *out);
bool pod_add_i64(int64_t a, int64_t b, int64_t *out);

/** Parse "64MiB", "17000000", "1GB", "1.5KiB" into bytes; whole, >= 0; exact decimal arithmetic.
 *  A blank before the unit is accepted, so that what pod_format_bytes prints can be read.
 *  @param what  names the value in errors, e.g. "--bytes" */
pod_status pod_parse_bytes(const char *text, const char *what, int64_t *bytes, pod_error *err);
/** Parse "1us", "5ms", "2s", "1.5ns", "7ps" or plain seconds; >= 0; rounded to nearest, halves up.
 */
pod_status pod_parse_time(const char *text, const char *what, pod_time_ps *time_ps, pod_error *err);
/** Parse a whole number in [min, max]; whole text, no unit. POD_E_USAGE. */
pod_status pod_parse_i64(const char *text, const char *what, int64_t min, int64_t max,
                         int64_t *value, pod_error *err);
/** Parse a finite decimal number in [min, max]; likewise. */
pod_status pod_parse_double(const char *text, const char *what, double min, double max,
                            double *value, pod_error *err);

/** The unit in which a time is read best, from ps to s: it has one to three digits before the point. Of 0: s. */
typedef struct pod_time_unit {
    const char *name;
    double per_s;
} pod_time_unit;
pod_time_unit pod_time_unit_of(double seconds);

/** Room for any text that the functions below write, with its NUL. */
enum { POD_FORMAT_MAX = 32 };

/** Format into buf, in the unit that fits, with up to six digits: "4.25 us". @return buf */
const char *pod_format_time(double seconds, char *buf, size_t size);

/** Format into buf (always terminated) in B, KiB, MiB, GiB, TiB or PiB: the whole number of units if it has at most
 *  four digits ("64 MiB"), else four significant digits ("11.77 MiB"). @param bytes >= 0 @return buf */
const char *pod_format_bytes(int64_t bytes, char *buf, size_t size);
/** Format into buf with so many significant digits, and whole numbers that have more with all of theirs: of three,
 *  "1.23" and "10234". @param digits  1 to 15 @return buf */
const char *pod_format_rounded(double value, int digits, char *buf, size_t size);
/** Format into buf: the fewest digits that read back to exactly the same double; whole numbers
 *  below 1e15 without exponent. @param value  finite @return buf */
const char *pod_format_double(double value, char *buf, size_t size);
