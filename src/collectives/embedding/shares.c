/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/embedding/shares.h"

#include "collectives/embedding/ring_order.h"

#include <math.h>
#include <string.h>

enum { N = POD_GROUP_DIMS_MAX, SHARE_ROWS = N + 1 };

typedef struct share_program {
    int naxes;
    int norders;
    int axis[POD_COLL_ORDERS_MAX][N];
    double load[POD_COLL_ORDERS_MAX][N];
    double links[N];
} share_program;

/* Orders to choose from: all of up to three axes, else the cyclic ones. */
static int list_orders(int naxes, int end, int axis[POD_COLL_ORDERS_MAX][N])
{
    static const int three[6][3] = {
        {0, 1, 2},
        {1, 2, 0},
        {2, 0, 1},
        {2, 1, 0},
        {1, 0, 2},
        {0, 2, 1}
    };
    const int candidates = naxes == 3 ? 6 : naxes > 0 ? naxes : 1;
    int norders = 0;
    for (int o = 0; o < candidates; ++o) {
        if (naxes == 3 && end >= 0 && three[o][1] == end) {
            continue;
        }
        for (int level = 0; level < naxes; ++level) {
            axis[norders][level] = naxes == 3 ? three[o][level] : (o + level) % naxes;
        }
        ++norders;
    }
    return norders;
}

/* Gauss with the largest pivot; false when singular. The right-hand side is column `n`. */
static bool solve(int n, double m[SHARE_ROWS][SHARE_ROWS + 1])
{
    for (int c = 0; c < n; ++c) {
        int pivot = c;
        for (int r = c + 1; r < n; ++r) {
            pivot = fabs(m[r][c]) > fabs(m[pivot][c]) ? r : pivot;
        }
        if (fabs(m[pivot][c]) < 1e-12) {
            return false;
        }
        for (int k = 0; k <= n; ++k) {
            const double swap = m[c][k];
            m[c][k] = m[pivot][k];
            m[pivot][k] = swap;
        }
        for (int r = 0; r < n; ++r) {
            const double factor = r == c ? 0.0 : m[r][c] / m[c][c];
            for (int k = c; k <= n; ++k) {
                m[r][k] -= factor * m[c][k];
            }
        }
    }
    for (int r = 0; r < n; ++r) {
        m[r][n] /= m[r][r];
    }
    return true;
}

static double shares_busiest(const share_program *p, const double *w)
{
    double t = 0.0;
    for (int a = 0; a < p->naxes; ++a) {
        double load = 0.0;
        for (int o = 0; o < p->norders; ++o) {
            load += w[o] * p->load[o][a];
        }
        t = load / p->links[a] > t ? load / p->links[a] : t;
    }
    return t;
}

static int bits(unsigned set)
{
    int count = 0;
    for (; set != 0; set &= set - 1) {
        ++count;
    }
    return count;
}

/* The shares for which exactly `orders` are used and `tight` axes are equally busy. */
static bool vertex(const share_program *p, unsigned orders, unsigned tight, double *w)
{
    double m[SHARE_ROWS][SHARE_ROWS + 1] = {{0.0}};
    const int n = bits(orders) + 1;
    int column = 0;
    for (int o = 0; o < p->norders; ++o) {
        if ((orders >> o & 1U) == 0) {
            continue;
        }
        int row = 0;
        for (int a = 0; a < p->naxes; ++a) {
            if ((tight >> a & 1U) != 0) {
                m[row][column] = p->load[o][a];
                m[row++][n - 1] = -p->links[a];
            }
        }
        m[row][column++] = 1.0;
        m[row][n] = 1.0;
    }
    if (!solve(n, m)) {
        return false;
    }
    column = 0;
    for (int o = 0; o < p->norders; ++o) {
        w[o] = (orders >> o & 1U) != 0 ? m[column++][n] : 0.0;
        if (w[o] < -1e-9) {
            return false;
        }
        w[o] = w[o] < 1e-9 ? 0.0 : w[o];
    }
    return true;
}

/* Mean of all optimal vertices, or the first of them that uses the fewest orders. */
static double optimum(const share_program *p, bool even, double *share)
{
    double best = (double)INFINITY;
    double count = 0.0;
    int fewest = 0;
    memset(share, 0, (size_t)p->norders * sizeof *share);
    for (unsigned orders = 1; orders < 1U << p->norders; ++orders) {
        for (unsigned tight = 1; tight < 1U << p->naxes; ++tight) {
            double w[POD_COLL_ORDERS_MAX] = {0.0};
            if (bits(orders) != bits(tight) || !vertex(p, orders, tight, w)) {
                continue;
            }
            const double t = shares_busiest(p, w);
            const bool better = t < best * (1.0 - 1e-9);
            const bool equal = !better && t < best * (1.0 + 1e-9);
            if (better || (equal && !even && bits(orders) < fewest)) {
                memcpy(share, w, sizeof w);
                count = 1.0;
                best = better ? t : best;
                fewest = bits(orders);
            } else if (equal && even) {
                for (int o = 0; o < p->norders; ++o) {
                    share[o] += w[o];
                }
                count += 1.0;
            }
        }
    }
    for (int o = 0; o < p->norders; ++o) {
        share[o] /= count;
    }
    return best;
}

pod_status pod_coll_shares_get_ending(const pod_coll_axes *axes, bool even, int end,
                                      pod_coll_shares *shares, pod_error *err)
{
    share_program p = {.naxes = axes->naxes};
    p.norders = list_orders(axes->naxes, end, p.axis);
    *shares = (pod_coll_shares){.norders = 1, .share = {1.0}};
    if (axes->naxes == 0) {
        return POD_OK;
    }
    for (int o = 0; o < p.norders; ++o) {
        int32_t length[N];
        const pod_status st = pod_ring_order_lengths(axes, axes->naxes, p.axis[o], length, err);
        if (st != POD_OK) {
            return st;
        }
        double span = 1.0;
        for (int level = 0; level < axes->naxes; ++level) {
            const int a = p.axis[o][level];
            p.load[o][a] = axes->axis[a].stride * (length[level] - 1) * span / axes->nranks;
            p.links[a] = axes->axis[a].closed ? 2.0 : 1.0;
            span *= length[level];
        }
    }
    double share[POD_COLL_ORDERS_MAX];
    shares->busiest = optimum(&p, even, share);
    shares->norders = 0;
    for (int o = 0; o < p.norders; ++o) {
        if (share[o] > 0.0) {
            memcpy(shares->axis[shares->norders], p.axis[o], sizeof p.axis[o]);
            shares->share[shares->norders++] = share[o];
        }
    }
    return POD_OK;
}

pod_status pod_coll_shares_get(const pod_coll_axes *axes, bool even, pod_coll_shares *shares,
                               pod_error *err)
{
    return pod_coll_shares_get_ending(axes, even, -1, shares, err);
}
