/* SPDX-License-Identifier: Apache-2.0 */
#include "mesh/layout.h"

#include "ici/generation.h"

#include <stdio.h>
#include <string.h>

/** The grid of devices that JAX lays meshes on; `axis` says which axis of the slice each is. */
typedef struct torus {
    int naxes;
    int axis[POD_MESH_PHYSICAL_AXES];
    int32_t dims[POD_MESH_PHYSICAL_AXES];
} torus;

/** part[p][l]: how many positions of torus axis p mesh axis l has. */
typedef struct assignment {
    int32_t part[POD_MESH_PHYSICAL_AXES][POD_MESH_AXES];
} assignment;

/** Orders of devices that JAX lists for some chips. */
typedef enum special_order {
    ORDER_NONE,
    ORDER_TRAYS,    /**< host order, each run of 8 round its tray's ring */
    ORDER_HOSTS,    /**< host order */
    ORDER_RING_2X2, /**< chip numbers, reordered */
    ORDER_RING_8,
    ORDER_RING_4X4
} special_order;

enum { TRAY_DEVICES = 8 };

/* Position i of the ring holds device ring[i] (mesh_utils.py, "_…_RING_ORDER"). */
static const int32_t ring_tray[TRAY_DEVICES] = {0, 1, 2, 3, 6, 7, 4, 5};
static const int32_t ring_2x2[4] = {0, 1, 3, 2};
static const int32_t ring_8[8] = {0, 1, 2, 3, 7, 6, 5, 4};
static const int32_t ring_4x4[16] = {0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4};

void pod_layout_dims(const pod_slice *slice, int32_t cores, int32_t dims[POD_MESH_PHYSICAL_AXES])
{
    memcpy(dims, slice->dims, sizeof slice->dims);
    dims[POD_MESH_CORE_AXIS] = cores;
}

static special_order order_of_plane(const pod_slice *slice, const pod_logical_mesh *logical)
{
    const int32_t *dims = slice->dims;
    if (slice->nchips == 4 && dims[0] == 2 && dims[1] == 2) {
        return ORDER_RING_2X2;
    }
    if (slice->nchips == 8) {
        return ORDER_RING_8;
    }
    if (slice->nchips == 16 && dims[0] == 4 && dims[1] == 4) {
        for (int i = 0; i < logical->naxes; i++) {
            if (logical->size[i] == slice->nchips) {
                return ORDER_RING_4X4;
            }
        }
    }
    return ORDER_NONE;
}

static special_order order_of(const pod_slice *slice, const pod_logical_mesh *logical,
                              int32_t cores)
{
    const int32_t ndevices = slice->nchips * cores;
    const bool small = slice->dims[0] <= 2 && slice->dims[1] <= 2 && ndevices <= 4 * TRAY_DEVICES
                       && ndevices % TRAY_DEVICES == 0;
    const bool one_tray =
        ndevices == TRAY_DEVICES || logical->size[logical->naxes - 1] == TRAY_DEVICES;
    switch (slice->generation != NULL ? slice->generation->mesh_order : POD_MESH_ORDER_GRID) {
    case POD_MESH_ORDER_GRID:
        break;
    case POD_MESH_ORDER_RINGS:
        return order_of_plane(slice, logical);
    case POD_MESH_ORDER_TRAYS:
        return cores > 1 && small ? ORDER_TRAYS : ORDER_NONE;
    case POD_MESH_ORDER_HOSTS:
        if (cores > 1) {
            return one_tray ? ORDER_TRAYS : ORDER_HOSTS;
        }
        break;
    }
    return ORDER_NONE;
}

/** Devices as jax.devices() lists them: host after host, x fastest; inside a host of 2x2x1 chips x
 *  fastest; both cores of a chip side by side. */
static void host_order(const pod_slice *slice, int32_t cores, int32_t *order)
{
    const int32_t *dims = slice->dims;
    int32_t host_chips[4];
    int32_t at = 0;
    for (int32_t host = 0; host < dims[2] * ((dims[1] + 1) / 2) * ((dims[0] + 1) / 2); host++) {
        const int32_t hosts_x = (dims[0] + 1) / 2;
        const int32_t hosts_y = (dims[1] + 1) / 2;
        int count = 0;
        for (int i = 0; i < 4; i++) {
            const int32_t x = 2 * (host % hosts_x) + i % 2;
            const int32_t y = 2 * (host / hosts_x % hosts_y) + i / 2;
            if (x < dims[0] && y < dims[1]) {
                host_chips[count++] = x + dims[0] * (y + dims[1] * (host / (hosts_x * hosts_y)));
            }
        }
        for (int i = 0; i < count * cores; i++) {
            order[at++] = host_chips[i / cores] * cores + i % cores;
        }
    }
}

/** Reorder every run of 8 devices. */
static void turn_trays(int32_t *order, int32_t ndevices)
{
    for (int32_t tray = 0; tray + TRAY_DEVICES <= ndevices; tray += TRAY_DEVICES) {
        int32_t run[TRAY_DEVICES];
        memcpy(run, order + tray, sizeof run);
        for (int i = 0; i < TRAY_DEVICES; i++) {
            order[tray + i] = run[ring_tray[i]];
        }
    }
}

void pod_layout_order(const pod_slice *slice, const pod_logical_mesh *logical, int32_t cores,
                      int32_t *order)
{
    switch (order_of(slice, logical, cores)) {
    case ORDER_NONE:
        POD_ASSERT(false);
        return;
    case ORDER_TRAYS:
        host_order(slice, cores, order);
        turn_trays(order, slice->nchips * cores);
        return;
    case ORDER_HOSTS:
        host_order(slice, cores, order);
        return;
    case ORDER_RING_2X2:
        memcpy(order, ring_2x2, sizeof ring_2x2);
        return;
    case ORDER_RING_8:
        memcpy(order, ring_8, sizeof ring_8);
        return;
    case ORDER_RING_4X4:
        memcpy(order, ring_4x4, sizeof ring_4x4);
        return;
    }
}

/** Rule 4. Subsets come in lexicographic order, which for a mask whose highest bit is axis 0 is
 *  counting down. */
static bool take_whole_axes(const torus *grid, int32_t size, unsigned *taken, unsigned *chosen)
{
    for (int wanted = grid->naxes; wanted > 0; wanted--) {
        for (unsigned mask = (1U << grid->naxes) - 1; mask > 0; mask--) {
            int64_t product = 1;
            if (__builtin_popcount(mask) != wanted || (mask & *taken) != 0) {
                continue;
            }
            for (int p = 0; p < grid->naxes; p++) {
                product *= (mask >> (grid->naxes - 1 - p)) & 1U ? grid->dims[p] : 1;
            }
            if (product == size) {
                *taken |= mask;
                *chosen = mask;
                return true;
            }
        }
    }
    return false;
}

/** Rule 4 for the whole mesh. @return -1, or the mesh axis that found no place */
static int assign_whole(const torus *grid, const pod_logical_mesh *logical, assignment *assigned)
{
    unsigned taken = 0;
    for (int l = logical->naxes - 1; l >= 0; l--) {
        unsigned mask = 0;
        if (!take_whole_axes(grid, logical->size[l], &taken, &mask) && logical->size[l] > 1) {
            return l;
        }
        for (int p = 0; p < grid->naxes; p++) {
            const bool has = (mask >> (grid->naxes - 1 - p)) & 1U;
            assigned->part[p][l] = has ? grid->dims[p] : 1;
        }
    }
    return -1;
}

/** A way to cut one mesh axis out of what is left, with what rule 5 compares. */
typedef struct cut {
    int32_t size[POD_MESH_PHYSICAL_AXES];
    int64_t whole_product;
    int whole_count;
    int64_t begun_product;
} cut;

typedef struct cut_search {
    const torus *grid;
    int32_t left[POD_MESH_PHYSICAL_AXES]; /**< not yet given to any mesh axis */
    cut now;
    cut best;
    bool found;
} cut_search;

static void cut_judge(const cut_search *search, cut *judged)
{
    judged->whole_product = 1;
    judged->whole_count = 0;
    judged->begun_product = 1;
    for (int p = 0; p < search->grid->naxes; p++) {
        const int32_t size = judged->size[p];
        if (size == search->grid->dims[p]) {
            judged->whole_product *= size;
            judged->whole_count += size > 1;
        }
        if (search->left[p] < search->grid->dims[p]) {
            judged->begun_product *= size;
        }
    }
}

static bool cut_is_better(const cut *a, const cut *b, int naxes)
{
    if (a->whole_product != b->whole_product) {
        return a->whole_product > b->whole_product;
    }
    if (a->whole_count != b->whole_count) {
        return a->whole_count > b->whole_count;
    }
    if (a->begun_product != b->begun_product) {
        return a->begun_product > b->begun_product;
    }
    for (int p = 0; p < naxes; p++) {
        if (a->size[p] != b->size[p]) {
            return a->size[p] > b->size[p];
        }
    }
    return false;
}

/** Try every divisor of what is left of torus axis p and of the size still wanted. */
static void cut_try(cut_search *search, int p, int32_t wanted)
{
    if (p == search->grid->naxes) {
        if (wanted == 1) {
            cut_judge(search, &search->now);
            if (!search->found || cut_is_better(&search->now, &search->best, search->grid->naxes)) {
                search->best = search->now;
                search->found = true;
            }
        }
        return;
    }
    for (int32_t size = 1; size <= search->left[p] && size <= wanted; size++) {
        if (search->left[p] % size == 0 && wanted % size == 0) {
            search->now.size[p] = size;
            cut_try(search, p + 1, wanted / size);
        }
    }
}

/** Rule 5 for the whole mesh. It never fails: the primes of the sizes are those of the dims. */
static void assign_split(const torus *grid, const pod_logical_mesh *logical, assignment *assigned)
{
    cut_search search = {.grid = grid};
    memcpy(search.left, grid->dims, sizeof search.left);
    for (int l = logical->naxes - 1; l >= 0; l--) {
        search.found = false;
        cut_try(&search, 0, logical->size[l]);
        POD_ASSERT(search.found);
        for (int p = 0; p < grid->naxes; p++) {
            assigned->part[p][l] = search.best.size[p];
            search.left[p] /= search.best.size[p];
        }
    }
}

/** Shapes whose chips JAX can keep together host by host, with y and z exchanged or not. */
typedef struct contiguous_shape {
    int32_t dims[POD_AXES];
    int32_t mesh[2];
    bool exchange_yz;
} contiguous_shape;

/* mesh_utils.py, _TRANSPOSE_TRICKS */
static const contiguous_shape contiguous_shapes[] = {
    {{2, 2, 1},   {2, 2},   false},
    {{2, 2, 4},   {4, 4},   false},
    {{4, 4, 4},   {16, 4},  true },
    {{4, 8, 8},   {64, 4},  true },
    {{4, 8, 8},   {4, 64},  true },
    {{8, 8, 8},   {64, 8},  true },
    {{8, 16, 16}, {256, 8}, true },
    {{8, 16, 16}, {8, 256}, true },
};

static bool make_contiguous(const pod_slice *slice, const pod_logical_mesh *logical, torus *grid)
{
    int32_t mesh[POD_MESH_AXES];
    int count = 0;
    for (int l = 0; l < logical->naxes; l++) {
        if (logical->size[l] != 1) {
            mesh[count++] = logical->size[l];
        }
    }
    for (size_t i = 0; i < sizeof contiguous_shapes / sizeof contiguous_shapes[0]; i++) {
        const contiguous_shape *shape = &contiguous_shapes[i];
        if (grid->naxes == POD_AXES && count == 2
            && memcmp(shape->dims, slice->dims, sizeof shape->dims) == 0
            && memcmp(shape->mesh, mesh, sizeof shape->mesh) == 0) {
            grid->axis[1] = shape->exchange_yz ? 2 : 1;
            grid->axis[2] = shape->exchange_yz ? 1 : 2;
            grid->dims[1] = slice->dims[grid->axis[1]];
            grid->dims[2] = slice->dims[grid->axis[2]];
            return true;
        }
    }
    return false;
}

static void torus_make(const pod_slice *slice, int32_t cores, torus *grid)
{
    grid->naxes = cores > 1 ? POD_MESH_PHYSICAL_AXES : POD_AXES;
    pod_layout_dims(slice, cores, grid->dims);
    for (int p = 0; p < POD_MESH_PHYSICAL_AXES; p++) {
        grid->axis[p] = p;
    }
}

static void parts_from(const torus *grid, const assignment *assigned, int naxes, int l,
                       pod_mesh_parts *parts)
{
    parts->count = 0;
    for (int p = 0; p < grid->naxes; p++) {
        int32_t stride = 1;
        for (int later = l + 1; later < naxes; later++) {
            stride *= assigned->part[p][later];
        }
        if (assigned->part[p][l] > 1) {
            parts->part[parts->count++] = (pod_mesh_part){
                .axis = grid->axis[p], .size = assigned->part[p][l], .stride = stride};
        }
    }
}

pod_layout_refusal pod_layout_jax(const pod_slice *slice, const pod_logical_mesh *logical,
                                  int32_t cores, pod_layout *layout, int *failed_axis)
{
    *layout = (pod_layout){.ordered = order_of(slice, logical, cores) != ORDER_NONE};
    if (failed_axis != NULL) {
        *failed_axis = -1;
    }
    if (layout->ordered) {
        return POD_LAYOUT_OK;
    }
    torus grid;
    torus_make(slice, cores, &grid);
    if (logical->contiguous && !make_contiguous(slice, logical, &grid)) {
        return POD_LAYOUT_NOT_CONTIGUOUS;
    }
    assignment assigned;
    const int failed = assign_whole(&grid, logical, &assigned);
    if (failed >= 0 && !logical->split_axes) {
        if (failed_axis != NULL) {
            *failed_axis = failed;
        }
        return POD_LAYOUT_NEEDS_SPLIT;
    }
    if (failed >= 0) {
        assign_split(&grid, logical, &assigned);
    }
    for (int l = 0; l < logical->naxes; l++) {
        parts_from(&grid, &assigned, logical->naxes, l, &layout->axis[l]);
    }
    return POD_LAYOUT_OK;
}

const char *pod_mesh_parts_print(const pod_mesh_parts *parts,
                                 const int32_t dims[POD_MESH_PHYSICAL_AXES], char *buf, size_t size)
{
    size_t used = 0;
    (void)snprintf(buf, size, "-");
    for (int i = 0; i < parts->count && used < size; i++) {
        const pod_mesh_part *part = &parts->part[i];
        const char name = "xyzc"[part->axis];
        int written;
        if (part->size == dims[part->axis]) {
            written = snprintf(buf + used, size - used, "%c", name);
        } else if (part->stride == 1) {
            written = snprintf(buf + used, size - used, "%c[%d]", name, (int)part->size);
        } else {
            written = snprintf(buf + used, size - used, "%c[%d@%d]", name, (int)part->size,
                               (int)part->stride);
        }
        used += written > 0 ? (size_t)written : 0;
    }
    return buf;
}
