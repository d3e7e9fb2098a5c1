"""What the harness costs: ratios measured within one run, each beside its target."""
