/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli/man.h  Manual pages in roff, from what --help-all prints of a command.
 *
 *  Threads: none. Errors: stick in the text. */
#pragma once

#include "cli/help.h"

/** podsim-COMMAND(1). */
void pod_cli_man_add(pod_text *out, const pod_cli_help *help);

/** A heading, and text as it is read: no letter of it commands roff. Lines that begin with a blank stay lines. */
void pod_cli_man_heading(pod_text *out, const char *heading);
void pod_cli_man_text(pod_text *out, const char *text);
/** The first line of a page. @param name  as "podsim-step" */
void pod_cli_man_title(pod_text *out, const char *name);
/** An item of a list, its name in bold. */
void pod_cli_man_item(pod_text *out, const char *name, const char *text);
