"""The invariants, one file each. What a target and a command are judged by stands side by side."""
