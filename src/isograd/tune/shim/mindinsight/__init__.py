"""Lets a script that reads MindInsight's HyperConfig run where MindInsight is not installed."""

import pkgutil

__path__ = pkgutil.extend_path(__path__, __name__)
