/* SPDX-License-Identifier: Apache-2.0 */
#include "ici/generation.h"

#include <string.h>

// clang-format off
static const pod_generation generations[] = {
    {"v2",    "v2",        NULL,        2, 2, 0, 0,  16, false},
    {"v3",    "v3",        NULL,        2, 2, 0, 0,  32, false},
    {"v4",    "v4",        NULL,        3, 2, 4, 0,  0,  false},
    {"v5e",   "v5litepod", "v5litepod", 2, 1, 0, 16, 0,  false},
    {"v5p",   "v5p",       NULL,        3, 2, 4, 0,  0,  true},
    {"v6e",   "v6e",       NULL,        2, 1, 0, 16, 0,  false},
    {"tpu7x", "tpu7x",     "v7",        3, 2, 4, 0,  0,  false},
};
// clang-format on

enum { GENERATIONS = sizeof generations / sizeof generations[0] };

int pod_generation_count(void)
{
    return GENERATIONS;
}

const pod_generation *pod_generation_at(int i)
{
    return &generations[i];
}

static bool is_text(const char *text, const char *name, size_t length)
{
    return text && strlen(text) == length && memcmp(text, name, length) == 0;
}

const pod_generation *pod_generation_find(const char *name, size_t length)
{
    for (int i = 0; i < GENERATIONS; i++) {
        const pod_generation *g = &generations[i];
        if (is_text(g->name, name, length) || is_text(g->alias, name, length)) {
            return g;
        }
    }
    return NULL;
}

unsigned pod_generation_wrap(const pod_generation *generation, const int32_t dims[POD_AXES])
{
    unsigned multiples = 0;
    unsigned closing = 0;
    unsigned sides = 0;
    for (int a = 0; a < generation->naxes; a++) {
        unsigned bit = 1U << a;
        int32_t multiple = generation->wrap_multiple;
        multiples |= multiple > 0 && dims[a] % multiple == 0 ? bit : 0U;
        closing |= dims[a] == generation->wrap_axis ? bit : 0U;
        sides |= dims[a] == generation->wrap_pod ? bit : 0U;
    }
    unsigned all = (1U << generation->naxes) - 1U;
    return closing | (multiples == all ? all : 0U) | (sides == all ? all : 0U);
}

bool pod_generation_can_twist(const pod_generation *generation, const int32_t dims[POD_AXES])
{
    return generation->naxes == POD_AXES && pod_dims_can_twist(dims);
}
