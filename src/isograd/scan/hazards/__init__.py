"""Places that a port has to treat with care: rules as data, detectors, and examples."""

from isograd.scan.hazards.catalog import CATALOG

#: Each code with its reason, for reports that list rules.
RULES: dict[str, str] = {
    code: rule.message.replace("{api}", "this API") for code, rule in CATALOG.items()
}

__all__ = ["CATALOG", "RULES"]
