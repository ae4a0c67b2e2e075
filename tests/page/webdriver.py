# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven by chromedriver through the WebDriver protocol (W3C), with nothing but Python's library."""
import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request

# No request leaves the machine by itself, and none may: proxies go to a port on which nobody listens.
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--disable-dev-shm-usage",
             "--proxy-server=127.0.0.1:9", "--proxy-bypass-list=<-loopback>"]


class Browser:
    def __init__(self, url, profile, dark):
        self.url = url
        arguments = ARGUMENTS + [f"--user-data-dir={profile}"]
        options = {"args": arguments, "binary": shutil.which("chromium")}
        self.session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"},
            "unhandledPromptBehavior": "ignore"}}})["sessionId"]
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.url + path, method=method, data=json.dumps(body).encode() if body is not None else None,
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)["value"]

    def command(self, method, path, body=None):
        return self.call(method, f"/session/{self.session}{path}", body)

    def devtools(self, name, **parameters):
        return self.command("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def run(self, script, *arguments):
        return self.command("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def size(self, width, height):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, path):
        """Opens a page and waits until it says that it is ready; @return what it says."""
        self.command("POST", "/url", {"url": "file://" + os.path.abspath(path)})
        for _ in range(6000):
            ready = self.run("return document.body.dataset.ready || ''")
            if ready:
                return ready
            time.sleep(0.05)
        return "never"

    def console(self):
        """Warnings and errors since the last call."""
        return [entry["message"] for entry in self.command("POST", "/se/log", {"type": "browser"}) if entry["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, path):
        import base64
        height = self.run("return document.documentElement.scrollHeight")
        width = self.run("return document.documentElement.clientWidth")
        self.size(width, min(height, 16000))
        picture = self.devtools("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture))

    def close(self):
        self.command("DELETE", "")


@contextlib.contextmanager
def browser(dark=False):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    profile = tempfile.mkdtemp()
    driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(url + "/status", timeout=5).close()
                break
            time.sleep(0.05)
        page = Browser(url, profile, dark)
        try:
            yield page
        finally:
            page.close()
    finally:
        driver.terminate()
        driver.wait()
        shutil.rmtree(profile, ignore_errors=True)
