"""How the ranks' gradients are averaged: in the order of ranks, so that a restarted run is equal bitwise."""

# No `from __future__ import annotations` here: DDP compares the hook's annotations with the types themselves.

import torch
import torch.distributed as dist


def average_in_order(
    _: None,
    bucket: dist.GradBucket,  # type: ignore[name-defined]  # torch's Python names lack it for type checkers
) -> torch.futures.Future[torch.Tensor]:
    """A communication hook for DDP: the average of a bucket of gradients, each element summed in the order of ranks.

    The order in which gloo's all-reduce sums over three ranks or more depends on an element's place in its bucket, and
    DDP lays out its buckets anew after its first step. With it a restarted run, whose first step is a later one, would
    not be equal bitwise to the uninterrupted one.
    """
    own: torch.Tensor = bucket.buffer()
    gathered = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, own)
    total = gathered[0]
    for others in gathered[1:]:
        total += others
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(total.div_(len(gathered)))
    return done
