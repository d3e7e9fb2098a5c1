"""chaosckpt finds out whether distributed training can really resume from its checkpoints.

It launches real training, injects faults at exact storage operations, restarts the job, and judges what recovery did:
what Jepsen is for databases, for training checkpoints. This page defines the nouns and tells the main flow. Each
package's docstring goes on from here.

What is tested
    A *scenario* says what to test: the *subject*, the topologies, the storage tiers, the faults. A subject is a
    *target* (a checkpointer behind two methods, trained by the built-in *workload*) or a *command* (the user's own
    training job, unmodified). A *topology* is ranks on nodes; what dies together is a *failure group*. A *guarantee*
    is what the subject promises to survive.

What happens to it
    An *operation* is one storage system call of a rank: open, write, rename, listing. Its *address* (rank, file,
    count within the file) is the same in every run, because it holds no time and no global count. The *gate* sees
    every operation before it happens and decides about it. A *golden run* is a run without faults; its operations, in
    order, are the *census*. *Reach* says how far each peer gets while one rank is held at an operation. A *fault* is
    a frozen value: what happens, and at which address (its *trigger*). A *cut* is the fault that kills all ranks
    together, each at its own operation.

What is run
    A *schedule* holds the faults and the topology of each *attempt*, which is one launch of the job. A *trial*
    executes one schedule; its last attempt, the *closing* one, has no faults. A *campaign* is many trials with a
    budget.

What is known
    The *journal* of a trial is written by the harness, outside every failure boundary: the ground truth. A save is
    *acknowledged* once every rank has been told that it is safe; recovery is *required* to find the newest
    acknowledged save that the faults left intact. An *invariant* is one property judged from the journal. A *verdict*
    is PASS, VIOLATION or INCONCLUSIVE; a trial whose fault did not take effect never passes. A *finding* is a
    violation with its shrunk schedule, as a folder that reproduces it. A *canary* is a target with one planted bug,
    on which the oracle proves itself.

What happens when you type `chaosckpt fuzz scenarios/dcp.toml`
    1. Read: `scenario` reads and checks the file, or refuses it in one sentence; `campaign` creates and marks the run
       directory.
    2. Launch: `cli` starts the coordinator, a process of its own that drives Ray, and shows its progress.
    3. Prepare: `engine.golden` makes the golden runs: census, reach, commit points. They are cached by content.
    4. Draw: `strategies` turns (seed, index) into a schedule. Nothing is drawn while processes run.
    5. Run: `engine.runner` executes the schedule. Nodes fork ranks from warm fork servers, the gate injects the
       faults, and the job is killed and launched again. Everything goes into the journal.
    6. Judge: `oracle` reads the journal and nothing else. It is pure: a stored journal gets the same verdict again.
    7. Investigate: `campaign` confirms a violation by replay, shrinks it, names its root cause, and stores the
       finding.
    8. Report: `report` renders the result, as text, JSON and the pages of a finding.

Imports run one way, from `cli` down to `model` and `errors`; `make contract` checks it. docs/ARCHITECTURE.md is the
map.
"""
