/* SPDX-License-Identifier: Apache-2.0 */
/** @file models/settings_shell.h  Settings as words of a command line or a run script, as a shell reads them.
 *
 *  Threads: none. */
#pragma once

#include "models/settings.h"

/** Append the words of `text`, of a command line, a file or a script. Not collective.
 *  @param file  names the text in errors, borrowed by the settings; NULL for a command line
 *  @return POD_E_USAGE with the position: a word that is no key=value, a quote or bracket left open, a key given
 *          twice with different values, a script that runs MaxText twice or with another file than base.yml;
 *          POD_E_NOMEM */
pod_status pod_settings_words(pod_settings *settings, const char *text, const char *file,
                              pod_error *err);
