/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"

#include "base/rng.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

/* The exact answer for a whole rate: ceil(bytes * 1e12 / rate) in 128 bits. */
static int64_t exact_ps(int64_t rate, int64_t bytes)
{
    const pod_u128 work = (pod_u128)(uint64_t)bytes * (uint64_t)POD_PS_PER_S;
    return (int64_t)((work + (uint64_t)rate - 1) / (uint64_t)rate);
}

static int64_t time_ps(double rate, int64_t bytes)
{
    return pod_rate_time_ps(pod_rate_make(rate), bytes);
}

Test(units, worked_transfer_times)
{
    cr_expect_eq(time_ps(45e9, 0), 0);
    cr_expect_eq(time_ps(45e9, 45), 1000, "45 B at 45 GB/s take 1 ns, not a picosecond more");
    cr_expect_eq(time_ps(45e9, 1), 23, "22.2 ps, rounded up");
    cr_expect_eq(time_ps(90e9, 17000000), INT64_C(188888889), "the scaling book's 188.9 us");
    cr_expect_eq(time_ps(1.0, 1), POD_PS_PER_S);
    cr_expect_eq(time_ps(1e12, INT64_MAX - 1), INT64_MAX - 1);
}

Test(units, transfer_times_are_within_a_picosecond_of_the_exact_ones)
{
    for (uint64_t i = 0; i < 50000; i++) {
        /* Sizes up to 2^44 bytes and rates from 1 GB/s to 10 TB/s, both over all magnitudes. */
        const int64_t bytes = (int64_t)(pod_rng_u64(1, 0, i) >> (20 + pod_rng_below(1, 1, i, 44)));
        const int64_t rate = (int64_t)(1e9 * pow(10.0, 4.0 * pod_rng_unit(1, 2, i)));
        const int64_t exact = exact_ps(rate, bytes);
        const int64_t time = time_ps((double)rate, bytes);
        cr_assert(time == exact || time == exact - 1,
                  "%" PRId64 " bytes at %" PRId64 " B/s: %" PRId64 ", exactly %" PRId64, bytes,
                  rate, time, exact);
    }
}

Test(units, whole_transfer_times_are_exact)
{
    for (uint64_t i = 0; i < 20000; i++) {
        /* n bytes at n · 1e12 / t bytes per second take t, whenever that rate is whole. */
        const int64_t rate = 1000000000 + (int64_t)pod_rng_below(2, 0, i, 1000000000);
        const int64_t time = (int64_t)pod_rng_below(2, 1, i, 1000000) * 1000000;
        const pod_u128 work = (pod_u128)(uint64_t)rate * (uint64_t)time;
        if (work % (uint64_t)POD_PS_PER_S == 0) {
            cr_assert_eq(time_ps((double)rate, (int64_t)(work / (uint64_t)POD_PS_PER_S)), time);
        }
    }
    for (int64_t bytes = 1; bytes < INT64_C(1) << 44; bytes *= 2) {
        cr_assert_eq(time_ps(1e9, bytes), bytes * 1000);
    }
}

Test(units, transfer_times_grow_with_bytes)
{
    const pod_rate rate = pod_rate_make(45.97e9);
    int64_t before = -1;
    for (int64_t bytes = 0; bytes < 10000; bytes++) {
        const int64_t time = pod_rate_time_ps(rate, bytes);
        cr_assert_gt(time, before);
        before = time;
    }
}

Test(units, too_long_is_never_and_too_fast_is_zero)
{
    cr_expect_eq(time_ps(1.0, INT64_C(10000000)), POD_TIME_NEVER);
    cr_expect_eq(time_ps(1.0, INT64_MAX), POD_TIME_NEVER);
    cr_expect_eq(time_ps(0x1p-23, 1), INT64_C(8388608) * POD_PS_PER_S, "the slowest that arrives");
    cr_expect_eq(time_ps(0x1p-24, 1), POD_TIME_NEVER);
    cr_expect_eq(time_ps(1e-300, 1), POD_TIME_NEVER);
    cr_expect_eq(time_ps(1e-300, 0), 0);
    cr_expect_eq(time_ps(1e12, INT64_MAX), POD_TIME_NEVER);
    cr_expect_eq(time_ps((double)INFINITY, INT64_MAX), 0);
    cr_expect_eq(time_ps(DBL_MAX, INT64_MAX), 0);
    cr_expect_eq(time_ps(0x1p102, 1), 1, "still rounded up");
    cr_expect_eq(time_ps(0x1p102, 0), 0);
}

Test(units, seconds_and_picoseconds)
{
    cr_expect_eq(pod_time_from_s(1e-6), POD_PS_PER_US);
    cr_expect_eq(pod_time_from_s(1.4e-12), 1);
    cr_expect_eq(pod_time_from_s(-1.6e-12), -2);
    cr_expect_eq(pod_time_from_s(1e7), POD_TIME_NEVER);
    cr_expect_eq(pod_time_from_s((double)NAN), POD_TIME_NEVER);
    cr_expect_eq(pod_time_from_s((double)INFINITY), POD_TIME_NEVER);
    cr_expect_float_eq(pod_time_to_s(POD_PS_PER_MS), 1e-3, 0.0);
    cr_expect_float_eq(pod_time_to_us(1500000), 1.5, 0.0);
}

Test(units, products_and_sums_tell_overflow)
{
    int64_t out = 7;
    cr_expect(pod_mul_i64(INT64_C(1) << 31, INT64_C(1) << 31, &out));
    cr_expect_eq(out, INT64_C(1) << 62);
    cr_expect_not(pod_mul_i64(INT64_C(1) << 32, INT64_C(1) << 31, &out));
    cr_expect_eq(out, INT64_C(1) << 62, "untouched");
    cr_expect(pod_add_i64(INT64_MAX - 1, 1, &out));
    cr_expect_eq(out, INT64_MAX);
    cr_expect_not(pod_add_i64(INT64_MAX, 1, &out));
    cr_expect_eq(out, INT64_MAX);
}

Test(units, reads_sizes)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } cases[] = {
        {"0",                       0                  },
        {"17000000",                17000000           },
        {"1.7e7",                   17000000           },
        {"64KiB",                   65536              },
        {"64Ki",                    65536              },
        {"64 KiB",                  65536              },
        {"1GB",                     1000000000         },
        {"1G",                      1000000000         },
        {"3kB",                     3000               },
        {"1.5KiB",                  1536               },
        {"0.5Ki",                   512                },
        {".5Ki",                    512                },
        {"8B",                      8                  },
        {"2TiB",                    INT64_C(2) << 40   },
        {"8191PiB",                 INT64_C(8191) << 50},
        {"7EiB",                    INT64_C(7) << 60   },
        {"9223372036854775807",     INT64_MAX          },
        {"9.223372036854775807e18", INT64_MAX          },
        {"1e2KB",                   100000             },
        {"0e999999",                0                  },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t bytes = -1;
        cr_expect_eq(pod_parse_bytes(cases[i].text, "--bytes", &bytes, NULL), POD_OK, "%s",
                     cases[i].text);
        cr_expect_eq(bytes, cases[i].bytes, "%s gave %" PRId64, cases[i].text, bytes);
    }
}

Test(units, refuses_what_is_no_size)
{
    static const char *const texts[] = {
        "",    " ",       "64Mb",   "64MBs", "-1",  "B",     "KiB", ".",    "1..2",   "0x10", "nan",
        "inf", "64  KiB", "64KiB ", " 64",   "1,5", "64miB", "1e",  "1e+B", "64K iB", "9Ei"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int64_t bytes = 7;
        cr_expect_eq(pod_parse_bytes(texts[i], "--bytes", &bytes, NULL), POD_E_USAGE, "'%s'",
                     texts[i]);
        cr_expect_eq(bytes, 7, "'%s' changed the result", texts[i]);
    }
    cr_expect_eq(pod_parse_bytes("0.3KiB", "--bytes", &(int64_t){0}, NULL), POD_E_USAGE);
    cr_expect_eq(pod_parse_bytes("1e-1", "--bytes", &(int64_t){0}, NULL), POD_E_USAGE);
}

Test(units, tells_sizes_that_do_not_fit)
{
    static const char *const texts[] = {"9223372036854775808", "8192PiB", "1e400", "1e19",
                                        "99999999999999999999999999999999999PiB"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        cr_expect_eq(pod_parse_bytes(texts[i], "--bytes", &(int64_t){0}, NULL), POD_E_USAGE, "%s",
                     texts[i]);
    }
}

Test(units, errors_name_the_option_the_text_and_the_remedy)
{
    pod_error err = {.status = POD_OK};
    int64_t value = 0;
    double number = 0.0;
    (void)pod_parse_bytes("64Mb", "--bytes", &value, &err);
    cr_expect_str_eq(err.text, "--bytes: '64Mb' is not a size; write e.g. 65536, 64KiB or 1GB");
    pod_error_clear(&err);
    (void)pod_parse_i64("0", "--m", 1, 99, &value, &err);
    cr_expect_str_eq(err.text, "--m: 0 is out of range; give 1 to 99");
    pod_error_clear(&err);
    (void)pod_parse_double("nan", "clock_MHz", 0.0, 1.0, &number, &err);
    cr_expect_str_eq(err.text, "clock_MHz: 'nan' is not a finite number; write e.g. 1.5 or 2e9");
    pod_error_clear(&err);
    (void)pod_parse_time("5min", "--t", &value, &err);
    cr_expect_str_eq(err.text, "--t: '5min' is not a time; write e.g. 1us, 1.5ms or 2s");
}

Test(units, reads_times)
{
    static const struct {
        const char *text;
        int64_t time_ps;
    } cases[] = {
        {"1us",       POD_PS_PER_US                  },
        {"5ms",       5 * POD_PS_PER_MS              },
        {"2s",        2 * POD_PS_PER_S               },
        {"1.5ns",     1500                           },
        {"7ps",       7                              },
        {"3",         3 * POD_PS_PER_S               },
        {"1e-6",      POD_PS_PER_US                  },
        {"0.1ps",     0                              },
        {"0.5ps",     1                              },
        {"0.04999ns", 50                             },
        {"0",         0                              },
        {"9223372s",  INT64_C(9223372) * POD_PS_PER_S}
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t time = -1;
        cr_expect_eq(pod_parse_time(cases[i].text, "--t", &time, NULL), POD_OK, "%s",
                     cases[i].text);
        cr_expect_eq(time, cases[i].time_ps, "%s gave %" PRId64, cases[i].text, time);
    }
    int64_t time = 7;
    cr_expect_eq(pod_parse_time("9223373s", "--t", &time, NULL), POD_E_USAGE);
    cr_expect_eq(pod_parse_time("9223372036854775807ps", "--t", &time, NULL), POD_E_USAGE);
    cr_expect_eq(pod_parse_time("-1s", "--t", &time, NULL), POD_E_USAGE);
    cr_expect_eq(pod_parse_time("1S", "--t", &time, NULL), POD_E_USAGE);
    cr_expect_eq(pod_parse_time("", "--t", &time, NULL), POD_E_USAGE);
    cr_expect_eq(time, 7);
}

Test(units, reads_whole_numbers)
{
    int64_t value = 0;
    cr_expect_eq(pod_parse_i64("-9223372036854775808", "n", INT64_MIN, INT64_MAX, &value, NULL),
                 POD_OK);
    cr_expect_eq(value, INT64_MIN);
    cr_expect_eq(pod_parse_i64("+12", "n", 0, 12, &value, NULL), POD_OK);
    cr_expect_eq(value, 12);
    cr_expect_eq(pod_parse_i64("9223372036854775808", "n", INT64_MIN, INT64_MAX, &value, NULL),
                 POD_E_USAGE);
    cr_expect_eq(pod_parse_i64("13", "n", 0, 12, &value, NULL), POD_E_USAGE);
    cr_expect_eq(pod_parse_i64("-1", "n", 0, 12, &value, NULL), POD_E_USAGE);
    cr_expect_eq(pod_parse_i64("-9223372036854775809", "n", 0, 12, &value, NULL), POD_E_USAGE);
    static const char *const texts[] = {"", "-", "+", "1.0", "1e3", "12 ", " 12", "0x10", "--1"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        cr_expect_eq(pod_parse_i64(texts[i], "n", -99, 99, &value, NULL), POD_E_USAGE, "'%s'",
                     texts[i]);
    }
    cr_expect_eq(value, 12);
}

Test(units, reads_decimal_numbers)
{
    double value = 0.0;
    cr_expect_eq(pod_parse_double("-1.5e3", "n", -2e3, 0.0, &value, NULL), POD_OK);
    cr_expect_eq(value, -1500.0);
    cr_expect_eq(pod_parse_double("+.5", "n", 0.0, 1.0, &value, NULL), POD_OK);
    cr_expect_eq(value, 0.5);
    cr_expect_eq(pod_parse_double("1.", "n", 0.0, 1.0, &value, NULL), POD_OK);
    cr_expect_eq(value, 1.0);
    cr_expect_eq(pod_parse_double("1e999", "n", 0.0, (double)INFINITY, &value, NULL), POD_E_USAGE);
    cr_expect_eq(pod_parse_double("1.01", "n", 0.0, 1.0, &value, NULL), POD_E_USAGE);
    cr_expect_eq(pod_parse_double("-0.1", "n", 0.0, 1.0, &value, NULL), POD_E_USAGE);
    static const char *const texts[] = {"",   ".",  "nan", "NaN", "inf", "infinity", "0x1p3",
                                        " 1", "1 ", "1e",  "1e+", "1,5", "--1",      "1.5.2"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        cr_expect_eq(pod_parse_double(texts[i], "n", -1e9, 1e9, &value, NULL), POD_E_USAGE, "'%s'",
                     texts[i]);
    }
    cr_expect_eq(value, 1.0);
}

Test(units, writes_sizes)
{
    static const struct {
        int64_t bytes;
        const char *text;
    } cases[] = {
        {0,                 "0 B"      },
        {1,                 "1 B"      },
        {1023,              "1023 B"   },
        {1024,              "1 KiB"    },
        {1500,              "1500 B"   },
        {65536,             "64 KiB"   },
        {INT64_C(64) << 20, "64 MiB"   },
        {17000000,          "16.21 MiB"},
        {1000000000,        "953.7 MiB"},
        {10000000000,       "9.313 GiB"},
        {12345678,          "11.77 MiB"},
        {123456789012,      "115 GiB"  },
        {999999999999,      "931.3 GiB"},
        {INT64_C(3) << 50,  "3 PiB"    },
        {INT64_MAX,         "8192 PiB" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[POD_FORMAT_MAX];
        cr_expect_str_eq(pod_format_bytes(cases[i].bytes, text, sizeof text), cases[i].text);
    }
}

Test(units, times_have_the_unit_that_fits)
{
    static const struct {
        double seconds;
        const char *unit;
    } cases[] = {
        {0,       "s" },
        {1e-12,   "ps"},
        {4e-6,    "us"},
        {9.99e-4, "us"},
        {1e-3,    "ms"},
        {0.9999,  "ms"},
        {1,       "s" },
        {1e6,     "s" }
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect_str_eq(pod_time_unit_of(cases[i].seconds).name, cases[i].unit);
    }
}

Test(units, whole_sizes_read_back)
{
    for (uint64_t i = 0; i < 2000; i++) {
        const int64_t bytes = (int64_t)pod_rng_below(3, 0, i, 9999)
                              << (10 * pod_rng_below(3, 1, i, 5));
        char text[POD_FORMAT_MAX];
        int64_t back = -1;
        (void)pod_format_bytes(bytes, text, sizeof text);
        cr_assert_eq(pod_parse_bytes(text, "size", &back, NULL), POD_OK, "%s", text);
        cr_assert_eq(back, bytes, "%s", text);
    }
}

Test(units, writes_numbers_as_people_do)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.0,        "0"                  },
        {1.0,        "1"                  },
        {-2.0,       "-2"                 },
        {0.1,        "0.1"                },
        {100000,     "100000"             },
        {1e15,       "1e+15"              },
        {1.5,        "1.5"                },
        {1e-7,       "1e-07"              },
        {0.1 + 0.2,  "0.30000000000000004"},
        {188.888889, "188.888889"         }
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[POD_FORMAT_MAX];
        cr_expect_str_eq(pod_format_double(cases[i].value, text, sizeof text), cases[i].text);
    }
}

Test(units, every_double_reads_back)
{
    for (uint64_t i = 0; i < 20000; i++) {
        const uint64_t bits = pod_rng_u64(4, 0, i);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) {
            continue;
        }
        char text[POD_FORMAT_MAX];
        const double back = strtod(pod_format_double(value, text, sizeof text), NULL);
        cr_assert_eq(memcmp(&back, &value, sizeof back), 0, "%s", text);
    }
    const double edges[] = {-0.0, DBL_MAX, DBL_MIN, DBL_TRUE_MIN, DBL_EPSILON};
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        char text[POD_FORMAT_MAX];
        const double back = strtod(pod_format_double(edges[i], text, sizeof text), NULL);
        cr_expect_eq(memcmp(&back, &edges[i], sizeof back), 0, "%s", text);
    }
}

Test(units, rounds_without_exponents)
{
    char text[POD_FORMAT_MAX];
    cr_expect_str_eq(pod_format_rounded(10234.4, 3, text, sizeof text), "10234");
    cr_expect_str_eq(pod_format_rounded(-10234.4, 3, text, sizeof text), "-10234");
    cr_expect_str_eq(pod_format_rounded(999.7, 3, text, sizeof text), "1000");
    cr_expect_str_eq(pod_format_rounded(999.4, 3, text, sizeof text), "999");
    cr_expect_str_eq(pod_format_rounded(1.2345, 3, text, sizeof text), "1.23");
    cr_expect_str_eq(pod_format_rounded(0, 4, text, sizeof text), "0");
}

Test(units, formats_times_in_the_unit_that_fits)
{
    char text[POD_FORMAT_MAX];
    cr_expect_str_eq(pod_format_time(4e-6, text, sizeof text), "4 us");
    cr_expect_str_eq(pod_format_time(163.68e-6, text, sizeof text), "163.68 us");
    cr_expect_str_eq(pod_format_time(2.5e-10, text, sizeof text), "250 ps");
    cr_expect_str_eq(pod_format_time(1.0578, text, sizeof text), "1.0578 s");
    cr_expect_str_eq(pod_format_time(-0.002, text, sizeof text), "-2 ms");
    cr_expect_str_eq(pod_format_time(0, text, sizeof text), "0 s");
}
