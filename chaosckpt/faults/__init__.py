"""Fault kinds, one file each: the value, how it is drawn, what it does, what it destroys and how that heals."""
