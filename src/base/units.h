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
 *  Threads: none. Errors: POD_E_USAGE (text that is no quantity), POD_E_RANGE (does not fit). */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef int64_t pod_time_ps;

#define POD_TIME_NEVER INT64_MAX
#define POD_PS_PER_NS INT64_C(1000)
#define POD_PS_PER_US INT64_C(1000000)
#define POD_PS_PER_MS INT64_C(1000000000)
#define POD_PS_PER_S INT64_C(1000000000000)

/** Seconds to picoseconds, rounded to nearest; POD_TIME_NEVER if it doesn't fit or is not finite. */
pod_time_ps pod_time_from_s(double seconds);
double pod_time_to_s(pod_time_ps time_ps);
double pod_time_to_us(pod_time_ps time_ps);

/** A transfer rate prepared for exact, fast use: picoseconds per byte as a 64.40 fixed point. */
typedef struct pod_rate {
    double bytes_per_s;
    uint64_t ps_per_byte_q40; /**< round(1e12 / bytes_per_s · 2^40); 0 = infinitely fast */
} pod_rate;

/** @param bytes_per_s  > 0 and >= 1 byte/s; +infinity gives a rate that takes no time. */
pod_rate pod_rate_make(double bytes_per_s);

/** Time to move `bytes` at `rate`, rounded up. POD_TIME_NEVER when it exceeds int64 (106 days).
 *  @param bytes >= 0 */
pod_time_ps pod_rate_time_ps(pod_rate rate, int64_t bytes);

/** a*b and a+b of non-negative int64 with overflow told. @return false on overflow (*out kept). */
bool pod_mul_i64(int64_t a, int64_t b, int64_t *out);
bool pod_add_i64(int64_t a, int64_t b, int64_t *out);

/** Parse "64MiB", "17000000", "1GB" into bytes; whole, >= 0. @param what  names the value in errors */
pod_status pod_parse_bytes(const char *text, const char *what, int64_t *bytes, pod_error *err);
/** Parse "90GB/s" or plain bytes per second; > 0. */
pod_status pod_parse_bytes_per_s(const char *text, const char *what, double *rate, pod_error *err);
/** Parse "1us", "5ms", "2s", "1.5ns" or plain seconds; >= 0. */
pod_status pod_parse_time(const char *text, const char *what, pod_time_ps *time_ps, pod_error *err);
/** Parse a whole number in [min, max]; whole text, no unit. */
pod_status pod_parse_i64(const char *text, const char *what, int64_t min, int64_t max,
                         int64_t *value, pod_error *err);
/** Parse a finite decimal number in [min, max]. */
pod_status pod_parse_double(const char *text, const char *what, double min, double max,
                            double *value, pod_error *err);

/** Format into buf (always terminated): "64 MiB" when a whole number of binary units, else "17 MB". */
const char *pod_format_bytes(int64_t bytes, char *buf, size_t size);
/** Format into buf: shortest decimal text that reads back to exactly the same double. */
const char *pod_format_double(double value, char *buf, size_t size);
