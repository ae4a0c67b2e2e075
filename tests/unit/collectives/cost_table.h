/* SPDX-License-Identifier: Apache-2.0 */
/** All-reduce at 1 us a hop and 45 GB/s, all axes closed: what algorithms cost in lockstep, us at 1 KiB,
 *  1 MiB and 64 MiB. The formulas of docs/collectives.md; the ring, bucket and Swing rows agree with SimGrid
 *  3.32 (flow model CM02, no cross-traffic) to 0.01 % at 64 MiB. */
#pragma once

#include <stdint.h>

static const int64_t cost_table_bytes[] = {1024, 1 << 20, 64 << 20};

static const struct {
    int32_t dims[3];
    const char *algorithm;
    double us[3];
} cost_table[] = {
    {{4, 4, 1},   "hamiltonian_ring_1dir",         {30.043, 73.691, 2826.203}    },
    {{4, 4, 1},   "hamiltonian_rings_2D_disjoint", {30.011, 40.923, 729.051}     },
    {{4, 4, 1},   "bucket_1port",                  {12.043, 55.691, 2808.203}    },
    {{4, 4, 1},   "bucket_2D_ports",               {12.011, 22.923, 711.051}     },
    {{4, 4, 1},   "recdoub_latency_1port",         {6.091, 99.207, 5971.232}     },
    {{4, 4, 1},   "recdoub_latency_1port_tieplus", {6.137, 145.810, 8953.849}    },
    {{4, 4, 1},   "halving_doubling_1port",        {12.043, 55.691, 2808.203}    },
    {{4, 4, 1},   "halving_doubling_2D_mirrored",  {12.013, 25.107, 850.861}     },
    {{4, 4, 1},   "swing_latency_1port",           {4.091, 97.207, 5969.232}     },
    {{4, 4, 1},   "swing_latency_2D",              {4.023, 27.302, 1495.308}     },
    {{4, 4, 1},   "swing_bw_2D",                   {8.011, 18.923, 707.051}      },
    {{8, 8, 1},   "hamiltonian_ring_1dir",         {126.045, 171.875, 3062.013}  },
    {{8, 8, 1},   "hamiltonian_rings_2D_disjoint", {126.011, 137.469, 860.003}   },
    {{8, 8, 1},   "bucket_1port",                  {28.045, 73.875, 2964.013}    },
    {{8, 8, 1},   "bucket_2D_ports",               {28.011, 39.469, 762.003}     },
    {{8, 8, 1},   "recdoub_latency_1port",         {14.228, 247.017, 14927.081}  },
    {{8, 8, 1},   "recdoub_latency_1port_tieplus", {14.319, 340.224, 20892.313}  },
    {{8, 8, 1},   "halving_doubling_1port",        {28.055, 84.798, 3663.063}    },
    {{8, 8, 1},   "halving_doubling_2D_mirrored",  {28.017, 45.476, 1146.481}    },
    {{8, 8, 1},   "swing_latency_1port",           {10.182, 196.414, 11940.465}  },
    {{8, 8, 1},   "swing_latency_2D",              {10.057, 68.254, 3738.270}    },
    {{8, 8, 1},   "swing_bw_2D",                   {20.012, 32.561, 823.908}     },
    {{16, 16, 1}, "hamiltonian_ring_1dir",         {510.045, 556.421, 3480.965}  },
    {{16, 16, 1}, "hamiltonian_rings_2D_disjoint", {510.011, 521.605, 1252.741}  },
    {{16, 16, 1}, "bucket_1port",                  {60.045, 106.421, 3030.965}   },
    {{16, 16, 1}, "bucket_2D_ports",               {60.011, 71.605, 802.741}     },
    {{16, 16, 1}, "recdoub_latency_1port",         {30.501, 542.637, 32838.778}  },
    {{16, 16, 1}, "recdoub_latency_1port_tieplus", {30.683, 729.051, 44769.243}  },
    {{16, 16, 1}, "halving_doubling_1port",        {60.062, 123.351, 4114.494}   },
    {{16, 16, 1}, "halving_doubling_2D_mirrored",  {60.020, 80.207, 1353.244}    },
    {{16, 16, 1}, "swing_latency_1port",           {20.319, 346.224, 20898.313}  },
    {{16, 16, 1}, "swing_latency_2D",              {20.114, 136.508, 7476.540}   },
    {{16, 16, 1}, "swing_bw_2D",                   {40.013, 53.244, 887.599}     },
    {{4, 4, 4},   "hamiltonian_ring_1dir",         {126.045, 171.875, 3062.013}  },
    {{4, 4, 4},   "hamiltonian_rings_2D_disjoint", {126.007, 133.646, 615.335}   },
    {{4, 4, 4},   "bucket_1port",                  {18.045, 63.875, 2954.013}    },
    {{4, 4, 4},   "bucket_2D_ports",               {18.007, 25.646, 507.335}     },
    {{4, 4, 4},   "recdoub_latency_1port",         {9.137, 148.810, 8956.849}    },
    {{4, 4, 4},   "recdoub_latency_1port_tieplus", {9.205, 218.715, 13430.773}   },
    {{4, 4, 4},   "halving_doubling_1port",        {18.045, 63.875, 2954.013}    },
    {{4, 4, 4},   "halving_doubling_2D_mirrored",  {18.008, 26.495, 561.706}     },
    {{4, 4, 4},   "swing_latency_1port",           {6.137, 145.810, 8953.849}    },
    {{4, 4, 4},   "swing_latency_2D",              {6.023, 29.302, 1497.308}     },
    {{4, 4, 4},   "swing_bw_2D",                   {12.007, 19.646, 501.335}     },
    {{8, 8, 8},   "hamiltonian_ring_1dir",         {1022.045, 1068.512, 3998.791}},
    {{8, 8, 8},   "hamiltonian_rings_2D_disjoint", {1022.008, 1029.752, 1518.132}},
    {{8, 8, 8},   "bucket_1port",                  {42.045, 88.512, 3018.791}    },
    {{8, 8, 8},   "bucket_2D_ports",               {42.008, 49.752, 538.132}     },
    {{8, 8, 8},   "recdoub_latency_1port",         {21.341, 370.525, 22390.621}  },
    {{8, 8, 8},   "recdoub_latency_1port_tieplus", {21.478, 510.335, 31338.470}  },
    {{8, 8, 8},   "halving_doubling_1port",        {42.051, 94.247, 3385.792}    },
    {{8, 8, 8},   "halving_doubling_2D_mirrored",  {42.010, 51.770, 667.262}     },
    {{8, 8, 8},   "swing_latency_1port",           {15.273, 294.620, 17910.697}  },
    {{8, 8, 8},   "swing_latency_2D",              {15.057, 73.254, 3743.270}    },
    {{8, 8, 8},   "swing_bw_2D",                   {30.008, 37.964, 539.724}     },
};
enum { COST_TABLE_ROWS = sizeof cost_table / sizeof *cost_table };
