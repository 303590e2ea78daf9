import os
from setuptools import setup

VERSION = os.environ.get("TQDM", "4.66.1")
setup(name="computed", version="1.0", install_requires=["tqdm==%s" % VERSION])
