#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: test_podsim.py PROJECT: the installed package podsim, with libpodsim by PODSIM_LIB."""

import dataclasses
import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys
import threading
import types
import typing
import unittest

import podsim
from podsim import _library, rows

PROJECT = pathlib.Path(sys.argv.pop(1))
HLO = PROJECT / "topologies/examples/hlo/mlp_v5p_64.hlo.txt"
MLP = {"model": "mlp:layers=2,d_model=64,d_ff=256", "batch": 64}


def run(code, **environment):
    """In a new process: its standard error's last line, or ""."""
    done = subprocess.run([sys.executable, "-I", "-c", code], env=dict(os.environ, **environment), capture_output=True, text=True)
    return (done.stderr.strip().splitlines() or [""])[-1]


class Words(unittest.TestCase):
    def test_values_become_words(self):
        given = {"mesh": {"fsdp": 16, "tensor": 4}, "gather_ahead": 2, "strict": True, "exact": False, "remat": None, "from_": "0,0",
                 "bytes": [1024, "1MiB"], "fail_link": ["0,0,0:+x", "1,0,0:+y"], "set": {"link_book_GBps": 100, "hop_us": 1.5},
                 "collective_matmul": False, "dcn_overlap": True, "maxtext": pathlib.Path("a.yml")}
        self.assertEqual(_library.options_of(["file"], given), [
            ("", "file"), ("mesh", "fsdp=16,tensor=4"), ("gather-ahead", "2"), ("strict", None), ("from", "0,0"), ("bytes", "1024,1MiB"),
            ("fail-link", "0,0,0:+x"), ("fail-link", "1,0,0:+y"), ("set", "link_book_GBps=100"), ("set", "hop_us=1.5"),
            ("collective-matmul", "off"), ("dcn-overlap", "on"), ("maxtext", "a.yml")])
        self.assertEqual(_library.options_of([], {"mesh": [{"data": 4}, {"fsdp": 2, "tensor": 2}]}),
                         [("mesh", "data=4"), ("mesh", "fsdp=2,tensor=2")])

    def test_lists_of_options_are_those_of_the_command_line(self):
        sources = "".join(path.read_text() for path in (PROJECT / "src/cli").glob("*.c"))
        self.assertEqual(set(re.findall(r'\{"([a-z-]+)", \S+ POD_CLI_MANY,', sources)), _library.REPEATED)
        self.assertEqual(set(re.findall(r'\{"([a-z-]+)",[^"]*"on\|off"', sources)), _library.ON_OFF)


class Answers(unittest.TestCase):
    def test_dataclasses_are_the_structs_of_podsim_h(self):
        header = (PROJECT / "src/api/podsim.h").read_text()
        kinds = {"const char *": str, "int64_t ": int, "double ": float}
        for name in ("slice", "collective", "step", "plan", "hlo"):
            struct = re.search(rf"typedef struct podsim_{name}_row \{{(.*?)\}}", header, re.S).group(1)
            expected = [(field, kinds[kind]) for kind, field in re.findall(r"^    (const char \*|int64_t |double )(\w+);", struct, re.M)]
            fields = dataclasses.fields(getattr(rows, name.capitalize()))[2:]
            hints = typing.get_type_hints(getattr(rows, name.capitalize()))
            given = [(field.name, (typing.get_args(hints[field.name]) or (hints[field.name],))[0]) for field in fields]
            self.assertEqual(given, expected)

    def test_each_question(self):
        self.assertEqual(podsim.slice("v5p:4x4x4").chips, 64)
        self.assertEqual([row.bytes for row in podsim.collective(slice="v5e:2x2", op="all-gather", bytes=["1KiB", 4096])], [1024, 4096])
        layouts = podsim.compare(slice="v5e:4x4", mesh=[{"data": 16}, {"data": 4, "tensor": 4}], **MLP)
        self.assertEqual({row.mesh for row in layouts}, {"data=16", "data=4,tensor=4"})
        step = podsim.step(slice="v5e:4x4", mesh=layouts[0].mesh, data="none", **MLP)
        self.assertEqual(step.step_time_s, layouts[0].step_time_s)
        self.assertTrue(dataclasses.is_dataclass(step) and isinstance(step.exposed_dcn_s, float) and step.rank is None)
        best = podsim.plan(slices=["v5e:2x4", "v5e:4x4"], **MLP)[0]
        self.assertEqual((best.rank, best.dcn_mesh), (1, None))
        self.assertEqual(len(podsim.ask("list", "chips")), len(set(row.columns["chip"] for row in podsim.ask("list", "chips"))))
        self.assertEqual(podsim.version(), importlib.metadata.version("podsim"))

    def test_a_compiled_program_is_an_object_a_text_or_a_file(self):
        text = HLO.read_text()
        compiled = types.SimpleNamespace(as_text=lambda: text)
        times = {podsim.hlo(form, slice="v5p:4x4x4").step_time_s for form in (compiled, text, text.encode(), HLO, str(HLO))}
        self.assertEqual(len(times), 1)
        with self.assertRaisesRegex(podsim.UsageError, "gives no text"):
            podsim.hlo(types.SimpleNamespace(as_text=lambda: None), slice="v5p:4x4x4")
        with self.assertRaisesRegex(podsim.UsageError, "podsim.ask"):
            podsim.hlo(HLO, slice="v5p:4x4x4", by="kind")
        self.assertGreater(len(podsim.ask("hlo", HLO, slice="v5p:4x4x4", by="kind")), 1)

    def test_messages_and_findings(self):
        row = podsim.slice("v5p:4x4x4", explain=True)
        self.assertIn("chips = 4 x 4 x 4 = 64\n", row.result.messages)
        self.assertEqual(podsim.slice("v5p:4x4x4").result.messages, "")
        self.assertEqual(row.result.document["command"], "slice")

    def test_a_frame_has_every_column(self):
        pandas = types.ModuleType("pandas")
        pandas.DataFrame = list
        sys.modules["pandas"] = pandas
        try:
            frame = podsim.collective(slice="v5e:2x2", op="all-reduce", bytes="1KiB").frame()
        finally:
            del sys.modules["pandas"]
        self.assertEqual(frame[0]["op"], "all-reduce")
        self.assertIn("busbw_GBps", frame[0])

    def test_a_frame_of_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas isn't installed")
        rows_ = podsim.collective(slice="v5e:2x2", op="all-reduce", bytes=["1KiB", "1MiB"], data="none")
        frame = rows_.frame()
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(list(frame.columns), list(rows_[0].columns))
        self.assertEqual(frame["bytes"].tolist(), [1024, 1 << 20])
        self.assertEqual(frame["time_us"].max(), rows_[1].time_us)
        layouts = podsim.compare(slice="v5e:2x4", batch=64, model=MLP["model"]).frame()
        self.assertEqual(layouts.sort_values("step_time_s").iloc[0]["mesh"], layouts.iloc[0]["mesh"])


class Errors(unittest.TestCase):
    def test_codes_are_exceptions(self):
        for kind, code, question in [
                (podsim.UsageError, 2, lambda: podsim.step(slice="v5e:4x4", mesh={"data": 16}, modle="x", **MLP)),
                (podsim.UsageError, 2, lambda: podsim.ask("slcie")),
                (podsim.UsageError, 2, lambda: podsim.ask("slice", slice="v5e:4x4", output="x")),
                (podsim.InputError, 3, lambda: podsim.slice("v5p:4x4x4x4")),
                (podsim.SystemFault, 4, lambda: podsim.hlo("/nowhere/at/all", slice="v5p:4x4x4"))]:
            with self.assertRaises(kind) as caught:
                question()
            self.assertEqual(caught.exception.code, code)
            self.assertIsInstance(caught.exception, podsim.Error)
            self.assertNotIn("\n", str(caught.exception))

    def test_an_error_with_rows_has_them(self):
        with self.assertRaises(podsim.Error) as caught:
            podsim.compare(slice="v5e:2x2", model="llama3.1-405b", batch=64, seq=4096, mesh={"fsdp": 4})
        self.assertEqual(caught.exception.result.rows[0].columns["mesh"], "fsdp=4")

    def test_a_library_that_cannot_be_loaded(self):
        self.assertIn("set PODSIM_LIB to a libpodsim.so", run("import podsim; podsim.version()", PODSIM_LIB="/nowhere.so"))
        self.assertIn("is no libpodsim", run("import podsim; podsim.version()", PODSIM_LIB="libc.so.6"))

    def test_a_library_beside_the_package_is_found(self):
        beside = pathlib.Path(podsim.__file__).parent / "libpodsim.so.0"
        beside.symlink_to(os.environ["PODSIM_LIB"])
        try:
            self.assertEqual(run("import podsim; podsim.slice('v5e:2x2')", PODSIM_LIB=""), "")
        finally:
            beside.unlink()


class Threads(unittest.TestCase):
    def test_each_has_its_own_context(self):
        def ask(answers):
            for _ in range(3):
                answers.append(podsim.step(slice="v5e:4x4", mesh={"data": 16}, data="real", **MLP).step_time_s)

        answers = [[] for _ in range(3)]
        threads = [threading.Thread(target=ask, args=(each,)) for each in answers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(set(sum(answers, []))), 1)
        self.assertEqual(len(sum(answers, [])), 9)

    def test_a_context_is_closed_once(self):
        with podsim.Context() as context:
            self.assertEqual(context.slice("v5e:2x2").chips, 4)
            context.close()


if __name__ == "__main__":
    unittest.main()
