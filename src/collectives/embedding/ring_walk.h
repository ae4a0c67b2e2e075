/* SPDX-License-Identifier: Apache-2.0 */
/** @file collectives/embedding/ring_walk.h  Both ways round a closed ring: steps, halves, and who sends what.
 *
 *  The worked tables are in rings.h. Inline, because every simulated message asks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** What one direction does on a ring of `length`: runs of slots, of which the farthest may be a half. */
typedef struct pod_ring_leg {
    int32_t steps;
    int32_t half_step;  /**< the step that moves half a run; -1 = none */
    int32_t half_first; /**< slots of the run before that half */
    int32_t half_slots;
} pod_ring_leg;

/** @param run   slots that travel together
 *  @param sign  +1 or -1: the direction
 *  @param bias  0 or 1: 1 gives the + direction the odd slot of an odd run */
static inline pod_ring_leg pod_ring_leg_make(int32_t length, int32_t run, int sign, int bias,
                                             bool gather)
{
    pod_ring_leg leg = {.steps = length / 2, .half_step = -1};
    if (length % 2 == 0) {
        const int32_t plus = (run + bias) / 2;
        leg.half_first = sign > 0 ? 0 : plus;
        leg.half_slots = sign > 0 ? plus : run - plus;
        if (leg.half_slots == 0) {
            --leg.steps;
        } else {
            leg.half_step = gather ? leg.steps - 1 : 0;
        }
    }
    return leg;
}

/** The position whose run is sent, and the one whose run is received from the neighbour before it.
 *  @param mine  own position
 *  @param away  position sent, counted from the own one in the direction: -step when gathering,
 *               steps - step when scattering; |away| < length */
static inline void pod_ring_digits(int32_t length, int32_t mine, int sign, int32_t away,
                                   int32_t *sent, int32_t *received)
{
    int32_t digit = mine + sign * away;
    digit += digit < 0 ? length : 0;
    digit -= digit >= length ? length : 0;
    *sent = digit;
    digit -= sign;
    digit += digit < 0 ? length : 0;
    digit -= digit >= length ? length : 0;
    *received = digit;
}
