/* SPDX-License-Identifier: Apache-2.0 */
#include "base/emit_state.h"

#include "base/file.h"
#include "base/grow.h"
#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Brackets, the end, and a letter for the unit of times that fits. */
enum { UNIT_ROOM = 4 };

static bool copy_column(column *to, const pod_emit_column *from)
{
    const char *unit = from->unit != NULL ? from->unit : "";
    const size_t unit_size = strlen(unit) + UNIT_ROOM;
    to->decimals = from->decimals;
    to->scale = from->percent ? 100 : 1;
    to->table_hidden = from->table_hidden;
    to->terminal = from->terminal;
    to->minor = from->minor;
    to->field = from->field;
    to->offset = from->offset;
    to->name = strdup(from->name);
    to->title = strdup(from->title != NULL ? from->title : from->name);
    to->unit = malloc(unit_size);
    to->plain_unit = strdup(unit);
    if (to->unit != NULL) {
        (void)snprintf(to->unit, unit_size, unit[0] != '\0' ? "(%s)" : "%s", unit);
    }
    return to->name != NULL && to->title != NULL && to->unit != NULL && to->plain_unit != NULL;
}

pod_status pod_emit_new(pod_format format, const char *command, const pod_emit_column *columns,
                        int ncolumns, pod_emit **emit, pod_error *err)
{
    POD_ASSERT(ncolumns > 0);
    pod_emit *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the output");
    }
    made->format = format;
    made->json = format == POD_FORMAT_JSON;
    made->ncolumns = ncolumns;
    made->command = strdup(command);
    made->columns = calloc((size_t)ncolumns, sizeof *made->columns);
    bool ok = made->command != NULL && made->columns != NULL;
    for (int i = 0; i < ncolumns && ok; i++) {
        ok = copy_column(&made->columns[i], &columns[i]);
    }
    if (!ok) {
        pod_emit_free(made);
        return pod_fail(err, POD_E_NOMEM, "no memory for the output");
    }
    *emit = made;
    return POD_OK;
}

static void drop_rows(pod_emit *emit)
{
    for (size_t i = 0; i < emit->ncells; i++) {
        free(emit->cells[i].text);
    }
    emit->ncells = 0;
    emit->taken = 0;
}

void pod_emit_free(pod_emit *emit)
{
    if (emit == NULL) {
        return;
    }
    drop_rows(emit);
    for (int i = 0; i < emit->ncolumns && emit->columns != NULL; i++) {
        free(emit->columns[i].name);
        free(emit->columns[i].title);
        free(emit->columns[i].unit);
        free(emit->columns[i].plain_unit);
    }
    free(emit->cells);
    free(emit->settled);
    free(emit->columns);
    free(emit->command);
    pod_text_free(&emit->headings);
    pod_text_free(&emit->notes);
    pod_text_free(&emit->output);
    pod_text_free(&emit->member);
    free(emit);
}

static void add_cell(pod_emit *emit, cell_kind kind, double number, const char *text)
{
    if (!POD_GROW(emit->cells, emit->cells_room, (int64_t)emit->ncells + 1)) {
        emit->out_of_memory = true;
        return;
    }
    char *copy = strdup(text);
    if (copy == NULL) {
        emit->out_of_memory = true;
        return;
    }
    emit->cells[emit->ncells++] = (cell){.kind = kind, .number = number, .text = copy};
}

void pod_emit_text(pod_emit *emit, const char *value)
{
    add_cell(emit, CELL_TEXT, 0, value);
}

void pod_emit_i64(pod_emit *emit, int64_t value)
{
    char text[POD_FORMAT_MAX];
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    add_cell(emit, CELL_NUMBER, (double)value, text);
}

void pod_emit_double(pod_emit *emit, double value)
{
    POD_ASSERT(isfinite(value));
    const column *to = &emit->columns[emit->ncells % (size_t)emit->ncolumns];
    char text[512]; /* %f of the largest double has 309 digits */
    if (emit->format == POD_FORMAT_TABLE && to->decimals >= 0) {
        (void)snprintf(text, sizeof text, "%.*f", to->decimals, to->scale * value);
    } else {
        (void)pod_format_double(value, text, sizeof text);
    }
    add_cell(emit, CELL_NUMBER, value, text);
    if (emit->ncells > 0) {
        emit->cells[emit->ncells - 1].rounded =
            emit->format == POD_FORMAT_TABLE && to->decimals >= 0;
    }
}

void pod_emit_none(pod_emit *emit)
{
    add_cell(emit, CELL_NONE, 0, "-");
}

/* Times, and numbers that may not be there. */
static void emit_number(pod_emit *emit, double value, bool there)
{
    if (there) {
        pod_emit_double(emit, value);
    } else {
        pod_emit_none(emit);
    }
}

static void emit_integer(pod_emit *emit, int64_t value, int64_t none)
{
    if (value != none) {
        pod_emit_i64(emit, value);
    } else {
        pod_emit_none(emit);
    }
}

static void emit_string(pod_emit *emit, const char *text)
{
    if (text != NULL && text[0] != '\0') {
        pod_emit_text(emit, text);
    } else {
        pod_emit_none(emit);
    }
}

static void emit_field(pod_emit *emit, pod_emit_field kind, const void *field)
{
    switch (kind) {
    case POD_FIELD_TEXT:
        emit_string(emit, *(const char *const *)field);
        break;
    case POD_FIELD_CHARS:
        emit_string(emit, field);
        break;
    case POD_FIELD_I32:
        emit_integer(emit, *(const int32_t *)field, INT32_MIN);
        break;
    case POD_FIELD_I64:
        emit_integer(emit, *(const int64_t *)field, INT64_MIN);
        break;
    case POD_FIELD_BOOL:
        pod_emit_i64(emit, *(const bool *)field ? 1 : 0);
        break;
    case POD_FIELD_DOUBLE:
        emit_number(emit, *(const double *)field, !isnan(*(const double *)field));
        break;
    case POD_FIELD_US:
        emit_number(emit, pod_time_to_us(*(const int64_t *)field),
                    *(const int64_t *)field != INT64_MIN);
        break;
    case POD_FIELD_S:
        emit_number(emit, pod_time_to_s(*(const int64_t *)field),
                    *(const int64_t *)field != INT64_MIN);
        break;
    }
}

void pod_emit_fields(pod_emit *emit, const void *row, int count)
{
    size_t at = emit->ncells % (size_t)emit->ncolumns;
    for (int i = 0; i < count && !emit->out_of_memory; i++, at++) {
        POD_ASSERT(at < (size_t)emit->ncolumns);
        emit_field(emit, emit->columns[at].field, (const char *)row + emit->columns[at].offset);
    }
}

void pod_emit_nones(pod_emit *emit, int count)
{
    for (int i = 0; i < count; i++) {
        pod_emit_none(emit);
    }
}

int pod_emit_column_count(const pod_emit *emit)
{
    return emit->ncolumns;
}

const char *pod_emit_column_name(const pod_emit *emit, int index)
{
    return emit->columns[index].name;
}

int64_t pod_emit_row_count(const pod_emit *emit)
{
    POD_ASSERT(emit->ncells % (size_t)emit->ncolumns == 0);
    return (int64_t)(emit->ncells / (size_t)emit->ncolumns);
}

void pod_emit_cell(const pod_emit *emit, int64_t row, int index, const char **text, double *number)
{
    const cell *value = &emit->cells[row * emit->ncolumns + index];
    *text = value->kind == CELL_NONE ? NULL : value->text;
    *number = value->kind == CELL_NUMBER ? value->number : (double)NAN;
}

pod_status pod_emit_figure(const pod_emit *emit, const char *name, double *value, pod_error *err)
{
    const size_t ncolumns = (size_t)emit->ncolumns;
    if (emit->out_of_memory) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the output");
    }
    POD_ASSERT(emit->ncells % ncolumns == 0);
    if (emit->ncells != ncolumns) {
        return pod_fail(err, POD_E_USAGE, "gives %zu rows; ask for one", emit->ncells / ncolumns);
    }
    for (size_t i = 0; i < ncolumns; i++) {
        if (strcmp(emit->columns[i].name, name) != 0) {
            continue;
        }
        if (emit->cells[i].kind != CELL_NUMBER) {
            return pod_fail(err, POD_E_USAGE, "'%s' in column '%s' is no number; name another",
                            emit->cells[i].text, name);
        }
        *value = emit->cells[i].number;
        return POD_OK;
    }
    return pod_fail(err, POD_E_USAGE, "podsim %s has no column '%s'; name one of those it prints",
                    emit->command, name);
}

void pod_emit_heading(pod_emit *emit, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pod_text_add(&emit->headings, "# ");
    pod_text_vprintf(&emit->headings, format, args);
    pod_text_add(&emit->headings, "\n");
    va_end(args);
}

void pod_emit_note(pod_emit *emit, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pod_text_vprintf(&emit->notes, format, args);
    pod_text_add(&emit->notes, "\n");
    va_end(args);
}

void pod_emit_fit(pod_emit *emit, int width)
{
    emit->width = width;
}

static size_t display_width(const char *text)
{
    return pod_text_width(text, strlen(text));
}

/* ---- times ---- */

static bool is_in_seconds(const column *heading)
{
    return strcmp(heading->plain_unit, "s") == 0;
}

/* The shortest time of the first column of seconds that has any; 0 = none. */
static double shortest_s(const pod_emit *emit)
{
    double shortest = 0;
    for (int at = 0; at < emit->ncolumns && shortest == 0; at++) {
        for (size_t i = (size_t)at; is_in_seconds(&emit->columns[at]) && i < emit->ncells;
             i += (size_t)emit->ncolumns) {
            const cell *value = &emit->cells[i];
            if (value->kind == CELL_NUMBER && value->number > 0
                && (shortest == 0 || value->number < shortest)) {
                shortest = value->number;
            }
        }
    }
    return shortest;
}

static void rescale(pod_emit *emit, int at, pod_time_unit unit)
{
    enum { DECIMALS = 3 };
    column *heading = &emit->columns[at];
    (void)snprintf(heading->unit, strlen(heading->plain_unit) + UNIT_ROOM, "(%s)", unit.name);
    heading->decimals = DECIMALS;
    heading->scale = unit.per_s;
    for (size_t i = (size_t)at; i < emit->ncells; i += (size_t)emit->ncolumns) {
        cell *value = &emit->cells[i];
        if (value->kind == CELL_NUMBER) {
            char text[512];
            (void)snprintf(text, sizeof text, "%.*f", DECIMALS, unit.per_s * value->number);
            free(value->text);
            value->text = strdup(text);
            emit->out_of_memory = emit->out_of_memory || value->text == NULL;
        }
    }
}

/* A table's columns of seconds are in the unit that fits their shortest time. */
static void fit_times(pod_emit *emit)
{
    const pod_time_unit unit = pod_time_unit_of(shortest_s(emit));
    for (int at = 0; at < emit->ncolumns && unit.per_s > 1; at++) {
        if (is_in_seconds(&emit->columns[at])) {
            rescale(emit, at, unit);
        }
    }
}

/* How a column lies. */
typedef struct layout {
    size_t width;
    bool left;  /* a column with any text in it reads from the left */
    bool empty; /* no cell has anything */
    bool shown;
} layout;

static layout column_layout(const pod_emit *emit, int index)
{
    const column *heading = &emit->columns[index];
    layout result = {.width = display_width(heading->title), .empty = true};
    const size_t unit_width = display_width(heading->unit);
    result.width = unit_width > result.width ? unit_width : result.width;
    result.shown = !heading->table_hidden && (!heading->terminal || emit->width != 0);
    for (size_t i = (size_t)index; i < emit->ncells; i += (size_t)emit->ncolumns) {
        const size_t width = display_width(emit->cells[i].text);
        result.width = width > result.width ? width : result.width;
        result.left = result.left || emit->cells[i].kind == CELL_TEXT;
        result.empty = result.empty && emit->cells[i].kind == CELL_NONE;
    }
    return result;
}

/* ---- a table that fits ---- */

enum { GAP = 2, CUT_MIN = 12 };

static size_t table_width(const pod_emit *emit, const layout *places)
{
    size_t width = emit->headings.size > 0 ? GAP : 0;
    size_t gap = 0;
    for (int i = 0; i < emit->ncolumns; i++) {
        width += places[i].shown ? places[i].width + gap : 0;
        gap = places[i].shown ? GAP : gap;
    }
    return width;
}

/* The column to leave out next: the most minor, of these the last; or of those without minor the last. The first
 * column stays. @return -1 if there is none */
static int least_needed(const pod_emit *emit, const layout *places, bool any)
{
    int found = -1;
    int most = any ? 0 : 1;
    for (int i = 1; i < emit->ncolumns; i++) {
        if (places[i].shown && emit->columns[i].minor >= most) {
            most = emit->columns[i].minor;
            found = i;
        }
    }
    return found;
}

/* The widest text that can be cut. */
static int widest_text(const pod_emit *emit, const layout *places)
{
    int found = -1;
    size_t most = CUT_MIN;
    for (int i = 0; i < emit->ncolumns; i++) {
        if (places[i].shown && places[i].left && places[i].width > most) {
            most = places[i].width;
            found = i;
        }
    }
    return found;
}

static void fit_columns(const pod_emit *emit, layout *places)
{
    const size_t room = (size_t)emit->width;
    for (int i = 1; i < emit->ncolumns; i++) {
        places[i].shown = places[i].shown && (!places[i].empty || emit->ncells == 0);
    }
    while (table_width(emit, places) > room) {
        int i = least_needed(emit, places, false);
        if (i >= 0) {
            places[i].shown = false;
            continue;
        }
        i = widest_text(emit, places);
        if (i >= 0) {
            places[i].width--;
            continue;
        }
        i = least_needed(emit, places, true);
        if (i < 0) {
            return;
        }
        places[i].shown = false;
    }
}

static void put_line(pod_emit *emit, const char *line, size_t size)
{
    const size_t width = emit->width > 0 ? (size_t)emit->width : 0;
    pod_text_wrap(&emit->output, line, size, width, emit->headings.size > 0 ? "#     " : "    ");
}

/* Lines of a text, each broken where it must be. */
static void put_lines(pod_emit *emit, const char *margin, const char *lines)
{
    for (const char *line = lines; line != NULL && *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        pod_text whole = {0};
        pod_text_add(&whole, margin);
        pod_text_append(&whole, line, length);
        put_line(emit, whole.data != NULL ? whole.data : "", whole.size);
        emit->out_of_memory = emit->out_of_memory || whole.out_of_memory;
        pod_text_free(&whole);
        line += length + 1;
    }
}

/* Which columns with figures are missing, and that texts are cut. */
static void put_missing(pod_emit *emit, const char *margin, const layout *places)
{
    pod_text text = {0};
    int missing = 0;
    pod_text_printf(&text, "%s--wide also shows", margin);
    for (int i = 0; i < emit->ncolumns; i++) {
        const column *heading = &emit->columns[i];
        if (!places[i].shown && !places[i].empty && !heading->table_hidden) {
            pod_text_printf(&text, "%s%s", missing++ > 0 ? ", " : " ", heading->title);
        }
    }
    if (emit->cut) {
        pod_text_add(&text, missing > 0 ? ", and whole texts" : " whole texts");
    }
    if ((missing > 0 || emit->cut) && text.data != NULL) {
        put_line(emit, text.data, text.size);
    }
    emit->out_of_memory = emit->out_of_memory || text.out_of_memory;
    pod_text_free(&text);
}

/* ---- lines of a table ---- */

/* A text that is too wide ends with an ellipsis. */
static void put_cut(pod_text *out, const char *text, size_t width)
{
    size_t taken = 0;
    size_t size = 0;
    for (; text[size] != '\0'; size++) {
        const bool starts = ((unsigned char)text[size] & 0xC0U) != 0x80U;
        if (starts && taken == width - 1) {
            break;
        }
        taken += starts ? 1 : 0;
    }
    pod_text_append(out, text, size);
    pod_text_add(out, "…");
}

static void put_aligned(pod_text *out, const char *text, layout place)
{
    const size_t width = display_width(text);
    if (width > place.width) {
        put_cut(out, text, place.width);
        pod_text_fill(out, ' ', GAP);
        return;
    }
    const size_t padding = place.width - width;
    pod_text_fill(out, ' ', place.left ? 0 : padding);
    pod_text_add(out, text);
    pod_text_fill(out, ' ', (place.left ? padding : 0) + GAP);
}

/* A number that is wider than its settled column loses decimals. */
static void put_number(pod_text *out, const column *heading, const cell *value, layout place)
{
    char text[512];
    int decimals = heading->decimals > 0 ? heading->decimals : 0;
    (void)snprintf(text, sizeof text, "%s", value->text);
    while (strlen(text) > place.width && decimals > 0) {
        (void)snprintf(text, sizeof text, "%.*f", --decimals, heading->scale * value->number);
    }
    place.width = strlen(text) > place.width ? strlen(text) : place.width;
    put_aligned(out, text, place);
}

/* Ends a line of the table; what only padded its last cells goes away. */
static void end_line(pod_text *out)
{
    while (out->size > 0 && out->data[out->size - 1] == ' ') {
        out->data[--out->size] = '\0';
    }
    pod_text_add(out, "\n");
}

static const char *column_title(const column *heading)
{
    return heading->title;
}

static const char *column_unit(const column *heading)
{
    return heading->unit;
}

static void put_heading(pod_emit *emit, const layout *places, const char *margin,
                        const char *(*text)(const column *))
{
    pod_text_add(&emit->output, margin);
    for (int i = 0; i < emit->ncolumns; i++) {
        if (places[i].shown) {
            put_aligned(&emit->output, text(&emit->columns[i]), places[i]);
        }
    }
    end_line(&emit->output);
}

/* A text that is wider than its settled column widens it, where there is room. */
static void widen(const pod_emit *emit, layout *places, int index, size_t width)
{
    const size_t settled = places[index].width;
    const size_t taken = table_width(emit, places);
    const size_t line = emit->width > 0 ? (size_t)emit->width : SIZE_MAX;
    const size_t room = emit->width != 0 && line > taken ? line - taken : 0;
    if (width > settled) {
        places[index].width += width - settled < room ? width - settled : room;
    }
}

static void put_rows(pod_emit *emit, layout *places, const char *margin)
{
    pod_text *out = &emit->output;
    for (size_t i = emit->taken; i < emit->ncells; i++) {
        const int index = (int)(i % (size_t)emit->ncolumns);
        const cell *value = &emit->cells[i];
        pod_text_add(out, index == 0 ? margin : "");
        if (places[index].shown && value->kind == CELL_NUMBER && !places[index].left) {
            put_number(out, &emit->columns[index], value, places[index]);
        } else if (places[index].shown) {
            widen(emit, places, index, display_width(value->text));
            emit->cut = emit->cut || display_width(value->text) > places[index].width;
            put_aligned(out, value->text, places[index]);
        }
        if (index == emit->ncolumns - 1) {
            end_line(out);
        }
    }
}

/* How the rows that are there lie in columns. @return NULL if there is no memory */
static layout *lay_columns(const pod_emit *emit)
{
    layout *places = calloc((size_t)emit->ncolumns, sizeof *places);
    for (int i = 0; i < emit->ncolumns && places != NULL; i++) {
        places[i] = column_layout(emit, i);
    }
    if (emit->width > 0 && places != NULL) {
        fit_columns(emit, places);
    }
    return places;
}

static const char *table_margin(const pod_emit *emit, const char *commented)
{
    return emit->headings.size > 0 ? commented : "";
}

/* The lines above the rows, once, and the rows that are there. */
static void render_rows(pod_emit *emit, layout *places)
{
    const char *margin = table_margin(emit, "# ");
    bool any_unit = false;
    for (int i = 0; i < emit->ncolumns; i++) {
        any_unit = any_unit || (emit->columns[i].unit[0] != '\0' && places[i].shown);
    }
    if (!emit->started) {
        put_lines(emit, "", emit->headings.data);
        put_heading(emit, places, margin, column_title);
    }
    if (!emit->started && any_unit) {
        put_heading(emit, places, margin, column_unit);
    }
    emit->started = true;
    put_rows(emit, places, table_margin(emit, "  "));
}

static void render_table(pod_emit *emit)
{
    if (emit->settled == NULL) {
        fit_times(emit);
    }
    layout *places = emit->settled != NULL ? emit->settled : lay_columns(emit);
    if (places == NULL) {
        emit->out_of_memory = true;
        return;
    }
    emit->started = emit->started && emit->settled != NULL;
    render_rows(emit, places);
    put_lines(emit, table_margin(emit, "# "), emit->notes.data);
    if (emit->width > 0) {
        put_missing(emit, table_margin(emit, "# "), places);
    }
    if (places != emit->settled) {
        free(places);
    }
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* RFC 4180 asks for quotes around delimiters. The others are what base/table.h would drop: blanks
 * around a field, a leading byte-order mark, and the empty line of a row with one empty field. */
static bool needs_quotes(const char *text, bool alone)
{
    const size_t size = strlen(text);
    if (size == 0) {
        return alone;
    }
    return text[strcspn(text, "\",\r\n")] != '\0' || is_blank(text[0]) || is_blank(text[size - 1])
           || strncmp(text, "\xEF\xBB\xBF", 3) == 0;
}

static void put_csv_field(pod_text *out, const char *text, bool alone)
{
    if (!needs_quotes(text, alone)) {
        pod_text_add(out, text);
        return;
    }
    pod_text_add(out, "\"");
    for (; *text != '\0'; text++) {
        pod_text_append(out, "\"\"", *text == '"' ? 1 : 0);
        pod_text_append(out, text, 1);
    }
    pod_text_add(out, "\"");
}

static void render_csv(pod_emit *emit)
{
    pod_text *out = &emit->output;
    for (int i = 0; i < emit->ncolumns && !emit->started; i++) {
        put_csv_field(out, emit->columns[i].name, emit->ncolumns == 1);
        pod_text_add(out, i + 1 < emit->ncolumns ? "," : "\n");
    }
    for (size_t i = emit->taken; i < emit->ncells; i++) {
        put_csv_field(out, emit->cells[i].text, emit->ncolumns == 1);
        pod_text_add(out, (i + 1) % (size_t)emit->ncolumns != 0 ? "," : "\n");
    }
}

/* ---- rows one by one ---- */

pod_status pod_emit_settle(pod_emit *emit, pod_error *err)
{
    POD_ASSERT(emit->format != POD_FORMAT_JSON && emit->settled == NULL);
    if (emit->format == POD_FORMAT_TABLE) {
        fit_times(emit);
        emit->settled = lay_columns(emit);
        emit->out_of_memory = emit->out_of_memory || emit->settled == NULL;
    }
    drop_rows(emit);
    return pod_emit_memory_check(emit, err);
}

pod_status pod_emit_take(pod_emit *emit, const char **text, size_t *size, pod_error *err)
{
    POD_ASSERT(emit->format == POD_FORMAT_CSV || emit->settled != NULL || emit->out_of_memory);
    pod_text_free(&emit->output);
    if (!emit->out_of_memory) {
        POD_ASSERT(emit->ncells % (size_t)emit->ncolumns == 0);
        if (emit->format == POD_FORMAT_CSV) {
            render_csv(emit);
        } else {
            render_rows(emit, emit->settled);
        }
        emit->started = true;
        emit->taken = emit->ncells;
    }
    if (!emit->json) {
        drop_rows(emit);
    }
    *text = emit->output.data;
    *size = emit->output.size;
    return pod_emit_memory_check(emit, err);
}

pod_status pod_emit_finish(pod_emit *emit, const char **text, size_t *size, pod_error *err)
{
    if (!emit->out_of_memory) {
        POD_ASSERT(emit->ncells % (size_t)emit->ncolumns == 0);
        pod_text_free(&emit->output);
        switch (emit->format) {
        case POD_FORMAT_TABLE:
            render_table(emit);
            break;
        case POD_FORMAT_CSV:
            render_csv(emit);
            break;
        case POD_FORMAT_JSON:
            pod_emit_json_render(emit, &emit->output);
            break;
        }
    }
    POD_TRY(pod_emit_memory_check(emit, err));
    if (emit->format == POD_FORMAT_JSON) {
        POD_TRY(pod_emit_utf8_check(emit, err));
    }
    *text = emit->output.data;
    *size = emit->output.size;
    return POD_OK;
}

pod_status pod_emit_write(pod_emit *emit, const char *path, pod_error *err)
{
    const char *text = NULL;
    size_t size = 0;
    POD_TRY(pod_emit_finish(emit, &text, &size, err));
    return pod_file_write(path, text, size, err);
}
