from setuptools import setup
setup(name="paramiko", version="3.3.1", py_modules=[])
