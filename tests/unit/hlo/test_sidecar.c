/* SPDX-License-Identifier: Apache-2.0 */
#include "texts.h"

#include "hlo/sidecar.h"

static pod_status read(const char *text, pod_hlo_sidecar *sidecar, pod_table **table,
                       pod_error *err)
{
    *err = (pod_error){0};
    cr_assert_eq(pod_table_parse("a.csv", text, strlen(text), table, err), POD_OK, "%s", err->text);
    return pod_hlo_sidecar_read(sidecar, *table, err);
}

Test(hlo_sidecar, reads_what_is_given)
{
    pod_hlo_sidecar sidecar;
    pod_table *table = NULL;
    pod_error err;
    cr_assert_eq(
        read("key,value\nslice,v5e:4x4\nmesh,\"data=4,tensor=4\"\nwrap,\ndevice_order,0 1 2 3\n"
             "hbm_bytes,123456789012\njax,0.10.2\n",
             &sidecar, &table, &err),
        POD_OK, "%s", err.text);
    cr_assert_str_eq(sidecar.slice, "v5e:4x4");
    cr_assert_str_eq(sidecar.mesh, "data=4,tensor=4");
    cr_assert_null(sidecar.wrap);
    cr_assert_null(sidecar.dcn_mesh);
    cr_assert_str_eq(sidecar.device_order, "0 1 2 3");
    cr_assert_eq(sidecar.hbm_bytes, 123456789012);
    cr_assert_eq(sidecar.argument_bytes, -1);
    pod_table_free(table);
}

Test(hlo_sidecar, refuses_what_it_does_not_know)
{
    static const struct {
        const char *text;
        int line, column;
        const char *says;
    } wrong[] = {
        {"key,value\nslic,v5e:4x4\n",                 2, 1,  "did you mean slice"},
        {"key,value\nslice,v5e:4x4\nslice,v5e:4x4\n", 3, 1,  "given twice"       },
        {"key,value\nhbm_bytes,-1\n",                 2, 11, "-1"                },
        {"key,value\nhbm_bytes,many\n",               2, 11, "many"              },
        {"key,values\nslice,v5e:4x4\n",               1, 1,  "'value' is missing"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        pod_hlo_sidecar sidecar;
        pod_table *table = NULL;
        pod_error err;
        cr_assert_eq(read(wrong[i].text, &sidecar, &table, &err), POD_E_TABLE, "%s", wrong[i].text);
        cr_assert(strstr(err.text, wrong[i].says) != NULL, "%s: %s", wrong[i].text, err.text);
        cr_assert_eq(err.line, wrong[i].line, "%s", wrong[i].text);
        cr_assert_eq(err.column, wrong[i].column, "%s: column %d", wrong[i].text, err.column);
        pod_table_free(table);
    }
}

Test(hlo_sidecar, lies_beside_the_text)
{
    static const char *const names[][2] = {
        {"a.hlo.txt",   "a.hlo.csv"  },
        {"dir.d/a.hlo", "dir.d/a.csv"},
        {"dir.d/a",     "dir.d/a.csv"},
        {".hidden",     ".hidden.csv"},
    };
    char buf[64];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cr_assert(pod_hlo_sidecar_name(names[i][0], buf, sizeof buf));
        cr_assert_str_eq(buf, names[i][1]);
    }
    cr_assert_not(pod_hlo_sidecar_name("a.csv", buf, sizeof buf));
    cr_assert_not(pod_hlo_sidecar_name("a.hlo.txt", buf, 9));
}
