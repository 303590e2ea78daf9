from setuptools import setup

REQUESTS = "2.28.1"
with open("requirements.in") as f:
    extra = f.read().split()

setup(
    name="code",
    version="1.0",
    install_requires=["requests==" + REQUESTS, "jinja2==3.1.2"] + extra,
)
