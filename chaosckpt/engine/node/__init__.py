"""The node process: one failure domain that launches ranks, serves their gates, detects quiescence and injects faults."""
