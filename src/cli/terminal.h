/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/terminal.h  How wide the terminal is.
 *
 *  Threads: none. */
#pragma once

/** Columns of the terminal that a file descriptor writes to; 0 if it is none, or one that doesn't know. Under mpirun
 *  standard output is a terminal that doesn't, and standard error a pipe: they are as wide as what mpirun copies them
 *  to. */
int pod_cli_terminal_columns(int descriptor);
