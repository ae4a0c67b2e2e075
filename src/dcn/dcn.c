/* SPDX-License-Identifier: Apache-2.0 */
#include "dcn/dcn.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAULT_TEXT_MAX = 96, FAULT_PARTS = 3 };

static int32_t blocks(int32_t size, int32_t block)
{
    return size / block + (size % block > 0 ? 1 : 0);
}

pod_status pod_dcn_init(pod_dcn *dcn, const pod_dcn_options *options, pod_error *err)
{
    *dcn = (pod_dcn){.options = *options, .nchips = 1, .nservers = 1, .nhosts = 1};
    int64_t chips = options->nslices;
    for (int a = 0; a < POD_DCN_AXES; a++) {
        int32_t *server = &dcn->options.server_dims[a];
        int32_t *host = &dcn->options.host_dims[a];
        const int32_t size = options->dims[a];
        if (size < 1 || *server < 1 || *host < 1 || options->nslices < 1) {
            return pod_fail(err, POD_E_INVALID,
                            "%d slices with %d chips, %d of them a server and %d a host, along one "
                            "axis; use sizes of at least 1",
                            options->nslices, size, *server, *host);
        }
        *server = *server < size ? *server : size;
        *host = *host < *server ? *host : *server;
        dcn->servers[a] = blocks(size, *server);
        dcn->hosts[a] = blocks(size, *host);
        if (!pod_mul_i64(chips, size, &chips) || chips > INT32_MAX) {
            return pod_fail(err, POD_E_RANGE, "too many chips in %d slices; use fewer",
                            options->nslices);
        }
        dcn->nchips *= size;
        dcn->nservers *= dcn->servers[a];
        dcn->nhosts *= dcn->hosts[a];
    }
    if (!(options->oversubscription >= 1.0) || !isfinite(options->oversubscription)) {
        return pod_fail(err, POD_E_INVALID,
                        "oversubscription of the fabric is %g; use 1 (none) or more",
                        options->oversubscription);
    }
    if (options->latency_ps < POD_DCN_LATENCY_MIN_PS) {
        return pod_fail(err, POD_E_INVALID, "latency over DCN is %g us; use at least %g us",
                        pod_time_to_us(options->latency_ps),
                        pod_time_to_us(POD_DCN_LATENCY_MIN_PS));
    }
    return POD_OK;
}

/* ---- hosts and servers ---- */

/* The block that a chip is in, x fastest. @param count  blocks along each axis */
static int32_t block_of(const pod_dcn *dcn, int32_t chip, const int32_t block[POD_DCN_AXES],
                        const int32_t count[POD_DCN_AXES])
{
    const int32_t *dims = dcn->options.dims;
    const int32_t x = chip % dims[0] / block[0];
    const int32_t y = chip / dims[0] % dims[1] / block[1];
    const int32_t z = chip / dims[0] / dims[1] / block[2];
    return x + count[0] * (y + count[1] * z);
}

int32_t pod_dcn_host(const pod_dcn *dcn, int32_t chip)
{
    return block_of(dcn, chip, dcn->options.host_dims, dcn->hosts);
}

int32_t pod_dcn_server(const pod_dcn *dcn, int32_t chip)
{
    return block_of(dcn, chip, dcn->options.server_dims, dcn->servers);
}

int32_t pod_dcn_server_of(const pod_dcn *dcn, int32_t host)
{
    int32_t first[POD_DCN_AXES];
    const int32_t at[POD_DCN_AXES] = {host % dcn->hosts[0], host / dcn->hosts[0] % dcn->hosts[1],
                                      host / dcn->hosts[0] / dcn->hosts[1]};
    for (int a = 0; a < POD_DCN_AXES; a++) {
        first[a] = at[a] * dcn->options.host_dims[a];
    }
    const int32_t *dims = dcn->options.dims;
    return pod_dcn_server(dcn, first[0] + dims[0] * (first[1] + dims[1] * first[2]));
}

int pod_dcn_server_hosts(const pod_dcn *dcn, int32_t server, int32_t hosts[POD_DCN_HOSTS_MAX])
{
    int count = 0;
    for (int32_t host = 0; host < dcn->nhosts && count < POD_DCN_HOSTS_MAX; host++) {
        if (pod_dcn_server_of(dcn, host) == server) {
            hosts[count++] = host;
        }
    }
    return count;
}

const char *pod_dcn_server_text(const pod_dcn *dcn, int32_t server, char *text, size_t size)
{
    int32_t hosts[POD_DCN_HOSTS_MAX];
    const int count = pod_dcn_server_hosts(dcn, server, hosts);
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < count && used < size; i++) {
        const char *before = i == 0          ? (count > 1 ? "hosts " : "host ")
                             : i < count - 1 ? ", "
                                             : " and ";
        const int length = snprintf(text + used, size - used, "%s%d", before, (int)hosts[i]);
        used += length > 0 ? (size_t)length : 0;
    }
    return text;
}

static void server_coords(const pod_dcn *dcn, int32_t server, int32_t at[POD_DCN_AXES])
{
    at[0] = server % dcn->servers[0];
    at[1] = server / dcn->servers[0] % dcn->servers[1];
    at[2] = server / dcn->servers[0] / dcn->servers[1];
}

/* The chip of a server at a place inside its block, or the last before it where the edge cuts. */
static int32_t server_chip(const pod_dcn *dcn, int32_t server, const int32_t place[POD_DCN_AXES])
{
    int32_t at[POD_DCN_AXES];
    server_coords(dcn, server, at);
    for (int a = 0; a < POD_DCN_AXES; a++) {
        const int32_t last = dcn->options.dims[a] - 1;
        at[a] = at[a] * dcn->options.server_dims[a] + place[a];
        at[a] = at[a] < last ? at[a] : last;
    }
    return at[0] + dcn->options.dims[0] * (at[1] + dcn->options.dims[1] * at[2]);
}

int32_t pod_dcn_server_first(const pod_dcn *dcn, int32_t server)
{
    return server_chip(dcn, server, (const int32_t[POD_DCN_AXES]){0, 0, 0});
}

int32_t pod_dcn_server_last(const pod_dcn *dcn, int32_t server)
{
    const int32_t *block = dcn->options.server_dims;
    return server_chip(dcn, server,
                       (const int32_t[POD_DCN_AXES]){block[0] - 1, block[1] - 1, block[2] - 1});
}

int32_t pod_dcn_server_chips(const pod_dcn *dcn, int32_t server)
{
    int32_t at[POD_DCN_AXES];
    server_coords(dcn, server, at);
    int32_t chips = 1;
    for (int a = 0; a < POD_DCN_AXES; a++) {
        const int32_t size = dcn->options.server_dims[a];
        const int32_t rest = dcn->options.dims[a] - at[a] * size;
        chips *= rest < size ? rest : size;
    }
    return chips;
}

/* ---- rates ---- */

/* The largest factor among the faults of a kind, of a host (or of any of a server). */
static double slowness(const pod_dcn *dcn, pod_dcn_fault_kind kind, int32_t slice, int32_t host,
                       int32_t server)
{
    double factor = 1.0;
    for (int i = 0; i < dcn->nfaults; i++) {
        const pod_dcn_fault *fault = &dcn->faults[i];
        const bool here = host >= 0 ? fault->host == host : fault->server == server;
        if (fault->kind == kind && fault->slice == slice && here) {
            factor = fmax(factor, fault->factor);
        }
    }
    return factor;
}

double pod_dcn_host_slowness(const pod_dcn *dcn, int32_t slice, int32_t host)
{
    return slowness(dcn, POD_DCN_HOST_SLOW, slice, host, -1);
}

bool pod_dcn_server_has_path(const pod_dcn *dcn, int32_t slice, int32_t server)
{
    for (int i = 0; i < dcn->nfaults; i++) {
        const pod_dcn_fault *fault = &dcn->faults[i];
        if (fault->kind == POD_DCN_PATH_LOST && fault->slice == slice && fault->server == server) {
            return false;
        }
    }
    return true;
}

double pod_dcn_pcie_bytes_per_s(const pod_dcn *dcn, int32_t slice, int32_t chip)
{
    return dcn->options.pcie_bytes_per_s
           / pod_dcn_host_slowness(dcn, slice, pod_dcn_host(dcn, chip));
}

double pod_dcn_nic_bytes_per_s(const pod_dcn *dcn, int32_t slice, int32_t server)
{
    const double slower = fmax(slowness(dcn, POD_DCN_HOST_SLOW, slice, -1, server),
                               slowness(dcn, POD_DCN_NIC_SLOW, slice, -1, server));
    return dcn->options.nic_bytes_per_s * pod_dcn_server_chips(dcn, server) / slower;
}

double pod_dcn_uplink_bytes_per_s(const pod_dcn *dcn, int32_t slice)
{
    (void)slice;
    const double over = dcn->options.oversubscription;
    return over > 1.0 ? dcn->options.nic_bytes_per_s * dcn->nchips / over : (double)INFINITY;
}

double pod_dcn_slice_bytes_per_s(const pod_dcn *dcn, int32_t slice)
{
    double sum = 0.0;
    for (int32_t server = 0; server < dcn->nservers; server++) {
        if (pod_dcn_server_has_path(dcn, slice, server)) {
            sum += pod_dcn_nic_bytes_per_s(dcn, slice, server);
        }
    }
    return fmin(sum, pod_dcn_uplink_bytes_per_s(dcn, slice));
}

int32_t pod_dcn_exit(const pod_dcn *dcn, int32_t slice, int32_t chip)
{
    const int32_t own = pod_dcn_server(dcn, chip);
    if (dcn->nfaults == 0 || pod_dcn_server_has_path(dcn, slice, own)) {
        return chip;
    }
    int32_t here[POD_DCN_AXES];
    server_coords(dcn, own, here);
    int32_t nearest = -1;
    int32_t least = INT32_MAX;
    for (int32_t server = 0; server < dcn->nservers; server++) {
        int32_t there[POD_DCN_AXES];
        server_coords(dcn, server, there);
        int32_t away = 0;
        for (int a = 0; a < POD_DCN_AXES; a++) {
            away += abs(there[a] - here[a]);
        }
        if (away < least && pod_dcn_server_has_path(dcn, slice, server)) {
            least = away;
            nearest = server;
        }
    }
    POD_ASSERT(nearest >= 0);
    const int32_t *dims = dcn->options.dims;
    const int32_t place[POD_DCN_AXES] = {
        chip % dims[0] % dcn->options.server_dims[0],
        chip / dims[0] % dims[1] % dcn->options.server_dims[1],
        chip / dims[0] / dims[1] % dcn->options.server_dims[2],
    };
    return server_chip(dcn, nearest, place);
}

/* Chips whose messages go by a server. */
static int32_t exits_by(const pod_dcn *dcn, int32_t slice, int32_t server)
{
    int32_t count = 0;
    for (int32_t chip = 0; chip < dcn->nchips; chip++) {
        count += pod_dcn_server(dcn, pod_dcn_exit(dcn, slice, chip)) == server ? 1 : 0;
    }
    return count;
}

double pod_dcn_chip_bytes_per_s(const pod_dcn *dcn)
{
    double least =
        fmin(dcn->options.pcie_bytes_per_s,
             fmin(dcn->options.nic_bytes_per_s, pod_dcn_uplink_bytes_per_s(dcn, 0) / dcn->nchips));
    for (int i = 0; i < dcn->nfaults; i++) {
        const int32_t slice = dcn->faults[i].slice;
        for (int32_t server = 0; server < dcn->nservers; server++) {
            const int32_t chips = exits_by(dcn, slice, server);
            if (chips > 0) {
                least = fmin(least, pod_dcn_nic_bytes_per_s(dcn, slice, server) / chips);
                least = fmin(least, dcn->options.pcie_bytes_per_s
                                        / slowness(dcn, POD_DCN_HOST_SLOW, slice, -1, server));
            }
        }
    }
    return least;
}

/* ---- faults ---- */

static int32_t paths_of(const pod_dcn *dcn, int32_t slice)
{
    int32_t paths = 0;
    for (int32_t server = 0; server < dcn->nservers; server++) {
        paths += pod_dcn_server_has_path(dcn, slice, server) ? 1 : 0;
    }
    return paths;
}

pod_status pod_dcn_fault_insert(pod_dcn *dcn, pod_dcn_fault_kind kind, int32_t slice, int32_t host,
                                double factor, pod_error *err)
{
    if (slice < 0 || slice >= dcn->options.nslices || host < 0 || host >= dcn->nhosts) {
        return pod_fail(err, POD_E_INVALID,
                        "no host %d in slice %d; there are slices 0 to %d with hosts 0 to %d", host,
                        slice, dcn->options.nslices - 1, dcn->nhosts - 1);
    }
    const bool lost = kind == POD_DCN_PATH_LOST;
    if (!lost && !(factor >= 1.0 && factor <= POD_SLOWNESS_MAX)) {
        return pod_fail(err, POD_E_USAGE, "a factor of %g; it says how many times slower, 1 to %g",
                        factor, POD_SLOWNESS_MAX);
    }
    const int32_t server = pod_dcn_server_of(dcn, host);
    if (lost && !pod_dcn_server_has_path(dcn, slice, server)) {
        return POD_OK;
    }
    if (lost && paths_of(dcn, slice) == 1) {
        return pod_fail(err, POD_E_INVALID,
                        "slice %d would be cut off without the NICs of host %d; leave one of its "
                        "%d hosts a path",
                        slice, host, dcn->nhosts);
    }
    if (dcn->nfaults == POD_DCN_FAULTS_MAX) {
        return pod_fail(err, POD_E_RANGE, "more than %d faults of hosts; use fewer",
                        (int)POD_DCN_FAULTS_MAX);
    }
    dcn->faults[dcn->nfaults++] = (pod_dcn_fault){.kind = kind,
                                                  .slice = slice,
                                                  .host = host,
                                                  .server = server,
                                                  .factor = lost ? 0.0 : factor};
    return POD_OK;
}

typedef struct fault_form {
    const char *option;
    const char *form;
    int parts;
} fault_form;

static const fault_form forms[] = {
    [POD_DCN_HOST_SLOW] = {"--slow-host", "SLICE:HOST:FACTOR as in 1:0:2", 3},
    [POD_DCN_NIC_SLOW] = {"--slow-nic",  "SLICE:HOST:FACTOR as in 1:0:2", 3},
    [POD_DCN_PATH_LOST] = {"--fail-dcn",  "SLICE:HOST as in 1:0",          2},
};

/* Cut text at its colons. @return the number of parts, FAULT_PARTS + 1 if there are more */
static int parts_cut(char *text, char *parts[FAULT_PARTS])
{
    int count = 0;
    for (char *next = text; next; count++) {
        if (count == FAULT_PARTS) {
            return FAULT_PARTS + 1;
        }
        parts[count] = next;
        next = strchr(next, ':');
        if (next) {
            *next++ = '\0';
        }
    }
    return count;
}

pod_status pod_dcn_fault_add(pod_dcn *dcn, pod_dcn_fault_kind kind, const char *text,
                             pod_error *err)
{
    const fault_form *form = &forms[kind];
    char copy[FAULT_TEXT_MAX];
    char *parts[FAULT_PARTS] = {NULL};
    const size_t length = strlen(text);
    memcpy(copy, text, length < sizeof copy ? length + 1 : 0);
    if (length >= sizeof copy || parts_cut(copy, parts) != form->parts) {
        return pod_fail(err, POD_E_USAGE, "%s: '%.60s' is no fault; write %s", form->option, text,
                        form->form);
    }
    int64_t slice = 0;
    int64_t host = 0;
    double factor = 0.0;
    POD_TRY(pod_parse_i64(parts[0], form->option, 0, INT32_MAX, &slice, err));
    POD_TRY(pod_parse_i64(parts[1], form->option, 0, INT32_MAX, &host, err));
    if (form->parts == FAULT_PARTS) {
        POD_TRY(pod_parse_double(parts[2], form->option, -DBL_MAX, DBL_MAX, &factor, err));
    }
    for (int i = 0; i < dcn->nfaults && kind != POD_DCN_PATH_LOST; i++) {
        if (dcn->faults[i].kind == kind && dcn->faults[i].slice == slice
            && dcn->faults[i].host == host) {
            return pod_fail(err, POD_E_USAGE, "%s: '%.60s' is the second factor for it; give one",
                            form->option, text);
        }
    }
    return pod_dcn_fault_insert(dcn, kind, (int32_t)slice, (int32_t)host, factor, err);
}
