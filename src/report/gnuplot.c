/* SPDX-License-Identifier: Apache-2.0 */
#include "report/gnuplot.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The program's three streams: it reads a file, writes into a pipe, and complains into a file. */
typedef struct streams {
    FILE *script;
    FILE *complaints;
    int pipe[2]; /* -1 = closed */
} streams;

static void streams_close(streams *s)
{
    for (int i = 0; i < 2; i++) {
        if (s->pipe[i] >= 0) {
            (void)close(s->pipe[i]);
        }
    }
    if (s->script != NULL) {
        (void)fclose(s->script);
    }
    if (s->complaints != NULL) {
        (void)fclose(s->complaints);
    }
}

static bool streams_open(streams *s, const pod_text *script)
{
    *s = (streams){
        .pipe = {-1, -1},
          .script = tmpfile(), .complaints = tmpfile()
    };
    return s->script != NULL && s->complaints != NULL && pipe(s->pipe) == 0
           && fwrite(script->data, 1, script->size, s->script) == script->size
           && fflush(s->script) == 0 && fseek(s->script, 0, SEEK_SET) == 0;
}

/* 0, or the reason as errno has it. */
static int start(streams *s, pid_t *child)
{
    char name[] = "gnuplot";
    char *const arguments[] = {name, NULL};
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    error = posix_spawn_file_actions_adddup2(&actions, fileno(s->script), STDIN_FILENO);
    error =
        error != 0 ? error : posix_spawn_file_actions_adddup2(&actions, s->pipe[1], STDOUT_FILENO);
    error = error != 0
                ? error
                : posix_spawn_file_actions_adddup2(&actions, fileno(s->complaints), STDERR_FILENO);
    error = error != 0 ? error : posix_spawn_file_actions_addclose(&actions, s->pipe[0]);
    error = error != 0 ? error : posix_spawnp(child, name, &actions, NULL, arguments, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(s->pipe[1]);
    s->pipe[1] = -1;
    return error;
}

static void read_all(int fd, pod_text *picture)
{
    char buffer[16384];
    for (;;) {
        const ssize_t got = read(fd, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return;
        }
        pod_text_append(picture, buffer, (size_t)got);
    }
}

/* Its last line of complaint that says something. */
static pod_status fail_with_its_words(streams *s, pod_error *err)
{
    char line[256];
    char last[256] = "no reason given";
    rewind(s->complaints);
    while (fgets(line, sizeof line, s->complaints) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strspn(line, " \t^") < strlen(line)) {
            memcpy(last, line, sizeof last);
        }
    }
    return pod_fail(err, POD_E_IO, "gnuplot failed: %s", last);
}

static pod_status draw(streams *s, pod_text *picture, pod_error *err)
{
    pid_t child = 0;
    int status = 0;
    const int error = start(s, &child);
    if (error == ENOENT) {
        return pod_fail(err, POD_E_IO,
                        "pictures need gnuplot, which is not installed; apt-get install "
                        "gnuplot-nox, or leave out --plot");
    }
    if (error != 0) {
        return pod_fail(err, POD_E_IO, "gnuplot can't be run: %s", strerror(error));
    }
    read_all(s->pipe[0], picture);
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return pod_fail(err, POD_E_IO, "gnuplot was lost: %s", strerror(errno));
        }
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        return fail_with_its_words(s, err);
    }
    return picture->out_of_memory ? pod_fail(err, POD_E_NOMEM, "no memory for the picture")
                                  : POD_OK;
}

pod_status pod_gnuplot_run(const pod_text *script, pod_text *picture, pod_error *err)
{
    streams s;
    if (script->out_of_memory) {
        return pod_fail(err, POD_E_NOMEM, "no memory for the picture");
    }
    const pod_status status =
        streams_open(&s, script)
            ? draw(&s, picture, err)
            : pod_fail(err, POD_E_IO, "no temporary file for gnuplot: %s", strerror(errno));
    streams_close(&s);
    return status;
}
