"""The core values, from operations and faults to journals, verdicts and findings: frozen, without effects, and stored as JSON."""
