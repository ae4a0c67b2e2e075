/* SPDX-License-Identifier: Apache-2.0 */
/* bench_rss COMMAND [ARGUMENT…]: runs it, then prints on stderr what memory it had at most, "peak_rss_bytes N". */
#include <stdio.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 2) {
        (void)fputs("usage: bench_rss COMMAND [ARGUMENT...]\n", stderr);
        return 2;
    }
    const pid_t child = fork();
    if (child == 0) {
        (void)execvp(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("bench_rss");
        return 1;
    }
    struct rusage usage;
    if (getrusage(RUSAGE_CHILDREN, &usage) == 0) {
        (void)fprintf(stderr, "peak_rss_bytes %lld\n", (long long)usage.ru_maxrss * 1024);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
