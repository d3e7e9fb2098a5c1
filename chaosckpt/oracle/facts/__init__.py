"""Facts: what the journal says about saves, recoveries, losses and lineages, for a target and for a command."""
