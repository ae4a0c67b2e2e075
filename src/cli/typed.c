/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/typed.h"

#include "base/names.h"

#include <stdio.h>
#include <string.h>

enum { NAME_MAX_SIZE = 32 };

/* Names of other tools for what an option says. */
static const pod_alias aliases[] = {
    {"bs",               "batch"         },
    {"global-batch",     "batch"         },
    {"mbs",              "batch-per-chip"},
    {"size",             "bytes"         },
    {"sizes",            "bytes"         },
    {"nbytes",           "bytes"         },
    {"message-size",     "bytes"         },
    {"minbytes",         "bytes"         },
    {"maxbytes",         "bytes"         },
    {"topology",         "slice"         },
    {"shape",            "slice"         },
    {"accelerator",      "slice"         },
    {"accelerator-type", "slice"         },
    {"tpu-type",         "slice"         },
    {"device",           "chip"          },
    {"tpu",              "chip"          },
    {"collective",       "op"            },
    {"operation",        "op"            },
    {"precision",        "dtype"         },
    {"datatype",         "dtype"         },
    {"type",             "dtype"         },
    {"context-length",   "seq"           },
    {"max-seq-len",      "seq"           },
    {"parallelism",      "mesh"          },
    {"layout",           "mesh"          },
    {"ici-parallelism",  "mesh"          },
    {"dcn-parallelism",  "dcn-mesh"      },
    {"checkpointing",    "remat"         },
    {"network",          "model"         },
    {"dead-link",        "fail-link"     },
    {"broken-link",      "fail-link"     },
    {"file",             "output"        },
    {"graph",            "plot"          },
    {"timeline",         "trace"         },
    {"profile",          "trace"         },
    {"json",             "format"        },
    {"csv",              "format"        },
};

static bool has(const pod_cli_names *names, const char *name)
{
    for (int i = 0; i < names->count; i++) {
        if (strcmp(names->options[i]->name, name) == 0) {
            return true;
        }
    }
    return false;
}

const char *pod_cli_typed_whole(const pod_cli_names *names, const char *text, size_t length)
{
    const char *whole = NULL;
    int begun = 0;
    for (int i = 0; length > 0 && i < names->count; i++) {
        const char *name = names->options[i]->name;
        if (strncmp(name, text, length) == 0) {
            if (name[length] == '\0') {
                return NULL;
            }
            whole = name;
            begun++;
        }
    }
    return begun == 1 ? whole : NULL;
}

/* "--bytes 8:128M:2" of nccl-tests' "-b 8 -e 128M -f 2". */
static pod_status fail_nccl(int argc, const char *const *argv, pod_error *err)
{
    const char *value[] = {NULL, NULL, NULL};
    static const char *const letters[] = {"-b", "-e", "-f"};
    for (int i = 0; i + 1 < argc; i++) {
        for (int k = 0; k < 3; k++) {
            value[k] = strcmp(argv[i], letters[k]) == 0 ? argv[i + 1] : value[k];
        }
    }
    if (value[0] != NULL && value[1] != NULL) {
        return pod_fail(err, POD_E_USAGE,
                        "-b, -e and -f are options of nccl-tests; write --bytes %s:%s:%s", value[0],
                        value[1], value[2] != NULL ? value[2] : "2");
    }
    return pod_fail(err, POD_E_USAGE, "-b, -e and -f are options of nccl-tests; write --bytes %s",
                    value[0] != NULL ? value[0] : "FROM:TO:FACTOR");
}

/* Several options begin so: all of them. */
static pod_status fail_begun(const pod_cli_names *names, const char *name, pod_error *err)
{
    char list[POD_ERROR_TEXT_MAX / 2] = "";
    size_t used = 0;
    int begun = 0;
    for (int i = 0; i < names->count; i++) {
        if (strncmp(names->options[i]->name, name, strlen(name)) == 0 && used < sizeof list) {
            const int wrote = snprintf(list + used, sizeof list - used, "%s--%s",
                                       begun++ > 0 ? ", " : "", names->options[i]->name);
            used += wrote > 0 ? (size_t)wrote : 0;
        }
    }
    return begun > 1 ? pod_fail(err, POD_E_USAGE, "--%s may be %s; write more of it", name, list)
                     : POD_OK;
}

/* The longest option whose name the text begins with: --batchsize, --seq-len. */
static const char *begins_with(const pod_cli_names *names, const char *name)
{
    const char *longest = NULL;
    for (int i = 0; i < names->count; i++) {
        const char *option = names->options[i]->name;
        const size_t length = strlen(option);
        if (length > 2 && strncmp(name, option, length) == 0
            && (longest == NULL || length > strlen(longest))) {
            longest = option;
        }
    }
    return longest;
}

pod_status pod_cli_typed_fail(const pod_cli_names *names, const char *bad, int argc,
                              const char *const *argv, pod_error *err)
{
    char name[2 * NAME_MAX_SIZE];
    const char *at = bad + strspn(bad, "-");
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "="), at);
    for (char *c = name; *c != '\0'; c++) {
        *c = *c == '_' ? '-' : *c;
    }
    const bool one_letter = bad[0] == '-' && bad[1] != '-';
    if (one_letter && strchr("bef", bad[1]) != NULL && has(names, "bytes")) {
        return fail_nccl(argc, argv, err);
    }
    POD_TRY(one_letter ? POD_OK : fail_begun(names, name, err));
    const char *meant =
        pod_alias_name(aliases, sizeof aliases / sizeof *aliases, name, strlen(name));
    meant = meant != NULL && has(names, meant) ? meant : NULL;
    if (meant == NULL && !one_letter) {
        meant = has(names, name) ? name : begins_with(names, name);
    }
    if (meant != NULL) {
        const bool is_format = strcmp(meant, "format") == 0;
        return pod_fail(err, POD_E_USAGE, "unknown option '%.*s'; did you mean '--%s%s%s'?",
                        (int)strcspn(bad, "="), bad, meant, is_format ? " " : "",
                        is_format ? name : "");
    }
    char dashed[POD_CLI_OPTIONS_MAX][NAME_MAX_SIZE];
    const char *all[POD_CLI_OPTIONS_MAX];
    int count = 0;
    for (int i = 0; i < names->count; i++) {
        if (names->options[i]->help != NULL) { /* others are for tests */
            (void)snprintf(dashed[count], sizeof dashed[count], "--%s", names->options[i]->name);
            all[count] = dashed[count];
            count++;
        }
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(bad, "="), bad);
    return pod_fail_unknown(err, POD_E_USAGE, "option", name, all, count);
}
