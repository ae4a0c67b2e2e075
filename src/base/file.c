/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

static pod_status fail_io(pod_error *err, const char *verb, const char *path)
{
    const int reason = errno;
    return pod_fail(err, POD_E_IO, "can't %s '%s': %s", verb, path, strerror(reason));
}

/* Reads `most` bytes or to the end in growing steps: pipes and /proc files don't tell their size. */
static pod_status read_all(FILE *file, const char *path, size_t most, char **data, size_t *size,
                           pod_error *err)
{
    size_t capacity = most < 1 << 16 ? most + 1 : 1 << 16;
    size_t used = 0;
    char *buffer = malloc(capacity);
    while (buffer != NULL) {
        used += fread(buffer + used, 1, capacity - 1 - used, file);
        if (used < capacity - 1 || used == most) {
            break;
        }
        capacity = capacity > most / 2 ? most + 1 : capacity * 2;
        char *larger = realloc(buffer, capacity);
        if (larger == NULL) {
            free(buffer);
        }
        buffer = larger;
    }
    if (buffer == NULL) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the contents of '%s'", path);
    }
    if (ferror(file)) {
        const pod_status status = fail_io(err, "read", path);
        free(buffer);
        return status;
    }
    buffer[used] = '\0';
    *data = buffer;
    *size = used;
    return POD_OK;
}

pod_status pod_file_read(const char *path, char **data, size_t *size, pod_error *err)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return fail_io(err, "read", path);
    }
    pod_status status = read_all(file, path, POD_FILE_BYTES_MAX + 1, data, size, err);
    (void)fclose(file);
    if (status == POD_OK && *size > POD_FILE_BYTES_MAX) {
        free(*data);
        *data = NULL;
        status = pod_fail(err, POD_E_TABLE, "'%s' has more than %d MiB, and no table has", path,
                          (int)(POD_FILE_BYTES_MAX >> 20));
    }
    return status;
}

pod_status pod_file_read_most(const char *path, size_t most, char **data, size_t *size,
                              pod_error *err)
{
    if (strcmp(path, "-") == 0) {
        return read_all(stdin, "standard input", most + 1, data, size, err);
    }
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return fail_io(err, "read", path);
    }
    const pod_status status = read_all(file, path, most + 1, data, size, err);
    (void)fclose(file);
    return status;
}

static bool write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        const ssize_t wrote = write(fd, data, size);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote < 0) {
            return false;
        }
        data += wrote;
        size -= (size_t)wrote;
    }
    return true;
}

/* A device or pipe can't be replaced by a rename (as root, that would remove /dev/null). */
static pod_status write_in_place(const char *path, const char *data, size_t size, pod_error *err)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENXIO) {
        return pod_fail(err, POD_E_IO,
                        "can't write '%s': nobody reads this pipe; start its reader first", path);
    }
    if (fd < 0 || fcntl(fd, F_SETFL, 0) != 0) {
        return fail_io(err, "write", path);
    }
    const pod_status status = write_all(fd, data, size) ? POD_OK : fail_io(err, "write", path);
    (void)close(fd);
    return status;
}

/* @param mode  of the file that is replaced; 0 = there is none */
static pod_status write_and_rename(const char *target, const char *path, mode_t mode,
                                   const char *data, size_t size, pod_error *err)
{
    char temporary[PATH_MAX];
    const int length = snprintf(temporary, sizeof temporary, "%s.%ld", target, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof temporary) {
        errno = ENAMETOOLONG;
        return fail_io(err, "write", path);
    }
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        return fail_io(err, "write", path);
    }
    bool ok =
        (mode == 0 || fchmod(fd, mode & 07777) == 0) && write_all(fd, data, size) && fsync(fd) == 0;
    pod_status status = ok ? POD_OK : fail_io(err, "write", path);
    if (close(fd) != 0 && ok) {
        ok = false;
        status = fail_io(err, "write", path);
    }
    if (ok && rename(temporary, target) != 0) {
        ok = false;
        status = fail_io(err, "write", path);
    }
    if (!ok) {
        (void)unlink(temporary);
    }
    return status;
}

/* The folder that a path is in, or would be, into folder[PATH_MAX]. */
static const char *folder_of(const char *path, char *folder)
{
    const char *slash = strrchr(path, '/');
    const int length = slash == NULL ? 1 : (int)(slash - path) + 1;
    (void)snprintf(folder, PATH_MAX, "%.*s", length, slash == NULL ? "." : path);
    return folder;
}

bool pod_file_same(const char *a, const char *b)
{
    struct stat one;
    struct stat two;
    const bool there = stat(a, &one) == 0;
    if (there != (stat(b, &two) == 0)) {
        return false;
    }
    if (there) {
        return S_ISREG(one.st_mode) && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
    }
    char folder[PATH_MAX];
    const char *names[2] = {strrchr(a, '/'), strrchr(b, '/')};
    return strcmp(names[0] == NULL ? a : names[0] + 1, names[1] == NULL ? b : names[1] + 1) == 0
           && stat(folder_of(a, folder), &one) == 0 && stat(folder_of(b, folder), &two) == 0
           && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

pod_status pod_file_write_check(const char *path, pod_error *err)
{
    struct stat info;
    char folder[PATH_MAX];
    const bool exists = stat(path, &info) == 0;
    if (exists && S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return fail_io(err, "write", path);
    }
    if (exists) {
        return access(path, W_OK) == 0 ? POD_OK : fail_io(err, "write", path);
    }
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
        return pod_fail(
            err, POD_E_IO,
            "can't write '%s': this link leads nowhere; make what it names, or remove it", path);
    }
    return path[0] != '\0' && access(folder_of(path, folder), W_OK | X_OK) == 0
               ? POD_OK
               : fail_io(err, "write", path);
}

pod_status pod_file_write(const char *path, const char *data, size_t size, pod_error *err)
{
    POD_TRY(pod_file_write_check(path, err));
    struct stat info;
    const bool exists = stat(path, &info) == 0;
    if (exists && !S_ISREG(info.st_mode)) {
        return write_in_place(path, data, size, err);
    }
    /* Who is told to end now ends when the temporary file is gone. */
    sigset_t ends;
    sigset_t before;
    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGINT);
    (void)sigaddset(&ends, SIGTERM);
    (void)sigaddset(&ends, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &ends, &before);
    /* Through a symbolic link, so that the link survives. */
    char *target = exists ? realpath(path, NULL) : NULL;
    pod_status status = write_and_rename(target != NULL ? target : path, path,
                                         exists ? info.st_mode : 0, data, size, err);
    free(target);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

/* The file that holds this code: the program, or libpodsim in a program of somebody else's.
 * @return path[PATH_MAX], or "" if the system doesn't say */
static char *own_file(char *path)
{
    Dl_info own;
    Dl_info program; /* of which the kernel says where its headers are */
    const bool told = dladdr(__extension__(void *) own_file, &own) != 0
                      && dladdr((void *)getauxval(AT_PHDR), &program) != 0;
    const char *file =
        told && own.dli_fbase != program.dli_fbase ? own.dli_fname : "/proc/self/exe";
    if (realpath(file, path) == NULL) {
        path[0] = '\0';
    }
    return path;
}

/* "PREFIX/share/podsim" for PREFIX/bin/podsim, PREFIX/lib/libpodsim.so and PREFIX/lib/ARCHITECTURE/libpodsim.so: the
 * nearest that is there, else that of a program; "" if the system doesn't say. */
static void installed_data_dir(char *buf, size_t size)
{
    enum { ABOVE = 3 };
    char file[PATH_MAX];
    char nearest[PATH_MAX + sizeof "/share/podsim"];
    buf[0] = '\0';
    own_file(file);
    for (int level = 0; level < ABOVE; level++) {
        char *slash = strrchr(file, '/');
        if (slash == NULL) {
            return;
        }
        *slash = '\0';
        (void)snprintf(nearest, sizeof nearest, "%s/share/podsim", file);
        const bool there = access(nearest, X_OK) == 0;
        if (level > 0 && (there || level == 1) && strlen(nearest) < size) {
            memcpy(buf, nearest, strlen(nearest) + 1);
        }
        if (level > 0 && there) {
            return;
        }
    }
}

pod_status pod_data_path(const char *relative, char *buf, size_t size, pod_error *err)
{
    const char *chosen = getenv("PODSIM_DATA");
    struct stat info;
    if (chosen != NULL && chosen[0] != '\0'
        && (stat(chosen, &info) != 0 || !S_ISDIR(info.st_mode))) {
        return pod_fail(
            err, POD_E_IO,
            "PODSIM_DATA is '%s', which is no folder; name one that holds %s, or unset it", chosen,
            relative);
    }
    char installed[PATH_MAX];
    installed_data_dir(installed, sizeof installed);
    const char *const folders[] = {chosen != NULL ? chosen : "", installed};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        if (folders[i][0] == '\0') {
            continue;
        }
        const int wrote = snprintf(buf, size, "%s/%s", folders[i], relative);
        if (wrote >= 0 && (size_t)wrote < size && access(buf, R_OK) == 0) {
            return POD_OK;
        }
        const int why = errno;
        struct stat link;
        const bool absent = why == ENOENT || why == ENOTDIR;
        if (i == 0 && (!absent || lstat(buf, &link) == 0)) { /* it is there, and not for us */
            errno = why;
            return fail_io(err, "read", buf);
        }
    }
    return pod_fail(err, POD_E_IO,
                    "can't find '%s' in %s%s%s; set PODSIM_DATA to the folder that holds it",
                    relative, folders[0], folders[0][0] != '\0' ? " or " : "", folders[1]);
}
