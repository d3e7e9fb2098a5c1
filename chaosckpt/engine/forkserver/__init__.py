"""The fork server: a warm process from which ranks are forked in milliseconds."""
