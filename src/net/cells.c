/* SPDX-License-Identifier: Apache-2.0 */
#include "net/cells.h"

int32_t pod_machine_period(const pod_machine *machine, int axis)
{
    return machine->period[axis] > 0 ? machine->period[axis] : machine->slice->dims[axis];
}

int32_t pod_machine_slice_cells(const pod_machine *machine)
{
    return pod_machine_period(machine, 0) * pod_machine_period(machine, 1)
           * pod_machine_period(machine, 2);
}

static int32_t slices_of(const pod_machine *machine)
{
    return machine->dcn ? machine->slice->nslices : 1;
}

int32_t pod_machine_cells(const pod_machine *machine)
{
    return pod_machine_slice_cells(machine) * (machine->fold_slices ? 1 : slices_of(machine));
}

int32_t pod_machine_chips(const pod_machine *machine)
{
    return machine->slice->nchips * slices_of(machine);
}

int32_t pod_machine_chip(const pod_machine *machine, int32_t cell)
{
    const int32_t x = pod_machine_period(machine, 0);
    const int32_t y = pod_machine_period(machine, 1);
    const int32_t z = pod_machine_period(machine, 2);
    const int32_t coords[POD_AXES] = {cell % x, cell / x % y, cell / x / y % z};
    const int32_t slice = cell / (x * y * z);
    return slice * machine->slice->nchips + pod_slice_chip(machine->slice, coords);
}

int32_t pod_machine_cell(const pod_machine *machine, int32_t chip)
{
    int32_t at[POD_AXES];
    const int32_t nchips = machine->slice->nchips;
    pod_slice_coords(machine->slice, chip % nchips, at);
    const int32_t x = pod_machine_period(machine, 0);
    const int32_t y = pod_machine_period(machine, 1);
    const int32_t z = pod_machine_period(machine, 2);
    const int32_t slice = machine->fold_slices ? 0 : chip / nchips;
    return at[0] % x + x * (at[1] % y + y * (at[2] % z + z * slice));
}
