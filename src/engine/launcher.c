/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/launcher.h"

#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    PROC_PATH_BYTES = 64,
    STATUS_LINE_BYTES = 256,
    DESCRIPTORS_LEAST = 64,
    SEGMENT_BYTES = 4 << 20 /* of each rank: btl_vader_segment_size of Open MPI 4 */
};

/* The value of `key`, at the start of a line of /proc/PID/status, into text[STATUS_LINE_BYTES]. */
static bool status_read(long pid, const char *key, char *text)
{
    char path[PROC_PATH_BYTES];
    (void)snprintf(path, sizeof path, "/proc/%ld/status", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return false;
    }
    char line[STATUS_LINE_BYTES];
    bool found = false;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        found = strncmp(line, key, strlen(key)) == 0;
    }
    (void)fclose(file);
    if (found) {
        const char *value = line + strlen(key) + strspn(line + strlen(key), " \t");
        (void)snprintf(text, STATUS_LINE_BYTES, "%.*s", (int)strcspn(value, "\n"), value);
    }
    return found;
}

/* The launcher that started this process, by the names that MPIs give it (15 characters of them); 0 = none here. */
static long launcher_find(void)
{
    static const char *const names[] = {"mpirun", "mpiexec", "orterun", "prterun", "prte"};
    long pid = (long)getppid();
    char name[STATUS_LINE_BYTES];
    char parent[STATUS_LINE_BYTES];
    if (!status_read(pid, "Name:", name)) {
        return 0;
    }
    if (strcmp(name, "hydra_pmi_proxy") == 0 && status_read(pid, "PPid:", parent)) {
        pid = strtol(parent, NULL, 10);
        if (!status_read(pid, "Name:", name)) {
            return 0;
        }
    }
    name[strcspn(name, ".")] = '\0'; /* mpirun.openmpi, mpiexec.hydra, … */
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return pid;
        }
    }
    return 0;
}

/* errno of what writing to this device would give; 0 = it works, or who knows. */
static int device_fault(const char *path)
{
    const int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    const int fault = write(fd, "", 0) < 0 && errno != EAGAIN ? errno : 0;
    (void)close(fd);
    return fault;
}

pod_status pod_launcher_output_check(int64_t bytes, pod_error *err)
{
    struct stat own;
    const long launcher =
        fstat(STDOUT_FILENO, &own) == 0 && !S_ISREG(own.st_mode) ? launcher_find() : 0;
    if (launcher == 0) {
        return POD_OK;
    }
    char path[PROC_PATH_BYTES];
    struct stat there;
    struct statvfs room;
    int fault = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/fd/%d", launcher, STDOUT_FILENO);
    if (stat(path, &there) != 0) {
        return POD_OK;
    }
    if (S_ISCHR(there.st_mode)) {
        fault = device_fault(path);
    } else if (S_ISREG(there.st_mode) && statvfs(path, &room) == 0
               && (double)room.f_bavail * (double)room.f_frsize < (double)bytes) {
        fault = ENOSPC;
    }
    return fault == 0 ? POD_OK
                      : pod_fail(err, POD_E_IO,
                                 "the launcher cannot write to standard output: %s; give it "
                                 "somewhere to go, or --output FILE",
                                 strerror(fault));
}

int pod_launcher_terminal_columns(int descriptor)
{
    char path[PROC_PATH_BYTES];
    struct winsize size = {0};
    const long launcher = launcher_find();
    (void)snprintf(path, sizeof path, "/proc/%ld/fd/%d", launcher, descriptor);
    const int fd = launcher != 0 ? open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return 0;
    }
    const bool known = isatty(fd) != 0 && ioctl(fd, TIOCGWINSZ, &size) == 0;
    (void)close(fd);
    return known ? size.ws_col : 0;
}

int pod_launcher_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL) {
            return (int)strtol(value, NULL, 10);
        }
    }
    return 0;
}

pod_status pod_launcher_limits_check(pod_error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= DESCRIPTORS_LEAST) {
        return POD_OK;
    }
    return pod_fail(err, POD_E_IO, "a rank may open %ld files, and MPI needs %d; raise ulimit -n",
                    (long)limit.rlim_cur, (int)DESCRIPTORS_LEAST);
}

/* Open MPI sends through shared memory (btl vader, or sm) unless told otherwise. */
static bool shares_memory(void)
{
    const char *btl = getenv("OMPI_MCA_btl");
    if (btl == NULL) {
        return true;
    }
    const bool named = strstr(btl, "vader") != NULL || strstr(btl, "sm") != NULL;
    return btl[0] == '^' ? !named : named;
}

bool pod_launcher_shared_memory_short(char *text, size_t size)
{
    static const char *const folder = "/dev/shm";
    const char *value = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    const long ranks = value != NULL ? strtol(value, NULL, 10) : 0;
    struct statvfs room;
    if (ranks < 2 || !shares_memory() || statvfs(folder, &room) != 0) {
        return false;
    }
    const double free_bytes = (double)room.f_bavail * (double)room.f_frsize;
    const double needed = (double)ranks * SEGMENT_BYTES;
    char room_text[POD_FORMAT_MAX];
    char needed_text[POD_FORMAT_MAX];
    if (free_bytes >= needed) {
        return false;
    }
    (void)snprintf(
        text, size,
        "%s has %s free, and %ld ranks may take %s of it; if they die of a bus error, make room "
        "there or use mpirun --mca btl self,tcp",
        folder, pod_format_bytes((int64_t)free_bytes, room_text, sizeof room_text), ranks,
        pod_format_bytes((int64_t)needed, needed_text, sizeof needed_text));
    return true;
}
