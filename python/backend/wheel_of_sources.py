# SPDX-License-Identifier: Apache-2.0
"""A build backend (PEP 517, PEP 660) for a package of plain Python files: a wheel is a ZIP file of them and of three files about them."""

import base64
import hashlib
import pathlib
import re
import zipfile

HERE = pathlib.Path(__file__).resolve().parent.parent


def project(key):
    return re.search(rf'^{key} = "(.*)"$', (HERE / "pyproject.toml").read_text(), re.M).group(1)


NAME, VERSION = project("name"), project("version")
ABOUT = {
    "METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\nSummary: {project('description')}\n"
                f"License: Apache-2.0\nRequires-Python: {project('requires-python')}\n",
    "WHEEL": "Wheel-Version: 1.0\nGenerator: podsim\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}


def write_wheel(folder, files):
    about = f"{NAME}-{VERSION}.dist-info"
    files = dict(files, **{f"{about}/{name}": text.encode() for name, text in ABOUT.items()})
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{about}/RECORD"] = (record + f"{about}/RECORD,,\n").encode()
    wheel = f"{NAME}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / wheel, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in files.items():
            out.writestr(name, data)
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    sources = sorted(path for path in (HERE / NAME).iterdir() if path.suffix in (".py", ".typed"))
    return write_wheel(wheel_directory, {f"{NAME}/{path.name}": path.read_bytes() for path in sources})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, {f"{NAME}.pth": f"{HERE}\n".encode()})
