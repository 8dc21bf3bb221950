"""Where samples lie: every format behind one interface (`base.py`); `open.py` chooses."""
