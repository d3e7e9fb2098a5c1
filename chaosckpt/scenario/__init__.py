"""Scenarios: read from TOML, checked, explained when refused, and written back."""
