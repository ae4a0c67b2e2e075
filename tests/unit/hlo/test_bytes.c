/* SPDX-License-Identifier: Apache-2.0 */
#include "texts.h"

#include "hlo/bytes.h"
#include "hlo/kind.h"
#include "hlo/memory.h"

typedef struct traffic_case {
    const char *instructions; /* of ENTRY; the one looked at is named x */
    pod_hlo_kind kind;
    int64_t read, write, vmem, host, gather, ops;
} traffic_case;

/* One array is f32[64,128] in HBM: 32768 B. */
#define A   "f32[64,128]{1,0:T(8,128)}"
#define V   "f32[64,128]{1,0:T(8,128)S(1)}"
#define H   "f32[64,128]{1,0:T(8,128)S(5)}"
#define ROW "f32[8,128]{1,0:T(8,128)}"

static const char computations[] =
    "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"
    "double {\n  p = " A " parameter(0)\n  ROOT q = " A " add(p, p)\n}\n"
    "rows {\n  p = " A " parameter(0)\n  i = s32[] parameter(1)\n  b = f32[8,8,128] bitcast(p)\n"
    "  ROOT q = " ROW " dynamic-slice(b, i, i, i), dynamic_slice_sizes={8,1,128}\n}\n"
    "nested {\n  p = " A " parameter(0)\n  i = s32[] parameter(1)\n  q = " A " parameter(2)\n"
    "  r = " ROW " fusion(p, i), kind=kLoop, calls=rows\n  t = " ROW
    " slice(p), slice={[0:8], [0:128]}\n"
    "  s = " ROW " multiply(r, t)\n"
    "  ROOT o = (" ROW ", " A ") tuple(s, q)\n}\n"
    "update {\n  p = " A " parameter(0)\n  r = " ROW " parameter(1)\n  i = s32[] parameter(2)\n"
    "  n = " ROW " negate(r)\n  u = " A " dynamic-update-slice(p, n, i, i)\n"
    "  ROOT b = " A " bitcast(u)\n}\n"
    /* eight rows of a, and as many of padding, are all that is computed */
    "piece {\n  p = " A " parameter(0)\n  i = s32[] parameter(1)\n  z = f32[] constant(0)\n"
    "  n = " A " negate(p)\n  d = f32[128,128]{1,0:T(8,128)} pad(n, z), padding=0_64x0_0\n"
    "  s = f32[16,128]{1,0:T(8,128)} dynamic-slice(d, i, i), dynamic_slice_sizes={16,128}\n"
    "  ROOT q = f32[16,128]{1,0:T(8,128)} exponential(s)\n}\n"
    "pieces {\n  p = " A " parameter(0)\n  i = s32[] parameter(1)\n  n = " A " negate(p)\n"
    "  s = " ROW " dynamic-slice(n, i, i), dynamic_slice_sizes={8,128}\n"
    "  ROOT q = (" ROW ", " A ") tuple(s, n)\n}\n"
    "windows {\n  p = " A " parameter(0)\n  i = s32[] parameter(1)\n  n = " A " negate(p)\n"
    "  s = f32[40,128]{1,0:T(8,128)} dynamic-slice(n, i, i), dynamic_slice_sizes={40,128}\n"
    "  t = f32[40,128]{1,0:T(8,128)} slice(n), slice={[24:64], [0:128]}\n"
    "  ROOT q = f32[40,128]{1,0:T(8,128)} add(s, t)\n}\n"
    "product {\n  p = " A " parameter(0)\n  q = " A " parameter(1)\n"
    "  d = f32[64,64]{1,0:T(8,128)} dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
    "  ROOT e = f32[64,64]{1,0:T(8,128)} exponential(d)\n}\n"
    "held {\n  p = " ROW " parameter(0)\n  q = " A " parameter(1)\n"
    "  g = " A " all-gather(p), channel_id=1, dimensions={0}\n"
    "  ROOT s = (" ROW ", " A ", " A
    ") custom-call(p, g, q), custom_call_target=\"AsyncCollectiveStart\"\n}\n"
    "ended {\n  p = " ROW " parameter(0)\n  q = " A " parameter(1)\n"
    "  g = " A " all-gather(p), channel_id=1, dimensions={0}\n"
    "  ROOT d = " A " custom-call(p, q, g), custom_call_target=\"AsyncCollectiveDone\"\n}\n";

/* clang-format off */
static const traffic_case cases[] = {
    /* clang-format off */
    /* plain instructions */
    {"x = " A " negate(a)", POD_HLO_KIND_ELEMENTWISE, 32768, 32768, 0, 0, 0, 8192},
    {"x = " A " add(a, v)", POD_HLO_KIND_ELEMENTWISE, 32768, 32768, 32768, 0, 0, 8192},
    {"x = " V " copy(a)", POD_HLO_KIND_ELEMENTWISE, 32768, 0, 32768, 0, 0, 0},
    {"x = " ROW " slice(a), slice={[0:8], [0:128]}", POD_HLO_KIND_ELEMENTWISE, 4096, 4096, 0, 0, 0, 0},
    {"x = " ROW " dynamic-slice(a, i, i), dynamic_slice_sizes={8,128}",
     POD_HLO_KIND_ELEMENTWISE, 4096, 4096, 0, 0, 0, 0},
    {"x = " A " dynamic-update-slice(a, r, i, i)", POD_HLO_KIND_ELEMENTWISE, 4096, 4096, 0, 0, 0, 0},
    {"x = f32[64]{0:T(1024)} reduce(a, z), dimensions={1}, to_apply=add",
     POD_HLO_KIND_ELEMENTWISE, 32768 + 4, 4096, 0, 0, 0, 8192},
    {"x = " A " sort(a), dimensions={1}, to_apply=add", POD_HLO_KIND_SORT, 32768, 32768, 0, 0, 0, 8192 * 28},
    {"x = (" A ", " A ") sort(a, a), dimensions={0}, to_apply=add",
     POD_HLO_KIND_SORT, 65536, 65536, 0, 0, 0, 2 * 8192 * 21},
    {"x = f32[32,128]{1,0:T(8,128)} reduce-window(a, z), window={size=2x1 stride=2x1}, to_apply=add",
     POD_HLO_KIND_WINDOW, 32768 + 4, 16384, 0, 0, 0, 8192},
    /* every window holds a whole row; one tap less doesn't */
    {"x = " A " reduce-window(a, z), window={size=1x255 pad=0_0x127_127}, to_apply=add",
     POD_HLO_KIND_WINDOW, 32768 + 4, 32768, 0, 0, 0, 8192},
    {"x = " A " reduce-window(a, z), window={size=1x254 pad=0_0x127_126}, to_apply=add",
     POD_HLO_KIND_WINDOW, 32768 + 4, 32768, 0, 0, 0, 8192 * 254},
    {"x = " ROW " gather(a, k), offset_dims={1}", POD_HLO_KIND_GATHER, 4096 + 512, 4096, 0, 0, 4096, 0},
    {"x = " A " scatter(a, k, r), to_apply=add", POD_HLO_KIND_GATHER, 512 + 4096, 4096, 0, 0, 4096, 0},
    {"x = f32[64,64]{1,0:T(8,128)} dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
     POD_HLO_KIND_MATMUL, 65536, 32768, 0, 0, 0, 0},
    {"x = " A " strange(a)", POD_HLO_KIND_ELEMENTWISE, 32768, 32768, 0, 0, 0, 8192},
    {"x = " A " custom-call(a), custom_call_target=\"tpu_custom_call\"", POD_HLO_KIND_CUSTOM, 32768, 32768, 0, 0, 0, 0},
    /* what takes no time */
    {"x = f32[8192]{0} bitcast(a)", POD_HLO_KIND_NOTHING, 0, 0, 0, 0, 0, 0},
    {"x = s32[] add(i, i)", POD_HLO_KIND_NOTHING, 0, 0, 0, 0, 0, 0},
    {"x = " A " custom-call(), custom_call_target=\"AllocateBuffer\"", POD_HLO_KIND_NOTHING, 0, 0, 0, 0, 0, 0},
    /* to and from the host */
    {"x = " H " copy(a)", POD_HLO_KIND_HOST, 32768, 0, 0, 32768, 0, 0},
    {"x = " H " custom-call(a), custom_call_target=\"MoveToHost\"", POD_HLO_KIND_HOST, 32768, 0, 0, 32768, 0, 0},
    /* copies on their own lane: once if one side is VMEM, twice if both are HBM */
    {"x = (" V ", " A ", u32[]) copy-start(a)\n  y = " V " copy-done(x)", POD_HLO_KIND_COPY, 32768, 0, 32768, 0, 0, 0},
    {"x = (" A ", " A ", u32[]) copy-start(a)\n  y = " A " copy-done(x)", POD_HLO_KIND_COPY, 32768, 32768, 0, 0, 0, 0},
    {"x = ((" A "), " ROW ", u32[]) slice-start(a), slice={[0:8], [0:128]}\n  y = " ROW " slice-done(x)",
     POD_HLO_KIND_COPY, 4096, 4096, 0, 0, 0, 0},
    /* fusions */
    {"x = " A " fusion(a), kind=kLoop, calls=double", POD_HLO_KIND_ELEMENTWISE, 32768, 32768, 0, 0, 0, 8192},
    {"x = " ROW " fusion(a, i), kind=kLoop, calls=rows", POD_HLO_KIND_ELEMENTWISE, 4096, 4096, 0, 0, 0, 0},
    /* two slices of a; the second array is only handed through */
    {"x = (" ROW ", " A ") fusion(a, i, b), kind=kLoop, calls=nested",
     POD_HLO_KIND_ELEMENTWISE, 8192, 4096, 0, 0, 0, 1024},
    {"x = " A " fusion(a, r, i), kind=kLoop, calls=update", POD_HLO_KIND_ELEMENTWISE, 4096, 4096, 0, 0, 0, 1024},
    /* slices of what is made of a: those eight rows of it; all of it where all is needed */
    {"x = f32[16,128]{1,0:T(8,128)} fusion(a, i), kind=kLoop, calls=piece",
     POD_HLO_KIND_ELEMENTWISE, 4096, 8192, 0, 0, 0, 1024 + 2048},
    {"x = (" ROW ", " A ") fusion(a, i), kind=kLoop, calls=pieces",
     POD_HLO_KIND_ELEMENTWISE, 32768, 4096 + 32768, 0, 0, 0, 8192},
    {"x = f32[40,128]{1,0:T(8,128)} fusion(a, i), kind=kLoop, calls=windows",
     POD_HLO_KIND_ELEMENTWISE, 32768, 20480, 0, 0, 0, 8192 + 5120},
    {"x = f32[64,64]{1,0:T(8,128)} fusion(a, v), kind=kOutput, calls=product",
     POD_HLO_KIND_MATMUL, 32768, 32768, 32768, 0, 0, 4096},
    /* fusions around a collective hand whole arrays through: nothing is read or written here */
    {"x = (" ROW ", " A ", " A ") fusion(r, a), kind=kCustom, calls=held\n"
     "  y = " A " fusion(r, a), kind=kCustom, calls=ended", POD_HLO_KIND_ELEMENTWISE, 0, 0, 0, 0, 0, 0},
    /* elsewhere */
    {"x = " A " all-reduce(a), to_apply=add", POD_HLO_KIND_COLLECTIVE, 0, 0, 0, 0, 0, 0},
    {"x = " A " call(a), to_apply=double", POD_HLO_KIND_ENTER, 0, 0, 0, 0, 0, 0},
    /* clang-format on */
};
/* clang-format on */

Test(hlo_bytes, counts_what_each_instruction_reads_and_writes)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const traffic_case *c = &cases[i];
        pod_text text = {0};
        pod_text_printf(&text,
                        HEAD "%sENTRY e {\n  a = " A " parameter(0)\n  b = " A " parameter(1)\n"
                             "  v = " V " parameter(2)\n  r = " ROW " parameter(3)\n"
                             "  i = s32[] parameter(4)\n  z = f32[] parameter(5)\n"
                             "  k = s32[8]{0:T(128)} parameter(6)\n  %s\n%s}\n",
                        computations, c->instructions,
                        strstr(c->instructions, "ROOT") == NULL ? "  ROOT o = token[] after-all()\n"
                                                                : "");
        pod_hlo_module *module = module_of(text.data);
        pod_hlo_analysis analysis = analysis_of(module);
        pod_hlo_bytes bytes;
        pod_hlo_traffic traffic;
        pod_error err = {0};
        const pod_hlo_instruction *x = instruction_of(module, "x");
        cr_assert_eq(pod_hlo_bytes_init(&bytes, &analysis, &err), POD_OK, "%s", err.text);
        cr_assert_eq(pod_hlo_traffic_of(&bytes, x, &traffic, &err), POD_OK, "%s", err.text);
        cr_expect_eq(pod_hlo_kind_of(&analysis, x), c->kind, "%s: %s", c->instructions,
                     pod_hlo_kind_name(pod_hlo_kind_of(&analysis, x)));
        cr_expect_eq(traffic.hbm_read, c->read, "%s: read %lld", c->instructions,
                     (long long)traffic.hbm_read);
        cr_expect_eq(traffic.hbm_write, c->write, "%s: written %lld", c->instructions,
                     (long long)traffic.hbm_write);
        cr_expect_eq(traffic.vmem, c->vmem, "%s: VMEM %lld", c->instructions,
                     (long long)traffic.vmem);
        cr_expect_eq(traffic.host, c->host, "%s: host %lld", c->instructions,
                     (long long)traffic.host);
        cr_expect_eq(traffic.gather, c->gather, "%s: gathered %lld", c->instructions,
                     (long long)traffic.gather);
        cr_expect_eq(traffic.ops, c->ops, "%s: ops %lld", c->instructions, (long long)traffic.ops);
        pod_hlo_bytes_fini(&bytes);
        pod_hlo_analysis_fini(&analysis);
        pod_hlo_free(module);
        pod_text_free(&text);
    }
}

/* ---- memory ---- */

static int64_t memory_of(const char *instructions, const char *header)
{
    pod_text text = {0};
    pod_text_printf(
        &text,
        "HloModule m, is_scheduled=true, num_partitions=8%s\n%s"
        "body {\n  s = (s32[], " A ") parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
        "  p = " A " get-tuple-element(s), index=1\n  one = s32[]{:S(6)} constant(1)\n"
        "  j = s32[]{:S(6)} add(i, one)\n  q = " A " negate(p)\n  t = " A " add(p, q)\n"
        "  u = " A " add(q, t)\n  ROOT r = (s32[]{:S(6)}, " A ") tuple(j, u)\n}\n"
        "cond {\n  s = (s32[], " A ") parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
        "  n = s32[] constant(3)\n  ROOT c = pred[] compare(i, n), direction=LT\n}\n"
        "ENTRY e {\n  a = " A " parameter(0)\n  r = " ROW " parameter(1)\n"
        "  i = s32[]{:S(6)} parameter(2)\n  %s\n}\n",
        header, computations, instructions);
    pod_hlo_module *module = module_of(text.data);
    pod_hlo_analysis analysis = analysis_of(module);
    pod_hlo_memory memory;
    pod_error err = {0};
    cr_assert_eq(pod_hlo_memory_init(&memory, &analysis, &err), POD_OK, "%s", err.text);
    cr_assert_eq(memory.argument_bytes, 32768 + 4096);
    const int64_t need = memory.bytes - memory.argument_bytes;
    pod_hlo_memory_fini(&memory);
    pod_hlo_analysis_fini(&analysis);
    pod_hlo_free(module);
    pod_text_free(&text);
    return need;
}

Test(hlo_memory, counts_the_buffers_alive_at_once)
{
    static const struct {
        const char *instructions;
        const char *header;
        int64_t need;
    } programs[] = {
  /* clang-format off */
        {"ROOT x = " A " negate(a)", "", 32768},
 /* the result is the argument's buffer */
        {"ROOT x = " A " negate(a)", ", input_output_alias={ {}: (0, {}, may-alias)}", 0},
 /* two of three at once: x dies where y is made */
        {"x = " A " negate(a)\n  y = " A " negate(x)\n  ROOT z = " A " negate(y)", "", 65536},
 /* VMEM isn't HBM; names are no buffers */
        {"x = " V " negate(a)\n  t = (" V ", " A ") tuple(x, a)\n  g = " A
         " get-tuple-element(t), index=1\n  ROOT b = f32[8192]{0:T(1024)} bitcast(g)", "", 0},
        {"x = " A " negate(a)\n  y = " A " dynamic-update-slice(x, r, i, i)\n"
         "  ROOT z = " A " fusion(y, r, i), kind=kLoop, calls=update",
         "", 32768},
        {"x = " A " negate(a)\n  ROOT y = " A
         " fusion(x), kind=kLoop, calls=double, output_to_operand_aliasing={{}: (0, {})}", "", 32768},
 /* a done returns what the start made */
        {"x = (" A ", " A ", u32[]) copy-start(a)\n  ROOT y = " A " copy-done(x)", "", 32768},
 /* the loop's state is x; its body needs q and t, of which u becomes the state */
        {"zero = s32[] constant(0)\n  x = " A " negate(a)\n  t = (s32[], " A ") tuple(zero, x)\n"
         "  w = (s32[], " A ") while(t), condition=cond, body=body\n"
         "  ROOT g = " A " get-tuple-element(w), index=1",
         "", 32768 + 65536 + 4},
  /* clang-format on */
    };
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        cr_expect_eq(memory_of(programs[i].instructions, programs[i].header), programs[i].need,
                     "program %zu: %lld", i,
                     (long long)memory_of(programs[i].instructions, programs[i].header));
    }
}

Test(hlo_memory, refuses_aliases_that_are_not_there)
{
    static const char *const wrong[] = {
        "{{0}: (0, {})}", "{{}: (1, {})}", "{{}: (0, {0})}", "{{}: 0}", "{{}: (0, {}}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        pod_text text = {0};
        pod_text_printf(&text,
                        HEAD
                        "%sENTRY e {\n  a = " A " parameter(0)\n  ROOT x = " A
                        " fusion(a), kind=kLoop, calls=double, output_to_operand_aliasing=%s\n}\n",
                        computations, wrong[i]);
        pod_hlo_module *module = NULL;
        pod_error err = {0};
        if (pod_hlo_parse("a.txt", text.data, text.size, NULL, &module, &err) == POD_OK) {
            pod_hlo_analysis analysis = analysis_of(module);
            pod_hlo_memory memory;
            cr_assert_eq(pod_hlo_memory_init(&memory, &analysis, &err), POD_E_INVALID, "%s",
                         wrong[i]);
            pod_hlo_analysis_fini(&analysis);
            pod_hlo_free(module);
        }
        cr_assert_gt(err.line, 1, "%s: %s", wrong[i], err.text);
        pod_text_free(&text);
    }
}
