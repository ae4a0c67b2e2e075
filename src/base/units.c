/* SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pod_time_ps pod_time_from_s(double seconds)
{
    const double ps = nearbyint(seconds * (double)POD_PS_PER_S);
    /* 2^63 is the first double beyond int64; a NaN fails both comparisons. */
    return ps > -0x1p63 && ps < 0x1p63 ? (pod_time_ps)ps : POD_TIME_NEVER;
}

double pod_time_to_s(pod_time_ps time_ps)
{
    return (double)time_ps / (double)POD_PS_PER_S;
}

double pod_time_to_us(pod_time_ps time_ps)
{
    return (double)time_ps / (double)POD_PS_PER_US;
}

pod_rate pod_rate_make(double bytes_per_s)
{
    POD_ASSERT(bytes_per_s > 0.0);
    if (bytes_per_s >= 0x1p103) {
        return (pod_rate){.bytes_per_s = bytes_per_s, .ps_per_byte_shift = 127};
    }
    if (bytes_per_s < 0x1p-23) { /* a byte takes longer than 2^63 ps */
        return (pod_rate){.bytes_per_s = bytes_per_s, .ps_per_byte_mantissa = UINT64_MAX};
    }
    /* bytes_per_s = significand · 2^exponent exactly, 2^52 <= significand < 2^53. With 76 more bits
     * the quotient 1e12·2^76 / significand lies between 2^62.8 and 2^63.9. */
    int exponent = 0;
    const uint64_t significand = (uint64_t)ldexp(frexp(bytes_per_s, &exponent), 53);
    exponent -= 53;
    return (pod_rate){.bytes_per_s = bytes_per_s,
                      .ps_per_byte_mantissa =
                          (uint64_t)(((pod_u128)POD_PS_PER_S << 76) / significand),
                      .ps_per_byte_shift = 76 + exponent};
}

bool pod_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product)) {
        return false;
    }
    *out = product;
    return true;
}

bool pod_add_i64(int64_t a, int64_t b, int64_t *out)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) {
        return false;
    }
    *out = sum;
    return true;
}

/* A decimal numeral, exact: digits · 10^exponent. */
typedef struct numeral {
    pod_u128 digits;
    int exponent;
    size_t length; /* of its text */
} numeral;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The exponent "e12", "E+3", "e-6" at text, if there is one. Returns its length. */
static size_t scan_exponent(const char *text, int *exponent)
{
    if (text[0] != 'e' && text[0] != 'E') {
        return 0;
    }
    size_t at = 1;
    const bool negative = text[at] == '-';
    if (text[at] == '-' || text[at] == '+') {
        at++;
    }
    if (!is_digit(text[at])) {
        return 0;
    }
    int value = 0;
    for (; is_digit(text[at]); at++) {
        value = value < 10000 ? value * 10 + (text[at] - '0') : value;
    }
    *exponent += negative ? -value : value;
    return at;
}

/* Unsigned digits with an optional point and exponent at the start of text: "12", "1.5", ".5",
 * "1.7e7". False if there are none, or more digits than 128 bits hold. */
static bool scan_numeral(const char *text, numeral *out)
{
    const pod_u128 limit = ((~(pod_u128)0) - 9) / 10;
    *out = (numeral){.digits = 0};
    bool any = false;
    bool point = false;
    size_t at = 0;
    for (; is_digit(text[at]) || (text[at] == '.' && !point); at++) {
        if (text[at] == '.') {
            point = true;
            continue;
        }
        if (out->digits > limit) {
            return false;
        }
        any = true;
        out->digits = out->digits * 10 + (unsigned)(text[at] - '0');
        out->exponent -= point;
    }
    if (!any) {
        return false;
    }
    out->length = at + scan_exponent(text + at, &out->exponent);
    return true;
}

enum scale_result { SCALE_EXACT, SCALE_ROUNDED, SCALE_OVERFLOW };

/* value = number · unit as int64, rounded to nearest (halves up) if it isn't whole. */
static enum scale_result scale(numeral number, int64_t unit, int64_t *value)
{
    pod_u128 product = 0;
    if (__builtin_mul_overflow(number.digits, (pod_u128)(uint64_t)unit, &product)) {
        return SCALE_OVERFLOW;
    }
    for (; number.exponent > 0 && product != 0; number.exponent--) {
        if (__builtin_mul_overflow(product, (pod_u128)10, &product)) {
            return SCALE_OVERFLOW;
        }
    }
    bool exact = true;
    bool half_or_more = false;
    for (; number.exponent < 0 && (product != 0 || half_or_more); number.exponent++) {
        const int digit = (int)(product % 10);
        exact = exact && digit == 0;
        half_or_more = digit >= 5;
        product /= 10;
    }
    product += half_or_more;
    if (product > INT64_MAX) {
        return SCALE_OVERFLOW;
    }
    *value = (int64_t)product;
    return exact ? SCALE_EXACT : SCALE_ROUNDED;
}

typedef struct unit_prefix {
    const char *text;
    int64_t factor;
} unit_prefix;

static const unit_prefix byte_prefixes[] = {
    {"Ki", INT64_C(1) << 10         },
    {"Mi", INT64_C(1) << 20         },
    {"Gi", INT64_C(1) << 30         },
    {"Ti", INT64_C(1) << 40         },
    {"Pi", INT64_C(1) << 50         },
    {"Ei", INT64_C(1) << 60         },
    {"K",  INT64_C(1000)            },
    {"k",  INT64_C(1000)            },
    {"M",  INT64_C(1000000)         },
    {"G",  INT64_C(1000000000)      },
    {"T",  INT64_C(1000000000000)   },
    {"P",  INT64_C(1000000000000000)},
    {"",   1                        },
};
enum { NBYTE_PREFIXES = sizeof byte_prefixes / sizeof byte_prefixes[0] };

/* The prefix of "[K|Ki|…][B]", or NULL; nothing at all is one byte. A blank may come first. */
static const unit_prefix *find_byte_unit(const char *text)
{
    text += text[0] == ' ' && text[1] != '\0';
    if (text[0] == '\0') {
        return &byte_prefixes[NBYTE_PREFIXES - 1];
    }
    for (int i = 0; i < NBYTE_PREFIXES; i++) {
        const unit_prefix *prefix = &byte_prefixes[i];
        const size_t length = strlen(prefix->text);
        const char *rest = text + length;
        if (strncmp(text, prefix->text, length) == 0
            && (rest[0] == '\0' || strcmp(rest, "B") == 0)) {
            return prefix;
        }
    }
    return NULL;
}

pod_status pod_parse_bytes(const char *text, const char *what, int64_t *bytes, pod_error *err)
{
    numeral number;
    const unit_prefix *unit =
        scan_numeral(text, &number) ? find_byte_unit(text + number.length) : NULL;
    if (unit == NULL) {
        return pod_fail(err, POD_E_USAGE, "%s: '%s' is not a size; write e.g. 65536, 64KiB or 1GB",
                        what, text);
    }
    int64_t value = 0;
    switch (scale(number, unit->factor, &value)) {
    case SCALE_EXACT:
        *bytes = value;
        return POD_OK;
    case SCALE_ROUNDED:
        return pod_fail(err, POD_E_USAGE,
                        "%s: '%s' is not a whole number of bytes; write e.g. 65536 or 1.5KiB", what,
                        text);
    case SCALE_OVERFLOW:
        break;
    }
    return pod_fail(err, POD_E_USAGE, "%s: '%s' is too large; the most is %" PRId64 " bytes", what,
                    text, INT64_MAX);
}

pod_status pod_parse_time(const char *text, const char *what, pod_time_ps *time_ps, pod_error *err)
{
    static const struct {
        const char *text;
        int64_t ps;
    } units[] = {
        {"",   POD_PS_PER_S },
        {"s",  POD_PS_PER_S },
        {"ms", POD_PS_PER_MS},
        {"us", POD_PS_PER_US},
        {"ns", POD_PS_PER_NS},
        {"ps", 1            }
    };
    numeral number;
    int64_t unit_ps = 0;
    if (scan_numeral(text, &number)) {
        const char *rest = text + number.length;
        rest += rest[0] == ' ' && rest[1] != '\0';
        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
            unit_ps = strcmp(rest, units[i].text) == 0 ? units[i].ps : unit_ps;
        }
    }
    if (unit_ps == 0) {
        return pod_fail(err, POD_E_USAGE, "%s: '%s' is not a time; write e.g. 1us, 1.5ms or 2s",
                        what, text);
    }
    int64_t value = 0;
    if (scale(number, unit_ps, &value) == SCALE_OVERFLOW || value == POD_TIME_NEVER) {
        return pod_fail(err, POD_E_USAGE, "%s: '%s' is too long; the most is 9223372 s", what,
                        text);
    }
    *time_ps = value;
    return POD_OK;
}

pod_status pod_parse_i64(const char *text, const char *what, int64_t min, int64_t max,
                         int64_t *value, pod_error *err)
{
    const bool negative = text[0] == '-';
    const char *digits = text + (negative || text[0] == '+');
    if (digits[0] == '\0' || strspn(digits, "0123456789") != strlen(digits)) {
        return pod_fail(err, POD_E_USAGE, "%s: '%s' is not a whole number; write e.g. %" PRId64,
                        what, text, min > 0 ? min : (max < 1 ? max : 1));
    }
    int64_t number = 0;
    bool fits = true;
    for (const char *c = digits; *c != '\0' && fits; c++) {
        const int64_t digit = *c - '0';
        fits = !__builtin_mul_overflow(number, INT64_C(10), &number)
               && !__builtin_add_overflow(number, negative ? -digit : digit, &number);
    }
    if (!fits || number < min || number > max) {
        return pod_fail(err, POD_E_USAGE, "%s: %s is out of range; give %" PRId64 " to %" PRId64,
                        what, text, min, max);
    }
    *value = number;
    return POD_OK;
}

pod_status pod_parse_double(const char *text, const char *what, double min, double max,
                            double *value, pod_error *err)
{
    /* The numeral is checked here, because strtod also takes blanks, hexadecimal, nan and inf. */
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    const size_t whole = strspn(digits, "0123456789");
    const size_t fraction = digits[whole] == '.' ? strspn(digits + whole + 1, "0123456789") : 0;
    const size_t length = whole + fraction + (digits[whole] == '.');
    int exponent = 0;
    const size_t exponent_length = scan_exponent(digits + length, &exponent);
    if (whole + fraction == 0 || digits[length + exponent_length] != '\0') {
        return pod_fail(err, POD_E_USAGE, "%s: '%s' is not a finite number; write e.g. 1.5 or 2e9",
                        what, text);
    }
    const double number = strtod(text, NULL);
    if (!(number >= min && number <= max) || !isfinite(number)) {
        return pod_fail(err, POD_E_USAGE, "%s: %s is out of range; give %g to %g", what, text, min,
                        max);
    }
    *value = number;
    return POD_OK;
}

pod_time_unit pod_time_unit_of(double seconds)
{
    static const pod_time_unit units[] = {
        {"ps", 1e12},
        {"ns", 1e9 },
        {"us", 1e6 },
        {"ms", 1e3 },
        {"s",  1   }
    };
    static const double NEXT = 999.9995; /* would be printed as 1000.000 */
    const int last = (int)(sizeof units / sizeof *units) - 1;
    int i = seconds == 0 ? last : 0;
    while (i < last && seconds * units[i].per_s >= NEXT) {
        i++;
    }
    return units[i];
}

const char *pod_format_time(double seconds, char *buf, size_t size)
{
    const pod_time_unit unit = pod_time_unit_of(fabs(seconds));
    (void)snprintf(buf, size, "%.6g %s", seconds * unit.per_s, unit.name);
    return buf;
}

const char *pod_format_bytes(int64_t bytes, char *buf, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    static const int LAST = (int)(sizeof units / sizeof *units) - 1;
    int64_t whole = bytes;
    int power = 0;
    while (whole != 0 && whole % 1024 == 0 && power < LAST) {
        whole /= 1024;
        power++;
    }
    if (whole < 10000) {
        (void)snprintf(buf, size, "%" PRId64 " %s", whole, units[power]);
        return buf;
    }
    double amount = (double)bytes;
    for (power = 0; amount >= 1023.95 && power < LAST; power++) {
        amount /= 1024.0;
    }
    (void)snprintf(buf, size, "%.4g %s", amount, units[power]);
    return buf;
}

const char *pod_format_rounded(double value, int digits, char *buf, size_t size)
{
    POD_ASSERT(digits >= 1 && digits <= 15);
    if (fabs(value) >= pow(10, digits) - 0.5) {
        (void)snprintf(buf, size, "%.0f", value);
    } else {
        (void)snprintf(buf, size, "%.*g", digits, value);
    }
    return buf;
}

const char *pod_format_double(double value, char *buf, size_t size)
{
    POD_ASSERT(isfinite(value));
    if (fabs(value) < 1e15 && value == trunc(value)) {
        (void)snprintf(buf, size, "%.0f", value);
        return buf;
    }
    char text[POD_FORMAT_MAX];
    for (int digits = 1; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    (void)snprintf(buf, size, "%s", text);
    return buf;
}
