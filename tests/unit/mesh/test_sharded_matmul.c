/* SPDX-License-Identifier: Apache-2.0 */
/* Every sharded matmul over two mesh axes against a plain one: a mesh of data=2, tensor=3, matrices
 * of 6x6, and shards that move in memory as the plan says. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "mesh/sharding.h"

static pod_sharding sharding_from(const char *text)
{
    pod_sharding sharding;
    pod_error err = {0};
    cr_assert_eq(pod_sharding_parse(text, &sharding, &err), POD_OK, "%s", err.text);
    return sharding;
}

enum { NDATA = 2, NTENSOR = 3, NDEVICES = NDATA * NTENSOR, N = 6 };

/** What one device holds of a matrix. */
typedef struct shard {
    int size[2];
    int value[N][N];
} shard;

static int axis_length(pod_mesh_axis axis)
{
    return axis == POD_MESH_DATA ? NDATA : NTENSOR;
}

static int axis_coord(int device, pod_mesh_axis axis)
{
    return axis == POD_MESH_DATA ? device / NTENSOR : device % NTENSOR;
}

static int pieces_of(const pod_axis_list *list)
{
    int pieces = 1;
    for (int i = 0; i < list->count; i++) {
        pieces *= axis_length(list->axis[i]);
    }
    return pieces;
}

/** Which piece of a dim cut by `list` a device has: the outermost axis counts most. */
static int piece_of(const pod_axis_list *list, int device)
{
    int piece = 0;
    for (int i = 0; i < list->count; i++) {
        piece = piece * axis_length(list->axis[i]) + axis_coord(device, list->axis[i]);
    }
    return piece;
}

/** True if two devices differ at most along the axes of `list`. */
static bool same_group(const pod_axis_list *list, int a, int b)
{
    for (pod_mesh_axis axis = POD_MESH_DATA; axis <= POD_MESH_TENSOR; axis += 2) {
        bool along = false;
        for (int i = 0; i < list->count; i++) {
            along = along || list->axis[i] == axis;
        }
        if (!along && axis_coord(a, axis) != axis_coord(b, axis)) {
            return false;
        }
    }
    return true;
}

static shard piece_from(const shard *whole, int dim, int piece, int pieces)
{
    shard out = *whole;
    out.size[dim] = whole->size[dim] / pieces;
    for (int i = 0; i < out.size[0]; i++) {
        for (int j = 0; j < out.size[1]; j++) {
            const int di = dim == 0 ? piece * out.size[0] : 0;
            const int dj = dim == 1 ? piece * out.size[1] : 0;
            out.value[i][j] = whole->value[i + di][j + dj];
        }
    }
    return out;
}

static shard shard_of(const shard *whole, const pod_sharding *sharding, int device)
{
    shard out = *whole;
    for (int d = 0; d < 2; d++) {
        const pod_axis_list *cut = &sharding->dim[d].cut;
        out = piece_from(&out, d, piece_of(cut, device), pieces_of(cut));
    }
    return out;
}

static void gather(const shard *in, int device, const pod_axis_list *axes, int dim, shard *out)
{
    *out = in[device];
    out->size[dim] *= pieces_of(axes);
    for (int peer = 0; peer < NDEVICES; peer++) {
        if (!same_group(axes, device, peer)) {
            continue;
        }
        const int at = piece_of(axes, peer) * in[peer].size[dim];
        for (int i = 0; i < in[peer].size[0]; i++) {
            for (int j = 0; j < in[peer].size[1]; j++) {
                out->value[i + (dim == 0 ? at : 0)][j + (dim == 1 ? at : 0)] = in[peer].value[i][j];
            }
        }
    }
}

static void reduce(const shard *in, int device, const pod_axis_list *axes, shard *out)
{
    *out = in[device];
    memset(out->value, 0, sizeof out->value);
    for (int peer = 0; peer < NDEVICES; peer++) {
        for (int i = 0; same_group(axes, device, peer) && i < N * N; i++) {
            out->value[i / N][i % N] += in[peer].value[i / N][i % N];
        }
    }
}

static void run_step(const pod_reshard_step *step, shard *on)
{
    shard in[NDEVICES];
    memcpy(in, on, sizeof in);
    const int pieces = pieces_of(&step->axes);
    for (int device = 0; device < NDEVICES; device++) {
        const int piece = piece_of(&step->axes, device);
        shard whole;
        switch (step->op) {
        case POD_RESHARD_ALL_GATHER:
            gather(in, device, &step->axes, step->dim, &on[device]);
            break;
        case POD_RESHARD_REDUCE_SCATTER:
            reduce(in, device, &step->axes, &whole);
            on[device] = piece_from(&whole, step->dim, piece, pieces);
            break;
        case POD_RESHARD_ALL_REDUCE:
            reduce(in, device, &step->axes, &on[device]);
            break;
        case POD_RESHARD_ALL_TO_ALL:
            gather(in, device, &step->axes, step->dim, &whole);
            on[device] = piece_from(&whole, step->to_dim, piece, pieces);
            break;
        case POD_RESHARD_KEEP_PIECE:
            on[device] = piece_from(&in[device], step->dim, piece, pieces);
            break;
        }
    }
}

static void multiply(const shard *a, const shard *b, shard *c)
{
    memset(c, 0, sizeof *c);
    cr_assert_eq(a->size[1], b->size[0]);
    c->size[0] = a->size[0];
    c->size[1] = b->size[1];
    for (int i = 0; i < c->size[0]; i++) {
        for (int k = 0; k < c->size[1]; k++) {
            for (int j = 0; j < a->size[1]; j++) {
                c->value[i][k] += a->value[i][j] * b->value[j][k];
            }
        }
    }
}

static void matrix_fill(shard *matrix, int seed)
{
    matrix->size[0] = N;
    matrix->size[1] = N;
    for (int i = 0; i < N * N; i++) {
        matrix->value[i / N][i % N] = (i * 7 + seed * 13) % 11 - 5;
    }
}

static bool shards_equal(const shard *a, const shard *b)
{
    bool equal = a->size[0] == b->size[0] && a->size[1] == b->size[1];
    for (int i = 0; equal && i < a->size[0]; i++) {
        equal = memcmp(a->value[i], b->value[i], (size_t)a->size[1] * sizeof a->value[i][0]) == 0;
    }
    return equal;
}

static void run_plan(const pod_sharded_matmul *plan, const pod_sharding *a, const pod_sharding *b,
                     const pod_sharding *c)
{
    shard whole_a;
    shard whole_b;
    shard whole_c;
    shard on_a[NDEVICES];
    shard on_b[NDEVICES];
    shard on_c[NDEVICES];
    matrix_fill(&whole_a, 1);
    matrix_fill(&whole_b, 2);
    multiply(&whole_a, &whole_b, &whole_c);
    for (int device = 0; device < NDEVICES; device++) {
        on_a[device] = shard_of(&whole_a, a, device);
        on_b[device] = shard_of(&whole_b, b, device);
    }
    for (int i = 0; i < plan->nbefore; i++) {
        run_step(&plan->before[i], strcmp(plan->before[i].array, "A") == 0 ? on_a : on_b);
    }
    for (int device = 0; device < NDEVICES; device++) {
        multiply(&on_a[device], &on_b[device], &on_c[device]);
    }
    for (int i = 0; i < plan->nafter; i++) {
        run_step(&plan->after[i], on_c);
    }
    for (int device = 0; device < NDEVICES; device++) {
        const shard wanted = shard_of(&whole_c, c, device);
        char text[POD_SHARDING_TEXT_MAX];
        cr_assert(shards_equal(&on_c[device], &wanted), "device %d: %s", device,
                  pod_sharding_print(c, text, sizeof text));
    }
}

/** All ways to cut a matrix by none, one or both of the two axes. */
static const char *const cuts[] = {
    "%s[%s, %s]",
    "%s[%s_data, %s]",
    "%s[%s, %s_data]",
    "%s[%s_tensor, %s]",
    "%s[%s, %s_tensor]",
    "%s[%s_data, %s_tensor]",
    "%s[%s_tensor, %s_data]",
    "%s[%s_{data,tensor}, %s]",
    "%s[%s_{tensor,data}, %s]",
    "%s[%s, %s_{data,tensor}]",
    "%s[%s, %s_{tensor,data}]",
};
enum { NCUTS = sizeof cuts / sizeof cuts[0] };

static pod_sharding cut_matrix(int cut, const char *array, const char *rows, const char *columns)
{
    char text[POD_SHARDING_TEXT_MAX];
    size_t used = 0;
    const char *const words[] = {array, rows, columns};
    int word = 0;
    for (const char *at = cuts[cut]; *at != '\0'; at++) {
        if (at[0] == '%') {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s", words[word++]);
            at++;
        } else {
            text[used++] = *at;
        }
    }
    text[used] = '\0';
    return sharding_from(text);
}

static unsigned axes_of(const pod_axis_list *list)
{
    unsigned axes = 0;
    for (int i = 0; i < list->count; i++) {
        axes |= 1U << list->axis[i];
    }
    return axes;
}

Test(mesh_sharded_matmul, every_matmul_over_two_axes_gives_the_plain_product)
{
    int refused = 0;
    for (int i = 0; i < NCUTS * NCUTS * NCUTS; i++) {
        const pod_sharding a = cut_matrix(i % NCUTS, "A", "I", "J");
        const pod_sharding b = cut_matrix(i / NCUTS % NCUTS, "B", "J", "K");
        const pod_sharding c = cut_matrix(i / (NCUTS * NCUTS), "C", "I", "K");
        pod_sharded_matmul plan;
        const bool twice = (axes_of(&a.dim[0].cut) & axes_of(&b.dim[1].cut)) != 0;
        const pod_status st = pod_sharded_matmul_plan(&a, &b, &c, &plan, NULL);
        cr_assert_eq(st, twice ? POD_E_INVALID : POD_OK);
        refused += twice;
        if (!twice) {
            run_plan(&plan, &a, &b, &c);
        }
    }
    cr_expect_gt(refused, 0);
}
