#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: check_completion.py bash|zsh PODSIM PROJECT: types into a real shell, with tabs, and looks at the words that it makes of them."""

import os
import pty
import select
import subprocess
import sys
import tempfile
import time

shell, podsim, project = sys.argv[1], os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3])
# What is typed, and what becomes of it; of several words that could come, their common beginning.
cases = [
    ("podsim coll\t", "podsim collective"),
    ("podsim help va\t", "podsim help validate"),
    ("podsim step --gather\t", "podsim step --gather-ahead"),
    ("podsim step --spl\t", "podsim step --split-axes"),
    ("podsim slice --slice v5e:16x1\t", "podsim slice --slice v5e:16x16"),
    ("podsim slice --slice=v5e:16x1\t", "podsim slice --slice=v5e:16x16"),
    ("podsim plan --slices v5litepod-25\t", "podsim plan --slices v5litepod-256"),
    ("podsim matmul --chip tp\t", "podsim matmul --chip tpu7x"),
    ("podsim chip tp\t", "podsim chip tpu7x"),
    ("podsim step --model llama2-1\t", "podsim step --model llama2-13b"),
    ("podsim step --recipe tpu7x-llama3.1-70b-128k-\t", "podsim step --recipe tpu7x-llama3.1-70b-128k-fp8"),
    ("podsim collective --algorithm hamiltonian_rings_2\t", "podsim collective --algorithm hamiltonian_rings_2D_disjoint"),
    ("podsim collective --op all-r\t", "podsim collective --op all-reduce"),
    ("podsim collective --slice v5p:4x4x4 --op red\t", "podsim collective --slice v5p:4x4x4 --op reduce-scatter"),
    ("podsim step --mode pre\t", "podsim step --mode prefill"),
    ("podsim list al\t", "podsim list algorithms"),
    ("podsim list --format js\t", "podsim list --format json"),
    ("podsim hlo READ\t", "podsim hlo README.md"),
    ("podsim nothing --sl\t", "podsim nothing --sl"),
]
several = [("podsim co", ["collective", "compare", "copy"]), ("podsim step --model llama2-", ["llama2-7b", "llama2-13b", "llama2-70b"])]
MARK = "end-of-answer"


class Shell:
    def __init__(self, folder):
        self.master, slave = pty.openpty()
        command = ["bash", "--norc", "--noprofile", "-i"] if shell == "bash" else ["zsh", "-f", "-i"]
        environment = dict(os.environ, TERM="dumb", PS1="$ ", PATH=os.path.dirname(podsim) + ":" + os.environ["PATH"], HOME=folder,
                           LC_ALL="C.UTF-8", PODSIM_DATA=project)
        self.child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=project,
                                      start_new_session=True)
        os.close(slave)
        if shell == "bash":
            self.enter("bind 'set enable-bracketed-paste off'; bind 'set completion-query-items 0'; bind 'set page-completions off'")
            self.enter(f"source '{project}/completions/podsim.bash'")
        else:
            self.enter(f"fpath=('{project}/completions' $fpath); autoload -U compinit; compinit -u -D; bindkey -e; LISTMAX=1000")
            self.enter("unsetopt zle_bracketed_paste prompt_cr 2>/dev/null; setopt no_beep auto_list")

    def read_until(self, text):
        """What the terminal shows until `text` comes; a minute without it is a fault."""
        shown, end = "", time.monotonic() + 60
        while text not in shown:
            if time.monotonic() > end:
                sys.exit(f"{shell}: no {text!r} in {shown!r}")
            if select.select([self.master], [], [], 0.1)[0]:
                shown += os.read(self.master, 65536).decode(errors="replace")
        return shown

    def type(self, text):
        os.write(self.master, text.encode())

    def enter(self, line):
        self.type(line + f"; echo {MARK[:3]}''{MARK[3:]}\n")
        return self.read_until(MARK)

    def words(self, typed):
        """The words of the line that `typed` became."""
        self.type(typed)
        self.type("\x05 ; echo '" + MARK[:3] + "''" + MARK[3:] + "'\x01printf '<%s>' \n")
        return self.read_until(MARK + "\r").replace("\r", "")

    def choices(self, typed):
        self.type(typed + "\t\t")
        time.sleep(1)
        self.type("\x05 ; echo '" + MARK[:3] + "''" + MARK[3:] + "'\x01: \n")
        return self.read_until(MARK + "\r")


with tempfile.TemporaryDirectory() as home:
    typist = Shell(home)
    faults = []
    for typed, expected in cases:
        shown = typist.words(typed)
        if "".join(f"<{word}>" for word in expected.split()) not in shown:
            faults.append(f"{typed!r} became {shown!r}")
    for typed, expected in several:
        shown = typist.choices(typed)
        missing = [word for word in expected if word not in shown]
        if missing:
            faults.append(f"{typed!r} doesn't offer {missing}: {shown!r}")
    typist.type("exit\n")
    typist.child.wait(timeout=60)
print("\n".join(faults))
sys.exit(1 if faults else 0)
