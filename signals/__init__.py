"""Signals: what an operator asks a running job to do. The package reads them; the planner obeys them.

`channels` read records from three channels, `parse` makes one signal of each record, and `resolve` finds the tables
that a signal means. The package imports nothing of the rest of the project.
"""
