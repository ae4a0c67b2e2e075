/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

int pod_cli_terminal_columns(int descriptor)
{
    struct winsize size = {0};
    if (isatty(descriptor) == 0 || ioctl(descriptor, TIOCGWINSZ, &size) != 0) {
        return 0;
    }
    return size.ws_col;
}
