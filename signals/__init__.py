"""Signals: what an operator asks a running job to do. Read here from three channels, decided upon elsewhere.

``channels`` bring records, ``parse`` makes one signal of each record, ``resolve`` finds the tables it means. This
package knows nothing of the rest of the project.
"""
