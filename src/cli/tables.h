/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/tables.h  Files in, and the tables that come with podsim.
 *
 *  Model: only rank 0 touches the file system. pod_cli_read reads any number of files there, agrees
 *  on the outcome once and broadcasts the contents once, since every exchange between
 *  oversubscribed ranks costs milliseconds. Every rank then parses for itself.
 *
 *  Threads: one per rank. Errors: POD_E_IO, POD_E_TABLE with the place, POD_E_NOMEM. */
#pragma once

#include "cli/cli.h"

typedef struct pod_cli_file {
    const char *path; /**< of the user, or of one of podsim's tables */
    bool own;         /**< podsim's table, found by pod_data_path */
    size_t most; /**< 0, or: read at most one byte more than this, and standard input for "-" */
    char *data;  /**< out: heap memory, terminated by a NUL that size doesn't count */
    size_t size;
} pod_cli_file;

/** POD_E_USAGE for a file that an option is to write; commands that read one themselves ask before they do. */
pod_status pod_cli_read_check(const pod_cli *cli, const char *name, pod_error *err);

/** Can a file be read from here, or is it one of podsim's own, as "validation/hlo/int8-v5e-4x4.hlo.gz"? Rank 0 asks. */
bool pod_cli_there(const char *name);

/** Read files on rank 0, contents to all. Names in podsim's folders (topologies/, models/, validation/) that aren't
 *  there from the working folder are podsim's own files. Collective. On error no file has data. */
pod_status pod_cli_read(pod_cli *cli, pod_cli_file *files, int nfiles, pod_error *err);
void pod_cli_files_free(pod_cli_file *files, int nfiles);

/** Load podsim's own tables into cli->tables unless they are there already, and read `nfiles` further files
 *  on the way. Collective.
 *  @return POD_E_IO for a file that can't be read, or an --output that can't be written; POD_E_TABLE */
pod_status pod_cli_tables_load(pod_cli *cli, pod_cli_file *files, int nfiles, pod_error *err);

/** A chip of chips.csv under --rates and --set; loads the tables first. Collective. */
pod_status pod_cli_chip_load(pod_cli *cli, const char *name, pod_chip_spec *chip, pod_error *err);

/** The figures among `names` that no published row of this chip fixes, one `--explain` line each: under measured rates
 *  only, and but for those that --set replaces. The tables are loaded. Not collective. */
void pod_cli_explain_origins(const pod_cli *cli, const pod_chip_spec *chip,
                             const char *const *names, int nnames);

/** How far off such predictions have been, as a heading: "accuracy: 11 published rows of class train-dense on v5p,
 *  median error 2.0 %, worst 8.1 %"; of all chips where this one has none. Under measured rates only. Not collective.
 *  @param class  of validation/errors.csv */
void pod_cli_heading_accuracy(const pod_cli *cli, const pod_chip_spec *chip, const char *class,
                              pod_findings *findings);
