/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/directions.h"

static unsigned axis_directions(int axis)
{
    return 3U << (2 * axis);
}

/* Those that there are. */
static unsigned slice_directions(const pod_slice *slice)
{
    unsigned directions = 0;
    for (int axis = 0; axis < POD_AXES; axis++) {
        directions |= slice->dims[axis] > 1 ? axis_directions(axis) : 0;
    }
    return directions;
}

/* What routed messages between the chips of a group may take. */
static unsigned routed_directions(const pod_slice *slice, const pod_group *group)
{
    unsigned directions = 0;
    if (group->slices > 1) {
        return group->inside != NULL ? routed_directions(slice, group->inside)
                                     : slice_directions(slice);
    }
    if (group->ndims == 0 || slice->twisted || pod_slice_has_dead_links(slice)) {
        return slice_directions(slice);
    }
    for (int dim = 0; dim < group->ndims; dim++) {
        directions |= axis_directions(group->dim[dim].axis);
    }
    return directions;
}

static unsigned step_directions(const pod_coll_schedule *schedule, const pod_coll_place *place,
                                int32_t channel, int32_t number, unsigned routed)
{
    pod_coll_step step;
    schedule->ops->step(schedule, place, channel, number, &step);
    if (step.send_to < 0 || step.send_to == place->rank) {
        return 0;
    }
    const pod_group *group = schedule->group;
    const int32_t inside = group->slices > 1 ? group->size / group->slices : group->size;
    if (step.send_to / inside != place->rank / inside) {
        return POD_DIRECTION_DCN;
    }
    return step.send_direction >= 0 ? 1U << step.send_direction : routed;
}

unsigned pod_directions_used(const pod_machine *machine, const pod_coll_schedule *schedule)
{
    const unsigned most =
        slice_directions(machine->slice) | (schedule->group->slices > 1 ? POD_DIRECTION_DCN : 0);
    const unsigned routed = routed_directions(machine->slice, schedule->group);
    const int32_t cells = pod_machine_cells(machine);
    unsigned directions = 0;
    for (int32_t cell = 0; cell < cells; cell++) {
        pod_coll_place place;
        pod_coll_place_make(schedule->group,
                            pod_group_rank(schedule->group, pod_machine_chip(machine, cell)),
                            &place);
        for (int32_t channel = 0; channel < schedule->nchannels; channel++) {
            const int32_t steps = schedule->ops->steps(schedule, &place, channel);
            for (int32_t i = 0; i < steps; i++) {
                directions |= step_directions(schedule, &place, channel, i, routed);
                if (directions == most) {
                    return directions;
                }
            }
        }
    }
    return directions;
}

unsigned pod_directions_axes(const pod_machine *machine, const pod_group *group,
                             unsigned directions)
{
    const pod_slice *slice = machine->slice;
    if (slice->nfaults > 0 || group->ndims == 0 || group->slices > 1
        || (directions & POD_DIRECTION_DCN) != 0) {
        return POD_DIRECTIONS_AXES_ALL;
    }
    unsigned axes = 0;
    for (int dim = 0; dim < group->ndims; dim++) {
        axes |= 1U << group->dim[dim].axis;
    }
    for (int axis = 0; axis < POD_AXES; axis++) {
        axes |= (directions & axis_directions(axis)) != 0 ? 1U << axis : 0;
    }
    return axes;
}
