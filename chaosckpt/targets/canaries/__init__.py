"""Canaries, by theme: targets with one planted bug each, which prove that the oracle catches it."""
