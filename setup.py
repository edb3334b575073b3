"""The build file for `pip install -e .`, which older versions of pip need. Everything is declared in setup.cfg."""

from setuptools import setup

setup()
