"""The restart test of one scenario, step by step, and its certificate."""
