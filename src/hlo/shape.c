/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/shape.h"

#include "base/units.h"

#include <stdlib.h>
#include <string.h>

typedef struct dtype_row {
    const char *name;
    uint16_t bits;
} dtype_row;

#define DTYPE_ROW(id, name, bits) [id] = {name, bits},
static const dtype_row dtypes[] = {POD_HLO_DTYPE_LIST(DTYPE_ROW)};
#undef DTYPE_ROW
_Static_assert(sizeof dtypes / sizeof dtypes[0] == POD_HLO_TYPES, "one row per element type");

/* The layout of an array, as it is read. */
typedef struct array_layout {
    int64_t tile[POD_HLO_BRACKETS_MAX];
    int ntile; /* figures of the first tile */
    int64_t space;
    int64_t bits; /* 0 = as the type */
    bool tiled;
} array_layout;

const char *pod_hlo_dtype_name(pod_hlo_dtype dtype)
{
    return dtypes[dtype].name;
}

int pod_hlo_dtype_bits(pod_hlo_dtype dtype)
{
    return dtypes[dtype].bits;
}

bool pod_hlo_dtype_is_integer(pod_hlo_dtype dtype)
{
    return dtype <= POD_HLO_TYPE_U64;
}

bool pod_hlo_dtype_is_fp8(pod_hlo_dtype dtype)
{
    return dtype >= POD_HLO_TYPE_F4E2M1FN && dtype <= POD_HLO_TYPE_F8E5M2FNUZ;
}

bool pod_hlo_dtype_is_float(pod_hlo_dtype dtype)
{
    return dtype >= POD_HLO_TYPE_F4E2M1FN && dtype <= POD_HLO_TYPE_C128;
}

void pod_hlo_shapes_fini(pod_hlo_shapes *shapes)
{
    pod_hlo_interned_fini(&shapes->text);
    free(shapes->number_of);
    free(shapes->shape);
    free(shapes->dim);
    free(shapes->member);
    memset(shapes, 0, sizeof *shapes);
}

static pod_status dtype_take(pod_hlo_scan *scan, pod_hlo_dtype *dtype)
{
    pod_hlo_span name;
    POD_TRY(pod_hlo_name(scan, "an element type", &name));
    for (int i = 0; i < POD_HLO_TYPE_TUPLE; i++) {
        if (pod_hlo_is(scan->text, name, dtypes[i].name)) {
            *dtype = (pod_hlo_dtype)i;
            return POD_OK;
        }
    }
    return pod_hlo_fail(scan, name.begin,
                        "'%.*s' is no element type that is known; bf16, f32, s8, pred and the like",
                        pod_hlo_shown(name), scan->text + name.begin);
}

static pod_status push_dim(pod_hlo_shapes *shapes, int64_t value, pod_error *err)
{
    POD_TRY(pod_hlo_reserve(&shapes->dim, &shapes->dims_capacity, (uint64_t)shapes->ndims + 1,
                            sizeof *shapes->dim, err));
    shapes->dim[shapes->ndims++] = value;
    return POD_OK;
}

static pod_status take_dims(pod_hlo_shapes *shapes, pod_hlo_scan *scan, pod_hlo_shape *shape)
{
    shape->first = shapes->ndims;
    pod_status st = pod_hlo_expect(scan, '[', "a shape");
    if (st != POD_OK || pod_hlo_take(scan, ']')) {
        return st;
    }
    do {
        if (pod_hlo_take(scan, '<')) {
            st = pod_hlo_expect(scan, '=', "a bounded dim");
        }
        int64_t dim = 0;
        POD_THEN(st, pod_hlo_number(scan, "a dim", POD_HLO_COUNT_MAX, &dim));
        POD_THEN(st, push_dim(shapes, dim, scan->err));
        shape->count++;
    } while (st == POD_OK && pod_hlo_take(scan, ','));
    return st == POD_OK ? pod_hlo_expect(scan, ']', "a shape") : st;
}

/* Appends the indices of the dims from the most minor one; each must come once. */
static pod_status take_order(pod_hlo_shapes *shapes, pod_hlo_scan *scan, const pod_hlo_shape *shape)
{
    uint32_t count = 0;
    const uint32_t at = scan->at;
    pod_status st = POD_OK;
    char c = pod_hlo_peek(scan);
    while (st == POD_OK && c >= '0' && c <= '9') {
        int64_t dim = 0;
        st = pod_hlo_number(scan, "a dim of the layout", POD_HLO_COUNT_MAX, &dim);
        if (st == POD_OK && (count == shape->count || dim >= shape->count)) {
            return pod_hlo_fail(scan, at, "a layout of %u dims names others", shape->count);
        }
        if (st == POD_OK) {
            st = push_dim(shapes, dim, scan->err);
            count++;
        }
        c = pod_hlo_take(scan, ',') ? pod_hlo_peek(scan) : '\0';
    }
    if (st != POD_OK) {
        return st;
    }
    if (count == 0) {
        for (uint32_t i = 0; i < shape->count && st == POD_OK; i++) {
            st = push_dim(shapes, (int64_t)(shape->count - 1 - i), scan->err);
        }
        return st;
    }
    if (count != shape->count) {
        return pod_hlo_fail(scan, at, "a layout names %u of %u dims", count, shape->count);
    }
    return POD_OK;
}

static int compare_i64(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Each dim once among the last `count` numbers of shapes->dim. */
static pod_status check_order(pod_hlo_shapes *shapes, const pod_hlo_scan *scan, uint32_t at,
                              const pod_hlo_shape *shape, pod_error *err)
{
    if (shape->count == 0) {
        return POD_OK;
    }
    int64_t *order = &shapes->dim[shape->first + shape->count];
    int64_t *sorted = malloc(shape->count * sizeof *sorted);
    if (sorted == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for a shape");
    }
    memcpy(sorted, order, shape->count * sizeof *sorted);
    qsort(sorted, shape->count, sizeof *sorted, compare_i64);
    bool once = true;
    for (uint32_t i = 0; i < shape->count; i++) {
        once = once && sorted[i] == i;
    }
    free(sorted);
    return once ? POD_OK : pod_hlo_fail(scan, at, "a layout names a dim twice; each once");
}

/* One mark of a layout: letters and what follows them in brackets. */
static pod_status take_mark(pod_hlo_scan *scan, array_layout *layout)
{
    pod_hlo_span letters;
    pod_hlo_span inside;
    const uint32_t at = scan->at;
    if (!pod_hlo_try_name(scan, &letters) && !pod_hlo_take(scan, '#') && !pod_hlo_take(scan, '*')) {
        return pod_hlo_fail(scan, scan->at, "a bad mark of a layout; T(…), S(…), E(…) or the like");
    }
    pod_status st = POD_OK;
    int64_t number[1] = {0};
    int count = 0;
    if (pod_hlo_is(scan->text, letters, "T") && !layout->tiled) {
        st = pod_hlo_numbers(scan, '(', "a tile", POD_HLO_COUNT_MAX, layout->tile,
                             POD_HLO_BRACKETS_MAX, &layout->ntile);
        layout->tiled = true;
    } else if (pod_hlo_is(scan->text, letters, "S")) {
        st = pod_hlo_numbers(scan, '(', "a memory space", 255, number, 1, &count);
        layout->space = number[0];
    } else if (pod_hlo_is(scan->text, letters, "E")) {
        st = pod_hlo_numbers(scan, '(', "bits of an element", 1024, number, 1, &count);
        layout->bits = number[0];
    }
    while (st == POD_OK && pod_hlo_peek(scan) == '(') {
        st = pod_hlo_group(scan, '(', "a layout", &inside);
    }
    return st == POD_OK && scan->at == at ? pod_hlo_fail(scan, at, "a bad mark of a layout") : st;
}

static pod_status take_layout(pod_hlo_shapes *shapes, pod_hlo_scan *scan,
                              const pod_hlo_shape *shape, array_layout *layout)
{
    const bool given = pod_hlo_take(scan, '{');
    const uint32_t at = scan->at;
    pod_hlo_scan none = {.text = "", .part = true};
    pod_status st = take_order(shapes, given ? scan : &none, shape);
    if (st != POD_OK || !given) {
        return st;
    }
    st = check_order(shapes, scan, at, shape, scan->err);
    if (st == POD_OK && pod_hlo_take(scan, ':')) {
        while (st == POD_OK && pod_hlo_peek(scan) != '}') {
            st = take_mark(scan, layout);
        }
    }
    for (int i = 0; i < layout->ntile && st == POD_OK; i++) {
        if (layout->tile[i] == 0) {
            st = pod_hlo_fail(scan, at, "a tile of size 0");
        }
    }
    return st == POD_OK ? pod_hlo_expect(scan, '}', "a layout") : st;
}

/* Product of the dims, padded to a tile if there is one. @return false beyond the limit */
static bool product(const pod_hlo_shapes *shapes, const pod_hlo_shape *shape,
                    const array_layout *layout, int64_t *elements)
{
    const int64_t *dim = shapes->dim == NULL ? NULL : &shapes->dim[shape->first];
    int64_t n = 1;
    for (uint32_t i = 0; i < shape->count; i++) {
        if (dim[i] == 0) {
            *elements = 0;
            return true;
        }
    }
    for (uint32_t i = 0; i < shape->count; i++) {
        int64_t size = dim[dim[shape->count + i]];
        if (layout != NULL && (int64_t)i < layout->ntile) {
            const int64_t tile = layout->tile[layout->ntile - 1 - (int)i];
            const int64_t rest = size % tile;
            if (rest > 0 && !pod_add_i64(size, tile - rest, &size)) {
                return false;
            }
        }
        if (!pod_mul_i64(n, size, &n) || n > POD_HLO_COUNT_MAX) {
            return false;
        }
    }
    *elements = n;
    return true;
}

static bool bits_bytes(int64_t elements, uint16_t bits, int64_t *bytes)
{
    const pod_u128 n = ((pod_u128)(uint64_t)elements * bits + 7) / 8;
    *bytes = (int64_t)n;
    return n <= (pod_u128)POD_HLO_COUNT_MAX;
}

static pod_status take_array(pod_hlo_shapes *shapes, pod_hlo_scan *scan, pod_hlo_shape *shape)
{
    pod_hlo_dtype dtype = POD_HLO_TYPE_PRED;
    array_layout layout = {.ntile = 0};
    const uint32_t at = scan->at;
    pod_status st = dtype_take(scan, &dtype);
    POD_THEN(st, take_dims(shapes, scan, shape));
    POD_THEN(st, take_layout(shapes, scan, shape, &layout));
    if (st != POD_OK) {
        return st;
    }
    shape->dtype = (uint8_t)dtype;
    shape->space = (uint8_t)layout.space;
    shape->bits = layout.bits > 0 ? (uint16_t)layout.bits : dtypes[dtype].bits;
    int64_t padded = 0;
    if (!product(shapes, shape, NULL, &shape->elements)
        || !product(shapes, shape, &layout, &padded)) {
        return pod_hlo_fail_limit(scan, at, "elements of a shape", POD_HLO_COUNT_MAX);
    }
    if (!bits_bytes(shape->elements, shape->bits, &shape->payload)
        || !bits_bytes(padded, shape->bits, &shape->bytes)) {
        return pod_hlo_fail_limit(scan, at, "bytes of a shape", POD_HLO_COUNT_MAX);
    }
    return POD_OK;
}

static bool add_member(pod_hlo_shape *tuple, const pod_hlo_shape *member)
{
    return pod_add_i64(tuple->elements, member->elements, &tuple->elements)
           && pod_add_i64(tuple->bytes, member->bytes, &tuple->bytes)
           && pod_add_i64(tuple->payload, member->payload, &tuple->payload)
           && tuple->elements <= POD_HLO_COUNT_MAX && tuple->bytes <= POD_HLO_COUNT_MAX;
}

static pod_status take(pod_hlo_shapes *shapes, pod_hlo_scan *scan, int depth, uint32_t *number);

/* Members are read before they are stored, since they may hold tuples themselves. */
static pod_status take_members(pod_hlo_shapes *shapes, pod_hlo_scan *scan, int depth,
                               pod_hlo_shape *tuple, pod_error *err)
{
    uint32_t *members = NULL;
    uint32_t capacity = 0;
    const uint32_t at = scan->at;
    pod_status st = POD_OK;
    bool more = pod_hlo_peek(scan) != ')';
    while (st == POD_OK && more) {
        st = pod_hlo_reserve(&members, &capacity, (uint64_t)tuple->count + 1, sizeof *members, err);
        POD_THEN(st, take(shapes, scan, depth + 1, &members[tuple->count]));
        if (st == POD_OK && !add_member(tuple, &shapes->shape[members[tuple->count]])) {
            st = pod_hlo_fail_limit(scan, at, "bytes of a shape", POD_HLO_COUNT_MAX);
        }
        tuple->count++;
        more = pod_hlo_take(scan, ',');
    }
    POD_THEN(st, pod_hlo_expect(scan, ')', "a tuple shape"));
    POD_THEN(st, pod_hlo_reserve(&shapes->member, &shapes->members_capacity,
                                 (uint64_t)shapes->nmembers + tuple->count, sizeof *shapes->member,
                                 err));
    if (st == POD_OK && tuple->count > 0) {
        memcpy(&shapes->member[shapes->nmembers], members, tuple->count * sizeof *members);
        tuple->first = shapes->nmembers;
        shapes->nmembers += tuple->count;
    }
    free(members);
    return st;
}

static pod_status push_shape(pod_hlo_shapes *shapes, const pod_hlo_shape *shape, uint32_t *number,
                             pod_error *err)
{
    POD_TRY(pod_hlo_reserve(&shapes->shape, &shapes->capacity, (uint64_t)shapes->count + 1,
                            sizeof *shapes->shape, err));
    *number = shapes->count;
    shapes->shape[shapes->count++] = *shape;
    return POD_OK;
}

/* Finds the end of a shape without reading it. @return false if it doesn't look like one */
static bool skip_shape(const pod_hlo_scan *scan, pod_hlo_span *span)
{
    pod_hlo_scan ahead = *scan;
    pod_hlo_span inside;
    pod_hlo_span name;
    ahead.err = NULL;
    ahead.part = true;
    pod_hlo_blank(&ahead);
    span->begin = ahead.at;
    pod_status st = POD_OK;
    if (pod_hlo_peek(&ahead) == '(') {
        st = pod_hlo_group(&ahead, '(', "", &inside);
        span->end = ahead.at;
        return st == POD_OK;
    }
    if (!pod_hlo_try_name(&ahead, &name) || pod_hlo_group(&ahead, '[', "", &inside) != POD_OK) {
        return false;
    }
    span->end = ahead.at;
    if (pod_hlo_peek(&ahead) == '{') {
        st = pod_hlo_group(&ahead, '{', "", &inside);
        span->end = ahead.at;
    }
    return st == POD_OK;
}

static pod_status read(pod_hlo_shapes *shapes, pod_hlo_scan *scan, int depth, uint32_t *number)
{
    pod_hlo_shape shape = {.dtype = POD_HLO_TYPE_TUPLE};
    pod_status st = POD_OK;
    if (pod_hlo_take(scan, '(')) {
        st = take_members(shapes, scan, depth, &shape, scan->err);
    } else {
        st = take_array(shapes, scan, &shape);
    }
    return st == POD_OK ? push_shape(shapes, &shape, number, scan->err) : st;
}

/* A shape that was met before is found by its text. */
static pod_status take_shared(pod_hlo_shapes *shapes, pod_hlo_scan *scan, int depth,
                              uint32_t *number)
{
    pod_hlo_span span;
    if (!skip_shape(scan, &span)) {
        const pod_status st = read(shapes, scan, depth, number);
        return st != POD_OK ? st : pod_hlo_fail(scan, scan->at, "a bad shape");
    }
    const uint32_t known = shapes->text.count;
    uint32_t text = 0;
    POD_TRY(pod_hlo_intern(&shapes->text, scan->text, span, &text, scan->err));
    if (text < known) {
        *number = shapes->number_of[text];
        scan->at = span.end;
        return POD_OK;
    }
    POD_TRY(pod_hlo_reserve(&shapes->number_of, &shapes->numbers_capacity, (uint64_t)text + 1,
                            sizeof *shapes->number_of, scan->err));
    POD_TRY(read(shapes, scan, depth, number));
    shapes->number_of[text] = *number;
    return POD_OK;
}

/* A member of a tuple. Tuples in tuples aren't looked up, which would look at their text once a level. */
static pod_status take(pod_hlo_shapes *shapes, pod_hlo_scan *scan, int depth, uint32_t *number)
{
    if (depth >= POD_HLO_BRACKETS_MAX) {
        return pod_hlo_fail_limit(scan, scan->at, "brackets in brackets", POD_HLO_BRACKETS_MAX);
    }
    return pod_hlo_peek(scan) == '(' ? read(shapes, scan, depth, number)
                                     : take_shared(shapes, scan, depth, number);
}

pod_status pod_hlo_shape_take(pod_hlo_shapes *shapes, pod_hlo_scan *scan, uint32_t *number)
{
    return take_shared(shapes, scan, 0, number);
}
