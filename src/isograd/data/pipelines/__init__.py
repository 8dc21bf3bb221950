"""Pipelines of the user's, each in a process of its own: `host.py` asks, `service.py` answers.

Everything below but `host.py` runs in the worker and needs nothing but numpy; a framework is used
only where the pipeline has already imported it.
"""
