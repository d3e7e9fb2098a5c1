"""A measurement for a person: on a terminal, and as one page of HTML."""
