/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads ask at the same time, each in its own context, with real numbers: both get what one alone gets. */
#include <podsim.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 5 };

static void *ask(void *unused)
{
    static const podsim_option options[] = {
        {"slice", "v5e:4x4"                          },
        {"model", "mlp:layers=2,d_model=128,d_ff=512"},
        {"batch", "128"                              },
        {"mesh",  "data=4,tensor=4"                  },
        {"data",  "real"                             },
        {NULL,    NULL                               }
    };
    char *text = NULL;
    podsim *context = podsim_open();
    (void)unused;
    for (int i = 0; i < REPEATS; i++) {
        podsim_result *result = NULL;
        if (context == NULL || podsim_step(context, options, &result) != PODSIM_OK
            || podsim_step_at(result, 0)->step_time_s <= 0) {
            fprintf(stderr, "%s\n", context != NULL ? podsim_error(context) : "no context");
            exit(1);
        }
        const char *json = podsim_result_json(result);
        if (text != NULL && strcmp(text, json) != 0) {
            fprintf(stderr, "run %d differs:\n%s%s", i, text, json);
            exit(1);
        }
        free(text);
        text = strdup(json);
        podsim_result_free(result);
    }
    podsim_close(context);
    return text;
}

int main(void)
{
    char *alone = ask(NULL);
    void *texts[2] = {NULL, NULL};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        if (pthread_create(&threads[i], NULL, ask, NULL) != 0) {
            return 1;
        }
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(threads[i], &texts[i]);
        if (strcmp(texts[i], alone) != 0) {
            fprintf(stderr, "thread %d got another answer\n", i);
            return 1;
        }
        free(texts[i]);
    }
    free(alone);
    return 0;
}
