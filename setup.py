"""Everything is declared in setup.cfg; this file lets `pip install -e .` work with every pip."""

from setuptools import setup

setup()
