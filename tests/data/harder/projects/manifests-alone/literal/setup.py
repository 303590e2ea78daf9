from setuptools import setup, find_packages

setup(
    name="literal",
    version="1.0",
    packages=find_packages(),
    python_requires=">=3.8",
    install_requires=[
        'mako==1.2.1',          # templates
        "tornado>=6.2,<7",
    ],
)
