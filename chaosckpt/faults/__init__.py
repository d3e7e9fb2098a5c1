"""The kinds of fault, one file each: the value, how it is drawn, how it is injected, and what survives it."""
