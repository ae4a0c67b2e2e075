/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups as files in a scratch folder: what they leave is the least of the group's and of those above. */
#include "engine/memory.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/podsim_cgroup_XXXXXX";

static void put(const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s%s", root, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    (void)fputs(text, file);
    cr_assert_eq(fclose(file), 0);
}

static void folder(const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s%s", root, name);
    cr_assert_eq(mkdir(path, 0700), 0);
}

static void begin(void)
{
    cr_assert_not_null(mkdtemp(root));
    folder("/a");
    folder("/a/b");
}

static void end(void)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", root);
    cr_assert_eq(system(command), 0); /* NOLINT: a path of this test's own */
}

Test(memory, no_files_are_no_limit, .init = begin, .fini = end)
{
    cr_assert_eq(pod_memory_cgroup_bytes(root, "/a/b"), INT64_MAX);
}

/* b: 1000 - 300 + 50 of files = 750; a, above it: 900 - 400 = 500. */
Test(memory, groups_above_count, .init = begin, .fini = end)
{
    put("/a/b/memory.max", "1000\n");
    put("/a/b/memory.current", "300\n");
    put("/a/b/memory.stat", "anon 250\ninactive_file 50\n");
    cr_assert_eq(pod_memory_cgroup_bytes(root, "/a/b"), 750);
    put("/a/memory.max", "900\n");
    put("/a/memory.current", "400\n");
    cr_assert_eq(pod_memory_cgroup_bytes(root, "/a/b"), 500);
    cr_assert_eq(pod_memory_cgroup_bytes(root, "/a"), 500);
}

/* "max" is no limit; of a group that is full nothing is left. */
Test(memory, max_and_full, .init = begin, .fini = end)
{
    put("/a/memory.max", "max\n");
    put("/a/memory.current", "400\n");
    cr_assert_eq(pod_memory_cgroup_bytes(root, "/a"), INT64_MAX);
    put("/a/b/memory.max", "100\n");
    put("/a/b/memory.current", "120\n");
    cr_assert_eq(pod_memory_cgroup_bytes(root, "/a/b"), 0);
}

/* Version 1 names its files otherwise; "/" is the root. */
Test(memory, version_1, .init = begin, .fini = end)
{
    put("/memory.limit_in_bytes", "5000\n");
    put("/memory.usage_in_bytes", "1000\n");
    put("/memory.stat", "total_inactive_file 200\n");
    cr_assert_eq(pod_memory_cgroup_bytes(root, "/"), 4200);
}

/* This machine says something, and a job of one rank gets at most that. */
Test(memory, of_this_machine)
{
    pod_par *self = NULL;
    pod_error err = {0};
    cr_assert_eq(pod_par_self_new(&self, &err), POD_OK);
    cr_assert_gt(pod_memory_free_bytes(self), 0);
    pod_par_self_free(self);
}
