/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "models/settings_file.h"

static const char *value_of(const pod_settings *settings, const char *key)
{
    const pod_setting *setting = pod_settings_find(settings, key);
    cr_assert(setting != NULL, "%s", key);
    return setting->value;
}

Test(settings, words_are_separated_by_blanks_quotes_brackets_and_comments)
{
    pod_settings settings = {0};
    pod_error err = {0};
    cr_assert_eq(
        pod_settings_words(&settings,
                           "model_name=llama2-70b  # a comment with remat_policy=full\n"
                           "xla_flags='--xla_a=true --xla_b=1' \\\n"
                           "  run_name=\"it's \\\"so\\\"\" mlp_activations=['silu', 'linear']\t"
                           "method=fixed,-224,224 empty= tag=a#b",
                           NULL, &err),
        POD_OK, "%s", err.text);
    cr_assert_eq(settings.count, 7);
    cr_assert_str_eq(value_of(&settings, "model_name"), "llama2-70b");
    cr_assert_str_eq(value_of(&settings, "xla_flags"), "--xla_a=true --xla_b=1");
    cr_assert_str_eq(value_of(&settings, "run_name"), "it's \"so\"");
    cr_assert_str_eq(value_of(&settings, "mlp_activations"), "[silu,linear]");
    cr_assert_str_eq(value_of(&settings, "method"), "fixed,-224,224");
    cr_assert_str_eq(value_of(&settings, "empty"), "");
    cr_assert_str_eq(value_of(&settings, "tag"), "a#b");
    pod_settings_fini(&settings);
}

Test(settings, the_command_of_a_run_script_is_passed_over)
{
    pod_settings settings = {0};
    pod_error err = {0};
    const char text[] = "#!/bin/bash\n"
                        "export LIBTPU_INIT_ARGS=\"--xla_a=1\"\n"
                        "python3 -m maxtext.trainers.pre_train.train configs/base.yml \\\n"
                        "  per_device_batch_size=2 ici_fsdp_parallelism=-1\n";
    cr_assert_eq(pod_settings_file(&settings, text, strlen(text), "run.sh", &err), POD_OK, "%s",
                 err.text);
    cr_assert_eq(settings.count, 3);
    cr_assert_str_eq(value_of(&settings, "LIBTPU_INIT_ARGS"), "--xla_a=1");
    cr_assert_str_eq(value_of(&settings, "per_device_batch_size"), "2");
    cr_assert_eq(pod_settings_find(&settings, "per_device_batch_size")->line, 4);
    pod_settings_fini(&settings);
}

Test(settings, yaml_gives_the_same_as_words)
{
    pod_settings settings = {0};
    pod_error err = {0};
    const char text[] = "# MaxText\n"
                        "model_name: \"llama2-70b\"\n"
                        "per_device_batch_size: 2.0  # of a device\n"
                        "mlp_activations:\n  - silu\n  - \"linear\"\n"
                        "rules: [['a', ['data', 'fsdp']], ['b', []]]\n"
                        "nothing: null\nword: \"null\"\nnested: {a: 1, b: [2]}\n";
    cr_assert_eq(pod_settings_file(&settings, text, strlen(text), "run.yml", &err), POD_OK, "%s",
                 err.text);
    cr_assert_str_eq(value_of(&settings, "model_name"), "llama2-70b");
    cr_assert_str_eq(value_of(&settings, "per_device_batch_size"), "2.0");
    cr_assert_str_eq(value_of(&settings, "mlp_activations"), "[silu,linear]");
    cr_assert_str_eq(value_of(&settings, "rules"), "[[a,[data,fsdp]],[b,[]]]");
    cr_assert_str_eq(value_of(&settings, "nothing"), "");
    cr_assert_str_eq(value_of(&settings, "word"), "null");
    cr_assert_str_eq(value_of(&settings, "nested"), "{a:1,b:[2]}");
    cr_assert_eq(pod_settings_find(&settings, "rules")->line, 7);
    pod_settings_fini(&settings);
}

Test(settings, the_same_twice_is_fine_and_two_values_are_not)
{
    pod_settings settings = {0};
    pod_error err = {0};
    cr_assert_eq(pod_settings_words(&settings, "a=1 a=1", NULL, &err), POD_OK);
    cr_assert_eq(settings.count, 1);
    cr_assert_eq(pod_settings_words(&settings, "a=2", NULL, &err), POD_E_USAGE);
    cr_assert_str_eq(err.text, "a: given twice, as '1' and '2'; give it once");
    pod_settings_fini(&settings);
}

Test(settings, others_replace_what_they_say_too)
{
    pod_settings settings = {0};
    pod_settings over = {0};
    cr_assert_eq(pod_settings_words(&settings, "a=1 b=2", NULL, NULL), POD_OK);
    cr_assert_eq(pod_settings_words(&over, "b=3 c=4", NULL, NULL), POD_OK);
    cr_assert_eq(pod_settings_override(&settings, &over, NULL), POD_OK);
    cr_assert_eq(settings.count, 3);
    cr_assert_str_eq(value_of(&settings, "a"), "1");
    cr_assert_str_eq(value_of(&settings, "b"), "3");
    cr_assert_str_eq(value_of(&settings, "c"), "4");
    pod_settings_fini(&settings);
    pod_settings_fini(&over);
}

Test(settings, what_is_no_setting_is_refused_where_it_stands)
{
    static const struct {
        const char *text;
        int line;
        const char *says;
    } cases[] = {
        {"a=1\nmodel_name llama2-70b", 2, "'model_name' is no setting"},
        {"python3 train.py a=1",       1, "'python3' is no setting"   },
        {"a=1\n b='open",              2, "quote"                     },
        {"a=[1, 2",                    1, "bracket"                   },
        {"3a=1",                       1, "'3a=1' is no setting"      },
        {"a: 1\nb: [1, 2",             3, "no YAML"                   },
        {"a: 1\na: 2",                 2, "given twice"               },
        {"---\n- a\n- b",              2, "no list of settings"       },
        {"a: [[[[[[[[[1]]]]]]]]]",     1, "deep"                      },
        {"a: &x [1]\n? [b]\n: 2",      2, "no word"                   },
        {"---\n\"a\\nb\": 1",          2, "no word"                   },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_settings settings = {0};
        pod_error err = {0};
        const char *text = cases[i].text;
        cr_expect_eq(pod_settings_file(&settings, text, strlen(text), "f", &err), POD_E_USAGE, "%s",
                     text);
        cr_expect(strstr(err.text, cases[i].says) != NULL, "%s: %s", text, err.text);
        cr_expect_eq(err.line, cases[i].line, "%s: line %d", text, err.line);
        cr_expect_str_eq(err.file, "f");
        pod_settings_fini(&settings);
    }
}

Test(settings, a_list_that_repeats_itself_ends)
{
    /* each alias doubles what is printed: 2^40 without a limit */
    pod_settings settings = {0};
    pod_error err = {0};
    char text[4096] = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 7; i++) {
        char line[200];
        (void)snprintf(line, sizeof line,
                       "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i, i - 1,
                       i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
        (void)strncat(text, line, sizeof text - strlen(text) - 1);
    }
    cr_assert_eq(pod_settings_file(&settings, text, strlen(text), "f", &err), POD_E_USAGE);
    cr_assert(strstr(err.text, "long") != NULL, "%s", err.text);
    pod_settings_fini(&settings);
}

Test(settings, an_empty_file_has_no_settings)
{
    pod_settings settings = {0};
    cr_assert_eq(pod_settings_file(&settings, "", 0, "f", NULL), POD_OK);
    cr_assert_eq(pod_settings_file(&settings, "---\n", 4, "f", NULL), POD_OK);
    cr_assert_eq(pod_settings_file(&settings, "a=1\0b=2", 7, "f", NULL), POD_E_USAGE);
    cr_assert_eq(settings.count, 0);
    pod_settings_fini(&settings);
}

/* As a shell joins lines, in a word and in quotes, too. */
Test(settings, a_backslash_joins_lines)
{
    pod_settings settings = {0};
    pod_error err = {0};
    cr_assert_eq(pod_settings_words(
                     &settings,
                     "model_name=llama2-7b per_device_batch_size=4\\\n"
                     "  remat_policy=full a=1\\\n2 b=\"x\\\ny\" c='z\\\nz' d=e\\ f\\\r\n g=h\\",
                     "f", &err),
                 POD_OK, "%s", err.text);
    cr_assert_str_eq(value_of(&settings, "per_device_batch_size"), "4");
    cr_assert_str_eq(value_of(&settings, "remat_policy"), "full");
    cr_assert_str_eq(value_of(&settings, "a"), "12");
    cr_assert_str_eq(value_of(&settings, "b"), "xy");
    cr_assert_str_eq(value_of(&settings, "c"), "z\\\nz");
    cr_assert_str_eq(value_of(&settings, "d"), "e f");
    cr_assert_str_eq(value_of(&settings, "g"), "h");
    cr_assert_eq(pod_settings_find(&settings, "remat_policy")->line, 2);
    cr_assert_eq(pod_settings_find(&settings, "remat_policy")->column, 3);
    pod_settings_fini(&settings);
}

/* Of the forms that MaxText's own launch scripts have. */
Test(settings, a_script_runs_as_far_as_it_can_be_read)
{
    static const char text[] =
        "echo \"Running it\"  # a comment with an \"open quote\n"
        "set -e\n"
        "export EXECUTABLE=\"train.py\" # or another\n"
        "DATASET=synthetic; LAYERS=\"base_num_decoder_layers=2 head_dim=64\"\n"
        "for ARGUMENT in \"$@\"; do\n"
        "    IFS='=' read -r KEY VALUE <<< \"$ARGUMENT\"\n"
        "    export \"$KEY\"=\"$VALUE\"\n"
        "done\n"
        "if [ -n \"$RUN_NAME\" ];\nthen\n    export M_RUN_NAME=$RUN_NAME\nfi\n"
        "cat <<END\nper_device_batch_size=7 'an open quote\nEND\n"
        "export LIBTPU_INIT_ARGS=\"--xla_a=true --xla_b=false\"\n"
        "python3 MaxText/$EXECUTABLE \"${DIR:-${ROOT:-$PWD}/configs}\"/base.yml "
        "model_name=llama2-7b\\\n"
        "  base_output_directory=$OUTPUT run_name=\"$(date +%s) x\" steps=${STEPS:-30}\\\n"
        "  dataset_type=$DATASET $LAYERS tokenizer_path=${DATASET:+there} \"$@\" 2>&1 | tee log\n"
        "  fused_qkv=True fused_mlp=True\\\n";
    pod_settings settings = {0};
    pod_error err = {0};
    cr_assert_eq(pod_settings_file(&settings, text, strlen(text), "run.sh", &err), POD_OK, "%s",
                 err.text);
    cr_assert_eq(settings.count, 9);
    cr_assert_str_eq(value_of(&settings, "model_name"), "llama2-7b");
    cr_assert_str_eq(value_of(&settings, "steps"), "30");
    cr_assert_str_eq(value_of(&settings, "dataset_type"), "synthetic");
    cr_assert_str_eq(value_of(&settings, "base_num_decoder_layers"), "2");
    cr_assert_str_eq(value_of(&settings, "head_dim"), "64");
    cr_assert_str_eq(value_of(&settings, "tokenizer_path"), "there");
    cr_assert_str_eq(value_of(&settings, "LIBTPU_INIT_ARGS"), "--xla_a=true --xla_b=false");
    cr_assert_str_eq(pod_settings_find(&settings, "base_output_directory")->problem,
                     "cannot expand $OUTPUT: nothing before it sets it; write its value");
    cr_assert_str_eq(pod_settings_find(&settings, "run_name")->problem,
                     "cannot expand $(…): write what the command gives");
    cr_assert(pod_settings_find(&settings, "steps")->problem == NULL);
    pod_settings_fini(&settings);
}

/* Branches that known words decide; arguments that aren't given have their defaults. */
Test(settings, conditions_that_are_known_decide)
{
    static const char text[] =
        "BATCH=${1:-${BATCH:-4}}\nEXECUTABLE=${8:-train} # or another\n"
        "if [[ \"$EXECUTABLE\" == \"train_compile\" ]]; then\n"
        "  TOPOLOGY=${9}\n  python3 -m MaxText.$EXECUTABLE base.yml batch=1 topology=$TOPOLOGY\\\n "
        "  c=1\n"
        "elif [ -z \"$BATCH\" ]; then\n  python3 -m MaxText.x base.yml batch=2\n"
        "elif [ $BATCH != 5 ]; then\n  python3 -m MaxText.$EXECUTABLE base.yml "
        "batch=\"${BATCH}\"\\\n"
        "  type=synthetic\nelse\n  python3 -m MaxText.x base.yml batch=3\nfi\n";
    pod_settings settings = {0};
    pod_error err = {0};
    cr_assert_eq(pod_settings_words(&settings, text, "run.sh", &err), POD_OK, "%s", err.text);
    cr_assert_eq(settings.count, 2);
    cr_assert_str_eq(value_of(&settings, "batch"), "4");
    cr_assert_str_eq(value_of(&settings, "type"), "synthetic");
    pod_settings_fini(&settings);
}

Test(settings, a_command_in_quotes_is_a_script_of_its_own)
{
    pod_settings settings = {0};
    pod_error err = {0};
    cr_assert_eq(
        pod_settings_words(
            &settings,
            "bash -c \"export A=3; python3 -m MaxText.train base.yml a=\\$A \\\n b='c d'\"", "f",
            &err),
        POD_OK, "%s", err.text);
    cr_assert_str_eq(value_of(&settings, "a"), "3");
    cr_assert_str_eq(value_of(&settings, "b"), "c d");
    pod_settings_fini(&settings);
}

Test(settings, a_variable_may_hold_the_command)
{
    static const char *const scripts[] = {
        "C=\"python3 t.py base.yml a=3\"\n$C b='c d'\n",
        "C=\"python3 t.py base.yml a=3\"\neval $C \"b='c d'\"\n",
        "C='python3 t.py base.yml'\n$C a=3 b='c d'\n",
    };
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        pod_settings settings = {0};
        pod_error err = {0};
        cr_assert_eq(pod_settings_words(&settings, scripts[i], "f", &err), POD_OK, "%s", err.text);
        cr_expect_str_eq(value_of(&settings, "a"), "3");
        cr_expect(strstr(value_of(&settings, "b"), "c d") != NULL, "%s", scripts[i]);
        pod_settings_fini(&settings);
    }
}

Test(settings, what_a_script_does_otherwise_is_refused_where_it_stands)
{
    static const struct {
        const char *text;
        int line;
        int column;
        const char *says;
    } cases[] = {
        {"python3 t.py base.yml a=1\npython3 t.py base.yml b=1", 2, 14, "runs MaxText again"   },
        {"C=\"python3 t.py base.yml a=1\"\n$C b=1\n$C b=2",      3, 1,  "runs MaxText again"   },
        {"python3 t.py models/m.yml base_config=base.yml a=1",   1, 14, "isn't base.yml"       },
        {"python3 t.py configs/other.yml a=1",                   1, 14, "isn't base.yml"       },
        {"python3 t.py base.yml a=1 $MORE",                      1, 27, "cannot expand $MORE"  },
        {"python3 t.py base.yml a=1 --b",                        1, 27, "'--b' is no setting"  },
        {"python3 t.py base.yml a=${B:-1",                       1, 27, "left open"            },
        {"if x; then A=1; fi\npython3 t.py base.yml $A",         2, 23, "under a condition"    },
        {"A=$(cat x)\npython3 t.py base.yml ${A}",               2, 23, "cannot expand $(…)" },
        {"python3 t.py base.yml ${A%x}",                         1, 23, "cannot expand ${A…}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pod_settings settings = {0};
        pod_error err = {0};
        const char *text = cases[i].text;
        cr_expect_eq(pod_settings_file(&settings, text, strlen(text), "f", &err), POD_E_USAGE, "%s",
                     text);
        cr_expect(strstr(err.text, cases[i].says) != NULL, "%s: %s", text, err.text);
        cr_expect_eq(err.line, cases[i].line, "%s: line %d", text, err.line);
        cr_expect_eq(err.column, cases[i].column, "%s: column %d", text, err.column);
        pod_settings_fini(&settings);
    }
}

/* Keys are found by their hash. */
Test(settings, many_keys_are_read_once)
{
    pod_text text = {0};
    pod_settings settings = {0};
    for (int i = 0; i < 20000; i++) {
        pod_text_printf(&text, "key_%d=%d\n", i, i);
    }
    cr_assert_eq(pod_settings_words(&settings, text.data, "f", NULL), POD_OK);
    cr_assert_eq(settings.count, 20000);
    cr_assert_str_eq(value_of(&settings, "key_19999"), "19999");
    pod_settings_fini(&settings);
    pod_text_free(&text);
}
