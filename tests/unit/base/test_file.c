/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

static char folder[64];

static void make_folder(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/podsim-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static const char *in_folder(const char *name)
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void remove_folder(void)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(file, .init = make_folder, .fini = remove_folder);

static void expect_round_trip(const char *path, const char *data, size_t size)
{
    char *read = NULL;
    size_t read_size = 0;
    cr_assert_eq(pod_file_write(path, data, size, NULL), POD_OK);
    cr_assert_eq(pod_file_read(path, &read, &read_size, NULL), POD_OK);
    cr_assert_eq(read_size, size);
    cr_expect_eq(memcmp(read, data, size), 0);
    cr_expect_eq(read[size], '\0');
    free(read);
}

Test(file, reads_back_what_it_wrote)
{
    const char *path = in_folder("a b.csv");
    expect_round_trip(path, "x\0y\n", 4);
    expect_round_trip(path, "", 0);
    enum { LARGE = (1 << 18) + 7 };
    char *large = malloc(LARGE);
    memset(large, 'z', LARGE);
    expect_round_trip(path, large, LARGE);
    free(large);
}

Test(file, reads_files_that_do_not_tell_their_size)
{
    char *data = NULL;
    size_t size = 0;
    cr_assert_eq(pod_file_read("/proc/self/status", &data, &size, NULL), POD_OK);
    cr_expect_gt(size, 0U);
    free(data);
}

Test(file, says_which_file_and_why)
{
    char *data = NULL;
    size_t size = 0;
    pod_error err = {.status = POD_OK};
    cr_expect_eq(pod_file_read(in_folder("none"), &data, &size, &err), POD_E_IO);
    cr_expect_not_null(strstr(err.text, "/none"));
    cr_expect_not_null(strstr(err.text, "No such file"));
    pod_error_clear(&err);
    cr_expect_eq(pod_file_read(folder, &data, &size, &err), POD_E_IO);
    cr_expect_not_null(strstr(err.text, "Is a directory"));
    pod_error_clear(&err);
    cr_expect_eq(pod_file_write(in_folder("none/x"), "", 0, &err), POD_E_IO);
    cr_expect_not_null(strstr(err.text, "can't write"));
    pod_error_clear(&err);
    cr_expect_eq(pod_file_write(folder, "", 0, &err), POD_E_IO);
    cr_expect_not_null(strstr(err.text, "Is a directory"));
    pod_error_clear(&err);
    cr_expect_eq(pod_file_write("/dev/full", "x", 1, &err), POD_E_IO);
    cr_expect_not_null(strstr(err.text, "No space left"));
    cr_expect_null(data);
}

Test(file, a_device_stays_a_device)
{
    struct stat info;
    cr_assert_eq(pod_file_write("/dev/null", "x", 1, NULL), POD_OK);
    cr_assert_eq(stat("/dev/null", &info), 0);
    cr_expect(S_ISCHR(info.st_mode));
}

Test(file, a_link_stays_a_link_and_nothing_else_is_left)
{
    char target[256];
    (void)snprintf(target, sizeof target, "%s", in_folder("target"));
    cr_assert_eq(pod_file_write(target, "old", 3, NULL), POD_OK);
    cr_assert_eq(symlink(target, in_folder("link")), 0);
    expect_round_trip(in_folder("link"), "new", 3);
    struct stat info;
    cr_assert_eq(lstat(in_folder("link"), &info), 0);
    cr_expect(S_ISLNK(info.st_mode));
    char command[128];
    (void)snprintf(command, sizeof command, "test \"$(ls '%s' | wc -l)\" -eq 2", folder);
    cr_expect_eq(system(command), 0);
}

Test(file, says_before_that_it_could_not_write)
{
    cr_expect_eq(pod_file_write_check(in_folder("new"), NULL), POD_OK);
    cr_expect_eq(pod_file_write_check("new", NULL), POD_OK, "in the working folder");
    cr_expect_eq(pod_file_write_check("/dev/null", NULL), POD_OK);
    pod_error err = {.status = POD_OK};
    cr_expect_eq(pod_file_write_check(in_folder("none/new"), &err), POD_E_IO);
    cr_expect_not_null(strstr(err.text, "No such file"));
    cr_expect_eq(pod_file_write_check(folder, NULL), POD_E_IO);
    cr_expect_eq(pod_file_write_check("", NULL), POD_E_IO);
}

Test(file, finds_tables_where_podsim_data_says)
{
    char path[256];
    cr_assert_eq(pod_file_write(in_folder("mine.csv"), "a\n", 2, NULL), POD_OK);
    cr_assert_eq(setenv("PODSIM_DATA", folder, 1), 0);
    cr_assert_eq(pod_data_path("mine.csv", path, sizeof path, NULL), POD_OK);
    cr_expect_str_eq(path, in_folder("mine.csv"));
}

Test(file, names_the_folders_it_tried)
{
    char path[256];
    pod_error err = {.status = POD_OK};
    cr_assert_eq(setenv("PODSIM_DATA", folder, 1), 0);
    cr_expect_eq(pod_data_path("none.csv", path, sizeof path, &err), POD_E_IO);
    cr_expect_not_null(strstr(err.text, folder));
    cr_expect_not_null(strstr(err.text, "/share/podsim"));
    cr_assert_eq(unsetenv("PODSIM_DATA"), 0);
    pod_error_clear(&err);
    cr_expect_eq(pod_data_path("none.csv", path, sizeof path, &err), POD_E_IO);
    cr_expect_null(strstr(err.text, folder));
    cr_expect_eq(pod_data_path("none.csv", path, 4, NULL), POD_E_IO);
    cr_assert_eq(setenv("PODSIM_DATA", in_folder("none"), 1), 0);
    pod_error_clear(&err);
    cr_expect_eq(pod_data_path("topologies/chips.csv", path, sizeof path, &err), POD_E_IO);
    cr_expect_not_null(strstr(err.text, "is no folder"));
    cr_assert_eq(unsetenv("PODSIM_DATA"), 0);
}
