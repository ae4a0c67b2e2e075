/* SPDX-License-Identifier: Apache-2.0 */
/** @file base/file.h  Whole files in and out, and where podsim's own tables are.
 *
 *  Tables are looked up first in $PODSIM_DATA, then in ../share/podsim beside the folder of the running program, or
 *  of libpodsim where that is used (also above lib/ARCHITECTURE). The build tree and an installed prefix have that same
 *  layout, so either can be moved. Threads: none.
 *  Errors: POD_E_IO with the file's name and the system's reason. */
#pragma once

#include "base/status.h"

#include <stdbool.h>

enum { POD_FILE_BYTES_MAX = 256 << 20 };

/** Read a whole file of at most POD_FILE_BYTES_MAX, else POD_E_TABLE. *data is heap memory of the caller
 *  (free), terminated by a NUL that *size doesn't count. Not collective: only rank 0 reads files (engine/par.h
 *  broadcasts). */
pod_status pod_file_read(const char *path, char **data, size_t *size, pod_error *err);

/** The same for the first `most` + 1 bytes at most, so that a caller who refuses larger files doesn't read them.
 *  @param path  "-" = standard input */
pod_status pod_file_read_most(const char *path, size_t most, char **data, size_t *size,
                              pod_error *err);

/** Could `path` be written now? For asking before long work. POD_E_IO with the reason: a folder, a file
 *  that may not be written, no such folder, or one that may not be written. */
pod_status pod_file_write_check(const char *path, pod_error *err);

/** Do two paths name one file, whether it is there or would be made? Devices and pipes are never one. */
bool pod_file_same(const char *a, const char *b);

/** Write a whole file so that it appears complete or not at all (temporary file, fsync, rename; signals
 *  that end the program wait until it is done). A symbolic link is followed; a device or pipe is
 *  written in place. */
pod_status pod_file_write(const char *path, const char *data, size_t size, pod_error *err);

/** Path of one of podsim's tables, e.g. "topologies/chips.csv", into buf[size].
 *  POD_E_IO, naming the folders tried, if it is in none of them, or if $PODSIM_DATA is no folder. */
pod_status pod_data_path(const char *relative, char *buf, size_t size, pod_error *err);
