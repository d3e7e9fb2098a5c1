"""The oracle for unmodified commands: judged by what they print, how they end, and what the harness finds on storage."""
