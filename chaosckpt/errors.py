"""The four ways in which chaosckpt itself can fail; a violation found in a target is none of them."""

from __future__ import annotations


class ChaosckptError(Exception):
    """Base of every error that the command line prints as one sentence, without a traceback."""

    exit_code = 3


class UsageError(ChaosckptError):
    """The user asked for something that can't be: the message shows the offending value and the next step."""

    exit_code = 2


class PluginError(UsageError):
    """A target, fault or invariant can't be loaded, or breaks the protocol that it signed up for."""


class HarnessError(ChaosckptError):
    """The harness, not the target, failed: a fork server that won't start, a lost node, a full journal disk."""
