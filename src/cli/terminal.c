/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal.h"

#include "engine/launcher.h"

#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

int pod_cli_terminal_columns(int descriptor)
{
    struct winsize size = {0};
    struct stat file;
    if (isatty(descriptor) != 0 && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    const bool launchers =
        fstat(descriptor, &file) == 0
        && (isatty(descriptor) != 0 || (descriptor == STDERR_FILENO && S_ISFIFO(file.st_mode)));
    return launchers ? pod_launcher_terminal_columns(descriptor) : 0;
}
