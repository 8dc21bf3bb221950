"""Rules: each one is a unit with its message, advice, source and examples.

`all_rules()` lists them; tests run their examples, and `docs/profile-rules.md` is written of them.
"""
