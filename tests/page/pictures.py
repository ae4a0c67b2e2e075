# SPDX-License-Identifier: Apache-2.0
"""Usage: pictures.py PODSIM FOLDER

Writes the screenshots of docs/report.md: a view each of pages that PODSIM makes, as a headless Chromium shows them."""
import base64
import os
import subprocess
import sys
import tempfile

import webdriver

LLAMA = ["--slice", "v5p:4x4x4", "--model", "llama3.1-8b", "--batch", "64", "--seq", "8192", "--data", "none"]
STEP = ["step", "--mesh", "fsdp=16,tensor=4", *LLAMA]
BROKEN = [*STEP, "--slow-link", "1,2,0:+x:2", "--fail-link", "0,0,0:+y"]
PLAN = ["plan", "--model", "llama3.1-8b", "--batch", "512", "--slices", "v5e:8x16,v5e:16x16,v6e:8x16,v6e:16x16"]
SIZES = ["collective", "--slice", "v5e:4x4", "--slice", "v5p:4x4x4", "--op", "all-reduce", "--bytes", "1KiB:1GiB:4", "--data", "none"]

POD = ["step", "--slice", "v5e:16x16", "--model", "llama3.1-8b", "--mesh", "fsdp=256", "--batch", "256", "--seq", "4096", "--remat", "full", "--data", "none"]
ZOOM = "const plus = document.querySelectorAll('#timeline .tools button')[1]; for (let i = 0; i < 5; i++) plus.click();"

# name of the picture: command line, view, width, what to do first
PICTURES = {
    "report_time": (STEP, "time", 1000, ""),
    "report_timeline": (STEP, "timeline", 1000, "document.querySelectorAll('#timeline .tools button')[1].click();"
                        "document.querySelectorAll('#timeline .tools button')[1].click();"),
    "step_timeline": (POD, "timeline", 1000, ZOOM),
    "report_roofline": (STEP, "roofline", 1000, ""),
    "report_slice": (BROKEN, "slice", 1000, "const s = document.querySelector('#slice select'); s.value = '0'; s.dispatchEvent(new Event('change'))"),
    "report_layouts": (["compare", *LLAMA], "layouts", 1000, ""),
    "report_plan": (PLAN, "plan", 1000, ""),
    "report_sizes": (SIZES, "sizes", 1000, ""),
}


def picture(page, path, view, width, script):
    """The first panel of a view."""
    page.size(width, 900)
    if page.run("return document.body.dataset.ready") != "yes":
        sys.exit(f"pictures: {path} did not become ready")
    page.run(script)
    page.run(f"document.getElementById('{view}').scrollIntoView()")
    box = page.run(f"""const v = document.getElementById('{view}'); const p = v.querySelector('.two, .panel') || v;
        const b = p.getBoundingClientRect(); return [b.left + scrollX, b.top + scrollY, b.width, b.height]""")
    shot = page.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                         clip={"x": box[0] - 4, "y": box[1] - 4, "width": box[2] + 8, "height": box[3] + 8, "scale": 1})["data"]
    with open(path, "wb") as file:
        file.write(base64.b64decode(shot))


def main():
    podsim, folder = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch, webdriver.browser() as page:
        made = {}
        for name, (command, view, width, script) in PICTURES.items():
            key = tuple(command)
            if key not in made:
                made[key] = os.path.join(scratch, f"{len(made)}.html")
                subprocess.run([podsim, *command, "--html", made[key]], check=True, capture_output=True)
            page.size(width, 900)
            page.open(made[key])
            picture(page, os.path.join(folder, name + ".png"), view, width, script)


main()
