"""The evidence of a finding: what the replay of its shrunk schedule showed, and the storage as the crash left it."""
