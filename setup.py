"""Builds the extension module with CMake: pip wheel . --no-build-isolation

With CODBAND_BUILT_MODULE=FILE a module that is built already is packed instead.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).parent.resolve()
VERSION = re.search(r"project\(codband VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


class BuildWithCMake(build_ext):
    """One module, by the project's own build."""

    def build_extension(self, ext):
        target = pathlib.Path(self.get_ext_fullpath(ext.name)).resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        built = os.environ.get("CODBAND_BUILT_MODULE") or self._build()
        shutil.copyfile(built, target)

    def _build(self):
        build = pathlib.Path(self.build_temp).resolve()
        build.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["cmake", "-G", "Ninja", "-S", str(ROOT), "-B", str(build), "-DCMAKE_BUILD_TYPE=Release",
             "-DCMAKE_UNITY_BUILD=ON", "-DCODBAND_TESTS=OFF", "-DCODBAND_WEB=OFF", "-DCODBAND_PYTHON=ON", "-DCODBAND_INSTALL=OFF",
             f"-DPython_EXECUTABLE={sys.executable}"], check=True)
        subprocess.run(["cmake", "--build", str(build), "--target", "codband_python"], check=True)
        modules = list((build / "python" / "codband").glob("_core.*.so"))
        if len(modules) != 1:
            raise RuntimeError(f"{build} has {len(modules)} modules, expected 1: Python's headers, NumPy and "
                               "pybind11 are needed")
        return modules[0]


setup(version=VERSION, ext_modules=[Extension("codband._core", sources=[])], cmdclass={"build_ext": BuildWithCMake})
