/* SPDX-License-Identifier: Apache-2.0 */
/* Replays every file of the folders named on the command line, then every truncation of it and a
 * few seeded mutations (overwritten, dropped and doubled bytes). Ends by itself or crashes. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/rng.h"

#include "fuzz.h"

enum { MUTATIONS = 100 };

static void run(const char *data, size_t size)
{
    /* A copy of the exact size, so that a sanitizer sees reads beyond it. */
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (!copy) {
        abort();
    }
    memcpy(copy, data, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

/* A mutation of data[0, size) into buf[2 * size]. @return its size */
static size_t mutate(const char *data, size_t size, uint64_t seed, char *buf)
{
    memcpy(buf, data, size);
    size_t at = (size_t)pod_rng_below(seed, 0, 0, size);
    size_t length = 1 + (size_t)pod_rng_below(seed, 0, 1, size - at < 8 ? size - at : 8);
    if (at + length > size) {
        length = size - at;
    }
    uint64_t kind = pod_rng_below(seed, 0, 2, 3);
    if (kind == 0) {
        buf[at] = (char)pod_rng_below(seed, 0, 3, 256);
        return size;
    }
    if (kind == 1) {
        memmove(buf + at, buf + at + length, size - at - length);
        return size - length;
    }
    memmove(buf + at + length, data + at, size - at);
    return size + length;
}

static int replay_file(const char *path)
{
    char *data = NULL;
    size_t size = 0;
    pod_error err = {0};
    if (pod_file_read(path, &data, &size, &err) != POD_OK) {
        fprintf(stderr, "%s: %s\n", path, err.text);
        return 1;
    }
    char *buf = malloc(2 * size + 1);
    for (size_t shorter = 0; shorter <= size; shorter++) {
        run(data, shorter);
    }
    for (uint64_t seed = 0; buf && size > 0 && seed < MUTATIONS; seed++) {
        run(buf, mutate(data, size, seed, buf));
    }
    free(buf);
    free(data);
    return 0;
}

static int replay_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir) {
        perror(folder);
        return 1;
    }
    int failed = 0;
    int nfiles = 0;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        failed |= replay_file(path);
        nfiles++;
    }
    closedir(dir);
    printf("%s: %d files\n", folder, nfiles);
    return failed || nfiles == 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    int failed = argc < 2 ? 1 : 0;
    for (int i = 1; i < argc; i++) {
        failed |= replay_folder(argv[i]);
    }
    return failed;
}
