/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/memory.h"

#include "base/units.h"

#include "engine/par_mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, LINE_BYTES = 4096 };

/* The number of a file that holds one, or after `key` and blanks at the start of a line; -1 = none ("max"). */
static int64_t number_in(const char *path, const char *key)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return -1;
    }
    char line[LINE_BYTES];
    int64_t number = -1;
    const size_t length = strlen(key);
    while (number < 0 && fgets(line, sizeof line, file) != NULL) {
        char *end = line + length;
        if (strncmp(line, key, length) == 0) {
            const long long value = strtoll(line + length, &end, 10);
            number = end > line + length ? (int64_t)value : -1;
        }
    }
    (void)fclose(file);
    return number;
}

static int64_t number_of(const char *root, const char *path, const char *file, const char *key)
{
    char name[PATH_BYTES];
    const int length = snprintf(name, sizeof name, "%s%s/%s", root, path, file);
    return length > 0 && (size_t)length < sizeof name ? number_in(name, key) : -1;
}

/* One control group: its limit less what it uses and can't drop. */
static int64_t group_bytes(const char *root, const char *path)
{
    int64_t limit = number_of(root, path, "memory.max", "");
    int64_t used = number_of(root, path, "memory.current", "");
    int64_t files = number_of(root, path, "memory.stat", "inactive_file ");
    if (used < 0) {
        limit = number_of(root, path, "memory.limit_in_bytes", "");
        used = number_of(root, path, "memory.usage_in_bytes", "");
        files = number_of(root, path, "memory.stat", "total_inactive_file ");
    }
    if (limit < 0 || used < 0) {
        return INT64_MAX;
    }
    const int64_t left = limit - used + (files > 0 ? files : 0);
    return left > 0 ? left : 0;
}

int64_t pod_memory_cgroup_bytes(const char *root, const char *path)
{
    char group[PATH_BYTES];
    (void)snprintf(group, sizeof group, "%s", strcmp(path, "/") == 0 ? "" : path);
    int64_t left = group_bytes(root, group);
    for (char *slash = strrchr(group, '/'); slash != NULL; slash = strrchr(group, '/')) {
        *slash = '\0';
        left = pod_min_i64(left, group_bytes(root, group));
    }
    return left;
}

/* By /proc/self/cgroup: lines of number:controllers:path; the controllers are empty in version 2. */
static int64_t cgroups_bytes(void)
{
    FILE *file = fopen("/proc/self/cgroup", "r");
    if (file == NULL) {
        return INT64_MAX;
    }
    char line[LINE_BYTES];
    int64_t left = INT64_MAX;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (path == NULL) {
            continue;
        }
        *path++ = '\0';
        const bool second = controllers[1] == '\0';
        if (second || strstr(controllers + 1, "memory") != NULL) {
            const char *root = second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
            left = pod_min_i64(left, pod_memory_cgroup_bytes(root, path));
        }
    }
    (void)fclose(file);
    return left;
}

static int64_t node_bytes(void)
{
    const int64_t kib = number_in("/proc/meminfo", "MemAvailable:");
    return pod_min_i64(kib >= 0 ? kib * 1024 : INT64_MAX, cgroups_bytes());
}

/* What a limit on the address space (ulimit -v) leaves to this process. */
static int64_t process_bytes(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY
        || limit.rlim_cur > INT64_MAX) {
        return INT64_MAX;
    }
    const int64_t pages = number_in("/proc/self/statm", "");
    const int64_t mapped = pages > 0 ? pages * (int64_t)sysconf(_SC_PAGESIZE) : 0;
    const int64_t left = (int64_t)limit.rlim_cur - mapped;
    return left > 0 ? left : 0;
}

int64_t pod_memory_free_bytes(pod_par *par)
{
    int64_t most = pod_min_i64(node_bytes() / par->node_ranks, process_bytes());
    pod_par_min_i64(par, &most, 1);
    return most > INT64_MAX / par->size ? INT64_MAX : most * par->size;
}
