"""How far rounding goes: the envelope that a correct port stays in."""
