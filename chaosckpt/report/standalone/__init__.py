"""Scripts that show a finding without the harness: read as text, and copied into a finding's reproduce.py."""
